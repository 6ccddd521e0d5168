package pages

import (
	"fmt"
	"slices"
	"strings"

	"jurat/internal/incident"
)

// Lang is a language of pages, by its two letters.
type Lang = incident.Lang

// Languages of pages.
const (
	English  = incident.English
	Japanese = incident.Japanese
	Russian  = incident.Russian
)

// Langs lists every language of pages.
func Langs() []Lang { return incident.Langs() }

// A saying is a text in every language.
type saying struct{ en, ja, ru string }

func (s saying) in(lang Lang) string {
	switch lang {
	case Japanese:
		return s.ja
	case Russian:
		return s.ru
	}
	return s.en
}

// say is the text with a key, its {placeholders} filled in from names and values.
func say(lang Lang, key string, pairs ...any) (string, error) {
	s, known := sayings[key]
	if !known {
		return "", fmt.Errorf("there is no text %q", key)
	}
	text := s.in(lang)
	var fill []string
	for pair := range slices.Chunk(pairs, 2) {
		name := fmt.Sprintf("{%v}", pair[0])
		if len(pair) != 2 || !strings.Contains(text, name) {
			return "", fmt.Errorf("the text %q has no place for %s", key, name)
		}
		fill = append(fill, name, fmt.Sprint(pair[1]))
	}
	return strings.NewReplacer(fill...).Replace(text), nil
}

// must is say for keys that are written in this package, or checked before; one that does not exist is shown as it is.
func must(lang Lang, key string) string {
	text, err := say(lang, key)
	if err != nil {
		return key
	}
	return text
}

// Choose finds the language of a page: the chosen one, or else the first of an Accept-Language header that there is.
func Choose(chosen, accept string) Lang {
	if slices.Contains(Langs(), Lang(chosen)) {
		return Lang(chosen)
	}
	best, weight := English, 0.0
	for part := range strings.SplitSeq(accept[:min(len(accept), 1000)], ",") {
		tag, parameters, _ := strings.Cut(part, ";")
		primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		if q := quality(parameters); q > weight && slices.Contains(Langs(), Lang(primary)) {
			best, weight = Lang(primary), q
		}
	}
	return best
}

// quality reads the weight of a language (RFC 9110, section 12.4.2); without one it is 1.
func quality(parameters string) float64 {
	value, is := strings.CutPrefix(strings.TrimSpace(parameters), "q=")
	if !is {
		return 1
	}
	var q float64
	if _, err := fmt.Sscanf(value, "%g", &q); err != nil || q < 0 || q > 1 {
		return 0
	}
	return q
}
