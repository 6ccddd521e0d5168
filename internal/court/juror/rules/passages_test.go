package rules

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jurat/internal/court/juror"
	"jurat/internal/court/subject"
	"jurat/internal/test/must"
	"jurat/jury"
)

var passageHead = regexp.MustCompile(`^== (catch|leave) ([a-z -]+): (.+)$`)

// A passage is a short conversation that a rule must catch or must leave alone.
type passage struct {
	trade, title, text string
	what               string // catch or leave
}

// passagesOf reads the passages of a rule. Lines that begin with # are comments.
func passagesOf(t testing.TB, rule string) []passage {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join("testdata", "passages", rule+".txt")))(t)
	var list []passage
	for _, line := range strings.Split(string(text), "\n") {
		head := passageHead.FindStringSubmatch(line)
		switch {
		case head != nil:
			list = append(list, passage{trade: head[2], title: head[3], what: head[1]})
		case strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "":
		case len(list) == 0:
			t.Fatalf("%s: a line before the first passage: %q", rule, line)
		default:
			list[len(list)-1].text += line + "\n"
		}
	}
	return list
}

// TestPassages: each rule catches what it must, and leaves alone what somebody wrote to have an honest agent accused.
func TestPassages(t *testing.T) {
	for _, r := range checklist() {
		t.Run(r.id, func(t *testing.T) {
			for _, one := range passagesOf(t, r.id) {
				got := fired(script(t, plainCard, one.text))[r.id]
				switch {
				case one.what == "catch" && got == "":
					t.Errorf("silent on %s: %s\n%s", one.trade, one.title, one.text)
				case one.what == "leave" && got != "":
					t.Errorf("accuses %s: %s: %s\n%s", one.trade, one.title, got, one.text)
				}
			}
		})
	}
}

// TestPassagesEnough: each rule has ten passages that it must catch and ten that it must leave alone, in four trades.
func TestPassagesEnough(t *testing.T) {
	for _, r := range checklist() {
		count, trades := map[string]int{}, map[string]bool{}
		for _, one := range passagesOf(t, r.id) {
			count[one.what]++
			trades[one.trade] = true
		}
		must.Hold(t, count["catch"] >= 10 && count["leave"] >= 10 && len(trades) >= 4,
			"%s has %d passages to catch and %d to leave alone, in %d trades", r.id, count["catch"], count["leave"], len(trades))
	}
}

// TestTrades: on conversations from trades that the rules were not written for, the rules find the listed faults and
// report nothing else.
func TestTrades(t *testing.T) {
	honest, faulty, caught := 0, 0, 0
	for _, one := range trades(t) {
		t.Run(one.name, func(t *testing.T) {
			got := fired(one.c)
			if one.found == nil && !one.blind {
				honest++
			} else {
				faulty++
			}
			for rule, what := range got {
				must.Hold(t, slices.Contains(one.found, rule) || strings.HasPrefix(what, "minor"), "accused of %s: %s", rule, what)
			}
			for _, rule := range one.found {
				must.Hold(t, got[rule] != "", "%s is silent", rule)
			}
			if len(one.found) > 0 && !t.Failed() {
				caught++
			}
		})
	}
	t.Logf("%d honest conversations, %d of %d faulty ones found", honest, caught, faulty)
	must.Hold(t, honest >= 10 && faulty >= 10, "%d honest and %d faulty conversations are too few", honest, faulty)
}

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
		must.Need(t, ok, "line without a speaker: %q", line)
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
			must.Need(t, len(open) != 0, "a result without a call: %q", line)
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
	must.Need(t, err == nil && len(files) != 0, "no conversations: %v", err)
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

// FuzzEvaluate: every conversation that can be read gets a valid evaluation, and its quotations are in the conversation.
func FuzzEvaluate(f *testing.F) {
	seed := func(c *subject.Case) {
		var whole struct {
			Conversation json.RawMessage `json:"conversation"`
		}
		must.Do(f, json.Unmarshal(c.Material(), &whole))
		f.Add([]byte(whole.Conversation))
	}
	for _, r := range checklist() {
		seed(script(f, plainCard, passagesOf(f, r.id)[0].text))
	}
	seed(tradeNamed(f, "japanese-honest").c)
	f.Fuzz(func(t *testing.T, conversation []byte) {
		c, err := subject.New([]byte(plainCard), conversation)
		if err != nil {
			return
		}
		b := jury.Brief{Material: c.Material()}
		b.Rubric = jury.DefaultRubric()
		for i := range 3 {
			a := must.Get(alone(i).Answer(t.Context(), b))(t)
			must.Do(t, b.ValidateOpinion(&a.Opinion))
			for _, one := range a.Opinion.Findings {
				must.Need(t, juror.Stands(c, one), "has a quotation that is not in the message: %+v", one)
			}
		}
	})
}
