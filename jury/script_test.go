package jury

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/test/must"
)

// A move is what a scripted seat does when it is asked.
type move struct {
	after   time.Duration
	opinion Opinion
	speech  Speech
	origin  Origin
	err     error
	panics  bool
	scrawl  bool            // change the brief that it got
	deaf    <-chan struct{} // do not answer, and ignore the context, until it is closed
	patient bool            // answer only when the context has ended, with its error
}

// A script is a juror with prepared answers. It keeps what it was shown.
type script struct {
	mu      sync.Mutex
	initial move
	again   move   // when it is asked a second time
	rounds  []move // the last one goes on
	judge   move
	briefs  []Brief
	ended   int // calls that returned
}

func (s *script) play(ctx context.Context, b Brief, m move) error {
	s.mu.Lock()
	s.briefs = append(s.briefs, clone(b))
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.ended++
		s.mu.Unlock()
	}()
	if m.scrawl {
		scrawl(&b)
	}
	if m.deaf != nil {
		<-m.deaf
	}
	if m.patient {
		<-ctx.Done()
		return ctx.Err()
	}
	if m.after > 0 {
		select {
		case <-time.After(m.after):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if m.panics {
		panic("juror lost its temper")
	}
	return m.err
}

func scrawl(b *Brief) {
	clear(b.Material)
	clear(b.Saw)
	clear(b.Seat.Parameters)
	for i := range b.Rubric {
		b.Rubric[i] = Axis{}
	}
	for i := range b.Evaluations {
		clear(b.Evaluations[i].AxisScores)
		clear(b.Evaluations[i].Findings)
		b.Evaluations[i] = Evaluation{}
	}
	for i := range b.Rounds {
		for j := range b.Rounds[i].Statements {
			if u := b.Rounds[i].Statements[j].UpdatedEvaluation; u != nil {
				clear(u.AxisScores)
				*u = Evaluation{}
			}
			b.Rounds[i].Statements[j] = Statement{}
		}
		clear(b.Rounds[i].SpeakerOrder)
	}
	if b.Last != nil {
		clear(b.Last.AxisScores)
		*b.Last = Evaluation{}
	}
}

func (s *script) Answer(ctx context.Context, b Brief) (Answer, error) {
	m := s.move(b)
	err := s.play(ctx, b, m)
	return Answer{Opinion: m.opinion, Speech: m.speech, Origin: m.from()}, err
}

func (s *script) move(b Brief) move {
	switch b.Phase {
	case Initial:
		return s.initial
	case Repetition:
		return s.again
	case Judging:
		return s.judge
	}
	if n := len(s.rounds); n > 0 {
		return s.rounds[min(b.RoundNumber, n)-1]
	}
	return move{err: errors.New("nothing to say")}
}

func (m move) from() Origin {
	m.origin.Model = cmp.Or(m.origin.Model, "scripted")
	return m.origin
}

// think returns a valid opinion with this total.
func think(p Position, total int) Opinion {
	o := Opinion{Position: p, AxisScores: Scores{}, TotalScore: total, Confidence: 0.8, Rationale: "because", Findings: []Finding{}}
	for _, axis := range DefaultRubric() {
		points := min(axis.Max, total)
		o.AxisScores[axis.ID] = points
		total -= points
	}
	return o
}

func holding(p Position, total int) move { return move{opinion: think(p, total)} }

func staying(p Position) move {
	return move{speech: Speech{Statement: "I stay.", Position: p, Reasoning: "nothing new"}}
}

func turning(p Position, total int) move {
	return move{speech: Speech{Statement: "I turn.", Position: p, Reasoning: "well argued", Updated: new(think(p, total))}}
}

// A book is a recorder in memory.
type book struct {
	mu   sync.Mutex
	acts []Act
	on   func(n int, a Act) error // called before act n, from 0, is recorded
	late time.Duration
}

func (b *book) Record(_ context.Context, a Act) (evidence.Digest, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.late > 0 {
		time.Sleep(b.late)
	}
	if b.on != nil {
		if err := b.on(len(b.acts), a); err != nil {
			return evidence.Digest{}, err
		}
	}
	doc, err := EncodeBody(a.Body)
	if err != nil {
		return evidence.Digest{}, err
	}
	a.Digest = evidence.DigestOf(fmt.Appendf(doc, "%s|%s|%d|%s|%s", a.Type, a.Actor, a.Position, a.Previous, a.Saw))
	b.acts = append(b.acts, a)
	return a.Digest, nil
}

// read returns the acts as they are read from records.
func (b *book) read(t *testing.T) []Act {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	acts := []Act{{Digest: submission, Type: evidence.Submission, Actor: "submitter", Position: 1}}
	for _, a := range b.acts {
		acts = append(acts, reread(t, a))
	}
	return acts
}

func reread(t *testing.T, a Act) Act {
	t.Helper()
	doc := must.Get(EncodeBody(a.Body))(t)
	a.Body = must.Get(DecodeBody(a.Type, doc))(t)
	return a
}

var (
	material   = []byte(`{"agentCard":{},"conversation":[]}`)
	submission = evidence.DigestOf([]byte("submission"))
)

// seated returns a trial of these scripts. With FinalJudge, the judge is a script of its own.
func seated(method Method, jurors ...*script) *Deliberation {
	d := &Deliberation{Material: material, Submission: submission, Clerk: &book{}}
	d.Settings = Settings{Rubric: DefaultRubric(), Collaborative: true, MaxRounds: 3, Threshold: 2, Method: method}
	for i, juror := range jurors {
		d.Jurors = append(d.Jurors, juror)
		d.Settings.Seats = append(d.Settings.Seats, Seat{JurorID: fmt.Sprintf("juror-%d", i), RoleName: fmt.Sprintf("role %d", i),
			RoleFocus: "focus", Provider: "scripted", Model: "scripted", Parameters: jsontext.Value(`{"temperature":0}`)})
	}
	if method == FinalJudge {
		d.Judge = &script{judge: holding(NeedsReview, 55)}
		d.Settings.Judge = &Seat{JurorID: "judge", Provider: "scripted", Model: "scripted", Parameters: jsontext.Value(`{}`)}
	}
	return d
}

func (d *Deliberation) book() *book { return d.Clerk.(*book) }

func run(t *testing.T, d *Deliberation) *Result {
	t.Helper()
	return must.Get(d.Run(t.Context()))(t)
}
