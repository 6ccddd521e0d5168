// Package properties checks the proofs that records carry about values which are sealed apart: docs/format.md, "Carried proofs".
//
// A proof is held against commitments that are part of signed payloads. The proof itself is not signed. So one that does not hold says nothing
// about the record, and a missing one shows nothing: only a reader who demands a proof learns from that.
package properties

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/property"
)

// Bounds of what is checked. docs/format.md has the same numbers, because two verifiers must agree.
const (
	MaxOfRecord    = 512 << 10 // bytes of statements and proofs of one record, which take about 2 s
	maxOpen        = 2 << 20   // bytes of those in a file that are about several records
	maxCommitments = 1 << 16   // commitments in a file
)

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
	Open    []Open // those about several records

	known []known // what the record shows of each demand
}

// An Open is a proof about several records, which are not all known yet.
type Open struct {
	shown     Shown
	statement *property.Statement
	proof     []byte
	size      int
}

// Of checks the proofs that are about one record alone, and reads the others.
//
// It also looks for what the record shows of each demand.
func Of(r *evidence.Record, demands []*Demand) Found {
	found, size, known := Found{Carried: len(r.Properties)}, 0, new(Known)
	known.Add(r)
	for i, p := range r.Properties {
		size += len(p.Statement) + len(p.Proof)
		if size > MaxOfRecord {
			found.doubt(&Doubt{Rule: "volume", Reason: fmt.Sprintf("its proofs have more than %d bytes, and what is beyond is not checked", MaxOfRecord)})
			break
		}
		statement, doubt := read(r, p, i)
		open := Open{shown: Shown{r.Payload.RecordID, p.Statement, statement}, statement: statement, proof: p.Proof, size: len(p.Statement) + len(p.Proof)}
		switch {
		case doubt != nil:
			found.doubt(doubt)
		case ofOthers(statement, r):
			found.Open = append(found.Open, open)
		default:
			found.take(open.check(known))
		}
	}
	for _, d := range demands {
		found.known = append(found.known, d.look(r))
	}
	return found
}

func (f *Found) doubt(d *Doubt) { f.Doubts = append(f.Doubts, *d) }

func (f *Found) take(s *Shown, d *Doubt) {
	if d != nil {
		f.doubt(d)
		return
	}
	f.Shown = append(f.Shown, *s)
}

// read reads a statement. It must be about the record that carries it.
func read(r *evidence.Record, p evidence.PropertyProof, i int) (*property.Statement, *Doubt) {
	statement, err := property.ParseStatement(p.Statement)
	if err != nil {
		return nil, &Doubt{Rule: "statement", Reason: fmt.Sprintf("proof %d: %v", i, err)}
	}
	for _, m := range statement.Members {
		if m.Record == r.Digest.String() {
			return statement, nil
		}
	}
	return nil, &Doubt{Rule: "record", Reason: fmt.Sprintf("proof %d is about other records alone, such as %s", i, statement.Members[0].Record)}
}

func ofOthers(s *property.Statement, r *evidence.Record) bool {
	for _, m := range s.Members {
		if m.Record != r.Digest.String() {
			return true
		}
	}
	return false
}

// check holds the proof against the commitments.
func (o *Open) check(known *Known) (*Shown, *Doubt) {
	commitments := make([]property.Commitment, len(o.statement.Members))
	for i, m := range o.statement.Members {
		var doubt *Doubt
		if commitments[i], doubt = known.find(m, o.statement.Kind); doubt != nil {
			return nil, doubt
		}
	}
	err := property.Verify(o.statement, commitments, o.proof)
	switch {
	case errors.Is(err, property.ErrProof):
		return nil, &Doubt{Rule: "proof", Refuted: true, Reason: fmt.Sprintf("the proof of %s does not hold: %v", o.statement.Form, err)}
	case err != nil:
		return nil, &Doubt{Rule: "statement", Reason: err.Error()}
	}
	return &o.shown, nil
}

// Known has the commitments of a file's records.
type Known struct {
	commitments map[[sha256.Size]byte]string
	records     map[string]bool
	exceeded    bool
	open        []Open
	openSize    int
}

// Add takes in the commitments of a record.
func (k *Known) Add(r *evidence.Record) {
	if len(r.Payload.Provable) == 0 {
		return
	}
	if k.commitments == nil {
		k.commitments, k.records = map[[sha256.Size]byte]string{}, map[string]bool{}
	}
	if len(k.commitments)+len(r.Payload.Provable) > maxCommitments {
		k.exceeded = true
		return
	}
	digest := r.Digest.String()
	k.records[digest] = true
	for _, p := range r.Payload.Provable {
		k.commitments[keyOf(property.Member{Record: digest, Pointer: p.Pointer}, p.Kind)] = p.Commitment
	}
}

// keyOf is short, however long the pointer is.
func keyOf(m property.Member, kind property.Kind) [sha256.Size]byte {
	return sha256.Sum256([]byte(m.Record + "\x00" + string(kind) + "\x00" + m.Pointer))
}

func (k *Known) find(m property.Member, kind property.Kind) (property.Commitment, *Doubt) {
	text, there := k.commitments[keyOf(m, kind)]
	switch {
	case !there && k.exceeded:
		return property.Commitment{}, &Doubt{Rule: "volume", Reason: fmt.Sprintf("the file has more than %d commitments", maxCommitments)}
	case !there && !k.records[m.Record]:
		return property.Commitment{}, &Doubt{Rule: "absent", Reason: fmt.Sprintf("it is about record %s, which is not in this file or has nothing provable", m.Record)}
	case !there:
		return property.Commitment{}, &Doubt{Rule: "unprovable", Reason: fmt.Sprintf("record %s has no provable member of the kind %s at %s", m.Record, kind, evidence.Abbreviate(m.Pointer))}
	}
	c, err := property.ParseCommitment(text)
	if err != nil {
		return c, &Doubt{Rule: "unprovable", Reason: err.Error()} // cannot happen: opening refuses such a payload
	}
	return c, nil
}

// Later keeps proofs about several records until all records are known. It returns a doubt if they are too many.
func (k *Known) Later(open []Open) *Doubt {
	for _, o := range open {
		if k.openSize += o.size; k.openSize > maxOpen {
			return &Doubt{Rule: "volume", Reason: fmt.Sprintf("the proofs about several records have more than %d bytes, and what is beyond is not checked", maxOpen)}
		}
		k.open = append(k.open, o)
	}
	return nil
}

// Joint checks the proofs that were kept, in their order, and hands each result on with the id of the record that carries the proof.
func (k *Known) Joint(each func(record string, s *Shown, d *Doubt)) {
	for i := range k.open {
		s, d := k.open[i].check(k)
		each(k.open[i].shown.Record, s, d)
	}
}
