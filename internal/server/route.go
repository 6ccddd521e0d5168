package server

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"jurat/api"
	"jurat/internal/access"
	"jurat/internal/pages"
)

// A Kind says what form a route's answers and refusals have.
type Kind string

const (
	API    Kind = "api"    // JSON; problem details
	Page   Kind = "page"   // HTML; a page that says what is wrong
	Stream Kind = "stream" // a stream of events; problem details before it begins
	Static Kind = "static" // a file that never changes under its name
)

// Strangers says what callers may do who have not signed in.
type Strangers string

const (
	Nothing    Strangers = ""           // they are asked to sign in
	Everything Strangers = "everything" // everything
	WhatPublic Strangers = "public"     // what belongs to a public chain: the handler asks acts.MayRead
)

// Who says who may use a route.
type Who struct {
	Strangers Strangers
	Roles     []access.Role
}

// Callers of several routes.
var (
	Anyone       = Who{Strangers: Everything, Roles: access.Roles()}
	Readers      = Who{Strangers: WhatPublic, Roles: access.Roles()}                           // only what acts.MayRead allows each
	SignedIn     = Who{Roles: access.Roles()}                                                  // only what acts.MayRead allows each
	Overseers    = Who{Roles: []access.Role{access.Reviewer, access.Auditor, access.Operator}} // may see what waits for others
	Deciders     = Who{Roles: []access.Role{access.Reviewer}}                                  // decide on records
	Submitters   = Who{Roles: []access.Role{access.Submitter, access.Operator}}                // submit agents
	OperatorOnly = Who{Roles: []access.Role{access.Operator}}
)

// admits reports whether the caller may use the route at all.
func (w Who) admits(c *Caller) bool {
	if c.Stranger() {
		return w.Strangers != Nothing
	}
	return w.Strangers == Everything || slices.ContainsFunc(w.Roles, c.Has)
}

// A Handler answers a request, or returns an error. After it has begun to write, its error is only logged.
type Handler func(w http.ResponseWriter, r *http.Request, c *Caller) error

// inJSON makes a Handler that answers with a value of package api.
func inJSON[T any](get func(*http.Request, *Caller) (T, error)) Handler {
	return func(w http.ResponseWriter, r *http.Request, c *Caller) error {
		value, err := get(r, c)
		if err != nil {
			return err
		}
		return writeJSON(w, r, http.StatusOK, value)
	}
}

// withBody reads the body for a function that takes one, a value of package api.
func withBody[In, Out any](do func(*http.Request, *Caller, *In) (Out, error)) func(*http.Request, *Caller) (Out, error) {
	return func(r *http.Request, c *Caller) (out Out, err error) {
		asked, err := readJSON[In](r)
		if err != nil {
			return out, err
		}
		return do(r, c, asked)
	}
}

// shown makes a Handler that answers with a page.
func shown[P pages.Page](s *Server, get func(*http.Request, *Caller) (P, error)) Handler {
	return func(w http.ResponseWriter, r *http.Request, c *Caller) error {
		page, err := get(r, c)
		if err != nil {
			return err
		}
		return s.page(w, r, c, page)
	}
}

// A Route is a row of the table.
type Route struct {
	Method  string // "GET" answers HEAD, too
	Pattern string // of http.ServeMux, without method and host
	Kind    Kind
	Who     Who
	Handle  Handler
	Heavy   bool  // it reads records, which can be large
	MaxBody int64 // bytes of a body; 0: Config.MaxBody
	Shared  bool  // pages of other sites may read what strangers get: see share
	Probe   bool  // for monitoring: its rate is not limited, so an answer must be cheap

	Doc Doc // for OpenAPI
}

// Name returns the route's name in metrics, logs and records of refusals.
func (r *Route) Name() string { return r.Method + " " + r.Pattern }

// Doc describes a route of kind API or Stream.
type Doc struct {
	Summary string
	In      any         // a value of the body's type; nil: no body. Raw for what evidence describes
	Out     any         // the same for the answer
	Status  int         // of a successful answer; 0: 200
	Query   []Parameter // in the query; a page also has lang. Any other parameter is refused
	Header  []Parameter // request headers in addition to those of every route
	Media   string      // media type of the answer; "": application/json

	AnyQuery bool // another server makes the query, and may add parameters
}

// A Parameter is an optional parameter.
type Parameter struct{ Name, About string }

// languageParameter sets the language of any page.
var languageParameter = Parameter{"lang", "the language of the page: en, ja or ru; a cookie keeps it"}

// query lists the parameters that a route accepts.
func (r *Route) query() []Parameter {
	if r.Kind != Page || changing(r.Method) {
		return r.Doc.Query
	}
	return append(slices.Clone(r.Doc.Query), languageParameter)
}

// checkQuery refuses unknown and repeated parameters.
func (r *Route) checkQuery(raw string) error {
	if r.Doc.AnyQuery {
		return nil
	}
	var known []string
	for _, p := range r.query() {
		known = append(known, p.Name)
	}
	return checkQuery(raw, known)
}

// checkQuery refuses unknown and repeated parameters of a query. Otherwise the caller of a mistyped one would take the
// answer to another question for theirs.
func checkQuery(raw string, known []string) error {
	if raw == "" {
		return nil
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return fmt.Errorf("%w: the query: %w", api.ErrMalformed, err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(known, name) && len(known) == 0:
			return fmt.Errorf("%w: query parameter %q: this path has no parameters", api.ErrMalformed, name)
		case !slices.Contains(known, name):
			return fmt.Errorf("%w: query parameter %q: this path has only %s", api.ErrMalformed, name, strings.Join(known, ", "))
		case len(values[name]) > 1:
			return fmt.Errorf("%w: query parameter %q is given %d times", api.ErrMalformed, name, len(values[name]))
		}
	}
	return nil
}

// pageNumber reads the number of a page from the query, 1 if there is none. Its error is api.ErrMalformed.
func pageNumber(r *http.Request) (int64, error) { return number(r, "page", 1, 1<<40) }

// number reads a parameter of the query that is a number from 1. usual stands for one that is missing. Its error is api.ErrMalformed.
func number(r *http.Request, name string, usual, most int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("%w: query parameter %s: %q: want a whole number from 1 to %d", api.ErrMalformed, name, text, most)
	}
	return n, nil
}

// seqOf reads the number of an event; "" is 0. Its error is api.ErrMalformed.
func seqOf(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	seq, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seq < 0 || strconv.FormatInt(seq, 10) != text {
		return 0, fmt.Errorf("%w: after: want the seq of an event, or 0 for all", api.ErrMalformed)
	}
	return seq, nil
}
