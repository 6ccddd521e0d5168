package ledger_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
	"jurat/internal/ledger/fsck"
	"jurat/internal/ledger/storage"
	expect "jurat/internal/must"
)

// submission makes a trial's submission of this response.
func submission(t testing.TB, l *ledger.Ledger, trial, response string) *evidence.Record {
	t.Helper()
	return sealed(t, l, evidence.Payload{ActionType: evidence.Submission, AgentID: "s", Timestamp: "2026-01-01T00:00:00Z", ChainID: trial,
		ChainPosition: 1, Case: evidence.DigestOf([]byte(response)), Response: []byte(response)})
}

func judgment(t testing.TB, l *ledger.Ledger, trial string) *evidence.Record {
	t.Helper()
	return sealed(t, l, evidence.Payload{ActionType: evidence.FinalJudgment, AgentID: "clerk", Timestamp: "2026-01-01T00:00:00Z", ChainID: trial,
		ChainPosition: 2, Case: evidence.DigestOf(nil), PreviousRecord: evidence.DigestOf(nil), Response: []byte("{}")})
}

func review(t testing.TB, l *ledger.Ledger, chain string, of *evidence.Record) *evidence.Record {
	t.Helper()
	return sealed(t, l, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "u", Timestamp: "2026-01-01T00:00:00Z", ChainID: chain,
		OriginalResponseID: of.Payload.RecordID, Saw: []evidence.Digest{of.Digest}, ApprovalStatus: evidence.Approved})
}

// seen is an act of the agent "o" that the recorder "w" saw. One that is not judged is as an earlier recorder sealed it.
func seen(t testing.TB, l *ledger.Ledger, judged evidence.Judged) *evidence.Record {
	t.Helper()
	return sealed(t, l, evidence.Payload{ActionType: evidence.ObservedCall, AgentID: "w", RequestID: "r", Timestamp: "2026-01-01T00:00:00Z",
		Observed: &evidence.Observed{Agent: "o", Began: "2026-01-01T00:00:00Z", Ended: evidence.Complete, Fidelity: evidence.Parsed, Judged: judged, Protocol: "other/1", Vantage: evidence.InProcess}})
}

func sealed(t testing.TB, l *ledger.Ledger, p evidence.Payload) *evidence.Record {
	t.Helper()
	return must(l.Seal(t.Context(), must(evidence.NewDraft(p)), actor))
}

// lenient is a log that does not judge links: its acts are not those of a whole trial.
func lenient(t testing.TB) *ledger.Ledger {
	t.Helper()
	return lenientOver(t, fresh(t))
}

func lenientOver(t testing.TB, store storage.Store) *ledger.Ledger {
	t.Helper()
	c := config(store)
	c.UnsafeContradictions = true
	l := must(ledger.Create(t.Context(), c))
	t.Cleanup(func() { l.Close() })
	return l
}

func countsOf(t testing.TB, l *ledger.Ledger, r *evidence.Record) evidence.LogCounts {
	t.Helper()
	return must(l.Prove(t.Context(), r)).Records[0].Log.LogCounts
}

const (
	ofTranscript = `{"agentCard":{"name":"transcribed"},"messages":[]}`
	ofRecords    = `{"agentCard":{"name":"another name"},"records":[{"payload":{"action_type":"human_review","reviewer_id":"u"}},
		{"payload":{"action_type":"message","agent_id":"recorded"}},{"payload":{"action_type":"message","agent_id":"second"}}]}`
)

