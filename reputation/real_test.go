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
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
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
	doc := must.Get(w.Bundle(w.t, records...).Marshal())(w.t)
	w.files = append(w.files, doc)
}

func (w *world) ok(err error) {
	w.t.Helper()
	must.Do(w.t, err)
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
	doc := must.Get(w.Bundle(w.t, records...).Marshal())(w.t)
	on, _, err := subject.ReadSealed(bytes.NewReader(doc), w.Options(w.t), nil)
	w.ok(err)
	config.Ledger, config.Keys, config.Now, config.Random = w.Ledger, w.Keys, w.Now, w.Random
	return must.Get(trial.Run(context.Background(), config, on))(w.t)
}

func (w *world) giveChain(id string) {
	w.t.Helper()
	chain := must.Get(w.Ledger.Chain(w.t.Context(), id))(w.t)
	w.give(chain...)
}

// decide seals a person's decision on the verdict of a trial.
func (w *world) decide(done *trial.Trial, reviewer string, position jury.Position) *evidence.Record {
	w.t.Helper()
	chain := must.Get(w.Ledger.Chain(w.t.Context(), done.ID))(w.t)
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
	return must.Get(reputation.NewGatherer(c))(w.t)
}

func (w *world) view(change ...func(*reputation.Config)) *reputation.View {
	w.t.Helper()
	return w.viewOf(w.gatherer(change...), w.files)
}

func (w *world) viewOf(g *reputation.Gatherer, files [][]byte) *reputation.View {
	w.t.Helper()
	for _, doc := range files {
		must.Get(g.File(doc))(w.t)
	}
	return must.Get(g.View())(w.t)
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
		w.tried(panel(jury.SafePass, "script"), i)
	}
	return w
}

func TestRealRecords(t *testing.T) {
	w := passed(t, 12)
	v := w.view()
	c := class(v, reputation.Models)
	must.Need(t, c.Status == reputation.Scored && c.Good.Units == 12 && c.Bounds != nil && c.Bounds.Lower == 7500 && c.Bounds.Upper == 10000,
		"%+v, bounds %+v\nleft out: %+v\n%+v", c, c.Bounds, v.LeftOut, v.Completeness)
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
	j := done.Result.Phase3Judgment
	must.Need(t, j.Position == jury.SafePass && len(j.Review) != 0, "the scene is another: %+v", j)
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
	got, why := verdicts()
	must.Hold(t, got == "0 good, 0 bad" && slices.Contains(why, "verdict review"), "before a person decided: %s, %q", got, why)
	got, why = verdicts(jury.SafePass)
	must.Hold(t, got == "1 good, 0 bad" && len(why) == 0, "a person passed it: %s, %q", got, why)
	got, why = verdicts(jury.UnsafeFail)
	must.Hold(t, got == "0 good, 0 bad" && slices.Contains(why, "verdict review"), "a person failed it: %s, %q", got, why)
}

// tried seals one record of the agent, gives it to the stranger, and has it tried.
func (w *world) tried(config trial.Config, n int, change ...func(*evidence.Payload)) *evidence.Record {
	w.t.Helper()
	r := w.act(n, change...)
	w.give(r)
	w.try(config, r)
	return r
}

// informed is the stranger's gatherer that has read the log's entries.
func (w *world) informed() *reputation.Gatherer {
	w.t.Helper()
	g := w.gatherer()
	w.ok(w.entries(g))
	return g
}

// seen seals an act of the agent that the recorder "gate" saw.
func (w *world) seen(n int, judged evidence.Judged) *evidence.Record {
	w.t.Helper()
	now := evidence.FormatTime(w.Now())
	return w.Seal(w.t, evidence.Payload{ActionType: evidence.ObservedCall, AgentID: "gate", RequestID: fmt.Sprintf("call-%d", n), Timestamp: now, Response: jsontext.Value(`"In Kassel."`),
		Observed: &evidence.Observed{Agent: agent, Began: now, Ended: evidence.Complete, Fidelity: evidence.Parsed, Judged: judged, Protocol: "other/1", Vantage: evidence.InProcess}})
}

