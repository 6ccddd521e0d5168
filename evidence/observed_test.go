package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence/property"
	"jurat/internal/test/must"
)

// wholeObserved has every member of observed.
const wholeObserved = `{"agent":"shop-bot","attempt":2,"began":"2026-01-31T16:15:00.123Z","calls":[{"id":"c1","name":"look"}],"context_by_reference":["resp_1"],"credential":"hmac-sha256:00","ended":"client_gone",` +
	`"ended_ms":1200,"fidelity":"bytes","finish":"stop","first_byte_ms":0,"method":"POST","missing":["trailers"],"path":"/v1/responses","protocol":"openai.responses","provider_request_id":"req_1",` +
	`"request":{"bytes":10,"decoded_sha256":"` + bDigest + `","encoding":"zstd","headers":{"x":"y"},"sha256":"` + aDigest + `","type":"application/json"},` +
	`"response":{"bytes":7,"decoded":"refused","delivered":6,"encoding":"br","sha256":"` + aDigest + `"},"retry_of":"call-1","status":200,` +
	`"upstream":{"origin":"https://api.example.com","tls":{"not_after":"2027-01-01T00:00:00Z","spki_sha256":"` + aDigest + `"}},"usage":{"output_tokens":7},"vantage":"proxy"}`

const heartbeatBody = `{"calls":3,"event":"heartbeat","since":"2026-01-31T16:14:00Z"}`

// An observedChange is one change to wholeObserved. Unless it is accepted, a reader must refuse the result.
type observedChange struct {
	name, old, new string
	accepted       bool
}

