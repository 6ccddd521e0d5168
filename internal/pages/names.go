package pages

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/subject"
	"jurat/internal/words"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
)

// kinds has the kind of each type of values that have a name, as keys of texts begin.
var kinds = map[reflect.Type]string{
	reflect.TypeFor[verify.Guarantee]():        "guarantee",
	reflect.TypeFor[verify.Status]():           "status",
	reflect.TypeFor[trust.Clock]():             "clock",
	reflect.TypeFor[evidence.ActionType]():     "action",
	reflect.TypeFor[evidence.Role]():           "role",
	reflect.TypeFor[evidence.ApprovalStatus](): "approval",
	reflect.TypeFor[jury.Position]():           "position",
	reflect.TypeFor[jury.Method]():             "method",
	reflect.TypeFor[jury.Severity]():           "severity",
	reflect.TypeFor[jury.ConsensusStatus]():    "consensus",
	reflect.TypeFor[jury.AbsenceReason]():      "absence",
	reflect.TypeFor[subject.Role]():            "speaker",
	reflect.TypeFor[api.State]():               "state",
	reflect.TypeFor[Mark]():                    "mark",
}

// known returns the name of a record's value in a language, or "" if it has none.
func known(lang words.Lang, value any) string {
	return words.OfPages(lang).Say(kinds[reflect.TypeOf(value)] + "." + fmt.Sprint(value))
}

// name returns the name of a record's value in a language. It returns values without a name unchanged.
func name(lang words.Lang, value any) string {
	return cmp.Or(known(lang, value), plain(fmt.Sprint(value)))
}

// class returns a class of the style sheet for a value with a name; "" for others, so that records cannot invent
// classes.
func class(value any) string {
	if known(words.English, value) == "" {
		return "unknown"
	}
	return strings.ReplaceAll(fmt.Sprint(value), " ", "_")
}

// Choose returns the language of a page: the chosen one, or else the first available one of an Accept-Language
// header.
func Choose(chosen, accept string) words.Lang {
	if slices.Contains(words.Langs(), words.Lang(chosen)) {
		return words.Lang(chosen)
	}
	best, weight := words.English, 0.0
	for part := range strings.SplitSeq(accept[:min(len(accept), 1000)], ",") {
		tag, parameters, _ := strings.Cut(part, ";")
		primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		if q := quality(parameters); q > weight && slices.Contains(words.Langs(), words.Lang(primary)) {
			best, weight = words.Lang(primary), q
		}
	}
	return best
}

// quality reads the weight of a language (RFC 9110, section 12.4.2). The default is 1.
func quality(parameters string) float64 {
	value, is := strings.CutPrefix(strings.TrimSpace(parameters), "q=")
	if !is {
		return 1
	}
	var q float64
	if _, err := fmt.Sscanf(value, "%g", &q); err != nil || q < 0 || q > 1 {
		return 0
	}
	return q
}
