package verify

import (
	"fmt"

	"jurat/evidence"
	"jurat/property"
)

// An Answer says for how many records a demand is proved.
type DemandAnswer struct {
	Demand string `json:"demand"`
	Asked  int    `json:"asked"`  // records that have the member
	Proved int    `json:"proved"` // of these
	Met    bool   `json:"met"`    // there is one, and all are proved
}

// demanded is what became of a demand so far.
type demanded struct {
	*Demand
	asked, proved int
	open          []*pending
	byDigest      map[string]*pending
}

// A pending record is one of which proofs must show what is demanded.
type pending struct {
	record string
	proved bool
}

// ask asks the demand of the next record. It returns a doubt if what the record shows is not what is demanded.
func (d *demanded) ask(r *evidence.Record, k known) *proofDoubt {
	if !k.there {
		return nil
	}
	d.asked++
	switch {
	case k.value == nil:
		if d.byDigest == nil {
			d.byDigest = map[string]*pending{}
		}
		p := &pending{record: r.Payload.RecordID}
		d.byDigest[r.Digest.String()] = p
		d.open = append(d.open, p)
		return nil
	case !d.meets(k):
		return &proofDoubt{Rule: "value", Reason: fmt.Sprintf("%s: the value that it shows is another: %s", d.name(), evidence.Abbreviate(string(k.value)))}
	}
	d.proved++
	return nil
}

func (d *demanded) name() string { return fmt.Sprintf("the demand %q", evidence.Abbreviate(d.Text)) }

// show takes in a statement that holds.
func (d *demanded) show(s *property.Statement) {
	record := s.Members[0].Record
	if p := d.byDigest[record]; p != nil && !p.proved {
		p.proved = d.implied(s, record)
	}
}

// answer says what came of the demand, and hands on a doubt for each record of which nothing shows it.
func (d *demanded) answer(doubt func(record string, d *proofDoubt)) DemandAnswer {
	for _, p := range d.open {
		if p.proved {
			d.proved++
			continue
		}
		doubt(p.record, &proofDoubt{Rule: "demand", Reason: fmt.Sprintf("%s: the value at %s is hidden, and no proof that holds shows this of it%s", d.name(), evidence.Abbreviate(d.pointer), d.madeFor())})
	}
	if d.asked == 0 {
		doubt("", &proofDoubt{Rule: "demand", Reason: fmt.Sprintf("%s: no record of the file is asked: none has this member", d.name())})
	}
	return DemandAnswer{Demand: d.Text, Asked: d.asked, Proved: d.proved, Met: d.asked > 0 && d.proved == d.asked}
}

func (d *demanded) madeFor() string {
	if d.Audience == "" {
		return " to everybody"
	}
	return fmt.Sprintf(" to %q", evidence.Abbreviate(d.Audience))
}
