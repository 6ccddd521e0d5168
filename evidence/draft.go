package evidence

import (
	"crypto"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence/property"
	"jurat/internal/kit/jsonform"
	"jurat/internal/kit/sigkey"
)

// A Draft is a payload before sealing: the actor's members, checked. The sealer fills in the rest.
type Draft struct {
	Payload           // as the actor gave it; the action type is always known
	given    *Payload // what was read of the members; the embedded one is the caller's, who may have set its members since
	members  members
	apart    []string                 // what is to be sealed apart, see SealingApart
	provable map[string]property.Kind // what of that is to be provable, see SealingProvable
}

// SealingApart returns a copy of the draft that lists the members to seal apart, by JSON pointers.
func (d *Draft) SealingApart(pointers ...string) *Draft {
	wishing := new(*d)
	wishing.apart = slices.Compact(slices.Sorted(slices.Values(slices.Concat(d.apart, pointers))))
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

// FormatTime writes a time in the form of payloads: RFC 3339, UTC, milliseconds.
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

// marshal encodes values that this package made.
func marshal(v any) jsontext.Value {
	doc, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("evidence: encoding %T: %v", v, err)) // cannot happen: names and values were checked on input
	}
	return doc
}

// quote encodes a text that this package made.
func quote[Text ~string | ~[]byte](s Text) jsontext.Value {
	return quoteIn(len(s)+len(s)/4+len(`""`), s)
}

// quoteIn encodes a text whose form is about as long as expected.
func quoteIn[Text ~string | ~[]byte](expected int, s Text) jsontext.Value {
	text, err := jsontext.AppendQuote(make([]byte, 0, expected), s)
	if err != nil {
		panic(fmt.Sprintf("evidence: quoting %q: %v", s, err)) // cannot happen: texts were checked on input
	}
	return text
}

// Algorithm names a signature algorithm.
type Algorithm = sigkey.Algorithm

const (
	RS256   = sigkey.RS256   // RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017, section 8.2), 2048 to 8192 bits
	ES256   = sigkey.ES256   // ECDSA on P-256 with SHA-256, strict DER, low S
	Ed25519 = sigkey.Ed25519 // RFC 8032, pure, over the canonical bytes themselves
	MLDSA65 = sigkey.MLDSA65 // FIPS 204, pure, over the canonical bytes themselves, with an empty context
)

// Algorithms lists every algorithm, in the order in which they are shown.
func Algorithms() []Algorithm { return []Algorithm{ES256, RS256, Ed25519, MLDSA65} }

// ErrSignature is in the chain of every error about a signature that is not valid under its key.
var ErrSignature = errors.New("the signature is not this key's over this payload")

// SignerInfo names, inside the signed payload, one signature that the record must have.
type SignerInfo struct {
	Algorithm Algorithm `json:"alg"`
	KeyID     KeyID     `json:"key_id"`
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
	return sigkey.Sign(s.key, s.info.Algorithm, s.random, canonical)
}

// CheckSignature verifies one signature over a canonical payload. Every failure has ErrSignature in its chain.
func CheckSignature(public crypto.PublicKey, want SignerInfo, canonical, signature []byte) error {
	if id, err := KeyIDOf(public); err != nil || id != want.KeyID {
		return fmt.Errorf("%w: the payload names another key", ErrSignature)
	}
	return checkSignature(public, want, canonical, signature)
}

// checkSignature is CheckSignature for a key that is known to have the wanted id.
func checkSignature(public crypto.PublicKey, want SignerInfo, canonical, signature []byte) error {
	if err := sigkey.Check(public, want.Algorithm, canonical, signature); err != nil {
		return fmt.Errorf("%w: %w", ErrSignature, err)
	}
	return nil
}

// NormalSignature returns the form of a signature that records have. It changes only ECDSA signatures: other programs
// make (r, n-s) as often as (r, s), and each follows from the other. It returns an error if an ECDSA signature is not
// DER.
func NormalSignature(algorithm Algorithm, signature []byte) ([]byte, error) {
	if algorithm != ES256 {
		return signature, nil
	}
	return sigkey.LowS(signature)
}

// KeyID identifies a public key: the SHA-256 of its DER-encoded SubjectPublicKeyInfo.
type KeyID = Digest

// KeyIDOf returns the key's id. Its errors are those of MarshalPublicKey.
func KeyIDOf(public crypto.PublicKey) (KeyID, error) {
	der, err := MarshalPublicKey(public)
	if err != nil {
		return KeyID{}, err
	}
	return DigestOf(der), nil
}

// AlgorithmOf returns the algorithm of a key. It returns an error for keys that are too weak or of another kind.
func AlgorithmOf(public crypto.PublicKey) (Algorithm, error) { return sigkey.AlgorithmOf(public) }

// MarshalPublicKey returns a key as DER SubjectPublicKeyInfo. The key's id is the digest of these bytes. It refuses a
// key of a type that x509 does not write.
func MarshalPublicKey(public crypto.PublicKey) ([]byte, error) { return sigkey.MarshalPublic(public) }

// ParsePublicKey reads a DER SubjectPublicKeyInfo of a kind that signs payloads. It accepts only the encoding that
// has the key's id. It refuses every other encoding and the keys that AlgorithmOf refuses.
func ParsePublicKey(der []byte) (crypto.PublicKey, error) { return sigkey.ParsePublic(der) }

// MarshalPrivateKey returns a private key that signs payloads as PKCS #8 in DER. An ML-DSA-65 key is written as its
// seed. It refuses such a key without its seed, and types that x509 does not write.
func MarshalPrivateKey(private crypto.Signer) ([]byte, error) { return sigkey.MarshalPrivate(private) }

// ParsePrivateKey reads a private key in PKCS #8, as MarshalPrivateKey writes it. It refuses keys that cannot sign.
func ParsePrivateKey(der []byte) (crypto.Signer, error) { return sigkey.ParsePrivate(der) }

// NewMLDSA65 derives an ML-DSA-65 key pair from 32 secret bytes (FIPS 204, algorithm 6).
func NewMLDSA65(seed *[32]byte) crypto.Signer { return sigkey.NewMLDSA(seed) }
