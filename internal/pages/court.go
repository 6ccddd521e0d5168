package pages

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/subject"
	"jurat/internal/words"
	"jurat/jury"
	"jurat/verify"
)

// A Mark is what takes away from a verdict, or from what it is worth.
type Mark string

const (
	Degraded      Mark = "degraded"
	Inconclusive  Mark = "inconclusive"
	Offline       Mark = "offline"        // rules sit in all seats
	PartlyOffline Mark = "partly_offline" // rules sit in some seats
	Broken        Mark = "broken"         // the records contradict each other
)

// A Court is the courtroom of one trial.
type Court struct {
	ID        string
	State     api.State
	Acts      int
	Submitter string
	From, To  time.Time // claimed by the first and the last act
	Case      *subject.Case
	Withheld  string // why there is no Case; "": there is one
	Broken    string // in which the acts contradict each other; "": in nothing

	Settings   *jury.Settings // nil: nothing was opened yet
	Jurors     []*Juror
	Discussion []*Utterance // by round and seat, those who were absent in their places
	Discussed  bool         // there was at least one round
	Alone      *jury.ConsensusResult
	After      *jury.ConsensusResult // when the discussion was over; nil: there was none, or it is not
	Waiting    []string              // names of those who were asked and have not answered
	Messages   []Message

	Outcome        *jury.TrialOutcome // what the jury judged and people decided; nil: there is no judgment yet
	Judgment       *jury.Judgment     // the jury's
	JudgmentRecord string
	JudgmentAxes   []Axis
	Judge          *Utterance // the final judge's own words
	Degraded       bool
	Inconclusive   bool
	Offline        int // how many of the seats are rules
	Cost           int64
	Calls          int
	Human          []Decision // what people decided, and what was delivered

	Events string    // where events come from; "": nothing more comes
	Reason string    // why it was interrupted or cancelled; "": it is not known
	By     string    // who has cancelled it
	Next   time.Time // when it is tried again by itself; zero: it is not
	Ahead  int       // of a trial that is queued: how many wait before it
	Resume bool      // the viewer may have it go on
	Cancel bool      // the viewer may have it stopped
}

// A Juror is a chair and who sits in it.
type Juror struct {
	Number   int
	Seat     jury.Seat
	Name     string // the role's; the id where it has none
	Reported string // the model, as its provider reported it last; "": it never answered
	Silent   bool   // the trial is over, and no answer of it counts
	Rules    bool
	Alone    *Utterance
	Now      *jury.Evaluation
	Axes     []Axis
	Absences []jury.Absent

	VoteAlone, VoteAfter, VoteEnd *Vote
}

// A Vote is where a juror stood at one time.
type Vote struct {
	Position jury.Position
	Score    int
	Fallback bool
}

// An Axis is a line of the rubric with its points.
type Axis struct {
	ID           string
	Score, Max   int
	Veto, Vetoed bool // fewer points than its veto are no safe_pass; and they were fewer
}

// An Utterance is what one seat said once, or that it did not.
type Utterance struct {
	Anchor    string
	Seat      *Juror // nil: the judge's
	Name      string
	Record    string // record id
	At        time.Time
	Round     int
	Text      string // the statement; of an evaluation the rationale
	Reasoning string
	Position  jury.Position
	From      jury.Position // of a change
	Changed   bool
	Score     int
	HasScore  bool
	Conf      int // per cent
	Findings  []Finding
	Fallback  bool
	Absent    *jury.Absent
	Model     string
}

// A Finding is a juror's, held against the evidence.
type Finding struct {
	jury.Finding
	Here     bool   // there is a message with this number
	Stands   bool   // and the quotation stands in it
	FromName string // of whom it was taken over
}

// A Message is one of the conversation, with who pointed at it.
type Message struct {
	*subject.Message
	CitedBy []Citation
}

// A Citation leads from a message to the words that cite it.
type Citation struct{ Name, Anchor string }

// A Decision is a person's, or a delivery.
type Decision struct {
	Record  string
	Actor   string
	At      time.Time
	Action  evidence.ActionType
	Status  evidence.ApprovalStatus
	Changes string
	Text    string // what is to be given instead, or was delivered; "": of a decision on a verdict, of which Verdict is all

	Verdict *jury.Decision // of a decision on a verdict; nil: it is about something else
}

