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
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/court/juror"
	"jurat/internal/court/subject"
	"jurat/internal/log/ledger"
	"jurat/internal/log/lock"
	"jurat/jury"
)

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

// A Trial is one trial, from its submission to its verdict: what its acts say, its case, and the acts.
type Trial struct {
	*View
	Case    *subject.Case
	Records []*evidence.Record // its acts in log order, without people's decisions on it
	Result  *jury.Result       // nil: Run and Resume have not brought it to its verdict

	events []Event // of the acts that were read, until a listener is told
}

func (c Config) complete() Config {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Locks == nil {
		c.Locks = lock.Alone{}
	}
	c.Submitter = cmp.Or(c.Submitter, "submitter")
	return c
}

// Wrapped returns the configuration with each juror, and the judge, within another, which is made for the model of the seat.
func (c Config) Wrapped(wrap func(j jury.Juror, model string) jury.Juror) Config {
	c.Jurors = slices.Clone(c.Jurors)
	for i, j := range c.Jurors {
		if j != nil && i < len(c.Settings.Seats) { // otherwise the trial refuses the configuration
			c.Jurors[i] = wrap(j, c.Settings.Seats[i].Model)
		}
	}
	if c.Judge != nil && c.Settings.Judge != nil {
		c.Judge = wrap(c.Judge, c.Settings.Judge.Model)
	}
	return c
}

// Submit seals a case and does not begin its trial: Resume does that. It returns the trial's id also with an error of
// sealing.
func Submit(ctx context.Context, config Config, on *subject.Case) (id string, err error) {
	err = begin(ctx, config, on, func(ctx context.Context, c *clerk) error {
		id = c.trial.ID
		return c.submit(ctx)
	})
	return id, err
}

// Run tries a case. If it fails or is cancelled, the sealed acts stay sealed. It then returns, with the error, a
// Trial with these records and no result. Resume can continue it.
func Run(ctx context.Context, config Config, on *subject.Case) (held *Trial, err error) {
	if err := config.Settings.Validate(); err != nil {
		return nil, fmt.Errorf("opening trial: %w", err)
	}
	err = begin(ctx, config, on, func(ctx context.Context, c *clerk) error {
		err := c.submit(ctx)
		if held = c.left(); err == nil {
			held, err = c.hold(ctx)
		}
		return err
	})
	return held, err
}

// begin gives a trial its id and its clerk, and holds its lock while a function acts for it.
func begin(ctx context.Context, config Config, on *subject.Case, act func(context.Context, *clerk) error) (err error) {
	config = config.complete()
	id := config.ID
	if id == "" {
		if id, err = evidence.NewRecordID(config.Now(), config.Random); err != nil {
			return fmt.Errorf("opening trial: %w", err)
		}
	}
	t := &Trial{View: NewView(nil), Case: on}
	t.ID = evidence.TrialPrefix + id
	ctx, release, err := config.Locks.Lock(ctx, t.ID)
	if err != nil {
		return fmt.Errorf("opening trial: %w", err)
	}
	defer release()
	if err := act(ctx, &clerk{config: config, trial: t}); err != nil {
		return fmt.Errorf("trial %s: %w", t.ID, because(ctx, err))
	}
	return nil
}

// hold lets the jury deliberate on the case, from the beginning or after the recorded acts.
func (c *clerk) hold(ctx context.Context) (*Trial, error) {
	on := c.trial.Case
	config := c.config.Wrapped(func(j jury.Juror, _ string) jury.Juror { return citing{j, on} })
	deliberation := &jury.Deliberation{Settings: config.Settings, Jurors: config.Jurors, Judge: config.Judge,
		Material: on.Material(), Submission: c.trial.Records[0].Digest, Clerk: c, Before: c.trial.acts}
	result, err := deliberation.Run(ctx)
	t := c.left()
	if err == nil {
		result.SameVendor = juror.SameVendor(&config.Settings, on)
		t.Result = result
	}
	return t, err
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
	return c.trial
}

// Acts returns a trial's chain without people's decisions on it, which are not acts of the trial.
func Acts(chain []*evidence.Record) []*evidence.Record {
	return slices.DeleteFunc(slices.Clone(chain), func(r *evidence.Record) bool { return !r.Payload.ActionType.InTrial() })
}

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

// Reopen reads a trial from the log, as far as it got. It returns ErrUnreadable if the acts contradict each other or
// do not begin with a readable submission. The caller must check the signatures.
func Reopen(ctx context.Context, l *ledger.Ledger, id string) (*Trial, error) {
	chain, err := l.Chain(ctx, id)
	if err != nil {
		return nil, err
	}
	t := &Trial{View: NewView(nil), Records: Acts(chain)}
	if err := t.read(chain); err != nil {
		return nil, fmt.Errorf("reading trial %s: %w: %w", id, ErrUnreadable, err)
	}
	return t, nil
}

