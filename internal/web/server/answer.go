package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/gzhttp"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/court/schedule"
	"jurat/internal/court/trial"
	"jurat/internal/log/access"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger"
	"jurat/internal/log/lock"
	"jurat/internal/log/postgres"
	"jurat/internal/log/token"
	"jurat/internal/web/docket"
	"jurat/internal/web/find"
	"jurat/internal/web/openid"
	"jurat/internal/web/openssl"
)

// marshaler is a file of the format: a record, a bundle, a trust file.
type marshaler interface{ Marshal() ([]byte, error) }

// A file is an answer in a form of its own.
type file struct {
	media string
	cache string // how long it may be stored; "": it must be revalidated each time; no-store: it has no tag
	name  string // under which browsers save it; "": they show it
	doc   []byte
}

const (
	noStore = "no-store"
	forEver = "max-age=31536000, immutable" // what never changes under its name
)

func (f *file) write(w http.ResponseWriter, r *http.Request) error {
	if f.name != "" {
		attach(w, f.name)
	}
	if f.cache != "" {
		w.Header().Set("Cache-Control", f.cache)
	}
	if f.cache == noStore {
		return writeDoc(w, r, http.StatusOK, f.media, f.doc)
	}
	return writeTagged(w, r, http.StatusOK, f.media, f.doc)
}

// answered makes a Handler of a function that returns what is answered: a *file, a file of the format, or a value of package api.
func answered[T any](get func(*http.Request, *Caller) (T, error)) Handler {
	return func(w http.ResponseWriter, r *http.Request, c *Caller) error {
		value, err := get(r, c)
		if err != nil {
			return err
		}
		switch value := any(value).(type) {
		case *file:
			return value.write(w, r)
		case marshaler:
			return writeFile(w, r, http.StatusOK, value)
		}
		return writeJSON(w, r, http.StatusOK, value)
	}
}

func writeFile(w http.ResponseWriter, r *http.Request, status int, file marshaler) error {
	doc, err := file.Marshal()
	if err != nil {
		return err
	}
	return writeTagged(w, r, status, "application/json", doc)
}

// writeTagged answers with bytes and their ETag, or with 304 if the caller has them already.
func writeTagged(w http.ResponseWriter, r *http.Request, status int, media string, doc []byte) error {
	if tagged(w, r, strings.TrimPrefix(evidence.DigestOf(doc).String(), "sha256:")) {
		return nil
	}
	return writeDoc(w, r, status, media, doc)
}

// tagged sets the ETag of an answer. If the caller has the content already, it answers 304 and reports true.
func tagged(w http.ResponseWriter, r *http.Request, digest string) bool {
	tag := `"` + digest + `"`
	h := w.Header()
	h.Set("ETag", tag)
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "private, no-cache") // may be stored, but must be revalidated each time
	}
	if changes(r) || !matches(r.Header.Get("If-None-Match"), tag) {
		return false
	}
	w.WriteHeader(http.StatusNotModified)
	return true
}

// matches compares tags as RFC 9110, section 13.1.2, defines.
func matches(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == tag || one == "*" {
			return true
		}
	}
	return false
}

func writeJSON(w http.ResponseWriter, r *http.Request, status int, value any) error {
	doc, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding %T: %w", value, err)
	}
	if w.Header().Get("Cache-Control") == "" {
		w.Header().Set("Cache-Control", "no-store")
	}
	return writeDoc(w, r, status, "application/json", append(doc, '\n'))
}

func writeDoc(w http.ResponseWriter, r *http.Request, status int, media string, doc []byte) error {
	w.Header().Set("Content-Type", media)
	w.Header().Set("Content-Length", fmt.Sprint(len(doc)))
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return nil
	}
	memoryAccountOf(r.Context()).Keep(2 * int64(len(doc))) // until the reader has it, however long that takes
	_, _ = w.Write(doc)                                    // an error means that the caller has disconnected
	return nil
}