// observedChanges are the rules of observed, each with a change that only this rule refuses, and changes that stay within the rules.
var observedChanges = []observedChange{
	{"whole", "", "", true},
	{"without what is optional", wholeObserved[:len(`{"agent":"shop-bot"`)] + `,"attempt":2`, `{"agent":"shop-bot"`, true},
	{"a response that was decoded and cut", `"decoded":"refused","delivered":6,"encoding":"br","sha256":"` + aDigest + `"`, `"decoded_sha256":"` + bDigest + `","encoding":"br","sha256":"` + aDigest + `","truncated":true`, true},
	{"a response that was cut", `"decoded":"refused","delivered":6,"encoding":"br","sha256":"` + aDigest + `"`, `"decoded_sha256":"` + bDigest + `","sha256":"` + aDigest + `","truncated":true`, true},
	{"a response that was masked", `"decoded":"refused","delivered":6,"encoding":"br","sha256":"` + aDigest + `"`, `"decoded_sha256":"` + bDigest + `","masked":true,"sha256":"` + aDigest + `"`, true},
	{"masked without a digest", `"decoded":"refused","delivered":6,"encoding":"br","sha256"`, `"masked":true,"sha256"`, false},
	{"not masked, said", `"decoded":"refused","delivered":6,"encoding":"br","sha256":"` + aDigest + `"`, `"masked":false,"sha256":"` + aDigest + `"`, false},
	{"a side", `"status":200`, `"side":"asked","status":200`, true},
	{"another side", `"status":200`, `"side":"left","status":200`, false},
	{"judged", `"method"`, `"judged":"agent","method"`, true},
	{"judged for another", `"method"`, `"judged":"recorder","method"`, false},
	{"judged for nobody", `"method"`, `"judged":"","method"`, false},
	{"judged, said", `"method"`, `"judged":true,"method"`, false},
	{"empty usage", `"usage":{"output_tokens":7}`, `"usage":{}`, true},
	{"an agent without a name", `"agent":"shop-bot"`, `"agent":""`, false},
	{"no agent", `"agent":"shop-bot",`, ``, false},
	{"an agent whose name turns the line", `"agent":"shop-bot"`, "\"agent\":\"a\u202e\"", false},
	{"attempt 0", `"attempt":2`, `"attempt":0`, false},
	{"attempt 1.5", `"attempt":2`, `"attempt":1.5`, false},
	{"no beginning", `"began":"2026-01-31T16:15:00.123Z",`, ``, false},
	{"a beginning in local time", `00.123Z`, `00.123+01:00`, false},
	{"no references", `["resp_1"]`, `[]`, false},
	{"a reference that is null", `["resp_1"]`, `[null]`, false},
	{"a reference without a text", `["resp_1"]`, `[""]`, false},
	{"a reference that is too long", `["resp_1"]`, `["` + strings.Repeat("r", 4097) + `"]`, false},
	{"a reference as long as it may be", `["resp_1"]`, `["` + strings.Repeat("r", 4096) + `"]`, true},
	{"ended otherwise", `"client_gone"`, `"gone"`, false},
	{"no end", `"ended":"client_gone",`, ``, false},
	{"ended before it began", `"ended_ms":1200`, `"ended_ms":-1`, false},
	{"ended never", `"ended_ms":1200`, `"ended_ms":null`, false},
	{"another fidelity", `"fidelity":"bytes"`, `"fidelity":"all"`, false},
	{"attributes seen by a proxy", `"fidelity":"bytes"`, `"fidelity":"attributes"`, false},
	{"parsed by somebody else", `"fidelity":"bytes"`, `"fidelity":"parsed"`, true},
	{"bytes without a request", `"request":{"bytes":10,"decoded_sha256":"` + bDigest + `","encoding":"zstd","headers":{"x":"y"},"sha256":"` + aDigest + `","type":"application/json"},`, ``, false},
	{"a path of two lines", `"/v1/responses"`, `"/v1\n"`, false},
	{"no path", `"/v1/responses"`, `""`, false},
	{"another vantage", `"vantage":"proxy"`, `"vantage":"moon"`, false},
	{"a status that is none", `"status":200`, `"status":99`, false},
	{"usage that is a list", `"usage":{"output_tokens":7}`, `"usage":[]`, false},
	{"usage that is null", `"usage":{"output_tokens":7}`, `"usage":null`, false},
	{"no reason why it stopped", `"finish":"stop"`, `"finish":""`, false},
	{"a call without a name", `"calls":[{"id":"c1","name":"look"}]`, `"calls":[{"id":"c1"}]`, true},
	{"a call with an empty name", `"calls":[{"id":"c1","name":"look"}]`, `"calls":[{"id":"c1","name":""}]`, false},
	{"a call with arguments", `"calls":[{"id":"c1","name":"look"}]`, `"calls":[{"arguments":"{}","id":"c1","name":"look"}]`, false},
	{"a call with a name of two lines", `"calls":[{"id":"c1","name":"look"}]`, `"calls":[{"id":"c1","name":"a\nb"}]`, false},
	{"no calls", `"calls":[{"id":"c1","name":"look"}]`, `"calls":[]`, false},
	{"as many calls as there may be", `{"id":"c1","name":"look"}`, `{"name":"a"}` + strings.Repeat(`,{"name":"a"}`, 999), true},
	{"a call more", `{"id":"c1","name":"look"}`, `{"name":"a"}` + strings.Repeat(`,{"name":"a"}`, 1_000), false},
	{"an unknown member", `"vantage":"proxy"`, `"vantage":"proxy","zone":1`, false},
	{"an unknown member of a body", `"type":"application/json"`, `"type":"application/json","z":1`, false},
	{"fewer bytes than none", `"bytes":10`, `"bytes":-1`, false},
	{"more bytes than a double counts", `"bytes":10`, `"bytes":9007199254740992`, false},
	{"no digest", `"decoded":"refused","delivered":6,"encoding":"br","sha256":"` + aDigest + `"`, `"decoded":"refused","delivered":6,"encoding":"br"`, false},
	{"decoding that was begun", `"decoded":"refused"`, `"decoded":"partly"`, false},
	{"decoding refused without an encoding", `"encoding":"br",`, ``, false},
	{"an encoding without a digest", `"decoded":"refused",`, ``, false},
	{"a digest without need", `"encoding":"zstd",`, ``, false},
	{"cut without a digest", `"encoding":"br","sha256":"` + aDigest + `"`, `"encoding":"br","sha256":"` + aDigest + `","truncated":true`, false},
	{"not cut, said", `"type":"application/json"`, `"truncated":false,"type":"application/json"`, false},
	{"more delivered than came", `"delivered":6`, `"delivered":8`, false},
	{"a request that is delivered", `"bytes":10,"decoded_sha256":"` + bDigest + `",`, `"bytes":10,"decoded_sha256":"` + bDigest + `","delivered":1,`, false},
	{"a header that is a number", `{"x":"y"}`, `{"x":1}`, false},
	{"headers that are a list", `{"x":"y"}`, `[]`, false},
	{"a header that is too long", `{"x":"y"}`, `{"x":"` + strings.Repeat("y", 4096) + `"}`, false},
	{"a header as long as it may be", `{"x":"y"}`, `{"x":"` + strings.Repeat("y", 4095) + `"}`, true},
	{"an upstream without an origin", `"origin":"https://api.example.com"`, `"origin":""`, false},
	{"a key without a digest", `,"spki_sha256":"` + aDigest + `"`, ``, false},
	{"a certificate without an end", `"not_after":"2027-01-01T00:00:00Z",`, ``, false},
}

