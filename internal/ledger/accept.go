package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/internal/fault"
	"jurat/internal/ledger/links"
	"jurat/internal/names"
)

// maxAhead is how far in the future a record may claim to be: two clocks never agree exactly. Verifiers ignore the
// claimed time of a record if it is later than its time stamps prove by more than this.
const maxAhead = 5 * time.Minute

// ErrRefused means that a record signed elsewhere cannot be accepted as it is.
var ErrRefused = errors.New("the record is refused")

// Accept appends a record that its actor has signed elsewhere, with keys that only the actor holds. The signers must
// be exactly the keys that the log names as the actor's and that sign now.
//
// Accept refuses a record that comes with time stamps, certificates, a place in a log, or disclosed values. It would
// keep none of them, and their owner might rely on one. If an ECDSA signature has a high S, Accept replaces it by the
// equivalent signature with a low S before stamping.
//
// It returns when the record is durable. It can be called again after any error without making two records: if the
// first call stored the record, the second returns a *DuplicateError. Other errors wrap ErrRefused, an
// *evidence.FieldError, or the error of a check or of the store.
func (l *Ledger) Accept(ctx context.Context, signed *evidence.Record) (_ *evidence.Record, err error) {
	defer fault.While(&err, "accepting record")
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
	keys, err := l.Keys(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range record.Payload.Signers {
		if k := keys.Key(s.KeyID); k != nil && l.cfg.Reach != nil {
			l.cfg.Reach(k.From)
		}
	}
	now, err := l.mayEnter(ctx, record, l.cfg.Now())
	if err != nil {
		return nil, err
	}
	if err := l.nothingOpen(ctx, record); err != nil {
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
	// First the installation notes that it never had the values that the owner sealed apart. The note stays even if
	// the append fails: it contains nothing that anyone said. A concurrent Accept of the same record relies on the
	// same note.
	if l.keeps(record) {
		if err := l.cfg.Apart.Keep(ctx, record); err != nil {
			return nil, err
		}
	}
	// The transaction checks what has happened to a key since.
	a := newAppending(now, []*evidence.Record{record}, [][]Missing{missing})
	a.judgings[0] = judging
	if err := l.append(ctx, a); err != nil {
		return nil, err
	}
	return record, nil
}

// mayEnter is mayEnter after the clock has caught up with the records that this one follows, and returns what the clock says.
func (l *Ledger) mayEnter(ctx context.Context, record *evidence.Record, now time.Time) (time.Time, error) {
	if notAhead(record, now) != nil {
		if _, err := l.catchUp(ctx, &record.Payload); err != nil {
			return now, err
		}
		now = l.cfg.Now()
	}
	return now, mayEnter(record, now)
}

// mayEnter refuses what no new record may say, though older records in the log may say it.
func mayEnter(record *evidence.Record, now time.Time) error {
	if err := notAhead(record, now); err != nil {
		return err
	}
	// The actor's own name was checked when its first key was made or registered. The next agent's name is only
	// claimed here.
	if next := record.Payload.NextAgent; next != "" {
		if err := names.Check(next); err != nil {
			return &evidence.FieldError{Field: "next_agent", Reason: err.Error()}
		}
	}
	return nil
}

// nothingOpen refuses a record with an open text that must always be sealed apart for its actor: the text would be
// part of every proof, and no erasure could remove it.
func (l *Ledger) nothingOpen(ctx context.Context, signed *evidence.Record) error {
	draft, err := evidence.NewDraft(signed.Payload)
	if err != nil {
		return err
	}
	open, _, err := l.apart(ctx, draft)
	if err != nil || len(open) == 0 {
		return err
	}
	return &evidence.FieldError{Field: strings.TrimPrefix(open[0], "/"), Reason: fmt.Sprintf(
		"is always to be sealed apart for %q, but was signed open: its owner must seal it apart before signing", draft.Actor())}
}

// notAhead refuses a record that claims to be from the future, before it is stamped: nothing could ever prove its
// time. Time stamps may have whole seconds, so notAhead compares with the start of the current second.
func notAhead(record *evidence.Record, now time.Time) error {
	ahead := record.Payload.Time().Sub(now.Truncate(time.Second))
	if ahead <= maxAhead {
		return nil
	}
	return &evidence.FieldError{Field: "timestamp", Reason: fmt.Sprintf("%s is %s in the future: this clock says %s, and at most %s is allowed; correct the clock that is wrong",
		record.Payload.Timestamp, ahead.Round(time.Second), evidence.FormatTime(now), maxAhead)}
}

// bare refuses a record with parts that only a sealed record has.
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
		brings = "the values of fields that are sealed apart, which only its owner keeps"
	default:
		return nil
	}
	return fmt.Errorf("%w: it brings %s, which a record that is not sealed yet must not have", ErrRefused, brings)
}

// normal copies a record, normalises its signatures, and checks that its parts fit together.
func normal(r *evidence.Record) (*evidence.Record, error) {
	if len(r.Signatures) != len(r.Payload.Signers) {
		return nil, fmt.Errorf("%w: the payload names %d signers, but there are %d signatures", ErrRefused, len(r.Payload.Signers), len(r.Signatures))
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

// mayFollow refuses a record that could not be appended, before it costs a time stamp. It returns what to judge its
// links by once more when it gets its place, or nil if its links are not judged.
func (l *Ledger) mayFollow(ctx context.Context, record *evidence.Record) (*links.Judging, error) {
	if l.cfg.UnsafeContradictions || !links.Judged(&record.Payload) {
		return nil, nil
	}
	if err := l.isNew(ctx, record); err != nil {
		return nil, err
	}
	return l.links.Judge(ctx, record)
}

// isNew returns a *DuplicateError if the log has the record, or another record with its id.
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
