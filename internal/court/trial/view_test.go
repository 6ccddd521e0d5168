package trial_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/court/juror/rules"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/log/ledger"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
	"jurat/verify"
)

// TestEveryActionType: the read model uses every type of act of a trial, what people do with a verdict, and no other.
func TestEveryActionType(t *testing.T) {
	types := evidence.ActionTypes()
	must.Need(t, len(types) >= 20, "only %d action types", len(types))
	for _, action := range types {
		must.Equal(t, trial.Folds(action), action.InTrial() || action == evidence.HumanReview || action == evidence.Delivery, action, "is used")
	}
	v := trial.NewView(nil)
	_, err := v.Add(&evidence.Record{Payload: evidence.Payload{RecordID: "r", ActionType: "something_new"}})
	must.Hold(t, err != nil && v.Records == 0, "Add accepted a record of an unknown type")
}

// trialsIn returns the chains of trials in the case files that match.
func trialsIn(t *testing.T, pattern string) map[string][]*evidence.Record {
	t.Helper()
	files := must.Get(filepath.Glob(pattern))(t)
	chains := map[string][]*evidence.Record{}
	for _, file := range files {
		doc := must.Get(os.ReadFile(file))(t)
		if !bytes.Contains(doc, []byte(evidence.TrialPrefix)) {
			continue
		}
		b, _, err := evidence.ReadWholeBundle(doc)
		if err != nil {
			continue // some vectors are no case files
		}
		for _, r := range b.Records {
			if id := r.Payload.ChainID; strings.HasPrefix(id, evidence.TrialPrefix) {
				name := filepath.Base(file) + " " + id
				chains[name] = append(chains[name], r)
			}
		}
	}
	return chains
}

// TestViewAgreesWithTheVerifier: after each record of every trial among the vectors, forged ones included, the read
// model equals a replay from the beginning. Verification uses such a replay.
func TestViewAgreesWithTheVerifier(t *testing.T) {
	chains := trialsIn(t, "../../../testdata/vectors/verification/*.json")
	for name, chain := range trialsIn(t, "testdata/*.jurat") {
		chains[name] = chain
	}
	must.Need(t, len(chains) >= 50, "only %d trials", len(chains))
	broken := 0
	for name, chain := range chains {
		v := trial.NewView(nil)
		var acts []jury.Act
		for i, r := range chain {
			if _, err := v.Add(r); err != nil {
				_, unread := jury.ReadAct(r)
				must.Hold(t, unread != nil, "%s: %v", name, err)
				break
			}
			if r.Payload.ActionType.InTrial() {
				act, err := jury.ReadAct(r)
				must.Hold(t, err == nil, "%s: record %d: %v", name, i, err)
				acts = append(acts, act)
			}
			agrees(t, name, v, acts, chain[:i+1])
		}
		if v.Broken != "" {
			broken++
		}
	}
	must.Hold(t, broken >= 10, "only %d of %d trials are broken", broken, len(chains))
}

func agrees(t *testing.T, name string, v *trial.View, acts []jury.Act, chain []*evidence.Record) {
	t.Helper()
	state, err := jury.Replay(evidence.Digest{}, acts)
	must.Hold(t, (err == nil || err.Error() == v.Broken) && (err != nil || v.Broken == ""), "%s, %d records: %q, want %v", name, len(chain), v.Broken, err)
	digests := cmp.Comparer(func(a, b evidence.Digest) bool { return a == b })
	must.Equal(t, cmp.Diff(state, v.State(), digests), "", name, len(chain))
	outcome, err := jury.OutcomeOf(chain)
	diff := cmp.Diff(outcome, v.Outcome)
	must.Hold(t, err == nil && diff == "", "%s, %d records: %v, outcome (-want +got):\n%s", name, len(chain), err, diff)
}

