package verify_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/assurance"
	"jurat/verify/trust"
)

// sure returns a record and a reader by whom it rests on nobody's word but those of owners, witnesses and a qualified service.
func sure(t *testing.T) (*evidence.Record, verify.Options) {
	t.Helper()
	honest := qualifiedCase{change: func(*qualification) {}}
	q := honest.build(t)
	w := threeWitnesses(t)
	q.record.Log.Checkpoint = cosign(q.record.Log.Checkpoint, w[:2]...)
	o := demand(*q.o, 2, w...)
	owned(o.Trust)
	return q.record, o
}

// owned says of every key that its owner keeps it.
func owned(trusted *trust.Trust) {
	trusted.Keys = slices.Clone(trusted.Keys)
	for i := range trusted.Keys {
		trusted.Keys[i].Custody = trust.ByOwner
	}
}

// A weakness takes away what stands behind a part of the basis.
type weakness struct {
	name   string
	change func(t *testing.T, r *evidence.Record, o *verify.Options)
	level  assurance.Level
	keys   assurance.Keys
	time   assurance.Clock
	log    assurance.Log
}

var weaknesses = []weakness{
	{"nothing", func(*testing.T, *evidence.Record, *verify.Options) {}, assurance.IndependentQualified, assurance.ByOwner, assurance.QualifiedClock, assurance.Witness},
	{"the service is in no list", func(_ *testing.T, _ *evidence.Record, o *verify.Options) {
		o.Trust.Authorities[0].Services, o.Trust.Lists = nil, nil
	}, assurance.Independent, assurance.ByOwner, assurance.IndependentClock, assurance.Witness},
	{"the reader's checkpoint instead of witnesses", func(_ *testing.T, r *evidence.Record, o *verify.Options) {
		o.Trust.Witnesses, o.Trust.Quorum, o.Checkpoint = nil, 0, r.Log.Checkpoint
	}, assurance.IndependentQualified, assurance.ByOwner, assurance.QualifiedClock, assurance.Compared},
	{"the reader's checkpoint, too", func(_ *testing.T, r *evidence.Record, o *verify.Options) { o.Checkpoint = r.Log.Checkpoint },
		assurance.IndependentQualified, assurance.ByOwner, assurance.QualifiedClock, assurance.Both},
	{"nobody else saw the log", func(_ *testing.T, _ *evidence.Record, o *verify.Options) { o.Trust.Witnesses, o.Trust.Quorum = nil, 0 },
		assurance.Operator, assurance.ByOwner, assurance.QualifiedClock, assurance.Alone},
	{"the clock is the operator's, though qualified", func(_ *testing.T, _ *evidence.Record, o *verify.Options) {
		o.Trust.Authorities[0].Clock = trust.OperatorClock
	},
		assurance.Operator, assurance.ByOwner, assurance.OperatorClock, assurance.Witness},
	{"the operator keeps the key", func(_ *testing.T, _ *evidence.Record, o *verify.Options) { o.Trust.Keys[0].Custody = trust.ByOperator },
		assurance.Operator, assurance.ByOperator, assurance.QualifiedClock, assurance.Witness},
	{"no time stamp", func(_ *testing.T, r *evidence.Record, _ *verify.Options) { r.Timestamps = nil }, assurance.Signed, assurance.ByOwner, "", assurance.Witness},
	{"no place in a log", func(_ *testing.T, r *evidence.Record, _ *verify.Options) { r.Log = nil }, assurance.Signed, assurance.ByOwner, assurance.QualifiedClock, ""},
	{"witnesses are missing", func(_ *testing.T, r *evidence.Record, o *verify.Options) { o.Trust.Quorum = 3 }, assurance.Signed, assurance.ByOwner, assurance.QualifiedClock, ""},
	{"an unknown key", func(_ *testing.T, _ *evidence.Record, o *verify.Options) { o.Trust.Keys = nil }, "", "", "", assurance.Witness},
	{"no trust file", func(_ *testing.T, _ *evidence.Record, o *verify.Options) { o.Trust = nil }, "", "", "", ""},
}

