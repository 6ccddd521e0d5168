package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jurat/internal/must"
)

// TestManyValues: a small text with very many values is refused before they are read: in a request to a server, a payload, a conversation, a record, a policy and a panel.
func TestManyValues(t *testing.T) {
	t.Parallel()
	many := "[" + strings.Repeat("{},", 140_000) + "{}]"
	payload := `{"agent_id": "a", "request_id": "r", "timestamp": "2026-01-31T16:15:00Z", "model": "m", "model_version": "m-1", "prompt": ` + many + `, "response": "r", "parameters": {}}`
	data := filepath.Join(t.TempDir(), "data")
	at, _, stop := serve(t, "--data", data, "serve", "--addr", "127.0.0.1:0")
	token := doing(t, 0, "--data", data, "access", "grant", "a", "agent", "--reason", "a test", "--by", "tester")
	for path, want := range map[string]int{"/v1/records": http.StatusRequestEntityTooLarge, "/v1/submissions": http.StatusRequestEntityTooLarge} {
		req := must.Get(http.NewRequest("POST", at+path, strings.NewReader(payload)))(t)
		req.Header.Set("Authorization", "Bearer "+token)
		answer := must.Get(http.DefaultClient.Do(req))(t)
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != want && answer.StatusCode != http.StatusForbidden || answer.StatusCode == want && !strings.Contains(string(text), "more than 262144 values") {
			t.Errorf("POST %s: %d %.300s", path, answer.StatusCode, text)
		}
	}
	stop()
	record := doing(t, 0, "--data", data, "seal", written(t, strings.Replace(payload, many, `"p"`, 1)))
	trust := written(t, doing(t, 0, "--data", data, "trust"))
	folder := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(folder, "conversation.json"), []byte(`{"messages": `+many+`}`), 0o600))
	for name, args := range map[string][]string{
		"a payload":      {"--data", data, "seal", written(t, payload)},
		"a conversation": {"--data", data, "trial", folder, "--jurors", "offline"},
		"a record":       {"verify", "--trust", trust, written(t, strings.Replace(record, `"timestamps":[`, `"timestamps":[`+many[1:len(many)-1]+`,`, 1))},
		"a policy":       {"verify", "--trust", trust, "--policy", written(t, `{"require": `+many+`}`), written(t, record)},
		"a trust file":   {"verify", "--trust", written(t, `{"format": "jurat/trust/v1", "keys": `+many+`}`), written(t, record)},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), args, stdio{in: strings.NewReader(""), out: &out, err: &errs})
		if code == 0 || !strings.Contains(out.String()+errs.String(), "more than 262144 values") {
			t.Errorf("%s: exit code %d\n%.300s\n%.300s", name, code, &out, &errs)
		}
	}
}
