package sealer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/tap/relay"
	"jurat/internal/tap/traffic"
)

type exchange struct {
	recorder *Recorder
	call     *relay.Call
	intent   *intent
}

func (e *exchange) End(ctx context.Context, outcome *relay.Outcome) error {
	r := e.recorder
	r.after("answered")
	act := e.act(outcome)
	act.Request, act.Missing = bodyOf("request", e.call.Request, e.call.Header, false, act.Missing)
	if outcome.Response != nil {
		cut := outcome.Ended != relay.Complete || outcome.Unfinished
		act.Response, act.Missing = bodyOf("response", outcome.Response, outcome.Header, cut, act.Missing)
		if outcome.Ended != relay.Complete { // of a complete answer the end follows after the record
			act.Response.Delivered = &outcome.Delivered
		}
	}
	mask(&act)
	e.place(&act)
	done, err := e.watched(ctx, &act)
	if done != nil {
		defer done()
	}
	if err == nil {
		_, err = r.seal(ctx, act)
	}
	if err != nil {
		return r.failed(act, err)
	}
	r.after("sealed")
	r.recorded(act.RecordID)
	r.after("ended")
	return nil
}

func (r *Recorder) recorded(id string) {
	r.calls.Add(1)
	r.sealed.Add(1)
	r.journal.end(id)
}

func (e *exchange) act(outcome *relay.Outcome) observed.Act {
	call, i, h := e.call, e.intent, outcome.Header
	a := e.recorder.actOf(i)
	a.Path = call.Path // the record says what of it has no place in it
	if a.Method != call.Method {
		a.Missing = append(a.Missing, "method: it is none of HTTP's own")
	}
	a.Timestamp, a.Status, a.ChainID = evidence.FormatTime(outcome.At), int64(outcome.Status), cmp.Or(a.ChainID, e.sessionOf(outcome))
	a.Ended, a.Upstream.TLS = outcome.Ended, outcome.TLS
	a.ProviderRequestID = fitting(cmp.Or(h.Get("X-Request-Id"), h.Get("Request-Id"), h.Get("X-Goog-Request-Id"), h.Get("Apim-Request-Id")), checkID)
	a.EndedMS = observed.Milliseconds(outcome.At.Sub(call.Began))
	if !outcome.FirstByte.IsZero() {
		a.FirstByteMS = observed.Milliseconds(outcome.FirstByte.Sub(call.Began))
	}
	if len(call.Credentials) > 0 {
		a.Credential = call.Credentials[0].Where + ":" + call.Credentials[0].Fingerprint
	}
	for _, more := range call.Credentials[min(1, len(call.Credentials)):] {
		a.Missing = append(a.Missing, "another credential was sent: "+more.Where+":"+more.Fingerprint)
	}
	if call.Upgrade != "" {
		a.Missing = append(a.Missing, "the connection changed to another protocol, whose messages were not seen")
	}
	if n, err := strconv.ParseInt(call.Header.Get("X-Stainless-Retry-Count"), 10, 32); err == nil && n >= 0 {
		a.Attempt = n + 1
	}
	a.Missing = append(a.Missing, outcome.Counted...)
	if outcome.Reason != nil {
		a.Missing = append(a.Missing, "why the call ended: "+inWords(outcome.Reason))
	}
	return a
}

func (r *Recorder) actOf(i *intent) observed.Act {
	return observed.Act{Payload: evidence.Payload{RecordID: i.RecordID, ActionType: i.Type, AgentID: r.Name, RequestID: i.CallID, ChainID: i.Chain},
		Observed: evidence.Observed{Agent: i.Agent, Began: evidence.FormatTime(i.Began), Fidelity: evidence.ByBytes, Method: i.Method, Path: i.Path,
			Protocol: i.Protocol, Side: i.Side, Upstream: &evidence.Upstream{Origin: i.Origin}, Vantage: i.Vantage}}
}