// TestWhatAProofRestsOn: the basis follows from the reader's trust file, part by part, and every level is met and not met.
func TestWhatAProofRestsOn(t *testing.T) {
	met := map[assurance.Level][2]int{}
	for _, tt := range weaknesses {
		r, o := sure(t)
		tt.change(t, r, &o)
		b := verify.Record(r, o).Basis
		if b.Level != tt.level || b.Keys != tt.keys || b.Time != tt.time || b.Log != tt.log {
			t.Errorf("%s: %+v", tt.name, b)
		}
		for i, level := range assurance.Levels() {
			o.Need = assurance.Need{Level: level}
			report := verify.Record(r, o)
			want := i <= slices.Index(assurance.Levels(), tt.level)
			if got := report.Outcome == verify.Proved; got != want || report.Demanded.Level != level {
				t.Errorf("%s, for the level %s: %s, %+v", tt.name, level, report.Outcome, report.Basis)
			}
			counts := met[level]
			counts[map[bool]int{true: 1}[want]]++
			met[level] = counts
		}
	}
	for _, level := range assurance.Levels() {
		if met[level][0] == 0 || met[level][1] == 0 {
			t.Errorf("the level %s was met %d times, and not met %d times", level, met[level][1], met[level][0])
		}
	}
}

// TestPartsThatAReaderDemands: each part of the basis, met and not met, and named where it falls short.
func TestPartsThatAReaderDemands(t *testing.T) {
	for _, tt := range []struct {
		need     string
		weakness string
		met      bool
	}{
		{"keys=owner", "nothing", true}, {"keys=ca", "nothing", true}, {"keys=owner", "the operator keeps the key", false}, {"keys=operator", "the operator keeps the key", true},
		{"time=qualified", "nothing", true}, {"time=qualified", "the service is in no list", false},
		{"time=independent", "the service is in no list", true}, {"time=independent", "the clock is the operator's, though qualified", false},
		{"time=operator", "the clock is the operator's, though qualified", true},
		{"log=witnessed", "nothing", true}, {"log=compared", "nothing", false}, {"log=witnessed", "the reader's checkpoint instead of witnesses", false},
		{"log=compared", "the reader's checkpoint instead of witnesses", true}, {"log=witnessed_and_compared", "nothing", false},
		{"log=witnessed_and_compared", "the reader's checkpoint, too", true}, {"log=compared", "the reader's checkpoint, too", true},
		{"log=alone", "nobody else saw the log", true}, {"log=witnessed", "nobody else saw the log", false},
	} {
		r, o := sure(t)
		i := slices.IndexFunc(weaknesses, func(w weakness) bool { return w.name == tt.weakness })
		weaknesses[i].change(t, r, &o)
		need := must.Get(assurance.ParseNeed(tt.need))(t)
		o.Need = need
		report := verify.Record(r, o)
		part, _, _ := strings.Cut(tt.need, "=")
		if met := report.Outcome == verify.Proved; met != tt.met || !met && !slices.Equal(report.Basis.Unmet, []assurance.Part{assurance.Part(part)}) {
			t.Errorf("%s, %s: %s, %+v", tt.need, tt.weakness, report.Outcome, report.Basis)
		}
	}
}

// TestWordsThatAreNone: a need in words that do not exist is met by nothing.
func TestWordsThatAreNone(t *testing.T) {
	r, o := sure(t)
	for _, need := range []assurance.Need{{Level: "best"}, {Keys: "mine"}, {Time: "noon"}, {Log: "seen"}} {
		o.Need = need
		if report := verify.Record(r, o); report.Outcome != verify.NotProved || len(report.Basis.Unmet) != 3 {
			t.Errorf("%+v: %s, %+v", need, report.Outcome, report.Basis)
		}
	}
}

// TestEntriesAloneShowNobodyElse: entries alone are compared with the file's own checkpoint, which is no knowledge of the reader's.
func TestEntriesAloneShowNobodyElse(t *testing.T) {
	k := newKeeper(t)
	k.speak("a")
	b, o := k.bundle(), k.Options(t)
	o.Entries = strings.NewReader(string(k.entries(2)))
	report := verify.Bundle(b, o)
	if report.Of(verify.Completeness).Status != verify.Proved || report.Basis.Log != assurance.Alone {
		t.Errorf("%+v, %+v", report.Of(verify.Completeness), report.Basis)
	}
}

// TestATrialRestsOnItsOperator: the operator keeps the jury's keys, and the basis says whose they are, role by role.
func TestATrialRestsOnItsOperator(t *testing.T) {
	h := jurattest.New(t)
	b := h.Bundle(t, h.Try(t, jury.MajorityVote).Records...)
	o := h.Options(t)
	owned(o.Trust)
	for i := range o.Trust.Keys {
		if o.Trust.Keys[i].Role != evidence.RoleSubmitter {
			o.Trust.Keys[i].Custody = trust.ByOperator
		}
	}
	report := verify.Bundle(b, o)
	if report.Basis.Level != assurance.Operator || report.Basis.Keys != assurance.ByOperator {
		t.Errorf("%+v", report.Basis)
	}
	if p := report.Basis.Parties; len(p) < 3 || p[0] != (assurance.Party{Role: evidence.RoleSubmitter, Custody: trust.ByOwner, By: trust.ByKey}) || p[1].Custody != trust.ByOperator {
		t.Errorf("%+v", p)
	}
}

