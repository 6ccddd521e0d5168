package verify_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/assurance"
)

// An askedCase asks something of files that all reach the level signed.
type askedCase struct {
	name   string
	ask    func(t *testing.T, r *evidence.Record, o *verify.Options)
	of     verify.Guarantee
	proved bool
}

var askedCases = []askedCase{
	{"before a moment that is too early", func(_ *testing.T, _ *evidence.Record, o *verify.Options) { o.Before = stamped }, verify.Before, false},
	{"before a later moment", func(_ *testing.T, _ *evidence.Record, o *verify.Options) { o.Before = stamped.Add(time.Hour) }, verify.Before, true},
	{"before a moment, of what nobody stamped", func(_ *testing.T, r *evidence.Record, o *verify.Options) {
		o.Before, r.Timestamps = stamped.Add(time.Hour), nil
	}, verify.Before, false},
	{"its log is the reader's", func(_ *testing.T, r *evidence.Record, o *verify.Options) { o.Checkpoint = r.Log.Checkpoint }, verify.Order, true},
	{"its log is another than the reader's", func(t *testing.T, _ *evidence.Record, o *verify.Options) {
		k := newKeeper(t)
		k.speak("a")
		k.speak("a")
		o.Checkpoint = k.bundle().Checkpoint
	}, verify.Order, false},
	{"its log is the reader's, and it has no place in one", func(_ *testing.T, r *evidence.Record, o *verify.Options) {
		o.Checkpoint, r.Log = r.Log.Checkpoint, nil
	}, verify.Order, false},
	{"qualified", func(_ *testing.T, _ *evidence.Record, o *verify.Options) {
		o.Require = []verify.Guarantee{verify.Qualified}
	}, verify.Qualified, false},
	{"a guarantee that it cannot have", func(_ *testing.T, _ *evidence.Record, o *verify.Options) {
		o.Require = []verify.Guarantee{verify.Chain}
	}, verify.Chain, false},
}

// TestALevelLowersNothingThatIsAsked: under the lowest level everything counts that the reader asks expressly, by options or by a policy file.
func TestALevelLowersNothingThatIsAsked(t *testing.T) {
	for _, tt := range askedCases {
		r, o := standalone(t, output("a"))
		tt.ask(t, r, &o)
		for name, adopt := range map[string]func(*verify.Options) error{
			"level": func(o *verify.Options) error { o.Need.Level = assurance.Signed; return nil },
			"policy": func(o *verify.Options) error {
				return o.Adopt(must[*assurance.Policy](t)(assurance.ParsePolicy([]byte(`{"format":"jurat/policy/v1","level":"signed"}`))))
			},
		} {
			asked := o
			if err := adopt(&asked); err != nil {
				t.Fatal(err)
			}
			report := verify.Record(r, asked)
			if proved := report.Outcome == verify.Proved; proved != tt.proved || proved != (report.Of(tt.of).Status == verify.Proved) {
				t.Errorf("%s, by %s: %s, %+v", tt.name, name, report.Outcome, report.Of(tt.of))
			}
			if slices.Contains(report.Uncounted, tt.of) {
				t.Errorf("%s, by %s: the report says that %s does not count", tt.name, name, tt.of)
			}
		}
	}
}

// TestWhatIsAskedCountsOfEveryKind: of bundles, trials and checkpoints, too. What a kind of file cannot answer is not proved.
func TestWhatIsAskedCountsOfEveryKind(t *testing.T) {
	h := jurattest.New(t)
	single := h.Seal(t, output("a"))
	trial := h.Bundle(t, h.Try(t, jury.MajorityVote).Records...)
	for name, verified := range map[string]func(verify.Options) *verify.Report{
		"trial":      func(o verify.Options) *verify.Report { return verify.Bundle(trial, o) },
		"bundle":     func(o verify.Options) *verify.Report { return verify.Bundle(h.Bundle(t, single), o) },
		"checkpoint": func(o verify.Options) *verify.Report { return verify.Checkpoint(trial.Checkpoint, o) },
	} {
		o := h.Options(t)
		o.Need.Level = assurance.Signed
		if r := verified(o); r.Outcome != verify.Proved {
			t.Errorf("%s, of which nothing more is asked: %+v", name, r.Guarantees)
		}
		before := o
		if before.Before = stamped; verified(before).Outcome != verify.NotProved {
			t.Errorf("%s: it is not shown to be older than its stamp", name)
		}
		log := o
		log.Entries = strings.NewReader("") // none
		if r := verified(log); r.Outcome == verify.Proved {
			t.Errorf("%s: the entries are not those of its log: %+v", name, r.Guarantees)
		}
	}
}

// TestSecondVerifierOnWhatIsAsked: the second verifier counts the same.
func TestSecondVerifierOnWhatIsAsked(t *testing.T) {
	t.Parallel()
	var demanded []demandedFile
	for _, tt := range askedCases {
		r, o := standaloneIn(t, jurattest.NewForStrangers(t), output("a"))
		o.At = stamped.Add(time.Hour)
		if tt.ask(t, r, &o); len(o.Require) == 0 {
			demanded = append(demanded, demandOf(t, tt.name, r, o, "signed"))
		}
	}
	for i, out := range several(t, demanded) {
		var found verify.Report
		if err := json.Unmarshal([]byte(out), &found); err != nil || found.Outcome != demanded[i].report.Outcome {
			t.Errorf("%s: %s, want %s: %v", demanded[i].name, found.Outcome, demanded[i].report.Outcome, err)
		}
	}
}
