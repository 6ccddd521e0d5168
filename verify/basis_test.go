package verify_test

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
	"jurat/timestamp"
	"jurat/verify"
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
	level  verify.Level
	keys   verify.Keys
	time   verify.Clock
	log    verify.Log
}

var weaknesses = []weakness{
	{"nothing", func(*testing.T, *evidence.Record, *verify.Options) {}, verify.LevelQualified, verify.KeysByOwner, verify.QualifiedClock, verify.LogWitnessed},
	{"the service is in no list", func(_ *testing.T, _ *evidence.Record, o *verify.Options) {
		o.Trust.Authorities[0].Services, o.Trust.Lists = nil, nil
	}, verify.LevelIndependent, verify.KeysByOwner, verify.IndependentClock, verify.LogWitnessed},
	{"the reader's checkpoint instead of witnesses", func(_ *testing.T, r *evidence.Record, o *verify.Options) {
		o.Trust.Witnesses, o.Trust.Quorum, o.Checkpoint = nil, 0, r.Log.Checkpoint
	}, verify.LevelQualified, verify.KeysByOwner, verify.QualifiedClock, verify.LogCompared},
	{"the reader's checkpoint, too", func(_ *testing.T, r *evidence.Record, o *verify.Options) { o.Checkpoint = r.Log.Checkpoint },
		verify.LevelQualified, verify.KeysByOwner, verify.QualifiedClock, verify.LogBoth},
	{"nobody else saw the log", func(_ *testing.T, _ *evidence.Record, o *verify.Options) { o.Trust.Witnesses, o.Trust.Quorum = nil, 0 },
		verify.LevelOperator, verify.KeysByOwner, verify.QualifiedClock, verify.LogAlone},
	{"the clock is the operator's, though qualified", func(_ *testing.T, _ *evidence.Record, o *verify.Options) {
		o.Trust.Authorities[0].Clock = trust.OperatorClock
	},
		verify.LevelOperator, verify.KeysByOwner, verify.OperatorClock, verify.LogWitnessed},
	{"the operator keeps the key", func(_ *testing.T, _ *evidence.Record, o *verify.Options) { o.Trust.Keys[0].Custody = trust.ByOperator },
		verify.LevelOperator, verify.KeysByOperator, verify.QualifiedClock, verify.LogWitnessed},
	{"no time stamp", func(_ *testing.T, r *evidence.Record, _ *verify.Options) { r.Timestamps = nil }, verify.LevelSigned, verify.KeysByOwner, "", verify.LogWitnessed},
	{"no place in a log", func(_ *testing.T, r *evidence.Record, _ *verify.Options) { r.Log = nil }, verify.LevelSigned, verify.KeysByOwner, verify.QualifiedClock, ""},
	{"witnesses are missing", func(_ *testing.T, r *evidence.Record, o *verify.Options) { o.Trust.Quorum = 3 }, verify.LevelSigned, verify.KeysByOwner, verify.QualifiedClock, ""},
	{"an unknown key", func(_ *testing.T, _ *evidence.Record, o *verify.Options) { o.Trust.Keys = nil }, "", "", "", verify.LogWitnessed},
	{"no trust file", func(_ *testing.T, _ *evidence.Record, o *verify.Options) { o.Trust = nil }, "", "", "", ""},
}

