package incident

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/jury"
	"jurat/verify"
)

var placeholder = regexp.MustCompile(`\{[^}]*\}`)

// entries lists every text of a table by its path, with the placeholders it has, each once.
func entries(l *language) map[string][]string {
	found := map[string][]string{}
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				walk(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		case reflect.Map:
			for _, key := range v.MapKeys() {
				walk(fmt.Sprintf("%s[%s]", path, key), v.MapIndex(key))
			}
		default:
			if strings.TrimSpace(v.String()) == "" && path != ".between" {
				return // is missing
			}
			names := placeholder.FindAllString(v.String(), -1)
			slices.Sort(names)
			found[path] = slices.Compact(names)
		}
	}
	walk("", reflect.ValueOf(*l))
	return found
}

func TestLanguagesHaveTheSameSentences(t *testing.T) {
	want := entries(&english)
	if len(want) < 60 {
		t.Fatalf("%d entries", len(want))
	}
	for _, lang := range Langs() {
		if diff := cmp.Diff(want, entries(languageOf(lang))); diff != "" {
			t.Errorf("%s (-English +%s):\n%s", lang, lang, diff)
		}
	}
	if english.recorded == japanese.recorded || japanese.recorded == russian.recorded {
		t.Error("two languages are one")
	}
}

// The English table is what the others are held against, so it must itself have everything that can be met.
func TestEnglishIsWhole(t *testing.T) {
	empty := reflect.ValueOf(english)
	for i := range empty.NumField() {
		if empty.Field(i).IsZero() {
			t.Errorf("%s is missing", empty.Type().Field(i).Name)
		}
	}
	for _, r := range evidence.Roles() {
		if english.roles[r] == "" {
			t.Errorf("role %s is missing", r)
		}
	}
	for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.NonRepudiation, verify.Configuration, verify.Time,
		verify.Before, verify.Order, verify.Chain, verify.HumanReview, verify.GivenOn, verify.Completeness, verify.Simultaneity, verify.Verdict,
		verify.Enclosures, verify.Envelope} {
		if w := WordsIn(English); w.Question(g) == "" || w.Guarantee(g) == string(g) {
			t.Errorf("guarantee %s is missing", g)
		}
	}
	for _, k := range []verify.Kind{verify.OneRecord, verify.ManyRecords, verify.Trial, verify.SeveralFiles, verify.OneCheckpoint, verify.Package} {
		if WordsIn(English).Kind(k) == string(k) {
			t.Errorf("kind %s is missing", k)
		}
	}
	for _, p := range []jury.Position{jury.SafePass, jury.NeedsReview, jury.UnsafeFail} {
		for _, lang := range Langs() {
			if !strings.HasPrefix(languageOf(lang).position(p), string(p)) {
				t.Errorf("%s: position %s is not named as it was sealed", lang, p)
			}
		}
	}
	for _, item := range verify.Bundle(&evidence.Bundle{}, verify.Options{}).NotShown { // which proves the least
		if english.notShown[item] == "" {
			t.Errorf("the disclaimer %q is missing", item)
		}
	}
	doubts := []verify.Status{verify.NotProved, verify.Refuted}
	for name, sentences := range map[string]byStatus{
		"because content": english.because[verify.Content], "because authentication": english.because[verify.Authentication],
		"because time": english.because[verify.Time], "acts content": english.actsDoubted[verify.Content],
		"acts authentication": english.actsDoubted[verify.Authentication], "judgment": english.judgedStated,
		"completeness": english.procedure[verify.Completeness], "simultaneity": english.procedure[verify.Simultaneity],
	} {
		for _, status := range doubts {
			if sentences[status] == "" {
				t.Errorf("%s, %s: no sentence", name, status)
			}
		}
	}
}

func TestSentenceInsertsOnce(t *testing.T) {
	got := sentence("{a} and {b}").with("a", "{b}", "b", "{a}")
	if got != "{b} and {a}" {
		t.Errorf("%q", got)
	}
}

func TestUnknownLanguageIsEnglish(t *testing.T) {
	if languageOf("xx") != &english || languageOf("") != &english {
		t.Error("is not English")
	}
}
