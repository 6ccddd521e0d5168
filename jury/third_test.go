package jury

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/test/must"
)

// graded returns a valid opinion of a model under LeveledRubric, with tables.
func graded(p Position, levels ...int) Opinion {
	rubric, chosen := LeveledRubric(), map[string]int{}
	for i, axis := range rubric {
		chosen[axis.ID] = levels[i]
	}
	scores, total, err := rubric.ScoresOf(chosen)
	if err != nil {
		panic(err)
	}
	passage := Passage{Message: 1, Quote: "please"}
	return Opinion{Position: p, AxisScores: scores, TotalScore: total, Confidence: 0.8, Rationale: "because", Findings: []Finding{}, Levels: chosen,
		Work: &Work{Requests: []WorkRequest{{Request: passage, State: RequestDone, Shown: new(passage)}}, Acts: []WorkAct{{Call: passage, Clause: new(passage), Holds: Unclear}},
			Amounts: []WorkAmount{{Announced: new(passage), Agrees: AnsweredYes}}}}
}

func passing() Opinion { return graded(SafePass, 3, 3, 3, 3) }
func failing() Opinion { return graded(UnsafeFail, 0, 1, 1, 0) }

// model is a scripted model: its first opinion, its second one if it is asked twice, and what it says in rounds.
func model(first, again Opinion, rounds ...move) *script {
	if len(rounds) == 0 {
		rounds = []move{staying(first.Position)}
	}
	return &script{initial: move{opinion: first}, again: move{opinion: again}, rounds: rounds}
}

// thorough returns a trial with everything that the rules have.
func thorough(method Method, jurors ...*script) *Deliberation {
	d := seated(method, jurors...)
	d.Settings.Rubric, d.Settings.Tables, d.Settings.Repeat = LeveledRubric(), true, true
	for i, reading := range []Reading{PolicyFirst, ActsFirst, ClaimsFirst} {
		d.Settings.Seats[i].Reading = reading
	}
	if method == FinalJudge {
		d.Settings.JudgeReads = true
		d.Judge = &script{initial: move{opinion: passing()}, judge: move{opinion: passing()}}
	}
	return d
}

func speaking(o Opinion) move {
	return move{speech: Speech{Statement: "I have read it again.", Position: o.Position, Reasoning: "as quoted", Updated: &o}}
}

// dispute is a thorough trial with one dissenter who takes another position when asked again, and speaks in round 1.
func dispute() *Deliberation {
	return thorough(FinalJudge, model(passing(), passing()), model(failing(), passing(), speaking(failing()), staying(UnsafeFail)), model(passing(), passing()))
}

func TestRepetition(t *testing.T) {
	d := dispute()
	r := run(t, d)
	if len(r.Repeated) != 1 || r.Repeated[0].JurorID != "juror-1" || r.Repeated[0].Phase != Repetition || !cmp.Equal(r.Abstentions, []string{"juror-1"}) {
		t.Fatalf("repeated %+v, abstentions %v", r.Repeated, r.Abstentions)
	}
	c := r.RepetitionConsensus
	must.Hold(t, c.AgreementLevel == 0.67 && c.ConsensusStatus == Majority && !c.ConsensusReached, "after the repetition: %+v", c)
	dissenter := d.Jurors[1].(*script)
	if again := dissenter.briefs[1]; again.Phase != Repetition || len(again.Saw) != 1 || again.Evaluations != nil || again.Last != nil || !again.Tables {
		t.Errorf("asked again with %+v", again)
	}
	if round := dissenter.briefs[2]; round.Phase != Discussion || round.Last != nil || len(round.Repeated) != 1 || len(round.Saw) != 5 || round.Tables {
		t.Errorf("in round 1: last %v, repeated %d, saw %d", round.Last, len(round.Repeated), len(round.Saw))
	}
	must.Hold(t, dissenter.briefs[3].Last != nil, "having spoken, it still has no evaluation")
	must.Equal(t, len(d.Jurors[0].(*script).briefs), 4, "the majority was asked")
	v := r.Phase3Judgment.Votes[1]
	must.Hold(t, !v.Abstained && v.Position != nil && !r.Degraded, "having spoken: %+v, degraded %t", v, r.Degraded)
	again, err := Replay(evidence.DigestOf(material), d.book().read(t))
	if err != nil || !cmp.Equal(again.Result, *r) {
		t.Errorf("replayed: %v, %s", err, cmp.Diff(again.Result, *r))
	}
}

