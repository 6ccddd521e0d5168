package lab

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"sync"

	"github.com/go-json-experiment/json"

	"jurat/internal/plural"
	"jurat/internal/stats"
	"jurat/jury"
)

// A Part is a piece of a report for people: a text, a table whose first row is its head, or both.
type Part struct {
	Heading string
	Text    []string
	Caption string // of the table
	Table   [][]string
	Detail  bool // of one panel: the page has it, and a terminal has not
}

//go:embed report.html
var source string

var page = sync.OnceValue(func() *template.Template { return template.Must(template.New("report").Parse(source)) })

// Render returns the report as a page, which needs neither script nor network.
func Render(r *Report) ([]byte, error) {
	var out bytes.Buffer
	if err := page().Execute(&out, r.Parts()); err != nil {
		return nil, fmt.Errorf("writing page: %w", err)
	}
	return out.Bytes(), nil
}

// Parts is the report for people, in the order of reading.
func (r *Report) Parts() []Part {
	head := Part{Text: []string{fmt.Sprintf("%s, %d good and %d failed (%s); %s, %d of them held before.", plural.Of(r.Labels.Cases, "case"), r.Labels.Good, r.Labels.Failed, r.Labels.Source,
		plural.Of(len(r.Trials), "trial"), r.Settings.Earlier)}, Caption: "Each panel on all cases. Intervals are 95 %, and count cases. Bare length is what the number of messages alone tells",
		Table: [][]string{groupHead("panel")}}
	if r.Settings.Stopped != "" {
		head.Text = append(head.Text, fmt.Sprintf("The run is not whole: %s, and %s left.", r.Settings.Stopped, plural.Of(len(r.Left), "trial")+plural.Or(len(r.Left), " is", " are")))
	}
	for i := range r.Panels {
		head.Table = append(head.Table, groupRow(r.Panels[i].Name, &r.Panels[i].All))
	}
	head.Table = append(head.Table, []string{"(bare length)", "", "", figure(r.Length)})
	parts := []Part{head}
	if len(r.Comparisons) > 0 {
		parts = append(parts, comparisons(r))
	}
	for i := range r.Panels {
		parts = append(parts, r.Panels[i].parts()...)
	}
	return append(parts, Part{Heading: "Not measured", Text: r.Unmeasured},
		Part{Text: []string{fmt.Sprintf("Spent in this laboratory: %s. report.json has the figures of each trial.", dollars(float64(r.Settings.Spent)))}, Detail: true})
}

func comparisons(r *Report) Part {
	p := Part{Heading: "Which is better?", Caption: fmt.Sprintf("Differences on the cases that both have judged: a bootstrap over cases, %d samples, seed %d", r.Settings.Samples, r.Settings.Seed),
		Table: [][]string{{"difference", "cases", "AUC", "accuracy", "good flagged", "failed flagged", "USD/trial", "shown to be better"}}}
	for _, c := range r.Comparisons {
		better := "neither"
		if c.Better != "" {
			better = c.Better
		}
		p.Table = append(p.Table, []string{c.A + " minus " + c.B, fmt.Sprint(c.Cases), difference(c.AUC), difference(c.Accuracy), difference(c.FlaggedGood), difference(c.Recall),
			c.Cost.Text("%+.4f", 1e-6), better})
	}
	return p
}

// groupHead and groupRow are the figures of a group of cases.
func groupHead(what string) []string {
	return []string{what, "good", "failed", "AUC", "accuracy", "precision", "good flagged", "failed flagged", "good accused", "failed accused", "confidence AUC", "USD/trial"}
}

func groupRow(name string, g *Group) []string {
	if g.Small {
		name += " (small)"
	}
	return []string{name, fmt.Sprint(g.Good), fmt.Sprint(g.Failed), figure(g.AUC), figure(g.Accuracy), figure(g.Precision), figure(g.FlaggedGood), figure(g.FlaggedFailed), figure(g.AccusedGood),
		figure(g.AccusedFailed), figure(g.ConfidenceAUC), dollars(g.Costs.Cost)}
}

