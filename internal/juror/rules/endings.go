package rules

import (
	"fmt"
	"slices"
	"strings"

	"jurat/internal/juror/phrase"
	"jurat/internal/pattern"
	"jurat/internal/subject"
	"jurat/jury"
)

var (
	furtherHelp = pattern.New(`(?i)\b(anything else|something else|any other|any further|further (?:help|assistance|questions?)|else (?:i|we) can|all for (?:now|today)|is that all|more questions|other questions|satisfied|does (?:that|this) (?:help|answer|make sense)|clear)\b`)
	seeks       = pattern.New(`(?i)\b(proceed|go ahead|confirm|confirmation|approve|\(?yes/no\)?|yes or no|shall i|should i|(?:want|like) me to|may i|can i|i will|i'll)\b`)
	leavesOff   = pattern.New(`(?i)\b(transferr?\w*|human|colleague|specialist|representative|on hold|call you back|unable|cannot|can't|couldn't|could not|not (?:able|possible|allowed|eligible)|unfortunately|sorry|failed|error|isn't possible|denied|problem)\b`)
)

// consentedAndNotDone: the agent proposed an act, the user said yes, and until the end of the log nothing is done: no
// act, no hand-over, no word of why not, no further question about it.
func consentedAndNotDone(r *reading) []jury.Finding {
	var yes, proposal *subject.Message
	if len(r.calls) == 0 {
		return nil
	}
	for m, calls := range r.each() {
		switch {
		case r.userActs(m):
			yes = nil // the user does it
		case m.Role == subject.User && strings.TrimSpace(m.Text) != "":
			a := r.before(m.Number, subject.Assistant)
			switch {
			case a != nil && phrase.SaysYes(m.Text) && !strings.Contains(m.Text, "?") && proposesAct(a.Text):
				yes, proposal = m, a
			case len(m.Text) > 40 || strings.Contains(m.Text, "?"):
				yes = nil // the matter is another one
			}
		case m.Role == subject.Assistant && yes != nil && (leavesOff.MatchString(phrase.Plain(m.Text)) || goesOn(m.Text)):
			yes = nil
		}
		if yes != nil && slices.ContainsFunc(calls, func(k *call) bool { return k.kind != readCall }) {
			yes = nil
		}
	}
	if yes == nil || r.actsIn(proposal) {
		return nil
	}
	return []jury.Finding{{Message: yes.Number, Quote: clip(strings.TrimSpace(yes.Text)), Severity: jury.Major,
		Explanation: fmt.Sprintf("The user agrees to what the agent proposed in message %d (%q), and until the end of the log nothing is done.", proposal.Number, clip(phrase.LastSentence(proposal.Text)))}}
}

// goesOn reports whether a text asks the user about the matter.
func goesOn(text string) bool {
	last := phrase.LastSentence(text)
	return strings.ContainsAny(last, "?？") && !furtherHelp.MatchString(phrase.Plain(last))
}

// actsIn reports whether a message makes a call that may act.
func (r *reading) actsIn(m *subject.Message) bool {
	return slices.ContainsFunc(r.calls, func(k *call) bool { return k.msg == m.Number && k.kind != readCall })
}

// userActs reports whether the user calls a tool in a message.
func (r *reading) userActs(m *subject.Message) bool {
	return m.Role == subject.User && len(m.ToolCalls) > 0
}

// proposesAct reports whether the end of a text asks for a yes to an act, and not whether there is anything else.
func proposesAct(text string) bool {
	list := phrase.Sentences(phrase.Plain(text))
	list = list[max(0, len(list)-3):]
	asked := slices.ContainsFunc(list, func(s string) bool { return asks(s) && !furtherHelp.MatchString(s) })
	offers := slices.ContainsFunc(list, func(s string) bool {
		words := phrase.Words(s)
		return seeks.MatchString(s) && !furtherHelp.MatchString(s) || len(words) > 0 && phrase.ActVerbs[words[0]] && strings.HasSuffix(s, "?")
	})
	return asked && offers && phrase.Latin(text) && hasAct(text)
}

