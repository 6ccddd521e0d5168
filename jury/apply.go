package jury

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// Rules that an act can break.
const (
	RuleSequence   = "sequence"     // the act is out of order, by the wrong actor, or a repetition
	RuleBody       = "body"         // the body does not fit the act's type
	RulePrevious   = "previous"     // it does not follow the act that it must follow
	RuleSaw        = "simultaneity" // it was not given exactly what its place in the trial gives
	RulePosition   = "position"     // its position in the chain is wrong
	RuleSettings   = "settings"     // the settings are invalid, or not those of the rest of the trial
	RuleRequest    = "request"      // it does not answer or announce the required request
	RuleAnswer     = "answer"       // the answer is invalid, or makes a false statement about itself
	RuleConsensus  = "consensus"    // the votes give another consensus
	RuleLevels     = "levels"       // the scores of an answer do not follow from the levels that it chose
	RuleVerdict    = "verdict"      // the votes give another judgment
	RuleCompletion = "completion"   // the count of acts is wrong
)

// A Discrepancy says which rule an act breaks.
type Discrepancy struct {
	Act    evidence.Digest // the act
	Rule   string          // one of the Rule constants
	Reason string
}

func (d *Discrepancy) Error() string {
	return fmt.Sprintf("act %s: %s: %s", d.Act, d.Rule, d.Reason)
}

func (a *Act) breaks(rule, format string, args ...any) error {
	return &Discrepancy{Act: a.Digest, Rule: rule, Reason: fmt.Sprintf(format, args...)}
}

// Apply adds the next act. If the act breaks a rule, Apply returns a *Discrepancy and leaves the tally unchanged.
func (t *Tally) Apply(a Act) error {
	if a.Type == evidence.Submission {
		return t.applySubmission(&a)
	}
	if _, known := t.positions[a.Digest]; known || a.Digest.IsZero() {
		return a.breaks(RuleSequence, "its digest is missing or that of another act")
	}
	if body := reflect.ValueOf(a.Body); body.Kind() != reflect.Pointer || body.Type().Elem() != bodies[a.Type] || body.IsNil() {
		return a.breaks(RuleBody, "%s with a body of %T", a.Type, a.Body)
	}
	switch a.Body.(type) {
	case *Opening, *Check, *Judgment, *Closing:
		return t.applyClerk(&a)
	}
	return t.applyAnswer(&a)
}

func (t *Tally) applySubmission(a *Act) error {
	other := !t.submission.IsZero() && t.submission != a.Digest
	if t.submitted || other || len(t.sessions) > 0 || a.Digest.IsZero() {
		return a.breaks(RuleSequence, "a trial has one submission, and begins with it")
	}
	if a.Position != 1 {
		return a.breaks(RulePosition, "%d, and a trial begins at 1", a.Position)
	}
	t.submit(a.Digest)
	t.submitted = true
	return nil
}

func (t *Tally) submit(digest evidence.Digest) {
	t.submission = digest
	t.positions[digest] = 1
}

// applyClerk compares an act of the clerk with the act that must come now.
func (t *Tally) applyClerk(a *Act) error {
	before := *t
	err := t.begin(a)
	var want *Act
	if err == nil {
		want, err = t.expected(a)
	}
	if err == nil {
		err = want.match(a)
	}
	if err == nil {
		err = a.sameBody(want.Body)
	}
	if err != nil {
		if before.submission.IsZero() {
			delete(t.positions, t.submission)
		}
		t.submission, t.settings = before.submission, before.settings
		return err
	}
	want.Digest = a.Digest
	t.advance(want)
	return nil
}

// begin takes from the first opening the settings, and the submission if it is unknown.
func (t *Tally) begin(a *Act) error {
	if len(t.sessions) > 0 {
		return nil
	}
	o, isOpening := a.Body.(*Opening)
	if !isOpening {
		return a.breaks(RuleSequence, "a trial begins with the opening of phase 1")
	}
	if t.settings == nil {
		if err := o.Settings.Validate(); err != nil {
			return a.breaks(RuleSettings, "%v", err)
		}
		t.settings = new(o.Settings.normal())
	}
	if t.submission.IsZero() {
		if a.Previous.IsZero() {
			return a.breaks(RulePrevious, "it does not name the submission")
		}
		t.submit(a.Previous)
	}
	return nil
}

// expected returns the clerk's act that must come now. It returns a *Discrepancy if no act of this kind can come.
func (t *Tally) expected(a *Act) (*Act, error) {
	want, err := t.next()
	if err != nil {
		return nil, a.breaks(RuleRequest, "%v", err)
	}
	if want == nil {
		return nil, a.breaks(RuleSequence, "it comes after the closing, or before all have answered (still asked: %s)", strings.Join(t.Waiting(), ", "))
	}
	if named(want) != named(a) {
		return nil, a.breaks(RuleSequence, "found %s, but %s must come next", named(a), named(want))
	}
	if o, ok := a.Body.(*Opening); ok && t.material.IsZero() { // the announced digests cannot be rebuilt
		asked := want.Body.(*Opening).Requests
		for i := range min(len(asked), len(o.Requests)) {
			asked[i].RequestDigest = o.Requests[i].RequestDigest
		}
	}
	return want, nil
}

