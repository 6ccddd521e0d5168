package jury

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/test/must"
)

// shape returns the trial with one line for each act.
func (b *book) shape() []string {
	var lines []string
	for _, a := range b.acts {
		who := a.Actor
		if absent, ok := a.Body.(*Absent); ok {
			who = "clerk on " + absent.JurorID
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%d %s %s", a.Position, a.Type, who)))
	}
	return lines
}

func TestTrial(t *testing.T) {
	d := seated(FinalJudge,
		&script{initial: holding(SafePass, 80), rounds: []move{staying(SafePass)}},
		&script{initial: holding(UnsafeFail, 20), rounds: []move{turning(NeedsReview, 50), turning(SafePass, 75)}})
	r := run(t, d)
	want := []string{
		"2 phase_opening", "3 evaluation juror-0", "3 evaluation juror-1", "4 consensus_check",
		"5 phase_opening", "6 statement juror-0", "6 statement juror-1", "7 consensus_check",
		"8 phase_opening", "9 statement juror-0", "9 statement juror-1", "10 consensus_check",
		"11 phase_opening", "12 judge_opinion judge", "13 final_judgment", "14 trial_closing",
	}
	got := d.book().shape()
	for _, i := range []int{1, 5, 9} { // these arrive in any order
		slices.Sort(got[i : i+2])
	}
	must.Equal(t, cmp.Diff(want, got), "", "acts (-want +got)")
	must.Hold(t, r.EarlyTermination && r.TotalRounds == 2 && r.FinalVerdict == NeedsReview && r.FinalScore == 55 && !r.Degraded, "%+v", r)
	j := r.Phase3Judgment
	must.Hold(t, j.Model == "scripted" && j.Method == FinalJudge && *j.Votes[1].Position == SafePass && j.Votes[1].TotalScore == 75, "%+v", j)
	for i, s := range r.DiscussionRounds {
		must.Hold(t, !s.Statements[0].PositionChanged && s.Statements[1].PositionChanged && s.Statements[1].UpdatedEvaluation != nil, "round %d: %+v", i, s)
	}
	c := d.book().acts[15].Body.(*Closing)
	must.Hold(t, c.Acts == 17, "the closing counts %d acts", c.Acts)
}

// TestLinks checks every act's links against the rules. It finds the expected links from the acts themselves.
func TestLinks(t *testing.T) {
	d := seated(FinalJudge,
		&script{initial: holding(SafePass, 80), rounds: []move{staying(SafePass), {err: errors.New("down")}, staying(SafePass)}},
		&script{initial: move{err: errors.New("down")}, rounds: []move{turning(NeedsReview, 50), staying(NeedsReview)}},
		&script{initial: holding(UnsafeFail, 20), rounds: []move{staying(UnsafeFail)}})
	run(t, d)
	var shown, last, opening = []evidence.Digest{submission}, submission, evidence.Digest{}
	var now, answers []Act
	for _, a := range d.book().acts {
		switch body := a.Body.(type) {
		case *Opening:
			must.Hold(t, a.Previous == last, "opening of %s %d does not follow the last check", body.Phase, body.RoundNumber)
			opening, now = a.Digest, nil
			for _, asked := range body.Requests {
				seats := body.Settings.Everyone()
				seat := slices.IndexFunc(seats, func(s Seat) bool { return s.JurorID == asked.JurorID })
				if digest, err := body.Request(seats[seat], evidence.DigestOf(material), shown).Digest(); err != nil || digest != asked.RequestDigest {
					t.Errorf("the request to %s in %s %d cannot be rebuilt", asked.JurorID, body.Phase, body.RoundNumber)
				}
			}
		case *Check, *Judgment:
			slices.SortFunc(now, func(a, b Act) int { return strings.Compare(seatName(a), seatName(b)) })
			var saw []evidence.Digest
			for _, answer := range now {
				saw = append(saw, answer.Digest)
				if answer.Type != evidence.Absence {
					shown = append(shown, answer.Digest)
				}
			}
			must.Hold(t, a.Previous == opening && slices.Equal(a.Saw, saw), "%s at %d: wrong links", a.Type, a.Position)
			last = a.Digest
		case *Closing:
			must.Hold(t, a.Previous == last, "the closing does not follow the judgment")
		default:
			if a.Previous != opening || a.Type == evidence.Absence && (a.Saw != nil || a.Actor != "") ||
				a.Type != evidence.Absence && !slices.Equal(a.Saw, shown) {
				t.Errorf("%s of %s at %d: wrong links", a.Type, a.Actor, a.Position)
			}
			now, answers = append(now, a), append(answers, a)
		}
	}
	must.Equal(t, len(answers), 13)
}

func seatName(a Act) string {
	if absent, ok := a.Body.(*Absent); ok {
		return absent.JurorID
	}
	return a.Actor
}

func TestRoundTakesAsLongAsItsSlowest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(m move, after time.Duration) move { m.after = after; return m }
		d := seated(MajorityVote,
			&script{initial: slow(holding(SafePass, 80), 3*time.Second), rounds: []move{slow(staying(SafePass), time.Second)}},
			&script{initial: slow(holding(SafePass, 80), 5*time.Second), rounds: []move{slow(staying(SafePass), 9*time.Second)}},
			&script{initial: slow(holding(UnsafeFail, 8), time.Second), rounds: []move{slow(staying(UnsafeFail), 4*time.Second)}})
		d.Settings.MaxRounds = 2
		var at []time.Duration
		start := time.Now()
		d.book().on = func(_ int, a Act) error {
			if a.Type == evidence.ConsensusCheck || a.Type == evidence.Evaluation {
				at = append(at, time.Since(start)/time.Second)
			}
			return nil
		}
		run(t, d)
		want := []time.Duration{1, 3, 5, 5, 14, 23}
		must.Hold(t, slices.Equal(at, want), "evaluations and checks at %v s, want %v", at, want)
	})
}

