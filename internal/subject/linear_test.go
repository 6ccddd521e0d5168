package subject

import (
	"fmt"
	"strings"
	"testing"
)

// hostile are files of about a size that look for work that grows faster than the file.
func hostile(size int) map[string]string {
	many := func(unit string) string { return strings.Repeat(unit, size/len(unit)) }
	list := func(unit string) string { return "[" + strings.TrimSuffix(many(unit+","), ",") + "]" }
	return map[string]string{
		"calls without results": list(`{"role":"assistant","tool_calls":[{"id":"1","name":"f"}]}`),
		"results without calls": list(`{"role":"tool","tool_call_id":"1","content":""}`),
		"wrong messages":        list(`{"role":"wizard"}`),
		"wrong lines":           many("{\"role\":\"wizard\"}\n"),
		"wrong in one line":     list(`7`),
		"blocks in turn":        `[{"role":"assistant","content":` + list(`{"type":"server_tool_use","id":"1","name":"f","input":{}},{"type":"web_search_tool_result","tool_use_id":"1","content":"x"}`) + `}]`,
		"parallel functions":    `{"contents":[{"role":"model","parts":` + list(`{"functionCall":{"name":"f"}}`) + `},{"parts":` + list(`{"functionResponse":{"name":"f","response":{}}}`) + `}]}`,
		"hosted calls":          list(`{"type":"web_search_call","id":"1","results":[]}`),
		"many members": `[{"role":"user","content":"x"` + func() string {
			var s strings.Builder
			for i := 0; s.Len() < size; i++ {
				fmt.Fprintf(&s, `,"m%d":1`, i)
			}
			return s.String()
		}() + `}]`,
		"attachments":  `{"epoch":1,"messages":` + list(`{"role":"user","content":"attachment://a"}`) + `,"attachments":{"a":"` + many("x") + `"}}`,
		"one string":   `[{"role":"user","content":"` + many(`\"`) + `"}]`,
		"blank lines":  many("\n") + "[]\n[]",
		"status first": `{"status":{"state":"x","message":{"role":"agent","parts":[{"text":"z"}]}},"artifacts":` + list(`{"parts":[{"text":"a"}]}`) + `,"history":` + list(`{"role":"user","parts":[{"text":"a"}]}`) + `}`,
		"prompt":       `{"prompt":"` + strings.ReplaceAll(list(`{"role":"user","content":"x"}`), `"`, `\"`) + `","output":"x"}`,
	}
}

// TestHostileFilesEnd: each of them is read or refused, with at most the mistakes that a check reports.
func TestHostileFilesEnd(t *testing.T) {
	for name, text := range hostile(100_000) {
		found, err := ReadTranscripts("f", []byte(text), Options{Check: true})
		if err != nil {
			continue
		}
		for _, b := range found {
			if len(b.Mistakes) > MaxMistakes+1 {
				t.Errorf("%s: %d mistakes", name, len(b.Mistakes))
			}
			if b.Case != nil {
				sameAgain(t, b.Case)
			}
		}
	}
}
