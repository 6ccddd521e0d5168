//go:build !js

package observed

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

const (
	// MaxKept is the length of the longest body that a record holds. Two bodies of this size fit into a payload in every spelling.
	MaxKept = 11 << 20
	// Beginning is how much a record holds of a longer body, whose digest and count are of all its bytes. JSON of which the end is missing says
	// nothing, however much of it there is; and whoever sends such bodies should not decide how much memory a recorder takes.
	Beginning = 512 << 10
)

// An Act is what a recorder saw, or what happened to it, before that is sealed: what it states of it, and the bytes. Of an event the payload alone counts.
type Act struct {
	// Of an act without bytes, or in a protocol of which no facts are read, the members of an output are what is said of it. Facts in the bytes replace them.
	evidence.Payload  `json:"-"`
	evidence.Observed `json:"-"`

	Request, Response *Body // nil: no bytes were seen
}

// A Body is what one direction carried. DecodedSHA256 is found when the act is sealed.
type Body struct {
	evidence.ObservedBody

	// Kept are the bytes to seal: decoded if there is an encoding, and all of them unless Truncated. nil: none are kept.
	Kept []byte
	// Earlier are bodies of records that are sealed already, from which Kept may copy: such as the last request of the same conversation.
	Earlier [][]byte
}

// Whole is a body that passed without an encoding, and is kept as it is.
func Whole[T ~string | ~[]byte](text T, mediaType string) *Body {
	body := []byte(text)
	return &Body{ObservedBody: evidence.ObservedBody{Bytes: int64(len(body)), SHA256: evidence.DigestOf(body), Type: mediaType}, Kept: body}
}

// draft collects what becomes a payload, and what has no place in it.
type draft struct {
	payload           evidence.Payload
	observed          evidence.Observed
	request, response []byte // what is sealed
	room              int    // bytes that values beside the bodies may have
	missing           []string
}

// Draft makes what a recorder seals of an act. What others said and has no place in a payload is left out and named in missing. It
// returns an error only if what the recorder itself says is wrong: names, times, a digest. Its errors are those of evidence.NewDraft.
func Draft(act Act) (*evidence.Draft, error) {
	if act.ActionType == evidence.RecorderEvent {
		return evidence.NewDraft(act.Payload)
	}
	d := &draft{payload: act.Payload, observed: act.Observed}
	d.payload.ActionType, d.payload.Observed = cmp.Or(act.ActionType, evidence.ObservedCall), &d.observed
	d.observe(act.Request, act.Response)
	d.say()
	d.observed.Missing = d.listed()
	return evidence.NewDraft(d.payload)
}

func (d *draft) miss(format string, args ...any) {
	d.missing = append(d.missing, fmt.Sprintf(format, args...))
}

func (d *draft) listed() (list []string) {
	for i, text := range slices.Concat(d.observed.Missing, d.missing) {
		if i == 999 {
			return append(list, "more, which is not listed")
		}
		if evidence.CheckName(text) != nil {
			text = evidence.Abbreviate(fmt.Sprintf("%+q", text))
		}
		list = append(list, text)
	}
	return list
}

// name returns a name that somebody else chose, or "" if it is none.
func (d *draft) name(member, text string) string {
	if text == "" {
		return ""
	}
	if err := evidence.CheckName(text); err != nil {
		d.miss("%s: %v", member, err)
		return ""
	}
	return text
}

// plain returns a name that somebody else chose, if it may stand in clear: nobody can erase it there.
func (d *draft) plain(member, text string) string {
	if text != "" && !IsPlain(text) {
		d.miss("%s: it is no name of one word, and is not kept", member)
		return ""
	}
	return text
}

func (d *draft) observe(request, response *Body) {
	o := &d.observed
	o.Judged = evidence.JudgedAgent
	o.Method, o.Path = d.plain("method", o.Method), d.path(o.Path)
	o.ProviderRequestID, o.RetryOf = d.plain("provider_request_id", o.ProviderRequestID), d.name("retry_of", o.RetryOf)
	if o.Status < 100 || o.Status > 599 {
		if o.Status != 0 {
			d.miss("status: %d is none of HTTP", o.Status)
		}
		o.Status = 0
	}
	o.Request, d.payload.RequestBody, d.request = d.body("request", request)
	o.Response, d.payload.ResponseBody, d.response = d.body("response", response)
	if o.Request != nil {
		o.Request.Delivered = nil
	}
}

// path returns the path if it may stand in observed, without what in it is no name.
func (d *draft) path(path string) string {
	if err := evidence.CheckPath(path); err != nil {
		d.miss("path: %v", err)
		return ""
	}
	kept := PathInClear(path)
	if kept != path {
		d.miss("path: what in it is no name of one word is not kept")
	}
	return kept
}

