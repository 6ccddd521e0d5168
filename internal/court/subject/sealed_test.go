package subject_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
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
	"jurat/internal/court/juror/rules"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/tap/traffic"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
	"jurat/verify"
)

// folders returns the folders of the example cases, and of further cases if they are here.
func folders(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("../../../examples/*/conversation.json")
	must.Need(t, err == nil && len(list) != 0, "no examples: %v", err)
	more := must.Get(filepath.Glob("../../../../shared/cases/*/conversation.json"))(t)
	list = append(list, more...)
	for i := range list {
		list[i] = filepath.Dir(list[i])
	}
	return list
}

func read(t *testing.T, elements ...string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(filepath.Join(elements...)))(t)
}

func marshal(t *testing.T, file interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	return must.Get(file.Marshal())(t)
}

func exhibits(t *testing.T, file []byte, o verify.Options, card []byte) *subject.Case {
	t.Helper()
	c, _, err := subject.ReadSealed(bytes.NewReader(file), o, card)
	must.Do(t, err)
	return c
}

// spoken returns the messages without the parts that depend on their source.
func spoken(c *subject.Case) (list []subject.Message) {
	for _, m := range c.Messages {
		m.Record, m.Part, m.Head = evidence.Digest{}, "", ""
		list = append(list, m)
	}
	return list
}

// TestRecordedConversationReadsAsTheConversation: the jury reads the same messages from sealed records as from the
// conversation, in each way in which an agent's program can record it. A trial by rules has the same result, except that
// each finding names its record.
func TestRecordedConversationReadsAsTheConversation(t *testing.T) {
	for _, folder := range folders(t) {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			card, conversation := read(t, folder, "agent-card.json"), read(t, folder, "conversation.json")
			if jsontext.Value(conversation).Kind() != '[' {
				return // an A2A task, which programs that record model calls do not have as a prompt
			}
			plain := upToLastTurn(t, card, conversation)
			want := try(t, jurattest.New(t), plain)
			for _, how := range []jurattest.Prompting{jurattest.WholeHistory, jurattest.OnlyNew} {
				h := jurattest.New(t)
				records := h.Record(t, conversation, how)
				c := exhibits(t, marshal(t, h.Bundle(t, records...)), h.Options(t), card)
				diff := cmp.Diff(spoken(plain), spoken(c))
				must.Need(t, diff == "", "recorded with the whole history: %v (-conversation +records):\n%s", how, diff)
				must.Hold(t, c.Recorded.Verification.Outcome == subject.Proved && c.Recorded.Records == len(records), "%+v", c.Recorded)
				if how == jurattest.OnlyNew {
					continue // the same messages come to the same verdict
				}
				got := try(t, h, c)
				must.Equal(t, strip(t, c, got), len(findings(want)), "findings name a record")
				must.Equal(t, cmp.Diff(want, got), "", how)
			}
		})
	}
}

// upToLastTurn returns the case up to the agent's last turn. No record contains what came later.
func upToLastTurn(t *testing.T, card, conversation []byte) *subject.Case {
	t.Helper()
	var messages []jsontext.Value
	must.Do(t, json.Unmarshal(conversation, &messages))
	whole := must.Get(subject.New(card, conversation))(t)
	n := len(messages)
	for whole.Messages[n-1].Role != subject.Assistant {
		n--
	}
	short := must.Get(json.Marshal(messages[:n]))(t)
	return must.Get(subject.New(card, short))(t)
}

// try conducts a trial by rules, and verifies it.
func try(t *testing.T, h *jurattest.House, c *subject.Case) *jury.Result {
	t.Helper()
	seats, judgeSeat := rules.Seats()
	jurors, judge := rules.Jurors(nil)
	settings := jury.Settings{Seats: seats, Rubric: jury.DefaultRubric(), Collaborative: true, MaxRounds: 2, Threshold: 2,
		Method: jury.FinalJudge, Judge: &judgeSeat}
	done := must.Get(trial.Run(t.Context(), trial.Config{Ledger: h.Ledger, Keys: h.Keys, Now: h.Now, Random: h.Random,
		Settings: settings, Jurors: jurors, Judge: judge}, c))(t)
	r := verify.Bundle(h.Bundle(t, done.Records...), h.Options(t))
	must.Hold(t, r.Outcome == verify.Proved, "the case file: %s: %+v", r.Outcome, r.Details)
	return done.Result
}

