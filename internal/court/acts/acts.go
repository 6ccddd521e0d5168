// Package acts carries out what agents and people do with a log: they seal a statement, hand in a record that its owner has signed, review
// a record, deliver an answer. For each act it decides who may do it, which records it refers to, which keys sign it, and what an earlier
// attempt of the same order made. The ledger then decides what is sealed apart, and seals.
//
// The command and the server only translate between their users and this package. Only this package and the clerk of a trial seal what
// agents, jurors and people say; sealing_test.go in the module's root checks this. Submissions, with
// which trials begin, enter through internal/court/trial; the server's table of routes says who may submit.
//
// # Each act of agents and people is decided in one place
//
// Package `acts` decides who may seal, accept, review and deliver, who may cancel, resume, take and give back a trial, which records an act
// refers to, and what an earlier attempt made. Command and server translate, so both refuse the same: even at the operator's keyboard a person
// does not decide on their own work. The ledger asks its keeper what is sealed apart, so no caller can forget it. The operator's acts go through
// `ledger.Operator`. A test checks that no other package calls the functions that seal.
//
// # The log remembers idempotency keys
//
// The record's id is computed from the caller's name and the key, and the log accepts no id twice. So there is no second store that could
// expire, or disagree with the log after a crash. If the same key comes with another body, comparing it with the record shows that.
//
// # A person's decision is bound by the server, a chain is read whole
//
// The reviewer sends the decision. The server adds the digest of the decided record, and its chain. A bundle that lacks records would not
// verify as a whole. So a reader who may not read all of a chain gets no bundle of it.
package acts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/property"
	"jurat/internal/court/trial"
	"jurat/internal/log/access"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger"
)

// Config says which log the acts go to, and which keys sign them.
type Config struct {
	Ledger *ledger.Ledger
	Keys   Keys
	Opened Opened // needed for the questions about reading; nil: those are not asked
	Now    func() time.Time

	// Disclose adds the values of a record that are sealed apart, as far as they are kept.
	Disclose func(ctx context.Context, r *evidence.Record, withheld []string) (*evidence.Record, error)
}

// Keys are the keys of actors, as keys.Ring has them.
type Keys interface {
	ledger.Keys
	// ToSeal is Signers by what this process knows of the log, which may have changed.
	ToSeal(ctx context.Context, role evidence.Role, name string) ([]evidence.Signer, error)
}

// Acts carries out acts on a log. It is safe for concurrent use.
type Acts struct{ config Config }

// New returns the acts on a log.
func New(c Config) *Acts { return &Acts{c} }

// An Order says who asks for an act, and with which idempotency key.
type Order struct {
	By    Party    // the party that asks
	Key   string   // the idempotency key: an order that is repeated with it makes one record; "": each order makes another
	Apart []string // JSON pointers of members to seal apart, beside those that always are

	Provable map[string]property.Kind // the same with kinds: members to seal apart and make provable

	// Still returns an error if what the party acts on has changed since the party saw it. It is asked just before a record is sealed, but
	// not if the same order made the record before. nil: it is not asked.
	Still func(context.Context) error
}

// Done is the result of an act.
type Done struct {
	Record *evidence.Record
	Before bool            // the record was in the log already
	Bound  bool            // the record names by digest what it is about, or is about no other record
	Names  evidence.Digest // the digest that a record signed by its owner should have named and does not; zero: none
}

// Seal completes a draft and seals it with the keys of the actor that it names. Its errors include api.ErrForbidden, api.ErrOwnWork,
// api.ErrMalformed, api.ErrKeyReused, api.ErrConflict and *evidence.FieldError, and those of the keys and the ledger.
func (a *Acts) Seal(ctx context.Context, o Order, draft *evidence.Draft) (*Done, error) {
	return a.seal(ctx, o, "record", draft, nil)
}