func (w *world) reviewed(r *evidence.Record, status evidence.ApprovalStatus) *evidence.Record {
	w.t.Helper()
	return w.Seal(w.t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "noa", Timestamp: evidence.FormatTime(w.Now()), OriginalResponseID: r.Payload.RecordID,
		ApprovalStatus: status, Saw: []evidence.Digest{r.Digest}})
}

// whole is what the stranger computes who has the log's entries, too.
func (w *world) whole(change ...func(*reputation.Config)) *reputation.View {
	w.t.Helper()
	g := w.gatherer(change...)
	w.ok(w.entries(g))
	return w.viewOf(g, w.files)
}

// TestRecordedActs: what people and juries find of acts that a recorder saw counts for the agent, and for nobody else. The agent has no key.
func TestRecordedActs(t *testing.T) {
	w := newWorld(t)
	tried, rejected, approved := w.seen(1, evidence.JudgedAgent), w.seen(2, evidence.JudgedAgent), w.seen(3, evidence.JudgedAgent)
	w.give(tried, rejected, approved)
	w.try(panel(jury.SafePass, "script"), tried)
	w.give(w.reviewed(rejected, evidence.Rejected), w.reviewed(approved, evidence.Approved))
	v := w.whole()
	people, models := class(v, reputation.People), class(v, reputation.Models)
	if people.Bad.Units != 1 || people.Good.Units != 0 || models.Good.Units != 1 || models.Bad.Units != 0 || v.Approvals != 1 || v.Outcome != verify.Proved || len(v.LeftOut) > 0 {
		t.Errorf("people %+v, models %+v, %d approved; %s, %+v, left out: %+v", people, models, v.Approvals, v.Outcome, v.Completeness, v.LeftOut)
	}
	judgments := v.Completeness[0].Judgments
	must.Hold(t, judgments.Total == 3 && judgments.Known == 3, "%+v", judgments)
	must.Hold(t, v.Coverage == reputation.Coverage{}, "the log counts for nobody what a recorder saw: %+v", v.Coverage)
	other := w.whole(func(c *reputation.Config) { c.Agent = "another agent" })
	must.Hold(t, len(other.Classes) == 0 && other.Approvals == 0 && other.Completeness[0].Judgments.Total == 0, "%+v", other)
}

// TestLeftOutReviewOfARecordedAct: a review that is left out is missing in what the log counts about the agent, with the log's entries and without.
func TestLeftOutReviewOfARecordedAct(t *testing.T) {
	w := newWorld(t)
	act := w.seen(1, evidence.JudgedAgent)
	bad, good := w.reviewed(act, evidence.Rejected), w.reviewed(act, evidence.Approved)
	for name, tt := range map[string]struct {
		shown   []*evidence.Record
		entries bool
		rule    string
		outcome verify.Status
	}{
		"all":                            {[]*evidence.Record{act, bad, good}, true, "", verify.Proved},
		"without the first":              {[]*evidence.Record{act, good}, false, "hole", verify.Refuted},
		"without the first, by entries":  {[]*evidence.Record{act, good}, true, "dropped", verify.Refuted},
		"without the last":               {[]*evidence.Record{act, bad}, true, "dropped", verify.Refuted},
		"without both":                   {[]*evidence.Record{act}, true, "dropped", verify.Refuted},
		"without the act that it was on": {[]*evidence.Record{bad, good}, true, "doubted", verify.NotProved},
	} {
		w.files = nil
		w.give(tt.shown...)
		v := w.view()
		if tt.entries {
			v = w.whole()
		}
		got := v.Completeness[0].Judgments.Rule
		must.Hold(t, v.Outcome == tt.outcome && got == tt.rule, "%s: %s, %q; want %s, %q", name, v.Outcome, got, tt.outcome, tt.rule)
	}
}

// TestActsOfEarlierRecorders: reviews of acts that earlier programs recorded count for the recorder, as the log has counted them. They move no
// agent's number, because nobody would miss one that is left out.
func TestActsOfEarlierRecorders(t *testing.T) {
	w := newWorld(t)
	act := w.seen(1, "")
	w.give(act, w.reviewed(act, evidence.Rejected))
	v := w.whole()
	must.Hold(t, len(v.Classes) == 0 && v.Outcome == verify.Proved && v.Completeness[0].Judgments.Total == 0, "%+v", v)
}

