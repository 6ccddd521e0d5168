package evidence

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Draft is a payload before it is sealed: what the actor gave, checked, with what the sealer fills in still missing.
type Draft struct {
	Payload // as far as it was given; the action type is always known
	members members
	apart   []string // what is to be sealed apart, see SealingApart
}

// SealingApart returns a copy of the draft that says which of its members are to be sealed apart: JSON pointers.
func (d *Draft) SealingApart(pointers ...string) *Draft {
	wishing := new(*d)
	wishing.apart = slices.Compact(slices.Sorted(slices.Values(slices.Concat(d.apart, pointers))))
	return wishing
}

// Apart lists what SealingApart has named, sorted.
func (d *Draft) Apart() []string { return slices.Clone(d.apart) }

// ParseDraft reads a payload as agents send it, such as the audit model's own examples. A payload without
// action_type is a model output, unless it has a place in a chain and nothing of a model: then it is a chain step. A byte order mark before it
// says nothing.
func ParseDraft(doc []byte) (*Draft, error) {
	text := CutMark(doc)
	form, err := Canonical(text)
	if err != nil {
		return nil, shiftBy(err, len(doc)-len(text))
	}
	m, err := membersOf(form)
	if err != nil {
		return nil, err
	}
	if _, named := m["action_type"]; !named {
		m["action_type"] = quote(string(inferAction(m)))
	}
	p, err := m.payload()
	if err != nil {
		return nil, err
	}
	unfilled := slices.Concat(always, rules[p.ActionType].filled)
	if err := p.check(m, unfilled...); err != nil {
		return nil, err
	}
	return &Draft{Payload: *p, members: m}, nil
}

// NewDraft makes a draft of a payload built in Go.
func NewDraft(p Payload) (*Draft, error) {
	doc, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encoding payload: %w", err)
	}
	return ParseDraft(doc)
}

func inferAction(m members) ActionType {
	if _, chained := m["chain_position"]; !chained {
		return ModelOutput
	}
	for _, name := range []string{"model", "model_version", "prompt", "parameters"} {
		if _, there := m[name]; there {
			return ModelOutput
		}
	}
	return ChainStep
}

// Sealing is what sealing needs beside the draft.
type Sealing struct {
	Signers  []Signer  // at least one; their order is the order of the signatures
	Time     time.Time // fills in a missing timestamp where the action type allows that
	RecordID string    // see NewRecordID
	Apart    []string  // JSON pointers of members to seal apart, beside those of the draft; nil: none
	Random   io.Reader // salts of what is sealed apart; nil: crypto/rand
}

// Seal completes the draft, brings it into canonical form and signs it. The record has no time stamp yet: the
// imprint to stamp is Record.Imprint.
func (d *Draft) Seal(s Sealing) (*Record, error) {
	infos := make([]SignerInfo, len(s.Signers))
	for i, signer := range s.Signers {
		infos[i] = signer.Info()
	}
	r, err := d.complete(infos, s)
	if err != nil {
		return nil, err
	}
	if err := r.sign(s.Signers); err != nil {
		return nil, err
	}
	return r, nil
}

// Prepare completes the draft for signers that sign elsewhere, in this order, and returns the canonical payload that they
// have to sign. Of s it takes no signers, and seals nothing apart: what would open it could not be returned.
func (d *Draft) Prepare(signers []SignerInfo, s Sealing) ([]byte, error) {
	if len(s.Signers) > 0 || len(s.Apart) > 0 || len(d.apart) > 0 {
		return nil, errors.New("preparing payload: signers that sign here, or members to seal apart")
	}
	r, err := d.complete(signers, s)
	if err != nil {
		return nil, err
	}
	return r.canonical, nil
}

// complete makes the record that only lacks its signatures.
func (d *Draft) complete(signers []SignerInfo, s Sealing) (*Record, error) {
	m := maps.Clone(d.members)
	disclosures, err := d.sealApart(m, s)
	if err != nil {
		return nil, err
	}
	if err := fill(m, d, signers, s); err != nil {
		return nil, err
	}
	// What is signed is read once more, by the rules that a verifier will read it by.
	payload, err := m.payload()
	if err != nil {
		return nil, err
	}
	if err := payload.check(m); err != nil {
		return nil, err
	}
	canonical := m.canonical()
	if err := checkSize(canonical); err != nil {
		return nil, err
	}
	return &Record{Payload: *payload, Digest: DigestOf(canonical), Disclosures: disclosures, canonical: canonical}, nil
}

func randomOr(r io.Reader) io.Reader {
	if r == nil {
		return rand.Reader
	}
	return r
}

var schemaMember = quote(Schema)

// fill adds the members that the sealer is responsible for. One that the actor gave is kept, and must be right.
func fill(m members, d *Draft, infos []SignerInfo, s Sealing) error {
	if len(infos) == 0 {
		return errors.New("sealing: no signer")
	}
	if d.Signers != nil && !slices.Equal(d.Signers, infos) {
		return &FieldError{Field: "signers", Reason: "names other keys than those that sign here; leave it out"}
	}
	if d.RecordID == "" {
		if err := CheckRecordID(s.RecordID); err != nil {
			return &FieldError{Field: "record_id", Reason: err.Error()}
		}
		m["record_id"] = quote(s.RecordID)
	}
	if _, there := m["timestamp"]; !there {
		if s.Time.IsZero() {
			return &FieldError{Field: "timestamp", Reason: "missing, and the sealer was given no time to fill in"}
		}
		m["timestamp"] = quote(FormatTime(s.Time))
	}
	m["schema"] = schemaMember
	m["signers"] = marshal(infos)
	return nil
}

// FormatTime writes a time as payloads carry it: RFC 3339, UTC, milliseconds.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func (r *Record) sign(signers []Signer) error {
	for _, signer := range signers {
		signature, err := signer.Sign(r.canonical)
		if err != nil {
			return fmt.Errorf("signing payload: %w", err)
		}
		r.Signatures = append(r.Signatures, signature)
	}
	return r.checkSignatures()
}

// marshal encodes values of this package's own making.
func marshal(v any) jsontext.Value {
	doc, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("evidence: encoding %T: %v", v, err)) // names and values were checked when they came in
	}
	return doc
}

func quote(s string) jsontext.Value { return marshal(s) }
