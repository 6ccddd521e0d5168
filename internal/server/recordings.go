package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/acts"
	"jurat/internal/docket"
	"jurat/internal/find"
	"jurat/internal/inorder"
	"jurat/internal/ledger"
	"jurat/internal/llm"
	"jurat/internal/pages"
	"jurat/internal/schedule"
	"jurat/internal/trial"
	"jurat/internal/words"
	"jurat/verify"
	"jurat/verify/trust"
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

// recordingsDesk reads recorded chains. It is safe for concurrent use.
type recordingsDesk struct {
	Ledger *ledger.Ledger
	Keeper *docket.Keeper
	Prices llm.Prices                                  // of models' calls; nil: no costs are shown
	Trust  func(context.Context) (*trust.Trust, error) // by which records are verified
}

// A recordingReader is who reads a chain.
type recordingReader struct {
	May      func(context.Context, *evidence.Record) error                     // returns an error if they may not read a record
	Disclose func(context.Context, *evidence.Record) (*evidence.Record, error) // adds what they may see of what is sealed apart
	List     *docket.Reader                                                    // which trials they see
}

// open returns a record as the reader may see it.
func (by *recordingReader) open(ctx context.Context, r *evidence.Record) (*evidence.Record, error) {
	if err := by.May(ctx, r); err != nil {
		return nil, err
	}
	return by.Disclose(ctx, r)
}

// A held counts the bytes that reading a part of a chain holds at once: the bodies from which later ones may copy, the largest act while it is
// read, and the acts that are shown.
type held struct{ window, largest int64 }

// more returns how much more a record takes.
func (h *held) more(r *evidence.Record, shown bool) (n int64) {
	bodies := int64(0)
	if o := r.Payload.Observed; o != nil {
		for _, b := range []*evidence.ObservedBody{o.Request, o.Response} {
			if b != nil {
				bodies += min(b.Bytes, observed.MaxKept)
			}
		}
	}
	grown := min(h.window+bodies, observed.MaxWindow) - h.window
	larger := max(0, 4*bodies-h.largest)
	h.window, h.largest = h.window+grown, h.largest+larger
	if n = grown + larger; shown {
		n += 2 * int64(len(r.Canonical()))
	}
	return n
}

// A RecordedChain is a part of a recorded chain.
type RecordedChain struct {
	api.Recording
	Records int64                `json:"records"`         // of the whole chain
	From    int64                `json:"from"`            // the number of the first act here, from 1
	Next    int64                `json:"next,omitzero"`   // the number of the act after the last one here; absent: there is none
	Steps   []docket.RecordedAct `json:"steps"`           // the records of the chain, with the messages that are new in each
	Events  []docket.RecordedAct `json:"events,omitzero"` // what the recorders said of themselves meanwhile

	opened map[string]*evidence.Record
}

const (
	mostEvents = 50 // of recorders, on a page
	mostActs   = 100
)

// Read reads acts of a chain: so many, from a number on. It returns api.ErrNotFound if recorders saw nothing in the chain, or if it has no such
// act, and the errors of the reader and of the log.
func (d *recordingsDesk) Read(ctx context.Context, chain string, from, n int64, t *trial.Index, by *recordingReader) (*RecordedChain, error) {
	x, _, err := d.Keeper.Ready(ctx)
	if err != nil {
		return nil, err
	}
	r, err := x.Recording(ctx, chain)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, none()
	}
	if from > r.Records {
		return nil, fmt.Errorf("%w: the chain has no act %d", api.ErrNotFound, from)
	}
	n = min(n, r.Records-from+1) // what the index does not have yet comes with its place in the list
	c := &RecordedChain{From: from, Records: r.Records, opened: map[string]*evidence.Record{}}
	if c.Recording, err = docket.Recording(r, t, by.List); err != nil {
		return nil, err
	}
	number, holds := int64(0), held{}
	part, err := docket.ReadPart(chain, d.Ledger.ChainRecords(ctx, chain), docket.PartOrder{From: from, N: n, Prices: d.Prices, Open: func(r *evidence.Record) (*evidence.Record, error) {
		number++
		if err := memoryAccountOf(ctx).Take(ctx, holds.more(r, number >= from)); err != nil {
			return nil, err
		}
		opened, err := by.open(ctx, r)
		if err == nil && number >= from {
			c.opened[r.Payload.RecordID] = opened
		}
		return opened, err
	}})
	if err != nil {
		return nil, err
	}
	if part.Next > r.Records {
		part.Next = 0
	}
	if err := part.FindErased(ctx, x); err != nil {
		return nil, err
	}
	c.Next, c.Steps = part.Next, part.Acts
	c.Events, err = d.events(ctx, x, r, part, by)
	return c, err
}

func none() error {
	return fmt.Errorf("%w: no recorder has seen anything in a chain of this name", api.ErrNotFound)
}

// events lists what recorders said of themselves while they saw a part of a chain, as far as the reader may read it.
func (d *recordingsDesk) events(ctx context.Context, x *find.Index, r *find.Recording, part *docket.ChainPart, by *recordingReader) (list []docket.RecordedAct, err error) {
	places, err := x.Events(ctx, r, part.From, part.Next, mostEvents)
	for _, place := range places {
		for at, err := range d.Ledger.Records(ctx, place) {
			if err != nil {
				return nil, err
			}
			allowed, err := acts.Allows(by.May(ctx, at.Record))
			if err != nil {
				return nil, err
			}
			if !allowed {
				break
			}
			act, err := docket.RecordedEvent(at.Record)
			if err != nil {
				return nil, err
			}
			list = append(list, act)
			break
		}
	}
	return list, err
}

