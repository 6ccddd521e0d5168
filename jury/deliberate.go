//go:build !js

package jury

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// A Deliberation is a trial before the jury.
type Deliberation struct {
	Settings   Settings
	Jurors     []Juror         // one per seat, in the order of the seats
	Judge      Juror           // required exactly when the method is FinalJudge
	Material   []byte          // the evidence, as canonical JSON
	Submission evidence.Digest // the act that submitted it: already recorded, at position 1
	Clerk      Clerk           // makes each act durable before the trial goes on
	Before     []Act           // acts of this trial from an interrupted run, in the order of the log; nil: a new trial
}

// Run conducts the trial, or continues it from the recorded acts, and returns the result. It does not ask a seat
// again whose act is recorded.
//
// If ctx ends, Run returns its error at once, without waiting for jurors that ignore it, and records nothing more: an
// interrupted juror is not absent. If the recorder fails, Run interrupts all jurors, and returns the recorder's error
// when they have stopped or ctx ends. Run sets no deadline: a juror that needs one sets its own. A *FieldError says
// what is wrong with the Deliberation, a *Discrepancy what is wrong with the recorded acts.
func (d *Deliberation) Run(ctx context.Context) (*Result, error) {
	t, err := d.begin()
	if err != nil {
		return nil, err
	}
	for !t.closed {
		clerk, err := t.next()
		if err != nil {
			return nil, err
		}
		if clerk != nil {
			err = d.record(ctx, t, clerk)
		} else {
			err = d.ask(ctx, t)
		}
		if err != nil {
			return nil, err
		}
	}
	return new(t.result()), nil
}

func (d *Deliberation) begin() (*Tally, error) {
	if err := d.check(); err != nil {
		return nil, fmt.Errorf("deliberation: %w", err)
	}
	t := NewTally(evidence.DigestOf(d.Material))
	t.settings = new(d.Settings.normal())
	t.submit(d.Submission)
	for _, a := range d.Before {
		if err := t.Apply(a); err != nil {
			return nil, fmt.Errorf("resuming the trial: %w", err)
		}
	}
	return t, nil
}

func (d *Deliberation) check() error {
	if err := d.Settings.Validate(); err != nil {
		return err
	}
	switch empty := slices.Index(d.Jurors, nil); {
	case len(d.Jurors) != len(d.Settings.Seats):
		return wrong("jurors", "%d, for %d seats", len(d.Jurors), len(d.Settings.Seats))
	case empty >= 0:
		return wrong(fmt.Sprintf("jurors[%d]", empty), "missing")
	case (d.Judge != nil) != (d.Settings.Judge != nil):
		return wrong("judge", "must be there exactly when the method is %s", FinalJudge)
	case d.Clerk == nil:
		return wrong("clerk", "missing")
	case d.Submission.IsZero():
		return wrong("submission", "missing")
	}
	if form, err := evidence.Canonical(d.Material); err != nil || !bytes.Equal(form, d.Material) {
		return wrong("material", "not canonical JSON")
	}
	return nil
}

// record makes an act durable, then counts it. After a cancellation it records nothing, because a juror's answer may
// then be a result of the interruption.
func (d *Deliberation) record(ctx context.Context, t *Tally, a *Act) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	digest, err := d.Clerk.Record(ctx, *a)
	if err != nil {
		if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
			return ended
		}
		return fmt.Errorf("recording %s: %w", a.Type, err)
	}
	done := *a
	done.Digest = digest
	return t.Apply(done)
}

// ask asks all seats that have not answered, all at the same time, and records each answer when it arrives.
func (d *Deliberation) ask(ctx context.Context, t *Tally) error {
	s := t.last()
	waiting := s.waiting()
	briefs := make([]Brief, len(waiting))
	for i, seat := range waiting {
		briefs[i] = t.brief(s, seat, d.Material)
	}
	asking, interrupt := context.WithCancel(ctx)
	defer interrupt()
	answers := make(chan answer, len(waiting)) // with room for all, so that a late answer does not block
	for i, seat := range waiting {
		juror := d.Judge
		if place := s.places[seat]; place != judgePlace {
			juror = d.Jurors[place]
		}
		go call(asking, juror, seat, briefs[i], answers)
	}
	for left := len(waiting) - 1; left >= 0; left-- {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case a := <-answers:
			if err := d.record(ctx, t, t.answerAct(s, a)); err != nil {
				interrupt()
				for ; left > 0; left-- { // until the others have stopped, or ctx ends
					select {
					case <-ctx.Done():
						return err
					case <-answers:
					}
				}
				return err
			}
		}
	}
	return nil
}

