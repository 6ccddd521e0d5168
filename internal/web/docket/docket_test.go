package docket_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/web/docket"
	"jurat/internal/web/find"
	"jurat/jury"
	"jurat/reputation"
	"jurat/verify"
	"jurat/verify/trust"
)

// TestCSV: no cell is a formula, however it begins, and every text can be read back.
func TestCSV(t *testing.T) {
	for cell, want := range map[string]string{
		"=1+1": "'=1+1", "+cmd|' /C calc'!A0": "'+cmd|' /C calc'!A0", "-2+3": "'-2+3", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t'=1", "\r=1": "'\r'=1", "\n=1": "'\n'=1",
		"a;=1+1;b": "a;'=1+1;b", "a; =1": "a;' =1", "a;\"=1\"": "a;'\"=1\"", "a\t@x": "a\t'@x", "a|+1": "a|'+1", "a\n-1": "a\n'-1", "a;;＝1": "a;;'＝1", "a;b\n\nc": "a;b\n\nc", "1;2": "1;2", "  =1": "'  =1",
		"\u3000＝1": "'\u3000＝1", "＋1": "'＋1", "|x": "'|x", "%0": "'%0", "\ufeff=1": "'\ufeff=1",
		"-5": "-5", "42": "42", "a=b": "a=b", "": "", " ": " ", "'=1": "'=1", "a,\"b\"\nc": "a,\"b\"\nc", "返金": "返金",
	} {
		var out strings.Builder
		table := docket.Table{Head: []string{"h", "x"}, Rows: [][]string{{cell, "end"}}}
		must.Do(t, table.WriteCSV(&out))
		rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
		must.Need(t, err == nil && len(rows) == 2, "%q: %v, %v", cell, rows, err)
		got := rows[1][0]
		must.Hold(t, got == strings.ReplaceAll(want, "\r\n", "\n"), "%q becomes %q, want %q", cell, got, want)
	}
	list := []api.TrialLine{{Agent: "=HYPERLINK(\"http://evil\")", Submitter: "@x"}}
	row := docket.TrialTable(list)
	var out strings.Builder
	err := row.WriteCSV(&out)
	must.Hold(t, err == nil && !strings.Contains(out.String(), ",\"=") && !strings.Contains(out.String(), ",@"), "%s %v", out.String(), err)
}

// TestHits: who said it and when is verified; by a trust file that does not know the actor, nothing is proved.
func TestHits(t *testing.T) {
	h := jurattest.NewForStrangers(t)
	tried := h.Try(t, jury.MajorityVote)
	trials := trial.NewIndex(h.Ledger, nil)
	must.Do(t, trials.Follow(t.Context()))
	none := func(*trial.Summary) bool { return false }
	k := &docket.Keeper{Ledger: h.Ledger, Path: t.TempDir() + "/find.db"}
	defer k.Close()
	x, state, err := k.Ready(t.Context())
	must.Need(t, err == nil && state == (api.IndexState{}), "%v %v", state, err)
	found, err := x.Records(t.Context(), &find.Records{Text: find.Fold("as the script"), Oldest: true}, find.Scope{All: true}, nil)
	must.Need(t, err == nil && len(found.Hits) != 0, "%v %v", found, err)
	hits := func(by *trust.Trust, visible func(*trial.Summary) bool) []api.Hit {
		t.Helper()
		list, err := docket.Hits(found, by, trials, visible)
		must.Need(t, err == nil && len(list.Hits) == len(found.Hits), "%d of %d hits, %v", len(list.Hits), len(found.Hits), err)
		for i, hit := range list.Hits {
			must.Hold(t, hit.Record == found.Hits[i].Record.Payload.RecordID, "hit %d is %s", i, hit.Record)
		}
		return list.Hits
	}
	for _, hit := range hits(h.Trust(t), nil) {
		if hit.Proved == "" || hit.Authority == "" || hit.Why != "" || !strings.Contains(strings.ToLower(hit.Line), "as the script") || hit.Chain != tried.ID || hit.Outcome == nil {
			t.Errorf("%+v", hit)
		}
	}
	for _, hit := range hits(jurattest.NewImpostor(t).Trust(t), none) {
		must.Hold(t, hit.Proved == "" && hit.Why != "", "proved by others' keys: %+v", hit)
		must.Hold(t, hit.Outcome == nil, "an outcome that the reader may not see: %+v", hit)
	}
}