// seal seals a draft. what distinguishes different orders with one key. given is the draft before the server completed it; nil means the
// draft itself.
func (a *Acts) seal(ctx context.Context, o Order, what string, draft *evidence.Draft, given *evidence.Payload) (*Done, error) {
	draft, keyed, err := o.keyed(draft, what)
	if err != nil {
		return nil, err
	}
	if given != nil && keyed {
		if before, err := a.config.Ledger.Record(ctx, draft.RecordID); !errors.Is(err, ledger.ErrNotFound) {
			return a.again(ctx, before, err, *given)
		}
	}
	if err := a.mayAct(ctx, o.By, draft); err != nil {
		return nil, err
	}
	if o.Still != nil {
		if err := o.Still(ctx); err != nil {
			return nil, err
		}
	}
	bound, is, err := a.bind(ctx, draft)
	if err != nil {
		return nil, err
	}
	done, err := a.signOnce(ctx, bound.SealingApart(o.Provable, o.Apart...), keyed)
	if err == nil && !done.Before {
		done.Bound = is
	}
	if given != nil && errors.Is(err, api.ErrKeyReused) { // another request with the same key may have been faster
		if before, failed := a.config.Ledger.Record(ctx, draft.RecordID); failed == nil {
			return a.again(ctx, before, nil, *given)
		}
	}
	return done, err
}

// bind is ledger.Bind, which knows no trials.
func (a *Acts) bind(ctx context.Context, draft *evidence.Draft) (*evidence.Draft, bool, error) {
	bound, is, err := a.config.Ledger.Bind(ctx, draft)
	if err == nil && draft.ActionType == evidence.HumanReview {
		err = trial.MayDecide(ctx, a.config.Ledger, &bound.Payload)
	}
	return bound, is, err
}

// signOnce seals with the keys of the actor that the draft names, unless the same draft was sealed before under its record id. keyed says
// that the id comes from an idempotency key.
func (a *Acts) signOnce(ctx context.Context, draft *evidence.Draft, keyed bool) (*Done, error) {
	record, err := a.sealSigned(ctx, draft)
	if err != nil {
		return a.already(ctx, draft, keyed, err)
	}
	return &Done{Record: record, Bound: true}, nil
}

// sealSigned seals with the keys of the actor as this process knows them. The log checks them as it stores the record. If it stored nothing, and
// names other keys now, another process has changed them: these are tried.
func (a *Acts) sealSigned(ctx context.Context, draft *evidence.Draft) (*evidence.Record, error) {
	find := a.config.Keys.ToSeal
	if draft.Signers != nil { // it is compared with them before the log is asked
		find = a.config.Keys.Signers
	}
	known, err := find(ctx, draft.Role(), draft.Actor())
	if err != nil && draft.Signers == nil && staleKeys(err) {
		known, err = a.config.Keys.Signers(ctx, draft.Role(), draft.Actor())
	}
	if err != nil {
		return nil, err
	}
	record, err := a.config.Ledger.Seal(ctx, draft, known)
	if err == nil || errors.Is(err, ledger.ErrUnknown) || errors.Is(err, ledger.ErrDamaged) || errors.Is(err, ledger.ErrDuplicate) {
		return record, err
	}
	now, failed := a.config.Keys.Signers(ctx, draft.Role(), draft.Actor())
	switch {
	case failed != nil && refusedKeys(err):
		return nil, failed
	case failed != nil, slices.EqualFunc(now, known, func(a, b evidence.Signer) bool { return a.Info() == b.Info() }):
		return nil, err
	}
	return a.config.Ledger.Seal(ctx, draft, now)
}

