// Package counted recomputes what an operator states about the number of recorded calls. An act of the operator (usage_comparison) says how many calls to
// models the log had in a time, and how many tokens, beside what the provider counts. The records in a file show whether the log's side is right.
//
// # The provider's side is the operator's word
//
// No record shows what a provider counts: the file that the act names comes from the operator. Only the log's side is recomputed.
//
// # More than stated contradicts, less does not
//
// A file need not have all of the log's calls. So a sum that is larger than the one stated contradicts the act, and a smaller one does not. If the file has as
// many calls as the act counts, they must be the same calls, with the same sums. An act cannot count records of the log that came after itself.
package counted

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/llm/wire"
)

// A Call is what a record says of a call to a model, as far as it is counted.
type Call struct {
	Digest        evidence.Digest
	Index         int64 // in the log
	Agent, Origin string
	Vendor        string    // whose protocol
	Sealed        time.Time // the record's timestamp
	Began, Ended  time.Time
	Input, Output int64 // tokens
	Known         bool  // whether the answer says them
	Failed        bool  // the provider answered with an error, and without usage
}

// Of returns what a record says of a call. It reports false if the record is no call to a model in a protocol that is counted.
func Of(p *evidence.Payload, digest evidence.Digest, index int64) (c Call, is bool) {
	o := p.Observed
	if p.ActionType != evidence.ObservedCall || o == nil {
		return c, false
	}
	vendor, _, _ := strings.Cut(o.Protocol, ".")
	if vendor != "openai" && vendor != "anthropic" && vendor != "gemini" {
		return c, false
	}
	began, err := evidence.ParseTime(o.Began)
	if err != nil {
		return c, false
	}
	c = Call{Digest: digest, Index: index, Agent: o.Agent, Vendor: vendor, Sealed: p.Time(), Began: began, Ended: began}
	if o.Upstream != nil {
		c.Origin = o.Upstream.Origin
	}
	if o.EndedMS != nil {
		c.Ended = began.Add(time.Duration(min(*o.EndedMS, maxMS)) * time.Millisecond)
	}
	if used, known := wire.ReadUsage(o.Usage); known {
		c.Known, c.Input, c.Output = true, used.Input, used.Output
	}
	c.Failed = !c.Known && o.Status >= 400
	return c, true
}

// maxMS is the longest time from begin to end that is counted: ten years.
const maxMS = 10 * 366 * 24 * 60 * 60 * 1000

// A Scope says which calls an act counts.
type Scope struct {
	operator.UsageScope
	from, to, since time.Time
}

// ScopeOf returns a scope of an act. Its times must be those of operator.ReadUsageComparison.
func ScopeOf(s operator.UsageScope) (Scope, error) {
	from, err := evidence.ParseTime(s.From)
	if err != nil {
		return Scope{}, fmt.Errorf("from: %w", err)
	}
	to, err := evidence.ParseTime(s.To)
	if err != nil {
		return Scope{}, fmt.Errorf("to: %w", err)
	}
	return Scope{s, from, to, from.Add(-time.Duration(s.SlackMS) * time.Millisecond)}, nil
}

// Has reports whether a call is counted.
func (s *Scope) Has(c *Call) bool {
	return c.Index < s.Size && c.Began.Before(s.to) && !c.Ended.Before(s.from) && !c.Sealed.Before(s.since) &&
		(s.Agent == "" || s.Agent == c.Agent) && (s.Origin == "" || s.Origin == c.Origin) && (s.Vendor == "" || s.Vendor == c.Vendor)
}

// A Sum adds calls up, in the order of the log. The zero Sum is of no call.
type Sum struct {
	calls operator.UsageCalls
	hash  hash.Hash
}

// Add adds a call.
func (s *Sum) Add(c *Call) {
	if s.hash == nil {
		s.hash = sha256.New()
	}
	s.hash.Write(c.Digest[:])
	s.calls.Count++
	switch {
	case c.Known:
		s.calls.Input += c.Input
		s.calls.Output += c.Output
	case c.Failed:
		s.calls.Failed++
	default:
		s.calls.Unknown++
	}
}

