package reputation

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/jury"
)

// FactsFormat is the version of the format of facts.
const FactsFormat = "jurat/reputation-facts/v1"

// Facts are what a reader's verification found, in a form that another implementation can compute from. They hold
// everything that the View depends on, and nothing that the reader did not verify or decide. Lists are in any order.
// Times are seconds since 1970, rounded down; 0: none is proved.
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
	Own          []evidence.Digest `json:"own"`    // those of the exhibits that name the agent, as the submission shows them; those that may, where its text is withheld
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

// ParseFacts reads facts. It is strict.
func ParseFacts(doc []byte) (*Facts, error) {
	f := new(Facts)
	if err := json.Unmarshal(doc, f, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("reading facts: %w", evidence.Steady(err))
	}
	return f, f.check()
}

// Marshal writes facts in canonical form.
func (f *Facts) Marshal() ([]byte, error) { return canonical(f) }

func (f *Facts) check() error {
	if f.Format != FactsFormat {
		return fmt.Errorf("reading facts: format is %q, want %q", evidence.Abbreviate(f.Format), FactsFormat)
	}
	if f.Policy == nil {
		return fmt.Errorf("reading facts: the policy is missing")
	}
	f.Policy.tidy()
	if err := f.Policy.check(); err != nil {
		return fmt.Errorf("reading facts: policy: %w", err)
	}
	if f.Identity.Name == "" {
		return fmt.Errorf("reading facts: the identity has no name")
	}
	if err := f.checkValues(); err != nil {
		return fmt.Errorf("reading facts: %w", err)
	}
	return nil
}

// Limits of what facts hold: the last second of the year 9999, and the largest number that JSON holds exactly.
const (
	lastSecond = 253_402_300_799
	maxExact   = 1<<53 - 1
)

// checkValues refuses what no verification finds.
func (f *Facts) checkValues() error {
	times, numbers := []int64{f.At}, []int64{}
	positions := []jury.Position{}
	for _, k := range f.Identity.Keys {
		times = append(times, k.From, k.To, k.Revoked)
	}
	for _, r := range f.all() {
		times, numbers = append(times, r.Time, r.Independent), append(numbers, r.Index)
	}
	for i := range f.Trials {
		numbers, positions = append(numbers, f.Trials[i].CaseSeq), append(positions, f.Trials[i].Position)
		for _, d := range f.Trials[i].Decisions {
			positions = append(positions, d.Position)
		}
	}
	for _, r := range f.Revocations {
		times = append(times, r.From)
	}
	for _, c := range f.Counted {
		numbers = append(numbers, c.Index, c.Seq)
		if c.Of != OfActor && c.Of != OfSubject {
			return fmt.Errorf("counted: %q is neither %q nor %q", evidence.Abbreviate(string(c.Of)), OfActor, OfSubject)
		}
	}
	for i := range f.Logs {
		numbers = append(numbers, f.Logs[i].Size, f.Logs[i].Counts)
	}
	for _, t := range times {
		if t < 0 || t > lastSecond {
			return fmt.Errorf("a time of %d seconds is not between 1970 and 9999", t)
		}
	}
	for _, n := range numbers {
		if n < 0 || n > maxExact {
			return fmt.Errorf("the number %d is out of range", n)
		}
	}
	for _, p := range positions {
		if p != "" && badness[p] == 0 {
			return fmt.Errorf("unknown position %q", evidence.Abbreviate(string(p)))
		}
	}
	return nil
}

// when is the time that counts by the policy.
func (p *Policy) when(s Standing) int64 {
	if p.Clock == Independent {
		return s.Independent
	}
	return s.Time
}

// seconds rounds a time down to whole seconds since 1970; 0 for the zero time. Times before 1970 become its first second,
// and those after 9999 the last of that year.
func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return min(max(t.Unix(), 1), lastSecond)
}

// is reports whether a record was sealed by the identity, and not by another agent of the same name. Of what a recorder saw, the same source
// must stand behind the recorder's keys: it is believed in whose act it was.
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
