// Package properties checks the proofs that records carry about values which are sealed apart: docs/format.md, "Carried proofs".
//
// A proof is held against commitments that are part of signed payloads. The proof itself is not signed. So one that does not hold says nothing
// about the record, and a missing one shows nothing: only a reader who demands a proof learns from that.
package properties

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/property"
)

// MaxOfRecord bounds the bytes of statements and proofs of one record that are checked, which take about 2 s. docs/format.md has the same number, because two verifiers must agree.
const MaxOfRecord = 512 << 10

// A Doubt says why a carried proof shows nothing.
type Doubt struct {
	Rule    string
	Refuted bool // it is a proof of something else, or of nothing
	Reason  string
}

// A Shown is a statement that a carried proof shows.
type Shown struct {
	Record    string         `json:"record"` // id of the record that carries the proof
	Statement jsontext.Value `json:"statement"`

	statement *property.Statement
}

// Found is what the proofs of one record show.
type Found struct {
	Carried int // how many proofs
	Shown   []Shown
	Doubts  []Doubt

	known []known // what the record shows of each demand
}

// Of checks the proofs that a record carries, and looks for what it shows of each demand.
func Of(r *evidence.Record, demands []*Demand) Found {
	found, size := Found{Carried: len(r.Properties)}, 0
	for i, p := range r.Properties {
		size += len(p.Statement) + len(p.Proof)
		if size > MaxOfRecord {
			found.Doubts = append(found.Doubts, Doubt{Rule: "volume", Reason: fmt.Sprintf("its proofs have more than %d bytes, and what is beyond is not checked", MaxOfRecord)})
			break
		}
		if statement, doubt := check(r, p, i); doubt != nil {
			found.Doubts = append(found.Doubts, *doubt)
		} else {
			found.Shown = append(found.Shown, Shown{r.Payload.RecordID, p.Statement, statement})
		}
	}
	for _, d := range demands {
		found.known = append(found.known, d.look(r))
	}
	return found
}

// check reads a statement, which must be about the record that carries it, and holds the proof against the record's commitment.
func check(r *evidence.Record, p evidence.PropertyProof, i int) (*property.Statement, *Doubt) {
	s, err := property.ParseStatement(p.Statement)
	if err != nil {
		return nil, &Doubt{Rule: "statement", Reason: fmt.Sprintf("proof %d: %v", i, err)}
	}
	m := s.Members[0]
	if m.Record != r.Digest.String() {
		return nil, &Doubt{Rule: "record", Reason: fmt.Sprintf("proof %d is about another record, %s", i, m.Record)}
	}
	at := slices.IndexFunc(r.Payload.Provable, func(known evidence.Provable) bool { return known.Pointer == m.Pointer && known.Kind == s.Kind })
	if at < 0 {
		return nil, &Doubt{Rule: "unprovable", Reason: fmt.Sprintf("it has no provable member of the kind %s at %s", s.Kind, evidence.Abbreviate(m.Pointer))}
	}
	c, err := property.ParseCommitment(r.Payload.Provable[at].Commitment)
	if err != nil {
		return nil, &Doubt{Rule: "unprovable", Reason: err.Error()} // cannot happen: opening refuses such a payload
	}
	err = property.Verify(s, c, p.Proof)
	switch {
	case errors.Is(err, property.ErrProof):
		return nil, &Doubt{Rule: "proof", Refuted: true, Reason: fmt.Sprintf("the proof of %s does not hold: %v", s.Form, err)}
	case err != nil:
		return nil, &Doubt{Rule: "statement", Reason: err.Error()}
	}
	return s, nil
}
