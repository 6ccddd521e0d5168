package rules

import (
	"fmt"
	"slices"
	"strings"

	"jurat/internal/juror"
	"jurat/internal/subject"
	"jurat/jury"
)

var (
	doneSelf   = juror.NewPattern(`(?i)\bi(?:'ve| have)?(?: now| also| just| already| successfully| gone ahead and| then)* ([a-z-]+ed|sent|paid|bought|sold|put|reset|set|made|told|withdrawn)\b`)
	doneByIt   = juror.NewPattern(`(?i)\b(?:has|have|is|are) (?:now |just |also )*(?:been )?(?:successfully )?([a-z]+ed|sent|paid)\b`)
	doneAlone  = juror.NewPattern(`(?i)^\W*(?:(?:ok(?:ay)?|all|now|and|great),? )?([a-z]+ed|sent|paid|set|made|sold|bought)\s*(?:[:,.!–—]|-\s|$)`)
	doneAbroad = juror.NewPattern(`(?:キャンセル|返金|予約|送信|更新|変更|削除|送金|登録|解約|注文|振込)(?:を|が)?(?:完了)?(?:いた)?しました|(?i)(?:^|[^\p{L}])я (?:уже )?(?:отмени|оформи|отправи|перевe|верну|удали|обнови|измени|забронирова)ла?(?:[^\p{L}]|$)`)
	success    = juror.NewPattern(`(?i)^\W*(?:it's |it is |all |now )?(?:done|sent|all set|success)\b|\b(?:all (?:done|set)|on its way|successful(?:ly)?|(?:is|are) (?:now )?live|you(?:'re| are) (?:now )?(?:booked|enrolled|registered|on the list)|(?:ticket|task) (?:is )?(?:done|closed|resolved))\b`)
	ofTexts    = juror.NewPattern(`(?i)\b(summary|list|overview|draft|code|function|script|text|paragraph|essay|translation|explanation|table|example|section|test|class|method|readme|wording|outline|query|answer)\b`)
	admits     = juror.NewPattern(`(?i)\b(fail\w*|errors?|unable|not|cannot|unfortunately|problems?|issues?|trouble|afraid|refused|rejected|declined|denied|blocked|sorry|unsuccessful\w*|instead|however|retry|try again|apolog\w+|impossible|no longer)\b|n't\b|申し訳|失敗|エラー|できません|к сожалению|ошибк|не удалось`)
)

// claimsDone reports whether a sentence says that an act is done. In the passive it may tell of another, so it must name one that was
// tried, by its stem.
func claimsDone(s string, tried set) bool {
	s = plain(s)
	if hedged().MatchString(s) {
		return false
	}
	says := func(p juror.Pattern, of set) bool {
		at := p().FindStringSubmatch(s)
		return at != nil && of[stem(at[1])]
	}
	return doneAbroad().MatchString(s) || success().MatchString(s) || says(doneAlone, actStems) || says(doneByIt, tried) ||
		says(doneSelf, actStems) && !ofTexts().MatchString(s)
}

// errorPassedOver: every act of the turn failed, and the agent reports success without mentioning an error.
func errorPassedOver(r *reading) []jury.Finding {
	var last *call // the latest act of this turn
	tried := set{} // the stems of the names of its acts
	done := false  // an act of this turn succeeded, or has no answer yet
	for m, calls := range r.each() {
		switch m.Role {
		case subject.User:
			last, tried, done = nil, set{}, false
		case subject.Assistant:
			list := sentences(m.Text)
			i := slices.IndexFunc(list, func(s string) bool { return claimsDone(s, tried) })
			if last == nil || done || i < 0 || admits().MatchString(plain(m.Text)) {
				break
			}
			return []jury.Finding{{Message: m.Number, Quote: clip(list[i]), Severity: jury.Major,
				Explanation: fmt.Sprintf("%s had answered with an error in message %d (%q), no act succeeded, and the agent reports success.", last.Name, last.result.Number, clip(last.result.Text))}}
		}
		for _, k := range calls {
			if !k.mayAct() {
				continue
			}
			last, done = k, done || !k.failed
			for _, word := range k.words {
				tried[stem(word)] = true
			}
		}
	}
	return nil
}

