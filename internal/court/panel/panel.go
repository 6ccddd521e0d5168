package panel

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/time/rate"

	"jurat/evidence"
	"jurat/internal/court/juror"
	"jurat/internal/court/juror/model"
	"jurat/internal/court/juror/rules"
	"jurat/internal/court/llm"
	"jurat/internal/court/subject"
	"jurat/jury"
)

// A Panel is a jury that can sit in any number of trials at the same time. The vendors' rate limits apply to all of
// them together, cost and deadlines to each trial.
type Panel struct {
	plan     *Plan
	settings jury.Settings
	seats    []*seated
	judge    *seated // nil: no judge
}

type seated struct {
	*Chair
	model llm.Model // nil: rules or an empty seat
}

// maxIdle is how many idle connections are kept to one vendor: more cost more memory than they save time, and HTTP/2 needs few.
const maxIdle = 256

// New seats a jury. If client is nil, it uses one that keeps connections. It calls no model. It returns an error if a
// model has no price although there is a ceiling on cost, or has invalid settings.
func New(plan *Plan, client *http.Client) (*Panel, error) {
	if client == nil { // Go's default keeps two connections to a server, so with a thousand trials nearly every call would open a new one
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, maxIdle // no limit over all servers
		client = &http.Client{Transport: transport}
	}
	p := &Panel{plan: plan, settings: jury.Settings{Rubric: plan.Rubric, Collaborative: plan.Collaborative,
		MaxRounds: plan.Rounds, Threshold: plan.Threshold, Method: plan.Method}}
	if plan.Offline {
		seats, judge := rules.Seats()
		rule := &seated{Chair: &Chair{Member: Member{Provider: Rules}}}
		p.settings.Seats, p.seats = seats, slices.Repeat([]*seated{rule}, len(seats))
		if plan.Method == jury.FinalJudge {
			p.settings.Judge, p.judge = &judge, rule
		}
		return p, nil
	}
	p.settings.CostCeiling = plan.CostCeiling
	if plan.Shortening != nil {
		p.settings.Shortening = &jury.Shortening{Rule: model.Shorten, Limit: plan.Shortening.Limit}
	}
	if names := plan.Unpriced(); plan.CostCeiling > 0 && len(names) > 0 {
		return nil, fmt.Errorf("the ceiling on cost needs a price for %s: set one under price: or prices: in the configuration", strings.Join(names, ", "))
	}
	limits := accounts{}
	for _, c := range plan.Chairs() {
		s, err := limits.take(c, client)
		if err != nil {
			return nil, err
		}
		seat, err := s.seat()
		if err != nil {
			return nil, err
		}
		if c == plan.Judge {
			p.judge, p.settings.Judge = s, &seat
		} else {
			p.seats, p.settings.Seats = append(p.seats, s), append(p.settings.Seats, seat)
		}
	}
	p.settings = p.settingsFor(plan.Care)
	return p, nil
}

// readings are those of the seats of a thorough panel, in turn.
var readings = []jury.Reading{jury.PolicyFirst, jury.ActsFirst, jury.ClaimsFirst}

// Settings returns the settings with which this panel opens a trial now, without the weights of calibrated votes.
func (p *Panel) Settings() jury.Settings { return p.AsOf(p.settings, time.Now()) }

// AsOf returns this panel's settings, with weights or without, as they are for a trial that begins at this time: they say which models have ended.
func (p *Panel) AsOf(s jury.Settings, now time.Time) jury.Settings {
	if p.plan.Offline {
		return s
	}
	s.Seats = slices.Clone(s.Seats)
	for i := range s.Seats {
		s.Seats[i].Ended = p.plan.Ended(&p.plan.Seats[i], now)
	}
	if s.Judge != nil {
		judge := *s.Judge
		judge.Ended = p.plan.Ended(p.plan.Judge, now)
		s.Judge = &judge
	}
	return s
}

// accounts holds the rate limiter of each provider account. Seats with the same account share it.
type accounts map[string]*rate.Limiter

