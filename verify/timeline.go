//go:build !js

package verify

import (
	"container/heap"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/jury"
	"jurat/verify/trust"
)

// A Step is one record in a timeline.
type Step struct {
	RecordID   string              `json:"record"`
	Actor      string              `json:"actor"`
	Role       evidence.Role       `json:"role"`
	Action     evidence.ActionType `json:"action_type"`
	ChainID    string              `json:"chain_id,omitzero"`
	Position   int64               `json:"chain_position,omitzero"` // 0: it claims none
	Claimed    string              `json:"claimed_time"`            // the actor's word
	Proved     *trust.TimeOf       `json:"proved_time,omitzero"`    // nil: none
	Follows    []string            `json:"follows,omitempty"`       // record ids of what it names
	ByNameOnly bool                `json:"by_name_only,omitzero"`   // it names them by id, or by name and place, and not by digest

	Status  evidence.ApprovalStatus `json:"approval_status,omitzero"` // of a review
	Verdict *jury.Decision          `json:"verdict,omitzero"`         // for a review of a verdict: the person's decision, as the record says
}

// Timeline sorts records for people: each after all that it follows, then by position, then as in the log. proved
// gives the proved time of a record, as Answers.TimeOf of a report does; nil: no time is proved. This order proves
// nothing. The guarantee of the chain says whether the records are linked so.
func Timeline(records []*evidence.Record, proved func(recordID string) (trust.TimeOf, bool)) []Step {
	g := newGraph(records)
	verdicts := decisionsOnVerdicts(records)
	steps := make([]Step, 0, len(records))
	for _, r := range g.ordered() {
		step := g.step(r)
		step.Verdict = verdicts[r]
		if proved != nil {
			if t, ok := proved(step.RecordID); ok {
				step.Proved = &t
			}
		}
		steps = append(steps, step)
	}
	return steps
}

// decisionsOnVerdicts finds the reviews that decide on a verdict, by their chain.
func decisionsOnVerdicts(records []*evidence.Record) map[*evidence.Record]*jury.Decision {
	trials, decisions := map[string]*jury.Reckoning{}, map[*evidence.Record]*jury.Decision{}
	for _, r := range records {
		k := trials[r.Payload.ChainID]
		switch {
		case r.Payload.ActionType == evidence.FinalJudgment && k == nil:
			k = new(jury.Reckoning)
			if k.Add(r) == nil { // an unreadable record is no verdict
				trials[r.Payload.ChainID] = k
			}
		case r.Payload.ActionType == evidence.HumanReview && k != nil:
			decisions[r] = k.Decide(r)
		}
	}
	return decisions
}

func (g *graph) step(r *evidence.Record) Step {
	p := &r.Payload
	s := Step{RecordID: p.RecordID, Actor: p.Actor(), Role: p.Role(), Action: p.ActionType, ChainID: p.ChainID,
		Position: p.ChainPosition, Claimed: p.Timestamp, Status: p.ApprovalStatus}
	follows, bound := g.follows(r)
	s.ByNameOnly = len(follows) > 0 && !bound
	for _, other := range follows {
		s.Follows = append(s.Follows, other.Payload.RecordID)
	}
	return s
}

// maxByName bounds how many records one can follow by name alone. The sender pays for digests with bytes of the file,
// but names could make the work grow with its square.
const maxByName = 16

// follows lists what a record comes after: what it names by digest. Without digests, it is the record that it reviews
// by id, or the records before it in its thread under the name that it gives.
func (g *graph) follows(r *evidence.Record) (list []*evidence.Record, bound bool) {
	if list = g.Named(r); len(list) > 0 {
		return list, true
	}
	p := &r.Payload
	if original := g.ByID[p.OriginalResponseID]; original != nil && original != r {
		return []*evidence.Record{original}, false
	}
	if p.ChainPosition < 2 {
		return nil, false
	}
	for _, other := range g.At[g.Before(r)] {
		if p.PreviousAgent == "" || p.PreviousAgent == other.Payload.Actor() {
			list = append(list, other)
		}
		if len(list) == maxByName {
			break
		}
	}
	return list, false
}

// ordered sorts the graph topologically. Digests cannot form a cycle, but ids and names can. Then the order of the
// file decides.
func (g *graph) ordered() []*evidence.Record {
	waits, then := g.order()
	ready := &queue{Place: g.Place, rank: map[*evidence.Record]int64{}}
	for _, r := range g.All {
		if waits[r] == 0 {
			ready.add(r)
		}
	}
	done := map[*evidence.Record]bool{}
	list := make([]*evidence.Record, 0, len(g.All))
	for left := 0; left < len(g.All); {
		if ready.Len() == 0 { // the end, or a cycle: continue with the first record that is left
			ready.add(g.All[left])
			left++
		}
		r := heap.Pop(ready).(*evidence.Record)
		if done[r] {
			continue
		}
		done[r] = true
		list = append(list, r)
		for _, next := range then[r] {
			ready.follow(next, r)
			if waits[next]--; waits[next] == 0 {
				ready.add(next)
			}
		}
	}
	return list
}

