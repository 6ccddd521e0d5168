package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/keys"
	"jurat/internal/ledger/brief"
	"jurat/internal/ledger/links"
	"jurat/internal/ledger/storage"
)

// patience is how long a caller waits to be appended, before anything is stored. Others take milliseconds; who holds the log for longer may stand
// still, and a caller who is told so can come again.
const patience = 30 * time.Second

// errOutOfPatience is the cause with which a caller's wait to be appended ends.
var errOutOfPatience = fmt.Errorf("%w, or others wait for it: this record has waited for %v; nothing was stored", ErrBusy, patience)

// settleTime is how long a ledger looks for a record of which the store did not say whether it is stored.
const settleTime = 10 * time.Second

// errAllRefused ends a transaction in which there is nothing to store.
var errAllRefused = errors.New("nothing of this can be appended")

// append gives sealed records the next places in the log, if their signers may sign, and returns when they are durable.
//
// Whoever is in the queue when nobody is committing commits for all who are in it. So a lone caller waits for nothing but
// its own transaction, and of many the more go into one the longer one takes.
func (l *Ledger) append(ctx context.Context, a *appending) error {
	for _, record := range a.records {
		if err := fitsInBundle(record); err != nil {
			return err
		}
		b, err := brief.Of(&record.Payload, record.Digest).Stored()
		if err != nil {
			return err
		}
		a.briefs = append(a.briefs, b)
	}
	a.ready = l.cfg.Group == nil || !slices.ContainsFunc(a.records, joins)
	waiting, cancel := context.WithTimeoutCause(ctx, patience, errOutOfPatience)
	defer cancel()
	for {
		err := l.appendOnce(ctx, waiting, a)
		if !errors.Is(err, links.ErrMoved) {
			return err
		}
		if err := l.lookAgain(waiting, a); err != nil {
			return fmt.Errorf("appending: %w", err)
		}
		a.refused, a.outcome = nil, make(chan *outcome, 1)
	}
}

// appendOnce is append until what the record's links are judged by has changed: then it returns ErrLinksMoved, and nothing was stored.
func (l *Ledger) appendOnce(ctx, waiting context.Context, a *appending) error {
	if err := l.queue.enter(waiting, a); err != nil {
		return fmt.Errorf("waiting to append: %w", err)
	}
	defer l.queue.exit()
	for {
		select {
		case out := <-a.outcome:
			return l.conclude(ctx, a, out)
		case l.writing <- struct{}{}:
			err := l.takeTurn(waiting, a)
			l.writing.Release()
			if err != nil && l.queue.withdraw(a) {
				return fmt.Errorf("appending: %w", err)
			}
		case <-waiting.Done():
			if l.queue.withdraw(a) {
				return fmt.Errorf("waiting to append: %w", context.Cause(waiting))
			}
			return l.conclude(ctx, a, <-a.outcome) // it was taken: from then on what counts is whether it is stored
		}
	}
}

