package phrase

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"jurat/internal/pattern"
)

// Go's \b knows ASCII letters only, so the patterns bound Russian words by \p{L}.
var (
	YesWords = pattern.New(`(?i)^\W*((ok|okay|great|perfect|alright|sure|good|fine|right|thanks|thank you)\W+)*(yes|yeah|yep|yup|ye|ya|ja|si|sí|oui|go|sure|ok|okay|of course|absolutely|correct|confirmed|go (ahead|for it)|please do|do (it|that)|(that|it|this)('s| is| sounds | looks | works)? ?(right|correct|fine|good|perfect|great)?|sounds (good|great)|looks (good|great)|perfect|fine|alright|approved?|agreed|definitely|exactly)\b` +
		`|\b(go ahead|please proceed|i (do )?confirm|i agree|i approve|i'll take|proceed with|you (can|may) proceed)\b` +
		`|はい|お願い|承知|進めてください|大丈夫です|了解` +
		`|(^|[^\p{L}])(да|хорошо|соглас(ен|на)|подтверждаю|давайте|конечно)([^\p{L}]|$)`)
	noWords = pattern.New(`(?i)^\W*(no|nope|no,? thanks?( you)?|no thank you)\W*$|^\W*(no[,.! ]+)?(please )?(stop|wait|hold on|never ?mind|not yet|leave it|forget it|don't|do not)\b|^(いいえ|やめて|待って)|^\s*(нет([^\p{L}]|$)|не надо|не нужно|подождите|стоп)`)

	// hedgeWords matches sentences about what may be, will be, or is not: they claim nothing about the present.
	hedgeWords = pattern.New(`(?i)\b(if|unless|once|when|whether|would|could|should|will|shall|may|might|can|cannot|unable|not|never|until|before|after you|to be|needs? to|must|let me|ensure|verify|check|attempt(ed)?|tried|trying|failed|error|please|going to|about to|ready to|only)\b|n't\b|\?\s*$`)
)

func Plain(text string) string { return strings.ReplaceAll(text, "’", "'") }

var (
	looseNo   = pattern.New(`(?i)^\W*(?:no|nope|nah)\b|^\W*not (?:today|now|yet|really)\b|^\W*i (?:do not|don't|would not|wouldn't)\W*$`)
	noProblem = pattern.New(`(?i)^\W*no (?:problem|worries|issue|rush|idea|doubt|other|more|longer)\b`)
)

// Refuses reports whether a text is a no to the question before it, also one with reasons.
func Refuses(text string) bool {
	return SaysNo(text) || looseNo.MatchString(text) && !noProblem.MatchString(text) && !YesWords.MatchString(Plain(text))
}

func SaysNo(text string) bool  { return noWords.MatchString(Plain(text)) }
func SaysYes(text string) bool { return YesWords.MatchString(Plain(text)) && !SaysNo(text) }
func Hedged(text string) bool  { return hedgeWords.MatchString(Plain(text)) }

// Latin reports whether a text is mostly in Latin letters. Rules about English words do not apply to other texts.
func Latin(text string) bool {
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

var wordPattern = pattern.New(`[A-Za-z][A-Za-z'-]*`)

func Words(text string) []string { return wordPattern.FindAllString(strings.ToLower(text), -1) }

// Stems are the stems of a text's words.
func Stems(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range Words(text) {
		set[Stem(word)] = true
	}
	return set
}

// irregular holds past forms that stem cannot derive.
var irregular = map[string]string{"sent": "send", "paid": "pay", "bought": "buy", "sold": "sell", "made": "make", "put": "put", "withdrew": "withdraw", "withdrawn": "withdraw",
	"gave": "give", "given": "give", "took": "take", "taken": "take", "got": "get", "application": "apply", "registration": "register", "subscription": "subscribe",
	"unsubscription": "unsubscribe", "modification": "modify", "deletion": "delete", "suspension": "suspend", "extension": "extend", "redemption": "redeem", "submission": "submit",
	"notification": "notify", "correction": "correct", "replacement": "replace", "reservation": "reserve", "addition": "add", "purchase": "purchase", "swapped": "swap"}

// Stem cuts endings and doubled letters: orders, cancelled, shipping. It is crude, which is enough because both sides
// of a comparison are cut in the same way.
func Stem(word string) string {
	word = strings.ToLower(word)
	if strings.HasSuffix(word, "ions") {
		word = word[:len(word)-1]
	}
	if base := irregular[word]; base != "" {
		word = base
	}
	for _, ending := range []string{"ations", "ation", "ating", "ated", "ates", "ate", "ments", "ment", "ings", "ing", "ies", "ied", "ed", "es", "s", "e", "al"} {
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

// kin holds, by stem, the groups of verbs that people and tools use for one act: an order is submitted, placed, made.
var kin = kinOf(
	`cancel void terminate revoke abort unsubscribe annul close end stop drop withdraw`,
	`update modify change edit set adjust correct amend switch replace move reschedule rename upgrade downgrade apply fix`,
	`delete remove drop erase clear purge wipe`,
	`book reserve schedule arrange register enroll order place purchase buy rent make create get request confirm submit`,
	`add insert create include append put attach apply make`,
	`send email mail notify message forward share post text inform`,
	`pay transfer wire charge bill settle send move`,
	`refund credit reimburse return compensate issue waive`,
	`exchange swap replace trade switch`,
	`enable activate unlock unblock resume restore turn toggle`,
	`disable deactivate suspend block freeze lock pause stop hold turn toggle`,
	`extend renew prolong refill`,
	`approve confirm grant authorize accept`,
	`file submit create open log report raise request register`,
	`reset restart reboot refresh`,
	`issue create generate make`,
	`assign give allocate dispatch`)

func kinOf(groups ...string) map[string][]string {
	all := map[string][]string{}
	for _, group := range groups {
		var stems []string
		for _, word := range strings.Fields(group) {
			stems = append(stems, Stem(word))
		}
		for _, one := range stems {
			all[one] = append(all[one], stems...)
		}
	}
	return all
}

// SayAct reports whether words, by their stems, have a verb or another verb for the same act.
func SayAct(stems map[string]bool, verb string) bool {
	return stems[verb] || slices.ContainsFunc(kin[verb], func(other string) bool { return stems[other] })
}

const Numerals = `one|two|three|four|five|six|seven|eight|nine|ten|fourteen|twenty-four|thirty|sixty|ninety|\d{1,3}`

var numeralValues = map[string]int{"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
	"fourteen": 14, "twenty-four": 24, "thirty": 30, "sixty": 60, "ninety": 90}

// Numeral reads a number that the pattern Numerals matched.
func Numeral(word string) int {
	if n, ok := numeralValues[strings.ToLower(word)]; ok {
		return n
	}
	n, err := strconv.Atoi(word)
	if err != nil {
		return 0 // digits that matched always fit
	}
	return n
}

// Set is the set of the words of a text.
func Set(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}