// TestSubjects checks whom the log says that each kind of record judges. Callers have no say in it.
func TestSubjects(t *testing.T) {
	l := lenient(t)
	agent := func(name string) evidence.Digest { return evidence.SubjectTag(evidence.RoleAgent, name) }
	submission(t, l, "trial-1", ofTranscript)
	submission(t, l, "trial-2", ofRecords)
	submission(t, l, "trial-3", `{"agentCard":{"name":7}}`)
	act := seal(t, l, "")
	first := judgment(t, l, "trial-1")
	onAct := review(t, l, "", act)
	now := seen(t, l, evidence.JudgedAgent)
	for name, c := range map[string]struct {
		record *evidence.Record
		want   evidence.Digest
	}{
		"a submission":                  {submission(t, l, "trial-4", ofTranscript), evidence.Digest{}},
		"an act":                        {act, evidence.Digest{}},
		"a judgment on a transcript":    {first, agent("transcribed")},
		"a judgment on records":         {judgment(t, l, "trial-2"), agent("recorded")},
		"a judgment on nobody":          {judgment(t, l, "trial-3"), evidence.Digest{}},
		"a judgment without a trial":    {judgment(t, l, "trial-9"), evidence.Digest{}},
		"a review of an act":            {onAct, agent("agent-7")},
		"a recorded act":                {now, evidence.Digest{}},
		"a review of a recorded act":    {review(t, l, "", now), agent("o")},
		"another review of it":          {review(t, l, "", now), agent("o")},
		"a review of an earlier one":    {review(t, l, "", seen(t, l, "")), evidence.SubjectTag(evidence.RoleRecorder, "w")},
		"a review of a review":          {review(t, l, "", onAct), evidence.SubjectTag(evidence.RoleReviewer, "u")},
		"a review of a verdict":         {review(t, l, "", first), agent("transcribed")},
		"a review in the trial's chain": {review(t, l, "trial-2", first), agent("recorded")},
	} {
		if counts := countsOf(t, l, c.record); counts.Subject != c.want || (counts.SubjectSeq > 0) != !c.want.IsZero() || counts.ActorSeq == 0 {
			t.Errorf("%s is counted as %+v, want the subject %v", name, counts, c.want)
		}
	}
	other := *act
	other.Digest = evidence.DigestOf(nil)
	if counts := countsOf(t, l, review(t, l, "", &other)); !counts.Subject.IsZero() {
		t.Errorf("a review of another version of the act has a subject: %+v", counts)
	}
	absent := *act
	absent.Payload.RecordID = "0199aabb-0000-7000-8000-000000000000"
	if counts := countsOf(t, l, review(t, l, "", &absent)); !counts.Subject.IsZero() {
		t.Errorf("a review of a record that the log lacks has a subject: %+v", counts)
	}
}

// expiring is a store in which records have expired: it keeps what the log hashed and counted of them.
type expiring struct {
	storage.Store
	expired map[string]bool // by record id
}

func (f *expiring) without(row storage.Row) storage.Row {
	if f.expired[row.RecordID] {
		row.Entry, row.ExpiredBy = []byte("{}"), "an act"
	}
	return row
}

func (f *expiring) ByRecordID(ctx context.Context, id string) (storage.Row, error) {
	row, err := f.Store.ByRecordID(ctx, id)
	return f.without(row), err
}

func (f *expiring) OfActor(ctx context.Context, tag evidence.Digest, from, n int64) ([]storage.Row, error) {
	rows, err := f.Store.OfActor(ctx, tag, from, n)
	for i := range rows {
		rows[i] = f.without(rows[i])
	}
	return rows, err
}

func (f *expiring) InChain(ctx context.Context, chain string, from, n int64) ([]storage.Row, error) {
	rows, err := f.Store.InChain(ctx, chain, from, n)
	for i := range rows {
		rows[i] = f.without(rows[i])
	}
	return rows, err
}

// TestSubjectsOfExpired: whom a record judges does not depend on whether the log still has what it judges. A reader who kept a copy counts
// the same.
func TestSubjectsOfExpired(t *testing.T) {
	store := &expiring{fresh(t), map[string]bool{}}
	l := lenientOver(t, store)
	submitted := submission(t, l, "trial-1", ofTranscript)
	judged, act := judgment(t, l, "trial-1"), seal(t, l, "")
	onAct := review(t, l, "", act)
	seal(t, l, "") // of the same agent: it says in which role the agent acts
	for _, r := range []*evidence.Record{submitted, judged, act, onAct} {
		store.expired[r.Payload.RecordID] = true
	}
	other := *act
	other.Digest = evidence.DigestOf(nil)
	for name, c := range map[string]struct {
		record *evidence.Record
		want   evidence.Digest
	}{
		"a second judgment":                      {judgment(t, l, "trial-1"), evidence.SubjectTag(evidence.RoleAgent, "transcribed")},
		"a review in the trial's chain":          {review(t, l, "trial-1", judged), evidence.SubjectTag(evidence.RoleAgent, "transcribed")},
		"a review of the verdict":                {review(t, l, "", judged), evidence.SubjectTag(evidence.RoleAgent, "transcribed")},
		"a review of the act":                    {review(t, l, "", act), evidence.SubjectTag(evidence.RoleAgent, "agent-7")},
		"a review of another version of the act": {review(t, l, "", &other), evidence.Digest{}},
		"a review of the review":                 {review(t, l, "", onAct), evidence.SubjectTag(evidence.RoleReviewer, "u")},
	} {
		if counts := countsOf(t, l, c.record); counts.Subject != c.want {
			t.Errorf("%s is counted as %+v, want the subject %v", name, counts, c.want)
		}
	}
}

