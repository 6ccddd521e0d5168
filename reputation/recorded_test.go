package reputation_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/jury"
	"jurat/reputation"
	"jurat/verify"
	"jurat/verify/trust"
)

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
	if judgments := v.Completeness[0].Judgments; judgments.Total != 3 || judgments.Known != 3 {
		t.Errorf("%+v", judgments)
	}
	if (v.Coverage != reputation.Coverage{}) {
		t.Errorf("the log counts for nobody what a recorder saw: %+v", v.Coverage)
	}
	other := w.whole(func(c *reputation.Config) { c.Agent = "another agent" })
	if len(other.Classes) > 0 || other.Approvals > 0 || other.Completeness[0].Judgments.Total > 0 {
		t.Errorf("%+v", other)
	}
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
		if got := v.Completeness[0].Judgments.Rule; v.Outcome != tt.outcome || got != tt.rule {
			t.Errorf("%s: %s, %q; want %s, %q", name, v.Outcome, got, tt.outcome, tt.rule)
		}
	}
}

// TestActsOfEarlierRecorders: reviews of acts that earlier programs recorded count for the recorder, as the log has counted them. They move no
// agent's number, because nobody would miss one that is left out.
func TestActsOfEarlierRecorders(t *testing.T) {
	w := newWorld(t)
	act := w.seen(1, "")
	w.give(act, w.reviewed(act, evidence.Rejected))
	if v := w.whole(); len(v.Classes) > 0 || v.Outcome != verify.Proved || v.Completeness[0].Judgments.Total != 0 {
		t.Errorf("%+v", v)
	}
}

// TestRecorderOfAnotherSource: a recorder is believed in whose act it saw only if what stands behind the agent stands behind it.
func TestRecorderOfAnotherSource(t *testing.T) {
	w := newWorld(t)
	w.give(w.act(0))
	act := w.seen(1, evidence.JudgedAgent)
	w.give(act, w.reviewed(act, evidence.Rejected))
	g := w.gatherer()
	for _, doc := range w.files {
		_, err := g.File(doc)
		w.ok(err)
	}
	facts, err := g.Facts()
	w.ok(err)
	facts.Identity = reputation.Identity{Name: agent, By: "cas", CA: "acme"}
	certified, err := facts.View()
	w.ok(err)
	if len(certified.Classes) > 0 || !leftOut(certified, reputation.TheRecord, "identity") {
		t.Errorf("%+v", certified)
	}
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
		v, err := facts.View()
		w.ok(err)
		if leftOut(v, reputation.TheRecord, "identity") == tt.counts {
			t.Errorf("%s: %+v", name, v.LeftOut)
		}
	}
	unknown := w.whole(func(c *reputation.Config) {
		c.Options.Trust.Keys = slices.DeleteFunc(c.Options.Trust.Keys, func(k trust.Key) bool { return k.Role == evidence.RoleRecorder })
	})
	if len(unknown.Classes) > 0 || unknown.Outcome == verify.Proved {
		t.Errorf("%+v", unknown)
	}
}