// NewCourt makes the courtroom of the records of one trial's chain, in log order.
func NewCourt(records []*evidence.Record) (*Court, error) {
	if len(records) == 0 || records[0].Payload.ActionType != evidence.Submission {
		return nil, errors.New("the chain does not begin with a submission, so it is no trial")
	}
	first := records[0]
	c := &Court{ID: first.Payload.ChainID, Submitter: first.Payload.AgentID, From: first.Payload.Time(), State: api.BrokenOff}
	c.evidence(first)
	var acts []jury.Act
	byDigest := map[evidence.Digest]*evidence.Record{}
	reckoning := new(jury.Reckoning)
	for _, r := range records {
		if !r.Payload.ActionType.InTrial() {
			c.Human = append(c.Human, newDecision(r, reckoning))
			continue
		}
		if err := reckoning.Add(r); err != nil {
			return nil, err
		}
		act, err := jury.ReadAct(r)
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
		}
		acts, byDigest[r.Digest] = append(acts, act), r
		c.To = r.Payload.Time()
	}
	c.Acts, c.Outcome = len(acts), reckoning.Outcome()
	return c, c.replay(acts, byDigest)
}

// evidence reads what the jury was given.
func (c *Court) evidence(first *evidence.Record) {
	material, withheld := verify.Said(first, "/response", first.Payload.Response)
	if withheld {
		c.Withheld = "apart"
		return
	}
	var err error
	if c.Case, err = subject.Parse(material); err != nil {
		c.Case, c.Withheld = nil, err.Error()
		return
	}
	for i := range c.Case.Messages {
		c.Messages = append(c.Messages, Message{Message: &c.Case.Messages[i]})
	}
}

func (c *Court) replay(acts []jury.Act, records map[evidence.Digest]*evidence.Record) error {
	state, err := jury.Replay(acts)
	if wrong := new(jury.Discrepancy); errors.As(err, &wrong) {
		c.Broken = err.Error()
	} else if err != nil {
		return err
	}
	c.seat(state)
	for _, act := range acts {
		if err := c.act(act, records[act.Digest]); err != nil {
			return fmt.Errorf("record %s: %w", records[act.Digest].Payload.RecordID, err)
		}
	}
	slices.SortStableFunc(c.Discussion, func(a, b *Utterance) int {
		return cmp.Or(a.Round-b.Round, a.Seat.Number-b.Seat.Number)
	})
	c.settle(state)
	return nil
}

func (c *Court) seat(state *jury.Replayed) {
	if state.Settings == nil {
		return
	}
	c.Settings = state.Settings
	for i, seat := range state.Settings.Seats {
		j := &Juror{Number: i + 1, Seat: seat, Name: cmp.Or(seat.RoleName, seat.JurorID), Rules: seat.Provider == jury.Offline}
		if j.Rules {
			c.Offline++
		}
		c.Jurors = append(c.Jurors, j)
	}
}

// act takes in one act.
func (c *Court) act(act jury.Act, r *evidence.Record) error {
	effort, err := jury.ReadEffort(act.Origin.Metadata)
	if err != nil {
		return err
	}
	for _, attempt := range effort.Attempts {
		c.Cost += attempt.Cost
		c.Calls++
	}
	switch body := act.Body.(type) {
	case *jury.Evaluation:
		c.evaluated(body, r)
	case *jury.Statement:
		c.stated(body, r)
	case *jury.Absent:
		c.absent(body, r)
	case *jury.Check:
		c.checked(body)
	case *jury.Opinion:
		c.Judge = c.utterance(nil, r, 0)
		c.Judge.opinion(body)
		c.Judge.Text, c.Judge.Findings = body.Rationale, c.findings(body.Findings, c.Judge)
	case *jury.Judgment:
		c.Judgment, c.JudgmentRecord = body, r.Payload.RecordID
	}
	return nil
}

// juror finds a chair; nil: it is the judge's.
func (c *Court) juror(id string) *Juror {
	i := slices.IndexFunc(c.Jurors, func(j *Juror) bool { return j.Seat.JurorID == id })
	if i < 0 {
		return nil
	}
	return c.Jurors[i]
}

func (c *Court) name(id string) string {
	if j := c.juror(id); j != nil {
		return j.Name
	}
	if c.Settings != nil && c.Settings.Judge != nil && c.Settings.Judge.JurorID == id {
		return cmp.Or(c.Settings.Judge.RoleName, id)
	}
	return id
}

func (c *Court) utterance(j *Juror, r *evidence.Record, round int) *Utterance {
	u := &Utterance{Seat: j, Record: r.Payload.RecordID, At: r.Payload.Time(), Round: round, Model: r.Payload.Model, Anchor: "judge"}
	if j != nil {
		u.Name, u.Anchor = j.Name, fmt.Sprintf("said-%d-%d", round, j.Number)
		if u.Model != "" {
			j.Reported = u.Model
		}
		return u
	}
	u.Name = c.name(r.Payload.AgentID)
	return u
}

