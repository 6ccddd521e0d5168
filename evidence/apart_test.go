package evidence

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/internal/must"
)

func TestSealedApart(t *testing.T) {
	pointers := []string{"/prompt", "/metadata/a~1b", "/metadata/m~0n", "/tools_used", "/prompt"}
	r := seal(t, richPayload, pointers)
	want := []string{"/metadata/a~1b", "/metadata/m~0n", "/prompt", "/tools_used"}
	if diff := cmp.Diff(want, r.Payload.SealedApart); diff != "" {
		t.Errorf("sealed_apart (-want +got):\n%s", diff)
	}
	var values []string
	for _, d := range r.Disclosures {
		values = append(values, d.Pointer+" "+string(d.Value))
	}
	if diff := cmp.Diff([]string{"/metadata/a~1b 1", `/metadata/m~0n {"deep":[2]}`, `/prompt "p\n"`, `/tools_used ["t"]`}, values); diff != "" {
		t.Errorf("disclosed (-want +got):\n%s", diff)
	}
	for _, secret := range []string{`"p\n"`, `"deep"`, `["t"]`} {
		if strings.Contains(string(r.Canonical()), secret) {
			t.Errorf("the payload still contains %s", secret)
		}
	}
	if !strings.Contains(string(r.Canonical()), `"plain":"x","é":"y"`) {
		t.Error("the payload has lost other metadata")
	}
	if err := r.CheckDisclosures(); err != nil {
		t.Error(err)
	}
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
			if test.right != (err == nil) || (!test.right && !errors.Is(err, ErrDisclosure)) {
				t.Errorf("error is %v", err)
			}
			opened := must.Get(Open(marshalRecord(t, r)))(t)
			if err := opened.CheckDisclosures(); test.right != (err == nil) {
				t.Errorf("opened again, error is %v", err)
			}
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
	if err := b.CheckDisclosures(); !errors.Is(err, ErrDisclosure) {
		t.Errorf("error is %v", err)
	}
}

// TestPointers tries pointers that may be sealed apart, pointers that may not, and second spellings of the same pointer.
func TestPointers(t *testing.T) {
	draft := must.Get(ParseDraft([]byte(strings.Replace(richPayload, `"plain":"x"`, `"plain":"x","":1,"a~b":2,"~1":3`, 1))))(t)
	try := func(pointers ...string) error {
		_, err := draft.Seal(Sealing{Signers: []Signer{testSigner(t, Ed25519)}, RecordID: testID, Apart: pointers})
		return err
	}
	for _, pointer := range []string{"/prompt", "/context", "/response", "/tools_used", "/metadata/a~0b", "/metadata/~01", "/metadata/é"} {
		if err := try(pointer); err != nil {
			t.Errorf("%q: %v", pointer, err)
		}
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
	if diff := cmp.Diff([]string{"/prompt", "/response"}, r.Payload.SealedApart); diff != "" {
		t.Fatalf("sealed_apart (-want +got):\n%s", diff)
	}
	r.Disclosures = append([]Disclosure{own}, r.Disclosures...)
	if err := r.CheckDisclosures(); err != nil {
		t.Error(err)
	}
	draft, err := ParseDraft([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	_, err = draft.Seal(Sealing{Signers: []Signer{testSigner(t, Ed25519)}, RecordID: testID, Apart: []string{"/prompt"}})
	wantField(t, err, "/prompt")
}

// TestNoDataPassesForACommitment checks that a text counts as a commitment only if sealed_apart lists it, and that
// sealed_apart lists only commitments.
func TestNoDataPassesForACommitment(t *testing.T) {
	own := Disclosure{Pointer: "/prompt", Salt: make([]byte, saltSize), Value: jsontext.Value(`"p"`)}
	r := seal(t, strings.Replace(testPayload, `"prompt":"p"`, `"prompt":"`+own.commitment()+`"`, 1), nil)
	if r.Payload.SealedApart != nil {
		t.Error("a text that sealed_apart does not list is taken for a commitment")
	}
	r.Disclosures = []Disclosure{own}
	if _, err := r.Marshal(); err == nil || r.CheckDisclosures() == nil {
		t.Error("a disclosure was accepted for a text that sealed_apart does not list")
	}
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
			_, err := draft.Seal(Sealing{Signers: []Signer{testSigner(t, Ed25519)}, RecordID: testID, Time: testTime, Apart: []string{pointer}})
			allowed := strings.Contains(" "+row.asApart+" ", " "+name+" ")
			if allowed != (err == nil) {
				t.Errorf("%s, %s: error is %v", action, pointer, err)
			}
		}
	}
}

func TestNoSalt(t *testing.T) {
	draft, err := ParseDraft([]byte(testPayload))
	if err != nil {
		t.Fatal(err)
	}
	_, err = draft.Seal(Sealing{Signers: []Signer{testSigner(t, Ed25519)}, RecordID: testID, Apart: []string{"/prompt"},
		Random: strings.NewReader("too short")})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error is %v", err)
	}
	once := must.Get(draft.Seal(Sealing{Signers: []Signer{testSigner(t, Ed25519)}, RecordID: testID, Apart: []string{"/prompt"}}))(t)
	twice, err := draft.Seal(Sealing{Signers: []Signer{testSigner(t, Ed25519)}, RecordID: testID, Apart: []string{"/prompt"}})
	if err != nil || string(once.Payload.Prompt) == string(twice.Payload.Prompt) {
		t.Errorf("two commitments to one text are the same: %s, %v", once.Payload.Prompt, err)
	}
}

