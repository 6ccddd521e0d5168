package evidence

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence/jsonform"
)

// An Observed is what a recorder states about an act of an agent that it saw: who acted, from where the recorder saw it, and what went
// each way. Its fields are in canonical order.
type Observed struct {
	Agent              string         `json:"agent"`                          // agent_id of who acted
	Attempt            int64          `json:"attempt,omitzero"`               // from 1, as the agent's library counts; 0: it says nothing
	Began              string         `json:"began"`                          // when the first byte of the request came, by the recorder's clock
	Calls              []ObservedUse  `json:"calls,omitempty"`                // of tools, for which the answer asks
	ContextByReference []string       `json:"context_by_reference,omitempty"` // what the provider kept and the request only names
	Credential         string         `json:"credential,omitzero"`            // keyed fingerprint of the credential that was used
	Ended              Ended          `json:"ended"`
	EndedMS            *int64         `json:"ended_ms,omitzero"` // milliseconds after Began; nil: unknown
	Fidelity           Fidelity       `json:"fidelity"`
	Finish             string         `json:"finish,omitzero"`        // why the model stopped, in the provider's word
	FirstByteMS        *int64         `json:"first_byte_ms,omitzero"` // of the answer, after Began; nil: none came
	Judged             Judged         `json:"judged,omitzero"`        // whom a review of this act judges; "": the recorder, as those of earlier programs do
	Method             string         `json:"method,omitzero"`        // of HTTP, or of JSON-RPC
	Missing            []string       `json:"missing,omitempty"`      // what the recorder knows that it did not see, in words
	Path               string         `json:"path,omitzero"`          // of the URL, without query and credentials; a part that is no name of one word is "*"
	Protocol           string         `json:"protocol"`               // such as openai.chat, anthropic.messages, mcp/2026-07-28, a2a/1.0, otlp
	ProviderRequestID  string         `json:"provider_request_id,omitzero"`
	Request            *ObservedBody  `json:"request,omitzero"`  // nil: no bytes were seen
	Response           *ObservedBody  `json:"response,omitzero"` // nil: no bytes were seen
	RetryOf            string         `json:"retry_of,omitzero"` // request_id of the attempt before
	Side               Side           `json:"side,omitzero"`     // of a message between agents: which of the two the agent is
	Status             int64          `json:"status,omitzero"`   // of HTTP; 0: none came
	Upstream           *Upstream      `json:"upstream,omitzero"`
	Usage              jsontext.Value `json:"usage,omitzero"` // an object: the numbers of what the provider reported; nil: it did not
	Vantage            Vantage        `json:"vantage"`
}

// An ObservedUse is a call of a tool for which an answer asks.
type ObservedUse struct {
	ID   string `json:"id,omitzero"`   // "": it has none, or one that is no name of one word
	Name string `json:"name,omitzero"` // likewise
}

// An ObservedBody states what one direction carried. SHA256 and Bytes are of the bytes as they passed, all of them. The bytes that are
// sealed have another digest if they were decoded from an Encoding, are Truncated or Masked: DecodedSHA256.
type ObservedBody struct {
	Bytes         int64          `json:"bytes"`
	Decoded       string         `json:"decoded,omitzero"` // DecodingRefused; "": decoded, or there is no Encoding
	DecodedSHA256 Digest         `json:"decoded_sha256,omitzero"`
	Delivered     *int64         `json:"delivered,omitzero"` // of a response: bytes that the agent's side took; nil: unknown
	Encoding      string         `json:"encoding,omitzero"`  // Content-Encoding, such as gzip; "": none
	Headers       jsontext.Value `json:"headers,omitzero"`   // an object of texts: the headers that the recorder keeps
	Masked        bool           `json:"masked,omitzero"`    // secrets are overwritten in what is sealed
	SHA256        Digest         `json:"sha256"`
	Truncated     bool           `json:"truncated,omitzero"` // only the beginning is sealed
	Type          string         `json:"type,omitzero"`      // Content-Type
}