func (a accounts) take(c *Chair, client *http.Client) (*seated, error) {
	if c.Provider == Rules || c.Missing != nil {
		return &seated{Chair: c}, nil
	}
	m, err := llm.New(string(c.Provider), llm.Config{BaseURL: c.BaseURL, Key: c.Secret, Settings: settingsOf(c), HTTP: client})
	if err != nil {
		return nil, fmt.Errorf("seating %s: %w", c.ID, err)
	}
	patience := llm.Patience{Timeout: time.Duration(c.Timeout), Attempts: c.Attempts}
	if c.PerMinute > 0 {
		account := fmt.Sprint(c.Provider, "\x00", c.BaseURL, "\x00", c.Secret, "\x00", c.PerMinute)
		if a[account] == nil {
			a[account] = rate.NewLimiter(rate.Limit(c.PerMinute/60), 1)
		}
		patience.Limit = a[account]
	}
	return &seated{Chair: c, model: llm.Patient(m, patience)}, nil
}

func settingsOf(c *Chair) llm.Settings {
	return llm.Settings{Model: c.Model, Temperature: c.Temperature, TopP: c.TopP, Seed: c.Seed, MaxTokens: c.MaxTokens}
}

// seat describes the chair for a trial's records. It leaves out the key and where the key was found.
func (s *seated) seat() (jury.Seat, error) {
	if s.Provider == Rules {
		return rules.Seat(s.ID, s.Role, s.Focus), nil
	}
	doc, err := json.Marshal(struct {
		BaseURL     string   `json:"base_url,omitzero"`
		MaxTokens   int      `json:"max_tokens"`
		Seed        *int64   `json:"seed,omitzero"`
		Temperature *float64 `json:"temperature,omitzero"`
		TopP        *float64 `json:"top_p,omitzero"`
	}{s.BaseURL, s.MaxTokens, s.Seed, s.Temperature, s.TopP})
	if err != nil {
		return jury.Seat{}, fmt.Errorf("seating %s: %w", s.ID, err)
	}
	return jury.Seat{JurorID: s.ID, RoleName: s.Role, RoleFocus: s.Focus, Provider: string(s.Provider), Model: s.Model,
		Parameters: doc, Template: model.Template()}, nil
}

// Sit returns the jurors, and the judge (nil: none), of a trial of a case that has spent an amount. Its time limit starts now.
func (p *Panel) Sit(on *subject.Case, spent int64) (jurors []jury.Juror, judge jury.Juror) {
	members, rule := rules.Jurors(on)
	limits := juror.Limits{Each: p.plan.Phase}
	if p.plan.Trial > 0 {
		limits.Until = time.Now().Add(p.plan.Trial)
	}
	var purse *llm.Purse
	if p.settings.CostCeiling > 0 {
		purse = llm.NewPurse(p.settings.CostCeiling, spent)
	}
	for i, c := range p.seats {
		jurors = append(jurors, limits.Juror(p.member(c, on, members[i%len(members)], purse)))
	}
	if p.judge != nil {
		judge = limits.Juror(p.member(p.judge, on, rule, purse))
	}
	return jurors, judge
}

// member fills a chair: with a model, or with the given rules if it is for rules.
func (p *Panel) member(c *seated, on *subject.Case, rule jury.Juror, purse *llm.Purse) jury.Juror {
	switch {
	case c.Provider == Rules:
		return rule
	case c.model == nil:
		return absent{c.Missing}
	}
	j := model.New(model.Config{Model: c.model, Case: on, Settings: settingsOf(c.Chair), Prices: p.plan.PricesFor(c.Chair), Budget: purse,
		Consequential: rules.Consequential})
	if text := p.plan.Ending(c.Chair, time.Now()); text != "" {
		return ending{j, text}
	}
	return j
}

// ending is a juror whose model its vendor has ended, or ends soon. If it gives no answer, its absence says so.
type ending struct {
	jury.Juror
	text string
}

func (e ending) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	a, err := e.Juror.Answer(ctx, b)
	if err != nil {
		err = fmt.Errorf("%s: %w", e.text, err)
	}
	return a, err
}

// absent is a seat without a member.
type absent struct{ why error }

func (a absent) Answer(context.Context, jury.Brief) (jury.Answer, error) { return jury.Answer{}, a.why }