func findings(r *jury.Result) (list []*jury.Finding) {
	add := func(found []jury.Finding) {
		for i := range found {
			list = append(list, &found[i])
		}
	}
	for i := range r.Phase1Evaluations {
		add(r.Phase1Evaluations[i].Findings)
	}
	for i := range r.DiscussionRounds {
		for _, s := range r.DiscussionRounds[i].Statements {
			if s.UpdatedEvaluation != nil {
				add(s.UpdatedEvaluation.Findings)
			}
		}
	}
	for i := range r.Changes {
		add(r.Changes[i].Cites)
	}
	return list
}

// strip removes the records from findings, and counts the findings that named the right one.
func strip(t *testing.T, c *subject.Case, r *jury.Result) (right int) {
	t.Helper()
	for _, f := range findings(r) {
		if m := c.Message(f.Message); m == nil || f.Record == (evidence.Digest{}) || f.Record != m.Record {
			t.Errorf("message %d, record %s", f.Message, f.Record)
		} else {
			right++
		}
		f.Record = evidence.Digest{}
	}
	return right
}

func outputs(t *testing.T, h *jurattest.House) []*evidence.Record {
	t.Helper()
	return h.Record(t, []byte(`[{"role":"user","content":"Cancel my order 17."},{"role":"assistant","content":"It is cancelled."},
		{"role":"user","content":"Thanks."},{"role":"assistant","content":"You are welcome."}]`), jurattest.OnlyNew)
}

// TestRefutedIsNoEvidence: a changed record, or one signed by another key than it names, is not shown to a jury.
func TestRefutedIsNoEvidence(t *testing.T) {
	h := jurattest.New(t)
	file := marshal(t, h.Bundle(t, outputs(t, h)...))
	changed := bytes.Replace(file, []byte("It is cancelled."), []byte("It is cancelles."), 1)
	must.Need(t, !bytes.Equal(changed, file), "nothing was changed")
	impostor := jurattest.NewImpostor(t)
	records := outputs(t, impostor)
	genuine := outputs(t, h)
	genuine[0].Signatures = [][]byte{genuine[1].Signatures[0]} // the signature of another record by the same key
	for name, one := range map[string][]byte{"changed": changed, "signed elsewhere": marshal(t, genuine[0])} {
		c, report, err := subject.ReadSealed(bytes.NewReader(one), h.Options(t), nil)
		must.Hold(t, errors.Is(err, subject.ErrRefuted) && c == nil && report != nil && report.Outcome == verify.Refuted, "%s: %v", name, err)
	}
	// Unknown keys refute nothing. The evidence tells the jury about them.
	c := exhibits(t, marshal(t, impostor.Bundle(t, records...)), h.Options(t), nil)
	v := c.Recorded.Verification
	must.Hold(t, v.Outcome == subject.NotProved && doubted(v, "authentication"), "%+v", v)
}

func doubted(v subject.Verification, guarantee string) bool {
	for _, d := range v.NotProved {
		if d.Guarantee == guarantee && d.Reason != "" {
			return true
		}
	}
	return false
}

// TestDoubtsAreInTheEvidence: without a trust file nothing is proved. The evidence says so, and has another digest.
func TestDoubtsAreInTheEvidence(t *testing.T) {
	h := jurattest.New(t)
	file := marshal(t, h.Bundle(t, outputs(t, h)...))
	proved, doubtful := exhibits(t, file, h.Options(t), nil), exhibits(t, file, verify.Options{}, nil)
	v := doubtful.Recorded.Verification
	must.Hold(t, v.Outcome == subject.NotProved && v.Trust == "" && doubted(v, "authentication") && doubted(v, "time"), "%+v", v)
	w := proved.Recorded.Verification
	must.Hold(t, w.Outcome == subject.Proved && w.Trust != "" && !doubted(w, "authentication") && doubted(w, "non_repudiation"), "%+v", w)
	must.Hold(t, proved.Digest() != doubtful.Digest(), "proved and unproved evidence have the same digest")
	must.Hold(t, strings.Contains(doubtful.Messages[0].Head, "no time is proved") && strings.Contains(proved.Messages[0].Head, "it existed by "),
		"%s\n%s", doubtful.Messages[0].Head, proved.Messages[0].Head)
}