// TestListsAgree: after every step of trials of every kind, an Index that follows the log has what the whole log gives, and a list shows the same about a
// trial if the records were read, and if only the log's briefs were.
func TestListsAgree(t *testing.T) {
	h := jurattest.New(t)
	var done *trial.Trial
	var judgment, decision *evidence.Record
	silent := &jurattest.Juror{Err: jury.ErrCeiling}
	decide := func(on *evidence.Record, status evidence.ApprovalStatus) *evidence.Record {
		p := evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "Hana", OriginalResponseID: on.Payload.RecordID, ApprovalStatus: status,
			ChainID: done.ID, Saw: []evidence.Digest{on.Digest}, Timestamp: evidence.FormatTime(h.Now())}
		if status == evidence.ApprovedWithModifications {
			p.ModifiedResponse = jury.ModifiedVerdict(jury.UnsafeFail)
		}
		return h.Seal(t, p)
	}
	act := func(body operator.TrialEventBody) {
		p := must.Get(ledger.OperatorAct(evidence.Payload{ActionType: evidence.TrialEvent, ChainID: operator.TrialsChain, Timestamp: evidence.FormatTime(h.Now())}, body))(t)
		must.Get((ledger.Operator{Ledger: h.Ledger, Keys: h.Keys}).Seal(t.Context(), p))(t)
	}
	take := func(event operator.TrialChange) {
		act(operator.TrialEventBody{By: "Hana", Event: event, Trial: done.ID, Reviewer: "Hana", Record: decision.Payload.RecordID})
	}
	open := ""
	followed, heard := trial.NewIndex(h.Ledger, nil), 0
	followed.Heard = func(string) { heard++ }
	must.Do(t, followed.Renew(t.Context()))
	for i, step := range []func(){
		func() {},
		func() { done = h.Try(t, jury.FinalJudge); judgment = done.Records[len(done.Records)-2] },
		func() { open = brokenOff(t, h, 6).ID },
		func() { decision = decide(judgment, evidence.Rejected) },
		func() { take(operator.TrialTaken) },
		func() { take(operator.TrialLeft) },
		func() { take(operator.TrialTaken) },
		func() { decide(decision, evidence.ApprovedWithModifications) },
		func() {
			act(operator.TrialEventBody{By: "Reika", Event: operator.TrialCancelled, Reason: "a reason", Trial: open})
		},
		func() {
			h.TryBefore(t, jurattest.Settings(jury.MajorityVote), []jury.Juror{silent, silent, &jurattest.Juror{Opinion: jurattest.Opine(jury.SafePass, 90)}}, nil)
		},
		func() {
			act(operator.TrialEventBody{By: "Reika", Event: operator.TrialResumed, Reason: "a reason", Trial: open})
		},
		func() { // a record that is of no trial
			h.Record(t, []byte(`[{"role":"user","content":"Hello"},{"role":"assistant","content":"Good day."}]`), jurattest.WholeHistory)
		},
		func() { must.Do(t, h.Ledger.Briefs().Reindex(t.Context(), nil)) }, // as when records expire
	} {
		step()
		whole := trial.NewIndex(h.Ledger, nil)
		must.Do(t, whole.Follow(t.Context()))
		must.Do(t, followed.Follow(t.Context()))
		sameLists(t, fmt.Sprintf("step %d: from the whole log (-) and followed", i), whole.List(nil), followed.List(nil))
	}
	before := followed.List(nil)
	heard = 0
	for i := range 2 { // the second Renew finds nothing new
		must.Do(t, followed.Renew(t.Context()))
		must.Do(t, followed.Follow(t.Context()))
		now := followed.List(nil)
		if sameLists(t, "renewed", before, now); heard != 0 || (now[0].Outcome == before[0].Outcome) != (i == 1) {
			t.Errorf("renewed %d times: %d records were read once more, or the log was not read", i+1, heard)
		}
		before = now
	}
	list, more, err := followed.Before("", 10, nil)
	must.Need(t, err == nil && !more && len(list) == 3, "%d trials, %v, %v", len(list), more, err)
	for _, s := range list {
		v := must.Get(trial.ViewOf(nil, must.Get(h.Ledger.Chain(t.Context(), s.ID))(t)))(t)
		sameLists(t, s.ID+": from records (-) and from briefs", []trial.Summary{v.Summary}, []trial.Summary{s})
	}
}

