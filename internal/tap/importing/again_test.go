package importing

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/test/must"
)

// TestGrown: of a file that grew, what is new is sealed; an exchange that was not at its end gives a record for its rest.
func TestGrown(t *testing.T) {
	b := newBook()
	imported(t, b, "s.jsonl", claudeSession)
	before := len(b.order)
	checked, sealed := imported(t, b, "s.jsonl", claudeSession+claudeMore)
	must.Need(t, checked.New == 1 && sealed.New == 1 && checked.Known == before && len(checked.Faults) == 0, "%+v, %+v", checked, sealed)
	want := `recorded/support/ses1 import/claude-code:  => "There is none."||claude-x|{"input_tokens":20,"output_tokens":3}|req2|2026-01-30T10:00:05Z`
	must.Equal(t, cmp.Diff(want, said(b.acts[b.order[before]])), "")
	again, _ := imported(t, b, "s.jsonl", claudeSession+claudeMore)
	must.Hold(t, again.New == 0 && again.Known == before+1, "again: %+v", again)
	whole := newBook()
	imported(t, whole, "s.jsonl", claudeSession+claudeMore)
	if len(whole.order) != before {
		t.Errorf("at once: %v", whole.said())
	}
}

// TestGrownWithoutIDs: entries without ids of their own are known by their number.
func TestGrownWithoutIDs(t *testing.T) {
	b := newBook()
	messages := func(n int) string {
		all := []string{`{"role":"user","content":"a"}`, `{"role":"user","content":"b"}`, `{"role":"assistant","content":"c"}`, `{"role":"assistant","content":"d"}`, `{"role":"user","content":"a"}`}
		return "[" + strings.Join(all[:n], ",") + "]"
	}
	for n := 1; n <= 5; n++ {
		checked, sealed := imported(t, b, "s.json", messages(n))
		must.Need(t, len(checked.Faults) == 0 && sealed.New == 1, "%d messages: %+v, %+v", n, checked, sealed)
	}
	want := []string{
		`recorded/support/s import/openai: [{"content":"a","role":"user"}] => ||||||upstream_error`,
		`recorded/support/s import/openai: [{"content":"b","role":"user"}] => ||||||upstream_error`,
		`recorded/support/s import/openai:  => "c"|||||`,
		`recorded/support/s import/openai:  => "d"|||||`,
		`recorded/support/s import/openai: [{"content":"a","role":"user"}] => ||||||upstream_error`}
	must.Equal(t, cmp.Diff(want, b.said()), "")
}

// TestChanged: an entry that the log has with other words is named, and nothing is sealed of the file; --skip passes over it.
func TestChanged(t *testing.T) {
	b := newBook()
	imported(t, b, "s.jsonl", claudeSession)
	before := len(b.order)
	changed := strings.Replace(claudeSession+claudeMore, `"order":7`, `"order":8`, 1)
	checked, _ := imported(t, b, "s.jsonl", changed)
	must.Need(t, checked.Changed == 1 && len(checked.Faults) == 1 && errors.Is(checked.Faults[0], ErrChanged) && len(b.order) == before,
		"%+v, %d records", checked, len(b.order))
	text := checked.Faults[0].Error()
	must.Hold(t, strings.HasPrefix(text, "s.jsonl: line 2: it was changed since it was imported: the record "), "%v", text)
	checked, sealed := imported(t, b, "s.jsonl", changed, func(o *Options) { o.Skip = true })
	must.Hold(t, checked.Changed == 1 && sealed.New == 1 && len(b.order) == before+1, "%+v, %+v", checked, sealed)
	shorter := strings.Join(strings.SplitAfter(claudeSession, "\n")[:3], "")
	checked, _ = imported(t, b, "s.jsonl", shorter)
	must.Hold(t, checked.Changed == 1, "an entry that became shorter: %+v", checked)
	other := `[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]`
	imported(t, b, "a.json", other)
	checked, _ = imported(t, b, "a.json", strings.Replace(other, "y", "z", 1))
	must.Hold(t, checked.Changed == 1, "another file of the same name: %+v", checked)
	_, sealed = imported(t, b, "a.json", strings.Replace(other, "y", "z", 1), func(o *Options) { o.Name = "b" })
	must.Hold(t, sealed.New == 1, "with another name: %+v", sealed)
}

