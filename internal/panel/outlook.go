package panel

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/config"
	"jurat/internal/juror"
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

	Panel         config.Care      `json:"panel,omitzero"`       // of language models; "": rules
	SameVendor    []string         `json:"sameVendor,omitempty"` // jurors, and the judge, of a vendor that also made the accused's model
	Unbound       []string         `json:"unbound,omitempty"`    // jurors whose weights do not say on which model and template they were measured
	Method        jury.Method      `json:"method"`
	Collaborative bool             `json:"collaborative"`
	Rounds        int              `json:"rounds"`
	Threshold     float64          `json:"threshold"`
	Shortening    *jury.Shortening `json:"shortening,omitzero"`
	Shortened     bool             `json:"shortened"` // the evidence is above the limit

	Lowest    Bill       `json:"lowest"`            // the shortest possible discussion, short answers, every call succeeds at once
	Highest   Bill       `json:"highest"`           // every round, answers of the maximum length, each at the last attempt
	Choices   []Choice   `json:"choices,omitempty"` // what this trial would cost with this panel and others
	Ceiling   int64      `json:"ceilingMicroUSD,omitzero"`
	Prices    PricesNote `json:"prices"`
	Unpriced  []string   `json:"unpriced,omitempty"` // models whose calls the bills leave out
	Deadlines Deadlines  `json:"deadlines"`
	Degraded  bool       `json:"degraded"`          // a seat is empty from the beginning
	Endings   []string   `json:"endings,omitempty"` // models that their vendors have ended, or end within 90 days
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
	o.Unpriced, o.Panel, o.SameVendor = plan.Unpriced(), plan.Care, juror.SameVendor(&p.settings, on)
	o.Endings = plan.Endings(time.Now())
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
	return o, p.price(o, on)
}

// price adds the bills of this panel and of others.
func (p *Panel) price(o *Outlook, on *subject.Case) (err error) {
	o.Choices, err = p.choices(on)
	for _, c := range o.Choices {
		if c.Chosen {
			o.Lowest, o.Highest = c.Lowest, c.Highest
		}
	}
	return err
}

func rulesOutlook(seat jury.Seat) SeatOutlook {
	return SeatOutlook{ID: seat.JurorID, Role: seat.RoleName, Provider: config.Rules, Model: seat.Model, Parameters: seat.Parameters}
}

// deadlines computes how long a trial can take: the sum of the phases' limits, or the limit of the whole trial.
func (p *Panel) deadlines() Deadlines {
	phases := time.Duration(1)
	if p.settings.Collaborative {
		phases += time.Duration(p.settings.MaxRounds)
	}
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

// look describes one seat, and its first question.
func (p *Panel) look(s *seated, seat jury.Seat, phase jury.Phase, on *subject.Case, whole bool) (SeatOutlook, error) {
	o := SeatOutlook{ID: s.ID, Role: s.Role, Provider: s.Provider, Model: s.Model, Parameters: seat.Parameters, Key: s.KeyFrom,
		InPlaceOf: s.InPlaceOf, Timeout: time.Duration(s.Timeout).String(), Attempts: s.Attempts, PerMinute: s.PerMinute}
	if s.Provider == config.Rules {
		return rulesOutlook(seat), nil
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

// question returns the first question for a seat in a phase, as if no juror had said anything. The tokens in it differ
// from those of a real trial.
func (p *Panel) question(seat jury.Seat, phase jury.Phase, s *jury.Settings, on *subject.Case) (llm.Question, error) {
	submission := evidence.DigestOf([]byte("a submission that never was"))
	return model.Prompt(jury.Brief{Material: on.Material(), Request: jury.Request{Format: jury.RequestFormat, Phase: phase, Seat: seat,
		Rubric: s.Rubric, Evidence: on.Digest(), Shortening: s.Shortening, Saw: []evidence.Digest{submission}, Tables: tables(s, phase)}})
}
