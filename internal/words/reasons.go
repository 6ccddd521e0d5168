package words

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"jurat/verify"
)

// Reason says in a language why a finding is what it is. In English it is the finding's own reason, in package verify's words. Those have
// values: names, digests, times. Other languages take these over as they are; text from a file is never translated.
func Reason(l Lang, f verify.Finding) string {
	t := Of(l)
	if t["reason.with"] == "" || f.Reason == "" {
		return f.Reason
	}
	said := t.reason(f)
	values := valuesIn(f.Reason)
	if len(values) == 0 || f.Status == verify.Proved {
		return said
	}
	return t.Say("reason.with", "said", said, "values", strings.Join(values, ", "))
}

func (t Texts) reason(f verify.Finding) string {
	if f.Status == verify.Proved {
		return cmp.Or(t.Say("reason.proved/"+string(f.Guarantee)+"/"+f.Rule), t.Say("reason.proved/"+string(f.Guarantee)))
	}
	if f.Rule == "" { // nothing was examined
		return t.Say("reason.unopened")
	}
	keys := []string{string(f.Guarantee) + "/" + f.Rule, f.Rule}
	if f.Status == verify.Refuted {
		keys = []string{keys[0] + "!", keys[0], keys[1] + "!", keys[1]}
	} else if slices.Contains(ofReplay, f.Rule) && slices.Contains(aboutTrials, f.Guarantee) {
		keys = []string{"followed?"} // one act refuted another guarantee, and the rest could not be followed
	}
	for _, key := range keys {
		if said := t.Say("reason." + key); said != "" {
			return said
		}
	}
	return t.Say("reason.other", "rule", strconv.Quote(f.Rule))
}

var (
	ofReplay    = []string{"answer", "body", "completion", "consensus", "levels", "position", "previous", "request", "sequence", "settings", "simultaneity", "submission", "verdict"}
	aboutTrials = []verify.Guarantee{verify.Completeness, verify.Simultaneity, verify.Verdict}
)

// mostValues is how many values of a reason are taken over.
const mostValues = 6

// valuesIn returns the values in an English reason, each once: quoted texts, digests, record ids and times.
func valuesIn(reason string) []string {
	var found []string
	add := func(value string) {
		if value != "" && len(found) < mostValues && !slices.Contains(found, value) {
			found = append(found, value)
		}
	}
	for reason != "" {
		if quoted, err := strconv.QuotedPrefix(reason); err == nil && reason[0] == '"' {
			add(quoted)
			reason = reason[len(quoted):]
			continue
		}
		n := strings.IndexAny(reason, " \"")
		switch {
		case n < 0:
			n = len(reason)
		case n == 0:
			n = 1
		}
		if word := strings.Trim(reason[:n], ",;:.()"); isValue(word) {
			add(word)
		}
		reason = reason[n:]
	}
	return found
}

// isValue recognises a digest, a record id and a time, by its form.
func isValue(word string) bool {
	switch {
	case strings.HasPrefix(word, "sha256:"):
		return true
	case len(word) == 36:
		return strings.Count(word, "-") == 4
	}
	return len(word) >= len("2026-01-01T00:00:00Z") && word[4] == '-' && word[10] == 'T' && strings.HasSuffix(word, "Z")
}
