// Package trial takes a case through the jury and the ledger to a verdict.
//
// Every act is sealed with its actor's key, in one chain, before it counts. Everything that a person sees of a trial
// (events, result, case file) is derived from the sealed records alone, so these cannot disagree.
//
// # The clerk seals one act at a time within a trial
//
// Jurors answer in parallel. The clerk seals their acts in the order of arrival, one after the other. So the order of
// events is the order of the log, during the trial and after a reload.
//
// # A trial stops when no juror is at work
//
// After a request to adjourn, the clerk opens no further phase or round. Jurors that were asked before still answer
// and are recorded, so no paid answer is lost. Only answers that take longer than a grace period are interrupted.
//
// # An act has one place in the log
//
// Its record id is derived from its trial, its position and its seat, and the log refuses a repeated id. Two
// processes may both believe that they conduct a trial, for example after one was suspended longer than its lock
// lasted. Then neither can repeat an act: the second process gets ErrMoved and stops. This holds even if locks and
// jobs fail.
//
// # A trial continues from its records
//
// There is no other state. After a crash, Resume replays the recorded acts by the rules that also verify them, and
// repeats none of them. The opening names the jurors that were asked, so it shows which answers were lost; the
// jurors of these are asked again. The settings must be those of the opening, because the jury was told them. A process that conducts a trial holds a lock
// of the operating system (`claims/`), or of a database session that machines share; the lock ends with the process.
// Without it, two processes could both pay for answers, and seal two acts for one place.
package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"jurat/evidence"
	"jurat/internal/juror"
	"jurat/internal/ledger"
	"jurat/internal/lock"
	"jurat/internal/subject"
	"jurat/jury"
)

// Config holds what a trial needs.
type Config struct {
	Ledger   *ledger.Ledger
	Keys     ledger.Keys
	Settings jury.Settings
	Jurors   []jury.Juror // one for each seat of Settings, in order
	Judge    jury.Juror   // nil unless the method is final_judge

	// ID is the trial's id without its prefix, and the id of the submission's record. The log refuses a repeated
	// record id, so a second submission with the same ID gives ledger.ErrDuplicate. "": a new one.
	ID string

	Submitter string           // the name that the submission is sealed under; "": "submitter"
	Clerk     string           // the name that the trial's acts are sealed under; "": "clerk"
	Now       func() time.Time // nil: time.Now
	Random    io.Reader        // source of the trial's id; nil: crypto/rand

	// Locks keep other processes from acting in a trial while this one conducts it. Run and Resume fail while another
	// process holds the trial's lock, and end if it is lost. nil: only this process knows the trial.
	Locks lock.Locks

	// If Adjourn is closed, the clerk asks no further juror. The trial ends with ErrAdjourned after the answers that
	// are under way, and Resume continues it. nil: never.
	Adjourn <-chan struct{}

	// OnEvent receives each event after its act is sealed, in the order of the log, one at a time. nil: no listener.
	OnEvent func(Event)
}

// A Trial is the result and the records of a trial.
type Trial struct {
	ID      string // the chain_id of its records
	Result  *jury.Result
	Records []*evidence.Record // in log order
}

// complete sets the defaults.
func (c Config) complete() Config {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Submitter == "" {
		c.Submitter = "submitter"
	}
	if c.Clerk == "" {
		c.Clerk = "clerk"
	}
	if c.Locks == nil {
		c.Locks = lock.Alone{}
	}
	return c
}

// Submit seals a case and does not begin its trial: Reopen and Resume do that. It returns the trial's id also with an
// error of sealing.
func Submit(ctx context.Context, config Config, on *subject.Case) (id string, err error) {
	c, ctx, release, err := begin(ctx, config, on)
	if err != nil {
		return "", err
	}
	defer release()
	if _, err := c.submit(ctx); err != nil {
		return c.chain, fmt.Errorf("trial %s: %w", c.chain, because(ctx, err))
	}
	return c.chain, nil
}

// Run tries a case. If it fails or is cancelled, the sealed acts stay sealed. It then returns, with the error, a
// Trial with these records and no result. Reopen and Resume can continue it.
func Run(ctx context.Context, config Config, on *subject.Case) (*Trial, error) {
	c, ctx, release, err := begin(ctx, config, on)
	if err != nil {
		return nil, err
	}
	defer release()
	submission, err := c.submit(ctx)
	if err != nil {
		return c.left(), fmt.Errorf("trial %s: %w", c.chain, because(ctx, err))
	}
	return c.hold(ctx, submission, nil)
}

// begin gives a trial its id, its clerk, and takes its lock.
func begin(ctx context.Context, config Config, on *subject.Case) (c *clerk, held context.Context, release func(), err error) {
	config = config.complete()
	if err := config.Settings.Validate(); err != nil {
		return nil, nil, nil, fmt.Errorf("opening trial: %w", err)
	}
	id := config.ID
	if id == "" {
		if id, err = evidence.NewRecordID(config.Now(), config.Random); err != nil {
			return nil, nil, nil, fmt.Errorf("opening trial: %w", err)
		}
	}
	c = newClerk(config, evidence.TrialPrefix+id, on)
	if held, release, err = config.Locks.Lock(ctx, c.chain); err != nil {
		return nil, nil, nil, fmt.Errorf("opening trial: %w", err)
	}
	return c, held, release, nil
}

// hold lets the jury deliberate on the case, from the beginning or after the recorded acts.
func (c *clerk) hold(ctx context.Context, submission evidence.Digest, recorded []jury.Act) (*Trial, error) {
	deliberation := &jury.Deliberation{Settings: c.config.Settings, Jurors: c.config.Jurors, Judge: c.config.Judge,
		Material: c.subject.Material(), Submission: submission, Recorder: c, Recorded: recorded}
	result, err := deliberation.Run(ctx)
	trial := c.left()
	if err != nil {
		return trial, fmt.Errorf("trial %s: %w", c.chain, because(ctx, err))
	}
	result.SameVendor = juror.SameVendor(&c.config.Settings, c.subject)
	trial.Result = result
	return trial, nil
}

// because adds the cause of a context's end to an error, such as a lost lock.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// left returns the trial as far as it got. A juror that ignores its context may still run, but the clerk seals no act
// after this.
func (c *clerk) left() *Trial {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &Trial{ID: c.chain, Records: c.records}
}

// Acts returns a trial's chain without people's decisions on it, which are not acts of the trial.
func Acts(chain []*evidence.Record) []*evidence.Record {
	var acts []*evidence.Record
	for _, r := range chain {
		if r.Payload.ActionType.InTrial() {
			acts = append(acts, r)
		}
	}
	return acts
}