// sameLists compares what callers see of trials, and who took them.
func sameLists(t *testing.T, what string, want, got []trial.Summary) {
	t.Helper()
	taken := func(list []trial.Summary) (taken []*trial.Change) {
		for _, s := range list {
			taken = append(taken, s.Taken())
		}
		return taken
	}
	diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(trial.Summary{})) + cmp.Diff(taken(want), taken(got))
	must.Hold(t, diff == "", "%s (+):\n%s", what, diff)
}

var update = flag.Bool("update", false, "write the golden case files anew")

// late is a juror who waits before it answers, so that answers arrive in the same order every time.
type late struct {
	jury.Juror
	after time.Duration
}

func (l late) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	time.Sleep(l.after)
	return l.Juror.Answer(ctx, b)
}

// offline is the offline panel as the command seats it. It answers in the order of the seats.
func offline(h *jurattest.House) trial.Config {
	seats, judgeSeat := rules.Seats()
	jurors, judge := rules.Jurors(nil)
	for i := range jurors {
		jurors[i] = late{jurors[i], time.Duration(i) * time.Second}
	}
	return trial.Config{Ledger: h.Ledger, Keys: h.Keys, Now: h.Now, Random: h.Random, Jurors: jurors, Judge: judge,
		Settings: jury.Settings{Seats: seats, Judge: &judgeSeat, Rubric: jury.DefaultRubric(), Collaborative: true,
			MaxRounds: 3, Threshold: 2, Method: jury.FinalJudge}}
}

// goldenCase tries an example with known keys, clock, ids and authority, and returns its case file.
func goldenCase(t *testing.T, example string) []byte {
	t.Helper()
	on := must.Get(subject.Load(filepath.Join("..", "..", "..", "examples", example)))(t)
	var file []byte
	synctest.Test(t, func(t *testing.T) {
		h := jurattest.New(t)
		done := must.Get(trial.Run(t.Context(), offline(h), on))(t)
		b := h.Bundle(t, done.Records...)
		r := verify.Bundle(b, h.Options(t))
		must.Hold(t, r.Outcome == verify.Proved, "%s: %+v", r.Outcome, r.Details)
		file = must.Get(b.Marshal())(t)
	})
	return file
}

// TestGoldenCaseFiles: with known keys, clock, ids and authority, a case file has the same bytes on every machine. The
// golden files change only on purpose: go test ./internal/court/trial -run Golden -update.
func TestGoldenCaseFiles(t *testing.T) {
	for _, example := range []string{"kitchen-return", "invoice-inbox", "pharmacy-refill"} {
		golden := filepath.Join("testdata", example+".jurat")
		got := goldenCase(t, example)
		if *update {
			must.Do(t, os.WriteFile(golden, got, 0o644))
		}
		want := must.Get(os.ReadFile(golden))(t)
		must.Hold(t, bytes.Equal(got, want), "%s: the case file differs from %s; if that is on purpose, run with -update", example, golden)
		again := goldenCase(t, example)
		must.Hold(t, bytes.Equal(again, got), "%s: a second trial gave another case file", example)
	}
}

var _ ledger.Keys = (*jurattest.Keys)(nil)

// TestEverybodySignsWithKeysOfTheirOwn: each actor has one key, and signs each of its acts with it.
func TestEverybodySignsWithKeysOfTheirOwn(t *testing.T) {
	h := jurattest.New(t)
	keys := map[string]evidence.KeyID{}
	for _, r := range h.Try(t, jury.FinalJudge).Records {
		who := string(r.Payload.Role()) + " " + r.Payload.Actor()
		id := r.Payload.Signers[0].KeyID
		known, ok := keys[who]
		must.Hold(t, !ok || known == id, "%s signed with two keys", who)
		keys[who] = id
	}
	must.Hold(t, len(keys) == 6, "%d actors signed: %v", len(keys), keys) // the submitter, the clerk, three jurors and the judge
	seen := map[evidence.KeyID]string{}
	for who, id := range keys {
		other, ok := seen[id]
		must.Hold(t, !ok, "%s and %s signed with the same key", who, other)
		seen[id] = who
	}
}
