package subject

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"jurat/internal/observe"
)

// conversationsOf has conversations in each vendor's form, with what that form alone has: what a request has of it, and what an answer, if anything.
var conversationsOf = map[Form][][2]string{
	ChatForm: {{`"messages":[{"role":"developer","content":"S"},
		{"role":"user","name":"Ann","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"image_url","image_url":{"url":"u"}},
			{"type":"file","file":{"filename":"a.pdf","file_id":"f"}}]},
		{"role":"assistant","content":[{"type":"thinking","thinking":"t"},{"type":"text","text":"I "},{"type":"text","text":"look."}],"reasoning_content":"t",
			"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"k\": 1}"}},{"id":"2","type":"custom","custom":{"name":"run","input":"ls"}}]},
		{"role":"tool","tool_call_id":"1"},{"role":"tool","tool_call_id":"2","content":[{"type":"text","text":"files"}]},{"role":"assistant","refusal":"no"},
		{"role":"assistant","content":"","function_call":{"name":"g","arguments":{"k" : 1}}},{"role":"function","name":"g","content":"s"}]`, ""}},
	AnthropicForm: {{`"system":"x-anthropic-billing-header: cch=1;\nS","messages":[{"role":"user","content":"a"},
		{"role":"assistant","content":[{"type":"text","text":"I "},{"type":"text","text":"look."},{"type":"tool_use","id":"1","name":"f","input":{"k" : 1}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","is_error":true,"content":[{"type":"text","text":"r"},
				{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGVsbG8="}},{"type":"search_result","title":"t"}]},
			{"type":"document","title":"Terms","source":{"type":"text","data":"the terms"}},{"type":"search_result","title":"t","source":"u"},
			{"type":"document","title":"d.pdf","source":{"type":"file","file_id":"f"}}]},
		{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s",
			"content":{"type":"web_search_tool_result_error","error_code":"x"}},{"type":"thinking","thinking":"t"},{"type":"text","text":"b"}]},
		{"role":"assistant","content":""}]`, ""}},
	ResponsesForm: {{`"instructions":"S","input":[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"u"}]},
		{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I "},{"type":"output_text","text":"look."}]},{"type":"mcp_list_tools"},
		{"type":"local_shell_call","id":"i","call_id":"c","action":{"command":["ls"]}},{"type":"local_shell_call_output","id":"i","output":"files"},
		{"type":"custom_tool_call","call_id":"2","name":"run","input":"ls"},{"type":"item_reference","id":"m"},
		{"type":"custom_tool_call_output","call_id":"2","output":[{"type":"input_text","text":"files"}]}]`,
		`"output":[{"type":"reasoning","summary":[]},{"type":"code_interpreter_call","id":"3","code":"1+1","outputs":[{"type":"logs","logs":"2"}]},
		{"type":"image_generation_call","id":"4","result":"aGVsbG8="},{"type":"mcp_call","id":"5","name":"m","arguments":"{}","error":"no"},
		{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}]`}},
	GeminiForm: {{`"systemInstruction":{"parts":[{"text":"S"}]},"contents":[{"parts":[{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"aGVsbG8="}},
			{"file_data":{"mime_type":"video/mp4","file_uri":"https://example.org/v"}}]},
		{"role":"model","parts":[{"text":"t","thought":true},{"text":"I "},{"text":"look."},{"functionCall":{"name":"f","args":{"k" : 1}},"thoughtSignature":"s"},
			{"functionCall":{"id":"c","name":"f"}}]},
		{"role":"function","parts":[{"functionResponse":{"name":"f","response":{"output":1}}},{"function_response":{"id":"c","name":"f","response":{"error":"no"}}}]},
		{"role":"model","parts":[]},{"role":"user","parts":[{"text":"c"}]}]`,
		`"candidates":[{"content":{"role":"model","parts":[{"executableCode":{"code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_FAILED","output":"bad"}},
		{"toolCall":{"id":"g","toolType":"URL_CONTEXT","args":{"n":1}}},{"toolResponse":{"id":"g","toolType":"URL_CONTEXT","response":{"r":1}}},{"text":"yes"}]}}]`}},
	A2AForm: {{`{"role":"ROLE_USER","messageId":"1","parts":[{"text":"a"},{"data":{"k" : 1}},{"raw":"aGVsbG8=","filename":"a.txt"},{"url":"https://example.org/b"}]}`,
		`{"role":"ROLE_AGENT","messageId":"2","parts":[{"text":"I look."},{"data":{"name":"f","id":"1","args":{"k":1}}},{"data":{"name":"f","id":"1","response":{"r":1}}},
			{"data":{"name":"g","arguments":{}}},{"data":{"name":"g","response":"s"}},{"text":"So."}]}],"artifacts":[{"artifactId":"a","parts":[{"text":"b"},{"text":"c"}]}],
		"status":{"state":"TASK_STATE_COMPLETED","message":{"role":"ROLE_AGENT","messageId":"3","parts":[{"text":"Done."}]}}`}},
}

