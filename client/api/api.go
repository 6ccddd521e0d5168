// Package api defines the HTTP interface between an installation of jurat and its clients: requests, answers, and
// problems. Server and client use the same types and errors, so they cannot disagree.
//
// docs/api.md describes the interface to people, /openapi.json of every server to programs. Sealed records and
// bundles are sent as files (docs/format.md).
package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"jurat/evidence"
	"jurat/jury"
)

// IdempotencyKey is the header by which the server recognises a repeated POST. The same key and the same body get the
// same answer and create nothing twice, even after a crash of either side.
const IdempotencyKey = "Idempotency-Key"

// A Review is a person's decision on a record. The server adds the reviewer, the record, and a missing time.
type Review struct {
	ApprovalStatus     string          `json:"approval_status"`               // approved, approved_with_modifications or rejected
	ModifiedResponse   json.RawMessage `json:"modified_response,omitzero"`    // string, object or array: the new text, exactly for approved_with_modifications
	Changes            json.RawMessage `json:"changes,omitzero"`              // string, object or array: what was changed, and the reason for the decision
	Context            json.RawMessage `json:"context,omitzero"`              // string, object or array
	Timestamp          string          `json:"timestamp,omitzero"`            // RFC 3339, UTC with Z
	ActionType         string          `json:"action_type,omitzero"`          // human_review
	ReviewerID         string          `json:"reviewer_id,omitzero"`          // the token's name
	OriginalResponseID string          `json:"original_response_id,omitzero"` // the record's id
}

// A Property is a statement about a value that is sealed apart. The server proves it without showing the value.
type Property struct {
	Form     string            `json:"form"`              // range, in, not_in or age_at_least
	Pointer  string            `json:"pointer"`           // a provable member of the record
	Lo       json.RawMessage   `json:"lo,omitzero"`       // range
	Hi       json.RawMessage   `json:"hi,omitzero"`       // range
	Set      []json.RawMessage `json:"set,omitzero"`      // in and not_in
	Years    int               `json:"years,omitzero"`    // age_at_least
	At       string            `json:"at,omitzero"`       // age_at_least: a date, as 2026-11-23
	Audience string            `json:"audience,omitzero"` // for whom the proof is made; part of what is proved
}

// A Delivery names the review that approved the delivered answer.
type Delivery struct {
	Review string `json:"review"` // record id
}

// A Listing is a page of a list of records, in the order of the log.
type Listing struct {
	Records []Entry `json:"records"`
	Next    string  `json:"next,omitzero"` // cursor of the next page; absent: this is the last one for now
}

// An Entry summarises a record.
type Entry struct {
	Index      int64  `json:"index"` // place in the log, from 0
	RecordID   string `json:"record_id"`
	Digest     string `json:"digest"` // of the payload
	ActionType string `json:"action_type"`
	Role       string `json:"role"`
	Actor      string `json:"actor"`
	Timestamp  string `json:"timestamp"` // as the actor says
	ChainID    string `json:"chain_id,omitzero"`
	RequestID  string `json:"request_id,omitzero"`
}

// A GrantState says whether a token is valid.
type GrantState string

const (
	GrantGood    GrantState = "good"
	GrantExpired GrantState = "expired"
	GrantRevoked GrantState = "revoked"
)

// A Grant says what the bearer of a token may do. The token itself is nowhere.
type Grant struct {
	Token    evidence.Digest `json:"token"` // SHA-256 of the token
	Name     string          `json:"name"`
	Roles    []string        `json:"roles"` // agent, submitter, reviewer, auditor or operator; sorted
	Since    string          `json:"since"`
	NotAfter string          `json:"not_after"`
	State    GrantState      `json:"state"`
	Session  bool            `json:"session"` // a browser's session, opened with a token or a link
	By       string          `json:"by"`
	Reason   string          `json:"reason"`
}

// AccessList says who may do what.
type AccessList struct {
	Grants []Grant  `json:"grants"`
	Public []string `json:"public_chains"`
	Agents []string `json:"public_agents"`
}

// A Revocation ends a token, and every session that was opened with it.
type Revocation struct {
	Reason string `json:"reason"` // at most 1,000 bytes; it is recorded
}

