package jury

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"jurat/evidence"
)

// maxDetail is the longest detail of an absence, in bytes. An error's text may hold whatever a vendor sent.
const maxDetail = 500

// The neutral stand-in for a juror that a filter blocked.
const (
	blockedRationale  = "The provider's safety filter blocked this juror's evaluation. This is a neutral stand-in, not the juror's opinion."
	blockedStatement  = "The provider's safety filter blocked this juror's statement."
	blockedAxis       = "task_completion"
	blockedAxisScore  = 20
	blockedTotal      = 50
	blockedConfidence = 0.5 // the juror stated none
)

// An answer is what a seat returned.
type answer struct {
	seat int
	Answer
	err error
}

// answerAct turns a seat's answer into an act. Every answer gives an act, valid or not.
func (t *Tally) answerAct(s *session, a answer) *Act {
	if a.Origin.Parameters == nil {
		a.Origin.Parameters = s.seats[a.seat].Parameters
	}
	if errors.Is(a.err, ErrBlocked) && t.standsIn(s, a.seat) {
		origin, err := a.Origin.normal()
		if err != nil {
			origin = unreportedOrigin()
		}
		return t.seatAct(s, a.seat, origin, t.fallback(s, a.seat))
	}
	if a.err != nil {
		return t.absence(s, a, a.err)
	}
	origin, err := a.Origin.normal()
	if err != nil {
		return t.absence(s, a, err)
	}
	body, err := t.body(s, a)
	if err != nil {
		return t.absence(s, a, err)
	}
	return t.seatAct(s, a.seat, origin, body)
}

func (t *Tally) seatAct(s *session, seat int, origin Origin, body any) *Act {
	announced, _ := s.Announced(s.seats[seat].JurorID)
	return &Act{Type: s.answerType(seat), Actor: s.seats[seat].JurorID, Previous: s.digest, Saw: slices.Clone(s.saw),
		Position: t.after(s.digest, s.saw), Request: announced, Origin: origin, Body: body}
}

// standsIn reports whether a neutral stand-in replaces a seat that was blocked: a juror that never had an evaluation.
func (t *Tally) standsIn(s *session, seat int) bool {
	place := s.places[seat]
	return place != judgePlace && t.standing[place] == nil && !t.abstains[place]
}

// answerType is the type of the act by which a seat answers in this session.
func (s *session) answerType(seat int) evidence.ActionType {
	switch {
	case s.places[seat] == judgePlace:
		return evidence.JudgeOpinion
	case s.Phase == Discussion:
		return evidence.Statement
	}
	return evidence.Evaluation
}

// body checks an answer and returns the body of its act. Its error says why the answer does not count.
func (t *Tally) body(s *session, a answer) (any, error) {
	if s.answerType(a.seat) == evidence.Statement {
		return t.statement(s, a.seat, a.Speech)
	}
	request, err := s.Request(s.seats[a.seat].JurorID, t.material, s.saw)
	if err != nil {
		return nil, err
	}
	if err := request.ValidateOpinion(&a.Opinion); err != nil {
		return nil, err
	}
	if s.places[a.seat] == judgePlace {
		return clone(&a.Opinion), nil
	}
	return s.place(a.seat, a.Opinion), nil
}

func (s *session) place(seat int, o Opinion) *Evaluation {
	who := s.seats[seat]
	return &Evaluation{JurorID: who.JurorID, Phase: s.Phase, RoundNumber: s.RoundNumber,
		RoleName: who.RoleName, RoleFocus: who.RoleFocus, Opinion: clone(o)}
}

func (t *Tally) statement(s *session, seat int, speech Speech) (*Statement, error) {
	last := t.standing[seat] // a round asks all seats, so a seat's number is its place
	request, err := s.Request(s.seats[seat].JurorID, t.material, s.saw)
	if err != nil {
		return nil, err
	}
	if err := request.ValidateSpeech(&speech, last); err != nil {
		return nil, err
	}
	statement := &Statement{JurorID: s.seats[seat].JurorID, RoundNumber: s.RoundNumber, StatementOrder: seat,
		Statement: speech.Statement, Position: speech.Position, Reasoning: speech.Reasoning,
		PositionChanged: last != nil && last.Position != speech.Position}
	if speech.Updated != nil && !repeats(*speech.Updated, last) {
		statement.UpdatedEvaluation = s.place(seat, *speech.Updated)
	}
	return statement, nil
}

// repeats reports whether an update equals the juror's last evaluation, so that it updates nothing. A valid opinion
// never equals a stand-in, because a stand-in's total is not the sum of its axes.
func repeats(o Opinion, last *Evaluation) bool {
	if last == nil {
		return false
	}
	then := last.Opinion
	if o.Work == nil { // an update need not repeat the tables
		then.Work = nil
	}
	_, how := difference(o, then)
	return how == ""
}

// fallback is the body of the stand-in for a juror that was blocked before it had an evaluation.
func (t *Tally) fallback(s *session, seat int) any {
	scores := Scores{}
	if t.settings.Rubric.has(blockedAxis) {
		scores[blockedAxis] = blockedAxisScore
	}
	e := s.place(seat, Opinion{Position: NeedsReview, AxisScores: scores, TotalScore: blockedTotal,
		Confidence: blockedConfidence, Rationale: blockedRationale})
	e.Fallback = true
	if s.Phase != Discussion {
		return e
	}
	return &Statement{JurorID: e.JurorID, RoundNumber: s.RoundNumber, StatementOrder: seat, Statement: blockedStatement,
		Position: e.Position, Reasoning: blockedRationale, UpdatedEvaluation: e}
}

