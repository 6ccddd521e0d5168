package verify

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/verify/trust"
)

// Together collects the records of several files of one log, to check them against each other. The caller puts it
// into the Options of each file's verification. One goroutine may use it at a time. Together takes a file if nothing
// was found against its Order: then the log itself says where each record stands. A chain_id names a chain within one
// log, so files of two logs are kept apart.
type Together struct {
	options Options
	logs    map[string]*gathered // by origin

	exchanges exchangeMatcher
}

// NewTogether returns a Together for a reader with these Options.
func NewTogether(o Options) *Together {
	o.Together, o.Each, o.envelope = nil, nil, nil
	o.Checkpoint, o.Consistency, o.Entries, o.Demands, o.Before = "", nil, nil, nil, time.Time{} // each file was already held against them
	o.Require = slices.DeleteFunc(slices.Clone(o.Require), func(g Guarantee) bool { return !slices.Contains(Required(SeveralFiles), g) })
	return &Together{options: o, logs: map[string]*gathered{}}
}

// gathered holds the files of one log.
type gathered struct {
	files   int
	largest *operator.Checkpoint
	roots   map[int64]tlog.Hash // by size
	at      map[int64]*evidence.Record
	said    map[*evidence.Record]spoken
	found   map[Finding]bool // findings about content and authentication
	forked  map[int64]bool   // sizes for which there are two roots
	doubled []*evidence.Record
}

// take keeps the records of a verified file.
func (t *Together) take(c *check) {
	if t == nil || c.log.Checkpoint == nil || len(c.all) == 0 || c.worst(Order) != nil {
		return
	}
	g := t.logs[c.log.Origin]
	if g == nil {
		g = &gathered{roots: map[int64]tlog.Hash{}, at: map[int64]*evidence.Record{}, said: map[*evidence.Record]spoken{},
			found: map[Finding]bool{}, forked: map[int64]bool{}}
		t.logs[c.log.Origin] = g
	}
	g.files++
	if g.largest == nil || c.log.Size > g.largest.Size {
		g.largest = c.log.Checkpoint
	}
	if root, known := g.roots[c.log.Size]; known && root != c.log.Root {
		g.forked[c.log.Size] = true
	}
	g.roots[c.log.Size] = c.log.Root
	for _, r := range c.all {
		alone := *r
		withoutTexts(&alone) // also of a trial's acts: questions across files need only digests
		g.add(&alone, c.said[r])
	}
	for _, f := range c.list {
		if f.Guarantee == Content || f.Guarantee == Authentication {
			g.found[f] = true
		}
	}
}

// add keeps a record once, with everything that any of the files discloses of it.
func (g *gathered) add(r *evidence.Record, said spoken) {
	known := g.at[r.Log.Index]
	switch {
	case known == nil:
		g.at[r.Log.Index], g.said[r] = r, said
	case known.Digest != r.Digest:
		g.doubled = append(g.doubled, r)
	default:
		g.said[known] = spoken{Response: g.said[known].Response.Or(said.Response), Modified: g.said[known].Modified.Or(said.Modified), Names: said.Names}
	}
}

// Reports returns one report for each log with several files: what their records prove together. It is nil for a log
// whose files have nothing in common. A missing record refutes nothing here, because the reader need not bring all
// files.
func (t *Together) Reports() []*Report {
	var reports []*Report
	for _, origin := range slices.Sorted(maps.Keys(t.logs)) {
		if g := t.logs[origin]; g.files > 1 {
			c := g.check(t.options)
			if slices.ContainsFunc(c.all, chained) || slices.ContainsFunc(c.all, decides) || c.worst(Order) != nil {
				reports = append(reports, c.report())
			}
		}
	}
	return reports
}

