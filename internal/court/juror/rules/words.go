package rules

import (
	"strings"
	"time"
	"unicode"

	"jurat/internal/court/juror"
)

// plain is a text with straight apostrophes, as the patterns write them.
func plain(text string) string { return strings.ReplaceAll(text, "’", "'") }

var (
	sentenceEnd = juror.NewPattern(`[.!?]+["')*]*(\s+|$)|[。！？]|\n+`)
	onlyNumber  = juror.NewPattern(`^\s*[#*\-]*\s*\d{1,3}$`)
)

// sentences cuts a text into sentences that are substrings of it, to the letter.
func sentences(text string) (list []string) {
	start := 0
	for _, at := range append(sentenceEnd().FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		if at[0] < len(text) && onlyNumber().MatchString(text[start:at[0]]) { // "1. Cancel" is one sentence
			continue
		}
		if s := strings.TrimSpace(text[start:at[1]]); s != "" {
			list = append(list, s)
		}
		start = at[1]
	}
	return list
}

func lastSentence(text string) string {
	list := sentences(text)
	return strings.Join(list[max(0, len(list)-1):], "")
}

// Go's \b knows ASCII letters only, so the patterns bound Russian words by \p{L}.
var (
	yesWords = juror.NewPattern(`(?i)^\W*((ok|okay|great|perfect|alright|sure|good|fine|right|thanks|thank you)\W+)*(yes|yeah|yep|yup|ye|ya|ja|si|sí|oui|go|sure|ok|okay|of course|absolutely|correct|confirmed|go (ahead|for it)|please do|do (it|that)|(that|it|this)('s| is| sounds | looks | works)? ?(right|correct|fine|good|perfect|great)?|sounds (good|great)|looks (good|great)|perfect|fine|alright|approved?|agreed|definitely|exactly)\b` +
		`|\b(go ahead|please proceed|i (do )?confirm|i agree|i approve|i'll take|proceed with|you (can|may) proceed)\b` +
		`|はい|お願い|承知|進めてください|大丈夫です|了解` +
		`|(^|[^\p{L}])(да|хорошо|соглас(ен|на)|подтверждаю|давайте|конечно)([^\p{L}]|$)`)
	noWords = juror.NewPattern(`(?i)^\W*(no|nope|no,? thanks?( you)?|no thank you)\W*$|^\W*(no[,.! ]+)?(please )?(stop|wait|hold on|never ?mind|not yet|leave it|forget it|don't|do not)\b|^(いいえ|やめて|待って)|^\s*(нет([^\p{L}]|$)|не надо|не нужно|подождите|стоп)`)

	// hedged matches sentences about what may be, will be, or is not: they claim nothing about the present.
	hedged = juror.NewPattern(`(?i)\b(if|unless|once|when|whether|would|could|should|will|shall|may|might|can|cannot|unable|not|never|until|before|after you|to be|needs? to|must|let me|ensure|verify|check|attempt(ed)?|tried|trying|failed|error|please|going to|about to|ready to|only)\b|n't\b|\?\s*$`)
	asking = juror.NewPattern(`(?i)[?？]|\b(confirm|let me know|yes/no|\(yes\))`)
)

func saysNo(text string) bool  { return noWords().MatchString(plain(text)) }
func saysYes(text string) bool { return yesWords().MatchString(plain(text)) && !saysNo(text) }

var wordPattern = juror.NewPattern(`[A-Za-z][A-Za-z'-]*`)

func wordsIn(text string) []string { return wordPattern().FindAllString(strings.ToLower(text), -1) }

type set map[string]bool

func setOf(text string) set {
	s := set{}
	for _, word := range strings.Fields(text) {
		s[word] = true
	}
	return s
}

func stems(text string) set {
	s := set{}
	for _, word := range wordsIn(text) {
		s[stem(word)] = true
	}
	return s
}

// irregular holds past forms that stem cannot derive.
var irregular = map[string]string{"sent": "send", "paid": "pay", "bought": "buy", "sold": "sell", "made": "make", "withdrawn": "withdraw", "told": "tell"}

