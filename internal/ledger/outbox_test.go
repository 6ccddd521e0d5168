package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
	"jurat/internal/ledger/fsck"
	"jurat/internal/ledger/storage"
	expect "jurat/internal/must"
)

var errSilent = errors.New("no answer")

// silent is the clock beside an authority that does not answer.
func silent(names ...string) outage {
	var o outage
	for _, name := range names {
		o.missing = append(o.missing, ledger.Missing{Authority: name, Reason: errSilent})
	}
	return o
}

// halfSilent returns the clock's token, and makes records wait for other authorities.
type halfSilent struct{ outage }

func (h halfSilent) Stamp(ctx context.Context, imprint [32]byte) (ledger.Stamped, error) {
	stamped, err := clock{}.Stamp(ctx, imprint)
	stamped.Missing = h.missing
	return stamped, err
}

// lateStamp is the late stamp that the fixture's authorities give.
func lateStamp(p ledger.Pending) ledger.LateStamp {
	imprint := p.Record.Imprint()
	return ledger.LateStamp{Pending: p, Timestamp: evidence.Timestamp{Kind: evidence.RFC3161,
		Token: append([]byte("late by "+p.Authority+" "), imprint[:]...)}}
}

func lateStamps(pending []ledger.Pending) (stamps []ledger.LateStamp) {
	for _, p := range pending {
		stamps = append(stamps, lateStamp(p))
	}
	return stamps
}

func owing(t testing.TB, l *ledger.Ledger) string {
	t.Helper()
	var lines []string
	for _, o := range must(l.Owing(t.Context())) {
		lines = append(lines, fmt.Sprint(o.Authority, " ", o.Records))
	}
	return strings.Join(lines, ", ")
}

func wantOwing(t testing.TB, l *ledger.Ledger, want string) {
	t.Helper()
	if got := owing(t, l); got != want {
		t.Errorf("owing %q, want %q", got, want)
	}
}

// lateActs returns the log's late_stamp acts, after checking each against the records that it names.
func lateActs(t testing.TB, l *ledger.Ledger) (acts []*evidence.Record) {
	t.Helper()
	for r, err := range l.Records(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Payload.ActionType != evidence.LateStamp {
			continue
		}
		acts = append(acts, r.Record)
		body := must(operator.Read[operator.LateStampBody](&r.Payload))
		for _, s := range body.Stamps {
			stamped := must(l.RecordByDigest(t.Context(), s.Record))
			if !slices.ContainsFunc(stamped.Timestamps, func(t evidence.Timestamp) bool { return evidence.DigestOf(t.Token) == s.Token }) {
				t.Errorf("act %s names a stamp that record %s does not have", r.Payload.RecordID, stamped.Payload.RecordID)
			}
			if !slices.Contains(r.Payload.Saw, s.Record) {
				t.Errorf("act %s does not have %v in saw", r.Payload.RecordID, s.Record)
			}
		}
	}
	return acts
}

// TestWaiting seals while authorities are silent, with and without another authority's token, and stamps later.
func TestWaiting(t *testing.T) {
	f := folder(t.TempDir())
	f.create(t).Close()
	l := f.with(t, halfSilent{silent("one", "two")})
	half := seal(t, l, `,"chain_id":"c"`)
	l.Close()
	l = f.with(t, silent("one"))
	bare := seal(t, l, `,"chain_id":"c"`)
	if len(half.Timestamps) != 1 || len(bare.Timestamps) != 0 {
		t.Errorf("%d and %d time stamps, want 1 and 0", len(half.Timestamps), len(bare.Timestamps))
	}
	wantOwing(t, l, "one 2, two 1")
	wantClean(t, f.fsck(t))
	l.Close()

	l = f.with(t, clock{})
	pending := must(l.Waiting(t.Context(), "one", 0, 10))
	if len(pending) != 2 || pending[0].Record.Digest != half.Digest || pending[1].Record.Digest != bare.Digest {
		t.Fatalf("waiting %v", pending)
	}
	if since := pending[0].Since; since.After(time.Now()) || since.Before(time.Now().Add(-time.Hour)) {
		t.Errorf("waiting since %v", since)
	}
	expect.Give(l.Settle(t.Context(), lateStamps(pending), actor))(t, 2)
	wantOwing(t, l, "two 1")
	expect.Give(l.Settle(t.Context(), lateStamps(pending), actor))(t, 0)
	acts := lateActs(t, l)
	if len(acts) != 1 || acts[0].Payload.AgentID != ledger.OperatorName || len(acts[0].Timestamps) != 1 {
		t.Fatalf("acts %v", acts)
	}
	// What was returned by Seal is proved with all the time stamps that the log has by now.
	bundle := must(l.Prove(t.Context(), half, bare))
	for i, want := range []int{2, 1} {
		if got := len(bundle.Records[i].Timestamps); got != want {
			t.Errorf("record %d is proved with %d time stamps, want %d", i, got, want)
		}
	}
	found := must(fsck.Run(t.Context(), examined(f.config(must(f.store(t)))), fsck.Options{}))
	wantClean(t, found)
	expect.Give(l.Forget(t.Context(), "two"))(t, 1)
	wantOwing(t, l, "")
}

