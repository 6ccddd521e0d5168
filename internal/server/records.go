package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/ledger"
	"jurat/internal/ledger/brief"
)

func (s *Server) recordRoutes() []Route {
	return []Route{
		{Method: "POST", Pattern: "/v1/records", Kind: API, Who: Who{Roles: []access.Role{access.Agent, access.Reviewer}}, Handle: s.postRecord,
			Doc: Doc{Summary: "Seals a payload with the key of the agent or reviewer that it names, who is the token's. Or takes in a record that its actor has signed.",
				In: Payload, Out: Record, Status: http.StatusCreated}},
		{Method: "GET", Pattern: "/v1/records/{id}", Kind: API, Heavy: true, Who: Readers, Handle: s.getRecord,
			Doc: Doc{Summary: "A sealed record, with its time stamps and the proof of its place in the log.", Out: Record}},
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

// readable returns a record if the caller may read it. A stranger does not learn whether one is there that is not public.
func (s *Server) readable(ctx context.Context, c *Caller, id string) (*evidence.Record, error) {
	record, err := s.config.Installation.Ledger.Record(ctx, id)
	if errors.Is(err, ledger.ErrNotFound) {
		if c.Stranger() {
			return nil, notPublic()
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

func notPublic() error {
	return fmt.Errorf("%w: it is not open to everybody, or it is not there", api.ErrSignIn)
}

// mayRead says whether somebody may read a record. Whoever decides, audits or operates reads everything; an agent what it said
// itself, and what was decided on that; a submitter the trials of its submissions; everybody what belongs to a chain that was made public.
func (s *Server) mayRead(ctx context.Context, c *Caller, record *evidence.Record) error {
	p := &record.Payload
	return s.maySee(ctx, c, &brief.Brief{RecordID: p.RecordID, ChainID: p.ChainID, Action: p.ActionType, Actor: p.Actor(), Original: p.OriginalResponseID})
}

// maySee is mayRead of a record in brief.
func (s *Server) maySee(ctx context.Context, c *Caller, b *brief.Brief) error {
	switch {
	case readsEverything(c):
		return nil
	case c.Has(access.Agent) && b.Role() == evidence.RoleAgent && b.Actor == c.Name():
		return nil
	}
	if public, err := s.public(ctx, b); public || err != nil {
		return err
	}
	if c.Stranger() {
		return notPublic()
	}
	if own, err := s.reviewed(ctx, c, b); own || err != nil {
		return err
	}
	if own, err := s.submitted(ctx, c, b.ChainID); own || err != nil {
		return err
	}
	return fmt.Errorf("%w: the record is not one of %q", api.ErrForbidden, c.Name())
}

// public reports whether everybody may read a record: its chain was made public, or, where it is in none, the record itself.
func (s *Server) public(ctx context.Context, b *brief.Brief) (bool, error) {
	if b.ChainID == "" {
		return s.access.PublicRecord(ctx, b.RecordID)
	}
	return s.access.Public(ctx, b.ChainID)
}

// reviewed reports whether an act is a person's decision on what the caller said.
func (s *Server) reviewed(ctx context.Context, c *Caller, b *brief.Brief) (bool, error) {
	if !c.Has(access.Agent) || b.Action != evidence.HumanReview {
		return false, nil
	}
	original, err := s.config.Installation.Ledger.Briefs().ByID(ctx, b.Original)
	if errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrExpired) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return original.Role() == evidence.RoleAgent && original.Actor == c.Name(), nil
}

// submitted reports whether a chain is a trial of what the caller has submitted.
func (s *Server) submitted(ctx context.Context, c *Caller, chain string) (bool, error) {
	if !c.Has(access.Submitter) || !inTrial(chain) {
		return false, nil
	}
	by, err := s.acts.SubmitterOf(ctx, chain)
	return by == c.Name(), err
}
