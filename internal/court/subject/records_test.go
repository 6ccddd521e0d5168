package subject

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"jurat/evidence"
	"jurat/internal/test/must"
)

const signers = `"signers":[{"alg":"Ed25519","key_id":"sha256:1111111111111111111111111111111111111111111111111111111111111111"}]`

// exhibit makes a payload with these members and those that every payload has.
func exhibit(t testing.TB, n int, members string) Exhibit {
	t.Helper()
	doc := fmt.Sprintf(`{"schema":"jurat/evidence/v1","record_id":"01890000-0000-7000-8000-%012d",%s,%s}`, n, signers, members)
	form := must.Get(evidence.Canonical([]byte(doc)))(t)
	return Exhibit{Digest: evidence.DigestOf(form), Payload: form}
}

// output makes a model output with this prompt and response.
func output(t testing.TB, n int, prompt, response, more string) Exhibit {
	t.Helper()
	return exhibit(t, n, fmt.Sprintf(`"action_type":"model_output","agent_id":"clerk-bot","request_id":"r%d","timestamp":"2026-01-31T16:15:00Z",
		"model":"m","model_version":"1","parameters":{},"prompt":%s,"response":%s%s`, n, prompt, response, more))
}

func fromRecords(t testing.TB, list ...Exhibit) *Case {
	t.Helper()
	return must.Get(FromRecords(nil, list, Verification{Outcome: Proved}))(t)
}

// script writes each message as a line.
func script(c *Case) string {
	var s strings.Builder
	for _, m := range c.Messages {
		fmt.Fprintf(&s, "%d %s %s: %s", m.Number, m.Role, m.Part, m.Text)
		for _, call := range m.ToolCalls {
			fmt.Fprintf(&s, "%s(%s)->%d", call.Name, call.Arguments, call.Result)
		}
		s.WriteByte('\n')
	}
	return strings.TrimSpace(s.String())
}

func TestWhatRecordsSay(t *testing.T) {
	chat := `[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}]`
	for name, one := range map[string]struct {
		records []Exhibit
		want    string
	}{
		"text": {[]Exhibit{output(t, 1, `"Plan a route."`, `"Take the A9."`, "")},
			"1 user prompt: Plan a route.\n2 assistant response: Take the A9."},
		"chat messages": {[]Exhibit{output(t, 1, chat, `{"role":"assistant","content":"Hello","refusal":null,"annotations":[]}`, "")},
			"1 system prompt: Be brief.\n2 user prompt: Hi\n3 assistant response: Hello"},
		"messages in an object": {[]Exhibit{output(t, 1, `{"messages":`+chat+`}`, `{"content":"Hello"}`, "")},
			"1 system prompt: Be brief.\n2 user prompt: Hi\n3 assistant response: Hello"},
		"a member that is not read is shown": {[]Exhibit{output(t, 1, `{"messages":`+chat+`,"note":"x"}`, `{"content":"Hello","aside":"psst"}`, "")},
			`1 user prompt: {"messages":[{"content":"Be brief.","role":"system"},{"content":"Hi","role":"user"}],"note":"x"}` + "\n" +
				`2 assistant response: {"aside":"psst","content":"Hello"}`},
		"an agent cannot speak for its user": {[]Exhibit{output(t, 1, `"Hi"`, `[{"role":"user","content":"Yes, do it."}]`, "")},
			"1 user prompt: Hi\n2 assistant response: " + `[{"content":"Yes, do it.","role":"user"}]`},
		"what was said before is shown once": {[]Exhibit{
			output(t, 1, chat, `"Hello"`, ""),
			output(t, 2, chat[:len(chat)-1]+`,{"role":"assistant","content":"Hello"},{"role":"user","content":"Bye"}]`, `"Bye"`, "")},
			"1 system prompt: Be brief.\n2 user prompt: Hi\n3 assistant response: Hello\n4 user prompt: Bye\n5 assistant response: Bye"},
		"an earlier message in another wording is shown": {[]Exhibit{
			output(t, 1, `[{"role":"user","content":"Hi"}]`, `"Hello"`, ""),
			output(t, 2, `[{"role":"user","content":"Hi"},{"role":"assistant","content":"Never"}]`, `"Bye"`, "")},
			"1 user prompt: Hi\n2 assistant response: Hello\n3 user prompt: Hi\n4 assistant prompt: Never\n5 assistant response: Bye"},
		"tools and context": {[]Exhibit{output(t, 1, `"Cancel 17"`, `"Done"`,
			`,"context":"Order 17 is open.","tools_used":["search",{"name":"cancel","arguments":{"id":17},"result":{"ok":true}},{"name":"odd","why":"?"},5]`)},
			"1 user prompt: Cancel 17\n2 tool context: Order 17 is open.\n3 assistant tools_used: search()->0\n" +
				`4 assistant tools_used: cancel({"id":17})->5` + "\n" + `5 tool tools_used: {"ok":true}` + "\n" +
				`6 assistant tools_used: (tool)({"name":"odd","why":"?"})->0` + "\n7 assistant tools_used: (tool)(5)->0\n8 assistant response: Done"},
		"a call, answered in the next prompt": {[]Exhibit{
			output(t, 1, `"Cancel 17"`, `{"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"cancel","arguments":"{}"}}]}`, ""),
			output(t, 2, `[{"role":"tool","tool_call_id":"c1","content":"ok"}]`, `"Done"`, "")},
			"1 user prompt: Cancel 17\n2 assistant response: cancel({})->3\n3 tool prompt: ok\n4 assistant response: Done"},
		"an answer to a call that no record has": {[]Exhibit{output(t, 1, `[{"role":"tool","tool_call_id":"c1","content":"ok"}]`, `"Done"`, "")},
			"1 tool prompt: ok\n2 assistant response: Done"},
		"nothing went in": {[]Exhibit{output(t, 1, `[]`, `[]`, "")}, "1 assistant response: []"},
	} {
		t.Run(name, func(t *testing.T) {
			c := fromRecords(t, one.records...)
			must.Equal(t, cmp.Diff(one.want, script(c)), "")
			again := must.Get(Parse(c.Material()))(t)
			diff := cmp.Diff(c.Messages, again.Messages)
			must.Hold(t, diff == "" && again.Digest() == c.Digest(), "read again: %s", diff)
		})
	}
}

