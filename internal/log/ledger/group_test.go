package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/fsck"
	"jurat/internal/log/ledger/storage"
	expect "jurat/internal/test/must"
)

// slow takes a while for each transaction. It counts transactions, and can fail one.
type slow struct {
	storage.Store
	takes        time.Duration
	transactions int           // guarded by the ledger, which makes one at a time
	held         chan struct{} // while this is open, no transaction ends; nil: it is not held
	fail, stored bool          // fail the next transaction, after it is stored or not
	blind        bool          // no record can be looked up
	looking      time.Duration // how long it takes to look one up
}

func (s *slow) Append(ctx context.Context, plan storage.Plan) error {
	failed := false
	err := s.Store.Append(ctx, func(head storage.Head, log storage.Committed) (storage.Batch, error) {
		batch, err := plan(head, log)
		s.transactions++
		time.Sleep(s.takes)
		if s.held != nil {
			<-s.held
		}
		if failed, s.fail = s.fail && len(batch.Rows) > 1, s.fail && len(batch.Rows) <= 1; failed && !s.stored {
			err = errFault
		}
		return batch, err
	})
	if failed {
		err = errors.Join(err, errFault)
	}
	return err
}

func (s *slow) ByRecordID(ctx context.Context, id string) (storage.Row, error) {
	time.Sleep(s.looking)
	if s.blind {
		return storage.Row{}, errFault
	}
	return s.Store.ByRecordID(ctx, id)
}

// queued is a ledger with a queue under the test's control: one transaction is held until letGo.
type queued struct {
	*ledger.Ledger
	t     *testing.T
	store *slow
	cfg   ledger.Config
	all   sync.WaitGroup
}

func hold(t *testing.T, prepare ...func(*ledger.Ledger)) *queued {
	store := &slow{Store: fresh(t)}
	q := &queued{t: t, store: store, cfg: config(store)}
	q.Ledger = must(ledger.Create(t.Context(), q.cfg))
	for _, f := range prepare {
		f(q.Ledger)
	}
	store.transactions, store.held = 0, make(chan struct{})
	q.add(func() error { return only(q.Seal(t.Context(), act(`,"chain_id":"first"`), actor)) })
	return q
}

// add runs a caller that appends, and returns when the caller is blocked. The caller's result is set after letGo.
func (q *queued) add(do func() error) *error {
	q.t.Helper()
	pending := errors.New("pending")
	result := &pending
	q.all.Go(func() { *result = do() })
	synctest.Wait()
	expect.Hold(q.t, errors.Is(*result, pending), "the call returned before its transaction ended: %v", *result)
	return result
}

// seal adds a record with this id, and waits as long as the context allows.
func (q *queued) seal(ctx context.Context, id int) *error {
	return q.add(func() error { return only(q.Seal(ctx, act(`,"record_id":"`+numbered(id)+`"`), actor)) })
}

func numbered(id int) string { return fmt.Sprintf("01890000-0000-7000-8000-%012d", id) }

// letGo lets the transactions continue, and returns how many there were.
func (q *queued) letGo() int {
	close(q.store.held)
	q.all.Wait()
	return q.store.transactions
}

func (q *queued) has(id int) bool {
	q.t.Helper()
	_, err := q.store.Store.ByRecordID(q.t.Context(), numbered(id))
	if err != nil {
		wantError(q.t, err, ledger.ErrNotFound)
	}
	return err == nil
}

// TestGroups checks that everything that callers append during a transaction goes into the next one, in order of
// arrival and without gaps.
func TestGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := hold(t)
		const callers = 100
		for i := range callers {
			q.add(func() error {
				return only(q.Seal(t.Context(), act(`,"chain_id":"c","record_id":"`+numbered(i)+`"`), actor))
			})
		}
		expect.Equal(t, q.letGo(), 2)
		chain := must(q.Chain(t.Context(), "c")) // which checks them by their counts
		expect.Equal(t, len(chain), callers)
		for i, r := range chain {
			expect.Equal(t, r.Payload.RecordID, numbered(i))
		}
		wantClean(t, damagesOf(t, q.cfg))
	})
}

