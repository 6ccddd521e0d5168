package jury

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

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
	if !a.hasBody() {
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

// hasBody reports whether the act has a body of its type.
func (a *Act) hasBody() bool {
	want := newBody(a.Type)
	body := reflect.ValueOf(a.Body)
	return want != nil && body.IsValid() && body.Type() == reflect.TypeOf(want) && !body.IsNil()
}

// applyClerk compares an act of the clerk with the act that must come now.
func (t *Tally) applyClerk(a *Act) error {
	undo, err := t.begin(a)
	if err != nil {
		return err
	}
	want, err := t.expected(a)
	if err == nil {
		err = want.match(a)
	}
	if err == nil {
		err = a.sameBody(want.Body)
	}
	if err != nil {
		undo()
		return err
	}
	want.Digest = a.Digest
	t.advance(want)
	return nil
}

// begin takes from the first opening the rules, the settings, and the submission if it is unknown.
func (t *Tally) begin(a *Act) (undo func(), err error) {
	before := *t
	undo = func() {
		if before.submission.IsZero() {
			delete(t.positions, t.submission)
		}
		t.submission, t.settings = before.submission, before.settings
	}
	o, isOpening := a.Body.(*Opening)
	if len(t.sessions) > 0 {
		return undo, nil
	}
	if !isOpening {
		return undo, a.breaks(RuleSequence, "a trial begins with the opening of phase 1")
	}
	if t.settings == nil {
		if err := o.Settings.Validate(); err != nil {
			return undo, a.breaks(RuleSettings, "%v", err)
		}
		t.settings = new(o.Settings.normal())
	}
	if t.submission.IsZero() {
		if a.Previous.IsZero() {
			return undo, a.breaks(RulePrevious, "it does not name the submission")
		}
		t.submit(a.Previous)
	}
	return undo, nil
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
	if o, ok := a.Body.(*Opening); ok && t.material.IsZero() {
		want.Body.(*Opening).trust(o.Requests)
	}
	return want, nil
}

// trust takes over announced digests that cannot be rebuilt.
func (o *Opening) trust(announced []SeatAsked) {
	for i := range min(len(o.Requests), len(announced)) {
		o.Requests[i].RequestDigest = announced[i].RequestDigest
	}
}

// named describes an act of the clerk in words.
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

// advance updates the trial with an act of the clerk that was checked.
func (t *Tally) advance(a *Act) {
	switch body := a.Body.(type) {
	case *Opening:
		t.open(body, a.Digest)
	case *Check, *Judgment:
		t.last().outcome = a
	case *Closing:
		t.closed = true
	}
	t.count(a)
}

func (t *Tally) open(o *Opening, digest evidence.Digest) {
	seats := t.panel(o.Phase)
	if t.standing == nil {
		t.standing = make([]*Evaluation, len(t.settings.Seats))
		t.abstains = make([]bool, len(t.settings.Seats))
	}
	t.sessions = append(t.sessions, &session{Opening: *o, digest: digest, seats: seats, places: t.settings.placesOf(seats), saw: t.seen(o.Phase),
		before: standings{slices.Clone(t.standing), slices.Clone(t.abstains)}, answers: make([]*Act, len(seats))})
}

func (t *Tally) count(a *Act) {
	t.positions[a.Digest] = a.Position
	t.acts++
}
