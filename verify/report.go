package verify

import (
	"cmp"
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
	NotProved Status = "not proved" // nothing shows that it is false, and a proof is missing
	Refuted   Status = "refuted"    // it is false
)

// Worse reports whether a is the worse answer.
func (a Status) Worse(b Status) bool { return a.Rank() > b.Rank() }

// Rank is 0 for Proved, and higher for what is worse.
func (a Status) Rank() int { return rank[a] }

var rank = map[Status]int{Proved: 0, NotProved: 1, Refuted: 2}

// Guarantee is a question that verification answers.
type Guarantee string

const (
	Content        Guarantee = "content"         // unchanged since it was signed
	Authentication Guarantee = "authentication"  // signed with the key of the actor that it names, in the actor's role
	NonRepudiation Guarantee = "non_repudiation" // only the actor can have signed it
	Configuration  Guarantee = "configuration"   // for model output: it states model and settings, as signed
	Vantage        Guarantee = "vantage"         // for what a recorder saw: these are the bytes, and this is what they say
	Time           Guarantee = "time"            // it existed at a time that an authority vouches for
	Order          Guarantee = "order"           // it has its place in a log
	Qualified      Guarantee = "qualified"       // that authority was a qualified trust service by the EU's trusted lists
	Property       Guarantee = "property"        // the proofs that it carries of hidden values hold
	Before         Guarantee = "before"          // it existed before the time that the reader asks about
	Chain          Guarantee = "chain"           // records of a chain follow each other as they say, and none is left out
	HumanReview    Guarantee = "human_review"    // for reviews and deliveries: a person decided on this text, and this text was delivered
	GivenOn        Guarantee = "given_on"        // for deliveries without a review: they pass on their text unchanged, and claim no person's decision
	Completeness   Guarantee = "completeness"    // for a trial: every act is there, once, in its place; of a known log: nothing was dropped
	Simultaneity   Guarantee = "simultaneity"    // for a trial: no juror saw what the same round said
	Verdict        Guarantee = "verdict"         // for a trial: the judgment follows from the votes
	Envelope       Guarantee = "envelope"        // for a record in a SCITT statement: who exported it
)

// Kind is the kind of file that was checked.
type Kind string

const (
	OneRecord   Kind = "record"
	ManyRecords Kind = "bundle"
	Trial       Kind = "trial"

	SeveralFiles Kind = "files" // the files of one log together; each has a report of its own

	OneCheckpoint Kind = "checkpoint" // a checkpoint of a log, by itself
)

// required are the guarantees that count by default, where they apply. NonRepudiation does not count: where the operator keeps the keys, it is
// impossible, and the report says so. Configuration does not: it is only the actor's statement about a model. Vantage does not: recorders seal bytes so
// that they can be withheld. Qualified does not: only some readers need it. Property does not: a file may carry any number of proofs, or none. For a
// single record, HumanReview does not: its file cannot hold the reviewed record.
var required = map[Kind][]Guarantee{
	OneRecord:   {Content, Authentication, Time, Order, Before, Envelope},
	ManyRecords: {Content, Authentication, Time, Order, Before, Chain, HumanReview, GivenOn, Completeness, Envelope},
	Trial:       {Content, Authentication, Time, Order, Before, Chain, HumanReview, GivenOn, Completeness, Simultaneity, Verdict, Envelope},

	SeveralFiles: {Content, Authentication, Order, Chain, HumanReview, GivenOn},

	OneCheckpoint: {Order, Completeness},
}

// Policy is a policy that has a name, and needs no file.
type Policy string

const (
	Default Policy = ""       // what required lists, where it applies
	Strict  Policy = "strict" // all that applies; each record's time by an independent clock; revocation asked about all that counts
)

// Guarantees returns every guarantee, in the order of the report.
func Guarantees() []Guarantee { return slices.Clone(allGuarantees) }

