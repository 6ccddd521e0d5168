package verify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/verify/trust"
)

// Level says on whose word a proof rests. The empty Level is none: not even the signatures are proved.
type Level string

const (
	LevelSigned      Level = "signed"                // unchanged since it was signed with its actor's key; time and place in a log are open
	LevelOperator    Level = "operator"              // all is proved, and a part of it as far as the operator's word
	LevelIndependent Level = "independent"           // proved without the operator's word
	LevelQualified   Level = "independent-qualified" // likewise, and a qualified trust service by the EU's lists stamped each record
)

// Levels returns every level but the empty one, the lowest first.
func Levels() []Level { return []Level{LevelSigned, LevelOperator, LevelIndependent, LevelQualified} }

// Keys says who keeps the keys that signed; "": the signatures are not proved.
type Keys string

const (
	KeysByOperator Keys = "operator" // the operator keeps at least one of them
	KeysByCA       Keys = "ca"       // the actors keep them, and a CA of the trust file says whose at least one of them is
	KeysByOwner    Keys = "owner"    // the actors keep them, and the trust file itself says whose they are
)

// Clock says whose clock proves when the records existed; "": the time of a record is not proved. A record with several time stamps
// counts by the best of them, and a file by the worst of its records.
type Clock string

const (
	OperatorClock    Clock = "operator"
	IndependentClock Clock = "independent"
	QualifiedClock   Clock = "qualified" // independent, and a qualified service by the EU's trusted lists
)

// Log says who besides its operator saw the log's history; "": no place in a log is proved.
type Log string

const (
	LogAlone     Log = "alone"                  // only the operator
	LogCompared  Log = "compared"               // the reader, who compared it with a checkpoint from elsewhere
	LogWitnessed Log = "witnessed"              // the reader's witnesses, who cosigned its checkpoint
	LogBoth      Log = "witnessed_and_compared" // both
)

// A Party is a role whose keys signed, who keeps them, and by whose word.
type Party struct {
	Role    evidence.Role `json:"role"`
	Custody trust.Custody `json:"custody"`
	By      trust.Source  `json:"by"`
}

// A Basis is what the proof of one file rests on: keys, clocks and the log, each apart. All follows from the reader's trust file and from what was
// proved by it, and nothing from what the file says of itself.
type Basis struct {
	Level   Level   `json:"level,omitzero"` // the highest that it reaches
	Keys    Keys    `json:"keys,omitzero"`
	Time    Clock   `json:"time,omitzero"`
	Log     Log     `json:"log,omitzero"`
	Parties []Party `json:"parties,omitempty"` // of Keys, each once, sorted
	Unmet   []Part  `json:"unmet,omitempty"`   // of what the reader demands
}

// Part is a part of a basis.
type Part string

const (
	PartKeys Part = "keys"
	PartTime Part = "time"
	PartLog  Part = "log"
)

// The ranks are places in lists from weak to strong, which the empty value precedes.
func (k Keys) rank() int           { return slices.Index([]Keys{KeysByOperator, KeysByCA, KeysByOwner}, k) }
func (k Keys) atLeast(o Keys) bool { return k.rank() >= o.rank() }
func (c Clock) rank() int {
	return slices.Index([]Clock{OperatorClock, IndependentClock, QualifiedClock}, c)
}
func (c Clock) atLeast(o Clock) bool { return c.rank() >= o.rank() }

// seen reports whether anybody but the operator saw the log.
func (l Log) seen() bool { return l != "" && l != LogAlone }

// atLeast: the two ways of seeing a log do not replace each other.
func (l Log) atLeast(o Log) bool {
	return l == o || o == "" || o == LogAlone && l != "" || l == LogBoth
}

// A Need is what a reader demands of the basis of a proof. The zero Need is the level operator: what counts by default.
type Need struct {
	Level Level `json:"level,omitzero"`
	Keys  Keys  `json:"keys,omitzero"`
	Time  Clock `json:"time,omitzero"`
	Log   Log   `json:"log,omitzero"`
}

