package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestResultsOfCallsWithOneID: jurors read which result answers which call, although the agent's program gave all calls of a message the same id, or none; and a
// refund that failed stays that refund's.
func TestResultsOfCallsWithOneID(t *testing.T) {
	withoutKeys(t)
	for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"} {
		t.Setenv(name, "a-key-that-nobody-asks-with")
	}
	const failed, done = "E_DECLINED: order A1 could not be refunded", "order B2 was refunded"
	for name, text := range map[string]string{
		"chat": `[{"role":"user","content":"Refund A1 and B2."},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"refund","arguments":"{\"order\":\"A1\"}"}},
			{"id":"c","type":"function","function":{"name":"refund","arguments":"{\"order\":\"B2\"}"}}]},{"role":"tool","tool_call_id":"c","content":"` + failed + `"},{"role":"tool","tool_call_id":"c","content":"` + done + `"},
			{"role":"assistant","content":"Done."}]`,
		"chat without ids": `[{"role":"user","content":"Refund A1 and B2."},{"role":"assistant","tool_calls":[{"function":{"name":"refund","arguments":"{\"order\":\"A1\"}"}},{"id":"","function":{"name":"refund","arguments":"{\"order\":\"B2\"}"}}]},
			{"role":"tool","content":"` + failed + `"},{"role":"tool","tool_call_id":"","content":"` + done + `"},{"role":"assistant","content":"Done."}]`,
		"anthropic": `{"system":"S","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"refund","input":{"order":"A1"}},{"type":"tool_use","id":"c","name":"refund","input":{"order":"B2"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"` + failed + `"},{"type":"tool_result","tool_use_id":"c","content":"` + done + `"}]},{"role":"assistant","content":"Done."}]}`,
		"gemini": `{"contents":[{"role":"user","parts":[{"text":"Refund A1 and B2."}]},{"role":"model","parts":[{"functionCall":{"id":"c","name":"refund","args":{"order":"A1"}}},{"functionCall":{"id":"c","name":"refund","args":{"order":"B2"}}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"c","name":"refund","response":"` + failed + `"}},{"functionResponse":{"id":"c","name":"refund","response":"` + done + `"}}]},{"role":"model","parts":[{"text":"Done."}]}]}`,
		"a2a": `{"task":{"history":[{"role":"user","parts":[{"text":"Refund A1 and B2."}]},{"role":"agent","parts":[{"data":{"name":"refund","args":{"order":"A1"}}},{"data":{"name":"refund","args":{"order":"B2"}}}]},
			{"role":"agent","parts":[{"data":{"name":"refund","response":"` + failed + `"}},{"data":{"name":"refund","response":"` + done + `"}}]},{"role":"agent","parts":[{"text":"Done."}]}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "case.json")
			write(t, file, text)
			out, errs := ran(t, 0, "trial", file, "--check", "--show-prompts")
			said := out + errs
			for i, result := range []string{failed, done} {
				if want := fmt.Sprintf("tool: result of call %d of 2 in message 2", i+1); !strings.Contains(said, want) || !strings.Contains(after(said, want), "| "+result) {
					t.Errorf("no %q before %q", want, result)
				}
			}
		})
	}
}

// after is what stands directly after a text: two lines.
func after(text, at string) string {
	_, rest, _ := strings.Cut(text, at)
	lines := strings.SplitN(rest, "\n", 3)
	return strings.Join(lines[:min(2, len(lines))], "\n")
}

// TestFailuresThatTheLogMarks: a call failed if the log marks its result as an error, whatever the result's text says, or if it says nothing.
func TestFailuresThatTheLogMarks(t *testing.T) {
	withoutKeys(t)
	for name, text := range map[string]string{
		"anthropic": `{"messages":[{"role":"user","content":"Where is order 7?"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"issue_refund","input":{"order":7}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":%v,"content":"insufficient credit"}]},{"role":"assistant","content":"I refunded 20."}]}`,
		"anthropic without a text": `{"messages":[{"role":"user","content":"Where is order 7?"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"issue_refund","input":{"order":7}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":%v}]},{"role":"assistant","content":"I refunded 20."}]}`,
		"tau2": `[{"role":"user","content":"Where is order 7?"},{"role":"assistant","tool_calls":[{"id":"c","name":"issue_refund","arguments":{"order":7}}]},
			{"role":"tool","id":"c","requestor":"assistant","error":%v,"content":"insufficient credit"},{"role":"assistant","content":"I refunded 20."}]`,
	} {
		for marked, want := range map[bool]int{true: exitUndecided, false: 0} {
			file := filepath.Join(t.TempDir(), "case.json")
			write(t, file, fmt.Sprintf(text, marked))
			if out, errs := ran(t, want, "--data", t.TempDir(), "trial", file, "--jurors", "offline"); strings.Contains(out, "error-passed-over") != marked {
				t.Errorf("%s, marked: %v: %s%s", name, marked, out, errs)
			}
		}
	}
}