// DecodingRefused says that a body had an encoding and is sealed encoded, because decoding it failed or would have exceeded a bound.
const DecodingRefused = "refused"

// Sealed returns the digest of the bytes that are sealed.
func (b *ObservedBody) Sealed() Digest {
	if b.DecodedSHA256.IsZero() {
		return b.SHA256
	}
	return b.DecodedSHA256
}

// Upstream is where a request went.
type Upstream struct {
	Origin string       `json:"origin"` // scheme, host and port, or the command of a server on stdio
	TLS    *UpstreamTLS `json:"tls,omitzero"`
}

// UpstreamTLS identifies the key that the upstream showed.
type UpstreamTLS struct {
	NotAfter   string `json:"not_after"`
	SPKISHA256 Digest `json:"spki_sha256"`
}

// Vantage says from where a recorder saw an act.
type Vantage string

const (
	Proxy     Vantage = "proxy"      // bytes between the agent and the upstream
	ProxyMITM Vantage = "proxy_mitm" // the same, inside a TLS connection that the recorder opened
	InProcess Vantage = "in_process" // inside the agent's own process
	Telemetry Vantage = "telemetry"  // told by the agent's telemetry
	Examiner  Vantage = "examiner"   // the recorder asked the agent itself
)

// Vantages lists every vantage.
func Vantages() []Vantage { return []Vantage{Proxy, ProxyMITM, InProcess, Telemetry, Examiner} }

// Side says which of two agents that exchange a message is the one whose act it is.
type Side string

const (
	Asked    Side = "asked"    // it sent the message
	Answered Side = "answered" // it got the message, and answered
)

// Judged says whom a review of an observed act judges.
type Judged string

// JudgedAgent says that it judges the agent that was observed. Acts of earlier programs say nothing: logs counted reviews of them for the
// recorder, which made the record, and go on to do so, because a log's counts cannot change.
const JudgedAgent Judged = "agent"

// OnAgent reports whether a review of an act judges the agent that a recorder saw, and not the actor of the record.
func (p *Payload) OnAgent() bool {
	return p.ActionType.Observes() && p.Observed != nil && p.Observed.Judged == JudgedAgent
}

// Fidelity says how much of an act a recorder saw.
type Fidelity string

const (
	ByBytes      Fidelity = "bytes"      // every byte
	Parsed       Fidelity = "parsed"     // values that somebody else had parsed
	ByAttributes Fidelity = "attributes" // attributes that somebody else chose
)

// Ended says how an observed act ended.
type Ended string

const (
	Complete      Ended = "complete"       // the answer came to its end; it may say that something failed
	UpstreamError Ended = "upstream_error" // there was no answer
	UpstreamCut   Ended = "upstream_cut"   // the answer broke off
	ClientGone    Ended = "client_gone"    // the agent went away
	RecorderCut   Ended = "recorder_cut"   // the recorder broke off, because it could not seal
	LostInCrash   Ended = "lost_in_crash"  // the recorder died; the end is unknown
)

// Observes reports whether acts of this type record what a recorder saw an agent do.
func (a ActionType) Observes() bool {
	return a == ObservedCall || a == ObservedTool || a == ObservedMessage || a == ObservedSpan
}

const (
	maxPath     = 2000 // bytes of a path
	maxListed   = 1000 // elements of missing, calls and context_by_reference
	maxHeaders  = 64
	maxHeadSize = 4 << 10 // bytes of one header, or of one reference
)

func readObserved(v jsontext.Value) (*Observed, error) {
	if _, err := readKind("an object")(v); err != nil {
		return nil, err
	}
	o := new(Observed)
	if err := jsonform.DecodeForm(v, o); err != nil {
		return nil, err
	}
	return o, o.check()
}

