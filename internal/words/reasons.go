package words

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"jurat/verify"
)

// Reasons are the reasons of verification in a language other than English. A key is a rule; GUARANTEE/RULE where the rule means something
// else there; the same with "!" where the answer is that it is refuted; proved/GUARANTEE, and proved/GUARANTEE/RULE; "with" for a reason with values; "unopened" where
// no rule was examined, because the file cannot be opened; and "" for a rule that has none. The sentences of English are those of package verify.
//
// A reason in English has values: names, digests, times. Reason takes them over as they are. It never translates text from a file.
type Reasons map[string]Sentence

// Reason says in a language why a finding is what it is. In English it is the finding's own reason.
func Reason(l Lang, f verify.Finding) string {
	all := in(l).reasons()
	if all == nil || f.Reason == "" {
		return f.Reason
	}
	said := all.of(f)
	values := valuesIn(f.Reason)
	if len(values) == 0 || f.Status == verify.Proved {
		return said
	}
	return all["with"].With("said", said, "values", strings.Join(values, ", "))
}

func (r Reasons) of(f verify.Finding) string {
	if f.Status == verify.Proved {
		return string(cmp.Or(r["proved/"+string(f.Guarantee)+"/"+f.Rule], r["proved/"+string(f.Guarantee)]))
	}
	if f.Rule == "" { // nothing was examined
		return string(r["unopened"])
	}
	keys := []string{string(f.Guarantee) + "/" + f.Rule, f.Rule}
	if f.Status == verify.Refuted {
		keys = []string{keys[0] + "!", keys[0], keys[1] + "!", keys[1]}
	} else if slices.Contains(ofReplay, f.Rule) && slices.Contains(aboutTrials, f.Guarantee) {
		keys = []string{"followed?"} // one act refuted another guarantee, and the rest could not be followed
	}
	for _, key := range keys {
		if said, known := r[key]; known {
			return string(said)
		}
	}
	return r[""].With("rule", strconv.Quote(f.Rule))
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
