package trial

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/subject"
	"jurat/jury"
)

// clerk seals the acts of one trial. It implements jury.Recorder.
type clerk struct {
	config  Config
	chain   string
	subject *subject.Case

	// While mu is held, one act is sealed and its events are sent, so the order of events is the order of the log.
	mu      sync.Mutex
	records []*evidence.Record
	view    *View     // of the acts whose events were sent
	last    time.Time // the time that the last act claims
}

func newClerk(config Config, chain string, on *subject.Case) *clerk {
	return &clerk{config: config.cite(on), chain: chain, subject: on, view: NewView(nil)}
}

// maxExhibits is how many exhibits a submission names by digest: more a log does not check in one record.
const maxExhibits = 1000

// submit seals the case. Only this record holds the evidence; all others name it by its digest. If sealed records are the
// evidence, the submission also names them by digest: so it stays known on which records the verdict is when the text of
// the submission is erased.
func (c *clerk) submit(ctx context.Context) (evidence.Digest, error) {
	exhibits := c.subject.Exhibits()
	if len(exhibits) > maxExhibits {
		exhibits = nil
	}
	return c.seal(ctx, evidence.RoleSubmitter, evidence.Payload{
		ActionType: evidence.Submission, AgentID: c.config.Submitter, RecordID: c.config.ID, ChainPosition: 1,
		Saw: exhibits, Response: c.subject.Material()})
}

// Record implements jury.Recorder.
func (c *clerk) Record(ctx context.Context, act jury.Act) (evidence.Digest, error) {
	if _, asks := act.Body.(*jury.Opening); asks && c.adjourned() {
		return evidence.Digest{}, ErrAdjourned
	}
	response, err := jury.EncodeBody(act.Body)
	if err != nil {
		return evidence.Digest{}, fmt.Errorf("encoding %s: %w", act.Type, err)
	}
	p := evidence.Payload{ActionType: act.Type, AgentID: c.config.Clerk, RecordID: c.recordID(act), ChainPosition: act.Position,
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

// recordID derives the id from the act's place in the trial, if the place allows only one act: its position, and its
// seat if several seats act. The log refuses a repeated id. Two processes can both believe that they conduct the
// trial, for example after one was suspended longer than its lock lasted. Then no act enters the log twice, and the
// second process gets ErrMoved.
func (c *clerk) recordID(act jury.Act) string {
	seat := act.Actor
	if absent, is := act.Body.(*jury.Absent); is {
		seat = absent.JurorID
	}
	id := strings.TrimPrefix(c.chain, evidence.TrialPrefix)
	return evidence.RecordIDFor(id, "jurat act of a trial", c.chain, strconv.FormatInt(act.Position, 10), seat)
}

// adjourned returns false if the trial has no acts yet.
func (c *clerk) adjourned() bool {
	select {
	case <-c.config.Adjourn:
		return true
	default:
		return false
	}
}

// answer sets the fields that only an act in reply to a request has.
func (c *clerk) answer(p *evidence.Payload, act jury.Act) {
	p.AgentID = act.Actor
	p.RequestID = fmt.Sprintf("%s/%d/%s", c.chain, act.Position, act.Request.Short())
	p.RequestDigest = act.Request
	p.Model, p.ModelVersion, p.Parameters = act.Origin.Model, act.Origin.ModelVersion, act.Origin.Parameters
	if len(p.Parameters) == 0 {
		p.Parameters = jsontext.Value("{}")
	}
}

// seal signs, stamps and logs one act, and sends its events to the listener.
func (c *clerk) seal(ctx context.Context, role evidence.Role, p evidence.Payload) (evidence.Digest, error) {
	p.ChainID, p.Case = c.chain, c.subject.Digest()
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
	c.records = append(c.records, r)
	return r.Digest, c.tell(r)
}

// tell sends a record's events to the listener. Without a listener it does nothing.
func (c *clerk) tell(r *evidence.Record) error {
	if c.config.OnEvent == nil {
		return nil
	}
	events, err := c.view.Add(r)
	if err != nil {
		return fmt.Errorf("telling %s: %w", r.Payload.ActionType, err)
	}
	for _, event := range events {
		c.config.OnEvent(event)
	}
	return nil
}
