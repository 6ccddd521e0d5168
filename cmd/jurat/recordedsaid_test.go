package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"jurat/internal/must"
)

// TestWhoSaidRecorded: who first said a text is found in what recorders saw, also where a stream came in words or JSON escapes them, and it is the
// agent who said it, not its witness. A user's text was given, a repeated one is no second origin, and where the bytes are withheld it is said.
func TestWhoSaidRecorded(t *testing.T) {
	chunk := func(text string) string {
		return fmt.Sprintf("data: {\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", text)
	}
	answers := map[string]string{
		"/v1/chat/completions": chunk("Pay the ") + chunk("\"blue\" invoice") +
			"data: {\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		"/v1/messages": `{"type":"message","role":"assistant","model":"c-1","content":[{"type":"text","text":"Заплатите\nпо счёту"},` +
			`{"type":"tool_use","id":"t1","name":"pay","input":{"to":"IBAN 77"}}],"stop_reason":"tool_use"}`,
		"/v1beta/models/g-1:generateContent": `{"candidates":[{"content":{"role":"model","parts":[{"text":"青い請求書です"}]},"finishReason":"STOP"}],"modelVersion":"g-1"}`,
	}
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := "application/json"
		if strings.HasPrefix(answers[r.URL.Path], "data:") {
			kind = "text/event-stream"
		}
		w.Header().Set("Content-Type", kind)
		fmt.Fprint(w, answers[r.URL.Path])
	}))
	t.Cleanup(model.Close)
	data := t.TempDir() + "/data"
	at, _, stop := serve(t, "--data", data, "record", "proxy", "--agent", "mia", "--upstream", "wise="+model.URL, "--listen", "127.0.0.1:0")
	for _, call := range [][2]string{
		{"/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"what is due?"}]}`},
		{"/v1/messages", `{"model":"c","max_tokens":9,"messages":[{"role":"user","content":"Pay the \"blue\" invoice"}]}`},
		{"/v1beta/models/g-1:generateContent", `{"contents":[{"role":"user","parts":[{"text":"which?"}]}]}`},
	} {
		r := must.Get(http.NewRequest(http.MethodPost, at+"/wise"+call[0], strings.NewReader(call[1])))(t)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Jurat-Chain", "monday")
		answer := must.Get(http.DefaultClient.Do(r))(t)
		must.Get(io.ReadAll(answer.Body))(t)
		answer.Body.Close()
	}
	if code := stop(); code != 0 {
		t.Fatal("the recorder ended with", code)
	}
	trust := written(t, doing(t, 0, "--data", data, "trust"))
	chain := written(t, doing(t, 0, "--data", data, "log", "prove", "recorded/mia/monday"))
	withheld := written(t, doing(t, 0, "--data", data, "log", "prove", "recorded/mia/monday", "--withhold", "response_body"))
	for _, tt := range []struct {
		file, text string
		says       []string
	}{
		{chain, `the "blue" invoice`, []string{`It was introduced by record`, `observed call of agent "mia"`, `seen by the recorder "recorder"`}},
		{chain, "по счёту", []string{`It was introduced by record`, `of agent "mia"`}},
		{chain, "IBAN 77", []string{`It was introduced by record`, `of agent "mia"`}},
		{chain, "請求書", []string{`It was introduced by record`, `of agent "mia"`}},
		{chain, "what is due?", []string{"No agent here gave it out", "It was given from outside to record"}},
		{chain, "never said", []string{"No agent here gave it out"}},
		{withheld, "請求書", []string{"No agent here gave it out", "It may also stand in what is withheld of record"}},
	} {
		said := strings.Join(strings.Fields(doing(t, 0, "explain", "--trust", trust, "--who-said", tt.text, tt.file)), " ")
		for _, want := range tt.says {
			if !strings.Contains(said, want) {
				t.Errorf("%s: %s\nwant %s", tt.text, said, want)
			}
		}
		if strings.Contains(said, "also brought in") || strings.Contains(said, "of recorder") {
			t.Errorf("%s: %s", tt.text, said)
		}
	}
}
