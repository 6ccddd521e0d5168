package verify

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// An Introduction says how a text came into a chain of records, as far as the file shows it.
type Introduction struct {
	// By lists, in the order of the timeline, the records whose output holds the text and whose input does not. Empty: no record introduced
	// it. More than one: each introduced it without having been shown it.
	By []*evidence.Record
	// Repeated lists the records that gave the text out and had been shown it.
	Repeated []*evidence.Record
	// Given lists the records that had the text in prompt or context before any record gave it out: it came from outside the chain.
	Given []*evidence.Record
	// Withheld lists the records with a part that would have to be searched, but is sealed apart and not disclosed.
	// The answer assumes that the text is not in there.
	Withheld []*evidence.Record
}

// Introduced finds the records that brought a text into a chain: whose output (response, modified_response) holds it and whose
// input (prompt, context and the outputs of what it follows) does not. The text is looked for, as it is, inside the
// strings of these members, whatever the escapes with which JSON writes them. No record introduces an empty text.
func Introduced(records []*evidence.Record, text string) Introduction {
	var found Introduction
	if text == "" {
		return found
	}
	g := newGraph(records)
	out, said := map[*evidence.Record]bool{}, false
	for _, r := range records {
		out[r] = holds(text, outputs(r))
	}
	for _, r := range g.ordered() {
		given := holds(text, inputs(r))
		follows, _ := g.follows(r)
		shown := given || slices.ContainsFunc(follows, func(other *evidence.Record) bool { return out[other] })
		switch {
		case out[r] && shown:
			found.Repeated = append(found.Repeated, r)
		case out[r]:
			found.By = append(found.By, r)
		}
		if given && !said {
			found.Given = append(found.Given, r)
		}
		said = said || out[r]
		if withheld(outputs(r)) || withheld(inputs(r)) {
			found.Withheld = append(found.Withheld, r)
		}
	}
	return found
}

func outputs(r *evidence.Record) []said { return []said{response(r), modified(r)} }

func inputs(r *evidence.Record) []said {
	return []said{saidIn(r, "/prompt", r.Payload.Prompt), saidIn(r, "/context", r.Payload.Context)}
}

func withheld(parts []said) bool {
	return slices.ContainsFunc(parts, func(s said) bool { return s.Withheld })
}

func holds(text string, parts []said) bool {
	return slices.ContainsFunc(parts, func(s said) bool { return inStrings(s.value, text) })
}

// inStrings looks for a text inside the strings of a JSON value, but not in the names of members: those are the form of
// what was said.
func inStrings(value jsontext.Value, text string) bool {
	dec := jsontext.NewDecoder(strings.NewReader(string(value)))
	for {
		kind, length := dec.StackIndex(dec.StackDepth())
		name := kind == '{' && length%2 == 0
		token, err := dec.ReadToken()
		if err != nil {
			return false // the end: values of a record are well-formed
		}
		if token.Kind() == '"' && !name && strings.Contains(token.String(), text) {
			return true
		}
	}
}