// TestReviewOfAnExpiredRecordedAct: the log does not know any more which agent was seen. A reader who kept a copy would, and refute any
// count, so the review is refused.
func TestReviewOfAnExpiredRecordedAct(t *testing.T) {
	store := &expiring{fresh(t), map[string]bool{}}
	l := lenientOver(t, store)
	call := seen(t, l, evidence.JudgedAgent)
	recorder, reviewer := newOwner(t, "w", false), newOwner(t, "u", false)
	known := recorder.event(operator.KeyRegistered, 0, evidence.RoleRecorder)
	known.Custody = operator.CustodyOperator
	succeeds(t, tell(l, t, known, reviewer.event(operator.KeyRegistered, 0, evidence.RoleReviewer)))
	decide := func() (*evidence.Record, error) {
		return l.Seal(t.Context(), must(evidence.NewDraft(evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "u", Timestamp: "2026-01-01T00:00:00Z",
			OriginalResponseID: call.Payload.RecordID, Saw: []evidence.Digest{call.Digest}, ApprovalStatus: evidence.Rejected})), reviewer.signers)
	}
	if counts := countsOf(t, l, must(decide())); counts.Subject != evidence.SubjectTag(evidence.RoleAgent, "o") || counts.SubjectSeq != 1 {
		t.Errorf("%+v", counts)
	}
	store.expired[call.Payload.RecordID] = true
	fails(t, ledger.ErrExpired)(decide())
}

