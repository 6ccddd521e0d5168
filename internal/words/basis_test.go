package words_test

import (
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/internal/words"
	"jurat/verify"
	"jurat/verify/assurance"
	"jurat/verify/trust"
)

// TestWhatAProofRestsOnInWords: every level and every word of a part has a sentence of its own, in each language.
func TestWhatAProofRestsOnInWords(t *testing.T) {
	owner := assurance.Party{Role: evidence.RoleAgent, Custody: trust.ByOwner, By: trust.ByKey}
	certified := assurance.Party{Role: evidence.RoleAgent, Custody: trust.ByOwner, By: trust.ByCA}
	held := assurance.Party{Role: evidence.RoleJuror, Custody: trust.ByOperator, By: trust.ByKey}
	bases := []assurance.Basis{{}}
	for _, l := range assurance.Levels() {
		bases = append(bases, assurance.Basis{Level: l})
	}
	for _, p := range []assurance.Party{owner, certified, held} {
		bases = append(bases, assurance.Basis{Level: assurance.Operator, Keys: assurance.ByOperator, Parties: []assurance.Party{p}})
	}
	for _, c := range []assurance.Clock{assurance.OperatorClock, assurance.IndependentClock, assurance.QualifiedClock} {
		bases = append(bases, assurance.Basis{Level: assurance.Operator, Time: c})
	}
	for _, l := range []assurance.Log{assurance.Alone, assurance.Compared, assurance.Witness, assurance.Both} {
		bases = append(bases, assurance.Basis{Level: assurance.Operator, Log: l})
	}
	for _, lang := range words.Langs() {
		seen := map[string]assurance.Basis{}
		for i := range bases {
			bases[i].Unmet = []assurance.Part{assurance.PartKeys}
			r := &verify.Report{Kind: verify.OneRecord, Outcome: verify.NotProved, Basis: &bases[i], Demanded: &verify.Demanded{Need: assurance.Need{Level: bases[i].Level}}}
			said := words.RestsOn(lang, r) + strings.Join(words.Wanted(lang, r), "")
			if other, twice := seen[said]; twice || strings.ContainsAny(said, "{}") || strings.Contains(said, string(assurance.IndependentQualified)) {
				t.Errorf("%s: %+v and %+v: %s", lang, bases[i], other, said)
			}
			seen[said] = bases[i]
		}
	}
	checkpoint := words.RestsOn(words.English, &verify.Report{Kind: verify.OneCheckpoint, Basis: &assurance.Basis{Level: assurance.Operator, Log: assurance.Alone}})
	if strings.Contains(checkpoint, "Keys") || !strings.Contains(checkpoint, "Log: only its operator") {
		t.Error(checkpoint)
	}
}
