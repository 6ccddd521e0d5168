package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"jurat/client/api"
	"jurat/internal/court/schedule"
	"jurat/internal/log/access"
	"jurat/internal/web/find"
	"jurat/internal/web/pages"
	"jurat/reputation"
)

func (s *Server) routes() []Route {
	entries := entryReaders
	if s.config.PublicEntries {
		entries = Anyone
	}
	ended := Parameter{"ended", "1: what has ended and all sessions, too"}
	query := []Parameter{{"ca", "the name of the CA that certified the agent's keys; needed if the trust file has several and none of the agent's keys"}}
	trials, records := parametersOf(find.TrialParameters()), parametersOf(find.RecordParameters())
	search := parametersOf(find.RecordingParameters())
	after := []Parameter{{"after", "The seq of the last event that you have: later events are sent. Without it, all events are sent."}}
	return []Route{
		{"GET /healthz", API, Anyone, answered(s.healthz), "The process answers.", Options{Probe: true, Media: "text/plain"}},
		{"GET /readyz", API, Anyone, answered(s.readyz), "The log takes records.", Options{Probe: true, Media: "text/plain"}},
		{"GET /openapi.json", API, Anyone, answered(s.getOpenAPI), "This description.", Options{Shared: true}},
		{"GET /metrics", API, metered, s.getMetrics, "Counts and durations for Prometheus.", Options{Media: "text/plain"}},
		{"GET /v1/trust", API, Anyone, answered(s.getTrust),
			"This installation's trust file. Compare its fingerprint over another channel before you verify with it.", Options{Shared: true, Out: Trust}},
		{"GET /log/checkpoint", API, Anyone, answered(s.getCheckpoint),
			"The log's signed checkpoint, with the cosignatures of witnesses: a C2SP signed note.", Options{Shared: true, Media: "text/plain"}},
		{"GET /log/tile/{level}/{index...}", API, Anyone, answered(s.getTile),
			"Hashes of the log's tree: a tile of C2SP tlog-tiles.", Options{Shared: true, Media: "application/octet-stream"}},
		{"GET /log/tile/entries/{index...}", API, entries, answered(s.getEntries),
			"What the log hashed under a tile of level 0: a bundle of entries of C2SP tlog-tiles.",
			Options{Heavy: true, Shared: entries.Strangers == Everything, Media: "application/octet-stream"}},
		{"POST /sign-in", Page, Anyone, s.signIn, "Sign in with a token or a link.", Options{MaxBody: smallForm}},
		{"GET /sign-in/provider", Page, Anyone, s.askProvider, "Go to the provider of OpenID Connect.", Options{Query: []Parameter{nextParameter}}},
		{"GET /sign-in/callback", Page, Anyone, s.fromProvider, "What that provider answers.", Options{AnyQuery: true}},
		{"POST /sign-out", Page, SignedIn, s.signOut, "End the session.", Options{MaxBody: smallForm}},
		{"GET /v1/access", API, OperatorOnly, answered(s.getAccess),
			"Who may do what: what jurat access list --json prints.", Options{Out: api.AccessList{}, Query: []Parameter{ended}}},
		{"POST /v1/access/{token}/revoke", API, OperatorOnly, answered(withBody(s.postRevocation)),
			"End a token, by its id, and every session that was opened with it. The log records by whom, and why.",
			Options{In: api.Revocation{}, Out: api.Grant{}}},
		{"GET /access", Page, OperatorOnly, shown(s, s.accessPage),
			"Who may do what.", Options{Heavy: true, Query: []Parameter{ended, {"page", "which page of a long list, from 1"}}}},
		{"GET /access/{token}", Page, OperatorOnly, shown(s, s.tokenPage), "A token: what its owner did, and the form that ends it.", Options{Heavy: true}},
		{"POST /access/{token}", Page, OperatorOnly, sent(s, s.revokeForm, s.tokenPage), "End a token, by the form.", Options{MaxBody: smallForm}},
		{"POST /v1/records", API, Who{Roles: []access.Role{access.Agent, access.Reviewer}}, s.sealing(s.postRecord),
			"Seals a payload with the key of the agent or reviewer that it names, who must be the token's owner. Or accepts a record that its actor has signed.",
			Options{In: Payload, Out: Record, Status: http.StatusCreated}},
		{"GET /v1/records/{id}", API, Readers, answered(s.provedRecord),
			"A sealed record, with its time stamps and the proof of its place in the log.", Options{Heavy: true, Shared: true, Out: Record}},
		{"POST /v1/records/{id}/properties", API, SignedIn, s.postProperty,
			"A proof of what a value is like that was sealed apart, in a bundle that does not have the value. It changes nothing, and each answer has another proof.",
			Options{Heavy: true, In: api.Property{}, Out: Bundle}},
		{"POST /v1/records/{id}/reviews", API, Deciders, s.sealing(withBody(s.postReview)),
			"A person's decision on a record, signed with the reviewer's key and bound to the record's content.",
			Options{Heavy: true, In: api.Review{}, Out: Record, Status: http.StatusCreated}},
		{"POST /v1/records/{id}/deliveries", API, Who{Roles: []access.Role{access.Agent, access.Reviewer, access.Operator}}, s.sealing(withBody(s.postDelivery)),
			"The answer that is finally given: what the named review approved, signed with the agent's key.",
			Options{Heavy: true, In: api.Delivery{}, Out: Record, Status: http.StatusCreated}},
		{"POST /v1/submissions/{id}/take", API, assigners, s.entered(http.StatusOK, withBody(s.postTaking)),
			"Take a waiting trial: others see who means to decide on it. An operator can assign it to another reviewer. All may still decide; a decision ends it.",
			Options{In: api.Taking{}, Out: api.Submission{}}},
		{"POST /v1/submissions/{id}/give-back", API, assigners, s.entered(http.StatusOK, withBody(s.postGivingBack)),
			"Give back a trial that was taken. The reviewer who has it and operators may.", Options{In: api.GivingBack{}, Out: api.Submission{}}},
		{"GET /v1/chains/{chain_id}", API, Readers, s.getChain,
			"All records that belong to a chain, to a trial, or to a record with this id, as one bundle that can be verified offline.",
			Options{Heavy: true, Shared: true, Out: Bundle}},
		{"GET /v1/records", API, SignedIn, answered(s.listRecords),
			"The records of the log that the caller may read, in log order. A page can be short or empty; as long as it has a next cursor, there may be more.",
			Options{Heavy: true, Out: api.Listing{}, Query: []Parameter{{"after", "the cursor of the previous page"}, {"limit", "the largest number of records: 1 to 500, by default 100"}, {"chain", "only records of this chain"}}}},
		{"GET /v1/agents/{name}/reputation", API, Readers, answered(s.reputationOf),
			"How an agent's sealed records were judged, by this installation's trust file and the default policy: see jurat reputation --json and docs/reputation.md.",
			Options{Heavy: true, Shared: true, Out: reputation.View{}, Query: query}},
		{"GET /v1/agents/{name}/conduct", API, Overseers, s.getConduct,
			"An agent's records and the case files of trials that judged it, as bundles, one in a line. With the log's entries, jurat reputation --log needs no more.",
			Options{Heavy: true, Query: []Parameter{{"size", "only what the log had at this size, such as a checkpoint's; without it, all"}}, Media: bundleLines}},
		{"GET /agents/{name}", Page, Readers, shown(s, s.agentPage), "An agent's reputation.", Options{Heavy: true, Query: query}},
		{"GET /v1/trials", API, SignedIn, answered(s.getTrials), "Trials that match, with counts of what the caller may read: a submitter finds its own.",
			Options{Heavy: true, Out: api.TrialList{}, Query: trials}},
		{"GET /v1/trials.csv", API, SignedIn, answered(s.getTrials), "The same as CSV. No cell is a formula.", Options{Heavy: true, Query: trials, Media: csvMedia}},
		{"GET /v1/trials/{id}/compare/{other}", API, SignedIn, answered(s.comparison),
			"Two trials side by side: outcomes, scores, and which findings differ.", Options{Heavy: true, Out: api.TrialComparison{}}},
		{"GET /v1/search", API, SignedIn, answered(s.getHits), "Who said this, and when: the records that match, among those that the caller may read.",
			Options{Heavy: true, Out: api.HitList{}, Query: records}},
		{"GET /v1/search.csv", API, SignedIn, answered(s.getHits), "The same as CSV. No cell is a formula.", Options{Heavy: true, Query: records, Media: csvMedia}},
		{"GET /v1/agents/{name}/history", API, Overseers, answered(s.getHistory),
			"The trials of an agent, the newest first, and what its jurors had in common.",
			Options{Heavy: true, Out: api.AgentHistory{}, Query: []Parameter{{"after", "the cursor of the previous page"}}}},
		{"GET /trials", Page, SignedIn, shown(s, s.trialsPage), "The trials that match, and the form of filters.",
			Options{Heavy: true, Query: append(trials, Parameter{"a", "with b: the page of these two trials side by side"}, Parameter{"b", "see a"})}},
		{"GET /search", Page, SignedIn, shown(s, s.searchPage),
			"Who said this, and when: the records that match, and the form of conditions.", Options{Heavy: true, Query: records}},
		{"GET /trials/{id}/compare/{other}", Page, SignedIn, shown(s, s.comparisonPage), "Two trials side by side.", Options{Heavy: true}},
		{"GET /v1/recordings", API, Overseers, answered(s.recordings),
			"The chains in which recorders saw something, the one with the newest record first.", Options{Heavy: true, Out: api.Recordings{}, Query: search}},
		{"GET /v1/recordings/{chain}", API, Readers, answered(s.getRecording),
			"A recorded chain as people read it: each act with the messages that are new in it. A trial of it begins by POST /v1/submissions with recorded.",
			Options{Heavy: true, Shared: true, Out: RecordedChain{}, Query: []Parameter{{"from", "the number of the first act, from 1; by default 1"}, {"limit", "the largest number of acts: 1 to 100, by default 20"}}}},
		{"GET " + RecordingEventsPath, Stream, Overseers, s.recordingEvents,
			"Server-sent events that say that recorders sealed something, or that a trial went on: at most one a second.",
			Options{Media: schedule.EventStream}},
		{"GET /recordings", Page, Overseers, shown(s, s.recordingsPage), "What recorders saw, and the form of filters.", Options{Heavy: true, Query: search}},
		{"GET /recordings/{chain}", Page, Readers, shown(s, s.recordingPage),
			"A recorded chain as people read it.", Options{Heavy: true, Query: []Parameter{{"page", "which page of a long chain, from 1"}}}},
		{"GET /recordings/{chain}/acts/{number}", Page, Readers, shown(s, s.recordingPage),
			"One act of a recorded chain, with all texts.", Options{Heavy: true}},
		{"POST /recordings/{chain}/trial", Page, Submitters, sent(s, s.tryRecording, s.recordingPage),
			"Put a recorded chain before the jury, by the form.", Options{Heavy: true}},
		{"POST /v1/submissions", API, Submitters, s.entered(http.StatusAccepted, withBody(s.submit)),
			"Put an agent before the jury. The submission is sealed at once, and the trial is held when its turn comes.",
			Options{In: api.NewSubmission{}, Out: api.Submission{}, Status: http.StatusAccepted}},
		{"GET /v1/submissions", API, SignedIn, answered(s.listSubmissions), "Submissions, the newest first: a submitter sees its own.",
			Options{Out: api.Submissions{}, Query: []Parameter{{"after", "the cursor of the previous page"}, {"limit", "how many at most: 1 to 500, by default 100"}}}},
		{"GET /v1/submissions/{id}", API, Readers, answered(s.getSubmission),
			"A submission: its state, the jury's positions, and the result if there is one.",
			Options{Heavy: true, Shared: true, Out: api.Submission{}, May: s.readsTrial}},
		{"POST /v1/submissions/{id}/resume", API, Submitters, s.entered(http.StatusAccepted, s.goOn),
			"Continue a trial that was broken off or cancelled.", Options{Out: api.Submission{}, Status: http.StatusAccepted, May: s.managesTrial}},
		{"POST /v1/submissions/{id}/cancel", API, Submitters, s.entered(http.StatusAccepted, withBody(s.cancel)),
			"Stop a trial that is to be held. The log records by whom, and why.",
			Options{In: api.Cancellation{}, Out: api.Submission{}, Status: http.StatusAccepted, May: s.managesTrial}},
		{"GET /v1/submissions/{id}/case", API, Readers, s.getCase,
			"The case file: every record of the trial, proved against one checkpoint.",
			Options{Heavy: true, Shared: true, Out: Bundle, May: s.readsTrial}},
		{"GET /ws/submissions/{id}/judge", Stream, Readers, s.judgeSocket,
			"What happens in a trial, over WebSocket: an event in each text message.",
			Options{Status: http.StatusSwitchingProtocols, Query: after, May: s.readsFromHere}},
		{"GET /v1/submissions/{id}/events", Stream, Readers, s.judgeEvents,
			"What happens in a trial, as server-sent events; 204 if no more events will come.",
			Options{Query: after, Header: []Parameter{{"Last-Event-ID", "The same as after; it overrides after."}}, Media: schedule.EventStream, May: s.readsTrial}},
		{"GET /{$}", Page, Anyone, shown(s, s.home), "The trials that the caller may see, and the form that begins one.",
			Options{Query: []Parameter{{"before", "the id of a trial: the trials that were submitted before it"}}}},
		{"GET /sign-in", Page, Anyone, shown(s, s.signInPage),
			"The form for signing in.", Options{Query: []Parameter{{"link", "the secret of a sign-in link"}, nextParameter}}},
		{"GET " + pages.AssetPrefix + "{name}", Static, Anyone, answered(asset), "A style sheet or script of the pages.", Options{}},
		{"POST /submissions", Page, Submitters, sent(s, s.submitForm, s.home), "Put an agent before the jury, by the form.", Options{}},
		{"GET /submissions/{id}", Page, Readers, shown(s, s.courtPage), "The courtroom: a trial as it happens.",
			Options{Heavy: true, May: s.readsTrial, Query: []Parameter{{"after", "how many of the trial's records the page shows already: what is new is sent"}}}},
		{"POST /submissions/{id}/resume", Page, Submitters, toCourt(s, s.goOn), "Continue a trial, by the form.", Options{May: s.managesTrial}},
		{"POST /submissions/{id}/cancel", Page, Submitters, toCourt(s, s.stopByForm), "Stop a trial, by the form.", Options{May: s.managesTrial}},
		{"GET /reviews", Page, Overseers, shown(s, s.deskPage), "What waits for a person.",
			Options{Query: []Parameter{{"show", "mine: what the caller has taken; unassigned: what nobody has taken; left out: all"}}}},
		{"POST /reviews", Page, assigners, shown(s, s.severalForm),
			"Decide, take, give back or assign several cases of the queue by one form: a record for each.", Options{Heavy: true}},
		{"GET /reviews/{id}", Page, SignedIn, shown(s, s.reviewOf), "The form for a decision on a record.", Options{Heavy: true}},
		{"POST /reviews/{id}", Page, Deciders, shown(s, s.decide), "A person's decision on a record, by the form.", Options{Heavy: true}},
		{"GET /records/{id}", Page, Readers, shown(s, s.recordPage), "A record, and what is proved of it.", Options{Heavy: true}},
		{"GET /records/{id}/bundle", Page, Readers, s.recordBundle,
			"The record and all that belongs to it, as a bundle.", Options{Heavy: true, Out: Bundle, Media: "application/json"}},
		{"GET /records/{id}/openssl", Page, Readers, answered(s.recordOpenSSL),
			"What OpenSSL needs to check the record.", Options{Heavy: true, Media: "application/zip"}},
		{"GET /chains/{chain_id}", Page, Readers, shown(s, s.chainPage),
			"A chain of records.", Options{Heavy: true, Query: []Parameter{{"page", "which page of a long chain, from 1"}}}},
		{"GET /submissions/{id}/messages", Page, Readers, shown(s, s.mentionsPage),
			"The messages of the conversation that have a text.", Options{Heavy: true, May: s.readsTrial, Query: []Parameter{{"find", "the text, in any letter case"}}}},
		{"GET /submissions/{id}/messages/{number}", Page, Readers, shown(s, s.messagePage),
			"One message of the conversation, whole.", Options{Heavy: true, May: s.readsTrial}},
		{"GET /records/{id}/member", Page, Readers, shown(s, s.memberPage),
			"One member of a record's payload, whole.", Options{Heavy: true, Query: []Parameter{{"name", "of the member, as the record's page names it"}}}},
		{"GET /verify", Page, Anyone, s.verifyPage, "The page on which everyone can verify a file.", Options{Shared: true}},
		{"GET /verify.html", Page, Anyone, answered(portalFile), "The same page as a file that needs no server.", Options{Shared: true}},
		{"GET " + portalFiles + "{name}", Static, Anyone, answered(portalAsset), "A file of that page.", Options{Shared: true}},
	}
}

