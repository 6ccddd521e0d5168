package recordings

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jurat/internal/words"
)

var place = regexp.MustCompile(`\{[a-z]+\}`)

// TestEveryTextInEveryLanguage: each text is there, has the same places as in English, and is used by a page.
func TestEveryTextInEveryLanguage(t *testing.T) {
	var templates strings.Builder
	for _, pattern := range []string{"../../pages/templates/*.html", "../../pages/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			doc, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			templates.Write(doc)
		}
	}
	for _, lang := range words.Langs() {
		if lang != words.English && In(lang) == &english {
			t.Errorf("%s has no texts", lang)
			continue
		}
		in, first := reflect.ValueOf(*In(lang)), reflect.ValueOf(english)
		for i := range in.NumField() {
			name, text := in.Type().Field(i).Name, in.Field(i).String()
			want := place.FindAllString(first.Field(i).String(), -1)
			if got := place.FindAllString(text, -1); text == "" || !slices.Equal(got, want) {
				t.Errorf("%s in %s: %q, want the places %v", name, lang, text, want)
			}
			if !regexp.MustCompile(`\b(rec|says)\.` + name + `\b`).MatchString(templates.String()) {
				t.Errorf("no page uses %s", name)
			}
		}
	}
}
