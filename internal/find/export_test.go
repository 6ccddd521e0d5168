package find

import (
	"context"
	"fmt"
	"maps"

	"jurat/internal/ledger/storage"
)

// Settle writes the newest records to the file, as if they filled a stretch.
func (x *Index) Settle(ctx context.Context) error {
	done, _ := x.Progress()
	return x.settle(ctx, done)
}

// Remake makes the stretches again that overlap a range, as when records have expired.
func (x *Index) Remake(ctx context.Context, in storage.Range) error { return x.again(ctx, in) }

// Expire makes a stretch again as if all of its records had expired.
func (x *Index) Expire(ctx context.Context, in storage.Range) error {
	_, err := x.write(ctx, in, nil, replace)
	return err
}

// Stretches returns how many stretches are in the file.
func (x *Index) Stretches() int { return len(x.stretches) }

// CheckBlocks compares which slots have a piece with the pieces themselves.
func (x *Index) CheckBlocks(ctx context.Context) error {
	type at struct{ block, piece int64 }
	read := func(query string, note func(a, piece, c int64)) error {
		rows, err := x.db.QueryContext(ctx, query)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var a, piece, c int64
			if err := rows.Scan(&a, &piece, &c); err != nil {
				return err
			}
			note(a, piece, c)
		}
		return rows.Err()
	}
	want, got := map[at]int64{}, map[at]int64{}
	err := read("SELECT stretch, piece, 0 FROM pieces", func(begin, piece, _ int64) {
		block, slot := slotOf(begin)
		want[at{block, piece}] |= slot
	})
	if err == nil {
		err = read("SELECT block, piece, slots FROM blocks", func(block, piece, slots int64) { got[at{block, piece}] = slots })
	}
	if err == nil && (len(want) == 0 || !maps.Equal(want, got)) {
		err = fmt.Errorf("%d pieces of blocks, want %d, or their slots differ", len(got), len(want))
	}
	return err
}
