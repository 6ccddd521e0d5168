package jury

import (
	"fmt"

	"jurat/evidence"
)

// A Replayed holds the state of a trial after its acts so far.
type Replayed struct {
	Settings    *Settings // nil before the first opening
	Result      Result    // as far as the acts go: its judgment counts if Judged
	Phase       Phase     // the phase opened last; "" before the first opening
	RoundNumber int       // the round opened last; 0 outside the discussion
	Open        *Round    // the round that has no consensus check yet; nil if there is none
	Waiting     []string  // who was asked and has no act yet, by seat
	Standing    []Vote    // each seat's current position and score; null position: none yet
	Acts        int       // including the submission
	Judged      bool      // the final judgment is there
	Finished    bool      // the closing is there
}

// Replay checks the acts of one trial again, in the order of the log. They may begin with the submission, and may
// stop anywhere. Its error is a *Discrepancy that names the first wrong act. With an error it also returns the trial
// up to that act.
func Replay(acts []Act) (*Replayed, error) { return ReplayOn(evidence.Digest{}, acts) }

// ReplayOn is Replay for a reader who has the digest of the evidence. It also rebuilds the digest of every request.
// Its errors are those of Replay.
func ReplayOn(material evidence.Digest, acts []Act) (*Replayed, error) {
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
	r := &Replayed{Result: t.result(), Waiting: t.Waiting(), Standing: []Vote{}, Acts: t.acts, Finished: t.closed}
	s := t.last()
	if s == nil {
		return r
	}
	r.Settings = clone(t.settings)
	r.Phase, r.RoundNumber = s.Phase, s.RoundNumber
	r.Standing = votesOf(t.settings.Seats, t.now())
	if s.Phase == Discussion && s.outcome == nil {
		r.Open = new(clone(t.round(s)))
	}
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

// BriefOf returns what a seat was given before an answer or absence, from the evidence and the acts of the trial.
// acts must contain all acts before that answer, and they must be valid. With the brief and the seat's template, a
// caller can rebuild the prompt. It returns a *Discrepancy if an act breaks a rule or its juror was not asked, and an
// error if there is no such act.
func BriefOf(material []byte, acts []Act, answer evidence.Digest) (Brief, error) {
	t := NewTally(evidence.DigestOf(material))
	for _, a := range acts {
		if a.Digest == answer {
			return t.briefFor(&a, material)
		}
		if err := t.Apply(a); err != nil {
			return Brief{}, err
		}
	}
	return Brief{}, fmt.Errorf("the trial has no act %s", answer)
}

func (t *Tally) briefFor(a *Act, material []byte) (Brief, error) {
	who := a.Actor
	if absent, ok := a.Body.(*Absent); ok {
		who = absent.JurorID
	}
	s := t.last()
	if s == nil || s.seatOf(who) < 0 {
		return Brief{}, a.breaks(RuleSequence, "%q was not asked", abbreviate(who))
	}
	return t.brief(s, s.seatOf(who), material)
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
