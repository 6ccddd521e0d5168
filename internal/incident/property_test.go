package incident_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/incident"
	"jurat/internal/must"
	"jurat/internal/words"
	"jurat/jurattest"
	"jurat/property"
	"jurat/verify"
)

// hiding seals a record with hidden values that can be proved about.
func hiding(t *testing.T, h *jurattest.House) *evidence.Record {
	t.Helper()
	p := output()
	p.Metadata = jsontext.Value(`{"action":"quote","amount":12.5,"born":"2001-02-03","fee":12.5}`)
	draft := must.Get(evidence.NewDraft(p))(t)
	signers := must.Get(h.Keys.Signers(t.Context(), draft.Role(), draft.Actor()))(t)
	r := must.Get(h.Ledger.Seal(t.Context(), draft.SealingProvable(map[string]property.Kind{"/metadata/action": property.Text, "/metadata/amount": "decimal:2", "/metadata/fee": "decimal:2",
		"/metadata/born": property.Date}), signers))(t)
	return r
}

// shows proves a statement about a hidden value of a record.
func shows(t *testing.T, r *evidence.Record, s *property.Statement, pointer string) evidence.PropertyProof {
	t.Helper()
	s.Format, s.Members = property.Format, []property.Member{{Record: r.Digest.String(), Pointer: pointer}}
	i := slices.IndexFunc(r.Disclosures, func(d evidence.Disclosure) bool { return d.Pointer == pointer })
	proof := must.Get(property.Prove(s, property.Opening{Value: r.Disclosures[i].Value, Salt: [32]byte(r.Disclosures[i].Salt)}, rand.NewChaCha8([32]byte{7})))(t)
	doc := must.Get(s.Bytes())(t)
	return evidence.PropertyProof{Proof: proof, Statement: doc}
}

func raw(values ...string) (list []jsontext.Value) {
	for _, v := range values {
		list = append(list, jsontext.Value(v))
	}
	return list
}

// carrying returns the record with proofs, and without what they hide.
func carrying(r *evidence.Record, proofs ...evidence.PropertyProof) *evidence.Record {
	made := *r
	made.Disclosures, made.Properties = nil, proofs
	return &made
}

// TestProofs: the statement says what each proof shows, in each language, and whose word the value is.
func TestProofs(t *testing.T) {
	h := jurattest.NewForStrangers(t)
	r := hiding(t, h)
	const amount, action, born = "/metadata/amount", "/metadata/action", "/metadata/born"
	long := raw()
	for _, c := range "abcdefghijklmnopqrst" {
		long = append(long, jsontext.Value(`"`+string(c)+`"`))
	}
	long = append(long, jsontext.Value(`"quote"`))
	for _, c := range []struct {
		proof evidence.PropertyProof
		want  map[words.Lang]string
	}{
		{shows(t, r, &property.Statement{Form: property.Range, Kind: "decimal:2", Lo: jsontext.Value("0"), Hi: jsontext.Value("50.25")}, amount), map[words.Lang]string{
			words.English:  "A proof shows that the hidden value at /metadata/amount is from 0 to 50.25, both included.",
			words.Japanese: "証明により、/metadata/amount の隠された値は 0 以上 50.25 以下であることが示されています。",
			words.Russian:  "Доказано, что скрытое значение /metadata/amount лежит от 0 до 50.25 включительно."}},
		{shows(t, r, &property.Statement{Form: property.In, Kind: property.Text, Set: raw(`"quote"`, `"refund"`)}, action), map[words.Lang]string{
			words.English:  `A proof shows that the hidden value at /metadata/action is one of these: "quote", "refund".`,
			words.Japanese: `次のいずれかであることが示されています："quote"、"refund"。`,
			words.Russian:  `— одно из следующих: "quote", "refund".`}},
		{shows(t, r, &property.Statement{Form: property.In, Kind: property.Text, Set: long}, action), map[words.Lang]string{
			words.English: `"o", "p", and 5 more.`, words.Japanese: "ほか 5 件", words.Russian: "и ещё 5"}},
		{shows(t, r, &property.Statement{Form: property.NotIn, Kind: property.Text, Set: raw(`"pay"`, "\"\u202eevil\\u001b[31m\"", `"x"`)}, action), map[words.Lang]string{
			words.English:  `is none of these: "pay", "\u202eevil\x1b[31m", "x".`,
			words.Japanese: `次のいずれでもないことが示されています："pay"、"\u202eevil\x1b[31m"、"x"。`,
			words.Russian:  `— ни одно из следующих: "pay", "\u202eevil\x1b[31m", "x".`}},
		{shows(t, r, &property.Statement{Form: property.AgeAtLeast, Kind: property.Date, Years: 18, At: "2026-11-24", Audience: "the \u202eauditor"}, born), map[words.Lang]string{
			words.English:  `A proof shows that the hidden date at /metadata/born is at least 18 years before 2026-11-24. It was made for "the \u202eauditor".`,
			words.Japanese: `/metadata/born の隠された日付は 2026-11-24 より少なくとも 18 年前であることが示されています。この証明は "the \u202eauditor" に宛てて作られました。`,
			words.Russian:  `предшествует 2026-11-24 не менее чем на столько лет: 18. Доказательство составлено для "the \u202eauditor".`}},
	} {
		for lang, want := range c.want {
			said := statementIn(lang, carrying(r, c.proof), h.Options(t))
			own := map[words.Lang]string{words.English: "nothing shows that they are true", words.Japanese: "真実であることは何も示しません", words.Russian: "ничто не показывает, что они истинны"}[lang]
			if !strings.Contains(said, want) || !strings.Contains(said, own) {
				t.Errorf("%s: %s\nwant %s", lang, said, want)
			}
		}
	}
}

