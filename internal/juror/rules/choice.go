package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"jurat/internal/juror/phrase"
	"jurat/internal/pattern"
	"jurat/internal/subject"
	"jurat/jury"
)

// An offer is a group of things that a tool listed side by side, under the codes in one member of theirs.
type offer struct{ options map[string]option }

// An option holds the values that only the things with one code have within the group.
type option map[string]bool

// offersIn lists the offers of a result: for each array or map of objects, one by each member with codes.
func offersIn(m *subject.Message) []*offer {
	var offers []*offer
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			var list []map[string]any
			for _, name := range sortedKeys(v) {
				if object, ok := v[name].(map[string]any); ok && hasDigit(name) {
					list = append(list, withName(object, name))
				}
				walk(v[name])
			}
			offers = append(offers, offersOf(list)...)
		case []any:
			var list []map[string]any
			for _, item := range v {
				if object, ok := item.(map[string]any); ok {
					list = append(list, object)
				}
				walk(item)
			}
			offers = append(offers, offersOf(list)...)
		}
	}
	walk(decode(m.Text))
	return offers
}

// withName is an object of a map, with its name in the map as a member.
func withName(object map[string]any, name string) map[string]any {
	named := maps.Clone(object)
	named["\x00"] = name
	return named
}

// mostOffered is the length of a list that a person may have been shown.
const mostOffered = 60

func offersOf(list []map[string]any) []*offer {
	if len(list) < 2 || len(list) > mostOffered {
		return nil
	}
	var offers []*offer
	for _, member := range sortedKeys(list[0]) {
		o := &offer{map[string]option{}}
		for _, object := range list {
			if code := scalar(object[member]); isCode(code) {
				o.add(code, object)
			}
		}
		if len(o.options) > 1 {
			o.distinguish()
			offers = append(offers, o)
		}
	}
	return offers
}

// isCode reports whether a value names a thing for programs: without spaces, with a digit, a capital or a mark.
func isCode(s string) bool {
	_, date := phrase.Date(s)
	return len(s) >= 2 && len(s) <= 40 && !date && !strings.ContainsAny(s, " .:") && (hasDigit(s) || strings.ContainsAny(s, "_-"))
}

func (o *offer) add(code string, object map[string]any) {
	if o.options[code] == nil {
		o.options[code] = option{}
		for _, one := range codeParts(code) {
			o.options[code][phrase.Bare(one)] = true
		}
	}
	for _, l := range leaves("", object) {
		if l.text == "true" || l.text == "false" || len(l.text) > 60 {
			continue
		}
		for _, mark := range phrase.Marks(l.text) {
			if (len(mark) >= 3 || len(mark) == 2 && hasDigit(mark)) && !commonWord[mark] {
				o.options[code][mark] = true
			}
		}
	}
}

// distinguish leaves each option the marks that no other has.
func (o *offer) distinguish() {
	times := map[string]int{}
	for _, one := range o.options {
		for mark := range one {
			times[mark]++
		}
	}
	for _, one := range o.options {
		for mark := range one {
			if times[mark] > 1 {
				delete(one, mark)
			}
		}
	}
}

// spoken counts the marks of an option in a text's, and says whether one has a digit.
func (o option) spoken(marks map[string]bool) (n int, digit bool) {
	for mark := range o {
		if marks[mark] {
			n++
			digit = digit || hasDigit(mark)
		}
	}
	return n, digit
}

// A part is what a code joins: "F1-F2" joins two seats.
type part struct {
	offer *offer
	code  string
}

// parts lists the parts with a digit that only one code of the offer has.
func (o *offer) parts() map[string]part {
	found, twice := map[string]part{}, map[string]bool{}
	for code := range o.options {
		for _, one := range codeParts(code) {
			if _, there := found[one]; there {
				twice[one] = true
			}
			found[one] = part{o, code}
		}
	}
	maps.DeleteFunc(found, func(one string, _ part) bool { return twice[one] })
	return found
}

func codeParts(code string) []string {
	var list []string
	for _, one := range strings.FieldsFunc(code, phrase.IsPunctuation) {
		if len(one) >= 2 && len(one) < len(code) && hasDigit(one) && strings.ContainsFunc(one, unicode.IsLetter) {
			list = append(list, one)
		}
	}
	return list
}

