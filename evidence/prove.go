//go:build !js

package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence/property"
)

var (
	// ErrUnprovable says that a record has no provable member at a pointer. It cannot be made provable afterwards.
	ErrUnprovable = errors.New("not provable: it had to be made so when the record was sealed")
	// ErrWithheld says that a record does not disclose the value that a statement is about.
	ErrWithheld = errors.New("its value is not disclosed here, and a proof is made from the value")
)

// A Member is a member of a record that discloses its value. Proofs are not signed, so everyone who has the disclosure can make them, at any time, and add
// them to the record's file. A reader who gets the file without the disclosure learns what the statement says, and nothing else about the value.
type Member struct {
	Record  *Record
	Pointer string
}

// Prove makes a proof of a statement about the member. The statement's format, kind and members are filled in from it. random should be
// crypto/rand.Reader. Its errors include ErrUnprovable, ErrWithheld, property.ErrFalse, ErrDisclosure, ErrProvable, and those
// of property.Statement.Check.
func (m *Member) Prove(s property.Statement, random io.Reader) (*PropertyProof, error) {
	said, err := m.Provable()
	if err != nil {
		return nil, err
	}
	s.Format, s.Kind, s.Members = property.Format, said.Kind, []property.Member{{Pointer: m.Pointer, Record: m.Record.Digest.String()}}
	opening, err := m.open()
	if err != nil {
		return nil, err
	}
	commitment, err := property.ParseCommitment(said.Commitment)
	if err != nil {
		return nil, err
	}
	proof, err := property.Prove(&s, opening, random)
	if err != nil {
		return nil, err
	}
	// What a verifier would refuse must not leave: its reader would take the record for a forgery.
	if err := property.Verify(&s, commitment, proof); err != nil {
		return nil, err
	}
	statement, err := s.Bytes()
	if err != nil {
		return nil, err
	}
	return &PropertyProof{Proof: proof, Statement: statement}, nil
}

// Provable returns the second commitment to the member, or ErrUnprovable, wrapped.
func (m *Member) Provable() (*Provable, error) {
	p := &m.Record.Payload
	if said := p.provableAt(m.Pointer); said != nil {
		return said, nil
	}
	var names []string
	for _, one := range p.Provable {
		names = append(names, one.Pointer)
	}
	has := "it has no provable field"
	if len(names) > 0 {
		has = "its provable fields are " + Abbreviate(strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("record %s: field %s: %w; %s", p.RecordID, m.Pointer, ErrUnprovable, has)
}

// open returns what opens both commitments, after it compared it with both.
func (m *Member) open() (property.Opening, error) {
	i := m.Record.disclosure(m.Pointer)
	if i < 0 {
		return property.Opening{}, fmt.Errorf("record %s: field %s: %w", m.Record.Payload.RecordID, m.Pointer, ErrWithheld)
	}
	d := m.Record.Disclosures[i]
	if err := m.Record.CheckDisclosure(d); err != nil {
		return property.Opening{}, fmt.Errorf("record %s: %w", m.Record.Payload.RecordID, err)
	}
	return property.Opening{Value: d.Value, Salt: [property.SaltSize]byte(d.Salt)}, nil
}

// AddProof adds a proof to the record. It replaces a proof of the same statement. It returns an error, and changes nothing, if the record would carry
// more than a verifier reads.
func (r *Record) AddProof(proof *PropertyProof) error {
	list := slices.DeleteFunc(slices.Clone(r.Properties), func(p PropertyProof) bool { return bytes.Equal(p.Statement, proof.Statement) })
	list = append(list, *proof)
	if err := CheckProperties(list); err != nil {
		return fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
	}
	size := 0
	for _, p := range list {
		size += len(p.Statement) + len(p.Proof)
	}
	if size > MaxProofs {
		return fmt.Errorf("record %s: its proofs would have %d bytes, and verifiers check at most %d", r.Payload.RecordID, size, MaxProofs)
	}
	r.Properties = list
	return nil
}

// ParseProperty reads what people write of a statement about values of a kind: "0..5000" of a range, "refund,quote" or a JSON array of a set, and
// "18@2026-11-23" of an age. It does not check whether the statement can be proved.
func ParseProperty(form property.Form, kind property.Kind, text string) (s property.Statement, err error) {
	s.Form = form
	switch form {
	case property.Range:
		lo, hi, there := strings.Cut(text, "..")
		if !there {
			return s, fmt.Errorf("%q: want LO..HI, as 0..5000", text)
		}
		if s.Lo, err = valueOfKind(kind, lo); err == nil {
			s.Hi, err = valueOfKind(kind, hi)
		}
	case property.In, property.NotIn:
		s.Set, err = entriesOf(kind, text)
	case property.AgeAtLeast:
		years, at, there := strings.Cut(text, "@")
		if s.Years, err = strconv.Atoi(years); err != nil || !there {
			return s, fmt.Errorf("%q: want YEARS@DATE, as 18@2026-11-23", text)
		}
		s.At = at
	default:
		err = fmt.Errorf("unknown form %q", string(form))
	}
	return s, err
}

// entriesOf reads the entries of a set: a JSON array, or texts with commas between them.
func entriesOf(kind property.Kind, text string) (entries []jsontext.Value, err error) {
	if strings.HasPrefix(text, "[") {
		array, err := Canonical([]byte(text))
		if err == nil {
			err = json.Unmarshal(array, &entries)
		}
		return entries, err
	}
	for entry := range strings.SplitSeq(text, ",") {
		v, err := valueOfKind(kind, entry)
		if err != nil {
			return nil, err
		}
		entries = append(entries, v)
	}
	return entries, nil
}

// valueOfKind writes a text as canonical JSON: a number for kinds that are numbers, and a string for all others.
func valueOfKind(kind property.Kind, text string) (jsontext.Value, error) {
	if kind == property.Date || kind == property.Time || kind == property.Text {
		return jsontext.AppendQuote(nil, text)
	}
	number, err := Canonical([]byte(strings.TrimSpace(text)))
	if err != nil || jsontext.Value(number).Kind() != '0' {
		return nil, fmt.Errorf("%q is not a number, and the kind is %s", text, kind)
	}
	return number, nil
}
