package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/internal/kit/fault"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/log/names"
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
	return l.sealWith(ctx, draft, by, nil)
}

// sealWith seals a record, and stores stamps of earlier records in the same transaction.
func (l *Ledger) sealWith(ctx context.Context, draft *evidence.Draft, by []evidence.Signer, stamps []storage.Stamp) (*evidence.Record, error) {
	record, err := l.sealNotBefore(ctx, draft, by, stamps, time.Time{})
	if link := (*LinkError)(nil); draft.Timestamp == "" && errors.As(err, &link) && link.Rule == "time" { // the log gives the time
		least, failed := l.catchUp(ctx, &draft.Payload)
		if failed != nil {
			return nil, failed
		}
		return l.sealNotBefore(ctx, draft, by, stamps, least)
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
func (l *Ledger) sealNotBefore(ctx context.Context, draft *evidence.Draft, by []evidence.Signer, stamps []storage.Stamp, least time.Time) (_ *evidence.Record, err error) {
	if err := l.mayAppend(); err != nil {
		return nil, err
	}
	draft, err = l.apart(ctx, draft)
	if err != nil {
		return nil, err
	}
	now := l.cfg.Now()
	record, err := l.signed(draft, now, evidence.Sealing{Signers: by, Time: least})
	if err != nil {
		return nil, err
	}
	k := &keeping{ledger: l}
	defer k.end(ctx, &err)
	a, err := l.stamped(ctx, record, now, stamps, k)
	if err != nil {
		return nil, err
	}
	// A crash until here leaves no trace, but for values that belong to no record: neither the caller nor the log has anything.
	if err := k.append(ctx, a); err != nil {
		return nil, err
	}
	return record, nil
	// A crash from here on leaves a record that the caller may not know of. It is genuine, and is found by its id.
}

// stamped stamps a record while its values are stored, and returns it with earlier records' stamps as it is to be appended.
func (l *Ledger) stamped(ctx context.Context, record *evidence.Record, now time.Time, stamps []storage.Stamp, k *keeping) (*appending, error) {
	now, err := l.mayEnter(ctx, record, now)
	if err != nil {
		return nil, err
	}
	judgings, err := l.mayFollow(ctx, record)
	if err != nil {
		return nil, err
	}
	k.begin(ctx, record)
	missing, err := l.stamp(ctx, record)
	if err != nil {
		return nil, err
	}
	a := newAppending(now, []*evidence.Record{record}, [][]Missing{missing})
	a.stamps, a.judgings = stamps, judgings
	return a, nil
}

// A keeping stores what a record seals apart, while it is stamped: both mostly wait.
type keeping struct {
	ledger *Ledger
	record *evidence.Record // nil: it has nothing to keep
	stored chan error       // of capacity one; closed after the outcome
	added  bool             // the record may be in the log
}

// begin begins to store the values of a record that is not stamped yet.
func (k *keeping) begin(ctx context.Context, record *evidence.Record) {
	if !k.ledger.keeps(record) {
		return
	}
	k.record, k.stored = record, make(chan error, 1)
	go func() {
		defer close(k.stored)
		k.stored <- fault.Guard(func() error { return k.ledger.cfg.Apart.Keep(ctx, record) })
	}()
}

// append appends the record when its values are stored.
func (k *keeping) append(ctx context.Context, a *appending) error {
	if k.record != nil {
		if err := <-k.stored; err != nil {
			return err
		}
	}
	k.added = true
	err := k.ledger.append(ctx, a)
	k.added = err == nil || errors.Is(err, ErrUnknown) || errors.Is(err, ErrDamaged)
	return err
}

// end removes the values of a record that is not in the log. The caller defers it: a stamper may panic.
func (k *keeping) end(ctx context.Context, err *error) {
	if k.record == nil || k.added {
		return
	}
	<-k.stored
	// The values must be removed even if the caller's context has ended.
	*err = errors.Join(*err, k.ledger.cfg.Apart.Forget(context.WithoutCancel(ctx), k.record))
}

// apart returns a draft that names what is sealed apart. It asks the keeper here, so that no caller can forget it.
func (l *Ledger) apart(ctx context.Context, draft *evidence.Draft) (*evidence.Draft, error) {
	if l.cfg.Apart == nil {
		return draft, nil
	}
	return l.cfg.Apart.Apart(ctx, draft)
}

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

func reasons(missing []Missing) error {
	errs := []error{errors.New("no authority has stamped")}
	for _, m := range missing {
		errs = append(errs, fmt.Errorf("%s: %w", m.Authority, m.Reason))
	}
	return errors.Join(errs...)
}

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
	judgings, err := l.mayFollow(ctx, record)
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
	a.judgings = judgings
	if err := l.append(ctx, a); err != nil {
		return nil, err
	}
	return record, nil
}

// mayEnter refuses what no new record may say, though older records in the log may say it. If need be, the clock first catches up with the
// records that this one follows. It returns what the clock says.
func (l *Ledger) mayEnter(ctx context.Context, record *evidence.Record, now time.Time) (time.Time, error) {
	if notAhead(record, now) != nil {
		if _, err := l.catchUp(ctx, &record.Payload); err != nil {
			return now, err
		}
		now = l.cfg.Now()
	}
	if err := notAhead(record, now); err != nil {
		return now, err
	}
	// The actor's own name was checked when its first key was made or registered. The next agent's name is only
	// claimed here.
	if next := record.Payload.NextAgent; next != "" {
		if err := names.Check(next); err != nil {
			return now, &evidence.FieldError{Field: "next_agent", Reason: err.Error()}
		}
	}
	return now, nil
}

// nothingOpen refuses a record with an open text that must always be sealed apart for its actor: the text would be
// part of every proof, and no erasure could remove it.
func (l *Ledger) nothingOpen(ctx context.Context, signed *evidence.Record) error {
	draft, err := evidence.NewDraft(signed.Payload)
	if err != nil {
		return err
	}
	if draft, err = l.apart(ctx, draft); err != nil || len(draft.Apart()) == 0 {
		return err
	}
	return &evidence.FieldError{Field: strings.TrimPrefix(draft.Apart()[0], "/"), Reason: fmt.Sprintf(
		"is always to be sealed apart for %q, but was signed open: its owner must seal it apart before signing", draft.Actor())}
}

// notAhead refuses a record that claims to be from the future, before it is stamped: nothing could ever prove its
// time. Time stamps may have whole seconds, so notAhead compares with the start of the current second.
func notAhead(record *evidence.Record, now time.Time) error {
	ahead := record.Payload.Time().Sub(now.Truncate(time.Second))
	if ahead <= maxAhead {
		return nil
	}
	return &evidence.FieldError{Field: "timestamp", Reason: fmt.Sprintf("%s is %s in the future: this clock says %s, and at most %s is allowed; "+
		"correct the clock that is wrong", record.Payload.Timestamp, ahead.Round(time.Second), evidence.FormatTime(now), maxAhead)}
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
// links by once more when it gets its place, or nothing if its links are not judged.
func (l *Ledger) mayFollow(ctx context.Context, record *evidence.Record) ([]*judging, error) {
	p := &record.Payload
	ofAgents := p.Role() == evidence.RoleAgent || p.Role() == evidence.RoleReviewer // acts of trials and of the operator have rules of their own
	links := p.ChainID != "" || !p.PreviousRecord.IsZero() || len(p.Saw) > 0 || decides(p)
	if l.cfg.UnsafeContradictions || !ofAgents || !links {
		return nil, nil
	}
	if err := l.isNew(ctx, record); err != nil {
		return nil, err
	}
	j, s, err := l.links.look(ctx, record)
	if err != nil {
		return nil, err
	}
	return []*judging{j}, j.judge(s)
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
