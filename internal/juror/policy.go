package juror

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"jurat/internal/subject"
	"jurat/jury"
)

var (
	oneCall   = regexp.MustCompile(`(?i)\b(only (make|call|use) (one|a single) (tool|function)|one (tool|function)( call)? at a time|single tool call (at a time|per))`)
	notBoth   = regexp.MustCompile(`(?i)(if you (make|take) a tool call,? (you )?(should|must|do) not (respond|reply|answer|generate)|not (respond|reply) to the user (simultaneously|at the same time)|do not (combine|mix) (a )?(tool call|response))`)
	exception = regexp.MustCompile(`(?i)\b(unless|except|without|if|until|before|when|while|other than|only|more than|over|above|exceed\w*|outside|after|any (information|knowledge))\b`)
)

// oneStepAtATime: the policy wants one call per turn, or no words beside a call.
func oneStepAtATime(r *reading) []jury.Finding {
	one, both := oneCall.MatchString(r.policy), notBoth.MatchString(r.policy)
	for m := range r.each(subject.Assistant) {
		switch {
		case one && len(m.ToolCalls) > 1:
			return []jury.Finding{{Message: m.Number, Quote: m.ToolCalls[1].Name, Severity: jury.Minor,
				Explanation: fmt.Sprintf("The policy allows one tool call at a time; this message makes %d.", len(m.ToolCalls))}}
		case both && len(m.ToolCalls) > 0 && strings.TrimSpace(m.Text) != "":
			return []jury.Finding{{Message: m.Number, Quote: clip(strings.TrimSpace(m.Text)), Severity: jury.Minor,
				Explanation: "The policy wants the agent either to speak or to call a tool; here it does both at once."}}
		}
	}
	return nil
}

var atMost = regexp.MustCompile(`(?i)\b(?:at most|up to|maximum of|no more than|not more than|limit of) (\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten) ((?:[a-z-]+ ){0,2}?)([a-z]+)\b`)

// limitExceeded: "at most five passengers", and a call with a list of six under a key of that name. Only lists count:
// a bare number may mean anything.
func limitExceeded(r *reading) []jury.Finding {
	for _, s := range r.house() {
		for _, at := range atMost.FindAllStringSubmatch(s, -1) {
			limit := numerals[strings.ToLower(at[1])]
			if limit == 0 {
				limit, _ = strconv.Atoi(at[1])
			}
			if at[2] != "" {
				continue // "at most one credit card": the adjective tells kinds apart, which a list does not show
			}
			if k, n := r.longerList(stem(strings.ToLower(at[3])), limit); k != nil {
				return []jury.Finding{{Message: k.msg, Quote: k.quoted(), Severity: jury.Major,
					Explanation: fmt.Sprintf("The policy says %q; this call has %d.", clip(s), n)}}
			}
		}
	}
	return nil
}

// longerList returns the first call with a list under a noun that is longer than a limit, and its length.
func (r *reading) longerList(noun string, limit int) (*call, int) {
	for k := range r.eachCall() {
		if k.kind != writeCall || k.failed {
			continue
		}
		if n := listUnder(k.object, noun); n > limit {
			return k, n
		}
	}
	return nil, 0
}

func listUnder(object map[string]any, noun string) int {
	for _, name := range sortedKeys(object) {
		if list, ok := object[name].([]any); ok && keyHas(name, noun) {
			return len(list)
		}
	}
	return 0
}

var onlyStatus = regexp.MustCompile(`(?i)\b(?:only|must|if|unless)\b[^.\n]{0,80}\bstatus(?: is| of|:|=)?(?: be)? ["'“]?([a-z_ ]{3,20}?)["'”]?(?:[.,;)]|$| and| or|\s)`)
var onlyKind = regexp.MustCompile(`(?i)\b(?:can|may|must|should)?\s*only (?:be )?([a-z]+)(?:ed|led)?\b[^.\n]{0,40}?["'“]?\b(pending|delivered|active|shipped|processed|unopened|open|draft)\b`)

// statusIgnored: "only a pending order may be cancelled", and a call of that verb on a record of another status.
func statusIgnored(r *reading) []jury.Finding {
	for _, s := range r.house() {
		allowed := statusIn(s)
		if allowed == "" {
			continue
		}
		for k := range r.eachCall() {
			if k.kind != writeCall || k.failed || !r.lexicon(s).hasVerb(k) {
				continue
			}
			about := r.recordFor(k)
			if about == nil {
				continue
			}
			have := strings.ToLower(about.text("status"))
			if have == "" || strings.Contains(have, allowed) || strings.Contains(strings.ToLower(s), have) || !r.lexicon(s).namesNoun(k) {
				continue
			}
			return []jury.Finding{{Message: k.msg, Quote: k.quoted(), Severity: jury.Major,
				Explanation: fmt.Sprintf("The policy says %q; the record in message %d has the status %q.", clip(s), about.msg, have)}}
		}
	}
	return nil
}

func statusIn(s string) string {
	if at := onlyStatus.FindStringSubmatch(s); at != nil {
		return strings.ToLower(strings.TrimSpace(at[1]))
	}
	if at := onlyKind.FindStringSubmatch(s); at != nil && !strings.Contains(strings.ToLower(s), " not ") {
		return strings.ToLower(at[2])
	}
	return ""
}

// namesNoun reports whether the text names a noun of the tool's name, where the name has one.
func (l lexicon) namesNoun(k *call) bool {
	nouns := 0
	for _, word := range k.words {
		if familyOf[word] != "" || len(word) < 4 || statuses[word] {
			continue
		}
		nouns++
		if l.stems[stem(word)] {
			return true
		}
	}
	return nouns == 0
}