func TestPointer(t *testing.T) {
	for text, want := range map[string]string{"prompt": "/prompt", "/prompt": "/prompt", "metadata/user_id": "/metadata/user_id",
		"/metadata/a~1b": "/metadata/a~1b"} {
		if got, err := Pointer(text); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "/", "//", "a~b", "/a/b/c", "/metadata/", "/a~2"} {
		if _, err := Pointer(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
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
		if again, err := Pointer(pointer); again != pointer || err != nil {
			t.Errorf("%q: %q, then %q, %v", text, pointer, again, err)
		}
		name, inner, err := splitPointer(pointer)
		want := "/" + escape.Replace(name)
		if inner != "" {
			want += "/" + escape.Replace(inner)
		}
		if err != nil || pointer != want {
			t.Errorf("%q: %q, %v, want %q", text, pointer, err, want)
		}
	})
}

func apartRecord(t *testing.T, apart ...string) *Record {
	t.Helper()
	d := must.Get(ParseDraft([]byte(`{"agent_id":"a","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"v",
		"prompt":"p","response":"r","parameters":{},"context":"c","metadata":{"a":1,"b":2}}`)))(t)
	id := must.Get(NewRecordID(d.Time(), nil))(t)
	return must.Get(d.Seal(Sealing{Signers: []Signer{testSigner(t, ES256)}, RecordID: id, Apart: apart}))(t)
}

func TestWithhold(t *testing.T) {
	first, second := apartRecord(t, "/prompt", "/metadata/a"), apartRecord(t, "/prompt", "/context")
	disclosures := first.Disclosures
	got, err := Withhold([]*Record{first, second}, []string{"/prompt", "/prompt"})
	if err != nil {
		t.Fatal(err)
	}
	want := []Withheld{{first.Payload.RecordID, "/prompt", false}, {second.Payload.RecordID, "/prompt", false}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(first.Disclosures) != 1 || first.Disclosures[0].Pointer != "/metadata/a" || len(second.Disclosures) != 1 {
		t.Errorf("left: %v, %v", first.Disclosures, second.Disclosures)
	}
	if len(disclosures) != 2 || disclosures[1].Pointer != "/prompt" {
		t.Error("Withhold changed the caller's slice")
	}
	if got, err = Withhold([]*Record{first}, []string{"/prompt"}); err != nil || !got[0].Already {
		t.Errorf("%v, %v", got, err)
	}
	for _, r := range []*Record{first, second} {
		doc := must.Get(r.Marshal())(t)
		if again, err := Open(doc); err != nil || again.CheckDisclosures() != nil {
			t.Errorf("%v", err)
		}
	}
}

// TestWithholdRefuses: if one of the records has the text in clear, Withhold changes no record.
func TestWithholdRefuses(t *testing.T) {
	first, second := apartRecord(t, "/prompt", "/metadata/a"), apartRecord(t, "/context", "/metadata/a")
	for pointer, want := range map[string]string{"/prompt": second.Payload.RecordID + ": field /prompt: not sealed apart",
		"/response": "field /response: not sealed apart", "/agent_id": "not sealed apart", "/metadata": "members of it may be",
		"/metadata/b": "not sealed apart", "/tools_used": "no such member", "/metadata/c": "no such member", "/context/x": "", "x": "not a pointer"} {
		_, err := Withhold([]*Record{first, second}, []string{"/metadata/a", pointer})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", pointer, err, want)
		}
		if strings.Contains(want, "not sealed apart") && !errors.Is(err, ErrNotApart) {
			t.Errorf("%s: %v is not ErrNotApart", pointer, err)
		}
	}
	if len(first.Disclosures) != 2 || len(second.Disclosures) != 2 {
		t.Error("Withhold removed disclosures although it returned an error")
	}
}

func TestApartMembers(t *testing.T) {
	want := []string{"/changes", "/context", "/modified_response", "/prompt", "/request_body", "/response", "/response_body", "/tools_used"}
	if got := ApartMembers(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
