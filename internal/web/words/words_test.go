package words_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/net/html"

	"jurat/evidence"
	"jurat/examples"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/web/pages"
	"jurat/internal/web/portal/visit"
	"jurat/internal/web/words"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
)

// place matches a place for a value. It also matches a verb of package fmt, which no text may have.
var place = regexp.MustCompile(`\{[^}]*\}|%[a-z+#]`)

func places(text string) []string {
	found := place.FindAllString(text, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

var lineForm = regexp.MustCompile(`^(?:#.*|[a-z].* = ".*"|)$`)

// TestLinesHaveAKeyAndAText, each key once.
func TestLinesHaveAKeyAndAText(t *testing.T) {
	for _, l := range words.Langs() {
		keys := map[string]bool{}
		for _, file := range []string{string(l) + ".txt", "pages/" + string(l) + ".txt"} {
			doc := must.Get(os.ReadFile(file))(t)
			for n, line := range strings.Split(string(doc), "\n") {
				key, _, is := strings.Cut(line, " = ")
				must.Hold(t, lineForm.MatchString(line) && (!is || !keys[key]), "%s:%d: %s", file, n+1, line)
				keys[key] = is
			}
		}
	}
	files, err := filepath.Glob("*.txt")
	if err != nil || len(files) != len(words.Langs()) {
		t.Errorf("%d languages have texts, and %d are listed", len(files), len(words.Langs()))
	}
	must.Hold(t, words.Of("xx").Say("language") == "English" && words.OfPages("")["home.title"] == words.OfPages(words.English)["home.title"],
		"a reader of an unsupported language does not get English")
}

// scripts has the scripts of languages. A language that is not in it is written in Latin letters.
var scripts = map[words.Lang][]*unicode.RangeTable{
	words.Japanese: {unicode.Han, unicode.Hiragana, unicode.Katakana}, words.Russian: {unicode.Cyrillic},
}

// unlettered are texts that may have no letters of the language's script.
var unlettered = []string{"record.json", "statement.nor", "basis.and"}

// spaceless are languages without a space between sentences.
var spaceless = []words.Lang{words.Japanese}

// fault returns what is wrong with a text, compared with the English one, or "".
func fault(l words.Lang, key, text, english string) string {
	switch {
	case strings.TrimSpace(text) == "" && key == "statement.between":
		if (text == "") != slices.Contains(spaceless, l) {
			return fmt.Sprintf("%q stands between sentences", text)
		}
	case strings.TrimSpace(text) == "":
		return "is missing"
	case !slices.Equal(places(text), places(english)):
		return fmt.Sprintf("has the places %v, and in English %v", places(text), places(english))
	case !slices.Contains(unlettered, key) && lettered(english) && !written(l, text):
		return fmt.Sprintf("%q is not written in the language's script", text)
	}
	return ""
}

func lettered(text string) bool {
	return strings.ContainsFunc(place.ReplaceAllString(text, ""), unicode.IsLetter)
}

// written reports whether a text has letters of the language's script.
func written(l words.Lang, text string) bool {
	script, is := scripts[l]
	if !is {
		script = []*unicode.RangeTable{unicode.Latin}
	}
	return strings.ContainsFunc(place.ReplaceAllString(text, ""), func(r rune) bool { return unicode.In(r, script...) })
}

// TestEveryLanguageHasEveryText of English, and no other but reasons, which verification gives in English.
func TestEveryLanguageHasEveryText(t *testing.T) {
	want := words.OfPages(words.English)
	must.Need(t, len(want) >= 900, "English has %d texts", len(want))
	for _, l := range words.Langs() {
		texts := words.OfPages(l)
		for key, english := range want {
			wrong := fault(l, key, texts[key], english)
			must.Hold(t, wrong == "", "%s: %s %s", l, key, wrong)
		}
		for key, text := range texts {
			_, known := want[key]
			if russian := words.OfPages(words.Russian)[key]; !known && (!strings.HasPrefix(key, "reason.") || fault(l, key, text, russian) != "") {
				t.Errorf("%s: %s is no text of English, and no reason that each other language has", l, key)
			}
		}
	}
}

func TestFaultsOfTextsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		lang               words.Lang
		key, text, english string
		faulty             bool
	}{
		"whole":           {words.Russian, "p", "Страница {n}", "Page {n}", false},
		"missing":         {words.Japanese, "p", "", "Page {n}", true},
		"not translated":  {words.Russian, "p", "Page {n}", "Page {n}", true},
		"other place":     {words.Russian, "p", "Страница {of}", "Page {n}", true},
		"place forgotten": {words.Japanese, "p", "ページ", "Page {n}", true},
		"a verb":          {words.Japanese, "p", "{n} ページ %d", "Page {n}", true},
		"no space":        {words.Russian, "statement.between", "", " ", true},
		"no need of one":  {words.Japanese, "statement.between", "", " ", false},
	} {
		wrong := fault(c.lang, c.key, c.text, c.english)
		must.Hold(t, (wrong != "") == c.faulty, "%s: %q", name, wrong)
	}
}