// A NewSubmission puts an agent before the jury. It has one kind of evidence: a conversation, records from anywhere,
// or records of the installation's log.
type NewSubmission struct {
	AgentCard    json.RawMessage `json:"agentCard,omitzero"`    // A2A v1.0 or v0.3; may be left out
	Conversation json.RawMessage `json:"conversation,omitzero"` // in one of the forms that docs/case.md describes
	Format       string          `json:"format,omitzero"`       // the form of the conversation, if its structure does not show it
	Records      json.RawMessage `json:"records,omitzero"`      // a record file or a bundle; the installation verifies it with its own trust file
	ChainID      string          `json:"chainId,omitzero"`      // a chain of records in the log; what is sealed apart stays so
	Recorded     string          `json:"recorded,omitzero"`     // a chain that recorders sealed in the log, with the texts sealed apart that the caller may see
}

// A State is the state of a submission.
type State string

const (
	Queued    State = "queued"     // it waits for its turn
	UnderWay  State = "under_way"  // the jury works on it
	Over      State = "over"       // there is a verdict
	BrokenOff State = "broken_off" // it stopped without a verdict, and no process works on it
	Cancelled State = "cancelled"  // a person stopped it
)

// A Cancellation asks for a trial to be stopped.
type Cancellation struct {
	Reason string `json:"reason"` // at most 1,000 bytes; it is recorded
}

// A Taking says that a reviewer means to decide on a trial that waits for a person.
type Taking struct {
	Reviewer string `json:"reviewer,omitzero"` // to whom an operator assigns it; absent: the caller
	Reason   string `json:"reason,omitzero"`   // at most 1,000 bytes; it is recorded
}

// A GivingBack says that the reviewer who has a trial does not mean to decide on it any more.
type GivingBack struct {
	Reason string `json:"reason,omitzero"` // at most 1,000 bytes; it is recorded
}

// Taken says which reviewer means to decide on a trial. It hinders no other, and ends with the next decision.
type Taken struct {
	Reviewer string `json:"reviewer"`
	Since    string `json:"since"`
	By       string `json:"by"` // who said so: the reviewer, or an operator
	Reason   string `json:"reason,omitzero"`
}

// A Submission is an agent before the jury.
type Submission struct {
	ID        string `json:"id"`
	State     State  `json:"state"`
	Reason    string `json:"reason,omitzero"` // why it was broken off or cancelled
	Next      string `json:"next,omitzero"`   // when the server tries it again by itself, if it was broken off
	Ahead     int    `json:"ahead,omitzero"`  // how many wait before it
	Submitter string `json:"submitter"`
	Agent     string `json:"agent"` // as its card names it; without a card, the actor of the records
	Case      string `json:"case"`  // digest of the evidence
	Submitted string `json:"submitted"`
	Last      string `json:"last"` // when the last act was
	Acts      int    `json:"acts"`
	Offline   bool   `json:"offline"`  // the jurors are rules, not models
	Degraded  bool   `json:"degraded"` // an answer is missing, or was replaced by a stand-in

	CancelledBy string `json:"cancelledBy,omitzero"` // who cancelled it; if it is still under way, it stops soon

	Outcome   *jury.TrialOutcome `json:"outcome"`           // what counts: the verdict and people's decisions on it; null: none yet
	Verdict   *Verdict           `json:"verdict"`           // the jury's; null: none yet
	Reviews   int                `json:"reviews"`           // people's reviews of records of the trial
	Reviewed  string             `json:"reviewed,omitzero"` // approval status of the last decision on the verdict
	Delivered bool               `json:"delivered"`
	Taken     *Taken             `json:"taken,omitzero"` // who means to decide on it; absent: no reviewer has taken it, or it does not wait for a person

	// Only in the answer for a single submission: the jury's result so far.
	Votes  *jury.Votes  `json:"votes,omitzero"`
	Result *jury.Result `json:"result,omitzero"`
}

// A Verdict summarises the jury's final judgment, without people's decisions on it.
type Verdict struct {
	Record       string        `json:"record"` // id of its record
	Position     jury.Position `json:"position"`
	Score        int           `json:"score"`
	Inconclusive bool          `json:"inconclusive"`
}

// Submissions are one page of a list, the newest first.
type Submissions struct {
	Submissions []Submission `json:"submissions"`
	Next        string       `json:"next,omitzero"` // cursor of the next page; "": this is the last one
}

// An Event is something that happened in a trial.
type Event struct {
	Type         string          `json:"type"`
	Seq          int64           `json:"seq"` // from 1, without gaps
	At           string          `json:"at"`  // RFC 3339
	SubmissionID string          `json:"submissionId"`
	JSON         json.RawMessage `json:"-"` // the whole event: docs/api.md says what each type has
}

// LastEvent is the type of the event that closes a trial. After it, only events of the type PersonDecided follow,
// whenever a person decides. A watcher gets those that exist at the end of the trial.
const LastEvent = "trial_closed"

