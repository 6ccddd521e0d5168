package find_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	gocmp "github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/evidence/operator"
	"jurat/internal/find"
	"jurat/internal/must"
	"jurat/internal/subject"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
)

var (
	watched = []string{"bot", "Invoice Bot", "бот-2"}
	taps    = []string{"tap-1", "tap-2"}
	ends    = []evidence.Ended{evidence.Complete, evidence.Complete, evidence.ClientGone, evidence.LostInCrash}
)

// watch seals what a recorder saw of a call, and now and then what it did not see.
func (h *town) watch(t *testing.T) {
	t.Helper()
	agent, began, took := pick(h.r, watched), jurattest.Start.Add(-time.Duration(h.r.IntN(5*24*60))*time.Minute), time.Duration(h.r.IntN(9000))*time.Millisecond
	answer := fmt.Sprintf(`{"model":%q,"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%q}}],"usage":{"prompt_tokens":%d,"completion_tokens":2,"total_tokens":9}}`,
		pick(h.r, models), pick(h.r, sentences), h.r.IntN(9))
	body := func(text string) *observed.Body {
		return &observed.Body{Bytes: int64(len(text)), SHA256: evidence.DigestOf([]byte(text)), Type: "application/json", Kept: []byte(text)}
	}
	act := observed.Act{Recorder: pick(h.r, taps), RequestID: "r", At: began.Add(took), ChainID: "recorded/" + agent + "/" + pick(h.r, []string{"1", "2", "3", "4"}), Agent: agent,
		Vantage: evidence.Proxy, Fidelity: evidence.ByBytes, Protocol: "openai.chat", Path: "/v1/chat/completions", Status: 200, Ended: pick(h.r, ends), Began: began, Elapsed: &took,
		Request: body(`{"model":"m","messages":[{"role":"user","content":"May I send it?"}]}`), Response: body(answer)}
	p := must.Get(observed.Payload(act))(t)
	h.Seal(t, p)
	if h.r.IntN(4) == 0 {
		h.event(t, &observed.Event{Event: observed.Gap, Reason: "disk full", Missed: []observed.Missed{{Agent: agent, Calls: int64(1 + h.r.IntN(4)), Minute: evidence.FormatTime(began)}}})
	}
}

func (h *town) event(t *testing.T, e *observed.Event) {
	t.Helper()
	p := must.Get(e.Payload(pick(h.r, taps), evidence.FormatTime(jurattest.Start), "recorder/tap"))(t)
	h.Seal(t, p)
}

// seen returns the chain of the act that a recorder saw last.
func (h *town) seen(t *testing.T) (chain string) {
	t.Helper()
	for r, err := range h.Ledger.Records(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Payload.Observed != nil {
			chain = r.Payload.ChainID
		}
	}
	return chain
}

// judge puts the records of a chain before a jury.
func (h *town) judge(t *testing.T, chain string) string {
	t.Helper()
	records := must.Get(h.Ledger.Chain(t.Context(), chain))(t)
	var exhibits []subject.Exhibit
	for _, r := range records {
		exhibits = append(exhibits, subject.NewExhibit(r))
	}
	on := must.Get(subject.FromRecords(nil, exhibits, subject.Verification{Outcome: subject.NotProved}))(t)
	c := trial.Config{Ledger: h.Ledger, Keys: h.Keys, Settings: jurattest.Settings(jury.MajorityVote), Submitter: "submitter", Now: func() time.Time { return jurattest.Start }}
	c.Jurors, c.Judge = jurattest.Panel()
	return must.Get(trial.Submit(t.Context(), c, on))(t)
}