// whyUncounted says of guarantees that never count by default why not.
var whyUncounted = map[Guarantee]string{
	NonRepudiation: "it is impossible where the operator keeps the keys",
	Configuration:  "what a record says of its model is only its actor's word",
	Vantage:        "what a recorder saw is often withheld, and what telemetry tells nobody saw",
	Qualified:      "a time stamp is good evidence without being a qualified one",
	Property:       "proofs of properties are no part of what was signed",
	HumanReview:    "what it is about is another record, which is not in this file",
	GivenOn:        "what it is about is another record, which is not in this file",
}

// WhyUncounted explains to people why a guarantee does not count for the outcome of such a file.
func WhyUncounted(kind Kind, g Guarantee) string {
	if slices.Contains(required[kind], g) && whyUncounted[g] == "" {
		return "you require only the level signed"
	}
	return cmp.Or(whyUncounted[g], "it does not apply to such a file")
}

// allGuarantees is in the order of the report.
var allGuarantees = []Guarantee{Content, Authentication, NonRepudiation, Configuration, Vantage, Time, Qualified, Property, Before, Order, Chain, HumanReview, GivenOn, Completeness, Simultaneity, Verdict, Envelope}

// Required returns the guarantees that count by default for such a file, where they apply.
func Required(kind Kind) []Guarantee { return slices.Clone(required[kind]) }

// Counts reports whether a guarantee counts for the outcome of such a file, if it applies. By Strict all count but those that such a
// file cannot have.
func Counts(kind Kind, g Guarantee, policy Policy, level Level) bool {
	switch {
	case policy == Strict && kind != SeveralFiles && (kind != OneRecord || g != HumanReview):
		return true
	case level == LevelSigned:
		return g == Content || g == Authentication || g == Order && kind == OneCheckpoint
	case level == LevelQualified && g == Qualified, (level == LevelIndependent || level == LevelQualified) && g == NonRepudiation:
		return kind != OneCheckpoint && kind != SeveralFiles
	}
	return slices.Contains(required[kind], g)
}

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
	Details    []Finding      `json:"details"`             // all that is not "proved"; if too many, the worst of each record under each guarantee
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
	Basis *Basis `json:"basis,omitzero"`

	// TrialOutcome is the outcome of a trial: the jury's judgment and people's decisions on it. It is nil if the file
	// is no trial or its verdict is not proved. A decision that is not proved under human_review leaves the outcome
	// open.
	TrialOutcome *jury.TrialOutcome `json:"trial_outcome,omitzero"`
}

// MendedMeans explains to people what it means that a file was mended.
const MendedMeans = "This file is not in the form in which it was written: line ends, white space, a byte order mark, the order of members or the spelling " +
	"of strings and numbers differ. It was read as JSON, in its canonical form. All digests and signatures are over that form."

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
	return Counts(c.kind, g, c.options.Policy, c.options.Need.Level)
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
func (r *Report) TimeOf(recordID string) (trust.TimeOf, bool) { return r.Answers().TimeOf(recordID) }

// For returns the answer for one record: the worst finding about it or about all records. A guarantee that was not
// checked is NotProved.
func (r *Report) For(g Guarantee, recordID string) Finding { return r.Answers().For(g, recordID) }

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
	for _, g := range Required(kind) {
		if g != Before && g != Chain && g != HumanReview && g != GivenOn && g != Envelope && (g != Completeness || kind == Trial) { // those of a file's content
			r.Guarantees = append(r.Guarantees, Finding{Guarantee: g, Status: NotProved, Reason: "the file cannot be opened"})
		}
	}
	r.Guarantees[0] = Finding{Guarantee: Content, Status: Refuted, Rule: "form", Record: record, Reason: err.Error()}
	r.Outcome = Refuted
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

// Answers is an index of a report by record. It serves callers that ask about many records.
type Answers struct {
	report *Report
	times  map[string]int     // places in Times, by record id
	found  map[string][]int   // places in Details, by record id; under "", the findings about all records
	open   map[Guarantee]bool // guarantees that Details mentions
}

