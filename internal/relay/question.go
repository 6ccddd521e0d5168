package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// A question is a request, or a batch of them, until it is answered.
type question struct {
	call     *Call
	line     *line         // the request
	began    chan struct{} // closed when the witness has been told
	exchange Exchange      // nil: the call is not recorded, which only open mode passes
	waiting  map[string]bool
	answers  []*line
	progress int
	token    string
}

// questions are those of one side that have no answer yet.
type questions struct {
	asked   map[string][]*question // by id
	watched map[string]*question   // by the token of their progress
}

func newQuestions() questions {
	return questions{asked: map[string][]*question{}, watched: map[string]*question{}}
}

// ask notes a request that waits for an answer.
func (a *questions) ask(q *question, m *message) {
	if !q.waiting[m.id] {
		q.waiting[m.id] = true
		a.asked[m.id] = append(a.asked[m.id], q)
	}
	if m.wants != "" {
		q.token = m.wants
		a.watched[m.wants] = q
	}
}

// answered gives a line to the question that it answers, and returns that; nil: there is none.
func (a *questions) answered(id string, l *line) *question {
	list := a.asked[id]
	if len(list) == 0 {
		return nil
	}
	q := list[0]
	a.drop(id, q)
	if n := len(q.answers); n == 0 || q.answers[n-1] != l {
		l.refs.Add(1)
		q.answers = append(q.answers, l)
	}
	return q
}

// drop forgets that a question waits for the answer with an id.
func (a *questions) drop(id string, q *question) {
	if a.asked[id] = slices.DeleteFunc(a.asked[id], func(other *question) bool { return other == q }); len(a.asked[id]) == 0 {
		delete(a.asked, id)
	}
	delete(q.waiting, id)
	if a.watched[q.token] == q && len(q.waiting) == 0 {
		delete(a.watched, q.token)
	}
}

// left takes the questions out that have no answer.
func (a *questions) left() []*question {
	once := map[*question]bool{}
	for _, list := range a.asked {
		for _, q := range list {
			once[q] = true
		}
	}
	clear(a.asked)
	return slices.Collect(maps.Keys(once))
}

// count counts a message that has no record of its own, with the question whose progress it tells of, or else alone.
func (a *questions) count(m *message, t tally) {
	if q := a.watched[m.progress]; q != nil && m.progress != "" {
		q.progress++
		return
	}
	t[m.method]++
}

// A tally counts, by their method, messages that have no record of their own.
type tally map[string]int

// with says what passed with a call, or since the one before, and is in no record. It begins to count anew.
func (t tally) with(q *question) (list []string) {
	if q.progress > 0 {
		list = append(list, fmt.Sprintf("%d notifications of its progress, which are only counted", q.progress))
	}
	for _, method := range slices.Sorted(maps.Keys(t)) {
		list = append(list, fmt.Sprintf("%d messages %s since the record before, which are only counted", t[method], method))
	}
	clear(t)
	return list
}

// show tells the witness that a call begins.
func (r *relay) show(q *question) error {
	defer close(q.began)
	err := r.beginning(context.Background(), q.call, &q.exchange)
	if err == nil {
		return nil
	}
	if _, refused := errors.AsType[*Refusal](err); refused || r.Mode == Closed {
		return notRecorded(err)
	}
	r.missed(q.call, fmt.Errorf("recording its beginning: %w", err))
	return nil
}

// recorded tells the witness how a call ended. Closed mode waits for it.
func (r *relay) recorded(q *question, o *Outcome) error {
	if q.exchange == nil {
		r.freeAll(q, nil)
		return nil
	}
	joined, err := r.response(q, o)
	if err != nil {
		return notRecorded(err)
	}
	if r.Mode == Closed {
		defer r.freeAll(q, joined)
		return r.ending(context.Background(), q.exchange, o)
	}
	r.late.Go(func() {
		if err := r.ending(context.Background(), q.exchange, o); err != nil {
			r.missed(q.call, err)
		}
		r.freeAll(q, joined)
	})
	return nil
}

// response fills in the answer: its line or, of a batch, its lines. It returns the copy that it made of several.
func (r *relay) response(q *question, o *Outcome) (joined *Body, err error) {
	if len(q.answers) == 0 {
		return nil, nil
	}
	o.FirstByte, o.Response = q.answers[0].at, q.answers[0].body
	if len(q.answers) > 1 {
		joined = r.spool.response(q.call.ID, "", r.MaxDecoded)
		for _, l := range q.answers {
			if _, err := io.Copy(adding{joined}, io.MultiReader(l.body.Open(), strings.NewReader("\n"))); err != nil {
				return nil, errors.Join(err, joined.release())
			}
		}
		joined.seal()
		o.Response = joined
	}
	if o.Held = o.Response.Bytes; r.Mode == Open {
		o.Held = 0
	}
	return joined, nil
}

// adding writes into the copy of a body.
type adding struct{ to *Body }

func (a adding) Write(b []byte) (int, error) {
	if err := a.to.add(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// freeAll gives the copies of a call back.
func (r *relay) freeAll(q *question, joined *Body) {
	r.free(q.line)
	for _, l := range q.answers {
		r.free(l)
	}
	if joined != nil {
		if err := joined.release(); err != nil {
			r.Log.Error("relay: removing the copy of an answer", "call", q.call.ID, "error", err)
		}
	}
}
