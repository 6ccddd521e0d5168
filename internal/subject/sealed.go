package subject

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/verify"
	"jurat/verify/trust"
)

// Errors about records that cannot be evidence of an agent's actions.
var (
	ErrRefuted = errors.New("refuted, and so no evidence")
	ErrTrial   = errors.New("these are the acts of a trial: what a jury says, and no evidence of what an agent did")
	ErrNoActs  = errors.New("there is no record of an agent in it")
	ErrTooMuch = fmt.Errorf("more than %d records or %d MiB of payloads: put a part of them before the jury", MaxRecords, MaxFile>>20)
)

// ReadSealed reads a record file or a bundle, also in an envelope, verifies it, and makes a case from the verified records
// only. The card may be nil. It returns ErrRefuted, ErrTrial, ErrEmpty or ErrTooMuch for records that cannot be
// evidence. With every error that comes after verification it returns the report.
func ReadSealed(file io.Reader, o verify.Options, card []byte) (*Case, *verify.Report, error) {
	seen := new(gathered)
	o.Each = seen.take
	report, err := verify.Read(file, o)
	if err != nil {
		return nil, nil, err
	}
	c, err := seen.evidence(report, card)
	return c, report, err
}

// gathered are the verified records of a file.
type gathered struct {
	exhibits []Exhibit
	ids      []string
	size     int
	agent    bool // whether an agent acts in any record
	trial    bool
	tooMuch  bool
}

// take keeps no more than a jury can be shown, so a long file does not fill the memory.
func (g *gathered) take(r *evidence.Record) {
	g.size += len(r.Canonical())
	for _, d := range r.Disclosures {
		g.size += len(d.Value)
	}
	g.agent = g.agent || r.Payload.Role() == evidence.RoleAgent || r.Payload.Observed != nil
	g.trial = g.trial || r.Payload.ActionType.InTrial()
	g.tooMuch = g.tooMuch || g.size > MaxFile || len(g.ids) == MaxRecords
	if g.tooMuch || g.trial {
		g.exhibits, g.ids = nil, nil
		return
	}
	g.exhibits = append(g.exhibits, NewExhibit(r))
	g.ids = append(g.ids, r.Payload.RecordID)
}

func (g *gathered) evidence(r *verify.Report, card []byte) (*Case, error) {
	switch {
	case r.Outcome == verify.Refuted:
		return nil, refuted(r)
	case g.trial:
		return nil, ErrTrial
	case g.tooMuch:
		return nil, ErrTooMuch
	case !g.agent:
		return nil, ErrNoActs
	}
	for i, id := range g.ids {
		if t, ok := r.TimeOf(id); ok {
			g.exhibits[i].ProvedTime = timeOf(&t.ProvedTime)
			g.exhibits[i].IndependentTime = timeOf(t.Independent)
		}
	}
	return FromRecords(card, g.exhibits, verification(r))
}

func refuted(r *verify.Report) error {
	for _, f := range slices.Concat(r.Guarantees, r.Details) {
		if f.Status != verify.Refuted {
			continue
		}
		if f.Record != "" {
			return fmt.Errorf("%w: %s of record %s: %s", ErrRefuted, f.Guarantee, f.Record, f.Reason)
		}
		return fmt.Errorf("%w: %s: %s", ErrRefuted, f.Guarantee, f.Reason)
	}
	return ErrRefuted
}

func timeOf(t *trust.ProvedTime) *ProvedTime {
	if t == nil {
		return nil
	}
	return &ProvedTime{Authority: t.Authority, Clock: string(t.Clock), Time: t.Time.UTC().Format(time.RFC3339Nano)}
}

// verification is the report as the jury reads it. It leaves out what differs each time, such as the moment of
// verification, so that the same records give the same evidence.
func verification(r *verify.Report) Verification {
	v := Verification{Trust: r.Trust, Outcome: NotProved, Proved: []string{}, NotProved: []Doubt{}}
	if r.Outcome == verify.Proved {
		v.Outcome = Proved
	}
	for _, f := range r.Guarantees {
		if f.Status == verify.Proved {
			v.Proved = append(v.Proved, string(f.Guarantee))
		}
	}
	v.NotProved = append(v.NotProved, doubts(r)...)
	return v
}

// doubts groups records to which the same doubt applies.
func doubts(r *verify.Report) []Doubt {
	type kind struct {
		of   verify.Guarantee
		rule string
	}
	var list []Doubt
	places, ofAll := map[kind]int{}, map[kind]bool{}
	for _, f := range r.Details {
		if f.Status != verify.NotProved || r.Of(f.Guarantee).Status != verify.NotProved {
			continue
		}
		k := kind{f.Guarantee, f.Rule}
		i, there := places[k]
		if !there {
			i = len(list)
			places[k] = i
			list = append(list, Doubt{Guarantee: string(f.Guarantee), Rule: f.Rule, Reason: f.Reason})
		}
		if ofAll[k] = ofAll[k] || f.Record == ""; ofAll[k] {
			list[i].Records = nil
			continue
		}
		list[i].Records = append(list[i].Records, f.Record)
	}
	return list
}
