package pages

import (
	"jurat/api"
	"jurat/internal/trial"
	"jurat/internal/words"
)

// Home is the first page: what was tried, and what can be.
type Home struct {
	Trials   []Summary // the newest first
	Older    string    // where older ones are listed; "": there are none
	Examples []Example
	Panel    []string // who would sit: models
	Rules    bool     // rules would sit
	Hidden   bool     // there may be trials, and the viewer may not see them
	Key      string   // of what the forms of this page submit: sent twice, they make one trial
	Problem  string   // why the form was not taken
}

// An Example is a case that comes with the program.
type Example struct{ ID, Agent string }

// A Summary is a trial in one line.
type Summary struct {
	trial.Summary
	State api.State
}

// Marks are what takes away from the verdict.
func (s Summary) Marks() []Mark {
	return marks(s.Outcome != nil && s.Outcome.Verdict.Inconclusive, Inconclusive, s.Degraded, Degraded, s.Offline, Offline)
}

func (h *Home) view() string               { return "home" }
func (h *Home) headline(words.Lang) string { return "" }

// SignIn is where a person signs in.
type SignIn struct {
	Problem  string // why it did not work; "": nothing was tried yet
	Next     string // the path to go to afterwards
	Link     string // the secret of a one-time link that led here; "": a token is asked for
	Form     string // the form key, of who is signed in already
	OpenID   string // where a provider of identities is asked; "": there is none
	Provider string // its name
}

func (s *SignIn) view() string                    { return "sign-in" }
func (s *SignIn) headline(lang words.Lang) string { return words.PagesIn(lang).SignIn.Title }

// Trouble is an error, as a page.
type Trouble struct {
	Status int
	Title  string // of the problem, in English
	Detail string // what is wrong and what to do next, in English
}

func (p *Trouble) view() string { return "trouble" }

func (p *Trouble) headline(lang words.Lang) string { return p.Says(words.PagesIn(lang)) }

// Says says in the page's language what kind of trouble it is.
func (p *Trouble) Says(says *words.Pages) string {
	kinds := &says.Trouble
	switch p.Status {
	case 401:
		return kinds.SignIn
	case 403:
		return kinds.Forbidden
	case 404:
		return kinds.Missing
	case 429, 503:
		return kinds.Busy
	}
	if p.Status >= 500 {
		return kinds.Ours
	}
	return kinds.Refused
}