// parsed calls see with every node of the Go files of a folder, without tests.
func parsed(t *testing.T, folder string, see func(ast.Node)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	must.Need(t, err == nil && len(files) != 0, "%s: %v, %v", folder, files, err)
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		file := must.Get(parser.ParseFile(token.NewFileSet(), f, nil, 0))(t)
		ast.Inspect(file, func(n ast.Node) bool { see(n); return true })
	}
}

// values lists every constant of a type of strings, such as "jury.Position", of which the folder is named.
func values(t *testing.T, folder, name string) (list []string) {
	t.Helper()
	parsed(t, filepath.Join("../../..", folder), func(n ast.Node) {
		if spec, is := n.(*ast.ValueSpec); is && len(spec.Values) == 1 {
			if of, is := spec.Type.(*ast.Ident); is && of.Name == name {
				if value, is := literal(spec.Values[0]); is {
					list = append(list, value)
				}
			}
		}
	})
	must.Need(t, len(list) >= 2, "%s has the values %q in %s", name, list, folder)
	return list
}

func literal(e ast.Expr) (string, bool) {
	if lit, is := e.(*ast.BasicLit); is && lit.Kind == token.STRING {
		value, err := strconv.Unquote(lit.Value)
		return value, err == nil
	}
	return "", false
}

