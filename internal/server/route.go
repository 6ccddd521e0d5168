package server

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"jurat/api"
	"jurat/internal/access"
)

// A Kind says what a route answers with, and so how it is refused.
type Kind string

const (
	API    Kind = "api"    // JSON; problem details
	Page   Kind = "page"   // HTML; a page that says what is wrong
	Stream Kind = "stream" // events as they come, for as long as they come; problem details before that
	Static Kind = "static" // a file that never changes under its name
)

// Strangers says what somebody may do who has not signed in.
type Strangers string

const (
	Nothing    Strangers = ""           // they are asked to sign in
	Everything Strangers = "everything" // whoever it is
	WhatPublic Strangers = "public"     // what belongs to a chain that is public: the handler asks acts.MayRead
)

// Who says who may use a route.
type Who struct {
	Strangers Strangers
	Roles     []access.Role
}

// Who may use a route, where several do the same.
var (
	Anyone       = Who{Strangers: Everything, Roles: access.Roles()}
	Readers      = Who{Strangers: WhatPublic, Roles: access.Roles()}                           // each what concerns them: see acts.MayRead
	SignedIn     = Who{Roles: access.Roles()}                                                  // each what concerns them
	Overseers    = Who{Roles: []access.Role{access.Reviewer, access.Auditor, access.Operator}} // who may see what others wait for
	Deciders     = Who{Roles: []access.Role{access.Reviewer}}                                  // a person's decision
	Submitters   = Who{Roles: []access.Role{access.Submitter, access.Operator}}                // who puts agents before the jury
	OperatorOnly = Who{Roles: []access.Role{access.Operator}}
)

// admits reports whether somebody may use the route at all.
func (w Who) admits(c *Caller) bool {
	if c.Stranger() {
		return w.Strangers != Nothing
	}
	return w.Strangers == Everything || slices.ContainsFunc(w.Roles, c.Has)
}

// A Handler answers a request, or returns why it cannot. After it has written anything it returns an error only to be logged.
type Handler func(w http.ResponseWriter, r *http.Request, c *Caller) error

// A Route is a row of the table.
type Route struct {
	Method  string // "GET" answers HEAD, too
	Pattern string // of http.ServeMux, without method and host
	Kind    Kind
	Who     Who
	Handle  Handler
	Heavy   bool  // it reads records, which can be of any size
	MaxBody int64 // bytes of a body; 0: Config.MaxBody
	Probe   bool  // asked by what watches over the server: as often as it likes, so that an answer must cost next to nothing

	Doc Doc // what OpenAPI says of it
}

// Name is what a route is called in metrics, logs and records of refusals.
func (r *Route) Name() string { return r.Method + " " + r.Pattern }

// Doc describes a route of kind API or Stream.
type Doc struct {
	Summary string
	In      any         // a value of the type that the body is of; nil: there is no body. Raw for what evidence describes
	Out     any         // likewise of the answer
	Status  int         // of an answer that is as it should be; 0: 200
	Query   []Parameter // in the query; a page has lang beside them. Any other is refused
	Header  []Parameter // request headers beside those of every route
	Media   string      // media type of the answer; "": application/json

	AnyQuery bool // another server makes the query, and may put into it what it likes
}

// A Parameter is one that may be left out.
type Parameter struct{ Name, About string }

// languageParameter chooses the language of any page.
var languageParameter = Parameter{"lang", "the language of the page: en, ja or ru; a cookie keeps it"}

// query lists the parameters that a route knows.
func (r *Route) query() []Parameter {
	if r.Kind != Page || changing(r.Method) {
		return r.Doc.Query
	}
	return append(slices.Clone(r.Doc.Query), languageParameter)
}

// checkQuery refuses parameters that the route does not know, and those that are given twice. A caller who has mistyped one would otherwise
// take the answer to another question for the answer to theirs.
func (r *Route) checkQuery(raw string) error {
	if raw == "" || r.Doc.AnyQuery {
		return nil
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return fmt.Errorf("%w: the query: %w", api.ErrMalformed, err)
	}
	var known []string
	for _, p := range r.query() {
		known = append(known, p.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(known, name) && len(known) == 0:
			return fmt.Errorf("%w: query parameter %q: this path takes none", api.ErrMalformed, name)
		case !slices.Contains(known, name):
			return fmt.Errorf("%w: query parameter %q: this path takes only %s", api.ErrMalformed, name, strings.Join(known, ", "))
		case len(values[name]) > 1:
			return fmt.Errorf("%w: query parameter %q is given %d times", api.ErrMalformed, name, len(values[name]))
		}
	}
	return nil
}
