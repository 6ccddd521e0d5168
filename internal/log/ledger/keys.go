package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger/storage"
)

var (
	errKeysMoved = errors.New("keys have changed")
	errMoved     = errors.New("another caller has added to the chain")
)

// A chainEnd is the number of records that a chain must have when something is appended to it.
type chainEnd struct {
	chain string
	count int64
}

// Keys returns the current state of all keys, from the log's key events. The caller must not change it. It returns
// ErrDamaged, wrapped, if the events contradict each other.
func (l *Ledger) Keys(ctx context.Context) (*keys.History, error) {
	last, err := l.cfg.Store.LastOfChain(ctx, operator.KeysChain)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("reading key events: %w", err)
	}
	if known := l.keys.Load(); known != nil && known.Count() == last.Counts.ChainSeq {
		return known, nil
	}
	return l.readKeys(ctx)
}

// KnownKeys returns the state of keys as of the last read. The caller must not change it.
func (l *Ledger) KnownKeys(ctx context.Context) (*keys.History, error) {
	if known := l.keys.Load(); known != nil {
		return known, nil
	}
	return l.readKeys(ctx)
}

func (l *Ledger) readKeys(ctx context.Context) (*keys.History, error) {
	keys, err := ReadKeys(ctx, l.cfg.Store)
	if err == nil {
		l.keys.Store(keys)
	}
	return keys, err
}

