package rules

import (
	"fmt"
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
	useKey = juror.NewPattern(`(?i)^(date|departure.*|start.*|scheduled.*|appointment.*|event_?date|pick_?up.*|collection.*|begin.*|check_?in.*|time|starts?_?at|valid_?(until|to)|expir.*)$`)
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
				was, is := k.about.text(field), scalar(after[field])
				if was != "" && is != "" && !sameValue(was, is) {
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
				found = append(found, jury.Finding{Message: k.msg, Quote: k.quoteValue(l), Severity: jury.Major,
					Explanation: fmt.Sprintf("%s had failed in message %d and is called again with %s %s, without a word to the user, who had agreed to other amounts (message %d).", k.Name, last.msg, l.key, l.text, a.Number)})
				continue
			}
		}
		if k.failed && aboutMoney().MatchString(k.result.Text) && slices.ContainsFunc(k.args, func(l leaf) bool { return makesUp(l.amount(), announced) }) {
			found = append(found, jury.Finding{Message: k.msg, Quote: k.quoted(), Severity: jury.Major,
				Explanation: fmt.Sprintf("The user had agreed to an amount announced in message %d, and the call with it fails for the amount (%q).", a.Number, clip(k.result.Text))})
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
	for i, l := range k.args {
		if i < len(before.args) && before.args[i].key == l.key && makesUp(before.args[i].amount(), announced) && !math.IsNaN(l.amount()) && !makesUp(l.amount(), announced) {
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
