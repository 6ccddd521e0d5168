package verify

import (
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/internal/kit/plural"
)

// chained reports whether the rules of chains apply to a record. Acts of a trial follow stricter rules of their own.
// They count only where a review in the trial's chain refers to them.
func chained(r *evidence.Record) bool {
	p := &r.Payload
	return !p.ActionType.InTrial() && (p.ChainID != "" || p.ChainPosition > 0 || p.ParentRequestID != "" ||
		p.PreviousAgent != "" || p.NextAgent != "" || !p.PreviousRecord.IsZero())
}

// file is what the rules about several records read.
type file struct {
	*graph
	kind Kind
	all  []*evidence.Record // slim, in the order of the file
	said map[*evidence.Record]spoken

	outputs   map[*evidence.Record]spokenText // answers of output
	decisions map[string][]*evidence.Record   // answers of decisionsOn, by record id
}

// link is a record among those of its file.
type link struct {
	*file
	*evidence.Record
}

// chain checks whether the records are linked as they say. It does not say whether a chain continues after its last
// record here: later records are not in the file, and no rule can notice their absence.
func (c *check) chain() {
	c.rooted = c.Rooted()
	ask(&c.findings, rulesOfChains, nil, &c.file)
	alone := 0
	for _, r := range c.all {
		if !chained(r) {
			continue
		}
		if len(c.Named(r)) == 0 && len(c.Parents(r)) > 0 {
			alone++
		}
		ask(&c.findings, rulesOfChain, r, link{&c.file, r})
	}
	c.notes[Chain] = "records name by digest the records that they follow; places, names and claimed times agree"
	if alone > 0 {
		c.notes[Chain] = fmt.Sprintf("records name the records that they belong to by digest or, %d of them, by a request's id alone, "+
			"which another record could have; places, names and claimed times agree", alone)
	}
	if whole := c.counted(func(*evidence.Record, int64) {}); whole > 0 {
		c.notes[Chain] += fmt.Sprintf("; by the log's count, %s whole up to the last record here", plural.Of(whole, "chain")+plural.Or(whole, " is", " are"))
	}
	ask(&c.findings, rulesOfRest[Chain], nil, &c.findings)
}

// missed returns the status for a record that is missing: Refuted where it must be there, NotProved where the reader
// chose which files to bring.
func (f *file) missed(must bool) Status {
	if must && f.kind != SeveralFiles {
		return Refuted
	}
	return NotProved
}

// unsure is the status for a record that may not belong to this chain: Refuted if it names its chain by chain_id.
func (l link) unsure() Status { return l.missed(l.Payload.ChainID != "") }

// counted compares each chain in the file with the log's own count of it, and returns how many chains the log counts. It calls missing for the first record of
// each chain that the log counts as another than it is in the file.
func (f *file) counted(missing func(r *evidence.Record, number int64)) int {
	counts, broken := map[string]int64{}, map[string]bool{}
	for _, r := range f.all {
		id := r.Payload.ChainID
		if id == "" || r.Log == nil || broken[id] {
			continue
		}
		counts[id]++
		if broken[id] = r.Log.ChainSeq != counts[id]; broken[id] {
			missing(r, counts[id])
		}
	}
	return len(counts)
}

// followsOther compares the name of the previous agent with the previous record. If no digest says which record that is, it compares the name with all
// candidates.
func (l link) followsOther(a *asked) {
	p := &l.Payload
	if p.PreviousAgent == "" {
		return
	}
	if !p.PreviousRecord.IsZero() {
		before := l.ByDigest[p.PreviousRecord]
		if before != nil && before.Payload.Actor() != p.PreviousAgent {
			a.refute("it names %q as the previous agent, and the previous record is by %q", p.PreviousAgent, before.Payload.Actor())
		}
		return
	}
	saw, before := l.Within(l.Record), l.Before(l.Record)
	_, named := l.earliest[standing{before, p.PreviousAgent}]
	if _, any := l.earliest[standing{before, ""}]; !anyOf(saw, p.PreviousAgent) && !named && (any || len(saw) > 0) {
		a.add(l.unsure(), "it names %q as the previous agent, and no earlier record of the chain is by that agent", p.PreviousAgent)
	}
}

// anyOf reports whether this actor made one of the records.
func anyOf(records []*evidence.Record, actor string) bool {
	return slices.ContainsFunc(records, func(r *evidence.Record) bool { return r.Payload.Actor() == actor })
}