// OfClock reports whether the operator's clock is not enough. Then it answers nothing else either.
func (n Need) OfClock() bool {
	return n.Level == LevelIndependent || n.Level == LevelQualified || n.Time.atLeast(IndependentClock)
}

// Unmet returns the parts of a basis that fall short of the need. logOnly: it is of a checkpoint, which has no keys and times.
func (n Need) Unmet(b *Basis, logOnly bool) []Part {
	if n.check() != nil { // words that are none are met by nothing
		return []Part{PartKeys, PartTime, PartLog}
	}
	var unmet []Part
	independent := n.Level == LevelIndependent || n.Level == LevelQualified
	if !logOnly && (!b.Keys.atLeast(n.Keys) || independent && !b.Keys.atLeast(KeysByCA)) {
		unmet = append(unmet, PartKeys)
	}
	if !logOnly && (!b.Time.atLeast(n.Time) || independent && !b.Time.atLeast(IndependentClock) || n.Level == LevelQualified && b.Time != QualifiedClock) {
		unmet = append(unmet, PartTime)
	}
	if !b.Log.atLeast(n.Log) || independent && !b.Log.seen() {
		unmet = append(unmet, PartLog)
	}
	return unmet
}

// With returns a need that demands what either does. An error names what they contradict each other about: a level is one.
func (n Need) With(o Need) (Need, error) {
	if n.Level != "" && o.Level != "" && n.Level != o.Level {
		return n, fmt.Errorf("two levels, %s and %s: name the one that you need", n.Level, o.Level)
	}
	n.Level = cmp.Or(o.Level, n.Level)
	if o.Keys.rank() > n.Keys.rank() {
		n.Keys = o.Keys
	}
	if o.Time.rank() > n.Time.rank() {
		n.Time = o.Time
	}
	if !n.Log.atLeast(o.Log) {
		if n.Log.seen() {
			o.Log = LogBoth
		}
		n.Log = o.Log
	}
	return n, nil
}

// IsNeed reports whether a text is a level, or a demand on a part of the basis such as time=independent.
func IsNeed(text string) bool {
	part, _, is := strings.Cut(text, "=")
	return slices.Contains(Levels(), Level(text)) || is && slices.Contains([]Part{PartKeys, PartTime, PartLog}, Part(part))
}

// ParseNeed reads a level, or a demand on a part of the basis. Its error names the part, and the words that it can have.
func ParseNeed(text string) (Need, error) {
	part, value, is := strings.Cut(text, "=")
	if !is {
		n := Need{Level: Level(text)}
		return n, n.check()
	}
	var n Need
	switch Part(part) {
	case PartKeys:
		n.Keys = Keys(value)
	case PartTime:
		n.Time = Clock(value)
	case PartLog:
		n.Log = Log(value)
	default:
		return n, fmt.Errorf("%q: want a level (%v), or keys=…, time=… or log=…", text, Levels())
	}
	if value == "" {
		return n, fmt.Errorf("%s is empty", part)
	}
	return n, n.check()
}

// check refuses words that are none.
func (n Need) check() error {
	return cmp.Or(oneOf("level", n.Level, Levels()...), oneOf("keys", n.Keys, KeysByOperator, KeysByCA, KeysByOwner),
		oneOf("time", n.Time, OperatorClock, IndependentClock, QualifiedClock), oneOf("log", n.Log, LogAlone, LogCompared, LogWitnessed, LogBoth))
}

// oneOf refuses a value that is neither empty nor in the list.
func oneOf[T ~string](name string, value T, list ...T) error {
	if value == "" || slices.Contains(list, value) {
		return nil
	}
	return fmt.Errorf("%s is %q: want one of %v", name, value, list)
}

// PolicyFormat is the version of the format of policy files.
const PolicyFormat = "jurat/policy/v1"

// MaxPolicy is the size of the largest policy file, in bytes.
const MaxPolicy = 1 << 20

