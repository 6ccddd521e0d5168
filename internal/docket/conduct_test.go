package docket_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/docket"
	"jurat/internal/must"
	"jurat/internal/subject"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/reputation"
	"jurat/verify"
)

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
	if want := (reputation.Coverage{}); v.Coverage != want { // of what the agent sealed itself
		t.Errorf("%+v", v.Coverage)
	}
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
	if given != 2 {
		t.Errorf("%d recorded acts", given)
	}
}

func TestReadEndsWithTheErrorOfItsCaller(t *testing.T) {
	h := settled(t, 2, 1)
	full := errors.New("the disk is full")
	if _, err := docket.ReadConduct(t.Context(), h.Ledger, "desk", func(docket.ConductFile) error { return full }); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
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
				if v := compute(b, h); v.Outcome != verify.Proved {
					b.Fatal(v.Completeness)
				}
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
	if took == 0 || first.Completeness[0].Records.Known != 2 || first.Completeness[0].Judgments.Known != 2 { // the times are of a mock, so nothing has a number
		t.Fatalf("read %d bytes: %+v", took, first.Completeness)
	}
	others(t, h, 8)
	now = now.Add(9 * time.Minute)
	if again, err := ask("desk"); err != nil || again != first || took != 0 {
		t.Errorf("read %d bytes again, %v", took, err)
	}
	now = now.Add(time.Minute)
	later, err := ask("desk")
	check(t, err)
	if later.At == first.At || took == 0 {
		t.Errorf("after ten minutes the view is still of %s", later.At)
	}
	h.Seal(t, output(h, "desk", "new"))
	if newer, err := ask("desk"); err != nil || newer.Completeness[0].Records.Known != 3 {
		t.Errorf("a new record is not seen: %v", err)
	}
	if _, err := ask("nobody"); !errors.Is(err, docket.ErrUnknownAgent) {
		t.Errorf("an agent of whom the log has nothing: %v", err)
	}
	enough := errors.New("enough")
	now = now.Add(time.Hour)
	if _, err := c.View(t.Context(), docket.ConductAsked{Agent: "desk"}, by, func(int64) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("work goes on after take refused: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.View(ended, docket.ConductAsked{Agent: "desk"}, by, func(int64) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a reader who is gone: %v", err)
	}
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
		if errors.Is(err, docket.ErrTooMany) != want.refused || verified != want.verified || err != nil && !want.refused {
			t.Errorf("at most %d: %v, verified %t; want %+v", most, err, verified, want)
		}
	}
}
