package verify

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
)

// TestTelemetry: what telemetry told is never proved, and a record that says something else than what it was told is refuted.
func TestTelemetry(t *testing.T) {
	const told = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.request.model","value":{"stringValue":"m"}},` +
		`{"key":"gen_ai.usage.input_tokens","value":{"intValue":"9"}},{"key":"gen_ai.output.messages","value":{"stringValue":"[{\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"content\":\"In Kassel.\"}]}]"}}]}]}]}]}`
	span := func(change func(*evidence.Payload)) *sightFinding {
		act := call(told, "")
		act.Type, act.Protocol, act.Vantage, act.Fidelity, act.Response, act.Path, act.Status = evidence.ObservedSpan, observed.OTLP, evidence.Telemetry, evidence.ByAttributes, nil, "", 0
		r := observedRecord(t, act)
		if r.Payload.Response != nil || r.Payload.Model != "m" {
			t.Fatalf("%+v", r.Payload)
		}
		change(&r.Payload)
		return judged(r)
	}
	for name, test := range map[string]struct {
		change  func(*evidence.Payload)
		rule    string
		refuted bool
	}{
		"as it was told":             {func(*evidence.Payload) {}, "second-hand", false},
		"an answer beside the bytes": {func(p *evidence.Payload) { p.Response = jsontext.Value(`"In Gera."`) }, "second-hand", false},
		"another model":              {func(p *evidence.Payload) { p.Model = "n" }, "projection", true},
		"other counts":               {func(p *evidence.Payload) { p.Observed.Usage = jsontext.Value(`{"input_tokens":8}`) }, "projection", true},
		"other bytes":                {func(p *evidence.Payload) { p.RequestBody = jsontext.Value(`"{}"`) }, "digest", true},
	} {
		if found := span(test.change); found == nil || found.Rule != test.rule || found.Refuted != test.refuted {
			t.Errorf("%s: %+v, want %s", name, found, test.rule)
		}
	}
}
