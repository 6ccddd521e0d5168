package verify

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/property"
)

// MaxProofs bounds the bytes of statements and proofs of one record that are checked, which take about 2 s. docs/format.md has the same number, because two verifiers must agree.
const MaxProofs = 512 << 10

// A Doubt says why a carried proof shows nothing.
type proofDoubt struct {
	Rule    string
	Refuted bool // it is a proof of something else, or of nothing
	Reason  string
}

// A Shown is a statement that a carried proof shows.
type ShownProperty struct {
	Record    string         `json:"record"` // id of the record that carries the proof
	Statement jsontext.Value `json:"statement"`

	statement *property.Statement
}

// ProofsFound is what the proofs of one record show.
type ProofsFound struct {
	Carried int // how many proofs
	Shown   []ShownProperty
	Doubts  []proofDoubt

	known []known // what the record shows of each demand
}

// ProofsOf checks the proofs that a record carries, and looks for what it shows of each demand.
func ProofsOf(r *evidence.Record, demands []*Demand) ProofsFound {
	found, size := ProofsFound{Carried: len(r.Properties)}, 0
	for i, p := range r.Properties {
		size += len(p.Statement) + len(p.Proof)
		if size > MaxProofs {
			found.Doubts = append(found.Doubts, proofDoubt{Rule: "volume", Reason: fmt.Sprintf("its proofs have more than %d bytes, and what is beyond is not checked", MaxProofs)})
			break
		}
		if statement, doubt := checkProof(r, p, i); doubt != nil {
			found.Doubts = append(found.Doubts, *doubt)
		} else {
			found.Shown = append(found.Shown, ShownProperty{r.Payload.RecordID, p.Statement, statement})
		}
	}
	for _, d := range demands {
		found.known = append(found.known, d.look(r))
	}
	return found
}

// checkProof reads a statement, which must be about the record that carries it, and holds the proof against the record's commitment.
func checkProof(r *evidence.Record, p evidence.PropertyProof, i int) (*property.Statement, *proofDoubt) {
	s, err := property.ParseStatement(p.Statement)
	if err != nil {
		return nil, &proofDoubt{Rule: "statement", Reason: fmt.Sprintf("proof %d: %v", i, err)}
	}
	m := s.Members[0]
	if m.Record != r.Digest.String() {
		return nil, &proofDoubt{Rule: "record", Reason: fmt.Sprintf("proof %d is about another record, %s", i, m.Record)}
	}
	at := slices.IndexFunc(r.Payload.Provable, func(known evidence.Provable) bool { return known.Pointer == m.Pointer && known.Kind == s.Kind })
	if at < 0 {
		return nil, &proofDoubt{Rule: "unprovable", Reason: fmt.Sprintf("it has no provable member of the kind %s at %s", s.Kind, evidence.Abbreviate(m.Pointer))}
	}
	c, err := property.ParseCommitment(r.Payload.Provable[at].Commitment)
	if err != nil {
		return nil, &proofDoubt{Rule: "unprovable", Reason: err.Error()} // cannot happen: opening refuses such a payload
	}
	err = property.Verify(s, c, p.Proof)
	switch {
	case errors.Is(err, property.ErrProof):
		return nil, &proofDoubt{Rule: "proof", Refuted: true, Reason: fmt.Sprintf("the proof of %s does not hold: %v", s.Form, err)}
	case err != nil:
		return nil, &proofDoubt{Rule: "statement", Reason: err.Error()}
	}
	return s, nil
}
