package jury

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"jurat/evidence"
	"jurat/internal/test/must"
)

// randomTrial is a panel of any size whose jurors act at random.
func randomTrial(r *rand.Rand) *Deliberation {
	methods := []Method{MajorityVote, WeightedAverage, FinalJudge}
	var scripts []*script
	for range 2 + r.IntN(4) {
		s := &script{initial: randomMove(r)}
		for range 3 {
			s.rounds = append(s.rounds, randomMove(r))
		}
		scripts = append(scripts, s)
	}
	d := seated(methods[r.IntN(3)], scripts...)
	if d.Judge != nil {
		d.Judge.(*script).judge = randomMove(r)
	}
	d.Settings.Collaborative = r.IntN(5) > 0
	d.Settings.MaxRounds = r.IntN(4)
	d.Settings.Threshold = []float64{0, 0.5, 0.67, 1, 2}[r.IntN(5)]
	if r.IntN(4) == 0 {
		d.Settings.Seats[0].Provider, d.Settings.Seats[1].Provider = Offline, Offline
	}
	return d
}

func randomMove(r *rand.Rand) move {
	m := move{after: time.Duration(r.IntN(4)) * time.Second}
	switch r.IntN(12) {
	case 0:
		m.err = ErrBlocked
	case 1:
		m.err = errors.New("down")
	case 2:
		m.panics = true
	case 3:
		m.opinion = Opinion{Position: "nonsense"}
	default:
		p := []Position{SafePass, SafePass, NeedsReview, UnsafeFail}[r.IntN(4)]
		m.opinion = think(p, r.IntN(101))
		m.opinion.Confidence = float64(r.IntN(11)) / 10
		m.speech = Speech{Statement: "so", Position: p, Reasoning: "thus"}
		if r.IntN(3) > 0 {
			m.speech.Updated = &m.opinion
		}
	}
	return m
}

func TestReplayGivesWhatRunGave(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			d := randomTrial(r)
			result := run(t, d)
			acts := d.book().read(t)
			replayed, err := Replay(evidence.DigestOf(material), acts)
			must.Need(t, err == nil, "seed %d: %v", seed, err)
			diff := cmp.Diff(*result, replayed.Result)
			must.Need(t, diff == "" && replayed.Finished && replayed.Judged, "seed %d: replay differs from run (-run +replay):\n%s", seed, diff)
			must.Hold(t, replayed.Acts == len(acts), "seed %d: %d acts, replay counts %d", seed, len(acts), replayed.Acts)
			if seed%20 == 0 {
				resumes(t, d, result, acts)
			}
		})
	}
}

// resumes stops the trial after each act and resumes it: the result is the same, and no juror with a recorded act is
// asked again.
func resumes(t *testing.T, d *Deliberation, result *Result, acts []Act) {
	t.Helper()
	for n := range len(acts) + 1 {
		replayed, err := Replay(evidence.Digest{}, acts[:n])
		must.Need(t, err == nil, "prefix of %d: %v", n, err)
		must.Hold(t, replayed.Finished == (n == len(acts)), "prefix of %d is finished", n)
		asked := calls(d)
		again := *d
		b := &book{acts: slices.Clone(acts[min(n, 1):n])}
		again.Clerk, again.Before = b, acts[:n]
		got, err := again.Run(t.Context())
		must.Need(t, err == nil, "going on after %d: %v", n, err)
		diff := cmp.Diff(result, got)
		must.Need(t, diff == "", "resumed after %d acts (-want +got):\n%s", n, diff)
		left := 0
		for _, a := range acts[n:] {
			switch a.Type {
			case evidence.Evaluation, evidence.Statement, evidence.JudgeOpinion, evidence.Absence:
				left++
			}
		}
		must.Equal(t, calls(d)-asked, left, "resumed after", n)
	}
}

func TestGoingOnNeedsTheSameTrial(t *testing.T) {
	d := longTrial()
	run(t, d)
	d.Before = d.book().read(t)[:9]
	for name, change := range map[string]func(*Deliberation){
		RuleSettings: func(d *Deliberation) { d.Settings.Threshold = 1 },
		RuleRequest:  func(d *Deliberation) { d.Material = []byte(`{}`) },
		RuleSequence: func(d *Deliberation) { d.Submission[0] ^= 1 },
	} {
		other, b := *d, new(book)
		other.Clerk = b
		change(&other)
		var wrong *Discrepancy
		_, err := other.Run(t.Context())
		must.Hold(t, errors.As(err, &wrong) && wrong.Rule == name && strings.Contains(err.Error(), name), "%s: %v", name, err)
		must.Hold(t, len(b.acts) == 0, "%s: something was recorded", name)
	}
}

func calls(d *Deliberation) int {
	n := 0
	for _, j := range d.Jurors {
		n += len(j.(*script).briefs)
	}
	if d.Judge != nil {
		n += len(d.Judge.(*script).briefs)
	}
	return n
}

