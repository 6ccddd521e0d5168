package ledger_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/brief"
	"jurat/internal/log/ledger/fsck"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/test/jurattest"
	expect "jurat/internal/test/must"
	"jurat/verify"
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
	return must(l.Prove(t.Context(), r)).Records[0].Log.Counts()
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
	counts := countsOf(t, l, review(t, l, "", &other))
	expect.Hold(t, counts.Subject.IsZero(), "a review of another version of the act has a subject: %+v", counts)
	absent := *act
	absent.Payload.RecordID = "0199aabb-0000-7000-8000-000000000000"
	counts = countsOf(t, l, review(t, l, "", &absent))
	expect.Hold(t, counts.Subject.IsZero(), "a review of a record that the log lacks has a subject: %+v", counts)
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
		counts := countsOf(t, l, c.record)
		expect.Hold(t, counts.Subject == c.want, "%s is counted as %+v, want the subject %v", name, counts, c.want)
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
	counts := countsOf(t, l, must(decide()))
	expect.Hold(t, counts.Subject == evidence.SubjectTag(evidence.RoleAgent, "o") && counts.SubjectSeq == 1, "%+v", counts)
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
		expect.Hold(t, errors.Is(err, ledger.ErrExpired) == c.refused && (c.refused || err == nil), "%s: %v", name, err)
	}
}

// seqs lists the numbers of what a log lists of an actor.
func seqs(t testing.TB, list iter.Seq2[ledger.Counted, error], seq func(evidence.LogCounts) int64) (numbers []int64) {
	t.Helper()
	for c, err := range list {
		succeeds(t, err)
		expect.Need(t, c.Record != nil && c.Record.Digest == c.Digest && c.Record.Payload.RecordID == c.RecordID, "record %d is %+v", c.Index, c)
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
		expect.Do(t, failed)
		for i := range 4 {
			expect.Equal(t, cmp.Diff(upTo(each/2), seqs(t, two.OfActor(t.Context(), evidence.RoleAgent, fmt.Sprintf("agent-%d", i)), actorSeq)), "")
		}
		for i := range 2 {
			expect.Equal(t, cmp.Diff(upTo(each), seqs(t, one.OfActor(t.Context(), evidence.RoleReviewer, fmt.Sprintf("reviewer-%d", i)), actorSeq)), "")
		}
		expect.Equal(t, cmp.Diff(upTo(2*each), seqs(t, two.About(t.Context(), evidence.RoleAgent, "agent-7"), subjectSeq)), "")
		none := seqs(t, two.About(t.Context(), evidence.RoleAgent, "agent-1"), subjectSeq)
		expect.Hold(t, len(none) == 0, "about agent-1: %v", none)
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
		expect.Equal(t, cmp.Diff(own[:min(int(n), len(own))], got), "")
	}
	none := must(l.LastOfActor(t.Context(), evidence.RoleReviewer, "b", 3))
	expect.Hold(t, len(none) == 0, "a reviewer of the same name has %v", none)
}

// blinded is a store that returns no payloads while it is blind.
type blinded struct {
	storage.Store
	blind bool
}

var errPayload = errors.New("a payload is read")

func (b *blinded) Rows(ctx context.Context, from, n int64) ([]storage.Row, error) {
	if b.blind {
		return nil, errPayload
	}
	return b.Store.Rows(ctx, from, n)
}

func (b *blinded) RowsAt(ctx context.Context, at []int64) ([]storage.Row, error) {
	if b.blind {
		return nil, errPayload
	}
	return b.Store.RowsAt(ctx, at)
}

func (b *blinded) ByRecordID(ctx context.Context, id string) (storage.Row, error) {
	if b.blind {
		return storage.Row{}, errPayload
	}
	return b.Store.ByRecordID(ctx, id)
}

func (b *blinded) InChain(ctx context.Context, chain string, from, n int64) ([]storage.Row, error) {
	if b.blind {
		return nil, errPayload
	}
	return b.Store.InChain(ctx, chain, from, n)
}

func listed(t testing.TB, l *ledger.Ledger, from int64, chain string) (list []string) {
	t.Helper()
	for b, err := range l.Briefs().List(t.Context(), from, chain) {
		succeeds(t, err)
		list = append(list, fmt.Sprint(b.Index, b.RecordID, b.Digest, b.ChainID, b.Action, b.Actor, b.Timestamp, b.RequestID))
	}
	return list
}

