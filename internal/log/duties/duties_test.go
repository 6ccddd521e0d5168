package duties_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/log/duties"
	"jurat/internal/log/installation"
	"jurat/internal/tap/traffic"
	"jurat/internal/test/must"
	"jurat/verify"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A house is an installation in a data folder, in which a test seals what actors and recorders would.
type house struct {
	*installation.Installation
	minutes int
}

func newHouse(t *testing.T) *house {
	t.Helper()
	i, _, err := installation.OpenOrCreate(t.Context(), installation.Config{Dir: t.TempDir()})
	must.Do(t, err)
	t.Cleanup(func() {
		must.Want(t, i.Close(), nil)
	})
	return &house{Installation: i}
}

// at is a minute later each time.
func (h *house) at() time.Time {
	h.minutes++
	return start.Add(time.Duration(h.minutes) * time.Minute)
}

func (h *house) seal(t *testing.T, p evidence.Payload, apart ...string) string {
	t.Helper()
	draft := must.Get(evidence.NewDraft(p))(t)
	signers := must.Get(h.Keys.Signers(t.Context(), draft.Role(), draft.Actor()))(t)
	r := must.Get(h.Ledger.Seal(t.Context(), draft.SealingApart(nil, apart...), signers))(t)
	return r.Payload.RecordID
}

func (h *house) output(t *testing.T, agent, version, tools string) string {
	t.Helper()
	p := evidence.Payload{AgentID: agent, RequestID: "r", Timestamp: evidence.FormatTime(h.at()), Model: "m", ModelVersion: version,
		Prompt: jsontext.Value(`"Which route?"`), Response: jsontext.Value(`"The A9."`), Parameters: jsontext.Value(`{}`)}
	if tools != "" {
		p.ToolsUsed = jsontext.Value(tools)
	}
	return h.seal(t, p)
}

func (h *house) review(t *testing.T, of string, status evidence.ApprovalStatus) string {
	t.Helper()
	return h.seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "ines", Timestamp: evidence.FormatTime(h.at()), OriginalResponseID: of, ApprovalStatus: status})
}

func (h *house) event(t *testing.T, recorder string, e observed.Event) string {
	t.Helper()
	p := must.Get(e.Payload(recorder, evidence.FormatTime(h.at()), "recorder/"+recorder))(t)
	return h.seal(t, p)
}

const asked, answered = `{"model":"gpt-4o","messages":[{"role":"user","content":"Where is order 7?"}]}`,
	`{"model":"gpt-4o-2024-08-06","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"It is shipped."}}]}`

// call seals an act that a recorder saw, after a change.
func (h *house) call(t *testing.T, recorder, agent string, change func(a *observed.Act)) string {
	t.Helper()
	at := h.at()
	a := observed.Act{Payload: evidence.Payload{AgentID: recorder, RequestID: fmt.Sprint("call-", h.minutes), Timestamp: evidence.FormatTime(at), ChainID: "recorded/" + agent + "/monday"},
		Observed: evidence.Observed{Began: evidence.FormatTime(at.Add(-time.Second)), Agent: agent, Vantage: evidence.Proxy, Fidelity: evidence.ByBytes, Protocol: traffic.OpenAIChat, Method: "POST", Path: "/v1/chat/completions", Status: 200, Ended: evidence.Complete, EndedMS: observed.Milliseconds(time.Second)},
		Request:  observed.Whole(asked, "application/json"), Response: observed.Whole(answered, "application/json")}
	if change != nil {
		change(&a)
	}
	p := must.Get(observed.Draft(a))(t).Payload
	var apart []string
	if p.RequestBody != nil {
		apart = append(apart, "/request_body")
	}
	if p.ResponseBody != nil {
		apart = append(apart, "/response_body")
	}
	return h.seal(t, p, apart...)
}