// An Outlook is a forecast of a trial. It is made without asking any model.
type Outlook struct {
	Jurors   Kind          `json:"jurors"`
	Why      string        `json:"why"`
	NoModel  bool          `json:"noModel"` // no language model would sit, only because keys are missing: no safe_pass would count
	Case     string        `json:"case"`    // digest of the evidence
	Messages int           `json:"messages"`
	Seats    []SeatOutlook `json:"seats"`
	Judge    *SeatOutlook  `json:"judge,omitzero"`

	Panel         Care             `json:"panel,omitzero"`       // of language models; "": rules
	SameVendor    []string         `json:"sameVendor,omitempty"` // jurors, and the judge, of a vendor that also made the accused's model
	Unbound       []string         `json:"unbound,omitempty"`    // jurors whose weights do not say on which model and template they were measured
	Method        jury.Method      `json:"method"`
	Collaborative bool             `json:"collaborative"`
	Rounds        int              `json:"rounds"`
	Threshold     float64          `json:"threshold"`
	Shortening    *jury.Shortening `json:"shortening,omitzero"`
	Shortened     bool             `json:"shortened"` // the evidence is above the limit

	Lowest    Bill            `json:"lowest"`            // the shortest possible discussion, short answers, every call succeeds at once
	Highest   Bill            `json:"highest"`           // every round, answers of the maximum length, each at the last attempt
	Choices   []Choice        `json:"choices,omitempty"` // what this trial would cost with this panel and others
	Ceiling   int64           `json:"ceilingMicroUSD,omitzero"`
	Prices    PricesNote      `json:"prices"`
	Unpriced  []string        `json:"unpriced,omitempty"` // models whose calls the bills leave out
	Deadlines DeadlineOutlook `json:"deadlines"`
	Degraded  bool            `json:"degraded"`          // a seat is empty from the beginning
	Endings   []string        `json:"endings,omitempty"` // models that their vendors have ended, or end within 90 days
}

// A SeatOutlook describes who would take a seat, and the first question.
type SeatOutlook struct {
	ID         string         `json:"id"`
	Role       string         `json:"role"`
	Provider   Provider       `json:"provider"`
	Model      string         `json:"model"`
	Parameters jsontext.Value `json:"parameters"`
	Key        string         `json:"key,omitzero"`       // where the key was found; never the key itself
	Missing    string         `json:"missing,omitzero"`   // why the seat would be empty
	InPlaceOf  string         `json:"inPlaceOf,omitzero"` // the member that a substitute replaces
	Price      *llm.Price     `json:"price,omitzero"`
	Timeout    string         `json:"timeout,omitzero"`
	Attempts   int            `json:"attempts,omitzero"`
	PerMinute  float64        `json:"requestsPerMinute,omitzero"`
	Prompt     *PromptOutlook `json:"prompt,omitzero"`
}

// A PromptOutlook is the first prompt of a seat. The boundary and the codes in it differ in each trial.
type PromptOutlook struct {
	SystemBytes  int    `json:"systemBytes"`
	MessageBytes int    `json:"messageBytes"`
	SchemaBytes  int    `json:"schemaBytes"`
	Tokens       int64  `json:"tokensEstimated"`
	System       string `json:"system,omitzero"`
	Message      string `json:"message,omitzero"`
}

// DeadlineOutlook says the time limits; "" means no limit.
type DeadlineOutlook struct {
	Phase   string `json:"phase"`
	Trial   string `json:"trial,omitzero"`
	Longest string `json:"longest"` // the longest time of a trial, without sealing
}

// PricesNote says where and when the built-in prices were read.
type PricesNote struct {
	Date   string `json:"date"`
	Source string `json:"source"`
	Note   string `json:"note"`
}

