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

// homePage lists trials and takes submissions.
func (s *Server) homePage(w http.ResponseWriter, r *http.Request, c *Caller) error {
	return s.home(w, r, c, http.StatusOK, "")
}

func (s *Server) home(w http.ResponseWriter, r *http.Request, c *Caller, status int, problem string) error {
	h := &pages.Home{Hidden: c.Stranger(), Problem: problem, Key: rand.Text()}
	if !c.Stranger() {
		entries, more, err := s.scheduler.Entries(r.Context(), r.URL.Query().Get("before"), trialsPerPage, s.visible(c))
		if errors.Is(err, trial.ErrUnknown) {
			return fmt.Errorf("%w: before: not one of the listed trials", api.ErrMalformed)
		}
		if err != nil {
			return err
		}
		for i := range entries {
			h.Trials = append(h.Trials, inBrief(&entries[i]))
		}
		if more {
			h.Older = "/?" + url.Values{"before": {entries[len(entries)-1].ID}}.Encode()
		}
	}
	h.Panel, h.Rules = whoSits(s.config.Seats)
	for _, name := range examples.Names() {
		on, err := exampleCase(name)
		if err != nil {
			return err
		}
		h.Examples = append(h.Examples, pages.Example{ID: name, Agent: on.Card.Name})
	}
	return s.page(w, r, c, status, h)
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

// inBrief is a scheduler's entry in the form for lists on pages.
func inBrief(e *schedule.Entry) pages.Summary {
	return pages.Summary{Summary: e.Summary, State: e.State}
}

// courtPage shows a trial, as far as it has got.
func (s *Server) courtPage(w http.ResponseWriter, r *http.Request, c *Caller) error {
	id := r.PathValue("id")
	if err := s.mayReadTrial(r.Context(), c, id); err != nil {
		return err
	}
	// The state is read before the records. In the other order, a page could call a trial over without showing its
	// end.
	e, err := s.scheduler.Entry(r.Context(), id)
	if err != nil {
		return ofScheduler(err)
	}
	court, err := s.courtOf(r, c, id)
	if err != nil {
		return err
	}
	if court.State != api.Over {
		if court.State = e.State; court.State == api.Over { // it has ended meanwhile, in another process
			court.State = api.UnderWay
		}
		court.Events = "/v1/submissions/" + url.PathEscape(id) + "/events?after=" + fmt.Sprint(court.Acts)
		court.Ahead, court.Reason, court.By, court.Next = e.Ahead, reasonFor(c, &e), cancelledBy(c, &e), e.Next
		may := acts.Manages(c, e.Submitter)
		court.Resume = may && (court.State == api.BrokenOff || court.State == api.Cancelled)
		court.Cancel = may && e.Cancelled == nil && !e.Over
	}
	if court.Proof, err = s.proofOf(r.Context()); err != nil {
		return err
	}
	return s.page(w, r, c, http.StatusOK, court)
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
	records, err := s.readableChain(r.Context(), c, id)
	if err != nil {
		return nil, err
	}
	return pages.NewCourt(records)
}

// submitForm takes a submission from the first page.
func (s *Server) submitForm(w http.ResponseWriter, r *http.Request, c *Caller) error {
	on, err := formCase(r, s.sources(c))
	return s.begin(w, r, c, on, err, s.home)
}

// begin takes a submission from a form. If it is refused, or its case could not be read, the page is shown again with the reason.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, c *Caller, on *subject.Case, err error,
	again func(w http.ResponseWriter, r *http.Request, c *Caller, status int, problem string) error) error {
	if err == nil {
		var id string
		if id, err = s.scheduler.SubmitOnce(r.Context(), schedule.Order{ID: formID(r, c.Name(), on), Submitter: c.Name(), Case: on}); err == nil {
			return goTo(w, r, "submissions", id)
		}
		err = ofScheduler(err)
	}
	p := problemOf(refusedEvidence(err))
	if p.Status == http.StatusInternalServerError {
		return err
	}
	return again(w, r, c, p.Status, problemText(p))
}

// cancelForm stops a trial.
func (s *Server) cancelForm(w http.ResponseWriter, r *http.Request, c *Caller) error {
	id := r.PathValue("id")
	if err := s.stop(r, c, id, r.PostFormValue("reason")); err != nil {
		return err
	}
	return goTo(w, r, "submissions", id)
}

// resumeForm continues a trial that was broken off or cancelled.
func (s *Server) resumeForm(w http.ResponseWriter, r *http.Request, c *Caller) error {
	id := r.PathValue("id")
	if err := s.goOn(r, c, id); err != nil {
		return err
	}
	return goTo(w, r, "submissions", id)
}

// wholeRoutes show texts whole that the courtroom and the page of a record carry only in part, and find texts in them.
func (s *Server) wholeRoutes() []Route {
	return []Route{
		{Method: "GET", Pattern: "/submissions/{id}/messages", Kind: Page, Heavy: true, Who: Readers, Handle: s.mentionsPage,
			Doc: Doc{Summary: "The messages of the conversation that have a text.", Query: []Parameter{{"find", "the text, in any letter case"}}}},
		{Method: "GET", Pattern: "/submissions/{id}/messages/{number}", Kind: Page, Heavy: true, Who: Readers, Handle: s.messagePage, Doc: Doc{Summary: "One message of the conversation, whole."}},
		{Method: "GET", Pattern: "/records/{id}/member", Kind: Page, Heavy: true, Who: Readers, Handle: s.memberPage,
			Doc: Doc{Summary: "One member of a record's payload, whole.", Query: []Parameter{{"name", "of the member, as the record's page names it"}}}},
	}
}

// conversation returns the courtroom with the messages of its evidence.
func (s *Server) conversation(r *http.Request, c *Caller) (*pages.Court, error) {
	id := r.PathValue("id")
	if err := s.mayReadTrial(r.Context(), c, id); err != nil {
		return nil, err
	}
	records, err := s.readableChain(r.Context(), c, id)
	if err != nil {
		return nil, err
	}
	return pages.NewCourt(records)
}

func (s *Server) messagePage(w http.ResponseWriter, r *http.Request, c *Caller) error {
	court, err := s.conversation(r, c)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(r.PathValue("number"))
	var page *pages.Whole
	if err == nil {
		page = court.WholeMessage(number)
	}
	if page == nil {
		return fmt.Errorf("%w: the conversation of this trial shows %d messages, and none has this number", api.ErrNotFound, len(court.Messages))
	}
	return s.page(w, r, c, http.StatusOK, page)
}

func (s *Server) mentionsPage(w http.ResponseWriter, r *http.Request, c *Caller) error {
	court, err := s.conversation(r, c)
	if err != nil {
		return err
	}
	page := &pages.Mentions{Trial: r.PathValue("id"), Query: r.URL.Query().Get("find")}
	query := find.Fold(page.Query)
	if query == "" {
		page.Problem = "find: give what to look for"
		return s.page(w, r, c, http.StatusBadRequest, page)
	}
	page.Find(court, func(text string) (string, bool) { return find.Excerpt(text, query) })
	return s.page(w, r, c, http.StatusOK, page)
}

func (s *Server) memberPage(w http.ResponseWriter, r *http.Request, c *Caller) error {
	record, err := s.readable(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return err
	}
	if record, err = s.disclosedTo(r.Context(), c, record); err != nil {
		return err
	}
	page := pages.WholeMember(record, r.URL.Query().Get("name"))
	if page == nil {
		return fmt.Errorf("%w: name: the record's payload has no member of this name", api.ErrNotFound)
	}
	return s.page(w, r, c, http.StatusOK, page)
}
