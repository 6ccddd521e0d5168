package panel

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/config"
	"jurat/internal/juror/model"
	"jurat/internal/llm"
	"jurat/internal/subject"
	"jurat/jury"
)

// An Outlook is a forecast of a trial. It is made without asking any model.
type Outlook struct {
	Jurors   config.Kind   `json:"jurors"`
	Why      string        `json:"why"`
	NoModel  bool          `json:"noModel"` // no language model would sit, only because keys are missing: no safe_pass would count
	Case     string        `json:"case"`    // digest of the evidence
	Messages int           `json:"messages"`
	Seats    []SeatOutlook `json:"seats"`
	Judge    *SeatOutlook  `json:"judge,omitzero"`

	Method        jury.Method      `json:"method"`
	Collaborative bool             `json:"collaborative"`
	Rounds        int              `json:"rounds"`
	Threshold     float64          `json:"threshold"`
	Shortening    *jury.Shortening `json:"shortening,omitzero"`
	Shortened     bool             `json:"shortened"` // the evidence is above the limit

	Lowest    Bill       `json:"lowest"`  // the shortest possible discussion, short answers, every call succeeds at once
	Highest   Bill       `json:"highest"` // every round, answers of the maximum length, each at the last attempt
	Ceiling   int64      `json:"ceilingMicroUSD,omitzero"`
	Prices    PricesNote `json:"prices"`
	Unpriced  []string   `json:"unpriced,omitempty"` // models whose calls the bills leave out
	Deadlines Deadlines  `json:"deadlines"`
	Degraded  bool       `json:"degraded"`     // a seat is empty from the beginning
	Undecided bool       `json:"inconclusive"` // so many seats are empty that no verdict is possible
}