// named returns what the last part of a key can be, by the parts before it: each value that a report, a record or a page can have.
func named(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	add := func(list []string, kinds ...string) {
		for _, kind := range kinds {
			all[kind] = append(all[kind], list...)
		}
	}
	of := func(folder, name string, kinds ...string) { add(values(t, folder, name), kinds...) }
	of("verify", "Guarantee", "guarantee", "asks")
	of("verify", "Status", "status", "statement.judged", "statement.procedure.completeness", "statement.procedure.simultaneity")
	of("verify", "Kind", "kind")
	of("verify", "Level", "basis.level", "basis.need")
	of("verify", "Clock", "basis.time")
	of("verify", "Log", "basis.log")
	of("verify", "Part", "basis.part")
	of("verify/trust", "Clock", "clock", "trust.authority", "statement.clock")
	of("verify/trust", "Custody", "trust.ca", "trust.signer.keys", "trust.signer.cas")
	of("evidence", "ActionType", "action")
	of("evidence", "Role", "role")
	of("evidence", "Vantage", "vantage")
	of("evidence", "ApprovalStatus", "approval")
	of("evidence", "Ended", "recording.ended")
	of("evidence/observed", "EventName", "recording.event")
	of("evidence/observed", "Mode", "recording.event.mode")
	of("jury", "Position", "position", "sealed_position")
	of("jury", "Method", "method", "sealed_method")
	of("jury", "Severity", "severity")
	of("jury", "ConsensusStatus", "consensus")
	of("jury", "AbsenceReason", "absence")
	of("jury", "ReviewReason", "statement.must_see", "mark", "mark_why")
	of("jury", "Decider", "statement.outcome", "statement.open")
	of("evidence/property", "Form", "statement.hidden")
	of("internal/court/subject", "Role", "speaker")
	of("internal/tap/convo", "Left", "left_out")
	of("internal/court/subject", "Why", "recording.lacking")
	of("internal/web/pages", "Mark", "mark", "mark_why")
	of("client/api", "State", "state", "state_more")
	of("client/api", "GrantState", "grant")
	of("reputation", "ClassName", "raters")
	doubts := []string{string(verify.NotProved), string(verify.Refuted)}
	add(doubts, "statement.because.content", "statement.because.authentication", "statement.because.time", "statement.acts.content", "statement.acts.authentication", "statement.hidden.doubt")
	add([]string{"uncited", "uncited_alone", "citing", "citing_alone"}, "statement.moved")
	add([]string{verify.NoTime, verify.NoLog, verify.OneLog, verify.OneKey, verify.OneOwner}, "trust.why")
	add([]string{"proved", "one", "open", "differs"}, "trust.exchange")
	add([]string{"newest", "oldest", "latest", "highest", "lowest", "agent"}, "find.order")
	add([]string{"erased"}, "recording.lacking")
	add([]string{"auditor"}, "role")
	add(examples.Names(), "example")
	add(verify.Bundle(&evidence.Bundle{}, verify.Options{}).NotShown, "not_shown")
	for _, a := range jury.DefaultRubric() {
		add([]string{a.ID}, "axis")
	}
	return all
}

// nameless are values of which nothing is said.
var nameless = []string{"state_more.over", "recording.event.mode"}

// TestEveryValueHasAName of its own, in every language.
func TestEveryValueHasAName(t *testing.T) {
	for kind, list := range named(t) {
		for _, l := range words.Langs() {
			owners := map[string]string{}
			for _, value := range list {
				text := words.OfPages(l)[kind+"."+value]
				must.Hold(t, (text == "") == slices.Contains(nameless, kind+"."+value), "%s: %s.%s: %q", l, kind, value, text)
				if other, taken := owners[text]; taken && other != value && !strings.HasPrefix(kind, "statement.because") {
					t.Errorf("%s: %s: %q and %q are both called %q", l, kind, value, other, text)
				}
				owners[text] = value
			}
		}
	}
}

// users are the folders whose code asks for texts.
var users = []string{".", "../pages", "../portal", "../portal/visit", "../../../cmd/jurat"}

var inTemplate = regexp.MustCompile(`\bt "([^"]+)"`)

// TestEveryTextIsAskedFor, and what is asked for is there: by its whole key, by the name of a value, or by the portal's script, which has a
// test of its own.
func TestEveryTextIsAskedFor(t *testing.T) {
	asked, texts := map[string]bool{"language": true}, words.OfPages(words.English)
	groups := map[string]bool{}
	for key := range texts {
		group, _, _ := strings.Cut(key, ".")
		groups[group] = true
	}
	for kind, list := range named(t) {
		for _, value := range list {
			asked[kind+"."+value] = true
		}
	}
	ask := func(key, by string) {
		asked[key] = true
		must.Hold(t, texts[key] != "", "%s asks for %s", by, key)
	}
	for _, folder := range users {
		parsed(t, folder, func(n ast.Node) {
			switch n := n.(type) {
			case *ast.CallExpr:
				given, is := fills(n)
				must.Hold(t, !is || given.fill(texts), "%s: %s is given %v", folder, given.key, given.values)
			case *ast.BasicLit:
				key, is := literal(n)
				group, rest, _ := strings.Cut(key, ".")
				if is && groups[group] && keyForm.MatchString(rest) && !fileName.MatchString(key) {
					ask(key, folder)
				}
			}
		})
	}
	files, err := filepath.Glob("../pages/templates/*.html")
	must.Need(t, err == nil && len(files) >= 10, "%v %v", files, err)
	for _, file := range files {
		doc := must.Get(os.ReadFile(file))(t)
		for _, m := range inTemplate.FindAllSubmatch(doc, -1) {
			ask(string(m[1]), file)
		}
	}
	for key := range texts {
		must.Hold(t, asked[key] || strings.HasPrefix(key, "portal."), "nothing asks for %s", key)
	}
}

