package pages

import (
	"bytes"
	"context"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/juror/rules"
	"jurat/internal/must"
	"jurat/internal/subject"
	"jurat/internal/trial"
	"jurat/internal/words"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
)

// panel is one for all tests: it keeps what it found in an example.
var panel = sync.OnceValue(rules.OfflinePanel)

// offline tries an example before the rule jurors.
func offline(t testing.TB, h *jurattest.House, example string) []*evidence.Record {
	t.Helper()
	c, err := subject.Load(filepath.Join("..", "..", "examples", example))
	check(t, err)
	return try(t, h, c)
}

func try(t testing.TB, h *jurattest.House, c *subject.Case) []*evidence.Record {
	t.Helper()
	return tryIn(t, h, c, 3)
}

// tryIn tries a case with so many rounds of discussion at most.
func tryIn(t testing.TB, h *jurattest.House, c *subject.Case, rounds int) []*evidence.Record {
	t.Helper()
	p := panel()
	done, err := trial.Run(context.Background(), trial.Config{Ledger: h.Ledger, Keys: h.Keys, Now: h.Now, Random: h.Random, Jurors: p.Jurors, Judge: p.Judge,
		Submitter: "Ines Duarte",
		Settings: jury.Settings{Seats: p.Seats, Judge: &p.JudgeSeat, Rubric: jury.DefaultRubric(), Collaborative: true, MaxRounds: rounds,
			Threshold: 2, Method: jury.FinalJudge}}, c)
	check(t, err)
	return done.Records
}

func courtOf(t testing.TB, records []*evidence.Record) *Court {
	t.Helper()
	c, err := NewCourt(records)
	check(t, err)
	return c
}

// Line returns the trial as one line of a list. Its agent has its whole name, which the log's index cuts.
func (c *Court) Line() Summary {
	s := Summary{c.Summary, c.State}
	s.Agent = c.Title()
	return s
}

// proved returns records with their proofs, and the report on them under the House's own trust file.
func proved(t testing.TB, h *jurattest.House, records ...*evidence.Record) ([]*evidence.Record, *verify.Report) {
	t.Helper()
	b := h.Bundle(t, records...)
	return b.Records, verify.Bundle(b, h.Options(t))
}

// provedOne returns one of a trial's records with its proof, and the report on the trial.
func provedOne(t testing.TB, h *jurattest.House, r *evidence.Record) (*evidence.Record, *verify.Report) {
	t.Helper()
	chain, err := h.Ledger.Chain(t.Context(), r.Payload.ChainID)
	check(t, err)
	_, report := proved(t, h, chain...)
	one, err := h.Ledger.ProveOne(t.Context(), r)
	check(t, err)
	return one, report
}

// sealedOf makes the page of one of a trial's records.
func sealedOf(t testing.TB, h *jurattest.House, r *evidence.Record) *Sealed {
	t.Helper()
	one, report := provedOne(t, h, r)
	return NewSealed(one, report, "https://jurat.example")
}

func write(t testing.TB, f Frame, p Page) string {
	t.Helper()
	if f.Lang == "" {
		f.Lang = words.English
	}
	var b bytes.Buffer
	check(t, Write(&b, f, p))
	return b.String()
}

// titleOf returns the title of a page's window, in English.
func titleOf(t testing.TB, p Page) string {
	t.Helper()
	return strings.TrimSuffix(texts(parse(t, write(t, Frame{}, p)), "title", "")[0], " · jurat")
}

func check(t testing.TB, err error) {
	t.Helper()
	must.Do(t, err)
}

func equal(t testing.TB, got, want any) {
	t.Helper()
	must.Equal(t, cmp.Diff(want, got), "")
}

var viewer = &Viewer{Name: "Reika Mori", Form: "form-key", Submits: true, Reviews: true, Oversees: true, Operates: true}

// several is the desk after a form for several cases, of which one was refused.
func several(s Summary) *Desk {
	d := NewDesk([]Summary{s}, nil, "Mia Brandt")
	d.May, d.Assigns, d.Problem = true, true, "no case is marked"
	d.Answer([]Result{{Record: "a-verdict", Subject: "courier", Did: Assign, To: "Ines Duarte"}, {Record: s.Outcome.Verdict.Record, Problem: "it moved on"}},
		Several{Draft: Draft{Reason: "Both were told."}, Decision: Assign, To: "Ines Duarte", Marked: []string{d.Items[0].Seen()}})
	return d
}

