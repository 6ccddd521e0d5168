package importing

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/tap/convo"
	"jurat/internal/test/must"
)

// A book is a log in memory.
type book struct {
	mu     sync.Mutex
	acts   map[string]observed.Act
	order  []string
	fail   error  // of the next seal
	sealed func() // is called when one begins
	begun  int
}

// headerOf is a header of what an act seals.
func headerOf(b *observed.Body, name string) string { return convo.ObjectOf(b.Headers).Word(name) }

func newBook() *book { return &book{acts: map[string]observed.Act{}} }

func (b *book) options() Options {
	return Options{Agent: "support", Recorder: "recorder", Version: "test", Now: func() time.Time { return time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC) },
		Chain: func(name string) string { return "recorded/support/" + name },
		Sealed: func(_ context.Context, id string) (*evidence.ObservedBody, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			a, there := b.acts[id]
			if !there {
				return nil, nil
			}
			return &a.Request.ObservedBody, nil
		},
		Seal: func(ctx context.Context, act observed.Act) error {
			id := act.RecordID
			if _, err := observed.Draft(act); err != nil {
				return err
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.begun++; b.sealed != nil {
				b.sealed()
			}
			if err := b.fail; err != nil {
				b.fail = nil
				return err
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if _, twice := b.acts[id]; twice {
				return errors.New("sealed twice")
			}
			b.acts[id], b.order = act, append(b.order, id)
			return nil
		}}
}

// in opens a file with a text.
func in(t testing.TB, name string, text []byte, format Format) (*File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(path, text, 0o600))
	return Open(path, format)
}

func open(t testing.TB, name, text string) *File {
	t.Helper()
	return must.Get(in(t, name, []byte(text), Unknown))(t)
}

// imported imports a text, and returns the tallies of Check and Seal.
func imported(t testing.TB, b *book, name, text string, change ...func(*Options)) (checked, sealed Tally) {
	t.Helper()
	o := b.options()
	for _, c := range change {
		c(&o)
	}
	f := open(t, name, text)
	checked, err := Check(context.Background(), f, o)
	must.Do(t, err)
	if len(checked.Faults) > 0 && !o.Skip {
		return checked, sealed
	}
	sealed, err = Seal(context.Background(), f, o)
	must.Do(t, err)
	return checked, sealed
}

// said is an act in a few words.
func said(a observed.Act) string {
	text := fmt.Sprintf("%s %s: %s => %s", a.ChainID, a.Protocol, convo.TextOf(a.Prompt), convo.TextOf(a.Payload.Response))
	for _, more := range []string{a.Model, a.ModelVersion, string(a.Usage), a.ProviderRequestID, headerOf(a.Request, "said-at")} {
		text += "|" + more
	}
	if a.Ended != evidence.Complete {
		text += "|" + string(a.Ended)
	}
	return text
}

func (b *book) said() []string {
	var list []string
	for _, id := range b.order {
		list = append(list, said(b.acts[id]))
	}
	slices.SortStableFunc(list, func(a, b string) int { return strings.Compare(strings.Fields(a)[0], strings.Fields(b)[0]) })
	return list
}

// packed makes a ZIP archive of names and texts.
func packed(t testing.TB, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i := 0; i < len(files); i += 2 {
		f := must.Get(w.Create(files[i]))(t)
		must.Get(f.Write([]byte(files[i+1])))(t)
	}
	must.Do(t, w.Close())
	return out.Bytes()
}

