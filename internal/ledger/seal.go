package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/keyhistory"
)

// settleTime is how long a ledger looks for a record of which the store did not say whether it is stored.
const settleTime = 10 * time.Second

// Seal completes a draft, has it signed by these signers in this order and stamped, and appends the record to the
// log. It returns when the record is durable. Without a token, or an authority that it waits for, there is no record,
// and without a record no act.
//
// apart lists JSON pointers to members that are sealed apart: what opens them is in Record.Disclosures of the returned
// record and is not in the log. Config.Apart has it before the record is appended, so that no record is in the log
// whose values were lost on the way.
//
// A draft that brings a record id can be sealed again after any error without becoming two records: the second time
// the error is a *DuplicateError, if the first time it was stored.
func (l *Ledger) Seal(ctx context.Context, draft *evidence.Draft, by []evidence.Signer, apart []string) (*evidence.Record, error) {
	record, err := l.sealWith(ctx, draft, by, apart, func(*Batch) {})
	if err != nil {
		return nil, fmt.Errorf("sealing record: %w", err)
	}
	return record, nil
}

// sealWith seals, and stores what also adds to the batch together with the record.
func (l *Ledger) sealWith(ctx context.Context, draft *evidence.Draft, by []evidence.Signer, apart []string, also func(*Batch)) (*evidence.Record, error) {
	if err := l.mayAppend(); err != nil {
		return nil, err
	}
	now := l.cfg.Now()
	id, err := evidence.NewRecordID(now, l.cfg.Random)
	if err != nil {
		return nil, err
	}
	record, err := draft.Seal(evidence.Sealing{Signers: by, Time: now, RecordID: id, Apart: apart, Random: l.cfg.Random})
	if err != nil {
		return nil, err
	}
	missing, err := l.stamp(ctx, record)
	if err != nil {
		return nil, err
	}
	// A crash up to here leaves no trace: the caller has nothing, the log has nothing.
	err = l.keepAndAppend(ctx, record, func(b *Batch) {
		b.Waits = waits(b.Rows[0].Index, missing, now)
		also(b)
	})
	if err != nil {
		return nil, err
	}
	// A crash from here on leaves a record of which the caller may not know. It is genuine, and is found by its id.
	return record, nil
}

// keepAndAppend appends a record whose values, where it has any that are sealed apart, are kept by then. A crash between
// the two leaves values of a record that never was, and so of nothing.
func (l *Ledger) keepAndAppend(ctx context.Context, record *evidence.Record, also func(*Batch)) error {
	if !l.keeps(record) {
		return l.append(ctx, record, also)
	}
	err := l.cfg.Apart.Keep(record)
	if err == nil {
		err = l.append(ctx, record, also)
	}
	// With some errors it may be in the log, and what a record commits to must not be lost for an error's sake.
	if err != nil && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrDamaged) {
		err = errors.Join(err, l.cfg.Apart.Forget(record))
	}
	return err
}

// keeps reports whether there is something of a record to be kept.
func (l *Ledger) keeps(record *evidence.Record) bool {
	return l.cfg.Apart != nil && len(record.Payload.SealedApart) > 0
}

// stamp adds the time stamps that are to be had now, and returns whose are missing.
func (l *Ledger) stamp(ctx context.Context, record *evidence.Record) ([]Missing, error) {
	stamper, waits := l.cfg.Stamper, !neverWaits(record.Payload.ActionType)
	if !waits && l.cfg.Settler != nil {
		stamper = l.cfg.Settler
	}
	stamped, err := stamper.Stamp(ctx, record.Imprint())
	if err != nil {
		return nil, fmt.Errorf("stamping: %w", err)
	}
	if len(stamped.Tokens) == 0 && (!waits || len(stamped.Missing) == 0) {
		return nil, fmt.Errorf("stamping: there is no token: %w", reasons(stamped.Missing))
	}
	for _, token := range stamped.Tokens {
		if len(token) == 0 || len(token) > evidence.MaxToken {
			return nil, fmt.Errorf("stamping: a token has %d bytes, want 1 to %d", len(token), evidence.MaxToken)
		}
		record.Timestamps = append(record.Timestamps, evidence.Timestamp{Kind: evidence.RFC3161, Token: token})
	}
	if !waits {
		return nil, nil
	}
	return stamped.Missing, nil
}

func reasons(missing []Missing) error {
	errs := []error{errors.New("no authority has stamped")}
	for _, m := range missing {
		errs = append(errs, fmt.Errorf("%s: %w", m.Authority, m.Reason))
	}
	return errors.Join(errs...)
}

// append gives a sealed record the next place in the log, together with what also adds to its batch, in one
// transaction, if its signers may sign.
func (l *Ledger) append(ctx context.Context, record *evidence.Record, also func(*Batch)) error {
	return l.appendAfter(ctx, nil, []*evidence.Record{record}, also)
}

// appendAfter appends records if a chain ends where the caller has seen its end; errMoved says that it does not any more.
func (l *Ledger) appendAfter(ctx context.Context, end *chainEnd, records []*evidence.Record, also func(*Batch)) error {
	if err := l.writing.acquire(ctx); err != nil {
		return fmt.Errorf("waiting to append: %w", err)
	}
	defer l.writing.release()
	for {
		keys, err := l.knownKeys(ctx)
		if err != nil {
			return err
		}
		err = l.appendBy(ctx, keys, end, records, also)
		if !errors.Is(err, errKeysMoved) {
			return err
		}
		l.keys.Store(nil) // another process has changed keys: look again
	}
}

