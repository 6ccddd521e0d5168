package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/acts"
	"jurat/internal/ledger"
	"jurat/internal/ledger/brief"
	"jurat/property"
	"jurat/property/proving"
)

func (s *Server) recordRoutes() []Route {
	return []Route{
		{Method: "POST", Pattern: "/v1/records", Kind: API, Who: Who{Roles: []access.Role{access.Agent, access.Reviewer}}, Handle: s.sealing(s.postRecord),
			Doc: Doc{Summary: "Seals a payload with the key of the agent or reviewer that it names, who must be the token's owner. Or accepts a record that its actor has signed.",
				In: Payload, Out: Record, Status: http.StatusCreated}},
		{Method: "GET", Pattern: "/v1/records/{id}", Kind: API, Shared: true, Heavy: true, Who: Readers, Handle: s.getRecord,
			Doc: Doc{Summary: "A sealed record, with its time stamps and the proof of its place in the log.", Out: Record}},
		{Method: "POST", Pattern: "/v1/records/{id}/properties", Kind: API, Heavy: true, Who: SignedIn, Handle: s.postProperty,
			Doc: Doc{Summary: "A proof of what a value is like that was sealed apart, in a bundle that does not have the value. It changes nothing, and each answer has another proof.",
				In: api.Property{}, Out: Bundle}},
	}
}

func (s *Server) getRecord(w http.ResponseWriter, r *http.Request, c *Caller) error {
	proved, err := s.provedRecord(r, c)
	if err != nil {
		return err
	}
	return writeFile(w, r, http.StatusOK, proved)
}

// disclosed returns a record with the disclosures that the caller may see.
func (s *Server) disclosed(ctx context.Context, c *Caller, id string) (*evidence.Record, error) {
	record, err := s.readable(ctx, c, id)
	if err != nil {
		return nil, err
	}
	return s.disclosedTo(ctx, c, record)
}

