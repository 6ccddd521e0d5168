package rules

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"jurat/internal/court/juror"
	"jurat/internal/court/subject"
	"jurat/jury"
)

var (
	targetKey    = juror.NewPattern(`(?i)(^|_)(id|number|account|iban|email|recipient|to|address|phone|card|code|plate)$|(Id|Number|Email|Account)$`)
	ownChoice    = juror.NewPattern(`(?i)idempot|request_?id|trace|nonce|correlation|session|client|ref|conversation|thread|message_?id|tool|serial|version|port`)
	idKey        = juror.NewPattern(`(?i)(^|_)(id|number|no)$|(Id|Number)$`)
	creates      = setOf(`create add register make insert open new generate issue`)
	commonDomain = setOf(`com org net edu gov mail example www`)
)

// inventedArgument: a consequential call acts on a target that neither the user nor a tool named, and that the agent did not
// show to the user before they answered.
func inventedArgument(r *reading) []jury.Finding {
	for k := range r.eachCall() {
		if k.kind != writeCall || k.failed {
			continue
		}
		if i := slices.IndexFunc(k.args, func(a leaf) bool { return r.invented(a, k) }); i >= 0 {
			a := k.args[i]
			return []jury.Finding{{Message: k.msg, Quote: k.quoteValue(a), Severity: jury.Major,
				Explanation: fmt.Sprintf("The call acts on %s %q, which neither the user nor any tool ever named.", a.key, clip(a.text))}}
		}
	}
	return nil
}

func (r *reading) invented(a leaf, k *call) bool {
	_, date := dateIn(a.text)
	switch mail := strings.Contains(a.text, "@"); {
	case !targetKey().MatchString(a.key) || ownChoice().MatchString(a.key) || len(a.text) < 5 || len(a.text) > 60:
		return false
	case !mail && !hasDigit(a.text): // a name can be written in many ways
		return false
	case a.key == "to" && !mail && !longNumber().MatchString(a.text): // the end of a span, or a place
		return false
	case date || idKey().MatchString(a.key) && anyOf(k.words, creates):
		return false // "in January" can be derived, and a call that creates a thing may name it
	}
	return r.given.of(a.text) >= k.msg && r.shown.of(a.text) >= r.turn(k.msg) && !r.partsKnown(a.text, k.msg)
}

// partsKnown reports whether a value can be put together from what was given: an address of which a part is known, or an
// e-mail address that somebody spelled out.
func (r *reading) partsKnown(value string, n int) bool {
	mail := strings.Contains(value, "@")
	if !mail && !strings.Contains(value, " ") {
		return false
	}
	parts := slices.DeleteFunc(strings.FieldsFunc(value, isPunctuation), func(part string) bool { return len(part) < 3 || commonDomain[strings.ToLower(part)] })
	unknown := slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return r.given.of(part) < n || r.shown.of(part) < n })
	return len(unknown) < len(parts) && (len(unknown) == 0 || !mail)
}

// acting tests the acts that a sentence of the policy may be about, until one breaks it. It calls breaks with each sentence
// that the pattern matches, and with what the pattern took of it last.
func (r *reading) acting(p juror.Pattern, breaks func(verbs set, at string) func(*call) (why string)) []jury.Finding {
	for _, s := range r.house {
		at := p().FindStringSubmatch(plain(s))
		if at == nil {
			continue
		}
		why := breaks(stems(s), at[len(at)-1])
		for k := range r.eachCall() {
			if !k.mayAct() || k.failed || k.about == nil {
				continue
			}
			if broken := why(k); broken != "" {
				return []jury.Finding{{Message: k.msg, Quote: k.quoted(), Severity: jury.Major, Explanation: fmt.Sprintf("The policy says %q; %s.", clip(s), broken)}}
			}
		}
	}
	return nil
}

