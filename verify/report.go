package verify

import (
	"io"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/jury"
	"jurat/verify/trust"
)

// ReportFormat is the version of the report format.
const ReportFormat = "jurat/report/v1"

// Status is the answer to one question about a record.
type Status string

const (
	Proved    Status = "proved"
	NotProved Status = "not proved" // nothing shows that it is false, and something is missing that would show it true
	Refuted   Status = "refuted"    // it is false
)

// worse reports whether a says worse of a record than b.
func (a Status) worse(b Status) bool { return rank[a] > rank[b] }

var rank = map[Status]int{Proved: 0, NotProved: 1, Refuted: 2}

// Guarantee is a question that verification answers.
type Guarantee string

const (
	Content        Guarantee = "content"         // unchanged since it was signed
	Authentication Guarantee = "authentication"  // signed with the key of the actor that it names, in the actor's role
	NonRepudiation Guarantee = "non_repudiation" // only the actor can have signed it
	Configuration  Guarantee = "configuration"   // of what a model made: it states which model and settings, as signed
	Time           Guarantee = "time"            // it existed at a time that an authority vouches for
	Order          Guarantee = "order"           // it has its place in a log
	Before         Guarantee = "before"          // it existed before the time that the reader asks about
	Chain          Guarantee = "chain"           // of records that follow each other: they do, as they say, and none is left out
	HumanReview    Guarantee = "human_review"    // of reviews and deliveries: a person decided on this, and this was delivered
	GivenOn        Guarantee = "given_on"        // of deliveries without a review: they give on unchanged what they say, and no person is claimed to have decided
	Completeness   Guarantee = "completeness"    // of a trial: every act is there, once, in its place; by what the reader knows of the log: nothing was dropped
	Simultaneity   Guarantee = "simultaneity"    // of a trial: no juror saw what the same round said
	Verdict        Guarantee = "verdict"         // of a trial: the judgment follows from the votes
	Enclosures     Guarantee = "enclosures"      // of an evidence package: whatever lies in it belongs to what is signed
	Envelope       Guarantee = "envelope"        // of records in an envelope: the operator put them in
)

// A Finding is one answer, about one record or about all of them.
type Finding struct {
	Guarantee Guarantee `json:"guarantee"`
	Status    Status    `json:"status"`
	Rule      string    `json:"rule,omitzero"`   // the rule that decided it
	Record    string    `json:"record,omitzero"` // record id; "": all records
	Reason    string    `json:"reason"`
}

// A Report is what verification found.
type Report struct {
	Format     string         `json:"format"`
	Kind       Kind           `json:"kind"`
	Records    int            `json:"records"`
	Trust      string         `json:"trust,omitzero"`      // fingerprint of the trust file; "": none was given
	Log        *LogState      `json:"log,omitzero"`        // the log that the file was cut from; nil: no checkpoint that counts
	Mended     bool           `json:"mended,omitzero"`     // the file was not in its one form, and was read in it
	Outcome    Status         `json:"outcome"`             // the worst answer among the required guarantees
	Guarantees []Finding      `json:"guarantees"`          // one for each guarantee that applies
	Details    []Finding      `json:"details"`             // every answer that is not "proved", about one record or about all; of very many, of each record the worst under each guarantee
	LeftOut    int            `json:"left_out,omitzero"`   // how many further answers there was no room for in Details
	Uncounted  []Guarantee    `json:"uncounted,omitempty"` // what is not proved, and is not among what the outcome rests on
	Times      []trust.TimeOf `json:"times"`               // the proved time of each record
	NotShown   []string       `json:"does_not_prove"`

	// TrialOutcome is what a trial came to: what the jury judged, and what people decided on it. nil: it is no trial, or its
	// verdict is not proved. A decision that is not proved under human_review leaves it open.
	TrialOutcome *jury.TrialOutcome `json:"trial_outcome,omitzero"`
}

// Kind is what was checked.
type Kind string

const (
	OneRecord   Kind = "record"
	ManyRecords Kind = "bundle"
	Trial       Kind = "trial"

	SeveralFiles Kind = "files" // what files of one log say together; each has a report of its own

	OneCheckpoint Kind = "checkpoint" // of a log, by itself
	Package       Kind = "package"    // an Evidence Package of the Aletheia AI project
)

// MendedMeans says, for people, what it means that a file was mended.
const MendedMeans = "This file is not in the form in which it was written: line ends, white space, a byte order mark, the order of members or the spelling of " +
	"strings and numbers are others. It was read as the JSON that it is, in its canonical form, over which all digests and signatures are."

// notShown is what a pass does not prove, in the audit model's words.
var notShown = []string{
	"that what was said is correct",
	"that anybody is legally responsible for it",
	"that it is safe or appropriate",
	"that the decision should be carried out",
}

// noTail is what a bundle does not prove either, unless its reader holds all of the log, or it has an end that is known.
const noTail = "that nothing came after the last record of a chain"