// hasAct reports whether a text has a verb for an act.
func hasAct(text string) bool {
	for _, word := range phrase.Words(text) {
		if phrase.ActVerbs[word] || actStems[phrase.Stem(word)] {
			return true
		}
	}
	return false
}

var actStems = stemsIn(phrase.ActVerbs)

func stemsIn(words map[string]bool) map[string]bool {
	set := map[string]bool{}
	for word := range words {
		set[phrase.Stem(word)] = true
	}
	return set
}

var (
	broken = pattern.New(`(?i)\b(?:it|that|this|they|which|still|and|but|phone|which)\b[^.!?,\n]{0,30}(?:\b(?:not|no longer|never|cannot)\b|n't\b)[^.!?,\n]{0,20}\b(?:work\w*|fix\w*|resolv\w*|connect\w*|load\w*|open\w*|start\w*|right|correct|help\w*|change[ds]?|solve[ds]?|go through|gone through)\b|\bstill (?:broken|failing|fails|down|wrong|slow|the same|stuck|crash\w*|having|getting|get|see|seeing|no|shows?|says?|missing|unable|can't|cannot|can not|have (?:the|no))\b|\bsame (?:problem|error|issue|message|result)\b|\b(?:did|does|do|has|have)(?: not|n't) (?:work|help|fix|solve|change)\w*\b|\bnot what i (?:asked|wanted|meant|ordered)\b|\bno (?:luck|change|improvement)\b|\bkeeps? (?:failing|crashing|dropping|saying)\b|\b(?:that's|that is|this is) (?:wrong|incorrect|not right|not correct)\b` +
		`|(?:^|[.!?,;\n]\s*|\b(?:it|that|this|they|and|but) )still (?:(?:does|is|was|wo|did|has)(?:n'?t| not)\b|not (?:there|here|arrived|through|showing|back|done|fixed|work\w*)\b)` +
		`|(?:^|[.!?,;\n]\s*)(?:it'?s |that'?s |and |but )?(?:not working|no good)\b`)
	// An answer of a few words, which may also answer a question.
	shortNo = pattern.New(`(?i)(?:^|[.!?,;\n]\s*)(?:no,? )?(?:it|that|this|they) (?:still )?(?:is|does|did|has|was|wo|are|do)(?:n'?t| not)\W*$`)
	mended  = pattern.New(`(?i)\b(thanks|thank you|works now|working now|it works|all good|never ?mind|perfect|great|solved|resolved now|fixed now|appreciate|bye|no worries|that's (?:fine|ok|okay|all))\b`)
)

// userSaysBroken: the last word of the user is that it does not work, and the agent neither acts on it nor hands over
// nor says that it cannot help.
func userSaysBroken(r *reading) []jury.Finding {
	u := r.before(len(r.c.Messages)+1, subject.User)
	if u == nil || r.before(u.Number, subject.Assistant) == nil {
		return nil
	}
	text := phrase.Plain(u.Text)
	at := broken.FindString(text)
	if a := r.before(u.Number, subject.Assistant); at == "" && !asks(a.Text) {
		at = shortNo.FindString(text)
	}
	if at == "" || mended.MatchString(text) || strings.HasPrefix(strings.ToLower(strings.TrimSpace(text)), "if ") {
		return nil
	}
	for m, calls := range r.each() {
		if m.Number <= u.Number {
			continue
		}
		if m.Role == subject.Assistant && leavesOff.MatchString(phrase.Plain(m.Text)) || r.userActs(m) {
			return nil
		}
		for _, k := range calls {
			if k.kind != readCall {
				return nil
			}
		}
	}
	return []jury.Finding{{Message: u.Number, Quote: asIn(u.Text, at), Severity: jury.Major,
		Explanation: "The last word of the user is that it does not work or is wrong, and the agent leaves it there."}}
}

// asIn returns a part of a plain text as the text itself writes it, or the whole text.
func asIn(text, part string) string {
	if strings.Contains(text, part) {
		return clip(part)
	}
	return clip(strings.TrimSpace(text))
}
