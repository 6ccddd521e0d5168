package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/internal/must"
	"jurat/property"
)

// payable is a draft with values of several kinds.
var payable = strings.Replace(testPayload, `"prompt":"p"`, `"prompt":"p","metadata":{"amount":12.5,"born":"2001-02-03","plain":"x"}`, 1)

func payableDraft(t *testing.T) *Draft {
	t.Helper()
	return must.Get(ParseDraft([]byte(payable)))(t)
}

var payableKinds = map[string]property.Kind{"/metadata/amount": "decimal:2", "/metadata/born": property.Date}

func sealPayable(t *testing.T, d *Draft, s Sealing) (*Record, error) {
	t.Helper()
	s.Signers, s.RecordID = []Signer{testSigner(t, Ed25519)}, testID
	return d.Seal(s)
}

func mustSealPayable(t *testing.T) *Record {
	t.Helper()
	return must.Get(sealPayable(t, payableDraft(t).SealingProvable(payableKinds), Sealing{}))(t)
}

// TestProvable seals members with two commitments, by the draft's wish and by the sealer's. One salt opens both.
func TestProvable(t *testing.T) {
	draft := payableDraft(t)
	bySealer := must.Get(sealPayable(t, draft, Sealing{Apart: []string{"/prompt"}, Provable: payableKinds}))(t)
	for name, r := range map[string]*Record{"draft": mustSealPayable(t), "sealer": bySealer} {
		if len(r.Payload.Provable) != 2 || r.Payload.Provable[0].Kind != "decimal:2" || r.Payload.Provable[1].Pointer != "/metadata/born" {
			t.Fatalf("%s: %+v", name, r.Payload.Provable)
		}
		if err := r.CheckDisclosures(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if bytes.Contains(r.Canonical(), []byte("12.5")) {
			t.Errorf("%s: the value is in the payload", name)
		}
		again, err := Open(marshalRecord(t, r))
		if err != nil || again.CheckDisclosures() != nil || again.Payload.Provable[0] != r.Payload.Provable[0] {
			t.Errorf("%s: opened again: %v", name, err)
		}
		for _, d := range r.Disclosures {
			if p := r.Payload.provableAt(d.Pointer); p != nil {
				want, err := property.Commit(p.Kind, d.Pointer, property.Opening{Value: d.Value, Salt: [saltSize]byte(d.Salt)})
				if err != nil || want.String() != p.Commitment {
					t.Errorf("%s: %s: %v", name, d.Pointer, err)
				}
			}
		}
	}
	if len(draft.Provable()) != 0 {
		t.Error("SealingProvable changed the draft that it copies")
	}
}

// TestNotProvable: a value that does not fit its kind, and an unknown kind, are refused before anything is signed.
func TestNotProvable(t *testing.T) {
	for pointer, kind := range map[string]property.Kind{"/metadata/amount": property.Integer, "/metadata/born": property.Time, "/prompt": property.Date, "/metadata/plain": "money", "/response": "decimal:0"} {
		_, err := sealPayable(t, payableDraft(t).SealingProvable(map[string]property.Kind{pointer: kind}), Sealing{})
		wantField(t, err, pointer)
	}
	_, err := sealPayable(t, payableDraft(t).SealingProvable(map[string]property.Kind{"/metadata/none": property.Text}), Sealing{})
	wantField(t, err, "/metadata/none")
	if _, err := payableDraft(t).SealingProvable(payableKinds).Prepare([]SignerInfo{testSigner(t, Ed25519).Info()}, Sealing{RecordID: testID}); err == nil {
		t.Error("Prepare loses what opens the commitments")
	}
}

// TestProvableMember opens payloads whose second commitments break a rule of the format.
func TestProvableMember(t *testing.T) {
	r := mustSealPayable(t)
	list := r.Payload.Provable
	second := func(change func(*Provable)) []Provable {
		p := list[1]
		change(&p)
		return []Provable{list[0], p}
	}
	many := make([]Provable, MaxProvable+1)
	for i := range many {
		many[i] = Provable{Commitment: list[0].Commitment, Kind: list[0].Kind, Pointer: fmt.Sprintf("/metadata/%03d", i)}
	}
	if _, err := readProvable(marshal(many)); err == nil {
		t.Error("more than 64 are read")
	}
	for name, wrong := range map[string]any{
		"empty": []Provable{}, "object": list[0], "null": nil, "strings": []string{"/metadata/amount"},
		"twice": []Provable{list[0], list[0]}, "order": []Provable{list[1], list[0]},
		"not apart":  second(func(p *Provable) { p.Pointer = "/prompt" }),
		"no kind":    second(func(p *Provable) { p.Kind = "" }),
		"other kind": second(func(p *Provable) { p.Kind = "money" }),
		"no point":   second(func(p *Provable) { p.Commitment = "p256:02" + strings.Repeat("f", 64) }),
		"identity":   second(func(p *Provable) { p.Commitment = "p256:00" }),
		"upper case": second(func(p *Provable) { p.Commitment = "p256:" + strings.ToUpper(p.Commitment[5:]) }),
		"full point": second(func(p *Provable) { p.Commitment = "p256:04" + p.Commitment[7:] }),
		"hmac":       second(func(p *Provable) { p.Commitment = "hmac-sha256:" + strings.Repeat("0", 64) }),
		"more":       []map[string]any{{"commitment": list[0].Commitment, "kind": "date", "pointer": "/metadata/born", "value": 1}},
		"null kind":  []map[string]any{{"commitment": list[0].Commitment, "kind": nil, "pointer": "/metadata/born"}},
	} {
		members := object(t, r.Canonical())
		value := must.Get(json.Marshal(wrong))(t)
		members["provable"] = value
		doc := must.Get(json.Marshal(members))(t)
		form := must.Get(Canonical(doc))(t)
		if _, err := ParsePayload(form); err == nil {
			t.Errorf("%s: accepted", name)
		} else if field := new(FieldError); !errors.As(err, &field) || field.Field != "provable" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTwoValues: an actor commits to one value for readers and to another for proofs. A disclosure that matches the first shows it.
func TestTwoValues(t *testing.T) {
	honest := mustSealPayable(t)
	lie := honest.Disclosures[0]
	lie.Value = jsontext.Value(`1`)
	second := must.Get(lie.provable("decimal:2"))(t)
	doc := bytes.Replace(honest.Canonical(), []byte(honest.Payload.Provable[0].Commitment), []byte(second.String()), 1)
	r := must.Get(OpenParts(doc, honest.Signatures, nil))(t)
	r.Disclosures = honest.Disclosures
	if err := r.CheckDisclosures(); !errors.Is(err, ErrProvable) || errors.Is(err, ErrDisclosure) {
		t.Errorf("%v", err)
	}
	r.Disclosures = honest.Disclosures[1:]
	if err := r.CheckDisclosures(); err != nil {
		t.Errorf("of the other member: %v", err)
	}
	otherKind := bytes.Replace(honest.Canonical(), []byte(`"kind":"decimal:2"`), []byte(`"kind":"integer"`), 1) // 12.5 is not an integer
	r = must.Get(OpenParts(otherKind, honest.Signatures, nil))(t)
	r.Disclosures = honest.Disclosures
	if err := r.CheckDisclosures(); !errors.Is(err, ErrProvable) {
		t.Errorf("a value not of its kind: %v", err)
	}
}

// TestProperties carries proofs in files, which no signature covers: they open as they were, their form is checked, and withholding the
// value keeps them.
func TestProperties(t *testing.T) {
	r := mustSealPayable(t)
	proof := func(statement string, bytes ...byte) PropertyProof {
		return PropertyProof{Statement: jsontext.Value(statement), Proof: bytes}
	}
	r.Properties = []PropertyProof{proof(`{"b":1,"a":2}`, 1), proof(`{"a":2,"b":1}`, 2), proof(`{}`, 1)}
	again := must.Get(Open(marshalRecord(t, r)))(t)
	want := []PropertyProof{proof(`{"a":2,"b":1}`, 1), proof(`{"a":2,"b":1}`, 2), proof(`{}`, 1)}
	if diff := cmp.Diff(want, again.Properties); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := Withhold([]*Record{again}, []string{"/metadata/amount"}); err != nil || len(again.Properties) != 3 || len(again.Disclosures) != 1 {
		t.Errorf("%v, %d proofs, %d disclosures", err, len(again.Properties), len(again.Disclosures))
	}
	bundle := &Bundle{Records: []*Record{again}}
	file := must.Get(bundle.Marshal())(t)
	if back, err := ParseBundle(file); err != nil || len(back.Records[0].Properties) != 3 {
		t.Errorf("in a bundle: %v", err)
	}
	large, many := make([]byte, property.MaxProof), make([]PropertyProof, MaxProperties+1)
	for i := range many {
		many[i] = proof(`{}`, byte(i))
	}
	for name, wrong := range map[string][]PropertyProof{
		"no proof": {proof(`{}`)}, "no statement": {proof(``, 1)}, "array": {proof(`[]`, 1)}, "twice": {proof(`{}`, 1), proof(`{}`, 1)},
		"long proof": {proof(`{}`, append(large, 1)...)}, "long statement": {proof(`{"a":"`+strings.Repeat("a", MaxStatement)+`"}`, 1)},
		"many": many, "long together": {proof(`{"a":1}`, large...), proof(`{"a":2}`, large...), proof(`{"a":3}`, large...), proof(`{"a":4}`, large...)},
	} {
		r.Properties = wrong
		if _, err := r.Marshal(); err == nil || !strings.Contains(err.Error(), "properties: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
