package verify_test

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/must"
)

// trial returns a trial that a clerk with every key has changed in a few places. Links and requests are recomputed, or
// not.
func (c *chance) trial(ctx context.Context, honest [][]*evidence.Record) *evidence.Bundle {
	c.t.Helper()
	c.count = 0
	f := newForgerOf(c.t, c.house, of(c, honest...))
	for range 1 + c.IntN(2) {
		c.forge(f)
	}
	records := f.sealBy(func(p evidence.Payload) *evidence.Record {
		draft, err := evidence.NewDraft(p)
		if err == nil {
			return c.sign(ctx, draft, nil)
		}
		return c.sign(ctx, (&telling{chance: c}).tame(nil), nil)
	})
	if c.once(15) {
		c.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	}
	return c.log(records, false)
}

// forge changes one thing of a trial.
func (c *chance) forge(f *forger) {
	if len(f.acts) == 0 {
		return
	}
	i := c.IntN(len(f.acts))
	p := &f.acts[i]
	p.Saw = slices.Clone(p.Saw)
	switch of(c, "body", "body", "body", "body", "drop", "swap", "twice", "position", "previous", "saw", "case", "chain", "actor", "request",
		"time", "model", "parameters", "review", "cut") {
	case "body":
		c.forgeBody(p)
	case "drop":
		f.acts, f.was = slices.Delete(f.acts, i, i+1), slices.Delete(f.was, i, i+1)
	case "cut":
		f.acts, f.was = f.acts[:i+1], f.was[:i+1]
	case "swap":
		j := min(i+1, len(f.acts)-1)
		f.acts[i], f.acts[j], f.was[i], f.was[j] = f.acts[j], f.acts[i], f.was[j], f.was[i]
	case "twice":
		again := *p
		again.RecordID = ""
		f.acts, f.was = slices.Insert(f.acts, i, again), slices.Insert(f.was, i, evidence.DigestOf([]byte{byte(i)}))
	case "position":
		p.ChainPosition = max(1, p.ChainPosition+int64(c.IntN(5))-2)
	case "previous":
		p.PreviousRecord = of(c, f.was...)
	case "saw":
		c.forgeSaw(p, f)
	case "case":
		p.Case = evidence.DigestOf([]byte("another"))
	case "chain":
		p.ChainID = "trial-another"
	case "actor":
		p.AgentID = of(c, f.acts...).AgentID
	case "request":
		if !p.RequestDigest.IsZero() {
			p.RequestDigest = of(c, f.was...)
		}
	case "time":
		p.Timestamp = of(c, f.acts...).Timestamp
	case "model":
		if p.Model != "" {
			p.Model = of(c, "scripted@17", "scripted2", "unreported")
		}
	case "parameters":
		if p.Parameters != nil {
			p.Parameters = jsontext.Value(of(c, `{"temperature":2}`, `{}`))
		}
	case "review":
		review := evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "user@example.com", Timestamp: p.Timestamp, ApprovalStatus: of(c, evidence.Approved, evidence.Rejected),
			OriginalResponseID: p.RecordID, Saw: []evidence.Digest{f.was[i]}, ChainID: of(c, p.ChainID, "")}
		f.acts, f.was = slices.Insert(f.acts, i+1, review), slices.Insert(f.was, i+1, evidence.DigestOf([]byte{byte(i), 1}))
	}
}

func (c *chance) forgeSaw(p *evidence.Payload, f *forger) {
	switch {
	case len(p.Saw) > 1 && c.once(3):
		p.Saw[0], p.Saw[1] = p.Saw[1], p.Saw[0]
	case len(p.Saw) > 1 && c.once(2):
		p.Saw = p.Saw[1:]
	default:
		if d := of(c, f.was...); !slices.Contains(p.Saw, d) {
			p.Saw = append(p.Saw, d)
		}
	}
}

// forgeBody changes one value anywhere in a body.
func (c *chance) forgeBody(p *evidence.Payload) {
	c.t.Helper()
	if p.Response == nil {
		return
	}
	var body any
	must.Do(c.t, json.Unmarshal(p.Response, &body))
	doc := must.Get(json.Marshal(c.changed(body), json.Deterministic(true)))(c.t)
	p.Response = doc
}

func (c *chance) changed(value any) any {
	switch value := value.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(value))
		if len(names) == 0 || c.once(20) {
			value["more"] = "x"
			return value
		}
		name := of(c, names...)
		if c.once(15) {
			delete(value, name)
			return value
		}
		value[name] = c.changed(value[name])
		return value
	case []any:
		if len(value) > 0 && !c.once(4) {
			i := c.IntN(len(value))
			value[i] = c.changed(value[i])
			return value
		}
		if len(value) == 0 {
			return []any{"x"}
		}
		return of[any](c, value[1:], append(slices.Clone(value), value[0]))
	case float64:
		return of[any](c, value+1, value-1, value/2, -value, 0.0, 1e19, 50.0, "7")
	case bool:
		return of[any](c, !value, !value, nil)
	case string:
		return of[any](c, "", "x", value+" ", strings.ToUpper(value), "safe_pass", "unsafe_fail", "needs_review", "juror-gpt", "unanimous", "majority", "split", nil, 3.0)
	}
	return of[any](c, "x", 1.0, true, map[string]any{}, []any{})
}