// Answers builds an index of the report. The caller must not change the report afterwards.
func (r *Report) Answers() *Answers {
	a := &Answers{report: r, times: make(map[string]int, len(r.Times)), found: map[string][]int{}, open: map[Guarantee]bool{}}
	for i, t := range r.Times {
		if _, known := a.times[t.Record]; !known {
			a.times[t.Record] = i
		}
	}
	for i, f := range r.Details {
		a.found[f.Record], a.open[f.Guarantee] = append(a.found[f.Record], i), true
	}
	return a
}

// TimeOf returns the same as Report.TimeOf.
func (a *Answers) TimeOf(recordID string) (trust.TimeOf, bool) {
	i, known := a.times[recordID]
	if !known {
		return trust.TimeOf{}, false
	}
	return a.report.Times[i], true
}

// For returns the same as Report.For.
func (a *Answers) For(g Guarantee, recordID string) Finding {
	answer := a.report.Of(g)
	if answer.Status == Proved || !a.open[g] {
		return answer
	}
	answer = Finding{Guarantee: g, Status: Proved, Record: recordID}
	places := slices.Concat(a.found[recordID], a.found[""])
	slices.Sort(places)
	for _, place := range places {
		if f := a.report.Details[place]; f.Guarantee == g && f.Status.Worse(answer.Status) {
			answer = f
		}
	}
	return answer
}

// The details of a report are bounded, because the sender of a file controls how many findings there are. The worst
// finding of each record under each guarantee always has room.
const (
	roomOfFile   = 32 << 20 // bytes of details for the whole file
	roomOfRecord = 512      // and per record, besides its worst finding under each guarantee
	sizeOfDetail = 80       // size of a Finding without its texts
	sizeOfText   = 64       // cost of remembering one text
)

// notTold replaces the reason of a finding when there is no room for its reason.
const notTold = "the reason is left out: this file has more reasons than a report can hold"

// details decides which findings the report keeps. It stores each reason once, however many records share it.
type details struct {
	room    int
	reasons map[string]string
	worst   map[question]int // ranks
	leftOut int
}

// question is one guarantee of one record.
type question struct {
	record    string
	guarantee Guarantee
}

// admit returns the finding in the form in which the report keeps it, or false if there is no room.
func (d *details) admit(f Finding) (Finding, bool) {
	asked := question{f.Record, f.Guarantee}
	worst := f.Record == "" || f.Status.Rank() > d.worst[asked]
	cost := 0
	if !worst {
		cost = sizeOfDetail
	}
	reason, known := d.reasons[f.Reason]
	if !known {
		reason, cost = f.Reason, cost+len(f.Reason)+sizeOfText
	}
	switch {
	case cost <= d.room:
		d.room -= cost
		d.reasons[reason] = reason
	case worst:
		reason = notTold
	default:
		d.leftOut++
		return f, false
	}
	f.Reason = reason
	if worst && f.Record != "" {
		d.worst[asked] = f.Status.Rank()
	}
	return f, true
}

// findings are what was found against guarantees.
type findings struct {
	list    []Finding
	details *details             // nil: for a single record, which needs no bound
	applies func(Guarantee) bool // nil: of no table asked with it that tells these apart
}

// keep adds findings as long as there is room.
func (f *findings) keep(found ...Finding) {
	for _, one := range found {
		kept := true
		if f.details != nil {
			one, kept = f.details.admit(one)
		}
		if kept {
			f.list = append(f.list, one)
		}
	}
}

// worst returns the worst finding about a guarantee; nil: none.
func (f *findings) worst(g Guarantee) *Finding {
	var worst *Finding
	for i := range f.list {
		one := &f.list[i]
		if one.Guarantee == g && (worst == nil || one.Status.Worse(worst.Status)) {
			worst = one
		}
	}
	return worst
}
