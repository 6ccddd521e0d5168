package subject

import (
	"fmt"

	"jurat/internal/convo"
)

// promptfoo reads results of promptfoo: {"results": {"results": [{"prompt": {"raw"}, "response": {"output"}, "vars",
// "success", "score", …}]}}. See https://www.promptfoo.dev/docs/configuration/reference/#evaluateresult. The evidence of a
// result is {"prompt", "output"}, or its messages if it has some. Variables, checks and scores stay outside the
// evidence, because variables may hold what is expected.
func (t *reader) promptfoo(all members) error {
	at, pointer := all.list["results"], "/results"
	if all.has("results", '{') {
		inner, err := t.file.members(at)
		if err != nil || !inner.has("results", '[') {
			return t.file.ErrorAt(at.from, "/results", "expected promptfoo's {\"results\": {\"results\": [{\"prompt\", \"response\", …}]}}")
		}
		at, pointer = inner.list["results"], "/results/results"
	}
	list, err := t.file.elements(at)
	if err != nil {
		return err
	}
	for i, at := range list {
		if len(t.found) == maxCases {
			return t.file.ErrorAt(at.from, "", fmt.Sprintf("more than %d results: split the file", maxCases))
		}
		t.promptfooResult(at, i, fmt.Sprintf("%s/%d", pointer, i))
	}
	return nil
}

func (t *reader) promptfooResult(at span, i int, pointer string) {
	from := &Source{Kind: "promptfoo", ID: fmt.Sprint(i + 1)}
	wrong := func(err error) { t.wrong(from.String(), err) }
	result, err := t.file.members(at)
	if err != nil {
		wrong(t.file.ErrorAt(at.from, pointer, err.Error()))
		return
	}
	if id := result.text("id"); id != "" {
		from.ID = id
	}
	response := t.inside(result, "response")
	for _, metadata := range []members{t.inside(response, "metadata"), t.inside(result, "metadata")} {
		for _, name := range []string{"messages", "redteamHistory"} {
			turns, there := metadata.get(name)
			if !there || !metadata.has(name, '[') || turns.to-turns.from <= 2 {
				continue
			}
			if err := t.room(turns); err != nil {
				wrong(err)
				return
			}
			t.conversation(from.String(), turns, pointer+"/metadata/"+name, from)
			return
		}
	}
	prompt, asked := t.inside(result, "prompt").get("raw")
	if !asked {
		prompt, asked = result.get("prompt")
	}
	output, answered := response.get("output")
	if !asked || !answered || response.has("output", 'n') {
		reason := "a result without a prompt and an output: expected {\"prompt\": {\"raw\": \"…\"}, \"response\": {\"output\": \"…\"}}"
		if why := result.text("error"); why != "" {
			reason = fmt.Sprintf("the agent gave no output: %q: expected one, for example \"response\": {\"output\": \"Hello\"}", why)
		}
		wrong(t.file.ErrorAt(at.from, pointer, reason))
		return
	}
	if err := t.room(output); err != nil {
		wrong(err)
		return
	}
	question, err := t.file.parse(prompt, pointer)
	if err != nil {
		wrong(err)
		return
	}
	answer, err := t.file.parse(output, pointer)
	if err != nil {
		wrong(err)
		return
	}
	whole := t.file.Object(at.from, at.to, pointer, convo.Member{Name: "prompt", Value: question}, convo.Member{Name: "output", Value: answer})
	t.build(from.String(), whole, PromptfooForm, from)
}

// inside returns the members of a member that is an object.
func (t *reader) inside(m members, name string) members {
	if m.file == nil || !m.has(name, '{') {
		return members{}
	}
	inner, err := t.file.members(m.list[name])
	if err != nil {
		return members{}
	}
	return inner
}
