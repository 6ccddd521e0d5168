package reputation

import (
	"slices"

	"jurat/evidence"
	"jurat/jury"
	"jurat/verify"
)

// Versions of the format of a View, and of the rules by which it is computed.
const (
	Format  = "jurat/reputation/v1"
	Formula = "wilson-z2/v1"
)

// A View is what a page shows, and what `jurat reputation --json` prints. Its lists are sorted, so the same Facts give the
// same bytes. Times are RFC 3339, in UTC and whole seconds.
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

// Unsettled reports whether the view has judgments whose place in a log is not proved, so that it has no number. The same files with a
// later checkpoint can have one.
func (v *View) Unsettled() bool {
	return slices.ContainsFunc(v.Completeness, func(l LogView) bool { return l.Judgments.Rule == ruleUnproved })
}

// Marshal writes the view in canonical form, and a line feed.
func (v *View) Marshal() ([]byte, error) {
	form, err := canonical(v)
	return append(form, '\n'), err
}

// Main returns the class that stands for the view where only one number has room: of the juries of models the one with the
// most weight, and else people. It returns nil if none has a number.
func (v *View) Main() (main *Class) {
	for i := range v.Classes {
		c := &v.Classes[i]
		if c.Bounds != nil && c.Class == Models && (main == nil || c.Good.Weight+c.Bad.Weight > main.Good.Weight+main.Bad.Weight) {
			main = c
		}
	}
	for i := range v.Classes {
		if c := &v.Classes[i]; main == nil && c.Bounds != nil && c.Class == People {
			main = c
		}
	}
	return main
}
