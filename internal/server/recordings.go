package server

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/find"
	"jurat/internal/schedule"
)

// recordingRoutes show what recorders saw, and begin trials of it.
func (s *Server) recordingRoutes() []Route {
	search := parametersOf(find.RecordingParameters())
	return []Route{
		{Method: "GET", Pattern: "/v1/recordings", Kind: API, Heavy: true, Who: Overseers, Handle: s.getRecordings,
			Doc: Doc{Summary: "The chains in which recorders saw something, the one with the newest record first.", Out: api.Recordings{}, Query: search}},
		{Method: "GET", Pattern: "/v1/recordings/{chain}", Kind: API, Shared: true, Heavy: true, Who: Readers, Handle: s.getRecording,
			Doc: Doc{Summary: "A recorded chain as people read it: each act with the messages that are new in it. A trial of it begins by POST /v1/submissions with recorded.", Out: RecordedChain{}, Query: []Parameter{
				{"from", "the number of the first act, from 1; by default 1"}, {"limit", "the largest number of acts: 1 to 100, by default 20"}}}},
		{Method: "GET", Pattern: RecordingEventsPath, Kind: Stream, Who: Overseers, Handle: s.recordingEvents,
			Doc: Doc{Summary: "Server-sent events that say that recorders sealed something, or that a trial went on: at most one a second.", Media: schedule.EventStream}},
		{Method: "GET", Pattern: "/recordings", Kind: Page, Heavy: true, Who: Overseers, Handle: s.recordingsPage, Doc: Doc{Summary: "What recorders saw, and the form of filters.", Query: search}},
		{Method: "GET", Pattern: "/recordings/{chain}", Kind: Page, Heavy: true, Who: Readers, Handle: s.recordingPage,
			Doc: Doc{Summary: "A recorded chain as people read it.", Query: []Parameter{{"page", "which page of a long chain, from 1"}}}},
		{Method: "GET", Pattern: "/recordings/{chain}/acts/{number}", Kind: Page, Heavy: true, Who: Readers, Handle: s.recordingPage, Doc: Doc{Summary: "One act of a recorded chain, with all texts."}},
		{Method: "POST", Pattern: "/recordings/{chain}/trial", Kind: Page, Heavy: true, Who: Submitters, Handle: s.tryRecording, Doc: Doc{Summary: "Put a recorded chain before the jury, by the form."}},
	}
}

func (s *Server) getRecordings(w http.ResponseWriter, r *http.Request, c *Caller) error {
	list, err := s.recordings(r, c)
	if err != nil {
		return err
	}
	return answerList(w, r, list, nil)
}

func (s *Server) recordings(r *http.Request, c *Caller) (api.Recordings, error) {
	t, err := s.scheduler.Trials(r.Context())
	if err != nil {
		return api.Recordings{}, err
	}
	list, err := s.keeper.Recordings(r.Context(), r.URL.Query().Get, t, s.reader(r.Context(), c, t))
	return list, ofSearch(err)
}

func (s *Server) recordingsPage(w http.ResponseWriter, r *http.Request, c *Caller) error {
	list, err := s.recordings(r, c)
	page, err := recordingsPage(r.URL.Query(), list, err)
	if err != nil {
		return err
	}
	return s.page(w, r, c, page.Status(), page)
}

// recording reads acts of a recorded chain.
func (s *Server) recording(ctx context.Context, c *Caller, chain string, from, n int64) (*RecordedChain, error) {
	t, err := s.scheduler.Trials(ctx)
	if err != nil {
		return nil, err
	}
	by := &recordingReader{May: func(ctx context.Context, r *evidence.Record) error { return s.mayRead(ctx, c, r) },
		Disclose: func(ctx context.Context, r *evidence.Record) (*evidence.Record, error) {
			return s.disclosedTo(ctx, c, r)
		}, List: s.reader(ctx, c, t)}
	read, err := s.recorded.Read(ctx, chain, from, n, t, by)
	if errors.Is(err, api.ErrNotFound) {
		return nil, s.noSuchChain(c)
	}
	return read, unnamed(err)
}

func (s *Server) getRecording(w http.ResponseWriter, r *http.Request, c *Caller) error {
	from, n, err := partFrom(r.URL.Query())
	if err != nil {
		return err
	}
	chain, err := s.recording(r.Context(), c, r.PathValue("chain"), from, n)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, chain)
}

// recordingPage shows a part of a chain, or one act of it.
func (s *Server) recordingPage(w http.ResponseWriter, r *http.Request, c *Caller) error {
	return s.showRecording(w, r, c, http.StatusOK, "")
}

func (s *Server) showRecording(w http.ResponseWriter, r *http.Request, c *Caller, status int, failed string) error {
	from, n, err := partOf(r)
	if err != nil {
		return err
	}
	chain, err := s.recording(r.Context(), c, r.PathValue("chain"), from, n)
	if err != nil {
		return err
	}
	page, err := s.recorded.Page(r.Context(), chain, s.language(w, r))
	if err != nil {
		return err
	}
	page.Alone, page.Send, page.Failed, page.Key = n == 1, Submitters.admits(c) && !c.Stranger(), failed, rand.Text()
	page.Panel, page.Rules = whoSits(s.config.Seats)
	if page.After == 0 && !page.Alone && Overseers.admits(c) && !changes(r) { // what is new comes at the end
		page.Events = RecordingEventsPath
	}
	return s.page(w, r, c, status, page)
}

// recordedFile returns a recorded chain for a jury, if the caller may read all of it: with the texts that are sealed apart that the caller
// may see.
func (s *Server) recordedFile(ctx context.Context, c *Caller, chain string) ([]byte, error) {
	records, err := s.readableChain(ctx, c, chain)
	if err != nil {
		return nil, unnamed(err)
	}
	return recordingBundle(ctx, s.config.Installation.Ledger, records)
}

// tryRecording begins a trial of a recorded chain, by the form. If that is refused, the page is shown again with the reason.
func (s *Server) tryRecording(w http.ResponseWriter, r *http.Request, c *Caller) error {
	on, err := caseFrom(r.Context(), &api.NewSubmission{Recorded: r.PathValue("chain")}, s.sources(c))
	return s.begin(w, r, c, on, err, s.showRecording)
}

// recordingEvents says that there is something new, as long as the caller may see it.
func (s *Server) recordingEvents(w http.ResponseWriter, r *http.Request, c *Caller) error {
	r, end := s.live.While(r, func(ctx context.Context) error { return s.stillGranted(ctx, c) })
	defer end()
	s.streaming.Add(1)
	defer s.streaming.Done()
	return s.live.Events(w, r, s.recorded.Watch(s.draining))
}
