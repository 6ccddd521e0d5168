// Package proving makes the proofs that records carry, from the disclosures of their members: docs/format.md, "Carried proofs".
//
// Proofs are not signed, so everyone who has a disclosure can make them, at any time, and add them to the record's file. A reader who gets the
// file without the disclosure learns what the statement says, and nothing else about the value.
package proving

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

	"jurat/evidence"
	"jurat/property"
	"jurat/verify"
)

var (
	// ErrUnprovable says that a record has no provable member at a pointer. It cannot be made provable afterwards.
	ErrUnprovable = errors.New("not provable: it had to be made so when the record was sealed")
	// ErrWithheld says that a record does not disclose the value that a statement is about.
	ErrWithheld = errors.New("its value is not disclosed here, and a proof is made from the value")
)

// A Member is a member of a record that discloses its value.
type Member struct {
	Record  *evidence.Record
	Pointer string
}

// Prove makes a proof of a statement about a member. The statement's format, kind and members are filled in from it. random should be
// crypto/rand.Reader. Its errors include ErrUnprovable, ErrWithheld, property.ErrFalse, evidence.ErrDisclosure, evidence.ErrProvable, and those
// of property.Statement.Check.
func Prove(s property.Statement, m Member, random io.Reader) (*evidence.PropertyProof, error) {
	said, err := m.provable()
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
	return &evidence.PropertyProof{Proof: proof, Statement: statement}, nil
}

// provable returns the second commitment to the member.
func (m *Member) provable() (*evidence.Provable, error) {
	list := m.Record.Payload.Provable
	if i := slices.IndexFunc(list, func(p evidence.Provable) bool { return p.Pointer == m.Pointer }); i >= 0 {
		return &list[i], nil
	}
	var names []string
	for _, p := range list {
		names = append(names, p.Pointer)
	}
	has := "it has no provable field"
	if len(names) > 0 {
		has = "its provable fields are " + evidence.Abbreviate(strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("record %s: field %s: %w; %s", m.Record.Payload.RecordID, m.Pointer, ErrUnprovable, has)
}

// Provable returns the kind of a record's member, or ErrUnprovable, wrapped.
func (m *Member) Provable() (property.Kind, error) {
	said, err := m.provable()
	if err != nil {
		return "", err
	}
	return said.Kind, nil
}

// open returns what opens both commitments, after it compared it with both.
func (m *Member) open() (property.Opening, error) {
	disclosures := m.Record.Disclosures
	i := slices.IndexFunc(disclosures, func(d evidence.Disclosure) bool { return d.Pointer == m.Pointer })
	if i < 0 {
		return property.Opening{}, fmt.Errorf("record %s: field %s: %w", m.Record.Payload.RecordID, m.Pointer, ErrWithheld)
	}
	alone := *m.Record
	alone.Disclosures = disclosures[i : i+1]
	if err := alone.CheckDisclosures(); err != nil {
		return property.Opening{}, fmt.Errorf("record %s: %w", m.Record.Payload.RecordID, err)
	}
	return property.Opening{Value: disclosures[i].Value, Salt: [property.SaltSize]byte(disclosures[i].Salt)}, nil
}

// Add adds a proof to a record. It replaces a proof of the same statement. It returns an error, and changes nothing, if the record would carry
// more than a verifier reads.
func Add(r *evidence.Record, proof *evidence.PropertyProof) error {
	list := slices.DeleteFunc(slices.Clone(r.Properties), func(p evidence.PropertyProof) bool { return bytes.Equal(p.Statement, proof.Statement) })
	list = append(list, *proof)
	if err := evidence.CheckProperties(list); err != nil {
		return fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
	}
	size := 0
	for _, p := range list {
		size += len(p.Statement) + len(p.Proof)
	}
	if size > verify.MaxProofs {
		return fmt.Errorf("record %s: its proofs would have %d bytes, and verifiers check at most %d", r.Payload.RecordID, size, verify.MaxProofs)
	}
	r.Properties = list
	return nil
}

// Parse reads what people write of a statement about values of a kind: "0..5000" of a range, "refund,quote" or a JSON array of a set, and
// "18@2026-11-23" of an age. It does not check whether the statement can be proved.
func Parse(form property.Form, kind property.Kind, text string) (s property.Statement, err error) {
	s.Form = form
	switch form {
	case property.Range:
		lo, hi, there := strings.Cut(text, "..")
		if !there {
			return s, fmt.Errorf("%q: want LO..HI, as 0..5000", text)
		}
		if s.Lo, err = value(kind, lo); err == nil {
			s.Hi, err = value(kind, hi)
		}
	case property.In, property.NotIn:
		s.Set, err = set(kind, text)
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

// set reads the entries of a set: a JSON array, or texts with commas between them.
func set(kind property.Kind, text string) (entries []jsontext.Value, err error) {
	if strings.HasPrefix(text, "[") {
		array, err := evidence.Canonical([]byte(text))
		if err == nil {
			err = json.Unmarshal(array, &entries)
		}
		return entries, err
	}
	for entry := range strings.SplitSeq(text, ",") {
		v, err := value(kind, entry)
		if err != nil {
			return nil, err
		}
		entries = append(entries, v)
	}
	return entries, nil
}

// value writes a text as canonical JSON: a number for kinds that are numbers, and a string for all others.
func value(kind property.Kind, text string) (jsontext.Value, error) {
	if kind == property.Date || kind == property.Time || kind == property.Text {
		return jsontext.AppendQuote(nil, text)
	}
	number, err := evidence.Canonical([]byte(strings.TrimSpace(text)))
	if err != nil || jsontext.Value(number).Kind() != '0' {
		return nil, fmt.Errorf("%q is not a number, and the kind is %s", text, kind)
	}
	return number, nil
}
