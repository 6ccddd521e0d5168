package phrase

import "testing"

// TestStem: related words have the same stem, also if a letter is doubled.
func TestStem(t *testing.T) {
	for _, list := range [][]string{{"cancel", "cancelled", "canceled", "cancelling"}, {"ship", "shipped", "shipping", "shipment"},
		{"refill", "refilled", "refills"}, {"modify", "modified", "modifies"}, {"order", "orders"}, {"send", "sent"}} {
		for _, word := range list {
			if Stem(word) != Stem(list[0]) {
				t.Errorf("%s: %s, and %s: %s", word, Stem(word), list[0], Stem(list[0]))
			}
		}
	}
}

// TestSameAct: a verb of a tool's name and the verb that people use for the same act are kin, and others are not.
func TestSameAct(t *testing.T) {
	for _, one := range []struct {
		said, verb string
		want       bool
	}{{"please give me my money back, refund it", "credit", true}, {"put me down: book it", "reserve", true}, {"cancel it", "return", false}, {"send it", "delete", false}} {
		if got := SayAct(Stems(one.said), Stem(one.verb)); got != one.want {
			t.Errorf("%q and %s: %v", one.said, one.verb, got)
		}
	}
}

// TestAmounts: amounts are read in the notations of several countries.
func TestAmounts(t *testing.T) {
	for text, want := range map[string]float64{"$1,024.50 in all": 1024.5, "1.024,00 EUR": 1024, "it is 18.50": 18.5, "40 dollars": 40} {
		if got := Amounts(text); len(got) != 1 || got[0] != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