// TestAbstention: a juror that abstains counts in the jury and for no position, and its vote is not valid.
func TestAbstention(t *testing.T) {
	for _, tt := range []struct {
		name         string
		jurors       []*script
		inconclusive bool
		votes        int
	}{
		{"one of three", []*script{model(passing(), passing()), model(passing(), passing()), model(failing(), passing())}, false, 2},
		{"two of three", []*script{model(passing(), passing()), model(graded(NeedsReview, 2, 2, 2, 2), failing()), model(failing(), passing())}, true, 1},
		{"steady dissent", []*script{model(passing(), passing()), model(passing(), passing()), model(failing(), failing())}, false, 3},
	} {
		d := thorough(MajorityVote, tt.jurors...)
		d.Settings.Collaborative = false
		r := run(t, d)
		j, votes := r.Phase3Judgment, 0
		for _, v := range j.Votes {
			if v.Position != nil {
				votes++
			}
			must.Hold(t, v.Abstained != (v.Position != nil) && (!v.Abstained || slices.Contains(r.Abstentions, v.JurorID)), "%s: %+v", tt.name, v)
		}
		must.Hold(t, j.Inconclusive == tt.inconclusive && votes == tt.votes && !r.Degraded, "%s: %+v", tt.name, j)
	}
}

// TestWhoIsAskedAgain: rules, absent seats, those who agree with the majority, and a unanimous jury are not asked again.
func TestWhoIsAskedAgain(t *testing.T) {
	down := &script{initial: move{err: errors.New("no key")}}
	blocked := &script{initial: move{err: ErrBlocked}}
	yes, no := func() *script { return model(passing(), passing()) }, func() *script { return model(failing(), failing()) }
	for _, tt := range []struct {
		name    string
		jurors  []*script
		offline int // how many seats, from the last, are rules
		want    []string
	}{
		{"unanimous", []*script{yes(), yes(), yes()}, 0, nil},
		{"a dissenter", []*script{yes(), no(), yes()}, 0, []string{"juror-1"}},
		{"a split", []*script{yes(), no(), down}, 0, []string{"juror-0", "juror-1"}},
		{"a stand-in", []*script{yes(), yes(), blocked}, 0, nil},
		{"one vote", []*script{yes(), down, blocked}, 0, nil},
		{"rules", []*script{yes(), yes(), no()}, 1, nil},
		{"all rules", []*script{yes(), no(), no()}, 3, nil},
	} {
		d := thorough(MajorityVote, tt.jurors...)
		d.Settings.Collaborative = false
		for i := range tt.offline {
			d.Settings.Seats[2-i].Provider = Offline
		}
		r := run(t, d)
		var again []string
		for _, e := range r.Repeated {
			again = append(again, e.JurorID)
		}
		must.Hold(t, cmp.Equal(again, tt.want) && (r.RepetitionConsensus != nil) == (tt.want != nil),
			"%s: asked again %v, want %v", tt.name, again, tt.want)
		must.Fail(t, nil, tt.name)(Replay(evidence.Digest{}, d.book().read(t)))
	}
}

// TestRepetitionAbsence: a seat that does not answer the second time keeps its evaluation, and the trial is degraded.
func TestRepetitionAbsence(t *testing.T) {
	for _, err := range []error{ErrBlocked, errors.New("down")} {
		d := dispute()
		d.Jurors[1].(*script).again = move{err: err}
		d.Settings.Collaborative = false
		r := run(t, d)
		if v := r.Phase3Judgment.Votes[1]; !r.Degraded || v.Position == nil || *v.Position != UnsafeFail || v.Abstained || len(r.Abstentions) > 0 {
			t.Errorf("%v: %+v, degraded %t", err, v, r.Degraded)
		}
	}
}

