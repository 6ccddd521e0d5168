package server

import (
	"fmt"
	"net/http"
	"strconv"

	"jurat/api"
	"jurat/internal/find"
	"jurat/internal/pages"
)

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
