package words

import (
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/verify/counted"
	"jurat/verify/vantage"
)

// TestCompared: what was compared with a provider's usage is said in every language, with both numbers, and that one of them is not proved.
func TestCompared(t *testing.T) {
	one := func(agent string, requests *int64, around int64, answer counted.Answer) *counted.Comparison {
		return &counted.Comparison{Scope: operator.UsageScope{Agent: agent, From: "FROM", To: "TO"}, Calls: operator.UsageCalls{Count: 71}, Provider: operator.UsageCount{Requests: requests},
			Differences: operator.UsageDifferences{Around: around}, File: operator.UsageFile{Format: "FORMAT {calls}"}, Here: 12, Answer: answer}
	}
	for _, l := range Langs() {
		said := Compared(l, []*counted.Comparison{one("mia", new(int64(72)), 3, counted.Part), one("", nil, 0, counted.Agrees), one("", nil, 0, counted.Contradicted), one("", nil, 0, counted.Unchecked)})
		for _, part := range []string{"mia", "FROM", "TO", "71", "72", "3", "12", "FORMAT {calls}"} {
			if !strings.Contains(said[0], part) {
				t.Errorf("%s: %q lacks %q", l, said[0], part)
			}
		}
		seen := map[string]bool{}
		for _, text := range said {
			if seen[text] || strings.Contains(text, "{found}") || strings.Contains(text, "{shown}") {
				t.Errorf("%s: %q", l, text)
			}
			seen[text] = true
		}
	}
}

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