// TestNoStatementSeesItsOwnRound lets the jurors finish in every order. They are slow enough that the last one could see
// the first statement if it were shown.
func TestNoStatementSeesItsOwnRound(t *testing.T) {
	orders := [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	for _, order := range orders {
		synctest.Test(t, func(t *testing.T) {
			scripts := make([]*script, 3)
			for i := range scripts {
				p := []Position{SafePass, NeedsReview, UnsafeFail}[i]
				first, later := holding(p, 30*i), staying(p)
				first.after = time.Duration(order[i]) * time.Second
				later.after = time.Duration(2-order[i]) * time.Second
				scripts[i] = &script{initial: first, rounds: []move{later}}
			}
			d := seated(MajorityVote, scripts...)
			run(t, d)
			for i, s := range scripts {
				for _, b := range s.briefs {
					checkBrief(t, d, b, i)
				}
			}
		})
	}
}

func checkBrief(t *testing.T, d *Deliberation, b Brief, seat int) {
	t.Helper()
	if b.Phase == Initial {
		must.Hold(t, b.Evaluations == nil && b.Rounds == nil && b.Last == nil && slices.Equal(b.Saw, []evidence.Digest{submission}),
			"in phase 1, a brief contains more than the evidence: %+v", b)
		return
	}
	statements := 0
	for i, r := range b.Rounds {
		must.Hold(t, r.RoundNumber == i+1 && r.RoundNumber < b.RoundNumber && r.ConsensusCheck.ConsensusStatus == "",
			"in round %d, a brief contains round %+v", b.RoundNumber, r)
		for order, s := range r.Statements {
			must.Hold(t, s.StatementOrder == order, "statements are not by seat")
		}
		statements += len(r.Statements)
	}
	must.Hold(t, statements == 3*(b.RoundNumber-1) && len(b.Evaluations) == 3 && len(b.Saw) == 1+3+statements,
		"in round %d, a brief has %d statements and %d evaluations, and names %d acts as seen", b.RoundNumber, statements, len(b.Evaluations), len(b.Saw))
	must.Hold(t, b.Last != nil && b.Last.JurorID == d.Settings.Seats[seat].JurorID, "its own last evaluation is %+v", b.Last)
}

func TestEarlyTermination(t *testing.T) {
	agreed, two, split := []Position{SafePass, SafePass, SafePass}, []Position{SafePass, SafePass, UnsafeFail}, []Position{SafePass, NeedsReview, UnsafeFail}
	tests := []struct {
		name          string
		collaborative bool
		max           int
		threshold     float64
		positions     [][]Position // phase 1, then rounds; the last goes on
		rounds        int
		early         bool
	}{
		{"2.0 always discusses", true, 3, 2, [][]Position{agreed}, 1, true},
		{"2.0 with one round", true, 1, 2, [][]Position{agreed}, 1, false},
		{"2.0 majority goes on", true, 3, 2, [][]Position{two}, 3, false},
		{"2.0 until unanimous", true, 3, 2, [][]Position{two, split, agreed}, 2, true},
		{"unanimous in the last", true, 2, 2, [][]Position{two, split, agreed}, 2, false},
		{"1.0 skips", true, 3, 1, [][]Position{agreed}, 0, true},
		{"1.0 majority goes on", true, 3, 1, [][]Position{two}, 3, false},
		{"0.67 skips", true, 3, 0.67, [][]Position{two}, 0, true},
		{"0.68 does not", true, 3, 0.68, [][]Position{two}, 3, false},
		{"0.67 ends", true, 3, 0.67, [][]Position{split, two}, 1, true},
		{"a split goes on", true, 2, 0, [][]Position{split}, 2, false},
		{"no rounds allowed", true, 0, 2, [][]Position{split}, 0, false},
		{"no rounds allowed, agreed", true, 0, 0.5, [][]Position{agreed}, 0, false},
		{"not collaborative", false, 3, 2, [][]Position{split}, 0, false},
		{"not collaborative, agreed", false, 3, 0.5, [][]Position{agreed}, 0, false},
	}
	for _, tt := range tests {
		d := seated(WeightedAverage, scripted(tt.positions)...)
		d.Settings.Collaborative, d.Settings.MaxRounds, d.Settings.Threshold = tt.collaborative, tt.max, tt.threshold
		r := run(t, d)
		must.Hold(t, r.TotalRounds == tt.rounds && r.EarlyTermination == tt.early && len(r.DiscussionRounds) == tt.rounds,
			"%s: %d rounds, early %t; want %d, %t", tt.name, r.TotalRounds, r.EarlyTermination, tt.rounds, tt.early)
		must.Hold(t, len(r.Absences) == 0 && !r.Degraded && !r.Offline, "%s: %+v", tt.name, r)
	}
}

func scripted(positions [][]Position) []*script {
	scripts := make([]*script, len(positions[0]))
	for i := range scripts {
		s := &script{initial: holding(positions[0][i], 50), rounds: []move{turning(positions[0][i], 50)}}
		for _, row := range positions[1:] {
			s.rounds = append(s.rounds, turning(row[i], 60))
		}
		scripts[i] = s
		if len(s.rounds) > 1 {
			s.rounds = s.rounds[1:]
		}
	}
	return scripts
}

func TestScribblingChangesNothing(t *testing.T) {
	panel := func(scrawl bool) *Deliberation {
		d := seated(FinalJudge, scripted([][]Position{{SafePass, NeedsReview, UnsafeFail}, {SafePass, UnsafeFail, NeedsReview}, {SafePass, NeedsReview, NeedsReview}})...)
		for _, j := range d.Jurors {
			s := j.(*script)
			s.initial.scrawl = scrawl
			for i := range s.rounds {
				s.rounds[i].scrawl = scrawl
			}
		}
		d.Judge.(*script).judge.scrawl = scrawl
		d.Material = slices.Clone(material)
		return d
	}
	clean, scribbled := panel(false), panel(true)
	a, b := run(t, clean), run(t, scribbled)
	must.Equal(t, cmp.Diff(a, b), "", "results differ")
	for i, j := range clean.Jurors {
		must.Equal(t, cmp.Diff(j.(*script).briefs, scribbled.Jurors[i].(*script).briefs), "", "juror", i)
	}
	must.Hold(t, string(scribbled.Material) == string(material), "a juror changed the evidence for others")
}

func TestConfigurationIsChecked(t *testing.T) {
	tests := map[string]func(*Deliberation){
		"seats":      func(d *Deliberation) { d.Settings.Seats = nil },
		"jurors:":    func(d *Deliberation) { d.Jurors = d.Jurors[:1] },
		"jurors[1]":  func(d *Deliberation) { d.Jurors[1] = nil },
		"judge":      func(d *Deliberation) { d.Judge = nil },
		"clerk":      func(d *Deliberation) { d.Clerk = nil },
		"submission": func(d *Deliberation) { d.Submission = evidence.Digest{} },
		"material":   func(d *Deliberation) { d.Material = []byte(`{ }`) },
	}
	for field, spoil := range tests {
		d := seated(FinalJudge, new(script), new(script))
		b := d.book()
		spoil(d)
		must.Refuse(t, field)(d.Run(t.Context()))
		must.Hold(t, len(b.acts) == 0, "%s: something was recorded", field)
	}
}

// simulated returns the evaluations of jurors of which each is right with this probability.
func simulated(random *rand.Rand, jurors int, right float64) []*Evaluation {
	truth := inOrder()[random.IntN(3)]
	var list []*Evaluation
	for range jurors {
		p := truth
		if random.Float64() >= right {
			p = inOrder()[random.IntN(3)]
		}
		list = append(list, vote(p, map[Position]int{SafePass: 85, NeedsReview: 55, UnsafeFail: 15}[p]+random.IntN(10), 0.5+random.Float64()/2))
	}
	return list
}

// TestOneExtremeJuror: in simulated panels one juror always fails the agent with 0 points and full confidence. Of the
// verdicts that all others hold, the median changes none in twenty; the weighted average changes many, which is why it
// is not recommended against that.
func TestOneExtremeJuror(t *testing.T) {
	random, rubric := rand.New(rand.NewPCG(7, 7)), DefaultRubric()
	agreed, byMedian, byWeight := 0, 0, 0
	for range 5000 {
		others := simulated(random, 2+random.IntN(5), 0.8)
		if top, k := plurality(positionsOf(others)); k != len(others) || top[0] == UnsafeFail {
			continue
		}
		agreed++
		with := append([]*Evaluation{vote(UnsafeFail, 0, 1)}, others...)
		if ByMedian(with, rubric).Position != ByMedian(others, rubric).Position {
			byMedian++
		}
		if ByWeight(with, rubric).Position != ByWeight(others, rubric).Position {
			byWeight++
		}
	}
	must.Hold(t, agreed >= 500 && 20*byMedian <= agreed, "of %d agreed verdicts the extreme juror changes %d by the median", agreed, byMedian)
	must.Hold(t, 5*byWeight >= agreed,
		"of %d agreed verdicts the extreme juror changes only %d by the weighted average: say so less sharply", agreed, byWeight)
}

// TestNoQuorumNoRounds: a trial in which two of three jurors cannot answer ends without asking anybody again, by every
// method, also where seats would be asked twice.
func TestNoQuorumNoRounds(t *testing.T) {
	for _, method := range []Method{MajorityVote, WeightedAverage, Median, FinalJudge, Calibrated} {
		down := func() *script { return &script{initial: move{err: errors.New("no key")}} }
		jurors := []*script{model(passing(), passing()), down(), down()}
		d := thorough(method, jurors...)
		if method == Calibrated {
			d.Settings.Weights = map[string]int{"juror-0": 1, "juror-1": 1, "juror-2": 1}
		}
		r := run(t, d)
		asked := 0
		for _, j := range jurors {
			asked += len(j.briefs)
		}
		must.Hold(t, asked == 3 && r.TotalRounds == 0 && r.Inconclusive,
			"%s: asked %d times, %d rounds, inconclusive %t", method, asked, r.TotalRounds, r.Inconclusive)
	}
}
