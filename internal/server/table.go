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

	"jurat/api"
	"jurat/internal/access"
	"jurat/internal/find"
	"jurat/internal/pages"
	"jurat/internal/schedule"
	"jurat/reputation"
)

func (s *Server) routes() []Route {
	entries := entryReaders
	if s.config.PublicEntries {
		entries = Anyone
	}
	ended := Parameter{"ended", "1: what has ended and all sessions, too"}
	query := []Parameter{{"ca", "the agent is the one whose keys the CA of this name certified; needed where the trust file has several and none of the agent's keys"}}
	trials, records := parametersOf(find.TrialParameters()), parametersOf(find.RecordParameters())
	search := parametersOf(find.RecordingParameters())
	after := []Parameter{{"after", "The seq of the last event that you have: later events are sent. Without it, all events are sent."}}
	return []Route{
		{Method: "GET", Pattern: "/healthz", Kind: API, Who: Anyone, Handle: s.healthz, Probe: true, Summary: "The process answers.", Media: "text/plain"},
		{Method: "GET", Pattern: "/readyz", Kind: API, Who: Anyone, Handle: s.readyz, Probe: true, Summary: "The log takes records.", Media: "text/plain"},
		{Method: "GET", Pattern: "/openapi.json", Kind: API, Shared: true, Who: Anyone, Handle: s.getOpenAPI, Summary: "This description."},
		{Method: "GET", Pattern: "/metrics", Kind: API, Who: metered, Handle: s.getMetrics,
			Summary: "Counts and durations for Prometheus.", Media: "text/plain"},
		{Method: "GET", Pattern: "/v1/trust", Kind: API, Shared: true, Who: Anyone, Handle: s.getTrust,
			Summary: "This installation's trust file. Compare its fingerprint over another channel before you verify with it.", Out: Trust},
		{Method: "GET", Pattern: "/log/checkpoint", Kind: API, Shared: true, Who: Anyone, Handle: s.getCheckpoint,
			Summary: "The log's signed checkpoint, with the cosignatures of witnesses: a C2SP signed note.", Media: "text/plain"},
		{Method: "GET", Pattern: "/log/tile/{level}/{index...}", Kind: API, Shared: true, Who: Anyone, Handle: s.getTile,
			Summary: "Hashes of the log's tree: a tile of C2SP tlog-tiles.", Media: "application/octet-stream"},
		{Method: "GET", Pattern: "/log/tile/entries/{index...}", Kind: API, Shared: entries.Strangers == Everything, Heavy: true, Who: entries, Handle: s.getEntries,
			Summary: "What the log hashed under a tile of level 0: a bundle of entries of C2SP tlog-tiles.", Media: "application/octet-stream"},
		{Method: "POST", Pattern: "/sign-in", Kind: Page, MaxBody: smallForm, Who: Anyone, Handle: s.signIn, Summary: "Sign in with a token or a link."},
		{Method: "GET", Pattern: "/sign-in/provider", Kind: Page, Who: Anyone, Handle: s.askProvider,
			Summary: "Go to the provider of OpenID Connect.", Query: []Parameter{nextParameter}},
		{Method: "GET", Pattern: "/sign-in/callback", Kind: Page, Who: Anyone, Handle: s.fromProvider,
			Summary: "What that provider answers.", AnyQuery: true},
		{Method: "POST", Pattern: "/sign-out", Kind: Page, MaxBody: smallForm, Who: SignedIn, Handle: s.signOut, Summary: "End the session."},
		{Method: "GET", Pattern: "/v1/access", Kind: API, Who: OperatorOnly, Handle: inJSON(s.getAccess),
			Summary: "Who may do what: what jurat access list --json prints.", Out: api.AccessList{}, Query: []Parameter{ended}},
		{Method: "POST", Pattern: "/v1/access/{token}/revoke", Kind: API, Who: OperatorOnly, Handle: inJSON(withBody(s.postRevocation)),
			Summary: "End a token, by its id, and every session that was opened with it. The log records by whom, and why.",
			In:      api.Revocation{}, Out: api.Grant{}},
		{Method: "GET", Pattern: "/access", Kind: Page, Heavy: true, Who: OperatorOnly, Handle: shown(s, s.accessPage),
			Summary: "Who may do what.", Query: []Parameter{ended, {"page", "which page of a long list, from 1"}}},
		{Method: "GET", Pattern: "/access/{token}", Kind: Page, Heavy: true, Who: OperatorOnly, Handle: shown(s, s.tokenPage),
			Summary: "A token: what its owner did, and the form that ends it."},
		{Method: "POST", Pattern: "/access/{token}", Kind: Page, MaxBody: smallForm, Who: OperatorOnly, Handle: s.revokeForm,
			Summary: "End a token, by the form."},
		{Method: "POST", Pattern: "/v1/records", Kind: API, Who: Who{Roles: []access.Role{access.Agent, access.Reviewer}}, Handle: s.sealing(s.postRecord),
			Summary: "Seals a payload with the key of the agent or reviewer that it names, who must be the token's owner. Or accepts a record that its actor has signed.",
			In:      Payload, Out: Record, Status: http.StatusCreated},
		{Method: "GET", Pattern: "/v1/records/{id}", Kind: API, Shared: true, Heavy: true, Who: Readers, Handle: s.getRecord,
			Summary: "A sealed record, with its time stamps and the proof of its place in the log.", Out: Record},
		{Method: "POST", Pattern: "/v1/records/{id}/properties", Kind: API, Heavy: true, Who: SignedIn, Handle: s.postProperty,
			Summary: "A proof of what a value is like that was sealed apart, in a bundle that does not have the value. It changes nothing, and each answer has another proof.",
			In:      api.Property{}, Out: Bundle},
		{Method: "POST", Pattern: "/v1/records/{id}/reviews", Kind: API, Heavy: true, Who: Deciders, Handle: s.sealing(withBody(s.postReview)),
			Summary: "A person's decision on a record, signed with the reviewer's key and bound to the record's content.",
			In:      api.Review{}, Out: Record, Status: http.StatusCreated},
		{Method: "POST", Pattern: "/v1/records/{id}/deliveries", Kind: API, Heavy: true, Who: Who{Roles: []access.Role{access.Agent, access.Reviewer, access.Operator}}, Handle: s.sealing(withBody(s.postDelivery)),
			Summary: "The answer that is finally given: what the named review approved, signed with the agent's key.",
			In:      api.Delivery{}, Out: Record, Status: http.StatusCreated},
		{Method: "POST", Pattern: "/v1/submissions/{id}/take", Kind: API, Who: assigners, Handle: s.entered(http.StatusOK, withBody(s.postTaking)),
			Summary: "Take a trial that waits for a person: others see who means to decide on it. An operator can assign it to another reviewer. It hinders nobody from deciding, and ends with the next decision.",
			In:      api.Taking{}, Out: api.Submission{}},
		{Method: "POST", Pattern: "/v1/submissions/{id}/give-back", Kind: API, Who: assigners, Handle: s.entered(http.StatusOK, withBody(s.postGivingBack)),
			Summary: "Give back a trial that was taken. The reviewer who has it and operators may.", In: api.GivingBack{}, Out: api.Submission{}},
		{Method: "GET", Pattern: "/v1/chains/{chain_id}", Kind: API, Shared: true, Heavy: true, Who: Readers, Handle: s.getChain,
			Summary: "All records that belong to a chain, to a trial, or to a record with this id, as one bundle that can be verified offline.", Out: Bundle},
		{Method: "GET", Pattern: "/v1/records", Kind: API, Heavy: true, Who: SignedIn, Handle: inJSON(s.listRecords),
			Summary: "The records of the log that the caller may read, in log order. A page can be short or empty; as long as it has a next cursor, there may be more.",
			Out:     api.Listing{}, Query: []Parameter{{"after", "the cursor of the previous page"}, {"limit", "the largest number of records: 1 to 500, by default 100"}, {"chain", "only records of this chain"}}},
		{Method: "GET", Pattern: "/v1/agents/{name}/reputation", Kind: API, Shared: true, Heavy: true, Who: Readers, Handle: s.getReputation,
			Summary: "How the sealed records of an agent were judged, by this installation's trust file and the default policy: what jurat reputation --json prints. docs/reputation.md describes it.",
			Out:     reputation.View{}, Query: query},
		{Method: "GET", Pattern: "/v1/agents/{name}/conduct", Kind: API, Heavy: true, Who: Overseers, Handle: s.getConduct,
			Summary: "What the log has about an agent: the case file of each trial that judged it, and its own records, as bundles, one in a line. With them and the log's entries, anyone computes the agent's reputation alone: jurat reputation --log.",
			Media:   bundleLines, Query: []Parameter{{"size", "only what the log had when it was this long, such as a checkpoint says; without it, all"}}},
		{Method: "GET", Pattern: "/agents/{name}", Kind: Page, Heavy: true, Who: Readers, Handle: shown(s, s.agentPage),
			Summary: "An agent's reputation.", Query: query},
		{Method: "GET", Pattern: "/v1/trials", Kind: API, Heavy: true, Who: SignedIn, Handle: s.getTrials,
			Summary: "Trials that match, with counts of what the caller may read: a submitter finds its own.", Out: api.TrialList{}, Query: trials},
		{Method: "GET", Pattern: "/v1/trials.csv", Kind: API, Heavy: true, Who: SignedIn, Handle: s.getTrials,
			Summary: "The same as CSV. No cell is a formula.", Media: csvMedia, Query: trials},
		{Method: "GET", Pattern: "/v1/trials/{id}/compare/{other}", Kind: API, Heavy: true, Who: SignedIn, Handle: inJSON(s.comparison),
			Summary: "Two trials side by side: outcomes, scores, and which findings differ.", Out: api.TrialComparison{}},
		{Method: "GET", Pattern: "/v1/search", Kind: API, Heavy: true, Who: SignedIn, Handle: s.getHits,
			Summary: "Who said this, and when: the records that match, among those that the caller may read.", Out: api.HitList{}, Query: records},
		{Method: "GET", Pattern: "/v1/search.csv", Kind: API, Heavy: true, Who: SignedIn, Handle: s.getHits,
			Summary: "The same as CSV. No cell is a formula.", Media: csvMedia, Query: records},
		{Method: "GET", Pattern: "/v1/agents/{name}/history", Kind: API, Heavy: true, Who: Overseers, Handle: inJSON(s.getHistory),
			Summary: "The trials of an agent, the newest first, and what its jurors had in common.",
			Out:     api.AgentHistory{}, Query: []Parameter{{"after", "the cursor of the previous page"}}},
		{Method: "GET", Pattern: "/trials", Kind: Page, Heavy: true, Who: SignedIn, Handle: s.trialsPage,
			Summary: "The trials that match, and the form of filters.",
			Query:   append(trials, Parameter{"a", "with b: the page of these two trials side by side"}, Parameter{"b", "see a"})},
		{Method: "GET", Pattern: "/search", Kind: Page, Heavy: true, Who: SignedIn, Handle: shown(s, s.searchPage),
			Summary: "Who said this, and when: the records that match, and the form of conditions.", Query: records},
		{Method: "GET", Pattern: "/trials/{id}/compare/{other}", Kind: Page, Heavy: true, Who: SignedIn, Handle: shown(s, s.comparisonPage),
			Summary: "Two trials side by side."},
		{Method: "GET", Pattern: "/v1/recordings", Kind: API, Heavy: true, Who: Overseers, Handle: inJSON(s.recordings),
			Summary: "The chains in which recorders saw something, the one with the newest record first.", Out: api.Recordings{}, Query: search},
		{Method: "GET", Pattern: "/v1/recordings/{chain}", Kind: API, Shared: true, Heavy: true, Who: Readers, Handle: inJSON(s.getRecording),
			Summary: "A recorded chain as people read it: each act with the messages that are new in it. A trial of it begins by POST /v1/submissions with recorded.",
			Out:     RecordedChain{}, Query: []Parameter{{"from", "the number of the first act, from 1; by default 1"}, {"limit", "the largest number of acts: 1 to 100, by default 20"}}},
		{Method: "GET", Pattern: RecordingEventsPath, Kind: Stream, Who: Overseers, Handle: s.recordingEvents,
			Summary: "Server-sent events that say that recorders sealed something, or that a trial went on: at most one a second.", Media: schedule.EventStream},
		{Method: "GET", Pattern: "/recordings", Kind: Page, Heavy: true, Who: Overseers, Handle: shown(s, s.recordingsPage),
			Summary: "What recorders saw, and the form of filters.", Query: search},
		{Method: "GET", Pattern: "/recordings/{chain}", Kind: Page, Heavy: true, Who: Readers, Handle: shown(s, s.recordingPage),
			Summary: "A recorded chain as people read it.", Query: []Parameter{{"page", "which page of a long chain, from 1"}}},
		{Method: "GET", Pattern: "/recordings/{chain}/acts/{number}", Kind: Page, Heavy: true, Who: Readers, Handle: shown(s, s.recordingPage),
			Summary: "One act of a recorded chain, with all texts."},
		{Method: "POST", Pattern: "/recordings/{chain}/trial", Kind: Page, Heavy: true, Who: Submitters, Handle: s.tryRecording,
			Summary: "Put a recorded chain before the jury, by the form."},
		{Method: "POST", Pattern: "/v1/submissions", Kind: API, Who: Submitters, Handle: s.entered(http.StatusAccepted, withBody(s.submit)),
			Summary: "Put an agent before the jury. The submission is sealed at once, and the trial is held when its turn comes.",
			In:      api.NewSubmission{}, Out: api.Submission{}, Status: http.StatusAccepted},
		{Method: "GET", Pattern: "/v1/submissions", Kind: API, Who: SignedIn, Handle: inJSON(s.listSubmissions),
			Summary: "Submissions, the newest first: a submitter sees its own.",
			Out:     api.Submissions{}, Query: []Parameter{{"after", "the cursor of the previous page"}, {"limit", "the largest number of submissions: 1 to 500, by default 100"}}},
		{Method: "GET", Pattern: "/v1/submissions/{id}", Kind: API, Shared: true, Heavy: true, Who: Readers, Handle: inJSON(s.getSubmission),
			Summary: "A submission: its state, the jury's positions, and the result if there is one.", Out: api.Submission{}},
		{Method: "POST", Pattern: "/v1/submissions/{id}/resume", Kind: API, Who: Submitters, Handle: s.entered(http.StatusAccepted, s.goOn),
			Summary: "Continue a trial that was broken off or cancelled.", Out: api.Submission{}, Status: http.StatusAccepted},
		{Method: "POST", Pattern: "/v1/submissions/{id}/cancel", Kind: API, Who: Submitters, Handle: s.entered(http.StatusAccepted, withBody(s.cancel)),
			Summary: "Stop a trial that is to be held. The log records by whom, and why.",
			In:      api.Cancellation{}, Out: api.Submission{}, Status: http.StatusAccepted},
		{Method: "GET", Pattern: "/v1/submissions/{id}/case", Kind: API, Shared: true, Heavy: true, Who: Readers, Handle: s.getCase,
			Summary: "The case file: every record of the trial, proved against one checkpoint.", Out: Bundle},
		{Method: "GET", Pattern: "/ws/submissions/{id}/judge", Kind: Stream, Who: Readers, Handle: s.judgeSocket,
			Summary: "What happens in a trial, over WebSocket: an event in each text message.", Status: http.StatusSwitchingProtocols, Query: after},
		{Method: "GET", Pattern: "/v1/submissions/{id}/events", Kind: Stream, Who: Readers, Handle: s.judgeEvents,
			Summary: "What happens in a trial, as server-sent events; 204 if no more events will come.",
			Media:   schedule.EventStream, Query: after, Header: []Parameter{{"Last-Event-ID", "The same as after; it overrides after."}}},
		{Method: "GET", Pattern: "/{$}", Kind: Page, Who: Anyone, Handle: shown(s, s.home),
			Summary: "The trials that the caller may see, and the form that begins one.",
			Query:   []Parameter{{"before", "the id of a trial: the trials that were submitted before it"}}},
		{Method: "GET", Pattern: "/sign-in", Kind: Page, Who: Anyone, Handle: shown(s, s.signInPage),
			Summary: "The form for signing in.", Query: []Parameter{{"link", "the secret of a sign-in link"}, nextParameter}},
		{Method: "GET", Pattern: pages.AssetPrefix + "{name}", Kind: Static, Who: Anyone, Handle: s.asset, Summary: "A style sheet or script of the pages."},
		{Method: "POST", Pattern: "/submissions", Kind: Page, Who: Submitters, Handle: s.submitForm, Summary: "Put an agent before the jury, by the form."},
		{Method: "GET", Pattern: "/submissions/{id}", Kind: Page, Heavy: true, Who: Readers, Handle: shown(s, s.courtPage),
			Summary: "The courtroom: a trial as it happens.",
			Query:   []Parameter{{"after", "how many of the trial's records the page shows already: what is new is sent"}}},
		{Method: "POST", Pattern: "/submissions/{id}/resume", Kind: Page, Who: Submitters, Handle: toCourt(s.goOn),
			Summary: "Continue a trial, by the form."},
		{Method: "POST", Pattern: "/submissions/{id}/cancel", Kind: Page, Who: Submitters, Handle: toCourt(s.stopByForm),
			Summary: "Stop a trial, by the form."},
		{Method: "GET", Pattern: "/reviews", Kind: Page, Who: Overseers, Handle: shown(s, s.deskPage),
			Summary: "What waits for a person.",
			Query:   []Parameter{{"show", "mine: what the caller has taken; unassigned: what nobody has taken; left out: all"}}},
		{Method: "POST", Pattern: "/reviews", Kind: Page, Heavy: true, Who: assigners, Handle: s.severalForm,
			Summary: "Decide, take, give back or assign several cases of the queue by one form: a record for each."},
		{Method: "GET", Pattern: "/reviews/{id}", Kind: Page, Heavy: true, Who: SignedIn, Handle: shown(s, s.reviewOf),
			Summary: "The form for a decision on a record."},
		{Method: "POST", Pattern: "/reviews/{id}", Kind: Page, Heavy: true, Who: Deciders, Handle: s.decide,
			Summary: "A person's decision on a record, by the form."},
		{Method: "GET", Pattern: "/records/{id}", Kind: Page, Heavy: true, Who: Readers, Handle: s.recordPage,
			Summary: "A record, and what is proved of it."},
		{Method: "GET", Pattern: "/records/{id}/bundle", Kind: Page, Heavy: true, Who: Readers, Handle: s.recordBundle,
			Summary: "The record and all that belongs to it, as a bundle.", Out: Bundle, Media: "application/json"},
		{Method: "GET", Pattern: "/records/{id}/openssl", Kind: Page, Heavy: true, Who: Readers, Handle: s.recordOpenSSL,
			Summary: "What OpenSSL needs to check the record.", Media: "application/zip"},
		{Method: "GET", Pattern: "/chains/{chain_id}", Kind: Page, Heavy: true, Who: Readers, Handle: shown(s, s.chainPage),
			Summary: "A chain of records.", Query: []Parameter{{"page", "which page of a long chain, from 1"}}},
		{Method: "GET", Pattern: "/submissions/{id}/messages", Kind: Page, Heavy: true, Who: Readers, Handle: shown(s, s.mentionsPage),
			Summary: "The messages of the conversation that have a text.", Query: []Parameter{{"find", "the text, in any letter case"}}},
		{Method: "GET", Pattern: "/submissions/{id}/messages/{number}", Kind: Page, Heavy: true, Who: Readers, Handle: shown(s, s.messagePage),
			Summary: "One message of the conversation, whole."},
		{Method: "GET", Pattern: "/records/{id}/member", Kind: Page, Heavy: true, Who: Readers, Handle: shown(s, s.memberPage),
			Summary: "One member of a record's payload, whole.", Query: []Parameter{{"name", "of the member, as the record's page names it"}}},
		{Method: "GET", Pattern: "/verify", Kind: Page, Shared: true, Who: Anyone, Handle: s.verifyPage,
			Summary: "The page on which everyone can verify a file."},
		{Method: "GET", Pattern: "/verify.html", Kind: Page, Shared: true, Who: Anyone, Handle: writePortalFile,
			Summary: "The same page as a file that needs no server."},
		{Method: "GET", Pattern: portalFiles + "{name}", Kind: Static, Shared: true, Who: Anyone, Handle: writePortalAsset, Summary: "A file of that page."},
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
		mux.Handle(route.Name(), s.guard(route))
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
	return &Route{Method: "ANY", Pattern: "(none)", Kind: kind, Who: Anyone, AnyQuery: true, Handle: func(w http.ResponseWriter, r *http.Request, _ *Caller) error {
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
		traced := s.config.Tracing.Request(r, route.Name())
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
			err = route.Handle(watching, r, c)
		}
		switch {
		case err == nil:
		case watching.Status == 0:
			s.refusals.note(route.Name(), c, s.refuse(watching, r, route, c, err))
		case r.Context().Err() == nil: // the answer has begun
			s.config.Log.LogAttrs(r.Context(), slog.LevelWarn, "answer broken off", slog.String("route", route.Name()), slog.Any("error", err))
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
	s.metrics.Answered(route.Name(), status, took)
	level := slog.LevelInfo
	if route.Probe && status < http.StatusInternalServerError {
		level = slog.LevelDebug // successful probes would fill the log
	}
	s.config.Log.LogAttrs(r.Context(), level, "request", slog.String("route", route.Name()), slog.Int("status", status),
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

// openTo reports whether a route serves a caller as a stranger if their token cannot be looked up or is invalid. So
// an old cookie does not stop a person from signing in, and an unreachable database does not stop a probe, the portal
// or a style sheet.
func (r *Route) openTo(status int) bool {
	return r.Who.Strangers == Everything && (status == http.StatusUnauthorized || status == http.StatusServiceUnavailable)
}

// limit refuses a caller that asks too often. Probes are not limited: monitoring must work on a busy server, and
// behind a proxy it shares its address with other callers.
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

	// For OpenAPI.
	Summary string
	In      any         // a value of the body's type, or a Shape; nil: no body
	Out     any         // the same for the answer
	Status  int         // of a successful answer; 0: 200
	Query   []Parameter // in the query; a page also has lang. Any other parameter is refused
	Header  []Parameter // request headers in addition to those of every route
	Media   string      // media type of the answer; "": application/json

	AnyQuery bool // another server makes the query, and may add parameters
}

// Name returns the route's name in metrics, logs and records of refusals.
func (r *Route) Name() string { return r.Method + " " + r.Pattern }

// A Parameter is an optional parameter.
type Parameter struct{ Name, About string }

// languageParameter sets the language of any page.
var languageParameter = Parameter{"lang", "the language of the page: en, ja or ru; a cookie keeps it"}

func (r *Route) query() []Parameter {
	if r.Kind != Page || changing(r.Method) {
		return r.Query
	}
	return append(slices.Clone(r.Query), languageParameter)
}

// checkQuery refuses unknown and repeated parameters of a query. Otherwise the caller of a mistyped one would take the
// answer to another question for theirs.
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
