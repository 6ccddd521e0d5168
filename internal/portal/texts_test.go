package portal

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var placeholder = regexp.MustCompile(`\{[^}]*\}`)

// said lists every text of a language by its JSON name, with its placeholders.
func said(l *texts) map[string][]string {
	found := map[string][]string{}
	add := func(name, text string) {
		if strings.TrimSpace(text) != "" {
			names := placeholder.FindAllString(text, -1)
			slices.Sort(names)
			found[name] = names
		}
	}
	v := reflect.ValueOf(*l)
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("json")
		if v.Field(i).Kind() == reflect.String {
			add(name, v.Field(i).String())
			continue
		}
		for _, key := range v.Field(i).MapKeys() {
			add(name+"/"+key.String(), v.Field(i).MapIndex(key).String())
		}
	}
	return found
}

func TestLanguagesAreComplete(t *testing.T) {
	want := said(&english)
	if n := reflect.TypeFor[texts]().NumField(); len(want) < n {
		t.Errorf("of %d texts, English has %d", n, len(want))
	}
	for _, l := range languages {
		if diff := cmp.Diff(want, said(l)); diff != "" {
			t.Errorf("%s (-English +%s):\n%s", l.Lang, l.Lang, diff)
		}
	}
}

// A name that the page asks for and nobody has would show as nothing at all; one that nobody asks for is left over.
func TestPageSaysWhatThereIs(t *testing.T) {
	asked := map[string]bool{"lang": true, "language": true, "title": true, "members": true} // read by their own names
	for _, pattern := range []string{`data-text="(\w+)"`, `\bsay\("(\w+)"`, `\bstate\("(\w+)"`, `\bbutton\("(\w+)"`, `\blater\("(\w+)"`} {
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(pageHTML+pageJS, -1)
		if len(found) == 0 {
			t.Errorf("nothing is asked for by %s", pattern)
		}
		for _, m := range found {
			asked[m[1]] = true
		}
	}
	// By names that stand in a table or in a variable.
	for _, name := range []string{"refuted", "without_trust", "all_proved", "not_proved", "actor", "model", "claimed", "proved_time", "digest", "apart", "withheld"} {
		if !strings.Contains(pageJS, `"`+name+`"`) {
			t.Errorf("%s is not in page.js", name)
		}
		asked[name] = true
	}
	there := map[string]bool{}
	for name := range said(&english) {
		name, _, _ = strings.Cut(name, "/")
		there[name] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(there)), slices.Sorted(maps.Keys(asked))); diff != "" {
		t.Errorf("texts (-there +asked for):\n%s", diff)
	}
}