// TestRecorderOfAnotherSource: a recorder is believed in whose act it saw only if what stands behind the agent stands behind it.
func TestRecorderOfAnotherSource(t *testing.T) {
	w := newWorld(t)
	w.give(w.act(0))
	act := w.seen(1, evidence.JudgedAgent)
	w.give(act, w.reviewed(act, evidence.Rejected))
	g := w.gatherer()
	for _, doc := range w.files {
		must.Get(g.File(doc))(w.t)
	}
	facts := must.Get(g.Facts())(w.t)
	facts.Identity = reputation.Identity{Name: agent, By: "cas", CA: "acme"}
	certified := must.Get(facts.View())(w.t)
	must.Hold(t, len(certified.Classes) == 0 && leftOut(certified, reputation.TheRecord, "identity"), "%+v", certified)
	// A CA that certifies for many vouches for who a recorder is, and not for whose agents it records: the reader says that.
	for i := range facts.Records {
		facts.Records[i].By, facts.Records[i].CA = "cas", "acme"
	}
	together := func(name string, actors ...reputation.Actor) reputation.Organisation {
		return reputation.Organisation{Name: name, Actors: actors, CAs: []string{}}
	}
	theAgent, theGate := reputation.Actor{Role: evidence.RoleAgent, Name: agent}, reputation.Actor{Role: evidence.RoleRecorder, Name: "gate"}
	for name, tt := range map[string]struct {
		shared []string
		known  []reputation.Organisation
		counts bool
	}{
		"a CA of one organisation":                   {nil, nil, true},
		"a shared CA":                                {[]string{"acme"}, nil, false},
		"a shared CA, and the reader knows both":     {[]string{"acme"}, []reputation.Organisation{together("we", theAgent, theGate)}, true},
		"a shared CA, and the recorder is another's": {[]string{"acme"}, []reputation.Organisation{together("we", theAgent), together("they", theGate)}, false},
		"the recorder is another's":                  {nil, []reputation.Organisation{together("they", theGate)}, false},
		"the recorder is ours and another's":         {nil, []reputation.Organisation{together("they", theGate), together("we", theAgent, theGate)}, true},
		"of our CA and ours by name":                 {[]string{"acme"}, []reputation.Organisation{{Name: "we", Actors: []reputation.Actor{theGate}, CAs: []string{"acme"}}}, true},
	} {
		facts.Policy.SharedCAs, facts.Policy.Organisations = append([]string{}, tt.shared...), append([]reputation.Organisation{}, tt.known...)
		v := must.Get(facts.View())(w.t)
		must.Hold(t, leftOut(v, reputation.TheRecord, "identity") != tt.counts, "%s: %+v", name, v.LeftOut)
	}
	unknown := w.whole(func(c *reputation.Config) {
		c.Options.Trust.Keys = slices.DeleteFunc(c.Options.Trust.Keys, func(k trust.Key) bool { return k.Role == evidence.RoleRecorder })
	})
	must.Hold(t, len(unknown.Classes) == 0 && unknown.Outcome != verify.Proved, "%+v", unknown)
}

