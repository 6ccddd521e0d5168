package trial_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
	"jurat/internal/must"
	"jurat/internal/subject"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
)

// restored returns an Index that begins with a file and follows the log, and how many records it had to read.
func restored(t *testing.T, h *jurattest.House, file string) (x *trial.Index, read int) {
	t.Helper()
	x = trial.NewIndex(h.Ledger, func(string) { read++ })
	must.Do(t, x.Restore(t.Context(), file))
	must.Do(t, x.Follow(t.Context()))
	return x, read
}

func save(t *testing.T, x *trial.Index, file string) {
	t.Helper()
	must.Do(t, x.Save(t.Context(), file, 0))
}

// equal compares everything that two Indexes have, also what no caller sees.
func equal(t *testing.T, when string, want, got *trial.Index) {
	t.Helper()
	everything := cmp.Options{cmp.Exporter(func(reflect.Type) bool { return true }),
		cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Claimed" }, cmp.Ignore())} // it can have ended: Taken says so
	taken := func(x *trial.Index) (list []*trial.Taken) {
		for _, s := range x.List(nil) {
			list = append(list, s.Taken())
		}
		return list
	}
	if diff := cmp.Diff(taken(want), taken(got)); diff != "" {
		t.Errorf("%s: who took the trials, read from the log (-), and stored (+):\n%s", when, diff)
	}
	if diff := cmp.Diff(want.List(nil), got.List(nil), everything); diff != "" {
		t.Errorf("%s: read from the log (-), and stored (+):\n%s", when, diff)
	}
}

// decide seals a person's decision on the judgment or on an earlier decision.
func decide(t *testing.T, h *jurattest.House, on *evidence.Record, status evidence.ApprovalStatus) *evidence.Record {
	t.Helper()
	p := evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "Hana", OriginalResponseID: on.Payload.RecordID, ApprovalStatus: status, ChainID: on.Payload.ChainID,
		Saw: []evidence.Digest{on.Digest}, Timestamp: evidence.FormatTime(h.Now())}
	if status == evidence.ApprovedWithModifications {
		p.ModifiedResponse = jury.ModifiedVerdict(jury.UnsafeFail)
	}
	return h.Seal(t, p)
}

// TestStored: after every step of trials of every kind, a stored list, with what the log has since, is what the whole log gives.
func TestStored(t *testing.T) {
	h, file := jurattest.New(t), filepath.Join(t.TempDir(), "trials.json")
	var done *trial.Trial
	var judgment, decision *evidence.Record
	silent := &jurattest.Juror{Err: jury.ErrCeiling}
	act := func(event operator.TrialChange, id string) {
		t.Helper()
		sealEvent(t, h, operator.TrialEventBody{By: "Reika", Event: event, Reason: "a reason", Trial: id})
	}
	take := func(event operator.TrialChange, record *evidence.Record) {
		t.Helper()
		sealEvent(t, h, operator.TrialEventBody{By: "Hana", Event: event, Trial: done.ID, Reviewer: "Hana", Record: record.Payload.RecordID})
	}
	open := ""
	steps := []struct {
		name string
		do   func()
	}{
		{"an empty log", func() {}},
		{"a verdict", func() { done = h.Try(t, jury.FinalJudge); judgment = done.Records[len(done.Records)-2] }},
		{"a trial that is broken off", func() { open = brokenOff(t, h, 6).ID }},
		{"a decision", func() { decision = decide(t, h, judgment, evidence.Rejected) }},
		{"a trial that a reviewer has taken", func() { take(operator.TrialTaken, decision) }},
		{"a trial that was given back", func() { take(operator.TrialLeft, decision) }},
		{"a trial that is taken again", func() { take(operator.TrialTaken, decision) }},
		{"a decision on that decision", func() { decide(t, h, decision, evidence.ApprovedWithModifications) }},
		{"a trial that is cancelled", func() { act(operator.TrialCancelled, open) }},
		{"a degraded trial", func() {
			h.TryBefore(t, jurattest.Settings(jury.MajorityVote), []jury.Juror{silent, silent, &jurattest.Juror{Opinion: jurattest.Opine(jury.SafePass, 90)}}, nil)
		}},
		{"a trial that is resumed", func() { act(operator.TrialResumed, open) }},
		{"a record that is of no trial", func() {
			h.Record(t, []byte(`[{"role":"user","content":"Hello"},{"role":"assistant","content":"Good day."}]`), jurattest.WholeHistory)
		}},
	}
	seen := map[string]bool{} // the fields of summaries that were not empty
	for _, step := range steps {
		before, _ := restored(t, h, file)
		step.do()
		if err := before.Follow(t.Context()); err != nil { // a process that was restored follows
			t.Fatal(err)
		}
		whole, _ := restored(t, h, filepath.Join(t.TempDir(), "none"))
		equal(t, step.name+", followed", whole, before)
		x, _ := restored(t, h, file)
		equal(t, step.name, whole, x)
		save(t, x, file)
		again, read := restored(t, h, file)
		equal(t, step.name+", stored", whole, again)
		if read > 0 {
			t.Errorf("%s: %d records were read though the list has them", step.name, read)
		}
		for _, s := range again.List(nil) {
			for i := range reflect.TypeFor[trial.Summary]().NumField() {
				if !reflect.ValueOf(s).Field(i).IsZero() {
					seen[reflect.TypeFor[trial.Summary]().Field(i).Name] = true
				}
			}
		}
	}
	for i := range reflect.TypeFor[trial.Summary]().NumField() {
		if name := reflect.TypeFor[trial.Summary]().Field(i).Name; !seen[name] && name != "Fault" && name != "Offline" && name != "Delivered" {
			t.Errorf("no step of this test sets %s of a summary, or it is not stored", name)
		}
	}
}