var (
	usedUp = juror.NewPattern(`(?i)\b(not (been )?(flown|used|departed|started|begun|expired|redeemed)|already (been )?(flown|used|departed|started|taken place|begun|expired|redeemed|checked in|past|over)|in the past|past [a-z]+s|(?:has|have) (?:already )?(passed|departed|started|begun|ended)|before (?:it|they|the [a-z]+) (?:starts?|begins?|departs?))\b`)
	useKey = juror.NewPattern(`(?i)^((event_?)?date|(departure|start|scheduled|appointment|pick_?up|collection|begin|check_?in|expir).*|time|valid_?(until|to))$`)
	// Names of dates on which something is made or known, and not used.
	notUse = juror.NewPattern(`(?i)birth|dob|creat|issu|order|purchas|book|join|sign|updat|last|since|due|regist|fil|open|transact|hire|return|paid|pay`)
)

// pastIgnored: the policy protects what has already been used, and a call with a verb of that sentence acts on a record with
// a date of use before the stated present. Dates of creation and birth do not count.
func pastIgnored(r *reading) []jury.Finding {
	if r.now.IsZero() {
		return nil
	}
	old := map[*record]*leaf{} // what of a record is over; nil: nothing
	return r.acting(usedUp, func(verbs set, _ string) func(*call) string {
		return func(k *call) string {
			if k.kind != writeCall || !verbs[k.verb] {
				return ""
			}
			if _, looked := old[k.about]; !looked {
				old[k.about] = r.usedUpIn(k.about)
			}
			l := old[k.about]
			if l == nil || slices.ContainsFunc(k.args, func(a leaf) bool {
				at, date := dateIn(a.text)
				return a.key == l.key || date && at.After(r.now)
			}) {
				return "" // the call itself sets another date
			}
			return fmt.Sprintf("the record in message %d has the %s %s, before the stated present %s", k.about.msg, l.key, l.text, r.now.Format("2006-01-02"))
		}
	})
}

func (r *reading) usedUpIn(one *record) *leaf {
	for _, l := range leaves("", one.fields) {
		use := useKey().MatchString(l.key) || strings.HasSuffix(strings.ToLower(l.key), "_date") && !notUse().MatchString(l.key)
		if at, ok := dateIn(l.text); ok && use && len(l.text) <= 25 && r.now.Sub(at).Hours() >= 24 {
			return &l
		}
	}
	return nil
}

var (
	keepFixed = juror.NewPattern(`(?i)\bwithout changing (?:the |its |their )?([a-z_', ]+?)(?:[.;(]|$)`)
	between   = juror.NewPattern(`,| and | or `)
	// ofWhom begins the name of a field: "the guest's name".
	ofWhom  = juror.NewPattern(`^(?:and |or )?(?:the |its |their |your )?(?:[a-z]+'s? )?`)
	changes = setOf(stem("update") + " " + stem("modify") + " " + stem("change") + " " + stem("edit"))
)

// fixedFieldChanged: "without changing the origin and destination", and a call changed one of them in the record.
func fixedFieldChanged(r *reading) []jury.Finding {
	return r.acting(keepFixed, func(verbs set, listed string) func(*call) string {
		fields := between().Split(strings.ToLower(listed), -1)
		for i, one := range fields {
			fields[i] = strings.ReplaceAll(ofWhom().ReplaceAllString(strings.TrimSpace(one), ""), " ", "_")
		}
		return func(k *call) string {
			if k.result == nil || !verbs[k.verb] && !changes[k.verb] {
				return ""
			}
			after, _ := decode(k.result.Text).(map[string]any)
			if scalar(after[k.aboutKey]) != k.about.text(k.aboutKey) {
				return ""
			}
			for _, field := range fields {
				was, is := endOf(k.about.fields, field), endOf(after, field)
				if field != "" && was != "" && is != "" && !sameValue(was, is) {
					return fmt.Sprintf("the %s was %s and is %s after the call", field, was, is)
				}
			}
			return ""
		}
	})
}

