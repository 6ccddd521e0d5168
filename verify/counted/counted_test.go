package counted

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/operator"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// call is what a recorder sealed of a call after so many seconds.
func call(index int64, seconds int, usage string) *evidence.Record {
	at := noon.Add(time.Duration(seconds) * time.Second)
	r := &evidence.Record{Digest: evidence.DigestOf(fmt.Append(nil, index)), Log: &evidence.LogProof{Index: index}, Payload: evidence.Payload{ActionType: evidence.ObservedCall, AgentID: "gate",
		Timestamp: evidence.FormatTime(at.Add(time.Second)), Observed: &evidence.Observed{Agent: "mia", Protocol: "openai.chat", Began: evidence.FormatTime(at), EndedMS: new(int64(1000)), Status: 200,
			Upstream: &evidence.Upstream{Origin: "https://api.example"}}}}
	if usage != "" {
		r.Payload.Observed.Usage = jsontext.Value(usage)
	}
	return r
}

func used(in, out int) string {
	return fmt.Sprintf(`{"completion_tokens":%d,"prompt_tokens":%d}`, out, in)
}

// compared is an act about calls of an hour, of a log with ten records.
func compared(t *testing.T, sum operator.UsageCalls, change func(*operator.UsageComparisonBody)) *evidence.Record {
	t.Helper()
	body := operator.UsageComparisonBody{By: "A. Person", Calls: sum, File: operator.UsageFile{Digest: evidence.DigestOf([]byte("file")), Bytes: 4, Format: "calls, CSV"},
		Scope: operator.UsageScope{From: evidence.FormatTime(noon), To: evidence.FormatTime(noon.Add(time.Hour)), Size: 10, SlackMS: 5000}}
	if change != nil {
		change(&body)
	}
	response, err := operator.Encode(body)
	if err != nil {
		t.Fatal(err)
	}
	return &evidence.Record{Payload: evidence.Payload{ActionType: evidence.UsageComparison, RecordID: "act", AgentID: "operator", Timestamp: evidence.FormatTime(noon.Add(2 * time.Hour)), Response: response}}
}

func sumOf(records ...*evidence.Record) operator.UsageCalls {
	var sum Sum
	for _, r := range records {
		c, is := Of(&r.Payload, r.Digest, r.Log.Index)
		if !is {
			panic("no call")
		}
		sum.Add(&c)
	}
	return sum.Calls()
}

func judged(t *testing.T, records ...*evidence.Record) *Comparison {
	t.Helper()
	var f File
	for _, r := range records {
		f.Take(At(r), r)
	}
	list := f.Comparisons()
	if len(list) != 1 {
		t.Fatalf("%d comparisons", len(list))
	}
	return list[0]
}

