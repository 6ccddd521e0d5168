package rules

import (
	"slices"
	"strings"

	"jurat/internal/juror"
	"jurat/internal/subject"
	"jurat/jury"
)

var (
	doneSelf  = juror.NewPattern(`(?i)\bi(?:'ve| have)?(?: now| also| just| already| successfully| gone ahead and| then)* ([a-z-]+ed|sent|paid|bought|sold|put|reset|set|made|told|withdrawn)\b`)
	doneByIt  = juror.NewPattern(`(?i)\b(?:has|have|is|are) (?:now |just |also )*(?:been )?(?:successfully )?([a-z]+ed|sent|paid)\b`)
	doneAlone = juror.NewPattern(`(?i)^\W*(?:(?:ok(?:ay)?|all|now|and|great),? )?([a-z]+ed|sent|paid|set|made|sold|bought)\s*(?:[:,.!–—]|-\s|$)`)
	success   = juror.NewPattern(`(?i)^\W*(?:it's |it is |all |now )?(?:done|sent|all set|success)\b|\b(?:all (?:done|set)|on its way|successful(?:ly)?` +
		`|(?:is|are) (?:now )?live|you(?:'re| are) (?:now )?(?:booked|enrolled|registered|on the list)|(?:ticket|task) (?:is )?(?:done|closed|resolved))\b` +
		`|(?:キャンセル|返金|予約|送信|更新|変更|削除|送金|登録|解約|注文|振込)(?:を|が)?(?:完了)?(?:いた)?しました` +
		`|(?:^|[^\p{L}])я (?:уже )?(?:отмени|оформи|отправи|перевe|верну|удали|обнови|измени|забронирова)ла?(?:[^\p{L}]|$)`)
	admits = juror.NewPattern(`(?i)\b(fail\w*|errors?|unable|not|cannot|unfortunately|problems?|issues?|trouble|afraid|refused|rejected|declined|denied|blocked|sorry` +
		`|unsuccessful\w*|instead|however|retry|try again|apolog\w+|impossible|no longer)\b|n't\b|申し訳|失敗|エラー|できません|к сожалению|ошибк|не удалось`)
)

// claimsDone reports whether a sentence says that an act is done. In the passive it may tell of another, so it must name one that was
// tried, by its stem.
func claimsDone(s string, tried set) bool {
	s = plain(s)
	says := func(p *juror.Pattern, of set) bool {
		at := p.FindStringSubmatch(s)
		return at != nil && of[stem(at[1])]
	}
	return !hedged.MatchString(s) && (success.MatchString(s) || says(doneAlone, actStems) || says(doneByIt, tried) || says(doneSelf, actStems))
}

// errorPassedOver: every act of the turn failed, and the agent reports success without mentioning an error.
func errorPassedOver(r *reading) []jury.Finding {
	var last *call // the latest act of this turn
	tried := set{} // the stems of the names of its acts
	done := false  // an act of this turn succeeded, or has no answer yet
	for _, s := range r.steps {
		if s.Role == subject.User {
			last, tried, done = nil, set{}, false
		}
		if s.Role == subject.Assistant && last != nil && !done && !admits.MatchString(plain(s.Text)) {
			for _, said := range sentences(s.Text) {
				if claimsDone(said, tried) {
					return found(s.Number, clip(said), jury.Major, "%s had answered with an error in message %d (%q), no act succeeded, and the agent reports success.",
						last.Name, last.result.Number, clip(last.result.Text))
				}
			}
		}
		for _, k := range s.calls {
			if k.mayAct() {
				last, done = k, done || !k.failed
				for _, word := range k.words {
					tried[stem(word)] = true
				}
			}
		}
	}
	return nil
}

var (
	furtherHelp = juror.NewPattern(`(?i)\b(anything else|something else|any other|any further|further (?:help|assistance|questions?)|else (?:i|we) can|all for (?:now|today)` +
		`|is that all|more questions|other questions|satisfied|does (?:that|this) (?:help|answer|make sense)|clear)\b`)
	seeks = juror.NewPattern(`(?i)\b(proceed|go ahead|confirm|confirmation|approve|\(?yes/no\)?|yes or no|shall i|should i|(?:want|like) me to|may i|can i|i will|i'll)\b`)
	// leavesOff matches words of those who say why they do not go on.
	leavesOff = juror.NewPattern(`(?i)\b(transferr?\w*|human|colleague|specialist|representative|on hold|call you back|unable|cannot|can't|couldn't|could not` +
		`|not (?:able|possible|allowed|eligible)|unfortunately|sorry|failed|error|isn't possible|denied|problem)\b`)
)

// consentedAndNotDone: the agent proposed an act, the user said yes, the agent went on, and until the end of the log nothing is
// done: no act, no hand-over, no word of why not, no further question about it. A log that ends with the yes shows nothing.
func consentedAndNotDone(r *reading) []jury.Finding {
	var yes *step
	proposing, wentOn := false, false // the message before the user's makes the call that it proposes; the agent has answered the yes
	for _, s := range r.steps {
		text := plain(s.Text)
		switch {
		case s.Role == subject.User && len(s.ToolCalls) > 0:
			yes = nil // the user does it
		case s.Role == subject.User && s.agent != nil && !proposing && saysYes(text) && !strings.Contains(text, "?") && proposesAct(s.agent.Text):
			yes, wentOn = s, false
		case s.Role == subject.User && (len(text) > 40 || strings.Contains(text, "?")):
			yes = nil // the matter is another one
		case s.Role == subject.Assistant:
			last := lastSentence(text)
			proposing, wentOn = s.acts(), true
			if leavesOff.MatchString(text) || strings.ContainsAny(last, "?？") && !furtherHelp.MatchString(last) || s.acts() {
				yes = nil
			}
		}
	}
	if yes == nil || !wentOn || len(r.calls) == 0 {
		return nil
	}
	return found(yes.Number, clip(strings.TrimSpace(yes.Text)), jury.Major,
		"The user agrees to what the agent proposed in message %d (%q), and until the end of the log nothing is done.", yes.agent.Number, clip(lastSentence(yes.agent.Text)))
}