// ReadKeys reads the state of keys from the log in a store. It returns ErrDamaged, wrapped, if the key events
// contradict each other.
func ReadKeys(ctx context.Context, store storage.Store) (*keys.History, error) {
	records, err := readChain(ctx, store, operator.KeysChain)
	if errors.Is(err, ErrNotFound) {
		return keys.NewHistory(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading key events: %w", err)
	}
	keys, err := keys.ReadHistory(records)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return keys, nil
}

// admit returns an error if a signer of these records may not sign now, or if a key event among them does not fit the
// earlier ones.
func admit(keys *keys.History, records []*evidence.Record, now func() time.Time) error {
	if keys.Count() > 0 { // without key events, any key may sign
		now := now()
		for _, r := range records {
			if err := keys.Admit(&r.Payload, now); err != nil {
				return err
			}
		}
	}
	if !slices.ContainsFunc(records, aboutKeys) {
		return nil
	}
	next := keys.Clone()
	for _, r := range records {
		if !aboutKeys(r) {
			continue
		}
		if err := next.Apply(r); err != nil {
			return err
		}
	}
	return nil
}

// aboutKeys reports whether a record must be a key event that fits the earlier ones.
func aboutKeys(r *evidence.Record) bool {
	return r.Payload.ChainID == operator.KeysChain || r.Payload.ActionType == evidence.KeyEvent
}

// SealNext seals the acts that next returns for the records of a chain. It appends them in one transaction, directly
// after those records. If another caller adds to the chain meanwhile, it calls next again.
//
// Each act gets the chain, its position in it, the digest of the record before it, and a time that is not before that
// record's. It returns next's error, and the errors of Seal.
func (l *Ledger) SealNext(ctx context.Context, chain string, by []evidence.Signer,
	next func(chain []*evidence.Record) ([]evidence.Payload, error)) ([]*evidence.Record, error) {
	return l.untilUnmoved(func() ([]*evidence.Record, error) {
		before, err := l.Chain(ctx, chain)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		payloads, err := next(before)
		if err != nil || len(payloads) == 0 {
			return nil, err
		}
		var last *evidence.Record
		if n := len(before); n > 0 {
			last = before[n-1]
		}
		return l.sealAt(ctx, &chainEnd{chain: chain, count: int64(len(before))}, last, by, payloads)
	})
}

// untilUnmoved repeats seal while other callers add to its chain meanwhile.
func (l *Ledger) untilUnmoved(seal func() ([]*evidence.Record, error)) ([]*evidence.Record, error) {
	for {
		if err := l.mayAppend(); err != nil {
			return nil, err
		}
		records, err := seal()
		if !errors.Is(err, errMoved) {
			return records, err
		}
	}
}

// SealLast seals acts at the end of a chain, whatever it contains, in one transaction. Each gets what SealNext gives.
// Its errors are those of Seal.
func (l *Ledger) SealLast(ctx context.Context, chain string, by []evidence.Signer, payloads ...evidence.Payload) ([]*evidence.Record, error) {
	return l.untilUnmoved(func() ([]*evidence.Record, error) {
		row, err := l.cfg.Store.LastOfChain(ctx, chain)
		var last *evidence.Record
		if err == nil {
			last, err = row.Record()
		} else if errors.Is(err, ErrNotFound) { // of the row, not of what the row needs
			err = nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading chain %q: %w", chain, err)
		}
		return l.sealAt(ctx, &chainEnd{chain: chain, count: row.Counts.ChainSeq}, last, by, payloads)
	})
}

// sealAt seals acts in a chain directly after last (nil for an empty chain). It returns errMoved if last is not the
// end of the chain any more.
func (l *Ledger) sealAt(ctx context.Context, end *chainEnd, last *evidence.Record, by []evidence.Signer, payloads []evidence.Payload) ([]*evidence.Record, error) {
	var records []*evidence.Record
	var missing [][]Missing
	for i, p := range payloads {
		p.ChainID = end.chain
		if p.ActionType != evidence.CheckpointStamp { // of those, nobody counts the positions
			p.ChainPosition = end.count + int64(i+1)
		}
		l.follow(&p, last)
		var record *evidence.Record
		var waiting []Missing
		draft, err := evidence.NewDraft(p)
		if err == nil {
			record, err = l.signed(draft, l.cfg.Now(), evidence.Sealing{Signers: by})
		}
		if err == nil {
			waiting, err = l.stamp(ctx, record)
		}
		if err != nil {
			return nil, fmt.Errorf("sealing %s: %w", p.ActionType, err)
		}
		records, missing, last = append(records, record), append(missing, waiting), record
	}
	a := newAppending(l.cfg.Now(), records, missing)
	a.after = end
	if err := l.append(ctx, a); err != nil {
		return nil, fmt.Errorf("sealing %s: %w", payloads[0].ActionType, err)
	}
	return records, nil
}

// follow sets the record that a payload follows in its chain (nil for none), and the time. The time is not before
// that record's, because a clock may have been set back.
func (l *Ledger) follow(p *evidence.Payload, last *evidence.Record) {
	now := l.cfg.Now()
	if last != nil {
		p.PreviousRecord = last.Digest
		then := last.Payload.Time()
		if now.Before(then) && l.cfg.CatchUp != nil {
			l.cfg.CatchUp(last) // so that the stamp is not before that record's either
		}
		if now = l.cfg.Now(); now.Before(then) {
			now = then
		}
	}
	p.Timestamp = evidence.FormatTime(now)
}

// signed signs a draft at a time. The record claims this time, or that of the sealing if it is later.
func (l *Ledger) signed(draft *evidence.Draft, now time.Time, s evidence.Sealing) (_ *evidence.Record, err error) {
	if s.RecordID, err = evidence.NewRecordID(now, l.cfg.Random); err != nil {
		return nil, err
	}
	if s.Random = l.cfg.Random; s.Time.Before(now) {
		s.Time = now
	}
	return draft.Seal(s)
}

// Keys returns the keys that sign for an actor, all of them and in their order.
type Keys interface {
	Signers(ctx context.Context, role evidence.Role, name string) ([]evidence.Signer, error)
}

// An Operator seals the operator's own acts, each with the operator's keys.
type Operator struct {
	Ledger *Ledger
	Keys   Keys
}

// OperatorAct completes the payload of an operator's act with its body. It returns an error for an act that its
// readers would refuse.
func OperatorAct[B operator.Body](p evidence.Payload, body B) (evidence.Payload, error) {
	response, err := operator.Encode(body)
	if err != nil {
		return p, err
	}
	p.AgentID, p.Response = OperatorName, response
	return p, operator.Check(&p)
}

// Seal seals one act. It keeps the act's time and record id, or sets new ones. It sets no position in a chain. apart lists members to seal
// apart. Its errors are those of Keys, of evidence.NewDraft and of Ledger.Seal.
func (o Operator) Seal(ctx context.Context, p evidence.Payload, apart ...string) (*evidence.Record, error) {
	draft, err := evidence.NewDraft(p)
	if err != nil {
		return nil, err
	}
	return signedBy(ctx, o, func(by []evidence.Signer) (*evidence.Record, error) {
		return o.Ledger.Seal(ctx, draft.SealingApart(nil, apart...), by)
	})
}

// SealNext is Ledger.SealNext. It also returns the errors of Keys.
func (o Operator) SealNext(ctx context.Context, chain string, next func(chain []*evidence.Record) ([]evidence.Payload, error)) ([]*evidence.Record, error) {
	return signedBy(ctx, o, func(by []evidence.Signer) ([]*evidence.Record, error) { return o.Ledger.SealNext(ctx, chain, by, next) })
}

// ChangeKeys seals the key events that plan returns for the current state of keys, in one transaction. If another
// caller changes keys meanwhile, it calls plan again. It returns plan's error, and the errors of SealNext.
func (o Operator) ChangeKeys(ctx context.Context, plan func(*keys.History) ([]operator.KeyEventBody, error)) error {
	_, err := o.SealNext(ctx, operator.KeysChain, func(chain []*evidence.Record) ([]evidence.Payload, error) {
		history, err := keys.ReadHistory(chain)
		if err != nil {
			return nil, err
		}
		events, err := plan(history)
		if err != nil {
			return nil, err
		}
		acts := make([]evidence.Payload, len(events))
		for n, e := range events {
			if acts[n], err = OperatorAct(evidence.Payload{ActionType: evidence.KeyEvent}, e); err != nil {
				return nil, err
			}
		}
		return acts, nil
	})
	return err
}

// SealLast is Ledger.SealLast, in the chain that the act names. It also returns the errors of Keys.
func (o Operator) SealLast(ctx context.Context, p evidence.Payload) error {
	_, err := signedBy(ctx, o, func(by []evidence.Signer) ([]*evidence.Record, error) {
		return o.Ledger.SealLast(ctx, p.ChainID, by, p)
	})
	return err
}

// Settle is Ledger.Settle. It also returns the errors of Keys.
func (o Operator) Settle(ctx context.Context, late []LateStamp) (int, error) {
	return signedBy(ctx, o, func(by []evidence.Signer) (int, error) { return o.Ledger.Settle(ctx, late, by) })
}

// Anchor is Ledger.Anchor. It also returns the errors of Keys.
func (o Operator) Anchor(ctx context.Context, body operator.CheckpointStampBody) (*evidence.Record, error) {
	return signedBy(ctx, o, func(by []evidence.Signer) (*evidence.Record, error) { return o.Ledger.Anchor(ctx, body, by) })
}

func signedBy[T any](ctx context.Context, o Operator, do func(by []evidence.Signer) (T, error)) (done T, err error) {
	signers, err := o.Keys.Signers(ctx, evidence.RoleOperator, OperatorName)
	if err != nil {
		return done, err
	}
	return do(signers)
}