// check refuses what a recorder must not state. Its errors name the member within observed.
func (o *Observed) check() error {
	for _, name := range []struct {
		member, text string
		required     bool
	}{{"agent", o.Agent, true}, {"credential", o.Credential, false}, {"method", o.Method, false}, {"protocol", o.Protocol, true},
		{"provider_request_id", o.ProviderRequestID, false}, {"finish", o.Finish, false}, {"retry_of", o.RetryOf, false}} {
		if err := within(name.member, checkOptional(name.text, name.required)); err != nil {
			return err
		}
	}
	return cmp.Or(
		within("began", checkTime(o.Began)),
		within("ended", oneOf(o.Ended, Complete, UpstreamError, UpstreamCut, ClientGone, RecorderCut, LostInCrash)),
		within("fidelity", oneOf(o.Fidelity, ByBytes, Parsed, ByAttributes)),
		within("vantage", oneOf(o.Vantage, Vantages()...)),
		within("side", oneOf(o.Side, "", Asked, Answered)),
		within("judged", oneOf(o.Judged, "", JudgedAgent)),
		within("path", CheckPath(o.Path)),
		within("missing", checkEach(o.Missing, CheckName)),
		within("context_by_reference", checkEach(o.ContextByReference, checkReference)),
		within("calls", checkEach(o.Calls, ObservedUse.check)),
		within("attempt", wholeNumber(&o.Attempt)),
		within("first_byte_ms", wholeNumber(o.FirstByteMS)),
		within("ended_ms", wholeNumber(o.EndedMS)),
		within("usage", checkUsage(o.Usage)),
		within("upstream", o.Upstream.check()),
		within("request", o.Request.check()),
		within("response", o.Response.check()),
		o.checkTogether())
}

func (o *Observed) checkTogether() error {
	switch {
	case (o.Vantage == Telemetry) != (o.Fidelity == ByAttributes):
		return within("fidelity", fmt.Errorf("telemetry tells attributes, and nothing else does: want %q for the vantage %q and no other", ByAttributes, Telemetry))
	case o.Fidelity == ByBytes && o.Request == nil:
		return within("request", fmt.Errorf("missing, and required for the fidelity %q", ByBytes))
	case o.Request != nil && o.Request.Delivered != nil:
		return within("request/delivered", errors.New("belongs to a response"))
	case o.Status != 0 && (o.Status < 100 || o.Status > 599):
		return within("status", errors.New("want a status of HTTP, from 100 to 599"))
	}
	return nil
}

func (b *ObservedBody) check() error {
	if b == nil {
		return nil
	}
	decoded := !b.DecodedSHA256.IsZero()
	switch {
	case b.SHA256.IsZero():
		return within("sha256", errors.New("missing"))
	case b.Decoded != "" && b.Decoded != DecodingRefused:
		return within("decoded", fmt.Errorf("unknown value %q: expected %s, or none", Abbreviate(b.Decoded), DecodingRefused))
	case b.Decoded != "" && (b.Encoding == "" || decoded):
		return within("decoded", errors.New("want it with an encoding and without decoded_sha256"))
	case b.Encoding != "" && b.Decoded == "" && !decoded:
		return within("decoded_sha256", fmt.Errorf("missing, and required with an encoding unless decoded is %q", DecodingRefused))
	case (b.Truncated || b.Masked) && !decoded:
		return within("decoded_sha256", errors.New("missing, and required if truncated or masked: the digest of what is sealed"))
	case decoded && b.Encoding == "" && !b.Truncated && !b.Masked:
		return within("decoded_sha256", errors.New("want it only with an encoding or if truncated or masked; otherwise sha256 says it"))
	case b.Delivered != nil && *b.Delivered > b.Bytes:
		return within("delivered", errors.New("more than there were bytes"))
	}
	return cmp.Or(within("bytes", wholeNumber(&b.Bytes)), within("delivered", wholeNumber(b.Delivered)),
		within("encoding", checkOptional(b.Encoding, false)), within("type", checkOptional(b.Type, false)), within("headers", CheckHeaders(b.Headers)))
}

func (u *Upstream) check() error {
	if u == nil {
		return nil
	}
	if err := within("origin", CheckName(u.Origin)); err != nil || u.TLS == nil {
		return err
	}
	if u.TLS.SPKISHA256.IsZero() {
		return within("tls/spki_sha256", errors.New("missing"))
	}
	return within("tls/not_after", checkTime(u.TLS.NotAfter))
}

