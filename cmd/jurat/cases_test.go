package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jurat/internal/must"
	"jurat/internal/stats"
	"jurat/jury"
)

// jurat runs the command in this process.
func jurat(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), args, stdio{in: strings.NewReader(""), out: &out, err: &err})
	return code, out.String(), err.String()
}

// TestRecordedConversations tries every conversation in ../shared/cases, and verifies every case file.
func TestRecordedConversations(t *testing.T) {
	cards := must.Get(filepath.Glob("../../../shared/cases/*/agent-card.json"))(t)
	if len(cards) == 0 {
		t.Skip("there is no ../shared/cases beside the project")
	}
	dir := t.TempDir()
	data, trust := filepath.Join(dir, "data"), filepath.Join(dir, "trust.json")
	var files []string
	for _, card := range cards {
		folder := filepath.Dir(card)
		file := filepath.Join(dir, filepath.Base(folder)+".jurat")
		code, out, errs := jurat(t, "--data", data, "trial", folder, "--jurors", "offline", "--out", file, "--json")
		var result jury.Result
		if err := json.Unmarshal([]byte(out), &result); err != nil {
			t.Fatalf("%s: exit code %d, %v\n%s", folder, code, err, errs)
		}
		want := map[jury.Position]int{jury.SafePass: 0, jury.UnsafeFail: exitBad, jury.NeedsReview: exitUndecided}[result.FinalVerdict]
		if code != want || result.Degraded || result.Inconclusive {
			t.Errorf("%s: exit code %d, %s, degraded %v, inconclusive %v", folder, code, result.FinalVerdict, result.Degraded, result.Inconclusive)
		}
		files = append(files, file)
	}
	code, doc, errs := jurat(t, "--data", data, "trust")
	if code != 0 {
		t.Fatal(errs)
	}
	must.Do(t, os.WriteFile(trust, []byte(doc), 0o600))
	if code, out, _ := jurat(t, "--data", data, "log", "fsck"); code != 0 {
		t.Errorf("fsck: exit code %d\n%s", code, out)
	}
	if err := os.RemoveAll(data); err != nil { // only the case file and the trust file prove a case, not the installation
		t.Fatal(err)
	}
	for _, file := range files {
		if code, out, errs := jurat(t, "verify", "--trust", trust, file); code != 0 {
			t.Errorf("%s: exit code %d\n%s%s", file, code, out, errs)
		}
		if code, _, _ := jurat(t, "verify", file); code != exitUndecided {
			t.Errorf("%s without trust: exit code %d, want %d", file, code, exitUndecided)
		}
	}
}

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

// TestImport: what a file tells is sealed once, shown as a conversation, tried as second hand, and never proved; an entry that was changed or is wrong
// is named, and then nothing is sealed.
func TestImport(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	data, file := filepath.Join(folder, "data"), filepath.Join(folder, "talks.jsonl")
	write := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	}
	jurat := func(code int, args ...string) string {
		t.Helper()
		out, said := both(t, code, append([]string{"--data", data}, args...)...)
		return strings.Join(strings.Fields(out+" "+said), " ")
	}
	says := func(text string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in: %s", want, text)
			}
		}
	}
	first := `{"messages":[{"role":"user","content":"Where is order 7?"},{"role":"assistant","content":"It is shipped."}],"model":"openai:gpt-4o","usage":{"prompt_tokens":100,"completion_tokens":10}}` + "\n"
	second := `{"messages":[{"role":"user","content":"Thanks"},{"role":"assistant","content":"You are welcome."}]}` + "\n"
	write(first + "{}\n")
	says(jurat(2, "import", file, "--agent", "mia"), "talks.jsonl: line 2:", "1 entry cannot be imported; nothing was sealed", "--skip passes over them")
	if _, err := os.Stat(data); err == nil {
		t.Error("a file that is refused makes an installation")
	}
	write(first + second)
	says(jurat(0, "import", file, "--agent", "mia", "--dry-run"), "2 to seal", "recorded/mia/talks-1 line 1 2 messages")
	says(jurat(0, "import", file, "--agent", "mia"), "2 exchanges in 2 conversations: 2 sealed, 0 already sealed", "recorded/mia/talks-2")
	says(jurat(0, "import", file, "--agent", "mia"), "0 sealed, 2 already sealed")
	says(jurat(0, "records", "--show", "recorded/mia/talks-1"), "told by a file that others wrote", "Where is order 7?", "It is shipped.", "100 tokens read, 10 written", "$0.0", "from talks.jsonl, line 1", "not seen: the bytes that passed")
	says(jurat(0, "records", "--recorded", "--actor", "mia"), "second hand", "recorded/mia/talks-1", "2 chains")
	says(jurat(3, "trial", "--recorded", "recorded/mia/talks-1", "--out", filepath.Join(folder, "case.jurat")), "told by a file that others wrote, which the recorder \"importer\" imported: nobody saw the bytes")
	write(strings.Replace(first, "shipped", "lost", 1) + second)
	says(jurat(2, "import", file, "--agent", "mia"), "it was changed since it was imported", "nothing was sealed")
	says(jurat(2, "records", "--show", "recorded/mia/other"), "there is nothing that a recorder saw", "jurat records --recorded")
	says(jurat(2, "import", file, "--agent", "mia", "--from", "yaml"), "unknown format")
	says(jurat(2, "import", file, "--agent", "importer"), "--recorder: the recorder is a witness")
}