func (s *Server) Routes() []Route { return slices.Clone(s.table) }

func (s *Server) assemble() (http.Handler, error) {
	mux := http.NewServeMux()
	var err error
	if s.origins, err = crossOrigin(s.config.Origins); err != nil {
		return nil, err
	}
	for i := range s.table {
		route := &s.table[i]
		mux.Handle(route.Name, s.guard(route))
	}
	nowhere, nowherePage := s.nowhere(API, mux), s.nowhere(Page, mux)
	return compressed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		if s.config.Secure {
			w.Header().Set("Strict-Transport-Security", "max-age=31536000") // browsers ignore it over plain HTTP (RFC 6797, section 8.1)
		}
		_, pattern := mux.Handler(r)
		switch {
		case pattern != "" && path.Clean(r.URL.Path) == r.URL.Path:
			mux.ServeHTTP(w, r)
		case strings.Contains(r.Header.Get("Accept"), "text/html"): // browsers send this and programs do not
			s.guard(nowherePage).ServeHTTP(w, r)
		default:
			s.guard(nowhere).ServeHTTP(w, r)
		}
	}))
}

// nowhere is the route for all other paths. It has the same guards.
func (s *Server) nowhere(kind Kind, mux *http.ServeMux) *Route {
	return &Route{Name: "ANY (none)", Kind: kind, Who: Anyone, Options: Options{AnyQuery: true}, Handle: func(w http.ResponseWriter, r *http.Request, _ *Caller) error {
		allowed := otherMethods(r, mux)
		if len(allowed) == 0 {
			return fmt.Errorf("%w: there is nothing at this path", api.ErrNotFound)
		}
		for _, method := range allowed {
			w.Header().Add("Allow", method)
		}
		return fmt.Errorf("%w: this path accepts %v", api.ErrMethod, allowed)
	}}
}