// Milliseconds is a time after another as records state it.
func Milliseconds(after time.Duration) *int64 { return new(max(0, after.Milliseconds())) }

// body describes a body, writes what of it is kept, and returns these bytes.
func (d *draft) body(direction string, b *Body) (*evidence.ObservedBody, jsontext.Value, []byte) {
	if b == nil {
		return nil, nil, nil
	}
	kept, truncated, refused := b.Kept, b.Truncated, b.Decoded != ""
	if len(kept) > MaxKept {
		kept, truncated = kept[:Beginning:Beginning], true
	}
	o := &evidence.ObservedBody{Bytes: b.Bytes, SHA256: b.SHA256, Delivered: b.Delivered, Encoding: encodingInClear(b.Encoding),
		Type: d.name(direction+": type", b.Type), Headers: d.headers(direction, b.Headers)}
	switch {
	case refused && truncated, kept == nil && b.Encoding != "":
		o.Decoded = evidence.DecodingRefused
		d.miss("%s: the bytes are not kept", direction)
		return o, nil, nil
	case kept == nil && b.Bytes > 0:
		d.miss("%s: the bytes are not kept", direction)
		return o, nil, nil
	case refused:
		o.Decoded = evidence.DecodingRefused
	case b.Encoding != "" || truncated || b.Masked:
		o.DecodedSHA256, o.Truncated, o.Masked = evidence.DigestOf(kept), truncated, b.Masked
	}
	value, err := evidence.FormatBody(Pieces(kept, b.Earlier...)...)
	if err != nil {
		d.miss("%s: the bytes are not kept: %v", direction, err)
		return o, nil, nil
	}
	return o, value, kept
}

// codings are the names of encodings that a record may have. What has another is never decoded.
var codings = []string{"gzip", "x-gzip", "deflate", "compress", "x-compress", "br", "zstd", "identity"}

// areCodings reports whether a text is a list of such names. A comma may end it.
func areCodings(encoding string) bool {
	names := strings.Split(encoding, ",")
	last := len(names) - 1
	for i, name := range names {
		if i > 0 {
			name = strings.TrimLeft(name, " \t")
		}
		if i < last {
			name = strings.TrimRight(name, " \t")
		}
		ends := i > 0 && i == last && name == ""
		if !ends && !slices.ContainsFunc(codings, func(coding string) bool { return strings.EqualFold(name, coding) }) {
			return false
		}
	}
	return true
}

// encodingInClear returns the name of an encoding: of one that is not known, not what it says.
func encodingInClear(encoding string) string {
	if encoding == "" || areCodings(encoding) {
		return encoding
	}
	return "unknown"
}

// Headers are the headers of a body; nil: there are none, or they have no form in JSON, such as those that are not UTF-8, which callers leave out.
func Headers(list map[string]string) jsontext.Value {
	if len(list) == 0 {
		return nil
	}
	return canonical(list)
}

func (d *draft) headers(direction string, doc jsontext.Value) jsontext.Value {
	if doc != nil && evidence.CheckHeaders(doc) != nil {
		d.miss("%s: its headers are too many, or too long", direction)
		return nil
	}
	return doc
}

// say fills in the facts in the bytes, or what is said without them.
func (d *draft) say() {
	p, o, said := &d.payload, &d.observed, d.payload
	d.room = evidence.MaxDocument - forTheRest - len(p.RequestBody) - len(p.ResponseBody)
	facts, known := FactsOf(o, d.request, d.response) // in what is sealed alone, so that a verifier finds the same
	told := said.Model+said.ModelVersion != "" || len(said.Prompt)+len(said.Context)+len(said.Response)+len(said.Parameters)+len(said.ToolsUsed)+len(o.Usage) > 0
	if told = told && d.request == nil && d.response == nil; known && !told {
		p.Prompt, p.Context, p.Response, p.ToolsUsed = nil, nil, nil, nil
		p.Model, p.ModelVersion, o.Finish, o.Calls, o.ContextByReference = facts.Model, facts.ModelVersion, facts.Finish, facts.Calls, facts.ContextByReference
		p.Parameters, o.Usage = d.value("parameters", facts.Parameters, "{"), d.value("usage", facts.Usage, "{")
		return
	}
	p.Model, p.ModelVersion = d.plain("model", said.Model), d.plain("model_version", said.ModelVersion)
	p.Prompt, p.Context, p.Response = d.value("prompt", said.Prompt, `"{[`), d.value("context", said.Context, `"{[`), d.value("response", said.Response, `"{[`)
	p.Parameters, p.ToolsUsed, o.Usage = d.value("parameters", said.Parameters, "{"), d.value("tools_used", said.ToolsUsed, "["), d.value("usage", UsageInClear(o.Usage), "{")
}

