package docket

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/ledger"
	"jurat/internal/llm"
	"jurat/internal/must"
	"jurat/internal/observe"
	"jurat/jurattest"
	"jurat/verify"
)

var prices = llm.Prices{{Model: "gpt-4o", Input: 2, Cached: 1, Output: 8}}

// call is what a recorder saw of one call to a server of chat completions.
func call(n int, chain, agent, request, response string) observed.Act {
	body := func(text string) *observed.Body {
		return &observed.Body{Bytes: int64(len(text)), SHA256: evidence.DigestOf([]byte(text)), Kept: []byte(text), Type: "application/json"}
	}
	at := jurattest.Start.Add(time.Duration(n) * time.Second)
	return observed.Act{Recorder: "gate", RequestID: fmt.Sprintf("call-%d", n), At: at, Began: at.Add(-time.Second), ChainID: chain, Agent: agent, Vantage: evidence.Proxy,
		Fidelity: evidence.ByBytes, Protocol: observe.OpenAIChat, Method: "POST", Path: "/v1/chat/completions", Status: 200, Ended: evidence.Complete,
		Elapsed: new(time.Second), Request: body(request), Response: body(response)}
}

func seal(t *testing.T, h *jurattest.House, a observed.Act, apart ...string) *evidence.Record {
	t.Helper()
	p := must.Get(observed.Payload(a))(t)
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
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	uses := c.Acts[0].Messages[1].Calls
	if diff := cmp.Diff([]RecordedCall{{"c1", "get_order", `{"order":7}`, 3}}, uses); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if m := c.Acts[1].Messages[0]; m.CallNumber != 2 || m.Tool != "get_order" || m.Text != "shipped" {
		t.Errorf("%+v", m)
	}
	cost := int64(2 * (100*2 + 10*8))
	wanted := ChainSummary{Agent: "clerk", First: c.Acts[0].Time, Last: c.Acts[2].Time, Records: 3, Calls: 3, Gaps: 1, Models: []string{"gpt-4o-2024-08-06", "gpt-4o"},
		Seen: []verify.Seen{{Recorder: "gate", Vantage: evidence.Proxy, Fidelity: evidence.ByBytes, Records: 3}}, Tokens: &Tokens{Input: 200, Output: 20}, Cost: &cost, Unpriced: 1}
	if diff := cmp.Diff(wanted, c.Sum()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReadSaysWhatIsNotHere: what was sealed apart and is not disclosed is named, and never guessed.
func TestReadSaysWhatIsNotHere(t *testing.T) {
	h := jurattest.New(t)
	r := seal(t, h, call(0, "talk", "clerk", request(asked), response(answers)), "/request_body", "/response_body")
	bare := *r
	bare.Disclosures = nil
	c := whole(t, &bare)
	a := c.Acts[0]
	if !slices.Equal(a.Withheld, []string{"/request_body", "/response_body"}) {
		t.Errorf("%v", a.Withheld)
	}
	for _, m := range a.Messages {
		if strings.Contains(m.Text, "shipped") {
			t.Errorf("what is withheld is shown: %s", m.Text)
		}
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
		if !errors.Is(err, test.none) || number != test.number || err == nil && chain != "recorded/clerk/a" {
			t.Errorf("%s: %q, %d, %v", test.name, chain, number, err)
		}
	}
}

// TestPriceOfModel: the vendor that programs put before the name of a model is no part of it.
func TestPriceOfModel(t *testing.T) {
	for model, want := range map[string]bool{"openai:gpt-4o": true, "openai/gpt-4o-2024": false, "gpt-4o-2024-08-06": false, "other/gpt-4o": false, "gpt-4o-audio-preview": false, "gpt-4o": true, "other": false, "": false} {
		p := evidence.Payload{Model: model, Observed: &evidence.Observed{Usage: []byte(`{"input_tokens":1,"output_tokens":1}`)}}
		if a := actOf(&evidence.Record{Payload: p}, prices); (a.Cost != nil) != want {
			t.Errorf("%q: %v", model, a.Cost)
		}
	}
}
