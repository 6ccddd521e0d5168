package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
)

// Book returns the state of retention, from the log's acts. Its errors are those of the ledger and of Read.
func (a *Archivist) Book(ctx context.Context) (*Book, error) {
	acts, err := a.Ledger.Chain(ctx, operator.RetentionChain)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return nil, err
	}
	return Read(acts)
}

// CheckHeld returns a *HeldError if a record is on hold.
func (a *Archivist) CheckHeld(ctx context.Context, r *evidence.Record) error {
	book, err := a.Book(ctx)
	if err != nil {
		return err
	}
	return book.Held(r.Digest, r.Payload.ChainID)
}

// decide seals the act that decision returns for the current book. If another act is sealed meanwhile, it calls
// decision again.
func (a *Archivist) decide(ctx context.Context, decision func(*Book) (*operator.RetentionEventBody, error)) (*evidence.Record, error) {
	return a.decideAs(ctx, "", decision)
}

// decideAs is decide with the record id of the act; "": a new one.
func (a *Archivist) decideAs(ctx context.Context, id string, decision func(*Book) (*operator.RetentionEventBody, error)) (*evidence.Record, error) {
	sealed, err := a.Operator.SealNext(ctx, operator.RetentionChain, func(before []*evidence.Record) ([]evidence.Payload, error) {
		book, err := Read(before)
		if err != nil {
			return nil, err
		}
		body, err := decision(book)
		if err != nil || body == nil {
			return nil, err
		}
		p, err := ledger.OperatorAct(evidence.Payload{ActionType: evidence.RetentionEvent, ChainID: operator.RetentionChain, RecordID: id}, *body)
		if err != nil {
			return nil, err
		}
		return []evidence.Payload{p}, nil
	})
	if err != nil || len(sealed) == 0 {
		return nil, err
	}
	return sealed[0], nil
}

// A HoldOrder says what to put on hold: a chain, a record by its id, or everything.
type HoldOrder struct {
	Chain, RecordID string
	All             bool
	Reason, By      string
}

// Hold prevents records from being deleted, and their texts from being erased, until Release. It returns the act's
// id. It returns ledger.ErrNotFound, wrapped, for an unknown record, an error if the order names nothing, and the
// errors of sealing.
func (a *Archivist) Hold(ctx context.Context, o HoldOrder) (string, error) {
	body := operator.RetentionEventBody{Event: operator.RetentionHeld, Chain: o.Chain, Reason: strings.TrimSpace(o.Reason), By: strings.TrimSpace(o.By)}
	if o.RecordID != "" {
		row, err := a.Ledger.KeptRow(ctx, o.RecordID)
		if err != nil {
			return "", fmt.Errorf("holding record %s: %w", o.RecordID, err)
		}
		body.Record = row.Digest
	}
	if !o.All && body.Chain == "" && body.Record.IsZero() {
		return "", errors.New("holding: name a chain or a record, or choose all")
	}
	act, err := a.decide(ctx, func(*Book) (*operator.RetentionEventBody, error) { return &body, nil })
	if err != nil {
		return "", fmt.Errorf("holding: %w", err)
	}
	return act.Payload.RecordID, nil
}

// ErrNoHold means that no such hold is in force.
var ErrNoHold = errors.New("there is no such hold")

// Release ends a hold. It returns the id of its act, or ErrNoHold, wrapped.
func (a *Archivist) Release(ctx context.Context, hold, reason, by string) (string, error) {
	act, err := a.decide(ctx, func(b *Book) (*operator.RetentionEventBody, error) {
		if !slices.ContainsFunc(b.Holds, func(h Hold) bool { return h.ID == hold }) {
			return nil, fmt.Errorf("%w: %q", ErrNoHold, hold)
		}
		return &operator.RetentionEventBody{Event: operator.RetentionReleased, Hold: hold, Reason: strings.TrimSpace(reason), By: strings.TrimSpace(by)}, nil
	})
	if err != nil {
		return "", fmt.Errorf("releasing a hold: %w", err)
	}
	return act.Payload.RecordID, nil
}

// SetRetention sets for how many days records are kept from now on. It returns ErrTooYoung, wrapped, for less than
// operator.MinRetention.
func (a *Archivist) SetRetention(ctx context.Context, days int64, reason, by string) error {
	if days < operator.MinRetention {
		return fmt.Errorf("%w: %d days, want at least %d (six months)", ErrTooYoung, days, operator.MinRetention)
	}
	_, err := a.decide(ctx, func(b *Book) (*operator.RetentionEventBody, error) {
		if b.Days == days {
			return nil, nil
		}
		return &operator.RetentionEventBody{Event: operator.RetentionKept, Days: days, Reason: strings.TrimSpace(reason), By: strings.TrimSpace(by)}, nil
	})
	if err != nil {
		return fmt.Errorf("changing the retention time: %w", err)
	}
	return nil
}

// ErrTooYoung means that a deletion, or a retention time, is shorter than the time for which records must be kept.
var ErrTooYoung = errors.New("that is shorter than records must be kept")