// TestExpired: what a record said that has expired is not known, and is not sealed again.
func TestExpired(t *testing.T) {
	b := newBook()
	o := b.options()
	o.Sealed = func(context.Context, string) (*evidence.ObservedBody, error) { return &evidence.ObservedBody{}, nil }
	checked, err := Check(context.Background(), open(t, "s.jsonl", claudeSession), o)
	must.Hold(t, err == nil && checked.New == 0 && checked.Changed == 0 && checked.Known != 0, "%+v, %v", checked, err)
}

// TestSameIDTwice: an id that stands twice in a file is one entry if the words are the same, and a fault otherwise.
func TestSameIDTwice(t *testing.T) {
	line := `{"sessionId":"s","type":"user","message":{"role":"user","content":"a"},"uuid":"u"}` + "\n" + `{"sessionId":"s","type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"b"}]},"uuid":"v"}` + "\n"
	if checked, sealed := imported(t, newBook(), "s.jsonl", line+line); len(checked.Faults) > 0 || sealed.New != 1 || checked.Entries != 1 {
		t.Errorf("the same: %+v, %+v", checked, sealed)
	}
	checked, _ := imported(t, newBook(), "s.jsonl", line+strings.Replace(line, `"b"`, `"c"`, 1))
	if checked.Wrong != 1 || len(checked.Faults) != 1 || checked.Faults[0].Error() != `s.jsonl: line 4: a line before it has the same uuid and another message` {
		t.Errorf("others: %+v", checked)
	}
}

// TestWrongEntries: each is named with its place, the others can be read, and nothing is sealed unless they are passed over.
func TestWrongEntries(t *testing.T) {
	good := `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`
	for _, test := range []struct{ name, text, want string }{
		{"no JSON", "{", "s.jsonl: line 2: it is no JSON: expected one JSON value in each line"},
		{"a message", `{"role":"user","content":"a"}`, "s.jsonl: line 2: expected a conversation in each line, as in the first"},
		{"twice the same name", `{"messages":[{"role":"user","role":"user","content":"a"}]}`, `s.jsonl:line 2:1:`},
		{"no UTF-8", "{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}", `s.jsonl:line 2:1:`},
		{"an unknown role", `{"messages":[{"role":"bird","content":"a"}]}`, `s.jsonl:line 2:1:22: at /messages/0/role (byte 21): unknown role "bird"`},
		{"nested too deep", `{"messages":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`, `s.jsonl:line 2:1:`},
		{"a number that is none", `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"x","arguments":{"n":1e400}}}]}]}`, `s.jsonl:line 2:1:`},
	} {
		text := good + "\n" + test.text + "\n" + strings.Replace(good, `"a"`, `"c"`, 1)
		b := newBook()
		checked, _ := imported(t, b, "s.jsonl", text)
		if checked.Wrong != 1 || checked.Entries != 2 || len(b.order) != 0 {
			t.Errorf("%s: %+v, %d records", test.name, checked, len(b.order))
			continue
		}
		got := checked.Faults[0].Error()
		must.Hold(t, strings.HasPrefix(got, test.want), "%s: %s", test.name, got)
		_, sealed := imported(t, b, "s.jsonl", text, func(o *Options) { o.Skip = true })
		must.Hold(t, sealed.New == 2, "%s, passed over: %+v", test.name, sealed)
	}
}

