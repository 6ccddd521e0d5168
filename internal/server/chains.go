package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/ledger"
)

func (s *Server) chainRoutes() []Route {
	return []Route{
		{Method: "GET", Pattern: "/v1/chains/{chain_id}", Kind: API, Who: Readers, Handle: s.getChain, Doc: Doc{
			Summary: "The records of a chain, or of a trial, as one bundle that can be verified offline.", Out: Bundle}},
		{Method: "GET", Pattern: "/v1/records", Kind: API, Who: SignedIn, Handle: s.listRecords, Doc: Doc{
			Summary: "What is in the log, in its order, as far as the caller may read it. Pages can be short or empty; while there is a next cursor, there may be more.",
			Out:     api.Listing{}, Query: []Parameter{
				{"after", "the cursor that the page before gave"},
				{"limit", "how many records at most: 1 to 500, by default 100"},
				{"chain", "only records of this chain"}}}},
	}
}

func (s *Server) getChain(w http.ResponseWriter, r *http.Request, c *Caller) error {
	records, err := s.readableChain(r.Context(), c, r.PathValue("chain_id"))
	if err != nil {
		return err
	}
	bundle, err := s.config.Installation.Ledger.Prove(r.Context(), records...)
	if err != nil {
		return err
	}
	return writeFile(w, r, http.StatusOK, bundle)
}

// readableChain returns a chain, with the texts that are sealed apart, if the caller may read all of it: with parts left out it would
// not be verified as it is.
func (s *Server) readableChain(ctx context.Context, c *Caller, chain string) ([]*evidence.Record, error) {
	records, err := s.chainAsSealed(ctx, c, chain)
	if err != nil {
		return nil, err
	}
	for i, record := range records {
		if records[i], err = s.disclosedTo(c, record); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// chainAsSealed returns a chain without the texts that are sealed apart, if the caller may read all of it.
func (s *Server) chainAsSealed(ctx context.Context, c *Caller, chain string) ([]*evidence.Record, error) {
	records, err := s.config.Installation.Ledger.Chain(ctx, chain)
	if errors.Is(err, ledger.ErrNotFound) {
		if c.Stranger() {
			return nil, notPublic()
		}
		return nil, fmt.Errorf("%w: the log has no chain of this name", api.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	for _, record := range records {
		if err := s.mayRead(ctx, c, record); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// disclosedTo is a record with the texts that are sealed apart, for whoever has a role; what is public is so without them.
func (s *Server) disclosedTo(c *Caller, record *evidence.Record) (*evidence.Record, error) {
	if c.Stranger() || len(record.Payload.SealedApart) == 0 {
		return record, nil
	}
	return s.config.Installation.Disclose(record, nil)
}

const (
	pageLimit    = 100
	maxPageLimit = 500
	scanLimit    = 2000 // records that are looked at for one page
)

// listRecords lists a part of the log. A cursor is a place in it.
func (s *Server) listRecords(w http.ResponseWriter, r *http.Request, c *Caller) error {
	from, err := cursorOf(r)
	if err != nil {
		return err
	}
	limit, err := limitOf(r)
	if err != nil {
		return err
	}
	listing, err := s.list(r.Context(), c, r.URL.Query().Get("chain"), from, limit)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, listing)
}

func cursorOf(r *http.Request) (int64, error) {
	cursor := r.URL.Query().Get("after")
	if cursor == "" {
		return 0, nil
	}
	from, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || from < 0 {
		return 0, fmt.Errorf("%w: after: %q is no cursor of this server", api.ErrMalformed, cursor)
	}
	return from, nil
}

func limitOf(r *http.Request) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return pageLimit, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > maxPageLimit {
		return 0, fmt.Errorf("%w: limit: want 1 to %d", api.ErrMalformed, maxPageLimit)
	}
	return limit, nil
}

// list reads on from a place in the log until the page is full or enough was looked at.
func (s *Server) list(ctx context.Context, c *Caller, chain string, from int64, limit int) (api.Listing, error) {
	listing := api.Listing{Records: []api.Entry{}}
	for record, err := range s.config.Installation.Ledger.Records(ctx, from) {
		if err != nil {
			return listing, err
		}
		if len(listing.Records) == limit || record.Index-from >= scanLimit {
			listing.Next = strconv.FormatInt(record.Index, 10)
			break
		}
		if chain != "" && record.Payload.ChainID != chain {
			continue
		}
		switch err := s.mayRead(ctx, c, record.Record); {
		case err == nil:
			listing.Records = append(listing.Records, entryOf(record.Record, record.Index))
		case !errors.Is(err, api.ErrForbidden):
			return listing, err
		}
	}
	return listing, nil
}

func entryOf(r *evidence.Record, index int64) api.Entry {
	p := &r.Payload
	return api.Entry{Index: index, RecordID: p.RecordID, Digest: r.Digest.String(), ActionType: string(p.ActionType), Role: string(p.Role()),
		Actor: p.Actor(), Timestamp: p.Timestamp, ChainID: p.ChainID, RequestID: p.RequestID}
}

// inTrial reports whether a chain is a trial's.
func inTrial(chain string) bool { return strings.HasPrefix(chain, evidence.TrialPrefix) }

// readsEverything reports whether somebody's role is to read, whoever said it.
func readsEverything(c *Caller) bool {
	return c.Has(access.Reviewer) || c.Has(access.Auditor) || c.Has(access.Operator)
}