// Accept logs a record that its owner has signed elsewhere. If the same record is in the log, Done says so. Its errors include
// api.ErrForbidden, api.ErrOwnWork, *evidence.FieldError, and api.ErrInvalid for a record or keys that the log refuses.
func (a *Acts) Accept(ctx context.Context, by Party, signed *evidence.Record) (*Done, error) {
	if err := Acceptable(&signed.Payload); err != nil {
		return nil, err
	}
	draft := &evidence.Draft{Payload: signed.Payload}
	if err := a.mayAct(ctx, by, draft); err != nil {
		return nil, err
	}
	bound, is, err := a.bind(ctx, draft)
	if err != nil {
		return nil, err
	}
	done := &Done{Bound: is}
	if len(bound.Saw) > len(draft.Saw) {
		done.Names = bound.Saw[0]
	}
	done.Record, err = a.config.Ledger.Accept(ctx, signed)
	if errors.Is(err, ledger.ErrDuplicate) {
		record, failed := a.config.Ledger.RecordByDigest(ctx, signed.Digest)
		switch {
		case failed == nil:
			done.Record, done.Before = record, true
			return done, nil
		case !errors.Is(failed, ledger.ErrNotFound):
			err = failed
		}
		return nil, err
	}
	if errors.Is(err, ledger.ErrRefused) || refusedKeys(err) { // the keys are part of the request
		err = fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	return done, err
}

// staleKeys reports whether an actor cannot seal by what this process knows of its keys. Another process may have changed that since.
func staleKeys(err error) bool {
	return errors.Is(err, keys.ErrNoKey) || errors.Is(err, keys.ErrEnded) || errors.Is(err, keys.ErrLost) || errors.Is(err, keys.ErrSecondKey)
}

// refusedKeys reports whether the log refused a record because of the keys that signed it.
func refusedKeys(err error) bool {
	return errors.Is(err, keys.ErrForeign) || errors.Is(err, keys.ErrEnded) || errors.Is(err, keys.ErrIncomplete)
}

// MaxKey is the length limit of an idempotency key.
const MaxKey = 255

// KeyedID returns the id of the record that an order with an idempotency key makes, or "" without a key. The id is the same each time. So the
// log, which accepts no id twice, remembers the order, and no other store is needed. what distinguishes orders that make several records.
// KeyedID returns api.ErrMalformed for a key that is too long, or has other characters than visible ASCII.
//
// An id begins with a time. If the key is a UUIDv7, as package client makes them, it is the key's time; otherwise it is the beginning of
// 1970. A key in another form does not say when it was made, and the id must not change with the clock.
func KeyedID(by Party, key, what string) (string, error) {
	if key == "" {
		return "", nil
	}
	if len(key) > MaxKey || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", fmt.Errorf("%w: header %s: want 1 to %d visible ASCII characters", api.ErrMalformed, api.IdempotencyKey, MaxKey)
	}
	return evidence.RecordIDFor(key, "jurat idempotency", by.Name(), what, key), nil
}

// keyed sets a draft's record id if the order has a key, and reports whether it has. If the actor gave the draft an id, an idempotency key would
// contradict it, so that is an error.
func (o Order) keyed(draft *evidence.Draft, what string) (*evidence.Draft, bool, error) {
	id, err := KeyedID(o.By, o.Key, what)
	if err != nil || id == "" {
		return draft, false, err
	}
	if draft.RecordID != "" {
		return nil, true, fmt.Errorf("%w: the payload has a record_id, and the request has the header %s: give only one of them",
			api.ErrMalformed, api.IdempotencyKey)
	}
	p := draft.Payload
	p.RecordID = id
	draft, err = evidence.NewDraft(p)
	return draft, true, err
}

// already returns the record that was made from the same draft before, if cause says that the record id is taken.
func (a *Acts) already(ctx context.Context, draft *evidence.Draft, keyed bool, cause error) (*Done, error) {
	var duplicate *ledger.DuplicateError
	if !errors.As(cause, &duplicate) || draft.RecordID == "" || duplicate.RecordID != draft.RecordID {
		return nil, cause
	}
	record, err := a.config.Ledger.Record(ctx, draft.RecordID)
	if err != nil {
		return nil, err
	}
	if !keyed {
		return a.made(ctx, record, draft, fmt.Errorf("%w: there is a record %s, which says something else", api.ErrConflict, draft.RecordID))
	}
	return a.made(ctx, record, draft, reused(draft.RecordID))
}

func reused(recordID string) error {
	return fmt.Errorf("%w: it made record %s, which says something else", api.ErrKeyReused, recordID)
}

// made returns a record if it was made from a draft, and otherwise the error for a record that was not.
func (a *Acts) made(ctx context.Context, record *evidence.Record, draft *evidence.Draft, other error) (*Done, error) {
	same, err := a.madeOf(ctx, record, draft)
	switch {
	case err != nil:
		return nil, err
	case !same:
		return nil, other
	}
	return &Done{Record: record, Before: true, Bound: true}, nil
}

// again returns a record that was made before, if it was made from the given payload. It passes on err, the error of looking it up.
func (a *Acts) again(ctx context.Context, before *evidence.Record, err error, given evidence.Payload) (*Done, error) {
	if err != nil {
		return nil, err
	}
	given.RecordID = before.Payload.RecordID
	return a.made(ctx, before, &evidence.Draft{Payload: given}, reused(given.RecordID))
}

