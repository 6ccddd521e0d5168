package evidence

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence/property"
	"jurat/internal/kit/sigkey"
	"jurat/internal/test/must"
)

func TestSealRefuses(t *testing.T) {
	signer := testSigner(t, Ed25519)
	good := Sealing{Signers: []Signer{signer}, Time: testTime, RecordID: testID}
	step := document(ChainStep, strings.Fields(table[ChainStep].required)...)
	for name, test := range map[string]struct {
		doc   string
		s     Sealing
		field string
	}{
		"no id":          {testPayload, Sealing{Signers: good.Signers, Time: testTime}, "record_id"},
		"wrong id":       {testPayload, Sealing{Signers: good.Signers, Time: testTime, RecordID: "1"}, "record_id"},
		"no time":        {step, Sealing{Signers: good.Signers, RecordID: testID}, "timestamp"},
		"other signers":  {testPayload[:len(testPayload)-1] + `,"signers":[{"alg":"ES256","key_id":"` + someDigest + `"}]}`, good, "signers"},
		"the same twice": {testPayload, Sealing{Signers: []Signer{signer, signer}, RecordID: testID}, "signers"},
	} {
		draft := must.Get(ParseDraft([]byte(test.doc)))(t)
		r, err := draft.Seal(test.s)
		must.Hold(t, r == nil, "%s: Seal returned a record with the error", name)
		t.Run(name, func(t *testing.T) { wantField(t, err, test.field) })
	}
	draft, _ := ParseDraft([]byte(testPayload))
	must.Refuse(t, "", "sealed without a signer")(draft.Seal(Sealing{RecordID: testID}))
}

// TestSealKeepsTheDraft seals one draft twice. The first sealing must not change the draft.
func TestSealKeepsTheDraft(t *testing.T) {
	draft := must.Get(ParseDraft([]byte(testPayload)))(t)
	s := Sealing{Signers: []Signer{testSigner(t, ES256)}, RecordID: testID, Random: new(counter)}
	must.Get(draft.SealingApart(nil, "/prompt").Seal(s))(t)
	second := must.Get(draft.Seal(s))(t)
	wantKept(t, testPayload, second)
}

// TestDraftThatIsChanged: a caller who sets members of the embedded payload changes nothing of what is sealed: the record says what is signed.
func TestDraftThatIsChanged(t *testing.T) {
	draft := must.Get(ParseDraft([]byte(testPayload)))(t)
	before := draft.Actor()
	draft.AgentID, draft.Signers, draft.RecordID, draft.Response = "another", []SignerInfo{{}}, "x", []byte(`"other"`)
	r := must.Get(draft.Seal(Sealing{Signers: []Signer{testSigner(t, ES256)}, RecordID: testID}))(t)
	signed := must.Get(membersOf(r.Canonical()))(t)
	if r.Payload.Actor() != before || string(signed["agent_id"]) != string(quote(before)) || string(signed["response"]) != string(r.Payload.Response) || r.Payload.RecordID != testID {
		t.Errorf("the record says %+v, and %s is signed", r.Payload, r.Canonical())
	}
}

func TestActorAndRole(t *testing.T) {
	for action, row := range table {
		r := seal(t, document(action, strings.Fields(row.required)...), nil)
		actor := "agent"
		if action == HumanReview {
			actor = "user@example.com"
		}
		must.Hold(t, r.Payload.Actor() == actor && r.Payload.Role() == row.role && r.Payload.Time().Equal(testTime),
			"%s: %s, %s, %s", action, r.Payload.Actor(), r.Payload.Role(), r.Payload.Time())
		role, known := RoleOf(action)
		must.Hold(t, known && slices.Contains(Roles(), role), "%s: role %q, %t", action, role, known)
		byOperator := row.role == RoleOperator
		inTrial := !slices.Contains([]Role{RoleAgent, RoleReviewer, RoleRecorder}, row.role) && !byOperator
		must.Hold(t, action.InTrial() == inTrial && action.ByOperator() == byOperator,
			"%s: in a trial is %t, by the operator is %t", action, action.InTrial(), action.ByOperator())
	}
	_, known := RoleOf("verdict")
	must.Hold(t, !known, "an unknown action type has a role")
}

// TestSealTooLong seals a draft of the maximum length. The members that Seal fills in make it too long.
func TestSealTooLong(t *testing.T) {
	longest := strings.Replace(testPayload, `"p"`, `"`+strings.Repeat("p", MaxDocument-len(testPayload)+1)+`"`, 1)
	draft, err := ParseDraft([]byte(longest))
	must.Need(t, err == nil && len(longest) == MaxDocument, "%v %v", len(longest), err)
	_, err = draft.Seal(Sealing{Signers: []Signer{testSigner(t, Ed25519)}, RecordID: testID})
	wantSyntax(t, err, "", MaxDocument, "longer than 33554432 bytes")
	r := must.Get(draft.SealingApart(nil, "/prompt").Seal(Sealing{Signers: []Signer{testSigner(t, Ed25519)}, RecordID: testID}))(t)
	opened, err := Open(marshalRecord(t, r))
	must.Hold(t, err == nil && opened.CheckDisclosures() == nil, "sealed apart, it does not open: %v", err)
}