// TestSameEvidenceEachTime: the evidence does not depend on the time of checking, so a second trial of a case is
// recognised as such.
func TestSameEvidenceEachTime(t *testing.T) {
	h := jurattest.New(t)
	file := marshal(t, h.Bundle(t, outputs(t, h)...))
	now, later := h.Options(t), h.Options(t)
	now.At, later.At = jurattest.Start.Add(time.Hour), jurattest.Start.AddDate(1, 0, 0)
	a, b := exhibits(t, file, now, nil), exhibits(t, file, later, nil)
	must.Hold(t, a.Digest() == b.Digest(), "the same records gave other evidence a year later")
}

func TestWithheldIsShownAsWithheld(t *testing.T) {
	h := jurattest.New(t)
	records := h.Record(t, []byte(`[{"role":"user","content":"My PIN is 4711."},{"role":"assistant","content":"Noted."}]`), jurattest.OnlyNew, "/prompt")
	shown := exhibits(t, marshal(t, records[0]), h.Options(t), nil)
	m := shown.Messages[0]
	must.Hold(t, m.Text == "My PIN is 4711." && m.Role == subject.User, "disclosed: %+v", m)
	_, err := evidence.Withhold(records, []string{"/prompt"})
	must.Need(t, err == nil, "%v", err)
	c := exhibits(t, marshal(t, records[0]), h.Options(t), nil)
	m = c.Messages[0]
	must.Hold(t, strings.HasPrefix(m.Text, "[withheld: /prompt") && strings.Contains(m.Head, "sealed apart and withheld: /prompt"), "%+v", m)
	must.Hold(t, !bytes.Contains(c.Material(), []byte("4711")), "the evidence contains a withheld text")
	must.Hold(t, c.Messages[1].Text == "Noted.", "%+v", c.Messages)
}

func TestNoEvidenceOfWhatAnAgentDid(t *testing.T) {
	h := jurattest.New(t)
	c := jurattest.Case(t)
	seats, _ := rules.Seats()
	jurors, _ := rules.Jurors(nil)
	done := must.Get(trial.Run(t.Context(), trial.Config{Ledger: h.Ledger, Keys: h.Keys, Now: h.Now, Random: h.Random, Jurors: jurors,
		Settings: jury.Settings{Seats: seats, Rubric: jury.DefaultRubric(), Method: jury.MajorityVote}}, c))(t)
	for name, one := range map[string]struct {
		file []byte
		want error
	}{
		"a trial":      {marshal(t, h.Bundle(t, done.Records...)), subject.ErrTrial},
		"one act":      {marshal(t, done.Records[0]), subject.ErrTrial},
		"empty bundle": {marshal(t, h.Bundle(t)), subject.ErrNoActs},
		"a review": {marshal(t, h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "anna", Timestamp: evidence.FormatTime(h.Now()),
			OriginalResponseID: "x", ApprovalStatus: evidence.Rejected})), subject.ErrNoActs},
		"a poem": {[]byte("roses are red"), verify.ErrNotOurs},
		"a case": {read(t, "../../../examples/kitchen-return/conversation.json"), verify.ErrNotOurs},
	} {
		_, _, err := subject.ReadSealed(bytes.NewReader(one.file), h.Options(t), nil)
		must.Hold(t, errors.Is(err, one.want), "%s: %v, want %v", name, err, one.want)
	}
}