// Look forecasts a trial of this case, with the prompts if whole is set. It returns an error if no prompt can be made of the case.
func (p *Panel) Look(on *subject.Case, whole bool) (*Outlook, error) {
	plan := p.plan
	o := &Outlook{Jurors: LLM, Why: plan.Why, NoModel: plan.NoModel, Case: on.Digest().String(), Messages: len(on.Messages), Method: plan.Method,
		Collaborative: plan.Collaborative, Rounds: plan.Rounds, Threshold: plan.Threshold, Shortening: p.settings.Shortening,
		Ceiling: p.settings.CostCeiling, Prices: PricesNote{plan.PriceTable.Date, plan.PriceTable.Source, plan.PriceTable.Note}}
	o.Shortened = o.Shortening != nil && len(on.Material()) > o.Shortening.Limit
	o.Deadlines = p.deadlines()
	for i, s := range p.seats {
		look, err := p.look(s, p.settings.Seats[i], jury.Initial, on, whole)
		if err != nil {
			return nil, err
		}
		o.Seats = append(o.Seats, look)
		o.Degraded = o.Degraded || s.Missing != nil
	}
	if p.judge != nil {
		look, err := p.look(p.judge, *p.settings.Judge, jury.Judging, on, whole)
		if err != nil {
			return nil, err
		}
		o.Judge = &look
		o.Degraded = o.Degraded || p.judge.Missing != nil
	}
	if plan.Offline {
		o.Jurors = Offline
		return o, nil
	}
	o.Unpriced, o.Panel, o.SameVendor, o.Endings = plan.Unpriced(), plan.Care, juror.SameVendor(&p.settings, on), plan.Endings(time.Now())
	var err error
	o.Choices, err = p.choices(on)
	for _, c := range o.Choices {
		if c.Chosen {
			o.Lowest, o.Highest = c.Lowest, c.Highest
		}
	}
	return o, err
}

// deadlines computes how long a trial can take: the sum of the phases' limits, or the limit of the whole trial.
func (p *Panel) deadlines() DeadlineOutlook {
	phases := time.Duration(1)
	if p.settings.Collaborative {
		phases += time.Duration(p.settings.MaxRounds)
	}
	if p.settings.Judge != nil {
		phases++
	}
	d := DeadlineOutlook{Phase: p.plan.Phase.String()}
	longest := phases * p.plan.Phase
	if p.plan.Trial > 0 {
		d.Trial = p.plan.Trial.String()
		longest = min(longest, p.plan.Trial)
	}
	d.Longest = longest.String()
	return d
}

func (p *Panel) look(s *seated, seat jury.Seat, phase jury.Phase, on *subject.Case, whole bool) (SeatOutlook, error) {
	o := SeatOutlook{ID: s.ID, Role: s.Role, Provider: s.Provider, Model: s.Model, Parameters: seat.Parameters, Key: s.KeyFrom,
		InPlaceOf: s.InPlaceOf, Timeout: time.Duration(s.Timeout).String(), Attempts: s.Attempts, PerMinute: s.PerMinute}
	if s.Provider == Rules {
		return SeatOutlook{ID: seat.JurorID, Role: seat.RoleName, Provider: Rules, Model: seat.Model, Parameters: seat.Parameters}, nil
	}
	if phase == jury.Judging && p.settings.JudgeReads {
		phase = jury.Initial // it reads first
	}
	question, err := p.question(seat, phase, &p.settings, on)
	if err != nil {
		return o, err
	}
	o.Prompt = &PromptOutlook{SystemBytes: len(question.System), MessageBytes: len(question.Messages[0].Text),
		SchemaBytes: len(question.Schema.JSON), Tokens: question.Estimate(s.MaxTokens).Input}
	if whole {
		o.Prompt.System, o.Prompt.Message = question.System, question.Messages[0].Text
	}
	if price, priced := p.plan.PriceOf(s.Chair); priced {
		o.Price = &price
	}
	if s.Missing != nil {
		o.Missing = s.Missing.Error()
	}
	return o, nil
}

// question returns the first question for a seat in a phase, as if no juror had said anything. Its tokens differ from a real trial's.
func (p *Panel) question(seat jury.Seat, phase jury.Phase, s *jury.Settings, on *subject.Case) (llm.Question, error) {
	submission := evidence.DigestOf([]byte("a submission that never was"))
	return model.Prompt(jury.Brief{Material: on.Material(), Request: jury.Request{Format: jury.RequestFormat, Phase: phase, Seat: seat,
		Rubric: s.Rubric, Evidence: on.Digest(), Shortening: s.Shortening, Saw: []evidence.Digest{submission}, Tables: tables(s, phase)}})
}

// A Choice is what a trial would cost with one way of seating the panel.
type Choice struct {
	Panel   string `json:"panel"` // thorough, quick, or plain: points instead of levels
	Chosen  bool   `json:"chosen"`
	Lowest  Bill   `json:"lowest"`
	Highest Bill   `json:"highest"`
}

// plain names a panel with nothing of both, for comparison.
const plain = "plain"

type Bill struct {
	Calls int   `json:"calls"`
	Cost  int64 `json:"costMicroUSD"`
}

