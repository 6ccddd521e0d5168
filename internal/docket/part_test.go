package docket

import (
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/must"
	"jurat/jurattest"
)

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
			line += "; " + l.Direction + " " + l.Why
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
		if diff := cmp.Diff(c.want, inShort(p)); diff != "" {
			t.Errorf("from %d (-want +got)\n%s", c.from, diff)
		}
	}
}

// TestPartSaysWhatIsMissing: bytes that are held back are not told from erased ones by themselves; the operator's acts say it.
func TestPartSaysWhatIsMissing(t *testing.T) {
	h := jurattest.New(t)
	apart := seal(t, h, call(0, "talk", "clerk", request(asked), response(answers)), "/request_body", "/response_body")
	held := *apart
	held.Disclosures = nil
	refused := call(1, "talk", "clerk", request(asked), response(answers))
	refused.Response.Encoding, refused.Response.Refused = "zstd", true
	several := call(2, "talk", "clerk", `{"model":"gpt-4o","n":2,"messages":[`+asked+`]}`,
		`{"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"a"}},{"index":1,"finish_reason":"stop","message":{"role":"assistant","content":"b"}}]}`)
	busy := call(3, "talk", "clerk", request(asked, `{"role":"user","content":"again"}`), `{"error":{"message":"busy","code":"overloaded"}}`)
	busy.Status = 529
	p, err := ReadPart("talk", each([]*evidence.Record{&held, seal(t, h, refused), seal(t, h, several), seal(t, h, busy)}), PartOrder{From: 1, N: 9, Prices: prices, Open: asIs})
	must.Do(t, err)
	half := *seal(t, h, call(4, "talk", "clerk", request(asked), response(answers)), "/request_body")
	half.Disclosures = nil
	if q, err := ReadPart("talk", each([]*evidence.Record{&half}), PartOrder{From: 1, N: 1, Open: asIs}); err != nil || q.Acts[0].Problem != "" || len(q.Acts[0].Lacks) != 1 {
		t.Errorf("%+v, %v", q, err)
	}
	p.MarkErased(map[evidence.Digest][]string{apart.Digest: {"/request_body"}})
	if diff := cmp.Diff([]PartLack{{"request", erased}, {"response", "withheld"}}, p.Acts[0].Lacks); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"/request_body"}, p.Acts[0].Erased); diff != "" || p.Acts[0].Problem != "" {
		t.Error(diff, p.Acts[0].Problem)
	}
	if diff := cmp.Diff([]PartLack{{"response", "encoded"}}, p.Acts[1].Lacks); diff != "" || p.Acts[1].Problem != "" {
		t.Error(diff, p.Acts[1].Problem)
	}
	if p.Acts[2].Alternatives != 1 || p.Acts[2].Finish != "stop" {
		t.Errorf("%+v", p.Acts[2])
	}
	if !strings.Contains(p.Acts[3].Error, "busy") || p.Acts[3].Problem != "" {
		t.Errorf("%+v", p.Acts[3])
	}
}

// TestPartWithFaults: a record that is no evidence does not hide the others.
func TestPartWithFaults(t *testing.T) {
	h := jurattest.New(t)
	one := seal(t, h, call(0, "talk", "clerk", request(asked), response(answers)))
	trial := h.Try(t, "majority_vote").Records[0]
	p := must.Get(ReadPart("talk", each([]*evidence.Record{trial, one}), PartOrder{From: 1, N: 9, Open: asIs}))(t)
	if p.Acts[0].Fault == "" || len(p.Acts[0].Messages) > 0 || p.Acts[1].Fault != "" || len(p.Acts[1].Messages) != 2 {
		t.Errorf("%+v", p.Acts)
	}
	if _, err := ReadPart("talk", func(yield func(*evidence.Record, error) bool) { yield(nil, fmt.Errorf("no disk")) }, PartOrder{From: 1, N: 9, Open: asIs}); err == nil {
		t.Error("an error of the log is swallowed")
	}
	if _, err := ReadPart("talk", each([]*evidence.Record{one}), PartOrder{From: 1, N: 9, Open: func(*evidence.Record) (*evidence.Record, error) { return nil, fmt.Errorf("no key") }}); err == nil {
		t.Error("an error of opening is swallowed")
	}
	event := &observed.Event{Event: observed.Stop, Reason: "asked to"}
	payload := must.Get(event.Payload("gate", evidence.FormatTime(jurattest.Start), "recorder/gate"))(t)
	if act, err := RecordedEvent(h.Seal(t, payload)); err != nil || act.Event == nil || act.Event.Reason != "asked to" {
		t.Error(act, err)
	}
	if _, err := RecordedEvent(one); err == nil {
		t.Error("a call is taken for an event")
	}
}