// report makes the report that the command makes.
func (h *house) report(t *testing.T, s duties.Selection) *duties.Report {
	t.Helper()
	facts := must.Get(duties.Gather(t.Context(), h.Ledger, s, nil))(t)
	trusted := must.Get(h.Trust(t.Context()))(t)
	v := duties.Verifier{Ledger: h.Ledger, Options: verify.Options{Trust: trusted}, Disclose: func(ctx context.Context, records []*evidence.Record) ([]*evidence.Record, error) {
		var list []*evidence.Record
		for _, r := range records {
			disclosed, err := h.Apart.Disclose(ctx, r, nil)
			if err != nil {
				return nil, err
			}
			list = append(list, disclosed)
		}
		return list, nil
	}}
	found := must.Get(v.Verify(t.Context(), facts))(t)
	return facts.Report(duties.AIAct(), found, 0, h.Ledger.Origin(), "fingerprint")
}

func lineOf(t *testing.T, r *duties.Report, clause, shows string) *duties.Line {
	t.Helper()
	for i := range r.Clauses {
		if r.Clauses[i].ID != clause {
			continue
		}
		for n := range r.Clauses[i].Lines {
			if l := &r.Clauses[i].Lines[n]; strings.Contains(l.Shows, shows) {
				return l
			}
		}
	}
	t.Fatalf("no line %q in %s", shows, clause)
	return nil
}

