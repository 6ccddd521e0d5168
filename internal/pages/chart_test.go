package pages

import (
	"strconv"
	"strings"
	"testing"

	"jurat/internal/words"
	"jurat/jury"
)

// gridOf makes a grid of these scores, -1 where a juror was absent and -2 where it was not asked; the last are at the end.
func gridOf(rounds int, scores ...[]int) (g Grid) {
	for round := range rounds {
		g.Rounds = append(g.Rounds, round+1)
	}
	for i, list := range scores {
		row := Row{Who: Who{Name: "juror " + string(rune('A'+i))}, Number: i + 1}
		for _, score := range list {
			cell := Cell{}
			switch score {
			case -1:
				cell.Absent = jury.AbsenceReason("timeout")
			case -2:
			default:
				cell.Vote = &Vote{Position: jury.NeedsReview, Score: score}
			}
			row.Cells = append(row.Cells, cell)
		}
		g.Rows = append(g.Rows, row)
	}
	for range rounds + 1 {
		g.Checks = append(g.Checks, &jury.ConsensusResult{AgreementLevel: 0.5, ConsensusStatus: "split"})
	}
	return g
}

// TestChart: each score of the grid is in the chart, where its points put it; a juror that was absent leaves a gap.
func TestChart(t *testing.T) {
	g := gridOf(2, []int{100, 40, 0, 0}, []int{50, -1, 60, 60}, []int{-2, 70, 70, -2})
	c := g.Chart()
	if c == nil {
		t.Fatal("there is no chart")
	}
	equal(t, len(c.Lines), 3)
	equal(t, c.Lines[0].Path, "M56 10L136 70L216 110L296 110")
	equal(t, c.Lines[1].Path, "M60 60M220 50L300 50")
	equal(t, c.Lines[2].Path, "M144 40L224 40")
	equal(t, c.Lines[1].Scores, []int{50, 60, 60})
	equal(t, c.Bars, []Bar{{53, 170, 20, 60, 166, 0.5}, {133, 170, 20, 140, 166, 0.5}, {213, 170, 20, 220, 166, 0.5}})
	equal(t, len(c.Labels), 3)
	if gridOf(0, []int{50, 50}).Chart() != nil {
		t.Error("without a discussion there is a chart")
	}
}

// TestChartOfAFullPanel: twelve jurors are told from each other, and all stand within the picture.
func TestChartOfAFullPanel(t *testing.T) {
	var all [][]int
	for i := range 12 {
		all = append(all, []int{i, 100 - i, 50})
	}
	looks := map[string]bool{}
	css := string(assets["jurat.css"].content)
	for _, l := range gridOf(1, all...).Chart().Lines {
		look := l.Sample
		for _, rule := range strings.Split(css, "\n") {
			if strings.HasPrefix(rule, ".chart") && (strings.Contains(rule, ".of-"+strconv.Itoa(l.Style)+",") || strings.Contains(rule, ".of-"+strconv.Itoa(l.Style)+")")) {
				look += rule[strings.Index(rule, "{"):]
			}
		}
		if looks[look] {
			t.Errorf("%s looks like another juror: %s", l.Name, look)
		}
		looks[look] = true
	}
}

// TestChartInPages: the picture of a trial has a title, a description and a way to the table, in each language; and none where
// nobody discussed.
func TestChartInPages(t *testing.T) {
	for name, page := range everyPage(t, words.English) {
		court, is := page.(*Court)
		if !is {
			continue
		}
		for _, lang := range words.Langs() {
			text := write(t, Frame{Lang: lang}, court)
			figure := text[strings.Index(text, `<figure class="chart"`):]
			figure = figure[:strings.Index(figure, "</figure>")]
			if court.First.Grid.Chart() == nil {
				if strings.Contains(figure, "<svg") {
					t.Errorf("%s: a picture of nothing", name)
				}
				continue
			}
			says := words.OfPages(lang)
			for _, want := range []string{`role="img"`, `<title id="chart-title">` + says["chart.title"], `<desc id="chart-desc">` + says["chart.desc"], `href="#grid"`, says["chart.agreement"]} {
				if !strings.Contains(figure, want) {
					t.Errorf("%s in %s: %q is missing in %s", name, lang, want, figure)
				}
			}
		}
	}
}
