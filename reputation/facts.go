// Package reputation computes what verified records show about an agent's conduct. The result is a projection: it is never
// a record of its own, and everyone with the same records, trust file, policy and moment of asking gets the same bytes.
// docs/reputation.md has the rules.
//
// A [Gatherer] verifies files and keeps the [Facts]: which sealed records are the agent's, which trials judged them, what
// people decided, and what the log counted. [Facts.View] computes the [View] from them, and [View.Explain] traces each digit
// back to records.
//
// The package needs no clock, file or network.
//
// # One verdict is one observation
//
// A unit is a sealed record, so a record counts once, however often it is tried. But one trial can hear 10,000 records, and
// its verdict is then not 10,000 observations. So a verdict over m records gives each of them the weight 2^-s, with s the
// least number for which 2^s is at least m: together at most 1. If they failed, they weigh together at least what the
// heaviest of them weighs alone. Otherwise the submitter of a record that failed could hide it among idle ones.
//
// # The worst verdict stands
//
// The first verdict on a record counts, and a later one only if it is worse, or fails it among fewer. So submitting again gives nothing, and what
// the result is does not depend on the order in which files are read.
package reputation

import (
	"slices"
	"time"

	"jurat/evidence"
	"jurat/jury"
	"jurat/verify"
)

// FactsFormat is the version of the format of facts.
const FactsFormat = "jurat/reputation-facts/v1"

// Facts are what a reader's verification found: all that the View depends on, in a form that another implementation can compute from. Lists are in
// any order. Times are seconds since 1970, rounded down; 0: none is proved. A
// Gatherer makes and checks them.
type Facts struct {
	Format   string          `json:"format"`
	At       int64           `json:"at"` // the moment of asking
	Trust    evidence.Digest `json:"trust"`
	Policy   *Policy         `json:"policy"`
	Identity Identity        `json:"identity"`

	Records     []RecordFact     `json:"records"`     // of agents with the name
	Trials      []TrialFact      `json:"trials"`      // of agents with the name
	Reviews     []ReviewFact     `json:"reviews"`     // of records outside trials
	Revocations []RevocationFact `json:"revocations"` // the log's acts about keys of agents with the name
	Counted     []CountedFact    `json:"counted"`     // numbers that logs gave to records at hand
	Logs        []LogFact        `json:"logs"`        // whose entries the reader has
}

// An Identity is whom the result is about: not a name, but the keys or the CA that stand behind it in the trust file.
type Identity struct {
	Name string        `json:"name"`
	By   string        `json:"by"`   // "keys": the trust file has the agent's keys; "cas": a CA certified them
	CA   string        `json:"ca"`   // the CA's name; "": the identity is by keys
	Keys []KeyOfRecord `json:"keys"` // all that the trust file gives the agent, by key id
}

// A KeyOfRecord is one key of the agent's history.
type KeyOfRecord struct {
	KeyID   evidence.KeyID `json:"key_id"`
	From    int64          `json:"from"`    // 0: no limit
	To      int64          `json:"to"`      // 0: no limit
	Revoked int64          `json:"revoked"` // 0: it was not revoked
}

// Place is where a record stands in a log.
type Place struct {
	Digest evidence.Digest `json:"digest"` // of the record's payload
	ID     string          `json:"id"`
	Origin string          `json:"origin"` // of the log; "": its place is not proved
	Index  int64           `json:"index"`
}

// Standing says when a record is proved to have existed, and whether all is proved that must be for it to count.
type Standing struct {
	Time        int64  `json:"time"`
	Independent int64  `json:"independent"` // by a clock that is not the operator's
	Proved      bool   `json:"proved"`
	Rule        string `json:"rule"` // guarantee and rule of what is not proved; "": all is
}

// A RecordFact is a record that an agent of this name sealed, or an act of such an agent that a recorder saw.
type RecordFact struct {
	Place
	Standing
	By       string           `json:"by"` // as in Identity: who stands behind the keys that signed it
	CA       string           `json:"ca"`
	Keys     []evidence.KeyID `json:"keys"`              // that signed it
	Recorder string           `json:"recorder,omitzero"` // which saw the act and signed the record; "": the agent sealed it
}

// A TrialFact is a trial of an agent of this name.
type TrialFact struct {
	Place    // of the final judgment
	Standing // of the judgment; it is proved only if the whole trial is

	Chain        string            `json:"chain"`
	CaseSeq      int64             `json:"case_seq"` // how often the same evidence had been submitted, with this one; 0: not known
	Position     jury.Position     `json:"position"` // "": the verdict is not proved
	Degraded     bool              `json:"degraded"`
	Inconclusive bool              `json:"inconclusive"`
	Review       bool              `json:"review,omitzero"` // the verdict names a reason why a person must see it
	Panel        Panel             `json:"panel"`
	Transcript   bool              `json:"transcript"` // the evidence is no sealed records
	Exhibits     []evidence.Digest `json:"exhibits"`
	Own          []evidence.Digest `json:"own"`    // exhibits that name the agent, as the submission shows them; those that may, where its text is withheld
	Raters       []Rater           `json:"raters"` // submitter, jurors and judge
	Decisions    []DecisionFact    `json:"decisions"`
}

