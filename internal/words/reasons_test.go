package words

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"jurat/verify"
)

// rulesInSource returns every rule that package verify and its parts can give, with the guarantee "" where the source does not say.
func rulesInSource(t *testing.T) map[string]bool {
	t.Helper()
	rules := map[string]bool{}
	for _, folder := range []string{"verify", "verify/trust", "verify/properties", "verify/vantage", "verify/quotation", "jury"} {
		files, err := filepath.Glob(filepath.Join("..", "..", folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(folder, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				for _, rule := range rulesAt(n) {
					rules[rule] = true
				}
				return true
			})
		}
	}
	return rules
}

var ruleForm = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)

// rulesAt returns the rules that a node of the source names: arguments of what adds findings, constants called Rule…, fields called Rule.
func rulesAt(n ast.Node) []string {
	var found []string
	take := func(e ast.Expr) {
		if lit, is := e.(*ast.BasicLit); is && lit.Kind == token.STRING {
			if rule, err := strconv.Unquote(lit.Value); err == nil && ruleForm.MatchString(rule) {
				found = append(found, rule)
			}
		}
	}
	switch n := n.(type) {
	case *ast.CallExpr:
		called, is := n.Fun.(*ast.SelectorExpr)
		if !is {
			break
		}
		place, is := map[string]int{"refute": 1, "doubt": 1, "add": 2, "allDoubt": 0, "unsure": 0}[called.Sel.Name]
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
	doc, err := os.ReadFile("../../testdata/vectors/verification/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Verifications []struct {
			Report struct{ Guarantees, Details []verify.Finding }
		}
	}
	if err := json.Unmarshal(doc, &m); err != nil {
		t.Fatal(err)
	}
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
	for _, l := range Langs() {
		if l == English {
			continue
		}
		all := in(l).reasons()
		for rule := range rules {
			known := false
			for key := range all {
				_, of, _ := strings.Cut(strings.TrimSuffix(key, "!"), "/")
				known = known || strings.TrimSuffix(key, "!") == rule || of == rule
			}
			if !known {
				t.Errorf("%s: no reason for the rule %q", l, rule)
			}
		}
		for _, f := range pairs {
			if said := Reason(l, f); said == "" || strings.ContainsAny(said, "{}") || strings.Contains(said, strconv.Quote(f.Rule)) || !written(l, said) {
				t.Errorf("%s: %+v: %q", l, f, said)
			}
		}
		for key, said := range all {
			if plain := strings.NewReplacer("canonical.bin", "", "response.txt", "", "hash.sha256", "", "strict", "", "EU", "").Replace(place.ReplaceAllString(string(said), "")); strings.ContainsFunc(plain, func(r rune) bool { return unicode.Is(unicode.Latin, r) }) {
				t.Errorf("%s: %s has Latin letters: %s", l, key, said)
			}
		}
	}
}

// TestReasonsKeepValues: names, digests and times of a reason are shown as they are; its English is not.
func TestReasonsKeepValues(t *testing.T) {
	f := verify.Finding{Guarantee: verify.Authentication, Status: verify.Refuted, Rule: "actor", Reason: `it names agent "Ann says: \"proved\"" as its actor; key sha256:00ff, of 2026-01-01T00:00:00Z (019b76da-a801-791b-aeb8-000000000001)`}
	for _, l := range []Lang{Japanese, Russian} {
		said := Reason(l, f)
		for _, value := range []string{`"Ann says: \"proved\""`, "sha256:00ff", "2026-01-01T00:00:00Z", "019b76da-a801-791b-aeb8-000000000001"} {
			if !strings.Contains(said, value) {
				t.Errorf("%s: %s lacks %s", l, said, value)
			}
		}
		if strings.Contains(said, "it names") {
			t.Errorf("%s: %s", l, said)
		}
	}
	if Reason(English, f) != f.Reason {
		t.Error("English has other words than verification")
	}
	if said := Reason(Russian, verify.Finding{Guarantee: verify.Time, Status: verify.NotProved, Rule: "unheard-of", Reason: "x"}); !strings.Contains(said, `"unheard-of"`) {
		t.Error(said)
	}
}
