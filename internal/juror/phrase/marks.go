package phrase

import (
	"strings"
	"unicode"

	"jurat/internal/pattern"
)

// Marks lists the words of a text without punctuation, the parts of these words, and the numbers.
func Marks(text string) []string {
	var list []string
	for _, field := range strings.FieldsFunc(text, Separates) {
		whole := Bare(field)
		if whole == "" {
			continue
		}
		list = append(list, whole)
		for _, part := range strings.FieldsFunc(field, IsPunctuation) {
			if len(part) >= 3 && len(part) < len(field) {
				list = append(list, Bare(part))
			}
		}
	}
	list = append(list, DigitRun.FindAllString(text, -1)...)
	return append(list, LongNumbers(text)...)
}

func Separates(c rune) bool {
	return unicode.IsSpace(c) || strings.ContainsRune("\"'`{}[]<>,;:=|\\*“”", c)
}

func IsPunctuation(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }

// Bare returns a value in lower case without its punctuation.
func Bare(s string) string {
	return strings.Map(func(c rune) rune {
		if IsPunctuation(c) {
			return -1
		}
		return unicode.ToLower(c)
	}, s)
}

var (
	DigitRun   = pattern.New(`\d{3,}`)
	longNumber = pattern.New(`\d(?:[ ().,/-]{0,3}\d){6,}`)
)

// LongNumbers lists the longer numbers of a text, also those written in groups. It adds their ends, which identify a
// telephone number with and without its country code.
func LongNumbers(text string) []string {
	var list []string
	for _, number := range longNumber.FindAllString(text, -1) {
		digits := Bare(number)
		list = append(list, digits, "…"+digits[len(digits)-7:])
	}
	return list
}
