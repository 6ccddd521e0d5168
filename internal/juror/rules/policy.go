package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"jurat/internal/juror/phrase"
	"jurat/internal/pattern"
	"jurat/jury"
)

var (
	oneCall  = pattern.New(`(?i)\b(?:only (?:make|call|use) (?:one|a single) (?:tool|function)|(?:one|a single) (?:tool|function)(?: call)? (?:at a time|per|each)|(?:make|use|call) (?:at most |only )?(?:a single|one) (?:tool|function)(?: call)?\b|single (?:tool|function) call (?:at a time|per)|never (?:make |use )?(?:several|two|multiple|parallel) (?:tool |function )?calls?)`)
	toolWord = pattern.New(`(?i)\b(?:tool|function)(?: call)?s?\b`)
	sayWord  = pattern.New(`(?i)\b(?:respond|reply|answer|messages?|write|speak|talk|say|text|words|response)\b`)
	notWord  = pattern.New(`(?i)\b(?:not|never|no|either|don't|mustn't|without)\b`)
	together = pattern.New(`(?i)\b(?:same (?:time|turn|message|step|response)|simultaneously|at once|together|not both|combine|mix|if you (?:make|take|call|use) (?:a |one )?(?:tool|function))\b`)
)

// eitherOr reports whether a sentence of the policy wants either words or a call.
func eitherOr(s string) bool {
	return toolWord.MatchString(s) && sayWord.MatchString(s) && notWord.MatchString(s) && together.MatchString(s)
}

// oneStepAtATime: the policy requires one call per turn, or no words beside a call.
func oneStepAtATime(r *reading) []jury.Finding {
	one, both := slices.ContainsFunc(r.house, oneCall.MatchString), slices.ContainsFunc(r.house, eitherOr)
	for m, calls := range r.each() {
		switch {
		case one && len(calls) > 1:
			return []jury.Finding{{Message: m.Number, Quote: calls[1].Name, Severity: jury.Minor,
				Explanation: fmt.Sprintf("The policy allows one tool call at a time; this message makes %d.", len(calls))}}
		case both && len(calls) > 0 && strings.TrimSpace(m.Text) != "":
			return []jury.Finding{{Message: m.Number, Quote: clip(strings.TrimSpace(m.Text)), Severity: jury.Minor,
				Explanation: "The policy wants the agent either to speak or to call a tool; here it does both at once."}}
		}
	}
	return nil
}

// acting tests the acts that a sentence of the policy may be about, until one breaks it. It calls breaks with each
// sentence that the pattern matches, and with the match.
func (r *reading) acting(p *pattern.Pattern, breaks func(sentence string, at []string) func(*call) (why string)) []jury.Finding {
	for _, s := range r.house {
		at := p.FindStringSubmatch(phrase.Plain(s))
		if at == nil {
			continue
		}
		why := breaks(s, at)
		if why == nil {
			continue
		}
		for k := range r.eachCall() {
			if !k.mayAct() || k.failed {
				continue
			}
			if broken := why(k); broken != "" {
				return []jury.Finding{{Message: k.msg, Quote: k.quoted(), Severity: jury.Major,
					Explanation: fmt.Sprintf("The policy says %q; %s.", clip(s), broken)}}
			}
		}
	}
	return nil
}

var atMost = pattern.New(`(?i)\b(?:at most|up to|maximum of|no more than|limit of|(?:not|never|don't|cannot|can't)\b[^.\n]{0,40}\bmore than) (` + phrase.Numerals + `) ([a-z]+)\b`)

// limitExceeded: "at most five passengers", and a call has a list of six under a key of that name. Only lists count,
// because a bare number can mean anything.
func limitExceeded(r *reading) []jury.Finding {
	return r.acting(atMost, func(_ string, at []string) func(*call) string {
		most, noun := phrase.Numeral(at[1]), phrase.Stem(at[2])
		return func(k *call) string {
			for _, name := range sortedKeys(k.object) {
				list, ok := k.object[name].([]any)
				named := slices.ContainsFunc(phrase.NameWords(name), func(word string) bool { return phrase.Stem(word) == noun })
				if ok && named && len(list) > most {
					return fmt.Sprintf("this call has %d", len(list))
				}
			}
			return ""
		}
	})
}

var (
	usedUp = pattern.New(`(?i)\b(not (been )?(flown|used|departed|started|begun|expired|redeemed)|already (been )?(flown|used|departed|started|taken place|begun|expired|redeemed|checked in|past|over)|in the past|past [a-z]+s|(?:has|have) (?:already )?(passed|departed|started|begun|ended)|before (?:it|they|the [a-z]+) (?:starts?|begins?|departs?))\b`)
	useKey = pattern.New(`(?i)^(date|departure.*|start.*|scheduled.*|appointment.*|event_?date|pick_?up.*|collection.*|begin.*|check_?in.*|time|starts?_?at|valid_?(until|to)|expir.*)$`)
	// Names of dates on which something is made or known, and not used.
	notUse = pattern.New(`(?i)birth|dob|creat|issu|order|purchas|book|join|sign|updat|last|since|due|regist|fil|open|transact|hire|return|paid|pay`)
)

