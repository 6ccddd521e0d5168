package evidence

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/internal/kit/sigkey"
	"jurat/internal/test/must"
)

// All records of these tests have this time, this record id and these salts.
var testTime = time.Date(2026, 1, 31, 16, 15, 0, 0, time.UTC)

const (
	testID      = "019c14d6-13a0-7000-8000-000000000001"
	testPayload = `{"agent_id":"a","model":"m","model_version":"m-1","parameters":{},"prompt":"p","request_id":"r",` +
		`"response":"s","timestamp":"2026-01-31T16:15:00Z"}`
)

// keyFiles are private keys that are published with the source. A signature by them proves nothing.
var keyFiles = map[Algorithm]string{
	ES256:   "worthless-test-key-es256.pem",
	RS256:   "worthless-test-key-rs256.pem",
	Ed25519: "worthless-test-key-ed25519.pem",
	MLDSA65: "worthless-test-key-mldsa65.pem", // the example of RFC 9881, appendix C.1.2
}

func testKey(t testing.TB, algorithm Algorithm) crypto.Signer {
	t.Helper()
	file := readFile(t, filepath.Join("testdata", "keys", keyFiles[algorithm]))
	block, _ := pem.Decode(file)
	must.Need(t, block != nil, "the key for %s is not PEM", algorithm)
	return must.Get(ParsePrivateKey(block.Bytes))(t)
}

func testSigner(t testing.TB, algorithm Algorithm) Signer {
	t.Helper()
	return must.Get(NewSigner(testKey(t, algorithm), nil))(t)
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(path))(t)
}

// counter is a predictable source of salts: 0, 1, 2, …
type counter byte

func (c *counter) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(*c)
		*c++
	}
	return len(p), nil
}

// seal makes a record of a payload, signed with the Ed25519 key unless the caller gives other signers.
func seal(t testing.TB, doc string, apart []string, signers ...Signer) *Record {
	t.Helper()
	if signers == nil {
		signers = []Signer{testSigner(t, Ed25519)}
	}
	draft := must.Get(ParseDraft([]byte(doc)))(t)
	return must.Get(draft.SealingApart(nil, apart...).Seal(Sealing{Signers: signers, Time: testTime, RecordID: testID, Random: new(counter)}))(t)
}

func marshalRecord(t testing.TB, r *Record) []byte {
	t.Helper()
	return must.Get(r.Marshal())(t)
}

// wantField checks that err is a FieldError about this member.
func wantField(t testing.TB, err error, field string) {
	t.Helper()
	var wrong *FieldError
	must.Hold(t, errors.As(err, &wrong) && wrong.Field == field, "error is %v, want a FieldError about %q", err, field)
}

// TestFormatDocument compares the table of action types in docs/format.md with the rules, and its members with those of
// the payload.
func TestFormatDocument(t *testing.T) {
	page := string(readFile(t, filepath.Join("..", "docs", "format.md")))
	var actions []ActionType
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 8 || !strings.HasPrefix(line, "| `") {
			continue
		}
		got := [][]string{words(cells[2]), words(cells[3]), words(cells[4]), words(cells[5]), words(cells[6])}
		for _, name := range words(cells[1]) {
			action := ActionType(name)
			actions = append(actions, action)
			r := rules[action]
			want := [][]string{{string(r.role)}, r.required, r.filled, r.optional, r.apart}
			must.Equal(t, cmp.Diff(want, got, cmp.Transformer("empty", func(list []string) string { return strings.Join(list, " ") })), "", action)
		}
	}
	slices.Sort(actions)
	must.Equal(t, cmp.Diff(ActionTypes(), actions), "")
	for name := range sample {
		must.Hold(t, strings.Contains(page, "`"+name+"`"), "docs/format.md does not mention %s", name)
	}
}

