package jury

import (
	"iter"
	"slices"

	"jurat/evidence"
)

// Votes are the jury's votes at three moments. Moments that have not come yet are nil.
type Votes struct {
	AfterPhase1     *Ballot `json:"afterPhase1"`
	AfterDiscussion *Ballot `json:"afterDiscussion"` // after the last round; nil also if there was no discussion
	Final           *Ballot `json:"final"`           // as the final judgment counted them, with its verdict
}

// A Ballot is the jury's votes at one moment.
type Ballot struct {
	Verdict Position `json:"verdict"` // the majority's, needs_review on a tie; in the final ballot, the judgment's
	Votes   []Vote   `json:"votes"`   // by seat
}

// Ballot returns the jury's current votes: the most common position, and each seat's vote. It returns nil before the
// first opening.
func (t *Tally) Ballot() *Ballot {
	if t.settings == nil {
		return nil
	}
	return &Ballot{prevailing(t.standing), votesOf(t.settings.Seats, t.now())}
}

// prevailing is the most common position. It is needs_review if there is a tie.
func prevailing(standing []*Evaluation) Position {
	if top, _ := plurality(positionsOf(standing)); len(top) == 1 {
		return top[0]
	}
	return NeedsReview
}

// given yields the answers and absences so far, by session and seat: the session, the number of the seat in it, and the act.
func (t *Tally) given() iter.Seq2[place, *Act] {
	return func(yield func(place, *Act) bool) {
		for _, s := range t.sessions {
			for i, a := range s.answers {
				if a != nil && !yield(place{s, i}, a) {
					return
				}
			}
		}
	}
}

// A place is a seat that was asked in a session.
type place struct {
	*session
	seat int
}

// result is the trial as far as its acts go.
func (t *Tally) result() Result {
	r := Result{Phase1Evaluations: t.initial(), DiscussionRounds: []Round{}, Absences: []Absent{}, Degraded: t.degraded(), OtherModels: t.otherModels(), EndedModels: t.endedModels(), Changes: []Change{}}
	if t.settings == nil {
		return r
	}
	r.Offline = t.settings.offline()
	for _, s := range t.sessions {
		switch {
		case s.outcome == nil:
		case s.Phase == Initial:
			r.Phase1Consensus = *s.check()
		case s.Phase == Repetition:
			r.RepetitionConsensus = s.check()
		case s.Phase == Discussion:
			r.DiscussionRounds = append(r.DiscussionRounds, t.round(s))
		case s.Phase == Judging:
			j := s.outcome.Body.(*Judgment)
			r.Phase3Judgment, r.FinalVerdict, r.FinalScore, r.Inconclusive = *j, j.Position, j.Score, j.Inconclusive
		}
	}
	r.TotalRounds = len(r.DiscussionRounds)
	t.tell(&r)
	if s := t.last(); s != nil && s.Phase == Judging && t.settings.Collaborative {
		r.EarlyTermination = r.TotalRounds < t.settings.MaxRounds
	}
	return clone(r)
}

// tell adds to the result what repetition, the judge's reading and the discussion came to.
func (t *Tally) tell(r *Result) {
	for at, a := range t.given() {
		switch body := a.Body.(type) {
		case *Evaluation:
			if afterHearing(at.session, at.before.evaluations[at.places[at.seat]], body) == nil {
				r.Abstentions = append(r.Abstentions, body.JurorID)
			}
		case *Statement:
			if body.PositionChanged {
				r.Changes = append(r.Changes, t.change(at.seat, at.before.evaluations, body))
			}
		case *Absent:
			r.Absences = append(r.Absences, *body)
		}
	}
	if len(t.sessions) > 0 {
		r.Phase1Verdict = prevailing(t.firstVotes())
	}
	r.DiscussionVerdict = prevailing(t.standing)
	r.Repeated, r.EffectiveVotes = t.evaluations(Repetition), t.effectiveVotes()
	if reading := t.reading(); reading != nil {
		r.JudgeReading = reading.Body.(*Opinion)
	}
	if r.TotalRounds > 0 {
		r.Talk = t.talk(r.Changes)
	}
}

// change describes a juror's change of position, compared with the evaluations before the round.
func (t *Tally) change(seat int, before []*Evaluation, s *Statement) Change {
	c := Change{JurorID: s.JurorID, RoundNumber: s.RoundNumber, From: before[seat].Position, To: s.Position,
		Toward: []string{}, Cites: []Finding{}}
	held := 0
	for i, e := range before {
		if e == nil {
			continue
		}
		held++
		if i != seat && e.Position == s.Position {
			c.Toward = append(c.Toward, t.settings.Seats[i].JurorID)
		}
	}
	c.ToMajority = 2*len(c.Toward) > held
	if s.UpdatedEvaluation != nil {
		c.Cites = fresh(s.UpdatedEvaluation.Findings, before[seat].Findings)
	}
	c.Unsupported = len(c.Cites) == 0
	return c
}

// fresh returns the findings that point to a place in the evidence to which none of the old findings points.
func fresh(now, old []Finding) []Finding {
	list := []Finding{}
	for _, f := range now {
		known := slices.ContainsFunc(old, func(o Finding) bool { return o.Message == f.Message && o.Quote == f.Quote })
		if !known && !f.Unfounded {
			list = append(list, f)
		}
	}
	return list
}

func (t *Tally) talk(changes []Change) *Talk {
	talk := &Talk{Changes: len(changes), Turned: t.turned(withoutJudge(t.settings.Method))}
	followed := 0
	for _, c := range changes {
		if c.ToMajority {
			talk.ToMajority++
		}
		if c.Unsupported {
			talk.Unsupported++
		}
		if c.ToMajority && c.Unsupported {
			followed++
		}
	}
	talk.Conformity = float64(hundredths(followed, len(changes))) / 100
	return talk
}