// filledIn lists the members that sealing adds to what the actor gave.
var filledIn = []string{"schema", "action_type", "signers", "timestamp", "sealed_apart", "provable", "saw"}

// madeOf reports whether sealing a draft makes this record. If a text of the record was destroyed, it cannot tell and reports false.
func (a *Acts) madeOf(ctx context.Context, record *evidence.Record, draft *evidence.Draft) (bool, error) {
	disclosed, err := a.config.Disclose(ctx, record, nil)
	if err != nil {
		return false, err
	}
	sealed, _, err := evidence.Reveal(record.Canonical(), disclosed.Disclosures)
	if err != nil {
		return false, err
	}
	given, err := membersOf(draft)
	if err != nil {
		return false, err
	}
	for name, value := range sealed {
		if was, there := given[name]; there && !bytes.Equal(was, value) || !there && !slices.Contains(filledIn, name) {
			return false, nil
		}
	}
	for name := range given {
		if _, there := sealed[name]; !there {
			return false, nil
		}
	}
	return true, nil
}

func membersOf(draft *evidence.Draft) (map[string]jsontext.Value, error) {
	doc, err := json.Marshal(draft.Payload)
	if err != nil {
		return nil, err
	}
	if doc, err = evidence.Canonical(doc); err != nil {
		return nil, err
	}
	var members map[string]jsontext.Value
	err = json.Unmarshal(doc, &members)
	return members, err
}

// Review seals a person's decision on a record, in the chain of that record. The caller has checked that the person may read the record.
// Its errors are those of Seal, and api.ErrInvalid for an act of the operator.
func (a *Acts) Review(ctx context.Context, o Order, original *evidence.Record, review api.Review) (*Done, error) {
	id := original.Payload.RecordID
	if original.Payload.ActionType.ByOperator() {
		return nil, fmt.Errorf("%w: record %s is an act of the operator, which is not reviewed", api.ErrInvalid, id)
	}
	name := o.By.Name()
	for _, named := range []struct{ field, value, is string }{
		{"reviewer_id", review.ReviewerID, name}, {"original_response_id", review.OriginalResponseID, id}} {
		if named.value != "" && named.value != named.is {
			return nil, &evidence.FieldError{Field: named.field, Reason: fmt.Sprintf("is %q, but %q decides on record %s", named.value, name, id)}
		}
	}
	given := evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: name, OriginalResponseID: id, Saw: []evidence.Digest{original.Digest},
		ChainID: original.Payload.ChainID, Case: original.Payload.Case, ApprovalStatus: evidence.ApprovalStatus(review.ApprovalStatus),
		ModifiedResponse: jsontext.Value(review.ModifiedResponse), Changes: jsontext.Value(review.Changes), Context: jsontext.Value(review.Context),
		Timestamp: review.Timestamp}
	p := given
	if p.Timestamp == "" { // not before the act, whose time may be by another clock
		p.Timestamp = evidence.FormatTime(slices.MaxFunc([]time.Time{a.config.Now(), original.Payload.Time()}, time.Time.Compare))
	}
	draft, err := evidence.NewDraft(p)
	if err != nil {
		return nil, err
	}
	return a.seal(ctx, o, "review of "+id, draft, &given)
}

// Deliver seals the answer that a review approved: the response of a record, as it is or as the reviewer changed it. It is the agent's act,
// so the agent's key signs it, if that is here. The caller has checked that the party may read the record. Its errors include
// api.ErrInvalid, api.ErrForbidden, api.ErrConflict, *evidence.FieldError, and those of the keys and the ledger.
func (a *Acts) Deliver(ctx context.Context, o Order, original *evidence.Record, reviewID string) (*Done, error) {
	p := &original.Payload
	if role := p.Role(); role != evidence.RoleAgent {
		return nil, fmt.Errorf("%w: record %s is an act of the %s; only an agent's answer can be delivered", api.ErrInvalid, p.RecordID, role)
	}
	// An agent delivers only its own answers, although it may also read public records of others.
	if o.By != Operator && o.By.Has(access.Agent) && p.Actor() != o.By.Name() {
		return nil, fmt.Errorf("%w: record %s is by %q, so %q cannot deliver it", api.ErrForbidden, p.RecordID, p.Actor(), o.By.Name())
	}
	review, err := a.config.Ledger.Record(ctx, reviewID)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, &evidence.FieldError{Field: "review", Reason: "names a record that is not in this log"}
	}
	if err != nil {
		return nil, err
	}
	response, err := a.approved(ctx, original, review)
	if err != nil {
		return nil, err
	}
	draft, err := evidence.NewDraft(evidence.Payload{ActionType: evidence.Delivery, AgentID: p.AgentID, RequestID: p.RequestID,
		OriginalResponseID: p.RecordID, Response: response, Saw: []evidence.Digest{original.Digest, review.Digest}, ChainID: p.ChainID})
	if err != nil {
		return nil, err
	}
	draft, keyed, err := o.keyed(draft, "delivery of "+p.RecordID)
	if err != nil {
		return nil, err
	}
	return a.signOnce(ctx, draft, keyed)
}

