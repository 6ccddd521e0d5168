package evidence_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/evidence/property"
	"jurat/internal/test/must"
	"jurat/verify"
)

// sealed returns a record with these members of metadata, which are provable.
func sealed(t *testing.T, metadata string, kinds map[string]property.Kind) *evidence.Record {
	t.Helper()
	draft := must.Get(evidence.ParseDraft([]byte(`{"agent_id":"shop","request_id":"r-1","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"1",
		"prompt":"p","response":"r","parameters":{},"metadata":` + metadata + `}`)))(t)
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	return must.Get(draft.SealingApart(kinds).Seal(evidence.Sealing{Signers: []evidence.Signer{must.Get(evidence.NewSigner(private, nil))(t)}, Time: time.Now(),
		RecordID: must.Get(evidence.NewRecordID(time.Now(), nil))(t)}))(t)
}

// TestParse: what people write becomes the statement that programs write, and what cannot be read says so.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		form       property.Form
		kind       property.Kind
		text, want string
	}{
		{property.Range, property.Integer, "-5..5", `{"lo":-5,"hi":5}`},
		{property.Range, "decimal:2", "0.50..1.50", `{"lo":0.5,"hi":1.5}`},
		{property.Range, property.Date, "2026-01-01..2026-12-31", `{"lo":"2026-01-01","hi":"2026-12-31"}`},
		{property.In, property.Text, "refund,quote", `{"set":["refund","quote"]}`},
		{property.In, property.Text, `["a, b",7,{"b":1,"a":2}]`, `{"set":["a, b",7,{"a":2,"b":1}]}`},
		{property.NotIn, property.Integer, "1, 2", `{"set":[1,2]}`},
		{property.AgeAtLeast, property.Date, "18@2026-11-23", `{"years":18,"at":"2026-11-23"}`},
		{property.Range, property.Integer, "5", "want LO..HI"},
		{property.Range, property.Integer, "a..5", "not a number"},
		{property.Range, property.Integer, "{}..5", "not a number"},
		{property.In, property.Text, "[1", "ends too early"},
		{property.AgeAtLeast, property.Date, "18", "want YEARS@DATE"},
		{property.AgeAtLeast, property.Date, "x@2026-11-23", "want YEARS@DATE"},
		{"sum", property.Integer, "5", "unknown form"},
	} {
		got, err := evidence.ParseProperty(c.form, c.kind, c.text)
		if err != nil {
			must.Hold(t, !strings.HasPrefix(c.want, "{") && strings.Contains(err.Error(), c.want), "%s %q: %v, want %s", c.form, c.text, err, c.want)
			continue
		}
		want := property.Statement{Form: c.form}
		if !strings.HasPrefix(c.want, "{") {
			t.Errorf("%s %q: no error, want %s", c.form, c.text, c.want)
			continue
		}
		decode(t, c.want, &want)
		must.Equal(t, cmp.Diff(want, got), "", c.form, c.text)
	}
}

// TestAdd: a record carries no more than a verifier checks, and is left as it was when a proof does not fit.
func TestAdd(t *testing.T) {
	r := sealed(t, `{"n":5}`, map[string]property.Kind{"/metadata/n": property.Integer})
	s := must.Get(evidence.ParseProperty(property.Range, property.Integer, "4..7"))(t)
	for n := 0; ; n++ {
		s.Audience = strings.Repeat("x", n)
		proof := must.Get((&evidence.Member{Record: r, Pointer: "/metadata/n"}).Prove(s, rand.Reader))(t)
		before := slices.Clone(r.Properties)
		err := r.AddProof(proof)
		if err == nil {
			continue
		}
		must.Hold(t, n == evidence.MaxProperties && cmp.Equal(before, r.Properties), "%d proofs: %v", n, err)
		break
	}
	if found := verify.Record(r, verify.Options{}); len(found.Properties) != evidence.MaxProperties || found.Of(verify.Property).Status != verify.Proved {
		t.Errorf("%d are shown; %+v", len(found.Properties), found.Of(verify.Property))
	}
	large := &evidence.PropertyProof{Statement: []byte(`{}`), Proof: make([]byte, evidence.MaxProofs)}
	must.Say(t, sealed(t, `{"n":5}`, nil).AddProof(large), "verifiers check at most", "a proof that no verifier checks")
}

// decode adds members to a statement.
func decode(t *testing.T, text string, s *property.Statement) {
	t.Helper()
	must.Do(t, json.Unmarshal([]byte(text), s))
}
