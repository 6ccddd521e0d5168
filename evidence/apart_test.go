package evidence

import (
	"errors"
	"io"
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
