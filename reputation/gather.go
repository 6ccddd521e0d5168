package reputation

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/verify"
	"jurat/verify/trust"
)

// Config says about whom, and by whose trust and policy.
type Config struct {
	Agent   string         // the agent's name
	CA      string         // by name: the agent is the one that this CA certified; "": the one of the trust file's keys, or of its only CA for agents
	Policy  *Policy        // nil: DefaultPolicy
	Options verify.Options // the reader's trust, and what else verification needs; At is the moment of asking
}

// A Gatherer verifies files and keeps facts about one agent: of each record only what counts. One goroutine may use it at a time.
type Gatherer struct {
	options  verify.Options
	policy   *Policy
	identity Identity

	records     map[evidence.Digest]*RecordFact
	trials      map[evidence.Digest]*TrialFact
	reviews     map[evidence.Digest]*ReviewFact
	named       map[evidence.Digest]bool // judgments of trials whose submission shows what the exhibits are
	others      map[evidence.Digest]bool // records at hand that are no acts of the agent
	beside      map[evidence.Digest]bool // reviews that the log counts about the agent, and that decide on no trial
	revocations map[evidence.Digest]*RevocationFact
	counted     map[CountedFact]bool
	logs        map[string]*LogFact
}

// ErrIdentity says that the trust file does not say who the agent is.
var ErrIdentity = errors.New("the trust file does not say who this agent is")

// NewGatherer makes a Gatherer. Its error has ErrIdentity in its chain if the trust file names neither a key of the agent nor
// a CA for agents, or several CAs of which Config.CA must choose.
func NewGatherer(c Config) (*Gatherer, error) {
	if c.Options.Trust == nil {
		return nil, fmt.Errorf("%w: there is no trust file, so nothing is proved", ErrIdentity)
	}
	if c.Options.At.IsZero() {
		return nil, errors.New("the moment of asking is missing")
	}
	t, err := c.Options.Trust.Prepared()
	if err != nil {
		return nil, err
	}
	c.Options.Trust, c.Options.Policy, c.Options.Require, c.Options.Each, c.Options.Together = t, verify.Default, nil, nil, nil
	g := &Gatherer{options: c.Options, policy: c.Policy, records: map[evidence.Digest]*RecordFact{}, trials: map[evidence.Digest]*TrialFact{},
		reviews: map[evidence.Digest]*ReviewFact{}, named: map[evidence.Digest]bool{}, others: map[evidence.Digest]bool{}, beside: map[evidence.Digest]bool{}, revocations: map[evidence.Digest]*RevocationFact{}, counted: map[CountedFact]bool{}, logs: map[string]*LogFact{}}
	if g.policy == nil {
		g.policy = DefaultPolicy()
	}
	g.policy.tidy()
	if err := g.policy.check(); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	if g.identity, err = identityOf(t, c.Agent, c.CA); err != nil {
		return nil, err
	}
	return g, nil
}

// identityOf finds out who stands behind a name.
func identityOf(t *trust.Trust, name, ca string) (Identity, error) {
	if name == "" {
		return Identity{}, fmt.Errorf("%w: its name is empty", ErrIdentity)
	}
	me := Identity{Name: name, By: byKeys, Keys: []KeyOfRecord{}}
	if ca == "" && t.Knows(name, evidence.RoleAgent) {
		for _, k := range t.Keys {
			if k.Name == name && k.Role == evidence.RoleAgent {
				me.Keys = append(me.Keys, KeyOfRecord{KeyID: k.KeyID, From: seconds(k.NotBefore), To: seconds(k.NotAfter), Revoked: seconds(k.Revoked)})
			}
		}
		slices.SortFunc(me.Keys, func(a, b KeyOfRecord) int { return compareDigests(evidence.Digest(a.KeyID), evidence.Digest(b.KeyID)) })
		return me, nil
	}
	var may []trust.CA
	for _, one := range t.CAs {
		if slices.Contains(one.Roles, evidence.RoleAgent) && (ca == "" || one.Name == ca) {
			may = append(may, one)
		}
	}
	switch {
	case len(may) == 0 && ca != "":
		return me, fmt.Errorf("%w: it has no CA %q that may certify agents", ErrIdentity, ca)
	case len(may) == 0 && slices.ContainsFunc(t.Keys, func(k trust.Key) bool { return k.Role == evidence.RoleRecorder }):
		return me, nil // it may have sealed nothing itself
	case len(may) == 0:
		return me, fmt.Errorf("%w: it has no key of an agent %q, and no CA that may certify agents", ErrIdentity, name)
	case len(may) > 1 && ca == "":
		return me, fmt.Errorf("%w: it has no key of an agent %q, and several CAs that may certify agents: name one", ErrIdentity, name)
	case len(may) > 1:
		return me, fmt.Errorf("%w: it has several CAs named %q", ErrIdentity, ca)
	}
	me.By, me.CA = byCAs, may[0].Name
	return me, nil
}