// stem cuts endings and doubled letters: orders, cancelled, shipping. It is crude, which is enough because both sides of a
// comparison are cut in the same way.
func stem(word string) string {
	word = strings.ToLower(word)
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

var wordOfName = juror.NewPattern(`\p{Lu}*[\p{Ll}\p{Lt}\p{Lm}\p{Lo}\p{M}\p{N}]+|\p{Lu}+`)

// nameWords splits server__get_userDetails-v2 into get, user, details, v2.
func nameWords(name string) (words []string) {
	if i := strings.LastIndex(name, "__"); i >= 0 && i+2 < len(name) { // server__tool
		name = name[i+2:]
	}
	for _, word := range wordOfName().FindAllString(name, -1) {
		words = append(words, strings.ToLower(word))
	}
	return words
}

// The verbs and nouns in the names of tools.
var (
	readVerbs = setOf(`get search list find lookup look fetch read view show check calculate calc compute convert think plan reason
		query describe retrieve verify validate authenticate login estimate quote browse navigate goto visit scroll hover
		screenshot count compare analyze analyse examine inspect identify evaluate classify diagnose summarize translate preview track
		monitor test wait locate ask is has can grep cat ls glob draft`)
	actVerbs = setOf(`update modify change edit set adjust correct replace rename move reschedule upgrade downgrade switch reassign amend
		cancel void terminate revoke abort unsubscribe close deactivate suspend disable block freeze lock stop ban
		delete remove drop erase wipe purge clear destroy
		book reserve create add make place order purchase buy sell rent schedule register enroll insert submit apply open subscribe file
		request confirm extend renew dispatch assign
		send ship deliver email notify post publish message share forward reply upload invite
		pay transfer wire charge refund withdraw deposit issue redeem credit reimburse donate settle waive
		pause unpause bump record release attach detach toggle put link unlink unassign archive dispute accept reject decline prescribe dispense process swap
		return exchange enable activate approve grant unlock unblock reset resume restore deploy merge push commit install restart`)
	alsoNouns = setOf(`order return refund transfer charge credit exchange request schedule message file book post register`)
	readNouns = setOf(`status lookup details info information history eligibility availability options`)
	// A call with one of these nouns has no consequences: create_draft.
	lightNouns = setOf(`note notes draft drafts cart todo todos memory log logs scratchpad otp code verification case escalation
		reminder session search feedback`)
	people      = setOf(`human humans agent agents person operator representative support supervisor specialist staff advisor team department desk queue`)
	handVerbs   = setOf(`transfer hand handoff handover escalate connect forward route refer`)
	handingOver = setOf(`handoff handover escalate`)
)

// actStems are the stems of verbs for acts, by which a participle is known: refunded.
var actStems = func() set {
	s := set{stem("reimbursed"): true, stem("switched"): true, stem("arranged"): true}
	for word := range actVerbs {
		s[stem(word)] = true
	}
	return s
}()

// marks lists the words of a text without punctuation, the parts of these words, and the numbers.
func marks(text string) (list []string) {
	for _, field := range strings.FieldsFunc(text, separates) {
		if whole := bare(field); whole != "" {
			list = append(list, whole)
		}
		for _, part := range strings.FieldsFunc(field, isPunctuation) {
			if len(part) >= 3 && len(part) < len(field) {
				list = append(list, bare(part))
			}
		}
	}
	return append(list, numbersIn(text)...)
}

func separates(c rune) bool {
	return unicode.IsSpace(c) || strings.ContainsRune("\"'`{}[]<>,;:=|\\*“”", c)
}

func isPunctuation(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

func bare(s string) string {
	return strings.Map(func(c rune) rune {
		if isPunctuation(c) {
			return -1
		}
		return unicode.ToLower(c)
	}, s)
}

var (
	digitRun   = juror.NewPattern(`\d{3,}`)
	longNumber = juror.NewPattern(`\d(?:[ ().,/-]{0,3}\d){6,}`)
	isoDate    = juror.NewPattern(`\b\d{4}-\d{2}-\d{2}`)
	longDate   = juror.NewPattern(`\b(January|February|March|April|May|June|July|August|September|October|November|December) (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})`)
)

// numbersIn lists the runs of digits of a text, and its longer numbers, also those written in groups. It adds the ends of these, which
// identify a telephone number with and without its country code.
func numbersIn(text string) []string {
	list := digitRun().FindAllString(text, -1)
	for _, number := range longNumber().FindAllString(text, -1) {
		digits := bare(number)
		list = append(list, digits, "…"+digits[len(digits)-7:])
	}
	return list
}

// dateIn reads the first date of a text: 2024-05-15, or May 15, 2024. It knows no hours, so comparisons allow for a day.
func dateIn(text string) (time.Time, bool) {
	at, err := time.Parse(time.DateOnly, isoDate().FindString(text))
	if m := longDate().FindStringSubmatch(text); err != nil && m != nil {
		at, err = time.Parse("January 2 2006", m[1]+" "+m[2]+" "+m[3])
	}
	return at, err == nil
}

// clip shortens a quotation so that it is readable. The rest is still an exact quotation.
func clip(s string) string {
	const most = 280
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}