// TestEveryLine: each line of the report counts exactly the records that show what it says, with the first and the last of them, and what of them is proved.
func TestEveryLine(t *testing.T) {
	h := newHouse(t)
	digest := evidence.DigestOf([]byte("settings"))
	minute := evidence.FormatTime(start)
	started := h.event(t, "gate", observed.Event{Event: observed.Start, Mode: observed.Passing, Vantage: evidence.Proxy, Version: "1", Configuration: digest})
	h.event(t, "elsewhere", observed.Event{Event: observed.Start, Mode: observed.Closed, Vantage: evidence.Proxy, Version: "1", Configuration: digest}) // saw another agent alone
	own := h.output(t, "mia", "v1", "")
	second := h.output(t, "mia", "v2", `["get_order"]`)
	other := h.output(t, "ben", "v1", "")
	approved := h.review(t, own, evidence.Approved)
	rejected := h.review(t, second, evidence.Rejected)
	h.review(t, other, evidence.Rejected)
	seen := h.call(t, "gate", "mia", nil)
	h.call(t, "elsewhere", "ben", nil)
	failed := h.call(t, "gate", "mia", func(a *observed.Act) { a.Status = 500 })
	lost := h.call(t, "gate", "mia", func(a *observed.Act) { a.Ended, a.Response, a.Status, a.EndedMS = evidence.LostInCrash, nil, 0, nil })
	told := h.call(t, "gate", "mia", func(a *observed.Act) {
		a.ActionType, a.Vantage, a.Fidelity, a.Protocol, a.Request, a.Response = evidence.ObservedSpan, evidence.Telemetry, evidence.ByAttributes, "log/1", nil, nil
		a.Method, a.Path, a.Status = "", "", 0
		a.Prompt, a.Payload.Response = jsontext.Value(`"Where?"`), jsontext.Value(`"There."`)
	})
	gap := h.event(t, "gate", observed.Event{Event: observed.Gap, Reason: "the disk was full", Missed: []observed.Missed{{Agent: "ben", Calls: 4, Minute: minute}, {Agent: "mia", Calls: 3, Minute: minute}}})
	h.event(t, "gate", observed.Event{Event: observed.Gap, Reason: "the disk was full", Missed: []observed.Missed{{Agent: "ben", Calls: 9, Minute: minute}}})
	settings := h.event(t, "gate", observed.Event{Event: observed.Configuration, Configuration: digest, Reason: "a new route"})
	tool := h.event(t, "gate", observed.Event{Event: observed.ToolDefinitionChanged, Agent: "mia", Tool: "pay", Server: "bank", Before: digest, After: evidence.DigestOf([]byte("after"))})
	stopped := h.event(t, "gate", observed.Event{Event: observed.Stop, Reason: "the shift ended"})

	r := h.report(t, duties.Selection{Agent: "mia"})
	for _, tt := range []struct {
		clause, shows string
		first, last   string
		records       int
		proved        int
	}{
		{"12(1)", "acts of the agent are recorded", own, told, 6, 6},
		{"12(1)", "a recorder saw as bytes", seen, lost, 3, 2},
		{"12(1)", "somebody told", told, told, 1, 1},
		{"12(1)", "a recorder began", started, started, 1, 1},
		{"12(1)", "a recorder ended", stopped, stopped, 1, 1},
		{"12(1)", "passed without a record", gap, gap, 1, 1},
		{"12(1)", "under way when a recorder died", lost, lost, 1, 1},
		{"12(2)(a)", "failed, broke off", failed, failed, 1, 1},
		{"12(2)(a)", "rejected or changed", rejected, rejected, 1, 1},
		{"12(2)(a)", "is another one than", second, second, 1, 1},
		{"12(2)(a)", "settings or mode changed", settings, settings, 1, 1},
		{"12(2)(a)", "definition of a tool changed", tool, tool, 1, 1},
		{"12(2)(a)", "verdicts of a jury on the agent", "", "", 0, 0},
		{"12(2)(b)", "decisions of people", approved, rejected, 2, 2},
		{"12(2)(c)", "what went into", own, told, 6, 6},
		{"12(2)(c)", "what came out", own, told, 5, 5},
		{"12(2)(c)", "tools that it used", second, second, 1, 1},
		{"12(3)", "start and end", seen, told, 3, 2},
		{"19(1)", "acts of the agent", own, told, 6, 6},
		{"26(5)", "rejections and changes", rejected, rejected, 1, 1},
		{"86", "what people decided", approved, rejected, 2, 2},
	} {
		l := lineOf(t, r, tt.clause, tt.shows)
		first, last := "", ""
		if l.First != nil {
			first, last = l.First.Record, l.Last.Record
		}
		must.Hold(t, l.Records == tt.records && first == tt.first && last == tt.last && l.Proved == tt.proved && l.Proved+l.NotProved+l.Refuted == l.Records,
			"%s %q: %+v, want %d records, %d proved, from %s to %s", tt.clause, tt.shows, l, tt.records, tt.proved, tt.first, tt.last)
	}
	l := lineOf(t, r, "12(3)", "people who decided")
	must.Hold(t, slices.Equal(l.People, []string{"ines"}), "%q", l.People)
	must.Equal(t, lineOf(t, r, "12(1)", "passed without a record").Note, "3 calls passed without a record")
	said := strings.Join(r.Warnings, "\n")
	if !strings.Contains(said, "3 calls passed without a record") || !strings.Contains(said, "the log is not complete") || !strings.Contains(said, "1 call was under way when a recorder died") {
		t.Error(said)
	}
	for _, c := range r.Clauses {
		must.Hold(t, len(c.NotShown) != 0, "%s says that it shows everything", c.ID)
		keeps := c.ID == "19(1)" || c.ID == "26(6)"
		if keeps != strings.Contains(strings.Join(c.Settings, ""), "183 days") || keeps != strings.Contains(strings.Join(c.NotShown, ""), "less than 183 days apart") {
			t.Errorf("%s: %q %q", c.ID, c.Settings, c.NotShown)
		}
	}
	must.Hold(t, strings.Contains(r.Claims, "does not say that a duty is met") && strings.Contains(r.Mapping.Dates, "Official Journal") && r.Mapping.Version == 2,
		"%+v", r.Mapping)
	if doc, err := json.Marshal(r); err != nil || strings.Contains(strings.ToLower(string(doc)), "conform") || strings.Contains(string(doc), "compliant") {
		t.Errorf("%v: it claims conformity", err)
	}
	if all := h.report(t, duties.Selection{}); lineOf(t, all, "12(1)", "acts of the agent").Records != 8 || lineOf(t, all, "12(1)", "a recorder began").Records != 2 {
		t.Errorf("of every agent: %+v", all.Clauses[0].Lines)
	}
}