// TestTooManySigners checks the limit on signatures. It bounds the work of a verifier.
func TestTooManySigners(t *testing.T) {
	r := seal(t, testPayload, nil)
	m := must.Get(membersOf(r.Canonical()))(t)
	var infos []SignerInfo
	for i := range maxSigners + 1 {
		m["signers"] = marshal(infos)
		_, err := ParsePayload(m.canonical())
		must.Hold(t, (err == nil) == (i > 0), "%d signers: %v", i, err)
		infos = append(infos, SignerInfo{Algorithm: ES256, KeyID: DigestOf([]byte{byte(i)})})
	}
	m["signers"] = marshal(infos)
	_, err := ParsePayload(m.canonical())
	wantField(t, err, "signers")
}

// TestPrepare: Prepare for an outside signer gives the payload that Seal would sign.
func TestPrepare(t *testing.T) {
	signer := testSigner(t, Ed25519)
	draft := must.Get(ParseDraft([]byte(testPayload)))(t)
	how := Sealing{RecordID: testID}
	prepared := must.Get(draft.Prepare([]SignerInfo{signer.Info()}, how))(t)
	how.Signers = []Signer{signer}
	r := must.Get(draft.Seal(how))(t)
	must.Equal(t, string(prepared), string(r.Canonical()))
	must.Refuse(t, "", "Prepare accepted signers that sign in this process")(draft.Prepare([]SignerInfo{signer.Info()}, how))
	must.Refuse(t, "", "Prepare accepted a payload without signers")(draft.Prepare(nil, Sealing{RecordID: how.RecordID}))
	for _, apart := range []*Draft{draft.SealingApart(nil, "/prompt"), draft.SealingApart(map[string]property.Kind{"/prompt": property.Text})} {
		if _, err := apart.Prepare([]SignerInfo{signer.Info()}, Sealing{RecordID: how.RecordID}); err == nil {
			t.Errorf("Prepare accepted %v, although it returns no disclosures", apart.Apart())
		}
	}
}

// TestNormalSignature: an ECDSA signature gets its low S, and the signatures of other algorithms stay as they are.
func TestNormalSignature(t *testing.T) {
	private := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	digest := sha256.Sum256(nil)
	for range 16 {
		given := must.Get(ecdsa.SignASN1(rand.Reader, private, digest[:]))(t)
		normal := must.Get(NormalSignature(ES256, given))(t)
		err := sigkey.StrictECDSA(normal)
		must.Hold(t, err == nil && ecdsa.VerifyASN1(&private.PublicKey, digest[:], normal), "%x became %x: %v", given, normal, err)
	}
	must.Refuse(t, "", "no DER")(NormalSignature(ES256, []byte{1}))
	for _, algorithm := range []Algorithm{RS256, Ed25519, MLDSA65} {
		got, err := NormalSignature(algorithm, []byte{1})
		must.Hold(t, err == nil && len(got) == 1, "%s: %x, %v", algorithm, got, err)
	}
}

// A draft that is made of a payload is the one that its document makes, whether its values are canonical or not.
func TestNewDraftIsItsDocument(t *testing.T) {
	for _, text := range []string{`"plain"`, `"\n\u001f\\é"`, ` "spaced" `, `"\u00e9\/"`, `"` + strings.Repeat("long", 1<<18) + `"`} {
		p := Payload{ActionType: ObservedCall, AgentID: "recorder", RequestID: "r", Timestamp: "2026-01-31T16:15:00.000Z", Response: jsontext.Value(text), RequestBody: jsontext.Value(text),
			Observed: &Observed{Agent: "a", Began: "2026-01-31T16:15:00.000Z", Ended: Complete, Fidelity: ByBytes, Protocol: "p/1", Vantage: Proxy,
				Request: &ObservedBody{Bytes: 1, SHA256: DigestOf([]byte("x"))}}}
		doc := must.Get(json.Marshal(p))(t)
		parsed, errParsed := ParseDraft(doc)
		made, errMade := NewDraft(p)
		must.Need(t, errParsed == nil && errMade == nil, "%.20s: %v, %v", text, errParsed, errMade)
		must.Hold(t, bytes.Equal(parsed.members.canonical(), made.members.canonical()),
			"%.20s: %.300s\nand its document: %.300s", text, made.members.canonical(), parsed.members.canonical())
		must.Equal(t, len(made.members.canonical()), made.members.size(), text)
	}
}

// Texts count for the size of a payload.
func TestNewDraftOfTooLongTexts(t *testing.T) {
	long := jsontext.Value(`"` + strings.Repeat("a", MaxDocument/2) + `"`)
	_, err := NewDraft(Payload{ActionType: ModelOutput, AgentID: "a", RequestID: "r", Timestamp: "2026-01-31T16:15:00.000Z", Model: "m", ModelVersion: "1", Parameters: jsontext.Value("{}"),
		Prompt: long, Response: long})
	_, is := errors.AsType[*SyntaxError](err)
	must.Hold(t, is && strings.Contains(err.Error(), "longer than"), "%v", err)
}
