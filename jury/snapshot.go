package jury

import (
	"slices"
	"strings"
)

// IsModel reports whether the model that a provider reported is the configured one: the same name, or a snapshot of it. What a gateway wants
// before and after a model's name makes no other model: often the bare name comes back.
func IsModel(model, configured string) bool {
	names := []string{configured, configured[strings.LastIndexByte(configured, '/')+1:]}
	for { // Amazon Bedrock: us.anthropic.NAME
		word, rest, found := strings.Cut(names[len(names)-1], ".")
		if !found || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz-") != "" {
			break
		}
		names = append(names, rest)
	}
	return slices.ContainsFunc(names, func(name string) bool { return isNamed(model, name) || isNamed(model, withoutRoute(name)) })
}

// withoutRoute returns a name without the suffix by which a gateway chooses how to serve the model, which begins with a letter (:free,
// :fireworks-ai), or without Bedrock's -v1:0. Other tags belong to the model (llama3.1:70b), and so does each of several (ft:NAME:acme).
func withoutRoute(name string) string {
	base, suffix, found := strings.Cut(name, ":")
	if !found || suffix == "" || strings.Contains(suffix, ":") {
		return name
	}
	if c := suffix[0] | 0x20; c >= 'a' && c <= 'z' {
		return base
	}
	if i := strings.LastIndex(base, "-v"); i >= 0 && isNumber(base[i+len("-v"):]) && isNumber(suffix) {
		return base[:i]
	}
	return name
}

func isNumber(v string) bool { return v != "" && strings.Trim(v, "0123456789") == "" }

// isNamed reports whether a model has this name, or is a snapshot of the model that has it.
func isNamed(model, configured string) bool {
	alias := configured
	for _, ending := range []string{"-latest", ":latest"} {
		alias = strings.TrimSuffix(alias, ending)
	}
	rest, named := strings.CutPrefix(model, alias)
	return alias != "" && (model == configured || named && isSnapshot(rest))
}

// OtherModel reports whether a provider reported a model, and it is not the configured one.
func OtherModel(model, configured string) bool {
	return model != "" && model != Unreported && configured != "" && !IsModel(model, configured)
}

// isSnapshot reports whether a text is what providers append to a model's name to say which version answered: a date
// (gpt-4o-2024-11-20, claude-haiku-4-5-20251001, command-r-08-2024, gpt-4-0613, mistral-large-2407), a revision
// (gemini-2.0-flash-001) or latest. Any other suffix names another model: gpt-4o-mini is not a version of gpt-4o. A
// suffix after @ is always a version. It is not a regular expression, because verifiers link no package for them: the
// portal's program is smaller by 0.5 MB, 0.1 MB packed.
func isSnapshot(text string) bool {
	switch {
	case text == "":
		return true
	case text[0] == '@':
		return len(text) > 1 && strings.Trim(text[1:], "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-") == ""
	case text[0] != '-' && text[0] != ':':
		return false
	}
	v := text[1:]
	return v == "latest" || isDate(v) || len(v) == 3 && between(v, "000", "099")
}

// isDate reports whether a text is a date as providers write it.
func isDate(v string) bool {
	switch len(v) {
	case len("2024-11-20"):
		return isYear(v[:4]) && v[4] == '-' && isMonth(v[5:7]) && v[7] == '-' && isDay(v[8:])
	case len("20251001"):
		return isYear(v[:4]) && isMonth(v[4:6]) && isDay(v[6:])
	case len("08-2024"):
		return isMonth(v[:2]) && v[2] == '-' && isYear(v[3:])
	case len("11-20"):
		return isMonth(v[:2]) && v[2] == '-' && isDay(v[3:])
	case len("0613"): // or 2407, a year and a month
		return isMonth(v[:2]) && isDay(v[2:]) || between(v[:2], "20", "99") && isMonth(v[2:])
	}
	return false
}

func isYear(v string) bool  { return between(v, "2000", "2099") }
func isMonth(v string) bool { return between(v, "01", "12") }
func isDay(v string) bool   { return between(v, "01", "31") }

// between reports whether a text has digits only, and is from first to last, which are as long as it.
func between(v, first, last string) bool {
	return strings.Trim(v, "0123456789") == "" && first <= v && v <= last
}