func words(cell string) []string {
	var names []string
	for _, name := range strings.Split(cell, ",") {
		if name = strings.Trim(name, " `"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// addFiles adds the committed files that match as seeds of a fuzz target.
func addFiles(f *testing.F, pattern string) {
	f.Helper()
	names, err := filepath.Glob(pattern)
	must.Need(f, err == nil && len(names) != 0, "no seeds in %s: %v", pattern, err)
	for _, name := range names {
		f.Add(readFile(f, name))
	}
}

// FuzzCanonical: the canonical form of a canonical form is itself, and it has the same values as the document.
func FuzzCanonical(f *testing.F) {
	for _, test := range accepted {
		f.Add([]byte(test.doc))
	}
	for _, test := range refused {
		f.Add([]byte(test.doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		before := bytes.Clone(doc)
		form, err := Canonical(doc)
		must.Need(t, bytes.Equal(doc, before), "Canonical changed its input")
		if err != nil {
			return
		}
		again, err := Canonical(form)
		must.Need(t, err == nil && bytes.Equal(again, form), "the form %q has the form %q, %v", form, again, err)
	})
}

// FuzzParseDraft: Seal accepts every accepted draft, the record keeps all of its members, opens, and marshals to the
// same bytes.
func FuzzParseDraft(f *testing.F) {
	addFiles(f, "testdata/source/*.json")
	addFiles(f, filepath.Join(vectorsDir, "*.canonical.json"))
	for action := range table {
		f.Add([]byte(document(action, "agent_id", "timestamp", "response", "chain_position", "saw")))
	}
	signer := testSigner(f, Ed25519)
	f.Fuzz(func(t *testing.T, doc []byte) {
		draft, err := ParseDraft(doc)
		if err != nil {
			return
		}
		r, err := draft.Seal(Sealing{Signers: []Signer{signer}, Time: testTime, RecordID: testID})
		if err != nil {
			if draft.Signers != nil {
				return // it asks for other keys
			}
			t.Fatalf("Seal refuses an accepted draft: %v", err)
		}
		if form, err := Canonical(r.Canonical()); err != nil || !bytes.Equal(form, r.Canonical()) {
			t.Fatalf("sealed is %s\nits form %s, %v", r.Canonical(), form, err)
		}
		if again, err := Canonical(marshal(r.Payload)); err != nil || !bytes.Equal(again, r.Canonical()) {
			t.Fatalf("sealed is %s\nthe struct %s, %v", r.Canonical(), again, err)
		}
		opened, err := Open(marshalRecord(t, r))
		must.Need(t, err == nil && bytes.Equal(opened.Canonical(), r.Canonical()), "the record does not open as it was sealed: %v", err)
		sealed := must.Get(membersOf(r.Canonical()))(t)
		for name, value := range draft.members {
			must.Need(t, bytes.Equal(sealed[name], value), "%s was %s and is %s", name, value, sealed[name])
		}
	})
}

// FuzzOpen: a record that opens marshals back to the same bytes.
func FuzzOpen(f *testing.F) {
	addFiles(f, filepath.Join(vectorsDir, "*.record.json"))
	f.Add(marshalRecord(f, richRecord(f)))
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := Open(file)
		if err != nil {
			return
		}
		again := marshalRecord(t, r)
		must.Need(t, bytes.Equal(again, file), "%q opens and marshals to %q", file, again)
		form, err := canonicalOf(file)
		must.Need(t, err != nil || form == string(file), "%q opens, but is not canonical", file)
		r.CheckDisclosures() // must not panic on any signature
		r.LogEntry(LogCounts{})
	})
}

// FuzzParseBundle: a bundle that parses marshals back to the same bytes.
func FuzzParseBundle(f *testing.F) {
	addFiles(f, filepath.Join(vectorsDir, "*.bundle.json"))
	f.Add(marshalBundle(f, testBundle(f)))
	f.Fuzz(func(t *testing.T, file []byte) {
		b, err := ParseBundle(file)
		if err != nil {
			_ = err.Error()
			return
		}
		again := marshalBundle(t, b)
		must.Need(t, bytes.Equal(again, file), "%q parses and marshals to %q", file, again)
	})
}

// FuzzCheckSignature: each ECDSA signature has exactly one accepted encoding. An accepted signature equals the signer's.
// One that is DER with a low S stays the same under lowS.
func FuzzCheckSignature(f *testing.F) {
	key, signer, payload := testKey(f, ES256), testSigner(f, ES256), []byte("payload")
	right := must.Get(signer.Sign(payload))(f)
	f.Add(right)
	f.Add(zeroBeforeR(right))
	f.Add([]byte{0x30, 6, 2, 1, 1, 2, 1, 1})
	f.Add([]byte{0x30, 0x80, 2, 1, 1, 2, 1, 1, 0, 0})
	digest := sha256.Sum256(payload)
	f.Fuzz(func(t *testing.T, signature []byte) {
		err := CheckSignature(key.Public(), signer.Info(), payload, signature)
		must.Need(t, err != nil || bytes.Equal(signature, right), "%x: a second signature", signature)
		if sigkey.StrictECDSA(signature) != nil {
			return
		}
		must.Need(t, (err == nil) == ecdsa.VerifyASN1(key.Public().(*ecdsa.PublicKey), digest[:], signature),
			"%x: the encoding is strict, but the library disagrees: %v", signature, err)
		again, err := sigkey.LowS(signature)
		must.Need(t, err == nil && bytes.Equal(again, signature), "%x: in other words %x, %v", signature, again, err)
	})
}

func TestSealedApart(t *testing.T) {
	pointers := []string{"/prompt", "/metadata/a~1b", "/metadata/m~0n", "/tools_used", "/prompt"}
	r := seal(t, richPayload, pointers)
	want := []string{"/metadata/a~1b", "/metadata/m~0n", "/prompt", "/tools_used"}
	must.Equal(t, cmp.Diff(want, r.Payload.SealedApart), "")
	var values []string
	for _, d := range r.Disclosures {
		values = append(values, d.Pointer+" "+string(d.Value))
	}
	must.Equal(t, cmp.Diff([]string{"/metadata/a~1b 1", `/metadata/m~0n {"deep":[2]}`, `/prompt "p\n"`, `/tools_used ["t"]`}, values), "")
	for _, secret := range []string{`"p\n"`, `"deep"`, `["t"]`} {
		must.Hold(t, !strings.Contains(string(r.Canonical()), secret), "the payload still contains %s", secret)
	}
	must.Hold(t, strings.Contains(string(r.Canonical()), `"plain":"x","é":"y"`), "the payload has lost other metadata")
	must.Want(t, r.CheckDisclosures(), nil)
}

// TestDisclosures opens records with correct, wrong, missing and no disclosures.
func TestDisclosures(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Record)
		right  bool
	}{
		"all":          {func(*Record) {}, true},
		"none":         {func(r *Record) { r.Disclosures = nil }, true},
		"one withheld": {func(r *Record) { r.Disclosures = append(r.Disclosures[:1:1], r.Disclosures[2:]...) }, true},
		"value":        {func(r *Record) { r.Disclosures[2].Value = jsontext.Value(`"q"`) }, false},
		"kind":         {func(r *Record) { r.Disclosures[0].Value = jsontext.Value(`"1"`) }, false},
		"salt":         {func(r *Record) { r.Disclosures[2].Salt[31] ^= 1 }, false},
		"salt and value of another member": {func(r *Record) {
			r.Disclosures[2].Salt, r.Disclosures[2].Value = r.Disclosures[3].Salt, r.Disclosures[3].Value
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := richRecord(t)
			test.change(r)
			err := r.CheckDisclosures()
			must.Hold(t, test.right == (err == nil) && (test.right || errors.Is(err, ErrDisclosure)), "error is %v", err)
			opened := must.Get(Open(marshalRecord(t, r)))(t)
			err = opened.CheckDisclosures()
			must.Hold(t, test.right == (err == nil), "opened again, error is %v", err)
		})
	}
}