// call asks one seat. It sends an answer even if the juror's code panics or exits.
func call(ctx context.Context, juror Juror, seat int, b Brief, answers chan<- answer) {
	a := answer{seat: seat, err: errors.New("ended without an answer")}
	defer func() {
		if p := recover(); p != nil {
			a = answer{seat: seat, err: fmt.Errorf("panicked: %v", p)}
		}
		answers <- a
	}()
	given, err := juror.Answer(ctx, b)
	a = answer{seat, given, err}
}

// Effort says how an answer, or its absence, came about: every attempt, in order. It is in the metadata of the act,
// and no rule depends on it.
type Effort struct {
	Attempts []Attempt `json:"attempts"`
	Peers    []string  `json:"peers,omitempty"` // the other jurors, in the order in which they were shown
}

// An Attempt is one call to the juror of a seat.
type Attempt struct {
	Model        string `json:"model"`                // as the provider reported it; "" if it reported none
	Version      string `json:"version,omitzero"`     // the provider's further description of what answered, such as a fingerprint; "" if none
	FinishReason string `json:"finishReason"`         // as the provider reported it; "" if it reported none
	Problem      string `json:"problem,omitzero"`     // why the attempt does not count, or counts only because no later one does; "" if nothing was wrong
	Answer       string `json:"answer,omitzero"`      // after a problem: what came back, perhaps shortened
	Retries      int    `json:"retries,omitzero"`     // failed requests before this one, because of rate limits or outages
	InputTokens  int64  `json:"inputTokens,omitzero"` // as the provider counted them
	OutputTokens int64  `json:"outputTokens,omitzero"`
	Cost         int64  `json:"costMicroUSD,omitzero"` // millionths of a US dollar, by the operator's price table; 0 also if it is unknown
	Unpriced     bool   `json:"costUnknown,omitzero"`  // no price or no count of tokens is known
	Latency      int64  `json:"latencyMillis"`         // milliseconds from the question to the answer, including waits for the provider's limits
}

// A Bill adds up attempts.
type Bill struct {
	Calls, Problems, Unpriced                int
	InputTokens, OutputTokens, Cost, Latency int64
}

// Add adds the attempts of an act.
func (b *Bill) Add(e Effort) {
	for _, a := range e.Attempts {
		b.Calls++
		if a.Problem != "" {
			b.Problems++
		}
		if a.Unpriced {
			b.Unpriced++
		}
		b.InputTokens, b.OutputTokens, b.Cost, b.Latency = b.InputTokens+a.InputTokens, b.OutputTokens+a.OutputTokens, b.Cost+a.Cost, b.Latency+a.Latency
	}
}

// Encode returns the effort as the metadata of an act. It refuses text that is not valid UTF-8.
func (e Effort) Encode() (jsontext.Value, error) {
	if e.Attempts == nil {
		e.Attempts = []Attempt{}
	}
	doc, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encoding effort: %w", err)
	}
	return doc, nil
}

// ReadEffort reads the metadata of an act. It returns an empty Effort for acts without metadata, such as those of
// rules. It refuses metadata that does not decode into an Effort.
func ReadEffort(metadata jsontext.Value) (Effort, error) {
	var e Effort
	if metadata == nil {
		return e, nil
	}
	if err := json.Unmarshal(metadata, &e); err != nil {
		return Effort{}, fmt.Errorf("reading effort: %w", evidence.Steady(err))
	}
	return e, nil
}

// BriefOf returns what a seat was given before an answer or absence, from the evidence and the acts of the trial.
// acts must contain all acts before that answer, and they must be valid. With the brief and the seat's template, a
// caller can rebuild the prompt. It returns a *Discrepancy if an act breaks a rule or its juror was not asked, and an
// error if there is no such act.
func BriefOf(material []byte, acts []Act, answer evidence.Digest) (Brief, error) {
	t := NewTally(evidence.DigestOf(material))
	for _, a := range acts {
		if a.Digest == answer {
			s, who := t.last(), a.who()
			if s == nil || s.seatOf(who) < 0 {
				return Brief{}, a.breaks(RuleSequence, "%q was not asked", abbreviate(who))
			}
			return t.brief(s, s.seatOf(who), material), nil
		}
		if err := t.Apply(a); err != nil {
			return Brief{}, err
		}
	}
	return Brief{}, fmt.Errorf("the trial has no act %s", answer)
}
