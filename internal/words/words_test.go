package words

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"jurat/evidence"
	"jurat/jury"
	"jurat/verify"
)

// place matches a placeholder for a value. It also matches a verb of package fmt, which no text may have.
var place = regexp.MustCompile(`\{[^}]*\}|%[a-z+#]`)

func places(text string) []string {
	found := place.FindAllString(text, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

// textsIn lists every text of tables by its path.
func textsIn(tables ...any) map[string]string {
	found := map[string]string{}
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				walk(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		case reflect.String:
			found[path] = v.String()
		default:
			panic("words: " + path + " is neither a text nor a struct of texts")
		}
	}
	for _, table := range tables {
		v := reflect.Indirect(reflect.ValueOf(table))
		walk(v.Type().Name(), v)
	}
	return found
}

// all lists every text of a language.
func all(l Lang) map[string]string {
	return textsIn(TermsIn(l), StatementIn(l), PagesIn(l), PortalIn(l), TrustsIn(l), BasisIn(l))
}

// scripts has the scripts of languages. A language that is not in it is written in Latin letters.
var scripts = map[Lang][]*unicode.RangeTable{
	Japanese: {unicode.Han, unicode.Hiragana, unicode.Katakana}, Russian: {unicode.Cyrillic},
}

// unlettered are texts that may have no letters of the language's script.
var unlettered = []string{"Pages.Record.JSON", "Statement.Nor", "Basis.And"}

// spaceless are languages without a space between sentences.
var spaceless = []Lang{Japanese}

// fault returns what is wrong with a text, compared with the English one, or "".
func fault(l Lang, path, text, english string) string {
	switch {
	case strings.TrimSpace(text) == "" && path == "Statement.Between":
		if (text == "") != slices.Contains(spaceless, l) {
			return fmt.Sprintf("%q stands between sentences", text)
		}
	case strings.TrimSpace(text) == "":
		return "is missing"
	case !slices.Equal(places(text), places(english)):
		return fmt.Sprintf("has the places %v, and in English %v", places(text), places(english))
	case !slices.Contains(unlettered, path) && lettered(english) && !written(l, text):
		return fmt.Sprintf("%q is not written in %s", text, l.Name())
	}
	return ""
}

func lettered(text string) bool {
	return strings.ContainsFunc(place.ReplaceAllString(text, ""), unicode.IsLetter)
}

// written reports whether a text has letters of the language's script.
func written(l Lang, text string) bool {
	script, is := scripts[l]
	if !is {
		script = []*unicode.RangeTable{unicode.Latin}
	}
	return strings.ContainsFunc(place.ReplaceAllString(text, ""), func(r rune) bool { return unicode.In(r, script...) })
}

func TestEveryLanguageHasEveryText(t *testing.T) {
	want := all(English)
	if len(want) < 450 {
		t.Fatalf("English has %d texts", len(want))
	}
	for _, l := range Langs() {
		texts := all(l)
		for path, english := range want {
			if wrong := fault(l, path, texts[path], english); wrong != "" {
				t.Errorf("%s: %s %s", l, path, wrong)
			}
		}
		if l != English && reflect.DeepEqual(texts, want) {
			t.Errorf("%s is English", l)
		}
	}
}

func TestFaultsOfTextsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		lang          Lang
		path          string
		text, english string
		faulty        bool
	}{
		"whole":           {Russian, "P", "Страница {n}", "Page {n}", false},
		"missing":         {Japanese, "P", "", "Page {n}", true},
		"not translated":  {Russian, "P", "Page {n}", "Page {n}", true},
		"other place":     {Russian, "P", "Страница {of}", "Page {n}", true},
		"place forgotten": {Japanese, "P", "ページ", "Page {n}", true},
		"a verb":          {Japanese, "P", "{n} ページ %d", "Page {n}", true},
		"a new language":  {"de", "P", "Seite {n}", "Page {n}", false},
		"no space":        {Russian, "Statement.Between", "", " ", true},
		"no need of one":  {Japanese, "Statement.Between", "", " ", false},
	} {
		if wrong := fault(c.lang, c.path, c.text, c.english); (wrong != "") != c.faulty {
			t.Errorf("%s: %q", name, wrong)
		}
	}
	type inner struct{ A, B string }
	if got := textsIn(struct {
		One inner
		Two Sentence
	}{inner{"a", ""}, "c"}); !reflect.DeepEqual(got, map[string]string{".One.A": "a", ".One.B": "", ".Two": "c"}) {
		t.Errorf("%v", got)
	}
}

