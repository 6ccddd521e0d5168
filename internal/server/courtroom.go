package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"jurat/api"
	"jurat/examples"
	"jurat/internal/acts"
	"jurat/internal/find"
	"jurat/internal/pages"
	"jurat/internal/schedule"
	"jurat/internal/subject"
	"jurat/internal/trial"
	"jurat/jury"
	"jurat/verify/trust"
)

// trialsPerPage is how many trials the first page lists at once.
const trialsPerPage = 20

// home lists trials and takes submissions.
func (s *Server) home(r *http.Request, c *Caller) (*pages.Home, error) {
	h := &pages.Home{Hidden: c.Stranger(), Key: rand.Text()}
	if !c.Stranger() {
		entries, more, err := s.scheduler.Entries(r.Context(), r.URL.Query().Get("before"), trialsPerPage, s.visible(c))
		if errors.Is(err, trial.ErrUnknown) {
			return nil, fmt.Errorf("%w: before: not one of the listed trials", api.ErrMalformed)
		}
		if err != nil {
			return nil, err
		}
		h.Trials = briefs(entries)
		if more {
			h.Older = "/?" + url.Values{"before": {entries[len(entries)-1].ID}}.Encode()
		}
	}
	h.Panel, h.Rules = whoSits(s.config.Seats)
	for _, name := range examples.Names() {
		on, err := exampleCase(name)
		if err != nil {
			return nil, err
		}
		h.Examples = append(h.Examples, pages.Example{ID: name, Agent: on.Card.Name})
	}
	return h, nil
}

// whoSits returns the models in the seats, and whether rules fill all seats.
func whoSits(seats []jury.Seat) (models []string, rules bool) {
	for _, seat := range seats {
		if seat.Provider != jury.Offline {
			models = append(models, seat.Model)
		}
	}
	return models, len(seats) > 0 && len(models) == 0
}

// courtPage shows a trial, as far as it has got.
func (s *Server) courtPage(r *http.Request, c *Caller) (*pages.Court, error) {
	id := r.PathValue("id")
	if err := s.mayReadTrial(r.Context(), c, id); err != nil {
		return nil, err
	}
	// The state is read before the records. In the other order, a page could call a trial over without showing its
	// end.
	e, err := s.scheduler.Entry(r.Context(), id)
	if err != nil {
		return nil, ofScheduler(err)
	}
	court, err := s.courtOf(r, c, id)
	if err != nil {
		return nil, err
	}
	if court.State != api.Over {
		if court.State = e.State; court.State == api.Over { // it has ended meanwhile, in another process
			court.State = api.UnderWay
		}
		court.Events = "/v1/submissions/" + url.PathEscape(id) + "/events?after=" + fmt.Sprint(court.Acts)
		told := entryFor(c, &e)
		court.Ahead, court.Reason, court.By, court.Next = e.Ahead, told.Reason, told.CancelledBy, e.Next
		may := acts.Manages(c, e.Submitter)
		court.Resume = may && (court.State == api.BrokenOff || court.State == api.Cancelled)
		court.Cancel = may && e.Cancelled == nil && !e.Over
	}
	court.Proof, err = s.proofOf(r.Context())
	return court, err
}

// proofOf says what the proof of a trial on this server rests on, by the trust file that the server gives out.
func (s *Server) proofOf(ctx context.Context) (*pages.Proof, error) {
	trusted, err := s.config.Installation.Trust(ctx)
	if err != nil {
		return nil, err
	}
	p := &pages.Proof{Witnesses: len(trusted.Witnesses), Quorum: trusted.Quorum}
	for i := range trusted.Authorities {
		if trusted.Authorities[i].Clock == trust.Independent {
			p.Clocks++
		}
	}
	return p, nil
}

// courtOf returns the courtroom, or with ?after= only what is new since that record. New parts come from the read
// model that all watchers share, in a time that does not grow with the trial.
func (s *Server) courtOf(r *http.Request, c *Caller, id string) (court *pages.Court, err error) {
	if after, err := strconv.Atoi(r.URL.Query().Get("after")); err == nil {
		err := s.scheduler.Look(r.Context(), id, func(v *trial.View) { court = pages.NewNews(v, after) })
		if court != nil || err != nil {
			return court, ofScheduler(err)
		}
	}
	return s.wholeCourt(r.Context(), c, id)
}

