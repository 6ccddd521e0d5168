package phrase

import (
	"strings"
	"time"

	"jurat/internal/pattern"
)

var sentenceEnd = pattern.New(`[.!?]+["')*]*(\s+|$)|[。！？]|\n+`)

// Sentences cuts a text into sentences that are substrings of it, to the letter.
func Sentences(text string) []string {
	var list []string
	start := 0
	add := func(end int) {
		if s := strings.TrimSpace(text[start:end]); s != "" {
			list = append(list, s)
		}
	}
	for _, at := range sentenceEnd.FindAllStringIndex(text, -1) {
		if onlyNumber.MatchString(text[start:at[0]]) {
			continue // "1. Cancel" is one sentence
		}
		add(at[1])
		start = at[1]
	}
	add(len(text))
	return list
}

var onlyNumber = pattern.New(`^\s*[#*\-]*\s*\d{1,3}$`)

var (
	isoDate  = pattern.New(`\b(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?::\d{2})?)?`)
	longDate = pattern.New(`\b(January|February|March|April|May|June|July|August|September|October|November|December) (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})`)
)

// Date reads the first date of a text: 2024-05-15, 2024-05-15T15:00:00, or May 15, 2024. It ignores time zones, so
// comparisons must allow for a day.
func Date(text string) (time.Time, bool) {
	if m := isoDate.FindStringSubmatch(text); m != nil {
		if m[2] != "" {
			at, err := time.Parse("2006-01-02 15:04", m[1]+" "+m[2])
			return at, err == nil
		}
		at, err := time.Parse(time.DateOnly, m[1])
		return at, err == nil
	}
	if m := longDate.FindStringSubmatch(text); m != nil {
		at, err := time.Parse("January 2 2006", m[1]+" "+m[2]+" "+m[3])
		return at, err == nil
	}
	return time.Time{}, false
}

// LastSentence returns the last sentence of a text; "" if it has none.
func LastSentence(text string) string {
	list := Sentences(text)
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

// SentenceWith returns the first sentence of a text that a pattern matches; "" if there is none.
func SentenceWith(text string, p *pattern.Pattern) string {
	for _, s := range Sentences(text) {
		if p.MatchString(strings.ReplaceAll(Plain(s), "find out", "learn")) {
			return s
		}
	}
	return ""
}