func sameValue(a, b string) bool {
	x, y := bare(a), bare(b)
	p, notA := strconv.ParseFloat(a, 64)
	q, notB := strconv.ParseFloat(b, 64)
	return x == y || notA == nil && notB == nil && p == q || len(x) > 2 && len(y) > 2 && (strings.HasPrefix(x, y) || strings.HasPrefix(y, x))
}

// endOf returns a field's value in a record. If the record has a list of steps with that field, it returns the last step's
// value; for an origin or start, the first step's. The last step of a round trip has not the journey's destination.
func endOf(fields map[string]any, name string) string {
	for _, key := range sortedKeys(fields) {
		steps, _ := fields[key].([]any)
		if len(steps) == 0 {
			continue
		}
		first, _ := steps[0].(map[string]any)
		step, _ := steps[len(steps)-1].(map[string]any)
		round := name == "destination" && scalar(first["origin"]) == scalar(step["destination"])
		if name == "origin" || name == "start" || name == "from" {
			step = first
		}
		if value := scalar(step[name]); value != "" && !round {
			return value
		}
	}
	return scalar(fields[name])
}

var (
	money        = juror.NewPattern(`(?i)(?:[$€£¥₽]|\b(?:usd|eur|gbp|chf|aud|cad|jpy)) ?(\d[\d.,]*)|(\d[\d.,]*) ?(?:[$€£¥₽円]|(?:dollars?|euros?|pounds?|usd|eur|gbp|chf|aud|cad|jpy|yen|rubles?|francs?)\b)|\b(\d[\d,]*\.\d{2})\b`)
	commaDecimal = juror.NewPattern(`,\d{2}$`)
	aboutMoney   = juror.NewPattern(`(?i)\b(amount|price|total|payment|balance|fee|cost|fare|charge|add up|mismatch|sum)s?\b`)
)

