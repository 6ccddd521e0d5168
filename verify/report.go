package verify

import (
	"io"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/jury"
	"jurat/verify/assurance"
	"jurat/verify/trust"
)

// ReportFormat is the version of the report format.
const ReportFormat = "jurat/report/v1"

// The words of a report are those of package assurance.
type (
	Status    = assurance.Status
	Guarantee = assurance.Guarantee
	Kind      = assurance.Kind
	Policy    = assurance.Named
)

const (
	Proved    = assurance.Proved
	NotProved = assurance.NotProved
	Refuted   = assurance.Refuted

	Content        = assurance.Content
	Authentication = assurance.Authentication
	NonRepudiation = assurance.NonRepudiation
	Configuration  = assurance.Configuration
	Vantage        = assurance.Vantage
	Time           = assurance.Time
	Order          = assurance.Order
	Qualified      = assurance.Qualified
	Property       = assurance.Property
	Before         = assurance.Before
	Chain          = assurance.Chain
	HumanReview    = assurance.HumanReview
	GivenOn        = assurance.GivenOn
	Completeness   = assurance.Completeness
	Simultaneity   = assurance.Simultaneity
	Verdict        = assurance.Verdict
	Envelope       = assurance.Envelope

	OneRecord     = assurance.OneRecord
	ManyRecords   = assurance.ManyRecords
	Trial         = assurance.Trial
	SeveralFiles  = assurance.SeveralFiles
	OneCheckpoint = assurance.OneCheckpoint

	Default = assurance.Default
	Strict  = assurance.Strict
)

// A Finding is one answer, about one record or about all of them.
type Finding struct {
	Guarantee Guarantee `json:"guarantee"`
	Status    Status    `json:"status"`
	Rule      string    `json:"rule,omitzero"`   // the rule that decided
	Record    string    `json:"record,omitzero"` // record id; "": all records
	Reason    string    `json:"reason"`
}

// A Report holds what verification found.
type Report struct {
	Format     string         `json:"format"`
	Kind       Kind           `json:"kind"`
	Records    int            `json:"records"`
	Trust      string         `json:"trust,omitzero"`      // fingerprint of the trust file; "": none was given
	Log        *LogState      `json:"log,omitzero"`        // the log that the file was cut from; nil: no valid checkpoint
	Policy     Policy         `json:"policy,omitzero"`     // how much had to be proved; "": Default
	Demanded   *Demanded      `json:"demanded,omitzero"`   // what else had to be proved; nil: nothing
	Mended     bool           `json:"mended,omitzero"`     // the file was not in canonical form, and was read in it
	Outcome    Status         `json:"outcome"`             // the worst answer among the required guarantees
	Guarantees []Finding      `json:"guarantees"`          // one for each guarantee that applies
	Details    []Finding      `json:"details"`             // every answer that is not "proved"; if there are too many, the worst of each record under each guarantee
	LeftOut    int            `json:"left_out,omitzero"`   // how many further answers had no room in Details
	Uncounted  []Guarantee    `json:"uncounted,omitempty"` // guarantees that are not proved and do not count for Outcome
	Times      []trust.TimeOf `json:"times"`               // the proved time of each record
	NotShown   []string       `json:"does_not_prove"`

	// Identities says who stands behind the signatures whose content and authentication are proved, each key once, at most
	// trust.MaxIdentified of them.
	Identities []trust.Identified `json:"identities,omitempty"`

	// Properties are the statements about hidden values that carried proofs show, at most 1000 of them and 1 MiB. The actor chose the values:
	// nothing shows that they are true.
	Properties []ShownProperty `json:"properties,omitempty"`

	// Demands says what came of the reader's demands, in their order.
	Demands []DemandAnswer `json:"demands,omitempty"`

	// Seen says who saw the acts of the file that recorders saw, from where; at most 1000.
	Seen []Seen `json:"seen,omitempty"`

	// Statement says what a SCITT statement states, and what came of its receipts. It is nil of other files.
	Statement *Statement `json:"statement,omitzero"`

	// ToolsChanged are the tools of which a server said something else than before, by the word of recorders; at most 1000.
	ToolsChanged []ToolChange `json:"tools_changed,omitempty"`

	// Basis says what the proof rests on: keys, clocks and the log, each apart. It is nil of a file that does not open, and of several
	// files together, each of which has its own.
	Basis *assurance.Basis `json:"basis,omitzero"`

	// TrialOutcome is the outcome of a trial: the jury's judgment and people's decisions on it. It is nil if the file
	// is no trial or its verdict is not proved. A decision that is not proved under human_review leaves the outcome
	// open.
	TrialOutcome *jury.TrialOutcome `json:"trial_outcome,omitzero"`
}

