// Package panel seats a jury by a plan: it connects each model through its vendor's adapter, and enforces the limits
// on time, rate and cost.
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

	"jurat/internal/config"
	"jurat/internal/juror"
	"jurat/internal/juror/model"
	"jurat/internal/juror/rules"
	"jurat/internal/llm"
	"jurat/jury"
)

// A Panel is a jury that can sit in any number of trials at the same time. The vendors' rate limits apply to all of
// them together, cost and deadlines to each trial.
type Panel struct {
	plan     *config.Plan
	settings jury.Settings
	rules    rules.Panel
	seats    []*seated
	judge    *seated // nil: no judge
}

// seated is a chair with its model.
type seated struct {
	*config.Chair
	model llm.Model // nil: rules or an empty seat
}

// maxIdle is the number of idle connections that the client keeps to one vendor. More would use more memory than they
// save time; vendors, which speak HTTP/2, need few.
const maxIdle = 256

// New seats a jury. If client is nil, it uses one that keeps connections. It calls no model. It returns an error if a
// model has no price although there is a ceiling on cost, or has invalid settings.
func New(plan *config.Plan, client *http.Client) (*Panel, error) {
	if client == nil { // Go's default keeps two connections to a server, so with a thousand trials nearly every call would open a new one
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, maxIdle // no limit over all servers
		client = &http.Client{Transport: transport}
	}
	p := &Panel{plan: plan, rules: rules.OfflinePanel(), settings: jury.Settings{Rubric: plan.Rubric, Collaborative: plan.Collaborative,
		MaxRounds: plan.Rounds, Threshold: plan.Threshold, Method: plan.Method}}
	if plan.Offline {
		rule := &seated{Chair: &config.Chair{Member: config.Member{Provider: config.Rules}}}
		p.settings.Seats, p.seats = p.rules.Seats, slices.Repeat([]*seated{rule}, len(p.rules.Seats))
		if plan.Method == jury.FinalJudge {
			p.settings.Judge, p.judge = &p.rules.JudgeSeat, rule
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

func (a accounts) take(c *config.Chair, client *http.Client) (*seated, error) {
	if c.Provider == config.Rules || c.Missing != nil {
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

func settingsOf(c *config.Chair) llm.Settings {
	return llm.Settings{Model: c.Model, Temperature: c.Temperature, TopP: c.TopP, Seed: c.Seed, MaxTokens: c.MaxTokens}
}

// seat describes the chair for a trial's records. It leaves out the key and where the key was found.
func (s *seated) seat() (jury.Seat, error) {
	if s.Provider == config.Rules {
		return jury.Seat{JurorID: s.ID, RoleName: s.Role, RoleFocus: s.Focus, Provider: rules.Provider, Model: rules.Model,
			Parameters: jsontext.Value("{}"), Template: rules.Digest()}, nil
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

// Sit returns the jurors, and the judge (nil: none), of a trial that begins, or that has already spent an amount. The trial's time limit
// starts now. Its errors are those of model.New.
func (p *Panel) Sit(spent int64) (jurors []jury.Juror, judge jury.Juror, err error) {
	limits := juror.Limits{Each: p.plan.Phase}
	if p.plan.Trial > 0 {
		limits.Until = time.Now().Add(p.plan.Trial)
	}
	var purse *llm.Purse
	if p.settings.CostCeiling > 0 {
		purse = llm.NewPurse(p.settings.CostCeiling, spent)
	}
	sit := func(c *seated, rule jury.Juror) jury.Juror {
		j, failed := p.member(c, rule, purse)
		err = cmp.Or(err, failed)
		return limits.Juror(j)
	}
	for i, c := range p.seats {
		jurors = append(jurors, sit(c, p.rules.Jurors[i%len(p.rules.Jurors)]))
	}
	if p.judge != nil {
		judge = sit(p.judge, p.rules.Judge)
	}
	return jurors, judge, err
}

// member fills a chair: with a model, or with the given rules if it is for rules.
func (p *Panel) member(c *seated, rule jury.Juror, purse *llm.Purse) (jury.Juror, error) {
	switch {
	case c.Provider == config.Rules:
		return rule, nil
	case c.model == nil:
		return absent{c.Missing}, nil
	}
	j, err := model.New(model.Config{Model: c.model, Settings: settingsOf(c.Chair), Prices: p.plan.PricesFor(c.Chair), Budget: purse,
		Consequential: rules.Consequential})
	if err != nil {
		return nil, fmt.Errorf("seating %s: %w", c.ID, err)
	}
	if text := p.plan.Ending(c.Chair, time.Now()); text != "" {
		return ending{j, text}, nil
	}
	return j, nil
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