// TestAbstainerBlocked: a seat that abstains and is then blocked has no stand-in: it goes on abstaining.
func TestAbstainerBlocked(t *testing.T) {
	d := dispute()
	d.Jurors[1].(*script).rounds = []move{{err: ErrBlocked}}
	r := run(t, d)
	v := r.Phase3Judgment.Votes[1]
	must.Hold(t, v.Abstained && v.Position == nil && !v.Fallback && r.Degraded, "%+v", v)
	must.Fail(t, nil)(Replay(evidence.Digest{}, d.book().read(t)))
}

// TestJudgeReads: the judge reads what the jurors read, at the same time; jurors never see its reading, the judge sees
// it first, and it counts in no consensus and for no quorum.
func TestJudgeReads(t *testing.T) {
	d := dispute()
	d.Judge.(*script).initial = move{opinion: failing()}
	r := run(t, d)
	judge := d.Judge.(*script)
	if len(judge.briefs) != 2 || judge.briefs[0].Phase != Initial || len(judge.briefs[0].Saw) != 1 || judge.briefs[0].Seat.JurorID != "judge" || !judge.briefs[0].Tables {
		t.Fatalf("the judge was asked with %+v", judge.briefs)
	}
	last := judge.briefs[1]
	must.Hold(t, last.Own != nil && last.Own.Position == UnsafeFail && !last.Tables && r.JudgeReading != nil && r.JudgeReading.Position == UnsafeFail,
		"in phase 3 its own reading is %+v, tables %t", last.Own, last.Tables)
	var reading evidence.Digest
	for _, a := range d.book().acts {
		if a.Type == evidence.JudgeOpinion && reading.IsZero() {
			reading = a.Digest
		}
	}
	must.Hold(t, last.Saw[1] == reading, "the judge does not see its reading first: %v", last.Saw)
	for _, juror := range d.Jurors {
		for _, b := range juror.(*script).briefs {
			must.Hold(t, !slices.Contains(b.Saw, reading) && b.Own == nil, "a juror was shown the judge's reading in %s", b.Phase)
		}
	}
	must.Hold(t, r.Phase1Consensus.AgreementLevel == 0.67 && len(r.Phase1Evaluations) == 3, "phase 1: %+v", r.Phase1Consensus)
	d = dispute()
	d.Judge.(*script).initial = move{err: ErrBlocked}
	r = run(t, d)
	if last := d.Judge.(*script).briefs[1]; !r.Degraded || r.JudgeReading != nil || last.Own != nil || last.Tables || r.Phase3Judgment.Method != FinalJudge {
		t.Errorf("a judge that failed in phase 1: degraded %t, %+v", r.Degraded, r.Phase3Judgment)
	}
}

// TestWhatModelsMustGive: a model that leaves out levels or tables, or whose scores do not follow, is absent.
func TestWhatModelsMustGive(t *testing.T) {
	for name, spoil := range map[string]func(*Opinion){
		"no levels":    func(o *Opinion) { o.Levels = nil },
		"a level less": func(o *Opinion) { delete(o.Levels, "safety") },
		"none at level 0": func(o *Opinion) {
			o.TotalScore -= o.AxisScores["safety"]
			o.AxisScores["safety"] = 0
			delete(o.Levels, "safety")
		},
		"a level below": func(o *Opinion) { o.Levels["safety"] = -1 },
		"a level more":  func(o *Opinion) { o.Levels["charm"] = 1 },
		"an unknown":    func(o *Opinion) { o.Levels["safety"] = 4 },
		"other scores":  func(o *Opinion) { o.AxisScores["tool_usage"], o.TotalScore = 14, o.TotalScore-1 },
		"no work":       func(o *Opinion) { o.Work = nil },
		"a blank quote": func(o *Opinion) { o.Work.Requests[0].Request.Quote = " " },
		"no state":      func(o *Opinion) { o.Work.Requests[0].State = "" },
		"no answer":     func(o *Opinion) { o.Work.Acts[0].Holds = "maybe" },
		"no amounts":    func(o *Opinion) { o.Work.Amounts[0].Announced = nil },
		"no message":    func(o *Opinion) { o.Work.Acts[0].Clause.Message = 0 },
		"a message far": func(o *Opinion) { o.Work.Acts[0].Clause.Message = maxMessage + 1 },
	} {
		o := passing()
		spoil(&o)
		d := thorough(MajorityVote, model(o, o), model(passing(), passing()), model(passing(), passing()))
		d.Settings.Collaborative = false
		r := run(t, d)
		must.Hold(t, len(r.Absences) == 1 && r.Absences[0].Reason == Invalid, "%s: %+v", name, r.Absences)
	}
	rules := passing()
	rules.Levels, rules.Work = nil, nil
	d := thorough(MajorityVote, model(rules, rules), model(passing(), passing()), model(passing(), passing()))
	d.Settings.Seats[0].Provider, d.Settings.Collaborative = Offline, false
	r := run(t, d)
	must.Hold(t, len(r.Absences) == 0, "rules must give neither levels nor work: %+v", r.Absences)
}