// pastIgnored: the policy protects what has already been used, and a call with a verb of that sentence acts on a
// record with a date of use before the stated present. Dates of creation and birth do not count.
func pastIgnored(r *reading) []jury.Finding {
	if r.now.IsZero() {
		return nil
	}
	old := map[*record]*leaf{}
	return r.acting(usedUp, func(s string, _ []string) func(*call) string {
		verbs := phrase.Stems(s)
		return func(k *call) string {
			if k.kind != writeCall || k.about == nil || !verbs[k.verb] {
				return ""
			}
			if _, looked := old[k.about]; !looked {
				old[k.about] = r.usedUpIn(k.about)
			}
			l := old[k.about]
			if l == nil || slices.ContainsFunc(k.args, func(a leaf) bool {
				at, date := phrase.Date(a.text)
				return a.key == l.key || date && at.After(r.now)
			}) {
				return "" // the call itself sets another date
			}
			return fmt.Sprintf("the record in message %d has the %s %s, before the stated present %s", k.about.msg, l.key, l.text, r.now.Format("2006-01-02"))
		}
	})
}

// usedUpIn returns the first date of use in a record that is a day or more before the present; nil if there is none.
func (r *reading) usedUpIn(one *record) *leaf {
	for _, l := range leaves("", one.fields) {
		if at, ok := phrase.Date(l.text); ok && len(l.text) <= 25 && isUse(l.key) && r.now.Sub(at).Hours() >= 24 {
			return &l
		}
	}
	return nil
}

// isUse reports whether a member's name is that of a date of use.
func isUse(key string) bool {
	return useKey.MatchString(key) || strings.HasSuffix(strings.ToLower(key), "_date") && !notUse.MatchString(key)
}

var keepFixed = pattern.New(`(?i)\bwithout changing (?:the |its |their )?([a-z_', ]+?)(?:[.;(]|$)`)

// fixedFieldChanged: "without changing the origin and destination", and a call changed one of them in the record.
func fixedFieldChanged(r *reading) []jury.Finding {
	answers := map[*call]map[string]any{}
	return r.acting(keepFixed, func(s string, at []string) func(*call) string {
		verbs, fields := phrase.Stems(s), fieldsOf(at[1])
		return func(k *call) string {
			if k.about == nil || !k.done() || !verbs[k.verb] && !changes[k.verb] {
				return ""
			}
			if _, read := answers[k]; !read {
				answers[k], _ = decode(k.result.Text).(map[string]any)
			}
			after := answers[k]
			if scalar(after[k.aboutKey]) != k.about.text(k.aboutKey) {
				return ""
			}
			for _, field := range fields {
				was, is := endOf(k.about.fields, field), endOf(after, field)
				if was != "" && is != "" && !sameValue(was, is) {
					return fmt.Sprintf("the %s was %s and is %s after the call", field, was, is)
				}
			}
			return ""
		}
	})
}

// sameValue reports whether two values differ only in how they are written.
func sameValue(a, b string) bool {
	x, y := phrase.Bare(a), phrase.Bare(b)
	p, notA := strconv.ParseFloat(a, 64)
	q, notB := strconv.ParseFloat(b, 64)
	return x == y || notA == nil && notB == nil && p == q || len(x) > 2 && len(y) > 2 && (strings.HasPrefix(x, y) || strings.HasPrefix(y, x))
}

// changes are the stems of verbs for a change of any kind.
var changes = map[string]bool{phrase.Stem("update"): true, phrase.Stem("modify"): true, phrase.Stem("change"): true, phrase.Stem("edit"): true}

// ofWhom begins the name of a field: "the guest's name".
var ofWhom = pattern.New(`^(?:and |or )?(?:the |its |their |your )?(?:[a-z]+'s? )?`)

var between = pattern.New(`,| and | or `)

func fieldsOf(list string) []string {
	var fields []string
	for _, one := range between.Split(strings.ToLower(list), -1) {
		one = ofWhom.ReplaceAllString(strings.TrimSpace(one), "")
		if one != "" && len(one) <= 30 {
			fields = append(fields, strings.ReplaceAll(one, " ", "_"))
		}
	}
	return fields
}

// endOf returns a field's value in a record. If the record has a list of steps with that field, it returns the last
// step's value; for an origin or start, the first step's.
func endOf(fields map[string]any, name string) string {
	for _, key := range sortedKeys(fields) {
		steps, ok := fields[key].([]any)
		if !ok || len(steps) == 0 {
			continue
		}
		step := steps[len(steps)-1]
		if name == "origin" || name == "start" || name == "from" {
			step = steps[0]
		}
		if object, ok := step.(map[string]any); ok && scalar(object[name]) != "" && !roundTrip(name, steps) {
			return scalar(object[name])
		}
	}
	return scalar(fields[name])
}

// roundTrip reports whether the last step ends where the first began. Then the last step's destination is not the
// journey's.
func roundTrip(name string, steps []any) bool {
	first, _ := steps[0].(map[string]any)
	last, _ := steps[len(steps)-1].(map[string]any)
	return name == "destination" && scalar(first["origin"]) == scalar(last["destination"])
}