// required are the guarantees that a reader asks for unless told otherwise, where they apply. Non-repudiation is not
// among them: where the operator keeps the keys it cannot be had, and the report says so; nor is the configuration, which says
// something of a model only as far as its actor did. Of one record alone the review
// is not: what it decided on is another record, which its file cannot hold.
var required = map[Kind][]Guarantee{
	OneRecord:   {Content, Authentication, Time, Order, Before, Envelope},
	ManyRecords: {Content, Authentication, Time, Order, Before, Chain, HumanReview, GivenOn, Completeness, Envelope},
	Trial:       {Content, Authentication, Time, Order, Before, Chain, HumanReview, GivenOn, Completeness, Simultaneity, Verdict, Envelope},

	SeveralFiles: {Content, Authentication, Order, Chain, HumanReview, GivenOn},

	OneCheckpoint: {Order, Completeness},
	Package:       {Content, Authentication, Time, Before}, // it can be in no log, and most of it was never signed: the report says so
}

// Guarantees lists every guarantee, in the order in which they are reported.
func Guarantees() []Guarantee { return slices.Clone(allGuarantees) }

// WhyUncounted says, for people, why a guarantee does not count for the outcome of such a file.
func WhyUncounted(kind Kind, g Guarantee) string {
	switch {
	case g == NonRepudiation:
		return "where the operator keeps the keys it cannot be had"
	case g == Configuration:
		return "what a record says of its model is its actor's word in any case"
	case g == HumanReview:
		return "what was reviewed is another record, which is not in this file"
	case kind == Package:
		return "such a package cannot have it"
	}
	return "it is not asked of such a file"
}

// order in which guarantees are reported.
var allGuarantees = []Guarantee{Content, Authentication, NonRepudiation, Configuration, Time, Before, Order, Chain, HumanReview, GivenOn, Completeness, Simultaneity, Verdict, Enclosures, Envelope}

// Of returns the answer for a guarantee; a guarantee that was not asked is NotProved.
func (r *Report) Of(g Guarantee) Finding {
	for _, f := range r.Guarantees {
		if f.Guarantee == g {
			return f
		}
	}
	return Finding{Guarantee: g, Status: NotProved, Reason: "not asked"}
}

// beyondOneFile is what the records of other files can prove.
var beyondOneFile = []Guarantee{Chain, HumanReview, GivenOn}

// OpenAlone reports whether a file, verified with these Options.Require, is not proved for nothing but what its records say of records that
// it does not hold. Then Together can prove it.
func (r *Report) OpenAlone(require ...Guarantee) bool {
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

// TimeOf returns the proved time of a record.
func (r *Report) TimeOf(recordID string) (trust.TimeOf, bool) {
	i := slices.IndexFunc(r.Times, func(t trust.TimeOf) bool { return t.Record == recordID })
	if i < 0 {
		return trust.TimeOf{}, false
	}
	return r.Times[i], true
}

// For returns the answer for one record: the worst that was found of it, or of all records together. A guarantee that
// was not asked is NotProved.
func (r *Report) For(g Guarantee, recordID string) Finding {
	answer := r.Of(g)
	if answer.Status == Proved || !slices.ContainsFunc(r.Details, func(f Finding) bool { return f.Guarantee == g }) {
		return answer
	}
	return worstOf(r.Details, g, recordID)
}

// worstOf is the worst of these findings about a record, or about all; if there is none, that it is proved.
func worstOf(details []Finding, g Guarantee, recordID string) Finding {
	answer := Finding{Guarantee: g, Status: Proved, Record: recordID}
	for _, f := range details {
		if f.Guarantee == g && (f.Record == recordID || f.Record == "") && f.Status.worse(answer.Status) {
			answer = f
		}
	}
	return answer
}

// Marshal returns the report as JSON.
func (r *Report) Marshal() ([]byte, error) {
	return json.Marshal(r, jsontext.Multiline(true), jsontext.WithIndent("  "))
}

// Write writes the report as Marshal has it, and never holds all of that: a report on a large file is large, too.
func (r *Report) Write(w io.Writer) error {
	return json.MarshalWrite(w, r, jsontext.Multiline(true), jsontext.WithIndent("  "))
}

// damaged is the report on a file that says that it is jurat's and cannot be opened.
func damaged(kind Kind, record string, o Options, err error) *Report {
	r := &Report{Format: ReportFormat, Kind: kind, Trust: fingerprint(o.Trust), NotShown: notShown, Details: []Finding{}, Times: []trust.TimeOf{}}
	for _, g := range required[kind] {
		if g != Before && g != Chain && g != HumanReview && g != GivenOn && g != Envelope && (g != Completeness || kind == Trial) { // which apply to what a file holds
			r.Guarantees = append(r.Guarantees, Finding{Guarantee: g, Status: NotProved, Reason: "the file cannot be opened"})
		}
	}
	r.Guarantees[0] = Finding{Guarantee: Content, Status: Refuted, Rule: "form", Record: record, Reason: err.Error()}
	r.Outcome = Refuted
	return r
}

// unread is the report on what the program itself failed on: of that nothing is known, and so nothing is proved.
func unread(kind Kind, o Options, err error) *Report {
	r := damaged(kind, "", o, err)
	for i := range r.Guarantees {
		r.Guarantees[i] = Finding{Guarantee: r.Guarantees[i].Guarantee, Status: NotProved, Reason: err.Error()}
	}
	r.Outcome = NotProved
	return r
}

func fingerprint(t *trust.Trust) string {
	if t == nil {
		return ""
	}
	digest, err := t.Fingerprint()
	if err != nil {
		return ""
	}
	return digest.String()
}

func recordName(r *evidence.Record) string { return r.Payload.RecordID }