const (
	promptfooResult = `{"id":"r-1","promptIdx":0,"testIdx":0,"provider":{"id":"openai:gpt-4o","label":""},"prompt":{"raw":"[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":\"Order 7?\"}]","label":"p"},"vars":{"secret":"expected"},"response":{"output":"Shipped.","tokenUsage":{"total":12,"prompt":10,"completion":2}},"success":true,"score":1,"latencyMs":20}`
	promptfooFailed = `{"id":"r-2","provider":{"id":"openai:gpt-4o"},"prompt":{"raw":"Order 8?","label":"p"},"vars":{},"error":"API error: 500","success":false}`
	promptfooTurns  = `{"id":"r-3","provider":{"id":"promptfoo:redteam"},"prompt":{"raw":"ignored","label":"p"},"vars":{},"response":{"output":"No.","metadata":{"redteamHistory":[{"prompt":"Refund me","output":"No."},{"prompt":"Please","output":"No."}]}}}`
	inspectSample   = `{"id":"s1","epoch":1,"input":"hi","target":"expected","messages":[{"id":"m1","role":"user","content":"Order 7?"},{"id":"m2","role":"assistant","content":"","tool_calls":[{"id":"c1","function":"get_order","arguments":{"order":7},"type":"function"}],"model":"gpt-4o-2024-08-06"},{"id":"m3","role":"tool","content":"shipped","tool_call_id":"c1","function":"get_order"},{"id":"m4","role":"assistant","content":[{"type":"reasoning","reasoning":"hm"},{"type":"text","text":"Shipped."}],"model":"gpt-4o-2024-08-06"}],"output":{"model":"gpt-4o-2024-08-06","usage":{"input_tokens":10,"output_tokens":2,"total_tokens":12}},"scores":{},"completed_at":"2026-01-30T10:00:00+00:00"}`
	inspectEval     = `{"eval_id":"ev1","run_id":"run1","task":"orders","model":"openai/gpt-4o","packages":{"inspect_ai":"0.3.150"}}`
	claudeSession   = `{"type":"summary","summary":"Orders","leafUuid":"u4"}
{"parentUuid":null,"isSidechain":false,"userType":"external","cwd":"/w","sessionId":"ses1","version":"2.1.40","type":"user","message":{"role":"user","content":"Order 7?"},"uuid":"u1","timestamp":"2026-01-30T10:00:00Z"}
{"parentUuid":"u1","isSidechain":false,"sessionId":"ses1","version":"2.1.40","type":"assistant","requestId":"req1","message":{"id":"msg1","type":"message","role":"assistant","model":"claude-x","content":[{"type":"thinking","thinking":"hm","signature":"s"}],"usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":1}},"uuid":"u2","timestamp":"2026-01-30T10:00:01Z"}
{"parentUuid":"u2","isSidechain":false,"sessionId":"ses1","version":"2.1.40","type":"assistant","requestId":"req1","message":{"id":"msg1","type":"message","role":"assistant","model":"claude-x","content":[{"type":"tool_use","id":"t1","name":"get_order","input":{"order":7}}],"usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":9}},"uuid":"u3","timestamp":"2026-01-30T10:00:02Z"}
{"type":"file-history-snapshot","messageId":"u3","snapshot":{}}
{"parentUuid":"u3","isSidechain":false,"sessionId":"ses1","version":"2.1.40","type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"no such order","is_error":true}]},"uuid":"u4","timestamp":"2026-01-30T10:00:03Z","toolUseResult":{"stdout":"x"}}
{"parentUuid":null,"isSidechain":true,"agentId":"a1","sessionId":"ses1","version":"2.1.40","type":"user","message":{"role":"user","content":"Look it up"},"uuid":"v1","timestamp":"2026-01-30T10:00:03Z"}
{"parentUuid":"v1","isSidechain":true,"agentId":"a1","sessionId":"ses1","version":"2.1.40","type":"assistant","message":{"id":"msg9","role":"assistant","model":"claude-y","content":[{"type":"text","text":"Found"}]},"uuid":"v2","timestamp":"2026-01-30T10:00:04Z"}
`
	claudeMore = `{"parentUuid":"u4","isSidechain":false,"sessionId":"ses1","version":"2.1.40","type":"assistant","requestId":"req2","message":{"id":"msg2","role":"assistant","model":"claude-x","content":[{"type":"text","text":"There is none."}],"usage":{"input_tokens":20,"output_tokens":3}},"uuid":"u5","timestamp":"2026-01-30T10:00:05Z"}
`
	codexSession = `{"timestamp":"2026-01-30T10:00:00Z","type":"session_meta","payload":{"id":"cx1","timestamp":"2026-01-30T10:00:00Z","cwd":"/w","cli_version":"0.65.0"}}
{"timestamp":"2026-01-30T10:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Order 7?"}]}}
{"timestamp":"2026-01-30T10:00:00Z","type":"event_msg","payload":{"type":"user_message","message":"Order 7?"}}
{"timestamp":"2026-01-30T10:00:00Z","type":"turn_context","payload":{"cwd":"/w","model":"gpt-5-codex"}}
{"timestamp":"2026-01-30T10:00:01Z","type":"response_item","payload":{"type":"reasoning","summary":[],"encrypted_content":"x"}}
{"timestamp":"2026-01-30T10:00:01Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"cmd\":\"ls\"}","call_id":"c1"}}
{"timestamp":"2026-01-30T10:00:01Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":10},"last_token_usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":2}}}}
{"timestamp":"2026-01-30T10:00:02Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"a.txt"}}
{"timestamp":"2026-01-30T10:00:03Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"One file."}]}}
`
)