// TestCompare: the same trial differs in nothing; another has its own scores, and findings of its own.
func TestCompare(t *testing.T) {
	h := jurattest.New(t)
	a := must.Get(docket.Sheet(t.Context(), h.Ledger, h.Try(t, jury.MajorityVote).ID))(t)
	must.Hold(t, len(a.Seats) == 3 && len(a.Axes) != 0 && a.Score != nil && a.Seats[0].Reason != "" && a.Seats[0].Scores[a.Axes[0]] != 0, "%+v", a)
	finding := func(message int, rule string) api.TrialFinding {
		return api.TrialFinding{Message: message, Rule: rule, Axis: "safety", Quote: "q"}
	}
	b := a
	a.Findings = []api.TrialFinding{finding(1, "x"), finding(2, "y")}
	b.Findings = []api.TrialFinding{finding(3, "x"), finding(2, "y")}
	c := docket.Compare(a, b)
	must.Hold(t, c.SameCase && len(c.Both) == 1 && len(c.OnlyA) == 1 && len(c.OnlyB) == 1, "of the same case: %+v %+v %+v", c.Both, c.OnlyA, c.OnlyB)
	b.Case = "another"
	c = docket.Compare(a, b)
	must.Hold(t, !c.SameCase && len(c.Both) == 2 && len(c.OnlyA)+len(c.OnlyB) == 0, "of another case: %+v %+v %+v", c.Both, c.OnlyA, c.OnlyB)
	must.Equal(t, cmp.Diff(docket.SeatTable(&a).Head[:5], []string{"juror", "role", "model", "position", "score"}), "")
}

// TestKeeper: a damaged file is made again, a folder that cannot be written is no reason to stop, and after Close there is no index.
func TestKeeper(t *testing.T) {
	h := jurattest.New(t)
	h.Try(t, jury.MajorityVote)
	path := t.TempDir() + "/find.db"
	must.Do(t, os.WriteFile(path, []byte(strings.Repeat("damaged", 2000)), 0o600))
	for _, file := range []string{path, t.TempDir() + "/missing/find.db"} {
		k := &docket.Keeper{Ledger: h.Ledger, Path: file}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); k.Run(ctx) }()
		for behind := int64(1); behind > 0; time.Sleep(time.Millisecond) {
			_, state, err := k.Ready(t.Context())
			must.Need(t, err == nil, "%v %v", file, err)
			behind = state.Behind
		}
		stop()
		<-ended
		_, _, err := k.Ready(t.Context())
		must.Hold(t, err != nil, "a closed index is ready")
	}
}