// TestProofsThatDoNotHold: a proof that lies, one that cannot be checked, and one on an unsigned record are not stated as facts.
func TestProofsThatDoNotHold(t *testing.T) {
	h := jurattest.NewForStrangers(t)
	r := hiding(t, h)
	good := shows(t, r, &property.Statement{Form: property.Range, Kind: "decimal:2", Lo: jsontext.Value("0"), Hi: jsontext.Value("50.25")}, "/metadata/amount")
	flipped := evidence.PropertyProof{Statement: good.Statement, Proof: slices.Clone(good.Proof)}
	flipped.Proof[len(flipped.Proof)-1] ^= 1
	unknown := evidence.PropertyProof{Statement: jsontext.Value(`{"form":"is_true"}`), Proof: good.Proof}
	const fact = "A proof shows"
	for _, lang := range words.Langs() {
		for name, c := range map[string]struct {
			r     *evidence.Record
			doubt string
		}{
			"a proof that was changed": {carrying(r, flipped), map[words.Lang]string{words.English: "does not hold: ", words.Japanese: "成り立たないものがあります", words.Russian: "приложенное к записи, неверно"}[lang]},
			"an unknown statement":     {carrying(r, unknown), map[words.Lang]string{words.English: "Not all proofs", words.Japanese: "何も示さないものがあります", words.Russian: "Не все доказательства"}[lang]},
		} {
			said := statementIn(lang, c.r, h.Options(t))
			if strings.Contains(said, fact) || strings.Contains(said, "50.25") || !strings.Contains(said, c.doubt) {
				t.Errorf("%s, %s: %s", lang, name, said)
			}
		}
		both := statementIn(lang, carrying(r, good, flipped), h.Options(t))
		if !strings.Contains(both, "50.25") || !strings.Contains(both, map[words.Lang]string{words.English: "does not hold: ", words.Japanese: "成り立たないものがあります", words.Russian: "приложенное к записи, неверно"}[lang]) {
			t.Errorf("%s, one that holds and one that does not: %s", lang, both)
		}
		if said := statementIn(lang, carrying(r, good), jurattest.NewImpostor(t).Options(t)); strings.Contains(said, "50.25") {
			t.Errorf("%s, signed by a stranger: %s", lang, said)
		}
		for name, c := range map[string]struct {
			options verify.Options
			says    int
		}{"one that holds": {h.Options(t), 1}, "signed by a stranger": {jurattest.NewImpostor(t).Options(t), 0}} {
			if said := incident.Proofs(verify.Record(carrying(r, good), c.options), lang); len(said) != c.says {
				t.Errorf("%s, %s: %s", lang, name, said)
			}
		}
	}
}