// declared calls see with every declaration of this package or of the one in a folder.
func declared(t *testing.T, folder string, see func(ast.Node)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %v", folder, files, err)
	}
	for _, f := range files {
		file, err := parser.ParseFile(token.NewFileSet(), f, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(f, "_test.go") {
			ast.Inspect(file, func(n ast.Node) bool { see(n); return true })
		}
	}
}

// TestEveryLanguageIsListed: readers can choose only the languages of the list, so it must have all.
func TestEveryLanguageIsListed(t *testing.T) {
	files := 0
	declared(t, ".", func(n ast.Node) {
		if f, is := n.(*ast.FuncDecl); is && f.Name.Name == "lang" && f.Recv != nil {
			files++
		}
	})
	if files != len(Langs()) {
		t.Errorf("%d languages have texts, and %d are listed", files, len(Langs()))
	}
	for i, l := range Langs() {
		if len(l) != 2 || l.Name() == "" || slices.Contains(Langs()[:i], l) || in(l).lang() != l {
			t.Errorf("%q, named %q", l, l.Name())
		}
	}
	if in("xx").lang() != English || in("").lang() != English {
		t.Error("a reader of an unsupported language does not get English")
	}
}

// valuesOf lists every constant of a type of strings.
func valuesOf[T ~string](t *testing.T, folder string) (values []T) {
	t.Helper()
	declared(t, folder, func(n ast.Node) {
		spec, is := n.(*ast.ValueSpec)
		if !is || len(spec.Values) != 1 {
			return
		}
		name, is := spec.Type.(*ast.Ident)
		literal, isLiteral := spec.Values[0].(*ast.BasicLit)
		if !is || !isLiteral || name.Name != reflect.TypeFor[T]().Name() {
			return
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, T(value))
	})
	if len(values) < 2 {
		t.Fatalf("%s has the values %q in %s", reflect.TypeFor[T]().Name(), values, folder)
	}
	return values
}

// has fails for a value of T without words in a language, and for one that has the words of another.
func has[T ~string](t *testing.T, l Lang, folder string, of func(T) string) {
	t.Helper()
	owners := map[string]T{}
	for _, v := range valuesOf[T](t, folder) {
		text := of(v)
		if text == "" {
			t.Errorf("%s: %T %q has no name", l, v, v)
		}
		if other, taken := owners[text]; taken {
			t.Errorf("%s: %T %q and %q are both called %q", l, v, v, other, text)
		}
		owners[text] = v
	}
	if of("unheard of") != "" {
		t.Errorf("%s: an unknown value has the name %q", l, of("unheard of"))
	}
}

// TestTermsNameEveryValue reads the source for each value that a report or record can have. Each language must name it.
func TestTermsNameEveryValue(t *testing.T) {
	const verifying, sealing, judging = "../../verify/assurance", "../../evidence", "../../jury"
	for _, l := range Langs() {
		terms := TermsIn(l)
		has(t, l, verifying, func(g verify.Guarantee) string { return terms.Guarantees.Of(g).Name })
		has(t, l, verifying, func(g verify.Guarantee) string { return terms.Guarantees.Of(g).Asks })
		has(t, l, verifying, terms.Statuses.Of)
		has(t, l, verifying, terms.Kinds.Of)
		has(t, l, "../../verify/trust", terms.Clocks.Of)
		has(t, l, sealing, terms.Actions.Of)
		has(t, l, sealing, terms.Roles.Of)
		has(t, l, sealing, terms.Approvals.Of)
		has(t, l, sealing, func(v evidence.Vantage) string { return terms.Vantages.Of(v).With("recorder", "gate") })
		has(t, l, judging, func(p jury.Position) string { return terms.Positions.Of(p).Name })
		has(t, l, judging, func(p jury.Position) string { return terms.Positions.Of(p).Sealed })
		has(t, l, judging, terms.Methods.Of)
	}
}