// tableOfPages has the pages that are made once, for all tests: no test changes them.
var tableOfPages map[string]Page

// everyPage returns one of each page, from real records.
func everyPage(t testing.TB) map[string]Page {
	t.Helper()
	if tableOfPages == nil {
		tableOfPages = makeEveryPage(t)
	}
	return tableOfPages
}

func makeEveryPage(t testing.TB) map[string]Page {
	t.Helper()
	h := jurattest.New(t)
	records := offline(t, h, "pharmacy-refill")
	court := courtOf(t, records)
	live := courtOf(t, records[:len(records)*3/5])
	live.State, live.Events = api.UnderWay, "/v1/submissions/"+live.ID+"/events"
	stopped := courtOf(t, records[:4])
	stopped.Reason, stopped.Resume = "the process that conducted it has stopped", true
	stopped.Next, stopped.Cancel = stopped.Submitted, true
	ended := courtOf(t, records[:4])
	ended.State, ended.Reason, ended.By, ended.Resume = api.Cancelled, "submitted by mistake", "Reika Mori", true
	chain, report := proved(t, h, records...)
	third, seen := provedOne(t, h, records[3])
	judgment := records[len(records)-2]
	review, err := NewReview(judgment)
	check(t, err)
	review.May, review.Subject, review.Trial, review.Court, review.Next = true, court.Title(), court.ID, court, judgment.Payload.RecordID
	review.Waits, review.Taken = true, &trial.Taken{Reviewer: "Reika Mori", By: "Otto", Reason: "she knows medicines", At: time.Unix(1e9, 0)}
	changed, err := NewReview(h.Seal(t, evidence.Payload{AgentID: "courier", RequestID: "r", Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "1",
		Prompt: value(t, "What now?"), Response: value(t, "Call the number that we have on file for the patient."), Parameters: []byte(`{}`)}))
	check(t, err)
	changed.May, changed.Subject = true, court.Title()
	changed.Draft.Text = "Only after the phone number is really changed. " + changed.Draft.Text[:len(changed.Draft.Text)-20]
	changed.Draft.Reason = "The patient would miss the message."
	changed.Compare()
	own, err := NewReview(judgment)
	check(t, err)
	own.Own = true
	untaken, err := NewReview(judgment)
	check(t, err)
	untaken.May, untaken.Waits = true, true
	all := map[string]Page{
		"home": &Home{Trials: []Summary{live.Line(), court.Line()}, Rules: true,
			Examples: []Example{{"kitchen-return", "Kitchen shop"}, {"invoice-inbox", "Payables"}}},
		"empty":    &Home{Panel: []string{"gpt-4o", "claude-haiku", "gemini-flash"}, Refusal: Refusal{Problem: "the card is no JSON"}},
		"hidden":   &Home{Hidden: true},
		"court":    court,
		"decided":  courtOf(t, decide(t, h, records, evidence.ApprovedWithModifications, jury.ModifiedVerdict(jury.UnsafeFail))),
		"live":     live,
		"ended":    ended,
		"stopped":  stopped,
		"queued":   courtOf(t, records[:1]),
		"sealed":   NewSealed(third, seen, "https://jurat.example"),
		"chain":    NewChain(court.ID, chain, report, 1),
		"desk":     NewDesk([]Summary{court.Line()}, nil, "Ines Duarte"),
		"several":  several(court.Line()),
		"review":   review,
		"changed":  changed,
		"own":      own,
		"untaken":  untaken,
		"sign-in":  &SignIn{Refusal: Refusal{Problem: "the token has expired"}, Next: "/reviews", OpenID: "/sign-in/openid"},
		"link":     &SignIn{Link: "LINKSECRET"},
		"trouble":  &Trouble{Code: 404, Detail: "there is no record 17; see /"},
		"chain-op": NewChain("none", nil, &verify.Report{}, 1),
	}
	maps.Copy(all, everyWhole(t, h))
	maps.Copy(all, everyState(t, h))
	maps.Copy(all, everyAgent(t))
	maps.Copy(all, everyRecording(t, h))
	maps.Copy(all, everyAccess(t))
	maps.Copy(all, everySearch(court, live))
	return all
}