// TestBrokenFiles: a file that cannot be read to its end is refused as a whole.
func TestBrokenFiles(t *testing.T) {
	result := `{"evalId":"e","results":{"results":[` + promptfooResult
	for _, test := range []struct{ name, text, want string }{
		{"cut off", result, "EOF"},
		{"cut off after the list", result + `]},"config":{`, "EOF"},
		{"something after", result + `]}} x`, "byte"},
		{"two lists", result + `]},"results":{"results":[]}}`, "two values at /results"},
		{"empty", "", "it is empty"},
		{"white space", " \n", "it is empty"},
		{"no JSON", "a: b\n", "YAML and CSV are not read"},
		{"a number", "7", "which format this is, is not certain"},
		{"an unknown object", `{"rows":[]}`, "which format this is, is not certain"},
		{"an empty list", `[]`, "which format this is, is not certain"},
		{"an unknown list", `[{"x":1}]`, "which format this is, is not certain"},
		{"an archive of something", string(packed(t, "a.txt", "x")), "no samples of Inspect"},
		{"a broken archive", string(packed(t, "samples/a.json", "{}"))[:40], "a broken archive"},
		{"twice the same name", string(packed(t, "samples/a_epoch_1.json", inspectSample, "samples/a_epoch_1.json", inspectSample)), `the archive has "samples/a_epoch_1.json" twice`},
	} {
		f, err := in(t, "s.json", []byte(test.text), Unknown)
		if err == nil {
			_, err = Check(context.Background(), f, newBook().options())
		}
		must.Hold(t, err != nil && strings.Contains(err.Error(), test.want), "%s: %v; want %q", test.name, err, test.want)
	}
}

// TestGivenFormat: a format that the file contradicts is refused, and one that it does not show is taken.
func TestGivenFormat(t *testing.T) {
	must.Refuse(t, "give --from claude-code")(in(t, "s.json", []byte(claudeSession), Codex))
	must.Fail(t, ErrUnknown)(in(t, "s.json", []byte(`{"rows":[]}`), Promptfoo))
	f, err := in(t, "s.json", []byte(`[{"role":"user","content":"x"}]`), Anthropic)
	must.Hold(t, err == nil && f.Format == Anthropic, "%v %v", f, err)
	must.Refuse(t, "promptfoo, inspect")(ParseFormat("yaml"))
}

// TestFilesThatAreNotRead: exports of chat apps and results of tau2-bench are refused by their names, with the formats that are read, also where a format is given.
func TestFilesThatAreNotRead(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`[{"title":"Orders","mapping":{"a":{"id":"a","message":null}},"current_node":"a"}]`, "a data export of ChatGPT"},
		{`{"title":"Orders","mapping":{},"current_node":"a"}`, "a data export of ChatGPT"},
		{`[{"uuid":"c","name":"","chat_messages":[]}]`, "a data export of Claude.ai"},
		{`{"uuid":"c","name":"","chat_messages":[]}`, "a data export of Claude.ai"},
		{`{"timestamp":"x","info":{},"tasks":[],"simulations":[]}`, "results of tau2-bench"},
		{string(packed(t, "user.json", "{}", "conversations.json", "[]")), "a data export of a chat app"},
		{string(packed(t, "x/conversations-000.json", "[]", "x/conversations-001.json", "[]")), "a data export of a chat app"},
	} {
		for _, given := range []Format{Unknown, Chat, Inspect} {
			if _, err := in(t, "s.json", []byte(test.text), given); err == nil || !strings.Contains(err.Error(), test.want+" ") && !strings.Contains(err.Error(), test.want+",") || !strings.Contains(err.Error(), "not read") || !strings.Contains(err.Error(), "the formats are promptfoo, inspect, openai") {
				t.Errorf("%s as %q: %v", test.text, given, err)
			}
		}
	}
}

// TestNamesInArchives: names that lead out of a folder lead nowhere, and only samples are read.
func TestNamesInArchives(t *testing.T) {
	b := newBook()
	text := string(packed(t, "../samples/x_epoch_1.json", "no JSON", "samples/../../y.json", "no JSON", "samples/s1_epoch_1.json", inspectSample, "summaries.json", "no JSON"))
	checked, sealed := imported(t, b, "log.eval", text)
	must.Hold(t, len(checked.Faults) == 0 && sealed.New == 2, "%+v, %+v", checked, sealed)
}

