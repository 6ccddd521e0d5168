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
	"jurat/internal/acts"
	"jurat/internal/docket"
	"jurat/internal/find"
	"jurat/internal/ledger"
	"jurat/internal/pages"
	"jurat/internal/trial"
	"jurat/reputation"
)

// findRoutes search trials and records, and show what belongs together.
func (s *Server) findRoutes() []Route {
	trials, records := parametersOf(find.TrialParameters()), parametersOf(find.RecordParameters())
	get := func(pattern string, kind Kind, who Who, handle Handler, doc Doc) Route {
		return Route{Method: "GET", Pattern: pattern, Kind: kind, Heavy: true, Who: who, Handle: handle, Doc: doc}
	}
	return []Route{
		get("/v1/trials", API, SignedIn, s.getTrials, Doc{Summary: "Trials that match, with counts of what the caller may read: a submitter finds its own.", Out: api.TrialList{}, Query: trials}),
		get("/v1/trials.csv", API, SignedIn, s.getTrials, Doc{Summary: "The same as CSV. No cell is a formula.", Media: csvMedia, Query: trials}),
		get("/v1/trials/{id}/compare/{other}", API, SignedIn, inJSON(s.comparison), Doc{Summary: "Two trials side by side: outcomes, scores, and which findings differ.", Out: api.TrialComparison{}}),
		get("/v1/search", API, SignedIn, s.getHits, Doc{Summary: "Who said this, and when: the records that match, among those that the caller may read.", Out: api.HitList{}, Query: records}),
		get("/v1/search.csv", API, SignedIn, s.getHits, Doc{Summary: "The same as CSV. No cell is a formula.", Media: csvMedia, Query: records}),
		get("/v1/agents/{name}/history", API, Overseers, inJSON(s.getHistory), Doc{Summary: "The trials of an agent, the newest first, and what its jurors had in common.", Out: api.AgentHistory{},
			Query: []Parameter{{"after", "the cursor of the previous page"}}}),
		get("/trials", Page, SignedIn, s.trialsPage, Doc{Summary: "The trials that match, and the form of filters.",
			Query: append(trials, Parameter{"a", "with b: the page of these two trials side by side"}, Parameter{"b", "see a"})}),
		get("/search", Page, SignedIn, shown(s, s.searchPage), Doc{Summary: "Who said this, and when: the records that match, and the form of conditions.", Query: records}),
		get("/trials/{id}/compare/{other}", Page, SignedIn, shown(s, s.comparisonPage), Doc{Summary: "Two trials side by side."}),
	}
}

const csvMedia = "text/csv"

func parametersOf(list []find.Parameter) (out []Parameter) {
	for _, p := range list {
		out = append(out, Parameter(p))
	}
	return out
}

// reader is what a caller may find: what they read by a right of their own, and not because it is public.
func (s *Server) reader(ctx context.Context, c *Caller, t *trial.Index) *docket.Reader {
	by := &docket.Reader{States: func(list []trial.Summary) ([]api.State, error) { return s.scheduler.States(ctx, list) }}
	if by.Scope.All = acts.ReadsEverything(c); by.Scope.All {
		return by
	}
	by.Visible = s.visible(c)
	by.Scope = docket.ScopeOf(t.List(by.Visible), c)
	by.MayRead = func(r *evidence.Record) (bool, error) { return s.acts.Own(ctx, c, briefOf(r)) } // a hit shows texts
	return by
}

func (s *Server) trials(r *http.Request, c *Caller) (api.TrialList, error) {
	t, err := s.scheduler.Trials(r.Context())
	if err != nil {
		return api.TrialList{}, err
	}
	list, err := s.keeper.Trials(r.Context(), r.URL.Query().Get, t, s.reader(r.Context(), c, t))
	return list, ofSearch(err)
}

// ofSearch names the wrong parameter.
func ofSearch(err error) error {
	if field := (*find.FieldError)(nil); errors.As(err, &field) {
		return fmt.Errorf("%w: query parameter %w", api.ErrMalformed, field)
	}
	return err
}

