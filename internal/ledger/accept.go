package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/internal/ledger/links"
	"jurat/internal/names"
)

// maxAhead is how far in the future a record may claim to be: two clocks never quite agree. Readers do not count the time of one
// that claims more than its time stamps prove by this much.
const maxAhead = 5 * time.Minute

// ErrRefused says that a record from elsewhere cannot be taken in as it is.
var ErrRefused = errors.New("the record is refused")

// Accept appends a record that its actor has signed elsewhere, with keys that only the actor holds. They must be those
// that the log names as the actor's, all that sign now and no others.
//
// Nothing else that comes with the record is believed, or kept: with time stamps, certificates, a place in a log or
// disclosed values it is refused, so that nobody finds later that the one he relied on was dropped. An ECDSA signature
// whose S is high, as other programs make them, becomes its twin whose S is low, before it is stamped.
//
// It returns when the record is durable. It can be called again after any error without making two records: the second
// time the error is a *DuplicateError, if the first time it was stored.
func (l *Ledger) Accept(ctx context.Context, signed *evidence.Record) (*evidence.Record, error) {
	record, err := l.accept(ctx, signed)
	if err != nil {
		return nil, fmt.Errorf("accepting record: %w", err)
	}
	return record, nil
}

func (l *Ledger) accept(ctx context.Context, signed *evidence.Record) (*evidence.Record, error) {
	if err := l.mayAppend(); err != nil {
		return nil, err
	}
	if err := bare(signed); err != nil {
		return nil, err
	}
	record, err := normal(signed)
	if err != nil {
		return nil, err
	}
	now := l.cfg.Now()
	if err := mayEnter(record, now); err != nil {
		return nil, err
	}
	if err := l.nothingOpen(ctx, record); err != nil {
		return nil, err
	}
	keys, err := l.Keys(ctx)
	if err != nil {
		return nil, err
	}
	if err := keys.CheckOwned(record, now); err != nil {
		return nil, err
	}
	if err := l.isNew(ctx, record); err != nil { // before it costs a time stamp
		return nil, err
	}
	judging, err := l.mayFollow(ctx, record)
	if err != nil {
		return nil, err
	}
	missing, err := l.stamp(ctx, record)
	if err != nil {
		return nil, err
	}
	// That the values of what the owner sealed apart were never here is noted first, and stays noted whatever comes of it:
	// it holds nothing that anybody said, and who takes in the same record at the same moment relies on the same note.
	if l.keeps(record) {
		if err := l.cfg.Apart.Keep(ctx, record); err != nil {
			return nil, err
		}
	}
	// What has happened to a key since is seen inside the transaction.
	a := newAppending(now, []*evidence.Record{record}, [][]Missing{missing})
	a.judgings[0] = judging
	if err := l.append(ctx, a); err != nil {
		return nil, err
	}
	return record, nil
}

// mayEnter refuses what no record may say when it is sealed, though records of earlier may say it.
func mayEnter(record *evidence.Record, now time.Time) error {
	if err := notAhead(record, now); err != nil {
		return err
	}
	// The actor's own name was checked when its first key was made or registered. Its word alone names the next one.
	if next := record.Payload.NextAgent; next != "" {
		if err := names.Check(next); err != nil {
			return &evidence.FieldError{Field: "next_agent", Reason: err.Error()}
		}
	}
	return nil
}

// nothingOpen refuses what is signed with a text in it that is always to be sealed apart of its actor: that text would be part of
// every proof, and no erasure could reach it.
func (l *Ledger) nothingOpen(ctx context.Context, signed *evidence.Record) error {
	draft, err := evidence.NewDraft(signed.Payload)
	if err != nil {
		return err
	}
	open, err := l.apart(ctx, draft)
	if err != nil || len(open) == 0 {
		return err
	}
	return &evidence.FieldError{Field: strings.TrimPrefix(open[0], "/"), Reason: fmt.Sprintf(
		"is always to be sealed apart of %q, and is signed as it is; its owner seals it apart before signing", draft.Actor())}
}

// notAhead refuses what claims to be of the future, before it is stamped: nothing could prove its time ever after. Time stamps
// may have whole seconds, so the clock is read to the second.
func notAhead(record *evidence.Record, now time.Time) error {
	ahead := record.Payload.Time().Sub(now.Truncate(time.Second))
	if ahead <= maxAhead {
		return nil
	}
	return &evidence.FieldError{Field: "timestamp", Reason: fmt.Sprintf("%s is %s in the future by this clock, which says %s; at most %s is taken in: set the clock that is wrong",
		record.Payload.Timestamp, ahead.Round(time.Second), evidence.FormatTime(now), maxAhead)}
}

// bare refuses what only a sealed record has.
func bare(r *evidence.Record) error {
	brings := ""
	switch {
	case len(r.Timestamps) > 0:
		brings = "time stamps"
	case len(r.Certificates) > 0:
		brings = "certificates"
	case r.Log != nil:
		brings = "a place in a log"
	case len(r.Disclosures) > 0:
		brings = "the values of what is sealed apart in it, which are its owner's to keep"
	default:
		return nil
	}
	return fmt.Errorf("%w: it brings %s; a record that is to be sealed has none", ErrRefused, brings)
}

// normal copies what is taken in, and holds its parts against each other once more: whoever made it may not have.
func normal(r *evidence.Record) (*evidence.Record, error) {
	if len(r.Signatures) != len(r.Payload.Signers) {
		return nil, fmt.Errorf("%w: the payload names %d signers, and there are %d signatures", ErrRefused, len(r.Payload.Signers), len(r.Signatures))
	}
	signatures := make([][]byte, len(r.Signatures))
	for i, signature := range r.Signatures {
		var err error
		if signatures[i], err = evidence.NormalSignature(r.Payload.Signers[i].Algorithm, signature); err != nil {
			return nil, fmt.Errorf("%w: signature %d: %w", ErrRefused, i, err)
		}
	}
	return evidence.OpenParts(r.Canonical(), signatures, nil)
}

// mayFollow refuses a record that could not be appended, before it costs a time stamp. It returns by what the record is to be judged once
// more when it gets its place; nil if its links are not judged.
func (l *Ledger) mayFollow(ctx context.Context, record *evidence.Record) (*links.Judging, error) {
	if l.cfg.UnsafeContradictions || !links.Judged(&record.Payload) {
		return nil, nil
	}
	if err := l.isNew(ctx, record); err != nil {
		return nil, err
	}
	return l.links.Judge(ctx, record)
}

// isNew says that the log has the record, or another with its id, if it does.
func (l *Ledger) isNew(ctx context.Context, record *evidence.Record) error {
	row, err := l.cfg.Store.ByRecordID(ctx, record.Payload.RecordID)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	duplicate := &DuplicateError{RecordID: row.RecordID, Index: row.Index, Field: "record_id"}
	if row.Digest == record.Digest {
		duplicate.Field = "digest"
	}
	return duplicate
}