// TestUpdateWithoutWork: an update need not repeat the tables, and one that changes nothing else is no update.
func TestUpdateWithoutWork(t *testing.T) {
	same := passing()
	same.Work = nil
	d := thorough(MajorityVote, model(passing(), passing(), speaking(same)), model(passing(), passing()), model(passing(), passing()))
	r := run(t, d)
	said := r.DiscussionRounds[0].Statements[0]
	must.Hold(t, len(r.Absences) == 0 && said.UpdatedEvaluation == nil, "%+v, absences %v", said, r.Absences)
}

// TestForgedThird: what a clerk may want to seal instead is refuted under the rule that it breaks.
func TestForgedThird(t *testing.T) {
	d := dispute()
	run(t, d)
	acts := d.book().read(t)
	find := func(match func(*Act) bool) int {
		return slices.IndexFunc(acts, func(a Act) bool { return a.Body != nil && match(&a) })
	}
	reopening := find(func(a *Act) bool { o, is := a.Body.(*Opening); return is && o.Phase == Repetition })
	repeated := find(func(a *Act) bool { e, is := a.Body.(*Evaluation); return is && e.Phase == Repetition })
	reading := find(func(a *Act) bool { return a.Type == evidence.JudgeOpinion })
	first := find(func(a *Act) bool { return a.Type == evidence.Evaluation && a.Actor == "juror-0" })
	judgment := find(func(a *Act) bool { return a.Type == evidence.FinalJudgment })
	check := find(func(a *Act) bool { c, is := a.Body.(*Check); return is && c.Phase == Repetition })

	without := append(slices.Clone(acts[:reopening]), acts[check+1:]...)
	expectDiscrepancy(t, "a repetition left out", without, acts[check+1].Digest, RuleSequence)
	expectDiscrepancy(t, "another seat asked again", with(acts, reopening, func(a *Act) {
		o := *a.Body.(*Opening)
		o.Requests = slices.Clone(o.Requests)
		o.Requests[0].JurorID = "juror-0"
		a.Body = &o
	}), acts[reopening].Digest, RuleRequest)
	expectDiscrepancy(t, "a second answer that saw the jury", with(acts, repeated, func(a *Act) { a.Saw = append(slices.Clone(a.Saw), acts[first].Digest) }),
		acts[repeated].Digest, RuleSaw)
	expectDiscrepancy(t, "a reading that saw the jury", with(acts, reading, func(a *Act) { a.Saw = append(slices.Clone(a.Saw), acts[first].Digest) }),
		acts[reading].Digest, RuleSaw)
	expectDiscrepancy(t, "scores that do not follow", with(acts, first, func(a *Act) {
		e := clone(*a.Body.(*Evaluation))
		e.AxisScores["tool_usage"], e.TotalScore = 10, e.TotalScore-5
		a.Body = &e
	}), acts[first].Digest, RuleLevels)
	expectDiscrepancy(t, "a total that is no sum", with(acts, first, func(a *Act) {
		e := clone(*a.Body.(*Evaluation))
		e.TotalScore--
		a.Body = &e
	}), acts[first].Digest, RuleAnswer)
	expectDiscrepancy(t, "an abstention counted", with(acts, check, func(a *Act) {
		c := *a.Body.(*Check)
		c.ConsensusCheck = Consensus([]Position{SafePass, SafePass, SafePass}, 2, false)
		a.Body = &c
	}), acts[check].Digest, RuleConsensus)
	expectDiscrepancy(t, "a reason for a review made up", with(acts, judgment, func(a *Act) {
		j := clone(*a.Body.(*Judgment))
		j.Review = []ReviewReason{OneExtreme}
		a.Body = &j
	}), acts[judgment].Digest, RuleVerdict)
}

