package rules

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// Go's \b knows ASCII letters only, so the patterns bound Russian words by \p{L}.
var (
	yesWords = regexp.MustCompile(`(?i)^\W*((ok|okay|great|perfect|alright|sure|good|fine|right|thanks|thank you)\W+)*(yes|yeah|yep|yup|sure|ok|okay|of course|absolutely|correct|confirmed|go (ahead|for it)|please do|do (it|that)|(that|it|this)('s| is| sounds | looks | works)? ?(right|correct|fine|good|perfect|great)?|sounds (good|great)|looks (good|great)|perfect|fine|alright|approved?|agreed|definitely|exactly)\b` +
		`|\b(go ahead|please proceed|i (do )?confirm|i agree|i approve|i'll take|proceed with|you (can|may) proceed)\b` +
		`|はい|お願い|承知|進めてください|大丈夫です|了解` +
		`|(^|[^\p{L}])(да|хорошо|соглас(ен|на)|подтверждаю|давайте|конечно)([^\p{L}]|$)`)
	noWords = regexp.MustCompile(`(?i)^\W*(no|nope|no,? thanks?( you)?|no thank you)\W*$|^\W*(no[,.! ]+)?(please )?(stop|wait|hold on|never ?mind|not yet|leave it|forget it|don't|do not)\b|^(いいえ|やめて|待って)|^\s*(нет([^\p{L}]|$)|не надо|не нужно|подождите|стоп)`)

	// hedgeWords matches sentences about what may be, will be, or is not: they claim nothing about the present.
	hedgeWords = regexp.MustCompile(`(?i)\b(if|unless|once|when|whether|would|could|should|will|shall|may|might|can|cannot|unable|not|never|until|before|after you|to be|needs? to|must|let me|ensure|verify|check|attempt(ed)?|tried|trying|failed|error|please|going to|about to|ready to|only)\b|n't\b|\?\s*$`)
)

func plain(text string) string { return strings.ReplaceAll(text, "’", "'") }

func saysNo(text string) bool  { return noWords.MatchString(plain(text)) }
func saysYes(text string) bool { return yesWords.MatchString(plain(text)) && !saysNo(text) }
func hedged(text string) bool  { return hedgeWords.MatchString(plain(text)) }

// latin reports whether a text is mostly in Latin letters. Rules about English words do not apply to other texts.
func latin(text string) bool {
	in, out := 0, 0
	for _, c := range text {
		switch {
		case unicode.Is(unicode.Latin, c):
			in++
		case unicode.IsLetter(c):
			out++
		}
	}
	return in >= out
}

var wordPattern = regexp.MustCompile(`[A-Za-z][A-Za-z'-]*`)

func wordsOf(text string) []string { return wordPattern.FindAllString(strings.ToLower(text), -1) }

// stemsOf are the stems of a text's words.
func stemsOf(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range wordsOf(text) {
		set[stem(word)] = true
	}
	return set
}

// irregular holds past forms that stem cannot derive.
var irregular = map[string]string{"sent": "send", "paid": "pay", "bought": "buy", "sold": "sell", "made": "make", "put": "put", "withdrew": "withdraw"}

// stem cuts endings and doubled letters: orders, cancelled, shipping. It is crude, which is enough because both sides
// of a comparison are cut in the same way.
func stem(word string) string {
	word = strings.ToLower(word)
	if base := irregular[word]; base != "" {
		word = base
	}
	for _, ending := range []string{"ations", "ation", "ments", "ment", "ings", "ing", "ies", "ied", "ed", "es", "s", "e", "al"} {
		base, found := strings.CutSuffix(word, ending)
		if !found || len(base) < 3 {
			continue
		}
		if ending == "ies" || ending == "ied" {
			base += "y"
		}
		word = base
		break
	}
	if n := len(word); n > 3 && word[n-1] == word[n-2] {
		word = word[:n-1]
	}
	return word
}

const numerals = `one|two|three|four|five|six|seven|eight|nine|ten|fourteen|twenty-four|thirty|sixty|ninety|\d{1,3}`

var numeralValues = map[string]int{"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
	"fourteen": 14, "twenty-four": 24, "thirty": 30, "sixty": 60, "ninety": 90}

// numeral reads a number that the pattern numerals matched.
func numeral(word string) int {
	if n, ok := numeralValues[strings.ToLower(word)]; ok {
		return n
	}
	n, err := strconv.Atoi(word)
	if err != nil {
		return 0 // digits that matched always fit
	}
	return n
}