func (p *PanelReport) parts() []Part {
	first := Part{Heading: "Panel " + p.Name}
	seats := ""
	for _, s := range p.Settings.Seats {
		seats += fmt.Sprintf("%s (%s %s), ", s.JurorID, s.Provider, s.Model)
	}
	g, t, c := &p.All, p.All.Talk, p.All.Costs
	say := func(format string, args ...any) { first.Text = append(first.Text, fmt.Sprintf(format, args...)) }
	say("%smethod %s; %d trials, %d left. Same verdict when tried again: %s.", seats, p.Settings.Method, p.Trials, p.Left, figure(p.Retest))
	say("%d of the trials are degraded.", g.Degraded)
	say("%d trials were discussed, with %d changes of position. Talk turned the majority in %d: %d from wrong to right, %d from right to wrong.", t.Discussed, t.Changes, t.Turned, t.ToRight, t.ToWrong)
	say("A trial has %.1f calls and %.0f tokens and costs %s on average; its median wait for models is %.1f s.", c.Calls, c.Tokens, dollars(c.Cost), c.MedianWaited/1000)
	if s := p.Single; s != nil {
		say("The best single juror, chosen for each case on the other cases and asked %d times a case: AUC %s, accuracy %s. The panel, with %.1f answers a trial: AUC %s, accuracy %s. Difference in AUC: %s.",
			s.Answers, figure(s.AUC), figure(s.Accuracy), s.PanelAnswers, figure(s.PanelAUC), figure(s.PanelRight), difference(s.Difference))
	}
	parts := []Part{first, tagsPart("kind", p.ByKind), tagsPart("trade", p.ByTrade), p.jurorsPart(), findingsPart(g.Findings)}
	for i := range parts {
		parts[i].Detail = true
	}
	return parts
}

func tagsPart(what string, groups []Group) Part {
	p := Part{Caption: "By " + what, Table: [][]string{groupHead(what)}}
	for i := range groups {
		p.Table = append(p.Table, groupRow(groups[i].Tag, &groups[i]))
	}
	return p
}

func (p *PanelReport) jurorsPart() Part {
	part := Part{Caption: "Each juror by its first vote, before any talk", Table: [][]string{{"juror", "model", "votes", "AUC", "accuracy", "confidence AUC"}}}
	for _, j := range p.Jurors {
		part.Table = append(part.Table, []string{j.Juror, j.Model, fmt.Sprint(j.Votes), figure(j.AUC), figure(j.Accuracy), figure(j.ConfidenceAUC)})
	}
	return part
}

func findingsPart(list []FindingKind) Part {
	p := Part{Caption: "What was found, in how many cases, and how many of these had failed. A lift of 1 says nothing", Table: [][]string{{"rule", "found", "cases", "share of failed", "lift"}}}
	for _, f := range list {
		p.Table = append(p.Table, []string{f.Rule, fmt.Sprint(f.Found), fmt.Sprint(f.Failed.Cases), figure(f.Failed), number(f.Lift)})
	}
	return p
}

func figure(f Figure) string                { return f.Text("%.2f", 1) }
func difference(d stats.Coefficient) string { return d.Text("%+.2f", 1) }
func number(v *float64) string              { return stats.Coefficient{Value: v}.Text("%.2f", 1) }
func dollars(micro float64) string          { return fmt.Sprintf("$%.4f", micro/1e6) }

// A vote is a line of a votes file, as 'jurat-lab calibrate' reads it.
type vote struct {
	Item       string         `json:"item"`
	Juror      string         `json:"juror"`
	Vote       *jury.Position `json:"vote"` // null: none
	Label      jury.Position  `json:"label"`
	Confidence *float64       `json:"confidence,omitzero"`
	stats.Made
}

// Votes writes the first votes of a panel's jurors, of the first repeat alone: repeats of a case are not independent items. The right
// answer is safe_pass for a good case and unsafe_fail for a failed one, so needs_review is never right. A juror that took another position when
// it was asked again abstains: that is what weights are applied to.
func Votes(trials []Trial, panel *Panel) ([]byte, error) {
	var out bytes.Buffer
	made := map[string]stats.Made{}
	for _, seat := range panel.Settings.Seats {
		made[seat.JurorID] = stats.Made{Model: seat.Model, Template: seat.Template.String()}
	}
	for _, t := range by(trials, panel.Name) {
		if t.Repeat != 1 {
			continue
		}
		label := jury.SafePass
		if t.Outcome == Failed {
			label = jury.UnsafeFail
		}
		for _, v := range t.Alone {
			line := vote{Item: t.Case, Juror: v.Juror, Label: label, Made: made[v.Juror]}
			if v.Position != "" && !v.Abstained {
				line.Vote, line.Confidence = &v.Position, &v.Confidence
			}
			doc, err := json.Marshal(line)
			if err != nil {
				return nil, err
			}
			out.Write(append(doc, '\n'))
		}
	}
	return out.Bytes(), nil
}