// File verifies a file, and keeps what it proves about the agent. It returns the report, and the errors of verify.File.
func (g *Gatherer) File(doc []byte) (*verify.Report, error) {
	var records []*evidence.Record
	o := g.options
	o.Each = func(r *evidence.Record) { records = append(records, r) }
	report, err := verify.File(doc, o)
	if err != nil {
		return nil, err
	}
	g.take(report, records, func() *evidence.Bundle {
		b, _, err := evidence.ReadWholeBundle(doc)
		if err != nil {
			return nil // an envelope: its report alone counts
		}
		return b
	})
	return report, nil
}

// Bundle is File for a bundle in memory, such as one that a log has just proved.
func (g *Gatherer) Bundle(b *evidence.Bundle) *verify.Report {
	report := verify.Bundle(b, g.options)
	g.take(report, b.Records, func() *evidence.Bundle { return b })
	return report
}

// take keeps what a verified file says.
func (g *Gatherer) take(report *verify.Report, records []*evidence.Record, bundle func() *evidence.Bundle) {
	if report.Records != len(records) {
		return // it did not open
	}
	f := &taken{g: g, report: report, identities: map[signer]trust.Identified{}, times: map[string]trust.TimeOf{}, doubts: map[string][]verify.Finding{}}
	for _, one := range report.Identities {
		f.identities[signer{one.Role, one.Name, one.KeyID}] = one
	}
	for _, t := range report.Times {
		f.times[t.Record] = t
	}
	for _, d := range report.Details {
		f.doubts[d.Record] = append(f.doubts[d.Record], d)
	}
	if report.Log != nil {
		f.origin = report.Log.Origin
	}
	for _, r := range records {
		f.record(r)
	}
	if report.Kind == verify.Trial {
		f.trial(records, bundle)
	}
}

