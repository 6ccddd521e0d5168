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
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if diff := cmp.Diff(*result, replayed.Result); diff != "" || !replayed.Finished || !replayed.Judged {
				t.Fatalf("seed %d: replay differs from run (-run +replay):\n%s", seed, diff)
			}
			if replayed.Acts != len(acts) {
				t.Errorf("seed %d: %d acts, replay counts %d", seed, len(acts), replayed.Acts)
			}
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
		if err != nil {
			t.Fatalf("prefix of %d: %v", n, err)
		}
		if replayed.Finished != (n == len(acts)) {
			t.Errorf("prefix of %d is finished", n)
		}
		asked := calls(d)
		again := *d
		b := &book{acts: slices.Clone(acts[min(n, 1):n])}
		again.Recorder, again.Recorded = b, acts[:n]
		got, err := again.Run(t.Context())
		if err != nil {
			t.Fatalf("going on after %d: %v", n, err)
		}
		if diff := cmp.Diff(result, got); diff != "" {
			t.Fatalf("resumed after %d acts (-want +got):\n%s", n, diff)
		}
		left := 0
		for _, a := range acts[n:] {
			switch a.Type {
			case evidence.Evaluation, evidence.Statement, evidence.JudgeOpinion, evidence.Absence:
				left++
			}
		}
		if made := calls(d) - asked; made != left {
			t.Errorf("resumed after %d acts: %d calls, want %d", n, made, left)
		}
	}
}

func TestGoingOnNeedsTheSameTrial(t *testing.T) {
	d := longTrial()
	run(t, d)
	d.Recorded = d.book().read(t)[:9]
	for name, change := range map[string]func(*Deliberation){
		RuleSettings: func(d *Deliberation) { d.Settings.Threshold = 1 },
		RuleRequest:  func(d *Deliberation) { d.Material = []byte(`{}`) },
		RuleSequence: func(d *Deliberation) { d.Submission[0] ^= 1 },
	} {
		other, b := *d, new(book)
		other.Recorder = b
		change(&other)
		var wrong *Discrepancy
		if _, err := other.Run(t.Context()); !errors.As(err, &wrong) || wrong.Rule != name || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if len(b.acts) > 0 {
			t.Errorf("%s: something was recorded", name)
		}
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
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
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
	if diff := cmp.Diff(second, tally.State(), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
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
				if (err == nil) != (who != "") {
					t.Fatalf("seed %d: %s of %q: %v", seed, a.Type, who, err)
				}
				if err != nil {
					continue
				}
				rebuilt++
				if diff := cmp.Diff(given[asked{who, b.Phase, b.RoundNumber}], b, cmp.Comparer(func(a, b evidence.Digest) bool { return a == b })); diff != "" {
					t.Fatalf("seed %d: %s of %q (-given +rebuilt):\n%s", seed, a.Type, who, diff)
				}
			}
		})
	}
	if rebuilt < 500 {
		t.Errorf("only %d briefs were compared", rebuilt)
	}
}

func TestBriefOfWhatIsNotThere(t *testing.T) {
	acts := sealedTrial(t)
	if _, err := BriefOf(material, acts, evidence.DigestOf([]byte("nothing"))); err == nil {
		t.Error("BriefOf returned a brief for an unknown act")
	}
	if _, err := BriefOf([]byte(`{"other":"evidence"}`), acts, acts[3].Digest); err == nil {
		t.Error("BriefOf returned a brief for other evidence")
	}
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
			if err != nil {
				t.Fatalf("%s %s: %v", a.Type, doc, err)
			}
			if diff := cmp.Diff(a.Body, body); diff != "" {
				t.Errorf("%s (-written +read):\n%s", a.Type, diff)
			}
			if bytes.Contains(doc, []byte(`"findings":null`)) || bytes.Contains(doc, []byte(`"requests":null`)) {
				t.Errorf("%s has null for a list: %s", a.Type, doc)
			}
		}
	}
	for _, action := range evidence.ActionTypes() {
		if action.InTrial() && action != evidence.Submission && !seen[action] {
			t.Errorf("no act of type %s was tried", action)
		}
	}
}

func TestResultHasNoNullLists(t *testing.T) {
	for _, d := range []*Deliberation{longTrial(), seated(MajorityVote, new(script), new(script))} {
		doc := must.Get(EncodeBody(run(t, d)))(t)
		for path, v := range parts[map[string]any](doc) {
			if v == nil {
				t.Errorf("%s is null", path)
			}
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
		if body, err := DecodeBody(tt.action, []byte(tt.doc)); err == nil {
			t.Errorf("%s: read as %+v", name, body)
		}
	}
	for action, doc := range map[evidence.ActionType]string{evidence.TrialClosing: ` { "acts" : 3 } `, evidence.PhaseOpening: fmt.Sprintf(opening, "{}")} {
		if _, err := DecodeBody(action, []byte(doc)); err != nil {
			t.Error(err)
		}
	}
}

func TestEffort(t *testing.T) {
	e := Effort{Peers: []string{"b", "a"}, Attempts: []Attempt{
		{Model: "m", FinishReason: "length", Problem: "malformed", Answer: "{", InputTokens: 10, OutputTokens: 1, Cost: 7, Latency: 12},
		{Model: "m", FinishReason: "stop", Latency: 3}}}
	doc := must.Get(e.Encode())(t)
	if _, err := evidence.Canonical(doc); err != nil {
		t.Errorf("it cannot be sealed: %v", err)
	}
	got := must.Get(ReadEffort(doc))(t)
	if diff := cmp.Diff(e, got); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
	if none, err := ReadEffort(nil); err != nil || len(none.Attempts) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
	if _, err := ReadEffort([]byte(`{"attempts":1}`)); err == nil {
		t.Error("nonsense is read")
	}
	if doc, err := (Effort{}).Encode(); err != nil || string(doc) != `{"attempts":[]}` {
		t.Errorf("%s, %v", doc, err)
	}
}