// TestListWithoutPayloads lists and gathers with a store that returns no payloads.
func TestListWithoutPayloads(t *testing.T) {
	l, c := alone(t)
	sealMany(t, l, 300)
	whole := seal(t, l, `,"chain_id":"order"`)
	seal(t, l, `,"saw":["`+whole.Digest.String()+`"]`)
	seal(t, l, `,"chain_id":"trials"`)
	want, chain := listed(t, l, 0, ""), listed(t, l, 0, "order")
	expect.Need(t, len(want) == 303 && len(chain) == 1 && chain[0] == want[300], "%d and %q", len(want), chain)
	store := &blinded{Store: c.Store}
	opened := must(ledger.Open(t.Context(), config(store)))
	store.blind = true
	got := listed(t, opened, 0, "")
	expect.Hold(t, slices.Equal(got, want), "%d are listed", len(got))
	got = listed(t, opened, 7, "order")
	expect.Hold(t, slices.Equal(got, chain), "%q is listed", got)
	g, err := opened.Briefs().Gather(t.Context(), "order", nil)
	expect.Hold(t, err == nil && slices.Equal(g.Indexes, []int64{300, 301}) && g.Cut == nil, "%+v, %v", g, err)
	b, err := opened.Briefs().ByID(t.Context(), whole.Payload.RecordID)
	expect.Hold(t, err == nil && b.Index == 300 && b.Role() == evidence.RoleAgent, "%+v, %v", b, err)
	fails(t, ledger.ErrNotFound)(opened.Briefs().ByID(t.Context(), "none"))
}

// TestBriefTampered checks that Fsck reports each brief that differs from its record, and that Reindex repairs all.
func TestBriefTampered(t *testing.T) {
	f := folder(t.TempDir())
	l := f.create(t)
	one := seal(t, l, "")
	seal(t, l, `,"saw":["`+one.Digest.String()+`"]`)
	sealMany(t, l, 3)
	l.Close()
	wantClean(t, f.fsck(t))
	for name, test := range map[string]struct {
		do string
		at int64
	}{
		"what is shown": {`UPDATE briefs SET line = replace(line, 'agent-7', 'agent-8') WHERE idx = 2`, 2},
		"unreadable":    {`UPDATE briefs SET line = '{' WHERE idx = 2`, 2},
		"names":         {`UPDATE briefs SET names = zeroblob(32) WHERE idx = 1`, 1},
		"no names":      {`UPDATE briefs SET names = x'' WHERE idx = 1`, 1},
		"gone":          {`DELETE FROM briefs WHERE idx = 3`, 3},
		"a key gone":    {`DELETE FROM links WHERE idx = 1 AND key = (SELECT max(key) FROM links WHERE idx = 1)`, 1},
		"a key more":    {`INSERT INTO links VALUES (0, 4711, 4)`, 4},
		"all keys gone": {`DELETE FROM links WHERE idx = 4`, 4},
	} {
		t.Run(name, func(t *testing.T) {
			copied := folder(t.TempDir())
			succeeds(t, os.CopyFS(string(copied), os.DirFS(string(f))))
			copied.exec(t, test.do)
			damages := copied.fsck(t)
			expect.Hold(t, len(damages) != 0, "nothing is named")
			for _, d := range damages {
				expect.Hold(t, d.Kind == fsck.DamageBrief && d.Index == test.at && strings.Contains(d.String(), "jurat log fsck --reindex"), "damage: %v", d)
			}
			l := must(copied.open(t))
			succeeds(t, l.Briefs().Reindex(t.Context(), nil))
			l.Close()
			wantClean(t, copied.fsck(t))
		})
	}
}

// TestNothingErasableInBriefs checks that no brief contains a value that is sealed apart.
func TestNothingErasableInBriefs(t *testing.T) {
	l, c := alone(t)
	draft := must(evidence.ParseDraft([]byte(`{"action_type":"human_review","reviewer_id":"u","timestamp":"2000-01-01T00:00:00Z","original_response_id":"x",
		"approval_status":"approved_with_modifications","modified_response":{"position":"safe_pass"},"changes":"secret-word"}`))).SealingApart(nil, "/modified_response", "/changes")
	must(l.Seal(t.Context(), draft, actor))
	stored := must(c.Store.Briefs(t.Context(), storage.BriefQuery{N: 1, Names: true}))
	if line := string(stored[0].Line); strings.Contains(line, "safe_pass") || strings.Contains(line, "secret-word") || !strings.Contains(line, "approved_with") {
		t.Errorf("the brief is %s", line)
	}
	open := must(evidence.ParseDraft([]byte(`{"action_type":"human_review","reviewer_id":"u","timestamp":"2000-01-01T00:00:00Z","original_response_id":"x",
		"approval_status":"approved_with_modifications","modified_response":{"position":"safe_pass"}}`)))
	must(l.Seal(t.Context(), open, actor))
	line := string(must(c.Store.Briefs(t.Context(), storage.BriefQuery{From: 1, N: 1}))[0].Line)
	expect.Hold(t, strings.Contains(line, `"given":"safe_pass`), "the brief is %s", line)
}