// Entries reads all entries that a checkpoint covers. The checkpoint must be signed by a log of the trust file, and the
// entries must have its root. Otherwise it returns an error, and nothing is known of the log's entries.
func (g *Gatherer) Entries(checkpoint string, entries io.Reader) error {
	known, err := g.options.Trust.OpenCheckpoint(checkpoint)
	if err != nil {
		return fmt.Errorf("reading the log's checkpoint: %w", err)
	}
	made := &LogFact{Origin: known.Origin, Size: known.Size, Counts: known.Size, Actor: []evidence.Digest{}, Subject: []evidence.Digest{}}
	actor, subject := evidence.ActorTag(evidence.RoleAgent, g.identity.Name), evidence.SubjectTag(evidence.RoleAgent, g.identity.Name)
	tree := new(operator.Frontier)
	err = operator.ReadEntries(entries, func(index int64, line []byte, e *evidence.Entry) error {
		if index == known.Size {
			return fmt.Errorf("%w: there are more than the %d that the checkpoint covers", operator.ErrEntries, known.Size)
		}
		tree.Add(tlog.RecordHash(line))
		if e.ActorSeq > 0 {
			made.Counts = min(made.Counts, index)
		} else if made.Counts < index {
			made.Wrong = true // a log that counts actors counts every record: this one could be a judgment about anybody
		}
		if e.Actor == actor && e.ActorSeq > 0 {
			made.Actor = append(made.Actor, e.Payload)
			made.Wrong = made.Wrong || e.ActorSeq != int64(len(made.Actor))
		}
		if e.Subject == subject && e.SubjectSeq > 0 {
			made.Subject = append(made.Subject, e.Payload)
			made.Wrong = made.Wrong || e.SubjectSeq != int64(len(made.Subject))
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case tree.Size() < known.Size:
		return fmt.Errorf("%w: there are %d, and the checkpoint covers %d", operator.ErrEntries, tree.Size(), known.Size)
	case tree.Root() != known.Root:
		return fmt.Errorf("%w: their root is not that of the checkpoint", operator.ErrEntries)
	}
	g.keepLog(made)
	return nil
}

// Log takes what a log's own index says of the agent, for a reader who keeps the log: the same as its Entries would.
func (g *Gatherer) Log(l LogFact) { g.keepLog(&l) }

func (g *Gatherer) keepLog(l *LogFact) {
	if known := g.logs[l.Origin]; known == nil || l.Size > known.Size {
		g.logs[l.Origin] = l
	}
}

// Facts returns what was gathered so far.
func (g *Gatherer) Facts() (*Facts, error) {
	fingerprint, err := g.options.Trust.Fingerprint()
	if err != nil {
		return nil, err
	}
	f := &Facts{Format: FactsFormat, At: seconds(g.options.At), Trust: fingerprint, Policy: g.policy, Identity: g.identity,
		Records: sorted(g.records, compareDigests), Trials: sorted(g.trials, compareDigests), Reviews: sorted(g.reviews, compareDigests),
		Revocations: sorted(g.revocations, compareDigests), Counted: []CountedFact{}, Logs: sorted(g.logs, strings.Compare)}
	for i := range f.Trials {
		if one := &f.Trials[i]; !g.named[one.Digest] { // the text is withheld: each exhibit may be the agent's, unless it is at hand and is not
			one.Own = filled(slices.DeleteFunc(slices.Clone(one.Exhibits), func(e evidence.Digest) bool { return g.others[e] }))
		}
	}
	f.Reviews = slices.DeleteFunc(f.Reviews, func(r ReviewFact) bool { // about no record of an agent of this name, nor, by the log, about one outside of trials
		return !g.beside[r.Digest] && !slices.ContainsFunc(r.Names, func(d evidence.Digest) bool { return g.records[d] != nil && g.records[d].ID == r.Original })
	})
	f.Counted = slices.SortedFunc(maps.Keys(g.counted), func(a, b CountedFact) int {
		return cmp.Or(cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.Of, b.Of), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Index, b.Index), compareDigests(a.Digest, b.Digest))
	})
	return f, nil
}

// sorted lists the values of a map in the order of their keys.
func sorted[K comparable, V any](m map[K]*V, compare func(a, b K) int) []V {
	list := []V{}
	for _, key := range slices.SortedFunc(maps.Keys(m), compare) {
		list = append(list, *m[key])
	}
	return list
}

// View computes the result of what was gathered so far.
func (g *Gatherer) View() (*View, error) {
	f, err := g.Facts()
	if err != nil {
		return nil, err
	}
	return f.View()
}

// PolicyFormat is the version of the policy format that this package reads and writes.
const PolicyFormat = "jurat/reputation-policy/v1"

// Limits of a policy.
const (
	Minimum    = 10 // no policy can show a number for less weight
	maxMinimum = 1_000_000
	maxListed  = 10_000 // of each list
)

// A Policy is what a reader decides beside the trust file: whose word counts.
type Policy struct {
	Format        string            `json:"format"`
	Minimum       int64             `json:"minimum"`        // below this weight there is no number; at least 10
	Clock         Clock             `json:"clock"`          // whose time counts
	RuleJuries    bool              `json:"rule_juries"`    // true: trials before rules give a number, too
	AfterOverturn bool              `json:"after_overturn"` // true: a verdict that a person overturned gives way to a later one
	Panels        []evidence.Digest `json:"panels"`         // only these panels of models count; empty: all
	SharedCAs     []string          `json:"shared_cas"`     // CAs that certify for many organisations: sharing one does not make two organisations neighbours
	Organisations []Organisation    `json:"organisations"`  // who belongs together, as far as the reader knows
}

