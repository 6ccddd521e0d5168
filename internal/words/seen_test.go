package words

import (
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/verify/vantage"
)

// TestSeen: each recorder and vantage is said once, in every language, with the recorder's name as it is.
func TestSeen(t *testing.T) {
	var list []vantage.Seen
	for _, v := range evidence.Vantages() {
		for _, fidelity := range []evidence.Fidelity{evidence.ByBytes, evidence.Parsed} {
			list = append(list, vantage.Seen{Recorder: "gate {recorder}", Vantage: v, Fidelity: fidelity, Records: 2})
		}
	}
	for _, l := range Langs() {
		said := Seen(l, list)
		if len(said) != len(evidence.Vantages()) {
			t.Errorf("%s: %q", l, said)
		}
		for _, text := range said {
			if strings.Count(text, "gate {recorder}") != 1 {
				t.Errorf("%s: %q", l, text)
			}
		}
	}
}