// TestBomb: an archive that unpacks to more than real logs do is refused, and so is a sample that is too long.
func TestBomb(t *testing.T) {
	long := packed(t, "samples/a_epoch_1.json", `{"id":"`+strings.Repeat("x", maxValue)+`"}`, "samples/s1_epoch_1.json", inspectSample)
	f := must.Get(in(t, "log.eval", long, Unknown))(t)
	checked, err := Check(context.Background(), f, newBook().options())
	must.Hold(t, err == nil && checked.Wrong == 1 && checked.Entries == 2 && errors.Is(checked.Faults[0], errLong), "%+v, %v", checked, err)
	many := packed(t, "samples/a_epoch_1.json", `{"id":["`+strings.Repeat(`x","`, 300_000)+`"]}`, "samples/s1_epoch_1.json", inspectSample)
	f, err = in(t, "log.eval", many, Unknown)
	must.Do(t, err)
	checked, err = Check(context.Background(), f, newBook().options())
	must.Hold(t, err == nil && checked.Wrong == 1 && checked.Entries == 2 && strings.Contains(checked.Faults[0].Error(), "more than 262144 values"),
		"%+v, %v", checked, err)
	deep := strings.Replace(inspectSample, "{", `{"events":[`+strings.Repeat("0,", 2_000_000)+"0],", 1) // which nobody reads
	f, err = in(t, "log.eval", packed(t, "samples/s1_epoch_1.json", deep), Unknown)
	must.Do(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	checked, err = Check(context.Background(), f, newBook().options())
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; err != nil || len(checked.Faults) > 0 || used > uint64(20*len(deep)) {
		t.Errorf("%d MB take %d MB: %+v, %v", len(deep)>>20, used>>20, checked, err)
	}
}

// TestInterrupted: what was sealed before the end stands whole, and the next import goes on from there.
func TestInterrupted(t *testing.T) {
	var text strings.Builder
	const count = 200
	for i := range count {
		fmt.Fprintf(&text, `{"messages":[{"role":"user","content":"a %d"},{"role":"assistant","content":"b"}]}`+"\n", i)
	}
	b := newBook()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	b.sealed = func() {
		if b.begun == 20 {
			stop() // while it is sealed
		}
	}
	tally, err := Seal(ctx, open(t, "s.jsonl", text.String()), b.options())
	must.Need(t, errors.Is(err, context.Canceled) && tally.New == len(b.order) && b.begun == len(b.order) && tally.New >= 20 && tally.New != count,
		"%+v, %v, %d records", tally, err, len(b.order))
	_, sealed := imported(t, b, "s.jsonl", text.String())
	must.Hold(t, sealed.New+tally.New == count && len(b.order) == count, "%+v after %+v", sealed, tally)
}

// TestEarlierAnswersInAPrompt: answers that stand in the prompt of an evaluation are no acts of the agent.
func TestEarlierAnswersInAPrompt(t *testing.T) {
	b := newBook()
	imported(t, b, "r.json", `{"results":[{"id":"r","prompt":{"raw":"[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b\"},{\"role\":\"user\",\"content\":\"c\"}]"},"response":{"output":"d"}}]}`)
	want := []string{`recorded/support/r import/promptfoo: [{"content":"a","role":"user"},{"content":"b","role":"assistant"},{"content":"c","role":"user"}] => "d"|||||`}
	must.Equal(t, cmp.Diff(want, b.said()), "")
}

// TestCannotSeal: the first act that cannot be sealed ends the import, and is named.
func TestCannotSeal(t *testing.T) {
	b, full := newBook(), errors.New("the disk is full")
	b.fail = full
	messages := strings.Repeat(`{"role":"user","content":"a"},{"role":"assistant","content":"b"},`, 20)
	_, err := Seal(context.Background(), open(t, "s.json", `[`+strings.TrimSuffix(messages, ",")+`]`), b.options())
	must.Hold(t, errors.Is(err, full) && strings.Contains(err.Error(), "s.json: the document: sealing: "), "%v", err)
	must.Hold(t, len(b.order) == 0, "what follows is sealed without what came before it")
}

// TestChangedMeanwhile: a file that changes while it is read is an error, because records name its digest. One that only grows is read as it was.
func TestChangedMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	write := func(text string) {
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write(claudeSession)
	f := must.Get(Open(path, Unknown))(t)
	write(claudeSession + claudeMore)
	b := newBook()
	must.Fail(t, nil, "it grew")(Seal(context.Background(), f, b.options()))
	for _, a := range b.acts {
		must.Equal(t, headerOf(a.Request, "file-sha256"), evidence.DigestOf([]byte(claudeSession)).String())
	}
	b = newBook()
	b.sealed = func() { write(strings.Replace(claudeSession, "Order 7?", "Order 9?", 1)) }
	must.Refuse(t, "it was changed while it was read")(Seal(context.Background(), f, b.options()))
}

// TestOpenedAgain: a file is opened again when it is read, and refused if it is another.
func TestOpenedAgain(t *testing.T) {
	f := open(t, "s.jsonl", claudeSession)
	checked, err := Check(context.Background(), f, newBook().options())
	must.Hold(t, err == nil && checked.New == 3, "%+v, %v", checked, err)
	must.Do(t, os.WriteFile(f.path, []byte(strings.Replace(claudeSession, "Order 7?", "Order 9?", 1)), 0o600))
	b := newBook()
	if _, err := Seal(context.Background(), f, b.options()); err == nil || !strings.Contains(err.Error(), "it was changed since it was looked at") || len(b.order) > 0 {
		t.Errorf("%v, %d records", err, len(b.order))
	}
	must.Refuse(t, "name the files in it")(Open(t.TempDir(), Unknown))
}

// TestPartIsOfTheFile: what an act seals beside what was read stands in the file, and hashes to what is stated.
func TestPartIsOfTheFile(t *testing.T) {
	b := newBook()
	imported(t, b, "s.jsonl", claudeSession)
	for id, a := range b.acts {
		r := a.Request
		if evidence.DigestOf(r.Kept) != evidence.Digest(sha256.Sum256(r.Kept)) || r.SHA256 != evidence.DigestOf(r.Kept) || r.Bytes != int64(len(r.Kept)) {
			t.Errorf("%s: %d bytes", id, r.Bytes)
		}
		for _, line := range strings.Split(string(r.Kept), "\n") {
			must.Hold(t, strings.Contains(claudeSession, line+"\n"), "not in the file: %s", line)
		}
		for name, want := range map[string]string{"file": "s.jsonl", "file-bytes": fmt.Sprint(len(claudeSession)), "file-sha256": evidence.DigestOf([]byte(claudeSession)).String(), "format": "claude-code", "importer": "jurat test"} {
			must.Hold(t, headerOf(r, name) == want, "%s: %s is %q, want %q", id, name, headerOf(r, name), want)
		}
		if a.Vantage != evidence.Telemetry || a.Fidelity != evidence.ByAttributes || a.ActionType != evidence.ObservedSpan || a.AgentID == a.Agent {
			t.Errorf("%s: %+v", id, a)
		}
		if !slices.Contains(a.Missing, "the bytes that passed between the agent and its models") || !slices.Contains(a.Missing, "a time that anybody but the writer of the file vouches for") {
			t.Errorf("%s: %q", id, a.Missing)
		}
	}
}

// TestZstd: newer logs of Inspect are packed with zstd.
func TestZstd(t *testing.T) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zstd.ZipMethodWinZip, zstd.ZipCompressor())
	f := must.Get(w.CreateHeader(&zip.FileHeader{Name: "samples/s1_epoch_1.json", Method: zstd.ZipMethodWinZip}))(t)
	must.Get(f.Write([]byte(inspectSample)))(t)
	must.Do(t, w.Close())
	checked, sealed := imported(t, newBook(), "log.eval", out.String())
	must.Hold(t, len(checked.Faults) == 0 && sealed.New == 2, "%+v, %+v", checked, sealed)
}