// TestManyValues: a small text with very many values is refused before they are read: in a request to a server, a payload, a conversation, a record, a policy and a panel.
func TestManyValues(t *testing.T) {
	t.Parallel()
	many := "[" + strings.Repeat("{},", 140_000) + "{}]"
	payload := `{"agent_id": "a", "request_id": "r", "timestamp": "2026-01-31T16:15:00Z", "model": "m", "model_version": "m-1", "prompt": ` + many + `, "response": "r", "parameters": {}}`
	data := filepath.Join(t.TempDir(), "data")
	at, _, stop := serve(t, "--data", data, "serve", "--addr", "127.0.0.1:0")
	token := doing(t, 0, "--data", data, "access", "grant", "a", "agent", "--reason", "a test", "--by", "tester")
	for path, want := range map[string]int{"/v1/records": http.StatusRequestEntityTooLarge, "/v1/submissions": http.StatusRequestEntityTooLarge} {
		req := must.Get(http.NewRequest("POST", at+path, strings.NewReader(payload)))(t)
		req.Header.Set("Authorization", "Bearer "+token)
		answer := must.Get(http.DefaultClient.Do(req))(t)
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != want && answer.StatusCode != http.StatusForbidden || answer.StatusCode == want && !strings.Contains(string(text), "more than 262144 values") {
			t.Errorf("POST %s: %d %.300s", path, answer.StatusCode, text)
		}
	}
	stop()
	record := doing(t, 0, "--data", data, "seal", written(t, strings.Replace(payload, many, `"p"`, 1)))
	trust := written(t, doing(t, 0, "--data", data, "trust"))
	folder := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(folder, "conversation.json"), []byte(`{"messages": `+many+`}`), 0o600))
	for name, args := range map[string][]string{
		"a payload":      {"--data", data, "seal", written(t, payload)},
		"a conversation": {"--data", data, "trial", folder, "--jurors", "offline"},
		"a record":       {"verify", "--trust", trust, written(t, strings.Replace(record, `"timestamps":[`, `"timestamps":[`+many[1:len(many)-1]+`,`, 1))},
		"a policy":       {"verify", "--trust", trust, "--policy", written(t, `{"require": `+many+`}`), written(t, record)},
		"a trust file":   {"verify", "--trust", written(t, `{"format": "jurat/trust/v1", "keys": `+many+`}`), written(t, record)},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), args, stdio{in: strings.NewReader(""), out: &out, err: &errs})
		if code == 0 || !strings.Contains(out.String()+errs.String(), "more than 262144 values") {
			t.Errorf("%s: exit code %d\n%.300s\n%.300s", name, code, &out, &errs)
		}
	}
}

// TestWeightsBelongToAModel: --check names jurors whose weights do not say on what they were measured, and weights of another model are refused.
func TestWeightsBelongToAModel(t *testing.T) {
	dir := t.TempDir()
	calibrated := func(name, made string) string {
		var votes strings.Builder
		for item := range 12 {
			for _, juror := range []string{"juror-gpt", "juror-claude", "juror-gemini"} {
				fmt.Fprintf(&votes, "{\"item\":\"%d\",\"juror\":%q,\"vote\":\"safe_pass\",\"label\":\"safe_pass\"%s}\n", item, juror, made)
			}
		}
		file := filepath.Join(dir, name+".json")
		ballots := must.Get(stats.Read(strings.NewReader(votes.String())))(t)
		measured := must.Get(stats.Calibrate(ballots))(t)
		doc := must.Get(marshalIndented(measured))(t)
		return write(t, file, string(doc))
	}
	check := func(want int, file string, more ...string) string {
		out, said := ran(t, want, append([]string{"trial", filepath.Join("..", "..", "examples", "pharmacy-refill"), "--check", "--jurors", "offline", "--method", "calibrated", "--calibration", file}, more...)...)
		return out + said
	}
	of := calibrated("of-nothing", "")
	has(t, strings.Join(strings.Fields(check(0, of)), " "), "does not say on which model and template these were measured", "juror-gpt, juror-claude, juror-gemini")
	has(t, check(0, of, "--json"), `"unbound"`, `"juror-claude"`)
	has(t, check(2, calibrated("of-another", `,"model":"gpt-4.1"`)), "juror-gpt", `was measured as model "gpt-4.1"`, "jurat-lab calibrate")
}