// leadsToOther: the agent that a record names as the next one made no record that follows it.
func (l link) leadsToOther(a *asked) {
	p, r := &l.Payload, l.Record
	after := spot{l.Threads[r], p.ChainPosition + 1}
	placed := p.ChainPosition > 0
	if p.NextAgent == "" || placed && l.loose[standing{after, p.NextAgent}] {
		return
	}
	contradicted := placed && l.loose[standing{after, ""}]
	for _, other := range l.Followers[r] {
		if other.Payload.Actor() == p.NextAgent {
			return
		}
		contradicted = contradicted || carriesOn(other) && l.Threads[other] == l.Threads[r] // another chain has its own order
	}
	if contradicted {
		a.add(l.unsure(), "it names %q as the next agent, and other agents made the records that follow it", p.NextAgent)
		return
	}
	a.doubt("it names %q as the next agent, and the file has no record by that agent after it", p.NextAgent)
}

// isBackward requires that a record claims no earlier time than the records that it follows. It compares claimed times.
// The guarantee of order compares them with the log's order.
func (l link) isBackward(a *asked) {
	p := &l.Payload
	for _, other := range l.Named(l.Record) {
		if p.Time().Before(other.Payload.Time()) {
			a.refute("it claims %s, and record %s, which it names, claims %s", p.Timestamp, recordName(other), other.Payload.Timestamp)
			return
		}
	}
	if p.ChainPosition < 2 || len(l.Within(l.Record)) > 0 {
		return
	}
	if earliest, there := l.earliest[standing{l.Before(l.Record), p.PreviousAgent}]; there && p.Time().Before(earliest) {
		a.add(l.unsure(), "it claims %s, and an earlier record of the chain claims %s", p.Timestamp, utc(earliest))
	}
}

// A graph holds how the records of a file name each other.
type graph struct {
	All       []*evidence.Record // in the order of the file, which is that of the log
	rooted    map[string]bool    // see Rooted; nil: not asked yet
	Place     map[*evidence.Record]int
	ByDigest  map[evidence.Digest]*evidence.Record
	ByID      map[string]*evidence.Record
	byRequest map[string][]*evidence.Record
	Reviews   map[string][]*evidence.Record           // of the record with this id
	Followers map[*evidence.Record][]*evidence.Record // the records that name it by digest
	Threads   map[*evidence.Record]thread
	First     map[thread]*evidence.Record
	At        map[spot][]*evidence.Record
	earliest  map[standing]time.Time // the earliest claimed time of an actor's records at a place
	loose     map[standing]bool      // actors at a place with a record that names none of the chain by digest; "": a record that carries the chain on
}

// A Thread is what a record belongs to: a chain or, without one, the request that it names as its parent. Records
// with neither have the zero Thread.
type thread struct{ chain, parent string }

// A Spot is a place in a thread. A Standing is an actor's place there; "" is any actor.
type (
	spot struct {
		thread
		position int64
	}
	standing struct {
		spot
		actor string
	}
)

// newGraph builds the graph of records. They must be in the order of the file, which is that of the log.
func newGraph(records []*evidence.Record) *graph {
	g := &graph{All: records, Place: map[*evidence.Record]int{}, ByDigest: map[evidence.Digest]*evidence.Record{},
		ByID: map[string]*evidence.Record{}, byRequest: map[string][]*evidence.Record{},
		Reviews: map[string][]*evidence.Record{}, Followers: map[*evidence.Record][]*evidence.Record{}, Threads: map[*evidence.Record]thread{},
		First: map[thread]*evidence.Record{}, At: map[spot][]*evidence.Record{},
		earliest: map[standing]time.Time{}, loose: map[standing]bool{}}
	for i, r := range records {
		g.Place[r], g.ByDigest[r.Digest], g.ByID[r.Payload.RecordID] = i, r, r
		if id := r.Payload.RequestID; id != "" {
			g.byRequest[id] = append(g.byRequest[id], r)
		}
		if r.Payload.ActionType == evidence.HumanReview {
			id := r.Payload.OriginalResponseID
			g.Reviews[id] = append(g.Reviews[id], r)
		}
	}
	parents := map[string]bool{}
	for _, r := range records {
		parents[r.Payload.ParentRequestID] = true
	}
	for _, r := range records {
		g.thread(r, parents)
	}
	for _, r := range records {
		g.stand(r)
	}
	return g
}

// thread finds the thread of a record: the chain that it names, or the thread of the record that leads it. A chain of
// leads can be as long as the file, so thread loops instead of recursing.
func (g *graph) thread(r *evidence.Record, parents map[string]bool) {
	var way []*evidence.Record
	t, known := g.Threads[r]
	for !known {
		way = append(way, r)
		g.Threads[r] = thread{} // ends cycles here
		lead := g.lead(r)
		if lead == nil {
			t = ownThread(&r.Payload, parents)
			break
		}
		r = lead
		t, known = g.Threads[r]
	}
	for _, r := range way {
		g.Threads[r] = t
	}
}

