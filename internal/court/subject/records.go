package subject

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/tap/convo"
	"jurat/internal/tap/traffic"
	"jurat/verify"
	"jurat/verify/trust"
)

// An Exhibit is a record as the jury gets it: its signed payload, and the disclosures of what was sealed apart.
// Signatures, time stamps and log proofs stay in the verified file; the digest identifies the record.
type Exhibit struct {
	Digest          evidence.Digest       `json:"digest"`
	Disclosures     []evidence.Disclosure `json:"disclosures,omitempty"`
	IndependentTime *ProvedTime           `json:"independentTime,omitempty"` // from an authority whose clock is not the operator's, if provedTime is not
	Payload         jsontext.Value        `json:"payload"`
	ProvedTime      *ProvedTime           `json:"provedTime,omitempty"` // nil: no time is proved
}

// ProvedTime is the latest time at which a record came into being, by an authority's statement.
type ProvedTime struct {
	Authority string `json:"authority"`
	Clock     string `json:"clock"` // "independent" or "operator"
	Time      string `json:"time"`  // RFC 3339
}

// Verification is what the submitter of the records found when verifying them, by the submitter's trust.
type Verification struct {
	NotProved []Doubt  `json:"notProved"`       // what was not proved
	Outcome   string   `json:"outcome"`         // Proved or NotProved; refuted records cannot be evidence
	Proved    []string `json:"proved"`          // guarantees
	Trust     string   `json:"trust,omitempty"` // fingerprint of the trust file; "": no trust file was given
}

// Outcomes of a verification.
const (
	Proved    = "proved"
	NotProved = "not proved"
)

// A Doubt is a guarantee that is not proved, and the records it concerns.
type Doubt struct {
	Guarantee string   `json:"guarantee"`
	Reason    string   `json:"reason"`            // for several records, the reason given for the first
	Records   []string `json:"records,omitempty"` // record ids; empty: all records
	Rule      string   `json:"rule,omitempty"`
}

// Recorded describes the records that evidence is made of.
type Recorded struct {
	Records      int
	Chains       []string // in which recorders saw acts that are among the records, each once
	Verification Verification
}

// material is the evidence of records. Its members, and those inside it, are in canonical order.
type material struct {
	AgentCard    jsontext.Value `json:"agentCard,omitempty"`
	Records      []Exhibit      `json:"records"`
	Verification *Verification  `json:"verification"`
}

// Limits of evidence that is made of records.
const (
	MaxRecords  = 10_000
	maxMessages = 100_000
)

// NewExhibit makes an exhibit from a record.
func NewExhibit(r *evidence.Record) Exhibit {
	return Exhibit{Digest: r.Digest, Payload: r.Canonical(), Disclosures: r.Disclosures}
}

// FromRecords makes a case from verified records: the canonical evidence {"agentCard": …, "records": …,
// "verification": …}. The card is optional (nil). The messages of the case are what the records say, in their order.
// Errors about content are of type *tree.Error.
func FromRecords(card []byte, exhibits []Exhibit, v Verification) (*Case, error) {
	m := material{Records: exhibits, Verification: &v}
	if v.NotProved == nil {
		v.NotProved = []Doubt{}
	}
	if v.Proved == nil {
		v.Proved = []string{}
	}
	if card != nil {
		root, err := convo.Parse(CardFile, card)
		if err != nil {
			return nil, err
		}
		if err := new(Case).readCard(root); err != nil {
			return nil, err
		}
		m.AgentCard = root.Raw()
	}
	doc, err := json.Marshal(&m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", evidenceName, err)
	}
	return parseRecords(doc)
}

func isOfRecords(doc []byte) bool {
	dec := jsontext.NewDecoder(bytes.NewReader(doc))
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
		return false
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil || name.String() == "records" {
			return err == nil
		}
		if dec.SkipValue() != nil {
			return false
		}
	}
	return false
}

