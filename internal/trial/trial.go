// Package trial takes a case through the jury and the ledger to a verdict.
//
// Every act is sealed with its actor's key, in one chain, before it counts. What a person sees of a trial (events,
// result, case file) is projected from the sealed records and from nothing else, so that these cannot disagree.
//
// # The clerk seals one act at a time within a trial
//
// Jurors answer in parallel; their acts are sealed in the order of arrival, each whole before the next. So the order of events is
// the order of the log, live and after a reload.
//
// # A trial stops where nobody is being asked
//
// Told to adjourn, the clerk opens no further phase or round; whoever was asked before still answers and is recorded, so that no
// answer is paid for and lost. Only what takes longer than a grace is interrupted.
//
// # An act has one place in the log
//
// Its record id is made of its trial, its position and its seat, and the log takes no id twice. So of two who both believe that they
// conduct a trial, such as one who stood still longer than his claim lasted, none can add an act that is there already: whoever
// comes second learns that somebody has gone on, and stops. Neither claims nor jobs have to be right for that.
//
// # A trial goes on from its records
//
// There is no other state: what a crash leaves in the log is replayed, by the rules by which it would be verified, and what is
// recorded does not happen again. The opening is the note of intent: it says who was asked, so it is known which answers were lost.
// Settings must be those of the opening, since they are what the jury was told. While a process is at work on a trial it holds a
// lock of the operating system (`claims/`), or of a session of the database that machines share, which ends with it: two who go on
// with one trial would both pay, and would seal two acts where the trial has place for one.
package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/subject"
	"jurat/jury"
)

// Config is what a trial needs.
type Config struct {
	Ledger   *ledger.Ledger
	Keys     ledger.Keys
	Settings jury.Settings
	Jurors   []jury.Juror // one for each seat of Settings, in their order
	Judge    jury.Judge   // nil unless the method is final_judge

	// ID is the trial's, without its prefix, and that of the submission's record. Since the log takes no record id twice, submitting
	// again with one gives ledger.ErrDuplicate. "": a new one.
	ID string

	Submitter string           // who puts the agent before the jury; "": "submitter"
	Clerk     string           // who conducts the trial; "": "clerk"
	Now       func() time.Time // nil: time.Now
	Random    io.Reader        // of the trial's id; nil: crypto/rand

	// Claim keeps everybody else from acting in a trial while it is under way, and fails while somebody else has it. The trial
	// is conducted in the context that it returns, which ends when the claim is lost. nil: only this process can know the trial.
	Claim func(ctx context.Context, id string) (held context.Context, release func(), err error)

	// Adjourn, once it is closed, lets nobody be asked any more: the trial ends with ErrAdjourned as soon as those have
	// answered who were asked before, and Resume goes on with it. nil: it is never adjourned.
	Adjourn <-chan struct{}

	// OnEvent hears each event once its act is sealed, in the order of the log, one at a time. nil: nobody listens.
	OnEvent func(Event)
}

// A Trial is what a trial left behind.
type Trial struct {
	ID      string // the chain_id of its records
	Result  *jury.Result
	Records []*evidence.Record // in log order
}

// complete fills in what is left open.
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
	if c.Claim == nil {
		c.Claim = func(ctx context.Context, _ string) (context.Context, func(), error) { return ctx, func() {}, nil }
	}
	return c
}

// Submit seals a case and leaves it there: Reopen and Resume hold its trial. The id is that of the trial, and comes with an error of
// sealing, too.
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

// Run tries a case. When it fails or is cancelled, what was sealed until then stays sealed, and the Trial that is
// returned with the error has its records and no result: Reopen and Resume go on with it.
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

// begin gives a trial its id, its clerk, and the clerk its claim.
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
	if held, release, err = config.Claim(ctx, c.chain); err != nil {
		return nil, nil, nil, fmt.Errorf("opening trial: %w", err)
	}
	return c, held, release, nil
}

// hold lets the jury deliberate on the case, or go on with it.
func (c *clerk) hold(ctx context.Context, submission evidence.Digest, recorded []jury.Act) (*Trial, error) {
	deliberation := &jury.Deliberation{Settings: c.config.Settings, Jurors: c.config.Jurors, Judge: c.config.Judge,
		Material: c.subject.Material(), Submission: submission, Recorder: c, Recorded: recorded}
	result, err := deliberation.Run(ctx)
	trial := c.left()
	if err != nil {
		return trial, fmt.Errorf("trial %s: %w", c.chain, because(ctx, err))
	}
	trial.Result = result
	return trial, nil
}

// because says why a context has ended with which something ended: that the claim was lost, perhaps.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// left is what there is of the trial. A juror who does not heed its context may still run, but no act is sealed any more.
func (c *clerk) left() *Trial {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &Trial{ID: c.chain, Records: c.records}
}

// Acts leaves out of a trial's chain what people decided on it, which is no act of the trial.
func Acts(chain []*evidence.Record) []*evidence.Record {
	var acts []*evidence.Record
	for _, r := range chain {
		if r.Payload.ActionType.InTrial() {
			acts = append(acts, r)
		}
	}
	return acts
}