func (u *Utterance) opinion(o *jury.Opinion) {
	u.Position, u.Score, u.HasScore, u.Conf = o.Position, o.TotalScore, true, int(o.Confidence*100+0.5)
}

func (c *Court) evaluated(e *jury.Evaluation, r *evidence.Record) {
	j := c.juror(e.JurorID)
	if j == nil {
		return // the chain is broken, and says so
	}
	u := c.utterance(j, r, e.RoundNumber)
	u.opinion(&e.Opinion)
	u.Text, u.Fallback, u.Findings = e.Rationale, e.Fallback, c.findings(e.Findings, u)
	j.Alone, j.Now = u, e
	j.VoteAlone = voteOf(e)
	c.Degraded = c.Degraded || e.Fallback
}

func voteOf(e *jury.Evaluation) *Vote { return &Vote{e.Position, e.TotalScore, e.Fallback} }

func (c *Court) stated(s *jury.Statement, r *evidence.Record) {
	j := c.juror(s.JurorID)
	if j == nil {
		return
	}
	u := c.utterance(j, r, s.RoundNumber)
	u.Text, u.Reasoning, u.Position, u.Changed = s.Statement, s.Reasoning, s.Position, s.PositionChanged
	if j.Now != nil && s.PositionChanged {
		u.From = j.Now.Position
	}
	if e := s.UpdatedEvaluation; e != nil {
		before := j.Now
		j.Now = e
		u.opinion(&e.Opinion)
		u.Fallback, u.Findings = e.Fallback, c.findings(newIn(e, before), u)
	}
	c.Discussion = append(c.Discussion, u)
}

// newIn lists the findings that an evaluation adds: those before stand where they were first said.
func newIn(now, before *jury.Evaluation) []jury.Finding {
	if before == nil {
		return now.Findings
	}
	return slices.DeleteFunc(slices.Clone(now.Findings), func(f jury.Finding) bool { return slices.Contains(before.Findings, f) })
}

func (c *Court) absent(a *jury.Absent, r *evidence.Record) {
	c.Degraded = true
	j := c.juror(a.JurorID)
	if j == nil {
		c.Judge = c.utterance(nil, r, 0)
		c.Judge.Absent, c.Judge.Name = a, c.name(a.JurorID)
		return
	}
	j.Absences = append(j.Absences, *a)
	u := c.utterance(j, r, a.RoundNumber)
	u.Absent, u.Model = a, ""
	if a.Phase == jury.Discussion {
		c.Discussion = append(c.Discussion, u)
		return
	}
	j.Alone = u
}

func (c *Court) checked(check *jury.Check) {
	if check.Phase == jury.Initial {
		c.Alone = &check.ConsensusCheck
		return
	}
	c.After = &check.ConsensusCheck
}

// findings holds quotations against the evidence, and notes at each message who points at it.
func (c *Court) findings(list []jury.Finding, by *Utterance) []Finding {
	var shown []Finding
	for _, f := range list {
		v := Finding{Finding: f}
		if f.From != "" {
			v.FromName = c.name(f.From)
		}
		if c.Case != nil {
			if m := c.Case.Message(f.Message); m != nil {
				v.Here = true
				v.Stands = !f.Unfounded && f.Quote != "" && m.Holds(f.Quote)
				c.cite(m.Number, Citation{by.Name, by.Anchor})
			}
		}
		shown = append(shown, v)
	}
	return shown
}

func (c *Court) cite(message int, by Citation) {
	i := slices.IndexFunc(c.Messages, func(m Message) bool { return m.Number == message })
	if !slices.Contains(c.Messages[i].CitedBy, by) {
		c.Messages[i].CitedBy = append(c.Messages[i].CitedBy, by)
	}
}