// bodyChanges are bodies, each with whether a reader accepts it.
var bodyChanges = []observedChange{
	{"a text", "", `"{}"`, true},
	{"an empty text", "", `""`, true},
	{"base64", "", `{"base64":"/w=="}`, true},
	{"no bytes in base64", "", `{"base64":""}`, true},
	{"pieces", "", `{"pieces":["a",{"at":0,"from":"` + aDigest + `","length":1},{"base64":"/w=="}]}`, true},
	{"the longest copy", "", `{"pieces":[{"at":33554432,"from":"` + aDigest + `","length":33554432}]}`, true},
	{"base64 without padding", "", `{"base64":"/w"}`, false},
	{"base64 with bits left", "", `{"base64":"/x=="}`, false},
	{"base64 with a line break", "", `{"base64":"/w=\n="}`, false},
	{"base64 that is none", "", `{"base64":"%%%%"}`, false},
	{"base64 that is a number", "", `{"base64":1}`, false},
	{"base64 and pieces", "", `{"base64":"/w==","pieces":["a"]}`, false},
	{"an empty object", "", `{}`, false},
	{"a list", "", `[]`, false},
	{"a number", "", `1`, false},
	{"a copy from behind every body", "", `{"pieces":[{"at":33554433,"from":"` + aDigest + `","length":1}]}`, false},
	{"null", "", `null`, false},
	{"no pieces", "", `{"pieces":[]}`, false},
	{"pieces that are null", "", `{"pieces":null}`, false},
	{"an empty piece", "", `{"pieces":["a",""]}`, false},
	{"a piece that is a number", "", `{"pieces":[1]}`, false},
	{"a piece of pieces", "", `{"pieces":[{"pieces":["a"]}]}`, false},
	{"a copy of nothing", "", `{"pieces":[{"at":0,"from":"` + aDigest + `","length":0}]}`, false},
	{"a copy from nowhere", "", `{"pieces":[{"at":0,"length":1}]}`, false},
	{"a copy from zero", "", `{"pieces":[{"at":0,"from":"sha256:` + strings.Repeat("0", 64) + `","length":1}]}`, false},
	{"a copy from before the beginning", "", `{"pieces":[{"at":-1,"from":"` + aDigest + `","length":1}]}`, false},
	{"a copy from half a byte", "", `{"pieces":[{"at":0.5,"from":"` + aDigest + `","length":1}]}`, false},
	{"a copy of more than a body", "", `{"pieces":[{"at":0,"from":"` + aDigest + `","length":33554433}]}`, false},
	{"copies of more than a body", "", `{"pieces":["a",{"at":0,"from":"` + aDigest + `","length":33554432}]}`, false},
	{"a copy with more to say", "", `{"pieces":[{"at":0,"from":"` + aDigest + `","length":1,"to":1}]}`, false},
}

func TestObserved(t *testing.T) {
	for _, change := range observedChanges {
		value := strings.Replace(wholeObserved, change.old, change.new, 1)
		must.Need(t, (value == wholeObserved) == (change.name == "whole"), "%s: changes nothing", change.name)
		if form, err := Canonical([]byte(value)); err != nil || string(form) != value {
			t.Fatalf("%s: not canonical, so the rule would not be reached: %v", change.name, err)
		}
		o, err := readObserved(jsontext.Value(value))
		must.Hold(t, (err == nil) == change.accepted, "%s: %v", change.name, err)
		must.Hold(t, err != nil || string(marshal(o)) == value, "%s: read, and written again as %s", change.name, marshal(o))
		must.Hold(t, err == nil || !strings.Contains(err.Error(), "\n"), "%s: an error of several lines: %v", change.name, err)
	}
}

// TestObservedDropped leaves out each member in turn: what is required must be missed.
func TestObservedDropped(t *testing.T) {
	var whole map[string]json.RawMessage
	must.Do(t, json.Unmarshal([]byte(wholeObserved), &whole))
	required := []string{"agent", "began", "ended", "fidelity", "protocol", "request", "vantage"}
	for name := range whole {
		fewer := maps.Clone(whole)
		delete(fewer, name)
		doc := must.Get(json.Marshal(fewer))(t)
		_, err := readObserved(doc)
		must.Hold(t, (err != nil) == slices.Contains(required, name), "without %s: %v", name, err)
	}
}

