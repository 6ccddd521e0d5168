package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/acts"
	"jurat/internal/ledger"
	"jurat/internal/ledger/brief"
)

func (s *Server) recordRoutes() []Route {
	return []Route{
		{Method: "POST", Pattern: "/v1/records", Kind: API, Who: Who{Roles: []access.Role{access.Agent, access.Reviewer}}, Handle: s.postRecord,
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
	record, err := s.readable(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return err
	}
	if record, err = s.disclosedTo(r.Context(), c, record); err != nil {
		return err
	}
	proved, err := s.config.Installation.Ledger.ProveOne(r.Context(), record)
	if err != nil {
		return err
	}
	return writeFile(w, r, http.StatusOK, proved)
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
