package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/subject"
	"jurat/jury"
)

var (
	// ErrSettings says that the given settings differ from those with which the trial was opened.
	ErrSettings = errors.New("the trial was opened with other settings")
	// ErrAdjourned says that a trial stopped between two phases or rounds, because Config.Adjourn was closed.
	ErrAdjourned = errors.New("the trial is adjourned")
	// ErrUnreadable says that the log's records of a trial are not a valid trial, or contradict each other.
	ErrUnreadable = errors.New("the log's records of the trial cannot be continued")
	// ErrMoved says that another process has continued the trial.
	ErrMoved = errors.New("another process has continued the trial meanwhile")
)

// A Reopened trial is a trial as read from the log.
type Reopened struct {
	*View
	Case    *subject.Case
	State   *jury.Replayed
	Records []*evidence.Record // its acts, without people's decisions on it
}

// Reopen reads a trial from the log, as far as it got. It returns ErrUnreadable if the acts contradict each other or
// do not begin with a readable submission. The caller must check the signatures.
func Reopen(ctx context.Context, l *ledger.Ledger, id string) (*Reopened, error) {
	chain, err := l.Chain(ctx, id)
	if err != nil {
		return nil, err
	}
	r := &Reopened{Records: Acts(chain)}
	if err := r.read(chain); err != nil {
		return nil, fmt.Errorf("reading trial %s: %w: %w", id, ErrUnreadable, err)
	}
	return r, nil
}

func (r *Reopened) read(chain []*evidence.Record) (err error) {
	if len(r.Records) == 0 {
		return errors.New("it has no act")
	}
	submission := r.Records[0].Payload
	if submission.ActionType != evidence.Submission {
		return fmt.Errorf("it begins with %s and not with a submission", submission.ActionType)
	}
	if r.Case, err = subject.Parse(submission.Response); err != nil {
		return err
	}
	if r.Case.Digest() != submission.Case {
		return errors.New("its evidence is not the case that it names")
	}
	r.View = NewView(nil)
	r.tally = jury.NewTally(r.Case.Digest())
	if err := r.addAll(chain); err != nil {
		return err
	}
	r.State = r.View.State()
	return r.broken
}

// Resume continues a trial from its records, with the settings with which it was opened. If the trial is over, it
// only returns it. No recorded act happens again, so no recorded answer is asked for again. The listener first gets
// the events of the recorded acts. The submitter and the clerk must be the same as at the beginning. Resume returns
// ErrSettings, ErrMoved or ErrAdjourned, or the error of the jury or the ledger.
func Resume(ctx context.Context, config Config, r *Reopened) (*Trial, error) {
	config = config.complete()
	config.Settings = asOpened(config.Settings, r.State.Settings)
	if err := sameSettings(&config.Settings, r.State.Settings); err != nil {
		return nil, fmt.Errorf("trial %s: %w", r.ID, err)
	}
	ctx, release, err := config.Locks.Lock(ctx, r.ID)
	if err != nil {
		return nil, fmt.Errorf("trial %s: %w", r.ID, err)
	}
	defer release()
	// The previous holder of the lock may have added acts since the records were read.
	now, err := config.Ledger.Chain(ctx, r.ID)
	if err != nil {
		return nil, fmt.Errorf("trial %s: %w", r.ID, because(ctx, err))
	}
	if len(Acts(now)) != len(r.Records) {
		return nil, fmt.Errorf("trial %s: %w", r.ID, ErrMoved)
	}
	c := newClerk(config, r.ID, r.Case)
	if err := c.remember(r.Records); err != nil {
		return nil, fmt.Errorf("trial %s: %w", r.ID, err)
	}
	return c.hold(ctx, r.Records[0].Digest, r.acts)
}

// asOpened gives seats what may have changed since the opening without another panel. A later version of the program has other
// rules, but no other program could continue the trial: seats of rules take the rules' digest from the opening, which keeps it, and each
// answer names its rules in its model version. A panel of rules that holds no discussion goes on with a trial that was opened with rounds, by a flag then. A
// model that has ended since was still offered when the trial began.
func asOpened(now jury.Settings, opened *jury.Settings) jury.Settings {
	if opened == nil {
		return now
	}
	now.Seats = slices.Clone(now.Seats)
	for i := range now.Seats[:min(len(now.Seats), len(opened.Seats))] {
		takeOpened(&now.Seats[i], opened.Seats[i])
	}
	if now.Judge != nil && opened.Judge != nil {
		judge := *now.Judge
		takeOpened(&judge, *opened.Judge)
		now.Judge = &judge
	}
	if now.MaxRounds == 0 && onlyRules(now.Seats) && onlyRules(opened.Seats) {
		now.MaxRounds = opened.MaxRounds
	}
	return now
}

func onlyRules(seats []jury.Seat) bool {
	return !slices.ContainsFunc(seats, func(s jury.Seat) bool { return s.Provider != jury.Offline })
}

func takeOpened(now *jury.Seat, opened jury.Seat) {
	if now.Provider == jury.Offline && opened.Provider == jury.Offline {
		now.Template = opened.Template
	}
	if now.Model == opened.Model {
		now.Ended = opened.Ended
	}
}

// sameSettings refuses settings that are not those of the opening; a trial that was never opened takes any.
func sameSettings(now, opened *jury.Settings) error {
	if err := now.Validate(); err != nil {
		return err
	}
	if opened == nil {
		return nil
	}
	how, err := now.Against(opened)
	if err != nil {
		return err
	}
	if how != "" {
		return fmt.Errorf("%w: %s", ErrSettings, how)
	}
	return nil
}

// remember takes over what an earlier run has recorded.
func (c *clerk) remember(records []*evidence.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range records {
		c.records = append(c.records, r)
		if at := r.Payload.Time(); at.After(c.last) {
			c.last = at
		}
		if err := c.tell(r); err != nil {
			return err
		}
	}
	return nil
}