// Page makes the page of a part of a chain, and verifies each record that it shows by itself.
func (d *recordingsDesk) Page(ctx context.Context, c *RecordedChain, lang words.Lang) (*pages.Conversation, error) {
	by, err := d.Trust(ctx)
	if err != nil {
		return nil, err
	}
	proofs := map[string]pages.RecordedProof{}
	type proof struct {
		record string
		pages.RecordedProof
	}
	err = inorder.Each(c.Steps, func(a docket.RecordedAct) (proof, error) {
		one, err := d.Ledger.ProveOne(ctx, c.opened[a.Record])
		if err != nil {
			return proof{}, err
		}
		return proof{a.Record, proofOf(verify.Record(one, verify.Options{Trust: by}), lang)}, nil
	}, func(p proof) error {
		proofs[p.record] = p.RecordedProof
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("verifying the records of a chain: %w", err)
	}
	part := &docket.ChainPart{Chain: c.Chain, From: c.From, Next: c.Next, Acts: c.Steps, Events: c.Events}
	return pages.NewConversation(c.Recording, part, c.Records, proofs), nil
}

// proofOf says whether it is proved who sealed a record, when, and that it is unchanged.
func proofOf(report *verify.Report, lang words.Lang) pages.RecordedProof {
	p := pages.RecordedProof{Status: verify.Proved, Rests: words.RestsOn(lang, report)}
	for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.Time} {
		if f := report.Of(g); f.Status != verify.Proved {
			p.Status, p.Why, p.Rests = f.Status, string(g)+" is "+string(f.Status)+": "+f.Reason, ""
			break
		}
	}
	return p
}

// RecordingEventsPath is the address at which pages learn that there is something new.
const RecordingEventsPath = "/v1/recording-events"

// recordingsPage makes the page of a list, or of why there is none. It returns errors that are no fault of the search.
func recordingsPage(query url.Values, list api.Recordings, err error) (*pages.Recordings, error) {
	page := &pages.Recordings{Query: query}
	if query.Get("after") == "" && err == nil { // a later page stays as it is
		page.Events = RecordingEventsPath
	}
	if err != nil {
		p := problemOf(err)
		if p.Status != http.StatusBadRequest {
			return nil, err
		}
		page.Problem = p.Detail
	}
	page.Fill(list)
	return page, nil
}

// partOf reads which acts a page shows: those of a page of the chain, or one.
func partOf(r *http.Request) (from, n int64, err error) {
	if text := r.PathValue("number"); text != "" {
		from, err := strconv.ParseInt(text, 10, 64)
		if err != nil || from < 1 {
			return 0, 0, fmt.Errorf("%w: the chain has no act %q", api.ErrNotFound, text)
		}
		return from, 1, nil
	}
	page, err := pageNumber(r)
	return (min(int64(page), 1<<40)-1)*pages.ActsPerPage + 1, pages.ActsPerPage, err
}

// partFrom reads the number of the first act on a page, and of how many, from the query of an API request.
func partFrom(query url.Values) (from, n int64, err error) {
	if from, err = number(query, "from", 1, 1<<40); err != nil {
		return 0, 0, err
	}
	n, err = number(query, "limit", pages.ActsPerPage, mostActs)
	return from, n, err
}

func number(query url.Values, name string, usual, most int64) (int64, error) {
	text := query.Get(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("%w: query parameter %s: %q: want a whole number from 1 to %d", api.ErrMalformed, name, text, most)
	}
	return n, nil
}

// atLeast is how long a page that follows recorders is left alone after it was told that there is something new.
const atLeast = time.Second

// Watch returns what a page waits for: that recorders sealed something, or that a trial went on. Each has an event that says no more than that.
func (d *recordingsDesk) Watch(draining context.Context) schedule.Watch {
	return func(ctx context.Context) (*schedule.Watching, error) {
		x, _, err := d.Keeper.Ready(ctx)
		if err != nil {
			return nil, err
		}
		return &schedule.Watching{Frames: d.frames(ctx, draining, x)}, nil
	}
}

func (d *recordingsDesk) frames(ctx, draining context.Context, x *find.Index) iter.Seq2[schedule.Frame, error] {
	return func(yield func(schedule.Frame, error) bool) {
		grown := d.Ledger.Grown(ctx)
		last, err := x.LastOfInterest(ctx)
		for err == nil {
			select {
			case <-ctx.Done():
				return
			case <-draining.Done():
				yield(schedule.Frame{}, schedule.ErrClosing)
				return
			case _, open := <-grown:
				if !open {
					return
				}
			}
			var now int64
			if err = x.Follow(ctx, nil); err == nil {
				now, err = x.LastOfInterest(ctx)
			}
			if now == last || err != nil {
				continue
			}
			if last = now; !yield(schedule.Frame{Seq: now, Type: "recorded", JSON: []byte("{}")}, nil) || !wait(ctx) {
				return
			}
		}
		if ctx.Err() == nil {
			yield(schedule.Frame{}, err)
		}
	}
}

// wait lets more come together into one event.
func wait(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(atLeast):
		return true
	}
}

// recordingBundle proves the records of a chain that recorders sealed, for a jury.
func recordingBundle(ctx context.Context, l *ledger.Ledger, records []*evidence.Record) ([]byte, error) {
	seen := false
	for _, r := range records {
		seen = seen || r.Payload.Observed != nil
	}
	if !seen {
		return nil, none()
	}
	bundle, err := l.Prove(ctx, records...)
	if err != nil {
		return nil, err
	}
	return bundle.Marshal()
}