// TestDisclosedInAnotherRecord checks that the salt and value of one record do not open the commitment of another
// record.
func TestDisclosedInAnotherRecord(t *testing.T) {
	a := seal(t, testPayload, []string{"/prompt"})
	b := seal(t, testPayload, []string{"/response", "/prompt"}) // the same salts in another order
	b.Disclosures = a.Disclosures
	b.Disclosures[0].Salt[0] ^= 1
	must.Want(t, b.CheckDisclosures(), ErrDisclosure)
}

// TestPointers tries pointers that may be sealed apart, pointers that may not, and second spellings of the same pointer.
func TestPointers(t *testing.T) {
	draft := must.Get(ParseDraft([]byte(strings.Replace(richPayload, `"plain":"x"`, `"plain":"x","":1,"a~b":2,"~1":3`, 1))))(t)
	try := func(pointers ...string) error {
		_, err := draft.SealingApart(nil, pointers...).Seal(Sealing{Signers: []Signer{testSigner(t, Ed25519)}, RecordID: testID})
		return err
	}
	for _, pointer := range []string{"/prompt", "/context", "/response", "/tools_used", "/metadata/a~0b", "/metadata/~01", "/metadata/é"} {
		must.Want(t, try(pointer), nil, pointer)
	}
	for _, pointer := range []string{"", "/", "//", "prompt", "/Prompt", "/prompt/", "/prompt/x", "/metadata", "/metadata/", "/metadata/m~0n/deep",
		"/metadata/a~b", "/metadata/a~2b", "/metadata/a~", "#/prompt", "/agent_id", "/timestamp", "/model", "/parameters",
		"/signers", "/saw", "/schema", "/sealed_apart", "/record_id", "/nothing", "/changes", "/~0", "/prompt~1", "/metadata~1x"} {
		wantField(t, try(pointer), "sealed_apart")
	}
	for _, pointer := range []string{"/metadata/nothing", "/metadata/a%7Eb", "/metadata/Plain"} {
		wantField(t, try(pointer), pointer)
	}
}