// TestGroupsUnderLoad lets callers come and go. They need far fewer transactions than records. A lone caller needs
// one for each record, and waits for nothing else.
func TestGroupsUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slow{Store: fresh(t), takes: time.Second}
		c := config(store)
		l := must(ledger.Create(t.Context(), c))
		begin := time.Now()
		sealMany(t, l, 5)
		if took := time.Since(begin); store.transactions != 5 || took != 5*time.Second {
			t.Errorf("a lone caller needed %d transactions and %v, by the clock of this test", store.transactions, took)
		}
		store.transactions = 0
		const callers, each = 64, 10
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				sealMany(t, l, each)
			})
		}
		all.Wait()
		n := store.transactions
		expect.Hold(t, n <= callers*each/10, "%d transactions for %d records", n, callers*each)
		expect.Equal(t, must(l.Size(t.Context())), 5+callers*each)
		wantClean(t, damagesOf(t, c))
	})
}

// TestBadAmongGood checks that a record that cannot be appended is refused alone.
func TestBadAmongGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := newOwner(t, "gone", false)
		there := act(`,"record_id":"` + numbered(0) + `"`)
		q := hold(t, func(l *ledger.Ledger) {
			gone.register(t, l)
			succeeds(t, tell(l, t, gone.event(operator.KeyRevoked, 0, evidence.RoleAgent)))
			must(l.Seal(t.Context(), there, actor))
		})
		good := []*error{q.seal(t.Context(), 1)}
		again := q.seal(t.Context(), 0)
		good = append(good, q.seal(t.Context(), 2))
		ended := q.add(func() error {
			return only(q.Seal(t.Context(), must(evidence.ParseDraft(signedDraft("gone"))), gone.signers))
		})
		good = append(good, q.seal(t.Context(), 3))
		twin := q.seal(t.Context(), 3) // with its neighbour's record_id and another signature
		misfit := q.add(func() error { return tell(q.Ledger, t, gone.event(operator.KeyRetired, 0, evidence.RoleAgent)) })
		good = append(good, q.seal(t.Context(), 4))

		// Expected transactions: the first record; all records before the event, except the twin; the twin; the event;
		// the rest. Two of them store nothing.
		expect.Equal(t, q.letGo(), 5)
		for _, err := range good {
			expect.Want(t, *err, nil)
		}
		wantError(t, *again, ledger.ErrDuplicate)
		wantError(t, *twin, ledger.ErrDuplicate)
		wantError(t, *ended, keys.ErrEnded)
		wantError(t, *misfit, keys.ErrEvent)
		var d *ledger.DuplicateError
		if !errors.As(*twin, &d) || d.RecordID != numbered(3) {
			t.Errorf("the twin: %v", *twin)
		} else if row := must(q.store.ByRecordID(t.Context(), numbered(3))); row.Index != d.Index {
			t.Errorf("the twin of %d is said to be at %d", row.Index, d.Index)
		}
		expect.Equal(t, must(q.Size(t.Context())), 3+1+int64(len(good)))
	})
}

// TestInTurn checks that a record that depends on an earlier one in the queue is judged as if it had come later.
func TestInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newOwner(t, "a", false), newOwner(t, "b", false)
		q := hold(t, func(l *ledger.Ledger) { a.register(t, l); b.register(t, l) })
		says := func(o *owner) func() error {
			return func() error {
				return only(q.Seal(t.Context(), must(evidence.ParseDraft(signedDraft(o.name))), o.signers))
			}
		}
		revoke := func(o *owner) func() error {
			return func() error { return tell(q.Ledger, t, o.event(operator.KeyRevoked, 0, evidence.RoleAgent)) }
		}
		before := q.add(says(a))
		events := []*error{q.add(revoke(a)), q.add(revoke(b))} // both name the same end of the chain
		after := q.add(says(a))
		neighbour := q.seal(t.Context(), 1)
		q.letGo()
		wantError(t, *after, keys.ErrEnded)
		for _, err := range append(events, before, neighbour) {
			expect.Want(t, *err, nil)
		}
		keys := must(q.Keys(t.Context())) // reads the chain by its rules
		for _, o := range []*owner{a, b} {
			expect.Equal(t, len(keys.Active(evidence.RoleAgent, o.name, time.Now())), 0)
		}
	})
}

