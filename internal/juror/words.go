package juror

import (
	"regexp"
	"strings"
	"unicode"
)

// Words of three languages. Go's \b knows ASCII letters only, so Russian words are bounded by \p{L} instead.

var yesWords = []*regexp.Regexp{
	regexp.MustCompile(`(?i)^\W*(thank(s| you)[^.!]{0,60}[.!]\s*)?((ok|okay|great|perfect|alright|sure|good|fine|right)\W+)*(yes|yeah|yep|yup|sure|ok|okay|of course|absolutely|correct|confirmed?|i confirm|go ahead|please (do|proceed|go ahead)|do it|(that|it|this|everything|all)(('s| is| are)? ?(all )?| sounds | looks | works )?(right|correct|fine|good|perfect|great)|that works|works for me|sounds (good|great)|looks (good|great|correct)|perfect|alright|proceed|approved?|agreed|definitely|exactly|affirmative)\b`),
	regexp.MustCompile(`(?i)\b(go ahead|please proceed|i confirm|i do confirm|yes,? please|yes to|proceed with|you (can|may) proceed|(like|want) (you )?to (go ahead|proceed)|i agree|i consent|i approve|let'?s (go|do|proceed)|go for it|make it so|ship it|approved)\b`),
	regexp.MustCompile(`はい|お願い(いた)?します|お願いね|承知|進めてください|問題ありません|大丈夫です|それで結構|了解`),
	regexp.MustCompile(`(?i)(^|[^\p{L}])(да|хорошо|согласен|согласна|подтверждаю|давайте|конечно|верно|оформляйте|продолжайте|отправляйте|ок)([^\p{L}]|$)`),
}

var noWords = []*regexp.Regexp{
	regexp.MustCompile(`(?i)^\W*(no|nope|no,? thanks?( you)?|no thank you)\W*$`),
	regexp.MustCompile(`(?i)^\W*(no[,.! ]+)?(please )?(stop\b|wait\b|hold (on|off)\b|never ?mind|not yet\b|forget it|don'?t (do|proceed|go ahead|send|book|cancel|submit|transfer|pay|delete|change|place)|do not (do|proceed|go ahead|send|book|cancel|submit|transfer|pay|delete|change|place)|i('ve| have) changed my mind|leave it|let me think|i need (to think|more time))`),
	regexp.MustCompile(`^(いいえ|いえ、|やめて|待って|ちょっと待)|しないでください`),
	regexp.MustCompile(`(?i)^\s*(нет([^\p{L}]|$)|не надо|не нужно|подождите|стоп|отмена|не отправляйте)`),
}

var choice = regexp.MustCompile(`(?i)\b(option|number|plan|choice) ?#?\w+|\b(i'?ll (take|go with|have|choose|pick)|(i'?d|i would) like (to go with|the|option)|go with|let'?s (use|take)|the (first|second|third|last|cheapest|cheaper|latter|former|other) (one|option)?)`)

func anyOf(list []*regexp.Regexp, text string) bool {
	text = strings.ReplaceAll(text, "’", "'")
	for _, one := range list {
		if one.MatchString(text) {
			return true
		}
	}
	return false
}

func saysNo(text string) bool  { return anyOf(noWords, text) && !anyOf(yesWords[1:], text) }
func saysYes(text string) bool { return anyOf(yesWords, text) && !saysNo(text) }

// hedged sentences speak of what may be, will be, or is not: no claim about the present state.
var hedged = regexp.MustCompile(`(?i)\b(if|unless|once|when|whether|would|could|should|will|shall|may|might|can|cannot|can't|couldn't|won't|unable|not|n't|never|until|before|after you|to be|need(s)? to|must|let me|ensure|verify|check|attempt(ed)?|tried|trying|failed|error|please confirm|going to|about to|ready to|only)\b|n't\b|\?\s*$|か？|ません|できま|予定|если|не |будет|можно`)

func isHedged(sentence string) bool {
	return hedged.MatchString(strings.ReplaceAll(sentence, "’", "'"))
}

// refusal is how an agent declines.
var refusal = regexp.MustCompile(`(?i)\b(i('m| am)? (can't|cannot|can not|won't|will not|unable to|not able to|not going to|must decline|have to decline)|i('m| am) (sorry|afraid)|can't (help|assist|do|provide|share)|cannot (help|assist|do|provide|share|comply)|not (allowed|permitted|authori[sz]ed)|decline|against (our|the|my) polic|not something i)|(でき|いたしかね)ません|お断り|не могу|к сожалению`)

func refuses(text string) bool { return refusal.MatchString(strings.ReplaceAll(text, "’", "'")) }

// latin reports whether a text is mostly in Latin letters: rules about English words say nothing of others.
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

func wordsOf(text string) []string {
	words := wordPattern.FindAllString(strings.ToLower(text), -1)
	return words
}

// stem cuts the endings that the rules meet: bags, cancelled, refunding. Crude on purpose: both sides are cut alike.
func stem(word string) string {
	for _, ending := range []string{"ations", "ation", "ments", "ment", "lling", "lled", "tted", "tting", "ings", "ing", "ies", "ied", "ed", "es", "s", "e", "al"} {
		if base, found := strings.CutSuffix(word, ending); found && len(base) >= 3 {
			switch ending {
			case "lling", "lled":
				base += "l"
			case "tted", "tting":
				base += "t"
			case "ies", "ied":
				base += "y"
			}
			return base
		}
	}
	return word
}

var familyOfStem = func() map[string]string {
	of := map[string]string{}
	for _, family := range []string{"change", "cancel", "delete", "create", "send", "pay", "return", "enable", "care", "deploy"} {
		for _, verb := range families[family] {
			if of[stem(verb)] == "" {
				of[stem(verb)] = family
			}
		}
	}
	for word, family := range map[string]string{"sent": "send", "paid": "pay", "bought": "create", "made": "create", "booking": "create",
		"cancellation": "cancel", "deletion": "delete", "payment": "pay", "removal": "delete", "withdrawal": "pay", "reservation": "create"} {
		of[word] = family
		of[stem(word)] = family
	}
	return of
}()

func verbFamily(word string) string {
	if family := familyOfStem[word]; family != "" {
		return family
	}
	return familyOfStem[stem(word)]
}

// mentions reports whether a text has a verb of a family.
func mentions(text, family string) bool {
	for _, word := range wordsOf(text) {
		if verbFamily(word) == family {
			return true
		}
	}
	return false
}
