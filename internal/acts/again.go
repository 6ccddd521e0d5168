package acts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/ledger"
)

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
	same, err := a.madeOf(ctx, record, draft)
	switch {
	case err != nil:
		return nil, err
	case same:
		return &Done{Record: record, Before: true, Bound: true}, nil
	case keyed:
		return nil, fmt.Errorf("%w: it made record %s, which says something else", api.ErrKeyReused, draft.RecordID)
	}
	return nil, fmt.Errorf("%w: there is a record %s, which says something else", api.ErrConflict, draft.RecordID)
}

// again returns a record that was made before, if it was made from the given payload. It passes on err, the error of looking it up.
func (a *Acts) again(ctx context.Context, before *evidence.Record, err error, given evidence.Payload) (*Done, error) {
	if err != nil {
		return nil, err
	}
	given.RecordID = before.Payload.RecordID
	same, err := a.madeOf(ctx, before, &evidence.Draft{Payload: given})
	if err == nil && !same {
		err = fmt.Errorf("%w: it made record %s, which says something else", api.ErrKeyReused, before.Payload.RecordID)
	}
	if err != nil {
		return nil, err
	}
	return &Done{Record: before, Before: true, Bound: true}, nil
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

// membersOf returns the members that a draft gives, in canonical form.
func membersOf(draft *evidence.Draft) (map[string]jsontext.Value, error) {
	doc, err := json.Marshal(draft.Payload)
	if err != nil {
		return nil, err
	}
	if doc, err = evidence.Canonical(doc); err != nil {
		return nil, err
	}
	var members map[string]jsontext.Value
	return members, json.Unmarshal(doc, &members)
}