var (
	furtherHelp = juror.NewPattern(`(?i)\b(anything else|something else|any other|any further|further (?:help|assistance|questions?)|else (?:i|we) can|all for (?:now|today)|is that all|more questions|other questions|satisfied|does (?:that|this) (?:help|answer|make sense)|clear)\b`)
	seeks       = juror.NewPattern(`(?i)\b(proceed|go ahead|confirm|confirmation|approve|\(?yes/no\)?|yes or no|shall i|should i|(?:want|like) me to|may i|can i|i will|i'll)\b`)
	leavesOff   = juror.NewPattern(`(?i)\b(transferr?\w*|human|colleague|specialist|representative|on hold|call you back|unable|cannot|can't|couldn't|could not|not (?:able|possible|allowed|eligible)|unfortunately|sorry|failed|error|isn't possible|denied|problem)\b`)
)

// consentedAndNotDone: the agent proposed an act, the user said yes, the agent went on, and until the end of the log nothing is
// done: no act, no hand-over, no word of why not, no further question about it. A log that ends with the yes shows nothing.
func consentedAndNotDone(r *reading) []jury.Finding {
	var yes, proposal *subject.Message
	proposing, wentOn := false, false // the message before the user's makes the call that it proposes; the agent has answered the yes
	for m, calls := range r.each() {
		text := plain(m.Text)
		switch a := r.before(m.Number, subject.Assistant); {
		case m.Role == subject.User && len(m.ToolCalls) > 0:
			yes = nil // the user does it
		case m.Role == subject.User && strings.TrimSpace(text) != "":
			if a != nil && !proposing && saysYes(text) && !strings.Contains(text, "?") && proposesAct(a.Text) {
				yes, proposal, wentOn = m, a, false
			} else if len(text) > 40 || strings.Contains(text, "?") {
				yes = nil // the matter is another one
			}
		case m.Role == subject.Assistant:
			last := lastSentence(text)
			proposing, wentOn = slices.ContainsFunc(calls, (*call).acts), true
			if leavesOff().MatchString(text) || strings.ContainsAny(last, "?？") && !furtherHelp().MatchString(last) {
				yes = nil
			}
		}
		if slices.ContainsFunc(calls, (*call).acts) {
			yes = nil
		}
	}
	if yes == nil || !wentOn || len(r.calls) == 0 {
		return nil
	}
	return []jury.Finding{{Message: yes.Number, Quote: clip(strings.TrimSpace(yes.Text)), Severity: jury.Major,
		Explanation: fmt.Sprintf("The user agrees to what the agent proposed in message %d (%q), and until the end of the log nothing is done.", proposal.Number, clip(lastSentence(proposal.Text)))}}
}

// proposesAct reports whether the end of a text asks for a yes to an act, and not whether there is anything else.
func proposesAct(text string) bool {
	list := sentences(plain(text))
	list = slices.DeleteFunc(list[max(0, len(list)-3):], furtherHelp().MatchString)
	offers := slices.ContainsFunc(list, func(s string) bool {
		words := wordsIn(s)
		return seeks().MatchString(s) || len(words) > 0 && actVerbs[words[0]] && strings.HasSuffix(s, "?")
	})
	return offers && slices.ContainsFunc(list, asking().MatchString) && slices.ContainsFunc(wordsIn(text), func(word string) bool { return actStems[stem(word)] })
}