func TestBodies(t *testing.T) {
	for _, change := range bodyChanges {
		pieces, err := ParseBody(jsontext.Value(change.new))
		must.Hold(t, (err == nil) == change.accepted, "%s: %v", change.name, err)
		if err != nil {
			continue
		}
		if again, err := FormatBody(pieces...); err != nil || string(again) != change.new && change.name != "no bytes in base64" {
			t.Errorf("%s: written again as %s, %v", change.name, again, err)
		}
	}
	_, err := ParseBody(jsontext.Value(`{"pieces":["a",{"at":0,"from":"` + aDigest + `","length":9223372036854775807}]}`))
	must.Hold(t, err != nil, "lengths that overflow are read")
	many := make([]Piece, MaxPieces)
	for i := range many {
		many[i] = Piece{Own: []byte("a"), Length: 1}
	}
	must.Fail(t, nil)(FormatBody(many...))
	must.Refuse(t, "", "one piece too many is written")(FormatBody(append(many, many[0])...))
	long := bytes.Repeat([]byte("a"), MaxBody)
	must.Fail(t, nil)(FormatBody(Piece{Own: long, Length: MaxBody}))
	must.Refuse(t, "", "a body that is too long is written")(FormatBody(Piece{Own: append(long, 'a'), Length: MaxBody + 1}))
}

// TestVantageFitsAct: telemetry is never taken for what was seen, nor the other way round.
func TestVantageFitsAct(t *testing.T) {
	for _, action := range []ActionType{ObservedCall, ObservedTool, ObservedMessage} {
		doc := strings.Replace(document(action, strings.Fields(observedMust)...), sampleIn(action, "observed"), sampleIn(ObservedSpan, "observed"), 1)
		_, err := ParseDraft([]byte(doc))
		wantField(t, err, "observed")
	}
	doc := strings.Replace(document(ObservedSpan, strings.Fields(observedMust)...), sampleIn(ObservedSpan, "observed"), sample["observed"], 1)
	_, err := ParseDraft([]byte(doc))
	wantField(t, err, "observed")
}

// TestSideFitsAct: of a message it is said which of two agents the agent is, and of nothing else.
func TestSideFitsAct(t *testing.T) {
	for _, action := range []ActionType{ObservedCall, ObservedTool, ObservedMessage, ObservedSpan} {
		observed := sampleIn(action, "observed")
		other := strings.Replace(observed, `"vantage"`, `"side":"asked","vantage"`, 1)
		if action == ObservedMessage {
			other = sample["observed"]
		}
		_, err := ParseDraft([]byte(strings.Replace(document(action, strings.Fields(observedMust)...), observed, other, 1)))
		wantField(t, err, "observed")
	}
}

// TestBodyApart seals bodies apart, as a recorder does by default: the payload holds commitments, and the digests are in clear.
func TestBodyApart(t *testing.T) {
	draft := must.Get(ParseDraft([]byte(document(ObservedCall, strings.Fields(observedMust+" request_body response_body prompt response")...))))(t)
	apart := []string{"/prompt", "/request_body", "/response", "/response_body"}
	r := must.Get(draft.SealingApart(nil, apart...).Seal(Sealing{Time: testTime, RecordID: testID, Signers: []Signer{testSigner(t, Ed25519)}}))(t)
	opened := must.Get(Open(marshalRecord(t, r)))(t)
	value, withheld := opened.Said("/response_body", opened.Payload.ResponseBody)
	must.Hold(t, !withheld && string(value) == sample["response_body"], "%s, withheld: %t", value, withheld)
	must.Get(Withhold([]*Record{opened}, apart))(t)
	_, withheld = opened.Said("/request_body", opened.Payload.RequestBody)
	must.Hold(t, withheld, "not withheld")
	must.Equal(t, opened.Payload.Observed.Request.Sealed().String(), someDigest)
}

// FuzzBody: what is read as a body is written as one, with the same bytes.
func FuzzBody(f *testing.F) {
	for _, change := range bodyChanges {
		f.Add([]byte(change.new))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		form, err := Canonical(doc)
		if err != nil {
			return
		}
		pieces, err := ParseBody(form)
		if err != nil {
			return
		}
		again, err := FormatBody(pieces...)
		must.Need(t, err == nil, "%s: %v", form, err)
		same, err := ParseBody(again)
		if err != nil || !slices.EqualFunc(pieces, same, func(a, b Piece) bool {
			return bytes.Equal(a.Own, b.Own) && a.From == b.From && a.At == b.At && a.Length == b.Length
		}) {
			t.Fatalf("%s became %s: %v", form, again, err)
		}
	})
}