// A Panel is who sat. Two trials have the same panel if they have the same digest.
type Panel struct {
	Digest evidence.Digest `json:"digest"`
	Rules  bool            `json:"rules"` // every juror's seat is one of rules, not of a model
	Method jury.Method     `json:"method"`
	Seats  []string        `json:"seats"` // PROVIDER/MODEL of each juror, in the order of the seats
	Judge  string          `json:"judge"` // likewise; "": none
}

// A Rater is an actor that had a part in a judgment, and who stands behind its key by the reader's trust file.
type Rater struct {
	Role evidence.Role `json:"role"`
	Name string        `json:"name"`
	By   string        `json:"by"` // as in Identity; "": not known
	CA   string        `json:"ca"`
}

// A DecisionFact is a person's decision on a verdict, or on an earlier decision on it.
type DecisionFact struct {
	Place
	Standing
	Status   evidence.ApprovalStatus `json:"status"`
	Position jury.Position           `json:"position"` // "": it leaves the verdict open
	Reviewer Rater                   `json:"reviewer"`
}

// A ReviewFact is a person's decision on a record outside of a trial.
type ReviewFact struct {
	Place
	Standing
	Status   evidence.ApprovalStatus `json:"status"`
	Original string                  `json:"original"` // record id of what it is about
	Names    []evidence.Digest       `json:"names"`    // what it names by digest
	Reviewer Rater                   `json:"reviewer"`
}

// A RevocationFact is a log's act that revokes a key of an agent of this name.
type RevocationFact struct {
	Place
	Standing
	KeyID evidence.KeyID `json:"key_id"`
	From  int64          `json:"from"`
}

// A CountedFact is a number that a log gave to a record whose place in it is proved.
type CountedFact struct {
	Origin string          `json:"origin"`
	Index  int64           `json:"index"`
	Of     CountOf         `json:"of"`
	Seq    int64           `json:"seq"` // 0: the log did not count yet
	Digest evidence.Digest `json:"digest"`
}

// CountOf says what a log counted.
type CountOf string

const (
	OfActor   CountOf = "actor"   // the agent's records
	OfSubject CountOf = "subject" // judgments about the agent
)

// A LogFact is what the entries of a log say, which have the root of a checkpoint that the log signed.
type LogFact struct {
	Origin  string            `json:"origin"`
	Size    int64             `json:"size"`
	Counts  int64             `json:"counts"`  // the index of the first entry that is counted for an actor; size: none is
	Wrong   bool              `json:"wrong"`   // the log numbered the agent's records or the judgments falsely
	Actor   []evidence.Digest `json:"actor"`   // the agent's records, in the order of the log
	Subject []evidence.Digest `json:"subject"` // the judgments about the agent, likewise
}

// A stood is one record of the facts: what it is, where it stands, and what is proved of it.
type stood struct {
	what What
	*Place
	*Standing
}

// all lists every record of the facts, in their order.
func (f *Facts) all() (list []stood) {
	for i := range f.Records {
		list = append(list, stood{TheRecord, &f.Records[i].Place, &f.Records[i].Standing})
	}
	for i := range f.Trials {
		t := &f.Trials[i]
		list = append(list, stood{TheTrial, &t.Place, &t.Standing})
		for j := range t.Decisions {
			list = append(list, stood{TheDecision, &t.Decisions[j].Place, &t.Decisions[j].Standing})
		}
	}
	for i := range f.Reviews {
		list = append(list, stood{TheReview, &f.Reviews[i].Place, &f.Reviews[i].Standing})
	}
	for i := range f.Revocations {
		list = append(list, stood{TheRevocation, &f.Revocations[i].Place, &f.Revocations[i].Standing})
	}
	return list
}

// Marshal writes facts in canonical form.
func (f *Facts) Marshal() ([]byte, error) { return canonical(f) }

// lastSecond is that of the year 9999.
const lastSecond = 253_402_300_799

// when is the time that counts by the policy.
func (p *Policy) when(s Standing) int64 {
	if p.Clock == Independent {
		return s.Independent
	}
	return s.Time
}

// seconds rounds a time down to whole seconds since 1970, of the first second to the last of the year 9999; 0 for the zero time.
func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return min(max(t.Unix(), 1), lastSecond)
}

