package verify_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jurat/internal/must"
)

// inStatements is why rules about SCITT statements have no vectors: these are JSON. TestSecondVerifierOnStatements compares both verifiers, and TestEveryRuleOfAStatement
// breaks each of these rules.
const (
	inStatements = "SCITT statements are no JSON, and have tests of their own"
	ofDemands    = "vectors bring no demands: property_test.go does"
)

// noVector are the rules for which no vector can be made, with the reasons.
var noVector = map[string]string{
	"unsupported": inStatements,
	"demand":      ofDemands,
	"value":       ofDemands,
	"replay":      "a fault of the program itself: no file leads to it",
	"volume":      "the smallest file that leads to it has 77 MB",
}

// TestEveryRuleHasAVector compares the rules in the code with those in the manifest.
func TestEveryRuleHasAVector(t *testing.T) {
	shown := map[string]bool{}
	for _, v := range readVectorManifest(t).Verifications {
		if v.Report == nil {
			continue
		}
		for _, f := range v.Report.Guarantees {
			shown[f.Rule] = true
		}
	}
	rules := rulesInCode(t)
	if len(rules) < 40 {
		t.Fatalf("this test found only %d rules in the code; it searches wrongly, or the rules are gone", len(rules))
	}
	for _, rule := range rules {
		if _, excepted := noVector[rule]; excepted == shown[rule] {
			t.Errorf("rule %q: has a vector: %v, has an exception: %v; it needs exactly one of them", rule, shown[rule], excepted)
		}
	}
	for rule := range noVector {
		if !slices.Contains(rules, rule) {
			t.Errorf("there is no rule %q to be excepted", rule)
		}
	}
}

// rulesInCode are the names of all rules, of this package and of package jury.
func rulesInCode(t *testing.T) []string {
	t.Helper()
	files := must.Get(filepath.Glob("*.go"))(t)
	var code strings.Builder
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			code.WriteString(read(t, file))
		}
	}
	var rules []string
	for _, pattern := range []string{
		`(?:c\.(?:refute|doubt|unsure|add|allDoubt)|contradicts)\([^"\n]*"([a-z-]+)"`,
		`\bRule: +"([a-z-]+)"`,
		`\brule = "([a-z-]+)"`,
		`\{"([a-z-]+)", \[\]error\{`,
		`, "([a-z-]+)"\}(?:, \{|\}\n)`,
		`\bvouching\{ca, "([a-z-]+)"`,
	} {
		rules = append(rules, matches(regexp.MustCompile(pattern), code.String())...)
	}
	law := read(t, filepath.Join("..", "jury", "apply.go"))
	rules = append(rules, matches(regexp.MustCompile(`(?m)^\tRule[A-Z]\w* += "([a-z-]+)"`), law)...)
	slices.Sort(rules)
	return slices.Compact(rules)
}