// payable is a draft with values of several kinds.
var payable = strings.Replace(testPayload, `"prompt":"p"`, `"prompt":"p","metadata":{"amount":12.5,"born":"2001-02-03","plain":"x"}`, 1)

func payableDraft(t *testing.T) *Draft {
	t.Helper()
	return must.Get(ParseDraft([]byte(payable)))(t)
}

var payableKinds = map[string]property.Kind{"/metadata/amount": "decimal:2", "/metadata/born": property.Date}

func sealPayable(t *testing.T, d *Draft) (*Record, error) {
	t.Helper()
	return d.Seal(Sealing{Signers: []Signer{testSigner(t, Ed25519)}, RecordID: testID})
}

func mustSealPayable(t *testing.T) *Record {
	t.Helper()
	return must.Get(sealPayable(t, payableDraft(t).SealingApart(payableKinds)))(t)
}

// TestProvable seals members with two commitments, by the draft's wish. One salt opens both.
func TestProvable(t *testing.T) {
	draft := payableDraft(t)
	r := must.Get(sealPayable(t, draft.SealingApart(payableKinds)))(t)
	must.Need(t, len(r.Payload.Provable) == 2 && r.Payload.Provable[0].Kind == "decimal:2" && r.Payload.Provable[1].Pointer == "/metadata/born",
		"%+v", r.Payload.Provable)
	must.Do(t, r.CheckDisclosures())
	must.Hold(t, !bytes.Contains(r.Canonical(), []byte("12.5")), "the value is in the payload")
	again, err := Open(marshalRecord(t, r))
	must.Hold(t, err == nil && again.CheckDisclosures() == nil && again.Payload.Provable[0] == r.Payload.Provable[0], "opened again: %v", err)
	for _, d := range r.Disclosures {
		p := r.Payload.provableAt(d.Pointer)
		want := must.Get(property.Commit(p.Kind, d.Pointer, property.Opening{Value: d.Value, Salt: [saltSize]byte(d.Salt)}))(t)
		must.Equal(t, want.String(), p.Commitment)
	}
	must.Equal(t, len(draft.Provable()), 0)
}

// TestNotProvable: a value that does not fit its kind, and an unknown kind, are refused before anything is signed.
func TestNotProvable(t *testing.T) {
	for pointer, kind := range map[string]property.Kind{"/metadata/amount": property.Integer, "/metadata/born": property.Time, "/prompt": property.Date, "/metadata/plain": "money", "/response": "decimal:0"} {
		_, err := sealPayable(t, payableDraft(t).SealingApart(map[string]property.Kind{pointer: kind}))
		wantField(t, err, pointer)
	}
	_, err := sealPayable(t, payableDraft(t).SealingApart(map[string]property.Kind{"/metadata/none": property.Text}))
	wantField(t, err, "/metadata/none")
	_, err = payableDraft(t).SealingApart(payableKinds).Prepare([]SignerInfo{testSigner(t, Ed25519).Info()}, Sealing{RecordID: testID})
	must.Hold(t, err != nil, "Prepare loses what opens the commitments")
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
	must.Refuse(t, "", "more than 64 are read")(readProvable(marshal(many)))
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
	err := r.CheckDisclosures()
	must.Hold(t, errors.Is(err, ErrProvable) && !errors.Is(err, ErrDisclosure), "%v", err)
	r.Disclosures = honest.Disclosures[1:]
	must.Want(t, r.CheckDisclosures(), nil)
	otherKind := bytes.Replace(honest.Canonical(), []byte(`"kind":"decimal:2"`), []byte(`"kind":"integer"`), 1) // 12.5 is not an integer
	r = must.Get(OpenParts(otherKind, honest.Signatures, nil))(t)
	r.Disclosures = honest.Disclosures
	must.Want(t, r.CheckDisclosures(), ErrProvable)
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
	must.Equal(t, cmp.Diff(want, again.Properties), "")
	if _, err := Withhold([]*Record{again}, []string{"/metadata/amount"}); err != nil || len(again.Properties) != 3 || len(again.Disclosures) != 1 {
		t.Errorf("%v, %d proofs, %d disclosures", err, len(again.Properties), len(again.Disclosures))
	}
	bundle := &Bundle{Records: []*Record{again}}
	file := must.Get(bundle.Marshal())(t)
	back, err := ParseBundle(file)
	must.Hold(t, err == nil && len(back.Records[0].Properties) == 3, "in a bundle: %v", err)
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
		must.Refuse(t, "properties: ", name)(r.Marshal())
	}
}
