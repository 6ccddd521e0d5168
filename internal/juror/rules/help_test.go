package rules

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"jurat/internal/must"
)

// TestEveryRuleHasHelp: each rule of the checklist has a help that says what is wrong and what to do, no other has, and docs/rules.md has the
// same text under a heading of the rule's name, so that a report can point to it.
func TestEveryRuleHasHelp(t *testing.T) {
	doc := must.Get(os.ReadFile("../../../docs/rules.md"))(t)
	ids := IDs()
	if len(ids) != len(helps) {
		t.Errorf("%d rules have %d helps", len(ids), len(helps))
	}
	for _, id := range ids {
		h, ok := HelpOf(id)
		if !ok {
			t.Errorf("%s has no help", id)
			continue
		}
		for _, text := range []string{h.Wrong, h.Leaves, h.Do} {
			if !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %q is not a sentence", id, text)
			}
		}
		if want := fmt.Sprintf("### %s\n\n%s\n\nIt leaves alone: %s\n\nWhat to do: %s\n", id, h.Wrong, h.Leaves, h.Do); !strings.Contains(string(doc), want) {
			t.Errorf("docs/rules.md lacks\n%s", want)
		}
	}
	if n := strings.Count(string(doc), "\n### "); n != len(ids) {
		t.Errorf("docs/rules.md describes %d rules, and there are %d", n, len(ids))
	}
}