// A SeatOutlook describes who would take a seat, and the first question.
type SeatOutlook struct {
	ID         string          `json:"id"`
	Role       string          `json:"role"`
	Provider   config.Provider `json:"provider"`
	Model      string          `json:"model"`
	Parameters jsontext.Value  `json:"parameters"`
	Key        string          `json:"key,omitzero"`       // where the key was found; never the key itself
	Missing    string          `json:"missing,omitzero"`   // why the seat would be empty
	InPlaceOf  string          `json:"inPlaceOf,omitzero"` // the member that a substitute replaces
	Price      *llm.Price      `json:"price,omitzero"`
	Timeout    string          `json:"timeout,omitzero"`
	Attempts   int             `json:"attempts,omitzero"`
	PerMinute  float64         `json:"requestsPerMinute,omitzero"`
	Prompt     *PromptOutlook  `json:"prompt,omitzero"`
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

// A Bill is the cost of calls.
type Bill struct {
	Calls int   `json:"calls"`
	Cost  int64 `json:"costMicroUSD"`
}

// Deadlines are the time limits; "" means no limit.
type Deadlines struct {
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

const shortAnswer = 700 // tokens of a short answer, as the lowest bill counts it

// Look forecasts a trial of this case. If whole is set, it includes the prompts. It returns an error if no prompt can
// be made of the case.
func (p *Panel) Look(on *subject.Case, whole bool) (*Outlook, error) {
	plan := p.plan
	o := &Outlook{Jurors: config.LLM, Why: plan.Why, NoModel: plan.NoModel, Case: on.Digest().String(), Messages: len(on.Messages), Method: plan.Method,
		Collaborative: plan.Collaborative, Rounds: plan.Rounds, Threshold: plan.Threshold, Shortening: p.settings.Shortening,
		Ceiling: p.settings.CostCeiling, Prices: PricesNote{plan.PriceTable.Date, plan.PriceTable.Source, plan.PriceTable.Note}}
	o.Shortened = o.Shortening != nil && len(on.Material()) > o.Shortening.Limit
	o.Deadlines = p.deadlines()
	if plan.Offline {
		o.Jurors = config.Offline
		for _, seat := range p.settings.Seats {
			o.Seats = append(o.Seats, rulesOutlook(seat))
		}
		if p.settings.Judge != nil {
			o.Judge = new(rulesOutlook(*p.settings.Judge))
		}
		return o, nil
	}
	o.Unpriced = plan.Unpriced()
	var asked []call
	able := 0
	for i, s := range p.seats {
		look, c, err := p.look(s, p.settings.Seats[i], jury.Initial, on, whole)
		if err != nil {
			return nil, err
		}
		o.Seats = append(o.Seats, look)
		if s.Missing == nil {
			able++
		}
		asked = append(asked, c)
	}
	o.Degraded, o.Undecided = able < len(p.seats), able < 2
	var judge *call
	if p.judge != nil {
		look, c, err := p.look(p.judge, *p.settings.Judge, jury.Judging, on, whole)
		if err != nil {
			return nil, err
		}
		o.Judge, judge = &look, &c
		o.Degraded = o.Degraded || p.judge.Missing != nil
	}
	least, most := p.leastRounds(), p.mostRounds()
	if o.Undecided { // the trial ends after phase 1
		least, most, judge = 0, 0, nil
	}
	o.Lowest, o.Highest = lowest(asked, judge, least), highest(asked, judge, most)
	return o, nil
}

func rulesOutlook(seat jury.Seat) SeatOutlook {
	return SeatOutlook{ID: seat.JurorID, Role: seat.RoleName, Provider: config.Rules, Model: seat.Model, Parameters: seat.Parameters}
}

func (p *Panel) mostRounds() int {
	if !p.settings.Collaborative {
		return 0
	}
	return p.settings.MaxRounds
}

func (p *Panel) leastRounds() int {
	if p.settings.Threshold <= 1 {
		return 0
	}
	return min(1, p.mostRounds())
}

// deadlines computes how long a trial can take: the sum of the phases' limits, or the limit of the whole trial.
func (p *Panel) deadlines() Deadlines {
	phases := time.Duration(1 + p.mostRounds())
	if p.settings.Judge != nil {
		phases++
	}
	d := Deadlines{Phase: p.plan.Phase.String()}
	longest := phases * p.plan.Phase
	if p.plan.Trial > 0 {
		d.Trial = p.plan.Trial.String()
		longest = min(longest, p.plan.Trial)
	}
	d.Longest = longest.String()
	return d
}

// look describes one seat, and the cost of a call to it.
func (p *Panel) look(s *seated, seat jury.Seat, phase jury.Phase, on *subject.Case, whole bool) (SeatOutlook, call, error) {
	o := SeatOutlook{ID: s.ID, Role: s.Role, Provider: s.Provider, Model: s.Model, Parameters: seat.Parameters, Key: s.KeyFrom,
		InPlaceOf: s.InPlaceOf, Timeout: time.Duration(s.Timeout).String(), Attempts: s.Attempts, PerMinute: s.PerMinute}
	if s.Provider == config.Rules {
		return rulesOutlook(seat), call{}, nil
	}
	question, err := p.question(seat, phase, on)
	if err != nil {
		return o, call{}, err
	}
	estimate := question.Estimate(s.MaxTokens)
	o.Prompt = &PromptOutlook{SystemBytes: len(question.System), MessageBytes: len(question.Messages[0].Text),
		SchemaBytes: len(question.Schema.JSON), Tokens: estimate.Input}
	if whole {
		o.Prompt.System, o.Prompt.Message = question.System, question.Messages[0].Text
	}
	price, priced := p.plan.PriceOf(s.Chair)
	if priced {
		o.Price = &price
	}
	if s.Missing != nil {
		o.Missing = s.Missing.Error()
		return o, call{}, nil
	}
	return o, call{asked: true, price: price, input: estimate.Input, answer: estimate.Output}, nil
}

// question returns the first question for a seat. The tokens in it differ from those of a real trial.
func (p *Panel) question(seat jury.Seat, phase jury.Phase, on *subject.Case) (llm.Question, error) {
	submission := evidence.DigestOf([]byte("a submission that never was"))
	return model.Prompt(jury.Brief{Material: on.Material(), Request: jury.Request{Format: jury.RequestFormat, Phase: phase, Seat: seat,
		Rubric: p.settings.Rubric, Evidence: on.Digest(), Shortening: p.settings.Shortening, Saw: []evidence.Digest{submission}}})
}

// A call is the size of one call to a seat in phase 1, or for the judge before anything was said.
type call struct {
	asked  bool // a model is called; false for rules and an empty seat
	price  llm.Price
	input  int64 // tokens
	answer int64 // tokens, at most
}

// lowest is the bill of the shortest discussion.
func lowest(jurors []call, judge *call, rounds int) Bill {
	answers := make([]int64, len(jurors))
	for i, c := range jurors {
		if c.asked {
			answers[i] = min(shortAnswer, c.answer)
		}
	}
	return bill(jurors, judge, rounds, answers, 1, func(c call) int64 { return min(shortAnswer, c.answer) })
}

// highest is the bill of the longest discussion, in which each answer takes every attempt.
func highest(jurors []call, judge *call, rounds int) Bill {
	answers := make([]int64, len(jurors))
	for i, c := range jurors {
		answers[i] = c.answer
	}
	return bill(jurors, judge, rounds, answers, model.MaxAsked, func(c call) int64 { return c.answer })
}

// bill adds up the calls. Each call reads the evidence and everything said in earlier phases and rounds. A further
// attempt also reads the model's previous answer.
func bill(jurors []call, judge *call, rounds int, answers []int64, attempts int, length func(call) int64) Bill {
	var all int64
	for _, a := range answers {
		all += a
	}
	var b Bill
	for round := range int64(rounds + 1) { // phase 1 is round 0
		for _, c := range jurors {
			b.add(c, round*all, attempts, length(c))
		}
	}
	if judge != nil {
		b.add(*judge, int64(rounds+1)*all, attempts, length(*judge))
	}
	return b
}

func (b *Bill) add(c call, said int64, attempts int, answer int64) {
	if !c.asked {
		return
	}
	for attempt := range int64(attempts) {
		b.Calls++
		b.Cost += c.price.Cost(llm.Usage{Input: c.input + said + attempt*answer, Output: answer})
	}
}