// TestReportsWordsAreKnown: every language has words for what reports say they do not prove.
func TestReportsWordsAreKnown(t *testing.T) {
	bundle := verify.Bundle(&evidence.Bundle{}, verify.Options{}) // which proves the least
	known := map[string]bool{}
	for _, item := range bundle.NotShown {
		known[item] = true
		for _, l := range Langs() {
			if TermsIn(l).NotShown.Of(item) == "" {
				t.Errorf("%s: there are no words for %q", l, item)
			}
		}
	}
	if n := reflect.TypeFor[NotShown]().NumField(); len(known) != n {
		t.Errorf("reports say %d things, but there are words for %d", len(known), n)
	}
	if TermsIn(Russian).NotShown.Of("that cats bark") != "" {
		t.Error("NotShown has words for a text that no report contains")
	}
}

// TestNamesThatMustAgree compares texts that name the same thing with the term for it.
func TestNamesThatMustAgree(t *testing.T) {
	for _, g := range valuesOf[verify.Guarantee](t, "../../verify/assurance") {
		if name := TermsIn(English).Guarantees.Of(g).Name; strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(name)) != string(g) {
			t.Errorf("the guarantee %s is called %q, which the command line and the format do not", g, name)
		}
	}
	for _, l := range Langs() {
		terms, says, portal := TermsIn(l), StatementIn(l), PortalIn(l)
		for _, c := range []struct {
			of    *Answers
			names string
		}{{&says.Procedure.Completeness, terms.Guarantees.Completeness.Name}, {&says.Procedure.Simultaneity, terms.Guarantees.Simultaneity.Name}} {
			for _, s := range []Sentence{c.of.Proved, c.of.NotProved, c.of.Refuted} {
				if !strings.HasPrefix(string(s), c.names) {
					t.Errorf("%s: %q does not begin with %q", l, s, c.names)
				}
			}
		}
		for _, p := range valuesOf[jury.Position](t, "../../jury") {
			name := terms.Positions.Of(p)
			if !strings.HasPrefix(name.Sealed, string(p)) || l != English && !strings.Contains(name.Sealed, name.Name) {
				t.Errorf("%s: %s is called %q, and in statements %q", l, p, name.Name, name.Sealed)
			}
		}
		for _, m := range valuesOf[jury.Method](t, "../../jury") {
			if name := terms.Methods.Of(m); !strings.HasPrefix(name, string(m)) {
				t.Errorf("%s: statements call the method %s %q, which does not contain the sealed value", l, m, name)
			}
		}
		if l == English && portal.Mended != verify.MendedMeans {
			t.Errorf("the portal says of a mended file %q", portal.Mended)
		}
		if !strings.Contains(portal.NoTrust, terms.Statuses.NotProved) {
			t.Errorf("%s: %q does not say %q", l, portal.NoTrust, terms.Statuses.NotProved)
		}
		if !strings.Contains(says.Configuration.With("parameters", "x"), inText(terms.Guarantees.Configuration.Name)) {
			t.Errorf("%s: %q does not speak of %q", l, says.Configuration, terms.Guarantees.Configuration.Name)
		}
		for _, text := range []string{PagesIn(l).Record.Configuration, portal.Members.Parameters} {
			if text != terms.Guarantees.Configuration.Name {
				t.Errorf("%s: the configuration is called %q and %q", l, text, terms.Guarantees.Configuration.Name)
			}
		}
	}
}

// inText returns a name as it is written within a sentence.
func inText(name string) string { return strings.ToLower(name) }

// rejected are other words for a thing that has a term. The term on the right is this program's.
var rejected = map[Lang]map[string]string{
	Japanese: {"運営者": "運用者", "構成": "設定", "同封物": "同梱物", "却下済み": "却下", "人の判断": "人の決定", "否認不可": "否認防止", "タイム・スタンプ": "タイムスタンプ"},
	Russian: {"неотрекаем": "неотказуемость", "временная метка": "метка времени", "временной метк": "метка времени", "штамп времени": "метка времени",
		"вывод суда": "решение", "раньше срока": "до указанного времени", "подлинность автора": "подлинность", "безопасен": "безопасно"},
}

func TestOneThingHasOneName(t *testing.T) {
	for l, names := range rejected {
		for path, text := range all(l) {
			for other, name := range names {
				if strings.Contains(strings.ToLower(text), other) {
					t.Errorf("%s: %s says %q, which is called %q: %s", l, path, other, name, text)
				}
			}
		}
	}
}

func TestSentenceInsertsOnce(t *testing.T) {
	if got := Sentence("{a} and {b}").With("a", "{b}", "b", "{a}", "c", 1); got != "{b} and {a}" {
		t.Errorf("%q", got)
	}
}