func (a *Acts) approved(ctx context.Context, original, review *evidence.Record) (jsontext.Value, error) {
	p := &review.Payload
	if p.ActionType != evidence.HumanReview || len(p.Saw) != 1 || p.Saw[0] != original.Digest {
		return nil, &evidence.FieldError{Field: "review", Reason: "names a record that is not a review of this answer"}
	}
	from, member := original, "response"
	switch p.ApprovalStatus {
	case evidence.Approved:
	case evidence.ApprovedWithModifications:
		from, member = review, "modified_response"
	default:
		return nil, &evidence.FieldError{Field: "review", Reason: "names a review that rejects"}
	}
	disclosed, err := a.config.Disclose(ctx, from, nil)
	if err != nil {
		return nil, err
	}
	members, withheld, err := evidence.Reveal(from.Canonical(), disclosed.Disclosures)
	if err != nil {
		return nil, err
	}
	if slices.Contains(withheld, "/"+member) {
		return nil, fmt.Errorf("%w: the approved text is no longer kept here", api.ErrConflict)
	}
	return members[member], nil
}

// Observations is a log as a recorder needs it. Only a recorder on the installation itself has it: nobody can hand in what a recorder is said
// to have seen.
type Observations struct{ acts *Acts }

// Observations returns the log for a recorder.
func (a *Acts) Observations() Observations { return Observations{a} }

// Seal seals what a recorder saw, or an event of its own, with the recorder's keys. Its errors include api.ErrConflict, if the log has another
// record with the draft's id, and those of the keys and the ledger.
func (o Observations) Seal(ctx context.Context, draft *evidence.Draft) (evidence.Digest, error) {
	if role := draft.Role(); role != evidence.RoleRecorder {
		return evidence.Digest{}, &evidence.FieldError{Field: "action_type", Reason: fmt.Sprintf("%s is an act of the %s, not of a recorder", draft.ActionType, role)}
	}
	done, err := o.acts.signOnce(ctx, draft, false)
	if err != nil {
		return evidence.Digest{}, err
	}
	return done.Record.Digest, nil
}

// Last returns the digest of the last record of a chain, zero if the log has none, and the time that it claims, zero if it has expired.
func (o Observations) Last(ctx context.Context, chain string) (evidence.Digest, time.Time, error) {
	last, err := o.acts.config.Ledger.LastOf(ctx, chain)
	if err != nil || last.IsZero() {
		return last, time.Time{}, err
	}
	r, err := o.acts.config.Ledger.RecordByDigest(ctx, last)
	if errors.Is(err, ledger.ErrExpired) {
		return last, time.Time{}, nil
	}
	if err != nil {
		return last, time.Time{}, err
	}
	return last, r.Payload.Time(), nil
}

// RequestOf reports whether the log has a record with this id, and returns the digest of the request that it states: zero if it states none, or has expired.
func (o Observations) RequestOf(ctx context.Context, recordID string) (request evidence.Digest, known bool, err error) {
	r, err := o.acts.config.Ledger.Record(ctx, recordID)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return request, false, nil
	case errors.Is(err, ledger.ErrExpired): // its content was deleted, and it was there
		return request, true, nil
	case err != nil:
		return request, false, err
	}
	if p := &r.Payload; p.Observed != nil && p.Observed.Request != nil {
		request = p.Observed.Request.SHA256
	}
	return request, true, nil
}