func (t *Trial) read(chain []*evidence.Record) (err error) {
	if len(t.Records) == 0 {
		return errors.New("it has no act")
	}
	submission := t.Records[0].Payload
	if submission.ActionType != evidence.Submission {
		return fmt.Errorf("it begins with %s and not with a submission", submission.ActionType)
	}
	if t.Case, err = subject.Parse(submission.Response); err != nil {
		return err
	}
	if t.Case.Digest() != submission.Case {
		return errors.New("its evidence is not the case that it names")
	}
	t.tally = jury.NewTally(t.Case.Digest())
	for _, r := range chain {
		events, err := t.Add(r)
		if err != nil {
			return err
		}
		t.events = append(t.events, events...)
	}
	return t.broken
}

// Resume locks a trial, reads it, and continues it from its records, with the settings with which it was opened. If the
// trial is over, it only returns it. No recorded act happens again, so no recorded answer is asked for again. ready gets
// the trial as it was read, may refuse it, and seats its jury in the configuration; nil: the jury is there. The listener
// first gets the events of the recorded acts. The submitter and the clerk must be the same as at the beginning. Resume returns
// ready's error, ErrUnreadable, ErrSettings, ErrMoved or ErrAdjourned, or the error of the jury or the ledger.
func Resume(ctx context.Context, config Config, id string, ready func(*Trial, *Config) error) (*Trial, error) {
	config = config.complete()
	ctx, release, err := config.Locks.Lock(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("trial %s: %w", id, err)
	}
	defer release()
	t, err := Reopen(ctx, config.Ledger, id)
	if err != nil {
		return nil, because(ctx, err)
	}
	if ready != nil {
		if err := ready(t, &config); err != nil {
			return nil, err
		}
	}
	config.Settings = asOpened(config.Settings, t.Settings)
	if err := sameSettings(&config.Settings, t.Settings); err != nil {
		return nil, fmt.Errorf("trial %s: %w", id, err)
	}
	c := &clerk{config: config, trial: t}
	for _, r := range t.Records {
		if at := r.Payload.Time(); at.After(c.last) {
			c.last = at
		}
	}
	c.tell(t.events)
	t.events = nil
	held, err := c.hold(ctx)
	if err != nil {
		err = fmt.Errorf("trial %s: %w", id, because(ctx, err))
	}
	return held, err
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
	asks := func(s jury.Seat) bool { return s.Provider != jury.Offline }
	if now.MaxRounds == 0 && !slices.ContainsFunc(now.Seats, asks) && !slices.ContainsFunc(opened.Seats, asks) {
		now.MaxRounds = opened.MaxRounds
	}
	return now
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
	if err := now.Validate(); err != nil || opened == nil {
		return err
	}
	how, err := now.Against(opened)
	if err == nil && how != "" {
		err = fmt.Errorf("%w: %s", ErrSettings, how)
	}
	return err
}

// clerk seals the acts of one trial. It implements jury.Clerk.
type clerk struct {
	config Config

	// While mu is held, one act is sealed and its events are sent, so the order of events is the order of the log.
	mu    sync.Mutex
	trial *Trial
	last  time.Time // the time that the last act claims
}

// maxExhibits is how many exhibits a submission names by digest: more a log does not check in one record.
const maxExhibits = 1000

// submit seals the case. Only this record holds the evidence; all others name it by its digest. If sealed records are the
// evidence, the submission also names them by digest: so it stays known on which records the verdict is when the text of
// the submission is erased.
func (c *clerk) submit(ctx context.Context) error {
	exhibits := c.trial.Case.Exhibits()
	if len(exhibits) > maxExhibits {
		exhibits = nil
	}
	_, err := c.seal(ctx, evidence.RoleSubmitter, evidence.Payload{
		ActionType: evidence.Submission, AgentID: c.config.Submitter, RecordID: c.config.ID, ChainPosition: 1,
		Saw: exhibits, Response: c.trial.Case.Material()})
	return err
}

func (c *clerk) Record(ctx context.Context, act jury.Act) (evidence.Digest, error) {
	if _, asks := act.Body.(*jury.Opening); asks {
		select {
		case <-c.config.Adjourn:
			return evidence.Digest{}, ErrAdjourned
		default:
		}
	}
	response, err := jury.EncodeBody(act.Body)
	if err != nil {
		return evidence.Digest{}, fmt.Errorf("encoding %s: %w", act.Type, err)
	}
	p := evidence.Payload{ActionType: act.Type, AgentID: "clerk", RecordID: c.recordID(act), ChainPosition: act.Position,
		PreviousRecord: act.Previous, Saw: act.Saw, Response: response, Metadata: act.Origin.Metadata}
	role, known := evidence.RoleOf(act.Type)
	if !known {
		return evidence.Digest{}, fmt.Errorf("recording an act of unknown type %q", act.Type)
	}
	if role != evidence.RoleClerk {
		c.answer(&p, act)
	}
	return c.seal(ctx, role, p)
}