// readJSON decodes a body strictly into a value of package api.
func readJSON[T any](r *http.Request) (*T, error) {
	doc, err := readBody(r)
	if err != nil {
		return nil, err
	}
	value := new(T)
	if err := json.Unmarshal(doc, value, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrInvalid, evidence.Steady(err))
	}
	return value, nil
}

func changes(r *http.Request) bool { return changing(r.Method) }

func changing(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

// compressed compresses what browsers show, for clients that take gzip: pages, their styles and scripts. Streams, records
// and case files go as they are.
//
// A page holds its session's form key beside text of others, so that the length of a compressed page could tell of the key
// to whoever chooses the text and makes the browser load the page again and again (BREACH). Other sites cannot do that:
// the cookie of the session is SameSite=Strict. The jitter is there in case that fails.
func compressed(h http.Handler) (http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(gzhttp.EnableZstd(false), gzhttp.RandomJitter(64, 0, false),
		gzhttp.ContentTypes([]string{"text/html", "text/css", "text/javascript", "application/javascript", "image/svg+xml"}))
	if err != nil {
		return nil, fmt.Errorf("compressing: %w", err)
	}
	return wrap(h), nil
}

type watched struct {
	http.ResponseWriter
	Status int // 0: the answer has not begun
}

// Unwrap is for http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *watched) WriteHeader(status int) {
	if w.Status == 0 && status >= 200 || status == http.StatusSwitchingProtocols {
		w.Status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *watched) Write(p []byte) (int, error) {
	w.Status = cmp.Or(w.Status, http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// readBody reads a request's body, which must be JSON. It refuses a body of another media type, an empty one, one that
// nests too deep as soon as it does, and one that is too long as soon as its length shows that.
func readBody(r *http.Request) ([]byte, error) {
	// Tools such as curl send the media type of a form by default. A body that is not JSON is refused later anyway.
	if got, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); r.Header.Get("Content-Type") != "" &&
		(err != nil || got != "application/json" && got != "application/x-www-form-urlencoded") {
		return nil, fmt.Errorf("%w: Content-Type: want application/json", api.ErrMediaType)
	}
	var doc bytes.Buffer
	held := memoryAccountOf(r.Context())
	if _, err := io.Copy(&doc, shallowReader(&counted{r.Body, r.Context(), held})); err != nil {
		return nil, malformed(err)
	}
	// Decoding needs much more memory than the body.
	if err := evidence.CheckValues(doc.Bytes()); err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrTooLarge, err)
	}
	if err := held.Take(r.Context(), max((bodyFactor-2)*int64(doc.Len()), valueSize*int64(evidence.Values(doc.Bytes())))); err != nil {
		return nil, err
	}
	if doc.Len() == 0 {
		return nil, fmt.Errorf("%w: there is no body", api.ErrMalformed)
	}
	return doc.Bytes(), nil
}

// shallowReader passes on JSON that nests no deeper than payloads may, and fails where it nests deeper.
func shallowReader(r io.Reader) io.Reader { return &shallow{r: r} }

type shallow struct {
	r       io.Reader
	depth   int
	offset  int64
	text    bool // inside a string
	escaped bool // after a backslash in a string
}

func (s *shallow) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	for _, b := range p[:n] {
		s.offset++
		s.step(b)
		if s.depth > evidence.MaxDepth {
			return 0, fmt.Errorf("%w: byte %d: arrays and objects nest deeper than %d", api.ErrInvalid, s.offset, evidence.MaxDepth)
		}
	}
	return n, err
}

func (s *shallow) step(b byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case s.text:
		s.text, s.escaped = b != '"', b == '\\'
	case b == '"':
		s.text = true
	case b == '[' || b == '{':
		s.depth++
	case b == ']' || b == '}':
		s.depth = max(s.depth-1, 0) // a surplus closing bracket is invalid JSON, and must not raise the limit
	}
}

// lastWords is how long the rest of a body may take after the server has begun to stop.
const lastWords = 5 * time.Second

// arriving is a request body that knows whether it has arrived completely.
type arriving struct {
	io.ReadCloser
	length int64 // as the request states it; -1: unknown
	whole  atomic.Bool
}