// TestEventsInTurn checks two events that each fit what is committed, but do not fit each other.
func TestEventsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := hold(t)
		first := func(o *owner) func() error {
			return func() error {
				_, err := q.Seal(t.Context(), must(evidence.NewDraft(evidence.Payload{ActionType: evidence.KeyEvent, AgentID: "operator",
					Timestamp: "2000-01-01T00:00:00Z", ChainID: operator.KeysChain, ChainPosition: 1,
					Response: must(operator.Encode(o.event(operator.KeyRegistered, 0, evidence.RoleAgent)))})), actor)

				return err
			}
		}
		one, two := q.add(first(newOwner(t, "a", false))), q.add(first(newOwner(t, "b", false)))
		q.letGo()
		expect.Want(t, *one, nil)
		wantError(t, *two, keys.ErrEvent)
		expect.Equal(t, must(q.Keys(t.Context())).Count(), 1)
	})
}

// TestAnchorsInTurn checks two acts that both want to follow the same one: the second follows the first.
func TestAnchorsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := hold(t)
		checkpoint := must(q.Checkpoint(t.Context()))
		for _, authority := range []string{"one", "two"} {
			defer func(err *error) {
				expect.Want(t, *err, nil)
			}(q.add(func() error {
				return only(q.Anchor(t.Context(), operator.CheckpointStampBody{Authority: authority, Checkpoint: checkpoint, Token: []byte(authority)}, actor))
			}))
		}
		q.letGo()
		acts := must(q.Chain(t.Context(), operator.CheckpointsChain))
		expect.Hold(t, len(acts) == 2 && acts[1].Payload.PreviousRecord == acts[0].Digest,
			"%d acts, of which the second does not follow the first", len(acts))
	})
}

// forgetful is a store that reports every record as missing until it must store it again.
type forgetful struct{ storage.Store }

type blank struct{ storage.Committed }

func (b blank) Find(q storage.Query) (storage.Found, error) {
	q.RecordIDs = nil
	return b.Committed.Find(q)
}

func (f forgetful) Append(ctx context.Context, plan storage.Plan) error {
	return f.Store.Append(ctx, func(head storage.Head, log storage.Committed) (storage.Batch, error) { return plan(head, blank{log}) })
}

// TestForgetfulStore checks that a duplicate that only the store notices affects only its own caller.
func TestForgetfulStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slow{Store: forgetful{fresh(t)}}
		q := &queued{t: t, store: store, cfg: config(store)}
		q.Ledger = must(ledger.Create(t.Context(), q.cfg))
		must(q.Seal(t.Context(), act(`,"record_id":"`+numbered(0)+`"`), actor))
		store.held = make(chan struct{})
		q.seal(t.Context(), 1)
		again, neighbour := q.seal(t.Context(), 0), q.seal(t.Context(), 2)
		q.letGo()
		wantError(t, *again, ledger.ErrDuplicate)
		wantError(t, *neighbour, ledger.ErrDamaged)
		expect.Hold(t, !errors.Is(*neighbour, ledger.ErrDuplicate) && !q.has(2), "the neighbour: %v, in the log: %v", *neighbour, q.has(2))
	})
}