// submitForm takes a submission from the first page.
func (s *Server) submitForm(w http.ResponseWriter, r *http.Request, c *Caller) error {
	on, err := s.formCase(r, c)
	return s.begin(w, r, c, on, err, func(err error) error { return again(s, w, r, c, err, s.home) })
}

// begin takes a submission from a form, and goes to its courtroom. refuse answers if the case could not be read, or is refused.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, c *Caller, on *subject.Case, err error, refuse func(error) error) error {
	if err != nil {
		return refuse(refusedEvidence(err))
	}
	id, err := s.scheduler.SubmitOnce(r.Context(), schedule.Order{ID: formID(r, c.Name(), on), Submitter: c.Name(), Case: on})
	if err != nil {
		return refuse(refusedEvidence(ofScheduler(err)))
	}
	return goTo(w, r, "submissions", id)
}

// stopByForm stops a trial.
func (s *Server) stopByForm(r *http.Request, c *Caller) (string, error) {
	return s.cancel(r, c, &api.Cancellation{Reason: r.PostFormValue("reason")})
}

// wholeRoutes show texts whole that the courtroom and the page of a record carry only in part, and find texts in them.
func (s *Server) wholeRoutes() []Route {
	return []Route{
		{Method: "GET", Pattern: "/submissions/{id}/messages", Kind: Page, Heavy: true, Who: Readers, Handle: shown(s, s.mentionsPage),
			Doc: Doc{Summary: "The messages of the conversation that have a text.", Query: []Parameter{{"find", "the text, in any letter case"}}}},
		{Method: "GET", Pattern: "/submissions/{id}/messages/{number}", Kind: Page, Heavy: true, Who: Readers, Handle: shown(s, s.messagePage), Doc: Doc{Summary: "One message of the conversation, whole."}},
		{Method: "GET", Pattern: "/records/{id}/member", Kind: Page, Heavy: true, Who: Readers, Handle: shown(s, s.memberPage),
			Doc: Doc{Summary: "One member of a record's payload, whole.", Query: []Parameter{{"name", "of the member, as the record's page names it"}}}},
	}
}

// conversation returns the courtroom with the messages of its evidence.
func (s *Server) conversation(r *http.Request, c *Caller) (*pages.Court, error) {
	if err := s.mayReadTrial(r.Context(), c, r.PathValue("id")); err != nil {
		return nil, err
	}
	return s.wholeCourt(r.Context(), c, r.PathValue("id"))
}

func (s *Server) wholeCourt(ctx context.Context, c *Caller, id string) (*pages.Court, error) {
	records, err := s.readableChain(ctx, c, id, true)
	if err != nil {
		return nil, err
	}
	return pages.NewCourt(records)
}

func (s *Server) messagePage(r *http.Request, c *Caller) (*pages.Whole, error) {
	court, err := s.conversation(r, c)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(r.PathValue("number"))
	var page *pages.Whole
	if err == nil {
		page = court.WholeMessage(number)
	}
	if page == nil {
		return nil, fmt.Errorf("%w: the conversation of this trial shows %d messages, and none has this number", api.ErrNotFound, len(court.Messages))
	}
	return page, nil
}

func (s *Server) mentionsPage(r *http.Request, c *Caller) (*pages.Mentions, error) {
	court, err := s.conversation(r, c)
	if err != nil {
		return nil, err
	}
	page := &pages.Mentions{Trial: r.PathValue("id"), Query: r.URL.Query().Get("find")}
	query := find.Fold(page.Query)
	if query == "" {
		page.Refusal = pages.Refusal{Code: http.StatusBadRequest, Problem: "find: give what to look for"}
		return page, nil
	}
	page.Find(court, func(text string) (string, bool) { return find.Excerpt(text, query) })
	return page, nil
}

func (s *Server) memberPage(r *http.Request, c *Caller) (*pages.Whole, error) {
	record, err := s.disclosed(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	page := pages.WholeMember(record, r.URL.Query().Get("name"))
	if page == nil {
		return nil, fmt.Errorf("%w: name: the record's payload has no member of this name", api.ErrNotFound)
	}
	return page, nil
}