func named(a *Act) string {
	switch body := a.Body.(type) {
	case *Opening:
		return fmt.Sprintf("the opening of %s", placeName(body.Phase, body.RoundNumber))
	case *Check:
		return fmt.Sprintf("the consensus check of %s", placeName(body.Phase, body.RoundNumber))
	case *Judgment:
		return "the final judgment"
	}
	return "the closing"
}

func placeName(phase Phase, round int) string {
	if phase == Discussion || round != 0 {
		return fmt.Sprintf("%s, round %d", abbreviate(string(phase)), round)
	}
	return "phase " + abbreviate(string(phase))
}

// match compares an act's place in the chain with the required place.
func (want *Act) match(a *Act) error {
	switch {
	case a.Actor != want.Actor:
		return a.breaks(RuleSequence, "the actor is %q, but %q must act", abbreviate(a.Actor), want.Actor)
	case a.Previous != want.Previous:
		return a.breaks(RulePrevious, "it follows %s, but must follow %s", a.Previous.Short(), want.Previous.Short())
	case !slices.Equal(a.Saw, want.Saw):
		return a.breaks(RuleSaw, "it saw %s, but its place gives %s", short(a.Saw), short(want.Saw))
	case a.Position != want.Position:
		return a.breaks(RulePosition, "%d, but what it names gives %d", a.Position, want.Position)
	case a.Request != want.Request:
		return a.breaks(RuleRequest, "it answers %s, but %s was announced", a.Request.Short(), want.Request.Short())
	}
	return nil
}

func short(digests []evidence.Digest) string {
	names := make([]string, len(digests))
	for i, d := range digests {
		names[i] = d.Short()
	}
	return abbreviate("[" + strings.Join(names, " ") + "]")
}

// sameBody compares a sealed body with the recomputed one.
func (a *Act) sameBody(want any) error {
	path, how := difference(a.Body, want)
	if how == "" {
		return nil
	}
	return a.breaks(a.ruleOn(path), "%s", how)
}

func (a *Act) ruleOn(path string) string {
	switch a.Body.(type) {
	case *Opening:
		if strings.HasPrefix(path, "settings") || path == "rules" {
			return RuleSettings
		}
		return RuleRequest
	case *Check:
		return RuleConsensus
	case *Judgment:
		return RuleVerdict
	case *Closing:
		return RuleCompletion
	}
	return RuleAnswer
}

func (t *Tally) advance(a *Act) {
	switch body := a.Body.(type) {
	case *Opening:
		if t.standing == nil {
			t.standing, t.abstains = make([]*Evaluation, len(t.settings.Seats)), make([]bool, len(t.settings.Seats))
		}
		seats := t.panel(body.Phase)
		t.sessions = append(t.sessions, &session{Opening: *body, digest: a.Digest, seats: seats, places: t.settings.placesOf(seats), saw: t.seen(body.Phase),
			before: standings{slices.Clone(t.standing), slices.Clone(t.abstains)}, answers: make([]*Act, len(seats))})
	case *Check, *Judgment:
		t.last().outcome = a
	case *Closing:
		t.closed = true
	}
	t.count(a)
}

func (t *Tally) count(a *Act) {
	t.positions[a.Digest] = a.Position
	t.acts++
}

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
	origin, err := a.Origin.normal()
	if errors.Is(a.err, ErrBlocked) && t.standsIn(s, a.seat) {
		if err != nil {
			origin = Origin{Model: Unreported, ModelVersion: Unreported, Parameters: jsontext.Value("{}")}
		}
		return t.seatAct(s, a.seat, origin, t.fallback(s, a.seat))
	}
	var body any
	if err = cmp.Or(a.err, err); err == nil {
		body, err = t.body(s, a)
	}
	if err != nil {
		return t.absence(s, a, err)
	}
	return t.seatAct(s, a.seat, origin, body)
}

func (t *Tally) seatAct(s *session, seat int, origin Origin, body any) *Act {
	return &Act{Type: s.answerType(seat), Actor: s.seats[seat].JurorID, Previous: s.digest, Saw: slices.Clone(s.saw),
		Position: t.after(s.digest, s.saw), Request: s.Requests[seat].RequestDigest, Origin: origin, Body: body}
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
	request := s.Request(s.seats[a.seat], t.material, s.saw)
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
	request := s.Request(s.seats[seat], t.material, s.saw)
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
	s, who := t.last(), a.who()
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

// who is the juror whose answer or absence an act is.
func (a *Act) who() string {
	if absent, is := a.Body.(*Absent); is {
		return absent.JurorID
	}
	return a.Actor
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

func (t *Tally) hear(s *session, seat int, a *Act) {
	switch place := s.places[seat]; body := a.Body.(type) {
	case *Evaluation:
		t.standing[place] = afterHearing(s, t.standing[place], body)
		t.abstains[place] = t.standing[place] == nil
	case *Statement:
		if body.UpdatedEvaluation != nil {
			t.standing[place], t.abstains[place] = body.UpdatedEvaluation, false
		}
	}
	s.answers[seat] = a
	t.count(a)
}
