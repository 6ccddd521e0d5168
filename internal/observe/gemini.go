package observe

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/go-json-experiment/json"

	"jurat/internal/convo"
)

// readGenerate reads Gemini's generateContent: https://ai.google.dev/api/generate-content.
func readGenerate(r *reading) {
	c := r.reader(&r.prompt)
	if o := r.request(); o != nil {
		if isCodeAssist(r.call.Path) {
			o = convo.ObjectOf(o["request"])
		}
		r.either(o, "cachedContent", "cached_content")
		r.read(c, o, r.either(o, "systemInstruction", "system_instruction"), c.GeminiSystem)
		r.conversation(c, o, "contents", c.Contents)
	}
	a, root, ok := answered(r, explainGoogle, convo.ReadGenerateStream)
	if !ok {
		return
	}
	if a.Inside != nil { // read again, as the struct may have merged two of them
		root = root.Get("response")
		inside, _ := decode[convo.GenerateAnswer](r, "answer", root.Raw())
		a.Inside = &inside
	}
	a = a.Opened()
	r.out.ProviderID = a.ResponseID
	r.out.Finish = a.PromptFeedback.BlockReason
	if present(a.Error) {
		r.out.Error = cmp.Or(convo.Short(explainGoogle(object{"error": a.Error}.Value())), "an error in an answer with a status of success")
	} else if len(a.Candidates) == 0 && r.out.Finish == "" && r.body() == whole {
		r.fail("answer: it has no candidates, and no reason why")
	}
	for i, candidate := range a.Candidates {
		if candidate == nil {
			r.fail("answer: a candidate is null")
			continue
		}
		said := answer{number: candidate.Index, finish: candidate.FinishReason}
		r.answer(&said, root.Get("candidates").Element(i).Get("content"), func(in *convo.Reader, n *convo.Node) {
			in.Calls = c.Calls
			in.Content(n, convo.Assistant)
		})
		r.answers = append(r.answers, said)
	}
}

func explainGoogle(body []byte) string {
	var list []struct { // a request for a JSON array gets its error in one
		Error convo.GoogleError `json:"error"`
	}
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) && json.Unmarshal(body, &list, lenient) == nil && len(list) > 0 {
		return colon(list[0].Error.Status, list[0].Error.Message)
	}
	said, ok := convo.ReadGoogleError(body)
	if !ok {
		return ""
	}
	return colon(said.Status, said.Message)
}

// isCodeAssist reports whether a path is of Google's Code Assist, which puts request and answer into envelopes.
func isCodeAssist(path string) bool {
	_, last, _ := cutLast(pathOf(path))
	return strings.HasPrefix(last, "v1internal:")
}

// either returns a member that may be written in either spelling.
func (r *reading) either(o object, name, other string) string {
	if _, there := o[other]; !there {
		return name
	}
	if _, both := o[name]; both {
		r.problem("request: it has both %s and %s", name, other)
	}
	return other
}
