package verify_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
)

func TestConfigurationOfARecord(t *testing.T) {
	step := func(change func(p *evidence.Payload)) evidence.Payload {
		p := output("a")
		p.ActionType, p.ChainPosition = evidence.ChainStep, 1
		change(&p)
		return p
	}
	tests := []struct {
		name   string
		act    evidence.Payload
		change func(r *evidence.Record, o *verify.Options)
		status verify.Status
		rule   string
	}{
		{"a model's output", output("a"), nil, verify.Proved, ""},
		{"a step that says all", step(func(*evidence.Payload) {}), nil, verify.Proved, ""},
		{"a step without its model", step(func(p *evidence.Payload) { p.Model = "" }), nil, verify.NotProved, "unstated"},
		{"a step without its model's version", step(func(p *evidence.Payload) { p.ModelVersion = "" }), nil, verify.NotProved, "unstated"},
		{"a step without parameters", step(func(p *evidence.Payload) { p.Parameters = nil }), nil, verify.NotProved, "unstated"},
		{"nobody knows whose", output("a"), func(r *evidence.Record, o *verify.Options) { o.Trust.Keys = nil }, verify.NotProved, "rests"},
		{"another's key", output("a"), func(r *evidence.Record, o *verify.Options) { o.Trust.Keys[0].Name = "b" }, verify.NotProved, "rests"},
		{"a signature that was changed", output("a"), func(r *evidence.Record, o *verify.Options) { r.Signatures[0][9] ^= 1 }, verify.NotProved, "rests"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, o := standalone(t, tt.act)
			if tt.change != nil {
				tt.change(r, &o)
			}
			report := verify.Record(r, o)
			got := report.Of(verify.Configuration)
			if got.Status != tt.status || got.Rule != tt.rule {
				t.Errorf("%+v; want %s by %q", got, tt.status, tt.rule)
			}
			if tt.status == verify.Proved && !strings.Contains(got.Reason, "the actor's word") {
				t.Errorf("the reason does not say who states the configuration: %s", got.Reason)
			}
			if tt.rule == "unstated" && report.Outcome != verify.Proved {
				t.Errorf("outcome %s: it is not required", report.Outcome)
			}
		})
	}
}

// TestConfigurationIsNotAsked: the guarantee does not apply to records that no model makes.
func TestConfigurationIsNotAsked(t *testing.T) {
	h := jurattest.New(t)
	r := h.Seal(t, reviewOf(h.Seal(t, output("a")), evidence.Approved, ""))
	if got := verify.Record(r, h.Options(t)).Of(verify.Configuration); got.Reason != "not asked" {
		t.Errorf("%+v", got)
	}
}

// TestConfigurationOfATrial compares what jurors and judge say about themselves with their seats.
func TestConfigurationOfATrial(t *testing.T) {
	model := func(f *forger, action evidence.ActionType, name string) {
		p, _ := f.find(action)
		p.Model = name
	}
	other := func(f *forger, name string) {
		model(f, evidence.Evaluation, name)
		f.edit(evidence.FinalJudgment, func(b map[string]any) { b["degraded"] = true })
	}
	tests := []struct {
		name   string
		change func(f *forger)
		status verify.Status
		rule   string
		actor  string
	}{
		{"honest", func(f *forger) {}, verify.Proved, "", ""},
		{"a version of the model", func(f *forger) { model(f, evidence.Evaluation, "scripted-2026-01-01") }, verify.Proved, "", ""},
		{"a revision of the model", func(f *forger) { model(f, evidence.Evaluation, "scripted@17") }, verify.Proved, "", ""},
		{"a tag of the model", func(f *forger) { model(f, evidence.Statement, "scripted:latest") }, verify.Proved, "", ""},
		{"another model", func(f *forger) { other(f, "rules") }, verify.NotProved, "model", "juror-"},
		{"another model that begins so", func(f *forger) { other(f, "scripted2") }, verify.NotProved, "model", "juror-"},
		{"a model that nobody reported", func(f *forger) { model(f, evidence.Statement, jury.Unreported) }, verify.NotProved, "model", "juror-"},
		{"another judge's parameters", func(f *forger) {
			p, _ := f.find(evidence.JudgeOpinion)
			p.Parameters = jsontext.Value(`{"temperature":2}`)
		}, verify.Refuted, "parameters", "judge"},
		{"other parameters in a statement", func(f *forger) {
			p, _ := f.find(evidence.Statement)
			p.Parameters = jsontext.Value(`{"temperature":2}`)
		}, verify.Refuted, "parameters", "juror-"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newForger(t, jury.FinalJudge)
			tt.change(f)
			b := f.seal()
			report := verify.Bundle(b, f.house.Options(t))
			got := report.Of(verify.Configuration)
			if got.Status != tt.status || got.Rule != tt.rule || !strings.Contains(got.Reason, tt.actor) {
				t.Errorf("%+v; want %s by %q of %q", got, tt.status, tt.rule, tt.actor)
			}
			if (report.Outcome == verify.Refuted) != (tt.status == verify.Refuted) {
				t.Errorf("outcome %s", report.Outcome)
			}
		})
	}
}

// TestConfigurationWithoutTheSeat: an act alone, or without its opening, does not show what its seat was given.
func TestConfigurationWithoutTheSeat(t *testing.T) {
	f := newForger(t, jury.FinalJudge)
	b := f.seal()
	o := f.house.Options(t)
	for _, r := range b.Records {
		role := r.Payload.Role()
		if role != evidence.RoleJuror && role != evidence.RoleJudge {
			continue
		}
		if got := verify.Record(r, o).Of(verify.Configuration); got.Status != verify.NotProved || got.Rule != "seat" {
			t.Errorf("%s alone: %+v", r.Payload.ActionType, got)
		}
	}
	// An actor without a seat in the opening that it answers.
	f = newForger(t, jury.FinalJudge)
	p, i := f.find(evidence.Evaluation)
	p.AgentID = "juror-x"
	b = f.seal()
	if got := verify.Bundle(b, f.house.Options(t)).For(verify.Configuration, b.Records[i].Payload.RecordID); got.Rule != "seat" {
		t.Errorf("without a seat: %+v", got)
	}
}

// TestConfigurationOfHonestTrials: jurors leave out the parameters of their seats; and a stand-in has no model.
func TestConfigurationOfHonestTrials(t *testing.T) {
	h := jurattest.New(t)
	settings := jurattest.Settings(jury.FinalJudge)
	jurors, judge := jurattest.Panel()
	for i := range settings.Seats {
		settings.Seats[i].Parameters = jsontext.Value(`{"temperature": 0.20}`)
	}
	jurors[2].(*jurattest.Juror).Err = jury.ErrBlocked
	done := must.Get(trial.Run(t.Context(), trial.Config{Ledger: h.Ledger, Keys: h.Keys, Settings: settings, Jurors: jurors,
		Judge: judge, Now: h.Now, Random: h.Random}, jurattest.Case(t)))(t)
	if !done.Result.Degraded {
		t.Fatal("no juror was blocked")
	}
	report := verify.Bundle(h.Bundle(t, done.Records...), h.Options(t))
	if got := report.Of(verify.Configuration); report.Outcome != verify.Proved || got.Status != verify.Proved {
		t.Errorf("%s, %+v", report.Outcome, got)
	}
}
