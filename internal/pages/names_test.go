package pages

import (
	"fmt"
	"html/template"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	syntax "text/template/parse"

	"jurat/api"
	"jurat/evidence"
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
	key    string
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

// ofCommand returns the text that a command asks for.
func ofCommand(c *syntax.CommandNode) []use {
	function, is := c.Args[0].(*syntax.IdentifierNode)
	if !is || function.Ident != "t" || len(c.Args) < 2 {
		return nil
	}
	key, is := c.Args[1].(*syntax.StringNode)
	if !is {
		return nil
	}
	u := use{key: key.Text}
	for name := range slices.Chunk(c.Args[2:], 2) {
		u.values = append(u.values, strings.Trim(name[0].String(), `"`))
	}
	slices.Sort(u.values)
	return []use{u}
}

// misused returns what is wrong with how a template uses a text, or "".
func misused(u use) string {
	text, is := words.OfPages(words.English)[u.key]
	if !is {
		return "there is no such text"
	}
	if has := places(text); !slices.Equal(has, u.values) {
		return fmt.Sprintf("%q has the places %v and is given %v", text, has, u.values)
	}
	return ""
}

func TestTemplatesUseTextsThatAreThere(t *testing.T) {
	set, err := template.New("").Funcs(functions(words.English)).ParseFS(templateFiles, "templates/*.html")
	check(t, err)
	var list []use
	for _, one := range set.Templates() {
		if one.Tree != nil {
			list = append(list, textsOf(reflect.ValueOf(one.Tree.Root))...)
		}
	}
	if len(list) < 400 {
		t.Fatalf("found %d texts in templates", len(list))
	}
	for _, u := range list {
		if wrong := misused(u); wrong != "" {
			t.Errorf("%s: %s", u.key, wrong)
		}
	}
	for _, u := range []use{{key: "court.jokes"}, {key: "court"}, {key: "chain.page", values: []string{"n"}}, {key: "court.kicker", values: []string{"n"}}} {
		if misused(u) == "" {
			t.Errorf("nothing is wrong with %v", u)
		}
	}
}

// TestEveryKindOfValueHasNames: pages have words, and a class of its own, for a value of each type. Package words demands them for each value.
func TestEveryKindOfValueHasNames(t *testing.T) {
	values := map[any]string{verify.HumanReview: "guarantee.human_review", verify.NotProved: "status.not proved", trust.OperatorClock: "clock.operator", evidence.ToolPlan: "action.tool_plan",
		evidence.RoleOperator: "role.operator", evidence.ApprovedWithModifications: "approval.approved_with_modifications", jury.NeedsReview: "position.needs_review",
		jury.FinalJudge: "method.final_judge", jury.Critical: "severity.critical", jury.Split: "consensus.split", jury.TimedOut: "absence.timed_out", subject.Operator: "speaker.operator",
		api.BrokenOff: "state.broken_off", PartlyOffline: "mark.partly_offline"}
	if len(values) != len(kinds) {
		t.Errorf("%d types have names, and %d are tried", len(kinds), len(values))
	}
	for value, key := range values {
		for _, lang := range words.Langs() {
			if want := words.OfPages(lang)[key]; want == "" || name(lang, value) != want {
				t.Errorf("%s: %s is called %q, want %q", lang, key, name(lang, value), want)
			}
		}
		if class(value) == "unknown" || strings.Contains(class(value), " ") {
			t.Errorf("%s has the class %q", key, class(value))
		}
	}
	if got := name(words.English, jury.Position("<b>\u202e")); got != "<b>\uFFFD" || class(jury.Position("x y")) != "unknown" {
		t.Errorf("a position that this program does not know is shown as %q", got)
	}
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
