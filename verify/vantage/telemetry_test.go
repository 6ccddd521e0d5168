package vantage

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/observe"
)

// TestTelemetry: what telemetry told is never proved, and a record that says something else than what it was told is refuted.
func TestTelemetry(t *testing.T) {
	const told = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.request.model","value":{"stringValue":"m"}},` +
		`{"key":"gen_ai.usage.input_tokens","value":{"intValue":"9"}},{"key":"gen_ai.output.messages","value":{"stringValue":"[{\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"content\":\"In Kassel.\"}]}]"}}]}]}]}]}`
	span := func(change func(*evidence.Payload)) *Finding {
		act := call(told, "")
		act.Type, act.Protocol, act.Vantage, act.Fidelity, act.Response, act.Path, act.Status = evidence.ObservedSpan, observe.OTLP, evidence.Telemetry, evidence.ByAttributes, nil, "", 0
		r := record(t, act)
		if string(r.Payload.Response) != `"In Kassel."` || r.Payload.Observed.Reading != observe.Version {
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
		"as it was told": {func(*evidence.Payload) {}, "second-hand", false},
		"another answer": {func(p *evidence.Payload) { p.Response = jsontext.Value(`"In Gera."`) }, "projection", true},
		"another model":  {func(p *evidence.Payload) { p.Model = "n" }, "projection", true},
		"other counts":   {func(p *evidence.Payload) { p.Observed.Usage = jsontext.Value(`{"input_tokens":8}`) }, "projection", true},
		"other bytes":    {func(p *evidence.Payload) { p.RequestBody = jsontext.Value(`"{}"`) }, "digest", true},
		"another answer, said to be read by other rules": {func(p *evidence.Payload) { p.Observed.Reading, p.Response = "other/1", jsontext.Value(`"In Gera."`) }, "projection", true},
		"as it was told, said to be read by other rules": {func(p *evidence.Payload) { p.Observed.Reading = "other/1" }, "second-hand", false},
	} {
		if found := span(test.change); found == nil || found.Rule != test.rule || found.Refuted != test.refuted {
			t.Errorf("%s: %+v, want %s", name, found, test.rule)
		}
	}
}