// bodyOf describes a body, with the bytes that are sealed. cut says that its end did not come.
func bodyOf(direction string, b *relay.Body, header http.Header, cut bool, missing []string) (*observed.Body, []string) {
	body := &observed.Body{ObservedBody: evidence.ObservedBody{Bytes: b.Bytes, SHA256: evidence.Digest(b.SHA256), Encoding: b.Encoding, Type: typeOf(header["Content-Type"]), Headers: kept(header)}}
	if b.Apart {
		return body, append(missing, direction+": each message in it has a record of its own")
	}
	if b.Partial {
		body.Truncated = true
		missing = append(missing, direction+": there was no room for a copy of all of it")
	}
	decoded, longer, err := readDecoded(b)
	if len(decoded) > 0 && errors.Is(err, io.ErrUnexpectedEOF) { // what came says what was said
		missing, err = append(missing, direction+": its encoding breaks off; what came before is kept decoded"), nil
		body.Truncated = body.Truncated || !cut // readers differ on what a whole body says whose encoding has no end
	}
	if err == nil && (!longer || body.Encoding == "") {
		body.Kept, body.Truncated = decoded, body.Truncated || longer
		return body, missing
	}
	why := fmt.Sprintf("it has more than %d bytes decoded, and is kept encoded", observed.MaxKept)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		why = "its encoding breaks off"
	} else if err != nil {
		why = "it cannot be decoded: " + inWords(err)
	}
	missing = append(missing, direction+": "+why)
	if body.Encoding != "" {
		body.Decoded = evidence.DecodingRefused
	}
	raw, longer, err := readPlain(b)
	if err != nil {
		return body, append(missing, direction+": the copy cannot be read: "+inWords(err))
	}
	body.Kept, body.Truncated = raw, body.Truncated || longer
	return body, missing
}

// readDecoded reads what a record holds of a body, without its encoding. It reports whether the body is longer than that.
func readDecoded(b *relay.Body) (kept []byte, longer bool, err error) {
	if b.Encoding == "" {
		return readPlain(b)
	}
	kept, rest, err := decodeUpTo(b, observed.Beginning)
	if err == nil && rest > observed.MaxKept-observed.Beginning {
		return kept, true, nil
	}
	if err == nil && rest > 0 {
		kept, _, err = decodeUpTo(b, observed.Beginning+int(rest))
	}
	return kept, false, err
}

// decodeUpTo decodes n bytes and counts how many more there are, up to one more than a record holds. What a broken encoding gives before it breaks counts, too.
func decodeUpTo(b *relay.Body, n int) (first []byte, rest int64, err error) {
	r, err := b.Decoded()
	if err != nil {
		return nil, 0, err
	}
	into := bytes.NewBuffer(make([]byte, 0, min(int64(n), 4*b.Kept)+bytes.MinRead))
	_, err = into.ReadFrom(io.LimitReader(r, int64(n)))
	if err == nil {
		rest, err = io.Copy(io.Discard, io.LimitReader(r, int64(observed.MaxKept+1-into.Len())))
	}
	if errors.Is(err, io.ErrUnexpectedEOF) && rest > 0 {
		err = nil // it breaks off behind what was asked for
	}
	return into.Bytes(), rest, errors.Join(err, r.Close())
}

// readPlain reads what a record holds of a body, as it passed.
func readPlain(b *relay.Body) (kept []byte, longer bool, err error) {
	n := b.Kept
	if longer = n > observed.MaxKept; longer {
		n = observed.Beginning
	}
	kept = make([]byte, n)
	if read, err := io.ReadFull(b.Open(), kept); err != nil {
		return nil, longer, fmt.Errorf("after %d of %d bytes: %v", read, n, err)
	}
	return kept, longer, nil
}

// kept returns a record's headers beside the content type: those that the relay shows and whose value is in a closed form, since nobody can erase it there.
func kept(header http.Header) jsontext.Value {
	list := map[string]string{}
	for name, values := range header {
		value := strings.Join(values, ", ")
		if name = strings.ToLower(name); name != "content-type" && closedForm.MatchString(value) {
			list[name] = value
		}
	}
	return observed.Headers(list)
}