// TestWhatAProofRestsOn: the basis follows from the reader's trust file, part by part, and every level is met and not met.
func TestWhatAProofRestsOn(t *testing.T) {
	met := map[verify.Level][2]int{}
	for _, tt := range weaknesses {
		r, o := sure(t)
		tt.change(t, r, &o)
		b := verify.Record(r, o).Basis
		must.Hold(t, b.Level == tt.level && b.Keys == tt.keys && b.Time == tt.time && b.Log == tt.log, "%s: %+v", tt.name, b)
		for i, level := range verify.Levels() {
			o.Need = verify.Need{Level: level}
			report := verify.Record(r, o)
			want := i <= slices.Index(verify.Levels(), tt.level)
			got := report.Outcome == verify.Proved
			must.Hold(t, got == want && report.Demanded.Level == level, "%s, for the level %s: %s, %+v", tt.name, level, report.Outcome, report.Basis)
			counts := met[level]
			counts[map[bool]int{true: 1}[want]]++
			met[level] = counts
		}
	}
	for _, level := range verify.Levels() {
		must.Hold(t, met[level][0] != 0 && met[level][1] != 0, "the level %s was met %d times, and not met %d times", level, met[level][1], met[level][0])
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
		need := must.Get(verify.ParseNeed(tt.need))(t)
		o.Need = need
		report := verify.Record(r, o)
		part, _, _ := strings.Cut(tt.need, "=")
		if met := report.Outcome == verify.Proved; met != tt.met || !met && !slices.Equal(report.Basis.Unmet, []verify.Part{verify.Part(part)}) {
			t.Errorf("%s, %s: %s, %+v", tt.need, tt.weakness, report.Outcome, report.Basis)
		}
	}
}

// TestWordsThatAreNone: a need in words that do not exist is met by nothing.
func TestWordsThatAreNone(t *testing.T) {
	r, o := sure(t)
	for _, need := range []verify.Need{{Level: "best"}, {Keys: "mine"}, {Time: "noon"}, {Log: "seen"}} {
		o.Need = need
		report := verify.Record(r, o)
		must.Hold(t, report.Outcome == verify.NotProved && len(report.Basis.Unmet) == 3, "%+v: %s, %+v", need, report.Outcome, report.Basis)
	}
}

// TestEntriesAloneShowNobodyElse: entries alone are compared with the file's own checkpoint, which is no knowledge of the reader's.
func TestEntriesAloneShowNobodyElse(t *testing.T) {
	k := newKeeper(t)
	k.speak("a")
	b, o := k.bundle(), k.Options(t)
	o.Entries = strings.NewReader(string(k.entries(2)))
	report := verify.Bundle(b, o)
	must.Hold(t, report.Of(verify.Completeness).Status == verify.Proved && report.Basis.Log == verify.LogAlone,
		"%+v, %+v", report.Of(verify.Completeness), report.Basis)
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
	must.Hold(t, report.Basis.Level == verify.LevelOperator && report.Basis.Keys == verify.KeysByOperator, "%+v", report.Basis)
	if p := report.Basis.Parties; len(p) < 3 || p[0] != (verify.Party{Role: evidence.RoleSubmitter, Custody: trust.ByOwner, By: trust.ByKey}) || p[1].Custody != trust.ByOperator {
		t.Errorf("%+v", p)
	}
}

