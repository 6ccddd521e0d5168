package server

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"jurat/api"
	"jurat/internal/access"
	"jurat/internal/pages"
	"jurat/internal/words"
)

// pageRoutes are the pages for people.
func (s *Server) pageRoutes() []Route {
	return []Route{
		{Method: "GET", Pattern: "/{$}", Kind: Page, Who: Anyone, Handle: shown(s, s.home),
			Doc: Doc{Summary: "The trials that the caller may see, and the form that begins one.", Query: []Parameter{{"before", "the id of a trial: the trials that were submitted before it"}}}},
		{Method: "GET", Pattern: "/sign-in", Kind: Page, Who: Anyone, Handle: shown(s, s.signInPage),
			Doc: Doc{Summary: "The form for signing in.", Query: []Parameter{{"link", "the secret of a sign-in link"}, nextParameter}}},
		{Method: "GET", Pattern: pages.AssetPrefix + "{name}", Kind: Static, Who: Anyone, Handle: s.asset, Doc: Doc{Summary: "A style sheet or script of the pages."}},
		{Method: "POST", Pattern: "/submissions", Kind: Page, Who: Submitters, Handle: s.submitForm, Doc: Doc{Summary: "Put an agent before the jury, by the form."}},
		{Method: "GET", Pattern: "/submissions/{id}", Kind: Page, Heavy: true, Who: Readers, Handle: shown(s, s.courtPage),
			Doc: Doc{Summary: "The courtroom: a trial as it happens.", Query: []Parameter{{"after", "how many of the trial's records the page shows already: what is new is sent"}}}},
		{Method: "POST", Pattern: "/submissions/{id}/resume", Kind: Page, Who: Submitters, Handle: toCourt(s.goOn), Doc: Doc{Summary: "Continue a trial, by the form."}},
		{Method: "POST", Pattern: "/submissions/{id}/cancel", Kind: Page, Who: Submitters, Handle: toCourt(s.stopByForm), Doc: Doc{Summary: "Stop a trial, by the form."}},
		{Method: "GET", Pattern: "/reviews", Kind: Page, Who: Overseers, Handle: shown(s, s.deskPage),
			Doc: Doc{Summary: "What waits for a person.", Query: []Parameter{{"show", "mine: what the caller has taken; unassigned: what nobody has taken; left out: all"}}}},
		{Method: "POST", Pattern: "/reviews", Kind: Page, Heavy: true, Who: assigners, Handle: s.severalForm, Doc: Doc{Summary: "Decide, take, give back or assign several cases of the queue by one form: a record for each."}},
		{Method: "GET", Pattern: "/reviews/{id}", Kind: Page, Heavy: true, Who: SignedIn, Handle: shown(s, s.reviewOf), Doc: Doc{Summary: "The form for a decision on a record."}},
		{Method: "POST", Pattern: "/reviews/{id}", Kind: Page, Heavy: true, Who: Deciders, Handle: s.decide, Doc: Doc{Summary: "A person's decision on a record, by the form."}},
		{Method: "GET", Pattern: "/records/{id}", Kind: Page, Heavy: true, Who: Readers, Handle: s.recordPage, Doc: Doc{Summary: "A record, and what is proved of it."}},
		{Method: "GET", Pattern: "/records/{id}/bundle", Kind: Page, Heavy: true, Who: Readers, Handle: s.recordBundle, Doc: Doc{Summary: "The record and all that belongs to it, as a bundle.", Out: Bundle, Media: "application/json"}},
		{Method: "GET", Pattern: "/records/{id}/openssl", Kind: Page, Heavy: true, Who: Readers, Handle: s.recordOpenSSL, Doc: Doc{Summary: "What OpenSSL needs to check the record.", Media: "application/zip"}},
		{Method: "GET", Pattern: "/chains/{chain_id}", Kind: Page, Heavy: true, Who: Readers, Handle: shown(s, s.chainPage),
			Doc: Doc{Summary: "A chain of records.", Query: []Parameter{{"page", "which page of a long chain, from 1"}}}},
	}
}

// nextParameter is the page to open after signing in.
var nextParameter = Parameter{"next", "a path of this server to go to after signing in"}

// languageCookie stores the language that the visitor chose.
const languageCookie = "lang"

// page answers with a page, and with the status that it asks for.
func (s *Server) page(w http.ResponseWriter, r *http.Request, c *Caller, p pages.Page) error {
	var doc bytes.Buffer
	if err := pages.Write(&doc, s.frame(w, r, c), p); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Add("Vary", "Accept-Language, Cookie")
	return writeDoc(w, r, pages.Status(p), "text/html; charset=utf-8", doc.Bytes())
}