// recordings answers a search by looking at each record.
func (s *scan) recordings(q *find.Recordings) (list []find.Recording) {
	byChain := map[string]*find.Recording{}
	text := map[string]bool{}
	for place, r := range s.records {
		p := &r.Payload
		o := p.Observed
		if o == nil {
			continue
		}
		at, err := evidence.ParseTime(o.Began)
		if err != nil {
			panic(err)
		}
		one := byChain[p.ChainID]
		if one == nil {
			one = &find.Recording{Chain: p.ChainID}
			one.First, byChain[p.ChainID] = at.UnixMilli(), one
		}
		add := func(list []string, name string) []string {
			if !slices.Contains(list, name) {
				list = append(list, name)
			}
			slices.Sort(list)
			return list
		}
		one.Agents, one.Recorders, one.Models = add(one.Agents, o.Agent), add(one.Recorders, p.AgentID), add(one.Models, cmp.Or(p.ModelVersion, p.Model))
		one.Protocols, one.Vantages = add(one.Protocols, o.Protocol), []evidence.Vantage{o.Vantage}
		one.First, one.Last, one.Place = min(one.First, at.UnixMilli()), max(one.Last, at.UnixMilli()+*o.EndedMS), int64(place)
		one.Acts, one.Calls, one.Records = one.Acts+1, one.Calls+1, one.Records+1
		if o.Ended != evidence.Complete {
			one.Broken++
		}
		if o.Ended == evidence.LostInCrash {
			one.Lost++
		}
		usage := struct{ In int64 }{}
		fmt.Sscanf(string(o.Usage), `{"completion_tokens":2,"prompt_tokens":%d`, &usage.In)
		one.Input, one.Output, one.Counted = one.Input+usage.In, one.Output+2, one.Counted+1
		text[p.ChainID] = text[p.ChainID] || s.has(r, q.Text, false)
	}
	for _, one := range byChain {
		for _, r := range s.records {
			if r.Payload.ActionType == evidence.RecorderEvent {
				e, err := observed.ParseEvent(r.Payload.Response)
				if err != nil {
					panic(err)
				}
				for _, m := range e.Missed {
					at, _ := evidence.ParseTime(m.Minute)
					if slices.Contains(one.Agents, m.Agent) && at.UnixMilli()+60_000 > one.First && at.UnixMilli() <= one.Last {
						one.Missed += m.Calls
					}
				}
			}
			if r.Payload.ActionType == evidence.Submission && strings.Contains(string(r.Payload.Response), fmt.Sprintf(`"chain_id":%q`, one.Chain)) {
				one.Trials = append(one.Trials, r.Payload.ChainID)
			}
		}
		names := find.Fold(strings.Join(one.Agents, "|"))
		if text[one.Chain] && strings.Contains(names, q.Agent) && (q.From.IsZero() || one.Last >= q.From.UnixMilli()) && (q.To.IsZero() || one.First < q.To.UnixMilli()) {
			list = append(list, *one)
		}
	}
	slices.SortFunc(list, func(a, b find.Recording) int { return cmp.Compare(b.Place, a.Place) })
	return list
}

func (a *asking) compareRecordings(t *testing.T, when string, x *find.Index) int {
	t.Helper()
	values := map[string]string{"limit": fmt.Sprint(1 + a.r.IntN(5))}
	a.sometimes(3, values, "agent", strings.ToUpper(string([]rune(pick(a.r, watched))[1:])))
	a.sometimes(3, values, "text", pick(a.r, sentences))
	a.sometimes(3, values, "from", a.date(a.r.IntN(3)))
	a.sometimes(3, values, "to", a.date(3+a.r.IntN(3)))
	var got []find.Recording
	for {
		q := must.Get(find.ReadRecordings(get(values)))(t)
		found := must.Get(x.Recordings(t.Context(), q))(t)
		got = append(got, found.Recordings...)
		if values["after"] = found.Next; found.Next == "" {
			want := a.scan.recordings(q)
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Fatalf("%s: %v (-a scan +the index)\n%s", when, values, diff)
			}
			return len(got)
		}
	}
}