// Calls returns the sum.
func (s *Sum) Calls() operator.UsageCalls {
	sum := s.calls
	if s.hash == nil {
		sum.Digest = evidence.DigestOf(nil)
		return sum
	}
	s.hash.Sum(sum.Digest[:0])
	return sum
}

// An Answer says what a file shows of the log's side of a comparison.
type Answer string

// The answers.
const (
	Agrees       Answer = "agrees"       // the file has all calls that the act counts, and they give its sums
	Part         Answer = "part"         // the file has not all of them, and what it has contradicts nothing
	Contradicted Answer = "contradicted" // the file has more than the act counts, or other calls, or another file
	Unchecked    Answer = "unchecked"    // the file has more calls and comparisons than are looked at
)

// A Comparison is what an operator states, and what the file shows of it.
type Comparison struct {
	Record      string                    `json:"record"`
	Time        string                    `json:"time"` // by its own word
	By          string                    `json:"by"`
	Scope       operator.UsageScope       `json:"scope"`
	Calls       operator.UsageCalls       `json:"calls"`
	Provider    operator.UsageCount       `json:"provider"`
	Differences operator.UsageDifferences `json:"differences"`
	File        operator.UsageFile        `json:"file"`
	KeyHeld     bool                      `json:"key_held,omitzero"`
	Here        int64                     `json:"here"` // how many of the calls the file has
	Answer      Answer                    `json:"answer"`
	Why         string                    `json:"why,omitzero"` // of what is contradicted

	scope     Scope
	record    *evidence.Record
	wrongFile string
}

// Act is the record that states it, as it was handed to Take.
func (c *Comparison) Act() *evidence.Record { return c.record }

// WrongFile says how the provider's account that is sealed with the act is another one than it names; "": it is the same, or withheld.
func (c *Comparison) WrongFile() string { return c.wrongFile }

// Wrong reports whether records contradict what it states of the number of calls, or it contradicts itself there.
func (c *Comparison) Wrong() bool { return c.Answer == Contradicted && c.wrongFile == "" }

// A Look is what one record has to do with counting.
type Look struct {
	call   *Call
	stated *Comparison
}

// At looks at a record; nil: it has nothing to do with counting. Many records can be looked at at once.
func At(r *evidence.Record) *Look {
	if r.Payload.ActionType == evidence.UsageComparison {
		if stated := read(r); stated != nil {
			return &Look{stated: stated}
		}
		return nil
	}
	if r.Log == nil {
		return nil
	}
	if call, is := Of(&r.Payload, r.Digest, r.Log.Index); is {
		return &Look{call: &call}
	}
	return nil
}

// read reads an act; nil: it is none by the rules, and states nothing.
func read(r *evidence.Record) *Comparison {
	body, err := operator.ReadUsageComparison(&r.Payload)
	if err != nil {
		return nil
	}
	scope, err := ScopeOf(body.Scope)
	if err != nil {
		return nil
	}
	return &Comparison{Record: r.Payload.RecordID, Time: r.Payload.Timestamp, By: body.By, Scope: body.Scope, Calls: body.Calls, Provider: body.Provider,
		Differences: body.Differences, File: body.File, KeyHeld: body.KeyHeld, scope: scope, wrongFile: otherFile(r, &body.File)}
}

// otherFile says how the file that is sealed with an act differs from the one that it names.
func otherFile(r *evidence.Record, named *operator.UsageFile) string {
	said, withheld := r.Said("/context", r.Payload.Context)
	if withheld || said == nil {
		return ""
	}
	if said.Kind() != '"' {
		return "its context is no text"
	}
	text, err := jsontext.AppendUnquote(nil, said)
	if err != nil {
		return "its context is no text"
	}
	if got := evidence.DigestOf(text); got != named.Digest || int64(len(text)) != named.Bytes {
		return fmt.Sprintf("the provider's account in its context has the digest %s and %d bytes, and the act names %s with %d", got, len(text), named.Digest, named.Bytes)
	}
	return ""
}