// keyForm is that of a key after its first part. A literal that ends in a point is the beginning of the key of a value.
var keyForm = regexp.MustCompile(`^[a-z_-]+(\.[a-z_-]+)*$`)

// fileName matches names of files, which have the form of a key.
var fileName = regexp.MustCompile(`\.(json|db)$`)

// A filled text is given values.
type filled struct {
	key    string
	values []string
}

// fills reads a call that gives values to a text.
func fills(c *ast.CallExpr) (f filled, is bool) {
	at := slices.Index([]string{"Say", "say"}, callee(c))
	if at < 0 || len(c.Args) <= at || c.Ellipsis.IsValid() {
		return f, false
	}
	if f.key, is = literal(c.Args[at]); !is {
		return f, false
	}
	for i := at + 1; i < len(c.Args); i += 2 {
		value, _ := literal(c.Args[i])
		f.values = append(f.values, "{"+value+"}")
	}
	return f, true
}

// callee is the name of the called function or method.
func callee(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

// fill reports whether each place of the text has a value.
func (f filled) fill(texts words.Texts) bool {
	return !slices.ContainsFunc(places(texts[f.key]), func(p string) bool { return !slices.Contains(f.values, p) })
}

// TestNamesThatMustAgree compares texts that name the same thing with the name of it.
func TestNamesThatMustAgree(t *testing.T) {
	all := named(t)
	for _, g := range all["guarantee"] {
		must.Equal(t, strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(words.Of(words.English)["guarantee."+g])), g)
	}
	for _, l := range words.Langs() {
		texts := words.OfPages(l)
		for _, g := range []string{"completeness", "simultaneity"} {
			for _, s := range all["status"] {
				text := texts["statement.procedure."+g+"."+s]
				must.Hold(t, strings.HasPrefix(text, texts["guarantee."+g]), "%s: %q does not begin with %q", l, text, texts["guarantee."+g])
			}
		}
		for _, p := range all["position"] {
			name, sealed := texts["position."+p], texts["sealed_position."+p]
			must.Hold(t, strings.HasPrefix(sealed, p) && (l == words.English || strings.Contains(sealed, name)),
				"%s: %s is called %q, and in statements %q", l, p, name, sealed)
		}
		for _, m := range all["method"] {
			name := texts["sealed_method."+m]
			must.Hold(t, strings.HasPrefix(name, m), "%s: statements call the method %s %q, which does not contain the sealed value", l, m, name)
		}
		for _, r := range all["speaker"] {
			role := texts["role."+r]
			must.Hold(t, role == "" || strings.EqualFold(role, texts["speaker."+r]), "%s: the %s is called %q and %q", l, r, role, texts["speaker."+r])
		}
		must.Hold(t, l != words.English || texts["portal.mended"] == verify.MendedMeans, "the portal says of a mended file %q", texts["portal.mended"])
		must.Hold(t, strings.Contains(texts["portal.no_trust"], texts["status.not proved"]),
			"%s: %q does not say %q", l, texts["portal.no_trust"], texts["status.not proved"])
		if configuration := texts["guarantee.configuration"]; !strings.Contains(texts["statement.configuration"], strings.ToLower(configuration)) ||
			texts["record.configuration"] != configuration || texts["portal.members.parameters"] != configuration {
			t.Errorf("%s: not everything calls the configuration %q", l, configuration)
		}
	}
}