// TestSealedApartBefore seals drafts in which the actor has already replaced a member by a commitment.
func TestSealedApartBefore(t *testing.T) {
	own := Disclosure{Pointer: "/prompt", Salt: make([]byte, saltSize), Value: jsontext.Value(`"p"`)}
	doc := strings.Replace(testPayload, `"prompt":"p"`, `"prompt":"`+own.commitment()+`","sealed_apart":["/prompt"]`, 1)
	r := seal(t, doc, []string{"/response"})
	diff := cmp.Diff([]string{"/prompt", "/response"}, r.Payload.SealedApart)
	must.Need(t, diff == "", "sealed_apart (-want +got):\n%s", diff)
	r.Disclosures = append([]Disclosure{own}, r.Disclosures...)
	must.Want(t, r.CheckDisclosures(), nil)
	draft := must.Get(ParseDraft([]byte(doc)))(t)
	_, err := draft.SealingApart(nil, "/prompt").Seal(Sealing{Signers: []Signer{testSigner(t, Ed25519)}, RecordID: testID})
	wantField(t, err, "/prompt")
}

// TestNoDataPassesForACommitment checks that a text counts as a commitment only if sealed_apart lists it, and that
// sealed_apart lists only commitments.
func TestNoDataPassesForACommitment(t *testing.T) {
	own := Disclosure{Pointer: "/prompt", Salt: make([]byte, saltSize), Value: jsontext.Value(`"p"`)}
	r := seal(t, strings.Replace(testPayload, `"prompt":"p"`, `"prompt":"`+own.commitment()+`"`, 1), nil)
	must.Hold(t, r.Payload.SealedApart == nil, "a text that sealed_apart does not list is taken for a commitment")
	r.Disclosures = []Disclosure{own}
	_, err := r.Marshal()
	must.Hold(t, err != nil && r.CheckDisclosures() != nil, "a disclosure was accepted for a text that sealed_apart does not list")
	digits := strings.Repeat("0", 64)
	for _, text := range []string{`"p"`, `"sha256:` + digits + `"`, `"hmac-sha256:"`, `"hmac-sha256:` + digits + `0"`, `"hmac-sha256:` + digits[1:] + `"`,
		`"hmac-sha256:` + strings.Repeat("A", 64) + `"`, `"hmac-sha256:` + strings.Repeat("g", 64) + `"`, `["hmac-sha256:` + digits + `"]`, `{}`} {
		_, err := ParseDraft([]byte(strings.Replace(testPayload, `"prompt":"p"`, `"prompt":`+text+`,"sealed_apart":["/prompt"]`, 1)))
		wantField(t, err, "/prompt")
	}
	for _, list := range []string{`["/response","/prompt"]`, `["/prompt","/prompt"]`} {
		doc := strings.NewReplacer(`"prompt":"p"`, `"prompt":"hmac-sha256:`+digits+`"`, `"response":"s"`,
			`"response":"hmac-sha256:`+digits+`","sealed_apart":`+list).Replace(testPayload)
		_, err := ParseDraft([]byte(doc))
		wantField(t, err, "sealed_apart")
	}
}

// TestSealedApartByType tries each pointer with each action type.
func TestSealedApartByType(t *testing.T) {
	for action, row := range table {
		full := strings.Fields(row.required + " " + row.optional + " metadata")
		draft := must.Get(ParseDraft([]byte(strings.Replace(document(action, full...), `{"":null}`, `{"x":1}`, 1))))(t)
		for _, name := range full {
			pointer := "/" + name
			if name == "metadata" {
				pointer = "/metadata/x"
			}
			_, err := draft.SealingApart(nil, pointer).Seal(Sealing{Signers: []Signer{testSigner(t, Ed25519)}, RecordID: testID, Time: testTime})
			allowed := strings.Contains(" "+row.asApart+" ", " "+name+" ")
			must.Hold(t, allowed == (err == nil), "%s, %s: error is %v", action, pointer, err)
		}
	}
}

func TestNoSalt(t *testing.T) {
	draft := must.Get(ParseDraft([]byte(testPayload)))(t)
	_, err := draft.SealingApart(nil, "/prompt").Seal(Sealing{Signers: []Signer{testSigner(t, Ed25519)}, RecordID: testID,
		Random: strings.NewReader("too short")})
	must.Want(t, err, io.ErrUnexpectedEOF)
	once := must.Get(draft.SealingApart(nil, "/prompt").Seal(Sealing{Signers: []Signer{testSigner(t, Ed25519)}, RecordID: testID}))(t)
	twice, err := draft.SealingApart(nil, "/prompt").Seal(Sealing{Signers: []Signer{testSigner(t, Ed25519)}, RecordID: testID})
	must.Hold(t, err == nil && string(once.Payload.Prompt) != string(twice.Payload.Prompt),
		"two commitments to one text are the same: %s, %v", once.Payload.Prompt, err)
}

