// Package acts holds what agents and people do with a log, each act once: seal what was said, take in what its owner has
// signed, review it, deliver it. For each act it answers in this order: who may do it, what it is bound to, whose keys sign
// it, and what became of it when it was asked for before. The ledger then asks what is sealed apart, and seals.
//
// The command and the server only translate between their users and this package. Only this package and the clerk of a
// trial seal what agents, jurors and people say; imports_test.go in the module's root holds them to it.
//
// # Each act of agents and people is decided in one place
//
// Package `acts` says who may seal, accept, review and deliver, what an act is bound to and what became of it when it was asked for
// before; command and server translate. So both refuse the same: also at the operator's keyboard a person does not decide on their
// own work, and an agent does not act in a trial. The ledger asks its keeper what is sealed apart: a front cannot forget it. The
// operator's acts go through `ledger.Operator`. A test holds that no other package calls what seals.
//
// # The log remembers idempotency keys
//
// The record's id is made of the caller's name and the key, and the log takes no id twice. Nothing else has to be stored, expire, or
// agree with the log after a crash. The same key with another body shows by what is in the record.
//
// # A person's decision is bound by the server, a chain is read whole
//
// The reviewer sends what was decided; the server adds on what, by digest, and in which chain. A bundle with records left out would
// not be verified as it is, so who may not read all of a chain reads none of it as a bundle.
package acts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/keys"
	"jurat/internal/ledger"
	"jurat/internal/trial"
)

// Config is what acts are done with.
type Config struct {
	Ledger *ledger.Ledger
	Keys   ledger.Keys
	Opened Opened // needed by who asks what may be read; nil: nobody does
	Now    func() time.Time

	// Disclose opens what of a record is sealed apart, as far as it is kept.
	Disclose func(ctx context.Context, r *evidence.Record, withheld []string) (*evidence.Record, error)
}

// Acts does them. It is safe for concurrent use.
type Acts struct{ config Config }

// New returns the acts on a log.
func New(c Config) *Acts { return &Acts{c} }

// An Order says how an act is asked for.
type Order struct {
	By    Party    // who asks
	Key   string   // the same for the same order, so that it makes one record however often it comes; "": each makes another
	Apart []string // JSON pointers of members to seal apart beside those that always are
}

// Done is what an act has come to.
type Done struct {
	Record *evidence.Record
	Before bool            // it was in the log already
	Bound  bool            // it names by digest what it is about, or is about nothing
	Names  evidence.Digest // what it would have named, where its owner had signed it without; zero: nothing
}

// Seal completes a draft and seals it with the keys of the actor that it names.
func (a *Acts) Seal(ctx context.Context, o Order, draft *evidence.Draft) (*Done, error) {
	return a.seal(ctx, o, "record", draft, nil)
}

// seal seals a draft. what tells orders with one key apart. given is the draft without what was filled in for it, nil for the draft itself.
func (a *Acts) seal(ctx context.Context, o Order, what string, draft *evidence.Draft, given *evidence.Payload) (*Done, error) {
	id, err := o.recordID(what)
	if err != nil {
		return nil, err
	}
	if draft, err = withID(draft, id); err != nil {
		return nil, err
	}
	if given != nil && id != "" {
		if before, err := a.config.Ledger.Record(ctx, id); !errors.Is(err, ledger.ErrNotFound) {
			return a.again(ctx, before, err, *given)
		}
	}
	if err := a.mayAct(ctx, o.By, draft); err != nil {
		return nil, err
	}
	bound, is, err := trial.Bind(ctx, a.config.Ledger, draft)
	if err != nil {
		return nil, err
	}
	done, err := a.signOnce(ctx, bound.SealingApart(o.Apart...), id != "")
	if err == nil && !done.Before {
		done.Bound = is
	}
	if given != nil && errors.Is(err, api.ErrKeyReused) { // or somebody was faster with the same
		if before, failed := a.config.Ledger.Record(ctx, id); failed == nil {
			return a.again(ctx, before, nil, *given)
		}
	}
	return done, err
}

// signOnce seals with the keys of the actor that the draft names, unless the same was sealed before under its record id. keyed says
// that the id comes from an idempotency key.
func (a *Acts) signOnce(ctx context.Context, draft *evidence.Draft, keyed bool) (*Done, error) {
	signers, err := a.config.Keys.Signers(ctx, draft.Role(), draft.Actor())
	if err != nil {
		return nil, err
	}
	record, err := a.config.Ledger.Seal(ctx, draft, signers)
	if err != nil {
		return a.already(ctx, draft, keyed, err)
	}
	return &Done{Record: record, Bound: true}, nil
}

// Accept takes in what its owner has signed where the key is.
func (a *Acts) Accept(ctx context.Context, by Party, signed *evidence.Record) (*Done, error) {
	if err := Acceptable(&signed.Payload); err != nil {
		return nil, err
	}
	draft, err := evidence.NewDraft(signed.Payload)
	if err != nil {
		return nil, err
	}
	if err := a.mayAct(ctx, by, draft); err != nil {
		return nil, err
	}
	bound, is, err := trial.Bind(ctx, a.config.Ledger, draft)
	if err != nil {
		return nil, err
	}
	done := &Done{Bound: is}
	if len(bound.Saw) > len(draft.Saw) {
		done.Names = bound.Saw[0]
	}
	done.Record, err = a.config.Ledger.Accept(ctx, signed)
	if errors.Is(err, ledger.ErrDuplicate) {
		return a.acceptedBefore(ctx, signed, done, err)
	}
	return done, acceptProblem(err)
}

// acceptedBefore returns the record that is there already, if it is this one.
func (a *Acts) acceptedBefore(ctx context.Context, signed *evidence.Record, done *Done, cause error) (*Done, error) {
	record, err := a.config.Ledger.RecordByDigest(ctx, signed.Digest)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, cause
	}
	if err != nil {
		return nil, err
	}
	done.Record, done.Before = record, true
	return done, nil
}

// acceptProblem tells what is wrong with a record that its owner signed: there the keys are part of what was sent.
func acceptProblem(err error) error {
	if errors.Is(err, ledger.ErrRefused) || errors.Is(err, keys.ErrForeign) || errors.Is(err, keys.ErrEnded) || errors.Is(err, keys.ErrIncomplete) {
		return fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	return err
}