// TestWhatIsNoAnswer: what a program wrote in the place of an answer is no model's.
func TestWhatIsNoAnswer(t *testing.T) {
	b := newBook()
	line := `{"sessionId":"s","type":"user","message":{"role":"user","content":"a"},"uuid":"u"}` + "\n" +
		`{"sessionId":"s","type":"assistant","isApiErrorMessage":true,"message":{"role":"assistant","model":"<synthetic>","content":[{"type":"text","text":"API Error"}],"usage":{"input_tokens":0}},"uuid":"v"}` + "\n"
	imported(t, b, "s.jsonl", line)
	a := b.acts[b.order[0]]
	must.Hold(t, a.ModelVersion == "" && a.Usage == nil && slices.Contains(a.Missing, "an answer: the entry of the file says that there was an error"),
		"%+v", a)
}

// TestCountsOfOneAnswer: an answer that goes on after the result of a tool is counted once.
func TestCountsOfOneAnswer(t *testing.T) {
	b := newBook()
	part := func(id, content string) string {
		return `{"sessionId":"s","type":"assistant","requestId":"r1","message":{"role":"assistant","content":[` + content + `],"usage":{"input_tokens":1,"output_tokens":2}},"uuid":"` + id + `"}` + "\n"
	}
	imported(t, b, "s.jsonl", part("a", `{"type":"tool_use","id":"t","name":"x","input":{}}`)+
		`{"sessionId":"s","type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"y"}]},"uuid":"b"}`+"\n"+part("c", `{"type":"text","text":"z"}`))
	counts := 0
	for _, a := range b.acts {
		if a.Usage != nil {
			counts++
		}
	}
	must.Hold(t, len(b.acts) == 2 && counts == 1, "%d of %d acts have counts", counts, len(b.acts))
}