// TestWithoutRecords: a report on an agent that the log does not have says so.
func TestWithoutRecords(t *testing.T) {
	h := newHouse(t)
	h.output(t, "ben", "v1", "")
	r := h.report(t, duties.Selection{Agent: "mia"})
	must.Hold(t, r.Acts == 0 && strings.Contains(strings.Join(r.Warnings, ""), `no act of the agent "mia"`), "%+v", r)
	for _, c := range r.Clauses {
		for _, l := range c.Lines {
			must.Hold(t, l.Records == 0 && l.First == nil && l.Proved == 0, "%s: %+v", c.ID, l)
		}
	}
}

// TestTime: records outside of the time are not counted, and still say what the model was before.
func TestTime(t *testing.T) {
	h := newHouse(t)
	h.output(t, "mia", "v1", "")
	second := h.output(t, "mia", "v2", "")
	h.output(t, "mia", "v3", "")
	r := h.report(t, duties.Selection{Agent: "mia", From: start.Add(2 * time.Minute), To: start.Add(3 * time.Minute)})
	for _, shows := range []string{"acts of the agent are recorded"} {
		l := lineOf(t, r, "12(1)", shows)
		must.Hold(t, l.Records == 1 && l.First.Record == second, "%+v", l)
	}
	l := lineOf(t, r, "12(2)(a)", "is another one than")
	must.Hold(t, l.Records == 1 && l.First.Record == second, "%+v", l)
	must.Hold(t, r.From != "" && r.To != "", "%+v", r)
}

// TestCopiesFromBefore: a call whose bytes are copied from calls before the time of a report, or from calls that are verified at another time, is proved by
// them. If there are too many, the report says that it was not checked.
func TestCopiesFromBefore(t *testing.T) {
	h := newHouse(t)
	var said []string
	var bodies [][]byte
	for n := range 6 { // each copies from the one before it alone, so the last rests on all
		said = append(said, fmt.Sprintf(`{"role":"user","content":%q}`, strings.Repeat(fmt.Sprintf("%d words of the customer, ", n), 40)))
		text := []byte(`{"model":"gpt-4o","messages":[` + strings.Join(said, ",") + `]}`)
		h.call(t, "gate", "mia", func(a *observed.Act) {
			a.Request = observed.Whole(text, "application/json")
			if n > 0 {
				a.Request.Earlier = bodies[n-1:]
			}
		})
		h.call(t, "gate", "other", nil)
		bodies = append(bodies, text)
	}
	line := func(s duties.Selection) (*duties.Line, []string) {
		t.Helper()
		r := h.report(t, s)
		return lineOf(t, r, "12(3)", "start and end of an act"), r.Warnings
	}
	last := duties.Selection{Agent: "mia", From: start.Add(11 * time.Minute)}
	l, warnings := line(last)
	must.Hold(t, l.Records == 1 && l.Proved == 1 && len(warnings) == 0, "%+v, %q", l, warnings)
	middle := duties.Selection{Agent: "mia", From: start.Add(5 * time.Minute), To: start.Add(8 * time.Minute)}
	l, warnings = line(middle)
	must.Hold(t, l.Records == 2 && l.Proved == 2 && len(warnings) == 0, "%+v, %q", l, warnings)
	duties.Small(t, 2, 100)
	l, warnings = line(duties.Selection{Agent: "mia"})
	must.Hold(t, l.Records == 6 && l.Proved == 6 && len(warnings) == 0, "two at a time: %+v, %q", l, warnings)
	duties.Small(t, 2, 3)
	if l, warnings := line(last); l.NotProved != 1 || len(warnings) != 1 || !strings.Contains(warnings[0], "Not checked: calls that copy from more than 3") {
		t.Errorf("%+v, %q", l, warnings)
	}
}

// TestSixMonths: acts half a year apart show that something was kept.
func TestSixMonths(t *testing.T) {
	h := newHouse(t)
	h.output(t, "mia", "v1", "")
	h.minutes += 183 * 24 * 60
	h.output(t, "mia", "v1", "")
	for _, c := range h.report(t, duties.Selection{Agent: "mia"}).Clauses {
		must.Hold(t, !strings.Contains(strings.Join(c.NotShown, ""), "days apart"), "%s: %q", c.ID, c.NotShown)
	}
}

