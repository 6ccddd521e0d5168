package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"jurat/internal/court/juror"
	"jurat/internal/court/subject"
	"jurat/jury"
)

// A listener writes what the jurors said, as one of them (the reader) gets it.
type listener struct {
	strings.Builder
	c      *subject.Case
	brief  *jury.Brief
	peers  *peers
	hidden []string                  // texts that must not appear there: the boundary of the evidence and its guard
	held   map[string][]jury.Finding // by juror: its findings as they stand so far
	rows   []row                     // of tables, written so far
}

// blind reports whether a seat is not told yet how the others judge. In the first round it sees only what they found:
// a reader who knows the others' verdicts tends to follow them.
func blind(b *jury.Brief) bool { return b.Phase == jury.Discussion && len(b.Rounds) == 0 }

// showJury writes what the jurors said, by phase and round, and within these in the reader's order. It leaves out
// points and confidence of others: they weigh nothing, and anchor a reader.
func showJury(c *subject.Case, b *jury.Brief, p *peers, m marks) string {
	l := &listener{c: c, brief: b, peers: p, hidden: []string{m.boundary, m.guard}, held: map[string][]jury.Finding{}}
	if b.Own != nil {
		l.own(b.Own, "you, before you knew what the jurors said")
	}
	for _, id := range append([]string{p.reader}, p.ids...) {
		for _, e := range alone(b, id) {
			l.first(e, id)
		}
	}
	for i := range b.Rounds {
		l.round(&b.Rounds[i])
	}
	if b.Last != nil && len(b.Rounds) > 0 {
		place := "the one from before the discussion"
		if b.Last.RoundNumber > 0 {
			place = fmt.Sprintf("the one of round %d", b.Last.RoundNumber)
		}
		fmt.Fprintf(l, "\nyour own evaluation as it stands: %s\n", place)
	}
	return l.String()
}

// alone returns what a juror answered before the discussion. Of a juror that was asked twice, that is the later answer;
// if it took two positions, it is shown itself that it did.
func alone(b *jury.Brief, id string) (list []*jury.Evaluation) {
	for _, answers := range [][]jury.Evaluation{b.Evaluations, b.Repeated} {
		for i := range answers {
			e := &answers[i]
			if e.JurorID != id {
				continue
			}
			if len(list) > 0 && (id != b.Seat.JurorID || list[0].Position == e.Position) {
				list = nil
			}
			list = append(list, e)
		}
	}
	return list
}

func (l *listener) who(id string) string {
	if id == l.peers.reader {
		return "you"
	}
	return l.peers.names[id]
}

func (l *listener) first(e *jury.Evaluation, id string) {
	heading := l.who(id) + ", before the discussion"
	if e.Phase == jury.Repetition {
		heading += ", asked again"
	}
	switch {
	case e.Fallback:
		fmt.Fprintf(l, "\n%s: was kept from answering by a filter, so there is none\n", heading)
	case id == l.peers.reader:
		l.own(&e.Opinion, heading)
	case blind(l.brief):
		fmt.Fprintf(l, "\n%s:\n", heading)
		before := l.Len()
		l.work(e.Work)
		l.findings(id, &e.Opinion)
		if l.Len() == before {
			l.WriteString("nothing that stands and that you did not find\n")
		}
	default:
		fmt.Fprintf(l, "\n%s: %s\n", heading, e.Position)
		if l.brief.Phase == jury.Judging {
			l.work(e.Work)
		}
		l.opinion(id, &e.Opinion)
	}
}

func (l *listener) own(o *jury.Opinion, heading string) {
	fmt.Fprintf(l, "\n%s: %s, confidence %s, %s\n", heading, o.Position, strconv.FormatFloat(o.Confidence, 'g', -1, 64), l.scores(o))
	for _, r := range rowsOf(o.Work) {
		l.row(&r)
	}
	l.opinion(l.peers.reader, o)
}

func (l *listener) scores(o *jury.Opinion) string {
	var list []string
	for _, axis := range l.brief.Rubric {
		if level, there := o.Levels[axis.ID]; there {
			list = append(list, fmt.Sprintf("%s level %d", axis.ID, level))
		} else {
			list = append(list, fmt.Sprintf("%s %d points", axis.ID, o.AxisScores[axis.ID]))
		}
	}
	return strings.Join(list, ", ")
}

func (l *listener) round(r *jury.Round) {
	for _, id := range append([]string{l.peers.reader}, l.peers.ids...) {
		for i := range r.Statements {
			if s := &r.Statements[i]; s.JurorID == id {
				l.statement(s, fmt.Sprintf("%s, round %d", l.who(id), r.RoundNumber))
			}
		}
	}
}