// answerList writes a list as JSON, or as CSV if its path says so.
func answerList(w http.ResponseWriter, r *http.Request, list any, table *docket.Table) error {
	if !strings.HasSuffix(r.URL.Path, ".csv") {
		return writeJSON(w, r, http.StatusOK, list)
	}
	attach(w, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
	return writeDoc(w, r, http.StatusOK, csvMedia+"; charset=utf-8", table.CSV())
}

func (s *Server) getTrials(w http.ResponseWriter, r *http.Request, c *Caller) error {
	list, err := s.trials(r, c)
	if err != nil {
		return err
	}
	return answerList(w, r, list, docket.TrialTable(list.Trials))
}

// hits searches records. get returns the parameters of the search.
func (s *Server) hits(ctx context.Context, c *Caller, get func(string) string) (api.HitList, error) {
	t, err := s.scheduler.Trials(ctx)
	if err != nil {
		return api.HitList{}, err
	}
	trusted, err := s.config.Installation.Trust(ctx)
	if err != nil {
		return api.HitList{}, err
	}
	list, err := s.keeper.Records(ctx, get, t, s.reader(ctx, c, t), trusted)
	return list, ofSearch(err)
}

func (s *Server) getHits(w http.ResponseWriter, r *http.Request, c *Caller) error {
	list, err := s.hits(r.Context(), c, r.URL.Query().Get)
	if err != nil {
		return err
	}
	return answerList(w, r, list, docket.HitTable(list.Hits))
}

// hitsPerPage is how many hits the page shows, if the reader does not ask for another number.
const hitsPerPage = 25

// searchPage shows who said what, and when. Without any condition it shows the form alone.
func (s *Server) searchPage(r *http.Request, c *Caller) (*pages.Search, error) {
	page := &pages.Search{Searched: pages.Searched{Query: r.URL.Query()}}
	if !page.Asks() {
		return page, nil
	}
	list, err := s.hits(r.Context(), c, func(name string) string {
		if value := page.Query.Get(name); value != "" || name != "limit" {
			return value
		}
		return strconv.Itoa(hitsPerPage)
	})
	return page, fill(page, list, err)
}

// fill adds to the page of a search what was found, or what is wrong with the search. It returns any other error.
func fill[T any](page interface {
	form
	Fill(T)
}, list T, err error) error {
	switch {
	case errors.Is(err, api.ErrMalformed):
		page.Refuse(problemOf(err))
	case err != nil:
		return err
	}
	page.Fill(list)
	return nil
}

// comparison reads two trials if the caller may read both.
func (s *Server) comparison(r *http.Request, c *Caller) (both api.TrialComparison, err error) {
	var sheets [2]api.TrialSheet
	for i, name := range []string{"id", "other"} {
		id := r.PathValue(name)
		if err := s.mayReadTrial(r.Context(), c, id); err != nil {
			return both, err
		}
		if sheets[i], err = docket.Sheet(r.Context(), s.config.Installation.Ledger, id); err != nil {
			return both, err
		}
	}
	return docket.Compare(sheets[0], sheets[1]), nil
}

func (s *Server) history(ctx context.Context, name, after string) (api.AgentHistory, error) {
	t, err := s.scheduler.Trials(ctx)
	if err != nil {
		return api.AgentHistory{}, err
	}
	h, err := docket.History(ctx, s.config.Installation.Ledger, t, name, after, nil)
	return h, ofSearch(err)
}

func (s *Server) getHistory(r *http.Request, _ *Caller) (api.AgentHistory, error) {
	return s.history(r.Context(), r.PathValue("name"), r.URL.Query().Get("after"))
}

func (s *Server) trialsPage(w http.ResponseWriter, r *http.Request, c *Caller) error {
	query := r.URL.Query()
	if a, b := query.Get("a"), query.Get("b"); a != "" && b != "" {
		return goTo(w, r, "trials", a, "compare", b)
	}
	page := &pages.Trials{Searched: pages.Searched{Query: query}}
	list, err := s.trials(r, c)
	if err := fill(page, list, err); err != nil {
		return err
	}
	return s.page(w, r, c, page)
}

func (s *Server) comparisonPage(r *http.Request, c *Caller) (*pages.Comparison, error) {
	both, err := s.comparison(r, c)
	if err != nil {
		return nil, err
	}
	return pages.NewComparison(both), nil
}

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
		{Method: "GET", Pattern: "/agents/{name}", Kind: Page, Heavy: true, Who: Readers, Handle: shown(s, s.agentPage), Doc: Doc{Summary: "An agent's reputation.", Query: query}},
	}
}

func (s *Server) getReputation(w http.ResponseWriter, r *http.Request, c *Caller) error {
	v, err := s.reputationOf(r, c)
	if err != nil {
		return err
	}
	return writeFile(w, r, http.StatusOK, v)
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
	switch known, err := log.CountsFrom(ctx, evidence.RoleAgent, name, 0); {
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

func (s *Server) agentPage(r *http.Request, c *Caller) (*pages.Agent, error) {
	v, err := s.reputationOf(r, c)
	if err != nil {
		return nil, err
	}
	page, err := pages.NewAgent(v)
	if err != nil || !acts.ReadsEverything(c) { // an agent's public page does not make its trials public
		return page, err
	}
	history, err := s.history(r.Context(), r.PathValue("name"), "")
	page.History = pages.NewHistory(history)
	return page, err
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
