package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/keyhistory"
)

// settleTime is how long a ledger looks for a record of which the store did not say whether it is stored.
const settleTime = 10 * time.Second

// errAllRefused ends a transaction in which there is nothing to store.
var errAllRefused = errors.New("nothing of this can be appended")

// append gives sealed records the next places in the log, if their signers may sign, and returns when they are durable.
//
// Whoever is in the queue when nobody is committing commits for all who are in it. So a lone caller waits for nothing but
// its own transaction, and of many the more go into one the longer one takes.
func (l *Ledger) append(ctx context.Context, a *appending) error {
	if err := l.queue.enter(ctx, a); err != nil {
		return fmt.Errorf("waiting to append: %w", err)
	}
	defer l.queue.exit()
	for {
		select {
		case out := <-a.outcome:
			return l.conclude(ctx, a, out)
		case l.writing <- struct{}{}:
			err := l.commitFor(ctx, a)
			l.writing.release()
			if err != nil && l.queue.withdraw(a) {
				return fmt.Errorf("appending: %w", err)
			}
		case <-ctx.Done():
			if l.queue.withdraw(a) {
				return fmt.Errorf("waiting to append: %w", ctx.Err())
			}
			return l.conclude(ctx, a, <-a.outcome) // it was taken: from then on what counts is whether it is stored
		}
	}
}

// commitFor commits what is in the queue, unless somebody else has taken this caller's from it. If there is an error,
// nothing was taken, and it is this caller's alone: the others find out for themselves.
func (l *Ledger) commitFor(ctx context.Context, a *appending) error {
	for l.queue.holds(a) {
		keys, err := l.knownKeys(ctx)
		if err != nil {
			return err
		}
		err = l.commit(ctx, keys)
		if !errors.Is(err, errKeysMoved) {
			return err
		}
		l.keys.Store(nil) // they have changed: look again
	}
	return nil
}

// commit makes one transaction of what is in the queue when it begins.
func (l *Ledger) commit(ctx context.Context, keys *keyhistory.History) error {
	g := &group{keys: keys, now: l.cfg.Now, chains: map[string]int64{}, cases: map[evidence.Digest]int64{}}
	err := l.cfg.Store.Append(ctx, func(head Head, log Committed) (Batch, error) {
		tree, err := l.treeOf(head, log)
		if err != nil {
			return Batch{}, err
		}
		if err := keysStand(log, keys); err != nil {
			return Batch{}, err
		}
		// Up to here every caller can still go. A crash from here on finds out what Append has done, and no caller has heard of it.
		g.log, g.tree, g.members = log, tree, l.queue.take()
		return g.plan()
	})
	if err == nil {
		l.tree = g.next
		l.learn(g.next.head)
	}
	if len(g.members) == 0 {
		return err
	}
	g.tell(err)
	return nil
}

// treeOf returns the tree of a log that is locked: the one that this process made, or, when another process has
// appended since, or after an error, the one in the store, if it contains all that this process knows of.
func (l *Ledger) treeOf(head Head, hashes tlog.HashReader) (*tree, error) {
	if l.tree != nil && l.tree.head == head {
		return l.tree, nil
	}
	if err := contains(head, *l.known.Load(), hashes); err != nil {
		return nil, err
	}
	return loadTree(head, hashes)
}

// conclude says what became of something, as far as the caller has to find it out.
func (l *Ledger) conclude(ctx context.Context, a *appending, out *outcome) error {
	if out.unsure {
		return l.whatBecameOf(ctx, a.records[0], fmt.Errorf("appending: %w", out.err))
	}
	return out.err
}

// whatBecameOf finds out what became of a record whose append failed: a store can fail after it has stored. The record
// answers for all that was to be stored with it, as that is stored together or not at all.
func (l *Ledger) whatBecameOf(ctx context.Context, record *evidence.Record, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	row, err := l.cfg.Store.ByRecordID(ctx, record.Payload.RecordID)
	if errors.Is(err, ErrNotFound) {
		return cause
	}
	if err != nil {
		return fmt.Errorf("%w: record %s: %w; looking for it: %w", ErrUnknown, record.Payload.RecordID, cause, err)
	}
	stored, err := openRow(&row)
	if err != nil {
		return fmt.Errorf("%w: %w", cause, err)
	}
	if !same(stored, record) || !holdsStamps(stored, record) {
		return fmt.Errorf("%w: %w", cause, &DuplicateError{RecordID: row.RecordID, Index: row.Index, Field: "record_id"})
	}
	return nil // it was stored all the same
}

