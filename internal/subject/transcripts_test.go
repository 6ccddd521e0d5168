package subject

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"jurat/internal/must"
)

// TestLinesOfAFile: an error in JSON Lines names the line of the file, and the other cases are read.
func TestLinesOfAFile(t *testing.T) {
	found, err := ReadTranscripts("runs.jsonl", []byte("[{\"role\":\"user\",\"content\":\"a\"}]\n\n[{\"role\":\"user\",\n[{\"role\":\"wizard\"}]\n{\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}\n{\"role\":\"user\"}\n"), Options{})
	if err != nil || len(found) != 5 {
		t.Fatalf("%v, %d cases", err, len(found))
	}
	for i, want := range []string{"", "runs.jsonl:3:", "runs.jsonl:4:10: at /0/role", "", "runs.jsonl:6:1: at the document (byte "} {
		err := found[i].Err()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("case %d: got %v, want …%s…", i, err, want)
		}
	}
	if from, to, _ := found[3].Case.Lines(1); from != 5 || to != 5 || found[3].Name != "5" {
		t.Errorf("lines %d to %d of %s", from, to, found[3].Name)
	}
	c := only(t, "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"assistant\",\"content\":\"b\"}", Options{Card: []byte(cardV03)})[0]
	if from, _, _ := c.Lines(2); from != 2 || !c.HasCard || string(c.Material()) != string(only(t, `[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`, Options{Card: []byte(cardV03)})[0].Material()) {
		t.Errorf("%d %s", from, c.Material())
	}
	found, err = ReadTranscripts("one.jsonl", []byte("{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"wizard\"}\n"), Options{})
	if err != nil || len(found) != 1 || !strings.Contains(found[0].Err().Error(), "one.jsonl:2:9: at /1/role") {
		t.Errorf("%v, %+v", err, found)
	}
}

// TestEveryMistake: a check finds all mistakes of a conversation, and reports no result for which a mistake hides the call.
func TestEveryMistake(t *testing.T) {
	found, err := ReadTranscripts("f", []byte(`[{"role":"wizard"},{"role":"user","content":7},{"role":"assistant","tool_calls":[{"id":"1"}]},{"role":"tool","tool_call_id":"1","content":"x"}]`), Options{Check: true})
	if err != nil || len(found[0].Mistakes) != 3 {
		t.Errorf("%v, %v", err, found[0].Mistakes)
	}
	found, _ = ReadTranscripts("f", []byte(`[{"role":"tool","content":"x"},{"role":"tool","content":"x"}]`), Options{Check: true})
	if len(found[0].Mistakes) != 2 {
		t.Errorf("%v", found[0].Mistakes)
	}
}