func (g *gathered) check(o Options) *check {
	c := newCheck(o, SeveralFiles)
	c.log.Checkpoint, c.said = g.largest, g.said
	c.all = slices.SortedFunc(maps.Values(g.at), func(a, b *evidence.Record) int { return cmp.Compare(a.Log.Index, b.Log.Index) })
	place := map[string]int{}
	for i, r := range c.all {
		place[recordName(r)] = i
	}
	c.list = slices.SortedFunc(maps.Keys(g.found), func(a, b Finding) int {
		return cmp.Or(place[a.Record]-place[b.Record], cmp.Compare(a.Guarantee, b.Guarantee), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Reason, b.Reason))
	})
	c.notes[Content] = "every signature is valid over the canonical payload"
	c.notes[Authentication] = "every signature was made with the key that the trust file gives for the actor in this role"
	c.notes[Order] = "each file is of this log, and none contradicts another about it"
	ask(&c.findings, rulesOfFiles, nil, g)
	ask(&c.findings, rulesOfIDs, nil, c.all)
	c.graph = newGraph(c.all)
	c.tags()
	c.reviews()
	if c.applies(Chain) {
		c.chain()
	}
	return c
}

// Exchanges says which exchanges of messages between agents the files show from both sides, and which from one. It is nil unless both sides are among
// the files. It decides nothing about a file.
func (t *Together) Exchanges() *Exchanges {
	r := t.exchanges.Report()
	if r != nil {
		r.Trust = t.options.fingerprint()
	}
	return r
}

// exchange hands on what a recorder saw of an exchange. Only a record that is its recorder's takes part.
func (c *check) exchange(e examined, against *Finding) {
	if c.options.Together == nil {
		return
	}
	s := SightingOf(e.whole)
	if s == nil {
		return
	}
	if c.log.Checkpoint != nil && len(e.place.list) == 0 {
		s.Log = c.log.Origin
	}
	for _, t := range e.times {
		if s.Existed = &t.ProvedTime; t.Independent != nil {
			s.Existed = t.Independent
		}
	}
	for _, by := range e.whole.Payload.Signers {
		s.Keys = append(s.Keys, by.KeyID)
	}
	slices.SortFunc(s.Keys, func(a, b evidence.KeyID) int { return bytes.Compare(a[:], b[:]) })
	s.Owners = e.identified
	c.options.Together.exchanges.Take(s, whyNot(e.list, against))
}

// whyNot says why the record of an exchange proves nothing; "": it proves something.
func whyNot(found []Finding, against *Finding) string {
	for _, f := range found {
		if f.Guarantee == Content || f.Guarantee == Authentication {
			return fmt.Sprintf("%s is %s: %s", f.Guarantee, f.Status, f.Reason)
		}
	}
	if against != nil && against.Status == Refuted {
		return fmt.Sprintf("%s is %s: %s", Vantage, Refuted, against.Reason)
	}
	return ""
}

// exchangesFormat is the version of the report.
const exchangesFormat = "jurat/bilateral/v1"

// Bounds of a report. docs/recorder.md has the same numbers.
const (
	maxSightings = 100_000 // records that are compared
	maxListed    = 1_000   // of pairs, of differences and of lone records
)

// A Sighting is what the record of one recorder says of an exchange.
type Sighting struct {
	Log      string            `json:"log,omitzero"` // the origin of the log in which the record is proved to be; "": none
	Record   string            `json:"record"`
	Digest   evidence.Digest   `json:"digest"`
	Recorder string            `json:"recorder"`
	Keys     []evidence.KeyID  `json:"keys"` // that signed, sorted
	Agent    string            `json:"agent"`
	Side     evidence.Side     `json:"side"`
	Protocol string            `json:"protocol"`
	Upstream string            `json:"upstream,omitzero"`
	Request  evidence.Digest   `json:"request_sha256"`
	Response evidence.Digest   `json:"response_sha256,omitzero"` // zero: there was no answer
	Ended    evidence.Ended    `json:"ended"`
	Began    time.Time         `json:"began"`            // by the recorder's clock
	Existed  *trust.ProvedTime `json:"existed,omitzero"` // by when the record is proved to exist; nil: not proved

	Owners []trust.Identified `json:"-"` // who stands behind the keys
}

