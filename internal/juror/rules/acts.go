package rules

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"jurat/internal/juror"
	"jurat/internal/subject"
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
	for _, k := range r.calls {
		if k.kind != writeCall || k.failed {
			continue
		}
		for _, a := range k.args {
			if k.targets(a) && r.given.of(a.text) >= k.at.Number && r.shown.of(a.text) >= k.at.turn() && !r.partsKnown(a.text, k.at.Number) {
				return found(k.at.Number, k.quoted(), jury.Major, "The call acts on %s %q, which neither the user nor any tool ever named.", a.key, clip(a.text))
			}
		}
	}
	return nil
}

// targets reports whether an argument names what the call acts on, and not what it makes.
func (k *call) targets(a leaf) bool {
	_, date := dateIn(a.text)
	switch mail := strings.Contains(a.text, "@"); {
	case !targetKey.MatchString(a.key) || ownChoice.MatchString(a.key) || len(a.text) < 5 || len(a.text) > 60:
		return false
	case !mail && !hasDigit(a.text): // a name can be written in many ways
		return false
	case a.key == "to" && !mail && !longNumber.MatchString(a.text): // the end of a span, or a place
		return false
	}
	// "In January" can be derived, and a call that creates a thing may name it.
	return !date && !(idKey.MatchString(a.key) && slices.ContainsFunc(k.words, func(w string) bool { return creates[w] }))
}

// partsKnown reports whether a value can be put together from what was given: an address of which a part is known, or an
// e-mail address that somebody spelled out.
func (r *reading) partsKnown(value string, n int) bool {
	mail := strings.Contains(value, "@")
	if !mail && !strings.Contains(value, " ") {
		return false
	}
	known, all := 0, 0
	for _, part := range strings.FieldsFunc(value, isPunctuation) {
		if len(part) < 3 || commonDomain[strings.ToLower(part)] {
			continue
		}
		all++
		if r.given.of(part) < n || r.shown.of(part) < n {
			known++
		}
	}
	return known > 0 && (known == all || !mail)
}

// acting tests the acts on known records against the sentences of the policy that a pattern matches, until one breaks a sentence.
// The function broken gets the stems of a sentence and what the pattern took of it last, and says why a call breaks it, or "".
func (r *reading) acting(p *juror.Pattern, broken func(k *call, verbs set, at string) string) []jury.Finding {
	for _, s := range r.house {
		at := p.FindStringSubmatch(plain(s))
		if at == nil {
			continue
		}
		verbs := stems(s)
		for _, k := range r.calls {
			if !k.mayAct() || k.failed || k.about == nil {
				continue
			}
			if why := broken(k, verbs, at[len(at)-1]); why != "" {
				return found(k.at.Number, k.quoted(), jury.Major, "The policy says %q; %s.", clip(s), why)
			}
		}
	}
	return nil
}

var (
	usedUp = juror.NewPattern(`(?i)\b(not (been )?(flown|used|departed|started|begun|expired|redeemed)|in the past|past [a-z]+s` +
		`|already (been )?(flown|used|departed|started|taken place|begun|expired|redeemed|checked in|past|over)` +
		`|(?:has|have) (?:already )?(passed|departed|started|begun|ended)|before (?:it|they|the [a-z]+) (?:starts?|begins?|departs?))\b`)
	useKey = juror.NewPattern(`(?i)^(date|departure.*|start.*|scheduled.*|appointment.*|event_?date|pick_?up.*|collection.*|begin.*|check_?in.*|time|starts?_?at` +
		`|valid_?(until|to)|expir.*)$`)
	// Names of dates on which something is made or known, and not used.
	notUse = juror.NewPattern(`(?i)birth|dob|creat|issu|order|purchas|book|join|sign|updat|last|since|due|regist|fil|open|transact|hire|return|paid|pay`)
)

// pastIgnored: the policy protects what has already been used, and a call with a verb of that sentence acts on a record with
// a date of use before the stated present. Dates of creation and birth do not count.
func pastIgnored(r *reading) []jury.Finding {
	if r.now.IsZero() {
		return nil
	}
	return r.acting(usedUp, func(k *call, verbs set, _ string) string {
		if k.kind != writeCall || !verbs[k.verb] {
			return ""
		}
		used, is := r.usedUpIn(k.about)
		if !is || slices.ContainsFunc(k.args, func(a leaf) bool {
			at, date := dateIn(a.text)
			return a.key == used.key || date && at.After(r.now)
		}) {
			return "" // the call itself sets another date
		}
		return "the record in message " + strconv.Itoa(k.about.msg) + " has the " + used.key + " " + used.text + ", before the stated present " + r.now.Format("2006-01-02")
	})
}

// usedUpIn returns the first date of use in a record that is a day or more before the present, and whether there is one.
func (r *reading) usedUpIn(one *record) (leaf, bool) {
	for _, l := range leaves("", one.fields) {
		use := useKey.MatchString(l.key) || strings.HasSuffix(strings.ToLower(l.key), "_date") && !notUse.MatchString(l.key)
		if at, ok := dateIn(l.text); ok && use && len(l.text) <= 25 && r.now.Sub(at).Hours() >= 24 {
			return l, true
		}
	}
	return leaf{}, false
}

var (
	keepFixed = juror.NewPattern(`(?i)\bwithout changing (?:the |its |their )?([a-z_', ]+?)(?:[.;(]|$)`)
	between   = juror.NewPattern(`,| and | or `)
	// ofWhom begins the name of a field: "the guest's name".
	ofWhom  = juror.NewPattern(`^(?:and |or )?(?:the |its |their |your )?(?:[a-z]+'s? )?`)
	changes = stems("update modify change edit")
)