// TestGatherIsCut checks that Gather limits and reports very many links: one record that names thousands, and
// thousands that name one.
func TestGatherIsCut(t *testing.T) {
	_, c := alone(t)
	c.UnsafeContradictions = true // with which a record can name more than may be held against the log
	l := must(ledger.Open(t.Context(), c))
	one := seal(t, l, "")
	var saw []string
	for i := range brief.MaxNames + 5 {
		saw = append(saw, `"`+evidence.DigestOf(fmt.Append(nil, i)).String()+`"`)
	}
	saw[3] = `"` + one.Digest.String() + `"`
	greedy := seal(t, l, `,"saw":[`+strings.Join(saw, ",")+`]`)
	for _, id := range []string{one.Payload.RecordID, greedy.Payload.RecordID} {
		g, err := l.Briefs().Gather(t.Context(), id, nil)
		expect.Hold(t, err == nil && slices.Equal(g.Indexes, []int64{0, 1}) && errors.Is(g.Cut, brief.ErrCut), "%+v, %v", g, err)
	}
	// The common links of many records are limited, too.
	root := seal(t, l, "")
	for n := range 25 {
		saw := []string{`"` + root.Digest.String() + `"`}
		for i := range 999 {
			saw = append(saw, `"`+evidence.DigestOf(fmt.Append(nil, n, "of", i)).String()+`"`)
		}
		seal(t, l, `,"saw":[`+strings.Join(saw, ",")+`]`)
	}
	if g, err := l.Briefs().Gather(t.Context(), root.Payload.RecordID, nil); err != nil || len(g.Indexes) != 26 || !errors.Is(g.Cut, brief.ErrCut) {
		t.Errorf("%d are gathered, cut: %v, %v", len(g.Indexes), g.Cut, err)
	}

	whole := seal(t, l, "")
	digest := whole.Digest.String()
	for range 30 {
		seal(t, l, `,"saw":["`+digest+`"]`)
	}
	g, err := l.Briefs().Gather(t.Context(), whole.Payload.RecordID, nil)
	expect.Hold(t, err == nil && len(g.Indexes) == 31 && g.Cut == nil, "%+v, %v", g, err)
}

// TestGatherForAReader checks that records that a reader may not read are neither returned nor followed, and that
// chains are returned whole or not at all.
func TestGatherForAReader(t *testing.T) {
	l, _ := alone(t)
	one := seal(t, l, "")
	hidden := seal(t, l, `,"saw":["`+one.Digest.String()+`"]`)
	behind := seal(t, l, `,"saw":["`+hidden.Digest.String()+`"]`)
	step := seal(t, l, `,"chain_id":"order","saw":["`+one.Digest.String()+`"]`)
	part := seal(t, l, `,"chain_id":"order"`)
	but := func(ids ...string) brief.May {
		return func(_ context.Context, b *brief.Brief) (bool, error) { return !slices.Contains(ids, b.RecordID), nil }
	}
	for _, test := range []struct {
		name string
		may  brief.May
		want []int64
		err  error
	}{
		{one.Payload.RecordID, nil, []int64{0, 1, 2, 3, 4}, nil},
		{"order", nil, []int64{0, 1, 2, 3, 4}, nil},
		{one.Payload.RecordID, but(hidden.Payload.RecordID), []int64{0, 3, 4}, nil},
		{one.Payload.RecordID, but(part.Payload.RecordID), []int64{0, 1, 2}, nil},
		{behind.Payload.RecordID, but(hidden.Payload.RecordID), []int64{2}, nil},
		{one.Payload.RecordID, but(one.Payload.RecordID), nil, brief.ErrHidden},
		{step.Payload.RecordID, but(part.Payload.RecordID), nil, brief.ErrHidden},
		{"order", but(part.Payload.RecordID), nil, brief.ErrHidden},
		{"other", nil, nil, ledger.ErrNotFound},
	} {
		g, err := l.Briefs().Gather(t.Context(), test.name, test.may)
		expect.Hold(t, errors.Is(err, test.err) && (err != nil || slices.Equal(g.Indexes, test.want) && g.Cut == nil),
			"of %s: %+v, %v; want %v, %v", test.name, g, err, test.want, test.err)
	}
}