// PolicyTerms is a reader's file that says how much must be proved. It comes from the reader, never from the file under verification.
type PolicyTerms struct {
	Format string `json:"format"`
	Name   string `json:"name,omitzero"` // for people; "": it has none

	Strict bool `json:"strict,omitzero"` // as the named policy
	Need

	Require []Guarantee    `json:"require,omitempty"` // count for the outcome, too
	Demands []PolicyDemand `json:"demands,omitempty"` // of values

	fingerprint evidence.Digest
}

// PolicyDemand is a demand on the values of records, as 'jurat verify --require' takes it.
type PolicyDemand struct {
	Demand   string `json:"demand"`
	Audience string `json:"audience,omitzero"`
}

// PolicyFile says which policy file a report was made under.
type PolicyFile struct {
	Name        string          `json:"name,omitzero"`
	Fingerprint evidence.Digest `json:"fingerprint"`
}

// ParsePolicy reads a policy file. It returns an error for unknown members, for words that are none, and for a file that demands
// nothing.
func ParsePolicy(doc []byte) (*PolicyTerms, error) {
	form, err := evidence.Canonical(evidence.CutMark(doc))
	if err != nil {
		return nil, fmt.Errorf("reading policy: %w", err)
	}
	p := &PolicyTerms{fingerprint: evidence.DigestOf(form)}
	var said map[string]any
	if err := errors.Join(json.Unmarshal(form, p, json.RejectUnknownMembers(true)), json.Unmarshal(form, &said)); err != nil {
		return nil, fmt.Errorf("reading policy: %w", evidence.Steady(err))
	}
	for _, name := range []string{"level", "keys", "time", "log"} {
		if value, there := said[name]; there && (value == nil || value == "") { // a demand that was left blank is not one that was left out
			return nil, fmt.Errorf("reading policy: %s is empty: write a word, or leave it out", name)
		}
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("reading policy: %w", err)
	}
	return p, nil
}

func (p *PolicyTerms) check() error {
	if p.Format != PolicyFormat {
		return fmt.Errorf("format is %q, want %q", p.Format, PolicyFormat)
	}
	if err := p.Need.check(); err != nil {
		return err
	}
	for i, g := range p.Require {
		if !slices.Contains(Guarantees(), g) {
			return fmt.Errorf("require/%d: unknown guarantee %q: want one of %v", i, g, Guarantees())
		}
		if slices.Contains(p.Require[:i], g) {
			return fmt.Errorf("require/%d: %s is there twice", i, g)
		}
	}
	for i, d := range p.Demands {
		if d.Demand == "" {
			return fmt.Errorf("demands/%d: demand is empty", i)
		}
	}
	if !p.Strict && p.Need == (Need{}) && len(p.Require) == 0 && len(p.Demands) == 0 {
		return errors.New("it demands nothing: set level, keys, time, log, strict, require or demands, or leave the policy out")
	}
	return nil
}

// Demanded is what the reader demands besides what counts by default.
type Demanded struct {
	Need
	Guarantees []Guarantee `json:"guarantees,omitempty"`
	File       *PolicyFile `json:"policy_file,omitzero"` // nil: it came from no policy file, or not all of it
}

// demanded returns what the reader demands; nil: nothing.
func (o *Options) demanded() *Demanded {
	if o.Need == (Need{}) && len(o.Require) == 0 && o.PolicyFile == nil {
		return nil
	}
	return &Demanded{Need: o.Need, Guarantees: o.Require, File: o.PolicyFile}
}

// Adopt takes over what a policy file demands, besides what the reader demands already. An error names the demand that cannot be read.
func (o *Options) Adopt(p *PolicyTerms) error {
	var demands []*Demand
	for i, d := range p.Demands {
		demand, err := ParseDemand(d.Demand)
		if err != nil {
			return fmt.Errorf("demands/%d: %w", i, err)
		}
		demand.Audience = d.Audience
		demands = append(demands, demand)
	}
	need, err := p.Need.With(o.Need)
	if err != nil {
		return err
	}
	o.Need = need
	if p.Strict {
		o.Policy = Strict
	}
	o.Require, o.Demands, o.PolicyFile = append(slices.Clone(p.Require), o.Require...), append(demands, o.Demands...), &PolicyFile{Name: p.Name, Fingerprint: p.fingerprint}
	return nil
}