// recordID derives the id from the act's place in the trial: its position, and its seat if several seats act. The log refuses a repeated id: see
// the package's documentation.
func (c *clerk) recordID(act jury.Act) string {
	seat := act.Actor
	if absent, is := act.Body.(*jury.Absent); is {
		seat = absent.JurorID
	}
	chain := c.trial.ID
	return evidence.RecordIDFor(strings.TrimPrefix(chain, evidence.TrialPrefix), "jurat act of a trial", chain, strconv.FormatInt(act.Position, 10), seat)
}

// answer sets the fields that only an act in reply to a request has.
func (c *clerk) answer(p *evidence.Payload, act jury.Act) {
	p.AgentID = act.Actor
	p.RequestID = fmt.Sprintf("%s/%d/%s", c.trial.ID, act.Position, act.Request.Short())
	p.RequestDigest = act.Request
	p.Model, p.ModelVersion, p.Parameters = act.Origin.Model, act.Origin.ModelVersion, act.Origin.Parameters
	if len(p.Parameters) == 0 {
		p.Parameters = jsontext.Value("{}")
	}
}

// seal signs, stamps and logs one act, and sends its events to the listener.
func (c *clerk) seal(ctx context.Context, role evidence.Role, p evidence.Payload) (evidence.Digest, error) {
	p.ChainID, p.Case = c.trial.ID, c.trial.Case.Digest()
	signers, err := c.config.Keys.Signers(ctx, role, p.AgentID)
	if err != nil {
		return evidence.Digest{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// If the clock is set back during a trial, an act must still not look older than the acts that it names.
	if now := c.config.Now(); now.After(c.last) {
		c.last = now
	}
	p.Timestamp = evidence.FormatTime(c.last)
	draft, err := evidence.NewDraft(p)
	if err != nil {
		return evidence.Digest{}, fmt.Errorf("sealing %s: %w", p.ActionType, err)
	}
	r, err := c.config.Ledger.Seal(ctx, draft, signers)
	if errors.Is(err, ledger.ErrDuplicate) && p.ActionType != evidence.Submission {
		err = fmt.Errorf("%w: %w", ErrMoved, err)
	}
	if err != nil {
		return evidence.Digest{}, fmt.Errorf("sealing %s: %w", p.ActionType, err)
	}
	c.trial.Records = append(c.trial.Records, r)
	events, err := c.trial.Add(r)
	if err != nil {
		return evidence.Digest{}, fmt.Errorf("telling %s: %w", p.ActionType, err)
	}
	c.tell(events)
	return r.Digest, nil
}

func (c *clerk) tell(events []Event) {
	for _, event := range events {
		if c.config.OnEvent != nil {
			c.config.OnEvent(event)
		}
	}
}

// citing adds to a juror's findings, and to the passages in its tables, the record that their message comes from, if the
// evidence is made of records, and marks quotations that do not stand in their message. The program decides that, so it
// replaces whatever record a juror names, and no juror can show a quotation that it made up as one that stands.
type citing struct {
	juror   jury.Juror
	subject *subject.Case
}

func (j citing) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	a, err := j.juror.Answer(ctx, b)
	a.Opinion = citeOpinion(j.subject, a.Opinion)
	if a.Speech.Updated != nil {
		a.Speech.Updated = new(citeOpinion(j.subject, *a.Speech.Updated))
	}
	return a, err
}

func citeOpinion(on *subject.Case, o jury.Opinion) jury.Opinion {
	o.Findings, o.Work = slices.Clone(o.Findings), o.Work.Clone()
	for i := range o.Findings {
		f := &o.Findings[i]
		f.Quote, f.Record, f.Unfounded = stands(on.Message(f.Message), f.Quote, f.Unfounded)
	}
	for _, p := range o.Work.Passages() {
		p.Quote, p.Record, p.Unfounded = stands(on.Message(p.Message), p.Quote, p.Unfounded)
	}
	return o
}

// stands returns a quotation as it stands in its message, the message's record, and whether the quotation is unfounded. m is nil
// if there is no such message.
func stands(m *subject.Message, quote string, unfounded bool) (string, evidence.Digest, bool) {
	if m == nil {
		return quote, evidence.Digest{}, true
	}
	if passage, found := m.Passage(quote); found {
		return passage, m.Record, unfounded
	}
	return quote, m.Record, true
}
