package evidence

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/must"
)

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