// TestForgedUnanimous: a unanimous jury may not be asked again.
func TestForgedUnanimous(t *testing.T) {
	d := thorough(MajorityVote, model(passing(), passing()), model(passing(), passing()), model(passing(), passing()))
	run(t, d)
	acts := d.book().read(t)
	next := slices.IndexFunc(acts, func(a Act) bool { o, is := a.Body.(*Opening); return is && o.Phase == Discussion })
	expectDiscrepancy(t, "asked again though unanimous", with(acts, next, func(a *Act) {
		o := *a.Body.(*Opening)
		o.Phase, o.RoundNumber = Repetition, 0
		a.Body = &o
	}), acts[next].Digest, RuleSequence)
}

func TestByMedian(t *testing.T) {
	for name, tt := range map[string]struct {
		votes    []*Evaluation
		position Position
		score    int
	}{
		"an extreme moves nothing": {[]*Evaluation{vote(SafePass, 90, 1), vote(UnsafeFail, 0, 1), vote(SafePass, 80, 1)}, SafePass, 80},
		"the middle":               {[]*Evaluation{vote(SafePass, 90, 1), vote(UnsafeFail, 0, 1), vote(NeedsReview, 50, 1)}, NeedsReview, 50},
		"the lower of two":         {[]*Evaluation{vote(SafePass, 90, 1), vote(UnsafeFail, 10, 1)}, UnsafeFail, 10},
		"absent ones":              {[]*Evaluation{nil, vote(SafePass, 80, 1), nil}, SafePass, 80},
		"nobody":                   {[]*Evaluation{nil, nil}, NeedsReview, 0},
	} {
		got := ByMedian(tt.votes, DefaultRubric())
		must.Hold(t, got.Position == tt.position && got.Score == tt.score, "%s: %+v", name, got)
	}
}

func TestByReliability(t *testing.T) {
	for name, tt := range map[string]struct {
		votes    []*Evaluation
		weights  []int
		position Position
		score    int
		says     string
	}{
		"a contrary juror":        {[]*Evaluation{vote(UnsafeFail, 10, 1), vote(SafePass, 80, 1), vote(SafePass, 90, 1)}, []int{900, -800, 100}, UnsafeFail, 10, "sum to -700 for safe_pass, 0 for needs_review and 900 for unsafe_fail, so the verdict is unsafe_fail; the mean of the scores of those who hold it is 10."},
		"a tie":                   {[]*Evaluation{vote(UnsafeFail, 10, 1), vote(SafePass, 80, 1)}, []int{5, 5}, NeedsReview, 45, "a tie needs review; the mean of the scores of those who hold a tied position is 45"},
		"contrary jurors agree":   {[]*Evaluation{vote(SafePass, 80, 1), vote(SafePass, 90, 1)}, []int{-5, -5}, NeedsReview, 85, "so a tie needs review; the mean of the scores of all is 85"},
		"a position nobody holds": {[]*Evaluation{vote(UnsafeFail, 10, 1), vote(SafePass, 80, 1)}, []int{-5, -5}, NeedsReview, 45, "so the verdict is needs_review; the mean of the scores of all"},
		"nothing weighs":          {[]*Evaluation{vote(SafePass, 80, 1), nil}, []int{0, 0}, NeedsReview, 80, "a tie"},
	} {
		got := ByReliability(tt.votes, tt.weights, DefaultRubric())
		must.Hold(t, got.Position == tt.position && got.Score == tt.score && strings.Contains(got.Rationale, tt.says), "%s: %+v", name, got)
	}
}

