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

// maxQueued is how many callers can have sealed something and wait to have it appended. More wait before that, as long as
// their contexts let them.
const maxQueued = 1024

// An appending is what one caller wants appended, all of it or nothing.
type appending struct {
	records  []*evidence.Record
	rows     []storage.Row         // of the records, but for their places and counts
	briefs   []storage.StoredBrief // of the records, but for their places
	missing  [][]Missing           // for each record, who is still to stamp it
	since    time.Time             // since when the records wait for those
	stamps   []storage.Stamp       // of earlier records
	after    *chainEnd             // nil: whatever was appended to a chain meanwhile
	judgings []*links.Judging      // by what the links of each record are judged; nil: they are not
	refused  error                 // why what is committed does not let it in
	outcome  chan *outcome         // gets one, when it is known

	ready bool // guarded by the turn to commit: its records have all time stamps that they are to have
}

// An outcome is what became of an appending.
type outcome struct {
	err    error
	unsure bool // the store may have failed after it has stored
}

func newAppending(since time.Time, records []*evidence.Record, missing [][]Missing) *appending {
	a := &appending{records: records, missing: missing, since: since, outcome: make(chan *outcome, 1)}
	for _, record := range records {
		a.rows = append(a.rows, storage.RowOf(record))
	}
	a.judgings = make([]*links.Judging, len(records))
	return a
}

// alone reports whether a transaction is to store this and nothing else, because others may depend on it: after an event
// of a key others are judged by other keys, and stamps or the end of a chain have to be as they were seen.
func (a *appending) alone() bool {
	return a.after != nil || len(a.stamps) > 0 || a.urgent() || slices.ContainsFunc(a.records, aboutKeys)
}

// urgent reports whether this ends a token or a key, and nothing else: on a full disk a thief must not keep what he has.
func (a *appending) urgent() bool {
	return len(a.records) > 0 && !slices.ContainsFunc(a.records, func(r *evidence.Record) bool { return !revokes(&r.Payload) })
}

// revokes reports whether an act ends a token or a key.
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

// A queue holds what is to be appended, in the order in which it came.
type queue struct {
	seats chan struct{} // one element for each caller that was let in and has not gone

	mu   sync.Mutex // while it is held, nobody else looks at the list
	list []*appending
}

func newQueue() *queue { return &queue{seats: make(chan struct{}, maxQueued)} }

// enter lets a caller in, when there is room. Who was let in has to go again.
func (q *queue) enter(ctx context.Context, a *appending) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case q.seats <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%d are waiting already: %w", maxQueued, context.Cause(ctx))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list, a)
	return nil
}

func (q *queue) exit() { <-q.seats }

// holds reports whether something has not been taken yet.
func (q *queue) holds(a *appending) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Contains(q.list, a)
}

// withdraw takes back what has not been taken yet, and reports whether that was so: then it is in no log, and never will be.
func (q *queue) withdraw(a *appending) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.list)
	q.list = slices.DeleteFunc(q.list, func(other *appending) bool { return other == a })
	return len(q.list) < n
}

// unready lists what cannot be committed yet.
func (q *queue) unready() (list []*appending) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, a := range q.list {
		if !a.ready {
			list = append(list, a)
		}
	}
	return list
}

// choose returns what one transaction is to store, from the front. No two of them depend on each other, so that each can be
// judged by what is committed, and is judged rightly whatever becomes of this transaction. The rest is for the next.
func (q *queue) choose() (chosen []*appending) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ids := map[string]bool{}
	held := 0
	for _, a := range q.list {
		switch {
		case !a.ready:
			continue
		case slices.ContainsFunc(a.rows, func(row storage.Row) bool { return ids[row.RecordID] }):
			continue
		case a.alone() && len(chosen) > 0:
			return chosen // what comes after it does not pass it by for ever
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

// take takes those who were chosen and have not withdrawn meanwhile.
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
