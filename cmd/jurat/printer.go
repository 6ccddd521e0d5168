package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/term"
	"golang.org/x/text/width"

	"jurat/jury"
	"jurat/verify"
)

// printer writes lines for people, in colour where a terminal shows them. The first write that fails is kept in err.
type printer struct {
	out     io.Writer
	colour  bool
	width   int // of paragraphs
	columns int // of the terminal, for tables; 0: it is none
	err     error
}

const plainWidth = 100 // columns where no terminal says how many it has

func newPrinter(out io.Writer) *printer {
	p := &printer{out: bare(out), width: plainWidth}
	file := terminalOf(out)
	if file == nil {
		return p
	}
	p.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if p.columns = terminalColumns(file); p.columns > 40 {
		p.width = min(p.columns, plainWidth)
	}
	return p
}

func isTerminal(file *os.File) bool { return term.IsTerminal(int(file.Fd())) }

// line writes one line. Each value stays in it: what it holds is shown, and not obeyed.
func (p *printer) line(format string, args ...any) {
	if p.err != nil {
		return
	}
	show(args)
	text := fmt.Sprintf(format, args...)
	_, p.err = io.WriteString(p.out, uncommanded(text)+"\n")
}

func (p *printer) lines(s string) {
	for row := range strings.Lines(s) {
		p.line("%s", strings.TrimSuffix(row, "\n"))
	}
}

// text writes a paragraph that an agent, a juror or a file may have written: inert, wrapped and indented.
func (p *printer) text(indent, s string) { p.paragraph("", indent, s) }

func (p *printer) warning(indent, s string) { p.paragraph(yellow, indent, s) }

func (p *printer) lineIf(applies bool, format string, args ...any) {
	if applies {
		p.line(format, args...)
	}
}

func (p *printer) textIf(applies bool, indent, format string, args ...any) {
	if applies {
		p.text(indent, fmt.Sprintf(format, args...))
	}
}

func (p *printer) warnIf(applies bool, indent, format string, args ...any) {
	if applies {
		p.warning(indent, fmt.Sprintf(format, args...))
	}
}

func (p *printer) paragraph(colour, indent, s string) {
	for paragraph := range strings.SplitSeq(s, "\n") {
		for _, row := range wrap(inert(paragraph), p.width-len(indent)) {
			p.line("%s%s", indent, p.paint(colour, row))
		}
	}
}

// wrap breaks a paragraph at spaces. A word that is too long is left whole: copying it should give what was said.
func wrap(s string, width int) []string {
	var rows []string
	row, length := "", 0
	for word := range strings.FieldsSeq(s) {
		n := columns(word)
		if length > 0 && length+1+n > width {
			rows, row, length = append(rows, row), "", 0
		}
		if length > 0 {
			row, length = row+" ", length+1
		}
		row, length = row+word, length+n
	}
	if length > 0 {
		rows = append(rows, row)
	}
	return rows
}

// painted is text for a terminal: what may be foreign in it is inert, and the escape sequences are this program's.
type painted string

func (p *printer) paint(code, s string) painted {
	if !p.colour || code == "" {
		return painted(inert(s))
	}
	return painted("\x1b[" + code + "m" + inert(s) + "\x1b[0m")
}

func (p *printer) bold(s string) painted { return p.paint(bold, s) }
func (p *printer) dim(s string) painted  { return p.paint("2", s) }

const (
	bold   = "1"
	green  = "32"
	yellow = "33"
	red    = "31"
)

func (p *printer) status(s verify.Status) painted { return p.statusIn(s, fmt.Sprintf("%-10s", s)) }

func (p *printer) statusIn(s verify.Status, word string) painted {
	colour := map[verify.Status]string{verify.Proved: green, verify.NotProved: yellow, verify.Refuted: red}[s]
	return p.paint(colour, word)
}

func (p *printer) position(position jury.Position) painted {
	return p.positionIn(position, fmt.Sprintf("%-12s", position))
}

func (p *printer) positionIn(position jury.Position, word string) painted {
	return p.paint(colours[position], word)
}

var colours = map[jury.Position]string{jury.SafePass: green, jury.NeedsReview: yellow, jury.UnsafeFail: red}

// columns is how many columns of a terminal a text takes: two for each wide character (UAX #11), none for marks over the one before.
func columns(text string) int {
	n := 0
	for _, c := range text {
		n += columnsOf(c)
	}
	return n
}

