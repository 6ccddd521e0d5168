package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger/brief"
	"jurat/internal/log/ledger/storage"
)

// patience is how long a caller waits to be appended, before anything is stored. Other callers take milliseconds. A
// process that holds the log longer has probably stopped; the caller gets an error and can try again.
const patience = 30 * time.Second

var errOutOfPatience = fmt.Errorf("%w: this record waited %v for its turn to be appended; nothing was stored", ErrBusy, patience)

// settleTime is how long a ledger tries to learn whether the store has stored a record, if the store did not say.
const settleTime = 10 * time.Second

var errAllRefused = errors.New("none of these records can be appended")

// append gives sealed records the next places in the log, if their signers may sign, and returns when they are
// durable.
//
// The first caller that finds no commit in progress commits for everyone in the queue. So a lone caller waits only
// for its own transaction. With many callers, a slow transaction lets more of them share the next one.
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
	if err := l.lookSubjects(ctx, a); err != nil {
		return err
	}
	if err := l.cfg.Store.Pack(ctx, a.rows); err != nil {
		return fmt.Errorf("compressing: %w", err)
	}
	waiting, cancel := context.WithTimeoutCause(ctx, patience, errOutOfPatience)
	defer cancel()
	for {
		err := l.appendOnce(ctx, waiting, a)
		if !errors.Is(err, errLinksMoved) {
			return err
		}
		if err := l.lookAgain(waiting, a); err != nil {
			return fmt.Errorf("appending: %w", err)
		}
		a.refused, a.outcome = nil, make(chan *outcome, 1)
	}
}

// appendOnce is one attempt of append. It returns errLinksMoved, with nothing stored, if the records that its links
// are judged by have changed.
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
			err := l.commitFor(waiting, a)
			l.writing.Release()
			if err != nil && l.queue.withdraw(a) {
				return fmt.Errorf("appending: %w", err)
			}
		case <-waiting.Done():
			if l.queue.withdraw(a) {
				return fmt.Errorf("waiting to append: %w", context.Cause(waiting))
			}
			return l.conclude(ctx, a, <-a.outcome) // another caller has taken it: now only the outcome counts
		}
	}
}

// commitFor commits the queue, unless another caller has taken this caller's records from it. If it returns an error,
// nothing was taken, and the error is this caller's alone: the others try for themselves.
func (l *Ledger) commitFor(ctx context.Context, a *appending) error {
	for l.queue.holds(a) {
		keys, err := l.KnownKeys(ctx)
		if err != nil {
			return err
		}
		err = l.commit(ctx, keys)
		if !errors.Is(err, errKeysMoved) {
			return err
		}
		l.keys.Store(nil) // they have changed: read them again
	}
	return nil
}

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
		// No other process can change a key between this check and the end of the transaction.
		if found.Chains[operator.KeysChain] != keys.Count() {
			return storage.Batch{}, errKeysMoved
		}
		// Until here every caller can still leave the queue. After a crash from here on, the outcome of Append is
		// found in the store; no caller has heard of it.
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

