package pages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"jurat/internal/court/trial"
	"jurat/jury"
)

// A First is what the first screen of a courtroom says beside the outcome: why, on which message, how each seat came to
// its position, and who disagrees. All of it follows from the sealed records by fixed rules.
type First struct {
	Jury      string   // the first two sentences of the judgment's reasons; "": there is no judgment yet
	Person    string   // the same of the reason of the person whose decision counts; "": nobody decided, or no reason is shown
	Finding   *Finding // the gravest finding on the verdict's side whose quotation stands; nil: there is none
	By        Who      // whose finding it is
	Grid      Grid
	Against   []*Juror // whose last vote is another position than the verdict
	WithoutIt []*Juror // who have no vote; a neutral stand-in is none
}

// A Grid shows the seats, and how each position and score came about.
type Grid struct {
	Again  bool  // disputed seats were asked a second time
	Rounds []int // of the discussion, as far as somebody has answered
	Rows   []Row
	Checks []*jury.ConsensusResult // one for each column before the last; nil: not yet, or not needed
}

// A Row is a seat of the grid, or the judge.
type Row struct {
	Who
	Number int // of the seat; 0: the judge
	Cells  []Cell
}

// A Cell is what one seat held at one time. An empty one says that it was not asked, or has not answered.
type Cell struct {
	Anchor   string // of the answer; "": there is none
	Vote     *Vote
	Change   int  // of the score since the answer before
	Moved    bool // the position is another than before
	Same     bool // it is an answer that keeps the position of the one before
	Absent   jury.AbsenceReason
	Abstains bool
}

// A Proof is what the proof of a trial rests on, as the server that holds the log says of itself.
type Proof struct {
	Clocks    int // time-stamping authorities whose clock is independent of the operator
	Witnesses int // who cosign the log's checkpoints
	Quorum    int // how many of them must
}

func (c *Court) first(v *trial.View) First {
	f := First{Grid: c.grid(v)}
	if c.Judgment == nil {
		return f
	}
	f.Jury = opening(c.Judgment.Rationale)
	if said, finding := gravest(v); finding != nil {
		f.Finding, f.By = &Finding{Finding: *finding}, c.who(said.Juror)
	}
	for _, j := range c.Jurors {
		switch {
		case j.VoteEnd == nil || j.VoteEnd.Fallback:
			f.WithoutIt = append(f.WithoutIt, j)
		case j.VoteEnd.Position != c.Judgment.Position:
			f.Against = append(f.Against, j)
		}
	}
	return f
}

// personsReason returns the beginning of the reason of the decision that counts.
func (c *Court) personsReason() string {
	if c.Outcome == nil || c.Outcome.Decision == nil {
		return ""
	}
	for _, d := range c.Human {
		if d.Record == c.Outcome.Decision.Record {
			return opening(d.Changes)
		}
	}
	return ""
}

// gravest finds what the verdict rests on: of the findings whose quotation stands, by the judge or by seats that hold
// the verdict's position at the end, the most severe one; of several the judge's, and then the one said first.
func gravest(v *trial.View) (by *trial.Said, finding *trial.Finding) {
	rank := 0
	for _, said := range v.Said {
		if !onSide(v, said) {
			continue
		}
		for i := range said.Findings {
			f := &said.Findings[i]
			r := 2 + 2*slices.Index([]jury.Severity{jury.Minor, jury.Major, jury.Critical}, f.Severity)
			if said.Seat == 0 {
				r++
			}
			if f.Here && f.Stands && r > rank {
				by, finding, rank = said, f, r
			}
		}
	}
	return by, finding
}

// onSide reports whether an answer is the judge's, or by a seat that holds the verdict's position at the end.
func onSide(v *trial.View, said *trial.Said) bool {
	if said.Seat == 0 {
		return said == v.Judge
	}
	if said.Seat > len(v.Judgment.Votes) {
		return false
	}
	vote := v.Judgment.Votes[said.Seat-1]
	return vote.Position != nil && *vote.Position == v.Judgment.Position
}

func (c *Court) grid(v *trial.View) Grid {
	g := Grid{}
	for _, said := range v.Said {
		g.Again = g.Again || phaseOf(said) == jury.Repetition
		if said.Discusses() && !slices.Contains(g.Rounds, said.Round) {
			g.Rounds = append(g.Rounds, said.Round)
		}
	}
	for _, j := range c.Jurors {
		g.Rows = append(g.Rows, c.gridRow(&g, v, j))
	}
	if v.Reading != nil || v.Judge != nil {
		cells := make([]Cell, g.columns())
		cells[0], cells[len(cells)-1] = c.cell(v.Reading, nil), c.cell(v.Judge, nil)
		g.Rows = append(g.Rows, Row{Who: c.who(cmp.Or(v.Judge, v.Reading).Juror), Cells: cells})
	}
	g.Checks = append(g.Checks, v.Alone)
	if g.Again {
		g.Checks = append(g.Checks, v.Again)
	}
	for _, round := range g.Rounds {
		g.Checks = append(g.Checks, v.Rounds[round])
	}
	return g
}