// fixedFieldChanged: "without changing the origin and destination", and a call changed one of them in the record.
func fixedFieldChanged(r *reading) []jury.Finding {
	return r.acting(keepFixed, func(k *call, verbs set, listed string) string {
		if k.result == nil || !verbs[k.verb] && !changes[k.verb] {
			return ""
		}
		fields, _ := decode(k.result.Text).(map[string]any)
		after := record{fields: fields}
		if after.text(k.aboutKey) != k.about.text(k.aboutKey) {
			return ""
		}
		for _, name := range between.Split(strings.ToLower(listed), -1) {
			name = strings.ReplaceAll(ofWhom.ReplaceAllString(strings.TrimSpace(name), ""), " ", "_")
			if was, is := ends(k.about.fields, name), ends(after.fields, name); was != "" && is != "" && !sameValue(was, is) {
				return "the " + name + " was " + was + " and is " + is + " after the call"
			}
		}
		return ""
	})
}

// ends returns a field's value where a record ends: of a list of steps, such as legs of a journey, the last one's, and for an origin the
// first one's.
func ends(fields map[string]any, name string) (value string) {
	for _, l := range leaves("", fields) {
		if l.key == name && (value == "" || name != "origin" && name != "from" && name != "start") {
			value = l.text
		}
	}
	return value
}

// sameValue reports whether two values differ only in how they are written.
func sameValue(a, b string) bool {
	x, y := bare(a), bare(b)
	p, q := leaf{text: a}.amount(), leaf{text: b}.amount()
	return x == y || p == q || len(x) > 2 && len(y) > 2 && (strings.HasPrefix(x, y) || strings.HasPrefix(y, x))
}

var (
	money = juror.NewPattern(`(?i)(?:[$€£¥₽]|\b(?:usd|eur|gbp|chf|aud|cad|jpy)) ?(\d[\d.,]*)|\b(\d[\d,]*\.\d{2})\b` +
		`|(\d[\d.,]*) ?(?:[$€£¥₽円]|(?:dollars?|euros?|pounds?|usd|eur|gbp|chf|aud|cad|jpy|yen|rubles?|francs?)\b)`)
	aboutMoney = juror.NewPattern(`(?i)(?:\b|_)(amount|price|total|payment|balance|fee|cost|fare|charge|add up|mismatch|sum)s?(?:\b|_)`)
)

// amounts lists the amounts of money in a text.
func amounts(text string) (list []float64) {
	for _, at := range money.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimRight(at[1]+at[2]+at[3], ".,"), ",", ""), 64); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// priceWrong: the user agreed to an amount, the call with it fails because of the amount, and the agent does not come back with another.
func priceWrong(r *reading) (list []jury.Finding) {
	for _, k := range r.calls {
		if !k.failed || !k.mayAct() || !aboutMoney.MatchString(k.result.Text) {
			continue
		}
		a, announced := r.agreedOn(k.at.user)
		if !r.asksAgain(k) && slices.ContainsFunc(k.args, func(l leaf) bool {
			return slices.Contains(announced, l.amount()) || slices.Contains(announced, l.amount()/100)
		}) {
			list = append(list, found(k.at.Number, k.quoted(), jury.Major,
				"The user had agreed to an amount announced in message %d, and the call with it fails for the amount (%q).", a.Number, clip(k.result.Text))...)
		}
	}
	return list
}

// asksAgain reports whether the agent's next step after a call is to name an amount to the user.
func (r *reading) asksAgain(k *call) bool {
	next := slices.IndexFunc(r.steps[k.at.Number:], func(s *step) bool { return s.Role == subject.Assistant })
	return next >= 0 && !r.steps[k.at.Number+next].acts() && len(amounts(r.steps[k.at.Number+next].Text)) > 0
}

// agreedOn returns the agent's message that a user's message answers with anything but a no or a question, and the amounts of
// money in both.
func (r *reading) agreedOn(u *subject.Message) (*subject.Message, []float64) {
	if u == nil || saysNo(u.Text) || strings.Contains(u.Text, "?") {
		return nil, nil
	}
	a := r.steps[u.Number-1].agent
	if a == nil {
		return nil, nil
	}
	return a, append(amounts(a.Text), amounts(u.Text)...)
}

// amount is the number that a value is, without its sign. What is no number equals nothing.
func (l leaf) amount() float64 {
	n, err := strconv.ParseFloat(l.text, 64)
	if err != nil || n == 0 {
		return math.NaN()
	}
	return math.Abs(n)
}

// repeatedCall: three identical calls in a turn of the user, with the same error each time.
func repeatedCall(r *reading) (list []jury.Finding) {
	type made struct {
		name, args string
		turn       int
	}
	count, answer := map[made]int{}, map[made]string{}
	for _, k := range r.calls {
		if k.result == nil {
			continue
		}
		id := made{k.Name, k.Arguments, k.at.turn()}
		if k.Args != nil {
			id.args = string(k.Args)
		}
		if answer[id] != k.result.Text {
			count[id] = 0
		}
		count[id]++
		answer[id] = k.result.Text
		if count[id] == 3 && k.failed {
			list = append(list, found(k.at.Number, k.quoted(), jury.Major, "The third identical call to %s in a row with the same answer (%q).", k.Name, clip(k.result.Text))...)
		}
	}
	return list
}