// TestReviewOfAnExpiredActWithoutKeyEvent: a key that was made as it was first used has no key event. Then a newer record says in which role the actor acts, and without
// one the review is refused, too.
func TestReviewOfAnExpiredActWithoutKeyEvent(t *testing.T) {
	for name, c := range map[string]struct {
		newer   func(l *ledger.Ledger)
		record  func(l *ledger.Ledger) *evidence.Record
		refused bool
	}{
		"a recorder's, and a newer one": {func(l *ledger.Ledger) { seen(t, l, evidence.JudgedAgent) }, func(l *ledger.Ledger) *evidence.Record { return seen(t, l, evidence.JudgedAgent) }, true},
		"a recorder's only one":         {func(*ledger.Ledger) {}, func(l *ledger.Ledger) *evidence.Record { return seen(t, l, evidence.JudgedAgent) }, true},
		"an agent's, and a newer one":   {func(l *ledger.Ledger) { seal(t, l, "") }, func(l *ledger.Ledger) *evidence.Record { return seal(t, l, "") }, false},
	} {
		store := &expiring{fresh(t), map[string]bool{}}
		l := lenientOver(t, store)
		act := c.record(l)
		c.newer(l)
		store.expired[act.Payload.RecordID] = true
		_, err := l.Seal(t.Context(), must(evidence.NewDraft(evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "u", Timestamp: "2026-01-01T00:00:00Z",
			OriginalResponseID: act.Payload.RecordID, Saw: []evidence.Digest{act.Digest}, ApprovalStatus: evidence.Rejected})), actor)
		if errors.Is(err, ledger.ErrExpired) != c.refused || !c.refused && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// seqs lists the numbers of what a log lists of an actor.
func seqs(t testing.TB, list iter.Seq2[ledger.Counted, error], seq func(evidence.LogCounts) int64) (numbers []int64) {
	t.Helper()
	for c, err := range list {
		if err != nil {
			t.Fatal(err)
		}
		if c.Record == nil || c.Record.Digest != c.Digest || c.Record.Payload.RecordID != c.RecordID {
			t.Fatalf("record %d is %+v", c.Index, c)
		}
		numbers = append(numbers, seq(c.Counts))
	}
	return numbers
}

func actorSeq(c evidence.LogCounts) int64   { return c.ActorSeq }
func subjectSeq(c evidence.LogCounts) int64 { return c.SubjectSeq }

func upTo(n int64) (numbers []int64) {
	for i := range n {
		numbers = append(numbers, i+1)
	}
	return numbers
}

// TestCountedTogether checks that two processes that append to one log at once count each actor, and each subject,
// without a gap, and that an examination agrees.
func TestCountedTogether(t *testing.T) {
	onBoth(t, func(t *testing.T, f folder) {
		one := f.create(t)
		two := must(f.open(t))
		const each = 10
		act := seal(t, one, "")
		reviewers := []evidence.Signer{must(evidence.NewSigner(must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), rand.Reader))}
		var sealing sync.WaitGroup
		var mu sync.Mutex
		var failed error
		for i, l := range []*ledger.Ledger{one, two, one, two} {
			sealing.Go(func() {
				for n := range each {
					p := evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: fmt.Sprintf("reviewer-%d", i%2), Timestamp: "2026-01-01T00:00:00Z",
						OriginalResponseID: act.Payload.RecordID, Saw: []evidence.Digest{act.Digest}, ApprovalStatus: evidence.Approved}
					draft, by := must(evidence.NewDraft(p)), reviewers
					if n%2 == 0 {
						draft, by = actBy(fmt.Sprintf("agent-%d", i)), actor
					}
					if _, err := l.Seal(t.Context(), draft, by); err != nil {
						mu.Lock()
						failed = errors.Join(failed, err)
						mu.Unlock()
						return
					}
				}
			})
		}
		sealing.Wait()
		if failed != nil {
			t.Fatal(failed)
		}
		for i := range 4 {
			if diff := cmp.Diff(upTo(each/2), seqs(t, two.OfActor(t.Context(), evidence.RoleAgent, fmt.Sprintf("agent-%d", i)), actorSeq)); diff != "" {
				t.Errorf("agent-%d: %s", i, diff)
			}
		}
		for i := range 2 {
			if diff := cmp.Diff(upTo(each), seqs(t, one.OfActor(t.Context(), evidence.RoleReviewer, fmt.Sprintf("reviewer-%d", i)), actorSeq)); diff != "" {
				t.Errorf("reviewer-%d: %s", i, diff)
			}
		}
		expect.Equal(t, cmp.Diff(upTo(2*each), seqs(t, two.About(t.Context(), evidence.RoleAgent, "agent-7"), subjectSeq)), "")
		if none := seqs(t, two.About(t.Context(), evidence.RoleAgent, "agent-1"), subjectSeq); len(none) != 0 {
			t.Errorf("about agent-1: %v", none)
		}
		one.Close()
		two.Close()
		store := must(f.store(t))
		found, err := fsck.Run(t.Context(), examined(f.config(store)), fsck.Options{})
		if wantClean(t, found); err != nil {
			t.Error(err)
		}
	})
}

func actBy(name string) *evidence.Draft {
	return must(evidence.ParseDraft(fmt.Appendf(nil, `{"agent_id":%q,"request_id":"req-1","timestamp":"2000-01-01T00:00:00Z","model":"m","model_version":"1",
		"prompt":"May I?","response":"You may.","parameters":{}}`, name)))
}

// TestLastOfActor: the newest records of one actor, among those of others.
func TestLastOfActor(t *testing.T) {
	l := lenient(t)
	var own []string
	for i := range 23 {
		said := sealed(t, l, evidence.Payload{AgentID: []string{"a", "b", "c"}[i%3], RequestID: "r", Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "1",
			Prompt: []byte(`"p"`), Response: fmt.Appendf(nil, "%q", fmt.Sprint(i)), Parameters: []byte("{}")})
		if i%3 == 1 {
			own = append([]string{said.Payload.RecordID}, own...)
		}
	}
	for n := int64(1); n < 10; n++ {
		var got []string
		for _, c := range must(l.LastOfActor(t.Context(), evidence.RoleAgent, "b", n)) {
			got = append(got, c.RecordID)
		}
		if diff := cmp.Diff(own[:min(int(n), len(own))], got); diff != "" {
			t.Errorf("the last %d (-want +got):\n%s", n, diff)
		}
	}
	if none := must(l.LastOfActor(t.Context(), evidence.RoleReviewer, "b", 3)); len(none) != 0 {
		t.Errorf("a reviewer of the same name has %v", none)
	}
}