// typeOf returns the media types of headers, without parameters that could say anything. Of one that is none it says so.
func typeOf(values []string) string {
	var types []string
	for _, value := range values {
		list := []string{value}
		if _, _, err := mime.ParseMediaType(value); err != nil {
			list = strings.Split(value, ",") // as some readers do
		}
		for _, one := range list {
			kind, parameter, _ := strings.Cut(one, ";")
			kind, parameter = strings.TrimSpace(kind), strings.TrimSpace(parameter)
			if !mediaType.MatchString(kind) {
				kind = "unknown"
			}
			if charset.MatchString(parameter) {
				kind += "; " + parameter
			}
			types = append(types, kind)
		}
	}
	return strings.Join(types, ", ")
}

var (
	mediaType = regexp.MustCompile(`^[A-Za-z0-9]+/[A-Za-z0-9.+*-]+$`)
	charset   = regexp.MustCompile(`^(?i:charset="?(?:utf-8|utf-16|us-ascii|iso-8859-1)"?)$`)
	providers = regexp.MustCompile(`^[A-Za-z0-9_.:=/-]+$`)
)

// checkID refuses what is no id of a provider, but maybe a sentence.
func checkID(id string) error {
	if !providers.MatchString(id) {
		return errors.New("it is no id")
	}
	return nil
}

// closedForm matches a header's value without words: a number, a time, a version, a digest or UUID, codings with their weights, media types that models use.
var closedForm = regexp.MustCompile(`^(?:[0-9a-fA-F:.,;=+ -]*|true|false|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), [0-9]{2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [0-9]{4} [0-9:]{8} GMT|` +
	`(?:(?:gzip|x-gzip|deflate|compress|br|zstd|identity|\*|\*/\*|application/(?:json|\*)|text/(?:event-stream|plain|\*))(?:[ \t]*;[ \t]*q=[0-9.]+)?(?:[ \t]*,[ \t]*|$))+)$`)

// place finds the chain of an act, and what it repeats. A request that comes again after it failed is of the same chain, also where the program does not say
// that this is another attempt.
func (e *exchange) place(act *observed.Act) {
	r, key := e.recorder, attempt{e.intent.Agent, e.call.Path, e.intent.SHA256}
	before, known := r.attempts.get(key)
	if known && act.Attempt > 1 {
		act.RetryOf = before.requestID
	}
	if act.ChainID == "" {
		s := e.said(act)
		fresh := s.fresh(e.intent.RecordID)
		if known && (act.Attempt > 1 || before.failed) {
			fresh = before.chain
		}
		act.ChainID = r.conversations.place(s, fresh)
		if act.ChainID == ChainOf(e.intent.Agent, e.intent.RecordID) {
			r.ends.set(act.ChainID, end{}) // no log has a chain that is made up now
		}
	}
	r.attempts.set(key, made{act.RequestID, act.ChainID, act.Status == 0 || act.Status >= http.StatusBadRequest || act.Ended != evidence.Complete})
	act.Request.Earlier = r.earlier(act.ChainID)
}

// earlier are the bodies from which the next request of a chain may copy.
func (r *Recorder) earlier(chain string) [][]byte {
	if body, known := r.bodies.get(chain); known {
		return [][]byte{body}
	}
	return nil
}

// callOf is an act as a reader of calls takes it. Bytes that are still encoded say nothing.
func callOf(act *observed.Act) traffic.Call {
	stated, empty := act.Observed, new(observed.Body)
	request, response := cmp.Or(act.Request, empty), cmp.Or(act.Response, empty)
	stated.Request, stated.Response = &request.ObservedBody, &response.ObservedBody
	return traffic.CallOf(&stated, request.Kept, response.Kept)
}

