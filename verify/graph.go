package verify

import (
	"slices"
	"time"

	"jurat/evidence"
)

// graph is how the records of a file name each other.
type graph struct {
	all       []*evidence.Record // in the order of the file, which is that of the log
	place     map[*evidence.Record]int
	byDigest  map[evidence.Digest]*evidence.Record
	byID      map[string]*evidence.Record
	byRequest map[string][]*evidence.Record
	reviews   map[string][]*evidence.Record           // of the record with this id
	followers map[*evidence.Record][]*evidence.Record // who names it by digest
	threads   map[*evidence.Record]thread
	first     map[thread]*evidence.Record
	at        map[spot][]*evidence.Record
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

func newGraph(records []*evidence.Record) *graph {
	g := &graph{all: records, place: map[*evidence.Record]int{}, byDigest: map[evidence.Digest]*evidence.Record{},
		byID: map[string]*evidence.Record{}, byRequest: map[string][]*evidence.Record{},
		reviews: map[string][]*evidence.Record{}, followers: map[*evidence.Record][]*evidence.Record{}, threads: map[*evidence.Record]thread{},
		first: map[thread]*evidence.Record{}, at: map[spot][]*evidence.Record{},
		earliest: map[standing]time.Time{}, loose: map[standing]bool{}}
	for i, r := range records {
		g.place[r], g.byDigest[r.Digest], g.byID[r.Payload.RecordID] = i, r, r
		if id := r.Payload.RequestID; id != "" {
			g.byRequest[id] = append(g.byRequest[id], r)
		}
		if r.Payload.ActionType == evidence.HumanReview {
			id := r.Payload.OriginalResponseID
			g.reviews[id] = append(g.reviews[id], r)
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
func (g *graph) thread(r *evidence.Record, parents map[string]bool) {
	var way []*evidence.Record
	t, known := g.threads[r]
	for !known {
		way = append(way, r)
		g.threads[r] = thread{} // where it goes in a circle, it ends here
		lead := g.lead(r)
		if lead == nil {
			t = ownThread(&r.Payload, parents)
			break
		}
		r = lead
		t, known = g.threads[r]
	}
	for _, r := range way {
		g.threads[r] = t
	}
}

// lead is the record of whose thread a record is; nil if that does not rest on another record.
func (g *graph) lead(r *evidence.Record) *evidence.Record {
	if r.Payload.ChainID != "" {
		return nil
	}
	for _, d := range digests(r) {
		if other := g.byDigest[d]; other != nil {
			return other
		}
	}
	if parents := g.parents(r); len(parents) > 0 {
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
func (g *graph) stand(r *evidence.Record) {
	t := g.threads[r]
	if g.first[t] == nil {
		g.first[t] = r
	}
	for _, other := range g.named(r) {
		g.followers[other] = append(g.followers[other], r)
	}
	if r.Payload.ChainPosition == 0 {
		return
	}
	here := spot{t, r.Payload.ChainPosition}
	g.at[here] = append(g.at[here], r)
	for _, actor := range []string{"", r.Payload.Actor()} {
		s, claimed := standing{here, actor}, r.Payload.Time()
		if earliest, there := g.earliest[s]; !there || claimed.Before(earliest) {
			g.earliest[s] = claimed
		}
		if len(g.within(r)) == 0 && (actor != "" || carries(r)) {
			g.loose[s] = true
		}
	}
}

// digests lists what a record names by digest, the one before it first.
func digests(r *evidence.Record) []evidence.Digest {
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
func (g *graph) named(r *evidence.Record) []*evidence.Record {
	var list []*evidence.Record
	for _, d := range digests(r) {
		if other := g.byDigest[d]; other != nil {
			list = append(list, other)
		}
	}
	return list
}

// within lists those of them that are of the record's own thread.
func (g *graph) within(r *evidence.Record) []*evidence.Record {
	return slices.DeleteFunc(g.named(r), func(other *evidence.Record) bool { return g.threads[other] != g.threads[r] })
}

// before is the place before a record's, where it has one.
func (g *graph) before(r *evidence.Record) spot {
	return spot{g.threads[r], r.Payload.ChainPosition - 1}
}

// parents lists the records of the request that a record calls its parent. One that calls its own request its parent
// says nothing by that.
func (g *graph) parents(r *evidence.Record) []*evidence.Record {
	if r.Payload.ParentRequestID == r.Payload.RequestID {
		return nil
	}
	return g.byRequest[r.Payload.ParentRequestID]
}

// rooted returns the requests from which parent_request_id leads to a beginning. A request has several records; one of
// them that leads there is enough, as a child may be recorded before its parent and a parent may be told later on.
func (g *graph) rooted() map[string]bool {
	rooted, children := map[string]bool{}, map[string][]string{}
	var next []string
	for _, r := range g.all {
		id, parent := r.Payload.RequestID, r.Payload.ParentRequestID
		if len(g.parents(r)) == 0 {
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
