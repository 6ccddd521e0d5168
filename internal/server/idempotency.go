package server

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/ledger"
)

// maxIdempotencyKey is how long an idempotency key may be.
const maxIdempotencyKey = 255

// keyedID is the record id that a request with an idempotency key makes: the same each time, so that the log, which takes no
// id twice, remembers what was asked, and nothing else has to. Without a key it is "". what tells requests apart that make
// several records, or that other routes make.
//
// An id begins with a time. It is that of the key, where the key is a UUIDv7, as package client makes them, and otherwise the
// beginning of 1970: nothing in a key of another form says when it was made, and the id must not change with the clock.
func keyedID(r *http.Request, c *Caller, what string) (string, error) {
	key := r.Header.Get(api.IdempotencyKey)
	if key == "" {
		return "", nil
	}
	if len(key) > maxIdempotencyKey || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", fmt.Errorf("%w: header %s: want 1 to %d visible ASCII characters", api.ErrMalformed, api.IdempotencyKey, maxIdempotencyKey)
	}
	return evidence.RecordIDFor(key, "jurat idempotency", c.Name(), what, key), nil
}

// withID gives a draft a record id. One that the actor gave it stays, and then an idempotency key would say something else.
func withID(draft *evidence.Draft, id string) (*evidence.Draft, error) {
	if id == "" {
		return draft, nil
	}
	if draft.RecordID != "" {
		return nil, fmt.Errorf("%w: the payload has a record_id, which tells it from others as well as the header %s: give one of them",
			api.ErrMalformed, api.IdempotencyKey)
	}
	p := draft.Payload
	p.RecordID = id
	return evidence.NewDraft(p)
}

// already returns the record that was made of a draft before, if that is why it was refused now.
func (s *Server) already(r *http.Request, draft *evidence.Draft, keyed bool, cause error) (*evidence.Record, error) {
	var duplicate *ledger.DuplicateError
	if !errors.As(cause, &duplicate) || draft.RecordID == "" || duplicate.RecordID != draft.RecordID {
		return nil, cause
	}
	record, err := s.config.Installation.Ledger.Record(r.Context(), draft.RecordID)
	if err != nil {
		return nil, err
	}
	same, err := s.madeOf(record, draft)
	switch {
	case err != nil:
		return nil, err
	case same:
		return record, nil
	case keyed:
		return nil, fmt.Errorf("%w: it made record %s, which says something else", api.ErrKeyReused, draft.RecordID)
	}
	return nil, fmt.Errorf("%w: there is a record %s, which says something else", api.ErrConflict, draft.RecordID)
}

// filledIn are the members that a record has without its actor having given them.
var filledIn = []string{"schema", "action_type", "signers", "timestamp", "sealed_apart", "saw"}

// madeOf reports whether a record is what sealing a draft makes. Of a member whose text was destroyed nobody can say so.
func (s *Server) madeOf(record *evidence.Record, draft *evidence.Draft) (bool, error) {
	disclosed, err := s.config.Installation.Disclose(record, nil)
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

// membersOf lists what a draft gives, in canonical form.
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