// TestLinked checks that all records that name each other, by digest, id, chain or parent request, are gathered from
// any of them, and no others.
func TestLinked(t *testing.T) {
	h := jurattest.New(t)
	said := func(request, parent, chain, response string) *evidence.Record {
		return h.Seal(t, evidence.Payload{ActionType: evidence.ModelOutput, AgentID: "a", RequestID: request, ParentRequestID: parent, ChainID: chain,
			Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "v", Prompt: jsontext.Value(`"p"`), Response: jsontext.Value(response),
			Parameters: jsontext.Value(`{}`)})
	}
	part := said("part", "whole", "", `"x"`) // a part is recorded before the whole
	stranger := said("else", "", "other", `"x"`)
	whole := said("whole", "", "", `"y"`)
	review := h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "u@example.com", Timestamp: "2026-01-01T00:00:05Z",
		OriginalResponseID: whole.Payload.RecordID, ApprovalStatus: evidence.Approved, Saw: []evidence.Digest{whole.Digest}})
	delivery := h.Seal(t, evidence.Payload{ActionType: evidence.Delivery, AgentID: "a", Timestamp: "2026-01-01T00:00:06Z", Response: jsontext.Value(`"y"`),
		OriginalResponseID: whole.Payload.RecordID, Saw: []evidence.Digest{whole.Digest, review.Digest}})
	said("else", "", "", `"x"`) // a request_id alone links nothing
	h.Seal(t, evidence.Payload{ActionType: evidence.Delivery, AgentID: "evil", Timestamp: "2026-01-01T00:00:07Z", Response: jsontext.Value(`"z"`),
		Saw: []evidence.Digest{whole.Digest}}) // nor does a delivery by another agent that has a copy

	want := []*evidence.Record{part, whole, review, delivery}
	for _, from := range want {
		got, cut, err := h.Ledger.Linked(t.Context(), from.Payload.RecordID)
		expect.Need(t, err == nil && cut == nil, "%v %v", err, cut)
		expect.Hold(t, slices.EqualFunc(got, want, func(a, b *evidence.Record) bool { return a.Digest == b.Digest }),
			"from %s: %d records", from.Payload.ActionType, len(got))
		r := verify.Bundle(h.Bundle(t, got...), h.Options(t))
		expect.Hold(t, r.Outcome == verify.Proved, "from %s: %s, %+v", from.Payload.ActionType, r.Outcome, r.Details)
	}
	got, cut, err := h.Ledger.Linked(t.Context(), stranger.Payload.RecordID)
	expect.Hold(t, err == nil && cut == nil && len(got) == 1, "%d, %v", len(got), err)
	_, _, err = h.Ledger.Linked(t.Context(), "nothing")
	expect.Want(t, err, ledger.ErrNotFound)
}

// TestLinkedByALaterActor checks that another actor's delivery counts once the case contains a record of that actor.
func TestLinkedByALaterActor(t *testing.T) {
	h := jurattest.New(t)
	said := func(agent, request, parent string) *evidence.Record {
		return h.Seal(t, evidence.Payload{ActionType: evidence.ModelOutput, AgentID: agent, RequestID: request, ParentRequestID: parent,
			Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "v", Prompt: jsontext.Value(`"p"`), Response: jsontext.Value(`"y"`),
			Parameters: jsontext.Value(`{}`)})
	}
	whole := said("a", "whole", "")
	delivery := h.Seal(t, evidence.Payload{ActionType: evidence.Delivery, AgentID: "b", Timestamp: "2026-01-01T00:00:07Z", Response: jsontext.Value(`"y"`),
		Saw: []evidence.Digest{whole.Digest}})
	got, _, err := h.Ledger.Linked(t.Context(), whole.Payload.RecordID)
	expect.Hold(t, err == nil && len(got) == 1, "%d records, %v", len(got), err)
	part := said("b", "part", "whole")
	for _, from := range []*evidence.Record{whole, delivery, part} {
		got, cut, err := h.Ledger.Linked(t.Context(), from.Payload.RecordID)
		expect.Hold(t, err == nil && cut == nil && len(got) == 3, "%d records, %v, %v", len(got), cut, err)
	}
}
