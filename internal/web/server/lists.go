package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/court/acts"
	"jurat/internal/court/schedule"
	"jurat/internal/court/trial"
	"jurat/internal/kit/inorder"
	"jurat/internal/kit/plural"
	"jurat/internal/log/ledger"
	"jurat/internal/web/docket"
	"jurat/internal/web/find"
	"jurat/internal/web/pages"
	"jurat/internal/web/words"
	"jurat/reputation"
	"jurat/verify"
)

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

// A search finds a list by the parameters of a query, among what a reader may find.
type search[T any] func(context.Context, func(string) string, *trial.Index, *docket.Reader) (T, error)

func searched[T any](s *Server, r *http.Request, c *Caller, in search[T]) (list T, err error) {
	t, err := s.scheduler.Trials(r.Context())
	if err != nil {
		return list, err
	}
	return in(r.Context(), r.URL.Query().Get, t, s.reader(r.Context(), c, t))
}

func (s *Server) trials(r *http.Request, c *Caller) (api.TrialList, error) {
	return searched(s, r, c, s.keeper.Trials)
}

// inForm returns a list, or its table as CSV if the path says so.
func inForm(r *http.Request, list any, table *docket.Table) any {
	if !strings.HasSuffix(r.URL.Path, ".csv") {
		return list
	}
	return &file{media: csvMedia + "; charset=utf-8", cache: noStore, name: path.Base(r.URL.Path), doc: table.CSV()}
}

func (s *Server) getTrials(r *http.Request, c *Caller) (any, error) {
	list, err := s.trials(r, c)
	return inForm(r, list, docket.TrialTable(list.Trials)), err
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
	return s.keeper.Records(ctx, get, t, s.reader(ctx, c, t), trusted)
}

