package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/trial"
	"jurat/jury"
)

// A halt ends a trial whose next call was refused, without losing an answer: the refused seats wait until all others that were asked have
// been sealed. An absence would stay in the record for ever, and the trial could not be resumed. It is safe for concurrent use.
type halt struct {
	end context.CancelCauseFunc

	mu      sync.Mutex // held while the counts of the present phase or round are read or changed
	asked   int
	sealed  int
	refused int
}

func (h *halt) ask() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
}

func (h *halt) refuse() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused++
	h.check()
}

func (h *halt) check() {
	if h.refused > 0 && h.asked == h.refused+h.sealed {
		h.end(ErrCeiling)
	}
}

// heard follows the trial's events, one for each sealed answer.
func (h *halt) heard(e trial.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e.(type) {
	case trial.PhaseStarted, trial.RoundStarted:
		h.asked, h.sealed, h.refused = 0, 0, 0
	case trial.JurorEvaluated, trial.JurorAbsent, trial.JurorStated, trial.JudgeSpoke: // in phase 1 and 3, the repetition, and the rounds
		if h.asked > 0 { // answers of an earlier process are told before anyone is asked
			h.sealed++
			h.check()
		}
	}
}

// A guard stands before a juror: it takes a known answer instead of asking, and keeps a refused call from becoming an absence.
type guard struct {
	juror  jury.Juror
	halt   *halt
	known  *answers // nil: no answer is reused
	repeat int
}

var _ jury.Juror = (*guard)(nil)

// Answer implements jury.Juror.
func (g *guard) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	g.halt.ask()
	question, first := evidence.Digest{}, g.known != nil && b.Phase == jury.Initial
	if first {
		var err error
		if question, err = g.question(&b); err != nil {
			return jury.Answer{}, err
		}
		if a, found := g.known.take(question); found {
			return a, nil
		}
	}
	a, err := g.juror.Answer(ctx, b)
	if errors.Is(err, ErrCeiling) {
		g.halt.refuse()
		<-ctx.Done()
		return jury.Answer{}, context.Cause(ctx)
	}
	if err == nil && first {
		a.Origin.Metadata, err = marked(a.Origin.Metadata, "question", question)
	}
	return a, err
}

// question names what a seat is asked in phase 1, whatever the trial.
func (g *guard) question(b *jury.Brief) (evidence.Digest, error) {
	request := b.Request
	request.Saw = nil
	doc, err := json.Marshal(struct {
		Request jury.Request `json:"request"`
		Repeat  int          `json:"repeat"`
	}{request, g.repeat}, json.Deterministic(true))
	if err != nil {
		return evidence.Digest{}, err
	}
	return evidence.DigestOf(doc), nil
}

// marked adds a digest to the metadata of an answer.
func marked(metadata jsontext.Value, member string, d evidence.Digest) (jsontext.Value, error) {
	all := map[string]jsontext.Value{}
	if metadata != nil {
		if err := json.Unmarshal(metadata, &all); err != nil {
			return nil, err
		}
	}
	all[member] = jsontext.Value(`"` + d.String() + `"`)
	return json.Marshal(all, json.Deterministic(true))
}

// marks are what the laboratory adds to the metadata of an evaluation.
type marks struct {
	Question evidence.Digest `json:"question,omitzero"`   // what was asked, whatever the trial
	Reused   evidence.Digest `json:"reusedFrom,omitzero"` // the record of the answer that was given again
}

func marksOf(r *evidence.Record) (m marks, err error) {
	if r.Payload.Metadata == nil {
		return m, nil
	}
	err = json.Unmarshal(r.Payload.Metadata, &m)
	return m, err
}

// answers are first answers by what was asked, from the sealed records. It is safe for concurrent use.
type answers struct {
	mu  sync.Mutex
	all map[evidence.Digest]jury.Answer
}

// add takes an evaluation in, if it was asked for with its question noted and is a juror's own.
func (a *answers) add(r *evidence.Record) error {
	if r.Payload.ActionType != evidence.Evaluation {
		return nil
	}
	m, err := marksOf(r)
	if err != nil || m.Question.IsZero() {
		return err
	}
	act, err := jury.ReadAct(r)
	if err != nil {
		return err
	}
	e, is := act.Body.(*jury.Evaluation)
	if !is || e.Fallback {
		return nil
	}
	origin := act.Origin
	if origin.Metadata, err = marked(nil, "reusedFrom", r.Digest); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all[m.Question] = jury.Answer{Opinion: e.Opinion, Origin: origin}
	return nil
}

// addAll takes in the evaluations of a trial. A nil a takes none.
func (a *answers) addAll(records []*evidence.Record) error {
	if a == nil {
		return nil
	}
	for _, r := range records {
		if err := a.add(r); err != nil {
			return fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
		}
	}
	return nil
}

func (a *answers) take(question evidence.Digest) (jury.Answer, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	given, found := a.all[question]
	return given, found
}