func (g *group) prepareLinks(ctx context.Context, chosen []*appending) error {
	for _, a := range chosen {
		for _, j := range a.judgings {
			if err := g.links.Prepare(ctx, j); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookAgain reads again what the links of the records are judged by, because it has changed.
func (l *Ledger) lookAgain(ctx context.Context, a *appending) (err error) {
	for i, j := range a.judgings {
		if a.judgings[i], _, err = l.links.look(ctx, j.record); err != nil {
			return err
		}
	}
	return l.lookSubjects(ctx, a)
}

// query names everything that decides what may be appended, and the chain of keys, which must be as it was read.
func query(chosen []*appending) (q storage.Query) {
	chains, cases := map[string]bool{operator.KeysChain: true}, map[evidence.Digest]bool{}
	actors, subjects := map[evidence.Digest]bool{}, map[evidence.Digest]bool{}
	for _, a := range chosen {
		if a.after != nil {
			chains[a.after.chain] = true
		}
		for i := range a.rows {
			q.RecordIDs = append(q.RecordIDs, a.rows[i].RecordID)
			chains[a.rows[i].ChainID], cases[a.rows[i].Case] = true, true
			actors[a.rows[i].Actor] = true
			if j := &a.judged[i]; j.noRecord != "" {
				q.RecordIDs = append(q.RecordIDs, j.noRecord)
			}
			chains[a.judged[i].noChain], subjects[a.judged[i].subject] = true, true
		}
	}
	delete(chains, "")
	delete(cases, evidence.Digest{})
	delete(subjects, evidence.Digest{})
	q.Chains, q.Cases = slices.Collect(maps.Keys(chains)), slices.Collect(maps.Keys(cases))
	q.Actors, q.Subjects = slices.Collect(maps.Keys(actors)), slices.Collect(maps.Keys(subjects))
	return q
}

// treeOf returns the tree of a log that is locked. That is this process's own tree, or the tree in the store if
// another process has appended since, or after an error. It returns an error if the stored log does not contain all
// that this process knows of.
func (l *Ledger) treeOf(head storage.Head, hashes tlog.HashReader) (*tree, error) {
	if l.tree != nil && l.tree.head == head {
		return l.tree, nil
	}
	if err := contains(head, *l.known.Load(), hashes); err != nil {
		return nil, err
	}
	return loadTree(head, hashes)
}

func (l *Ledger) conclude(ctx context.Context, a *appending, out *outcome) error {
	if out.unsure {
		return l.whatBecameOf(ctx, a.records[0], fmt.Errorf("appending: %w", out.err))
	}
	return out.err
}

// whatBecameOf finds out whether a record was stored although its append failed. One record answers for all that were
// appended with it, because they are stored together or not at all. It returns nil if the record was stored, cause if
// it was not, and ErrUnknown if it cannot tell.
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
	return nil // it was stored despite the error
}

// holdsStamps reports whether a stored record has all the time stamps of a sealed one. After the failure, another
// caller may have appended the same record with other stamps.
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

	// What the members are judged by: all that is committed.
	tree  *tree
	keys  *keys.History
	now   func() time.Time
	found storage.Found // of what the members name; add updates its counts

	links *linkBatch // what the members' links are judged by

	// What is stored.
	batch  storage.Batch
	leaves []tlog.Hash
	next   *tree
}

func (g *group) plan() (storage.Batch, error) {
	n := 0
	for _, a := range g.members {
		n += len(a.rows)
	}
	g.batch.Rows, g.batch.Briefs, g.leaves = make([]storage.Row, 0, n), make([]storage.StoredBrief, 0, n), make([]tlog.Hash, 0, n)
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
	if len(g.members) == 1 {
		g.batch.Urgent = g.members[0].urgent()
	}
	return g.batch, nil
}

// judge returns why the committed records do not permit to append a.
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
	for i := range a.judged {
		if err := a.judged[i].holds(g.found); err != nil {
			return err
		}
	}
	for _, j := range a.judgings {
		if err := g.links.Judge(j, g.tree.head.Size, g.found.Chains); err != nil {
			return err
		}
	}
	return nil
}

// add gives records their places, and their numbers: in their chain and case, and of their actor and subject.
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
		g.found.Actors[row.Actor]++
		row.Counts.ActorSeq = g.found.Actors[row.Actor]
		if subject := a.judged[i].subject; !subject.IsZero() {
			g.found.Subjects[subject]++
			row.Counts.Subject, row.Counts.SubjectSeq = subject, g.found.Subjects[subject]
		}
		g.found.Places[row.RecordID] = row.Index // a later member may be about this record
		g.batch.Rows, g.leaves = append(g.batch.Rows, row), append(g.leaves, storage.LeafHash(a.records[i], row.Counts))
		b := a.briefs[i]
		b.Index = row.Index
		g.batch.Briefs = append(g.batch.Briefs, b)
		g.links.Add(row.Index, a.records[i])
		g.batch.Waits = append(g.batch.Waits, waits(row.Index, a.missing[i], a.since)...)
	}
	g.batch.Stamps = append(g.batch.Stamps, a.stamps...)
}

// tell gives each member its outcome. A refused member was refused because of what is committed, whatever the outcome
// of the others.
func (g *group) tell(err error) {
	if errors.Is(err, ErrDuplicate) { // otherwise each member would take the duplicate for its own record
		err = fmt.Errorf("%w: the store refused one of %d records as a duplicate, but had answered that it had none of them: %v", ErrDamaged, len(g.batch.Rows), err)
	}
	for _, a := range g.members {
		if a.refused != nil {
			a.outcome <- &outcome{err: fmt.Errorf("appending: %w", a.refused)}
		} else {
			a.outcome <- &outcome{err: err, unsure: err != nil}
		}
	}
}

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
	judgings []*judging            // what the records are judged by whose links are judged
	refused  error                 // why the committed records do not permit it
	outcome  chan *outcome         // gets one, when it is known
}

type outcome struct {
	err    error
	unsure bool // an error may have come after the records were stored
}

func newAppending(since time.Time, records []*evidence.Record, missing [][]Missing) *appending {
	a := &appending{records: records, missing: missing, since: since, outcome: make(chan *outcome, 1)}
	for _, record := range records {
		a.rows = append(a.rows, storage.RowOf(record))
	}
	return a
}

// alone reports whether this must be the only appending of its transaction. After a key event, other records are
// judged by other keys. Stamps and the end of a chain must still be as the caller saw them.
func (a *appending) alone() bool {
	return a.after != nil || len(a.stamps) > 0 || a.urgent() || slices.ContainsFunc(a.records, aboutKeys)
}

// urgent reports whether this only revokes tokens or keys: even on a full disk the operator must be able to stop a
// thief.
func (a *appending) urgent() bool {
	return len(a.records) > 0 && !slices.ContainsFunc(a.records, func(r *evidence.Record) bool { return !revokes(&r.Payload) })
}

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