func columnsOf(c rune) int {
	switch kind := width.LookupRune(c).Kind(); {
	case unicode.In(c, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case kind == width.EastAsianWide, kind == width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// shorter cuts a text to so many columns. What is cut off leaves "…".
func shorter(text string, most int) string {
	if columns(text) <= most {
		return text
	}
	n := 1 // of the "…"
	for i, c := range text {
		if n += columnsOf(c); n > most {
			return text[:i] + "…"
		}
	}
	return text
}

// terminalColumns is how many columns a terminal has, by COLUMNS first, which people set; 0: it is none, or does not say, and nothing is cut.
func terminalColumns(file *os.File) int {
	if file == nil {
		return 0
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	n, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return n
}

// A table is what lists print: a row of heads, and a row for each thing.
type table struct {
	heads []head
	rows  []tableRow
}

type tableRow struct {
	cells []cell
	below []cell // paragraphs below the row
}

type head struct {
	name  string
	right bool // numbers stand at the right
	rank  int  // on a terminal too narrow for the table, columns of a higher rank are cut first; 0: only if all others are cut
}

type cell struct {
	text   string
	colour string
}

// row adds a row. A cell that is no cell is printed with %v.
func (t *table) row(cells ...any) {
	var row []cell
	for _, c := range cells {
		is, ok := c.(cell)
		if !ok {
			is.text = fmt.Sprint(c)
		}
		is.text = inert(strings.ReplaceAll(is.text, "\n", " "))
		row = append(row, is)
	}
	t.rows = append(t.rows, tableRow{cells: row})
}

// below adds a paragraph below the last row, if it applies.
func (t *table) below(applies bool, colour, format string, args ...any) {
	if last := &t.rows[len(t.rows)-1]; applies {
		last.below = append(last.below, cell{fmt.Sprintf(format, args...), colour})
	}
}

const gap = 2 // columns between two cells

// widths are the columns that each cell gets, on a terminal that has so many; 0: as many as the cells take.
func (t *table) widths(most int) []int {
	list := make([]int, len(t.heads))
	total, highest := -gap, 0
	for i, h := range t.heads {
		list[i], highest = columns(h.name), max(highest, h.rank)
		for _, row := range t.rows {
			list[i] = max(list[i], columns(row.cells[i].text))
		}
		total += list[i] + gap
	}
	if most == 0 {
		return list
	}
	for _, least := range []int{8, 3} { // what is left of a cell, if the other columns can give the rest
		for rank := highest; rank >= 0; rank-- {
			for i, h := range t.heads {
				if h.rank == rank {
					cut := max(0, min(total-most, list[i]-least))
					list[i], total = list[i]-cut, total-cut
				}
			}
		}
	}
	return list
}

// remarks are what is to be said of something, as far as it applies.
type remarks []string

func (r *remarks) add(applies bool, format string, args ...any) {
	if applies {
		*r = append(*r, fmt.Sprintf(format, args...))
	}
}

// behind joins the remarks as they stand behind a text.
func (r remarks) behind(between string) string {
	if len(r) == 0 {
		return ""
	}
	return between + strings.Join(r, between)
}

func joined[T any](list []T, between string, text func(T) string) string {
	texts := make([]string, len(list))
	for i, one := range list {
		texts[i] = text(one)
	}
	return strings.Join(texts, between)
}

func count[T any](list []T, is func(T) bool) (n int) {
	for _, one := range list {
		if is(one) {
			n++
		}
	}
	return n
}

func pick(is bool, text, instead string) string {
	if is {
		return text
	}
	return instead
}

// table prints a table that has rows. On a terminal no row is longer than a line.
func (p *printer) table(t *table) {
	if len(t.rows) == 0 {
		return
	}
	widths := t.widths(p.columns)
	heads := make([]cell, len(t.heads))
	for i, h := range t.heads {
		heads[i] = cell{h.name, bold}
	}
	for _, row := range append([]tableRow{{cells: heads}}, t.rows...) {
		var line strings.Builder
		for i, c := range row.cells {
			text, last := shorter(c.text, widths[i]), i == len(row.cells)-1
			pad := strings.Repeat(" ", widths[i]-columns(text))
			switch shown := string(p.paint(c.colour, text)); {
			case t.heads[i].right:
				line.WriteString(pad + shown)
			case last:
				line.WriteString(shown) // nothing follows
			default:
				line.WriteString(shown + pad)
			}
			if !last {
				line.WriteString(strings.Repeat(" ", gap))
			}
		}
		p.line("%s", painted(line.String()))
		for _, c := range row.below {
			p.paragraph(c.colour, "    ", c.text)
		}
	}
}
