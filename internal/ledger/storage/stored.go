package storage

import (
	"context"
	"fmt"
	"slices"

	"jurat/evidence"
)

// Briefs is what a Store keeps beside its rows, and can make again from them: in a few bytes what a list shows of each record, and under
// which keys the record is found by what it names. See package brief.
type Briefs interface {
	// Briefs returns the briefs that a query selects, in log order. Of a row without a brief it returns what the row says. It reads no payload.
	Briefs(ctx context.Context, q BriefQuery) ([]StoredBrief, error)
	// Places returns, in log order and each once, where the records stand that a lookup names: at most its Most.
	Places(ctx context.Context, q Lookup) ([]int64, error)
	// BriefKeys returns the keys of the rows whose index is at least from and less than from+n, sorted by index and key. It is for package fsck.
	BriefKeys(ctx context.Context, from, n int64) ([]BriefKey, error)

	// Briefed returns how many rows at the beginning of the log were noted to have briefs.
	Briefed(ctx context.Context) (int64, error)
	// Unbriefed returns, in log order, the first n ranges of rows without briefs, from an index on and before another.
	Unbriefed(ctx context.Context, from, to int64, n int) ([]Range, error)
	// PutBriefs replaces all briefs of the rows from an index on and before another. With them it notes, unless more are noted, that so
	// many rows at the beginning of the log have briefs.
	PutBriefs(ctx context.Context, in Range, briefs []StoredBrief, done int64) error
}

// A StoredBrief is a brief as a store keeps it. The first members are the row's, and stores do not write them again.
type StoredBrief struct {
	Index    int64
	RecordID string
	Digest   evidence.Digest
	ChainID  string
	Case     evidence.Digest

	Line  []byte  // nil: there is no brief
	Names []byte  // only where they were asked for
	Keys  []int64 // sorted, each once; they are only written
}

// A BriefQuery selects rows: those that At names, or else, from an index on, the first N of a chain, of all chains of trials, or of the log.
type BriefQuery struct {
	At     []int64
	From   int64
	N      int64
	Chain  string
	Trials bool
	Names  bool // they are wanted, too
}

// A Lookup names records by their ids, by their digests, and by keys that they have.
type Lookup struct {
	RecordIDs []string
	Digests   []evidence.Digest
	Keys      []int64
	Most      int
}

// A BriefKey is one key of a row.
type BriefKey struct{ Index, Key int64 }

// A Range is the rows from an index on and before another.
type Range struct{ From, To int64 }

// FirstPlaces puts places into log order, each once, and cuts them off after most. It is for stores.
func FirstPlaces(places []int64, most int) []int64 {
	slices.Sort(places)
	places = slices.Compact(places)
	return places[:min(len(places), max(0, most))]
}

func checkBriefs(briefs []StoredBrief, from, to int64) error {
	for _, b := range briefs {
		if b.Index < from || b.Index >= to || b.Line == nil {
			return fmt.Errorf("a brief of row %d does not belong to the rows %d to %d", b.Index, from, to-1)
		}
		from = b.Index + 1
	}
	return nil
}

// Check says whether a store can replace the briefs of a range by these. Stores call it before they write.
func (r Range) Check(briefs []StoredBrief, head Head) error {
	if r.From < 0 || r.To < r.From || r.To > head.Size {
		return fmt.Errorf("a log of %d records has no rows %d to %d", head.Size, r.From, r.To-1)
	}
	return checkBriefs(briefs, r.From, r.To)
}
