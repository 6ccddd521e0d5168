package recorded

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
	"jurat/internal/llm"
	"jurat/internal/observe"
	"jurat/jurattest"
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
	p, err := observed.Payload(a)
	if err != nil {
		t.Fatal(err)
	}
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

// TestRead: each message is shown once, a call with its result; tokens, costs and gaps are counted.
func TestRead(t *testing.T) {
	h := jurattest.New(t)
	c, err := Read("talk", conversation(t, h, "talk", "clerk", 0), prices)
	if err != nil {
		t.Fatal(err)
	}
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
	if diff := cmp.Diff([]Call{{"c1", "get_order", `{"order":7}`, 3}}, uses); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if m := c.Acts[1].Messages[0]; m.CallNumber != 2 || m.Tool != "get_order" || m.Text != "shipped" {
		t.Errorf("%+v", m)
	}
	cost := int64(2 * (100*2 + 10*8))
	wanted := Summary{Agent: "clerk", First: c.Acts[0].Time, Last: c.Acts[2].Time, Records: 3, Calls: 3, Gaps: 1, Models: []string{"gpt-4o-2024-08-06", "gpt-4o"},
		Seen: c.Seen, Tokens: &Tokens{Input: 200, Output: 20}, Cost: &cost, Unpriced: 1}
	if diff := cmp.Diff(wanted, c.Summary); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(c.Seen) != 1 || c.Seen[0].Records != 3 || c.Seen[0].Recorder != "gate" {
		t.Errorf("%+v", c.Seen)
	}
}

// TestReadSaysWhatIsNotHere: what was sealed apart and is not disclosed is named, and never guessed.
func TestReadSaysWhatIsNotHere(t *testing.T) {
	h := jurattest.New(t)
	r := seal(t, h, call(0, "talk", "clerk", request(asked), response(answers)), "/response", "/request_body", "/response_body")
	bare := *r
	bare.Disclosures = nil
	c, err := Read("talk", []*evidence.Record{&bare}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := c.Acts[0]
	if !slices.Equal(a.Withheld, []string{"/request_body", "/response", "/response_body"}) || a.Cost != nil || c.Unpriced != 1 {
		t.Errorf("%v, %v, %d", a.Withheld, a.Cost, c.Unpriced)
	}
	for _, m := range a.Messages {
		if strings.Contains(m.Text, "shipped") {
			t.Errorf("what is withheld is shown: %s", m.Text)
		}
	}
}

// TestReadOfOthers: an agent's own records are no recorded chain.
func TestReadOfOthers(t *testing.T) {
	h := jurattest.New(t)
	own := h.Record(t, []byte(`[`+asked+`,`+answers+`]`), jurattest.OnlyNew)
	if _, err := Read("talk", own, nil); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

func TestChains(t *testing.T) {
	h, ctx := jurattest.New(t), context.Background()
	conversation(t, h, "recorded/clerk/a", "clerk", 0)
	conversation(t, h, "recorded/porter/b", "porter", 10)
	h.Record(t, []byte(`[`+asked+`,`+answers+`]`), jurattest.OnlyNew)
	seal(t, h, call(20, "recorded/clerk/a", "clerk", request(asked, looks, found, answers), response(answers)))
	list := func(s Selection) (names []string, more bool) {
		t.Helper()
		found, err := Chains(ctx, h.Ledger, s)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range found.Chains {
			names = append(names, fmt.Sprintf("%s %d %d", c.Chain, c.Calls, c.Gaps))
		}
		return names, found.More
	}
	a, b := "recorded/clerk/a 4 1", "recorded/porter/b 3 1"
	for _, test := range []struct {
		of   Selection
		want []string
		more bool
	}{
		{Selection{}, []string{a, b}, false},
		{Selection{Limit: 1}, []string{a}, true},
		{Selection{Limit: 2}, []string{a, b}, false},
		{Selection{Agent: "porter"}, []string{b}, false},
		{Selection{Agent: "clerk", Limit: 1}, []string{a}, false},
		{Selection{Agent: "nobody"}, nil, false},
		{Selection{May: func(agent string) bool { return agent == "porter" }}, []string{b}, false},
	} {
		if got, more := list(test.of); !slices.Equal(got, test.want) || more != test.more {
			t.Errorf("%+v: %v, %v; want %v, %v", test.of, got, more, test.want, test.more)
		}
	}
	if agent, err := Agent(ctx, h.Ledger, "recorded/porter/b"); agent != "porter" || err != nil {
		t.Errorf("%q, %v", agent, err)
	}
}