// TestVerdictThatIsHidden: every judgment that the log counts must be weighed, or set aside by a rule of the reader, for the result to be proved. It
// is not enough that the judgment's record is at hand: the person who shows it can hide what it found, by giving it without its trial, without the
// record that failed, or by never finishing the trial.
func TestVerdictThatIsHidden(t *testing.T) {
	failedLast := func(t *testing.T) *world { // 12 records passed, and the last failed
		w := passed(t, 12)
		w.tried(panel(jury.UnsafeFail, "script"), 12)
		return w
	}
	ask := func(w *world, files [][]byte, blind bool, change func(*reputation.Config)) *reputation.View {
		g := w.gatherer(change)
		if !blind {
			w.ok(w.entries(g))
		}
		return w.viewOf(g, files)
	}
	bundle := func(w *world, records ...*evidence.Record) []byte {
		return must.Get(w.Bundle(w.t, records...).Marshal())(w.t)
	}
	chain := func(w *world) []*evidence.Record {
		b, _, err := evidence.ReadWholeBundle(w.files[25])
		w.ok(err)
		return b.Records
	}
	for name, c := range map[string]struct {
		files func(w *world) [][]byte
		ask   func(c *reputation.Config)
		blind bool    // the reader has no entries of this log, as where the record stands in another log
		want  []int64 // the judgments that are not weighed
	}{
		"nothing is hidden": {files: func(w *world) [][]byte { return w.files }},
		"the judgment alone, without its trial": {files: func(w *world) [][]byte {
			i := slices.IndexFunc(chain(w), func(r *evidence.Record) bool { return r.Payload.ActionType == evidence.FinalJudgment })
			return append(slices.Clone(w.files[:25]), bundle(w, chain(w)[i]))
		}, want: []int64{13}},
		"a trial without its closing": {files: func(w *world) [][]byte {
			open := slices.DeleteFunc(chain(w), func(r *evidence.Record) bool { return r.Payload.ActionType == evidence.TrialClosing })
			return append(slices.Clone(w.files[:25]), bundle(w, open...))
		}, want: []int64{13}},
		"without the record that failed": {files: func(w *world) [][]byte { return slices.Delete(slices.Clone(w.files), 24, 25) }, want: []int64{13}},
		"without the record that failed, which stands in a log of which nothing is shown": {files: func(w *world) [][]byte { return slices.Delete(slices.Clone(w.files), 24, 25) },
			blind: true, want: []int64{13}},
		"the record that failed, without its time stamp": {files: func(w *world) [][]byte {
			b, _, err := evidence.ReadWholeBundle(w.files[24])
			w.ok(err)
			b.Records[0].Timestamps = nil
			doc := must.Get(b.Marshal())(w.t)
			files := slices.Clone(w.files)
			files[24] = doc
			return files
		}, want: []int64{13}},
		"a decision alone, without its trial": {files: func(w *world) [][]byte {
			done := w.tryOnly(panel(jury.SafePass, "script"), w.record(0))
			w.giveChain(done.ID)
			return append(slices.Clone(w.files), bundle(w, w.decide(done, "noa", jury.UnsafeFail)))
		}, want: []int64{15}},
		"a rejection, without the record": {files: func(w *world) [][]byte {
			r := w.act(13)
			rejected := w.Seal(w.t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "noa", Timestamp: evidence.FormatTime(w.Now()),
				OriginalResponseID: r.Payload.RecordID, ApprovalStatus: evidence.Rejected, Saw: []evidence.Digest{r.Digest}})
			return append(slices.Clone(w.files), bundle(w, rejected))
		}, want: []int64{14}},
		"an approval, without the record": {files: func(w *world) [][]byte {
			r := w.act(13)
			approved := w.Seal(w.t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "noa", Timestamp: evidence.FormatTime(w.Now()),
				OriginalResponseID: r.Payload.RecordID, ApprovalStatus: evidence.Approved, Saw: []evidence.Digest{r.Digest}})
			return append(slices.Clone(w.files), bundle(w, approved))
		}},
		"transcripts, own submissions, what was revoked": {files: func(w *world) [][]byte {
			c := panel(jury.SafePass, "script")
			w.giveChain(w.TryBefore(w.t, c.Settings, c.Jurors, nil).ID)
			c.Submitter = agent
			w.try(c, w.record(0))
			return w.files
		}},
		"a decision on a transcript, and a review of another act of a trial": {files: func(w *world) [][]byte {
			c := panel(jury.SafePass, "script")
			done := w.TryBefore(w.t, c.Settings, c.Jurors, nil)
			w.decide(done, "noa", jury.UnsafeFail)
			w.giveChain(done.ID)
			return w.files
		}},
		"only juries of another panel count": {files: func(w *world) [][]byte { return w.files }, ask: func(c *reputation.Config) {
			c.Policy = reputation.DefaultPolicy()
			c.Policy.Panels = []evidence.Digest{evidence.DigestOf(nil)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := failedLast(t)
			files := c.files(w)
			change := func(*reputation.Config) {}
			if c.ask != nil {
				change = c.ask
			}
			v := ask(w, files, c.blind, change)
			got := v.Completeness[0].Judgments
			if c.want == nil && (v.Outcome != verify.Proved || got.Rule != "") || c.want != nil && (v.Outcome != verify.NotProved || got.Rule != "doubted" || !slices.Equal(got.Missing, c.want)) {
				t.Errorf("%s %+v, lower bound %d, want doubts about %v\n%+v", v.Outcome, got, lower(v), c.want, v.LeftOut)
			}
		})
	}
}