func (s *Server) getHits(r *http.Request, c *Caller) (any, error) {
	list, err := s.hits(r.Context(), c, r.URL.Query().Get)
	return inForm(r, list, docket.HitTable(list.Hits)), err
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
	if err != nil {
		p := problemOf(err)
		if p.Status != http.StatusBadRequest {
			return err
		}
		page.Refuse(p)
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
	return docket.History(ctx, s.config.Installation.Ledger, t, name, after, nil)
}

func (s *Server) getHistory(r *http.Request, _ *Caller) (api.AgentHistory, error) {
	return s.history(r.Context(), r.PathValue("name"), r.URL.Query().Get("after"))
}

func (s *Server) trialsPage(r *http.Request, c *Caller) (pages.Page, error) {
	query := r.URL.Query()
	if a, b := query.Get("a"), query.Get("b"); a != "" && b != "" {
		return pageAt("trials", a, "compare", b), nil
	}
	page := &pages.Trials{Searched: pages.Searched{Query: query}}
	list, err := s.trials(r, c)
	return page, fill(page, list, err)
}

func (s *Server) comparisonPage(r *http.Request, c *Caller) (*pages.Comparison, error) {
	both, err := s.comparison(r, c)
	if err != nil {
		return nil, err
	}
	return pages.NewComparison(both), nil
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
		return docket.ErrUnknownAgent
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
	page := pages.NewAgent(v)
	if !acts.ReadsEverything(c) { // an agent's public page does not make its trials public
		return page, nil
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
	case errors.Is(err, reputation.ErrIdentity):
		return nil, fmt.Errorf("%w: %w; the parameter ca names a CA", api.ErrInvalid, err)
	case errors.Is(err, docket.ErrTooMany):
		return nil, fmt.Errorf("%w: %w; 'jurat reputation' computes it", api.ErrTooLarge, err)
	}
	return v, err
}

func (s *Server) recordings(r *http.Request, c *Caller) (api.Recordings, error) {
	return searched(s, r, c, s.keeper.Recordings)
}

func (s *Server) recordingsPage(r *http.Request, c *Caller) (*pages.Recordings, error) {
	page := &pages.Recordings{Searched: pages.Searched{Query: r.URL.Query()}}
	list, err := s.recordings(r, c)
	if page.Query.Get("after") == "" && err == nil { // a later page stays as it is
		page.Events = RecordingEventsPath
	}
	return page, fill(page, list, err)
}

// recording reads acts of a chain: so many, from a number on. It returns api.ErrNotFound if recorders saw nothing in the chain, if it has no
// such act, or if the caller may not read it, api.ErrUnavailable if the index does not know yet, and the errors of the log.
func (s *Server) recording(ctx context.Context, c *Caller, chain string, from, n int64) (*RecordedChain, error) {
	read, err := s.readRecording(ctx, c, chain, from, n)
	if errors.Is(err, api.ErrNotFound) {
		return nil, s.noSuchChain(c)
	}
	return read, unnamed(err)
}

func (s *Server) getRecording(r *http.Request, c *Caller) (*RecordedChain, error) {
	from, err := number(r, "from", 1, 1<<40)
	if err != nil {
		return nil, err
	}
	n, err := number(r, "limit", pages.ActsPerPage, mostActs)
	if err != nil {
		return nil, err
	}
	return s.recording(r.Context(), c, r.PathValue("chain"), from, n)
}

func (s *Server) recordingPage(r *http.Request, c *Caller) (*pages.Conversation, error) {
	from, n, err := partOf(r)
	if err != nil {
		return nil, err
	}
	chain, err := s.recording(r.Context(), c, r.PathValue("chain"), from, n)
	if err != nil {
		return nil, err
	}
	proofs, err := s.proofsOf(r.Context(), chain, s.language(r))
	if err != nil {
		return nil, err
	}
	page := pages.NewConversation(chain.Recording, chain.part, chain.Records, proofs)
	page.Index, page.Alone, page.Send, page.Key = chain.Index, n == 1, Submitters.admits(c) && !c.Stranger(), rand.Text()
	page.Panel, page.Rules = whoSits(s.config.Seats)
	if page.After == 0 && !page.Alone && Overseers.admits(c) && !changes(r) { // what is new comes at the end
		page.Events = RecordingEventsPath
	}
	return page, nil
}

func (s *Server) tryRecording(r *http.Request, c *Caller) (elsewhere, error) {
	on, err := s.caseFrom(r.Context(), c, &api.NewSubmission{Recorded: r.PathValue("chain")})
	return s.begin(r, c, on, err)
}

// recordingEvents says that there is something new, as long as the caller may see it.
func (s *Server) recordingEvents(w http.ResponseWriter, r *http.Request, c *Caller) error {
	r, end := s.live.While(r, func(ctx context.Context) error { return s.stillGranted(ctx, c) })
	defer end()
	s.streaming.Add(1)
	defer s.streaming.Done()
	return s.live.Events(w, r, s.watchRecordings)
}

// A held counts what reading a part of a chain holds: bodies from which later ones may copy, the largest act, and the acts that are shown.
type held struct{ window, largest int64 }

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

type RecordedChain struct {
	api.Recording
	Records int64                `json:"records"`         // of the whole chain
	From    int64                `json:"from"`            // the number of the first act here, from 1
	Next    int64                `json:"next,omitzero"`   // the number of the act after the last one here; absent: there is none
	Steps   []docket.RecordedAct `json:"steps"`           // the records of the chain, with the messages that are new in each
	Events  []docket.RecordedAct `json:"events,omitzero"` // what the recorders said of themselves meanwhile
	Index   api.IndexState       `json:"index,omitzero"`

	part   *docket.ChainPart
	opened map[string]*evidence.Record
}

const (
	mostEvents   = 50 // of recorders, on a page
	eventsAtOnce = 4  // in memory: each can be as large as a record may be
	mostActs     = 100
)

func (s *Server) readRecording(ctx context.Context, c *Caller, chain string, from, n int64) (*RecordedChain, error) {
	t, err := s.scheduler.Trials(ctx)
	if err != nil {
		return nil, err
	}
	x, state, err := s.keeper.Ready(ctx)
	if err != nil {
		return nil, err
	}
	r, err := x.Recording(ctx, chain)
	if err != nil {
		return nil, err
	}
	if r == nil && state.Behind > 0 && acts.ReadsEverything(c) {
		return nil, fmt.Errorf("%w: the index lacks %s, which may have this chain: try again", api.ErrUnavailable, plural.Of(state.Behind, "record"))
	}
	if r == nil {
		return nil, unrecorded()
	}
	if from > r.Records {
		return nil, fmt.Errorf("%w: the chain has no act %d", api.ErrNotFound, from)
	}
	n = min(n, r.Records-from+1) // what the index does not have yet comes with its place in the list
	read := &RecordedChain{From: from, Records: r.Records, Index: state, opened: map[string]*evidence.Record{}}
	if read.Recording, err = docket.Recording(r, t, s.reader(ctx, c, t)); err != nil {
		return nil, err
	}
	number, holds := int64(0), held{}
	o := docket.PartOrder{From: from, N: n, Prices: s.config.Prices, Open: func(r *evidence.Record) (*evidence.Record, error) {
		number++
		if err := memoryAccountOf(ctx).Take(ctx, holds.more(r, number >= from)); err != nil {
			return nil, err
		}
		if err := s.mayRead(ctx, c, r); err != nil {
			return nil, err
		}
		opened, err := s.disclosedTo(ctx, c, r)
		if err == nil && number >= from {
			read.opened[r.Payload.RecordID] = opened
		}
		return opened, err
	}}
	part, err := docket.ReadPart(chain, s.config.Installation.Ledger.ChainRecords(ctx, chain), o)
	if err != nil {
		return nil, err
	}
	if part.Next > r.Records {
		part.Next = 0
	}
	if err := part.FindErased(ctx, x); err != nil {
		return nil, err
	}
	part.Events, err = s.recorderEvents(ctx, c, x, r, part)
	read.part, read.Next, read.Steps, read.Events = part, part.Next, part.Acts, part.Events
	return read, err
}

func unrecorded() error {
	return fmt.Errorf("%w: no recorder has seen anything in a chain of this name", api.ErrNotFound)
}

// recorderEvents lists what recorders said of themselves while they saw a part of a chain, as far as the caller may read it.
func (s *Server) recorderEvents(ctx context.Context, c *Caller, x *find.Index, r *find.Recording, part *docket.ChainPart) (list []docket.RecordedAct, err error) {
	places, err := x.Events(ctx, r, part.From, part.Next, mostEvents)
	if err != nil {
		return nil, err
	}
	for page := range slices.Chunk(places, eventsAtOnce) {
		rows, err := s.config.Installation.Ledger.RowsAt(ctx, page)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			record, err := rows[i].Record()
			if errors.Is(err, ledger.ErrExpired) {
				continue
			}
			allowed := false
			if err == nil {
				allowed, err = acts.Allows(s.mayRead(ctx, c, record))
			}
			if err == nil && allowed {
				var act docket.RecordedAct
				act, err = docket.RecordedEvent(record)
				list = append(list, act)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

func (s *Server) proofsOf(ctx context.Context, chain *RecordedChain, lang words.Lang) (map[string]pages.RecordedProof, error) {
	by, err := s.config.Installation.Trust(ctx)
	if err != nil {
		return nil, err
	}
	proofs := map[string]pages.RecordedProof{}
	type proof struct {
		record string
		pages.RecordedProof
	}
	err = inorder.Each(chain.Steps, func(a docket.RecordedAct) (proof, error) {
		one, err := s.config.Installation.Ledger.ProveOne(ctx, chain.opened[a.Record])
		if err != nil {
			return proof{}, err
		}
		report := verify.Record(one, verify.Options{Trust: by})
		p := pages.RecordedProof{Rests: words.RestsOn(lang, report)}
		if p.Status, p.Why = docket.Proved(report); p.Status != verify.Proved {
			p.Rests = ""
		}
		return proof{a.Record, p}, nil
	}, func(p proof) error {
		proofs[p.record] = p.RecordedProof
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("verifying the records of a chain: %w", err)
	}
	return proofs, nil
}

// RecordingEventsPath is the address at which pages learn that there is something new.
const RecordingEventsPath = "/v1/recording-events"

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
	return (page-1)*pages.ActsPerPage + 1, pages.ActsPerPage, err
}

// atLeast is how long a page that follows recorders is left alone after it was told that there is something new.
const atLeast = time.Second

// watchRecordings returns what a page waits for: that recorders sealed something, or that a trial went on. No event says more.
func (s *Server) watchRecordings(ctx context.Context) (*schedule.Watching, error) {
	x, _, err := s.keeper.Ready(ctx)
	if err != nil {
		return nil, err
	}
	return &schedule.Watching{Frames: s.frames(ctx, x)}, nil
}

func (s *Server) frames(ctx context.Context, x *find.Index) iter.Seq2[schedule.Frame, error] {
	return func(yield func(schedule.Frame, error) bool) {
		grown := s.config.Installation.Ledger.Grown(ctx)
		last, err := x.LastOfInterest(ctx)
		for err == nil {
			select {
			case <-ctx.Done():
				return
			case <-s.draining.Done():
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
			if last = now; !yield(schedule.Frame{Seq: now, Type: "recorded", JSON: []byte("{}")}, nil) || !wait(ctx, atLeast) { // more comes together into one event
				return
			}
		}
		if ctx.Err() == nil {
			yield(schedule.Frame{}, err)
		}
	}
}