// SightingOf returns what a record says of an exchange of messages between agents; nil: it says nothing of one.
func SightingOf(r *evidence.Record) *Sighting {
	p := &r.Payload
	o := p.Observed
	if o == nil || o.Side == "" || o.Fidelity != evidence.ByBytes || o.Request == nil || o.Request.Bytes == 0 {
		return nil
	}
	s := &Sighting{Record: p.RecordID, Digest: r.Digest, Recorder: p.AgentID, Agent: o.Agent, Side: o.Side, Protocol: o.Protocol, Request: o.Request.SHA256, Ended: o.Ended}
	if o.Upstream != nil {
		s.Upstream = o.Upstream.Origin
	}
	if o.Response != nil && o.Response.Bytes > 0 && o.Ended == evidence.Complete {
		s.Response = o.Response.SHA256
	}
	s.Began, _ = evidence.ParseTime(o.Began) // the payload was read, so it is a time
	return s
}

// meets reports whether the windows of two sightings have a moment in common, as far as clocks agree; false, too, if one has no proved end.
func (s *Sighting) meets(other *Sighting) bool {
	within := func(began time.Time, by *trust.ProvedTime) bool { return began.Sub(by.Time) <= trust.MaxSkew }
	return s.Existed != nil && other.Existed != nil && within(s.Began, other.Existed) && within(other.Began, s.Existed)
}

// also takes in what another file proves of the same record. Of two logs that of the lesser name counts, so that the order of the files does not matter.
func (s *Sighting) also(other *Sighting) {
	if other.Log != "" && (s.Log == "" || other.Log < s.Log) {
		s.Log = other.Log
	}
	if earlier(other.Existed, s.Existed) {
		s.Existed = other.Existed
	}
}

// earlier reports whether the first of two times counts: one by an independent clock, and of two such, or of none, the earlier one.
func earlier(a, b *trust.ProvedTime) bool {
	switch {
	case a == nil || b == nil:
		return a != nil
	case (a.Clock == trust.Independent) != (b.Clock == trust.Independent):
		return a.Clock == trust.Independent
	}
	return a.Time.Before(b.Time)
}

// A Pair is one exchange that both sides recorded.
type ExchangePair struct {
	Asked     Sighting         `json:"asked"`
	Answered  Sighting         `json:"answered"`
	Proved    bool             `json:"proved"`            // the times of both meet
	Witnesses int              `json:"witnesses"`         // 2, or 1: then Why says why
	Why       []ExchangeReason `json:"why,omitempty"`     // why it is not proved, and why it has one witness
	Repeated  bool             `json:"repeated,omitzero"` // there are other exchanges of the same bytes: which of them are one is not known
	AheadMS   int64            `json:"clocks_differ_ms"`  // how much later the second began, by its own clock
}

// Write writes the report as JSON.
func (r *Exchanges) Write(w io.Writer) error { return json.MarshalWrite(w, r) }

// A Reason says why a pair is not two witnesses, or not proved.
type ExchangeReason struct {
	Rule   string `json:"rule"`
	What   string `json:"what,omitzero"` // a record, a log, a key or an owner
	Reason string `json:"reason"`
}

// The rules of reasons.
const (
	NoTime   = "no-time"
	NoLog    = "no-log"
	OneLog   = "one-log"
	OneKey   = "one-key"
	OneOwner = "one-owner"
)

func because(rule, what, format string) ExchangeReason {
	return ExchangeReason{rule, what, fmt.Sprintf(format, what)}
}

// A Difference is a request for which the two sides state different answers.
type ExchangeDifference struct {
	Asked    Sighting `json:"asked"`
	Answered Sighting `json:"answered"`
}

// A Report says what several files show together of exchanges between agents.
type Exchanges struct {
	Format      string               `json:"format"`
	Pairs       []ExchangePair       `json:"pairs"`
	Differences []ExchangeDifference `json:"differences"`
	Alone       []Sighting           `json:"alone"`              // exchanges that one side alone recorded, among these files
	Doubtful    []DoubtfulSighting   `json:"doubtful,omitempty"` // records that take no part
	LeftOut     int                  `json:"left_out,omitzero"`  // how many more there was no room for
	Trust       string               `json:"trust,omitzero"`     // fingerprint of the trust file; "": none was given
}