// is reports whether a record was sealed by the identity, and not by another agent of the name. Of what a recorder saw, the recorder is believed.
func (i *Identity) is(r *RecordFact) bool {
	if i.By != r.By || i.CA != r.CA {
		return false
	}
	return r.Recorder != "" || i.By != byKeys || !slices.ContainsFunc(r.Keys, func(id evidence.KeyID) bool {
		return !slices.ContainsFunc(i.Keys, func(k KeyOfRecord) bool { return k.KeyID == id })
	})
}

const (
	byKeys = "keys"
	byCAs  = "cas"
)

// Versions of the format of a View, and of the rules by which it is computed.
const (
	Format  = "jurat/reputation/v1"
	Formula = "wilson-z2/v1"
)

// A View is what a page shows, and `jurat reputation --json` prints. Its lists are sorted. Times are RFC 3339, in UTC and whole seconds.
type View struct {
	Format   string          `json:"format"`
	Formula  string          `json:"formula"`
	At       string          `json:"at"`
	Identity Identified      `json:"identity"`
	Trust    evidence.Digest `json:"trust"`  // fingerprint
	Policy   evidence.Digest `json:"policy"` // fingerprint
	Minimum  int64           `json:"minimum"`

	Outcome      verify.Status `json:"outcome"`      // the worst answer about completeness; refuted: no class has a number
	Completeness []LogView     `json:"completeness"` // a line for each log
	Coverage     Coverage      `json:"coverage"`
	Classes      []Class       `json:"classes"` // never mixed
	Incidents    []Incident    `json:"incidents"`
	Allegations  []Allegation  `json:"allegations"` // trials of transcripts, which anybody can write
	Approvals    int64         `json:"approvals"`   // records that people approved or changed outside of trials: shown, and never counted
	LeftOut      []Omission    `json:"left_out"`

	RestsOn []evidence.Digest `json:"rests_on"` // payload digests of all records that a number depends on
}

// Identified is whom the result is about.
type Identified struct {
	Name string    `json:"name"`
	By   string    `json:"by"`
	CA   string    `json:"ca,omitempty"`
	Keys []KeySpan `json:"keys"`
}

// A KeySpan is one key of the agent's history.
type KeySpan struct {
	KeyID   evidence.KeyID `json:"key_id"`
	From    string         `json:"from,omitempty"`
	To      string         `json:"to,omitempty"`
	Revoked string         `json:"revoked,omitempty"`
}

// A LogView says how far it is proved that nothing of a log is missing.
type LogView struct {
	Origin    string       `json:"origin"`
	Size      int64        `json:"size"` // entries that the reader has; 0: none
	Judgments Completeness `json:"judgments"`
	Records   Completeness `json:"records"`
}

// Completeness is the answer to whether all that a log counted is at hand.
type Completeness struct {
	Status  verify.Status `json:"status"`
	Rule    string        `json:"rule,omitempty"`
	Known   int64         `json:"known"`
	Total   int64         `json:"total"`             // as far as it is known
	Missing []int64       `json:"missing,omitempty"` // the first numbers that are missing, or that are at hand and not heeded; at most ten
}

// Coverage says how many of the records that the agent sealed itself were judged.
type Coverage struct {
	Judged  int64 `json:"judged"`
	Known   int64 `json:"known"`            // records of the agent that count
	Total   int64 `json:"total,omitzero"`   // as the logs' entries say; 0: not known for each log
	PerMyri int64 `json:"per_ten_thousand"` // of Total, or of Known if that is not known, rounded down
}

// ClassName is what kind of rater judged.
type ClassName string

const (
	People ClassName = "people"
	Models ClassName = "models" // juries with a model, each panel by itself
	Rules  ClassName = "rules"  // juries of rules alone
)

// A Class is what raters of one kind found. Different classes and panels are never added up.
type Class struct {
	Class   ClassName `json:"class"`
	Panel   *Panel    `json:"panel,omitempty"`
	Status  Status    `json:"status"`
	Bounds  *Bounds   `json:"bounds,omitempty"` // nil: there is no number
	Good    Sum       `json:"good"`
	Bad     Sum       `json:"bad"`
	Neither int64     `json:"undecided"` // units whose worst verdict is needs_review: they weigh nothing
	Judges  []Judge   `json:"judges"`
	Months  []Month   `json:"months"` // in order
	Units   []Unit    `json:"units"`
	Moves   []Move    `json:"moves"` // what moved the bounds, in the order of the verdicts
}

// Status says whether a class has a number, and why not.
type Status string

