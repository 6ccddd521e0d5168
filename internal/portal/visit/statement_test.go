package visit_test

import (
	"encoding/hex"
	"testing"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/portal/visit"
	"jurat/internal/words"
	"jurat/jurattest"
	"jurat/scitt"
	"jurat/verify"
)

// TestStatements: SCITT statements are verified in the portal as the command verifies them, those of records and those of others.
func TestStatements(t *testing.T) {
	h := jurattest.NewForStrangers(t)
	record, err := h.Ledger.ProveOne(t.Context(), h.Seal(t, said(1, "The A9.")))
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := h.SignReceipt(record)
	if err != nil {
		t.Fatal(err)
	}
	signers, err := h.Keys.Signers(t.Context(), evidence.RoleOperator, "operator")
	if err != nil {
		t.Fatal(err)
	}
	own, err := scitt.Sign(record, scitt.Issuer(evidence.RoleOperator, "operator"), signers[0], receipt)
	if err != nil {
		t.Fatal(err)
	}
	others, err := hex.DecodeString("d28443a10126a0" + "4450616964" + "41" + "00")
	if err != nil {
		t.Fatal(err)
	}
	v := &visit.Visit{Now: clock}
	answer, err := v.Verify([]byte(`{"files":[0,1,2],"sort":true}`), []visit.Source{text("own", string(own)), source(t, "trust", h.Trust(t)), text("others", string(others))})
	if err != nil || len(answer.Files) != 2 {
		t.Fatalf("%+v, %v", answer, err)
	}
	for i, want := range []struct {
		outcome verify.Status
		kind    verify.Kind
	}{{verify.Proved, verify.OneRecord}, {verify.NotProved, verify.SignedStatement}} {
		var report verify.Report
		if err := json.Unmarshal([]byte(answer.Files[i].Report), &report); err != nil || report.Outcome != want.outcome || report.Kind != want.kind || report.Statement == nil {
			t.Errorf("%v: %s", err, answer.Files[i].Report)
		}
		for _, lang := range words.Langs() {
			if view, err := v.View(i, lang); err != nil || view.Kind != words.TermsIn(lang).Kinds.Of(want.kind) || view.Kind == "" {
				t.Errorf("%s: %+v, %v", lang, view, err)
			}
		}
	}
}
