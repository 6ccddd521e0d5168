package docket

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/court/llm"
	"jurat/internal/court/subject"
	"jurat/internal/log/ledger"
	"jurat/internal/tap/traffic"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/verify"
)

// Limit makes a Cache compute nothing of agents with more records.
func (c *ConductCache) Limit(most int) { c.most = most }

func asIs(r *evidence.Record) (*evidence.Record, error) { return r, nil }

func each(records []*evidence.Record) iter.Seq2[*evidence.Record, error] {
	return func(yield func(*evidence.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// long seals a conversation of many calls, each of which repeats all before it and copies its bytes from the call before.
func long(t *testing.T, h *jurattest.House, calls int) (records []*evidence.Record) {
	t.Helper()
	var messages []string
	earlier := [][]byte(nil)
	for n := range calls {
		messages = append(messages, fmt.Sprintf(`{"role":"user","content":"question %d %s"}`, n, strings.Repeat("and more ", 60)))
		text := request(messages...)
		answer := fmt.Sprintf(`{"role":"assistant","content":"answer %d"}`, n)
		a := call(n, "long", "clerk", text, response(answer))
		a.Request.Earlier, earlier = earlier, [][]byte{[]byte(text)}
		records, messages = append(records, seal(t, h, a)), append(messages, answer)
	}
	return records
}

func inShort(p *ChainPart) string {
	var lines []string
	for _, a := range p.Acts {
		line := fmt.Sprintf("%d repeats %d", a.Number, a.Repeats)
		for _, m := range a.Messages {
			line += fmt.Sprintf("; %d %s %.11s", m.Number, m.Role, m.Text)
		}
		for _, l := range a.Lacks {
			line += "; " + l.Direction + " " + string(l.Why)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n") + fmt.Sprintf("\nnext %d", p.Next)
}

// TestReadPart: a part of a chain has what is new in each call, in the middle and at its end, also where what is before is not read.
func TestReadPart(t *testing.T) {
	h := jurattest.New(t)
	records := long(t, h, 230)
	for _, c := range []struct {
		from, n int64
		want    string
	}{
		{1, 2, "1 repeats 0; 1 user question 0 ; 2 assistant answer 0\n2 repeats 2; 3 user question 1 ; 4 assistant answer 1\nnext 3"},
		{100, 1, "100 repeats 198; 199 user question 99; 200 assistant answer 99\nnext 101"},
		{221, 2, "221 repeats 440; 0 user question 22; 0 assistant answer 220\n222 repeats 442; 0 user question 22; 0 assistant answer 221\nnext 223"},
		{230, 9, "230 repeats 458; 0 user question 22; 0 assistant answer 229\nnext 0"},
		{231, 9, "\nnext 0"},
	} {
		p := must.Get(ReadPart("long", each(records), PartOrder{From: c.from, N: c.n, Open: asIs}))(t)
		diff := cmp.Diff(c.want, inShort(p))
		must.Hold(t, diff == "", "from %d (-want +got)\n%s", c.from, diff)
	}
}

// TestPartSaysWhatIsMissing: bytes that are held back are not told from erased ones by themselves; the operator's acts say it.
func TestPartSaysWhatIsMissing(t *testing.T) {
	h := jurattest.New(t)
	apart := seal(t, h, call(0, "talk", "clerk", request(asked), response(answers)), "/request_body", "/response_body")
	held := *apart
	held.Disclosures = nil
	refused := call(1, "talk", "clerk", request(asked), response(answers))
	refused.Response.Encoding, refused.Response.Decoded = "zstd", evidence.DecodingRefused
	several := call(2, "talk", "clerk", `{"model":"gpt-4o","n":2,"messages":[`+asked+`]}`,
		`{"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"a"}},{"index":1,"finish_reason":"stop","message":{"role":"assistant","content":"b"}}]}`)
	busy := call(3, "talk", "clerk", request(asked, `{"role":"user","content":"again"}`), `{"error":{"message":"busy","code":"overloaded"}}`)
	busy.Status = 529
	p, err := ReadPart("talk", each([]*evidence.Record{&held, seal(t, h, refused), seal(t, h, several), seal(t, h, busy)}), PartOrder{From: 1, N: 9, Prices: prices, Open: asIs})
	must.Do(t, err)
	half := *seal(t, h, call(4, "talk", "clerk", request(asked), response(answers)), "/request_body")
	half.Disclosures = nil
	q, err := ReadPart("talk", each([]*evidence.Record{&half}), PartOrder{From: 1, N: 1, Open: asIs})
	must.Hold(t, err == nil && q.Acts[0].Problem == "" && len(q.Acts[0].Lacks) == 1, "%+v, %v", q, err)
	p.MarkErased(map[evidence.Digest][]string{apart.Digest: {"/request_body"}})
	must.Equal(t, cmp.Diff([]subject.Lack{{Direction: "request", Why: erased}, {Direction: "response", Why: "withheld"}}, p.Acts[0].Lacks), "")
	diff := cmp.Diff([]string{"/request_body"}, p.Acts[0].Erased)
	must.Hold(t, diff == "" && p.Acts[0].Problem == "", "%v %v", diff, p.Acts[0].Problem)
	diff = cmp.Diff([]subject.Lack{{Direction: "response", Why: "encoded"}}, p.Acts[1].Lacks)
	must.Hold(t, diff == "" && p.Acts[1].Problem == "", "%v %v", diff, p.Acts[1].Problem)
	must.Hold(t, p.Acts[2].Alternatives == 1 && p.Acts[2].Finish == "stop", "%+v", p.Acts[2])
	must.Hold(t, strings.Contains(p.Acts[3].Error, "busy") && p.Acts[3].Problem == "", "%+v", p.Acts[3])
}

// TestPartWithFaults: a record that is no evidence does not hide the others.
func TestPartWithFaults(t *testing.T) {
	h := jurattest.New(t)
	one := seal(t, h, call(0, "talk", "clerk", request(asked), response(answers)))
	trial := h.Try(t, "majority_vote").Records[0]
	p := must.Get(ReadPart("talk", each([]*evidence.Record{trial, one}), PartOrder{From: 1, N: 9, Open: asIs}))(t)
	must.Hold(t, p.Acts[0].Fault != "" && len(p.Acts[0].Messages) <= 0 && p.Acts[1].Fault == "" && len(p.Acts[1].Messages) == 2, "%+v", p.Acts)
	if _, err := ReadPart("talk", func(yield func(*evidence.Record, error) bool) { yield(nil, fmt.Errorf("no disk")) }, PartOrder{From: 1, N: 9, Open: asIs}); err == nil {
		t.Error("an error of the log is swallowed")
	}
	if _, err := ReadPart("talk", each([]*evidence.Record{one}), PartOrder{From: 1, N: 9, Open: func(*evidence.Record) (*evidence.Record, error) { return nil, fmt.Errorf("no key") }}); err == nil {
		t.Error("an error of opening is swallowed")
	}
	event := &observed.Event{Event: observed.Stop, Reason: "asked to"}
	payload := must.Get(event.Payload("gate", evidence.FormatTime(jurattest.Start), "recorder/gate"))(t)
	act, err := RecordedEvent(h.Seal(t, payload))
	must.Hold(t, err == nil && act.Event != nil && act.Event.Reason == "asked to", "%v %v", act, err)
	must.Refuse(t, "", "a call is taken for an event")(RecordedEvent(one))
}

var prices = llm.Prices{{Model: "gpt-4o", Rates: llm.Rates{Input: 2, Cached: 1, Output: 8}}}

// call is what a recorder saw of one call to a server of chat completions.
func call(n int, chain, agent, request, response string) observed.Act {
	at := jurattest.Start.Add(time.Duration(n) * time.Second)
	return observed.Act{Payload: evidence.Payload{AgentID: "gate", RequestID: fmt.Sprintf("call-%d", n), Timestamp: evidence.FormatTime(at), ChainID: chain},
		Observed: evidence.Observed{Began: evidence.FormatTime(at.Add(-time.Second)), Agent: agent, Vantage: evidence.Proxy, Fidelity: evidence.ByBytes, Protocol: traffic.OpenAIChat, Method: "POST", Path: "/v1/chat/completions", Status: 200, Ended: evidence.Complete, EndedMS: observed.Milliseconds(time.Second)},
		Request:  observed.Whole(request, "application/json"), Response: observed.Whole(response, "application/json")}
}

func seal(t *testing.T, h *jurattest.House, a observed.Act, apart ...string) *evidence.Record {
	t.Helper()
	p := must.Get(observed.Draft(a))(t).Payload
	return h.Seal(t, p, apart...)
}

const (
	asked   = `{"role":"user","content":"where is order 7?"}`
	looks   = `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"get_order","arguments":"{\"order\":7}"}}]}`
	found   = `{"role":"tool","tool_call_id":"c1","content":"shipped"}`
	answers = `{"role":"assistant","content":"It is shipped."}`
)

func request(messages ...string) string {
	return `{"model":"gpt-4o","messages":[` + strings.Join(messages, ",") + `]}`
}

func response(message string) string {
	return `{"model":"gpt-4o-2024-08-06","choices":[{"index":0,"finish_reason":"stop","message":` + message + `}],"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110}}`
}

// conversation seals two calls of a conversation with a tool, and that a third was lost.
func conversation(t *testing.T, h *jurattest.House, chain, agent string, from int) []*evidence.Record {
	lost := call(from+2, chain, agent, request(asked, looks, found, answers), "")
	lost.Response, lost.Ended, lost.Status = nil, evidence.LostInCrash, 0
	return []*evidence.Record{
		seal(t, h, call(from, chain, agent, request(asked), response(looks))),
		seal(t, h, call(from+1, chain, agent, request(asked, looks, found), response(answers))),
		seal(t, h, lost),
	}
}

// whole reads records as one part.
func whole(t *testing.T, records ...*evidence.Record) *ChainPart {
	t.Helper()
	part := must.Get(ReadPart("talk", func(yield func(*evidence.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}, PartOrder{From: 1, N: int64(len(records)), Prices: prices, Open: func(r *evidence.Record) (*evidence.Record, error) { return r, nil }}))(t)
	return part
}

// TestRead: each message is shown once, a call with its result; tokens, costs and gaps are counted.
func TestRead(t *testing.T) {
	h := jurattest.New(t)
	c := whole(t, conversation(t, h, "talk", "clerk", 0)...)
	var said []string
	for _, a := range c.Acts {
		for _, m := range a.Messages {
			said = append(said, fmt.Sprintf("%d %s %s", m.Number, m.Role, m.Part))
		}
	}
	want := []string{"1 user prompt", "2 assistant response", "3 tool prompt", "4 assistant response", "5 recorder observed"}
	must.Equal(t, cmp.Diff(want, said), "")
	uses := c.Acts[0].Messages[1].ToolCalls
	diff := cmp.Diff([]subject.ToolCall{{ID: "c1", Name: "get_order", Arguments: `{"order":7}`, Args: jsontext.Value(`{"order":7}`), Result: 3}}, uses)
	must.Hold(t, diff == "", "(-want +got):\n%s", diff)
	m := c.Acts[1].Messages[0]
	must.Hold(t, m.CallNumber == 2 && m.ToolName == "get_order" && m.Text == "shipped", "%+v", m)
	cost := int64(2 * (100*2 + 10*8))
	wanted := ChainSummary{Agent: "clerk", First: c.Acts[0].Time, Last: c.Acts[2].Time, Records: 3, Calls: 3, Gaps: 1, Models: []string{"gpt-4o-2024-08-06", "gpt-4o"},
		Seen: []verify.Seen{{Recorder: "gate", Vantage: evidence.Proxy, Fidelity: evidence.ByBytes, Records: 3}}, Tokens: &Tokens{Input: 200, Output: 20}, Cost: &cost, Unpriced: 1}
	must.Equal(t, cmp.Diff(wanted, c.Sum()), "")
}

// TestReadSaysWhatIsNotHere: what was sealed apart and is not disclosed is named, and never guessed.
func TestReadSaysWhatIsNotHere(t *testing.T) {
	h := jurattest.New(t)
	r := seal(t, h, call(0, "talk", "clerk", request(asked), response(answers)), "/request_body", "/response_body")
	bare := *r
	bare.Disclosures = nil
	c := whole(t, &bare)
	a := c.Acts[0]
	must.Hold(t, slices.Equal(a.Withheld, []string{"/request_body", "/response_body"}), "%v", a.Withheld)
	for _, m := range a.Messages {
		must.Hold(t, !strings.Contains(m.Text, "shipped"), "what is withheld is shown: %s", m.Text)
	}
}

// TestFind: a chain is found by its name, and a record in it by id or digest. What no recorder saw is not found.
func TestFind(t *testing.T) {
	h, ctx := jurattest.New(t), context.Background()
	records := conversation(t, h, "recorded/clerk/a", "clerk", 0)
	own := h.Record(t, []byte(`[`+asked+`,`+answers+`]`), jurattest.OnlyNew)
	for _, test := range []struct {
		name   string
		number int64
		none   error
	}{
		{"recorded/clerk/a", 0, nil},
		{records[1].Payload.RecordID, 2, nil},
		{records[2].Digest.String(), 3, nil},
		{own[0].Payload.RecordID, 0, ErrNotRecorded},
		{own[0].Payload.ChainID, 0, ErrNotRecorded},
		{"recorded/clerk/b", 0, ledger.ErrNotFound},
		{evidence.DigestOf(nil).String(), 0, ledger.ErrNotFound},
	} {
		chain, number, err := FindChain(ctx, h.Ledger, test.name)
		must.Hold(t, errors.Is(err, test.none) && number == test.number && (err != nil || chain == "recorded/clerk/a"),
			"%s: %q, %d, %v", test.name, chain, number, err)
	}
}

// TestPriceOfModel: the vendor that programs put before the name of a model is no part of it.
func TestPriceOfModel(t *testing.T) {
	for model, want := range map[string]bool{"openai:gpt-4o": true, "openai/gpt-4o-2024": false, "gpt-4o-2024-08-06": false, "other/gpt-4o": false, "gpt-4o-audio-preview": false, "gpt-4o": true, "other": false, "": false} {
		p := evidence.Payload{Model: model, Observed: &evidence.Observed{Usage: []byte(`{"input_tokens":1,"output_tokens":1}`)}}
		a := actOf(&evidence.Record{Payload: p}, prices)
		must.Hold(t, (a.Cost != nil) == want, "%q: %v", model, a.Cost)
	}
}

// TestRecorders: the log says of each recorder when it began and ended, what it counted since, and what it missed or lost, wherever these acts stand.
func TestRecorders(t *testing.T) {
	h := jurattest.New(t)
	seconds := 0
	event := func(recorder, chain string, e observed.Event) {
		t.Helper()
		seconds++
		p := must.Get(e.Payload(recorder, evidence.FormatTime(jurattest.Start.Add(time.Duration(seconds)*time.Second)), chain))(t)
		h.Seal(t, p)
	}
	start := observed.Event{Event: observed.Start, Mode: observed.Closed, Vantage: evidence.Proxy, Version: "1", Configuration: evidence.DigestOf([]byte("c"))}
	beat := observed.Event{Event: observed.Heartbeat, Since: evidence.FormatTime(jurattest.Start), Calls: new(int64(7))}
	missed := func(n int64) observed.Event {
		return observed.Event{Event: observed.Gap, Reason: "the disk was full", Missed: []observed.Missed{{Agent: "mia", Calls: n, Minute: evidence.FormatTime(jurattest.Start)}}}
	}
	event("gate", "recorder/gate", start)
	event("gate", "recorder/gate", beat)
	event("gate", "recorded/mia/monday", missed(2))
	event("gate", "recorder/gate", observed.Event{Event: observed.Stop, Reason: "the shift ended"})
	event("other", "recorder/other", start)
	event("gate", "recorder/gate", start)
	event("gate", "recorder/gate", beat)
	event("gate", "recorder/gate", missed(3))
	event("other", "recorder/other", observed.Event{Event: observed.Stop, Reason: "the night"})
	lost := call(1, "recorded/mia/monday", "mia", "question", "")
	lost.Ended, lost.Response = evidence.LostInCrash, nil
	seal(t, h, lost)

	// Two of one name run at a time: their calls are counted together, and only the end of one that counted alone says how many there were.
	at := func() string {
		return evidence.FormatTime(jurattest.Start.Add(time.Duration(seconds) * time.Second))
	}
	ends := func(since string, calls int64) observed.Event {
		return observed.Event{Event: observed.Stop, Reason: "done", Since: since, Calls: &calls}
	}
	event("twin", "recorder/twin", start)
	first := at()
	event("twin", "recorder/twin", start)
	second := at()
	event("twin", "recorder/twin", observed.Event{Event: observed.Heartbeat, Since: first, Calls: new(int64(7))})
	event("twin", "recorder/twin", ends(second, 2))
	event("alone", "recorder/alone", start)
	since := at()
	event("alone", "recorder/alone", observed.Event{Event: observed.Heartbeat, Since: since, Calls: new(int64(7))})
	event("alone", "recorder/alone", ends(at(), 2))
	event("older", "recorder/older", start)
	event("older", "recorder/older", ends(evidence.FormatTime(jurattest.Start), 2))
	event("twins", "recorder/twins", start)
	first = at()
	event("twins", "recorder/twins", start)
	event("twins", "recorder/twins", ends(at(), 2))
	event("twins", "recorder/twins", observed.Event{Event: observed.Heartbeat, Since: first, Calls: new(int64(7))}) // the first one goes on
	event("without a start", "recorder/without", ends(at(), 2))

	list, err := Recorders(t.Context(), h.Ledger, nil)
	must.Need(t, err == nil && len(list) == 7, "%+v, %v", list, err)
	for i, want := range map[int]struct {
		calls   int64
		counted bool
	}{0: {9, true}, 1: {7, false}, 2: {2, false}, 3: {0, false}, 4: {9, false}, 5: {9, false}, 6: {2, false}} {
		must.Hold(t, list[i].Calls == want.calls && list[i].Counted == want.counted,
			"%s: %d calls, %v; want %+v", list[i].Name, list[i].Calls, list[i].Counted, want)
	}
	gate, other := list[1], list[3]
	if gate.Name != "gate" || gate.Calls != 7 || gate.Missed != 5 || gate.Gaps != 2 || gate.Stopped != "" || gate.Lost != 1 || gate.Of != 8 || gate.Heartbeat == "" || gate.LastGap == "" {
		t.Errorf("gate: %+v", gate)
	}
	must.Hold(t, list[5].Stopped == "" && list[2].Stopped != "", "who goes on has stopped: %+v; who stopped goes on: %+v", list[5], list[2])
	must.Hold(t, other.Reason == "the night" && other.Stopped != "" && other.Missed == 0 && other.Heartbeat == "", "other: %+v", other)
}