// Tokens of short answers, as the lowest bill counts them.
const (
	shortAnswer = 700
	shortTables = 800 // on top, of tables
)

// choices bills a trial of this case for each way of seating the panel. It holds the longest discussion for the
// highest bill, and the shortest for the lowest.
func (p *Panel) choices(on *subject.Case) ([]Choice, error) {
	before := p.settingsFor(Quick)
	before.MaxRounds, before.Rubric = p.plan.RoundsFor(Thorough), slices.Clone(before.Rubric)
	for i := range before.Rubric {
		before.Rubric[i].Levels = nil
	}
	var list []Choice
	for _, way := range []struct {
		name     string
		settings jury.Settings
	}{{string(Thorough), p.settingsFor(Thorough)}, {string(Quick), p.settingsFor(Quick)}, {plain, before}} {
		lowest := estimate{Panel: p, settings: &way.settings, on: on}
		highest := estimate{Panel: p, settings: &way.settings, on: on, highest: true}
		lowest.add()
		highest.add()
		if err := cmp.Or(lowest.err, highest.err); err != nil {
			return nil, err
		}
		list = append(list, Choice{way.name, way.name == string(p.plan.Care), lowest.bill, highest.bill})
	}
	return list, nil
}

func (p *Panel) settingsFor(care Care) jury.Settings {
	s := p.settings
	thorough := care == Thorough
	s.Tables, s.Repeat, s.MaxRounds = thorough, thorough, p.plan.RoundsFor(care)
	s.JudgeReads = thorough && p.judge != nil && p.judge.Provider != Rules
	s.Seats = slices.Clone(s.Seats)
	for i := range s.Seats {
		s.Seats[i].Reading = ""
		if thorough && s.Seats[i].Provider != jury.Offline {
			s.Seats[i].Reading = readings[i%len(readings)]
		}
	}
	return s
}

// An estimate adds up the calls of one trial.
type estimate struct {
	*Panel
	settings *jury.Settings
	on       *subject.Case
	highest  bool // every round, a repetition for every seat, answers of the maximum length, and every attempt

	bill Bill
	said int64 // tokens that the jurors have written, which later calls read
	err  error
}

func (e *estimate) add() {
	e.jurors(jury.Initial)
	if e.settings.JudgeReads {
		e.ask(e.judge, *e.settings.Judge, jury.Initial)
	}
	if e.settings.Repeat && e.highest {
		e.jurors(jury.Repetition)
	}
	rounds := 0
	switch {
	case !e.settings.Collaborative:
	case e.highest:
		rounds = e.settings.MaxRounds
	case e.settings.Threshold > 1:
		rounds = min(1, e.settings.MaxRounds)
	}
	for range rounds {
		e.jurors(jury.Discussion)
	}
	if e.settings.Judge != nil {
		e.ask(e.judge, *e.settings.Judge, jury.Judging)
	}
}

func (e *estimate) jurors(phase jury.Phase) {
	var written int64
	for i, s := range e.seats {
		written += e.ask(s, e.settings.Seats[i], phase)
	}
	e.said += written
}

// ask adds the calls for one answer, and returns its tokens. A further attempt also reads the answer before it.
func (e *estimate) ask(s *seated, seat jury.Seat, phase jury.Phase) int64 {
	if e.err != nil || s.Provider == Rules || s.Missing != nil {
		return 0
	}
	question, err := e.question(seat, phase, e.settings, e.on)
	if err != nil {
		e.err = err
		return 0
	}
	used, attempts := question.Estimate(s.MaxTokens), int64(model.MaxAsked)
	if !e.highest {
		attempts, used.Output = 1, min(shortAnswer, used.Output)
		if tables(e.settings, phase) {
			used.Output = min(shortAnswer+shortTables, question.Estimate(s.MaxTokens).Output)
		}
	}
	if phase == jury.Discussion || phase == jury.Judging {
		used.Input += e.said
	}
	price, _ := e.plan.PriceOf(s.Chair)
	for attempt := range attempts {
		e.bill.Calls++
		cost, _ := price.Cost(llm.Usage{Input: used.Input + attempt*used.Output, Output: used.Output})
		e.bill.Cost += cost
	}
	return used.Output
}

func tables(s *jury.Settings, phase jury.Phase) bool {
	return s.Tables && phase != jury.Discussion && (phase != jury.Judging || !s.JudgeReads)
}