// AsBefore reports whether a check has the status of the one before.
func (g Grid) AsBefore(check int) bool {
	if check == 0 || g.Checks[check] == nil || g.Checks[check-1] == nil {
		return false
	}
	return g.Checks[check].ConsensusStatus == g.Checks[check-1].ConsensusStatus
}

// columns returns the number of columns: alone, a second time, each round, at the end.
func (g *Grid) columns() int {
	n := 2 + len(g.Rounds)
	if g.Again {
		n++
	}
	return n
}

// column returns where an answer belongs; -1: nowhere.
func (g *Grid) column(said *trial.Said) int {
	switch phaseOf(said) {
	case jury.Initial:
		return 0
	case jury.Repetition:
		return 1
	case jury.Discussion:
		return g.columns() - 1 - len(g.Rounds) + slices.Index(g.Rounds, said.Round)
	}
	return -1
}

func (c *Court) gridRow(g *Grid, v *trial.View, j *Juror) Row {
	row := Row{Who: j.Who, Number: j.Number, Cells: make([]Cell, g.columns())}
	var before *Vote
	for _, said := range v.Said {
		if at := g.column(said); said.Seat == j.Number && at >= 0 {
			row.Cells[at] = c.cell(said, before)
			before = cmp.Or(row.Cells[at].Vote, before)
		}
	}
	if g.Again && row.Cells[1].Vote != nil && row.Cells[0].Vote != nil {
		row.Cells[1].Abstains = row.Cells[1].Vote.Position != row.Cells[0].Vote.Position
	}
	if j.VoteEnd != nil {
		row.Cells[len(row.Cells)-1] = moved(Cell{Vote: j.VoteEnd}, before)
	}
	return row
}

// cell describes an answer. before is the seat's vote before it; nil: it had none.
func (c *Court) cell(said *trial.Said, before *Vote) Cell {
	if said == nil {
		return Cell{}
	}
	cell := Cell{Anchor: c.anchor(said)}
	switch body := said.Body.(type) {
	case *jury.Evaluation:
		cell.Vote = voteOf(body)
	case *jury.Statement:
		if e := body.UpdatedEvaluation; e != nil {
			cell.Vote = voteOf(e)
		} else if before != nil {
			cell.Vote = &Vote{body.Position, before.Score, before.Fallback}
		}
	case *jury.Opinion:
		cell.Vote = &Vote{Position: body.Position, Score: body.TotalScore}
	case *jury.Absent:
		cell.Absent = body.Reason
	}
	return moved(cell, before)
}

func moved(cell Cell, before *Vote) Cell {
	if cell.Vote != nil && before != nil {
		cell.Change, cell.Moved = cell.Vote.Score-before.Score, cell.Vote.Position != before.Position
		cell.Same = cell.Anchor != "" && !cell.Moved
	}
	return cell
}

func voteOf(e *jury.Evaluation) *Vote { return &Vote{e.Position, e.TotalScore, e.Fallback} }

// phaseOf returns the phase of an answer; that of the judge's opinion is Judging.
func phaseOf(said *trial.Said) jury.Phase {
	switch body := said.Body.(type) {
	case *jury.Evaluation:
		return body.Phase
	case *jury.Absent:
		return body.Phase
	case *jury.Statement:
		return jury.Discussion
	}
	return jury.Judging
}

// maxOpening is the length in characters of what the first screen quotes.
const maxOpening = 360

// opening returns the first two sentences of a text, in one line. What is too long is cut.
func opening(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	ends, n := 0, 0
	for at, r := range text {
		if n++; n > maxOpening {
			return text[:at] + "…"
		}
		after := text[at+max(utf8.RuneLen(r), 1):]
		if endsSentence(r, after) {
			if ends++; ends == 2 {
				return strings.TrimSuffix(text, after)
			}
		}
	}
	return text
}

// endsSentence reports whether a character ends a sentence before a text: a point in a number or an abbreviation does not.
func endsSentence(r rune, after string) bool {
	if strings.ContainsRune("。！？", r) {
		return true
	}
	rest, spaced := strings.CutPrefix(after, " ")
	first, _ := utf8.DecodeRuneInString(rest)
	return strings.ContainsRune(".!?", r) && (after == "" || spaced && !unicode.IsLower(first))
}

