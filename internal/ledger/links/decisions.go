package links

import (
	"bytes"
	"context"
	"fmt"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// mostDecisions is how many reviews of one record are kept. These are the last ones.
const mostDecisions = 16

// decisions finds reviews in the log by the record that they are about. It reads the log once, from the first index
// that a caller asks for, and keeps a few bytes for each review. It is safe for concurrent use.
type decisions struct {
	store storage.Records

	turn     storage.Lock       // held while the members below are read or changed
	from, to int64              // the range of the log that was read; equal: nothing yet
	of       map[string][]int64 // indexes, in no order, by record id
}

// review occurs in the canonical payload of every review; rows without it are not parsed.
var review = []byte(`"action_type":"` + string(evidence.HumanReview) + `"`)

// read reads the reviews from an index to the end of the log that were not read yet. It returns the size of the log
// up to which reviews are known.
func (d *decisions) read(ctx context.Context, from int64) (int64, error) {
	if err := d.turn.Acquire(ctx); err != nil {
		return 0, err
	}
	defer d.turn.Release()
	head, err := d.store.Head(ctx)
	if err != nil {
		return 0, err
	}
	if d.from == d.to {
		d.from, d.to = from, from
	}
	if from < d.from {
		if err := d.scan(ctx, from, d.from); err != nil {
			return 0, err
		}
		d.from = from
	}
	if err := d.scan(ctx, d.to, head.Size); err != nil {
		return 0, err
	}
	d.to = max(d.to, head.Size)
	return d.to, nil
}

// scan notes the reviews of a range. After an error it notes some of them again the next time, which does no harm.
func (d *decisions) scan(ctx context.Context, from, to int64) error {
	for index := from; index < to; index += linkPage {
		rows, err := d.store.Rows(ctx, index, min(linkPage, to-index))
		if err != nil {
			return fmt.Errorf("reading reviews: %w", err)
		}
		for i := range rows {
			if rows[i].Entry != nil || !bytes.Contains(rows[i].Payload, review) {
				continue
			}
			record, err := rows[i].Record()
			if err != nil {
				return err
			}
			if p := &record.Payload; p.ActionType == evidence.HumanReview {
				d.note(p.OriginalResponseID, rows[i].Index)
			}
		}
	}
	return nil
}

// note notes a review of a record, and keeps only the last ones.
func (d *decisions) note(id string, index int64) {
	list, first := d.of[id], 0
	for i, other := range list {
		if other == index {
			return
		}
		if other < list[first] {
			first = i
		}
	}
	switch {
	case len(list) < mostDecisions:
		d.of[id] = append(list, index)
	case list[first] < index:
		list[first] = index
	}
}

func (d *decisions) on(id string) []int64 {
	d.turn <- struct{}{}
	defer d.turn.Release()
	return append([]int64(nil), d.of[id]...)
}