// party notes who keeps the keys of a role. The list is sorted, with each party once.
func (c *check) party(identified []trust.Identified) {
	order := func(a, b Party) int {
		roles := evidence.Roles()
		return cmp.Or(cmp.Compare(slices.Index(roles, a.Role), slices.Index(roles, b.Role)), cmp.Compare(a.Custody, b.Custody), cmp.Compare(a.By, b.By))
	}
	for _, i := range identified {
		p := Party{Role: i.Role, Custody: i.Custody, By: i.By}
		if at, known := slices.BinarySearchFunc(c.parties, p, order); !known {
			c.parties = slices.Insert(c.parties, at, p)
		}
	}
}

// rate fills in what the proof rests on. What the reader demands of that counts for the outcome.
func (c *check) rate(r *Report) {
	if c.kind == SeveralFiles {
		return
	}
	isProved := func(g Guarantee) bool { return !c.applies(g) || r.Of(g).Status == Proved }
	b, logOnly := &Basis{Log: c.basisOfLog(r)}, c.kind == OneCheckpoint // which has no signers and times
	signed := isProved(Content) && isProved(Authentication) && (!logOnly || isProved(Order))
	if signed && !logOnly {
		b.Keys, b.Parties, b.Time = c.basisOfKeys(r), c.parties, c.basisOfTime(r)
	}
	proved := !slices.ContainsFunc(Required(c.kind), func(g Guarantee) bool { return !isProved(g) }) &&
		!slices.ContainsFunc(r.Guarantees, func(f Finding) bool { return f.Status == Refuted })
	independent := logOnly || b.Keys.atLeast(KeysByCA) && b.Time.atLeast(IndependentClock) && len(c.ownWord) == 0
	switch {
	case !signed:
	case !proved:
		b.Level = LevelSigned
	case !independent || !b.Log.seen():
		b.Level = LevelOperator
	case b.Time != QualifiedClock:
		b.Level = LevelIndependent
	default:
		b.Level = LevelQualified
	}
	r.Basis = b
	if b.Unmet = c.options.Need.Unmet(b, logOnly); len(b.Unmet) > 0 && r.Outcome == Proved {
		r.Outcome = NotProved
	}
}

func (c *check) basisOfKeys(r *Report) Keys {
	switch byCA := func(p Party) bool { return p.By == trust.ByCA }; {
	case r.Of(NonRepudiation).Status != Proved:
		return KeysByOperator
	case slices.ContainsFunc(c.parties, byCA):
		return KeysByCA
	}
	return KeysByOwner
}

func (c *check) basisOfTime(r *Report) Clock {
	if r.Of(Time).Status != Proved || len(c.times) == 0 {
		return ""
	}
	weakest := QualifiedClock
	for _, t := range c.times {
		clock := OperatorClock
		switch independent := t.Clock == trust.Independent || t.Independent != nil; {
		case independent && t.Qualified != nil:
			clock = QualifiedClock
		case independent:
			clock = IndependentClock
		}
		if weakest.atLeast(clock) {
			weakest = clock
		}
	}
	return weakest
}

// basisOfLog says who saw the log. Entries alone are compared with the file's own checkpoint, which its sender chose.
func (c *check) basisOfLog(r *Report) Log {
	switch witnessed, compared := c.log.witnesses != "", c.known != nil && c.options.Checkpoint != ""; {
	case c.log.Checkpoint == nil || r.Of(Order).Status != Proved:
		return ""
	case witnessed && compared:
		return LogBoth
	case witnessed:
		return LogWitnessed
	case compared:
		return LogCompared
	}
	return LogAlone
}
