package jury

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"jurat/evidence"
)

// A Deliberation is a trial before the jury.
type Deliberation struct {
	Settings   Settings
	Jurors     []Juror         // one per seat, in the order of the seats
	Judge      Judge           // there exactly when the method is FinalJudge
	Material   []byte          // the evidence, as canonical JSON
	Submission evidence.Digest // of the act that submitted it: it is recorded already, and has position 1
	Recorder   Recorder        // makes each act durable before the next thing happens
	Recorded   []Act           // acts of this trial from a run that stopped, in the order of the log; nil: it is new
}

// Run conducts the trial, or goes on with it from what is recorded, and returns what it came to. A seat whose act is
// recorded is not asked again.
//
// If ctx ends, Run returns its error at once, without waiting for jurors who do not heed it, and records nothing more:
// that a juror was interrupted so is no absence. If the recorder fails, everybody is interrupted, and Run returns the
// recorder's error when they have stopped or ctx ends. Run sets no deadline: a juror who must have one has its own.
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
	for _, a := range d.Recorded {
		if err := t.Apply(a); err != nil {
			return nil, fmt.Errorf("going on with a trial: %w", err)
		}
	}
	return t, nil
}

func (d *Deliberation) check() error {
	if err := d.Settings.Validate(); err != nil {
		return err
	}
	if len(d.Jurors) != len(d.Settings.Seats) {
		return wrong("jurors", "%d, for %d seats", len(d.Jurors), len(d.Settings.Seats))
	}
	for i, juror := range d.Jurors {
		if juror == nil {
			return wrong(fmt.Sprintf("jurors[%d]", i), "missing")
		}
	}
	if (d.Judge != nil) != (d.Settings.Judge != nil) {
		return wrong("judge", "there must be one exactly when the method is %s", FinalJudge)
	}
	if d.Recorder == nil {
		return wrong("recorder", "missing")
	}
	if d.Submission.IsZero() {
		return wrong("submission", "missing")
	}
	if form, err := evidence.Canonical(d.Material); err != nil || !bytes.Equal(form, d.Material) {
		return wrong("material", "not canonical JSON")
	}
	return nil
}

// record makes an act happen: durable first, then counted. After a cancellation nothing happens any more: what a juror
// answered then may be owed to the interruption.
func (d *Deliberation) record(ctx context.Context, t *Tally, a *Act) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	digest, err := d.Recorder.Record(ctx, *a)
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

// ask asks everybody who still has to answer, all at the same time, and records each answer when it arrives.
func (d *Deliberation) ask(ctx context.Context, t *Tally) error {
	s := t.last()
	waiting := s.waiting()
	briefs := make([]Brief, len(waiting))
	for i, seat := range waiting {
		var err error
		if briefs[i], err = t.brief(s, seat, d.Material); err != nil {
			return err
		}
	}
	asking, interrupt := context.WithCancel(ctx)
	defer interrupt()
	answers := make(chan answer, len(waiting)) // with room for all, so that a late answer does not block
	for i, seat := range waiting {
		go d.call(asking, seat, briefs[i], answers)
	}
	for left := len(waiting) - 1; left >= 0; left-- {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case a := <-answers:
			if err := d.record(ctx, t, t.answerAct(s, a)); err != nil {
				interrupt()
				await(ctx, answers, left)
				return err
			}
		}
	}
	return nil
}

// await waits until that many jurors have stopped.
func await(ctx context.Context, answers <-chan answer, left int) {
	for ; left > 0; left-- {
		select {
		case <-ctx.Done():
			return
		case <-answers:
		}
	}
}

// call asks one seat. However the juror's code ends, there is an answer.
func (d *Deliberation) call(ctx context.Context, seat int, b Brief, answers chan<- answer) {
	a := answer{seat: seat, err: errors.New("ended without an answer")}
	defer func() {
		if p := recover(); p != nil {
			a = answer{seat: seat, err: fmt.Errorf("panicked: %v", p)}
		}
		answers <- a
	}()
	got := answer{seat: seat}
	switch b.Phase {
	case Initial:
		got.opinion, got.origin, got.err = d.Jurors[seat].Evaluate(ctx, b)
	case Discussion:
		got.speech, got.origin, got.err = d.Jurors[seat].Discuss(ctx, b)
	case Judging:
		got.opinion, got.origin, got.err = d.Judge.Judge(ctx, b)
	}
	a = got
}