// absence is the clerk's act that a seat gave no valid answer.
func (t *Tally) absence(s *session, a answer, why error) *Act {
	act := t.clerkAct(evidence.Absence, s.digest, nil, &Absent{JurorID: s.seats[a.seat].JurorID, Phase: s.Phase,
		RoundNumber: s.RoundNumber, Reason: reasonOf(why), Detail: detail(why.Error())})
	act.Origin.Metadata = a.Origin.metadata()
	return act
}

func reasonOf(err error) AbsenceReason {
	switch {
	case errors.Is(err, ErrBlocked):
		return Blocked
	case errors.Is(err, ErrCeiling):
		return Ceiling
	case errors.Is(err, context.DeadlineExceeded):
		return TimedOut
	case errors.Is(err, ErrInvalid):
		return Invalid
	}
	return Failed
}

// detail makes an error's text fit to be sealed and shown: valid UTF-8, one line, at most maxDetail bytes.
func detail(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) <= maxDetail {
		return text
	}
	end := maxDetail
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// applyAnswer adds a seat's answer, or the clerk's act that the seat gave no valid answer.
func (t *Tally) applyAnswer(a *Act) error {
	s := t.last()
	who := a.Actor
	if absent, ok := a.Body.(*Absent); ok {
		who = absent.JurorID
	}
	if s == nil {
		return a.breaks(RuleSequence, "no seat was asked")
	}
	seat := s.seatOf(who)
	if seat < 0 {
		return a.breaks(RuleSequence, "%q was not asked in %s", abbreviate(who), placeName(s.Phase, s.RoundNumber))
	}
	if s.answers[seat] != nil {
		return a.breaks(RuleSequence, "%q has already answered in %s", who, placeName(s.Phase, s.RoundNumber))
	}
	want, err := t.rebuilt(s, seat, a)
	if err != nil {
		return err
	}
	if err := want.match(a); err != nil {
		return err
	}
	if err := a.sameBody(want.Body); err != nil {
		return err
	}
	want.Digest = a.Digest
	t.hear(s, seat, want)
	return nil
}

// rebuilt computes the act again from the answer that it contains.
func (t *Tally) rebuilt(s *session, seat int, a *Act) (*Act, error) {
	if absent, ok := a.Body.(*Absent); ok {
		return t.rebuiltAbsence(s, seat, a, absent)
	}
	if a.Type != s.answerType(seat) {
		return nil, a.breaks(RuleSequence, "%s in %s", a.Type, placeName(s.Phase, s.RoundNumber))
	}
	if _, _, missing := Missing(a.Body); missing {
		if !t.standsIn(s, seat) {
			return nil, a.breaks(RuleAnswer, "a fallback for %q, which has an evaluation or abstains", a.Actor)
		}
		return t.seatAct(s, seat, a.Origin, t.fallback(s, seat)), nil
	}
	body, err := t.body(s, said(a.Body, seat))
	if err != nil {
		return nil, a.breaks(ruleOf(err), "%v", err)
	}
	return t.seatAct(s, seat, a.Origin, body), nil
}

// said extracts the answer from the body of an act.
func said(body any, seat int) answer {
	a := answer{seat: seat}
	switch body := body.(type) {
	case *Evaluation:
		a.Opinion = body.Opinion
	case *Opinion:
		a.Opinion = *body
	case *Statement:
		a.Speech = Speech{Statement: body.Statement, Position: body.Position, Reasoning: body.Reasoning}
		if body.UpdatedEvaluation != nil {
			a.Speech.Updated = &body.UpdatedEvaluation.Opinion
		}
	}
	return a
}

func (t *Tally) rebuiltAbsence(s *session, seat int, a *Act, absent *Absent) (*Act, error) {
	switch absent.Reason {
	case Blocked:
		if t.standsIn(s, seat) {
			return nil, a.breaks(RuleAnswer, "%q was blocked before it had an evaluation, and has no stand-in", absent.JurorID)
		}
	case TimedOut, Invalid, Failed, Ceiling:
	default:
		return nil, a.breaks(RuleAnswer, "reason: unknown reason for an absence %q", abbreviate(string(absent.Reason)))
	}
	want := &Absent{JurorID: s.seats[seat].JurorID, Phase: s.Phase, RoundNumber: s.RoundNumber,
		Reason: absent.Reason, Detail: detail(absent.Detail)}
	return t.clerkAct(evidence.Absence, s.digest, nil, want), nil
}

// hear updates the trial with an answer that was checked.
func (t *Tally) hear(s *session, seat int, a *Act) {
	switch body := a.Body.(type) {
	case *Evaluation:
		t.evaluated(s, s.places[seat], body)
	case *Statement:
		if body.UpdatedEvaluation != nil {
			t.standing[s.places[seat]], t.abstains[s.places[seat]] = body.UpdatedEvaluation, false
		}
	}
	s.answers[seat] = a
	t.count(a)
}
