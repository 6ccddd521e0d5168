package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/internal/kit/fault"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger/storage"
)

const pageSize = 32

// smallPage is how many rows are read at once on request: each can be as large as a record may be.
const smallPage = 4

// Record returns the record with this id. It returns ErrNotFound or ErrExpired, wrapped, if there is none.
func (l *Ledger) Record(ctx context.Context, id string) (*evidence.Record, error) {
	row, err := l.cfg.Store.ByRecordID(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("reading record %s: %w", id, err)
	}
	return row.Record()
}

// RecordByDigest returns the record with this payload digest. It returns ErrNotFound or ErrExpired, wrapped, if there
// is none.
func (l *Ledger) RecordByDigest(ctx context.Context, digest evidence.Digest) (*evidence.Record, error) {
	row, err := l.cfg.Store.ByDigest(ctx, digest)
	if err != nil {
		return nil, fmt.Errorf("reading the record with payload digest %v: %w", digest, err)
	}
	return row.Record()
}

// Chain returns the records of a chain in log order. It returns ErrNotFound, wrapped, if there are none.
func (l *Ledger) Chain(ctx context.Context, chainID string) (_ []*evidence.Record, err error) {
	defer fault.While(&err, "reading chain %q", chainID)
	return readChain(ctx, l.cfg.Store, chainID)
}

// InChain returns, in log order, the next records of a chain from index from on, and the index to continue from. It
// returns no records at the end of the chain.
func (l *Ledger) InChain(ctx context.Context, chainID string, from int64) (records []*evidence.Record, next int64, err error) {
	rows, err := l.cfg.Store.InChain(ctx, chainID, from, pageSize)
	if err != nil {
		return nil, 0, fmt.Errorf("reading chain %q: %w", chainID, err)
	}
	if len(rows) == 0 {
		return nil, from, nil
	}
	records, err = openRows(rows)
	return records, rows[len(rows)-1].Index + 1, err
}

// readChain returns a chain, after it has compared the log's count with the number of records: writers rely on the
// chain's length.
func readChain(ctx context.Context, store storage.Store, chainID string) ([]*evidence.Record, error) {
	rows, err := store.ByChain(ctx, chainID)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if n := rows[i].Counts.ChainSeq; n != int64(i+1) {
			return nil, fmt.Errorf("%w: row %d was logged as number %d of its chain: it is number %d", ErrDamaged, rows[i].Index, n, i+1)
		}
	}
	return openRows(rows)
}

func openRows(rows []storage.Row) ([]*evidence.Record, error) {
	records := make([]*evidence.Record, len(rows))
	for i := range rows {
		var err error
		if records[i], err = rows[i].Record(); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// A Placed is a record with its place in the log.
type Placed struct {
	Index int64
	*evidence.Record
}

func placedOf(row *storage.Row) (Placed, error) {
	record, err := row.Record()
	return Placed{row.Index, record}, err
}

// paged iterates over the rows that page returns from an index on, until it returns none. It ends after an error.
func paged(from int64, page func(from int64) ([]storage.Row, error)) iter.Seq2[*storage.Row, error] {
	return func(yield func(*storage.Row, error) bool) {
		for next := from; ; {
			rows, err := page(next)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range rows {
				if !yield(&rows[i], nil) {
					return
				}
				next = rows[i].Index + 1
			}
			if len(rows) == 0 {
				return
			}
		}
	}
}

// opened iterates over what open makes of rows. It ends after an error, which says what was being done.
func opened[T any](rows iter.Seq2[*storage.Row, error], open func(*storage.Row) (T, error), doing string, args ...any) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for row, err := range rows {
			var made T
			if err == nil {
				made, err = open(row)
			}
			fault.While(&err, doing, args...)
			if !yield(made, err) || err != nil {
				return
			}
		}
	}
}

// Records iterates over the log in log order, from index from to the size at the start of the iteration. It skips
// expired records, and ends after an error.
func (l *Ledger) Records(ctx context.Context, from int64) iter.Seq2[Placed, error] {
	return func(yield func(Placed, error) bool) {
		head, failed := l.cfg.Store.Head(ctx)
		rows := paged(max(0, from), func(from int64) ([]storage.Row, error) {
			if failed != nil || from >= head.Size {
				return nil, failed
			}
			return l.RowsFrom(ctx, from, min(smallPage, head.Size-from))
		})
		kept := func(yield func(*storage.Row, error) bool) {
			for row, err := range rows {
				if (err != nil || row.Entry == nil) && !yield(row, err) {
					return
				}
			}
		}
		opened(kept, placedOf, "reading the log")(yield)
	}
}

// RowsFrom returns exactly these rows.
func (l *Ledger) RowsFrom(ctx context.Context, from, n int64) ([]storage.Row, error) {
	return storage.ExactRows(ctx, l.cfg.Store, from, n)
}

