package server

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"jurat/api"
	"jurat/internal/acts"
	"jurat/internal/docket"
	"jurat/internal/ledger"
	"jurat/internal/pages"
	"jurat/reputation"
)

// agentRoutes show what the log has about agents.
func (s *Server) agentRoutes() []Route {
	query := []Parameter{{"ca", "the agent is the one whose keys the CA of this name certified; needed where the trust file has several and none of the agent's keys"}}
	return []Route{
		{Method: "GET", Pattern: "/v1/agents/{name}/reputation", Kind: API, Shared: true, Heavy: true, Who: Readers, Handle: s.getReputation, Doc: Doc{
			Summary: "How the sealed records of an agent were judged, by this installation's trust file and the default policy: what jurat reputation --json prints. docs/reputation.md describes it.",
			Out:     reputation.View{}, Query: query}},
		{Method: "GET", Pattern: "/v1/agents/{name}/conduct", Kind: API, Heavy: true, Who: Overseers, Handle: s.getConduct, Doc: Doc{
			Summary: "What the log has about an agent: the case file of each trial that judged it, and its own records, as bundles, one in a line. With them and the log's entries, anyone computes the agent's reputation alone: jurat reputation --log.",
			Media:   bundleLines, Query: []Parameter{{"size", "only what the log had when it was this long, such as a checkpoint says; without it, all"}}}},
		{Method: "GET", Pattern: "/agents/{name}", Kind: Page, Heavy: true, Who: Readers, Handle: s.agentPage, Doc: Doc{Summary: "An agent's reputation.", Query: query}},
	}
}

func (s *Server) getReputation(w http.ResponseWriter, r *http.Request, c *Caller) error {
	v, err := s.reputationOf(r, c)
	if err != nil {
		return err
	}
	doc, err := v.Marshal()
	if err != nil {
		return err
	}
	return writeTagged(w, r, http.StatusOK, "application/json", doc)
}

// bundleLines is the media type of bundles of which each is one line (NDJSON).
const bundleLines = "application/x-ndjson"

// getConduct sends one file after the other, and holds one at a time. What is hidden in records stays hidden: a verdict's worth does not depend on it.
func (s *Server) getConduct(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	ctx, name, log := r.Context(), r.PathValue("name"), s.config.Installation.Ledger
	size, err := sizeOf(r, log)
	if err != nil {
		return err
	}
	switch known, err := docket.KnowsAgent(ctx, log, name); {
	case err != nil:
		return err
	case !known:
		return fmt.Errorf("%w: %w", api.ErrNotFound, docket.ErrUnknownAgent)
	}
	if w.Header().Set("Content-Type", bundleLines); r.Method == http.MethodHead {
		return nil
	}
	account, began := memoryAccountOf(ctx), false
	_, err = docket.ConductUntil(ctx, log, name, size, func(f docket.ConductFile) error {
		account.Keep(heavyRequest) // the file before it is sent
		if err := account.Take(ctx, recordFactor*f.Bytes()); err != nil {
			return err
		}
		doc, err := f.Bundle.Marshal()
		if err != nil {
			return err
		}
		began = true
		_, err = w.Write(doc)
		return err
	})
	if err != nil && began {
		return abort(err)
	}
	return err
}

// sizeOf returns the size of the log that the query names, or its size now.
func sizeOf(r *http.Request, log *ledger.Ledger) (int64, error) {
	size, err := log.Size(r.Context())
	text := r.URL.Query().Get("size")
	if err != nil || text == "" {
		return size, err
	}
	asked, err := strconv.ParseInt(text, 10, 64)
	if err != nil || asked < 0 || asked > size {
		return 0, fmt.Errorf("%w: size: %q: want a number from 0 to %d, which is how many entries the log has", api.ErrMalformed, text, size)
	}
	return asked, nil
}

func (s *Server) agentPage(w http.ResponseWriter, r *http.Request, c *Caller) error {
	v, err := s.reputationOf(r, c)
	if err != nil {
		return err
	}
	page, err := pages.NewAgent(v)
	if err != nil {
		return err
	}
	if acts.ReadsEverything(c) { // an agent's public page does not make its trials public
		history, err := s.history(r.Context(), r.PathValue("name"), "")
		if err != nil {
			return err
		}
		page.History = pages.NewHistory(history)
	}
	return s.page(w, r, c, http.StatusOK, page)
}

// reputationOf computes what the log has about the agent that the path names, if the caller may read that.
func (s *Server) reputationOf(r *http.Request, c *Caller) (*reputation.View, error) {
	ctx, name := r.Context(), r.PathValue("name")
	if err := s.acts.MayReadAgent(ctx, c, name); err != nil {
		return nil, err
	}
	by, err := s.config.Installation.Trust(ctx)
	if err != nil {
		return nil, err
	}
	account := memoryAccountOf(ctx)
	v, err := s.conduct.View(ctx, docket.ConductAsked{Agent: name, CA: r.URL.Query().Get("ca")}, by, func(bytes int64) error {
		account.Keep(heavyRequest) // what was verified before is no longer held
		return account.Take(ctx, recordFactor*bytes)
	})
	switch {
	case errors.Is(err, docket.ErrUnknownAgent):
		return nil, fmt.Errorf("%w: %w", api.ErrNotFound, err)
	case errors.Is(err, reputation.ErrIdentity):
		return nil, fmt.Errorf("%w: %w; the parameter ca names a CA", api.ErrInvalid, err)
	case errors.Is(err, docket.ErrTooMany):
		return nil, fmt.Errorf("%w: %w; 'jurat reputation' computes it", api.ErrTooLarge, err)
	}
	return v, err
}