// sealEvent seals an act of the operator about a trial.
func sealEvent(t *testing.T, h *jurattest.House, body operator.TrialEventBody) {
	t.Helper()
	p, err := ledger.OperatorAct(evidence.Payload{ActionType: evidence.TrialEvent, ChainID: operator.TrialsChain, Timestamp: evidence.FormatTime(h.Now())}, body)
	if err == nil {
		_, err = (ledger.Operator{Ledger: h.Ledger, Keys: h.Keys}).Seal(t.Context(), p)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestStoredOfAnother: a list of another log, of another version, that is damaged, or from before records expired, is not used.
func TestStoredOfAnother(t *testing.T) {
	h, file := jurattest.New(t), filepath.Join(t.TempDir(), "trials.json")
	h.Try(t, jury.MajorityVote)
	whole, all := restored(t, h, file)
	save(t, whole, file)
	text := must.Get(os.ReadFile(file))(t)
	refused := func(why string, text []byte) {
		t.Helper()
		must.Do(t, os.WriteFile(file, text, 0o600))
		x, read := restored(t, h, file)
		equal(t, why, whole, x)
		if read != all {
			t.Errorf("%s: %d records are read, want all %d", why, read, all)
		}
	}
	for why, change := range map[string][2]string{"another version": {`"version":4,`, `"version":1,`}, "another log": {jurattest.Origin, "another.example/log"}, "another record": {`"record":"0`, `"record":"1`},
		"unknown members": {`"version":4,`, `"version":4,"more":true,`}, "a trial that is none": {`"trials":[{`, `"trials":[null,{`}, "a place after the log": {`"last":{"index":`, `"last":{"index":9`}} {
		changed := bytes.Replace(text, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(changed, text) {
			t.Fatalf("%s: %s is not in %s", why, change[0], text)
		}
		refused(why, changed)
	}
	for n := 0; n < len(text); n += 97 {
		refused("cut off", text[:n])
	}
	must.Do(t, os.WriteFile(file, text, 0o600))
	running, read := restored(t, h, file)
	if read != 0 {
		t.Errorf("%d records are read", read)
	}
	if err := h.Ledger.Briefs().Reindex(t.Context(), nil); err != nil { // as when records expire
		t.Fatal(err)
	}
	must.Do(t, running.Save(t.Context(), file, 1000))
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the list from before stays: %v", err)
	}
	equal(t, "read again", whole, running)
	save(t, running, file)
	if _, read := restored(t, h, file); read != 0 {
		t.Errorf("after the log was read again, %d records are read", read)
	}
	refused("from before records expired", text)
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a list from before stays: %v", err)
	}
}

// TestStoredVersion: what Save writes of a known log changes only on purpose. If it does, storedVersion must, too, because programs read the
// lists of earlier ones: go test ./internal/trial -run StoredVersion -update.
func TestStoredVersion(t *testing.T) {
	on := must.Get(subject.Load(filepath.Join("..", "..", "examples", "kitchen-return")))(t)
	golden, file := filepath.Join("testdata", "stored.json"), filepath.Join(t.TempDir(), "trials.json")
	synctest.Test(t, func(t *testing.T) {
		h := jurattest.New(t)
		done := must.Get(trial.Run(t.Context(), offline(h), on))(t)
		decision := decide(t, h, done.Records[len(done.Records)-2], evidence.Rejected)
		sealEvent(t, h, operator.TrialEventBody{By: "Hana", Event: operator.TrialTaken, Trial: done.ID, Reviewer: "Hana", Record: decision.Payload.RecordID})
		x, _ := restored(t, h, file)
		save(t, x, file)
	})
	got := must.Get(os.ReadFile(file))(t)
	if *update {
		must.Do(t, os.WriteFile(golden, got, 0o644))
	}
	want := must.Get(os.ReadFile(golden))(t)
	if !bytes.Equal(got, want) {
		t.Errorf("the stored list differs from %s; if that is on purpose, raise storedVersion and run with -update:\n%s", golden, got)
	}
}