// A Doubtful is a record that takes no part, and why.
type DoubtfulSighting struct {
	Sighting
	Why string `json:"why"`
}

// exchangeMatcher collects sightings. The zero Matcher is ready. One goroutine may use it at a time.
type exchangeMatcher struct {
	seen     map[evidence.Digest]*Sighting // of records
	all      []*Sighting
	doubtful []DoubtfulSighting
	leftOut  int
}

// Take adds a sighting. The same record counts once, in however many files it is, with everything that any of them proves of it. If why is not "", the
// record takes no part.
func (m *exchangeMatcher) Take(s *Sighting, why string) {
	if known := m.seen[s.Digest]; known != nil && why == "" {
		known.also(s)
		return
	}
	switch {
	case why != "" && len(m.doubtful) < maxListed:
		m.doubtful = append(m.doubtful, DoubtfulSighting{*s, why})
	case why != "" || len(m.all) == maxSightings:
		m.leftOut++
	default:
		if m.seen == nil {
			m.seen = map[evidence.Digest]*Sighting{}
		}
		m.seen[s.Digest] = s
		m.all = append(m.all, s)
	}
}

// exchange is what identifies one.
type exchange struct{ request, response evidence.Digest }

// sides are the sightings of one exchange, or of one request, by who recorded them.
type sides struct{ asked, answered []*Sighting }

// Report compares all sightings. It is nil if not both sides are among them, those that take no part included.
func (m *exchangeMatcher) Report() *Exchanges {
	both := sides{}
	for _, s := range m.all {
		both.add(s)
	}
	for i := range m.doubtful {
		both.add(&m.doubtful[i].Sighting)
	}
	if len(both.asked) == 0 || len(both.answered) == 0 {
		return nil
	}
	r := &Exchanges{Format: exchangesFormat, Pairs: []ExchangePair{}, Differences: []ExchangeDifference{}, Alone: []Sighting{}, Doubtful: m.doubtful, LeftOut: m.leftOut}
	// The report does not depend on the order of the files.
	slices.SortFunc(m.all, func(a, b *Sighting) int {
		return cmp.Or(a.Began.Compare(b.Began), bytes.Compare(a.Digest[:], b.Digest[:]))
	})
	same, order := grouped(m.all, func(s *Sighting) exchange { return exchange{s.Request, s.Response} })
	left, requests := grouped(m.all, func(s *Sighting) evidence.Digest { return s.Request })
	for _, request := range requests {
		*left[request] = sides{} // what no pair takes, in the order of the exchanges
	}
	for _, key := range order {
		r.bound(same[key])
		if !key.response.IsZero() {
			r.pair(same[key])
		}
		l := left[key.request]
		l.asked, l.answered = append(l.asked, same[key].asked...), append(l.answered, same[key].answered...)
	}
	for _, request := range requests {
		r.bound(left[request])
		r.differ(left[request])
	}
	return r
}

// grouped puts sightings into groups, whose order is that of their first.
func grouped[K comparable](all []*Sighting, key func(*Sighting) K) (groups map[K]*sides, order []K) {
	groups = map[K]*sides{}
	for _, s := range all {
		k := key(s)
		if groups[k] == nil {
			groups[k], order = &sides{}, append(order, k)
		}
		groups[k].add(s)
	}
	return groups, order
}

// bound leaves out what is beyond the bound of equal exchanges: comparing them takes time by their square.
func (r *Exchanges) bound(of *sides) {
	for _, list := range []*[]*Sighting{&of.asked, &of.answered} {
		if n := len(*list); n > maxListed {
			r.LeftOut += n - maxListed
			*list = (*list)[:maxListed]
		}
	}
}

func (s *sides) add(one *Sighting) {
	if one.Side == evidence.Asked {
		s.asked = append(s.asked, one)
		return
	}
	s.answered = append(s.answered, one)
}