// A form is a page that can say why what it sent was refused.
type form interface {
	pages.Page
	Refuse(*api.Problem)
}

// again shows the page of a form with the reason why it was refused. It returns a failure of the server's.
func again[F form](s *Server, w http.ResponseWriter, r *http.Request, c *Caller, err error, of func(*http.Request, *Caller) (F, error)) error {
	p := problemOf(err)
	if p.Status == http.StatusInternalServerError {
		return err
	}
	page, failed := of(r, c)
	if failed != nil {
		return failed
	}
	page.Refuse(p)
	return s.page(w, r, c, page)
}

// frame returns what surrounds a page for this caller.
func (s *Server) frame(w http.ResponseWriter, r *http.Request, c *Caller) pages.Frame {
	f := pages.Frame{Lang: s.language(r), Path: r.URL.RequestURI()}
	if chosen := r.URL.Query().Get(languageParameter.Name); chosen != "" && chosen == string(f.Lang) {
		http.SetCookie(w, &http.Cookie{Name: languageCookie, Value: chosen, Path: "/", MaxAge: int((365 * 24 * time.Hour).Seconds()), HttpOnly: true,
			Secure: s.config.Secure, SameSite: http.SameSiteStrictMode})
	}
	if changes(r) { // the answer to a form cannot be requested again by its address
		f.Path = r.URL.Path
	}
	if !c.Stranger() {
		f.Viewer = &pages.Viewer{Name: c.Name(), Form: c.FormKey(), Submits: c.Has(access.Submitter) || c.Has(access.Operator), Reviews: c.Has(access.Reviewer), Oversees: Overseers.admits(c), Operates: c.Has(access.Operator)}
	}
	return f
}

// language returns the chosen language, or else the one that the browser prefers.
func (s *Server) language(r *http.Request) words.Lang {
	accept, chosen := r.Header.Get("Accept-Language"), r.URL.Query().Get(languageParameter.Name)
	if chosen != "" && string(pages.Choose(chosen, "")) == chosen {
		return words.Lang(chosen)
	}
	if kept, err := r.Cookie(languageCookie); err == nil {
		return pages.Choose(kept.Value, accept)
	}
	return pages.Choose("", accept)
}

// signInPage asks for a token, or for one click if the visitor came by a link.
func (s *Server) signInPage(r *http.Request, c *Caller) (*pages.SignIn, error) {
	q := r.URL.Query()
	return s.signInForm(c, pages.SignIn{Link: q.Get("link"), Next: q.Get("next")}), nil
}

// signInForm adds the available ways of signing in to a form.
func (s *Server) signInForm(c *Caller, p pages.SignIn) *pages.SignIn {
	p.Form = c.FormKey()
	if s.config.Provider != nil {
		p.Provider = s.config.Provider.Issuer()
		p.OpenID = "/sign-in/provider?" + url.Values{"next": {ownPath(p.Next)}}.Encode()
	}
	return &p
}

// refusePage shows a person why a request failed. A visitor who is not signed in gets the sign-in form if that may
// help.
func (s *Server) refusePage(w http.ResponseWriter, r *http.Request, c *Caller, p *api.Problem) {
	detail := p.Detail // the detail begins with the title's text
	if p.Hint != "" {
		detail += "\n" + p.Hint
	}
	var page pages.Page = &pages.Trouble{Code: p.Status, Detail: detail}
	if p.Status == http.StatusUnauthorized {
		page = s.signInForm(c, pages.SignIn{Refusal: pages.Refusal{Code: p.Status, Problem: detail}, Next: nextOf(r)})
	}
	if err := s.page(w, r, c, page); err != nil {
		s.config.Log.Error("writing a page of what is wrong", "error", err)
		w.WriteHeader(p.Status)
	}
}

// nextOf returns the path to open after signing in.
func nextOf(r *http.Request) string {
	switch {
	case r.URL.Path == "/sign-in":
		return ownPath(r.PostForm.Get("next"))
	case changes(r):
		return "/"
	}
	return r.URL.RequestURI()
}

// asset answers with a static file. The file's name changes with its content.
func (s *Server) asset(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	content, media, found := pages.Asset(pages.AssetPrefix + r.PathValue("name"))
	if !found {
		return fmt.Errorf("%w: there is no file of this name", api.ErrNotFound)
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	return writeTagged(w, r, http.StatusOK, media, content)
}

// goTo redirects a browser after a form.
func goTo(w http.ResponseWriter, r *http.Request, path ...string) error {
	for i := range path {
		path[i] = url.PathEscape(path[i])
	}
	http.Redirect(w, r, "/"+strings.Join(path, "/"), http.StatusSeeOther)
	return nil
}
