package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/term"
	"golang.org/x/text/width"
)

// columns is how many columns of a terminal a text takes: two for each character that East Asian scripts write wide (UAX #11), none for
// marks over the one before.
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

// terminalColumns is how many columns the terminal behind a writer has, or 0 if nothing is to be cut: it is no terminal, or does not say.
// COLUMNS, which people set, comes first.
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

// A head is the head of a column.
type head struct {
	name  string
	right bool // numbers stand at the right
	rank  int  // on a terminal too narrow for the table, columns of a higher rank are cut first; 0: only if all others are cut
}

// A cell is a text, perhaps in a colour.
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

// below puts a paragraph below the last row.
func (t *table) below(text, colour string) {
	last := &t.rows[len(t.rows)-1]
	last.below = append(last.below, cell{text, colour})
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
