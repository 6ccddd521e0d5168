package panel

import (
	"cmp"
	"slices"

	"jurat/internal/config"
	"jurat/internal/juror/model"
	"jurat/internal/llm"
	"jurat/internal/subject"
	"jurat/jury"
)

// A Choice is what a trial would cost with one way of seating the panel.
type Choice struct {
	Panel   string `json:"panel"` // thorough, quick, or plain: points instead of levels
	Chosen  bool   `json:"chosen"`
	Lowest  Bill   `json:"lowest"`
	Highest Bill   `json:"highest"`
}

// plain names a panel with nothing of both, for comparison.
const plain = "plain"

// A Bill is the cost of calls.
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
	before := p.settingsFor(config.Quick)
	before.MaxRounds, before.Rubric = p.plan.RoundsFor(config.Thorough), slices.Clone(before.Rubric)
	for i := range before.Rubric {
		before.Rubric[i].Levels = nil
	}
	var list []Choice
	for _, way := range []struct {
		name     string
		settings jury.Settings
	}{{string(config.Thorough), p.settingsFor(config.Thorough)}, {string(config.Quick), p.settingsFor(config.Quick)}, {plain, before}} {
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

// settingsFor returns the settings of this panel with a care.
func (p *Panel) settingsFor(care config.Care) jury.Settings {
	s := p.settings
	thorough := care == config.Thorough
	s.Tables, s.Repeat, s.MaxRounds = thorough, thorough, p.plan.RoundsFor(care)
	s.JudgeReads = thorough && p.judge != nil && p.judge.Provider != config.Rules
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
	for range e.rounds() {
		e.jurors(jury.Discussion)
	}
	if e.settings.Judge != nil {
		e.ask(e.judge, *e.settings.Judge, jury.Judging)
	}
}

// rounds is how many rounds are held.
func (e *estimate) rounds() int {
	switch {
	case !e.settings.Collaborative:
		return 0
	case e.highest:
		return e.settings.MaxRounds
	case e.settings.Threshold <= 1:
		return 0
	}
	return min(1, e.settings.MaxRounds)
}

// jurors adds the calls to all jurors, at the same time.
func (e *estimate) jurors(phase jury.Phase) {
	var written int64
	for i, s := range e.seats {
		written += e.ask(s, e.settings.Seats[i], phase)
	}
	e.said += written
}

// ask adds the calls for one answer, and returns the tokens of the answer. A further attempt also reads the answer
// before it.
func (e *estimate) ask(s *seated, seat jury.Seat, phase jury.Phase) int64 {
	if e.err != nil || s.Provider == config.Rules || s.Missing != nil {
		return 0
	}
	question, err := e.question(seat, phase, e.settings, e.on)
	if err != nil {
		e.err = err
		return 0
	}
	used := question.Estimate(s.MaxTokens)
	attempts := int64(model.MaxAsked)
	if !e.highest {
		attempts = 1
		short := int64(shortAnswer)
		if tables(e.settings, phase) {
			short += shortTables
		}
		used.Output = min(short, used.Output)
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

// tables reports whether the answer of a phase has tables.
func tables(s *jury.Settings, phase jury.Phase) bool {
	return s.Tables && phase != jury.Discussion && (phase != jury.Judging || !s.JudgeReads)
}