func otherMethods(r *http.Request, mux *http.ServeMux) (methods []string) {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete} {
		other := *r
		other.Method = method
		if _, pattern := mux.Handler(&other); pattern != "" && path.Clean(r.URL.Path) == r.URL.Path {
			methods = append(methods, method)
		}
	}
	return methods
}

// guard admits to a route the callers that may use it. It checks in this order: origin, rate, identity, rights.
func (s *Server) guard(route *Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		most := s.config.MaxBody
		if route.MaxBody > 0 {
			most = min(most, route.MaxBody)
		}
		body := &arriving{ReadCloser: r.Body, length: r.ContentLength}
		r.Body = http.MaxBytesReader(w, body, most)
		// Writers without a net/http connection, such as a test's recorder, have no deadlines.
		if connection := http.NewResponseController(w); route.Kind == Stream {
			_ = connection.SetReadDeadline(time.Time{}) // when it passes, net/http ends the request's context
		} else {
			_ = connection.SetWriteDeadline(time.Now().Add(answerTime))
			defer context.AfterFunc(s.draining, func() { body.Hurry(connection) })()
		}
		began, watching := time.Now(), &watched{ResponseWriter: w}
		traced := s.config.Tracing.Request(r, route.Name)
		c, err := s.admit(route, r)
		if err == nil {
			var held *memoryAccount
			r, held, err = s.account(route, r, c)
			defer held.Keep(0)
		}
		if err == nil {
			err = checkForm(r, c)
		}
		if err == nil {
			s.share(route, w.Header(), r, c)
			if route.May != nil {
				err = route.May(r, c)
			}
		}
		if err == nil {
			err = route.Handle(watching, r, c)
		}
		switch {
		case err == nil:
		case watching.Status == 0:
			s.refusals.note(route.Name, c, s.refuse(watching, r, route, c, err))
		case r.Context().Err() == nil: // the answer has begun
			s.config.Log.LogAttrs(r.Context(), slog.LevelWarn, "answer broken off", slog.String("route", route.Name), slog.Any("error", err))
		}
		s.answered(r, route, c, watching.Status, time.Since(began))
		traced(watching.Status)
		if errors.Is(err, http.ErrAbortHandler) && watching.Status != 0 {
			panic(http.ErrAbortHandler) // net/http closes the connection and logs nothing
		}
	})
}