func within(member string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", member, err)
}

func oneOf[S ~string](s S, allowed ...S) error {
	if slices.Contains(allowed, s) {
		return nil
	}
	return fmt.Errorf("unknown value %q: expected one of %s", Abbreviate(string(s)), list(allowed))
}

func checkOptional(name string, required bool) error {
	if name == "" && !required {
		return nil
	}
	return CheckName(name)
}

func wholeNumber(n *int64) error {
	if n != nil && (*n < 0 || *n > maxExact) {
		return fmt.Errorf("want a whole number from 0 to %d", int64(maxExact))
	}
	return nil
}

func checkUsage(usage jsontext.Value) error {
	if usage == nil || usage.Kind() == '{' {
		return nil
	}
	return errors.New("want an object, found " + kindName(usage))
}

// CheckPath refuses a path that has no place in observed.
func CheckPath(text string) error {
	if len(text) > maxPath {
		return fmt.Errorf("longer than %d bytes", maxPath)
	}
	if !utf8.ValidString(text) {
		return errors.New("not valid UTF-8")
	}
	if i := strings.IndexFunc(text, func(c rune) bool { return unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) }); i >= 0 {
		return fmt.Errorf("has a control character at byte %d", i)
	}
	return nil
}

func checkEach[T any](list []T, check func(T) error) error {
	if len(list) > maxListed {
		return fmt.Errorf("names %d: want at most %d", len(list), maxListed)
	}
	for i, one := range list {
		if err := check(one); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

func (u ObservedUse) check() error {
	return cmp.Or(checkOptional(u.ID, false), checkOptional(u.Name, false))
}

func checkReference(text string) error {
	if text == "" || len(text) > maxHeadSize {
		return fmt.Errorf("want 1 to %d bytes", maxHeadSize)
	}
	return nil
}

// CheckHeaders refuses what has no place among the headers of a body.
func CheckHeaders(v jsontext.Value) error {
	if v == nil {
		return nil
	}
	var headers map[string]string
	if v.Kind() != '{' || json.Unmarshal(v, &headers) != nil {
		return errors.New("want an object of texts")
	}
	if len(headers) > maxHeaders {
		return fmt.Errorf("names %d headers: want at most %d", len(headers), maxHeaders)
	}
	for name, value := range headers {
		if len(name)+len(value) > maxHeadSize {
			return fmt.Errorf("%s: longer than %d bytes", Abbreviate(name), maxHeadSize)
		}
	}
	return nil
}

const (
	// MaxBody is the largest body in bytes that a record can hold, and that can be rebuilt from pieces.
	MaxBody = 32 << 20
	// MaxPieces is how many pieces a body may have.
	MaxPieces = 4096
)

// A Piece is a part of a body: bytes of its own, or a range of a body in an earlier record. A session of calls sends its whole context
// each time, and the log keeps it once.
type Piece struct {
	Own    []byte // if From is zero
	From   Digest // digest of the body that is copied from, as that record states it for the bytes that it seals
	At     int64  // offset in that body
	Length int64  // in bytes, at least 1
}

type base64Form struct {
	Base64 []byte `json:"base64"`
}

type copyForm struct {
	At     int64  `json:"at"`
	From   Digest `json:"from"`
	Length int64  `json:"length"`
}

type piecesForm struct {
	Pieces []jsontext.Value `json:"pieces"`
}

// ParseBody reads the member request_body or response_body: a text; or base64; or pieces. It checks the form and each length; whether
// the bodies exist from which pieces copy is for a reader of other records to find. Its errors are *FieldError and *SyntaxError.
func ParseBody(v jsontext.Value) ([]Piece, error) {
	own, notOwn := ownPiece(v)
	if notOwn == nil || v.Kind() == '"' {
		return []Piece{own}, notOwn
	}
	var form piecesForm
	if err := jsonform.DecodeForm(v, &form); err != nil {
		return nil, fmt.Errorf("want a string, or an object with base64 (%w) or pieces (%w)", notOwn, err)
	}
	if len(form.Pieces) == 0 || len(form.Pieces) > MaxPieces {
		return nil, fmt.Errorf("pieces: %d of them: want 1 to %d", len(form.Pieces), MaxPieces)
	}
	pieces, total := make([]Piece, len(form.Pieces)), int64(0)
	for i, value := range form.Pieces {
		piece, err := parsePiece(value)
		if err == nil {
			total += piece.Length // each is at most MaxBody
			err = tooLong(total)
		}
		if err != nil {
			return nil, fmt.Errorf("pieces: element %d: %w", i, err)
		}
		pieces[i] = piece
	}
	return pieces, nil
}

func tooLong(total int64) error {
	if total > MaxBody {
		return fmt.Errorf("the body is longer than %d bytes", MaxBody)
	}
	return nil
}

func parsePiece(v jsontext.Value) (Piece, error) {
	own, notOwn := ownPiece(v)
	if notOwn == nil {
		if own.Length == 0 {
			return Piece{}, errors.New("empty; leave it out")
		}
		return own, nil
	}
	var form copyForm
	if v.Kind() != '{' {
		return Piece{}, notOwn
	}
	if err := jsonform.DecodeForm(v, &form); err != nil {
		return Piece{}, fmt.Errorf("want a string, {base64} or {at, from, length}: %w", err)
	}
	switch {
	case form.From.IsZero():
		return Piece{}, errors.New("from: all zero: a digest of nothing")
	case form.At < 0 || form.At > MaxBody:
		return Piece{}, fmt.Errorf("at: want a whole number from 0 to %d", MaxBody)
	case form.Length < 1 || form.Length > MaxBody:
		return Piece{}, fmt.Errorf("length: want a whole number from 1 to %d", MaxBody)
	}
	return Piece{From: form.From, At: form.At, Length: form.Length}, nil
}

func ownPiece(v jsontext.Value) (Piece, error) {
	var own []byte
	if v.Kind() == '"' {
		var err error
		if own, err = textBytes(v); err != nil {
			return Piece{}, err
		}
	} else {
		var form base64Form
		if err := jsonform.DecodeForm(v, &form); err != nil {
			return Piece{}, err
		}
		own = form.Base64
	}
	return Piece{Own: own, Length: int64(len(own))}, tooLong(int64(len(own)))
}

// FormatBody writes a body as ParseBody reads it. A body of one piece of its own is written without the list.
func FormatBody(pieces ...Piece) (jsontext.Value, error) {
	values := make([]jsontext.Value, len(pieces))
	for i, p := range pieces {
		if p.From.IsZero() {
			values[i] = formOf(p.Own)
		} else {
			values[i] = marshal(copyForm{p.At, p.From, p.Length})
		}
	}
	if len(pieces) == 1 && pieces[0].From.IsZero() { // it may be long: it is not read again
		return values[0], tooLong(int64(len(pieces[0].Own)))
	}
	v := marshal(piecesForm{values})
	_, err := ParseBody(v)
	return v, err
}

// formOf writes bytes as a text, if they are one that takes no more room than base64. A control character takes six bytes.
func formOf(own []byte) jsontext.Value {
	more := 0
	for _, c := range own {
		switch {
		case c == '"', c == '\\', c >= '\b' && c <= '\r' && c != '\v':
			more++
		case c < ' ':
			more += 5
		}
	}
	if more <= len(own)/3 && utf8.Valid(own) {
		return quoteIn(len(own)+more+len(`""`), own)
	}
	return marshal(base64Form{own})
}

// readBody checks the form of a body, unless it is sealed apart: then a text stands for a commitment, and every text is a body.
func readBody(v jsontext.Value) (jsontext.Value, error) {
	if v.Kind() == '"' && len(v)-len(`""`) <= MaxBody { // a text is no longer than its canonical form
		return v, nil
	}
	_, err := ParseBody(v)
	return v, err
}