// readable returns a record if the caller may read it. A stranger gets the same error for a missing and for a private
// record.
func (s *Server) readable(ctx context.Context, c *Caller, id string) (*evidence.Record, error) {
	record, err := s.config.Installation.Ledger.Record(ctx, id)
	if errors.Is(err, ledger.ErrNotFound) {
		if c.Stranger() {
			return nil, acts.NotPublic()
		}
		return nil, fmt.Errorf("%w: the log has no record with this id", api.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	if err := s.mayRead(ctx, c, record); err != nil {
		return nil, err
	}
	return record, nil
}

// mayRead applies acts.MayRead to a record.
func (s *Server) mayRead(ctx context.Context, c *Caller, record *evidence.Record) error {
	return s.acts.MayRead(ctx, c, briefOf(record))
}

// briefOf returns what decides who may read a record.
func briefOf(record *evidence.Record) *brief.Brief {
	p := &record.Payload
	return &brief.Brief{RecordID: p.RecordID, ChainID: p.ChainID, Action: p.ActionType, Actor: p.Actor(), Original: p.OriginalResponseID}
}

func (s *Server) reviewRoutes() []Route {
	return []Route{
		{Method: "POST", Pattern: "/v1/records/{id}/reviews", Kind: API, Heavy: true, Who: Deciders, Handle: s.sealing(withBody(s.postReview)), Doc: Doc{
			Summary: "A person's decision on a record, signed with the reviewer's key and bound to the record's content.",
			In:      api.Review{}, Out: Record, Status: http.StatusCreated}},
		{Method: "POST", Pattern: "/v1/records/{id}/deliveries", Kind: API, Heavy: true, Who: Who{Roles: []access.Role{access.Agent, access.Reviewer, access.Operator}},
			Handle: s.sealing(withBody(s.postDelivery)), Doc: Doc{
				Summary: "The answer that is finally given: what the named review approved, signed with the agent's key.",
				In:      api.Delivery{}, Out: Record, Status: http.StatusCreated}},
	}
}

// postReview seals a person's decision.
func (s *Server) postReview(r *http.Request, c *Caller, review *api.Review) (*acts.Done, error) {
	return s.review(r.Context(), c, order(r, c), r.PathValue("id"), *review)
}

// review seals the caller's decision on a record. It returns api.ErrNotFound for a missing record, the errors of the
// caller's rights, and those of acts.Review.
func (s *Server) review(ctx context.Context, c *Caller, o acts.Order, id string, review api.Review) (*acts.Done, error) {
	original, err := s.readable(ctx, c, id)
	if err != nil {
		return nil, err
	}
	return s.acts.Review(ctx, o, original, review)
}

// postDelivery seals the answer that is delivered.
func (s *Server) postDelivery(r *http.Request, c *Caller, delivery *api.Delivery) (*acts.Done, error) {
	return s.deliver(r.Context(), c, order(r, c), r.PathValue("id"), delivery.Review)
}

// deliver seals the answer that a review approved. It returns api.ErrNotFound for a missing record, the errors of the
// caller's rights, and those of acts.Deliver.
func (s *Server) deliver(ctx context.Context, c *Caller, o acts.Order, id, review string) (*acts.Done, error) {
	original, err := s.readable(ctx, c, id)
	if err != nil {
		return nil, err
	}
	return s.acts.Deliver(ctx, o, original, review)
}

// order returns the act that a request asks for.
func order(r *http.Request, c *Caller) acts.Order {
	return acts.Order{By: c, Key: r.Header.Get(api.IdempotencyKey)}
}

// postRecord seals what an agent said or a reviewer decided, or accepts a record that they have signed themselves.
func (s *Server) postRecord(r *http.Request, c *Caller) (*acts.Done, error) {
	doc, err := readBody(r)
	if err != nil {
		return nil, err
	}
	if evidence.BeginsAsRecord(doc) {
		signed, _, err := evidence.Read(doc)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", api.ErrInvalid, err)
		}
		return s.acts.Accept(r.Context(), c, signed)
	}
	draft, err := evidence.ParseDraft(doc)
	if err != nil {
		return nil, err
	}
	return s.acts.Seal(r.Context(), order(r, c), draft)
}

// count adds a sealed record to the metrics.
func (s *Server) count(done *acts.Done, err error) (*acts.Done, error) {
	if err == nil && !done.Before {
		s.metrics.Sealed(done.Record.Payload.ActionType)
	}
	return done, err
}

// sealing makes a Handler that answers with the record that do has put into the log.
func (s *Server) sealing(do func(*http.Request, *Caller) (*acts.Done, error)) Handler {
	return func(w http.ResponseWriter, r *http.Request, c *Caller) error {
		done, err := s.count(do(r, c))
		if err != nil {
			return err
		}
		proved, err := s.config.Installation.Ledger.ProveOne(r.Context(), done.Record)
		if err != nil {
			return err
		}
		w.Header().Set("Location", "/v1/records/"+done.Record.Payload.RecordID)
		w.Header().Set("Cache-Control", "no-store")
		return writeFile(w, r, http.StatusCreated, proved)
	}
}

// postProperty proves what a value is like, for a caller who may read the value.
//
// No other caller gets a proof, or a refusal that depends on the value. By asking for ranges and halving them, a caller would find the value in a
// few dozen requests. So the record is read with the caller's rights before anything is compared, and strangers, who get no disclosures, do
// not get here.
func (s *Server) postProperty(w http.ResponseWriter, r *http.Request, c *Caller) error {
	wanted, err := readJSON[api.Property](r)
	if err != nil {
		return err
	}
	sealed, err := s.readable(r.Context(), c, r.PathValue("id"))
	if err == nil {
		err = memoryAccountOf(r.Context()).Take(r.Context(), recordFactor*int64(len(sealed.Canonical())))
	}
	if err != nil {
		return err
	}
	disclosed, err := s.disclosedTo(r.Context(), c, sealed)
	if err != nil {
		return err
	}
	statement, err := statementOf(wanted)
	if err != nil {
		return err
	}
	proof, err := proving.Prove(statement, proving.Member{Record: disclosed, Pointer: wanted.Pointer}, rand.Reader)
	switch {
	case errors.Is(err, evidence.ErrDisclosure), errors.Is(err, evidence.ErrProvable):
		return err // the server keeps another value than was sealed
	case errors.Is(err, proving.ErrWithheld):
		return fmt.Errorf("%w: %w: it was erased, or its owner keeps it", api.ErrInvalid, err)
	case err != nil:
		return fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	bundle, err := s.config.Installation.Ledger.Prove(r.Context(), sealed)
	if err != nil {
		return err
	}
	if err := proving.Add(bundle.Records[0], proof); err != nil {
		return fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	w.Header().Set("Cache-Control", "no-store")
	return writeFile(w, r, http.StatusOK, bundle)
}

// statementOf returns the statement that is asked for, without its members.
func statementOf(p *api.Property) (s property.Statement, err error) {
	s = property.Statement{Form: property.Form(p.Form), Audience: p.Audience, At: p.At, Years: p.Years}
	canonical := func(field string, value []byte) jsontext.Value {
		doc, wrong := evidence.Canonical(value)
		if wrong != nil && err == nil {
			err = fmt.Errorf("%w: field %s: %w", api.ErrInvalid, field, wrong)
		}
		return doc
	}
	if p.Lo != nil {
		s.Lo = canonical("lo", p.Lo)
	}
	if p.Hi != nil {
		s.Hi = canonical("hi", p.Hi)
	}
	for i, value := range p.Set {
		s.Set = append(s.Set, canonical(fmt.Sprintf("set/%d", i), value))
	}
	return s, err
}
