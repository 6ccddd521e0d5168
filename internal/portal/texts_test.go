package portal

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"jurat/internal/must"
	"jurat/internal/words"
)

// written returns the texts of every language in the page, by their JSON names.
func written(t *testing.T) map[string]map[string]any {
	t.Helper()
	found := regexp.MustCompile(`<script type="application/json" id="texts">(.*?)</script>`).FindSubmatch(File())
	if found == nil {
		t.Fatal("the page has no texts")
	}
	var list []map[string]any
	must.Do(t, json.Unmarshal(found[1], &list))
	all := map[string]map[string]any{}
	for _, l := range list {
		all[l["lang"].(string)] = l
	}
	return all
}

// TestPageHasItsTexts: the page has every text of package words, member by member, in every language.
func TestPageHasItsTexts(t *testing.T) {
	all := written(t)
	must.Equal(t, len(all), len(words.Langs()))
	for _, lang := range words.Langs() {
		got := all[string(lang)]
		if got["language"] != lang.Name() {
			t.Errorf("%s calls itself %v", lang, got["language"])
		}
		texts := words.OfPages(lang)
		for key, want := range texts {
			if name, is := strings.CutPrefix(key, "portal."); is && !strings.Contains(name, ".") && got[name] != want {
				t.Errorf("%s: %s is %v, want %q", lang, name, got[name], want)
			}
		}
		if !strings.Contains(string(File()), "\t<p lang=\""+string(lang)+"\">"+texts["noscript.portal"]+"</p>\n") {
			t.Errorf("%s: the page has no text for a browser without scripts", lang)
		}
	}
	if members := all["ja"]["members"].(map[string]any); members["modified_response"] != "修正後の出力" || len(members) != 8 {
		t.Errorf("members: %v", members)
	}
}

// A text that the script asks for and the page does not have would show as empty. A text that it never asks for is
// superfluous.
func TestPageSaysWhatThereIs(t *testing.T) {
	asked := map[string]bool{"lang": true, "language": true, "title": true, "members": true} // read by other means
	for _, pattern := range []string{`data-text="(\w+)"`, `\bsay\("(\w+)"`, `\bsaying\("(\w+)"`, `\bstate\("(\w+)"`, `\bbutton\("(\w+)"`, `\blater\("(\w+)"`} {
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(pageHTML+pageJS, -1)
		if len(found) == 0 {
			t.Errorf("nothing is asked for by %s", pattern)
		}
		for _, m := range found {
			asked[m[1]] = true
		}
	}
	// These names are in a table or in a variable of the script.
	for _, name := range []string{"refuted", "without_trust", "all_proved", "not_proved", "actor", "model", "claimed", "proved_time", "digest", "apart", "withheld"} {
		if !strings.Contains(pageJS, `"`+name+`"`) {
			t.Errorf("%s is not in page.js", name)
		}
		asked[name] = true
	}
	there := map[string]bool{}
	for name := range written(t)["en"] {
		there[name] = true
	}
	must.Equal(t, cmp.Diff(slices.Sorted(maps.Keys(there)), slices.Sorted(maps.Keys(asked))), "")
}
