package api

import (
	"errors"
	"net/http"
	"strings"
)

// Reasons why the server refuses a request. errors.Is finds the same error in a Problem that came over the wire.
var (
	ErrMalformed    = errors.New("the request is malformed")
	ErrSignIn       = errors.New("the caller is not signed in")
	ErrExpired      = errors.New("the token or session has expired")
	ErrRevoked      = errors.New("the token or session was revoked")
	ErrForbidden    = errors.New("the role does not allow it")
	ErrCrossOrigin  = errors.New("the request comes from another site")
	ErrPlainHTTP    = errors.New("the browser's request came over http and must come over https")
	ErrForm         = errors.New("the form was not made for this session")
	ErrOwnWork      = errors.New("people cannot decide on their own work")
	ErrNotFound     = errors.New("not found")
	ErrGone         = errors.New("it was deleted after its retention time; the log keeps its hashes")
	ErrMethod       = errors.New("the resource does not have this method")
	ErrConflict     = errors.New("it contradicts what the log holds")
	ErrTooLarge     = errors.New("the request is too large")
	ErrMediaType    = errors.New("the server does not read this media type")
	ErrInvalid      = errors.New("the content is refused")
	ErrKeyReused    = errors.New("the idempotency key was used for another request")
	ErrOwnerKey     = errors.New("the actor holds its key itself")
	ErrPrecondition = errors.New("the resource is not as the request expects")
	ErrTooMany      = errors.New("there were too many requests")
	ErrInternal     = errors.New("the server failed")
	ErrUnavailable  = errors.New("the server cannot do it now")
)

// A kind is a row of the table of problems.
type kind struct {
	err    error
	name   string
	status int
}

// kinds is the table of docs/api.md, section "Problems".
var kinds = []kind{
	{ErrMalformed, "malformed", http.StatusBadRequest},
	{ErrSignIn, "sign-in", http.StatusUnauthorized},
	{ErrExpired, "expired", http.StatusUnauthorized},
	{ErrRevoked, "revoked", http.StatusUnauthorized},
	{ErrForbidden, "forbidden", http.StatusForbidden},
	{ErrCrossOrigin, "cross-origin", http.StatusForbidden},
	{ErrPlainHTTP, "plain-http", http.StatusForbidden},
	{ErrForm, "form", http.StatusForbidden},
	{ErrOwnWork, "own-work", http.StatusForbidden},
	{ErrNotFound, "not-found", http.StatusNotFound},
	{ErrGone, "gone", http.StatusGone},
	{ErrMethod, "method", http.StatusMethodNotAllowed},
	{ErrConflict, "conflict", http.StatusConflict},
	{ErrOwnerKey, "owner-key", http.StatusConflict},
	{ErrPrecondition, "precondition", http.StatusPreconditionFailed},
	{ErrTooLarge, "too-large", http.StatusRequestEntityTooLarge},
	{ErrMediaType, "media-type", http.StatusUnsupportedMediaType},
	{ErrInvalid, "invalid", http.StatusUnprocessableEntity},
	{ErrKeyReused, "key-reused", http.StatusUnprocessableEntity},
	{ErrTooMany, "too-many", http.StatusTooManyRequests},
	{ErrInternal, "internal", http.StatusInternalServerError},
	{ErrUnavailable, "unavailable", http.StatusServiceUnavailable},
}

// TypePrefix begins the type of every problem.
const TypePrefix = "urn:jurat:problem:"

// ProblemMediaType is the media type of a Problem (RFC 9457, section 3).
const ProblemMediaType = "application/problem+json"

// A Problem says why a request was not done: the problem details of RFC 9457. It is an error. errors.Is matches it
// with the error of this package that its Type names.
type Problem struct {
	Type   string `json:"type"`           // TypePrefix and a name
	Title  string `json:"title"`          // the same for each problem of a type
	Status int    `json:"status"`         // of HTTP
	Detail string `json:"detail"`         // what is wrong this time
	Field  string `json:"field,omitzero"` // the refused member of the body
	Hint   string `json:"hint,omitzero"`  // what the caller can do
}

// NewProblem returns the problem for an error: that of the first error of this package in its chain. If there is
// none, it returns ErrInternal without any detail of the failure.
func NewProblem(err error) *Problem {
	if p := (*Problem)(nil); errors.As(err, &p) {
		return p
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) && k.err != ErrInternal {
			return &Problem{Type: TypePrefix + k.name, Title: k.err.Error(), Status: k.status, Detail: err.Error()}
		}
	}
	return &Problem{Type: TypePrefix + "internal", Title: ErrInternal.Error(), Status: http.StatusInternalServerError,
		Detail: "the server's log says what failed"}
}

// Name is the last part of the type.
func (p *Problem) Name() string { return strings.TrimPrefix(p.Type, TypePrefix) }

// Error returns the detail and the field.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Detail
}

// Is reports whether the problem is of the kind of target, an error of this package.
func (p *Problem) Is(target error) bool {
	for _, k := range kinds {
		if k.err == target {
			return p.Type == TypePrefix+k.name
		}
	}
	return false
}

// Problems lists one problem of each type.
func Problems() []*Problem {
	var list []*Problem
	for _, k := range kinds {
		list = append(list, &Problem{Type: TypePrefix + k.name, Title: k.err.Error(), Status: k.status})
	}
	return list
}