func TestTooMuch(t *testing.T) {
	h := jurattest.New(t)
	long := must.Get(json.Marshal(strings.Repeat("x", subject.MaxFile/2)))(t)
	var records []*evidence.Record
	for range 2 {
		records = append(records, h.Seal(t, evidence.Payload{ActionType: evidence.ModelOutput, AgentID: "a", RequestID: "r",
			Timestamp: evidence.FormatTime(h.Now()), Model: "m", ModelVersion: "1", Parameters: jsontext.Value("{}"),
			Prompt: jsontext.Value(`"p"`), Response: long}))
	}
	_, _, err := subject.ReadSealed(bytes.NewReader(marshal(t, h.Bundle(t, records...))), h.Options(t), nil)
	must.Want(t, err, subject.ErrTooMuch)
	_, _, err = subject.ReadSealed(bytes.NewReader(marshal(t, records[0])), h.Options(t), nil)
	must.Hold(t, err == nil, "half of it: %v", err)
}

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
			p := must.Get(observed.Draft(a))(t).Payload
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
	a := observed.Act{Payload: evidence.Payload{AgentID: "gate", Timestamp: evidence.FormatTime(jurattest.Start), ChainID: "talk"},
		Observed: evidence.Observed{Began: evidence.FormatTime(jurattest.Start), Agent: "recorded-agent", Vantage: evidence.Proxy, Fidelity: evidence.ByBytes, Protocol: traffic.OpenAIChat, Method: "POST", Path: "/v1/chat/completions", Status: 200, Ended: evidence.Complete, EndedMS: observed.Milliseconds(time.Second)},
		Request:  observed.Whole(request, ""), Response: observed.Whole([]byte(response), "")}
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
		doc := must.Get(json.Marshal(map[string]any{"model": "gpt-4o-2024-08-06", "choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}}))(t)
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
			v := c.Recorded.Verification
			must.Hold(t, slices.Contains(v.Proved, "vantage"), "%.500v", v)
			notes := 0
			list := slices.DeleteFunc(spoken(c), func(m subject.Message) bool {
				if m.Role == subject.Recorder {
					notes++
				}
				return m.Role == subject.Recorder
			})
			must.Hold(t, notes == len(records)/2, "%d notes of the recorder on %d records", notes, len(records)) // each first attempt failed
			diff := cmp.Diff(unnumbered(spoken(plain)), unnumbered(list))
			must.Need(t, diff == "", "(-conversation +records):\n%s", diff)
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

// TestPassage: what a reader quotes is found in each typography of either side, and returned as it stands in the message.
func TestPassage(t *testing.T) {
	for _, tt := range []struct{ name, stands, quoted string }{
		{"literal", "I have paid Ann", "I have paid Ann"},
		{"no-break space", "I have\u00a0paid Ann", "I have paid Ann"},
		{"narrow no-break space", "1\u202f200\u202f€", "1 200 €"},
		{"no-break space of the reader", "I have paid Ann", "I have\u00a0paid Ann"},
		{"thin, en, em and figure space", "a\u2009b\u2002c\u2003d\u2007e", "a b c d e"},
		{"ideographic space", "支払い\u3000済み", "支払い 済み"},
		{"blank of Braille", "I have\u2800paid", "I have paid"},
		{"runs of spaces", "I  have \t paid", "I have paid"},
		{"runs of spaces of the reader", "I have paid", "I   have paid "},
		{"line end", "I have\r\npaid\r\nAnn", "I have\npaid\nAnn"},
		{"line end taken for a space", "I have\npaid", "I have paid"},
		{"separators of lines and paragraphs", "I have\u2028paid\u2029Ann\u0085now", "I have paid Ann now"},
		{"apostrophe", "I didn’t ask", "I didn't ask"},
		{"apostrophe of the reader", "I didn't ask", "I didn’t ask"},
		{"accent as an apostrophe", "I didn´t ask, I didn`t", "I didn't ask, I didn't"},
		{"letter apostrophe, prime", "5′ and Hawaiʻi and Oʼahu", "5' and Hawai'i and O'ahu"},
		{"double quotation marks", "[[he said “paid” to „Ann]]“", `he said "paid" to "Ann"`},
		{"guillemets", "[[он сказал «оплачено]]»", `он сказал "оплачено"`},
		{"corner brackets", "「[[支払い」と『言った]]』", `"支払い"と"言った"`},
		{"single for double", `{"to": "Ann"}`, `{'to': 'Ann'}`},
		{"quotation marks of TeX", "said ``paid''.", `said "paid".`},
		{"a quotation in quotation marks", "I have paid", "“I have paid”"},
		{"en dash, em dash, minus", "10–20 — paid, −5", "10-20 - paid, -5"},
		{"two hyphens", "paid—now", "paid--now"},
		{"no-break hyphen, horizontal bar", "pre‑paid ― now", "pre-paid - now"},
		{"ellipsis", "wait… paid", "wait... paid"},
		{"decomposed", "cafe\u0301 paye\u0301", "caf\u00e9 pay\u00e9"},
		{"decomposed by the reader", "caf\u00e9", "cafe\u0301"},
		{"full width", "ＰＡＩＤ　１２０＄", "PAID 120$"},
		{"full width of the reader", "PAID 120$", "ＰＡＩＤ １２０＄"},
		{"half-width katakana", "ﾊﾞｲｵ ﾊﾟｽ", "バイオ パス"},
		{"decomposed voiced marks", "\u304b\u3099\u306f\u309a", "がぱ"},
		{"spacing voiced marks", "か゛は゜", "がぱ"},
		{"wave dash", "10〜20", "10～20"},
		{"decomposed Hangul", "\u1112\u1161\u11ab", "한"},
		{"ligature", "the ﬁle is oﬀ", "the file is off"},
		{"superscript", "5 m²", "5 m2"},
		{"soft hyphen", "un\u00adautho\u00adrised", "unauthorised"},
		{"zero width", "[[I\u200b have\u2060 pa\ufeffid]]\u200d", "I have paid"},
		{"zero width of the reader", "I have paid", "I have\u200b paid"},
		{"marks of direction", "\u200e[[paid \u202b100]]\u202c", "paid 100"},
		{"variation selector", "paid ✔\ufe0f now", "paid ✔ now"},
		{"French punctuation", "Payé\u202f: «\u00a0oui\u00a0»\u202f!", `Payé: "oui"!`},
		{"French punctuation of the reader", "Payé: «oui»!", "Payé : « oui » !"},
		{"dash with and without spaces", "paid — now, 10–20", "paid—now, 10 – 20"},
		{"spaces of JSON", `{"to":"Ann","sum":[1,2]}`, `{ "to": "Ann", "sum": [1, 2] }`},
		{"spaces before units", "50\u202f% off, 5\u00a0€", "50% off, 5€"},
		{"spaces in ideographic text", "「[[支払い」 と]]", "「支払い」と"},
		{"fractions", "½ paid, 3⁄4", "1/2 paid, 3/4"},
		{"escapes of JSON", `{"note":"[[I paid\u00a0Ann\nnow \u2013 \ud83d\ude00]]"}`, "I paid Ann now - 😀"},
		{"escaped quotation marks", `{\"to\":\"Ann\"}`, `{"to":"Ann"}`},
	} {
		want, stands := tt.stands, tt.stands
		if _, inner, marked := strings.Cut(stands, "[["); marked { // the passage is only this part
			want, _, _ = strings.Cut(inner, "]]")
			stands = strings.NewReplacer("[[", "", "]]", "").Replace(stands)
		}
		stands = "Before. " + stands + ". After"
		for place, m := range map[string]subject.Message{
			"text":      {Text: stands},
			"arguments": {Text: "Other.", ToolCalls: []subject.ToolCall{{Name: "pay", Arguments: stands}}},
		} {
			passage, found := m.Passage(tt.quoted)
			if !found || !m.Holds(passage) {
				t.Errorf("%s, %s: %q is not found, or not as it stands: %q", tt.name, place, tt.quoted, passage)
				continue
			}
			must.Hold(t, passage == want, "%s, %s: %q, want %q", tt.name, place, passage, want)
		}
	}
}

// TestNoPassage: other words are not found, however alike.
func TestNoPassage(t *testing.T) {
	m := subject.Message{Text: "I have not paid Ann 1,200 € for cafés — ask her.", ToolCalls: []subject.ToolCall{{Name: "pay", Arguments: `{"to":"Ann"}`}}}
	for _, quote := range []string{"I have paid Ann", "i have not paid", "Ann 1.200 €", "cafe", "Ann1,200", "havenot", "ask him", `{"to":"Bob"}`, "paid Ann \u2014 1,200", "", "\u200b", "“”", "her. I", "Аnn" /* Cyrillic */} {
		passage, found := m.Passage(quote)
		must.Hold(t, !found, "%q is found as %q", quote, passage)
	}
}

// FuzzPassage: every part of a text is found in it, and every passage is a part of it.
func FuzzPassage(f *testing.F) {
	f.Add("I\u00a0have “paid”", "have \"paid\"")
	f.Add(`\ud83d\ude00 e`+"\u0301", "\u00e9")
	f.Fuzz(func(t *testing.T, text, quote string) {
		m := subject.Message{Text: strings.ToValidUTF8(text, "?")}
		passage, found := m.Passage(strings.ToValidUTF8(quote, "?"))
		must.Hold(t, !found || m.Holds(passage), "%q is no part of %q", passage, m.Text)
	})
}