// TestSettledInAGroup lets two callers bring the same stamps while others seal. One succeeds, and the others are not
// affected.
func TestSettledInAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slow{Store: fresh(t)}
		c := config(store)
		c.Stamper, c.Settler = silent("one"), clock{}
		l := must(ledger.Create(t.Context(), c))
		sealMany(t, l, 3)
		pending := must(l.Waiting(t.Context(), "one", 0, 10))
		q := &queued{t: t, Ledger: l, store: store, cfg: c}
		store.held = make(chan struct{})
		q.seal(t.Context(), 1)
		var settled [2]int
		var results []*error
		for i := range settled {
			results = append(results, q.add(func() (err error) {
				settled[i], err = q.Settle(t.Context(), lateStamps(pending), actor)
				return err
			}), q.seal(t.Context(), 2+i))
		}
		q.letGo()
		for _, err := range results {
			expect.Want(t, *err, nil)
		}
		expect.Equal(t, settled, [2]int{3, 0})
		wantOwing(t, l, "one 3") // the three sealed meanwhile
		found := must(fsck.Run(t.Context(), examined(c), fsck.Options{}))
		wantClean(t, found)
	})
}

// TestGroupFails checks that, after a failed transaction of many, each caller learns the outcome of its own record.
func TestGroupFails(t *testing.T) {
	for name, test := range map[string]struct {
		stored, blind bool
		want          error
	}{
		"not stored":                 {want: errFault},
		"stored":                     {stored: true},
		"not stored, and reads fail": {blind: true, want: ledger.ErrUnknown},
		"stored, and reads fail":     {stored: true, blind: true, want: ledger.ErrUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := hold(t, func(l *ledger.Ledger) {
					must(l.Seal(t.Context(), act(`,"record_id":"`+numbered(0)+`"`), actor))
				})
				again := q.seal(t.Context(), 0)
				const members = 20
				var results []*error
				for i := range members {
					results = append(results, q.seal(t.Context(), i+1))
				}
				q.store.fail, q.store.stored, q.store.blind = true, test.stored, test.blind
				q.letGo()
				q.store.blind = false
				for i, err := range results {
					wantError(t, *err, test.want)
					if test.want != nil {
						wantError(t, *err, errFault)
						id := numbered(i + 1)
						expect.Hold(t, !test.blind || strings.Contains((*err).Error(), id), "%v does not name record %s", *err, id)
					}
					expect.Hold(t, !errors.Is(*err, ledger.ErrDuplicate), "record %d is said to be there: %v", i+1, *err)
					expect.Equal(t, q.has(i+1), test.stored)
				}
				wantError(t, *again, ledger.ErrDuplicate) // checked against what was committed before
				for i := range members {                  // as callers do that got an error
					_, err := q.Seal(t.Context(), act(`,"record_id":"`+numbered(i+1)+`"`), actor)
					if test.stored {
						wantError(t, err, ledger.ErrDuplicate)
					} else if err != nil {
						t.Error(err)
					}
				}
				expect.Equal(t, must(q.Size(t.Context())), 2+members)
				wantClean(t, damagesOf(t, q.cfg))
			})
		})
	}
}

// counting makes each token different.
type counting struct{ n byte }

func (c *counting) Stamp(context.Context, [32]byte) (ledger.Stamped, error) {
	c.n++
	return ledger.Stamped{Tokens: [][]byte{{c.n}}}, nil
}

// TestStoredByAnother checks a record that another caller appended after this caller's transaction failed. The log
// has the other caller's time stamps, so this caller's record is not the one in the log.
func TestStoredByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slow{Store: fresh(t)}
		q := &queued{t: t, store: store, cfg: config(store)}
		q.cfg.Stamper, q.cfg.Now = new(counting), func() time.Time { return time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC) }
		q.Ledger = must(ledger.Create(t.Context(), q.cfg))
		a := newOwner(t, "a", false)
		a.register(t, q.Ledger)
		signed := a.says(t, "")
		accept := func() error { return only(q.Accept(t.Context(), signed)) }
		store.held = make(chan struct{})
		q.seal(t.Context(), 0)
		first, neighbour, second := q.add(accept), q.seal(t.Context(), 1), q.add(accept)
		q.store.fail, q.store.looking = true, time.Second // by the clock of this test: the other is done before
		q.letGo()
		wantError(t, *first, errFault)
		wantError(t, *first, ledger.ErrDuplicate)
		wantError(t, *neighbour, errFault)
		expect.Want(t, *second, nil)
	})
}