// effectiveVotes says how many independent votes the valid ones are worth; nil if there are none.
func (t *Tally) effectiveVotes() *EffectiveVotes {
	valid, models := 0, map[[2]string]bool{}
	for place, e := range t.counted().evaluations {
		if e == nil || e.Fallback {
			continue
		}
		valid++
		models[[2]string{t.settings.Seats[place].Provider, t.settings.Seats[place].Model}] = true
	}
	switch measured := t.settings.EffectiveVotes; {
	case valid == 0:
		return nil
	case measured > 0:
		return &EffectiveVotes{Votes: min(measured, float64(valid)), Measured: true}
	}
	return &EffectiveVotes{Votes: float64(len(models))}
}

func (t *Tally) initial() []Evaluation { return append([]Evaluation{}, t.evaluations(Initial)...) }

// evaluations lists the evaluations of phase 1, or of the repetition, by seat. It is nil if there are none.
func (t *Tally) evaluations(phase Phase) (list []Evaluation) {
	for at, a := range t.given() {
		if e, ok := a.Body.(*Evaluation); ok && at.Phase == phase {
			list = append(list, *e)
		}
	}
	return list
}

func (t *Tally) round(s *session) Round {
	r := Round{RoundNumber: s.RoundNumber, Statements: []Statement{}, SpeakerOrder: []string{}}
	for i, a := range s.answers {
		r.SpeakerOrder = append(r.SpeakerOrder, s.seats[i].JurorID)
		if a == nil {
			continue
		}
		if statement, ok := a.Body.(*Statement); ok {
			r.Statements = append(r.Statements, *statement)
		}
	}
	if check := s.check(); check != nil {
		r.ConsensusCheck = *check
	}
	return r
}

// brief is what a seat is given in the open session.
func (t *Tally) brief(s *session, seat int, material []byte) Brief {
	b := Brief{Request: s.Request(s.seats[seat], t.material, s.saw), Material: material}
	if s.Phase == Initial || s.Phase == Repetition {
		return clone(b)
	}
	b.Evaluations, b.Repeated, b.Rounds = t.initial(), t.evaluations(Repetition), []Round{}
	if reading := t.reading(); s.Phase == Judging && reading != nil {
		b.Own = reading.Body.(*Opinion)
	}
	for _, earlier := range t.sessions {
		if earlier.Phase == Discussion && earlier != s {
			r := t.round(earlier)
			r.ConsensusCheck = ConsensusResult{} // jurors are not shown checks
			b.Rounds = append(b.Rounds, r)
		}
	}
	if place := s.places[seat]; place != judgePlace {
		if e := t.standing[place]; e != nil && !e.Fallback { // a stand-in is not its own
			b.Last = e
		}
	}
	return clone(b)
}

// A Replayed holds the state of a trial after its acts so far.
type Replayed struct {
	Settings    *Settings // nil before the first opening
	Result      Result    // as far as the acts go: its judgment counts if Judged
	Phase       Phase     // the phase opened last; "" before the first opening
	RoundNumber int       // the round opened last; 0 outside the discussion
	Waiting     []string  // who was asked and has no act yet, by seat
	Acts        int       // including the submission
	Judged      bool      // the final judgment is there
	Finished    bool      // the closing is there
}

// Replay checks the acts of one trial again, in the order of the log. They may begin with the submission, and may
// stop anywhere. From the digest of the evidence it rebuilds the digest of every request; zero: they are taken as they
// are. Its error is a *Discrepancy that names the first wrong act. With an error it also returns the trial up to that act.
func Replay(material evidence.Digest, acts []Act) (*Replayed, error) {
	t := NewTally(material)
	for _, a := range acts {
		if err := t.Apply(a); err != nil {
			return t.State(), err
		}
	}
	return t.State(), nil
}

// State returns the state of the trial so far, as a copy.
func (t *Tally) State() *Replayed {
	r := &Replayed{Result: t.result(), Waiting: t.Waiting(), Acts: t.acts, Finished: t.closed}
	s := t.last()
	if s == nil {
		return r
	}
	r.Settings = clone(t.settings)
	r.Phase, r.RoundNumber = s.Phase, s.RoundNumber
	r.Judged = s.Phase == Judging && s.outcome != nil
	return r
}

// Waiting lists the jurors who were asked and have no act yet, by seat.
func (t *Tally) Waiting() []string {
	list := []string{}
	if s := t.last(); s != nil {
		for _, i := range s.waiting() {
			list = append(list, s.seats[i].JurorID)
		}
	}
	return list
}

// ReadAct reads the act from a record of a trial. It does not check the act's place: Replay and package verify do.
// Its errors are those of DecodeBody.
func ReadAct(r *evidence.Record) (Act, error) {
	p := &r.Payload
	a := Act{Digest: r.Digest, Type: p.ActionType, Position: p.ChainPosition, Previous: p.PreviousRecord, Saw: p.Saw,
		Request: p.RequestDigest, Origin: Origin{Model: p.Model, ModelVersion: p.ModelVersion, Parameters: p.Parameters,
			Metadata: p.Metadata}}
	if role := p.Role(); role == evidence.RoleJuror || role == evidence.RoleJudge {
		a.Actor = p.AgentID
	}
	if p.ActionType == evidence.Submission {
		return a, nil // its content is the evidence, which jurors read
	}
	body, err := DecodeBody(p.ActionType, p.Response)
	a.Body = body
	return a, err
}
