package model

import (
	"fmt"
	"strconv"
	"strings"

	"jurat/internal/juror"
	"jurat/internal/subject"
	"jurat/jury"
)

// A listener writes what the jurors said, as one of them (the reader) gets it.
type listener struct {
	strings.Builder
	c      *subject.Case
	brief  *jury.Brief
	peers  *peers
	hidden []string // texts that must not appear there: the boundary of the evidence and its guard
}

// showJury writes everything that the jurors said, by phase and round, and within these in the reader's order.
func showJury(c *subject.Case, b *jury.Brief, p *peers, m marks) string {
	l := &listener{c: c, brief: b, peers: p, hidden: []string{m.boundary, m.guard}}
	for _, id := range append([]string{p.reader}, p.ids...) {
		for i := range b.Evaluations {
			if e := &b.Evaluations[i]; e.JurorID == id {
				l.evaluation(e, l.who(id)+", evaluating alone")
			}
		}
	}
	for i := range b.Rounds {
		l.round(&b.Rounds[i])
	}
	if b.Last != nil {
		place := "the one that you gave alone"
		if b.Last.RoundNumber > 0 {
			place = fmt.Sprintf("the one of round %d", b.Last.RoundNumber)
		}
		fmt.Fprintf(l, "\nyour own evaluation as it stands: %s\n", place)
	}
	return l.String()
}

func (l *listener) who(id string) string {
	if id == l.peers.reader {
		return "you"
	}
	return l.peers.names[id]
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
	if s.UpdatedEvaluation != nil {
		l.evaluation(s.UpdatedEvaluation, heading+", evaluation from now on")
	}
}

func (l *listener) evaluation(e *jury.Evaluation, heading string) {
	if e.Fallback {
		fmt.Fprintf(l, "\n%s: was kept from answering by a filter, so there is none\n", heading)
		return
	}
	fmt.Fprintf(l, "\n%s: %s, total %d, confidence %s\n", heading, e.Position, e.TotalScore, strconv.FormatFloat(e.Confidence, 'g', -1, 64))
	var points []string
	for _, axis := range l.brief.Rubric {
		points = append(points, fmt.Sprintf("%s %d", axis.ID, e.AxisScores[axis.ID]))
	}
	fmt.Fprintf(l, "points: %s\n", strings.Join(points, ", "))
	l.text("rationale", e.Rationale)
	for i, f := range e.Findings {
		l.finding(f, fmt.Sprintf("finding %d of %d", i+1, len(e.Findings)))
	}
}

func (l *listener) finding(f jury.Finding, heading string) {
	fmt.Fprintf(l, "%s: message %d, axis %s, %s", heading, f.Message, f.Axis, f.Severity)
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