// lead returns the record whose thread this record shares; nil if its thread does not depend on another record.
func (g *graph) lead(r *evidence.Record) *evidence.Record {
	if r.Payload.ChainID != "" {
		return nil
	}
	for _, d := range digestsIn(r) {
		if other := g.ByDigest[d]; other != nil {
			return other
		}
	}
	if parents := g.Parents(r); len(parents) > 0 {
		return parents[0]
	}
	return nil
}

// ownThread is the thread of a record without a lead.
func ownThread(p *evidence.Payload, parents map[string]bool) thread {
	switch {
	case p.ChainID != "":
		return thread{chain: p.ChainID}
	case p.ParentRequestID != "":
		return thread{parent: p.ParentRequestID}
	case parents[p.RequestID]:
		return thread{parent: p.RequestID}
	}
	return thread{}
}

// stand enters a record at its place, after all threads are known.
func (g *graph) stand(r *evidence.Record) {
	t := g.Threads[r]
	if g.First[t] == nil {
		g.First[t] = r
	}
	for _, other := range g.Named(r) {
		g.Followers[other] = append(g.Followers[other], r)
	}
	if r.Payload.ChainPosition == 0 {
		return
	}
	here := spot{t, r.Payload.ChainPosition}
	g.At[here] = append(g.At[here], r)
	for _, actor := range []string{"", r.Payload.Actor()} {
		s, claimed := standing{here, actor}, r.Payload.Time()
		if earliest, there := g.earliest[s]; !there || claimed.Before(earliest) {
			g.earliest[s] = claimed
		}
		if len(g.Within(r)) == 0 && (actor != "" || carriesOn(r)) {
			g.loose[s] = true
		}
	}
}

// digestsIn lists what a record names by digest, the record before it first.
func digestsIn(r *evidence.Record) []evidence.Digest {
	var list []evidence.Digest
	if d := r.Payload.PreviousRecord; !d.IsZero() {
		list = append(list, d)
	}
	for _, d := range r.Payload.Saw {
		if d != r.Payload.PreviousRecord {
			list = append(list, d)
		}
	}
	return list
}

// Named lists the records of the file that a record names by digest.
func (g *graph) Named(r *evidence.Record) []*evidence.Record {
	var list []*evidence.Record
	for _, d := range digestsIn(r) {
		if other := g.ByDigest[d]; other != nil {
			list = append(list, other)
		}
	}
	return list
}

// Within lists the records of its own thread that a record names by digest.
func (g *graph) Within(r *evidence.Record) []*evidence.Record {
	return slices.DeleteFunc(g.Named(r), func(other *evidence.Record) bool { return g.Threads[other] != g.Threads[r] })
}

// Before is the place before the record's. It has no meaning for a record without a chain position.
func (g *graph) Before(r *evidence.Record) spot {
	return spot{g.Threads[r], r.Payload.ChainPosition - 1}
}

// Parents lists the records of the parent request of a record. A record that names its own request as parent has
// none.
func (g *graph) Parents(r *evidence.Record) []*evidence.Record {
	if r.Payload.ParentRequestID == r.Payload.RequestID {
		return nil
	}
	return g.byRequest[r.Payload.ParentRequestID]
}

// Rooted returns the requests from which the parent requests lead to a beginning. A request can have several records.
// One that leads to a beginning is enough, because a child may be recorded before its parent.
func (g *graph) Rooted() map[string]bool {
	rooted, children := map[string]bool{}, map[string][]string{}
	var next []string
	for _, r := range g.All {
		id, parent := r.Payload.RequestID, r.Payload.ParentRequestID
		if len(g.Parents(r)) == 0 {
			next = append(next, id)
		} else {
			children[parent] = append(children[parent], id)
		}
	}
	for len(next) > 0 {
		id := next[len(next)-1]
		next = next[:len(next)-1]
		if !rooted[id] {
			rooted[id] = true
			next = append(next, children[id]...)
		}
	}
	return rooted
}

// decides reports whether a record is a person's decision or a delivery.
func decides(r *evidence.Record) bool {
	return r.Payload.ActionType == evidence.HumanReview || r.Payload.ActionType == evidence.Delivery
}

// carriesOn reports whether a record carries the chain on. Reviews and deliveries do not.
func carriesOn(r *evidence.Record) bool { return !decides(r) }
