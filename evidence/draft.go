//go:build !js

package evidence

import (
	"crypto"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence/jsonform"
	"jurat/evidence/property"
	"jurat/internal/kit/sigkey"
)

// A Draft is a payload before sealing: the actor's members, checked. The sealer fills in the rest.
type Draft struct {
	Payload           // as the actor gave it; the action type is always known
	given    *Payload // what was read of the members; the embedded one is the caller's, who may have set its members since
	members  members
	apart    []string                 // what is to be sealed apart, see SealingApart
	provable map[string]property.Kind // what of that is to be provable, see SealingApart
}

// SealingApart returns a copy of the draft that also lists these members, by JSON pointers, to seal apart, and those of kinds to make provable, too.
func (d *Draft) SealingApart(kinds map[string]property.Kind, pointers ...string) *Draft {
	wishing := new(*d)
	wishing.apart = slices.Compact(slices.Sorted(slices.Values(slices.Concat(d.apart, pointers, slices.Collect(maps.Keys(kinds))))))
	wishing.provable = joined(d.provable, kinds)
	return wishing
}

// Apart returns the pointers given to SealingApart, sorted.
func (d *Draft) Apart() []string { return slices.Clone(d.apart) }

// ParseDraft reads a payload as agents send it, such as the audit model's own examples. A payload without action_type
// is a model output. The exception is a payload with a place in a chain and no model: it is a chain step. ParseDraft
// ignores a byte order mark. Its errors are *SyntaxError and *FieldError.
func ParseDraft(doc []byte) (*Draft, error) {
	text := CutMark(doc)
	form, err := Canonical(text)
	if err != nil {
		return nil, jsonform.ShiftBy(err, len(doc)-len(text))
	}
	m, err := membersOf(form)
	if err != nil {
		return nil, err
	}
	return draftOf(m)
}

// draftOf reads members, which belong to the draft from then on.
func draftOf(m members) (*Draft, error) {
	if _, named := m["action_type"]; !named {
		m["action_type"] = quote(string(inferAction(m)))
	}
	action, _ := readAction(m["action_type"]) // one that is no text has no rule
	p, err := m.payload(Payload{}, nil, slices.Concat(always, rules[action].filled)...)
	if err != nil {
		return nil, err
	}
	return &Draft{Payload: *p, given: p, members: m}, nil
}

// NewDraft makes a draft of a payload built in Go. The draft may share the memory of the payload's values, so nobody may change them afterwards. Its errors
// are those of ParseDraft.
func NewDraft(p Payload) (*Draft, error) {
	texts := p.takeTexts()
	doc, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encoding payload: %w", err)
	}
	form, err := Canonical(doc)
	if err != nil {
		return nil, err
	}
	m, err := membersOf(form)
	if err != nil {
		return nil, err
	}
	maps.Copy(m, texts)
	if err := ofPayload.CheckLength(m.size()); err != nil {
		return nil, err
	}
	return draftOf(m)
}

