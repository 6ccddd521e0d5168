package verify_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/must"
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
				return o.Adopt(must.Get(assurance.ParsePolicy([]byte(`{"format":"jurat/policy/v1","level":"signed"}`)))(t))
			},
		} {
			asked := o
			must.Do(t, adopt(&asked))
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

// TestSecondVerifierOnDemands: the second verifier reads the same as a policy file, and several demands on one part as all of them.
func TestSecondVerifierOnDemands(t *testing.T) {
	t.Parallel()
	r, o := standaloneIn(t, jurattest.NewForStrangers(t), output("a"))
	o.At = stamped.Add(time.Hour)
	folder := t.TempDir()
	var demanded []demandedFile
	plain := demandOf(t, "plain", r, o, "signed").arguments
	given := func(name string, need assurance.Need, err error, arguments ...string) {
		asked := o
		asked.Need = need
		f := demandedFile{name: name, arguments: slices.Concat(arguments, slices.Delete(slices.Clone(plain), 2, 4))}
		if err == nil {
			f.report = verify.Record(r, asked)
		}
		demanded = append(demanded, f)
	}
	values := []string{`""`, "null", "5", "{}", "true", `"signed"`, `"operator"`, `"qualified"`, `["vantage","vantage"]`, `["truth"]`, `["time"]`}
	for _, member := range []string{"level", "keys", "time", "log", "name", "strict", "require", "demands"} {
		for i, value := range values {
			if member == "strict" && value == "true" {
				continue // which the second verifier does not know
			}
			doc := fmt.Sprintf(`{"format":"jurat/policy/v1","%s":%s,"%s":"operator"}`, member, value, map[bool]string{false: "level", true: "keys"}[member == "level"])
			p, err := assurance.ParsePolicy([]byte(doc))
			if err == nil && len(p.Require) > 0 {
				continue
			}
			file := fmt.Sprintf("%s-%d.json", member, i)
			write(t, folder, file, []byte(doc))
			need := assurance.Need{}
			if err == nil {
				need = p.Need
			}
			given(doc, need, err, "--policy", filepath.Join(folder, file))
		}
	}
	words := []string{"signed", "operator", "time=operator", "time=qualified", "log=alone", "log=compared", "log=witnessed", "level=signed"}
	for _, one := range words {
		for _, other := range words {
			first, err1 := assurance.ParseNeed(one)
			second, err2 := assurance.ParseNeed(other)
			need, err3 := first.With(second)
			given(one+" and "+other, need, errors.Join(err1, err2, err3), "--require", one, "--require", other)
		}
	}
	for i, out := range several(t, demanded) {
		want := demanded[i].report
		var found verify.Report
		if want == nil {
			if out != "" {
				t.Errorf("%s: the second verifier answers %s", demanded[i].name, out)
			}
		} else if err := json.Unmarshal([]byte(out), &found); err != nil || found.Outcome != want.Outcome || !slices.Equal(found.Basis.Unmet, want.Basis.Unmet) {
			t.Errorf("%s: %s %+v, want %s %+v: %v", demanded[i].name, found.Outcome, found.Basis, want.Outcome, want.Basis.Unmet, err)
		}
	}
}

// TestSecondVerifierOnFilesUnderDemands: what a reader requires of each file is not proved by what several files prove together.
func TestSecondVerifierOnFilesUnderDemands(t *testing.T) {
	t.Parallel()
	h := jurattest.NewForStrangers(t)
	first := h.Seal(t, output("a"))
	next := output("a")
	next.RequestID, next.PreviousRecord = "r2", first.Digest
	second := h.Seal(t, next)
	folder := t.TempDir()
	files := []*evidence.Bundle{h.Bundle(t, first), h.Bundle(t, second)}
	var names []string
	for i, b := range files {
		names = append(names, filepath.Join(folder, fmt.Sprint(i)))
		write(t, folder, fmt.Sprint(i), must.Get(b.Marshal())(t))
	}
	write(t, folder, "trust", must.Get(h.Options(t).Trust.Marshal())(t))
	var lists [][]string
	var want []int
	for _, demand := range []string{"", "configuration", "vantage", "qualified", "non_repudiation", "chain", "given_on", "completeness", "signed", "operator", "keys=owner"} {
		o := h.Options(t)
		arguments := append([]string{"--trust", filepath.Join(folder, "trust")}, names...)
		if demand != "" {
			arguments = append(arguments, "--require", demand)
			if assurance.IsNeed(demand) {
				o.Need = must.Get(assurance.ParseNeed(demand))(t)
			} else {
				o.Require = []verify.Guarantee{verify.Guarantee(demand)}
			}
		}
		alone, joint := together(t, o, files...)
		exit := 0
		for _, r := range append(alone, joint...) {
			if r.Outcome != verify.Proved && !(r.Kind != verify.SeveralFiles && r.OpenAlone(o.Require...) && joint[0].Outcome == verify.Proved) {
				exit = 3
			}
		}
		lists, want = append(lists, arguments), append(want, exit)
	}
	run := exec.Command(python(t), filepath.Join("..", "testdata", "second-verifier", "verify.py"), "-")
	run.Stdin = bytes.NewReader(must.Get(json.Marshal(lists))(t))
	lines := bytes.Split(bytes.TrimSpace(must.Get(run.Output())(t)), []byte("\n"))
	for i, line := range lines {
		var got struct{ Exit int }
		if err := json.Unmarshal(line, &got); err != nil || got.Exit != want[i] {
			t.Errorf("%v: exit %d, want %d: %v", lists[i], got.Exit, want[i], err)
		}
	}
	if len(lines) != len(lists) || !slices.Contains(want, 0) || !slices.Contains(want, 3) {
		t.Errorf("%d answers; %v", len(lines), want)
	}
}