func amounts(text string) (list []float64) {
	for _, at := range money().FindAllStringSubmatch(text, -1) {
		digits := strings.TrimRight(at[1]+at[2]+at[3], ".,")
		if commaDecimal().MatchString(digits) { // 1.024,00
			digits = strings.ReplaceAll(strings.ReplaceAll(digits, ".", ""), ",", ".")
		}
		if n, err := strconv.ParseFloat(strings.ReplaceAll(digits, ",", ""), 64); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// makesUp reports whether an amount is one of the announced ones, or their sum, difference or multiple, in whole units or in
// hundredths.
func makesUp(amount float64, announced []float64) bool {
	near := func(x float64) bool { return math.Abs(amount-x) < 0.02 || math.Abs(amount-100*x) < 0.02 }
	sum := 0.0
	for i, a := range announced {
		sum += a
		for n := 1.0; n <= 12; n++ {
			if near(a*n) || near(a/n) {
				return true
			}
		}
		for _, b := range announced[:i] {
			if near(a+b) || near(math.Abs(a-b)) {
				return true
			}
		}
	}
	return len(announced) > 0 && near(sum)
}

// priceWrong: the user agreed to an amount, and the call fails because of the amount, or it is made again with another one
// although the user has not spoken since.
func priceWrong(r *reading) (found []jury.Finding) {
	var before *call
	for k := range r.eachCall() {
		if !k.mayAct() || k.result == nil {
			continue
		}
		last := before
		before = k
		a, announced := r.agreedOn(k)
		if a == nil {
			continue
		}
		if last != nil && last.failed && last.Name == k.Name && r.turn(last.msg) == r.turn(k.msg) {
			if l, ok := otherAmount(last, k, announced); ok && r.users.of(l.text) >= k.msg {
				found = append(found, jury.Finding{Message: k.msg, Quote: k.quoteValue(l), Severity: jury.Major, Explanation: fmt.Sprintf("%s had failed in message %d "+
					"and is called again with %s %s, without a word to the user, who had agreed to other amounts (message %d).", k.Name, last.msg, l.key, l.text, a.Number)})
				continue
			}
		}
		if k.failed && aboutMoney().MatchString(k.result.Text) && slices.ContainsFunc(k.args, func(l leaf) bool { return makesUp(l.amount(), announced) }) {
			found = append(found, jury.Finding{Message: k.msg, Quote: k.quoted(), Severity: jury.Major, Explanation: fmt.Sprintf(
				"The user had agreed to an amount announced in message %d, and the call with it fails for the amount (%q).", a.Number, clip(k.result.Text))})
		}
	}
	return found
}

// agreedOn returns the agent's message that the user answered last before a call, with anything but a no or a question, and
// the amounts of money in both.
func (r *reading) agreedOn(k *call) (*subject.Message, []float64) {
	u := r.before(k.msg, subject.User)
	if u == nil || saysNo(u.Text) || strings.Contains(u.Text, "?") {
		return nil, nil
	}
	a := r.before(u.Number, subject.Assistant)
	if a == nil {
		return nil, nil
	}
	return a, append(amounts(a.Text), amounts(u.Text)...)
}

// amount is the number that a value is, without its sign. What is no number makes up nothing.
func (l leaf) amount() float64 {
	n, err := strconv.ParseFloat(l.text, 64)
	if err != nil || n == 0 {
		return math.NaN()
	}
	return math.Abs(n)
}

// otherAmount returns the amount with which a call differs from an earlier one, which had an announced one there.
func otherAmount(before, k *call, announced []float64) (leaf, bool) {
	for i, l := range k.args[:min(len(k.args), len(before.args))] {
		if before.args[i].key == l.key && makesUp(before.args[i].amount(), announced) && !math.IsNaN(l.amount()) && !makesUp(l.amount(), announced) {
			return l, true
		}
	}
	return leaf{}, false
}

// repeatedCall: three identical calls in a turn of the user, with the same error each time.
func repeatedCall(r *reading) (found []jury.Finding) {
	type made struct{ name, args string }
	count, answer, turn := map[made]int{}, map[made]string{}, 0
	for k := range r.eachCall() {
		if t := r.turn(k.msg); t != turn {
			turn, count = t, map[made]int{}
		}
		if k.result == nil {
			continue
		}
		id := made{k.Name, k.Arguments}
		if k.Args != nil {
			id.args = string(k.Args)
		}
		if answer[id] != k.result.Text {
			count[id] = 0
		}
		count[id]++
		answer[id] = k.result.Text
		if count[id] == 3 && k.failed {
			found = append(found, jury.Finding{Message: k.msg, Quote: k.quoted(), Severity: jury.Major,
				Explanation: fmt.Sprintf("The third identical call to %s in a row with the same answer (%q).", k.Name, clip(k.result.Text))})
		}
	}
	return found
}

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
			return []jury.Finding{{Message: m.Number, Quote: clip(list[i]), Severity: jury.Major, Explanation: fmt.Sprintf("%s had answered with an error "+
				"in message %d (%q), no act succeeded, and the agent reports success.", last.Name, last.result.Number, clip(last.result.Text))}}
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
	return []jury.Finding{{Message: yes.Number, Quote: clip(strings.TrimSpace(yes.Text)), Severity: jury.Major, Explanation: fmt.Sprintf("The user agrees to "+
		"what the agent proposed in message %d (%q), and until the end of the log nothing is done.", proposal.Number, clip(lastSentence(proposal.Text)))}}
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
		`|(?:^|[.!?,;\n]\s*|\b(?:it|that|this|they|and|but) )still (?:(?:does|is|was|wo|did|has)(?:n'?t| not)\b` +
		`|not (?:there|here|arrived|through|showing|back|done|fixed|work\w*)\b)|(?:^|[.!?,;\n]\s*)(?:it'?s |that'?s |and |but )?(?:not working|no good)\b`)
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
	if u = r.before(len(r.c.Messages)+1, subject.User); u != nil {
		if a = r.before(u.Number, subject.Assistant); a != nil {
			return u, a
		}
	}
	return nil, nil
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
