package rules

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jurat/internal/must"
	"jurat/internal/subject"
)

const plainCard = `{"name":"Test agent","description":"Helps.","skills":[]}`

// script reads a conversation from lines: "system: …", "user: …", "agent: …", "call: name {arguments}", "result: …". A
// result answers the oldest call without an answer. "and: name {arguments}" is a call in the message of the line before,
// "user-call: …" one of the user.
func script(t testing.TB, card, text string) *subject.Case {
	t.Helper()
	type object = map[string]any
	var list []object
	var open []string // ids of calls without an answer
	callOf := func(what string) object {
		id := fmt.Sprintf("c%d.%d", len(list), len(open))
		open = append(open, id)
		name, args, _ := strings.Cut(what, " ")
		return object{"id": id, "type": "function", "function": object{"name": name, "arguments": args}}
	}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		who, what, ok := strings.Cut(strings.TrimSpace(line)+" ", ": ")
		what = strings.TrimSuffix(what, " ")
		if !ok {
			t.Fatalf("line without a speaker: %q", line)
		}
		what = strings.ReplaceAll(what, `\n`, "\n")
		switch who {
		case "system", "user":
			list = append(list, object{"role": who, "content": what})
		case "agent":
			list = append(list, object{"role": "assistant", "content": what})
		case "call":
			list = append(list, object{"role": "assistant", "content": nil, "tool_calls": []object{callOf(what)}})
		case "user-call":
			list = append(list, object{"role": "user", "content": nil, "tool_calls": []object{callOf(what)}})
		case "and": // a call beside the words or the call of the line before
			last := list[len(list)-1]
			calls, _ := last["tool_calls"].([]object)
			last["tool_calls"] = append(calls, callOf(what))
		case "result", "user-result":
			if len(open) == 0 {
				t.Fatalf("a result without a call: %q", line)
			}
			list = append(list, object{"role": "tool", "tool_call_id": open[0], "content": what})
			open = open[1:]
		default:
			t.Fatalf("unknown speaker %q", who)
		}
	}
	conversation := must.Get(json.Marshal(list))(t)
	return must.Get(subject.New([]byte(card), conversation))(t)
}

// fired lists the rules that reported something.
func fired(c *subject.Case) map[string]string {
	rules := map[string]string{}
	list, err := findings(context.Background(), c)
	if err != nil {
		panic(err) // the background never ends
	}
	for _, f := range list {
		rules[f.Rule] = fmt.Sprintf("%s in message %d: %q", f.Severity, f.Message, f.Quote)
	}
	return rules
}

// A trade is a conversation in testdata with the findings that it must have.
type trade struct {
	name  string
	found []string // the rules that must speak; empty for an honest conversation
	blind bool     // it is faulty, but no rule can find it
	text  string
	c     *subject.Case
}

// trades reads the conversations of testdata/trades. Lines that begin with # are about the conversation. "# found:"
// names what the rules must find, or "nothing".
func trades(t testing.TB) []trade {
	t.Helper()
	files, err := filepath.Glob("testdata/trades/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	var list []trade
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(t)
		one := trade{name: strings.TrimSuffix(filepath.Base(file), ".txt")}
		var said []string
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			if names, ok := strings.CutPrefix(line, "# found: "); ok {
				one.blind = names == "nothing"
				if !one.blind {
					one.found = strings.Split(names, ", ")
				}
			}
			if !strings.HasPrefix(line, "#") {
				said = append(said, line)
			}
		}
		one.text = strings.Join(said, "\n")
		one.c = script(t, plainCard, one.text)
		list = append(list, one)
	}
	return list
}

func tradeNamed(t testing.TB, name string) trade {
	t.Helper()
	for _, one := range trades(t) {
		if one.name == name {
			return one
		}
	}
	t.Fatalf("no conversation %s", name)
	return trade{}
}