// TestRefutedIsOnNobodysWord: what is refuted reaches no level above the signatures, and no need makes it better.
func TestRefutedIsOnNobodysWord(t *testing.T) {
	r, o := sure(t)
	r.Log.Index++
	o.Need.Level = assurance.Signed
	if report := verify.Record(r, o); report.Outcome != verify.Refuted || report.Basis.Level != assurance.Signed {
		t.Errorf("%s, %+v", report.Outcome, report.Basis)
	}
}

// TestSecondVerifierOnLevels: the second verifier finds the same basis and the same outcome for every weakness. Every level and every
// demand on a part is met by one and not by another, and every guarantee is demanded.
func TestSecondVerifierOnLevels(t *testing.T) {
	t.Parallel()
	var demanded []demandedFile
	for i, tt := range weaknesses {
		r, o := sure(t)
		tt.change(t, r, &o)
		for _, demand := range demandsOn(i) {
			demanded = append(demanded, demandOf(t, tt.name, r, o, demand))
		}
	}
	for i, out := range several(t, demanded) {
		d := demanded[i]
		var found struct {
			Outcome verify.Status
			Basis   *assurance.Basis
		}
		if err := json.Unmarshal([]byte(out), &found); err != nil {
			t.Fatalf("%s: %v: %s", d.name, err, out)
		}
		if diff := cmp.Diff(d.report.Basis, found.Basis); diff != "" || found.Outcome != d.report.Outcome {
			t.Errorf("%s: %s, want %s:\n%s", d.name, found.Outcome, d.report.Outcome, diff)
		}
	}
}

// demandsOn shares the demands out among the weaknesses: on the first, which is none, all that it meets, and on each other what it does not.
func demandsOn(i int) []string {
	switch i {
	case 0:
		return []string{"independent-qualified", "keys=owner", "time=qualified", "log=witnessed", "human_review", "completeness"}
	case 1:
		return []string{"independent-qualified", "independent", "time=qualified", "qualified"}
	case 4:
		return []string{"independent", "operator", "log=witnessed"}
	case 6:
		return []string{"operator", "keys=ca", "non_repudiation"}
	case 7:
		return []string{"operator", "signed", "time=operator", "time"}
	case 10:
		return []string{"signed"}
	}
	return []string{"independent"}
}

// A demandedFile is a record on which something is demanded: the arguments of the second verifier, and the report of package verify.
type demandedFile struct {
	name      string
	arguments []string
	report    *verify.Report
}

func demandOf(t *testing.T, name string, r *evidence.Record, o verify.Options, demand string) demandedFile {
	t.Helper()
	folder, file := t.TempDir(), must.Get(r.Marshal())(t)
	write(t, folder, "record.json", file)
	arguments := []string{"--at", o.At.Format(time.RFC3339), "--require", demand}
	if o.Trust != nil {
		write(t, folder, "trust.json", must.Get(o.Trust.Marshal())(t))
		arguments = append(arguments, "--trust", filepath.Join(folder, "trust.json"))
	}
	if o.Checkpoint != "" {
		write(t, folder, "known", []byte(o.Checkpoint))
		arguments = append(arguments, "--checkpoint", filepath.Join(folder, "known"))
	}
	if !o.Before.IsZero() {
		arguments = append(arguments, "--before", o.Before.Format(time.RFC3339))
	}
	if assurance.IsNeed(demand) {
		o.Need = must.Get(assurance.ParseNeed(demand))(t)
	} else {
		o.Require = []verify.Guarantee{verify.Guarantee(demand)}
	}
	return demandedFile{name + ", " + demand, append(arguments, filepath.Join(folder, "record.json")), must.Get(verify.File(file, o))(t)}
}

// several runs the second verifier on each file, and returns what it prints.
func several(t *testing.T, files []demandedFile) []string {
	t.Helper()
	var lists [][]string
	for _, f := range files {
		lists = append(lists, f.arguments)
	}
	run := exec.Command(python(t), filepath.Join("..", "testdata", "second-verifier", "verify.py"), "-")
	run.Stdin = bytes.NewReader(must.Get(json.Marshal(lists))(t))
	var said bytes.Buffer
	run.Stderr = &said
	out, err := run.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &said)
	}
	var printed []string
	for line := range bytes.Lines(out) {
		var answer struct{ Out string }
		if err := json.Unmarshal(line, &answer); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		printed = append(printed, answer.Out)
	}
	if len(printed) != len(files) {
		t.Fatalf("%d answers to %d files: %s", len(printed), len(files), &said)
	}
	return printed
}
