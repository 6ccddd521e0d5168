package docket

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"jurat/evidence"
	"jurat/internal/find"
	"jurat/internal/llm"
	"jurat/internal/observe"
	"jurat/internal/subject"
)

// A ChainPart is some records of a chain as people read them, one after the other.
type ChainPart struct {
	Chain  string        `json:"chain"`
	From   int64         `json:"from"`            // the number of the first record in the chain, from 1
	Next   int64         `json:"next,omitzero"`   // the number of the record after the last one; 0: there is none
	Acts   []RecordedAct `json:"acts"`            // with the messages that are new in each
	Events []RecordedAct `json:"events,omitzero"` // what recorders said of themselves meanwhile
}

// A PartLack says that bytes cannot be read, or not all of them.
type PartLack struct {
	Direction string `json:"direction"` // request or response
	Why       string `json:"why"`       // erased, or one of those of package subject
}

// erased says that the operator erased the bytes.
const erased = "erased"

// A PartOrder says which part of a chain is read.
type PartOrder struct {
	From, N int64 // the number of the first record, from 1; how many
	Prices  llm.Prices
	// Open returns a record with what its reader may read of it. It is called for each record from the first on, because bodies copy from
	// earlier ones.
	Open func(*evidence.Record) (*evidence.Record, error)
}

const (
	// wholeUpTo is up to which number messages of a part have the numbers that they have in the whole chain.
	wholeUpTo = 200
	// before is how many records before a later part are read, so that what they have is not shown again.
	before = 16
)

// ReadPart reads a part of a chain. A record that cannot be read has a Fault. Its errors are those of the records and of Open.
func ReadPart(chain string, records iter.Seq2[*evidence.Record, error], o PartOrder) (*ChainPart, error) {
	p := &ChainPart{Chain: chain, From: o.From, Acts: []RecordedAct{}}
	from := o.From - before
	if o.From <= wholeUpTo {
		from = 1
	}
	t, number := subject.NewTranscript(), int64(0)
	for r, err := range records {
		if err != nil {
			return nil, err
		}
		if number++; number == o.From+o.N {
			p.Next = number
			break
		}
		if r, err = o.Open(r); err != nil {
			return nil, err
		}
		if number < from {
			t.Skip(r)
			continue
		}
		fault := t.Take(r)
		if number >= o.From {
			act := actOf(r, o.Prices)
			act.Number = number
			if fault != nil {
				act.Fault = fault.Error()
			}
			p.Acts = append(p.Acts, act)
		}
	}
	said := t.Acts()
	for i := range p.Acts {
		p.Acts[i].take(said[p.Acts[i].Digest])
	}
	if from > 1 {
		p.unnumbered()
	}
	return p, nil
}

// take adds what is new in an act.
func (a *RecordedAct) take(said subject.Act) {
	for i := range said.Messages {
		m := &said.Messages[i]
		if m.Head != "" {
			a.Description = m.Head
		}
		a.Messages = append(a.Messages, messageOf(m))
	}
	a.Repeats, a.Again = len(said.Repeated), said.Again
	for _, lack := range said.Lacks {
		a.Lacks = append(a.Lacks, PartLack{lack.Direction, string(lack.Why)})
	}
	a.read(&said.Said)
}

// read adds what the bytes say beside the messages.
func (a *RecordedAct) read(p *observe.Projection) {
	a.Error, a.Problem, a.Finish, a.Alternatives = p.Error, p.Problem, p.Finish, p.Alternatives
	if a.Observed != nil && len(a.Lacks) > 0 && p.State == observe.Failed {
		a.Problem = "" // the lack says it
	}
}

// unnumbered removes the numbers of messages, which are not those of the whole chain.
func (p *ChainPart) unnumbered() {
	for i := range p.Acts {
		a := &p.Acts[i]
		a.Again = min(a.Again, 1)
		for j := range a.Messages {
			m := &a.Messages[j]
			m.Number, m.CallNumber, m.CallPlace = 0, 0, 0
			for k := range m.Calls {
				m.Calls[k].Result = 0
			}
		}
	}
}

// RecordedEvent makes an act of what a recorder said of itself.
func RecordedEvent(r *evidence.Record) (RecordedAct, error) {
	if r.Payload.ActionType != evidence.RecorderEvent {
		return RecordedAct{}, fmt.Errorf("record %s: %s is no event of a recorder", r.Payload.RecordID, r.Payload.ActionType)
	}
	return actOf(r, nil), nil
}

// FindErased looks up which bytes that are not here were erased, and says so. Its errors are those of the index.
func (p *ChainPart) FindErased(ctx context.Context, x *find.Index) error {
	var lacking []evidence.Digest
	for i := range p.Acts {
		if len(p.Acts[i].Withheld) > 0 {
			lacking = append(lacking, p.Acts[i].Digest)
		}
	}
	erased, err := x.Erased(ctx, lacking)
	if err == nil {
		p.MarkErased(erased)
	}
	return err
}

// MarkErased says of bytes that are not here that they were erased, if they were: pointers are those that the operator erased of each record.
func (p *ChainPart) MarkErased(pointers map[evidence.Digest][]string) {
	for i := range p.Acts {
		a := &p.Acts[i]
		for j := range a.Lacks {
			if slices.Contains(pointers[a.Digest], "/"+a.Lacks[j].Direction+"_body") && a.Lacks[j].Why == string(subject.Withheld) {
				a.Lacks[j].Why = erased
			}
		}
		for _, pointer := range a.Withheld {
			if slices.Contains(pointers[a.Digest], pointer) {
				a.Erased = append(a.Erased, pointer)
			}
		}
	}
}