// pair takes pairs out of the sightings of one exchange: first those whose times meet, in the order of their beginning, then the others.
func (r *Exchanges) pair(of *sides) {
	repeated := len(of.asked) > 1 || len(of.answered) > 1
	for _, must := range []bool{true, false} {
		of.asked = slices.DeleteFunc(of.asked, func(asked *Sighting) bool {
			at := slices.IndexFunc(of.answered, func(answered *Sighting) bool { return asked.meets(answered) || !must && !apart(asked, answered) })
			if at < 0 {
				return false
			}
			r.found(asked, of.answered[at], repeated)
			of.answered = slices.Delete(of.answered, at, at+1)
			return true
		})
	}
}

// apart reports whether both times are proved, and do not meet: then these are two exchanges of the same bytes.
func apart(a, b *Sighting) bool { return a.Existed != nil && b.Existed != nil && !a.meets(b) }

func (r *Exchanges) found(asked, answered *Sighting, repeated bool) {
	p := ExchangePair{Asked: *asked, Answered: *answered, Repeated: repeated, Witnesses: 2, AheadMS: answered.Began.Sub(asked.Began).Milliseconds()}
	for _, one := range []*Sighting{asked, answered} {
		if one.Existed == nil {
			p.Why = append(p.Why, because(NoTime, one.Record, "the time of record %s is not proved"))
		}
	}
	p.Proved = len(p.Why) == 0
	if same := sameHand(asked, answered); len(same) > 0 {
		p.Witnesses, p.Why = 1, append(p.Why, same...)
	}
	r.Pairs = listed(r, r.Pairs, p)
}

// listed adds to a list of the report, or counts what has no room in it.
func listed[T any](r *Exchanges, list []T, one T) []T {
	if len(list) == maxListed {
		r.LeftOut++
		return list
	}
	return append(list, one)
}

// sameHand says why two records may be the word of one owner.
func sameHand(a, b *Sighting) (why []ExchangeReason) {
	switch {
	case a.Log == "":
		why = append(why, because(NoLog, a.Record, "record %s is not proved to be in a log: nothing shows that two owners kept them"))
	case b.Log == "":
		why = append(why, because(NoLog, b.Record, "record %s is not proved to be in a log: nothing shows that two owners kept them"))
	case a.Log == b.Log:
		why = append(why, because(OneLog, a.Log, "both records are in one log, %s"))
	}
	for _, key := range a.Keys {
		if slices.Contains(b.Keys, key) {
			why = append(why, because(OneKey, key.String(), "one key signed both: %s"))
		}
	}
	for _, one := range a.Owners {
		for _, other := range b.Owners {
			owner := sameOwner(one, other)
			if reason := because(OneOwner, owner, "one owner stands behind both keys: %s"); owner != "" && !slices.Contains(why, reason) {
				why = append(why, reason)
			}
		}
	}
	return why
}

// sameOwner names who stands behind two keys, if that is one owner; "": the trust file does not say so.
func sameOwner(a, b trust.Identified) string {
	if a.Custody == trust.ByOwner && b.Custody == trust.ByOwner && a.Role == b.Role && a.Name == b.Name {
		return fmt.Sprintf("the %s %s", a.Role, a.Name)
	}
	return ""
}

// differ lists what is left of one request: different answers, and exchanges that one side alone recorded.
func (r *Exchanges) differ(of *sides) {
	for len(of.asked) > 0 && len(of.answered) > 0 {
		at := slices.IndexFunc(of.answered, func(answered *Sighting) bool {
			return contradict(of.asked[0], answered) && !apart(of.asked[0], answered)
		})
		if at < 0 {
			r.Alone = listed(r, r.Alone, *of.asked[0])
			of.asked = of.asked[1:]
			continue
		}
		r.Differences = listed(r, r.Differences, ExchangeDifference{*of.asked[0], *of.answered[at]})
		of.asked, of.answered = of.asked[1:], slices.Delete(of.answered, at, at+1)
	}
	for _, s := range slices.Concat(of.asked, of.answered) {
		r.Alone = listed(r, r.Alone, *s)
	}
}

// contradict reports whether two sightings of one request state different answers. One that states none contradicts nothing: it may have broken off.
func contradict(a, b *Sighting) bool {
	return !a.Response.IsZero() && !b.Response.IsZero() && a.Response != b.Response
}