// holdsStamps reports whether a stored record has all the time stamps of a sealed one. Somebody else can have appended the
// same, which has other stamps, after this one had failed.
func holdsStamps(stored, record *evidence.Record) bool {
	for _, t := range record.Timestamps {
		if !slices.ContainsFunc(stored.Timestamps, func(has evidence.Timestamp) bool { return bytes.Equal(has.Token, t.Token) }) {
			return false
		}
	}
	return true
}

// A group is what one transaction stores.
type group struct {
	members []*appending

	// What they are judged by: all that is committed.
	log  Committed
	tree *tree
	keys *keyhistory.History
	now  func() time.Time

	// What becomes of it.
	batch  Batch
	leaves []tlog.Hash
	chains map[string]int64 // how many records a chain has, with those in the batch
	cases  map[evidence.Digest]int64
	next   *tree
}

// plan decides which members can be appended, and where each comes to stand.
func (g *group) plan() (Batch, error) {
	for _, a := range g.members {
		var err error
		if a.refused, err = g.judge(a); err != nil {
			return Batch{}, err
		}
		if a.refused != nil {
			continue
		}
		if err := g.add(a); err != nil {
			return Batch{}, err
		}
	}
	if len(g.batch.Rows) == 0 {
		return Batch{}, errAllRefused
	}
	var err error
	g.next, g.batch.Hashes, err = g.tree.grow(g.leaves)
	if err != nil {
		return Batch{}, err
	}
	g.batch.Next = g.next.head
	return g.batch, nil
}

// judge says why what is committed does not let something in. The second error says that this cannot be found out.
func (g *group) judge(a *appending) (refusal, err error) {
	for _, row := range a.rows {
		index, err := g.log.Index(row.RecordID)
		if err == nil {
			return &DuplicateError{RecordID: row.RecordID, Index: index, Field: "record_id"}, nil
		}
		if !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	}
	if a.after != nil {
		count, err := g.log.ChainCount(a.after.chain)
		if err != nil {
			return nil, err
		}
		if count != a.after.count {
			return errMoved, nil
		}
	}
	return admit(g.keys, a.records, g.now), nil
}

// add gives records their places.
func (g *group) add(a *appending) error {
	for i := range a.rows {
		row := a.rows[i]
		row.Index = g.tree.head.Size + int64(len(g.batch.Rows))
		if err := g.count(&row); err != nil {
			return err
		}
		g.batch.Rows, g.leaves = append(g.batch.Rows, row), append(g.leaves, leafOf(a.records[i], row.Counts))
		g.batch.Waits = append(g.batch.Waits, waits(row.Index, a.missing[i], a.since)...)
	}
	g.batch.Stamps = append(g.batch.Stamps, a.stamps...)
	return nil
}

// count says of a new row which one it is of its chain and of its case, after those in the log and those before it here.
func (g *group) count(row *Row) (err error) {
	if row.ChainID != "" {
		if row.Counts.ChainSeq, err = next(g.chains, row.ChainID, g.log.ChainCount); err != nil {
			return fmt.Errorf("counting chain %q: %w", row.ChainID, err)
		}
	}
	if !row.Case.IsZero() {
		if row.Counts.CaseSeq, err = next(g.cases, row.Case, g.log.CaseCount); err != nil {
			return fmt.Errorf("counting case %v: %w", row.Case, err)
		}
	}
	return nil
}

// next counts one more of what was counted here before or is counted in the log.
func next[K comparable](counted map[K]int64, key K, inLog func(K) (int64, error)) (int64, error) {
	n, known := counted[key]
	if !known {
		var err error
		if n, err = inLog(key); err != nil {
			return 0, err
		}
	}
	counted[key] = n + 1
	return n + 1, nil
}

// tell tells each member what became of it. Who was refused was refused by what is committed, whatever became of the others.
func (g *group) tell(err error) {
	if errors.Is(err, ErrDuplicate) { // nobody may take it for his own, and look for his record under it
		err = fmt.Errorf("%w: the store has found one of %d records twice that it said it did not have: %v", ErrDamaged, len(g.batch.Rows), err)
	}
	for _, a := range g.members {
		if a.refused != nil {
			a.outcome <- &outcome{err: fmt.Errorf("appending: %w", a.refused)}
		} else {
			a.outcome <- &outcome{err: err, unsure: err != nil}
		}
	}
}