func (l *listener) statement(s *jury.Statement, heading string) {
	if s.UpdatedEvaluation != nil && s.UpdatedEvaluation.Fallback {
		fmt.Fprintf(l, "\n%s: was kept from speaking by a filter\n", heading)
		return
	}
	changed := "position not changed"
	if s.PositionChanged {
		changed = "position changed"
	}
	fmt.Fprintf(l, "\n%s: %s, %s\n", heading, s.Position, changed)
	l.text("statement", s.Statement)
	l.text("reasoning", s.Reasoning)
	e := s.UpdatedEvaluation
	if e == nil {
		return
	}
	if s.JurorID == l.peers.reader {
		fmt.Fprintf(l, "levels and points now: %s\n", l.scores(&e.Opinion))
	}
	l.opinion(s.JurorID, &e.Opinion)
}

func (l *listener) opinion(id string, o *jury.Opinion) {
	l.text("rationale", o.Rationale)
	l.findings(id, o)
}

// findings writes the findings that a juror did not have before, and says which ones it no longer has.
func (l *listener) findings(id string, o *jury.Opinion) {
	before := l.held[id]
	for _, f := range o.Findings {
		if !pointsAt(before, f) && (juror.Stands(l.c, f) || !blind(l.brief) || id == l.peers.reader) {
			l.finding(f)
		}
	}
	for _, f := range before {
		if !pointsAt(o.Findings, f) {
			fmt.Fprintf(l, "no longer held: a finding of message %d, axis %s, %s\n", f.Message, f.Axis, f.Severity)
		}
	}
	l.held[id] = o.Findings
}

func pointsAt(list []jury.Finding, f jury.Finding) bool {
	return slices.ContainsFunc(list, func(have jury.Finding) bool { return pointed(have) == pointed(f) })
}

func (l *listener) finding(f jury.Finding) {
	fmt.Fprintf(l, "finding: message %d, axis %s, %s", f.Message, f.Axis, f.Severity)
	if name := l.peers.names[f.From]; name != "" {
		fmt.Fprintf(l, ", taken over from %s", name)
	}
	if !juror.Stands(l.c, f) { // whatever the juror that holds it says of it
		l.WriteString("; the quotation is not in that message, so the finding counts for nothing")
	}
	l.WriteByte('\n')
	l.text("rule", f.Rule)
	l.data("quote", f.Quote)
	l.text("explanation", f.Explanation)
}

// text writes a juror's own words, with the other jurors' ids replaced by the names that the reader knows.
func (l *listener) text(heading, text string) { l.data(heading, l.peers.hide(text)) }

func (l *listener) data(heading, text string) {
	if text == "" {
		return
	}
	for _, token := range l.hidden {
		text = strings.ReplaceAll(text, token, "[token]")
	}
	fmt.Fprintf(l, "%s:\n", heading)
	barred(&l.Builder, text)
}

// A row is a line of a juror's tables as another juror is shown it.
type row struct {
	table, answer string
	passages      []cited
}

// cited is a passage of a row, with what it shows.
type cited struct {
	what string
	*jury.Passage
}

func rowsOf(w *jury.Work) (list []row) {
	if w == nil {
		return nil
	}
	for i := range w.Requests {
		r := &w.Requests[i]
		list = append(list, row{"request", "state " + string(r.State), []cited{{"asked", &r.Request}, {"shown", r.Shown}}})
	}
	for i := range w.Acts {
		r := &w.Acts[i]
		list = append(list, row{"act", "holds " + string(r.Holds), []cited{{"call", &r.Call}, {"clause", r.Clause}, {"fact", r.Fact}}})
	}
	for i := range w.Amounts {
		r := &w.Amounts[i]
		list = append(list, row{"amount", "agrees " + string(r.Agrees), []cited{{"announced", r.Announced}, {"charged", r.Charged}}})
	}
	return list
}

// says reports whether two rows say the same of the same passage. They may quote more or less of it.
func (r *row) says(o *row) bool {
	a, b := r.subject(), o.subject()
	return r.table == o.table && r.answer == o.answer && a.Message == b.Message &&
		(strings.Contains(a.Quote, b.Quote) || strings.Contains(b.Quote, a.Quote))
}

func (r *row) subject() *jury.Passage {
	for _, p := range r.passages {
		if p.Passage != nil {
			return p.Passage
		}
	}
	return &jury.Passage{}
}

// work writes the rows of another juror's tables of which all passages stand, whatever the juror that holds them says of them, and that say
// what no row above them says: neither the reader's own nor another juror's.
func (l *listener) work(w *jury.Work) {
	invented := func(p cited) bool {
		return p.Passage != nil && !juror.Stands(l.c, jury.Finding{Message: p.Message, Quote: p.Quote})
	}
	for _, r := range rowsOf(w) {
		if !slices.ContainsFunc(r.passages, invented) && !slices.ContainsFunc(l.rows, func(above row) bool { return above.says(&r) }) {
			l.row(&r)
		}
	}
}

func (l *listener) row(r *row) {
	l.rows = append(l.rows, *r)
	fmt.Fprintf(l, "%s: %s\n", r.table, r.answer)
	for _, p := range r.passages {
		if p.Passage != nil {
			l.data(fmt.Sprintf("%s, message %d", p.what, p.Message), p.Quote)
		}
	}
}
