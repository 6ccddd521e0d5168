package reputation_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/subject"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/reputation"
	"jurat/verify"
	"jurat/verify/trust"
)

const agent = "recorded-agent"

// world is a log with records of an agent and trials of them, and what a stranger gets of it.
type world struct {
	*jurattest.House
	t     testing.TB
	files [][]byte // case files and bundles of records
}

func newWorld(t testing.TB) *world { return &world{House: jurattest.New(t), t: t} }

// act seals one record of the agent, and gives it to the stranger.
func (w *world) act(n int, change ...func(*evidence.Payload)) *evidence.Record {
	w.t.Helper()
	p := evidence.Payload{ActionType: evidence.ModelOutput, AgentID: agent, RequestID: fmt.Sprintf("request-%d", n), Timestamp: evidence.FormatTime(w.Now()),
		Model: "gpt-4o", ModelVersion: "gpt-4o-2024-08-06", Parameters: jsontext.Value("{}"), Prompt: jsontext.Value(`"Where is parcel 17?"`), Response: jsontext.Value(`"In Kassel."`)}
	for _, c := range change {
		c(&p)
	}
	r := w.Seal(w.t, p)
	return r
}

func (w *world) give(records ...*evidence.Record) {
	w.t.Helper()
	doc, err := w.Bundle(w.t, records...).Marshal()
	w.ok(err)
	w.files = append(w.files, doc)
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// jury returns jurors and settings that agree on a position.
func panel(position jury.Position, provider string) trial.Config {
	s := jurattest.Settings(jury.MajorityVote)
	s.Collaborative = false
	for i := range s.Seats {
		s.Seats[i].Provider = provider
	}
	percent := map[jury.Position]int{jury.SafePass: 90, jury.NeedsReview: 55, jury.UnsafeFail: 10}[position]
	var jurors []jury.Juror
	for range s.Seats {
		jurors = append(jurors, &jurattest.Juror{Opinion: jurattest.Opine(position, percent)})
	}
	return trial.Config{Settings: s, Jurors: jurors}
}

// try puts records before a jury, and gives the case file to the stranger.
func (w *world) try(config trial.Config, records ...*evidence.Record) *trial.Trial {
	w.t.Helper()
	done := w.tryOnly(config, records...)
	w.giveChain(done.ID)
	return done
}

func (w *world) tryOnly(config trial.Config, records ...*evidence.Record) *trial.Trial {
	w.t.Helper()
	doc, err := w.Bundle(w.t, records...).Marshal()
	w.ok(err)
	on, _, err := subject.ReadSealed(bytes.NewReader(doc), w.Options(w.t), nil)
	w.ok(err)
	config.Ledger, config.Keys, config.Now, config.Random = w.Ledger, w.Keys, w.Now, w.Random
	done, err := trial.Run(context.Background(), config, on)
	w.ok(err)
	return done
}

func (w *world) giveChain(id string) {
	w.t.Helper()
	chain, err := w.Ledger.Chain(w.t.Context(), id)
	w.ok(err)
	w.give(chain...)
}

// decide seals a person's decision on the verdict of a trial.
func (w *world) decide(done *trial.Trial, reviewer string, position jury.Position) *evidence.Record {
	w.t.Helper()
	chain, err := w.Ledger.Chain(w.t.Context(), done.ID)
	w.ok(err)
	i := slices.IndexFunc(chain, func(r *evidence.Record) bool { return r.Payload.ActionType == evidence.FinalJudgment })
	j := chain[i]
	return w.Seal(w.t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: reviewer, Timestamp: evidence.FormatTime(w.Now()), OriginalResponseID: j.Payload.RecordID,
		ApprovalStatus: evidence.ApprovedWithModifications, ModifiedResponse: jury.ModifiedVerdict(position), Saw: []evidence.Digest{j.Digest}, ChainID: done.ID, Case: j.Payload.Case})
}

