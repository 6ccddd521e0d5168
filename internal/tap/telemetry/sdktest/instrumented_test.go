package sdktest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"jurat/evidence/observed"
	"jurat/internal/tap/traffic"
	"jurat/internal/test/must"
)

// parcelModel asks for a tool first, and then answers.
func parcelModel(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct{ Messages []struct{ Role string } }
		if err := json.NewDecoder(r.Body).Decode(&call); err != nil || len(call.Messages) == 0 {
			http.Error(w, "no messages", http.StatusBadRequest)
			return
		}
		message, finish := `{"role":"assistant","content":"In Kassel."}`, "stop"
		if call.Messages[len(call.Messages)-1].Role == "user" {
			message, finish = `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"find_parcel","arguments":"{\"number\":17}"}}]}`, "tool_calls"
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"c-1","object":"chat.completion","created":1,"model":"gpt-5-2026","choices":[{"index":0,"message":%s,"finish_reason":%q}],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`, message, finish)
	}))
	t.Cleanup(s.Close)
	return s
}

// TestInstrumentedAgents: two libraries instrument the same agent, each by its own convention, and two exporters send. Each time the same
// conversation is told.
func TestInstrumentedAgents(t *testing.T) {
	if os.Getenv("JURAT_TEST_OTEL") == "" {
		t.Skip("JURAT_TEST_OTEL names no folder with OpenTelemetry's packages of npm: scripts/test sdks sets it")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node")
	}
	const (
		asked = `[{"content":"You find parcels.","role":"system"},{"content":"Where is parcel 17?","role":"user"}`
		call  = `{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{\"number\":17}","name":"find_parcel"},"id":"call_1","type":"function"}]}`
	)
	for _, library := range []string{"@opentelemetry/instrumentation-openai", "@arizeai/openinference-instrumentation-openai"} {
		for exporter, media := range map[string]string{"proto": "application/x-protobuf", "http": "application/json"} {
			t.Run(library+" "+exporter, func(t *testing.T) {
				d := newDesk(t, nil)
				agent := exec.Command(node, "testdata/agent.cjs", library, exporter, parcelModel(t).URL, d.URL)
				out, err := agent.CombinedOutput()
				must.Need(t, err == nil, "%v\n%s", err, out)
				must.Hold(t, d.types[media] != 0 && len(d.types) == 1, "sent: %v", d.types)
				var told []traffic.Projection
				slices.SortStableFunc(d.reports, func(a, b observed.Act) int { return strings.Compare(a.Began, b.Began) })
				for _, r := range d.reports {
					p, f := said(t, r), factsOf(r)
					must.Hold(t, strings.HasSuffix(r.RequestID, "-events") || f.Usage != nil && f.Model != "" && strings.Contains(string(f.Parameters), "openai"),
						"a span states %+v", f)
					if p.Prompt != nil {
						told = append(told, p)
					}
				}
				must.Need(t, len(told) == 2, "%d acts with messages: want 2", len(told))
				must.Equal(t, string(told[0].Prompt)+" "+string(told[0].Output), asked+"] "+call, "first")
				if got, want := string(told[1].Prompt)+" "+string(told[1].Output), asked+","+call+`,{"content":"Kassel","role":"tool","tool_call_id":"call_1"}] "In Kassel."`; got != want {
					t.Errorf("second\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
}