// TestActsNeverWait checks that an act about stamps waits for no authority, and is not sealed without any token.
func TestActsNeverWait(t *testing.T) {
	store := fresh(t)
	c := config(store)
	c.Stamper = silent("one")
	l := must(ledger.Create(t.Context(), c))
	seal(t, l, "")
	pending := must(l.Waiting(t.Context(), "one", 0, 10))
	fails(t, errSilent)(l.Settle(t.Context(), lateStamps(pending), actor))
	wantOwing(t, l, "one 1")

	c.Settler = halfSilent{silent("one")}
	l = must(ledger.Open(t.Context(), c))
	expect.Give(l.Settle(t.Context(), lateStamps(pending), actor))(t, 1)
	wantOwing(t, l, "")
	if acts := lateActs(t, l); len(acts) != 1 {
		t.Errorf("%d acts", len(acts))
	}
}

func TestSettleRefuses(t *testing.T) {
	l, _ := alone(t)
	waiting := func(n int) []ledger.LateStamp {
		stamps := make([]ledger.LateStamp, n)
		for i := range stamps {
			stamps[i] = lateStamp(ledger.Pending{Wait: storage.Wait{Authority: "one"}, Record: seal(t, l, "")})
		}
		return stamps
	}
	expect.Give(l.Settle(t.Context(), waiting(2), actor))(t, 0)
	many := slices.Repeat(waiting(1), operator.MaxLateStamps+1)
	if _, err := l.Settle(t.Context(), many, actor); err == nil || !strings.Contains(err.Error(), "501 stamps") {
		t.Errorf("too many: %v", err)
	}
	if _, err := l.Settle(t.Context(), slices.Repeat(waiting(1), 2), actor); err == nil || !strings.Contains(err.Error(), "two stamps for record") {
		t.Errorf("twice: %v", err)
	}
	sundial := waiting(1)
	sundial[0].Timestamp.Kind = "sundial"
	if _, err := l.Settle(t.Context(), sundial, actor); err == nil || !strings.Contains(err.Error(), "sundial") {
		t.Errorf("another kind: %v", err)
	}
	if acts := lateActs(t, l); len(acts) != 0 {
		t.Errorf("%d acts", len(acts))
	}
}

// TestSettledByTwo lets two processes bring the same stamps: each record gets its stamp once, and one act says so.
func TestSettledByTwo(t *testing.T) {
	store := fresh(t)
	c := config(store)
	c.Stamper, c.Settler = silent("one"), clock{}
	l := must(ledger.Create(t.Context(), c))
	sealMany(t, l, 3)
	pending := must(l.Waiting(t.Context(), "one", 0, 10))
	race := &racing{Store: store}
	race.first = func() {
		other := must(ledger.Open(t.Context(), c))
		expect.Give(other.Settle(t.Context(), lateStamps(pending[1:2]), actor))(t, 1)
	}
	c.Store = race
	mine := must(ledger.Open(t.Context(), c))
	expect.Give(mine.Settle(t.Context(), lateStamps(pending), actor))(t, 2)
	if acts := lateActs(t, l); len(acts) != 2 {
		t.Errorf("%d acts", len(acts))
	}
	wantOwing(t, l, "")
	for r := range l.Records(t.Context(), 0) {
		if len(r.Timestamps) != 1 {
			t.Errorf("record %s has %d time stamps", r.Payload.RecordID, len(r.Timestamps))
		}
	}
}