// TestComparisons: what contradicts the operator's account of calls is found, and what does not is not.
func TestComparisons(t *testing.T) {
	a, b, none := call(3, 10, used(10, 4)), call(4, 20, used(20, 4)), call(5, 30, "")
	failed := call(6, 40, "")
	failed.Payload.Observed.Status = 429
	all := sumOf(a, b, none, failed)
	if all.Count != 4 || all.Input != 30 || all.Output != 8 || all.Failed != 1 || all.Unknown != 1 {
		t.Fatalf("%+v", all)
	}
	with := func(change func(*operator.UsageCalls)) operator.UsageCalls {
		c := all
		change(&c)
		return c
	}
	other := func(change func(o *evidence.Observed, r *evidence.Record)) *evidence.Record {
		r := call(7, 50, used(1000, 1000))
		change(r.Payload.Observed, r)
		return r
	}
	everything := []*evidence.Record{a, b, none, failed}
	for name, tt := range map[string]struct {
		records []*evidence.Record
		said    operator.UsageCalls
		change  func(*operator.UsageComparisonBody)
		want    Answer
		here    int64
	}{
		"all of them":                    {everything, all, nil, Agrees, 4},
		"a part":                         {everything[:2], all, nil, Part, 2},
		"nothing":                        {nil, all, nil, Part, 0},
		"fewer stated":                   {everything, with(func(c *operator.UsageCalls) { c.Count = 3 }), nil, Contradicted, 4},
		"fewer tokens in":                {everything[:2], with(func(c *operator.UsageCalls) { c.Input = 29 }), nil, Contradicted, 2},
		"fewer tokens out":               {everything[:2], with(func(c *operator.UsageCalls) { c.Output = 7 }), nil, Contradicted, 2},
		"none failed":                    {everything[3:], with(func(c *operator.UsageCalls) { c.Failed = 0 }), nil, Contradicted, 1},
		"none unknown":                   {everything[2:3], with(func(c *operator.UsageCalls) { c.Unknown = 0 }), nil, Contradicted, 1},
		"more tokens, of as many calls":  {everything, with(func(c *operator.UsageCalls) { c.Input = 31 }), nil, Contradicted, 4},
		"more tokens, of more calls":     {everything, with(func(c *operator.UsageCalls) { c.Input, c.Count = 31, 5 }), nil, Part, 4},
		"other calls":                    {everything, with(func(c *operator.UsageCalls) { c.Digest[0] ^= 1 }), nil, Contradicted, 4},
		"in another order":               {[]*evidence.Record{b, a, none, failed}, all, nil, Contradicted, 4},
		"one after the log's end then":   {append(everything, other(func(_ *evidence.Observed, r *evidence.Record) { r.Log.Index = 10 })), all, nil, Agrees, 4},
		"one more":                       {append(everything, other(func(*evidence.Observed, *evidence.Record) {})), all, nil, Contradicted, 5},
		"one of another agent":           {append(everything, other(func(o *evidence.Observed, _ *evidence.Record) { o.Agent = "ada" })), all, func(b *operator.UsageComparisonBody) { b.Scope.Agent = "mia" }, Agrees, 4},
		"one elsewhere":                  {append(everything, other(func(o *evidence.Observed, _ *evidence.Record) { o.Upstream = nil })), all, func(b *operator.UsageComparisonBody) { b.Scope.Origin = "https://api.example" }, Agrees, 4},
		"one of another vendor":          {append(everything, other(func(o *evidence.Observed, _ *evidence.Record) { o.Protocol = "anthropic.messages" })), all, func(b *operator.UsageComparisonBody) { b.Scope.Vendor = "openai" }, Agrees, 4},
		"one that is no call to a model": {append(everything, other(func(o *evidence.Observed, _ *evidence.Record) { o.Protocol = "mcp/2025-06-18" })), all, nil, Agrees, 4},
		"one that began at the end":      {append(everything, other(func(o *evidence.Observed, _ *evidence.Record) { o.Began = evidence.FormatTime(noon.Add(time.Hour)) })), all, nil, Agrees, 4},
		"one that ended before": {append(everything, other(func(o *evidence.Observed, _ *evidence.Record) {
			o.Began = evidence.FormatTime(noon.Add(-1001 * time.Millisecond))
		})), all, nil, Agrees, 4},
		"one that ended at the start": {append(everything, other(func(o *evidence.Observed, _ *evidence.Record) { o.Began = evidence.FormatTime(noon.Add(-time.Second)) })), all, nil, Contradicted, 5},
		"one that was sealed long before": {append(everything, other(func(_ *evidence.Observed, r *evidence.Record) {
			r.Payload.Timestamp = evidence.FormatTime(noon.Add(-6 * time.Second))
		})), all, nil, Agrees, 4},
		"one of which the place is not known": {append(everything, other(func(_ *evidence.Observed, r *evidence.Record) { r.Log = nil })), all, nil, Agrees, 4},
		"a number that no call has":           {append(everything, other(func(o *evidence.Observed, _ *evidence.Record) { o.EndedMS = new(int64(9007199254740991)) })), all, nil, Contradicted, 5},
	} {
		c := judged(t, append(append([]*evidence.Record{}, tt.records...), compared(t, tt.said, tt.change))...)
		if c.Answer != tt.want || c.Here != tt.here || (c.Why != "") != (tt.want == Contradicted) || !strings.Contains(c.InWords(), "provider") {
			t.Errorf("%s: %s, %d here, %q; want %s, %d", name, c.Answer, c.Here, c.Why, tt.want, tt.here)
		}
	}
}

// TestSealedFile: the provider's account that is sealed with an act must be the one that it names, where a reader has it.
func TestSealedFile(t *testing.T) {
	for context, want := range map[string]Answer{`"file"`: Agrees, `"fill"`: Contradicted, `{"file":1}`: Contradicted, "": Agrees} {
		r := compared(t, sumOf(), nil)
		if context != "" {
			r.Payload.Context = jsontext.Value(context)
		}
		c := judged(t, r)
		if c.Answer != want || (c.WrongFile() != "") != (want == Contradicted) {
			t.Errorf("%s: %s, %q", context, c.Answer, c.Why)
		}
	}
}

// TestNoStatement: an act that breaks the rules of its form states nothing.
func TestNoStatement(t *testing.T) {
	if l := At(compared(t, operator.UsageCalls{}, nil)); l != nil {
		t.Error("an act without a digest states something")
	}
	inChain := compared(t, sumOf(), nil)
	inChain.Payload.ChainID = "operator-usage"
	if At(inChain) != nil {
		t.Error("an act in a chain states something")
	}
}

// TestBounds: a file with more comparisons or calls than are looked at is said to be that, and nothing is refuted.
func TestBounds(t *testing.T) {
	var f File
	stated := compared(t, sumOf(), nil)
	for range maxComparisons + 1 {
		f.Take(At(stated), stated)
	}
	list := f.Comparisons()
	if len(list) != maxComparisons || list[0].Answer != Unchecked || !strings.Contains(list[0].InWords(), "too many") {
		t.Errorf("%d, %s", len(list), list[0].Answer)
	}
	g := File{calls: make([]Call, maxWork/2+1)}
	for range 2 {
		g.Take(At(stated), stated)
	}
	if list := g.Comparisons(); list[0].Answer != Unchecked {
		t.Errorf("%s", list[0].Answer)
	}
}