// TestTranscriptsAndRecordings: a transcript and a recording of the same conversation are the same messages, in each vendor's form.
func TestTranscriptsAndRecordings(t *testing.T) {
	for _, at := range example.FindAllStringSubmatch(page(t), -1) {
		form, doc := Form(at[2]), strings.TrimSpace(at[3])
		if doc = `"messages":` + doc; strings.HasPrefix(doc, `"messages":{`) {
			doc = doc[len(`"messages":{`) : len(doc)-1]
		}
		if form == ChatForm || form == AnthropicForm {
			conversationsOf[form] = append(conversationsOf[form], [2]string{doc})
		}
	}
	protocols := map[Form]string{ChatForm: observe.OpenAIChat, AnthropicForm: observe.AnthropicMessages, ResponsesForm: observe.OpenAIResponses,
		GeminiForm: observe.GeminiGenerate, A2AForm: observe.A2A10}
	for form, list := range conversationsOf {
		for _, two := range list {
			transcript, request, response := strings.TrimSuffix(two[0]+","+two[1], ","), two[0], `"status":"completed",`+two[1]
			if form == A2AForm {
				transcript = `"id":"t","history":[` + transcript
				request, response = `"method":"SendMessage","params":{"message":`+two[0]+`}`, `"result":{`+transcript+`}`
			}
			c := observe.Call{Protocol: protocols[form], Path: "/v1/x", Status: 200, Request: []byte("{" + request + "}")}
			if two[1] != "" {
				c.Response = []byte("{" + response + "}")
			}
			p, err := observe.Project(c)
			if err != nil || p.Problem != "" {
				t.Fatalf("%v, %s\n%s", err, p.Problem, request)
			}
			recorded := &Case{Messages: append(shown(p.Asked), shown(p.Answered)...)}
			for i := range recorded.Messages {
				recorded.Messages[i].Number = i + 1
			}
			recorded.link()
			if diff := cmp.Diff(taken(t, form, "{"+transcript+"}").Messages, recorded.Messages, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n%s (-transcript +recording):\n%s", transcript, form, diff)
			}
		}
	}
}

// TestResultsNameTheirCalls: an output of Responses names a call by its call_id, and by the id of an item only if no call has that; the later of two
// items with one id counts. What a client answers in A2A is a result, and the error of a picture that was not made is shown.
func TestResultsNameTheirCalls(t *testing.T) {
	for text, want := range map[string][]string{
		`[{"type":"function_call","call_id":"x","name":"read","arguments":"{}"},{"type":"function_call","call_id":"y","id":"x","name":"delete","arguments":"{}"},
			{"type":"function_call_output","call_id":"x","output":"r"}]`: {"", "", "x r"},
		`[{"type":"function_call","id":"i","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","id":"i","output":"1"},{"role":"user","content":"again"},
			{"type":"function_call","id":"i","call_id":"b","name":"f","arguments":"{}"},{"type":"function_call_output","id":"i","output":"2"}]`: {"", "a 1", "", "", "b 2"},
		`[{"role":"user","content":"a"},{"type":"image_generation_call","id":"g","result":null,"error":{"message":"policy"}}]`: {"", "", `g {"message":"policy"}`},
	} {
		var got []string
		for _, m := range taken(t, ResponsesForm, text).Messages {
			said := ""
			if m.Role == Tool {
				said = m.ToolCallID + " " + m.Text
			}
			got = append(got, said)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
	}
	c := taken(t, A2AForm, `{"id":"t","history":[{"role":"agent","parts":[{"kind":"data","data":{"name":"f","id":"1","args":{}}}]},
		{"role":"user","parts":[{"kind":"data","data":{"name":"f","id":"1","response":{"r":1}}}]}]}`)
	if m := c.Messages[len(c.Messages)-1]; m.Role != Tool || m.ToolCallID != "1" {
		t.Errorf("%+v", c.Messages)
	}
	_, err := Parse([]byte(`{"conversation":[{"role":"assistant","tool_calls":[{"id":"c","name":"f","arguments":{}}]},
		{"role":"tool","tool_messages":[{"tool_call_id":"c","content":"Done"}],"audio":{"transcript":"hi"}}]}`))
	if err == nil || !strings.Contains(err.Error(), "a content beside tool_messages") {
		t.Error(err)
	}
}