// TestEvents: what recorders say of themselves while they see a part of a chain is found, signs of life apart.
func TestEvents(t *testing.T) {
	h := &town{jurattest.New(t), rand.New(rand.NewPCG(5, 7))}
	tell := func(e *observed.Event) { h.event(t, e) }
	act := func() {
		h.Seal(t, evidence.Payload{ActionType: evidence.ObservedCall, AgentID: "tap-1", RequestID: "r", Timestamp: "2026-01-01T00:00:00Z", ChainID: "c",
			Observed: &evidence.Observed{Agent: "bot", Began: "2026-01-01T00:00:00Z", Ended: evidence.Complete, EndedMS: new(int64), Fidelity: evidence.Parsed, Protocol: "openai.chat", Vantage: evidence.InProcess}})
	}
	act()
	tell(&observed.Event{Event: observed.Stop, Reason: "asked to"})
	tell(&observed.Event{Event: observed.Heartbeat, Calls: new(int64), Since: evidence.FormatTime(jurattest.Start)})
	act()
	tell(&observed.Event{Event: observed.ModeChanged, Mode: observed.Passing, Reason: "disk full"})
	say(t, h.House, "something else")
	act()
	tell(&observed.Event{Event: observed.Stop, Reason: "asked to"})
	x := followed(t, h.House)
	for _, c := range []struct {
		from, to int64
		most     int
		want     []int64
	}{{1, 0, 9, []int64{1, 4, 7}}, {2, 3, 9, []int64{4}}, {1, 3, 9, []int64{1, 4}}, {1, 0, 2, []int64{1, 4}}, {3, 0, 9, []int64{7}}, {4, 0, 9, nil}, {1, 4, 9, nil}} {
		got := must.Get(x.Events(t.Context(), &find.Recording{Chain: "c", Sight: find.Sight{Recorders: taps}}, c.from, c.to, c.most))(t)
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if got, err := x.Events(t.Context(), &find.Recording{Chain: "c", Sight: find.Sight{Recorders: []string{"another"}}}, 1, 0, 9); len(got) > 0 || err != nil {
		t.Error(got, err)
	}
	say(t, h.House, "something else")
	follow(t, x)
	must.Give(x.LastOfInterest(t.Context()))(t, 7)
}

// TestErased: the index knows what was erased.
func TestErased(t *testing.T) {
	h := jurattest.New(t)
	r := say(t, h, "call me at 555", "/response")
	body := must.Get(operator.Encode(operator.ErasureBody{By: "anna", Pointers: []string{"/response"}, Reason: "asked for", Record: r.Digest}))(t)
	h.Seal(t, evidence.Payload{ActionType: evidence.Erasure, AgentID: "operator", Timestamp: evidence.FormatTime(jurattest.Start), Saw: []evidence.Digest{r.Digest}, Response: jsontext.Value(body)})
	x := openIndex(t, h, t.TempDir()+"/find.db")
	follow(t, x)
	got := must.Get(x.Erased(t.Context(), []evidence.Digest{r.Digest, evidence.DigestOf(nil)}))(t)
	must.Equal(t, gocmp.Diff(map[evidence.Digest][]string{r.Digest: {"/response"}}, got), "")
}

// TestHostileRecordings: what recorders seal may name a thousand agents, and times and counts that cannot be.
func TestHostileRecordings(t *testing.T) {
	h := &town{jurattest.New(t), nil}
	for i := range 60 {
		o := &evidence.Observed{Agent: fmt.Sprintf("agent-%d <b>&", i), Began: "0001-01-01T00:00:00Z", Ended: evidence.Complete, EndedMS: new(int64(1<<53 - 1)), Fidelity: evidence.Parsed, Protocol: "openai.chat",
			Vantage: evidence.InProcess, Usage: jsontext.Value(`{"completion_tokens":9007199254740991,"prompt_tokens":9007199254740991}`)}
		h.Seal(t, evidence.Payload{ActionType: evidence.ObservedCall, AgentID: "tap", RequestID: "r", Timestamp: "2026-01-01T00:00:00Z", ChainID: "c", Observed: o})
	}
	x := followed(t, h.House)
	r := must.Get(x.Recording(t.Context(), "c"))(t)
	if r == nil || len(r.Agents) != 20 || r.Acts != 60 || r.Records != 60 || r.Counted != 0 || r.Last < r.First {
		t.Fatalf("%+v", r)
	}
	must.Give(x.Recording(t.Context(), "no such chain"))(t, nil)
	for name, value := range map[string]string{"text": "ab", "from": "yesterday", "after": "-1", "limit": "0"} {
		if _, err := find.ReadRecordings(getter(name, value)); err == nil {
			t.Errorf("%s=%s is accepted", name, value)
		}
	}
}
