package pages

import (
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/trial"
)

// Home is the first page: the list of trials, and the form for a new one.
type Home struct {
	Trials   []Summary // the newest first
	Older    string    // the address of older ones; "": there are none
	Examples []Example
	Panel    []string // the models that would sit
	Rules    bool     // rules would sit
	Hidden   bool     // there may be trials that the viewer may not see
	Key      string   // the forms' idempotency key: sending a form twice makes one trial
	Refusal
}

// An Example is an example case contained in the program.
type Example struct{ ID, Agent string }

// A Summary is a trial in one line.
type Summary struct {
	trial.Summary
	State api.State
}

// Marks lists what weakens the verdict.
func (s Summary) Marks() []Mark {
	return append(marks(s.Outcome != nil && s.Outcome.Verdict.Inconclusive, Inconclusive, s.Degraded, Degraded, s.Offline, Offline), reasons(s.Outcome)...)
}

// SignIn is the page on which a person signs in.
type SignIn struct {
	Refusal
	Next     string // the path to go to afterwards
	Link     string // the secret of a one-time link that led here; "": the page asks for a token
	Form     string // the form key of a viewer who is signed in already
	OpenID   string // the address that asks an identity provider; "": there is none
	Provider string // its name
}

// Trouble is the page of an error.
type Trouble struct {
	Code   int
	Detail string // what is wrong and what to do next, in English
}

func (p *Trouble) code() int { return p.Code }

// Key is that of the text that names the kind of error.
func (p *Trouble) Key() string {
	switch p.Code {
	case 401:
		return "trouble.sign_in"
	case 403:
		return "trouble.forbidden"
	case 404:
		return "trouble.missing"
	case 429, 503:
		return "trouble.busy"
	}
	if p.Code >= 500 {
		return "trouble.ours"
	}
	return "trouble.refused"
}

// Access is the page of who may do what.
type Access struct {
	Grants []Granted
	Ended  bool // what has ended is shown, too
	Began  time.Time
	Next   int // the number of the next page; 0: this is the last one
}

// Granted is a token, and what became of it.
type Granted struct {
	api.Grant
	Until, From time.Time
	Used        time.Time // the last request since the server began; zero: none
	Acted       time.Time // the last record under the name; zero: none that the log has counted
}

// Good reports whether the token is valid.
func (g Granted) Good() bool { return g.State == api.GrantGood }

// Token is the page of one token: what its owner did, and the form that ends it.
type Token struct {
	Granted
	Acts  []Act
	Began time.Time
	Own   bool   // it is the viewer's own, or the one under their session
	Typed string // the reason as it was typed
	Refusal
}

// An Act is a record that a person or an agent made.
type Act struct {
	ID     string
	Action evidence.ActionType // "": it has expired
	At     time.Time
}