// answered logs a finished request: the route and the caller, and no content.
func (s *Server) answered(r *http.Request, route *Route, c *Caller, status int, took time.Duration) {
	s.metrics.Answered(route.Name, status, took)
	level := slog.LevelInfo
	if route.Probe && status < http.StatusInternalServerError {
		level = slog.LevelDebug // successful probes would fill the log
	}
	s.config.Log.LogAttrs(r.Context(), level, "request", slog.String("route", route.Name), slog.Int("status", status),
		slog.Duration("took", took), slog.String("caller", c.Name()))
}

func (s *Server) admit(route *Route, r *http.Request) (*Caller, error) {
	if err := s.checkOrigin(r); err != nil {
		return &Caller{}, cmp.Or(s.limit(route, address(r), true), err)
	}
	if r.ContentLength > s.config.MaxBody {
		return &Caller{}, &http.MaxBytesError{Limit: s.config.MaxBody}
	}
	c, err := s.caller(r)
	if tooMany := s.limit(route, limitedAs(c, r), c.Stranger()); tooMany != nil {
		return c, tooMany
	}
	if err != nil && route.openTo(problemOf(err).Status) {
		c, err = &Caller{}, nil
	}
	if err != nil {
		return c, err
	}
	if !route.Who.admits(c) {
		if c.Stranger() {
			return c, fmt.Errorf("%w: this is for %v", api.ErrSignIn, route.Who.Roles)
		}
		return c, fmt.Errorf("%w: this is for %v, and %q is %v", api.ErrForbidden, route.Who.Roles, c.Name(), c.grant.Roles)
	}
	return c, route.checkQuery(r.URL.RawQuery)
}

