package pages

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"html/template"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	syntax "text/template/parse"

	"jurat/api"
	"jurat/evidence"
	"jurat/examples"
	"jurat/internal/subject"
	"jurat/internal/words"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
)

var place = regexp.MustCompile(`\{([^}]*)\}`)

// places lists the placeholders of a text.
func places(text string) (names []string) {
	for _, m := range place.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// A use is a text that a template shows, and the values that it fills in.
type use struct {
	path   []string
	values []string
}

// textsOf lists the texts of a node and of what is below it.
func textsOf(node reflect.Value) (list []use) {
	switch node.Kind() {
	case reflect.Interface, reflect.Pointer:
		if node.IsNil() {
			return nil
		}
		if c, is := node.Interface().(*syntax.CommandNode); is {
			return append(ofCommand(c), textsOf(reflect.ValueOf(c.Args))...)
		}
		return textsOf(node.Elem())
	case reflect.Slice:
		for i := range node.Len() {
			list = append(list, textsOf(node.Index(i))...)
		}
	case reflect.Struct:
		for i := range node.NumField() {
			if f := node.Type().Field(i); f.IsExported() {
				list = append(list, textsOf(node.Field(i))...)
			}
		}
	}
	return list
}

// ofCommand lists the texts that are arguments of a command.
func ofCommand(c *syntax.CommandNode) (list []use) {
	function, _ := c.Args[0].(*syntax.IdentifierNode)
	for i, arg := range c.Args {
		chain, is := arg.(*syntax.ChainNode)
		if !is || chain.Node.String() != "t" {
			continue
		}
		u := use{path: chain.Field}
		if function != nil && function.Ident == "fill" && i == 1 {
			for _, name := range slices.Collect(slices.Chunk(c.Args[2:], 2)) {
				u.values = append(u.values, strings.Trim(name[0].String(), `"`))
			}
			slices.Sort(u.values)
		}
		list = append(list, u)
	}
	return list
}

// inTemplates lists the texts of all templates.
func inTemplates(t *testing.T) (list []use) {
	t.Helper()
	set, err := template.New("").Funcs(functions(words.English)).ParseFS(templateFiles, "templates/*.html")
	check(t, err)
	for _, one := range set.Templates() {
		if one.Tree != nil {
			list = append(list, textsOf(reflect.ValueOf(one.Tree.Root))...)
		}
	}
	if len(list) < 150 {
		t.Fatalf("found %d texts in templates", len(list))
	}
	return list
}

// misused returns what is wrong with how a template uses a text, or "".
func misused(u use) string {
	v := reflect.ValueOf(*words.PagesIn(words.English))
	for _, name := range u.path {
		if v.Kind() != reflect.Struct || !v.FieldByName(name).IsValid() {
			return "there is no such text"
		}
		v = v.FieldByName(name)
	}
	if v.Kind() != reflect.String {
		return "it is no text"
	}
	if has := places(v.String()); !slices.Equal(has, u.values) {
		return fmt.Sprintf("%q has the places %v and is given %v", v, has, u.values)
	}
	return ""
}

func TestTemplatesUseTextsThatAreThere(t *testing.T) {
	for _, u := range inTemplates(t) {
		if wrong := misused(u); wrong != "" {
			t.Errorf("t.%s: %s", strings.Join(u.path, "."), wrong)
		}
	}
	for _, u := range []use{{path: []string{"Court", "Jokes"}}, {path: []string{"Court"}}, {path: []string{"Chain", "Page"}, values: []string{"n"}},
		{path: []string{"Court", "Title", "X"}}, {path: []string{"Court", "Kicker"}, values: []string{"n"}}} {
		if misused(u) == "" {
			t.Errorf("nothing is wrong with %v", u)
		}
	}
}

func TestEveryTextIsUsed(t *testing.T) {
	used := map[string]bool{}
	for _, u := range inTemplates(t) {
		used[strings.Join(u.path, ".")] = true
	}
	files, err := filepath.Glob("*.go")
	check(t, err)
	var code strings.Builder
	for _, f := range files {
		if !strings.HasSuffix(f, "_test.go") {
			content, err := os.ReadFile(f)
			check(t, err)
			code.Write(content)
		}
	}
	// Code reaches a text from the whole table, or by its group: names := &words.PagesIn(lang).Link.
	all := reflect.TypeFor[words.Pages]()
	for i := range all.NumField() {
		group := all.Field(i)
		apart := regexp.MustCompile(`\.` + group.Name + `\n`).MatchString(code.String())
		for j := range group.Type.NumField() {
			text := group.Type.Field(j).Name
			whole := regexp.MustCompile(`\.` + group.Name + `\.` + text + `\b`).MatchString(code.String())
			alone := apart && regexp.MustCompile(`\b(names|kinds)\.`+text+`\b`).MatchString(code.String())
			if !used[group.Name+"."+text] && !whole && !alone {
				t.Errorf("the text %s.%s is not used", group.Name, text)
			}
		}
	}
}

// constants lists the values that a package declares for a string type.
func constants(t *testing.T, folder, name string) (values []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	check(t, err)
	for _, f := range files {
		file, err := parser.ParseFile(token.NewFileSet(), f, nil, 0)
		check(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, is := n.(*ast.ValueSpec)
			if !is {
				return true
			}
			if of, is := spec.Type.(*ast.Ident); is && of.Name == name && len(spec.Values) == 1 {
				if literal, is := spec.Values[0].(*ast.BasicLit); is {
					value, err := strconv.Unquote(literal.Value)
					check(t, err)
					values = append(values, value)
				}
			}
			return true
		})
	}
	if len(values) < 2 {
		t.Fatalf("%s has the values %q in %s", name, values, folder)
	}
	return values
}