// TestRecordings: a line has what was seen, and the trials that its reader may see.
func TestRecordings(t *testing.T) {
	h := jurattest.New(t)
	took, text := 1500*time.Millisecond, `{"model":"m","messages":[]}`
	p := must.Get(observed.Draft(observed.Act{Payload: evidence.Payload{AgentID: "gate", RequestID: "r", Timestamp: evidence.FormatTime(jurattest.Start), ChainID: "recorded/bot/1"},
		Observed: evidence.Observed{Began: evidence.FormatTime(jurattest.Start.Add(-took)), EndedMS: observed.Milliseconds(took), Agent: "bot", Vantage: evidence.Proxy, Fidelity: evidence.ByBytes, Protocol: "openai.chat", Ended: evidence.ClientGone},
		Request:  observed.Whole([]byte(text), "")}))(t).Payload
	on := must.Get(subject.FromRecords(nil, []subject.Exhibit{subject.NewExhibit(h.Seal(t, p))}, subject.Verification{Outcome: subject.NotProved}))(t)
	c := trial.Config{Ledger: h.Ledger, Keys: h.Keys, Settings: jurattest.Settings(jury.MajorityVote), Submitter: "ines", Now: h.Now}
	c.Jurors, c.Judge = jurattest.Panel()
	id := must.Get(trial.Submit(t.Context(), c, on))(t)
	trials := trial.NewIndex(h.Ledger, nil)
	must.Do(t, trials.Follow(t.Context()))
	k := &docket.Keeper{Ledger: h.Ledger}
	defer k.Close()
	get := func(string) string { return "" }
	by := &docket.Reader{States: func(list []trial.Summary) ([]api.State, error) { return []api.State{api.Queued}[:len(list)], nil }}
	list := must.Get(k.Recordings(t.Context(), get, trials, by))(t)
	if len(list.Recordings) != 1 || len(list.Recordings[0].Trials) != 1 || list.Recordings[0].Trials[0].ID != id || list.Recordings[0].Trials[0].State != api.Queued {
		t.Fatalf("%+v", list)
	}
	got := list.Recordings[0]
	got.Trials = nil
	want := api.Recording{Chain: "recorded/bot/1", Agents: []string{"bot"}, Recorders: []string{"gate"}, Models: []string{"m"}, Protocols: []string{"openai.chat"}, Vantages: []evidence.Vantage{evidence.Proxy},
		First: evidence.FormatTime(jurattest.Start.Add(-took)), Last: evidence.FormatTime(jurattest.Start), Acts: 1, Calls: 1, Broken: 1}
	must.Equal(t, cmp.Diff(want, got), "")
	by.Visible = func(*trial.Summary) bool { return false }
	list, err := k.Recordings(t.Context(), get, trials, by)
	must.Hold(t, err == nil && len(list.Recordings[0].Trials) == 0, "a hidden trial is shown: %+v, %v", list, err)
	_, err = k.Recordings(t.Context(), func(name string) string { return map[string]string{"text": "ab"}[name] }, trials, by)
	must.Hold(t, err != nil, "a text that is too short is accepted")
}

func check(t testing.TB, err error) {
	t.Helper()
	must.Do(t, err)
}

func output(h *jurattest.House, agent, request string) evidence.Payload {
	return evidence.Payload{ActionType: evidence.ModelOutput, AgentID: agent, RequestID: request, Timestamp: evidence.FormatTime(h.Now()), Model: "m", ModelVersion: "m-1",
		Parameters: jsontext.Value("{}"), Prompt: jsontext.Value(`"Where is parcel 17?"`), Response: jsontext.Value(`"In Kassel."`)}
}

// settled makes a log with records of an agent, of which each of the first is tried and one review rejects another.
func settled(t testing.TB, records, trials int) *jurattest.House {
	t.Helper()
	h := jurattest.New(t)
	for i := range records {
		r := h.Seal(t, output(h, "desk", fmt.Sprint(i)))
		if i < trials {
			try(t, h, r)
		}
		if i == trials {
			h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "noa", Timestamp: evidence.FormatTime(h.Now()), OriginalResponseID: r.Payload.RecordID,
				ApprovalStatus: evidence.Rejected, Saw: []evidence.Digest{r.Digest}})
		}
	}
	return h
}

func try(t testing.TB, h *jurattest.House, r *evidence.Record) {
	t.Helper()
	doc, err := h.Bundle(t, r).Marshal()
	check(t, err)
	on, _, err := subject.ReadSealed(bytes.NewReader(doc), h.Options(t), nil)
	check(t, err)
	s := jurattest.Settings(jury.MajorityVote)
	s.Collaborative = false
	var jurors []jury.Juror
	for range s.Seats {
		jurors = append(jurors, &jurattest.Juror{Opinion: jurattest.Opine(jury.SafePass, 90)})
	}
	_, err = trial.Run(t.Context(), trial.Config{Ledger: h.Ledger, Keys: h.Keys, Settings: s, Jurors: jurors, Now: h.Now, Random: h.Random}, on)
	check(t, err)
}

func others(t testing.TB, h *jurattest.House, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range n / 8 {
				h.Seal(t, output(h, "another", fmt.Sprintf("%d-%d", worker, i)))
			}
		})
	}
	wg.Wait()
}