// Index returns the record's place in the log. It returns ErrNotFound, wrapped, also if the log has the same payload
// with other signatures.
func (l *Ledger) Index(ctx context.Context, record *evidence.Record) (int64, error) {
	row, err := l.row(ctx, record)
	return row.Index, err
}

func (l *Ledger) row(ctx context.Context, record *evidence.Record) (storage.Row, error) {
	row, err := l.cfg.Store.ByDigest(ctx, record.Digest)
	if err != nil {
		return storage.Row{}, fmt.Errorf("looking for record %s in the log: %w", record.Payload.RecordID, err)
	}
	stored, err := row.Record()
	if err != nil {
		return storage.Row{}, err
	}
	if !same(stored, record) {
		return storage.Row{}, fmt.Errorf("looking for record %s in the log: %w: the log has it with other signatures", record.Payload.RecordID, ErrNotFound)
	}
	return row, nil
}

// RowsAt returns exactly the rows at these places, each named once, in log order.
func (l *Ledger) RowsAt(ctx context.Context, at []int64) (rows []storage.Row, err error) {
	defer fault.While(&err, "reading the rows at %d", at)
	rows, err = l.cfg.Store.RowsAt(ctx, at)
	if err == nil && len(rows) != len(at) {
		err = fmt.Errorf("%w: %d of them are missing", storage.ErrDamaged, len(at)-len(rows))
	}
	return rows, err
}

// LastOf returns the digest of the last record of a chain, or zero if there is none. It knows it also if the record has
// expired.
func (l *Ledger) LastOf(ctx context.Context, chainID string) (evidence.Digest, error) {
	row, err := l.cfg.Store.LastOfChain(ctx, chainID)
	if errors.Is(err, ErrNotFound) {
		return evidence.Digest{}, nil
	}
	if err != nil {
		return evidence.Digest{}, fmt.Errorf("reading chain %q: %w", chainID, err)
	}
	return row.Digest, nil
}

// HasChain reports whether a chain has records.
func (l *Ledger) HasChain(ctx context.Context, chainID string) (bool, error) {
	last, err := l.LastOf(ctx, chainID)
	return !last.IsZero(), err
}

// Expiry is what removes the content of records. Package expiry alone uses it.
func (l *Ledger) Expiry() storage.Expiry { return l.cfg.Store }

// Waits returns the places of records from index from to before from+n that wait for a time stamp.
func (l *Ledger) Waits(ctx context.Context, from, n int64) (map[int64]bool, error) {
	owing, err := l.Owing(ctx)
	if err != nil {
		return nil, err
	}
	places := map[int64]bool{}
	for _, o := range owing {
		waits, err := l.cfg.Store.Waiting(ctx, o.Authority, from, n)
		if err != nil {
			return nil, fmt.Errorf("reading what waits for %s: %w", o.Authority, err)
		}
		for _, w := range waits {
			places[w.Index] = true
		}
	}
	return places, nil
}

// A CaseFile reads records of the log one by one, as the log was when CaseFile was called. It holds only a few at a
// time, however many they are.
type CaseFile struct {
	Checkpoint string // chosen as Prove does
	Anchors    []evidence.Anchor

	l    *Ledger
	at   []int64
	head storage.Head
	keys *keys.History
}

// CaseFile opens the records at these indexes, in log order, for reading.
func (l *Ledger) CaseFile(ctx context.Context, at []int64) (*CaseFile, error) {
	under, anchors, err := l.under(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("choosing a checkpoint: %w", err)
	}
	keys, err := l.Keys(ctx)
	if err != nil {
		return nil, err
	}
	return &CaseFile{Checkpoint: under.signed, Anchors: anchors, l: l, at: at, head: under.head, keys: keys}, nil
}

// Records iterates over the records in log order. Each has all its time stamps, its certificates, and the proof of
// its place under the checkpoint. It ends after an error.
func (f *CaseFile) Records(ctx context.Context) iter.Seq2[*evidence.Record, error] {
	return func(yield func(*evidence.Record, error) bool) {
		n, hashes := 0, cached(f.l.cfg.hashes(ctx))
		opened(f.l.rowsAt(ctx, f.at), func(row *storage.Row) (*evidence.Record, error) {
			if n++; n%1024 == 0 {
				hashes = cached(f.l.cfg.hashes(ctx)) // hashes read for earlier records are of little use for later ones
			}
			record, err := row.Record()
			if err != nil {
				return nil, err
			}
			record.Log = row.Counts.At(row.Index)
			record.Certificates = f.keys.Certificates(&record.Payload)
			return record, prove(record, f.head, hashes)
		}, "reading a case")(yield)
	}
}