// takeTexts takes the values out of the payload that are texts in canonical form. They may be long, so they are not written and read again.
func (p *Payload) takeTexts() members {
	texts := members{}
	for name, value := range map[string]*jsontext.Value{"prompt": &p.Prompt, "context": &p.Context, "response": &p.Response,
		"modified_response": &p.ModifiedResponse, "request_body": &p.RequestBody, "response_body": &p.ResponseBody} {
		if ofPayload.IsCanonicalText(*value) {
			texts[name], *value = *value, nil
		}
	}
	return texts
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

// Sealing holds what sealing needs besides the draft.
type Sealing struct {
	Signers  []Signer  // at least one; their order is the order of the signatures
	Time     time.Time // fills in a missing timestamp if the action type allows it
	RecordID string    // see NewRecordID
	Random   io.Reader // salts of what is sealed apart; nil: crypto/rand
}

// Seal completes the draft, brings it into canonical form and signs it. The record has no time stamp yet: an
// authority must stamp Record.Imprint. Its errors are *FieldError and those of the signers and of Random.
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

// Prepare completes the draft for signers that sign elsewhere, in this order, and returns the canonical payload that
// they sign. It returns an error if s has signers, or the draft members to seal apart, whose disclosures it could not return.
func (d *Draft) Prepare(signers []SignerInfo, s Sealing) ([]byte, error) {
	if len(s.Signers) > 0 || len(d.apart) > 0 {
		return nil, errors.New("preparing payload: signers that sign here, or members to seal apart")
	}
	r, err := d.complete(signers, s)
	if err != nil {
		return nil, err
	}
	return r.canonical, nil
}

// complete makes the record without its signatures.
func (d *Draft) complete(signers []SignerInfo, s Sealing) (*Record, error) {
	m := maps.Clone(d.members)
	disclosures, err := d.sealApart(m, randomOr(s.Random))
	if err != nil {
		return nil, err
	}
	if err := fill(m, d, signers, s); err != nil {
		return nil, err
	}
	// What is signed was read by the rules of a verifier: what the actor gave when the draft was made, and the rest now.
	payload, err := m.payload(*d.given, d.members)
	if err != nil {
		return nil, err
	}
	canonical := m.canonical()
	if err := ofPayload.CheckSize(canonical); err != nil {
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

// fill adds the members that the sealer is responsible for. A member that the actor gave stays, and must be right.
func fill(m members, d *Draft, infos []SignerInfo, s Sealing) error {
	if d.given.Signers != nil && !slices.Equal(d.given.Signers, infos) {
		return &FieldError{Field: "signers", Reason: "names other keys than those that sign here; leave it out"}
	}
	if d.given.RecordID == "" {
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

// A Signer signs payloads with one private key, wherever the key is kept.
type Signer interface {
	Info() SignerInfo
	// Sign returns the signature over the canonical payload in the bytes that docs/format.md gives for the algorithm.
	Sign(canonical []byte) ([]byte, error)
}

// NewSigner makes a Signer of a private key: *rsa.PrivateKey, *ecdsa.PrivateKey on P-256, ed25519.PrivateKey, a key
// of NewMLDSA65, or anything that signs for such a public key (an HSM). A nil random makes ECDSA (RFC 6979) and
// ML-DSA (FIPS 204, section 3.4) deterministic. Its error is that of AlgorithmOf.
func NewSigner(key crypto.Signer, random io.Reader) (Signer, error) {
	algorithm, err := AlgorithmOf(key.Public())
	if err != nil {
		return nil, err
	}
	id, err := KeyIDOf(key.Public())
	if err != nil {
		return nil, err
	}
	return &keySigner{key: key, random: random, info: SignerInfo{Algorithm: algorithm, KeyID: id}}, nil
}

type keySigner struct {
	key    crypto.Signer
	random io.Reader
	info   SignerInfo
}

func (s *keySigner) Info() SignerInfo { return s.info }

func (s *keySigner) Sign(canonical []byte) ([]byte, error) {
	return sigkey.Sign(s.key, sigkey.Algorithm(s.info.Algorithm), s.random, canonical)
}

// sealApart replaces the members that are to be sealed apart by commitments and returns their disclosures. Members that
// the actor already sealed apart stay as they are.
func (d *Draft) sealApart(m members, random io.Reader) ([]Disclosure, error) {
	var disclosures []Disclosure
	for _, pointer := range d.apart {
		if slices.Contains(d.SealedApart, pointer) {
			return nil, &FieldError{Field: pointer, Reason: "sealed apart already"}
		}
		opens, err := m.commit(pointer, rules[d.ActionType], random)
		if err != nil {
			return nil, err
		}
		disclosures = append(disclosures, *opens)
	}
	if len(d.apart) > 0 {
		m["sealed_apart"] = marshal(slices.Sorted(slices.Values(slices.Concat(d.SealedApart, d.apart))))
	}
	return disclosures, d.makeProvable(m, disclosures)
}

func (m members) commit(pointer string, r rule, random io.Reader) (*Disclosure, error) {
	if err := apartAllowed(pointer, r); err != nil {
		return nil, err
	}
	value, err := m.get(pointer)
	if err != nil {
		return nil, err
	}
	d := &Disclosure{Pointer: pointer, Salt: make([]byte, saltSize), Value: value}
	if _, err := io.ReadFull(random, d.Salt); err != nil {
		return nil, fmt.Errorf("drawing salt: %w", err)
	}
	return d, m.set(pointer, quote(d.commitment()))
}

// Has reports whether a draft has the member at a pointer.
func (d *Draft) Has(pointer string) bool {
	_, err := d.members.get(pointer)
	return err == nil
}

// makeProvable adds the second commitments of members that were just sealed apart. Those that the actor made stay as they are.
func (d *Draft) makeProvable(m members, disclosures []Disclosure) error {
	list := slices.Clone(d.given.Provable)
	for _, opens := range disclosures {
		kind, wanted := d.provable[opens.Pointer]
		if !wanted {
			continue
		}
		commitment, err := opens.provable(kind)
		if err != nil {
			return &FieldError{Field: opens.Pointer, Reason: err.Error() + "; give a value of the kind, or name another kind"}
		}
		list = append(list, Provable{Commitment: commitment.String(), Kind: kind, Pointer: opens.Pointer})
	}
	if len(list) > 0 {
		slices.SortFunc(list, func(a, b Provable) int { return strings.Compare(a.Pointer, b.Pointer) })
		m["provable"] = marshal(list)
	}
	return nil
}

// joined returns both; what b says counts.
func joined(a, b map[string]property.Kind) map[string]property.Kind {
	all := make(map[string]property.Kind, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// Provable returns the kinds given to SealingApart.
func (d *Draft) Provable() map[string]property.Kind { return joined(d.provable, nil) }

// NewRecordID makes a UUIDv7: 48 bits of milliseconds, then randomness, so that ids sort by time. If random is nil, it uses crypto/rand. It returns
// an error for times before 1970 or after the year 10889, and the errors of random.
func NewRecordID(t time.Time, random io.Reader) (string, error) {
	ms := t.UnixMilli()
	if ms < 0 || ms >= 1<<48 {
		return "", fmt.Errorf("making record id: %s does not fit into a UUIDv7", t)
	}
	var id [16]byte
	if _, err := io.ReadFull(randomOr(random), id[:]); err != nil {
		return "", fmt.Errorf("drawing record id: %w", err)
	}
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return formatID(id[:]), nil
}