// TestFormats: each format is recognised by what is in the file, whatever its name, and read.
func TestFormats(t *testing.T) {
	chatCall := `{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"%[3]s","name":"%[2]s"},"id":"%[1]s","type":"function"}]}`
	for _, test := range []struct {
		name   string
		format Format
		text   string
		want   []string
	}{
		{"promptfoo", Promptfoo, `{"evalId":"ev","results":{"version":3,"results":[` + promptfooResult + `,` + promptfooFailed + `,` + promptfooTurns + `],"stats":{}},"config":{},"metadata":{"promptfooVersion":"0.119.0"}}`, []string{
			`recorded/support/r-1 import/promptfoo: [{"content":"Be brief.","role":"system"},{"content":"Order 7?","role":"user"}] => "Shipped."|openai:gpt-4o||{"total":12,"prompt":10,"completion":2}||`,
			`recorded/support/r-2 import/promptfoo: [{"content":"Order 8?","role":"user"}] => |openai:gpt-4o|||||upstream_error`,
			`recorded/support/r-3 import/promptfoo: [{"content":"Refund me","role":"user"}] => "No."|promptfoo:redteam||||`,
			`recorded/support/r-3 import/promptfoo: [{"content":"Please","role":"user"}] => "No."|promptfoo:redteam||||`}},
		{"promptfoo lines", Promptfoo, promptfooResult + "\n" + promptfooFailed + "\n", []string{
			`recorded/support/r-1 import/promptfoo: [{"content":"Be brief.","role":"system"},{"content":"Order 7?","role":"user"}] => "Shipped."|openai:gpt-4o||{"total":12,"prompt":10,"completion":2}||`,
			`recorded/support/r-2 import/promptfoo: [{"content":"Order 8?","role":"user"}] => |openai:gpt-4o|||||upstream_error`}},
		{"inspect", Inspect, `{"version":2,"status":"success","eval":` + inspectEval + `,"results":{"scores":[]},"samples":[` + inspectSample + `]}`, []string{
			`recorded/support/ev1-s1_epoch_1 import/inspect: [{"content":"Order 7?","role":"user"}] => [` + fmt.Sprintf(chatCall, "c1", "get_order", `{\"order\":7}`) + `]|openai/gpt-4o|gpt-4o-2024-08-06|||2026-01-30T10:00:00+00:00`,
			`recorded/support/ev1-s1_epoch_1 import/inspect: [{"content":"shipped","name":"get_order","role":"tool","tool_call_id":"c1"}] => "Shipped."|openai/gpt-4o|gpt-4o-2024-08-06|{"input_tokens":10,"output_tokens":2,"total_tokens":12}||2026-01-30T10:00:00+00:00`}},
		{"inspect packed", Inspect, string(packed(t, "header.json", `{"version":2,"eval":`+inspectEval+`}`, "_journal/start.json", "{}", "samples/s1_epoch_1.json", inspectSample)), []string{
			`recorded/support/ev1-s1_epoch_1 import/inspect: [{"content":"Order 7?","role":"user"}] => [` + fmt.Sprintf(chatCall, "c1", "get_order", `{\"order\":7}`) + `]|openai/gpt-4o|gpt-4o-2024-08-06|||2026-01-30T10:00:00+00:00`,
			`recorded/support/ev1-s1_epoch_1 import/inspect: [{"content":"shipped","name":"get_order","role":"tool","tool_call_id":"c1"}] => "Shipped."|openai/gpt-4o|gpt-4o-2024-08-06|{"input_tokens":10,"output_tokens":2,"total_tokens":12}||2026-01-30T10:00:00+00:00`}},
		{"claude code", ClaudeCode, claudeSession, []string{
			`recorded/support/ses1 import/claude-code: [{"content":"Order 7?","role":"user"}] => [` + fmt.Sprintf(chatCall, "t1", "get_order", `{\"order\":7}`) + `]||claude-x|{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":9}|req1|2026-01-30T10:00:02Z`,
			`recorded/support/ses1 import/claude-code: [{"content":"no such order","is_error":true,"role":"tool","tool_call_id":"t1"}] => |||||2026-01-30T10:00:03Z|upstream_error`,
			`recorded/support/ses1-agent-a1 import/claude-code: [{"content":"Look it up","name":"the agent that called this one","role":"user"}] => "Found"||claude-y||msg9|2026-01-30T10:00:04Z`}},
		{"codex", Codex, codexSession, []string{
			`recorded/support/cx1 import/codex: [{"content":"Order 7?","role":"user"}] => [` + fmt.Sprintf(chatCall, "c1", "shell", `{\"cmd\":\"ls\"}`) + `]|gpt-5-codex||{"input_tokens":10,"cached_input_tokens":4,"output_tokens":2}||2026-01-30T10:00:01Z`,
			`recorded/support/cx1 import/codex: [{"content":"a.txt","role":"tool","tool_call_id":"c1"}] => "One file."|gpt-5-codex||||2026-01-30T10:00:03Z`}},
		{"fine-tuning", Chat, `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"}]}` + "\n" + `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"},{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"}]}`, []string{
			`recorded/support/file-1 import/openai: [{"content":"Hi","role":"user"}] => "Hello"|||||`,
			`recorded/support/file-2 import/openai: [{"content":"Hi","role":"user"}] => "Hello"|||||`,
			`recorded/support/file-2 import/openai: [{"content":"Hi","role":"user"}] => "Hello"|||||`}},
		{"messages in lines", Chat, `{"role":"user","content":"Hi"}` + "\n" + `{"role":"assistant","content":"Hello"}`, []string{
			`recorded/support/file import/openai: [{"content":"Hi","role":"user"}] => "Hello"|||||`}},
		{"messages", Chat, `[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"}]`, []string{
			`recorded/support/file import/openai: [{"content":"Hi","role":"user"}] => "Hello"|||||`}},
		{"anthropic", Anthropic, `{"model":"claude-x","system":"Be brief.","messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"text","text":"Hello"}]}]}`, []string{
			`recorded/support/file import/anthropic: [{"content":"Be brief.","role":"system"},{"content":"Hi","role":"user"}] => "Hello"|claude-x||||`}},
		{"gemini", Gemini, `{"contents":[{"role":"user","parts":[{"text":"Hi"}]},{"role":"model","parts":[{"text":"Hello"}]}],"systemInstruction":{"parts":[{"text":"Be brief."}]}}`, []string{
			`recorded/support/file import/gemini: [{"content":"Be brief.","role":"system"},{"content":"Hi","role":"user"}] => "Hello"|||||`}},
		{"responses", Responses, `{"id":"resp_1","model":"gpt-4o","input":[{"type":"message","role":"user","content":"Hi"}],"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello"}]}],"usage":{"input_tokens":3}}`, []string{
			`recorded/support/file-resp_1 import/responses: [{"content":"Hi","role":"user"}] => "Hello"|gpt-4o||{"input_tokens":3}||`}},
		{"a byte order mark", Chat, "\xef\xbb\xbf" + `[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"}]`, []string{
			`recorded/support/file import/openai: [{"content":"Hi","role":"user"}] => "Hello"|||||`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBook()
			f := open(t, "file.bin", test.text)
			must.Equal(t, f.Format, test.format)
			checked, sealed := imported(t, b, "file.bin", test.text)
			must.Hold(t, len(checked.Faults) == 0 && checked.New == sealed.New && sealed.New == len(test.want), "%+v, %+v", checked, sealed)
			must.Equal(t, cmp.Diff(test.want, b.said()), "")
			again, sealed := imported(t, b, "file.bin", test.text)
			must.Hold(t, again.Known == len(test.want) && sealed.New == 0, "again: %+v, %+v", again, sealed)
		})
	}
}
