package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"jurat/internal/must"
	"jurat/verify/bilateral"
)

// TestRecordA2A: two owners record the same exchange, one before the agent that asks and one before the agent that answers. The agent is tried by what was
// recorded. A stranger sees from both owners' files that both recorded the exchange.
func TestRecordA2A(t *testing.T) {
	t.Parallel()
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{"message":{"messageId":"a","contextId":"c1","role":"ROLE_AGENT","parts":[{"text":"It is in Bern."}]}}}`)
	}))
	defer agent.Close()
	theirs, ours := filepath.Join(t.TempDir(), "theirs"), filepath.Join(t.TempDir(), "ours")
	at, _, stopTheirs := serve(t, "--data", theirs, "record", "a2a", "--agent", "mia", "--upstream", agent.URL, "--listen", "127.0.0.1:0")
	by, _, stopOurs := serve(t, "--data", ours, "record", "a2a", "--agent", "ben", "--as", "caller", "--upstream", at, "--listen", "127.0.0.1:0")
	answer, err := http.Post(by+"/", "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"Where is parcel 17?"}]}}}`))
	must.Do(t, err)
	text, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil || !strings.Contains(string(text), "It is in Bern.") {
		t.Fatalf("%s %v", text, err)
	}
	if stopOurs() != 0 || stopTheirs() != 0 {
		t.Fatal("a recorder did not end well")
	}

	doing(t, 0, "--data", theirs, "trial", "--recorded", "recorded/mia/context-c1", "--jurors", "offline")
	ourTrust, theirTrust := written(t, doing(t, 0, "--data", ours, "trust")), written(t, doing(t, 0, "--data", theirs, "trust"))
	both := written(t, doing(t, 0, "trust", "join", ourTrust, theirTrust))
	one, other := written(t, doing(t, 0, "--data", ours, "log", "case", "recorded/ben/context-c1")), written(t, doing(t, 0, "--data", theirs, "log", "case", "recorded/mia/context-c1"))
	wantAnswers(t, 0, both, one, "content: proved", "vantage: proved", "order: proved")
	said := strings.Join(strings.Fields(doing(t, 0, "verify", "--trust", both, one, other)), " ")
	if !strings.Contains(said, `Both sides recorded the exchange of`) || !strings.Contains(said, `"ben", which asked, and "mia", which answered`) || !strings.Contains(said, "two witnesses") {
		t.Error(said)
	}
	documents := strings.Split(doing(t, 0, "verify", "--json", "--trust", both, one, other), "\n")
	var report bilateral.Report
	if err := json.Unmarshal([]byte(documents[len(documents)-1]), &report); err != nil || len(report.Pairs) != 1 || report.Pairs[0].Witnesses != 2 || report.Trust == "" {
		t.Errorf("%s: %v", documents[len(documents)-1], err)
	}
	if alone := doing(t, 3, "verify", "--trust", ourTrust, one, other); strings.Contains(alone, "two witnesses") || !strings.Contains(alone, "are no witness of an exchange") {
		t.Error(alone)
	}
}

// TestRecordA2ARefuses: what makes no recorder before an agent is refused with the flag that is wrong.
func TestRecordA2ARefuses(t *testing.T) {
	t.Parallel()
	for says, args := range map[string][]string{
		`--upstream "grpc://a": gRPC cannot be recorded`: {"--upstream", "grpc://a"},
		`--upstream "https://a/b": want https://HOST`:    {"--upstream", "https://a/b"},
		`--rewrite-card "a": want https://HOST`:          {"--upstream", "https://a", "--rewrite-card", "a"},
		"missing port":                                   {"--upstream", "https://a", "--listen", "nonsense"},
		"plain http":                                     {"--upstream", "https://a", "--listen", "0.0.0.0:0"},
	} {
		var errs strings.Builder
		code := run(t.Context(), append([]string{"--data", t.TempDir() + "/none", "record", "a2a", "--agent", "mia"}, args...), stdio{in: strings.NewReader(""), out: io.Discard, err: &errs})
		if code == 0 || !strings.Contains(errs.String(), says) {
			t.Errorf("%v: exit code %d\n%s, want %s", args, code, &errs, says)
		}
	}
}