// racing lets another caller go first, once.
type racing struct {
	storage.Store
	first func()
}

func (r *racing) Append(ctx context.Context, plan storage.Plan) error {
	if first := r.first; first != nil {
		r.first = nil
		first()
	}
	return r.Store.Append(ctx, plan)
}

// TestOutboxFaults fails every write of sealing and settling in turn, stored or not, and tries again as a caller would.
func TestOutboxFaults(t *testing.T) {
	runs := 0
	for _, stored := range []bool{false, true} {
		for n := 3; ; n++ { // the first two writes are of Create
			f := &faulty{Store: fresh(t), n: n, stored: stored}
			c := config(f)
			c.Stamper, c.Settler = silent("one", "two"), clock{}
			c.Published = &outside{f: f}
			t.Run(fmt.Sprintf("write %d, stored %v", n, stored), func(t *testing.T) {
				l := must(ledger.Create(t.Context(), c))
				for i := range 3 {
					again(t, func() error {
						_, err := l.Seal(t.Context(), act(fmt.Sprintf(`,"record_id":"01890000-0000-7000-8000-%012d"`, i)), actor)
						if errors.Is(err, ledger.ErrDuplicate) {
							err = nil
						}
						return err
					})
				}
				wantOwing(t, l, "one 3, two 3")
				for _, authority := range []string{"one", "two"} {
					for range 2 { // two at a time
						again(t, func() error {
							return only(l.Settle(t.Context(), lateStamps(must(l.Waiting(t.Context(), authority, 0, 2))), actor))
						})
					}
				}
				wantOwing(t, l, "")
				if acts := lateActs(t, l); len(acts) != 4 {
					t.Errorf("%d acts, want 4", len(acts))
				}
				for r := range l.Records(t.Context(), 0) {
					if want := map[bool]int{true: 1, false: 2}[r.Payload.ActionType == evidence.LateStamp]; len(r.Timestamps) != want {
						t.Errorf("%s has %d time stamps, want %d", r.Payload.ActionType, len(r.Timestamps), want)
					}
				}
				found := must(fsck.Run(t.Context(), examined(c), fsck.Options{}))
				wantClean(t, found)
			})
			if !f.failed {
				break
			}
			runs++
		}
	}
	if runs < 14 {
		t.Errorf("only %d writes failed", runs)
	}
}

// again repeats an operation after a fault.
func again(t *testing.T, try func() error) {
	t.Helper()
	if err := try(); err != nil {
		wantError(t, err, errFault)
		wantError(t, try(), nil)
	}
}

// with opens the ledger with another stamper. The clock stamps that ledger's own acts.
func (f folder) with(t testing.TB, s ledger.Stamper) *ledger.Ledger {
	t.Helper()
	c := f.config(must(f.store(t)))
	c.Stamper, c.Settler = s, clock{}
	l := must(ledger.Open(t.Context(), c))
	t.Cleanup(func() { l.Close() })
	return l
}

// TestWaitingIsBounded checks that at most a fixed amount of waiting records is in memory at once, and that none is
// left out.
func TestWaitingIsBounded(t *testing.T) {
	c := config(fresh(t))
	c.Stamper, c.Settler = silent("one"), clock{}
	l := must(ledger.Create(t.Context(), c))
	const size, n = 5 << 20, 9
	large := act(`,"context":"` + strings.Repeat("x", size) + `"`)
	for range n {
		must(l.Seal(t.Context(), large, actor))
	}
	found := 0
	for from := int64(0); ; {
		page := must(l.Waiting(t.Context(), "one", from, 500))
		if len(page) == 0 {
			break
		}
		if held := len(page) * size; held > ledger.MaxHeld+size {
			t.Errorf("%d bytes at once", held)
		}
		found, from = found+len(page), page[len(page)-1].Index+1
	}
	expect.Equal(t, found, n)
}