// MendedMeans explains to people what it means that a file was mended.
const MendedMeans = "This file is not in the form in which it was written: line ends, white space, a byte order mark, the order of members or the spelling of " +
	"strings and numbers differ. It was read as JSON, in its canonical form. All digests and signatures are over that form."

// notShown is what a pass does not prove, in the audit model's words.
var notShown = []string{
	"that what was said is correct",
	"that anybody is legally responsible for it",
	"that it is safe or appropriate",
	"that the decision should be carried out",
}

// noTail is what a bundle does not prove either, unless the reader has the whole log or the chain has a known end.
const noTail = "that nothing came after the last record of a chain"

// OfClock reports whether the reader demanded times that do not rest on the operator's clock.
func (r *Report) OfClock() bool {
	return r.Policy == Strict || r.Demanded != nil && r.Demanded.OfClock()
}

// counts reports whether a guarantee counts for the outcome, if it is asked.
func (c *check) counts(g Guarantee) bool {
	return assurance.Counts(c.kind, g, c.options.Policy, c.options.Need.Level)
}

// required returns what counts besides what always does. If the reader demands properties, they count.
func (o *Options) required() []Guarantee {
	if len(o.Demands) > 0 {
		return append(slices.Clip(o.Require), Property)
	}
	return o.Require
}

// asked returns what the reader asked expressly of this kind of file. It counts under every level.
func (c *check) asked() []Guarantee {
	asked := slices.Clip(c.options.required())
	if !c.options.Before.IsZero() {
		asked = append(asked, Before)
	}
	if c.options.knowsLog() {
		asked = append(asked, c.ofLog())
	}
	return asked
}

// Guarantees returns every guarantee, in the order of the report.
func Guarantees() []Guarantee { return assurance.Guarantees() }

// Of returns the answer for a guarantee. A guarantee that was not checked is NotProved.
func (r *Report) Of(g Guarantee) Finding {
	for _, f := range r.Guarantees {
		if f.Guarantee == g {
			return f
		}
	}
	return Finding{Guarantee: g, Status: NotProved, Reason: "not asked"}
}

// beyondOneFile are guarantees that the records of other files can prove.
var beyondOneFile = []Guarantee{Chain, HumanReview, GivenOn}

// OpenAlone reports whether the only reason why a file is not proved is that it lacks other records. The file was
// verified with these Options.Require. Then Together can prove it.
func (r *Report) OpenAlone(require ...Guarantee) bool {
	if r.Basis != nil && len(r.Basis.Unmet) > 0 {
		return false
	}
	for _, f := range r.Guarantees {
		counts := !slices.Contains(beyondOneFile, f.Guarantee) && !slices.Contains(r.Uncounted, f.Guarantee)
		if f.Status == Refuted || f.Status == NotProved && counts {
			return false
		}
	}
	for _, g := range require {
		if r.Of(g).Status != Proved && !slices.Contains(beyondOneFile, g) {
			return false
		}
	}
	return r.Outcome == NotProved
}

// TimeOf returns the proved time of a record, and false if there is none.
func (r *Report) TimeOf(recordID string) (trust.TimeOf, bool) {
	i := slices.IndexFunc(r.Times, func(t trust.TimeOf) bool { return t.Record == recordID })
	if i < 0 {
		return trust.TimeOf{}, false
	}
	return r.Times[i], true
}

