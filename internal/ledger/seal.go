package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/internal/fault"
	"jurat/internal/keys"
	"jurat/internal/ledger/storage"
	"jurat/property"
)

// Seal completes a draft, signs it with these signers in this order, has it stamped, and appends the record to the
// log. It returns when the record is durable. Without a time stamp, or an authority that the record waits for, there
// is no record, and without a record no act.
//
// Config.Apart decides what is sealed apart. The values that open it are in Record.Disclosures of the returned
// record, not in the log. Config.Apart stores them before the record is appended, so that the log has no record whose
// values were lost on the way.
//
// A draft with a record id can be sealed again after any error without making two records: if the first call stored
// the record, the second returns a *DuplicateError. After ErrUnknown the record may be in the log; after any other
// error it is not.
func (l *Ledger) Seal(ctx context.Context, draft *evidence.Draft, by []evidence.Signer) (_ *evidence.Record, err error) {
	defer fault.While(&err, "sealing record")
	return l.sealWith(ctx, draft, by, nil, nil)
}

// sealWith seals a record, and stores stamps of earlier records in the same transaction. It returns errMoved if the
// chain does not end as after says; nil: any end.
func (l *Ledger) sealWith(ctx context.Context, draft *evidence.Draft, by []evidence.Signer, stamps []storage.Stamp, after *chainEnd) (*evidence.Record, error) {
	record, err := l.sealNotBefore(ctx, draft, by, stamps, after, time.Time{})
	if link := (*LinkError)(nil); draft.Timestamp == "" && errors.As(err, &link) && link.Rule == "time" { // the log gives the time
		least, failed := l.catchUp(ctx, &draft.Payload)
		if failed != nil {
			return nil, failed
		}
		return l.sealNotBefore(ctx, draft, by, stamps, after, least)
	}
	return record, err
}

// catchUp makes the clock continue from the time stamps of the records that a payload follows: those that it names, and the last of its chain. It
// returns the latest time that they claim.
func (l *Ledger) catchUp(ctx context.Context, p *evidence.Payload) (latest time.Time, err error) {
	named := append([]evidence.Digest{p.PreviousRecord}, p.Saw...)
	if p.ChainID != "" {
		last, err := l.LastOf(ctx, p.ChainID)
		if err != nil {
			return latest, err
		}
		named = append(named, last)
	}
	for _, digest := range named {
		if digest.IsZero() {
			continue
		}
		r, err := l.RecordByDigest(ctx, digest)
		if errors.Is(err, ErrNotFound) || errors.Is(err, ErrExpired) {
			continue
		}
		if err != nil {
			return latest, err
		}
		if l.cfg.CatchUp != nil {
			l.cfg.CatchUp(r)
		}
		if at := r.Payload.Time(); at.After(latest) {
			latest = at
		}
	}
	return latest, nil
}

// sealNotBefore seals a record. If the draft claims no time, the record claims the present one, but none before least.
func (l *Ledger) sealNotBefore(ctx context.Context, draft *evidence.Draft, by []evidence.Signer, stamps []storage.Stamp, after *chainEnd, least time.Time) (record *evidence.Record, err error) {
	if err := l.mayAppend(); err != nil {
		return nil, err
	}
	apart, provable, err := l.apart(ctx, draft)
	if err != nil {
		return nil, err
	}
	now := l.cfg.Now()
	id, err := evidence.NewRecordID(now, l.cfg.Random)
	if err != nil {
		return nil, err
	}
	k := &keeping{ledger: l}
	defer func() { // also if a signer or a stamper panics
		if err = k.end(ctx, err); err != nil {
			record = nil
		}
	}()
	record, err = draft.Seal(evidence.Sealing{Signers: by, Time: later(now, least), RecordID: id, Apart: apart, Provable: provable, Random: l.cfg.Random,
		Complete: func(r *evidence.Record) { k.begin(ctx, r) }})
	if err == nil {
		err = l.stampAndAppend(ctx, record, k, now, stamps, after)
	}
	return record, err
}

// stampAndAppend has a signed record stamped, and appends it.
func (l *Ledger) stampAndAppend(ctx context.Context, record *evidence.Record, k *keeping, now time.Time, stamps []storage.Stamp, after *chainEnd) error {
	now, err := l.mayEnter(ctx, record, now)
	if err != nil {
		return err
	}
	judging, err := l.mayFollow(ctx, record)
	if err != nil {
		return err
	}
	missing, err := l.stamp(ctx, record)
	if err != nil {
		return err
	}
	// A crash until here leaves no trace, but for values that belong to no record: neither the caller nor the log has anything.
	a := newAppending(now, []*evidence.Record{record}, [][]Missing{missing})
	a.stamps, a.after, a.judgings[0] = stamps, after, judging
	return k.append(ctx, a)
	// A crash from here on leaves a record that the caller may not know of. It is genuine, and is found by its id.
}

