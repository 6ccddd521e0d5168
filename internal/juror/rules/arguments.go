package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"jurat/internal/juror/phrase"
	"jurat/internal/pattern"
	"jurat/internal/subject"
	"jurat/jury"
)

// numberSaid matches a number of letters and digits, also one in groups.
const numberSaid = `([A-Z0-9][A-Z0-9-]{4,24}|[A-Z0-9]{1,6}(?: \d{2,6}){2,5})\b`

var referenceSaid = pattern.New(`(?i)\b(?:confirmation|tracking|reference|transaction|authorization|booking|case|ticket|claim|appointment|receipt|return|order|request)[ -]?(?:number|no\.?|id|code|#)\W{0,8}(?:is|:|=)?\W{0,8}` + numberSaid + `|\byour (?:reference|confirmation)(?: is|:)\W{0,8}` + numberSaid)

// inventedReference: the agent states a reference that no tool, user or policy gave, and that it did not send to a
// tool itself.
func inventedReference(r *reading) []jury.Finding {
	if len(r.calls) == 0 {
		return nil // a log without tools cannot show where a number came from
	}
	for m := range r.said(subject.Assistant) {
		for _, at := range referenceSaid.FindAllStringSubmatch(m.Text, -1) {
			id := at[1] + at[2]
			if !strings.ContainsAny(id, "0123456789") || strings.ToUpper(id) != id || r.known(id, m.Number) || r.acts.of(id) < m.Number {
				continue
			}
			return []jury.Finding{{Message: m.Number, Quote: at[0], Severity: jury.Major,
				Explanation: fmt.Sprintf("Neither the user nor any tool gave %s: the agent made the reference up.", id)}}
		}
	}
	return nil
}

var (
	targetKey = pattern.New(`(?i)(^|_)(id|number|account|iban|email|recipient|to|address|phone|card|code|plate)$|(Id|Number|Email|Account)$`)
	ownChoice = pattern.New(`(?i)idempot|request_?id|trace|nonce|correlation|session|client|ref|conversation|thread|message_?id|tool|serial|version|port`)
	creates   = phrase.Set(`create add register make insert open new generate issue`)
)

// inventedArgument: a consequential call acts on a target that neither the user nor a tool named, and that the agent
// did not show to the user before they answered.
func inventedArgument(r *reading) []jury.Finding {
	for k := range r.eachCall() {
		if k.kind != writeCall || k.failed {
			continue
		}
		for _, a := range k.args {
			if !r.invented(a, k) {
				continue
			}
			return []jury.Finding{{Message: k.msg, Quote: quoteValue(k, a), Severity: jury.Major,
				Explanation: fmt.Sprintf("The call acts on %s %q, which neither the user nor any tool ever named.", a.key, clip(a.text))}}
		}
	}
	return nil
}

func (r *reading) invented(a leaf, k *call) bool {
	if !targetKey.MatchString(a.key) || ownChoice.MatchString(a.key) || len(a.text) < 5 || len(a.text) > 60 {
		return false
	}
	if !strings.Contains(a.text, "@") && !hasDigit(a.text) {
		return false // a name can be written in many ways
	}
	if a.key == "to" && !strings.Contains(a.text, "@") && len(phrase.LongNumbers(a.text)) == 0 {
		return false // the end of a span, or a place
	}
	if _, date := phrase.Date(a.text); date || isID(a.key) && slices.ContainsFunc(k.words, func(w string) bool { return creates[w] }) {
		return false // "in January" can be derived, and a call that creates a thing may name it
	}
	return !r.known(a.text, k.msg) && r.shown.of(a.text) >= r.turn(k.msg) && !r.partsKnown(a.text, k.msg)
}

// partsKnown reports whether a value can be put together from what was given: an address of which a part is known, or
// an e-mail address that somebody spelled out.
func (r *reading) partsKnown(value string, n int) bool {
	if !strings.ContainsAny(value, "@ ") {
		return false
	}
	known, all := 0, 0
	for _, part := range strings.FieldsFunc(value, phrase.IsPunctuation) {
		if len(part) < 3 || commonDomain[strings.ToLower(part)] {
			continue
		}
		all++
		if r.given.of(part) < n || r.shown.of(part) < n {
			known++
		}
	}
	if strings.Contains(value, "@") {
		return all > 0 && known == all
	}
	return known > 0
}

var commonDomain = phrase.Set(`com org net edu gov mail example www`)

// quoteValue quotes an argument's value as the call writes it. If that fails, it quotes all arguments.
func quoteValue(k *call, a leaf) string {
	for _, form := range []string{strconv.Quote(a.key) + ": " + strconv.Quote(a.text), strconv.Quote(a.key) + ":" + strconv.Quote(a.text), a.text} {
		if len(form) <= 280 && strings.Contains(k.Arguments, form) {
			return form
		}
	}
	return k.quoted()
}
