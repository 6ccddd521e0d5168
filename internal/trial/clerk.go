package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// citing adds to a juror's findings, and to the passages in its tables, the record that their message comes from, if the
// evidence is made of records, and marks quotations that do not stand in their message. The program decides that, so it
// replaces whatever record a juror names, and no juror can show a quotation that it made up as one that stands.
type citing struct {
	juror   jury.Juror
	subject *subject.Case
}

// cite wraps the jurors and the judge in citing.
func (c Config) cite(on *subject.Case) Config {
	c.Jurors = slices.Clone(c.Jurors)
	for i, j := range c.Jurors {
		if j != nil {
			c.Jurors[i] = citing{j, on}
		}
	}
	if c.Judge != nil {
		c.Judge = citing{c.Judge, on}
	}
	return c
}

// Answer implements jury.Juror.
func (j citing) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	a, err := j.juror.Answer(ctx, b)
	a.Opinion = citeOpinion(j.subject, a.Opinion)
	if a.Speech.Updated != nil {
		a.Speech.Updated = new(citeOpinion(j.subject, *a.Speech.Updated))
	}
	return a, err
}

func citeOpinion(on *subject.Case, o jury.Opinion) jury.Opinion {
	o.Findings, o.Work = cite(on, o.Findings), o.Work.Clone()
	for _, p := range o.Work.Passages() {
		p.Quote, p.Record, p.Unfounded = stands(on.Message(p.Message), p.Quote, p.Unfounded)
	}
	return o
}

func cite(on *subject.Case, findings []jury.Finding) []jury.Finding {
	findings = slices.Clone(findings)
	for i := range findings {
		f := &findings[i]
		f.Quote, f.Record, f.Unfounded = stands(on.Message(f.Message), f.Quote, f.Unfounded)
	}
	return findings
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