// TestNamesOfConversations: a name that no chain can have is replaced by its digest, and two of them stay apart.
func TestNamesOfConversations(t *testing.T) {
	b := newBook()
	text := ""
	for i := range 2 {
		text += fmt.Sprintf(`{"conversation_id":"%s%d","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`, strings.Repeat("x", 150), i) + "\n"
	}
	imported(t, b, "s.jsonl", text)
	chains := map[string]bool{}
	for _, a := range b.acts {
		chains[a.ChainID] = true
		must.Hold(t, evidence.CheckName(a.ChainID) == nil && strings.HasPrefix(a.ChainID, "recorded/support/sha256-"), "%v", a.ChainID)
	}
	must.Hold(t, len(chains) == 2, "%v", chains)
}

// TestSubagents: the conversation of a subagent is one chain, whichever of its lines name it, and two of them do not mix.
func TestSubagents(t *testing.T) {
	b := newBook()
	line := func(uuid, parent, more, role string) string {
		return fmt.Sprintf(`{"sessionId":"s","isSidechain":true,"type":%q,"message":{"role":%[1]q,"content":[{"type":"text","text":%q}]},"uuid":%[2]q,"parentUuid":%s%s}`, role, uuid, parent, more) + "\n"
	}
	imported(t, b, "s.jsonl", line("a1", "null", "", "user")+line("b1", "null", `,"agentId":"bee"`, "user")+line("a2", `"a1"`, `,"agentId":"late"`, "assistant")+line("b2", `"b1"`, "", "assistant")+line("a3", `"a2"`, "", "user"))
	want := []string{
		`recorded/support/s-agent-a1 import/claude-code: [{"content":"a1","name":"the agent that called this one","role":"user"}] => "a2"|||||`,
		`recorded/support/s-agent-a1 import/claude-code: [{"content":"a3","name":"the agent that called this one","role":"user"}] => ||||||upstream_error`,
		`recorded/support/s-agent-bee import/claude-code: [{"content":"b1","name":"the agent that called this one","role":"user"}] => "b2"|||||`}
	must.Equal(t, cmp.Diff(want, b.said()), "")
}

