package properties

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/plural"
	"jurat/property"
)

// An Answer says for how many records a demand is proved.
type Answer struct {
	Demand string `json:"demand"`
	ForAll bool   `json:"for_all,omitzero"`
	Asked  int    `json:"asked"`  // records
	Proved int    `json:"proved"` // of these
	Met    bool   `json:"met"`    // there is one, all are proved, and with ForAll their chains are proved complete
}

// demanded is what became of a demand so far.
type demanded struct {
	*Demand
	asked, proved int
	open          []*pending
	byDigest      map[string]*pending
	summed        bool // of a sum: a proof covers all records that are open so far
	loose         bool // a record that is asked is in no chain
	failed        bool // a record was asked in vain
}

// A pending record is one of which proofs must show what is demanded; of a sum, each that is asked.
type pending struct {
	record, digest string
	value          jsontext.Value // of a sum, if it is known
	proved         bool
}

// ask asks the demand of the next record. It returns a doubt if what the record shows is not what is demanded.
func (d *demanded) ask(r *evidence.Record, k known) *Doubt {
	if d.ForAll && r.Payload.Role() != evidence.RoleAgent || !d.ForAll && !k.there {
		return nil
	}
	d.asked++
	if r.Payload.ChainID == "" {
		d.loose = true
	}
	switch {
	case !k.there:
		d.failed = true
		return &Doubt{Rule: "member", Reason: fmt.Sprintf("%s: it has no member %s", d.name(), evidence.Abbreviate(d.pointer))}
	case d.want.Form == property.AtMostSum:
		d.hide(r, slices.Clone(k.value))
		return nil
	case k.value == nil || d.want.Form == property.Equal && k.other == nil:
		d.hide(r, nil)
		return nil
	case !d.meets(k):
		d.failed = true
		return &Doubt{Rule: "value", Reason: fmt.Sprintf("%s: the value that it shows is another: %s", d.name(), evidence.Abbreviate(string(k.value)))}
	}
	d.proved++
	return nil
}

func (d *demanded) name() string { return fmt.Sprintf("the demand %q", evidence.Abbreviate(d.Text)) }

func (d *demanded) hide(r *evidence.Record, value jsontext.Value) {
	if d.byDigest == nil {
		d.byDigest = map[string]*pending{}
	}
	p := &pending{record: r.Payload.RecordID, digest: r.Digest.String(), value: value}
	d.byDigest[p.digest] = p
	d.open = append(d.open, p)
	d.summed = false
}

// show takes in a statement that holds.
func (d *demanded) show(s *property.Statement) {
	for _, m := range s.Members {
		if p := d.byDigest[m.Record]; p != nil && !p.proved {
			p.proved = d.implied(s, m.Record)
		}
	}
	if d.want.Form == property.AtMostSum && s.Form == property.AtMostSum && len(d.open) <= len(s.Members) {
		d.summed = d.summed || !slices.ContainsFunc(d.open, func(p *pending) bool { return !d.implied(s, p.digest) })
	}
}

// answer says what came of the demand, and hands on a doubt for each record of which nothing shows it.
func (d *demanded) answer(complete bool, doubt func(record string, d *Doubt)) Answer {
	if d.want.Form == property.AtMostSum {
		d.settleSum(doubt)
	}
	for _, p := range d.open {
		if p.proved {
			d.proved++
			continue
		}
		doubt(p.record, &Doubt{Rule: "demand", Reason: fmt.Sprintf("%s: the value at %s is hidden, and no proof that holds shows this of it%s", d.name(), evidence.Abbreviate(d.pointer), d.madeFor())})
	}
	met := d.asked > 0 && d.proved == d.asked
	if d.asked == 0 {
		doubt("", &Doubt{Rule: "demand", Reason: fmt.Sprintf("%s: no record of the file is asked: %s", d.name(), whyNone(d.ForAll))})
	}
	if d.ForAll && (!complete || d.loose) {
		met = false
		doubt("", &Doubt{Rule: "for-all", Reason: fmt.Sprintf("%s is shown of %s of %d, and nothing shows that these are all: bring the log's entries", d.name(), plural.Of(d.proved, "record"), d.asked)})
	}
	return Answer{Demand: d.Text, ForAll: d.ForAll, Asked: d.asked, Proved: d.proved, Met: met}
}

func whyNone(forAll bool) string {
	if forAll {
		return "none is an agent's"
	}
	return "none has this member"
}

func (d *demanded) madeFor() string {
	if d.Audience == "" {
		return " to everybody"
	}
	return fmt.Sprintf(" to %q", evidence.Abbreviate(d.Audience))
}

// settleSum decides of all records together: by one proof, or by their values if all are known. What proofs show of a single one counts only if no other is asked.
func (d *demanded) settleSum(doubt func(record string, d *Doubt)) {
	proved := !d.failed && (d.summed || len(d.open) == 1 && d.open[0].proved)
	known := !slices.ContainsFunc(d.open, func(p *pending) bool { return p.value == nil })
	if !proved && known && len(d.open) > 0 && !d.failed {
		if proved = d.sumFits(); !proved {
			doubt("", &Doubt{Rule: "value", Reason: d.name() + ": the values that the records show come to more, or one is not from 0 to that"})
			d.open = nil // they are answered
			return
		}
	}
	for _, p := range d.open {
		p.proved = proved
	}
}

// sumFits reports whether the known values are of one kind, each is from 0 to what is demanded, and so is their sum.
func (d *demanded) sumFits() bool {
	for _, kind := range ordered {
		most, err := kind.Number(d.want.Hi)
		if err != nil {
			continue
		}
		left, of := most, true
		for _, p := range d.open {
			n, err := kind.Number(p.value)
			if of = err == nil; !of {
				break
			}
			if n < 0 || n > left {
				return false
			}
			left -= n
		}
		if of {
			return true
		}
	}
	return false
}