// openTo reports whether a route serves a caller as a stranger whose token is invalid or cannot be looked up: neither an old cookie
// nor an unreachable database stops a sign-in, a probe, the portal or a style sheet.
func (r *Route) openTo(status int) bool {
	return r.Who.Strangers == Everything && (status == http.StatusUnauthorized || status == http.StatusServiceUnavailable)
}

// limit refuses a caller that asks too often. Probes are not limited: behind a proxy, monitoring shares its address with others.
func (s *Server) limit(route *Route, caller string, stranger bool) error {
	if route.Probe {
		return nil
	}
	return s.limiter.Allow(caller, stranger)
}

func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
}

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

func (w Who) admits(c *Caller) bool {
	if c.Stranger() {
		return w.Strangers != Nothing
	}
	return w.Strangers == Everything || slices.ContainsFunc(w.Roles, c.Has)
}

// A Handler answers a request, or returns an error. After it has begun to write, its error is only logged.
type Handler func(w http.ResponseWriter, r *http.Request, c *Caller) error

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

// shown makes a Handler of a function that returns a page, or elsewhere.
func shown[P pages.Page](s *Server, get func(*http.Request, *Caller) (P, error)) Handler {
	return func(w http.ResponseWriter, r *http.Request, c *Caller) error {
		page, err := get(r, c)
		if err != nil {
			return err
		}
		if to, leads := any(page).(elsewhere); leads {
			http.Redirect(w, r, string(to), http.StatusSeeOther)
			return nil
		}
		return s.page(w, r, c, page)
	}
}

