package subject_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/must"
	"jurat/internal/observe"
	"jurat/internal/subject"
	"jurat/jurattest"
)

// watch seals what a recorder saw of a program that asks a server of chat completions for each answer in a conversation, with the whole
// conversation each time. Each answer comes in one piece or, if streamed, word by word. Each call is made twice, as the first attempt fails.
func watch(t *testing.T, h *jurattest.House, conversation []byte, streamed bool) (records []*evidence.Record) {
	t.Helper()
	var messages []jsontext.Value
	unmarshal(t, conversation, &messages)
	var earlier []byte
	for i, raw := range messages {
		var m struct {
			Role      string
			Content   jsontext.Value
			ToolCalls []jsontext.Value `json:"tool_calls"`
		}
		unmarshal(t, raw, &m)
		if m.Role != "assistant" {
			continue
		}
		history := make([]string, i)
		for n := range history {
			history[n] = string(messages[n])
		}
		request := []byte(`{"model":"gpt-4o","stream":` + fmt.Sprint(streamed) + `,"messages":[` + strings.Join(history, ",") + `]}`)
		response := `{"model":"gpt-4o-2024-08-06","choices":[{"index":0,"finish_reason":"stop","message":` + string(raw) + `}]}`
		if streamed && m.Content.Kind() != '[' {
			var text string
			unmarshal(t, m.Content, &text)
			response = stream(t, text, m.ToolCalls)
		}
		failed := act(request, `{"error":{"message":"busy","code":"overloaded"}}`, earlier)
		failed.Status = 503
		for n, a := range []observed.Act{failed, act(request, response, earlier)} {
			a.RequestID = fmt.Sprintf("call-%d-%d", i, n)
			p := must.Get(observed.Payload(a))(t)
			records = append(records, h.Seal(t, p))
			earlier = request
		}
	}
	return records
}

func unmarshal(t *testing.T, doc []byte, into any) {
	t.Helper()
	must.Do(t, json.Unmarshal(doc, into, json.MatchCaseInsensitiveNames(true)))
}

func act(request []byte, response string, earlier []byte) observed.Act {
	body := func(kept []byte) *observed.Body {
		return &observed.Body{Bytes: int64(len(kept)), SHA256: evidence.DigestOf(kept), Kept: kept}
	}
	a := observed.Act{Recorder: "gate", At: jurattest.Start, Began: jurattest.Start, ChainID: "talk", Agent: "recorded-agent", Vantage: evidence.Proxy, Fidelity: evidence.ByBytes,
		Protocol: observe.OpenAIChat, Method: "POST", Path: "/v1/chat/completions", Status: 200, Ended: evidence.Complete, Elapsed: new(time.Second), Request: body(request), Response: body([]byte(response))}
	if earlier != nil {
		a.Request.Earlier = [][]byte{earlier}
	}
	return a
}

// stream writes an answer as a stream of events.
func stream(t *testing.T, text string, calls []jsontext.Value) string {
	t.Helper()
	var s strings.Builder
	event := func(delta any, finish any) {
		doc, err := json.Marshal(map[string]any{"model": "gpt-4o-2024-08-06", "choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
		if err != nil {
			t.Fatal(err)
		}
		s.WriteString("data: " + string(doc) + "\n\n")
	}
	for _, word := range strings.SplitAfter(text, " ") {
		event(map[string]any{"content": word}, nil)
	}
	for i, raw := range calls {
		call := map[string]any{}
		unmarshal(t, raw, &call)
		call["index"] = i
		event(map[string]any{"tool_calls": []any{call}}, nil)
	}
	event(map[string]any{}, "stop")
	return s.String() + "data: [DONE]\n\n"
}

// TestWhatARecorderSawReadsAsTheConversation: from the bytes of a program's calls, the jury reads the messages of its conversation, each
// once, though each call sends all of them, and is made twice. A trial by rules comes to the same result, and each finding names a record.
func TestWhatARecorderSawReadsAsTheConversation(t *testing.T) {
	for n, folder := range folders(t) {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			card, conversation := read(t, folder, "agent-card.json"), read(t, folder, "conversation.json")
			if jsontext.Value(conversation).Kind() != '[' {
				return // an A2A task, which programs do not send to a model
			}
			plain := upToLastTurn(t, card, conversation)
			h := jurattest.New(t)
			records := watch(t, h, conversation, n%2 == 0)
			c := exhibits(t, marshal(t, h.Bundle(t, records...)), h.Options(t), card)
			if v := c.Recorded.Verification; !slices.Contains(v.Proved, "vantage") {
				t.Errorf("%.500v", v)
			}
			notes := 0
			list := slices.DeleteFunc(spoken(c), func(m subject.Message) bool {
				if m.Role == subject.Recorder {
					notes++
				}
				return m.Role == subject.Recorder
			})
			if notes != len(records)/2 { // each first attempt failed
				t.Errorf("%d notes of the recorder on %d records", notes, len(records))
			}
			if diff := cmp.Diff(unnumbered(spoken(plain)), unnumbered(list)); diff != "" {
				t.Fatalf("(-conversation +records):\n%s", diff)
			}
			want, got := try(t, jurattest.New(t), plain), try(t, h, c)
			if cited := strip(t, c, got); cited == 0 && len(findings(want)) > 0 || got.FinalVerdict != want.FinalVerdict {
				t.Errorf("%v with %d findings that name a record, want %v", got.FinalVerdict, cited, want.FinalVerdict)
			}
		})
	}
}

// unnumbered leaves out the numbers of messages and the names of those who speak.
func unnumbered(list []subject.Message) []subject.Message {
	for i := range list {
		m := &list[i]
		m.Number, m.CallNumber, m.Name = 0, 0, ""
		m.ToolCalls = slices.Clone(m.ToolCalls)
		for j := range m.ToolCalls {
			m.ToolCalls[j].Result = 0
		}
	}
	return list
}
