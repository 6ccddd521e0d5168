package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"jurat/evidence"
	"jurat/examples"
	"jurat/internal/subject"
	"jurat/jury"
	"jurat/verify"
)

var placeholder = regexp.MustCompile(`\{[a-z]+\}`)

func placeholders(text string) []string {
	found := placeholder.FindAllString(text, -1)
	slices.Sort(found)
	return found
}

// same are texts that are the same in every language.
var same = []string{"record.json"}

func TestEveryTextIsInEveryLanguage(t *testing.T) {
	for key, s := range sayings {
		for _, fault := range faults(s) {
			if !slices.Contains(same, key) {
				t.Errorf("%s: %s", key, fault)
			}
		}
	}
	if must(Japanese, "changed") != "立場変更" {
		t.Errorf("a change of position is called %q in Japanese", must(Japanese, "changed"))
	}
}

// faults says what is wrong with a text.
func faults(s saying) (list []string) {
	for _, lang := range Langs() {
		text := s.in(lang)
		switch {
		case strings.TrimSpace(text) == "":
			list = append(list, "there is none in "+string(lang))
		case !slices.Equal(placeholders(text), placeholders(s.en)):
			list = append(list, fmt.Sprintf("in %s it has the places %v, and in English %v", lang, placeholders(text), placeholders(s.en)))
		case hasLetters(s.en) && !written(lang, text):
			list = append(list, fmt.Sprintf("%q is not written in %s", text, lang))
		}
	}
	return list
}

func hasLetters(text string) bool {
	return strings.ContainsFunc(placeholder.ReplaceAllString(text, ""), unicode.IsLetter)
}

// written reports whether a text has letters of a language's script.
func written(lang Lang, text string) bool {
	script := map[Lang][]*unicode.RangeTable{English: {unicode.Latin}, Japanese: {unicode.Han, unicode.Hiragana, unicode.Katakana}, Russian: {unicode.Cyrillic}}[lang]
	return strings.ContainsFunc(placeholder.ReplaceAllString(text, ""), func(r rune) bool { return unicode.In(r, script...) })
}

func TestFaultsOfTextsAreFound(t *testing.T) {
	for name, s := range map[string]saying{
		"missing":         {"Page {n}", "", "Страница {n}"},
		"not translated":  {"Page {n}", "{n} ページ", "Page {n}"},
		"other place":     {"Page {n}", "{n} ページ", "Страница {of}"},
		"place forgotten": {"Page {n}", "ページ", "Страница {n}"},
	} {
		if len(faults(s)) != 1 {
			t.Errorf("%s: faults %q", name, faults(s))
		}
	}
}

// kinds lists every value for which templates ask by its kind.
func kinds() map[string][]string {
	k := map[string][]string{
		"mark":     {"degraded", "inconclusive", "offline", "partly_offline", "broken"},
		"state":    texts(Queued, Sitting, Interrupted, Cancelled, Over),
		"position": texts(jury.SafePass, jury.NeedsReview, jury.UnsafeFail), "method": texts(jury.MajorityVote, jury.WeightedAverage, jury.FinalJudge, jury.Calibrated),
		"severity": texts(jury.Minor, jury.Major, jury.Critical), "consensus": texts(jury.Unanimous, jury.Majority, jury.Split),
		"absent":   texts(jury.TimedOut, jury.Blocked, jury.Invalid, jury.Failed, jury.Ceiling),
		"approval": texts(evidence.Approved, evidence.ApprovedWithModifications, evidence.Rejected),
		"role":     texts(subject.System, subject.User, subject.Assistant, subject.Tool, subject.Reviewer, subject.Operator),
		"clock":    texts(verify.Independent, verify.OperatorClock), "status": texts(verify.Proved, verify.NotProved, verify.Refuted),
		"guarantee": texts(verify.Content, verify.Authentication, verify.NonRepudiation, verify.Configuration, verify.Time, verify.Order, verify.Before,
			verify.Chain, verify.HumanReview, verify.GivenOn, verify.Completeness, verify.Simultaneity, verify.Verdict, verify.Enclosures, verify.Envelope),
	}
	k["example"] = examples.Names()
	for _, a := range jury.DefaultRubric() {
		k["axis"] = append(k["axis"], a.ID)
	}
	return k
}

func texts[T ~string](values ...T) (list []string) {
	for _, v := range values {
		list = append(list, string(v))
	}
	return list
}

// asked are the keys that templates and code ask for.
func asked(t *testing.T) map[string]bool {
	keys := map[string]bool{}
	for kind, values := range kinds() {
		for _, v := range values {
			keys[kind+"."+v] = true
			switch kind {
			case "mark":
				keys[kind+"."+v+".why"] = true
			case "guarantee":
				keys[kind+"."+v+".asks"] = true
			case "state":
				if v != string(Over) {
					keys[kind+"."+v+".more"] = true
				}
			}
		}
	}
	literal := regexp.MustCompile(`(?:\bt |must\(lang, |add\(|return )"([a-z_]+(?:\.[a-z_]+)*)"`)
	for _, pattern := range []string{"templates/*.html", "*.go"} {
		files, err := filepath.Glob(pattern)
		check(t, err)
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			content, err := os.ReadFile(f)
			check(t, err)
			for _, m := range literal.FindAllStringSubmatch(string(content), -1) {
				if _, is := sayings[m[1]]; is || strings.HasSuffix(f, ".html") {
					keys[m[1]] = true
				}
			}
		}
	}
	return keys
}

func TestEveryTextIsAskedForAndThere(t *testing.T) {
	asked := asked(t)
	for key := range asked {
		if _, is := sayings[key]; !is {
			t.Errorf("there is no text %q", key)
		}
	}
	for key := range sayings {
		if !asked[key] {
			t.Errorf("nobody asks for the text %q", key)
		}
	}
}

func TestPlacesThatTextsDoNotHaveAreRefused(t *testing.T) {
	for _, pairs := range [][]any{{"of", 2}, {"n"}} {
		if text, err := say(English, "message.number", pairs...); err == nil {
			t.Errorf("%v: no error, and %q", pairs, text)
		}
	}
	text, err := say(English, "chain.page", "n", "{of}", "of", 7)
	check(t, err)
	equal(t, text, "Page {of} of 7")
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		chosen, accept string
		want           Lang
	}{
		{"", "", English}, {"", "ja", Japanese}, {"", "ru-RU,ru;q=0.9,en;q=0.8", Russian}, {"", "de,fr;q=0.9", English},
		{"", "en;q=0.2, ja;q=0.7, ru;q=0.5", Japanese}, {"ru", "ja", Russian}, {"xx", "ja", Japanese}, {"", "ja;q=0, ru;q=0.1", Russian},
		{"", "ja;q=7", English}, {"", strings.Repeat("xx,", 5000) + "ja", English},
	} {
		if got := Choose(c.chosen, c.accept); got != c.want {
			t.Errorf("%q, %.30q: %s, want %s", c.chosen, c.accept, got, c.want)
		}
	}
}