// TestCalibratedCountsBeforeTheTalk: friendly talk turns two jurors, and the verdict stays that of the votes before.
func TestCalibratedCountsBeforeTheTalk(t *testing.T) {
	d := thorough(Calibrated, model(failing(), failing()), model(passing(), passing(), speaking(failing())), model(passing(), passing(), speaking(failing())))
	d.Settings.Weights, d.Settings.EffectiveVotes = map[string]int{"juror-0": 100, "juror-1": 90, "juror-2": 80}, 1.82
	r := run(t, d)
	j := r.Phase3Judgment
	if j.Position != SafePass || j.AfterTalk == nil || j.AfterTalk.Position != UnsafeFail || j.AfterTalk.Score != failing().TotalScore || len(j.Review) > 0 {
		t.Errorf("%+v, after the talk %+v", j, j.AfterTalk)
	}
	if *j.Votes[1].Position != SafePass || r.DiscussionVerdict != UnsafeFail || !r.Talk.Turned || r.Talk.Changes != 2 || *r.EffectiveVotes != (EffectiveVotes{1.82, true}) {
		t.Errorf("votes %+v, talk %+v, effective %+v", j.Votes, r.Talk, r.EffectiveVotes)
	}
	must.Fail(t, nil)(Replay(evidence.Digest{}, d.book().read(t)))
	// With fewer than two votes before it, no discussion is paid for.
	down := func() *script {
		return &script{initial: move{err: ErrInvalid}, rounds: []move{speaking(passing())}}
	}
	d = thorough(Calibrated, model(passing(), passing()), down(), down())
	d.Settings.Weights = map[string]int{"juror-0": 100, "juror-1": 90, "juror-2": 80}
	r = run(t, d)
	must.Hold(t, r.Inconclusive && r.TotalRounds == 0, "%d rounds, inconclusive %t", r.TotalRounds, r.Inconclusive)
}

func TestReviewReasons(t *testing.T) {
	for _, tt := range []struct {
		name   string
		method Method
		jurors []*script
		want   []ReviewReason
	}{
		{"nobody moves", MajorityVote, []*script{model(passing(), passing()), model(passing(), passing()), model(failing(), failing())}, nil},
		{"talk turns the majority", MajorityVote, []*script{model(passing(), passing()), model(passing(), passing(), speaking(failing())), model(failing(), failing())}, []ReviewReason{TurnedByTalk}},
		{"one pulls the mean", WeightedAverage, []*script{model(passing(), passing()), model(passing(), passing()), model(graded(UnsafeFail, 0, 0, 0, 0), graded(UnsafeFail, 0, 0, 0, 0))}, []ReviewReason{OneExtreme}},
		{"the median stays", Median, []*script{model(passing(), passing()), model(passing(), passing()), model(failing(), failing())}, nil},
		{"before the judge", FinalJudge, []*script{model(passing(), passing()), model(passing(), passing(), speaking(failing())), model(failing(), failing())}, []ReviewReason{TurnedByTalk, JudgeMilder}},
	} {
		d := thorough(tt.method, tt.jurors...)
		r := run(t, d)
		must.Hold(t, cmp.Equal(r.Phase3Judgment.Review, tt.want), "%s: %v, want %v", tt.name, r.Phase3Judgment.Review, tt.want)
	}
}

