package fsck

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// A page is the result of examining some rows of the log and their hashes. Checks that depend on earlier rows are
// made when the pages are merged.
type page struct {
	places []place
	stored map[int64]tlog.Hash
	err    error // the store could not be read
}

// A place is one place of the log.
type place struct {
	findings
	odd    bool       // the row is not found by what its record says
	hash   tlog.Hash  // the leaf hash that the place should have, as far as it can be determined
	counts *placed    // of the record that was logged here; nil: no such record is here
	stray  *tlog.Hash // the leaf hash of a record that was not logged here; nil: none
}

// placed is what the log counted when it appended a record.
type placed struct {
	id     string
	chain  string
	of     evidence.Digest // the digest of the case that it submits
	actor  evidence.Digest // the tag of its actor; zero: the log did not count actors yet
	counts evidence.LogCounts
}

// pages examines the log's pages on all cores, and merges them in log order. At most twice as many pages as there are
// cores are in progress or wait to be merged.
func (f *fsck) pages(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait() // so that the caller can close the store after Run
	defer cancel()
	cores := runtime.GOMAXPROCS(0)
	working := make(chan struct{}, cores)
	inOrder := make(chan chan *page, cores)
	all.Go(func() {
		defer close(inOrder)
		for from := int64(0); from < f.head.Size; from += pageSize {
			done := make(chan *page, 1)
			select {
			case inOrder <- done:
			case <-ctx.Done():
				return
			}
			working <- struct{}{}
			all.Go(func() {
				done <- f.examine(ctx, from, min(pageSize, f.head.Size-from))
				<-working
			})
		}
	})
	done := int64(0)
	for waits := range inOrder {
		p := <-waits
		if p.err != nil {
			return p.err
		}
		for i := range p.places {
			if err := f.take(ctx, done, &p.places[i], p.stored); err != nil {
				return err
			}
			done++
			f.takeRoots(done)
		}
		if f.options.Progress != nil {
			f.options.Progress(done, f.head.Size)
		}
	}
	return ctx.Err()
}

// examine examines n rows and the hashes that were stored with them.
func (f *fsck) examine(ctx context.Context, from, n int64) *page {
	p := &page{places: make([]place, n)}
	var rows []storage.Row
	if rows, p.err = storage.ReadableRows(ctx, f.store, from, n); p.err != nil {
		return p
	}
	if p.stored, p.err = f.storedHashes(ctx, from, n); p.err != nil {
		return p
	}
	briefs := f.briefs(ctx, p, from, n)
	if p.err != nil {
		return p
	}
	for i := range p.places {
		index, row := from+int64(i), (*storage.Row)(nil)
		if len(rows) > 0 && rows[0].Index == index {
			row, rows = &rows[0], rows[1:]
		}
		at := looking{place: &p.places[i], fsck: f, brief: briefs[index]}
		if p.err = at.look(ctx, index, row, p.stored); p.err != nil {
			return p
		}
	}
	return p
}

// take merges the next place of the log: its findings, and the hashes that it completes.
func (f *fsck) take(ctx context.Context, index int64, p *place, stored map[int64]tlog.Hash) (err error) {
	f.found = append(f.found, p.found...)
	if p.counts != nil {
		f.counted(index, p.counts)
	} else {
		f.unread++
	}
	if p.stray != nil {
		f.strays[index], f.logged[p.hash] = *p.stray, index
	}
	hash, at := p.hash, node{0, index}
	for ; at.n&1 == 1; at = (node{at.level + 1, at.n >> 1}) {
		made := tlog.NodeHash(f.edge[at.level], hash)
		if hash, err = f.inner(ctx, node{at.level + 1, at.n >> 1}, made, stored); err != nil {
			return err
		}
	}
	if len(f.edge) == at.level {
		f.edge = append(f.edge, tlog.Hash{})
	}
	f.edge[at.level] = hash
	return nil
}

// counted compares the log's count with the number of records. It differs after a record that was removed.
func (f *fsck) counted(index int64, p *placed) {
	switch {
	case p.counts.ActorSeq > 0:
		f.number("actor", p.actor, p.counts.ActorSeq, index, p.id, "logged as record %d of its actor, but is number %d")
		f.counting = true
	case f.counting:
		f.report(DamageCount, index, p.id, "logged without a number of its actor, but the log counted actors before")
	}
	if p.counts.SubjectSeq > 0 {
		f.number("subject", p.counts.Subject, p.counts.SubjectSeq, index, p.id, "logged as judgment %d about its subject, but is number %d")
	}
	if p.chain != "" {
		if n := f.count("chain", []byte(p.chain)); n != p.counts.ChainSeq {
			f.report(DamageCount, index, p.id, "logged as number %d of chain %q, but is number %d", p.counts.ChainSeq, p.chain, n)
		}
	}
	if !p.of.IsZero() {
		if n := f.count("case", p.of[:]); n != p.counts.CaseSeq {
			f.report(DamageCount, index, p.id, "logged as submission %d of case %v, but is submission %d", p.counts.CaseSeq, p.of, n)
		}
	}
}

// number compares the log's number of a record of an actor, or of a judgment about one, with the number of records seen.
// It goes on from the log's number, so one wrong number is reported once. A place that cannot be read may hold any
// actor's record, and explains a gap; it is reported by itself.
func (f *fsck) number(kind string, tag evidence.Digest, logged, index int64, id, format string) {
	n := f.count(kind, tag[:])
	if gap := logged - n; gap < 0 || gap > f.unread {
		f.report(DamageCount, index, id, format, logged, n)
	}
	f.counts[keyOf(kind, tag[:])] = logged
}

// count counts one more record of a chain, a case, an actor or a subject, and returns the new count.
func (f *fsck) count(kind string, of []byte) int64 {
	key := keyOf(kind, of)
	f.counts[key]++
	return f.counts[key]
}

func keyOf(kind string, of []byte) countKey {
	sum := sha256.Sum256(append([]byte(kind+" "), of...))
	return countKey(sum[:])
}

// nameMoved finds records that were logged at another place, among those that differ from what was logged at theirs.
func (f *fsck) nameMoved() {
	for i := range f.found {
		d := &f.found[i]
		if leaf, stray := f.strays[d.Index]; d.Kind == DamageRow && stray {
			if from, ok := f.logged[leaf]; ok {
				d.Kind, d.Detail = DamageMoved, fmt.Sprintf("it was logged at %d", from)
			}
		}
	}
}