// sent makes a Handler of a form: do returns where it leads. If the form is refused, page shows it again, with the reason. What the server could
// not do is answered and logged as on any other route.
func sent[F form](s *Server, do func(*http.Request, *Caller) (elsewhere, error), page func(*http.Request, *Caller) (F, error)) Handler {
	return shown(s, func(r *http.Request, c *Caller) (pages.Page, error) {
		to, err := do(r, c)
		if err == nil {
			return to, nil
		}
		if problemOf(err).Status >= http.StatusInternalServerError {
			return nil, err
		}
		again, failed := page(r, c)
		if failed == nil {
			again.Refuse(problemOf(err))
		}
		return again, failed
	})
}

// A Route is a row of the table.
type Route struct {
	Name    string // the method and the pattern of http.ServeMux, without a host, as metrics and logs have it. GET answers HEAD, too
	Kind    Kind
	Who     Who
	Handle  Handler
	Summary string // for OpenAPI
	Options
}

// Options are what not every route has. Those from In on are for OpenAPI.
type Options struct {
	Heavy   bool                               // it reads records, which can be large
	MaxBody int64                              // bytes of a body; 0: Config.MaxBody
	Shared  bool                               // pages of other sites may read what strangers get: see share
	Probe   bool                               // for monitoring: its rate is not limited, so an answer must be cheap
	May     func(*http.Request, *Caller) error // what decides beside the role; nil: nothing, or the handler asks

	In     any         // a value of the body's type, or a Shape; nil: no body
	Out    any         // the same for the answer
	Status int         // of a successful answer; 0: 200
	Query  []Parameter // in the query; a page also has lang. Any other parameter is refused
	Header []Parameter // request headers in addition to those of every route
	Media  string      // media type of the answer; "": application/json

	AnyQuery bool // another server makes the query, and may add parameters
}

func (r *Route) Method() string { return r.Name[:strings.Index(r.Name, " ")] }

func (r *Route) Pattern() string { return r.Name[strings.Index(r.Name, " ")+1:] }

// A Parameter is an optional parameter.
type Parameter struct{ Name, About string }

var languageParameter = Parameter{"lang", "the language of the page: en, ja or ru; a cookie keeps it"}

func (r *Route) query() []Parameter {
	if r.Kind != Page || changing(r.Method()) {
		return r.Query
	}
	return append(slices.Clone(r.Query), languageParameter)
}

// checkQuery refuses unknown and repeated parameters: the caller of a mistyped one would take another question's answer for theirs.
func (r *Route) checkQuery(raw string) error {
	if raw == "" || r.AnyQuery {
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
