package visit_test

import (
	"testing"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/internal/portal/visit"
	"jurat/jurattest"
	"jurat/scitt"
	"jurat/verify"
)

// TestStatements: a SCITT statement of a record is verified in the portal as the command verifies it. One that holds no record is refused.
func TestStatements(t *testing.T) {
	h := jurattest.NewForStrangers(t)
	record := must.Get(h.Ledger.ProveOne(t.Context(), h.Seal(t, said(1, "The A9."))))(t)
	receipt := must.Get(h.SignReceipt(record))(t)
	signers := must.Get(h.Keys.Signers(t.Context(), evidence.RoleOperator, "operator"))(t)
	own := must.Get(scitt.Sign(record, scitt.Issuer(evidence.RoleOperator, "operator"), signers[0], receipt))(t)
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