// PersonDecided is the type of the event of a person's decision on a verdict.
const PersonDecided = "person_decided"

// A TrialList is one page of what a search for trials finds.
type TrialList struct {
	Trials []TrialLine `json:"trials"`
	Counts TrialCounts `json:"counts"`        // of all pages, of what the caller may read
	Next   string      `json:"next,omitzero"` // cursor of the next page; "": this is the last one
	Index  IndexState  `json:"index,omitzero"`
}

// A TrialLine is a trial in a list.
type TrialLine struct {
	ID           string        `json:"id"`
	State        State         `json:"state,omitzero"` // "": not known, where no server runs
	Agent        string        `json:"agent"`
	Submitter    string        `json:"submitter"`
	Submitted    string        `json:"submitted"`
	Last         string        `json:"last"`             // when the last act was
	Outcome      jury.Position `json:"outcome,omitzero"` // what counts, after people's decisions; absent: none yet
	By           jury.Decider  `json:"by,omitzero"`
	Reviewer     string        `json:"reviewer,omitzero"` // the last person who decided on it; absent: none did
	Verdict      jury.Position `json:"verdict,omitzero"`  // the jury's; absent: none yet
	Score        *int          `json:"score"`             // of 100; null: none yet
	NeedsPerson  bool          `json:"needsPerson"`
	Taken        *Taken        `json:"taken,omitzero"` // who means to decide on it; absent: no reviewer has taken it
	Degraded     bool          `json:"degraded"`
	Inconclusive bool          `json:"inconclusive"`
	Offline      bool          `json:"offline"` // the jurors are rules, not models
	Case         string        `json:"case"`    // digest of the evidence
}

// TrialCounts say how many trials a search finds.
type TrialCounts struct {
	Total       int            `json:"total"`
	AtMost      bool           `json:"atMost,omitzero"` // there may be fewer, as the text was not compared in each of so many trials
	Verdicts    map[string]int `json:"verdicts"`        // by the jury's verdict, and none
	Outcomes    map[string]int `json:"outcomes"`        // by what counts, and none
	NeedsPerson int            `json:"needsPerson"`
}

// An IndexState says what a search could not see.
type IndexState struct {
	Behind int64 `json:"behind,omitzero"` // records of the log that the index does not have yet
}

// A HitList is one page of what a search for records finds. It can be short or empty: as long as it has a cursor, there may be more.
type HitList struct {
	Hits  []Hit      `json:"hits"`
	Next  string     `json:"next,omitzero"` // cursor of the next page; "": this is the last one
	Index IndexState `json:"index,omitzero"`
}

// A Hit is a record that a search found: who said it, and when.
type Hit struct {
	Record string `json:"record"`
	Action string `json:"action"`
	Role   string `json:"role"`
	Actor  string `json:"actor"`
	Agent  string `json:"agent,omitzero"` // whose act a recorder saw; "": it is no act that a recorder saw
	Chain  string `json:"chain,omitzero"`

	Outcome *jury.TrialOutcome `json:"outcome,omitzero"` // of the trial that the record belongs to; absent: there is none, or it has none yet

	Claimed   string `json:"claimed"`            // the time that the actor claims
	Status    string `json:"status"`             // of who and when: proved, not proved, or refuted
	Proved    string `json:"proved,omitzero"`    // the record existed then, by an authority's word; "": not proved
	Authority string `json:"authority,omitzero"` // the authority
	Clock     string `json:"clock,omitzero"`     // whose clock the authority has
	Why       string `json:"why,omitzero"`       // why it is not proved that the actor said it then
	Place     string `json:"place,omitzero"`     // JSON pointer to the text in the payload; "": the search has no text
	Said      bool   `json:"said"`               // the actor said the text itself, and was not only given it
	Line      string `json:"line,omitzero"`      // the text, with what surrounds it
}

// A TrialSheet is a trial on one page: what came out, who scored what, and why.
type TrialSheet struct {
	TrialLine
	Method    jury.Method    `json:"method,omitzero"`    // the applied one; "": no judgment yet
	Rationale string         `json:"rationale,omitzero"` // of the judgment
	Decision  *jury.Decision `json:"decision"`           // the last person's; null: none
	Axes      []string       `json:"axes"`               // of the rubric, in its order
	Seats     []TrialSeat    `json:"seats"`
	Findings  []TrialFinding `json:"findings"`
	Cost      int64          `json:"costMicroUSD"` // of the recorded calls
	Calls     int            `json:"calls"`        // of models; 0: rules sat
	Took      int64          `json:"tookMillis"`   // from the first act to the last
	Broken    string         `json:"broken,omitzero"`
}