// Bounds of what a File keeps and compares.
const (
	maxComparisons = 1000
	maxCalls       = 1 << 21
	maxWork        = 1 << 28 // comparisons by calls
)

// A File collects the looks at the records of a file, in its order. The zero File is of a file without records.
type File struct {
	calls  []Call
	stated []*Comparison
	more   bool // there were more than are kept
}

// Take takes the next record of the file. record is what findings about it name.
func (f *File) Take(l *Look, record *evidence.Record) {
	switch {
	case l == nil:
	case l.call != nil && len(f.calls) < maxCalls:
		f.calls = append(f.calls, *l.call)
	case l.stated != nil && len(f.stated) < maxComparisons:
		l.stated.record = record
		f.stated = append(f.stated, l.stated)
	default:
		f.more = true
	}
}

// Comparisons says what the file shows of each comparison, in the order of the file; at most 1000.
func (f *File) Comparisons() []*Comparison {
	unchecked := f.more || len(f.calls)*len(f.stated) > maxWork
	for _, c := range f.stated {
		if unchecked {
			c.Answer = Unchecked
			continue
		}
		c.judge(f.calls)
	}
	return f.stated
}

// judge compares what an act states with the calls of the file.
func (c *Comparison) judge(calls []Call) {
	var sum Sum
	for i := range calls {
		if c.scope.Has(&calls[i]) {
			sum.Add(&calls[i])
		}
	}
	here, said := sum.Calls(), c.Calls
	c.Here = here.Count
	more := here.Count > said.Count || here.Failed > said.Failed || here.Unknown > said.Unknown || here.Input > said.Input || here.Output > said.Output
	switch {
	case c.wrongFile != "":
		c.Answer, c.Why = Contradicted, c.wrongFile
	case c.record.Log != nil && c.Scope.Size > c.record.Log.Index:
		c.Answer, c.Why = Contradicted, fmt.Sprintf("it counts calls of the log's first %d records, and stands itself at index %d", c.Scope.Size, c.record.Log.Index)
	case more:
		c.Answer, c.Why = Contradicted, fmt.Sprintf("this file alone has %s of that time, and the act counts %s", amount(here), amount(said))
	case here.Count < said.Count:
		c.Answer = Part
	case here != said:
		c.Answer, c.Why = Contradicted, fmt.Sprintf("this file has %s of that time, which are other calls, or other sums, than those of the act: %s", amount(here), amount(said))
	default:
		c.Answer = Agrees
	}
}

func amount(c operator.UsageCalls) string {
	return fmt.Sprintf("%d calls with %d tokens in and %d out, %d that failed and %d without usage", c.Count, c.Input, c.Output, c.Failed, c.Unknown)
}

// InWords says in English what was compared and what a file shows of it.
func (c *Comparison) InWords() string {
	who := "the calls that recorders sealed"
	if c.Scope.Agent != "" {
		who += fmt.Sprintf(" of %q", c.Scope.Agent)
	}
	there := "an unknown number of requests"
	if c.Provider.Requests != nil {
		there = fmt.Sprintf("%d requests", *c.Provider.Requests)
	}
	found := "no difference"
	if d := c.Differences; d.All() > 0 {
		found = fmt.Sprintf("differences: %d around the recorder, %d unclaimed, %d with other counts, %d undecided", d.Around, d.Unclaimed, d.Differs, d.Undecided)
	}
	text := fmt.Sprintf("the operator says that %s from %s to %s were compared with the provider's usage export (%s, %s): %d calls in the log, %s at the provider, %s", who, c.Scope.From, c.Scope.To,
		c.File.Format, c.File.Digest, c.Calls.Count, there, found)
	switch c.Answer {
	case Agrees:
		return text + "; all calls that it counts are in this file, and give its sums; the provider's side is not proved"
	case Part:
		return text + fmt.Sprintf("; %d of the %d calls are in this file; the provider's side is not proved", c.Here, c.Calls.Count)
	case Contradicted:
		return text + "; this is contradicted: " + c.Why
	}
	return text + "; the file has too many calls to check it"
}
