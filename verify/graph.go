package verify

import (
	"slices"
	"time"

	"jurat/evidence"
)

// A Graph holds how the records of a file name each other.
type graph struct {
	All       []*evidence.Record // in the order of the file, which is that of the log
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

// After is the place after the record's. It has no meaning for a record without a chain position.
func (g *graph) After(r *evidence.Record) spot {
	return spot{g.Threads[r], r.Payload.ChainPosition + 1}
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
