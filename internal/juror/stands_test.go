package juror

import (
	"testing"

	"jurat/jury"
)

// TestStandsToTheLetter: a quotation counts only if it occurs in the record, character by character.
func TestStandsToTheLetter(t *testing.T) {
	c := conversation(t, "user: Pay it.\ncall: pay_bill {\"amount\":5}\nresult: {\"ok\":true}")
	for _, one := range []struct {
		f    jury.Finding
		want bool
	}{
		{jury.Finding{Message: 1, Quote: "Pay it"}, true},
		{jury.Finding{Message: 1, Quote: "pay it"}, false},
		{jury.Finding{Message: 2, Quote: `"amount":5`}, true},
		{jury.Finding{Message: 2, Quote: "pay_bill"}, true},
		{jury.Finding{Message: 3, Quote: "ok"}, true},
		{jury.Finding{Message: 3, Quote: ""}, false},
		{jury.Finding{Message: 3, Quote: " "}, false},
		{jury.Finding{Message: 0, Quote: "ok"}, false},
		{jury.Finding{Message: 4, Quote: "ok"}, false},
	} {
		if got := Stands(c, one.f); got != one.want {
			t.Errorf("%+v: %v", one.f, got)
		}
	}
}