// proposesAct reports whether the end of a text asks for a yes to an act, and not whether there is anything else.
func proposesAct(text string) bool {
	list := sentences(plain(text))
	list = slices.DeleteFunc(list[max(0, len(list)-3):], furtherHelp.MatchString)
	offers := slices.ContainsFunc(list, func(s string) bool {
		words := wordsIn(s)
		return seeks.MatchString(s) || len(words) > 0 && actVerbs[words[0]] && strings.HasSuffix(s, "?")
	})
	return offers && slices.ContainsFunc(list, asking.MatchString) && slices.ContainsFunc(wordsIn(text), func(word string) bool { return actStems[stem(word)] })
}

var (
	broken = juror.NewPattern(`(?i)\b(?:it|that|this|they|which|still|and|but|phone)\b[^.!?,\n]{0,30}(?:\b(?:not|no longer|never|cannot)\b|n't\b)[^.!?,\n]{0,20}` +
		`\b(?:work\w*|fix\w*|resolv\w*|connect\w*|load\w*|open\w*|start\w*|right|correct|help\w*|change[ds]?|solve[ds]?|go through|gone through)\b` +
		`|\bstill (?:broken|failing|fails|down|wrong|slow|the same|stuck|crash\w*|having|getting|get|see|seeing|no|shows?|says?|missing|unable|can't|cannot|can not|have (?:the|no))\b` +
		`|\bsame (?:problem|error|issue|message|result)\b|\b(?:did|does|do|has|have)(?: not|n't) (?:work|help|fix|solve|change)\w*\b` +
		`|\bnot what i (?:asked|wanted|meant|ordered)\b|\bno (?:luck|change|improvement)\b|\bkeeps? (?:failing|crashing|dropping|saying)\b` +
		`|\b(?:that's|that is|this is) (?:wrong|incorrect|not right|not correct)\b` +
		`|(?:^|[.!?,;\n]\s*|\b(?:it|that|this|they|and|but) )still (?:(?:does|is|was|wo|did|has)(?:n'?t| not)\b|not (?:there|here|arrived|through|showing|back|done|fixed|work\w*)\b)` +
		`|(?:^|[.!?,;\n]\s*)(?:it'?s |that'?s |and |but )?(?:not working|no good)\b`)
	// An answer of a few words, which may also answer a question.
	shortNo = juror.NewPattern(`(?i)(?:^|[.!?,;\n]\s*)(?:no,? )?(?:it|that|this|they) (?:still )?(?:is|does|did|has|was|wo|are|do)(?:n'?t| not)\W*$`)
	mended  = juror.NewPattern(`(?i)^\s*if |\b(thanks|thank you|works now|working now|it works|all good|never ?mind|perfect|great|solved|resolved now|fixed now|appreciate|bye` +
		`|no worries|that's (?:fine|ok|okay|all))\b`)
)

// userSaysBroken: the last word of the user is that it does not work, and the agent neither acts on it nor hands over nor says
// that it cannot help.
func userSaysBroken(r *reading) []jury.Finding {
	u, a := r.lastWord()
	if u == nil || mended.MatchString(plain(u.Text)) || r.since(u.Number, leavesOff.MatchString) {
		return nil
	}
	at := broken.FindString(plain(u.Text))
	if at == "" && !asking.MatchString(a.Text) {
		at = shortNo.FindString(plain(u.Text))
	}
	if at == "" {
		return nil
	}
	if !strings.Contains(u.Text, at) {
		at = strings.TrimSpace(u.Text)
	}
	return found(u.Number, clip(at), jury.Major, "The last word of the user is that it does not work or is wrong, and the agent leaves it there.")
}

// lastWord returns the user's last message with words, and the agent's before it; nil if the agent had not spoken before.
func (r *reading) lastWord() (u, a *subject.Message) {
	if r.user == nil {
		return nil, nil
	}
	if a = r.steps[r.user.Number-1].agent; a == nil {
		return nil, nil
	}
	return r.user, a
}

// tag is how a statement ends that asks for nothing.
var tag = juror.NewPattern(`(?i),\s*(?:eh|right|no|yes|ok|okay|huh|yeah|isn't it|innit)\?+$`)

// unansweredAtEnd: the log ends with a question of the user to an agent that has spoken before. Lookups after it are no answer.
func unansweredAtEnd(r *reading) []jury.Finding {
	u, _ := r.lastWord()
	if u == nil || r.since(u.Number, func(text string) bool { return strings.TrimSpace(text) != "" }) {
		return nil
	}
	s := lastSentence(u.Text)
	if !strings.ContainsAny(s, "?？") || tag.MatchString(s) {
		return nil
	}
	return found(u.Number, clip(s), jury.Minor, "The conversation ends with a question of the user that the agent never answers.")
}