// carriesPart reports whether a call has a code, or a part of it, in its arguments.
func carriesPart(k *call, code string) bool {
	if strings.Contains(k.Arguments, code) {
		return true
	}
	parts := codeParts(code)
	return slices.ContainsFunc(k.args, func(l leaf) bool { return slices.Contains(parts, l.text) })
}

// choiceNotKept: the user confirmed one of several things that a tool had listed, and the call carries another of them.
// What was confirmed are the words of the user and of the agent's question that these answer.
func choiceNotKept(r *reading) []jury.Finding {
	byID, parts := map[string]*offer{}, map[string]part{}
	for m, calls := range r.each() {
		if m.Role == subject.Tool {
			for _, o := range offersIn(m) {
				for code := range o.options {
					byID[code] = o
				}
				maps.Copy(parts, o.parts())
			}
		}
		for _, k := range calls {
			if k.kind != writeCall || k.failed {
				continue
			}
			for _, l := range k.args {
				o, code := byID[l.text], l.text
				if p, there := parts[l.text]; o == nil && there {
					o, code = p.offer, p.code
				}
				if o == nil {
					continue
				}
				if other := r.confirmedOf(o, k); other != "" && other != code && !carriesPart(k, other) {
					return []jury.Finding{{Message: k.msg, Quote: quoteValue(k, l), Severity: jury.Major,
						Explanation: fmt.Sprintf("The call carries %s %q; what the user confirmed speaks of %q, another of the things that the tool listed, and of none that is %q.", l.key, l.text, other, l.text)}}
				}
			}
		}
	}
	return nil
}

// confirmedOf returns the code of the one option of an offer that the user confirmed before a call: in their last
// message, or, if that is a yes, in the agent's question that it answers. It returns "" if there is none, or several.
func (r *reading) confirmedOf(o *offer, k *call) string {
	u := r.before(k.msg, subject.User)
	if u == nil || phrase.SaysNo(u.Text) || refusing.MatchString(phrase.Plain(u.Text)) {
		return ""
	}
	one, none := o.only(u.Text, 1)
	if !none {
		return one
	}
	a := r.before(u.Number, subject.Assistant)
	if a == nil {
		return ""
	}
	if !phrase.SaysYes(u.Text) && !agrees.MatchString(u.Text) {
		one, _ = o.only(chosen(a.Text, u.Text), 1)
		return one
	}
	if !asks(a.Text) {
		return ""
	}
	one, _ = o.only(a.Text, 2)
	return one
}

// alternatives are what an agent offers in one sentence, or in one list.
var alternatives = pattern.New(`(?i),? or |;|\n`)

// chosen returns the one alternative of an agent's words that the user's words repeat; "" if they repeat none, or several.
// Words that two alternatives have tell nothing.
func chosen(offered, said string) string {
	list := alternatives.Split(strings.TrimSpace(offered), -1)
	if len(list) < 2 {
		return ""
	}
	times := map[string]int{}
	for _, one := range list {
		for word := range phrase.Stems(one) {
			times[word]++
		}
	}
	words, found := phrase.Stems(said), ""
	for _, one := range list {
		for word := range phrase.Stems(one) {
			if len(word) < 4 || times[word] > 1 || !words[word] || commonWord[word] {
				continue
			}
			if found != "" && found != one {
				return ""
			}
			found = one
		}
	}
	return found
}

var refusing = pattern.New(`(?i)\b(not|neither|instead|rather|other|except|without|both|all)\b|n't\b`)

var agrees = pattern.New(`(?i)\b(yes|book it|do it|go ahead|please do|confirm(ed)?)\b`)

// only returns the code of the one option that a text speaks of, with enough marks or one that has a digit; "" if it
// speaks of several; and whether it speaks of none.
func (o *offer) only(text string, enough int) (code string, none bool) {
	marks := map[string]bool{}
	for _, mark := range phrase.Marks(text) {
		marks[mark] = true
	}
	strong, spoken := 0, 0
	for _, one := range slices.Sorted(maps.Keys(o.options)) {
		n, digit := o.options[one].spoken(marks)
		if n > 0 {
			spoken++
		}
		if n >= enough || digit {
			strong++
			code = one
		}
	}
	if spoken != 1 || strong != 1 {
		return "", spoken == 0
	}
	return code, false
}