// For returns the answer for one record: the worst finding about it or about all records. A guarantee that was not
// checked is NotProved.
func (r *Report) For(g Guarantee, recordID string) Finding {
	answer := r.Of(g)
	if answer.Status == Proved || !slices.ContainsFunc(r.Details, func(f Finding) bool { return f.Guarantee == g }) {
		return answer
	}
	return worstOf(r.Details, g, recordID)
}

// worstOf returns the worst of these findings about a record or about all records. It returns Proved if there is
// none.
func worstOf(details []Finding, g Guarantee, recordID string) Finding {
	answer := Finding{Guarantee: g, Status: Proved, Record: recordID}
	for _, f := range details {
		if f.Guarantee == g && (f.Record == recordID || f.Record == "") && f.Status.Worse(answer.Status) {
			answer = f
		}
	}
	return answer
}

// A Group is findings that say the same of different records: the first of them, and how many more there are.
type Group struct {
	Finding
	More int
}

// Grouped returns an answer of the report, and after it what else was found about that guarantee.
func (r *Report) Grouped(answer Finding) []Group {
	type kind struct {
		status Status
		rule   string
	}
	groups, places := []Group{{Finding: answer}}, map[kind]int{{answer.Status, answer.Rule}: 0}
	for _, f := range r.Details {
		k := kind{f.Status, f.Rule}
		switch i, seen := places[k]; {
		case f.Guarantee != answer.Guarantee || f == answer:
		case seen:
			groups[i].More++
		default:
			places[k] = len(groups)
			groups = append(groups, Group{Finding: f})
		}
	}
	return groups
}

// Marshal returns the report as JSON. It refuses text that is not valid UTF-8.
func (r *Report) Marshal() ([]byte, error) {
	return json.Marshal(r, jsontext.Multiline(true), jsontext.WithIndent("  "))
}

// Write writes the report as JSON, as Marshal does, but without holding all of it: the report on a large file is
// large, too. It passes on the errors of w.
func (r *Report) Write(w io.Writer) error {
	return json.MarshalWrite(w, r, jsontext.Multiline(true), jsontext.WithIndent("  "))
}

// damaged is the report on a file that claims to be jurat's and cannot be opened.
func damaged(kind Kind, record string, o Options, err error) *Report {
	r := &Report{Format: ReportFormat, Kind: kind, Trust: o.fingerprint(), NotShown: notShown, Details: []Finding{}, Times: []trust.TimeOf{}}
	for _, g := range assurance.Required(kind) {
		if g != Before && g != Chain && g != HumanReview && g != GivenOn && g != Envelope && (g != Completeness || kind == Trial) { // the guarantees that apply to what a file holds
			r.Guarantees = append(r.Guarantees, Finding{Guarantee: g, Status: NotProved, Reason: "the file cannot be opened"})
		}
	}
	r.Guarantees[0] = Finding{Guarantee: Content, Status: Refuted, Rule: "form", Record: record, Reason: err.Error()}
	r.Outcome = Refuted
	return r
}

// unread is the report after the program itself failed on the file: nothing is proved.
func unread(kind Kind, o Options, err error) *Report {
	r := damaged(kind, "", o, err)
	for i := range r.Guarantees {
		r.Guarantees[i] = Finding{Guarantee: r.Guarantees[i].Guarantee, Status: NotProved, Reason: err.Error()}
	}
	r.Outcome = NotProved
	return r
}

// KeepFingerprint computes the fingerprint of the trust file once, for the reports on many files. Trust must not be
// changed afterwards.
func (o *Options) KeepFingerprint() { o.known.fingerprint, o.known.trust = o.fingerprint(), o.Trust }

func (o *Options) fingerprint() string {
	if o.Trust == nil {
		return ""
	}
	if o.known.trust == o.Trust {
		return o.known.fingerprint
	}
	digest, err := o.Trust.Fingerprint()
	if err != nil {
		return ""
	}
	return digest.String()
}

func recordName(r *evidence.Record) string { return r.Payload.RecordID }
