package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/ledger"
)

func (s *Server) recordRoutes() []Route {
	return []Route{
		{Method: "GET", Pattern: "/v1/records/{id}", Kind: API, Who: Readers, Handle: s.getRecord,
			Doc: Doc{Summary: "A sealed record, with its time stamps and the proof of its place in the log.", Out: Record}},
	}
}

func (s *Server) getRecord(w http.ResponseWriter, r *http.Request, c *Caller) error {
	record, err := s.readable(r.Context(), c, r.PathValue("id"))
	if err != nil {
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
// itself; a submitter the trials of its submissions; everybody what belongs to a chain that was made public.
func (s *Server) mayRead(ctx context.Context, c *Caller, record *evidence.Record) error {
	p := &record.Payload
	switch {
	case c.Has(access.Reviewer), c.Has(access.Auditor), c.Has(access.Operator):
		return nil
	case c.Has(access.Agent) && p.Role() == evidence.RoleAgent && p.Actor() == c.Name():
		return nil
	}
	if p.ChainID != "" {
		public, err := s.access.Public(ctx, p.ChainID)
		if public || err != nil {
			return err
		}
	}
	if c.Stranger() {
		return notPublic()
	}
	if own, err := s.submitted(ctx, c, p.ChainID); own || err != nil {
		return err
	}
	return fmt.Errorf("%w: the record is not one of %q", api.ErrForbidden, c.Name())
}

// submitted reports whether a chain is a trial of what the caller has submitted.
func (s *Server) submitted(ctx context.Context, c *Caller, chain string) (bool, error) {
	if !c.Has(access.Submitter) || !strings.HasPrefix(chain, evidence.TrialPrefix) {
		return false, nil
	}
	by, err := s.submitterOf(ctx, chain)
	return by == c.Name(), err
}

// submitterOf is who has submitted what a trial is about; "" where the chain is no trial's.
func (s *Server) submitterOf(ctx context.Context, chain string) (string, error) {
	records, _, err := s.config.Installation.Ledger.InChain(ctx, chain, 0)
	if err != nil || len(records) == 0 || records[0].Payload.ActionType != evidence.Submission {
		return "", err
	}
	return records[0].Payload.Actor(), nil
}