func gatherer(t testing.TB, h *jurattest.House) *reputation.Gatherer {
	t.Helper()
	o := h.Options(t)
	o.At = jurattest.Start.Add(48 * time.Hour)
	g, err := reputation.NewGatherer(reputation.Config{Agent: "desk", Options: o})
	check(t, err)
	return g
}

func compute(t testing.TB, h *jurattest.House) *reputation.View {
	t.Helper()
	g := gatherer(t, h)
	fact, err := docket.ReadConduct(t.Context(), h.Ledger, "desk", func(f docket.ConductFile) error {
		g.Bundle(f.Bundle)
		return nil
	})
	check(t, err)
	g.Log(fact)
	v, err := g.View()
	check(t, err)
	return v
}

func TestRead(t *testing.T) {
	h := settled(t, 14, 12)
	others(t, h, 16)
	v := compute(t, h)
	if v.Outcome != verify.Proved || len(v.Classes) != 2 || v.Classes[0].Bounds == nil || v.Classes[0].Bounds.Lower != 7500 || v.Classes[1].Bad.Units != 1 || v.Coverage.Total != 14 || v.Coverage.Judged != 13 {
		t.Errorf("%+v", v)
	}
}

// TestReadGivesWhatTheEntriesSay: the log's index and the log's entries are one.
func TestReadGivesWhatTheEntriesSay(t *testing.T) {
	h := settled(t, 4, 2)
	others(t, h, 8)
	size, err := h.Ledger.Size(t.Context())
	check(t, err)
	checkpoint, err := h.Ledger.Checkpoint(t.Context())
	check(t, err)
	var all []byte
	for line, err := range h.Ledger.Entries(t.Context(), 0, size) {
		check(t, err)
		all = append(append(all, line...), '\n')
	}
	g := gatherer(t, h)
	check(t, g.Entries(checkpoint, bytes.NewReader(all)))
	facts, err := g.Facts()
	check(t, err)
	fact, err := docket.ReadConduct(t.Context(), h.Ledger, "desk", func(docket.ConductFile) error { return nil })
	check(t, err)
	if l := facts.Logs[0]; l.Origin != fact.Origin || l.Size != fact.Size || l.Counts != fact.Counts || !slices.Equal(l.Actor, fact.Actor) || !slices.Equal(l.Subject, fact.Subject) || len(l.Subject) != 3 {
		t.Errorf("%+v and %+v", l, fact)
	}
}

// call is an act of the agent "desk" that a recorder saw.
func call(t testing.TB, h *jurattest.House, request string) *evidence.Record {
	t.Helper()
	return h.Seal(t, evidence.Payload{ActionType: evidence.ObservedCall, AgentID: "gate", RequestID: request, Timestamp: evidence.FormatTime(h.Now()), Response: jsontext.Value(`"In Kassel."`),
		Observed: &evidence.Observed{Agent: "desk", Began: evidence.FormatTime(h.Now()), Ended: evidence.Complete, Fidelity: evidence.Parsed, Judged: evidence.JudgedAgent, Protocol: "other/1", Vantage: evidence.InProcess}})
}

// TestReadRecorded: of an agent that seals nothing itself, what people and juries found of its recorded acts is read, and no other of these.
func TestReadRecorded(t *testing.T) {
	h := jurattest.New(t)
	rejected, tried := call(t, h, "1"), call(t, h, "2")
	call(t, h, "3")
	h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "noa", Timestamp: evidence.FormatTime(h.Now()), OriginalResponseID: rejected.Payload.RecordID,
		ApprovalStatus: evidence.Rejected, PreviousRecord: rejected.Digest})
	try(t, h, tried)
	v := compute(t, h)
	if v.Outcome != verify.Proved || len(v.Classes) != 2 || v.Classes[0].Bad.Units != 0 || v.Classes[0].Good.Units != 1 || v.Classes[1].Bad.Units != 1 || len(v.LeftOut) > 0 {
		t.Errorf("%+v", v)
	}
	must.Hold(t, v.Coverage == (reputation.Coverage{}), "%+v", v.Coverage) // of what the agent sealed itself
	given := 0
	_, err := docket.ReadConduct(t.Context(), h.Ledger, "desk", func(f docket.ConductFile) error {
		for _, r := range f.Bundle.Records {
			if r.Payload.ActionType.Observes() {
				given++
			}
		}
		return nil
	})
	check(t, err)
	must.Equal(t, given, 2)
}

