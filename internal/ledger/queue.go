package ledger

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger/links"
	"jurat/internal/ledger/storage"
)

// maxQueued is how many callers with sealed records can be in the queue. Others wait to enter it until their contexts
// end.
const maxQueued = 1024

// An appending is what one caller wants appended, all of it or nothing.
type appending struct {
	records  []*evidence.Record
	rows     []storage.Row         // of the records, without places and counts
	briefs   []storage.StoredBrief // of the records, without places
	missing  [][]Missing           // for each record, the authorities that have not stamped it
	since    time.Time             // since when the records wait for them
	stamps   []storage.Stamp       // of earlier records
	after    *chainEnd             // where a chain must end; nil: anywhere
	judged   []judged              // whom each record judges
	judgings []*links.Judging      // what the links of each record are judged by; nil: they are not judged
	kept     func() error          // waits until what is sealed apart of the records is durable; nil: it is
	refused  error                 // why the committed records do not permit it
	outcome  chan *outcome         // gets one, when it is known
}

// An outcome is the result of an appending.
type outcome struct {
	err    error
	unsure bool // an error may have come after the records were stored
}

func newAppending(since time.Time, records []*evidence.Record, missing [][]Missing) *appending {
	a := &appending{records: records, missing: missing, since: since, outcome: make(chan *outcome, 1)}
	for _, record := range records {
		row := storage.RowOf(record)
		row.Actor = storage.ActorOf(&record.Payload)
		a.rows = append(a.rows, row)
	}
	a.judgings = make([]*links.Judging, len(records))
	return a
}

// alone reports whether this must be the only appending of its transaction. After a key event, other records are
// judged by other keys. Stamps and the end of a chain must still be as the caller saw them. What is not kept yet may
// never be.
func (a *appending) alone() bool {
	return a.after != nil || a.kept != nil || len(a.stamps) > 0 || a.urgent() || slices.ContainsFunc(a.records, aboutKeys)
}

// urgent reports whether this only revokes tokens or keys: even on a full disk the operator must be able to stop a
// thief.
func (a *appending) urgent() bool {
	return len(a.records) > 0 && !slices.ContainsFunc(a.records, func(r *evidence.Record) bool { return !revokes(&r.Payload) })
}

// revokes reports whether an act revokes a token or a key.
func revokes(p *evidence.Payload) bool {
	switch p.ActionType {
	case evidence.AccessEvent:
		e, err := operator.ReadAccessEvent(p)
		return err == nil && e.Event == operator.AccessRevoked
	case evidence.KeyEvent:
		e, err := operator.Read[operator.KeyEventBody](p)
		return err == nil && e.Event == operator.KeyRevoked
	}
	return false
}

func (a *appending) bytes() (n int) {
	for _, r := range a.records {
		n += len(r.Canonical())
	}
	return n
}

// A queue holds what is to be appended, in order of arrival.
type queue struct {
	seats chan struct{} // one element for each caller between enter and exit

	mu   sync.Mutex // guards list
	list []*appending
}

func newQueue() *queue { return &queue{seats: make(chan struct{}, maxQueued)} }

// enter adds a caller to the queue when there is room, or returns the context's cause. After success, the caller must
// call exit.
func (q *queue) enter(ctx context.Context, a *appending) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case q.seats <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%d callers are waiting already: %w", maxQueued, context.Cause(ctx))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list, a)
	return nil
}

func (q *queue) exit() { <-q.seats }

// holds reports whether an appending is still in the queue.
func (q *queue) holds(a *appending) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Contains(q.list, a)
}

// withdraw removes an appending that is still in the queue, and reports whether it did. If so, its records are in no
// log.
func (q *queue) withdraw(a *appending) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.list)
	q.list = slices.DeleteFunc(q.list, func(other *appending) bool { return other == a })
	return len(q.list) < n
}

// choose returns what one transaction is to store, from the front of the queue. No two of them depend on each other.
// So each can be judged by what is committed, whether this transaction succeeds or not. The rest is left for the next
// one.
func (q *queue) choose() (chosen []*appending) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ids := map[string]bool{}
	held := 0
	for _, a := range q.list {
		switch {
		case slices.ContainsFunc(a.rows, func(row storage.Row) bool { return ids[row.RecordID] }):
			continue
		case a.alone() && len(chosen) > 0:
			return chosen // later ones must not overtake it for ever
		}
		chosen = append(chosen, a)
		for i := range a.rows {
			ids[a.rows[i].RecordID] = true
		}
		if held += a.bytes(); a.alone() || held >= MaxHeld {
			return chosen
		}
	}
	return chosen
}

// take removes and returns the chosen appendings that were not withdrawn meanwhile.
func (q *queue) take(chosen []*appending) (taken []*appending) {
	are := make(map[*appending]bool, len(chosen))
	for _, a := range chosen {
		are[a] = true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	var rest []*appending
	for _, a := range q.list {
		if are[a] {
			taken = append(taken, a)
		} else {
			rest = append(rest, a)
		}
	}
	q.list = rest
	return taken
}