// order returns, for each record, how many records it comes after, and which come after it.
func (g *graph) order() (waits map[*evidence.Record]int, then map[*evidence.Record][]*evidence.Record) {
	waits, then = map[*evidence.Record]int{}, map[*evidence.Record][]*evidence.Record{}
	for _, r := range g.All {
		follows, _ := g.follows(r)
		waits[r] = len(follows)
		for _, other := range follows {
			then[other] = append(then[other], r)
		}
	}
	return waits, then
}

// queue is a heap of records that may come next.
type queue struct {
	list  []*evidence.Record
	Place map[*evidence.Record]int
	rank  map[*evidence.Record]int64 // the claimed position, or a later one from the graph
}

func (q *queue) add(r *evidence.Record) {
	if claimed := r.Payload.ChainPosition; claimed > 0 {
		q.rank[r] = claimed
	}
	q.rank[r] = max(q.rank[r], 1)
	heap.Push(q, r)
}

// follow ranks a record behind one that it comes after.
func (q *queue) follow(r, other *evidence.Record) {
	q.rank[r] = max(q.rank[r], q.rank[other]+1)
}

func (q *queue) Len() int { return len(q.list) }

func (q *queue) Less(i, j int) bool {
	a, b := q.list[i], q.list[j]
	if q.rank[a] != q.rank[b] {
		return q.rank[a] < q.rank[b]
	}
	return q.Place[a] < q.Place[b]
}

func (q *queue) Swap(i, j int) { q.list[i], q.list[j] = q.list[j], q.list[i] }

func (q *queue) Push(r any) { q.list = append(q.list, r.(*evidence.Record)) }

func (q *queue) Pop() any {
	last := len(q.list) - 1
	r := q.list[last]
	q.list = slices.Delete(q.list, last, last+1)
	return r
}

// An Introduction says how a text came into a chain of records, as far as the file shows it.
type Introduction struct {
	// By lists, in the order of the timeline, the records whose output holds the text and whose input does not. Empty: no record introduced
	// it. More than one: each introduced it without having been shown it.
	By []*evidence.Record
	// Repeated lists the records that gave the text out and had been shown it.
	Repeated []*evidence.Record
	// Given lists the records that had the text in prompt or context before any record gave it out: it came from outside the chain.
	Given []*evidence.Record
	// Withheld lists the records with a part that would have to be searched, but is sealed apart and not disclosed.
	// The answer assumes that the text is not in there.
	Withheld []*evidence.Record
}

// Introduced finds the records that brought a text into a chain: whose output (response, modified_response) holds it and whose
// input (prompt, context and the outputs of what it follows) does not. The text is looked for, as it is, inside the
// strings of these members, whatever the escapes with which JSON writes them. No record introduces an empty text.
func Introduced(records []*evidence.Record, text string) Introduction {
	var found Introduction
	if text == "" {
		return found
	}
	g := newGraph(records)
	out, hidden, said := map[*evidence.Record]bool{}, map[*evidence.Record]bool{}, false
	for _, r := range records {
		out[r], hidden[r] = holds(r, text, map[string]jsontext.Value{"/response": r.Payload.Response, "/modified_response": r.Payload.ModifiedResponse})
	}
	for _, r := range g.ordered() {
		given, withheld := holds(r, text, map[string]jsontext.Value{"/prompt": r.Payload.Prompt, "/context": r.Payload.Context})
		follows, _ := g.follows(r)
		shown := given || slices.ContainsFunc(follows, func(other *evidence.Record) bool { return out[other] })
		switch {
		case out[r] && shown:
			found.Repeated = append(found.Repeated, r)
		case out[r]:
			found.By = append(found.By, r)
		}
		if given && !said {
			found.Given = append(found.Given, r)
		}
		said = said || out[r]
		if hidden[r] || withheld {
			found.Withheld = append(found.Withheld, r)
		}
	}
	return found
}

// holds reports whether members of a record hold a text, and whether one is withheld, as far as the file shows them.
func holds(r *evidence.Record, text string, members map[string]jsontext.Value) (held, withheld bool) {
	for pointer, value := range members {
		shown, hidden := r.Said(pointer, value)
		held, withheld = held || inStrings(shown, text), withheld || hidden
	}
	return held, withheld
}

// inStrings looks for a text inside the strings of a JSON value, but not in the names of members: those are the form of
// what was said.
func inStrings(value jsontext.Value, text string) bool {
	for token, isName := range tokensOf(value) {
		if token.Kind() == '"' && !isName && strings.Contains(token.String(), text) {
			return true
		}
	}
	return false
}