func TestReadEndsWithTheErrorOfItsCaller(t *testing.T) {
	h := settled(t, 2, 1)
	full := errors.New("the disk is full")
	must.Fail(t, full)(docket.ReadConduct(t.Context(), h.Ledger, "desk", func(docket.ConductFile) error { return full }))
}

// BenchmarkReputation: 200 records of the agent and 50 trials, among records of others.
func BenchmarkReputation(b *testing.B) {
	h := settled(b, 200, 50)
	for _, n := range []int{0, 20_000, 80_000} {
		others(b, h, n)
		size, err := h.Ledger.Size(b.Context())
		check(b, err)
		b.Run(fmt.Sprintf("log=%d", size), func(b *testing.B) {
			for b.Loop() {
				v := compute(b, h)
				must.Need(b, v.Outcome == verify.Proved, "%v", v.Completeness)
			}
		})
	}
}

// TestCache: a view is kept until the log counts something new of the agent, and for ten minutes at most.
func TestCache(t *testing.T) {
	h := settled(t, 2, 1)
	by := h.Options(t).Trust
	now := jurattest.Start.Add(48 * time.Hour)
	c := docket.NewConductCache(h.Ledger, func() time.Time { return now })
	took := 0
	ask := func(agent string) (*reputation.View, error) {
		took = 0
		return c.View(t.Context(), docket.ConductAsked{Agent: agent}, by, func(bytes int64) error { took += int(bytes); return nil })
	}
	first, err := ask("desk")
	check(t, err)
	must.Need(t, took != 0 && first.Completeness[0].Records.Known == 2 && first.Completeness[0].Judgments.Known == 2,
		"read %d bytes: %+v", took, first.Completeness) // the times are of a mock, so nothing has a number
	others(t, h, 8)
	now = now.Add(9 * time.Minute)
	if again, err := ask("desk"); err != nil || again != first || took != 0 {
		t.Errorf("read %d bytes again, %v", took, err)
	}
	now = now.Add(time.Minute)
	later, err := ask("desk")
	check(t, err)
	must.Hold(t, later.At != first.At && took != 0, "after ten minutes the view is still of %s", later.At)
	h.Seal(t, output(h, "desk", "new"))
	newer, err := ask("desk")
	must.Hold(t, err == nil && newer.Completeness[0].Records.Known == 3, "a new record is not seen: %v", err)
	must.Fail(t, docket.ErrUnknownAgent)(ask("nobody"))
	enough := errors.New("enough")
	now = now.Add(time.Hour)
	must.Fail(t, enough)(c.View(t.Context(), docket.ConductAsked{Agent: "desk"}, by, func(int64) error { return enough }))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	must.Fail(t, context.Canceled)(c.View(ended, docket.ConductAsked{Agent: "desk"}, by, func(int64) error { return nil }))
}

// TestTooMany: of an agent with too many records of its own nothing is verified, however often its page is opened. Judgments about it
// count, too.
func TestTooMany(t *testing.T) {
	h := settled(t, 5, 0) // and a review of one
	for most, want := range map[int]struct{ refused, verified bool }{4: {true, false}, 5: {true, true}, 1000: {false, true}} {
		c := docket.NewConductCache(h.Ledger, func() time.Time { return jurattest.Start.Add(48 * time.Hour) })
		c.Limit(most)
		verified := false
		_, err := c.View(t.Context(), docket.ConductAsked{Agent: "desk"}, h.Options(t).Trust, func(int64) error { verified = true; return nil })
		must.Hold(t, errors.Is(err, docket.ErrTooMany) == want.refused && verified == want.verified && (err == nil || want.refused),
			"at most %d: %v, verified %t; want %+v", most, err, verified, want)
	}
}