// ofPayment tells keys that name a means to pay with: no act is about those.
var ofPayment = regexp.MustCompile(`(?i)payment|card|method`)

var usedUp = regexp.MustCompile(`(?i)\b(not (been )?(flown|used|departed|started|begun|expired|redeemed)|already (been )?(flown|used|departed|started|taken place|begun|expired|redeemed|checked in)|in the past|has (passed|departed|started)|past (appointments|bookings|events|reservations))\b`)

// pastIgnored: the policy protects what has already been used, and the call acts on a record with a date of use before
// the stated present. Dates of creation and birth do not count.
func pastIgnored(r *reading) []jury.Finding {
	i := slices.IndexFunc(r.sentences, usedUp.MatchString)
	if i < 0 || r.now.IsZero() {
		return nil
	}
	words := lexiconOf(r.paragraph(i))
	for k := range r.eachCall() {
		if k.kind != writeCall || k.failed || !words.hasVerb(k) {
			continue
		}
		about := r.recordFor(k)
		if about == nil {
			continue
		}
		for _, l := range r.usedUpIn(about) {
			if slices.ContainsFunc(k.args, func(a leaf) bool { return a.key == l.key }) {
				continue
			}
			return []jury.Finding{{Message: k.msg, Quote: k.quoted(), Severity: jury.Major,
				Explanation: fmt.Sprintf("The policy says %q; the record in message %d has the %s %s, before the stated present %s.", clip(r.sentences[i]), about.msg, l.key, l.text, r.now.Format("2006-01-02"))}}
		}
	}
	return nil
}

// usedUpIn lists the dates of use in a record that lie before the present.
func (r *reading) usedUpIn(one *record) []leaf {
	return once(&r.memo.used, one, func() []leaf {
		return slices.DeleteFunc(leaves("", one.fields), func(l leaf) bool {
			at, ok := dateIn(l.text)
			return !ok || len(l.text) > 25 || !useKey.MatchString(l.key) || r.now.Sub(at).Hours() < 24
		})
	})
}

var useKey = regexp.MustCompile(`(?i)^(date|departure.*|start.*|scheduled.*|appointment.*|event_?date|check_?in.*|time|starts?_?at|valid_?(until|to)|expir.*)$`)

// paragraph is a sentence of the policy with the one before it, where the verb often stands.
func (r *reading) paragraph(i int) string {
	return r.sentences[max(0, i-1)] + " " + r.sentences[i]
}

var keepFixed = regexp.MustCompile(`(?i)\bwithout changing (?:the |its |their )?([a-z_, ]+?)(?:[.;(]|$)`)

// fixedFieldChanged: "without changing the origin and destination", and the record before and after a call differs
// there. In a list of steps the origin is the first step's and the destination the last one's.
func fixedFieldChanged(r *reading) []jury.Finding {
	for _, s := range r.house() {
		at := keepFixed.FindStringSubmatch(s)
		if at == nil {
			continue
		}
		fields := fieldsOf(at[1])
		for k := range r.eachCall() {
			if k.kind != writeCall || !k.done() || !r.lexicon(s).families[k.family] {
				continue
			}
			if field, was, is := r.changed(fields, k); field != "" {
				return []jury.Finding{{Message: k.msg, Quote: k.quoted(), Severity: jury.Major,
					Explanation: fmt.Sprintf("The policy says %q; the %s was %s and is %s after the call.", clip(s), field, was, is)}}
			}
		}
	}
	return nil
}

// changed returns the first of some fields that a call changed in its record, with its values before and after.
func (r *reading) changed(fields []string, k *call) (field, was, is string) {
	before, after := r.recordFor(k), r.answer(k)
	if before == nil || after == nil || (record{fields: after}).id() != before.id() {
		return "", "", ""
	}
	for _, field := range fields {
		was, is := endpoint(before.fields, field), endpoint(after, field)
		if was != "" && is != "" && was != is {
			return field, was, is
		}
	}
	return "", "", ""
}

// answer is the object that a call returned, if it did.
func (r *reading) answer(k *call) map[string]any {
	return once(&r.memo.answers, k, func() map[string]any {
		object, _ := decode(k.result.Text).(map[string]any)
		return object
	})
}

func fieldsOf(list string) []string {
	var fields []string
	for _, one := range regexp.MustCompile(`,| and | or `).Split(strings.ToLower(list), -1) {
		one = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(one), "and ")), "the "))
		if one != "" && len(one) <= 30 {
			fields = append(fields, strings.ReplaceAll(one, " ", "_"))
		}
	}
	return fields
}

// endpoint is a field's value: in the steps of the record, where there are any, else at its top.
func endpoint(fields map[string]any, name string) string {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		steps, ok := fields[key].([]any)
		if !ok || len(steps) == 0 {
			continue
		}
		step := steps[len(steps)-1]
		if name == "origin" || name == "start" || name == "from" {
			step = steps[0]
		}
		if object, ok := step.(map[string]any); ok {
			if v := (record{fields: object}).text(name); v != "" && closed(fields, name, steps) {
				return v
			}
		}
	}
	return record{fields: fields}.text(name)
}

// closed leaves out round trips, whose last step ends where the first began.
func closed(fields map[string]any, name string, steps []any) bool {
	first, _ := steps[0].(map[string]any)
	last, _ := steps[len(steps)-1].(map[string]any)
	return name != "destination" || record{fields: first}.text("origin") != record{fields: last}.text("destination")
}
