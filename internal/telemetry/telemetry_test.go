package telemetry_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/must"
	"jurat/internal/observe"
	"jurat/internal/observe/otlp"
	"jurat/internal/telemetry"
)

// The prompt and the answers of a run that two libraries instrumented: the model asks for a tool, and then answers.
const (
	firstPrompt  = `[{"content":"You find parcels.","role":"system"},{"content":"Where is parcel 17?","role":"user"}`
	toolCall     = `{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{\"number\":17}","name":"find_parcel"},"id":"call_1","type":"function"}]}`
	toolResult   = `{"content":"Kassel","role":"tool","tool_call_id":"call_1"}`
	secondAnswer = `"In Kassel."`
)

// TestRealInstrumentations reads what OpenTelemetry's and OpenInference's own instrumentations of the openai library for JavaScript
// sent. The files are as the exporters wrote them. All tell of the same conversation.
func TestRealInstrumentations(t *testing.T) {
	for _, name := range []string{"openinference.json", "opentelemetry.jsonl"} {
		t.Run(name, func(t *testing.T) {
			told := readFile(t, name)
			var spans, events []observe.Projection
			for i := range told.Acts {
				a := &told.Acts[i]
				p := project(t, a)
				if a.Kind == "" {
					events = append(events, p)
					continue
				}
				spans = append(spans, p)
				f, _ := observed.FactsOf(&evidence.Observed{Protocol: observed.OTLP, Request: new(evidence.ObservedBody)}, a.Body, nil)
				if f.ModelVersion != "gpt-5-2026" && f.Model != "gpt-5-2026" || f.Usage == nil || !strings.Contains(string(f.Parameters), `"provider":"openai"`) {
					t.Errorf("%+v", f)
				}
			}
			said := spans
			if events != nil {
				said = events
				for _, p := range spans {
					if !strings.Contains(p.Problem, "prompt: not told here") || !strings.Contains(p.Problem, "response: not told here") || p.Prompt != nil || p.Output != nil {
						t.Errorf("a span without content: %+v", p)
					}
				}
			}
			if len(said) != 2 {
				t.Fatalf("%d acts: want 2", len(said))
			}
			if got, want := string(said[0].Prompt), firstPrompt+"]"; got != want {
				t.Errorf("first prompt\n%s\nwant\n%s", got, want)
			}
			if got := string(said[0].Output); got != toolCall {
				t.Errorf("first answer\n%s\nwant\n%s", got, toolCall)
			}
			if got, want := string(said[1].Prompt), firstPrompt+","+toolCall+","+toolResult+"]"; got != want {
				t.Errorf("second prompt\n%s\nwant\n%s", got, want)
			}
			if got := string(said[1].Output); got != secondAnswer || said[1].Problem != "" {
				t.Errorf("second answer %s, problem %q", got, said[1].Problem)
			}
		})
	}
}

func readFile(t *testing.T, name string) *telemetry.Told {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var all otlp.Data
	for doc := range bytes.Lines(file) {
		data := must.Get(telemetry.Decode("", telemetry.JSON, doc))(t)
		all.ResourceSpans, all.ResourceLogs = append(all.ResourceSpans, data.ResourceSpans...), append(all.ResourceLogs, data.ResourceLogs...)
	}
	return telemetry.Find(&all)
}

func project(t *testing.T, a *telemetry.Act) observe.Projection {
	t.Helper()
	p := must.Get(observe.Project(observe.Call{Protocol: observe.OTLP, Request: a.Body}))(t)
	return p
}

// payload is what a recorder would seal.
func payload(t *testing.T, a *telemetry.Act) evidence.Payload {
	t.Helper()
	o := a.Observed("shop-bot", time.Date(2026, 11, 27, 15, 0, 0, 0, time.UTC))
	o.Recorder = "listener"
	p := must.Get(observed.Payload(o))(t)
	return p
}