// TestCancelledInQueue checks that a caller that gives up before its record is taken leaves no record, and afterwards
// gets the true outcome.
func TestCancelledInQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slow{Store: fresh(t), held: make(chan struct{})}
		q := &queued{t: t, store: store, cfg: config(store)}
		q.Ledger = must(ledger.Create(t.Context(), q.cfg))
		ctx, cancel := context.WithCancel(t.Context())
		taken := q.seal(ctx, 1)
		waits := q.seal(ctx, 2)
		stays := q.seal(t.Context(), 3)
		cancel()
		synctest.Wait()
		wantError(t, *waits, context.Canceled)
		q.letGo()
		for _, err := range []*error{taken, stays} {
			expect.Want(t, *err, nil)
		}
		expect.Hold(t, q.has(1) && !q.has(2) && q.has(3), "in the log: %v, %v, %v", q.has(1), q.has(2), q.has(3))
		wantClean(t, damagesOf(t, q.cfg))
	})
}

// TestCommitterGivesUp checks that the others do not notice when the caller that commits for all waits for another
// process and gives up.
func TestCommitterGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := hold(t) // in the other process
		c := config(q.store.Store)
		here := must(ledger.Open(t.Context(), c))
		other := &queued{t: t, store: q.store, Ledger: here}
		ctx, cancel := context.WithCancel(t.Context())
		first := other.seal(ctx, 1)
		second := other.seal(t.Context(), 2)
		cancel()
		synctest.Wait()
		wantError(t, *first, context.Canceled)
		q.letGo()
		other.all.Wait()
		expect.Want(t, *second, nil)
		expect.Hold(t, !q.has(1) && q.has(2), "in the log: %v, %v", q.has(1), q.has(2))
		wantClean(t, damagesOf(t, c))
	})
}

// TestQueueIsBounded checks that the queue has a limit, and that further callers wait outside until their contexts
// end.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := hold(t)
		ctx, cancel := context.WithCancel(t.Context())
		const callers = 1100
		results := make([]error, callers)
		for i := range results {
			q.all.Go(func() { _, results[i] = q.Seal(ctx, act(""), actor) })
		}
		synctest.Wait()
		taken, all := q.Seats()
		expect.Hold(t, taken == 1024 && all == 1024, "%d of %d seats are taken, want 1024 of 1024", taken, all)
		impatient, goes := context.WithCancel(t.Context())
		outside := q.seal(impatient, 0)
		goes()
		synctest.Wait()
		if err := *outside; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "1024 callers are waiting already") {
			t.Errorf("a caller that finds no place in the queue and leaves gets %v", err)
		}
		cancel()
		synctest.Wait()
		for _, err := range results {
			wantError(t, err, context.Canceled)
		}
		next := q.seal(t.Context(), 1)
		q.letGo()
		if size := must(q.Size(t.Context())); *next != nil || size != 2 {
			t.Errorf("%d records, %v", size, *next)
		}
	})
}

// TestClosedWithAQueue checks that no caller waits for ever after the ledger is closed.
func TestClosedWithAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := hold(t)
		var results []*error
		for i := range 5 {
			results = append(results, q.seal(t.Context(), i))
		}
		closed := q.add(q.Close)
		if q.letGo(); *closed != nil {
			t.Error(*closed)
		}
		for _, err := range results {
			wantError(t, *err, ledger.ErrClosed)
		}
	})
}