const (
	Scored     Status = "scored"
	TooFew     Status = "too few"
	Uncounted  Status = "not counted" // by the policy
	Incomplete Status = "refuted"     // judgments are missing
	Unproved   Status = "not proved"  // judgments are at hand whose place in the log is not proved
)

// A Month counts the units whose proved time is in it.
type Month struct {
	Month   string `json:"month"` // "2026-03"
	Good    int64  `json:"good"`
	Bad     int64  `json:"bad"`
	Neither int64  `json:"undecided"`
}

// A Sum is units of one outcome, and their weight in 1/1,048,576.
type Sum struct {
	Units  int64 `json:"units"`
	Weight int64 `json:"weight"`
}

// A Judge is an actor that had a part in verdicts.
type Judge struct {
	Role     evidence.Role `json:"role"`
	Name     string        `json:"name"`
	Verdicts int64         `json:"verdicts"`
}

// A Unit is a record of the agent that was judged.
type Unit struct {
	Digest   evidence.Digest `json:"digest"`
	ID       string          `json:"id"`
	Time     string          `json:"time"`   // proved
	Shared   int64           `json:"shared"` // the verdict's weight is divided by two so many times, as it is over several records
	Outcome  jury.Position   `json:"outcome"`
	Weight   int64           `json:"weight"`
	Verdicts []Verdict       `json:"verdicts"` // in order
}

// A Verdict is one verdict on a unit.
type Verdict struct {
	Record   evidence.Digest `json:"record"` // the judgment, a person's decision on it, or a rejection
	At       string          `json:"at"`
	Position jury.Position   `json:"position"`
	CaseSeq  int64           `json:"case_seq,omitzero"`
	Stands   bool            `json:"stands"`             // this one counts
	SetAside bool            `json:"set_aside,omitzero"` // a person overturned it, and the policy lets a later one take its place
}

// A Move is a verdict that changed a class, and the bounds after it.
type Move struct {
	At     string          `json:"at"`
	Record evidence.Digest `json:"record"`
	Unit   evidence.Digest `json:"unit"`
	From   jury.Position   `json:"from,omitempty"`
	To     jury.Position   `json:"to"`
	Weight int64           `json:"weight"`
	Bounds *Bounds         `json:"bounds,omitempty"` // nil: too few by then
}

// An Incident is a key that was revoked. Records since do not count.
type Incident struct {
	KeyID  evidence.KeyID `json:"key_id"`
	From   string         `json:"from"`
	Source string         `json:"source"` // "trust": the reader's trust file; "log": an act of the operator
	Record string         `json:"record,omitempty"`
}

// An Allegation is a verdict on a transcript, and what a person decided on it. A transcript is only its submitter's word.
type Allegation struct {
	Record    evidence.Digest `json:"record"`
	ID        string          `json:"id"`
	At        string          `json:"at,omitempty"`
	Position  jury.Position   `json:"position"`          // the jury's
	Decided   jury.Position   `json:"decided,omitzero"`  // the last person's whose decision counts; needs_review: they left it open; "": none decided
	Reviewer  string          `json:"reviewer,omitzero"` // who that is
	Submitter string          `json:"submitter"`
	CaseSeq   int64           `json:"case_seq,omitzero"`
}

// An Omission is what does not count, and the rule by which it does not.
type Omission struct {
	What   What            `json:"what"`
	Record evidence.Digest `json:"record"`
	ID     string          `json:"id"`
	Rule   string          `json:"rule"`
	Actor  string          `json:"actor,omitempty"` // whom the rule is about: ROLE NAME
}

// What is the kind of record that was left out.
type What string

const (
	TheRecord     What = "record"
	TheTrial      What = "trial"   // the whole: neither verdict nor decisions count
	TheVerdict    What = "verdict" // of the jury; people's decisions can still count
	TheDecision   What = "decision"
	TheReview     What = "review"
	TheRevocation What = "revocation"
)

// Unsettled reports whether judgments have no proved place in a log, so that there is no number. With a later checkpoint there can be one.
func (v *View) Unsettled() bool {
	return slices.ContainsFunc(v.Completeness, func(l LogView) bool { return l.Judgments.Rule == ruleUnproved })
}

// Marshal writes the view in canonical form, and a line feed.
func (v *View) Marshal() ([]byte, error) {
	form, err := canonical(v)
	return append(form, '\n'), err
}

// Main returns the class for where only one number has room: of the juries of models the one with the most weight, else people; nil: none has one.
func (v *View) Main() (main *Class) {
	for i := range v.Classes {
		switch c := &v.Classes[i]; {
		case c.Bounds == nil || c.Class == Rules:
		case main == nil, c.Class == Models && (main.Class == People || c.Good.Weight+c.Bad.Weight > main.Good.Weight+main.Bad.Weight):
			main = c
		}
	}
	return main
}