// valuesOf lists every value of a type.
func valuesOf[T ~string](t *testing.T, folder string) (list []any) {
	for _, v := range constants(t, folder, reflect.TypeFor[T]().Name()) {
		list = append(list, T(v))
	}
	return list
}

// TestEveryValueHasAName: pages have words, and a class of their own, for every value in records and for every state and
// mark of trials.
func TestEveryValueHasAName(t *testing.T) {
	values := slices.Concat(valuesOf[verify.Status](t, "../../verify/assurance"), valuesOf[trust.Clock](t, "../../verify/trust"),
		valuesOf[evidence.ActionType](t, "../../evidence"), valuesOf[evidence.Role](t, "../../evidence"), valuesOf[evidence.ApprovalStatus](t, "../../evidence"),
		valuesOf[jury.Position](t, "../../jury"), valuesOf[jury.Method](t, "../../jury"), valuesOf[jury.Severity](t, "../../jury"),
		valuesOf[jury.ConsensusStatus](t, "../../jury"), valuesOf[jury.AbsenceReason](t, "../../jury"),
		valuesOf[subject.Role](t, "../subject"), valuesOf[api.State](t, "../../api"), valuesOf[Mark](t, "."))
	for _, lang := range words.Langs() {
		says := words.PagesIn(lang)
		for _, v := range values {
			if known(lang, v) == "" || class(v) == "unknown" {
				t.Errorf("%s: %T %q has no name", lang, v, v)
			}
		}
		for _, s := range valuesOf[api.State](t, "../../api") {
			if more := state(says, s.(api.State)).More; (more == "") != (s == api.Over) {
				t.Errorf("%s: of %s there is %q more", lang, s, more)
			}
		}
		for _, m := range valuesOf[Mark](t, ".") {
			if mark(says, m.(Mark)).Why == "" {
				t.Errorf("%s: nothing says why %s", lang, m)
			}
		}
		for _, a := range jury.DefaultRubric() {
			if axis(says, a.ID) == "" {
				t.Errorf("%s: the axis %s has no name", lang, a.ID)
			}
		}
		for _, id := range examples.Names() {
			if example(says, id) == "" {
				t.Errorf("%s: the example %s has no description", lang, id)
			}
		}
	}
	if got := name(words.English, jury.Position("<b>\u202e")); got != "<b>\uFFFD" || class(jury.Position("x y")) != "unknown" {
		t.Errorf("a position that this program does not know is shown as %q", got)
	}
	equal(t, name(words.Russian, subject.Operator), "Оператор")
	equal(t, name(words.Russian, subject.Recorder), "Регистратор")
}

func TestPlacesThatTextsDoNotHaveAreRefused(t *testing.T) {
	says := words.PagesIn(words.English)
	for _, pairs := range [][]any{{"of", 2}, {"n"}} {
		if text, err := fill(says.Message.Number, pairs...); err == nil {
			t.Errorf("%v: no error, and %q", pairs, text)
		}
	}
	text, err := fill(says.Chain.Page, "n", "{of}", "of", 7)
	check(t, err)
	equal(t, text, "Page {of} of 7")
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		chosen, accept string
		want           words.Lang
	}{
		{"", "", "en"}, {"", "ja", "ja"}, {"", "ru-RU,ru;q=0.9,en;q=0.8", "ru"}, {"", "de,fr;q=0.9", "en"},
		{"", "en;q=0.2, ja;q=0.7, ru;q=0.5", "ja"}, {"ru", "ja", "ru"}, {"xx", "ja", "ja"}, {"", "ja;q=0, ru;q=0.1", "ru"},
		{"", "ja;q=7", "en"}, {"", strings.Repeat("xx,", 5000) + "ja", "en"},
	} {
		if got := Choose(c.chosen, c.accept); got != c.want {
			t.Errorf("%q, %.30q: %s, want %s", c.chosen, c.accept, got, c.want)
		}
	}
}
