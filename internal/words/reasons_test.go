package words_test

import (
	"encoding/json"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"jurat/internal/must"
	"jurat/internal/words"
	"jurat/verify"
)

// rulesInSource returns every rule that package verify and its parts can give, with the guarantee "" where the source does not say.
func rulesInSource(t *testing.T) map[string]bool {
	t.Helper()
	rules := map[string]bool{}
	for _, folder := range []string{"verify", "verify/trust", "jury"} {
		parsed(t, filepath.Join("../..", folder), func(n ast.Node) {
			for _, rule := range rulesAt(n) {
				rules[rule] = true
			}
		})
	}
	return rules
}

var ruleForm = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)

// rulesAt returns the rules that a node of the source names: arguments of what adds findings, constants called Rule…, fields called Rule.
func rulesAt(n ast.Node) []string {
	var found []string
	take := func(e ast.Expr) {
		if rule, is := literal(e); is && ruleForm.MatchString(rule) {
			found = append(found, rule)
		}
	}
	switch n := n.(type) {
	case *ast.CallExpr:
		place, is := map[string]int{"refute": 1, "doubt": 1, "add": 2, "unopened": 2, "allDoubt": 0, "unsure": 0}[callee(n)]
		if is && place < len(n.Args) {
			take(n.Args[place])
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if strings.HasPrefix(name.Name, "Rule") && i < len(n.Values) {
				take(n.Values[i])
			}
		}
	case *ast.KeyValueExpr:
		if key, is := n.Key.(*ast.Ident); is && key.Name == "Rule" {
			take(n.Value)
		}
	}
	return found
}

// pairsInVectors returns what the vectors were found to break: guarantee, status and rule.
func pairsInVectors(t *testing.T) []verify.Finding {
	t.Helper()
	doc := must.Get(os.ReadFile("../../testdata/vectors/verification/manifest.json"))(t)
	var m struct {
		Verifications []struct {
			Report struct{ Guarantees, Details []verify.Finding }
		}
	}
	must.Do(t, json.Unmarshal(doc, &m))
	seen := map[verify.Finding]bool{}
	var list []verify.Finding
	for _, v := range m.Verifications {
		for _, f := range append(v.Report.Guarantees, v.Report.Details...) {
			if f = (verify.Finding{Guarantee: f.Guarantee, Status: f.Status, Rule: f.Rule, Reason: "because"}); !seen[f] {
				seen[f] = true
				list = append(list, f)
			}
		}
	}
	return list
}

// TestEveryRuleHasAReasonInEveryLanguage walks all rules of the source, and all answers of the vectors.
func TestEveryRuleHasAReasonInEveryLanguage(t *testing.T) {
	rules := rulesInSource(t)
	if len(rules) < 80 {
		t.Fatalf("the source has %d rules", len(rules))
	}
	pairs := pairsInVectors(t)
	if len(pairs) < 120 {
		t.Fatalf("the vectors have %d answers", len(pairs))
	}
	for _, f := range pairs {
		rules[f.Rule] = true
	}
	for _, l := range words.Langs() {
		if l == words.English {
			continue
		}
		left := maps.Clone(rules)
		for key, said := range words.Of(l) {
			key, is := strings.CutPrefix(key, "reason.")
			if !is || slices.Contains(ofNoRule, key) {
				continue
			}
			parts := strings.Split(strings.TrimSuffix(key, "!"), "/")
			delete(left, parts[len(parts)-1])
			if !rules[parts[len(parts)-1]] && parts[0] != "proved" {
				t.Errorf("%s: no rule has the reason %s", l, key)
			}
			if plain := strings.NewReplacer("strict", "", "EU", "").Replace(place.ReplaceAllString(said, "")); strings.ContainsFunc(plain, func(r rune) bool { return unicode.Is(unicode.Latin, r) }) {
				t.Errorf("%s: %s has Latin letters: %s", l, key, said)
			}
		}
		if delete(left, ""); len(left) > 0 {
			t.Errorf("%s: no reasons for the rules %v", l, left)
		}
		for _, f := range pairs {
			if said := words.Reason(l, f); said == "" || strings.ContainsAny(said, "{}") || strings.Contains(said, strconv.Quote(f.Rule)) || !written(l, said) {
				t.Errorf("%s: %+v: %q", l, f, said)
			}
		}
	}
}

// ofNoRule are the keys of reasons for what names no rule, or one that is not known, and of the sentence for a reason with values.
var ofNoRule = []string{"unopened", "other", "followed?", "with"}

// TestReasonsKeepValues: names, digests and times of a reason are shown as they are; its English is not.
func TestReasonsKeepValues(t *testing.T) {
	f := verify.Finding{Guarantee: verify.Authentication, Status: verify.Refuted, Rule: "actor", Reason: `it names agent "Ann says: \"proved\"" as its actor; key sha256:00ff, of 2026-01-01T00:00:00Z (019b76da-a801-791b-aeb8-000000000001)`}
	for _, l := range []words.Lang{words.Japanese, words.Russian} {
		said := words.Reason(l, f)
		for _, value := range []string{`"Ann says: \"proved\""`, "sha256:00ff", "2026-01-01T00:00:00Z", "019b76da-a801-791b-aeb8-000000000001"} {
			if !strings.Contains(said, value) {
				t.Errorf("%s: %s lacks %s", l, said, value)
			}
		}
		if strings.Contains(said, "it names") {
			t.Errorf("%s: %s", l, said)
		}
	}
	if words.Reason(words.English, f) != f.Reason {
		t.Error("English has other words than verification")
	}
	if said := words.Reason(words.Russian, verify.Finding{Guarantee: verify.Time, Status: verify.NotProved, Rule: "unheard-of", Reason: "x"}); !strings.Contains(said, `"unheard-of"`) {
		t.Error(said)
	}
}
