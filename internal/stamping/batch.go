package stamping

import (
	"bytes"
	"context"
	"crypto"
	"errors"
	"fmt"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
	"jurat/timestamp"
)

// maxBatch is how many records one token covers at most.
const maxBatch = 100_000

// A batch is a set of records that are stamped together: an authority stamps the root of a hash tree over them.
type batch struct {
	tree    *timestamp.Tree
	entries map[int64]int // a record's entry in the tree, by its index in the log
	root    timestamp.Imprint
	token   []byte
}

// stampBatches stamps all records that wait for an authority, with one request for each maxBatch records. If a crash comes after the token,
// the remaining records still wait, and the next call gets another token for them.
func (t *Timekeeper) stampBatches(ctx context.Context, c *stamper, o *Outcome, progress func(string, int64, int64)) error {
	told := teller(c, o.Records, progress)
	for {
		b, err := t.gather(ctx, c.name)
		if err != nil || len(b.entries) == 0 {
			return err
		}
		if b.token, err = c.askImprint(ctx, b.root); err != nil {
			o.Reason = err
			return ctx.Err()
		}
		before := o.Stamped
		for from := int64(0); from >= 0; {
			if from, err = t.stampPage(ctx, b.stamps, o, from, told); err != nil {
				return err
			}
		}
		if len(b.entries) < t.most(maxBatch) || o.Stamped == before {
			return nil
		}
	}
}

// gather reads the waiting records page by page, and builds the tree. It keeps only hashes in memory.
func (t *Timekeeper) gather(ctx context.Context, authority string) (*batch, error) {
	tree, err := timestamp.NewTree(crypto.SHA256)
	if err != nil {
		return nil, err
	}
	b := &batch{tree: tree, entries: map[int64]int{}}
	for from := int64(0); len(b.entries) < t.most(maxBatch); {
		records, err := t.Ledger.Waiting(ctx, authority, from, min(operator.MaxLateStamps, int64(t.most(maxBatch)-len(b.entries))))
		if err != nil {
			return nil, err
		}
		if len(records) == 0 {
			break
		}
		for _, r := range records {
			if b.entries[r.Index], err = tree.Add(groupOf(r.Record)...); err != nil {
				return nil, fmt.Errorf("record %s: %w", r.Record.Payload.RecordID, err)
			}
			from = r.Index + 1
		}
	}
	if len(b.entries) > 0 {
		b.root, err = tree.Root()
	}
	return b, err
}

// groupOf returns the data that every evidence record of a record covers.
func groupOf(r *evidence.Record) [][]byte {
	return [][]byte{bytes.Join(r.Signatures, nil), r.Canonical()}
}

// stamps is a source: it returns each record's stamp from the token. Records that began to wait after the tree was closed come last, and
// get none.
func (b *batch) stamps(ctx context.Context, records []ledger.Pending, told func()) (stamps []evidence.Timestamp, err error) {
	for _, r := range records {
		entry, there := b.entries[r.Index]
		if !there {
			break
		}
		stamp, err := evidenceRecord(b.tree, entry, b.token, timestamp.Group{Required: groupOf(r.Record)})
		if err != nil {
			return stamps, fmt.Errorf("record %s: %w", r.Record.Payload.RecordID, err)
		}
		stamps = append(stamps, stamp)
		told()
	}
	return stamps, ctx.Err()
}

// evidenceRecord makes the evidence record of an entry, and verifies it against the data that it covers, as a reader does. Its caller has
// verified the token.
func evidenceRecord(tree *timestamp.Tree, entry int, token []byte, group timestamp.Group) (evidence.Timestamp, error) {
	der, err := tree.EvidenceRecord(entry, token)
	if err != nil {
		return evidence.Timestamp{}, err
	}
	made, err := timestamp.ParseEvidenceRecord(der)
	if err != nil {
		return evidence.Timestamp{}, err
	}
	links, _, err := made.Links(group)
	if err != nil {
		return evidence.Timestamp{}, err
	}
	root, err := tree.Root()
	if err != nil {
		return evidence.Timestamp{}, err
	}
	if last := links[len(links)-1].Imprint; last.Hash != root.Hash || !bytes.Equal(last.Sum, root.Sum) {
		return evidence.Timestamp{}, errors.New("the evidence record does not lead to the root that was stamped")
	}
	return evidence.Timestamp{Kind: evidence.RFC4998, Token: der}, nil
}