// Undecided reports whether the jury neither passed nor failed the agent.
func (c *Court) Undecided() bool {
	return c.Outcome != nil && !slices.Contains(jury.Decidable(), c.Outcome.Verdict.Position)
}

// Reasons lists the marks for which a person must decide.
func (c *Court) Reasons() []Mark {
	return slices.DeleteFunc(c.Marks(), func(m Mark) bool { return m == Offline || m == PartlyOffline || m == Broken })
}

// A Chart draws the scores of a grid, a line for each juror, and below them how far the jury agreed. The grid has the same
// numbers as a table.
type Chart struct {
	Lines  []Line
	Labels []Label
	Bars   []Bar
}

// A Line is a juror's scores from left to right. It is broken where the juror has no vote.
type Line struct {
	Who
	Style  int // by which it is told from the others: colour, dashes and mark
	Path   string
	Marks  string // one at each score
	Sample string // its mark in the legend
	Scores []int
}

// A Label names a column, or the columns of the discussion.
type Label struct {
	X, Y int
	Of   string // alone, again, talk or end
}

// A Bar is the agreement at one time.
type Bar struct {
	X, Y, Height int
	Middle, Over int // where its number stands
	Level        float64
}

// Measures of a chart in units of its picture. On a phone, a unit is about a pixel.
const (
	chartLeft  = 40
	chartRight = 320
	chartTop   = 10
	chartSpan  = 100 // height of the scores: a unit is a point
	barsBottom = 190
	barsSpan   = 40
	barWidth   = 14
	styles     = 12 // a panel has no more seats
)

// Chart draws the grid. It returns nil if there was no discussion to show.
func (g Grid) Chart() *Chart {
	if len(g.Rounds) == 0 {
		return nil
	}
	c := &Chart{Labels: g.labels()}
	jurors := slices.DeleteFunc(slices.Clone(g.Rows), func(row Row) bool { return row.Number == 0 })
	for i, row := range jurors {
		c.Lines = append(c.Lines, g.line(i, len(jurors), row))
	}
	for i, check := range g.Checks {
		if check != nil {
			x, height := g.x(i), int(check.AgreementLevel*barsSpan+0.5)
			c.Bars = append(c.Bars, Bar{x - barWidth/2, barsBottom - height, height, x, barsBottom - height - 4, check.AgreementLevel})
		}
	}
	return c
}

func (g Grid) x(column int) int {
	return chartLeft + 20 + (chartRight-chartLeft-40)*column/(g.columns()-1)
}

// labels names the columns, in two lines by turns, as the names are wider than a column.
func (g Grid) labels() (list []Label) {
	first := g.columns() - 1 - len(g.Rounds)
	add := func(of string, x int) {
		list = append(list, Label{X: x, Y: barsBottom + 16 + 14*(len(list)%2), Of: of})
	}
	add("alone", g.x(0))
	if g.Again {
		add("again", g.x(1))
	}
	add("talk", (g.x(first)+g.x(first+len(g.Rounds)-1))/2)
	add("end", g.x(g.columns()-1))
	return list
}

// line draws a juror's scores. Jurors stand a little beside each other, so that equal scores do not hide one another.
func (g Grid) line(i, jurors int, row Row) Line {
	l := Line{Who: row.Who, Style: i % styles, Sample: markAt(i, 14, 7)}
	aside := 4*i - 2*(jurors-1)
	var path, marks strings.Builder
	step := "M"
	for column, cell := range row.Cells {
		if cell.Vote == nil {
			if cell.Absent != "" {
				step = "M"
			}
			continue
		}
		x, y := g.x(column)+aside, chartTop+chartSpan-cell.Vote.Score
		fmt.Fprintf(&path, "%s%d %d", step, x, y)
		marks.WriteString(markAt(i, x, y))
		l.Scores, step = append(l.Scores, cell.Vote.Score), "L"
	}
	l.Path, l.Marks = path.String(), marks.String()
	return l
}

func markAt(i, x, y int) string {
	switch i % 4 {
	case 0:
		return fmt.Sprintf("M%d %da4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", x-4, y)
	case 1:
		return fmt.Sprintf("M%d %dh7v7h-7z", x-3, y-3)
	case 2:
		return fmt.Sprintf("M%d %dl5 9h-10z", x, y-5)
	}
	return fmt.Sprintf("M%d %dl5 5l-5 5l-5 -5z", x, y-5)
}
