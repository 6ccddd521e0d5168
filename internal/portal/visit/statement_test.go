package visit_test

import (
	"testing"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/portal/visit"
	"jurat/jurattest"
	"jurat/scitt"
	"jurat/verify"
)

// TestStatements: a SCITT statement of a record is verified in the portal as the command verifies it. One that holds no record is refused.
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
	others := "\xd2\x84\x43\xa1\x01\x26\xa0\x44Paid\x41\x00"
	v := &visit.Visit{Now: clock}
	answer, err := v.Verify([]byte(`{"files":[0,1,2],"sort":true}`), []visit.Source{text("own", string(own)), source(t, "trust", h.Trust(t)), text("others", others)})
	if err != nil || len(answer.Files) != 2 {
		t.Fatalf("%+v, %v", answer, err)
	}
	var report verify.Report
	if err := json.Unmarshal([]byte(answer.Files[0].Report), &report); err != nil || report.Outcome != verify.Proved || report.Kind != verify.OneRecord || report.Statement == nil {
		t.Errorf("%v: %s", err, answer.Files[0].Report)
	}
	if answer.Files[1].Report != "" {
		t.Errorf("%+v", answer.Files[1])
	}
}