// takeTurn commits what is in the queue, this caller's among it.
func (l *Ledger) takeTurn(ctx context.Context, a *appending) error {
	if err := l.stampTogether(); err != nil {
		return err
	}
	return l.commitFor(ctx, a)
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
func (l *Ledger) commit(ctx context.Context, keys *keys.History) error {
	g := &group{keys: keys, now: l.cfg.Now, links: l.links.Begin()}
	if err := g.prepareLinks(ctx, l.queue.choose()); err != nil {
		return err
	}
	err := l.cfg.Store.Append(ctx, func(head storage.Head, log storage.Committed) (storage.Batch, error) {
		tree, err := l.treeOf(head, log)
		if err != nil {
			return storage.Batch{}, err
		}
		chosen := l.queue.choose()
		found, err := log.Find(query(chosen))
		if err != nil {
			return storage.Batch{}, err
		}
		// Nobody can change a key between this and what the transaction stores.
		if found.Chains[operator.KeysChain] != keys.Count() {
			return storage.Batch{}, errKeysMoved
		}
		// Up to here every caller can still go. A crash from here on finds out what Append has done, and no caller has heard of it.
		g.tree, g.found, g.members = tree, found, l.queue.take(chosen)
		return g.plan()
	})
	if err == nil {
		l.tree = g.next
		g.links.Commit()
		l.learn(g.next.head)
		l.growth.tell()
	}
	if len(g.members) == 0 {
		return err
	}
	g.tell(err)
	return nil
}

// prepareLinks brings up to date by what those are judged whom the next transaction takes.
func (g *group) prepareLinks(ctx context.Context, chosen []*appending) error {
	for _, a := range chosen {
		for _, j := range a.judgings {
			if j == nil {
				continue
			}
			if err := g.links.Prepare(ctx, j); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookAgain looks again by what the records are judged, because that had changed.
func (l *Ledger) lookAgain(ctx context.Context, a *appending) (err error) {
	for i, j := range a.judgings {
		if j == nil {
			continue
		}
		if a.judgings[i], err = l.links.Look(ctx, a.records[i]); err != nil {
			return err
		}
	}
	return nil
}

// query names all that decides on what is to be appended: what the log says of keys has to be what was read of it.
func query(chosen []*appending) (q storage.Query) {
	chains, cases := map[string]bool{operator.KeysChain: true}, map[evidence.Digest]bool{}
	for _, a := range chosen {
		if a.after != nil {
			chains[a.after.chain] = true
		}
		for i := range a.rows {
			q.RecordIDs = append(q.RecordIDs, a.rows[i].RecordID)
			chains[a.rows[i].ChainID], cases[a.rows[i].Case] = true, true
		}
	}
	delete(chains, "")
	delete(cases, evidence.Digest{})
	q.Chains, q.Cases = slices.Collect(maps.Keys(chains)), slices.Collect(maps.Keys(cases))
	return q
}

// treeOf returns the tree of a log that is locked: the one that this process made, or, when another process has
// appended since, or after an error, the one in the store, if it contains all that this process knows of.
func (l *Ledger) treeOf(head storage.Head, hashes tlog.HashReader) (*tree, error) {
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
	stored, err := row.Record()
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
	tree  *tree
	keys  *keys.History
	now   func() time.Time
	found storage.Found // of what they name. Its counts go up with those that are in the batch

	links *links.Batch // by what their links are judged

	// What becomes of it.
	batch  storage.Batch
	leaves []tlog.Hash
	next   *tree
}

// plan decides which members can be appended, and where each comes to stand.
func (g *group) plan() (storage.Batch, error) {
	for _, a := range g.members {
		if a.refused = g.judge(a); a.refused == nil {
			g.add(a)
		}
	}
	if len(g.batch.Rows) == 0 {
		return storage.Batch{}, errAllRefused
	}
	var err error
	g.next, g.batch.Hashes, err = g.tree.grow(g.leaves)
	if err != nil {
		return storage.Batch{}, err
	}
	g.batch.Next = g.next.head
	g.batch.Urgent = len(g.members) == 1 && g.members[0].urgent()
	return g.batch, nil
}

// judge says why what is committed does not let something in.
func (g *group) judge(a *appending) error {
	for i := range a.rows {
		if index, there := g.found.Places[a.rows[i].RecordID]; there {
			return &DuplicateError{RecordID: a.rows[i].RecordID, Index: index, Field: "record_id"}
		}
	}
	if a.after != nil && g.found.Chains[a.after.chain] != a.after.count {
		return errMoved
	}
	if err := admit(g.keys, a.records, g.now); err != nil {
		return err
	}
	for _, j := range a.judgings {
		if j == nil {
			continue
		}
		if err := g.links.Judge(j, g.tree.head.Size, g.found.Chains); err != nil {
			return err
		}
	}
	return nil
}

// add gives records their places, and says of each which one it is of its chain and of its case.
func (g *group) add(a *appending) {
	for i := range a.rows {
		row := a.rows[i]
		row.Index = g.tree.head.Size + int64(len(g.batch.Rows))
		if row.ChainID != "" {
			g.found.Chains[row.ChainID]++
			row.Counts.ChainSeq = g.found.Chains[row.ChainID]
		}
		if !row.Case.IsZero() {
			g.found.Cases[row.Case]++
			row.Counts.CaseSeq = g.found.Cases[row.Case]
		}
		g.batch.Rows, g.leaves = append(g.batch.Rows, row), append(g.leaves, storage.LeafHash(a.records[i], row.Counts))
		b := a.briefs[i]
		b.Index = row.Index
		g.batch.Briefs = append(g.batch.Briefs, b)
		g.links.Add(row.Index, a.records[i])
		g.batch.Waits = append(g.batch.Waits, waits(row.Index, a.missing[i], a.since)...)
	}
	g.batch.Stamps = append(g.batch.Stamps, a.stamps...)
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