// rejected are other words for a thing that has a name. This program's name is on the right.
var rejected = map[words.Lang]map[string]string{
	words.Japanese: {"運営者": "運用者", "構成": "設定", "同封物": "同梱物", "却下済み": "却下", "人の判断": "人の決定", "否認不可": "否認防止", "タイム・スタンプ": "タイムスタンプ"},
	words.Russian: {"неотрекаем": "неотказуемость", "временная метка": "метка времени", "временной метк": "метка времени", "штамп времени": "метка времени",
		"вывод суда": "решение", "раньше срока": "до указанного времени", "подлинность автора": "подлинность", "безопасен": "безопасно"},
}

func TestOneThingHasOneName(t *testing.T) {
	for l, names := range rejected {
		for key, text := range words.OfPages(l) {
			for other, name := range names {
				must.Hold(t, !strings.Contains(strings.ToLower(text), other), "%s: %s says %q, which is called %q: %s", l, key, other, name, text)
			}
		}
	}
}

func TestValuesAreInsertedOnce(t *testing.T) {
	texts := words.Texts{"k": "{a} and {b}"}
	must.Equal(t, texts.Say("k", "a", "{b}", "b", "{a}", "c", 1), "{b} and {a}")
	must.Equal(t, texts.Say("other", "a", 1)+texts.Name("kind", "unheard of"), "unheard of")
}

// TestWhatAProofRestsOnInWords: every level and every word of a part has a sentence of its own, in each language.
func TestWhatAProofRestsOnInWords(t *testing.T) {
	owner := verify.Party{Role: evidence.RoleAgent, Custody: trust.ByOwner, By: trust.ByKey}
	certified := verify.Party{Role: evidence.RoleAgent, Custody: trust.ByOwner, By: trust.ByCA}
	held := verify.Party{Role: evidence.RoleJuror, Custody: trust.ByOperator, By: trust.ByKey}
	bases := []verify.Basis{{}}
	for _, l := range verify.Levels() {
		bases = append(bases, verify.Basis{Level: l})
	}
	for _, p := range []verify.Party{owner, certified, held} {
		bases = append(bases, verify.Basis{Level: verify.LevelOperator, Keys: verify.KeysByOperator, Parties: []verify.Party{p}})
	}
	for _, c := range []verify.Clock{verify.OperatorClock, verify.IndependentClock, verify.QualifiedClock} {
		bases = append(bases, verify.Basis{Level: verify.LevelOperator, Time: c})
	}
	for _, l := range []verify.Log{verify.LogAlone, verify.LogCompared, verify.LogWitnessed, verify.LogBoth} {
		bases = append(bases, verify.Basis{Level: verify.LevelOperator, Log: l})
	}
	for _, lang := range words.Langs() {
		seen := map[string]verify.Basis{}
		for i := range bases {
			bases[i].Unmet = []verify.Part{verify.PartKeys}
			r := &verify.Report{Kind: verify.OneRecord, Outcome: verify.NotProved, Basis: &bases[i], Demanded: &verify.Demanded{Need: verify.Need{Level: bases[i].Level}}}
			view := words.ViewOf(lang, r)
			said := view.Rests + strings.Join(view.Wanted, "")
			if other, twice := seen[said]; twice || strings.ContainsAny(said, "{}") || strings.Contains(said, string(verify.LevelQualified)) {
				t.Errorf("%s: %+v and %+v: %s", lang, bases[i], other, said)
			}
			seen[said] = bases[i]
		}
	}
	checkpoint := words.RestsOn(words.English, &verify.Report{Kind: verify.OneCheckpoint, Basis: &verify.Basis{Level: verify.LevelOperator, Log: verify.LogAlone}})
	must.Hold(t, !strings.Contains(checkpoint, "Keys") && strings.Contains(checkpoint, "Log: only its operator"), "%v", checkpoint)
}

