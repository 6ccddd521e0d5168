package graph

import (
	"slices"
	"time"

	"jurat/evidence"
)

// graph is how the records of a file name each other.
type Graph struct {
	All       []*evidence.Record // in the order of the file, which is that of the log
	Place     map[*evidence.Record]int
	ByDigest  map[evidence.Digest]*evidence.Record
	ByID      map[string]*evidence.Record
	byRequest map[string][]*evidence.Record
	Reviews   map[string][]*evidence.Record           // of the record with this id
	Followers map[*evidence.Record][]*evidence.Record // who names it by digest
	Threads   map[*evidence.Record]thread
	First     map[thread]*evidence.Record
	At        map[spot][]*evidence.Record
	earliest  map[standing]time.Time // the earliest claimed time of an actor's records at a place
	loose     map[standing]bool      // who stands at a place and names no record of the chain by digest; of "", who carries it on
}

// thread is what records belong to: a chain, or failing that a request that they call their parent. The zero thread
// is that of records that say of neither.
type thread struct{ chain, parent string }

// spot is a place in a thread, and standing an actor's place there; "" is any actor.
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

func New(records []*evidence.Record) *Graph {
	g := &Graph{All: records, Place: map[*evidence.Record]int{}, ByDigest: map[evidence.Digest]*evidence.Record{},
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

// thread finds out what a record belongs to: the chain that it names, or that of what leads it. Each record can lead the one before it in
// the file, so a way of as many records as the file has is gone without a call for each of them.
func (g *Graph) thread(r *evidence.Record, parents map[string]bool) {
	var way []*evidence.Record
	t, known := g.Threads[r]
	for !known {
		way = append(way, r)
		g.Threads[r] = thread{} // where it goes in a circle, it ends here
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

// lead is the record of whose thread a record is; nil if that does not rest on another record.
func (g *Graph) lead(r *evidence.Record) *evidence.Record {
	if r.Payload.ChainID != "" {
		return nil
	}
	for _, d := range Digests(r) {
		if other := g.ByDigest[d]; other != nil {
			return other
		}
	}
	if parents := g.Parents(r); len(parents) > 0 {
		return parents[0]
	}
	return nil
}

// ownThread is the thread of a record that nothing leads.
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

// stand enters a record at its place, once all threads are known.
func (g *Graph) stand(r *evidence.Record) {
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
		if len(g.Within(r)) == 0 && (actor != "" || Carries(r)) {
			g.loose[s] = true
		}
	}
}

// digests lists what a record names by digest, the one before it first.
func Digests(r *evidence.Record) []evidence.Digest {
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

// named lists the records of the file that a record names by digest.
func (g *Graph) Named(r *evidence.Record) []*evidence.Record {
	var list []*evidence.Record
	for _, d := range Digests(r) {
		if other := g.ByDigest[d]; other != nil {
			list = append(list, other)
		}
	}
	return list
}

// within lists those of them that are of the record's own thread.
func (g *Graph) Within(r *evidence.Record) []*evidence.Record {
	return slices.DeleteFunc(g.Named(r), func(other *evidence.Record) bool { return g.Threads[other] != g.Threads[r] })
}

// before is the place before a record's, where it has one.
func (g *Graph) Before(r *evidence.Record) spot {
	return spot{g.Threads[r], r.Payload.ChainPosition - 1}
}

// after is the place after a record's, where it has one.
func (g *Graph) After(r *evidence.Record) spot {
	return spot{g.Threads[r], r.Payload.ChainPosition + 1}
}

// claimed is the earliest time that an actor's records at a place claim; "" is any actor. There may be no such record.
func (g *Graph) Claimed(at spot, actor string) (earliest time.Time, there bool) {
	earliest, there = g.earliest[standing{at, actor}]
	return earliest, there
}

// isLoose reports whether a record of the actor at a place names no record of the chain by digest; of "", one that carries the chain on.
func (g *Graph) IsLoose(at spot, actor string) bool { return g.loose[standing{at, actor}] }

// parents lists the records of the request that a record calls its parent. One that calls its own request its parent
// says nothing by that.
func (g *Graph) Parents(r *evidence.Record) []*evidence.Record {
	if r.Payload.ParentRequestID == r.Payload.RequestID {
		return nil
	}
	return g.byRequest[r.Payload.ParentRequestID]
}

// rooted returns the requests from which parent_request_id leads to a beginning. A request has several records; one of
// them that leads there is enough, as a child may be recorded before its parent and a parent may be told later on.
func (g *Graph) Rooted() map[string]bool {
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

// decides reports whether a record is a person's decision, or delivers what was decided on.
func Decides(r *evidence.Record) bool {
	return r.Payload.ActionType == evidence.HumanReview || r.Payload.ActionType == evidence.Delivery
}

// carries reports whether a record carries on what it follows: reviewing or delivering it is not that.
func Carries(r *evidence.Record) bool { return !Decides(r) }