func (a *arriving) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err == io.EOF {
		a.whole.Store(true)
	}
	return n, err
}

// Hurry sets a deadline for the rest of the body, so that a silent caller does not delay the server's stop. It sets
// none if the body is complete, because net/http would take it for the end of the request.
func (a *arriving) Hurry(connection *http.ResponseController) {
	if a.length != 0 && !a.whole.Load() {
		_ = connection.SetReadDeadline(time.Now().Add(lastWords)) // fails only without a connection, as with a test's recorder
	}
}

// A meaning is what an error of another package means to a caller. In a list, the first match counts.
type meaning struct{ is, means error }

// meant returns the meaning of an error; nil: the list has none.
func meant(list []meaning, err error) *meaning {
	if i := slices.IndexFunc(list, func(m meaning) bool { return errors.Is(err, m.is) }); i >= 0 {
		return &list[i]
	}
	return nil
}

// told are the meanings of errors that a caller is told whole: no file names are in them.
var told = []meaning{
	{schedule.ErrFull, api.ErrUnavailable},
	{schedule.ErrClosing, api.ErrUnavailable},
	{trial.ErrUnknown, api.ErrNotFound},
	{schedule.ErrNotBrokenOff, api.ErrConflict},
	{schedule.ErrOver, api.ErrConflict},
	{schedule.ErrAhead, api.ErrMalformed},
	{schedule.ErrHandshake, api.ErrMalformed},
	{schedule.ErrNotWaiting, api.ErrConflict},
	{schedule.ErrTaken, api.ErrConflict},
	{schedule.ErrNotTaken, api.ErrConflict},
	{docket.ErrUnknownAgent, api.ErrNotFound},
	{keys.ErrNotYet, api.ErrConflict}, // with the times, and what to do
	{openssl.ErrNoStamp, api.ErrConflict},
	{openid.ErrNobody, api.ErrForbidden},
	{openid.ErrStale, api.ErrSignIn},
	{openid.ErrRefused, api.ErrSignIn},
}

// known are the meanings of errors of which a caller is told no more: what is around them may hold file names.
var known = []meaning{
	{ledger.ErrNotFound, api.ErrNotFound},
	{ledger.ErrExpired, api.ErrGone},
	{ledger.ErrDuplicate, api.ErrConflict},
	{ledger.ErrRefused, api.ErrInvalid},
	{ledger.ErrReadOnly, api.ErrUnavailable},
	{ledger.ErrBehind, api.ErrUnavailable},
	{ledger.ErrForked, api.ErrUnavailable},
	{ledger.ErrMoved, api.ErrUnavailable},
	{ledger.ErrDiskFull, api.ErrUnavailable},
	{ledger.ErrBusy, api.ErrUnavailable},
	{lock.ErrLost, api.ErrUnavailable},   // the database that keeps the locks was away for a moment
	{syscall.ENOSPC, api.ErrUnavailable}, // of the small files, such as keys
	{syscall.EDQUOT, api.ErrUnavailable},
	{syscall.EROFS, api.ErrUnavailable},
	{ledger.ErrClosed, api.ErrUnavailable},
	{keys.ErrOwner, api.ErrOwnerKey},
	{keys.ErrNoKey, api.ErrConflict},
	{keys.ErrEnded, api.ErrConflict},
	{keys.ErrForeign, api.ErrConflict},
	{keys.ErrIncomplete, api.ErrConflict},
	{keys.ErrHeld, api.ErrConflict},
	{access.ErrOrder, api.ErrInvalid},
	{token.ErrUnavailable, api.ErrUnavailable},
	{token.ErrPIN, api.ErrUnavailable},
	{openid.ErrAway, api.ErrUnavailable},
	{postgres.ErrUnreachable, api.ErrUnavailable},
	{postgres.ErrNoDatabase, api.ErrUnavailable},
	{postgres.ErrNotLetIn, api.ErrUnavailable},
	{os.ErrDeadlineExceeded, api.ErrUnavailable},
	{context.Canceled, api.ErrUnavailable},
	{context.DeadlineExceeded, api.ErrUnavailable},
}

