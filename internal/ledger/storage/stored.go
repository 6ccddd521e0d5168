package storage

import (
	"context"
	"fmt"
	"slices"

	"jurat/evidence"
)

// Briefs is what a Store keeps beside its rows and can rebuild from them: what a list shows of each record, and the
// keys under which the record is found by what it names. See package brief.
type Briefs interface {
	// Briefs returns the briefs that a query selects, in log order. For a row without a brief it returns the row's
	// own members. It reads no payload.
	Briefs(ctx context.Context, q BriefQuery) ([]StoredBrief, error)
	// Places returns the places of the records that a lookup selects, in log order and each once, at most its Most.
	Places(ctx context.Context, q Lookup) ([]int64, error)
	// BriefKeys returns the keys of the rows from index from to before from+n, sorted by index and key. Package fsck
	// uses it.
	BriefKeys(ctx context.Context, from, n int64) ([]BriefKey, error)

	// PutBriefs replaces all briefs of the rows in a range.
	PutBriefs(ctx context.Context, in Range, briefs []StoredBrief) error
	// Replaced returns how often PutBriefs was called for a range that is not empty. A reader that keeps what it read
	// of briefs must read them again when the number has changed, because records may have expired.
	Replaced(ctx context.Context) (int64, error)
}

// A StoredBrief is a brief as a store keeps it. The first five members are the row's, and stores do not write them
// again.
type StoredBrief struct {
	Index    int64
	RecordID string
	Digest   evidence.Digest
	ChainID  string
	Case     evidence.Digest

	Line  []byte  // nil: the row has no brief
	Names []byte  // set only if BriefQuery.Names asks for them
	Keys  []int64 // sorted, each once; written, but never read back
}

// A BriefQuery selects the rows in At. If At is nil, it selects the first N from index From on of a chain, of all
// chains of trials, or of the log.
type BriefQuery struct {
	At     []int64
	From   int64
	N      int64
	Chain  string
	Trials bool
	Names  bool // also return Names
}

// A Lookup selects records by their ids, by their digests, and by their keys.
type Lookup struct {
	RecordIDs []string
	Digests   []evidence.Digest
	Keys      []int64
	Most      int
}

// A BriefKey is one key of a row.
type BriefKey struct{ Index, Key int64 }

// A Range is the rows from index From to before To.
type Range struct{ From, To int64 }

// firstPlaces sorts places, removes duplicates, and returns at most most of them.
func firstPlaces(places []int64, most int) []int64 {
	slices.Sort(places)
	places = slices.Compact(places)
	return places[:min(len(places), max(0, most))]
}

func checkBriefs(briefs []StoredBrief, from, to int64) error {
	for _, b := range briefs {
		if b.Index < from || b.Index >= to || b.Line == nil {
			return fmt.Errorf("a brief of row %d is not for the rows %d to %d", b.Index, from, to-1)
		}
		from = b.Index + 1
	}
	return nil
}

// Check returns an error if a store cannot replace the briefs of a range by these. Stores call it before they write.
func (r Range) Check(briefs []StoredBrief, head Head) error {
	if r.From < 0 || r.To < r.From || r.To > head.Size {
		return fmt.Errorf("a log of %d records does not have the rows %d to %d", head.Size, r.From, r.To-1)
	}
	return checkBriefs(briefs, r.From, r.To)
}