func (e *exchange) said(act *observed.Act) said {
	s := said{agent: e.intent.Agent, trace: traceOf(e.call.Header.Get("Traceparent"))}
	c := callOf(act)
	p, err := traffic.Project(c)
	if err != nil {
		return s
	}
	if s.kept = p.Conversation; s.kept != nil {
		return s
	}
	s.prompt = p.Asked
	if p.Complete && p.Error == "" {
		s.response, s.id = p.Answered, p.ProviderID
		for _, id := range p.Items {
			s.made = append(s.made, "item:"+id)
		}
	}
	if c.Protocol != traffic.OpenAIResponses { // no other provider keeps conversations
		return s
	}
	facts, _ := observed.FactsOf(&evidence.Observed{Protocol: c.Protocol, Request: new(evidence.ObservedBody)}, c.Request, nil)
	for _, reference := range facts.Referred {
		switch kind, id, _ := strings.Cut(reference, ":"); kind {
		case "previous_response_id":
			s.previous = id
		case "conversation":
			s.refers, s.made = reference, append(s.made, reference)
		case "item":
			if !strings.HasPrefix(s.refers, "conversation:") {
				s.refers = reference // the last one is the newest
			}
		}
	}
	return s
}

type kind struct {
	act      evidence.ActionType
	protocol func(*relay.Call) string // "": none that is read; such calls of HTTP are recorded as bytes
}

// kinds are all that a recorder records, by what an upstream speaks.
var kinds = map[*relay.Protocol]kind{
	relay.MCP:    {evidence.ObservedTool, func(c *relay.Call) string { return traffic.MCP + cmp.Or(fitting(c.MCPVersion(), checkID), "unknown") }},
	relay.Models: {evidence.ObservedCall, func(c *relay.Call) string { return traffic.Protocol(c.Method, c.Path) }},
	relay.A2A: {evidence.ObservedMessage, func(c *relay.Call) string {
		return traffic.A2AProtocol(c.Method, c.Path, cmp.Or(c.Header.Get("A2A-Version"), c.Query.Get("A2A-Version")))
	}},
}

// sessionOf is the chain of a call whose protocol has sessions, and that names no chain: of the session that the call or its answer names, or else of all
// that pass this recorder without one.
func (e *exchange) sessionOf(outcome *relay.Outcome) string {
	if e.call.Speaks != relay.MCP {
		return ""
	}
	if session := cmp.Or(e.call.Session, outcome.Session); session != "" {
		return ChainOf(e.intent.Agent, "mcp-"+session[:min(len(session), 32)])
	}
	return ChainOf(e.intent.Agent, "mcp-"+filepath.Base(e.recorder.own))
}

const unmasked = "it is not kept, as it cannot be read, and may have secrets for notifications"

// mask overwrites the secrets in the bodies of a message: they must not be on disk. What cannot be read for that is not kept.
func mask(act *observed.Act) {
	if act.ActionType != evidence.ObservedMessage {
		return
	}
	for i, b := range []*observed.Body{act.Request, act.Response} {
		direction := []string{"request: ", "response: "}[i]
		if b == nil {
			continue
		}
		if b.Decoded != "" {
			*b = *withoutBytes(b)
			act.Missing = append(slices.Clip(act.Missing), direction+unmasked)
		} else if masked, secrets := traffic.MaskA2A(b.Kept); secrets > 0 {
			b.Kept, b.Masked = masked, true
			act.Missing = append(slices.Clip(act.Missing), fmt.Sprintf("%s%d secrets for notifications: they were overwritten before it was sealed", direction, secrets))
		}
	}
}

// reasons are errors that a record may name: their words are this program's own. The words of a library may quote what a client or a server wrote, which
// could then never be erased.
var reasons = []error{relay.ErrClientGone, relay.ErrSpoolFull, relay.ErrUpgrade, traffic.ErrTooLong, traffic.ErrEncoding, traffic.ErrBehind, api.ErrConflict}

func inWords(err error) string {
	if said, is := errors.AsType[relay.Reason](err); is {
		return said.Error()
	}
	for _, known := range reasons {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	var refused *evidence.FieldError
	var network net.Error
	switch {
	case errors.As(err, &refused):
		return "the format of records does not take it"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "it took too long"
	case errors.Is(err, context.Canceled):
		return "it was cancelled"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "the connection broke off"
	case errors.As(err, &network):
		return "the network failed"
	case errors.Is(err, syscall.ENOSPC):
		return "the disk is full"
	case errors.Is(err, os.ErrPermission), errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrClosed):
		return "a file could not be used"
	}
	return "another reason, whose words are not kept, as others may have written them"
}