// TestPrefixes replays a trial after each act, as a live page does.
func TestPrefixes(t *testing.T) {
	d := longTrial()
	run(t, d)
	acts := d.book().read(t)
	var got []string
	for n := range len(acts) + 1 {
		r := must.Get(Replay(evidence.Digest{}, acts[:n]))(t)
		got = append(got, fmt.Sprintf("%s %d waiting %d, evaluations %d, rounds %d, %t %t", r.Phase, r.RoundNumber, len(r.Waiting),
			len(r.Result.Phase1Evaluations), r.Result.TotalRounds, r.Judged, r.Finished))
	}
	for i := range 2 { // one of the three answers is an absence, and may come at any place
		got[3+i], got[13+i] = "phase 1", "round 2"
	}
	want := []string{
		" 0 waiting 0, evaluations 0, rounds 0, false false",
		" 0 waiting 0, evaluations 0, rounds 0, false false",
		"initial 0 waiting 3, evaluations 0, rounds 0, false false",
		"phase 1", "phase 1",
		"initial 0 waiting 0, evaluations 2, rounds 0, false false",
		"initial 0 waiting 0, evaluations 2, rounds 0, false false",
		"discussion 1 waiting 3, evaluations 2, rounds 0, false false",
		"discussion 1 waiting 2, evaluations 2, rounds 0, false false",
		"discussion 1 waiting 1, evaluations 2, rounds 0, false false",
		"discussion 1 waiting 0, evaluations 2, rounds 0, false false",
		"discussion 1 waiting 0, evaluations 2, rounds 1, false false",
		"discussion 2 waiting 3, evaluations 2, rounds 1, false false",
		"round 2", "round 2",
		"discussion 2 waiting 0, evaluations 2, rounds 1, false false",
		"discussion 2 waiting 0, evaluations 2, rounds 2, false false",
		"judging 0 waiting 1, evaluations 2, rounds 2, false false",
		"judging 0 waiting 0, evaluations 2, rounds 2, false false",
		"judging 0 waiting 0, evaluations 2, rounds 2, true false",
		"judging 0 waiting 0, evaluations 2, rounds 2, true true",
	}
	must.Equal(t, cmp.Diff(want, got), "")
}

func TestStateIsACopy(t *testing.T) {
	d := longTrial()
	run(t, d)
	tally := NewTally(evidence.Digest{})
	for _, a := range d.book().read(t) {
		must.Do(t, tally.Apply(a))
	}
	first, second := tally.State(), tally.State()
	for i := range first.Result.Phase1Evaluations {
		clear(first.Result.Phase1Evaluations[i].AxisScores)
	}
	for _, r := range first.Result.DiscussionRounds {
		for _, s := range r.Statements {
			if s.UpdatedEvaluation != nil {
				clear(s.UpdatedEvaluation.AxisScores)
			}
		}
		clear(r.Statements)
		if p := r.ConsensusCheck.MajorityPosition; p != nil {
			*p = "x"
		}
	}
	clear(first.Result.Phase3Judgment.AxisScores)
	clear(first.Settings.Seats)
	must.Equal(t, cmp.Diff(second, tally.State(), cmpopts.EquateEmpty()), "")
}

type asked struct {
	who   string
	phase Phase
	round int
}

// TestBriefsAreRebuilt: for each answer and absence, BriefOf rebuilds from the records alone exactly what its seat was
// given.
func TestBriefsAreRebuilt(t *testing.T) {
	rebuilt := 0
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			d := randomTrial(rand.New(rand.NewPCG(seed, 11)))
			run(t, d)
			given := map[asked]Brief{}
			scripts := []*script{}
			for _, j := range d.Jurors {
				scripts = append(scripts, j.(*script))
			}
			if d.Judge != nil {
				scripts = append(scripts, d.Judge.(*script))
			}
			for _, s := range scripts {
				for _, b := range s.briefs {
					given[asked{b.Seat.JurorID, b.Phase, b.RoundNumber}] = b
				}
			}
			acts := d.book().read(t)
			for _, a := range acts {
				who := a.Actor
				if a.Type == evidence.Submission {
					who = ""
				}
				if absent, ok := a.Body.(*Absent); ok {
					who = absent.JurorID
				}
				b, err := BriefOf(material, acts, a.Digest)
				must.Need(t, (err == nil) == (who != ""), "seed %d: %s of %q: %v", seed, a.Type, who, err)
				if err != nil {
					continue
				}
				rebuilt++
				diff := cmp.Diff(given[asked{who, b.Phase, b.RoundNumber}], b, cmp.Comparer(func(a, b evidence.Digest) bool { return a == b }))
				must.Need(t, diff == "", "seed %d: %s of %q (-given +rebuilt):\n%s", seed, a.Type, who, diff)
			}
		})
	}
	must.Hold(t, rebuilt >= 500, "only %d briefs were compared", rebuilt)
}

func TestBriefOfWhatIsNotThere(t *testing.T) {
	acts := sealedTrial(t)
	must.Refuse(t, "", "BriefOf returned a brief for an unknown act")(BriefOf(material, acts, evidence.DigestOf([]byte("nothing"))))
	must.Refuse(t, "", "BriefOf returned a brief for other evidence")(BriefOf([]byte(`{"other":"evidence"}`), acts, acts[3].Digest))
}

