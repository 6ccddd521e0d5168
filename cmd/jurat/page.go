package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"

	"jurat/jury"
	"jurat/verify"
)

// page writes lines for people, in colour where a terminal shows them. The first write that fails is kept in err.
type page struct {
	out    io.Writer
	colour bool
	width  int
	err    error
}

const plainWidth = 100 // columns where no terminal says how many it has

func newPage(out io.Writer) *page {
	p := &page{out: out, width: plainWidth}
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return p
	}
	p.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 40 {
		p.width = min(columns, plainWidth)
	}
	return p
}

func (p *page) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format+"\n", args...)
	}
}

// text writes a paragraph that an agent, a juror or a file may have written: inert, wrapped and indented.
func (p *page) text(indent, s string) {
	for paragraph := range strings.SplitSeq(s, "\n") {
		for _, row := range wrap(inert(paragraph), p.width-len(indent)) {
			p.line("%s%s", indent, row)
		}
	}
}

// wrap breaks a paragraph at spaces. A word that is too long is left whole: copying it should give what was said.
func wrap(s string, width int) []string {
	var rows []string
	row, length := "", 0
	for word := range strings.FieldsSeq(s) {
		n := len([]rune(word))
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

// inert shows control and direction-changing characters instead of obeying them: an agent on trial must not be able
// to move the cursor, colour its verdict green or turn a line round.
func inert(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\t':
			return ' '
		case unicode.IsControl(c):
			return '\uFFFD'
		case unicode.Is(unicode.Bidi_Control, c), unicode.Is(unicode.Zl, c), unicode.Is(unicode.Zp, c):
			return '\uFFFD'
		}
		return c
	}, s)
}

func (p *page) paint(code, s string) string {
	if !p.colour {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *page) bold(s string) string { return p.paint("1", s) }
func (p *page) dim(s string) string  { return p.paint("2", s) }

const (
	green  = "32"
	yellow = "33"
	red    = "31"
)

func (p *page) status(s verify.Status) string { return p.statusIn(s, fmt.Sprintf("%-10s", s)) }

// statusIn writes a word in the colour of a status.
func (p *page) statusIn(s verify.Status, word string) string {
	colour := map[verify.Status]string{verify.Proved: green, verify.NotProved: yellow, verify.Refuted: red}[s]
	return p.paint(colour, word)
}

func (p *page) position(position jury.Position) string {
	colour := map[jury.Position]string{jury.SafePass: green, jury.NeedsReview: yellow, jury.UnsafeFail: red}[position]
	return p.paint(colour, fmt.Sprintf("%-12s", position))
}