// A TrialSeat is a juror with its latest evaluation.
type TrialSeat struct {
	JurorID   string         `json:"jurorId"`
	Role      string         `json:"role"`
	Model     string         `json:"model"`
	Position  jury.Position  `json:"position,omitzero"` // absent: it has not answered
	Score     int            `json:"score"`
	Scores    map[string]int `json:"scores"` // by axis
	Reason    string         `json:"reason"`
	Fallback  bool           `json:"fallback"`  // a stand-in for a blocked answer
	Abstained bool           `json:"abstained"` // two answers of it contradicted each other
}

// A TrialFinding is a finding of one or several jurors.
type TrialFinding struct {
	Message  int           `json:"message"`
	Quote    string        `json:"quote"`
	Rule     string        `json:"rule"`
	Axis     string        `json:"axis"`
	Severity jury.Severity `json:"severity"`
	Jurors   []string      `json:"jurors"`
	Stands   bool          `json:"stands"` // the evidence has the quotation in this message
}

// A TrialComparison is two trials side by side.
type TrialComparison struct {
	A        TrialSheet     `json:"a"`
	B        TrialSheet     `json:"b"`
	SameCase bool           `json:"sameCase"` // both judged the same evidence
	Both     []TrialFinding `json:"both"`     // findings of both, as A has them: of the same case by message, rule and quotation, else by rule and axis
	OnlyA    []TrialFinding `json:"onlyA"`
	OnlyB    []TrialFinding `json:"onlyB"`
}

// An AgentHistory is how trials of an agent went, the newest first.
type AgentHistory struct {
	Trials    TrialList        `json:"trials"`
	Measured  int              `json:"measured"`     // how many of the newest finished trials the numbers below are of
	Cost      int64            `json:"costMicroUSD"` // of the jurors' recorded calls, in millionths of a US dollar
	Agreement *float64         `json:"agreement"`    // mean level of agreement of the jurors in phase 1, 0 to 1; null: not defined
	Kappa     *float64         `json:"kappa"`        // Fleiss' kappa in phase 1; null: not defined
	Changes   int              `json:"changes"`      // of position, in discussions
	Turned    int              `json:"changedByTalk"`
	Jurors    []HistoryOfJuror `json:"jurors"` // the judge's seat included
}

// A HistoryOfJuror is what a seat did in the measured trials.
type HistoryOfJuror struct {
	JurorID  string `json:"jurorId"`
	Asked    int    `json:"asked"`
	Answered int    `json:"answered"`
	Changes  int    `json:"changes"` // of position
	Cost     int64  `json:"costMicroUSD"`
}

// Recordings is one page of the chains in which recorders saw something, the one with the newest record first. It can be short or empty: as
// long as it has a cursor, there may be more.
type Recordings struct {
	Recordings []Recording `json:"recordings"`
	Next       string      `json:"next,omitzero"` // cursor of the next page; "": this is the last one
	Index      IndexState  `json:"index,omitzero"`
}

// A Recording is a chain in which recorders saw something. Each list of names has at most 20.
type Recording struct {
	Chain     string             `json:"chain"`
	Agents    []string           `json:"agents"`    // whose acts were seen
	Recorders []string           `json:"recorders"` // by whom
	Models    []string           `json:"models"`    // that answered, by the providers' word; otherwise that were asked
	Protocols []string           `json:"protocols"`
	Vantages  []evidence.Vantage `json:"vantages"` // from where it was seen

	First string `json:"first"` // when the first act began, by the recorder's clock
	Last  string `json:"last"`  // when the last act ended

	Acts   int64        `json:"acts"`            // that were seen
	Calls  int64        `json:"calls"`           // of models, among them
	Broken int64        `json:"broken"`          // acts that did not come to their end
	Lost   int64        `json:"lost"`            // of these, those during which the recorder died
	Missed int64        `json:"missed"`          // calls of these agents that passed without a record in this time, by the recorders' word
	Tokens *TokenCounts `json:"tokens,omitzero"` // absent: no provider reported any
	Trials []TrialLine  `json:"trials"`          // that judged records of the chain, the oldest first, as far as the caller may see them
}

// TokenCounts are sums of what providers reported.
type TokenCounts struct {
	Input  int64 `json:"input"`  // tokens read
	Output int64 `json:"output"` // tokens written
	Calls  int64 `json:"calls"`  // that reported counts
}

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