// TestRefutedIsOnNobodysWord: what is refuted reaches no level above the signatures, and no need makes it better.
func TestRefutedIsOnNobodysWord(t *testing.T) {
	r, o := sure(t)
	r.Log.Index++
	o.Need.Level = verify.LevelSigned
	report := verify.Record(r, o)
	must.Hold(t, report.Outcome == verify.Refuted && report.Basis.Level == verify.LevelSigned, "%s, %+v", report.Outcome, report.Basis)
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
			Basis   *verify.Basis
		}
		err := json.Unmarshal([]byte(out), &found)
		must.Need(t, err == nil, "%s: %v: %s", d.name, err, out)
		diff := cmp.Diff(d.report.Basis, found.Basis)
		must.Hold(t, diff == "" && found.Outcome == d.report.Outcome, "%s: %s, want %s:\n%s", d.name, found.Outcome, d.report.Outcome, diff)
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
	if verify.IsNeed(demand) {
		o.Need = must.Get(verify.ParseNeed(demand))(t)
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
	must.Need(t, err == nil, "%v: %s", err, &said)
	var printed []string
	for line := range bytes.Lines(out) {
		var answer struct{ Out string }
		err := json.Unmarshal(line, &answer)
		must.Need(t, err == nil, "%v: %s", err, line)
		printed = append(printed, answer.Out)
	}
	must.Need(t, len(printed) == len(files), "%d answers to %d files: %s", len(printed), len(files), &said)
	return printed
}

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
			"level": func(o *verify.Options) error { o.Need.Level = verify.LevelSigned; return nil },
			"policy": func(o *verify.Options) error {
				return o.Adopt(must.Get(verify.ParsePolicy([]byte(`{"format":"jurat/policy/v1","level":"signed"}`)))(t))
			},
		} {
			asked := o
			must.Do(t, adopt(&asked))
			report := verify.Record(r, asked)
			if proved := report.Outcome == verify.Proved; proved != tt.proved || proved != (report.Of(tt.of).Status == verify.Proved) {
				t.Errorf("%s, by %s: %s, %+v", tt.name, name, report.Outcome, report.Of(tt.of))
			}
			must.Hold(t, !slices.Contains(report.Uncounted, tt.of), "%s, by %s: the report says that %s does not count", tt.name, name, tt.of)
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
		o.Need.Level = verify.LevelSigned
		r := verified(o)
		must.Hold(t, r.Outcome == verify.Proved, "%s, of which nothing more is asked: %+v", name, r.Guarantees)
		before := o
		before.Before = stamped
		must.Hold(t, verified(before).Outcome == verify.NotProved, "%s: it is not shown to be older than its stamp", name)
		log := o
		log.Entries = strings.NewReader("") // none
		r = verified(log)
		must.Hold(t, r.Outcome != verify.Proved, "%s: the entries are not those of its log: %+v", name, r.Guarantees)
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
	given := func(name string, need verify.Need, err error, arguments ...string) {
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
			p, err := verify.ParsePolicy([]byte(doc))
			if err == nil && len(p.Require) > 0 {
				continue
			}
			file := fmt.Sprintf("%s-%d.json", member, i)
			write(t, folder, file, []byte(doc))
			need := verify.Need{}
			if err == nil {
				need = p.Need
			}
			given(doc, need, err, "--policy", filepath.Join(folder, file))
		}
	}
	words := []string{"signed", "operator", "time=operator", "time=qualified", "log=alone", "log=compared", "log=witnessed", "level=signed"}
	for _, one := range words {
		for _, other := range words {
			first, err1 := verify.ParseNeed(one)
			second, err2 := verify.ParseNeed(other)
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
			if verify.IsNeed(demand) {
				o.Need = must.Get(verify.ParseNeed(demand))(t)
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
	must.Hold(t, len(lines) == len(lists) && slices.Contains(want, 0) && slices.Contains(want, 3), "%d answers; %v", len(lines), want)
}

// A twoClocks is a record that the operator's authority stamped at stamped, and an independent one an hour later.
type twoClocks struct {
	record *evidence.Record
	o      verify.Options
	public crypto.PublicKey
}

func newTwoClocks(t *testing.T) *twoClocks {
	t.Helper()
	h := jurattest.NewForStrangers(t)
	r, o := standaloneIn(t, h, output("a"))
	outside := jurattest.Authority(t, "outside", stamped.Add(time.Hour))
	r.Timestamps = append(r.Timestamps, evidence.Timestamp{Kind: evidence.RFC3161, Token: must.Get(outside.Issue(&timestamp.Request{Imprint: r.Imprint(), CertReq: true}))(t)})
	o.Trust = withAuthority(o.Trust, outside.Certificates()[1])
	owned(o.Trust)
	o.At, o.Checkpoint = stamped.Add(24*time.Hour), r.Log.Checkpoint
	return &twoClocks{r, o, must.Get(evidence.ParsePublicKey(o.Trust.Key(r.Payload.Signers[0].KeyID).PublicKey))(t)}
}

// certified lets a CA vouch for the key, and keeps both clocks.
func (c *twoClocks) certified(t *testing.T, change func(*world)) {
	clocks := c.o.Trust.Authorities
	w := newWorld()
	w.trusted.Revocation = trust.NotAsked
	change(w)
	c.o = w.build(t, c.record, c.o, c.public)
	c.o.CRLs = nil
	c.o.Trust = changedTrust(t, c.o.Trust, func(trusted *trust.Trust) { trusted.Authorities = clocks })
}

// A clockCase asks something whose answer depends on when the record existed.
type clockCase struct {
	name     string
	change   func(t *testing.T, c *twoClocks)
	of       verify.Guarantee
	plain    string // status and rule if the reader demands nothing
	demanded string // if the operator's clock is not enough
}

func clockCases() []clockCase {
	const ownWord, sure = "proved operator-clock", "proved "
	between, later := stamped.Add(30*time.Minute), stamped.Add(2*time.Hour)
	before := func(moment time.Time) func(*testing.T, *twoClocks) {
		return func(_ *testing.T, c *twoClocks) { c.o.Before = moment }
	}
	key := func(change func(*trust.Key)) func(*testing.T, *twoClocks) {
		return func(_ *testing.T, c *twoClocks) {
			c.o.Trust.Keys = slices.Clone(c.o.Trust.Keys)
			for i := range c.o.Trust.Keys {
				if c.o.Trust.Keys[i].KeyID == c.record.Payload.Signers[0].KeyID {
					change(&c.o.Trust.Keys[i])
				}
			}
		}
	}
	second := func(from time.Time) func(*testing.T, *twoClocks) {
		return func(t *testing.T, c *twoClocks) {
			c.o.Trust = changedTrust(t, c.o.Trust, func(trusted *trust.Trust) {
				i := slices.IndexFunc(trusted.Keys, func(k trust.Key) bool { return k.KeyID == c.record.Payload.Signers[0].KeyID })
				other := trusted.Keys[i]
				other.PublicKey = must.Get(x509.MarshalPKIXPublicKey(newKey(t).Public()))(t)
				other.KeyID = evidence.DigestOf(other.PublicKey)
				trusted.Keys[i].With, trusted.Keys[i].WithFrom = []evidence.KeyID{other.KeyID}, from
				trusted.Keys = append(trusted.Keys, other)
			})
		}
	}
	ca := func(change func(*world)) func(*testing.T, *twoClocks) {
		return func(t *testing.T, c *twoClocks) { c.certified(t, change) }
	}
	return []clockCase{
		{"before a moment between both", before(between), verify.Before, ownWord, "not proved time"},
		{"before the very moment of the independent one", before(stamped.Add(time.Hour)), verify.Before, ownWord, "not proved time"},
		{"before a moment after both", before(later), verify.Before, sure, sure},
		{"before a moment before both", before(stamped), verify.Before, "not proved time", "not proved time"},
		{"no independent stamp", func(_ *testing.T, c *twoClocks) { c.o.Before, c.record.Timestamps = later, c.record.Timestamps[:1] }, verify.Before, ownWord, "not proved time"},
		{"the independent stamp is over the checkpoint", func(t *testing.T, c *twoClocks) {
			outside := jurattest.Authority(t, "outside", stamped.Add(time.Hour))
			token := must.Get(outside.Issue(&timestamp.Request{Imprint: sha256.Sum256([]byte(c.record.Log.Checkpoint)), CertReq: true}))(t)
			c.o.Before, c.record.Timestamps = between, c.record.Timestamps[:1]
			c.record.Log.Anchors = []evidence.Anchor{{Checkpoint: c.record.Log.Checkpoint, Timestamps: [][][]byte{{token}}}}
		}, verify.Before, ownWord, "not proved time"},
		{"the key ended between both", key(func(k *trust.Key) { k.NotAfter = between }), verify.Authentication, ownWord, "not proved validity"},
		{"the key ended with the independent stamp", key(func(k *trust.Key) { k.NotAfter = stamped.Add(time.Hour) }), verify.Authentication, sure, sure},
		{"the key ended before both", key(func(k *trust.Key) { k.NotAfter = stamped.Add(-1) }), verify.Authentication, "not proved validity", "not proved validity"},
		{"the key began between both", key(func(k *trust.Key) { k.NotBefore = between }), verify.Authentication, "refuted validity", "refuted validity"},
		{"a second key signs since between both", second(between), verify.Authentication, ownWord, "not proved second-signature"},
		{"a second key signs since after both", second(later), verify.Authentication, sure, sure},
		{"the certificate ended between both", ca(func(w *world) { w.signer.NotAfter = between }), verify.Authentication, ownWord, "not proved certificate"},
		{"the CA ended between both", ca(func(w *world) { w.issuing.NotAfter = between }), verify.Authentication, ownWord, "not proved certificate"},
		{"the certificate began between both", ca(func(w *world) { w.signer.NotBefore = between }), verify.Authentication, "not proved certificate", "not proved certificate"},
		{"the certificate ended after both", ca(func(w *world) { w.signer.NotAfter = later }), verify.Authentication, sure, sure},
	}
}

// TestTheOperatorsClockAnswersNothingUnderADemand: what asks for a time takes the earliest of any clock, and says if it is the operator's alone;
// under a demand on the basis it takes the earliest independent one. The level "independent" is reached if and only if it would be met.
func TestTheOperatorsClockAnswersNothingUnderADemand(t *testing.T) {
	for _, tt := range clockCases() {
		t.Run(tt.name, func(t *testing.T) {
			c := newTwoClocks(t)
			tt.change(t, c)
			plain := verify.Record(c.record, c.o)
			f := plain.Of(tt.of)
			must.Hold(t, string(f.Status)+" "+f.Rule == tt.plain, "%+v, want %s", f, tt.plain)
			for _, need := range []verify.Need{{Level: verify.LevelIndependent}, {Level: verify.LevelQualified}, {Time: verify.IndependentClock}, {Time: verify.QualifiedClock}} {
				o := c.o
				o.Need = need
				report := verify.Record(c.record, o)
				f := report.Of(tt.of)
				must.Hold(t, string(f.Status)+" "+f.Rule == tt.demanded, "%+v: %+v, want %s", need, f, tt.demanded)
				if met := report.Outcome == verify.Proved; need.Level == verify.LevelIndependent && met != (plain.Basis.Level == verify.LevelIndependent) {
					t.Errorf("the level is %q, and the demand %s: %+v", plain.Basis.Level, report.Outcome, report.Basis)
				}
			}
			strict := c.o
			strict.Policy = verify.Strict
			f = verify.Record(c.record, strict).Of(tt.of)
			must.Hold(t, f.Status != verify.Proved || tt.plain == tt.demanded, "strict: %+v", f)
		})
	}
}

// TestSecondVerifierOnClocks: the second verifier gives the same answers, by the same rules.
func TestSecondVerifierOnClocks(t *testing.T) {
	t.Parallel()
	var demanded []demandedFile
	for _, tt := range clockCases() {
		for _, demand := range []string{"time=operator", "time=independent"} {
			c := newTwoClocks(t)
			tt.change(t, c)
			demanded = append(demanded, demandOf(t, tt.name, c.record, c.o, demand))
		}
	}
	for i, out := range several(t, demanded) {
		d := demanded[i]
		var found verify.Report
		err := json.Unmarshal([]byte(out), &found)
		must.Need(t, err == nil, "%s: %v: %s", d.name, err, out)
		for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.Before} {
			a, b := d.report.Of(g), found.Of(g)
			must.Hold(t, a.Status == b.Status && a.Rule == b.Rule, "%s: %+v, want %+v", d.name, b, a)
		}
		must.Hold(t, found.Outcome == d.report.Outcome && found.Basis.Level == d.report.Basis.Level,
			"%s: %s on %q, want %s on %q", d.name, found.Outcome, found.Basis.Level, d.report.Outcome, d.report.Basis.Level)
	}
}