func (l *Ledger) appendBy(ctx context.Context, keys *keyhistory.History, end *chainEnd, records []*evidence.Record, also func(*Batch)) error {
	var next *tree
	err := l.cfg.Store.Append(ctx, func(head Head, log Committed) (Batch, error) {
		tree, err := l.treeOf(head, log)
		if err != nil {
			return Batch{}, err
		}
		if err := l.admit(log, keys, end, records); err != nil {
			return Batch{}, err
		}
		var batch Batch
		leaves := make([]tlog.Hash, len(records))
		for i, record := range records {
			row := rowOf(record, head.Size+int64(i))
			if err := count(&row, batch.Rows, log); err != nil {
				return Batch{}, err
			}
			batch.Rows, leaves[i] = append(batch.Rows, row), leafOf(record, row.Counts)
		}
		next, batch.Hashes, err = tree.grow(leaves)
		if err != nil {
			return Batch{}, err
		}
		batch.Next = next.head
		also(&batch)
		return batch, nil
	})
	if errors.Is(err, errKeysMoved) || errors.Is(err, errMoved) {
		return err // nothing was stored
	}
	if err != nil {
		l.tree = nil // whatever it is now, the store says
		return l.whatBecameOf(ctx, records[0], fmt.Errorf("appending: %w", err))
	}
	l.tree = next
	l.learn(next.head)
	return nil
}

// treeOf returns the tree of a log that is locked: the one that this process made, or, when another process has
// appended since, or after an error, the one in the store, if it contains all that this process knows of.
func (l *Ledger) treeOf(head Head, hashes tlog.HashReader) (*tree, error) {
	if l.tree != nil && l.tree.head == head {
		return l.tree, nil
	}
	if err := contains(head, *l.known.Load(), hashes); err != nil {
		return nil, err
	}
	return loadTree(head, hashes)
}

// whatBecameOf finds out what became of a record whose append failed: a store can fail after it has stored. The record
// answers for all that its batch was to store, as that is stored together or not at all.
func (l *Ledger) whatBecameOf(ctx context.Context, record *evidence.Record, cause error) error {
	for _, certain := range []error{ErrDuplicate, ErrConflict, ErrBehind, ErrForked, ErrClosed, keyhistory.ErrEnded, keyhistory.ErrForeign,
		keyhistory.ErrIncomplete, keyhistory.ErrEvent} {
		if errors.Is(cause, certain) {
			return cause
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	row, err := l.cfg.Store.ByRecordID(ctx, record.Payload.RecordID)
	if errors.Is(err, ErrNotFound) {
		return cause
	}
	if err != nil {
		return fmt.Errorf("%w: record %s: %w; looking for it: %w", ErrUnknown, record.Payload.RecordID, cause, err)
	}
	stored, err := openRow(&row)
	if err != nil {
		return fmt.Errorf("%w: %w", cause, err)
	}
	if !same(stored, record) {
		return fmt.Errorf("%w: %w", cause, &DuplicateError{RecordID: row.RecordID, Index: row.Index, Field: "record_id"})
	}
	return nil // it was stored all the same
}

func rowOf(r *evidence.Record, index int64) Row {
	return Row{Index: index, RecordID: r.Payload.RecordID, Digest: r.Digest, ChainID: r.Payload.ChainID,
		Case: submitted(&r.Payload), Payload: r.Canonical(), Signatures: r.Signatures, Timestamps: r.Timestamps}
}

// submitted is the case that a payload submits, if it does.
func submitted(p *evidence.Payload) evidence.Digest {
	if p.ActionType != evidence.Submission {
		return evidence.Digest{}
	}
	return p.Case
}

// count says of a new row which one it is of its chain and of its case, after those in the log and those before it here.
func count(row *Row, before []Row, log Committed) error {
	if row.ChainID != "" {
		n, err := log.ChainCount(row.ChainID)
		if err != nil {
			return fmt.Errorf("counting chain %q: %w", row.ChainID, err)
		}
		row.Counts.ChainSeq = n + 1
	}
	if !row.Case.IsZero() {
		n, err := log.CaseCount(row.Case)
		if err != nil {
			return fmt.Errorf("counting case %v: %w", row.Case, err)
		}
		row.Counts.CaseSeq = n + 1
	}
	for _, other := range before {
		if row.ChainID != "" && other.ChainID == row.ChainID {
			row.Counts.ChainSeq++
		}
		if !row.Case.IsZero() && other.Case == row.Case {
			row.Counts.CaseSeq++
		}
	}
	return nil
}

// AddTimestamp adds a time stamp to a record that is in the log, by a second authority or a renewal. The record itself
// does not change. Whether the token is over the record's imprint is for the caller to check before.
func (l *Ledger) AddTimestamp(ctx context.Context, id string, t evidence.Timestamp) error {
	if err := l.addTimestamp(ctx, id, t); err != nil {
		return fmt.Errorf("adding time stamp to record %s: %w", id, err)
	}
	return nil
}

func (l *Ledger) addTimestamp(ctx context.Context, id string, t evidence.Timestamp) error {
	row, err := l.cfg.Store.ByRecordID(ctx, id)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(row.Timestamps, func(has evidence.Timestamp) bool { return bytes.Equal(has.Token, t.Token) }) {
		return nil // whoever could not know whether it was stored may ask again
	}
	row.Timestamps = append(row.Timestamps, t)
	if _, err := openRow(&row); err != nil { // a kind or size that no record may have
		return err
	}
	return l.cfg.Store.AddTimestamp(ctx, row.Index, t)
}