const (
	// mostSaid bounds a value that is stated beside the bytes.
	mostSaid = 4 << 20
	// forTheRest is what a payload has beside bodies and values at most: above all, headers and what is missing.
	forTheRest = 2 << 20
)

// value returns a value in canonical form, if it has one, is not too long, and begins as one of the kinds.
func (d *draft) value(member string, v jsontext.Value, kinds string) jsontext.Value {
	if v == nil {
		return nil
	}
	form, err := evidence.Canonical(v)
	switch {
	case err != nil: // its words may quote what cannot be erased here
		err = errors.New("it has no canonical form")
	case len(form) > mostSaid:
		err = fmt.Errorf("longer than %d bytes", mostSaid)
	case len(form) > d.room:
		err = errors.New("no room beside the bytes")
	case strings.IndexByte(kinds, form[0]) < 0:
		err = errors.New("not of a kind that the member may have")
	default:
		d.room -= len(form)
		return form
	}
	d.miss("%s: %v", member, err)
	return nil
}

// Pieces writes a body as copies from earlier ones, with bytes of its own in between. It compares bytes, as rsync does: a window of 64
// bytes moves through the body and is looked up among the blocks of the earlier ones. So what was inserted, moved or repeated is found, in
// whatever format, and what the pieces make is the body itself. If nothing is gained, the body is one piece of its own.
func Pieces(body []byte, earlier ...[]byte) []evidence.Piece {
	m := &matcher{body: body, earlier: earlier}
	if len(body) >= leastCopy {
		m.index()
		m.match()
	}
	m.own(len(body))
	if len(m.pieces) == 0 || len(m.pieces) > evidence.MaxPieces {
		return []evidence.Piece{{Own: body, Length: int64(len(body))}}
	}
	return m.pieces
}

// A place is where a block begins: in which of the earlier bodies, and at which offset.
type place struct{ body, at int }

type matcher struct {
	body    []byte
	earlier [][]byte
	digests []evidence.Digest
	blocks  map[uint32]place
	done    int // bytes of the body that are in pieces
	pieces  []evidence.Piece
}

// index notes where each block of the earlier bodies begins. Of equal blocks the first counts.
func (m *matcher) index() {
	m.blocks = map[uint32]place{}
	for n, source := range m.earlier {
		m.digests = append(m.digests, evidence.DigestOf(source))
		for at := 0; at+blockSize <= len(source); at += blockSize {
			sum := sumOf(source[at : at+blockSize])
			if _, taken := m.blocks[sum]; !taken {
				m.blocks[sum] = place{n, at}
			}
		}
	}
}

// sumOf is a rolling sum: that of the next window follows from it in one step.
func sumOf(block []byte) (sum uint32) {
	for _, c := range block {
		sum = sum*factor + uint32(c)
	}
	return sum
}

// outgoing is the factor of the byte that leaves a window.
var outgoing = func() uint32 {
	power := uint32(1)
	for range blockSize {
		power *= factor
	}
	return power
}()

func (m *matcher) match() {
	if len(m.blocks) == 0 {
		return
	}
	for at, sum := 0, sumOf(m.body[:blockSize]); ; {
		found, hit := m.blocks[sum]
		if hit && bytes.Equal(m.block(found), m.body[at:at+blockSize]) {
			if end, copied := m.copy(found, at); copied {
				if at = end; at+blockSize > len(m.body) {
					return
				}
				sum = sumOf(m.body[at : at+blockSize])
				continue
			}
		}
		if at+blockSize >= len(m.body) {
			return
		}
		sum = sum*factor + uint32(m.body[at+blockSize]) - outgoing*uint32(m.body[at])
		at++
	}
}

func (m *matcher) block(p place) []byte { return m.earlier[p.body][p.at : p.at+blockSize] }

// copy extends a match in both directions, and takes it if it is long enough. It returns where it ends.
func (m *matcher) copy(p place, at int) (end int, copied bool) {
	source := m.earlier[p.body]
	from, length := p.at, blockSize
	for at > m.done && from > 0 && m.body[at-1] == source[from-1] {
		at, from, length = at-1, from-1, length+1
	}
	for at+length < len(m.body) && from+length < len(source) && m.body[at+length] == source[from+length] {
		length++
	}
	if length < leastCopy {
		return 0, false
	}
	m.own(at)
	m.pieces = append(m.pieces, evidence.Piece{From: m.digests[p.body], At: int64(from), Length: int64(length)})
	m.done = at + length
	return m.done, true
}

// own adds the bytes up to an offset as a piece of their own.
func (m *matcher) own(to int) {
	if to > m.done {
		m.pieces = append(m.pieces, evidence.Piece{Own: m.body[m.done:to], Length: int64(to - m.done)})
		m.done = to
	}
}