// packed is an Inspect log in its packed form.
func packed(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(files[i])
		if err == nil {
			_, err = f.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	must.Do(t, w.Close())
	return b.Bytes()
}

const sample = `{"id":"s","epoch":2,"input":"a","target":"t","scores":{"m":{"value":"C","explanation":"the score"}},
	"messages":[{"role":"user","content":"attachment://h"},{"role":"assistant","content":"b"}],"attachments":{"h":"a long text","unused":"x"}}`

// TestPackedLog: each sample of a packed log is a case. Its scores are not in the evidence, and its source is.
func TestPackedLog(t *testing.T) {
	c := only(t, string(packed(t, "header.json", "{}", "samples/s_epoch_2.json", sample)), Options{})[0]
	if c.Source.String() != "s_epoch_2" || c.Messages[0].Text != "a long text" || strings.Contains(string(c.Material()), "the score") {
		t.Errorf("%+v %s", c.Source, c.Material())
	}
	sameAgain(t, c)
	for want, data := range map[string][]byte{
		"an archive without samples": packed(t, "header.json", "{}"),
		"twice":                      packed(t, "samples/a.json", sample, "samples/a.json", sample),
		"a broken archive":           []byte("PK\x03\x04 and nothing more"),
		"longer than 64 MiB":         packed(t, "samples/a.json", strings.Repeat(" ", maxSample+1)),
	} {
		if _, err := ReadTranscripts("log.eval", data, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want …%s…", err, want)
		}
	}
	found, err := ReadTranscripts("log.eval", packed(t, "samples/a.json", "{", "samples/b.json", sample), Options{})
	if err != nil || len(found) != 2 || found[0].Err() == nil || !strings.HasPrefix(found[0].Err().Error(), "log.eval:samples/a.json:1:") || found[1].Err() != nil {
		t.Errorf("%v, %+v", err, found)
	}
}

// TestScoresThatAreNoNumbers: what Python writes among scores where it has no number keeps no conversation from being read. In a conversation it is a mistake, with its place.
func TestScoresThatAreNoNumbers(t *testing.T) {
	scored := strings.Replace(sample, `"C"`, `{"mean":NaN,"low":-Infinity,"high":[Infinity,NaN],"\\\"":"NaN \\\" -Infinity"}`, 1)
	turns := `[{"role":"user","content":"NaN, \"Infinity\""},{"role":"assistant","content":"-Infinity"}]`
	for name, text := range map[string]string{
		"a log":     `{"eval":{},"results":{"accuracy":NaN},"samples":[` + scored + `]}`,
		"a sample":  scored,
		"packed":    string(packed(t, "samples/s.json", scored)),
		"promptfoo": `{"results":{"results":[{"id":"r","score":NaN,"response":{"output":"x","metadata":{"messages":` + turns + `}}}],"stats":{"mean":-Infinity}}}`,
	} {
		found, err := ReadTranscripts("f", []byte(text), Options{})
		if err != nil || len(found) != 1 || found[0].Err() != nil {
			t.Errorf("%s: %v, %+v", name, err, found)
			continue
		}
		if name == "promptfoo" && (found[0].Case.Messages[0].Text != `NaN, "Infinity"` || found[0].Case.Messages[1].Text != "-Infinity") {
			t.Errorf("%+v", found[0].Case.Messages)
		}
	}
	for _, number := range []string{"NaN", "Infinity", "-Infinity"} {
		text := `{"eval":{},"samples":[{"id":"s","epoch":1,"messages":[{"role":"user","content":` + number + `}]}]}`
		found, err := ReadTranscripts("f", []byte(text), Options{})
		if err != nil || len(found) != 1 || found[0].Err() == nil || !strings.Contains(found[0].Err().Error(), "at /samples/0/messages/0/content") {
			t.Errorf("%s: %v, %+v", number, err, found)
		}
	}
}

// TestCasesOfResults: logs and results give a case for each sample, and name what is wrong with one.
func TestCasesOfResults(t *testing.T) {
	for text, want := range map[string]string{
		`{"eval":{},"samples":[` + sample + `,{"id":2,"epoch":1}]}`: "s_epoch_2 ok; 2_epoch_1 wrong",
		`{"results":{"results":[{"prompt":{"raw":"a"},"response":{"output":"b","metadata":{"redteamHistory":[{"prompt":"p","output":"q"},{"prompt":"r","output":"s"}]}}},{"prompt":{"raw":"a"},"response":{"output":null}}]}}`: "1 ok; 2 wrong",
		`[[{"role":"user","content":"a"}],{"messages":[]}]`: "1 ok; 2 wrong",
	} {
		found := must.Get(ReadTranscripts("f", []byte(text), Options{}))(t)
		var got []string
		for _, b := range found {
			state := "ok"
			if b.Err() != nil {
				state = "wrong"
			} else {
				sameAgain(t, b.Case)
			}
			got = append(got, b.Name+" "+state)
		}
		if all := strings.Join(got, "; "); all != want {
			t.Errorf("%s: %s", text, all)
		}
	}
}

// TestTooManyCases: a file with more cases than the limit is refused as a whole.
func TestTooManyCases(t *testing.T) {
	if _, err := ReadTranscripts("f", []byte(strings.Repeat(hello+"\n", maxCases+1)), Options{}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("more than %d", maxCases)) {
		t.Errorf("got %v", err)
	}
}

// FuzzTranscripts: each case of a file reads back the same from its evidence, and each mistake has a
// place and a reason.
func FuzzTranscripts(f *testing.F) {
	for _, at := range example.FindAllStringSubmatch(page(f), -1) {
		f.Add([]byte(at[3]), "")
	}
	f.Add([]byte(dual), "chat")
	f.Add([]byte(sample), "")
	f.Add(packed(f, "samples/s.json", sample), "")
	for _, form := range allForms() {
		f.Add([]byte(`{"system":"S","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]}]}`), string(form))
	}
	f.Fuzz(func(t *testing.T, data []byte, form string) {
		chosen, err := ParseForm(form)
		if err != nil {
			return
		}
		for _, check := range []bool{false, true} {
			found, err := ReadTranscripts("f", data, Options{Form: chosen, Check: check})
			if err != nil {
				continue
			}
			for _, b := range found {
				if (b.Case == nil) == (b.Err() == nil) {
					t.Fatalf("a case and mistakes, or neither: %v", b.Mistakes)
				}
				if b.Case != nil {
					sameAgain(t, b.Case)
				}
			}
		}
	})
}

// TestResultsThatAreNotRead: results of tau2-bench are refused by their name, with what is read.
func TestResultsThatAreNotRead(t *testing.T) {
	_, err := ReadTranscripts("f", []byte(`{"timestamp":"x","tasks":[],"simulations":[{"id":"x","messages":`+dual+`}]}`), Options{})
	if err == nil || !strings.Contains(err.Error(), "tau2-bench are not read: expected a conversation, or results of Inspect or promptfoo") {
		t.Error(err)
	}
}

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