func parseRecords(doc []byte) (*Case, error) {
	form, err := evidence.Canonical(doc)
	if err != nil {
		return nil, convo.NotJSON(evidenceName, doc, err)
	}
	if len(form) > MaxFile {
		return nil, unfit("the records' payloads are longer than %d MiB", MaxFile>>20)
	}
	var m material
	if err := json.Unmarshal(form, &m, json.RejectUnknownMembers(true)); err != nil {
		return nil, wrongShape(form, err)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	c := &Case{material: form, Recorded: &Recorded{Records: len(m.Records), Verification: *m.Verification}}
	if m.AgentCard != nil {
		if err := c.readCard(canonical(m.AgentCard)); err != nil {
			return nil, err
		}
		c.HasCard = true
	}
	for i := range m.Records {
		c.exhibits = append(c.exhibits, m.Records[i].Digest)
	}
	return c, c.readRecords(m.Records)
}

// Exhibits returns the digests of the records that the evidence is made of, in their order; none of a conversation.
func (c *Case) Exhibits() []evidence.Digest { return slices.Clone(c.exhibits) }

func unfit(format string, args ...any) error {
	return &Error{File: evidenceName, Reason: fmt.Sprintf(format, args...)}
}

func wrongShape(form []byte, err error) error {
	var at *json.SemanticError
	if !errors.As(err, &at) {
		return unfit("%v", err)
	}
	reason := "a value of the wrong type for the evidence of records"
	if at.Err != nil {
		reason = at.Err.Error()
	}
	return convo.ErrorIn(evidenceName, form, at.ByteOffset, string(at.JSONPointer), reason)
}

func (m *material) check() error {
	switch {
	case len(m.Records) == 0:
		return unfit("no record: expected at least one")
	case len(m.Records) > MaxRecords:
		return unfit("%d records: at most %d are put before a jury", len(m.Records), MaxRecords)
	case m.Verification == nil:
		return unfit("expected verification beside records")
	case m.AgentCard != nil && m.AgentCard.Kind() != '{':
		return unfit("expected an agent card (an object)")
	case m.Verification.Outcome != Proved && m.Verification.Outcome != NotProved:
		return unfit("unknown outcome of verification %s: expected %s or %s", convo.Quote(m.Verification.Outcome), Proved, NotProved)
	case m.Verification.Proved == nil || m.Verification.NotProved == nil:
		return unfit("expected the members proved and notProved in verification")
	}
	seen := make(map[evidence.Digest]bool, len(m.Records))
	for i := range m.Records {
		e := &m.Records[i]
		if err := e.check(); err != nil {
			return unfit("record %d: %v", i+1, err)
		}
		if seen[e.Digest] {
			return unfit("record %d: duplicate record %s", i+1, e.Digest)
		}
		seen[e.Digest] = true
	}
	return nil
}

func (e *Exhibit) check() error {
	if e.Payload == nil {
		return errors.New("a record without a payload")
	}
	if digest := evidence.DigestOf(e.Payload); e.Digest != digest {
		return fmt.Errorf("digest: the payload's is %s, not %s", digest, e.Digest)
	}
	for _, t := range []*ProvedTime{e.ProvedTime, e.IndependentTime} {
		if t == nil {
			continue
		}
		if _, err := time.Parse(time.RFC3339Nano, t.Time); err != nil {
			return fmt.Errorf("not a valid proved time: %s", convo.Quote(t.Time))
		}
		if !slices.Contains([]string{"independent", "operator"}, t.Clock) || t.Authority == "" {
			return errors.New("a proved time without an authority, or by an unknown kind of clock")
		}
	}
	return nil
}

// A Transcript turns the records of a log into the messages that a jury reads, one record after the other, without a bound on their number.
// It is for those who show a chain, of which a part may be enough.
type Transcript struct{ r *recording }

// NewTranscript returns an empty Transcript.
func NewTranscript() *Transcript {
	return &Transcript{newRecording()}
}

// Skip leaves out a record, but keeps its bytes, from which later records may copy.
func (t *Transcript) Skip(r *evidence.Record) {
	if r.Payload.Observed != nil {
		t.r.window.Read(observed.Open(r))
	}
}

// Take reads the next record, with its disclosures. It returns an error if the record cannot be evidence.
func (t *Transcript) Take(r *evidence.Record) error {
	e := NewExhibit(r)
	t.r.rebuilt = 0
	return t.r.take(&e)
}

// An Act is what one record adds to a conversation.
type Act struct {
	Messages []Message // those that were not shown before; those of the Part "observed" are notes for a jury

	// Of what a recorder saw:
	Repeated []int              // the numbers of the messages that its prompt repeats
	Again    int                // the number of the message that its answer repeats; 0: it repeats none
	Lacks    []Lack             // bytes that cannot be read
	Said     traffic.Projection // what the bytes say; zero: they could not be read
}

// Acts returns what each record that was taken adds, by its digest. Results of tools know their calls, and calls their results.
func (t *Transcript) Acts() map[evidence.Digest]Act {
	acts := map[evidence.Digest]Act{}
	for _, m := range t.r.messages {
		act := acts[m.Record]
		act.Messages = append(act.Messages, m)
		acts[m.Record] = act
	}
	for digest, one := range t.r.shown {
		act := acts[digest]
		if act.Again = one.again; one.sight != nil {
			act.Lacks, act.Said = one.sight.lacks, one.sight.said
		}
		for _, stood := range one.repeated {
			act.Repeated = append(act.Repeated, stood.Number)
		}
		acts[digest] = act
	}
	return acts
}

// Errors about records that cannot be evidence of an agent's actions.
var (
	ErrRefuted = errors.New("refuted, and so no evidence")
	ErrTrial   = errors.New("these are the acts of a trial: what a jury says, and no evidence of what an agent did")
	ErrNoActs  = errors.New("there is no record of an agent in it")
	ErrTooMuch = fmt.Errorf("more than %d records or %d MiB of payloads: put a part of them before the jury", MaxRecords, MaxFile>>20)
)

// ReadSealed reads a record file or a bundle, also in an envelope, verifies it, and makes a case from the verified records
// only. The card may be nil. It returns ErrRefuted, ErrTrial, ErrEmpty or ErrTooMuch for records that cannot be
// evidence. With every error that comes after verification it returns the report.
func ReadSealed(file io.Reader, o verify.Options, card []byte) (*Case, *verify.Report, error) {
	seen := new(gathered)
	o.Each = seen.take
	report, err := verify.Read(file, o)
	if err != nil {
		return nil, nil, err
	}
	c, err := seen.evidence(report, card)
	return c, report, err
}

type gathered struct {
	exhibits []Exhibit
	ids      []string
	size     int
	agent    bool // whether an agent acts in any record
	trial    bool
	tooMuch  bool
}

// take keeps no more than a jury can be shown, so a long file does not fill the memory.
func (g *gathered) take(r *evidence.Record) {
	g.size += len(r.Canonical())
	for _, d := range r.Disclosures {
		g.size += len(d.Value)
	}
	g.agent = g.agent || r.Payload.Role() == evidence.RoleAgent || r.Payload.Observed != nil
	g.trial = g.trial || r.Payload.ActionType.InTrial()
	g.tooMuch = g.tooMuch || g.size > MaxFile || len(g.ids) == MaxRecords
	if g.tooMuch || g.trial {
		g.exhibits, g.ids = nil, nil
		return
	}
	g.exhibits = append(g.exhibits, NewExhibit(r))
	g.ids = append(g.ids, r.Payload.RecordID)
}

func (g *gathered) evidence(r *verify.Report, card []byte) (*Case, error) {
	switch {
	case r.Outcome == verify.Refuted:
		return nil, refuted(r)
	case g.trial:
		return nil, ErrTrial
	case g.tooMuch:
		return nil, ErrTooMuch
	case !g.agent:
		return nil, ErrNoActs
	}
	answers := r.Answers()
	for i, id := range g.ids {
		if t, ok := answers.TimeOf(id); ok {
			g.exhibits[i].ProvedTime = timeOf(&t.ProvedTime)
			g.exhibits[i].IndependentTime = timeOf(t.Independent)
		}
	}
	return FromRecords(card, g.exhibits, verification(r))
}

func refuted(r *verify.Report) error {
	for _, f := range slices.Concat(r.Guarantees, r.Details) {
		if f.Status != verify.Refuted {
			continue
		}
		if f.Record != "" {
			return fmt.Errorf("%w: %s of record %s: %s", ErrRefuted, f.Guarantee, f.Record, f.Reason)
		}
		return fmt.Errorf("%w: %s: %s", ErrRefuted, f.Guarantee, f.Reason)
	}
	return ErrRefuted
}

func timeOf(t *trust.ProvedTime) *ProvedTime {
	if t == nil {
		return nil
	}
	return &ProvedTime{Authority: t.Authority, Clock: string(t.Clock), Time: t.Time.UTC().Format(time.RFC3339Nano)}
}

// verification is the report as the jury reads it. It leaves out what differs each time, such as the moment of
// verification, so that the same records give the same evidence.
func verification(r *verify.Report) Verification {
	v := Verification{Trust: r.Trust, Outcome: NotProved, Proved: []string{}, NotProved: []Doubt{}}
	if r.Outcome == verify.Proved {
		v.Outcome = Proved
	}
	for _, f := range r.Guarantees {
		if f.Status == verify.Proved {
			v.Proved = append(v.Proved, string(f.Guarantee))
		}
	}
	v.NotProved = append(v.NotProved, doubts(r)...)
	return v
}

// doubts groups records to which the same doubt applies.
func doubts(r *verify.Report) []Doubt {
	type kind struct {
		of   verify.Guarantee
		rule string
	}
	var list []Doubt
	places, ofAll := map[kind]int{}, map[kind]bool{}
	for _, f := range r.Details {
		if f.Status != verify.NotProved || r.Of(f.Guarantee).Status != verify.NotProved {
			continue
		}
		k := kind{f.Guarantee, f.Rule}
		i, there := places[k]
		if !there {
			i = len(list)
			places[k] = i
			list = append(list, Doubt{Guarantee: string(f.Guarantee), Rule: f.Rule, Reason: f.Reason})
		}
		if ofAll[k] = ofAll[k] || f.Record == ""; ofAll[k] {
			list[i].Records = nil
			continue
		}
		list[i].Records = append(list[i].Records, f.Record)
	}
	return list
}