// rulesInSource returns every rule that package verify and its parts can give, with the guarantee "" where the source does not say.
func rulesInSource(t *testing.T) map[string]bool {
	t.Helper()
	rules := map[string]bool{}
	for _, folder := range []string{"verify", "verify/trust", "jury"} {
		parsed(t, filepath.Join("../../..", folder), func(n ast.Node) {
			for _, rule := range rulesAt(n) {
				rules[rule] = true
			}
		})
	}
	return rules
}

var ruleForm = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)

// rulesAt returns the rules that a node of the source names: rows of the tables of rules, constants called Rule…, fields called Rule.
func rulesAt(n ast.Node) []string {
	var found []string
	take := func(e ast.Expr) {
		if rule, is := literal(e); is && ruleForm.MatchString(rule) {
			found = append(found, rule)
		}
	}
	switch n := n.(type) {
	case *ast.CallExpr:
		if len(n.Args) == 0 {
			break
		}
		if callee(n) == "unopened" {
			take(n.Args[2])
		}
		if names, is := n.Args[0].(*ast.CompositeLit); is && callee(n) == "each" {
			for _, name := range names.Elts {
				take(name)
			}
		}
	case *ast.CompositeLit:
		if len(n.Elts) == 4 {
			if when, is := n.Elts[2].(*ast.Ident); is && slices.Contains([]string{"always", "otherwise", "applying", "ifOpen"}, when.Name) {
				take(n.Elts[0])
			}
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
	doc := must.Get(os.ReadFile("../../../testdata/vectors/verification/manifest.json"))(t)
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
	must.Need(t, len(rules) >= 80, "the source has %d rules", len(rules))
	pairs := pairsInVectors(t)
	must.Need(t, len(pairs) >= 120, "the vectors have %d answers", len(pairs))
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
			must.Hold(t, rules[parts[len(parts)-1]] || parts[0] == "proved", "%s: no rule has the reason %s", l, key)
			plain := strings.NewReplacer("strict", "", "EU", "").Replace(place.ReplaceAllString(said, ""))
			must.Hold(t, !strings.ContainsFunc(plain, func(r rune) bool { return unicode.Is(unicode.Latin, r) }), "%s: %s has Latin letters: %s", l, key, said)
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
		must.Contain(t, said, `"Ann says: \"proved\""`, "sha256:00ff", "2026-01-01T00:00:00Z", "019b76da-a801-791b-aeb8-000000000001")
		must.Hold(t, !strings.Contains(said, "it names"), "%s: %s", l, said)
	}
	must.Equal(t, words.Reason(words.English, f), f.Reason)
	said := words.Reason(words.Russian, verify.Finding{Guarantee: verify.Time, Status: verify.NotProved, Rule: "unheard-of", Reason: "x"})
	must.Hold(t, strings.Contains(said, `"unheard-of"`), "%v", said)
}

// shown is what a reader sees of a guarantee: the answer, its name and its question.
type shown struct{ status, name, asks string }

func wanted(l words.Lang, g verify.Guarantee, s verify.Status) shown {
	texts := words.Of(l)
	return shown{texts["status."+string(s)], texts["guarantee."+string(g)], texts["asks."+string(g)]}
}

// compare fails if a surface shows other guarantees than a report has, or shows them with other words.
func compare(t *testing.T, surface string, l words.Lang, got []shown, of []verify.Finding) {
	t.Helper()
	if len(got) != len(of) || len(of) == 0 {
		t.Errorf("%s in %s shows %d guarantees of %d", surface, l, len(got), len(of))
		return
	}
	for i, f := range of {
		must.Equal(t, got[i], wanted(l, f.Guarantee, f.Status), surface, "in", l, "shows", f.Guarantee, "as")
	}
}

// TestSurfacesUseTheSameWords: pages, the portal and statements name each guarantee, and each answer, alike.
func TestSurfacesUseTheSameWords(t *testing.T) {
	h := jurattest.NewForStrangers(t)
	trial := h.Try(t, jury.MajorityVote)
	bundle := h.Bundle(t, trial.Records...)
	report := verify.Bundle(bundle, h.Options(t))
	v := verified(t, bundle, h.Trust(t))
	for _, l := range words.Langs() {
		first := bundle.Records[0]
		chain := pages.NewChain(first.Payload.ChainID, bundle.Records, report, 1)
		compare(t, "the page of a chain", l, answers(t, l, chain), report.Guarantees)
		var ofFirst []verify.Finding
		for _, f := range report.Guarantees {
			ofFirst = append(ofFirst, report.For(f.Guarantee, first.Payload.RecordID))
		}
		compare(t, "the page of a record", l, answers(t, l, pages.NewSealed(first, report, "")), ofFirst)

		view := must.Get(v.View(0, l))(t)
		compare(t, "the portal", l, lines(view.Guarantees), findings(view.Guarantees))
		want := words.Of(l)["status."+string(view.Outcome)]
		must.Hold(t, view.Said == want, "the portal in %s says %q, want %q", l, view.Said, want)
		records, err := v.Records(0, 0, 1, l)
		must.Need(t, err == nil && len(records) == 1, "%v %v", records, err)
		compare(t, "a record in the portal", l, lines(records[0].Lines), findings(records[0].Lines))

		statement := strings.Join(words.Site("").Statement(bundle.Records, report, l), "\n")
		for _, g := range []verify.Guarantee{verify.Completeness, verify.Simultaneity} {
			name := words.Of(l)["guarantee."+string(g)]
			must.Hold(t, strings.Contains(statement, "\n"+name), "the statement in %s does not contain %q:\n%s", l, name, statement)
		}
	}
}

// verified is a visit to the portal with the case file of a trial.
func verified(t *testing.T, bundle *evidence.Bundle, trusted *trust.Trust) *visit.Visit {
	t.Helper()
	var sources []visit.Source
	add := func(name string, doc []byte, err error) {
		must.Do(t, err)
		sources = append(sources, visit.Source{Name: name, Size: int64(len(doc)), From: bytes.NewReader(doc)})
	}
	doc, err := bundle.Marshal()
	add("case", doc, err)
	doc, err = trusted.Marshal()
	add("trust", doc, err)
	v := &visit.Visit{Now: time.Now}
	must.Get(v.Verify([]byte(`{"files":[0],"trust":1}`), sources))(t)
	return v
}

func lines(list []words.Line) (all []shown) {
	for _, l := range list {
		all = append(all, shown{l.Said, l.Name, l.Asks})
	}
	return all
}

func findings(list []words.Line) (all []verify.Finding) {
	for _, l := range list {
		all = append(all, verify.Finding{Guarantee: l.Guarantee, Status: l.Status})
	}
	return all
}

// answers reads the guarantees from a served page.
func answers(t *testing.T, l words.Lang, p pages.Page) (all []shown) {
	t.Helper()
	var page bytes.Buffer
	must.Do(t, pages.Write(&page, pages.Frame{Lang: l, Path: "/"}, p))
	doc := must.Get(html.Parse(&page))(t)
	for n := range doc.Descendants() {
		if n.Data != "dl" || attribute(n, "class") != "answers" {
			continue
		}
		for d := range n.Descendants() {
			switch {
			case d.Data == "span" && strings.HasPrefix(attribute(d, "class"), "status "):
				all = append(all, shown{status: text(d)})
			case d.Data == "strong":
				all[len(all)-1].name = text(d)
			case d.Data == "dd":
				all[len(all)-1].asks = strings.TrimSpace(d.FirstChild.Data)
			}
		}
	}
	return all
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func text(n *html.Node) string {
	var all strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			all.WriteString(d.Data)
		}
	}
	return strings.TrimSpace(all.String())
}