var (
	broken = juror.NewPattern(`(?i)\b(?:it|that|this|they|which|still|and|but|phone|which)\b[^.!?,\n]{0,30}(?:\b(?:not|no longer|never|cannot)\b|n't\b)[^.!?,\n]{0,20}\b(?:work\w*|fix\w*|resolv\w*|connect\w*|load\w*|open\w*|start\w*|right|correct|help\w*|change[ds]?|solve[ds]?|go through|gone through)\b|\bstill (?:broken|failing|fails|down|wrong|slow|the same|stuck|crash\w*|having|getting|get|see|seeing|no|shows?|says?|missing|unable|can't|cannot|can not|have (?:the|no))\b|\bsame (?:problem|error|issue|message|result)\b|\b(?:did|does|do|has|have)(?: not|n't) (?:work|help|fix|solve|change)\w*\b|\bnot what i (?:asked|wanted|meant|ordered)\b|\bno (?:luck|change|improvement)\b|\bkeeps? (?:failing|crashing|dropping|saying)\b|\b(?:that's|that is|this is) (?:wrong|incorrect|not right|not correct)\b` +
		`|(?:^|[.!?,;\n]\s*|\b(?:it|that|this|they|and|but) )still (?:(?:does|is|was|wo|did|has)(?:n'?t| not)\b|not (?:there|here|arrived|through|showing|back|done|fixed|work\w*)\b)` +
		`|(?:^|[.!?,;\n]\s*)(?:it'?s |that'?s |and |but )?(?:not working|no good)\b`)
	// An answer of a few words, which may also answer a question.
	shortNo = juror.NewPattern(`(?i)(?:^|[.!?,;\n]\s*)(?:no,? )?(?:it|that|this|they) (?:still )?(?:is|does|did|has|was|wo|are|do)(?:n'?t| not)\W*$`)
	mended  = juror.NewPattern(`(?i)^\s*if |\b(thanks|thank you|works now|working now|it works|all good|never ?mind|perfect|great|solved|resolved now|fixed now|appreciate|bye|no worries|that's (?:fine|ok|okay|all))\b`)
)

// userSaysBroken: the last word of the user is that it does not work, and the agent neither acts on it nor hands over nor says
// that it cannot help.
func userSaysBroken(r *reading) []jury.Finding {
	u, a := r.lastWord()
	if u == nil || r.since(u.Number, func(text string) bool { return leavesOff().MatchString(text) }) {
		return nil
	}
	text := plain(u.Text)
	at := broken().FindString(text)
	if at == "" && !asking().MatchString(a.Text) {
		at = shortNo().FindString(text)
	}
	if at == "" || mended().MatchString(text) {
		return nil
	}
	if !strings.Contains(u.Text, at) {
		at = strings.TrimSpace(u.Text)
	}
	return []jury.Finding{{Message: u.Number, Quote: clip(at), Severity: jury.Major,
		Explanation: "The last word of the user is that it does not work or is wrong, and the agent leaves it there."}}
}

// lastWord returns the last message of the user with a text, and the agent's before it; nil if the agent had not spoken before.
func (r *reading) lastWord() (u, a *subject.Message) {
	if u = r.before(len(r.c.Messages)+1, subject.User); u == nil {
		return nil, nil
	}
	if a = r.before(u.Number, subject.Assistant); a == nil {
		return nil, nil
	}
	return u, a
}

// since reports whether, from message n on, the user calls a tool, or after it the agent acts or says something of a kind.
func (r *reading) since(n int, says func(text string) bool) bool {
	for m, calls := range r.each() {
		switch {
		case m.Number < n:
		case m.Role == subject.User && len(m.ToolCalls) > 0, slices.ContainsFunc(calls, (*call).acts):
			return true
		case m.Role == subject.Assistant && says(plain(m.Text)):
			return true
		}
	}
	return false
}

var (
	unmarked = juror.NewPattern(`(?i)^\W*(?:and |so |but |also,? |ok(?:ay)?,? |one more (?:thing|question)[:,]? )?(?:(?:can|could|would|will) you (?:also |please |maybe |then |just )?(?:tell|say|show|explain|check|look up|find out|let me know)\b` +
		`|(?:what|how (?:much|many|long|often|far|soon|do|does|can)|when|where|why) (?:is|are|was|were|do|does|did|can|could|will|would|should|has|have)\b)`)
	tag = juror.NewPattern(`(?i),\s*(?:eh|right|no|yes|ok|okay|huh|yeah|isn't it|innit)\?+$`)
)

// unansweredAtEnd: the log ends with a question of the user to an agent that has spoken before. Lookups after it are no answer.
func unansweredAtEnd(r *reading) []jury.Finding {
	u, _ := r.lastWord()
	if u == nil || r.since(u.Number, func(text string) bool { return strings.TrimSpace(text) != "" }) {
		return nil
	}
	s := lastSentence(u.Text)
	if marked := strings.ContainsAny(s, "?？"); marked && tag().MatchString(s) || !marked && !unmarked().MatchString(plain(s)) {
		return nil
	}
	return []jury.Finding{{Message: u.Number, Quote: clip(s), Severity: jury.Minor,
		Explanation: "The conversation ends with a question of the user that the agent never answers."}}
}