// At iterates over the records at these indexes, in log order. It holds a few at a time, and ends after an error.
func (l *Ledger) At(ctx context.Context, at []int64) iter.Seq2[Placed, error] {
	return opened(l.rowsAt(ctx, at), placedOf, "reading a case")
}

// Linked returns the records that brief.Index.Gather gathers for any reader, in log order. cut is Gathered.Cut: why
// more are linked. The errors of Gather are among its errors.
func (l *Ledger) Linked(ctx context.Context, name string) (records []*evidence.Record, cut error, err error) {
	g, err := l.briefs.Gather(ctx, name, nil)
	if err != nil {
		return nil, nil, err
	}
	for r, err := range l.At(ctx, g.Indexes) {
		if err != nil {
			return nil, nil, err
		}
		records = append(records, r.Record)
	}
	return records, g.Cut, nil
}

// rowsAt iterates over the rows at these indexes, in log order. It checks their numbers in their chains, because a
// case contains a chain whole or not at all. It ends after an error, ErrDamaged if a row is missing or its number is
// wrong.
func (l *Ledger) rowsAt(ctx context.Context, at []int64) iter.Seq2[*storage.Row, error] {
	return func(yield func(*storage.Row, error) bool) {
		counts := map[string]int64{}
		for page := range slices.Chunk(at, smallPage) {
			rows, err := l.cfg.Store.RowsAt(ctx, page)
			if err == nil && len(rows) != len(page) {
				err = fmt.Errorf("%w: the log should have %d rows from row %d on, but %d were found", ErrDamaged, len(page), page[0], len(rows))
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range rows {
				row := &rows[i]
				if counts[row.ChainID]++; row.ChainID != "" && row.Counts.ChainSeq != counts[row.ChainID] {
					yield(nil, fmt.Errorf("%w: row %d was logged as number %d of its chain: it is number %d", ErrDamaged, row.Index, row.Counts.ChainSeq, counts[row.ChainID]))
					return
				}
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}

// chainRows iterates over the rows of a chain, and reads a few at a time. It ends after an error.
func (l *Ledger) chainRows(ctx context.Context, chain string) iter.Seq2[*storage.Row, error] {
	return paged(0, func(from int64) ([]storage.Row, error) { return l.cfg.Store.InChain(ctx, chain, from, smallPage) })
}

// ChainRecords iterates over the records of a chain in log order, and holds a few at a time. It ends after an error.
func (l *Ledger) ChainRecords(ctx context.Context, chain string) iter.Seq2[*evidence.Record, error] {
	return opened(l.chainRows(ctx, chain), (*storage.Row).Record, "reading chain %q", chain)
}

// pollInterval is how often the head is read of a store that does not notify.
const pollInterval = 500 * time.Millisecond

// Grown returns a channel that gets a value when the log may have grown, by any process, since the last value was
// taken. The caller takes a value, reads what is new, and waits for the next. A caller that calls Grown, then reads
// the log, then waits, misses nothing. The channel is closed when the context is done.
//
// It costs every process one connection, or one row read twice a second, however many callers wait.
func (l *Ledger) Grown(ctx context.Context) <-chan struct{} {
	c := make(chan struct{}, 1)
	l.growth.join(l, c)
	context.AfterFunc(ctx, func() { l.growth.leave(c) })
	return c
}

type growth struct {
	mu      sync.Mutex // held while the members below are used, and while values are sent
	waiting map[chan struct{}]bool
	stop    context.CancelFunc // ends Ledger.watch; nil: no caller waits, so it does not run
}

func (g *growth) join(l *Ledger, c chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting == nil {
		g.waiting = map[chan struct{}]bool{}
	}
	g.waiting[c] = true
	if g.stop == nil {
		ctx, stop := context.WithCancel(context.Background()) // serves all waiting callers, and ends with the last of them
		g.stop = stop
		go l.watch(ctx)
	}
}

func (g *growth) leave(c chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.waiting, c)
	close(c)
	if len(g.waiting) == 0 {
		g.stop()
		g.stop = nil
	}
}

// tell sends to every channel that is empty.
func (g *growth) tell() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.waiting {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// watch calls tell when any process appends, while a caller waits. It reads the head of a store only while the store
// cannot notify. So a lost connection delays notifications, but loses none.
func (l *Ledger) watch(ctx context.Context) {
	again := time.NewTicker(l.cfg.Poll)
	defer again.Stop()
	for size := int64(-1); ctx.Err() == nil; {
		_ = l.cfg.Store.Listen(ctx, l.growth.tell) // after any error: read the head, then listen again
		// If the head cannot be read now, the next round reads it.
		now, err := l.Size(ctx)
		if errors.Is(err, ErrClosed) {
			return
		}
		if err == nil && now != size {
			size = now
			l.growth.tell()
		}
		select {
		case <-again.C:
		case <-ctx.Done():
		}
	}
}