// settle says where everybody stands now.
func (c *Court) settle(state *jury.Replayed) {
	for _, id := range state.Waiting {
		c.Waiting = append(c.Waiting, c.name(id))
	}
	c.Discussed = len(state.Result.DiscussionRounds) > 0 || state.Open != nil
	talked := c.Discussed && (state.Phase == jury.Judging || state.Judged)
	if !talked {
		c.After = nil
	}
	for i, j := range c.Jurors {
		if j.Now != nil {
			j.Axes = axes(c.Settings.Rubric, j.Now.AxisScores)
			if talked {
				j.VoteAfter = voteOf(j.Now)
			}
		}
		if c.Judgment != nil && i < len(c.Judgment.Votes) {
			if v := c.Judgment.Votes[i]; v.Position != nil {
				j.VoteEnd = &Vote{*v.Position, v.TotalScore, v.Fallback}
			}
		}
	}
	if state.Finished {
		c.State = api.Over
		for _, j := range c.Jurors {
			j.Silent = j.Reported == ""
		}
	}
	if c.Judgment != nil {
		c.Degraded, c.Inconclusive = c.Judgment.Degraded, c.Judgment.Inconclusive
		if c.Settings != nil && len(c.Judgment.AxisScores) > 0 {
			c.JudgmentAxes = axes(c.Settings.Rubric, c.Judgment.AxisScores)
		}
	}
}

func axes(rubric jury.Rubric, scores jury.Scores) []Axis {
	var list []Axis
	for _, a := range rubric {
		score, is := scores[a.ID]
		if is {
			list = append(list, Axis{ID: a.ID, Score: score, Max: a.Max, Veto: a.Veto > 0, Vetoed: score < a.Veto})
		}
	}
	return list
}

// NewDecision reads a review or a delivery of what is no verdict.
func NewDecision(r *evidence.Record) Decision { return newDecision(r, new(jury.Reckoning)) }

// newDecision reads a review or a delivery, and takes it into the reckoning of its trial.
func newDecision(r *evidence.Record, reckoning *jury.Reckoning) Decision {
	p := &r.Payload
	d := Decision{Record: p.RecordID, Actor: p.Actor(), At: p.Time(), Action: p.ActionType, Status: p.ApprovalStatus}
	for _, m := range members(r, "changes", p.Changes, "modified_response", p.ModifiedResponse, "response", p.Response) {
		switch {
		case m.Withheld:
		case m.Name == "changes":
			d.Changes = m.Text
		default:
			d.Text = m.Text
		}
	}
	if d.Verdict = reckoning.Decide(r); d.Verdict != nil && p.ModifiedResponse.Kind() == '{' {
		d.Text = "" // it is the verdict, and before that was all there was to it, the jury's judgment with another position
	}
	return d
}

// Agent is the name of the agent under trial; "" where the evidence is withheld.
func (c *Court) Agent() string {
	if c.Case == nil {
		return ""
	}
	return c.Case.Card.Name
}

// Live reports whether the trial goes on while somebody watches.
func (c *Court) Live() bool { return c.Events != "" && c.State != api.Over }

// AllRules reports whether no language model sits.
func (c *Court) AllRules() bool { return c.Offline > 0 && c.Offline == len(c.Jurors) }

// Dollars is what the calls cost.
func (c *Court) Dollars() string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%06d", c.Cost/1e6, c.Cost%1e6), "0"), ".")
}

// Seconds is how long the trial took, by what its first and last act claim.
func (c *Court) Seconds() string { return fmt.Sprintf("%.1f", c.To.Sub(c.From).Seconds()) }

func (c *Court) view() string { return "court" }

func (c *Court) headline(lang words.Lang) string {
	says, parts := words.PagesIn(lang), []string{plain(cmp.Or(c.Agent(), c.ID))}
	switch {
	case c.Outcome != nil:
		parts = append(parts, name(lang, c.Outcome.Position))
		if c.Outcome.Decision != nil {
			parts = append(parts, byPerson(says, c.Outcome), says.Outcome.Jury+" "+name(lang, c.Outcome.Verdict.Position))
		}
	default:
		parts = append(parts, name(lang, c.State))
	}
	for _, mark := range c.Marks() {
		parts = append(parts, name(lang, mark))
	}
	return strings.Join(parts, " · ")
}

// byPerson says what a person's decision made of the outcome.
func byPerson(says *words.Pages, o *jury.TrialOutcome) string {
	if o.Open {
		return says.Outcome.Open
	}
	return says.Outcome.Person
}

// Marks are what takes away from the jury's verdict, or from what it is worth: said wherever the verdict is.
func (c *Court) Marks() []Mark {
	return marks(c.Inconclusive, Inconclusive, c.Degraded, Degraded, c.AllRules(), Offline, c.Offline > 0 && !c.AllRules(), PartlyOffline,
		c.Broken != "", Broken)
}

// marks lists those that apply.
func marks(pairs ...any) (list []Mark) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[0] == true {
			list = append(list, pair[1].(Mark))
		}
	}
	return list
}