// A toldError begins with a text that a caller is told, whatever is told of its cause.
type toldError struct {
	text  string
	cause error
}

func (e *toldError) Unwrap() error { return e.cause }
func (e *toldError) Error() string { return e.text + ": " + e.cause.Error() }

func problemOf(err error) *api.Problem {
	if told, is := errors.AsType[*toldError](err); is {
		p := *problemOf(told.cause)
		p.Detail = told.text + ": " + p.Error()
		return &p
	}
	field, hint := "", ""
	if link, is := errors.AsType[*ledger.LinkError](err); is {
		err = fmt.Errorf("%w: %w", api.ErrConflict, link)
		field, hint = link.Field(), "docs/format.md has the rules by which records follow each other; nothing was recorded"
	} else if errors.Is(err, ledger.ErrNotAdmitted) {
		err = fmt.Errorf("%w: %w", api.ErrForbidden, ledger.ErrNotAdmitted)
		field, hint = "chain_id", "its owner admits others with next_agent, or the operator with 'jurat access grant --chain'; or use another; nothing was recorded"
	} else if tooLarge, is := errors.AsType[*http.MaxBytesError](err); is {
		err = fmt.Errorf("%w: a body has at most %d bytes here", api.ErrTooLarge, tooLarge.Limit)
	} else if refused, is := errors.AsType[*evidence.FieldError](err); is {
		err = fmt.Errorf("%w: %w", api.ErrInvalid, err)
		field, hint = refused.Field, "docs/format.md lists the fields of each action type; nothing was recorded"
	} else if syntax, is := errors.AsType[*evidence.SyntaxError](err); is {
		err, field = fmt.Errorf("%w: %w", api.ErrInvalid, err), syntax.Pointer
	} else if wrong, is := errors.AsType[*find.FieldError](err); is {
		err = fmt.Errorf("%w: query parameter %w", api.ErrMalformed, wrong)
	}
	p := api.NewProblem(evidence.Steady(err))
	if p.Status == http.StatusInternalServerError {
		if m := meant(told, err); m != nil {
			return api.NewProblem(fmt.Errorf("%w: %w", m.means, err))
		}
		if m := meant(known, err); m != nil {
			return api.NewProblem(fmt.Errorf("%w: %w", m.means, m.is))
		}
	}
	if field+hint != "" {
		p.Field, p.Hint = field, hint
	}
	return p
}

func malformed(err error) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge || errors.Is(err, api.ErrInvalid) || errors.Is(err, api.ErrUnavailable) || errors.Is(err, api.ErrTooLarge) {
		return err // this error is more specific
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w: the body did not come in time", api.ErrUnavailable)
	}
	return fmt.Errorf("%w: %w", api.ErrMalformed, err)
}

// comeAgain says after how many seconds a refused request may succeed without being changed.
func comeAgain(h http.Header, status int) {
	switch status {
	case http.StatusTooManyRequests:
		h.Set("Retry-After", "1")
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", "5")
	}
}

// refuse answers a failed request, in the form of the route's kind.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, route *Route, c *Caller, err error) *api.Problem {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.config.Log.LogAttrs(r.Context(), slog.LevelError, "request failed", slog.String("route", route.Name), slog.Any("error", err))
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="jurat"`)
	}
	comeAgain(w.Header(), p.Status)
	for _, name := range []string{"ETag", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers"} { // what a stranger may not read is not shared
		w.Header().Del(name)
	}
	w.Header().Set("Cache-Control", "no-store")
	if route.Kind == Page {
		s.refusePage(w, r, c, p)
		return p
	}
	w.Header().Set("Content-Type", api.ProblemMediaType)
	w.WriteHeader(p.Status)
	if r.Method == http.MethodHead {
		return p
	}
	if doc, err := json.Marshal(p); err != nil {
		s.config.Log.Error("writing a problem", "error", err)
	} else {
		_, _ = w.Write(append(doc, '\n')) // an error means that the caller has disconnected
	}
	return p
}
