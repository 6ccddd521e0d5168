// Package continuous tries records of agents without being asked, and tells people when an agent's reputation passes a threshold.
//
// # What is tried follows from the log
//
// A record is owed a trial if a witness's draw took it (package reputation/draw), or if the installation's own sampling did, which nobody
// can predict without its secret. Both follow from the log, so that every process of an installation finds the same debts after every
// start, and none is forgotten. The trial of a record has the id that everybody computes from the record ([draw.TrialID]): two processes
// cannot try one record twice, and a trial that a person began counts. Of the processes, one at a time submits and tells; it holds a lock.
//
// # What recorders saw is tried if the operator says so
//
// A recorder's record is the act of the agent that it saw, and its judgment counts for that agent. But its texts are sealed apart, so that they can be erased, and a jury
// that does not see them judges nothing. What stands in the evidence of a trial cannot be erased any more, so no server decides that by itself:
// config.Continuous.Recorded does. Records are shown in the order of their chain, with those from which they copy.
//
// # The budget is counted in the log
//
// How many trials began within 24 hours, and what they cost, is read from the trials themselves. A restart does not renew the budget. A
// trial that is not over counts with the most that it may cost, so that trials under way cannot exceed the budget together. What the budget
// does not allow stays a debt, and is shown as one.
//
// # A crossing is an act of the operator
//
// When an agent's bounds pass a threshold, an act says so before anybody is told (operator.ReputationEventBody), and another says who was
// told. These acts are the outbox: after a crash the next process reads from the log who is still to be told. A receiver can get a message
// twice, always with the same id. It gets none only if an act says why, or if no process ran for a week.
//
// # An arrival is a record of the trial
//
// A case arrives before people with the verdict that ends its trial undecided, or with a decision that leaves it open. That record is in
// the log already, so no act reports the arrival: whom it was told to follows the same way. Of a case that is decided before it was
// told, nobody is told any more.
package continuous

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/config"
	"jurat/internal/ledger"
	"jurat/internal/lock"
	"jurat/internal/schedule"
	"jurat/internal/webhook"
	"jurat/reputation"
	"jurat/verify/trust"
)

// Submitter is the name under which records are put before the jury.
const Submitter = "continuous-trial"

// Config holds what a Service needs.
type Config struct {
	Settings *config.Continuous
	Ledger   *ledger.Ledger
	Keys     ledger.Keys
	// Trust returns what the installation trusts. It is a function because that changes while the program runs.
	Trust     func(context.Context) (*trust.Trust, error)
	Scheduler *schedule.Scheduler
	// View returns what the log shows of an agent. It returns conduct.ErrUnknown, conduct.ErrTooMany and reputation.ErrIdentity, wrapped, for
	// agents of which it shows nothing. It is a function so that its results are kept for other callers.
	View  func(ctx context.Context, agent string, by *trust.Trust) (*reputation.View, error)
	Locks lock.Locks
	// Disclose adds to a record what was sealed apart, as far as it is not erased. Required if acts that recorders saw are tried.
	Disclose  func(ctx context.Context, r *evidence.Record) (*evidence.Record, error)
	Receivers map[string]*webhook.Receiver // by the ids of the settings' webhooks
	Ceiling   int64                        // the most that one trial may cost, in millionths of a US dollar; 0: no limit, or rules sit
	Secret    []byte                       // of the installation: what is sampled follows from it
	URL       string                       // of the server: messages link to its pages; "": no links
	Log       *slog.Logger                 // required
	Now       func() time.Time             // nil: time.Now
	Every     time.Duration                // between two rounds; 0: two seconds
}

// A Service tries and tells, while Run runs. Its other methods are safe for concurrent use.
type Service struct {
	config Config
	picked *selection // of trying
	spent  map[string]int64
	told   *telling

	mu    sync.Mutex // guards shown
	shown shown
}

// New makes a Service. Its error says what in Config contradicts itself.
func New(c Config) (*Service, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Every == 0 {
		c.Every = 2 * time.Second
	}
	if c.Settings.MicroDollars() > 0 && c.Ceiling == 0 {
		return nil, errors.New("dollars_a_day needs a cost_ceiling, which limits what one trial may cost")
	}
	if most := c.Settings.MicroDollars(); most > 0 && c.Ceiling > most {
		return nil, errors.New("cost_ceiling is more than dollars_a_day, so that no trial could begin")
	}
	if c.Settings.Recorded && c.Disclose == nil {
		return nil, errors.New("recorded: nothing discloses the texts of recorded acts")
	}
	for _, w := range c.Settings.Webhooks {
		if c.Receivers[w.ID] == nil {
			return nil, fmt.Errorf("there is no receiver for webhook %s", w.ID)
		}
	}
	s := &Service{config: c, spent: map[string]int64{}}
	s.picked = &selection{log: c.Ledger, agents: tagged(c.Settings.Agents), drawn: c.Settings.Drawn, sampled: c.Settings.Sampled, recorded: c.Settings.Recorded, secret: c.Secret, now: c.Now}
	s.picked.restart(nil)
	s.told = newTelling(s)
	s.begin()
	return s, nil
}

// Run tries and tells until ctx ends.
func (s *Service) Run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { s.repeat(ctx, "continuous trial", s.try) })
	both.Go(func() { s.repeat(ctx, "telling of thresholds", s.Tell) })
	both.Wait()
}

// Tell looks once for crossings and arrivals, and tells receivers. Run does so again and again. Its errors are those of reading the log, and of
// recording who was told. It must not be called while Run runs.
func (s *Service) Tell(ctx context.Context) error { return s.told.round(ctx) }

// repeat does something again and again. An error is logged when it is new, and shown until the next time succeeds.
func (s *Service) repeat(ctx context.Context, what string, once func(context.Context) error) {
	before := ""
	for {
		err := once(ctx)
		if ctx.Err() != nil {
			return
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != "" && text != before {
			s.config.Log.Error(what+" failed; it is tried again", "error", err)
		}
		before = text
		s.note(func(v *shown) { v.fail(what, text) })
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.config.Every):
		}
	}
}

// alone does something while no other process does it. If one does, it does nothing.
func (s *Service) alone(ctx context.Context, name string, do func(context.Context) error) error {
	held, release, err := s.config.Locks.Lock(ctx, name)
	if errors.Is(err, lock.ErrTaken) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	return do(held)
}

func (s *Service) witnesses(ctx context.Context) ([]*operator.Witness, error) {
	if s.config.Settings.Drawn == 0 {
		return nil, nil
	}
	trusted, err := s.config.Trust(ctx)
	if err != nil {
		return nil, err
	}
	list, err := witnessesOf(trusted.Witnesses)
	if err == nil && len(list) == 0 {
		err = errors.New("this log has no witness, and witnesses draw: 'jurat log witness add URL --key KEY' adds one")
	}
	return list, err
}