func TestPointer(t *testing.T) {
	for text, want := range map[string]string{"prompt": "/prompt", "/prompt": "/prompt", "metadata/user_id": "/metadata/user_id",
		"/metadata/a~1b": "/metadata/a~1b"} {
		must.Give(Pointer(text))(t, want, text)
	}
	for _, text := range []string{"", "/", "//", "a~b", "/a/b/c", "/metadata/", "/a~2"} {
		must.Refuse(t, "", text)(Pointer(text))
	}
}

// FuzzPointer: an accepted pointer names one member, no other spelling of it is accepted, and it is accepted again.
func FuzzPointer(f *testing.F) {
	for _, text := range []string{"prompt", "/metadata/user_id", "/metadata/a~1b~0", "", "//", "~"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		pointer, err := Pointer(text)
		if err != nil {
			return
		}
		must.Give(Pointer(pointer))(t, pointer, text)
		name, inner, err := splitPointer(pointer)
		want := "/" + escape.Replace(name)
		if inner != "" {
			want += "/" + escape.Replace(inner)
		}
		must.Hold(t, err == nil && pointer == want, "%q: %q, %v, want %q", text, pointer, err, want)
	})
}

func apartRecord(t *testing.T, apart ...string) *Record {
	t.Helper()
	d := must.Get(ParseDraft([]byte(`{"agent_id":"a","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"v",
		"prompt":"p","response":"r","parameters":{},"context":"c","metadata":{"a":1,"b":2}}`)))(t)
	id := must.Get(NewRecordID(d.Time(), nil))(t)
	return must.Get(d.SealingApart(nil, apart...).Seal(Sealing{Signers: []Signer{testSigner(t, ES256)}, RecordID: id}))(t)
}

func TestWithhold(t *testing.T) {
	first, second := apartRecord(t, "/prompt", "/metadata/a"), apartRecord(t, "/prompt", "/context")
	disclosures := first.Disclosures
	got := must.Get(Withhold([]*Record{first, second}, []string{"/prompt", "/prompt"}))(t)
	want := []Withheld{{first.Payload.RecordID, "/prompt", false}, {second.Payload.RecordID, "/prompt", false}}
	must.Equal(t, cmp.Diff(want, got), "")
	must.Hold(t, len(first.Disclosures) == 1 && first.Disclosures[0].Pointer == "/metadata/a" && len(second.Disclosures) == 1,
		"left: %v, %v", first.Disclosures, second.Disclosures)
	must.Len(t, disclosures, 2)
	must.Equal(t, disclosures[1].Pointer, "/prompt")
	got, err := Withhold([]*Record{first}, []string{"/prompt"})
	must.Hold(t, err == nil && got[0].Already, "%v, %v", got, err)
	for _, r := range []*Record{first, second} {
		doc := must.Get(r.Marshal())(t)
		again, err := Open(doc)
		must.Hold(t, err == nil && again.CheckDisclosures() == nil, "%v", err)
	}
}

// TestWithholdRefuses: if one of the records has the text in clear, Withhold changes no record.
func TestWithholdRefuses(t *testing.T) {
	first, second := apartRecord(t, "/prompt", "/metadata/a"), apartRecord(t, "/context", "/metadata/a")
	for pointer, want := range map[string]string{"/prompt": second.Payload.RecordID + ": field /prompt: not sealed apart",
		"/response": "field /response: not sealed apart", "/agent_id": "not sealed apart", "/metadata": "members of it may be",
		"/metadata/b": "not sealed apart", "/tools_used": "no such member", "/metadata/c": "no such member", "/context/x": "", "x": "not a pointer"} {
		_, err := Withhold([]*Record{first, second}, []string{"/metadata/a", pointer})
		must.Hold(t, err != nil && strings.Contains(err.Error(), want), "%s: %v, want %q", pointer, err, want)
		must.Hold(t, !strings.Contains(want, "not sealed apart") || errors.Is(err, ErrNotApart), "%s: %v is not ErrNotApart", pointer, err)
	}
	must.Len(t, first.Disclosures, 2)
	must.Len(t, second.Disclosures, 2)
}

func TestApartMembers(t *testing.T) {
	want := []string{"/changes", "/context", "/modified_response", "/prompt", "/request_body", "/response", "/response_body", "/tools_used"}
	got := ApartMembers()
	must.Hold(t, slices.Equal(got, want), "%v, want %v", got, want)
}