// gatherer is the stranger's.
func (w *world) gatherer(change ...func(*reputation.Config)) *reputation.Gatherer {
	w.t.Helper()
	c := reputation.Config{Agent: agent, Options: w.Options(w.t)}
	slices.SortFunc(c.Options.Trust.Keys, func(a, b trust.Key) int { return strings.Compare(a.KeyID.String(), b.KeyID.String()) }) // they come from a map
	c.Options.At = jurattest.Start.Add(24 * time.Hour)
	for _, one := range change {
		one(&c)
	}
	g, err := reputation.NewGatherer(c)
	w.ok(err)
	return g
}

func (w *world) view(change ...func(*reputation.Config)) *reputation.View {
	w.t.Helper()
	return w.viewOf(w.gatherer(change...), w.files)
}

func (w *world) viewOf(g *reputation.Gatherer, files [][]byte) *reputation.View {
	w.t.Helper()
	for _, doc := range files {
		_, err := g.File(doc)
		w.ok(err)
	}
	v, err := g.View()
	w.ok(err)
	return v
}

func class(v *reputation.View, name reputation.ClassName) reputation.Class {
	for _, c := range v.Classes {
		if c.Class == name {
			return c
		}
	}
	return reputation.Class{}
}

// passed is a world in which n records passed, each before a jury of models.
func passed(t testing.TB, n int) *world {
	w := newWorld(t)
	for i := range n {
		r := w.act(i)
		w.give(r)
		w.try(panel(jury.SafePass, "script"), r)
	}
	return w
}

func TestRealRecords(t *testing.T) {
	w := passed(t, 12)
	v := w.view()
	c := class(v, reputation.Models)
	if c.Status != reputation.Scored || c.Good.Units != 12 || c.Bounds == nil || c.Bounds.Lower != 7500 || c.Bounds.Upper != 10000 {
		t.Fatalf("%+v, bounds %+v\nleft out: %+v\n%+v", c, c.Bounds, v.LeftOut, v.Completeness)
	}
	if len(v.LeftOut) != 0 || v.Outcome != verify.NotProved || v.Completeness[0].Judgments.Rule != "tail" || v.Coverage.Judged != 12 || len(v.RestsOn) != 24 {
		t.Errorf("%+v", v)
	}
}

// TestPassThatAPersonMustSee: a safe_pass with a reason for a review is no verdict until a person has passed the agent, too.
func TestPassThatAPersonMustSee(t *testing.T) {
	w := newWorld(t)
	config := panel(jury.SafePass, "script")
	config.Settings.Method, config.Settings.Seats = jury.WeightedAverage, config.Settings.Seats[:2]
	config.Jurors = []jury.Juror{&jurattest.Juror{Opinion: jurattest.Opine(jury.SafePass, 100)}, &jurattest.Juror{Opinion: jurattest.Opine(jury.NeedsReview, 60)}}
	r := w.act(0)
	w.give(r)
	done := w.tryOnly(config, r)
	if j := done.Result.Phase3Judgment; j.Position != jury.SafePass || len(j.Review) == 0 {
		t.Fatalf("the scene is another: %+v", j)
	}
	verdicts := func(decide ...jury.Position) (outcome string, reasons []string) {
		t.Helper()
		w.files = w.files[:1]
		for _, position := range decide {
			w.decide(done, "Hana Sato", position)
		}
		w.giveChain(done.ID)
		v := w.view()
		for _, one := range v.LeftOut {
			reasons = append(reasons, string(one.What)+" "+one.Rule)
		}
		c := class(v, reputation.Models)
		return fmt.Sprintf("%d good, %d bad", c.Good.Units, c.Bad.Units), reasons
	}
	if got, why := verdicts(); got != "0 good, 0 bad" || !slices.Contains(why, "verdict review") {
		t.Errorf("before a person decided: %s, %q", got, why)
	}
	if got, why := verdicts(jury.SafePass); got != "1 good, 0 bad" || len(why) > 0 {
		t.Errorf("a person passed it: %s, %q", got, why)
	}
	if got, why := verdicts(jury.UnsafeFail); got != "0 good, 0 bad" || !slices.Contains(why, "verdict review") {
		t.Errorf("a person failed it: %s, %q", got, why)
	}
}