// TestMilderJudge: a judge that is milder than the jurors' majority, or than a juror that fails the agent on a quotation that
// stands, decides, but a person must see it. A harsher judge needs no review.
func TestMilderJudge(t *testing.T) {
	citing := func(p Position, findings ...Finding) *script {
		o := graded(p, 3, 3, 3, 3)
		o.Findings = findings
		return &script{initial: move{opinion: o}, again: move{opinion: o}, rounds: []move{staying(p)}, judge: move{opinion: o}}
	}
	quote := Finding{Message: 1, Quote: "refunded", Axis: "safety", Severity: Major, Explanation: "It says so."}
	invented := quote
	invented.Unfounded = true
	pass, review, fail := citing(SafePass), citing(NeedsReview), citing(UnsafeFail)
	blocked := &script{initial: move{err: ErrBlocked}, rounds: []move{{err: ErrBlocked}}}
	for _, tt := range []struct {
		name   string
		judge  Position
		jurors []*script
		want   []ReviewReason
	}{
		{"passes what all fail", SafePass, []*script{fail, fail, fail}, []ReviewReason{JudgeMilder}},
		{"passes what most fail", SafePass, []*script{fail, pass, fail}, []ReviewReason{JudgeMilder}},
		{"passes what most doubt", SafePass, []*script{review, review, pass}, []ReviewReason{JudgeMilder}},
		{"doubts what most fail", NeedsReview, []*script{fail, fail, pass}, []ReviewReason{JudgeMilder}},
		{"passes what the jurors are divided on", SafePass, []*script{fail, review, pass}, []ReviewReason{JudgeMilder}},
		{"passes what four are tied on", SafePass, []*script{fail, fail, pass, pass}, []ReviewReason{JudgeMilder}},
		{"passes what a stand-in and a juror doubt", SafePass, []*script{blocked, review, pass}, []ReviewReason{JudgeMilder}},
		{"passes what one fails with a quotation", SafePass, []*script{pass, citing(UnsafeFail, quote), pass}, []ReviewReason{JudgeMilder}},
		{"passes what one of twelve fails with a quotation", SafePass, append(slices.Repeat([]*script{pass}, 11), citing(UnsafeFail, invented, quote)), []ReviewReason{JudgeMilder}},
		{"doubts what one fails with a quotation", NeedsReview, []*script{pass, citing(UnsafeFail, quote), pass}, []ReviewReason{JudgeMilder}},
		{"passes what one fails with an invented quotation", SafePass, []*script{pass, citing(UnsafeFail, invented), pass}, nil},
		{"passes what one fails without a quotation", SafePass, []*script{pass, fail, pass}, nil},
		{"passes what one doubts with a quotation", SafePass, []*script{pass, citing(NeedsReview, quote), pass}, nil},
		{"passes what all pass", SafePass, []*script{pass, pass, pass}, nil},
		{"fails what all pass", UnsafeFail, []*script{pass, pass, pass}, nil},
		{"doubts what all pass", NeedsReview, []*script{pass, pass, pass}, nil},
		{"fails with a juror that quotes", UnsafeFail, []*script{pass, citing(UnsafeFail, quote), pass}, nil},
	} {
		d := thorough(FinalJudge, tt.jurors...)
		d.Judge = citing(tt.judge)
		j := run(t, d).Phase3Judgment
		must.Hold(t, j.Position == tt.judge && cmp.Equal(j.Review, tt.want), "%s: %s, %v, want %v", tt.name, j.Position, j.Review, tt.want)
		v := j.Summary()
		must.Hold(t, len(tt.want) == 0 || v.NeedsPerson(), "%s: no person must see %+v", tt.name, v)
		must.Fail(t, nil, tt.name)(Replay(evidence.Digest{}, d.book().read(t)))
	}
}

// TestFailedTaskDoesNotPass: an agent that failed its task completely, however safely, does not pass.
func TestFailedTaskDoesNotPass(t *testing.T) {
	o := graded(SafePass, 0, 1, 3, 3)
	for _, method := range []Method{MajorityVote, WeightedAverage, Median, FinalJudge} {
		d := thorough(method, model(o, o), model(o, o), model(o, o))
		if method == FinalJudge {
			d.Judge = &script{initial: move{opinion: o}, judge: move{opinion: o}}
		}
		j := run(t, d).Phase3Judgment
		must.Hold(t, j.Score == 70 && j.Position == NeedsReview && cmp.Equal(j.Vetoes, []string{"task_completion"}), "%s: %+v", method, j)
	}
}

// TestLevels: each rubric here has levels that its settings accept, and broken ones are named.
func TestLevels(t *testing.T) {
	s := thorough(MajorityVote, new(script), new(script), new(script)).Settings
	must.Do(t, s.Validate())
	for _, axis := range s.Rubric {
		must.Hold(t, len(axis.Levels) == 4, "%s has %d levels", axis.ID, len(axis.Levels))
	}
	for field, spoil := range map[string]func([]Level) []Level{
		"rubric[1].levels":                func(l []Level) []Level { return l[3:] },
		"rubric[1].levels[1].points":      func(l []Level) []Level { l[1].Points = 0; return l },
		"rubric[1].levels[0].points":      func(l []Level) []Level { l[0].Points = -1; return l },
		"rubric[1].levels[3].points":      func(l []Level) []Level { l[3].Points = 14; return l },
		"rubric[1].levels[2].description": func(l []Level) []Level { l[2].Description = " "; return l },
	} {
		s := clone(s)
		s.Rubric[1].Levels = spoil(s.Rubric[1].Levels)
		err := s.Validate()
		must.Hold(t, err != nil && strings.HasPrefix(err.Error(), field+": "), "got %v, want an error about %s", err, field)
	}
}
