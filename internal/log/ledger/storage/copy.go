package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/internal/kit/fault"
)

// A batch is one transaction. It has copyRows rows, or fewer if they have more than copyBytes. Each row may have some megabytes, so copyPage are read at a time.
const copyRows, copyBytes, copyPage = 512, 8 << 20, 32

// ErrOtherLog means that the target of a copy contains records that are not the beginning of the source.
var ErrOtherLog = errors.New("the target contains another log")

// Copy copies a log, which must not change meanwhile, into a store. The store is empty, or contains the beginning
// from an interrupted copy. Copy does not verify what it copies: package fsck does. The copy has no checkpoint, so it
// cannot be opened before FinishCopy. Copy returns ErrOtherLog, wrapped, if the store contains something else.
func Copy(ctx context.Context, from, to Store, progress func(done, total int64)) (_ Head, err error) {
	defer fault.While(&err, "copying log")
	head, err := from.Head(ctx)
	if err != nil {
		return head, err
	}
	done, err := to.Head(ctx)
	if err != nil {
		return head, err
	}
	source := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) { return from.Hashes(ctx, indexes) })
	if err := begins(source, done, head); err != nil {
		return head, err
	}
	if err := copyDictionaries(ctx, from, to); err != nil {
		return head, err
	}
	owing, err := from.Owing(ctx)
	if err != nil {
		return head, err
	}
	for done.Size < head.Size {
		batch, err := copyBatch(ctx, from, source, done.Size, min(done.Size+copyRows, head.Size), owing)
		if err != nil {
			return head, err
		}
		if err := to.Append(ctx, func(now Head, _ Committed) (Batch, error) {
			if now != done {
				return Batch{}, fmt.Errorf("%w: its head is %v, but was %v", ErrOtherLog, now, done)
			}
			return batch, nil
		}); err != nil {
			return head, err
		}
		done = batch.Next
		if progress != nil {
			progress(done.Size, head.Size)
		}
	}
	if done != head {
		return head, fmt.Errorf("%w: its head is %v, but its records give %v", ErrDamaged, head, done)
	}
	return head, nil
}

// FinishCopy gives a copy the last checkpoint of its source, and what is left to do of an interrupted expiry. It passes
// on the errors of both stores: ErrConflict if to has a checkpoint already.
func FinishCopy(ctx context.Context, from, to Store) (err error) {
	defer fault.While(&err, "copying checkpoint")
	signed, err := from.Checkpoint(ctx)
	if err != nil {
		return err
	}
	if err := copyExpiring(ctx, from, to); err != nil {
		return fmt.Errorf("what is to expire: %w", err)
	}
	return to.SetCheckpoint(ctx, "", signed)
}

// copyExpiring copies what Expire has not done yet.
func copyExpiring(ctx context.Context, from, to Store) error {
	for next := int64(0); next >= 0; { // the number after the last one is negative
		list, err := from.Expiring(ctx, next, copyRows)
		if err != nil || len(list) == 0 {
			return err
		}
		noted := map[string][]int64{}
		for _, e := range list {
			noted[e.Act], next = append(noted[e.Act], e.Index), e.Index+1
		}
		for act, indexes := range noted {
			if err := to.PutExpiring(ctx, act, indexes); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyDictionaries copies what the rows are compressed with, so that they are copied as they are.
func copyDictionaries(ctx context.Context, from, to Store) error {
	last, err := from.NewestDictionary(ctx)
	if err != nil {
		return err
	}
	there, err := to.NewestDictionary(ctx)
	if err != nil {
		return err
	}
	for n := int64(1); n <= last; n++ {
		text, err := from.Dictionary(ctx, n)
		if err != nil {
			return fmt.Errorf("dictionary %d: %w", n, err)
		}
		if n > there {
			if err := to.PutDictionary(ctx, n, text); err != nil {
				return err
			}
			continue
		}
		has, err := to.Dictionary(ctx, n)
		if err != nil {
			return fmt.Errorf("dictionary %d: %w", n, err)
		}
		if !bytes.Equal(has, text) {
			return fmt.Errorf("%w: its dictionary %d is another", ErrOtherLog, n)
		}
	}
	return nil
}

func copyBatch(ctx context.Context, from Store, source tlog.HashReader, begin, end int64, owing []Owed) (batch Batch, err error) {
	batch.Copied = true
	size := 0
	for at := begin; at < end && size < copyBytes; at += copyPage {
		page, err := ExactRows(ctx, from, at, min(copyPage, end-at))
		if err != nil {
			return batch, err
		}
		for i := range page {
			size += len(page[i].Payload) + len(page[i].Packed.Blob)
		}
		batch.Rows = append(batch.Rows, page...)
	}
	end = begin + int64(len(batch.Rows))
	var indexes []int64
	for i := tlog.StoredHashCount(begin); i < tlog.StoredHashCount(end); i++ {
		indexes = append(indexes, i)
	}
	if batch.Hashes, err = from.Hashes(ctx, indexes); err != nil {
		return batch, err
	}
	if batch.Briefs, err = copyBriefs(ctx, from, begin, end-begin); err != nil {
		return batch, err
	}
	for _, o := range owing {
		waits, err := from.Waiting(ctx, o.Authority, begin, end-begin)
		if err != nil {
			return batch, err
		}
		for _, w := range waits {
			if w.Index < end {
				batch.Waits = append(batch.Waits, w)
			}
		}
	}
	batch.Next.Size = end
	batch.Next.Root, err = tlog.TreeHash(end, source)
	return batch, err
}

func begins(source tlog.HashReader, done, head Head) error {
	if done.Size > head.Size {
		return fmt.Errorf("%w: it has %v, but the source has %v", ErrOtherLog, done, head)
	}
	root, err := tlog.TreeHash(done.Size, source)
	if err == nil && root != done.Root {
		err = fmt.Errorf("%w: it has %v, but the first %d records of the source have the root %v", ErrOtherLog, done, done.Size, root)
	}
	return err
}

func copyBriefs(ctx context.Context, from Store, begin, n int64) (list []StoredBrief, err error) {
	stored, err := from.Briefs(ctx, BriefQuery{From: begin, N: n, Names: true})
	if err != nil {
		return nil, err
	}
	keys, err := from.BriefKeys(ctx, begin, n)
	if err != nil {
		return nil, err
	}
	has := map[int64][]int64{}
	for _, k := range keys {
		has[k.Index] = append(has[k.Index], k.Key)
	}
	for _, b := range stored {
		if b.Line != nil {
			b.Keys = has[b.Index]
			list = append(list, b)
		}
	}
	return list, nil
}
