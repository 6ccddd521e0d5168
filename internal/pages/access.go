package pages

import (
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/words"
)

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

// NewGranted reads a grant. Its error says that a time cannot be read.
func NewGranted(g api.Grant) (made Granted, err error) {
	made.Grant = g
	if made.From, err = time.Parse(time.RFC3339, g.Since); err != nil {
		return made, err
	}
	made.Until, err = time.Parse(time.RFC3339, g.NotAfter)
	return made, err
}

// Good reports whether the token is valid.
func (g Granted) Good() bool { return g.State == api.GrantGood }

func (a *Access) view() string { return "access" }

func (a *Access) headline(lang words.Lang) string { return words.OfPages(lang).Say("access.title") }

// Token is the page of one token: what its owner did, and the form that ends it.
type Token struct {
	Granted
	Acts    []Act
	Began   time.Time
	Own     bool   // it is the viewer's own, or the one under their session
	Typed   string // the reason as it was typed
	Problem string // why it was not ended; "": nothing was asked
}

// An Act is a record that a person or an agent made.
type Act struct {
	ID     string
	Action evidence.ActionType // "": it has expired
	At     time.Time
}

func (t *Token) view() string { return "token" }

func (t *Token) headline(lang words.Lang) string {
	return words.OfPages(lang).Say("access.one") + " · " + t.Name
}