// TestBodiesStandAsTheyAreWritten encodes and decodes every body of trials that contain every type of act.
func TestBodiesStandAsTheyAreWritten(t *testing.T) {
	seen := map[evidence.ActionType]bool{}
	for _, d := range []*Deliberation{longTrial(), seated(MajorityVote, new(script), new(script))} {
		run(t, d)
		for _, a := range d.book().acts {
			seen[a.Type] = true
			doc := must.Get(EncodeBody(a.Body))(t)
			body, err := DecodeBody(a.Type, doc)
			must.Need(t, err == nil, "%s %s: %v", a.Type, doc, err)
			must.Equal(t, cmp.Diff(a.Body, body), "", a.Type)
			must.Hold(t, !bytes.Contains(doc, []byte(`"findings":null`)) && !bytes.Contains(doc, []byte(`"requests":null`)),
				"%s has null for a list: %s", a.Type, doc)
		}
	}
	for _, action := range evidence.ActionTypes() {
		must.Hold(t, !action.InTrial() || action == evidence.Submission || seen[action], "no act of type %s was tried", action)
	}
}

func TestResultHasNoNullLists(t *testing.T) {
	for _, d := range []*Deliberation{longTrial(), seated(MajorityVote, new(script), new(script))} {
		doc := must.Get(EncodeBody(run(t, d)))(t)
		for path, v := range parts[map[string]any](doc) {
			must.Hold(t, v != nil, "%s is null", path)
		}
	}
}

func TestDecodeBodyIsStrict(t *testing.T) {
	tests := map[string]struct {
		action evidence.ActionType
		doc    string
	}{
		"unknown member":    {evidence.TrialClosing, `{"acts":3,"more":1}`},
		"missing member":    {evidence.TrialClosing, `{}`},
		"twice":             {evidence.TrialClosing, `{"acts":3,"acts":3}`},
		"fraction":          {evidence.TrialClosing, `{"acts":3.5}`},
		"other case":        {evidence.TrialClosing, `{"Acts":3}`},
		"not an object":     {evidence.TrialClosing, `null`},
		"null list":         {evidence.JudgeOpinion, `{"position":"safe_pass","axisScores":{},"totalScore":0,"confidence":0,"rationale":"r","findings":null}`},
		"submission":        {evidence.Submission, `{}`},
		"not of a trial":    {evidence.Delivery, `{}`},
		"no type":           {"", `{}`},
		"text after it":     {evidence.TrialClosing, `{"acts":3} {}`},
		"empty where omits": {evidence.Evaluation, `{"jurorId":"a","phase":"initial","roundNumber":0,"roleName":"","position":"safe_pass","axisScores":{},"totalScore":0,"confidence":0,"rationale":"r","findings":[],"fallback":false}`},
	}
	opening := `{"phase":"initial","requests":[],"roundNumber":0,"rules":"r","settings":{"collaborative":false,"maxRounds":0,"method":"m","rubric":[],
		"seats":[{"jurorId":"a","model":"m","parameters":%s,"provider":"p","template":"` + evidence.DigestOf(nil).String() + `"}],"threshold":0}}`
	for i, value := range []string{"1", "null", "[]", `"{}"`} {
		tests[fmt.Sprint("parameters of a seat ", i)] = struct {
			action evidence.ActionType
			doc    string
		}{evidence.PhaseOpening, fmt.Sprintf(opening, value)}
	}
	for name, tt := range tests {
		body, err := DecodeBody(tt.action, []byte(tt.doc))
		must.Hold(t, err != nil, "%s: read as %+v", name, body)
	}
	for action, doc := range map[evidence.ActionType]string{evidence.TrialClosing: ` { "acts" : 3 } `, evidence.PhaseOpening: fmt.Sprintf(opening, "{}")} {
		must.Fail(t, nil)(DecodeBody(action, []byte(doc)))
	}
}

func TestEffort(t *testing.T) {
	e := Effort{Peers: []string{"b", "a"}, Attempts: []Attempt{
		{Model: "m", FinishReason: "length", Problem: "malformed", Answer: "{", InputTokens: 10, OutputTokens: 1, Cost: 7, Latency: 12},
		{Model: "m", FinishReason: "stop", Latency: 3}}}
	doc := must.Get(e.Encode())(t)
	must.Fail(t, nil, "it cannot be sealed")(evidence.Canonical(doc))
	got := must.Get(ReadEffort(doc))(t)
	must.Equal(t, cmp.Diff(e, got), "")
	none, err := ReadEffort(nil)
	must.Hold(t, err == nil && len(none.Attempts) == 0, "%+v, %v", none, err)
	must.Refuse(t, "", "nonsense is read")(ReadEffort([]byte(`{"attempts":1}`)))
	doc, err = (Effort{}).Encode()
	must.Hold(t, err == nil && string(doc) == `{"attempts":[]}`, "%s, %v", doc, err)
}