// TestUntrusted: records that the trust file does not vouch for are not called proved.
func TestUntrusted(t *testing.T) {
	h := newHouse(t)
	h.output(t, "mia", "v1", "")
	facts := must.Get(duties.Gather(t.Context(), h.Ledger, duties.Selection{Agent: "mia"}, nil))(t)
	v := duties.Verifier{Ledger: h.Ledger}
	found := must.Get(v.Verify(t.Context(), facts))(t)
	r := facts.Report(duties.AIAct(), found, 0, "log", "")
	l := lineOf(t, r, "12(1)", "acts of the agent")
	must.Hold(t, l.Proved == 0 && l.NotProved == 1, "%+v", l)
}

// TestMapping: the mapping names each clause once, and says of each what is not shown.
func TestMapping(t *testing.T) {
	var ids []string
	for _, c := range newHouse(t).report(t, duties.Selection{}).Clauses {
		ids = append(ids, c.ID)
	}
	want := []string{"12(1)", "12(2)(a)", "12(2)(b)", "12(2)(c)", "12(3)", "19(1)", "26(5)", "26(6)", "50", "86"}
	must.Hold(t, slices.Equal(ids, want), "%q", ids)
	page := must.Get(os.ReadFile(filepath.Join("..", "..", "..", "docs", "recorder.md")))(t)
	_, section, _ := strings.Cut(string(page), "## What the EU AI Act asks")
	section, _, _ = strings.Cut(section, "\n## ")
	must.Hold(t, strings.Contains(section, fmt.Sprintf("mapping, version %d:", duties.AIAct().Version)), "docs/recorder.md has another version of the mapping")
	for _, id := range ids {
		must.Hold(t, strings.Contains(section, "\n| "+id) || strings.Contains(section, ", "+id+" |"), "docs/recorder.md does not map %s", id)
	}
}

// TestHiddenTrials: a trial whose evidence is sealed apart is counted among those of every agent, and otherwise said not to be, if it is of the time.
func TestHiddenTrials(t *testing.T) {
	hidden := func(minutes int) *evidence.Record {
		return &evidence.Record{Payload: evidence.Payload{ActionType: evidence.Submission, RecordID: fmt.Sprint("r", minutes), ChainID: fmt.Sprint("trial/", minutes),
			Timestamp: evidence.FormatTime(start.Add(time.Duration(minutes) * time.Minute)), Response: jsontext.Value(`"sealed apart"`), SealedApart: []string{"/response"}}}
	}
	for _, tt := range []struct {
		of    duties.Selection
		tried int
		says  string
	}{
		{duties.Selection{}, 2, ""},
		{duties.Selection{Agent: "mia"}, 0, "2 trials"},
		{duties.Selection{Agent: "mia", From: start.Add(2 * time.Minute)}, 0, "1 trial"},
	} {
		f := duties.NewFacts(tt.of)
		f.Take(0, hidden(1))
		f.Take(1, hidden(2))
		r := f.Report(duties.AIAct(), func(string, verify.Guarantee) verify.Status { return verify.Proved }, 0, "log", "")
		said := strings.Join(r.Warnings, "\n")
		if l := lineOf(t, r, "12(2)(b)", "trials"); l.Records != tt.tried || tt.says == "" && strings.Contains(said, "not counted") || !strings.Contains(said, tt.says) {
			t.Errorf("%+v: %d trials, %s", tt.of, l.Records, said)
		}
	}
}

// TestHeartbeatsAreNotKept: a recorder that never saw the agent gives signs of life all day.
func TestHeartbeatsAreNotKept(t *testing.T) {
	beat := observed.Event{Event: observed.Heartbeat, Since: evidence.FormatTime(start), Calls: new(int64(1))}
	p := must.Get(beat.Payload("gate", evidence.FormatTime(start), "recorder/gate"))(t)
	f := duties.NewFacts(duties.Selection{Agent: "mia"})
	r := &evidence.Record{Payload: p}
	kept := weak.Make(r)
	f.Take(0, r)
	r = nil
	runtime.GC()
	must.Hold(t, kept.Value() == nil, "the record is kept")
	runtime.KeepAlive(f)
}
