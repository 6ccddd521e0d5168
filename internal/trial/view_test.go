package trial_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
)

// TestEveryActionType: the read model uses every type of act, or has a reason to ignore it.
func TestEveryActionType(t *testing.T) {
	types := evidence.ActionTypes()
	if len(types) < 20 {
		t.Fatalf("only %d action types", len(types))
	}
	for _, action := range types {
		switch folds, reason := trial.Folds(action); {
		case !folds && reason == "":
			t.Errorf("%s is not used, and has no reason to be ignored", action)
		case folds && reason != "":
			t.Errorf("%s is used, but has a reason to be ignored: %s", action, reason)
		case action.InTrial() && !folds:
			t.Errorf("%s is an act of a trial, but is ignored: %s", action, reason)
		}
	}
	v := trial.NewView(nil)
	if _, err := v.Add(&evidence.Record{Payload: evidence.Payload{RecordID: "r", ActionType: "something_new"}}); err == nil || v.Records != 0 {
		t.Error("Add accepted a record of an unknown type")
	}
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
	chains := trialsIn(t, "../../testdata/vectors/verification/*.json")
	for name, chain := range trialsIn(t, "testdata/*.jurat") {
		chains[name] = chain
	}
	if len(chains) < 50 {
		t.Fatalf("only %d trials", len(chains))
	}
	broken := 0
	for name, chain := range chains {
		v := trial.NewView(nil)
		var acts []jury.Act
		for i, r := range chain {
			if _, err := v.Add(r); err != nil {
				if _, unread := jury.ReadAct(r); unread == nil {
					t.Errorf("%s: %v", name, err)
				}
				break
			}
			if r.Payload.ActionType.InTrial() {
				act, err := jury.ReadAct(r)
				if err != nil {
					t.Errorf("%s: record %d: %v", name, i, err)
				}
				acts = append(acts, act)
			}
			agrees(t, name, v, acts, chain[:i+1])
		}
		if v.Broken != "" {
			broken++
		}
	}
	if broken < 10 {
		t.Errorf("only %d of %d trials are broken", broken, len(chains))
	}
}

func agrees(t *testing.T, name string, v *trial.View, acts []jury.Act, chain []*evidence.Record) {
	t.Helper()
	state, err := jury.Replay(acts)
	if err != nil && err.Error() != v.Broken || err == nil && v.Broken != "" {
		t.Errorf("%s, %d records: %q, want %v", name, len(chain), v.Broken, err)
	}
	digests := cmp.Comparer(func(a, b evidence.Digest) bool { return a == b })
	if diff := cmp.Diff(state, v.State(), digests); diff != "" {
		t.Errorf("%s, %d records (-want +got):\n%s", name, len(chain), diff)
	}
	outcome, err := jury.OutcomeOf(chain)
	if diff := cmp.Diff(outcome, v.Outcome); err != nil || diff != "" {
		t.Errorf("%s, %d records: %v, outcome (-want +got):\n%s", name, len(chain), err, diff)
	}
}

// TestListsAgree: a list shows the same about a trial if the records were read, and if only the log's briefs were.
func TestListsAgree(t *testing.T) {
	h := jurattest.New(t)
	done := h.Try(t, jury.FinalJudge)
	judgment := done.Records[len(done.Records)-2]
	for _, status := range []evidence.ApprovalStatus{evidence.Rejected, evidence.ApprovedWithModifications} {
		p := evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "Hana", OriginalResponseID: judgment.Payload.RecordID, ApprovalStatus: status,
			ChainID: done.ID, Saw: []evidence.Digest{judgment.Digest}, Timestamp: evidence.FormatTime(h.Now())}
		if status == evidence.ApprovedWithModifications {
			p.ModifiedResponse = jury.ModifiedVerdict(jury.UnsafeFail)
		}
		h.Seal(t, p)
	}
	brokenOff(t, h, 6)
	silent := &jurattest.Juror{Err: jury.ErrCeiling}
	h.TryBefore(t, jurattest.Settings(jury.MajorityVote), []jury.Juror{silent, silent, &jurattest.Juror{Opinion: jurattest.Opine(jury.SafePass, 90)}}, nil)
	index := trial.NewIndex(h.Ledger, nil)
	must.Do(t, index.Follow(t.Context()))
	list, more, err := index.Before("", 10, nil)
	if err != nil || more || len(list) != 3 {
		t.Fatalf("%d trials, %v, %v", len(list), more, err)
	}
	for _, s := range list {
		chain := must.Get(h.Ledger.Chain(t.Context(), s.ID))(t)
		v := must.Get(trial.ViewOf(nil, chain))(t)
		if diff := cmp.Diff(v.Summary, s, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "reckoning" || p.String() == "taken" }, cmp.Ignore())); diff != "" {
			t.Errorf("%s: from records (-) and from briefs (+):\n%s", s.ID, diff)
		}
	}
}