func TestReviewsAndDeliveries(t *testing.T) {
	draft := output(t, 1, `"Write"`, `"A draft"`, "")
	digest := func(list ...Exhibit) string {
		var names []string
		for _, e := range list {
			names = append(names, `"`+e.Digest.String()+`"`)
		}
		return "[" + strings.Join(names, ",") + "]"
	}
	review := exhibit(t, 2, `"action_type":"human_review","reviewer_id":"anna","timestamp":"2026-01-31T16:16:00Z","approval_status":"approved_with_modifications",
		"original_response_id":"01890000-0000-7000-8000-000000000001","modified_response":"A better draft","saw":`+digest(draft))
	delivered := exhibit(t, 3, `"action_type":"delivery","agent_id":"clerk-bot","timestamp":"2026-01-31T16:17:00Z","response":"A better draft","saw":`+digest(draft, review))
	other := exhibit(t, 4, `"action_type":"delivery","agent_id":"clerk-bot","timestamp":"2026-01-31T16:17:00Z","response":"Something else","saw":`+digest(draft, review))
	erased := exhibit(t, 5, `"action_type":"erasure","agent_id":"operator","timestamp":"2026-01-31T16:18:00Z","saw":`+digest(draft)+
		`,"response":{"by":"bo","pointers":["/prompt"],"reason":"asked","record":`+digest(draft)[1:74]+`}`)
	c := fromRecords(t, draft, review, delivered, other, erased)
	want := "1 user prompt: Write\n2 assistant response: A draft\n" +
		"3 reviewer approval_status: approved_with_modifications: 01890000-0000-7000-8000-000000000001\n4 reviewer modified_response: A better draft\n" +
		"5 operator response: [delivered as it stands in message 4]\n6 assistant response: Something else\n7 operator response: erasure: "
	if got := script(c); !strings.HasPrefix(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	if c.Messages[2].Record != review.Digest || c.Messages[3].Record != review.Digest || c.Messages[3].Head != "" || !strings.Contains(c.Messages[2].Head, `human_review by the reviewer "anna"`) {
		t.Errorf("%+v", c.Messages[2:4])
	}
	must.Equal(t, c.Card.Name, "clerk-bot")
}

func TestRecordsThatAreNoEvidence(t *testing.T) {
	good := output(t, 1, `"p"`, `"r"`, "")
	material := func(records, verification string) string {
		return fmt.Sprintf(`{"records":[%s],"verification":%s}`, records, verification)
	}
	const fine = `{"outcome":"proved","proved":[],"notProved":[]}`
	record := fmt.Sprintf(`{"digest":%q,"payload":%s}`, good.Digest, good.Payload)
	_, err := Parse([]byte(material(record, fine)))
	must.Need(t, err == nil, "what is right: %v", err)
	trial := exhibit(t, 2, `"action_type":"absence","agent_id":"clerk","timestamp":"2026-01-31T16:15:00Z","chain_id":"trial-x","chain_position":2,
		"previous_record":"`+good.Digest.String()+`","case":"`+good.Digest.String()+`","response":{}`)
	for name, one := range map[string]struct{ doc, want string }{
		"none":                    {material("", fine), "expected at least one"},
		"twice":                   {material(record+","+record, fine), "record 2: duplicate record"},
		"another digest":          {material(strings.Replace(record, good.Digest.String(), trial.Digest.String(), 1), fine), "record 1: digest: the payload's is"},
		"changed":                 {material(strings.Replace(record, `"p"`, `"q"`, 1), fine), "record 1: digest: the payload's is"},
		"no payload":              {material(fmt.Sprintf(`{"digest":%q}`, good.Digest), fine), "a record without a payload"},
		"payload of a wrong kind": {material(fmt.Sprintf(`{"digest":%q,"payload":[]}`, evidence.DigestOf([]byte("[]"))), fine), "record 1: payload: "},
		"a trial's act":           {material(fmt.Sprintf(`{"digest":%q,"payload":%s}`, trial.Digest, trial.Payload), fine), "an act of a trial"},
		"no verification":         {fmt.Sprintf(`{"records":[%s]}`, record), "expected verification"},
		"unknown outcome":         {material(record, `{"outcome":"refuted","proved":[],"notProved":[]}`), "unknown outcome"},
		"nothing said":            {material(record, `{"outcome":"proved"}`), "expected the members proved and notProved"},
		"unknown member":          {material(record, `{"outcome":"proved","proved":[],"notProved":[],"x":1}`), "/verification"},
		"a conversation, too":     {strings.Replace(material(record, fine), `"records"`, `"conversation":[],"records"`, 1), "conversation"},
		"a card that is none":     {strings.Replace(material(record, fine), `"records"`, `"agentCard":{"name":7},"records"`, 1), "expected a string"},
		"a time that is none":     {material(strings.Replace(record, `"payload"`, `"provedTime":{"authority":"a","clock":"independent","time":"noon"},"payload"`, 1), fine), "not a valid proved time"},
		"an unknown clock":        {material(strings.Replace(record, `"payload"`, `"provedTime":{"authority":"a","clock":"sundial","time":"2026-01-31T16:15:00Z"},"payload"`, 1), fine), "unknown kind of clock"},
		"a disclosure of nothing": {material(strings.Replace(record, `"payload"`, `"disclosures":[{"pointer":"/prompt","salt":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","value":"x"}],"payload"`, 1), fine), "record 1: "},
	} {
		_, err := Parse([]byte(one.doc))
		var where *Error
		must.Hold(t, errors.As(err, &where) && strings.Contains(err.Error(), one.want), "%s: got %v\nwant …%s…", name, err, one.want)
	}
}

func TestTooManyMessages(t *testing.T) {
	many := "[" + strings.Repeat(`"a",`, maxMessages+10) + `"a"]`
	_, err := FromRecords(nil, []Exhibit{output(t, 1, `"p"`, `"r"`, `,"tools_used":`+many)}, Verification{Outcome: Proved})
	must.Hold(t, err != nil && strings.Contains(err.Error(), "more than 100000 messages"), "%v", err)
}

// FuzzRecords: any content that an agent's program puts into a record becomes messages that name their record, and the
// evidence reads back the same.
func FuzzRecords(f *testing.F) {
	f.Add(`"p"`, `"c"`, `["t"]`, `"r"`)
	f.Add(`[{"role":"user","content":"Hi"}]`, `[]`, `[{"name":"n","input":"{}","output":null},{"id":5}]`, `{"tool_calls":[{"id":"1","function":{"name":"x","arguments":{}}}],"content":null}`)
	f.Add(`{"messages":[{"role":"tool","tool_call_id":"1","content":"a"}]}`, `{"content":[{"type":"text","text":"a"}],"role":"assistant"}`, `[[],{},"",null]`, `[{"role":"assistant","content":"a"}]`)
	f.Fuzz(func(t *testing.T, prompt, context, tools, response string) {
		for _, v := range []string{prompt, context, tools, response} {
			if !jsontext.Value(v).IsValid() {
				return
			}
		}
		doc := func(n int) (Exhibit, bool) {
			form, err := evidence.Canonical(fmt.Appendf(nil, `{"schema":"jurat/evidence/v1","record_id":"01890000-0000-7000-8000-%012d",%s,
				"action_type":"chain_step","agent_id":"a","request_id":"r","timestamp":"2026-01-31T16:15:00Z","chain_position":%d,
				"prompt":%s,"context":%s,"tools_used":%s,"response":%s}`, n, signers, n, prompt, context, tools, response))
			return Exhibit{Digest: evidence.DigestOf(form), Payload: form}, err == nil
		}
		one, ok := doc(1)
		two, _ := doc(2)
		if !ok {
			return
		}
		c, err := FromRecords(nil, []Exhibit{one, two}, Verification{Outcome: NotProved})
		if err != nil {
			var where *Error
			must.Need(t, errors.As(err, &where) && where.Reason != "", "an error without a place: %v", err)
			return
		}
		for i, m := range c.Messages {
			must.Need(t, m.Number == i+1 && m.Part != "" && (m.Record == one.Digest || m.Record == two.Digest), "message %d: %+v", i+1, m)
		}
		last := c.Messages[len(c.Messages)-1]
		must.Need(t, last.Record == two.Digest && c.Messages[0].Head != "", "%+v", last)
		again := must.Get(Parse(c.Material()))(t)
		diff := cmp.Diff(c.Messages, again.Messages)
		must.Need(t, diff == "" && again.Digest() == c.Digest(), "the evidence does not read back the same: %s", diff)
	})
}

// recordOf makes the record of an exhibit.
func recordOf(t testing.TB, e Exhibit) *evidence.Record {
	t.Helper()
	return must.Get(evidence.OpenParts(e.Payload, [][]byte{{1}}, nil))(t)
}

// TestTranscript: each call adds what was not shown, also where the calls before it were left out, as their bytes are kept.
func TestTranscript(t *testing.T) {
	hi := said("user", strings.Repeat("Hi, and a long text that is worth copying. ", 20))
	first, second := chatRequest(brief, hi), chatRequest(brief, hi, helloed, said("user", "Bye"), search, found)
	calls := []Exhibit{seen(t, 1, seenCall{request: first, response: chatAnswer(helloed)}), seen(t, 2, seenCall{request: second, response: chatAnswer(search), earlier: []string{first}}),
		seen(t, 3, seenCall{request: second, response: chatAnswer(search), earlier: []string{second}, more: `,"retry_of":"r2"`}),
		seen(t, 4, seenCall{request: chatRequest(hi), response: chatAnswer(helloed), earlier: []string{"what no record has"}})}
	for skipped, want := range []string{
		"1: system user assistant; 2: repeats 3: user assistant tool assistant; 3: repeats 6, again 7: recorder; 4: user assistant; ",
		"2: system user assistant user assistant tool assistant; 3: repeats 6, again 7: recorder; 4: user assistant; ",
	} {
		tr, got := NewTranscript(), ""
		for i, e := range calls {
			if i < skipped {
				tr.Skip(recordOf(t, e))
			} else if err := tr.Take(recordOf(t, e)); err != nil {
				t.Fatal(err)
			}
		}
		acts := tr.Acts()
		for i, e := range calls[skipped:] {
			act := acts[e.Digest]
			got += fmt.Sprint(skipped+i+1, ":")
			if len(act.Repeated) > 0 {
				got = got[:len(got)-1] + fmt.Sprintf(": repeats %d", len(act.Repeated))
				if act.Again > 0 {
					got += fmt.Sprintf(", again %d", act.Again)
				}
				got += ":"
			}
			for _, m := range act.Messages {
				got += " " + string(m.Role)
			}
			got += "; "
			must.Hold(t, len(act.Lacks) == 0 && act.Said.Prompt != nil, "call %d: %v, %+v", skipped+i+1, act.Lacks, act.Said)
		}
		must.Equal(t, cmp.Diff(want, got), "", skipped)
		for _, m := range acts[calls[1].Digest].Messages {
			must.Hold(t, m.Role != Tool || m.CallNumber != 0 && m.ToolName == "search", "a result does not know its call: %+v", m)
		}
	}
	tr := NewTranscript()
	must.Do(t, tr.Take(recordOf(t, calls[1])))
	must.Equal(t, cmp.Diff([]Lack{{"request", Copied}}, tr.Acts()[calls[1].Digest].Lacks), "")
}

// An exchangeStep is what the agent calls at once, or what it gets back at once, or words of the user.
type exchangeStep struct {
	calls   []pairedCall
	results []pairedCall
	user    string
}

// A pairedCall is a call with this number, or the result of the call with this number. The id is as JSON: "": no member.
type pairedCall struct {
	id, name string
	n        int
}

func (c *pairedCall) member(name string) string {
	if c.id == "" {
		return ""
	}
	return fmt.Sprintf("%q:%s,", name, c.id)
}

func each(list []pairedCall, format func(c *pairedCall) string) string {
	var all []string
	for i := range list {
		all = append(all, format(&list[i]))
	}
	return strings.Join(all, ",")
}

// A vendorForm writes steps as one vendor's messages, a whole conversation, and a request and an answer of a call. Formats of calls and results have the
// member with the id, the name and the number.
type vendorForm struct {
	callID, call, calls       string
	resultID, result, results string
	words                     string // of the user; "": as a chat has them
	conversation              string
	recorded                  func(messages, answer string) seenCall
	form                      Form // "": the conversation shows it
}

func (f *vendorForm) step(s *exchangeStep) string {
	switch {
	case s.calls != nil:
		return fmt.Sprintf(f.calls, each(s.calls, func(c *pairedCall) string { return fmt.Sprintf(f.call, c.member(f.callID), c.name, c.n) }))
	case s.results != nil:
		return fmt.Sprintf(f.results, each(s.results, func(c *pairedCall) string { return fmt.Sprintf(f.result, c.member(f.resultID), c.name, c.n) }))
	case f.words != "":
		return content("user", fmt.Sprintf(f.words, s.user))
	}
	return said("user", s.user)
}

var vendorForms = map[string]vendorForm{
	"chat": {
		callID: "id", call: `{%s"type":"function","function":{"name":%q,"arguments":"{\"n\":%d}"}}`, calls: `{"role":"assistant","content":null,"tool_calls":[%s]}`,
		resultID: "tool_call_id", result: `{%s"role":"tool","content":"result %[3]d."}`, results: "%s", conversation: "[%s]",
		recorded: func(messages, answer string) seenCall {
			return seenCall{request: chatRequest(messages), response: chatAnswer(answer)}
		},
	},
	"anthropic": {
		callID: "id", call: `{%s"type":"tool_use","name":%q,"input":{"n":%d}}`, calls: `{"role":"assistant","content":[%s]}`,
		resultID: "tool_use_id", result: `{%s"type":"tool_result","content":"result %[3]d."}`, results: `{"role":"user","content":[%s]}`,
		conversation: `{"system":"S","messages":[%s]}`,
		recorded: func(messages, answer string) seenCall {
			return seenCall{protocol: "anthropic.messages", request: `{"model":"m","messages":[` + messages + `]}`, response: `{"type":"message","model":"m-1","stop_reason":"tool_use",` + answer[1:]}
		},
	},
	"responses": {
		callID: "call_id", call: `{%s"type":"function_call","name":%q,"arguments":"{\"n\":%d}"}`, calls: "%s",
		resultID: "call_id", result: `{%s"type":"function_call_output","output":"result %[3]d."}`, results: "%s", conversation: `{"input":[%s]}`,
		recorded: func(messages, answer string) seenCall {
			return seenCall{protocol: "openai.responses", request: `{"model":"m","input":[` + messages + `]}`, response: `{"object":"response","status":"completed","model":"m-1","output":[` + answer + `]}`}
		},
	},
	"gemini": {
		callID: "id", call: `{"functionCall":{%s"name":%q,"args":{"n":%d}}}`, calls: `{"role":"model","parts":[%s]}`,
		resultID: "id", result: `{"functionResponse":{%s"name":%q,"response":{"output":"result %d."}}}`, results: `{"role":"user","parts":[%s]}`,
		words: `{"text":%q}`, conversation: `{"contents":[%s]}`,
		recorded: func(messages, answer string) seenCall {
			return seenCall{gemini: true, request: `{"contents":[` + messages + `]}`, response: `{"candidates":[{"index":0,"content":` + answer + `}],"modelVersion":"m-1"}`}
		},
	},
	"a2a": {
		callID: "id", call: `{"kind":"data","data":{%s"name":%q,"args":{"n":%d}}}`, calls: `{"role":"agent","parts":[%s]}`,
		resultID: "id", result: `{"kind":"data","data":{%s"name":%q,"response":{"output":"result %d."}}}`, results: `{"role":"agent","parts":[%s]}`,
		words: `{"kind":"text","text":%q}`, conversation: `{"task":{"history":[%s]}}`,
	},
	"inspect": {
		callID: "id", call: `{%s"type":"function","function":%q,"arguments":{"n":%d}}`, calls: `{"role":"assistant","source":"generate","content":"","tool_calls":[%s]}`,
		resultID: "tool_call_id", result: `{%s"role":"tool","content":"result %[3]d."}`, results: "%s", conversation: "[%s]", form: InspectForm,
	},
}

// calls makes a step of calls of one tool, numbered, with ids in JSON.
func calls(n int, ids ...string) exchangeStep {
	var s exchangeStep
	for i, id := range ids {
		s.calls = append(s.calls, pairedCall{id, "get", n + i})
	}
	return s
}

// results makes a step of results of the calls with these numbers: pairs of an id and a number.
func results(pairs ...any) exchangeStep {
	var s exchangeStep
	for i := 0; i < len(pairs); i += 2 {
		s.results = append(s.results, pairedCall{pairs[i].(string), "get", pairs[i+1].(int)})
	}
	return s
}

var formsOfIDs = map[string][]exchangeStep{
	"distinct":                                {calls(1, `"a"`, `"b"`), results(`"a"`, 1, `"b"`, 2)},
	"distinct, answered backwards":            {calls(1, `"a"`, `"b"`, `"c"`), results(`"c"`, 3, `"b"`, 2, `"a"`, 1)},
	"equal":                                   {calls(1, `"a"`, `"a"`), results(`"a"`, 1, `"a"`, 2)},
	"three equal, answered in two steps":      {calls(1, `"a"`, `"a"`, `"a"`), results(`"a"`, 1), results(`"a"`, 2, `"a"`, 3)},
	"empty":                                   {calls(1, `""`, `""`), results(`""`, 1, `""`, 2)},
	"none":                                    {calls(1, "", ""), results("", 1, "", 2)},
	"null":                                    {calls(1, "null", "null"), results("null", 1, "null", 2)},
	"of calls alone":                          {calls(1, `"a"`, `"b"`), results("", 1, "", 2)},
	"of results alone":                        {calls(1, "", ""), results(`"x"`, 1, `"y"`, 2)},
	"of results alone, and one twice":         {calls(1, "", ""), results(`"x"`, 1, `"y"`, 2), results(`"x"`, 1)},
	"of results alone, equal":                 {calls(1, "", ""), results(`"x"`, 1, `"x"`, 2)},
	"of results alone, two equal":             {calls(1, "", "", ""), results(`"x"`, 1, `"x"`, 2, `"y"`, 3)},
	"of results alone, one twice at first":    {calls(1, "", ""), results(`"x"`, 1, `"x"`, 1, `"y"`, 2)},
	"of results alone, equal in two turns":    {calls(1, "", ""), results(`"x"`, 1, `"x"`, 2), calls(3, "", ""), results(`"x"`, 3, `"x"`, 4)},
	"of one call":                             {calls(1, `"a"`, ""), results("", 2, `"a"`, 1)},
	"two equal and one of its own":            {calls(1, `"a"`, `"b"`, `"a"`), results(`"b"`, 2, `"a"`, 1, `"a"`, 3)},
	"again in a later turn":                   {calls(1, `"a"`), results(`"a"`, 1), calls(2, `"a"`), results(`"a"`, 2)},
	"again in a later turn, the first open":   {calls(1, `"a"`), {user: "And?"}, calls(2, `"a"`), results(`"a"`, 2)},
	"again, both turns with two":              {calls(1, `"a"`, `"b"`), results(`"a"`, 1, `"b"`, 2), calls(3, `"a"`, `"b"`), results(`"b"`, 4, `"a"`, 3)},
	"none, and an open call before":           {calls(1, ""), {user: "And?"}, calls(2, "", ""), results("", 2, "", 3)},
	"none, in two turns":                      {calls(1, "", ""), results("", 1, "", 2), calls(3, "", ""), results("", 3, "", 4)},
	"a further result":                        {calls(1, `"a"`, `"b"`), results(`"a"`, 1, `"b"`, 2, `"a"`, 1)},
	"a further result, after the other calls": {calls(1, `"a"`), results(`"a"`, 1), calls(2, `"b"`), results(`"b"`, 2), {user: "And?"}, results(`"a"`, 1)},
	"a further result without an id":          {calls(1, ""), results("", 1, "", 1)},
	"a late result":                           {calls(1, `"a"`, `"b"`), results(`"b"`, 2), calls(3, `"c"`), results(`"c"`, 3, `"a"`, 1)},
}

// TestPairs: each result belongs to the call that it answers, whatever ids there are, in each form.
func TestPairs(t *testing.T) {
	for vendor, form := range vendorForms {
		for name, steps := range formsOfIDs {
			t.Run(vendor+"/"+name, func(t *testing.T) {
				messages := []string{form.step(&exchangeStep{user: "Do it."})}
				for i := range steps {
					messages = append(messages, form.step(&steps[i]))
				}
				c := must.Get(NewAs(form.form, nil, []byte(fmt.Sprintf(form.conversation, strings.Join(messages, ",")))))(t)
				rightPairs(t, c, steps)
				sameAgain(t, c)
			})
		}
	}
}

// TestPairsInRecordedCalls: likewise in calls that a recorder saw, in each of which the program sent the conversation up to there; also if another conversation
// of the same agent with the same ids runs beside.
func TestPairsInRecordedCalls(t *testing.T) {
	for vendor, form := range vendorForms {
		if form.recorded == nil {
			continue
		}
		for name, steps := range formsOfIDs {
			t.Run(vendor+"/"+name, func(t *testing.T) {
				one, other := recordedSteps(t, form, "Do it.", 0, steps, false), recordedSteps(t, form, "Do the other.", 100, steps, false)
				rightPairs(t, fromRecords(t, one...), steps)
				rightPairs(t, fromRecords(t, recordedSteps(t, form, "Do it.", 0, steps, true)...), steps)
				var both []Exhibit
				for i := range one {
					both = append(both, one[i], other[i])
				}
				rightPairs(t, fromRecords(t, both...), append(shifted(steps, 0), shifted(steps, 100)...))
			})
		}
	}
}

// shifted are the steps with other numbers.
func shifted(steps []exchangeStep, by int) (list []exchangeStep) {
	for _, s := range steps {
		one := exchangeStep{user: s.user}
		for _, c := range s.calls {
			one.calls = append(one.calls, pairedCall{c.id, c.name, c.n + by})
		}
		for _, c := range s.results {
			one.results = append(one.results, pairedCall{c.id, c.name, c.n + by})
		}
		list = append(list, one)
	}
	return list
}

// recordedSteps are the calls in which a program sends these steps to a model; named: the model gives its calls no ids, and the program gives them these.
func recordedSteps(t *testing.T, form vendorForm, asked string, by int, steps []exchangeStep, named bool) (list []Exhibit) {
	answers := append(shifted(steps, by), exchangeStep{calls: []pairedCall{{`"last"`, "end", 99 + by}}})
	for i := range answers {
		for j := range answers[i].calls {
			if named {
				answers[i].calls[j].id = ""
			}
		}
	}
	steps = append(shifted(steps, by), exchangeStep{calls: []pairedCall{{`"last"`, "end", 99 + by}}})
	messages := []string{form.step(&exchangeStep{user: asked})}
	for i := range steps {
		if steps[i].calls != nil {
			list = append(list, seen(t, by+len(list)+1, form.recorded(strings.Join(messages, ","), form.step(&answers[i]))))
		}
		messages = append(messages, form.step(&steps[i]))
	}
	return list
}

// rightPairs holds that results and calls with one number belong together.
func rightPairs(t *testing.T, c *Case, steps []exchangeStep) {
	t.Helper()
	want, got := map[int]int{}, map[int]int{}
	for _, s := range steps {
		for _, one := range s.results {
			want[one.n]++
		}
	}
	for i := range c.Messages {
		m := &c.Messages[i]
		if m.Role != Tool {
			continue
		}
		n := 0
		if _, after, _ := strings.Cut(m.Text, "result "); after != "" {
			fmt.Sscanf(after, "%d", &n)
		}
		from := c.Message(m.CallNumber)
		if from == nil || m.CallPlace < 1 || m.CallPlace > len(from.ToolCalls) {
			t.Errorf("message %d, result %d: its call is not known", m.Number, n)
			continue
		}
		call := from.ToolCalls[m.CallPlace-1]
		if !strings.Contains(call.Arguments, fmt.Sprintf(`"n":%d}`, n)) || c.Message(call.Result) == nil || !strings.Contains(c.Message(call.Result).Text, fmt.Sprintf("result %d.", n)) {
			t.Errorf("message %d, result %d: paired with %+v in message %d", m.Number, n, call, m.CallNumber)
		}
		got[n]++
	}
	if fmt.Sprint(want) != fmt.Sprint(got) {
		t.Errorf("results %v, want %v\n%s", got, want, script(c))
	}
}

// dual is a conversation in which both sides call tools. The calls of both have the same id.
const dual = `[{"role":"user","content":"No signal."},
 {"role":"assistant","content":"Please look at your settings.","tool_calls":[{"id":"c","name":"get_line","arguments":{"n":1},"requestor":"assistant"}]},
 {"role":"user","content":null,"tool_calls":[{"id":"c","name":"read_settings","arguments":{},"requestor":"user"}]},
 {"id":"c","role":"tool","content":"line","requestor":"assistant","error":false},
 {"id":"c","role":"tool","content":"airplane mode","requestor":"user","error":true}]`

// TestDualControl: each call and each result has its caller, also if two calls have the same id.
func TestDualControl(t *testing.T) {
	c := must.Get(New([]byte(cardV1), []byte(dual)))(t)
	want := []Message{
		{Number: 1, Role: User, Text: "No signal."},
		{Number: 2, Role: Assistant, Text: "Please look at your settings.", ToolCalls: []ToolCall{{ID: "c", Name: "get_line", Arguments: `{"n":1}`, Result: 4}}},
		{Number: 3, Role: User, ToolCalls: []ToolCall{{ID: "c", Name: "read_settings", Arguments: `{}`, Result: 5}}},
		{Number: 4, Role: Tool, Text: "line", ToolCallID: "c", ToolName: "get_line", CallNumber: 2, CallPlace: 1, AnswersTo: Assistant},
		{Number: 5, Role: Tool, Text: "airplane mode", ToolCallID: "c", ToolName: "read_settings", CallNumber: 3, CallPlace: 1, AnswersTo: User, Failed: true},
	}
	must.Equal(t, cmp.Diff(want, c.Messages, cmpopts.IgnoreFields(ToolCall{}, "Args")), "")
	var callers []Role
	for i := range c.Messages {
		callers = append(callers, c.Messages[i].Caller())
	}
	must.Equal(t, cmp.Diff([]Role{"", Assistant, User, Assistant, User}, callers), "")
	must.Hold(t, len(c.Messages[1].AgentCalls()) == 1 && c.Messages[2].AgentCalls() == nil, "the user's call counts as the agent's")
}

// TestPlainDualControl: chat messages without requestors are read, too.
func TestPlainDualControl(t *testing.T) {
	c := must.Get(New([]byte(cardV1), []byte(`[{"role":"assistant","content":"Look."},{"role":"user","tool_calls":[{"id":"u1","type":"function","function":{"name":"look","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"u1","content":"seen"}]`)))(t)
	m := c.Message(3)
	must.Hold(t, m.Caller() == User && m.CallNumber == 2, "%+v", m)
}

func TestSetting(t *testing.T) {
	const agent, call, result = `{"role":"assistant","content":"Done."}`, `{"role":"assistant","tool_calls":[{"id":"1","name":"a"}]}`, `{"role":"tool","tool_call_id":"1","content":"x"}`
	const system, user = `{"role":"system","content":"Rules."}`, `{"role":"user","content":"Do it."}`
	for text, want := range map[string]Setting{
		system + "," + call + "," + result:                              Ticket,
		system + "," + user + "," + call + "," + result:                 Delegated,
		user + "," + user + "," + agent:                                 Delegated,
		user + "," + agent + "," + user:                                 Dialogue,
		agent + `,{"role":"user","tool_calls":[{"id":"1","name":"a"}]}`: Dialogue,
	} {
		c := must.Get(New([]byte(cardV1), []byte("["+text+"]")))(t)
		got := c.Setting()
		must.Hold(t, got == want, "%s: got %q, want %q", text, got, want)
	}
}

// TestCallsOfTheUserInRecords: in a record, a prompt with calls of the user is still shown unchanged, so that findings of
// earlier trials name the same messages.
func TestCallsOfTheUserInRecords(t *testing.T) {
	list := chatIn([]byte(`[{"role":"user","tool_calls":[{"id":"1","name":"a"}]}]`), User)
	must.Hold(t, list == nil, "%+v", list)
	list = chatIn([]byte(`[{"role":"assistant","tool_calls":[{"id":"1","name":"a"}]}]`), User)
	must.Hold(t, len(list) == 1, "%+v", list)
}