// Clock says which proved times count.
type Clock string

const (
	AnyClock    Clock = "any"         // the earliest proved time
	Independent Clock = "independent" // the earliest by an authority whose clock is not the operator's
)

// An Organisation is a group of actors that do not judge each other: those named, and all whom one of its CAs certified.
type Organisation struct {
	Name   string   `json:"name"`
	Actors []Actor  `json:"actors"`
	CAs    []string `json:"cas"`
}

// An Actor is a name in a role.
type Actor struct {
	Role evidence.Role `json:"role"`
	Name string        `json:"name"`
}

// DefaultPolicy is the policy of a reader who brings none.
func DefaultPolicy() *Policy {
	return &Policy{Format: PolicyFormat, Minimum: Minimum, Clock: AnyClock,
		Panels: []evidence.Digest{}, SharedCAs: []string{}, Organisations: []Organisation{}}
}

// ParsePolicy reads a policy file. Members that are left out have their default. It refuses unknown members and values out of range.
func ParsePolicy(doc []byte) (*Policy, error) {
	form, err := evidence.Canonical(evidence.CutMark(doc))
	if err != nil {
		return nil, fmt.Errorf("reading policy: %w", err)
	}
	p := DefaultPolicy()
	p.Format = ""
	if err := json.Unmarshal(form, p, json.RejectUnknownMembers(true)); err != nil {
		if wrong, ok := errors.AsType[*json.SemanticError](err); ok && wrong.JSONPointer == "/half_life_days" {
			return nil, errors.New("reading policy: half_life_days: old records weigh as much as new ones; leave it out, and see the counts of each month in the result")
		}
		return nil, fmt.Errorf("reading policy: %w", evidence.Steady(err))
	}
	p.tidy()
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("reading policy: %w", err)
	}
	return p, nil
}

// tidy writes empty lists in their one form.
func (p *Policy) tidy() {
	p.Panels, p.SharedCAs, p.Organisations = filled(p.Panels), filled(p.SharedCAs), filled(p.Organisations)
	for i := range p.Organisations {
		o := &p.Organisations[i]
		o.Actors, o.CAs = filled(o.Actors), filled(o.CAs)
	}
}

func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func (p *Policy) check() error {
	switch {
	case p.Format != PolicyFormat:
		return fmt.Errorf("format is %q, want %q", evidence.Abbreviate(p.Format), PolicyFormat)
	case p.Minimum < Minimum || p.Minimum > maxMinimum:
		return fmt.Errorf("minimum is %d, want %d to %d: fewer observations give no number worth reading", p.Minimum, Minimum, maxMinimum)
	case p.Clock != AnyClock && p.Clock != Independent:
		return fmt.Errorf("clock is %q, want %q or %q", evidence.Abbreviate(string(p.Clock)), AnyClock, Independent)
	case max(len(p.Panels), len(p.SharedCAs), len(p.Organisations)) > maxListed:
		return fmt.Errorf("a list has more than %d members", maxListed)
	}
	for i, o := range p.Organisations {
		if err := o.check(); err != nil {
			return fmt.Errorf("organisations/%d: %w", i, err)
		}
	}
	return nil
}

func (o *Organisation) check() error {
	if o.Name == "" {
		return errors.New("name is empty")
	}
	if len(o.Actors)+len(o.CAs) == 0 {
		return errors.New("it has neither actors nor cas")
	}
	if max(len(o.Actors), len(o.CAs)) > maxListed {
		return fmt.Errorf("a list has more than %d members", maxListed)
	}
	for i, a := range o.Actors {
		if a.Name == "" || !slices.Contains(evidence.Roles(), a.Role) {
			return fmt.Errorf("actors/%d: want a name and a role of %v", i, evidence.Roles())
		}
	}
	return nil
}

// Fingerprint returns the digest of the policy's canonical form, in which nothing is left out. It fails for text that is not UTF-8.
func (p *Policy) Fingerprint() (evidence.Digest, error) {
	form, err := canonical(p)
	return evidence.DigestOf(form), err
}

func canonical(v any) ([]byte, error) {
	doc, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	form := jsontext.Value(doc)
	return form, form.Canonicalize()
}