// TestLong: a file is read in a bounded memory, however many entries it has: of one that is sealed nothing is held.
func TestLong(t *testing.T) {
	const entries, size, most = 400, 20_000, 40 // at most one with each sealer, one before it, and a few that are read
	path := filepath.Join(t.TempDir(), "s.json")
	file := must.Get(os.Create(path))(t)
	w := bufio.NewWriter(file)
	fmt.Fprint(w, `{"evalId":"e","results":{"results":[`)
	for i := range entries {
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		fmt.Fprintf(w, `{"id":"r%d","prompt":{"raw":"q %d"},"response":{"output":%q}}`, i, i, strings.Repeat("x", size))
	}
	fmt.Fprint(w, `]}}`)
	must.Do(t, w.Flush())
	must.Do(t, file.Close())
	f := must.Get(Open(path, Unknown))(t)
	o := newBook().options()
	o.Sealed = func(context.Context, string) (*evidence.ObservedBody, error) { return nil, nil }
	var mu sync.Mutex
	var seen []weak.Pointer[byte]
	o.Seal = func(_ context.Context, act observed.Act) error {
		mu.Lock()
		defer mu.Unlock()
		if seen = append(seen, weak.Make(&act.Request.Kept[0])); len(seen)%100 == 0 {
			runtime.GC()
			held := slices.DeleteFunc(slices.Clone(seen), func(p weak.Pointer[byte]) bool { return p.Value() == nil })
			must.Hold(t, len(held) <= most, "of %d entries %d are held", len(seen), len(held))
		}
		return nil
	}
	tally, err := Seal(context.Background(), f, o)
	must.Need(t, err == nil && tally.New == entries, "%+v, %v", tally, err)
}

// FuzzImport: whatever is in a file, it is read or refused; what is sealed is what a record can hold, and of the same file nothing is sealed twice.
func FuzzImport(f *testing.F) {
	for _, seed := range []string{claudeSession + claudeMore, codexSession, `[{"mapping":{}}]`,
		`{"evalId":"ev","results":{"results":[` + promptfooResult + `,` + promptfooFailed + `,` + promptfooTurns + `]}}`, promptfooResult + "\n" + promptfooTurns,
		`{"eval":` + inspectEval + `,"samples":[` + inspectSample + `]}`,
		`[{"role":"user","content":"Hi"}]`, `{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}`, "{}\n{}", string(packed(f, "samples/s1_epoch_1.json", inspectSample))} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "file")
		must.Do(t, os.WriteFile(path, data, 0o600))
		file, err := Open(path, Unknown)
		if err != nil {
			return
		}
		b := newBook()
		o := b.options()
		if checked, err := Check(context.Background(), file, o); err != nil || checked.New == 0 {
			return
		}
		seal := o.Seal
		o.Seal = func(ctx context.Context, act observed.Act) error {
			must.Hold(t, evidence.DigestOf(act.Request.Kept) == act.Request.SHA256 && evidence.CheckName(act.ChainID) == nil,
				"%s: %q", act.RecordID, act.ChainID)
			return seal(ctx, act)
		}
		first, err := Seal(context.Background(), file, o)
		must.Need(t, err == nil && first.New == len(b.order), "%+v, %v, %d records", first, err, len(b.order))
		again, err := Check(context.Background(), file, o)
		must.Need(t, err == nil && again.New == 0 && again.Known == first.New+first.Known && again.Changed == first.Changed,
			"again: %+v, %v; first %+v", again, err, first)
	})
}