// apart lists what is sealed apart in a draft, and what of that is made provable. It asks the keeper here, so that no
// caller can forget it.
func (l *Ledger) apart(ctx context.Context, draft *evidence.Draft) ([]string, map[string]property.Kind, error) {
	if l.cfg.Apart == nil {
		return draft.Apart(), draft.Provable(), nil
	}
	return l.cfg.Apart.Apart(ctx, draft)
}

// keeps reports whether Config.Apart has something to store for a record.
func (l *Ledger) keeps(record *evidence.Record) bool {
	return l.cfg.Apart != nil && len(record.Payload.SealedApart) > 0
}

// stamp adds the time stamps that are available now, and returns the missing ones.
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
		return nil, fmt.Errorf("stamping: no token: %w", reasons(stamped.Missing))
	}
	if !stamped.Earliest.IsZero() {
		if err := notAhead(record, stamped.Earliest); err != nil {
			return nil, fmt.Errorf("by the clock of a time-stamping authority: %w", err)
		}
		if err := l.begun(ctx, &record.Payload, stamped.Earliest); err != nil {
			return nil, fmt.Errorf("by the clock of a time-stamping authority: %w", err)
		}
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

// begun returns keys.ErrNotYet if a record's signers have their keys only later than its stamp says, by more than readers allow.
func (l *Ledger) begun(ctx context.Context, p *evidence.Payload, stamped time.Time) error {
	if l.cfg.Began == nil {
		return nil
	}
	from, err := l.cfg.Began(ctx, p)
	if err == nil && stamped.Before(from.Add(-keys.Skew)) {
		err = fmt.Errorf("%w: it begins at %s, and would be stamped at %s; correct the clock that is wrong, or wait until then", keys.ErrNotYet, evidence.FormatTime(from), evidence.FormatTime(stamped))
	}
	return err
}

// Fits reports whether a late stamp may be added to a record: not if its signers have their keys only later.
func (l *Ledger) Fits(ctx context.Context, r *evidence.Record, stamped time.Time) (bool, error) {
	err := l.begun(ctx, &r.Payload, stamped)
	if errors.Is(err, keys.ErrNotYet) {
		return false, nil
	}
	return err == nil, err
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func reasons(missing []Missing) error {
	errs := []error{errors.New("no authority has stamped")}
	for _, m := range missing {
		errs = append(errs, fmt.Errorf("%s: %w", m.Authority, m.Reason))
	}
	return errors.Join(errs...)
}

// A keeping stores what one record seals apart, before the record is committed. A crash in between leaves values that
// belong to no record.
//
// Storing mostly waits for the disk. So of a lone caller it begins before the record is signed. Meanwhile the record is
// signed and stamped and its transaction prepared, which commits when the values are durable. Many callers share both, and
// a transaction that is open for longer would delay them: their values are stored before they append.
type keeping struct {
	ledger *Ledger
	record *evidence.Record // nil: it has nothing to keep
	stored func() error     // waits until the values are stored or cannot be; nil: that has not begun
}

// begin begins to keep the values of a record that is not signed yet, if it is time. end must be called.
func (k *keeping) begin(ctx context.Context, record *evidence.Record) {
	if !k.ledger.keeps(record) {
		return
	}
	k.record = record
	if lone := k.ledger.keeping.Add(1) == 1; !lone || !k.ledger.cfg.OneDisk {
		return
	}
	done := make(chan error, 1)
	go func() { done <- fault.Guard(func() error { return k.ledger.cfg.Apart.Keep(ctx, record) }) }()
	k.stored = sync.OnceValue(func() error { return <-done })
}

// append appends the record, which is not committed before its values are stored.
func (k *keeping) append(ctx context.Context, a *appending) error {
	if k.record != nil && k.stored == nil {
		err := k.ledger.cfg.Apart.Keep(ctx, k.record)
		if k.stored = func() error { return err }; err != nil {
			return err
		}
	} else {
		a.kept = k.stored
	}
	return k.ledger.append(ctx, a)
}

// end returns the error with which sealing ended, when nothing is being stored any more. It removes the values of a record
// that is not in the log.
func (k *keeping) end(ctx context.Context, err error) error {
	if k.record == nil {
		return err
	}
	defer k.ledger.keeping.Add(-1)
	if k.stored == nil {
		return err
	}
	if failed := k.stored(); err == nil {
		err = failed
	}
	// After these errors the record may be in the log, so its values must stay.
	if err != nil && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrDamaged) {
		// The values must be removed even if the caller's context has ended.
		err = errors.Join(err, k.ledger.cfg.Apart.Forget(context.WithoutCancel(ctx), k.record))
	}
	return err
}
