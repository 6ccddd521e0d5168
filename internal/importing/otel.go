package importing

import (
	"cmp"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/fault"
	"jurat/internal/observe"
	"jurat/internal/subject"
	"jurat/internal/telemetry"
)

// otel reads traces and logs of OpenTelemetry in JSON, as the collector's file exporter writes them, one body on each line, or one alone. An act in them is
// the one that 'jurat record otlp' seals of the same span, under the same id: what was told already is known.
func (r *reader) otel() error {
	return r.values(func(_ int, place string, v jsontext.Value) error {
		var told *telemetry.Told
		var err error
		if guarded := fault.Guard(func() error { told, err = telemetry.ReadFile(v); return nil }); guarded != nil {
			err = guarded
		}
		switch {
		case errors.Is(err, telemetry.ErrNoTelemetry):
			return nil // a line of metrics
		case err != nil:
			return r.bad(place, err)
		}
		for _, reason := range told.Reasons {
			if err := r.bad(place, errors.New(reason)); err != nil {
				return err
			}
		}
		for i := range told.Acts {
			if err := r.give(r.told(&told.Acts[i], place)); err != nil {
				return err
			}
		}
		return nil
	})
}

// told is an act as an exchange.
func (r *reader) told(a *telemetry.Act, place string) *Exchange {
	u := unit{raw: a.Body, place: place + ", span " + a.Span, id: a.RequestID()}
	if !a.Began.IsZero() {
		u.at = a.Began.Format("2006-01-02T15:04:05.000Z07:00")
	}
	if p, err := observe.Project(observe.Call{Protocol: observe.OTLP, Request: a.Body}); err == nil {
		u.requested, u.model, u.usage = p.Model, p.ModelVersion, p.Usage
		u.messages = append(counted(p.Prompt, subject.User), counted(p.Output, subject.Assistant)...)
	}
	return &Exchange{Conversation: cmp.Or(a.Chain, a.Dialogue, a.Trace), Entry: a.RequestID(), own: true, whole: true, units: []unit{u}, told: a}
}

// counted stands for the messages of a projection. They are only counted: what they are is read from the span.
func counted(v jsontext.Value, role subject.Role) []subject.Message {
	if len(v) == 0 {
		return nil
	}
	elements := []jsontext.Value{v}
	if v.Kind() == jsontext.KindBeginArray && json.Unmarshal(v, &elements) != nil {
		return nil
	}
	list := make([]subject.Message, len(elements))
	for i := range list {
		list[i].Role = role
	}
	return list
}
