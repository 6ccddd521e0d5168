package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

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

// lines writes a text as it is broken into lines.
func (p *printer) lines(s string) {
	for row := range strings.Lines(s) {
		p.line("%s", strings.TrimSuffix(row, "\n"))
	}
}

// text writes a paragraph that an agent, a juror or a file may have written: inert, wrapped and indented.
func (p *printer) text(indent, s string) { p.paragraph("", indent, s) }

// warning is text that stands out.
func (p *printer) warning(indent, s string) { p.paragraph(yellow, indent, s) }

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

// paint colours a text, if the printer has colours and the colour is not "".
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

// statusIn writes a word in the colour of a status.
func (p *printer) statusIn(s verify.Status, word string) painted {
	colour := map[verify.Status]string{verify.Proved: green, verify.NotProved: yellow, verify.Refuted: red}[s]
	return p.paint(colour, word)
}

func (p *printer) position(position jury.Position) painted {
	return p.positionIn(position, fmt.Sprintf("%-12s", position))
}

// positionIn writes a word in the colour of a position.
func (p *printer) positionIn(position jury.Position, word string) painted {
	return p.paint(colours[position], word)
}

// colours are those of positions.
var colours = map[jury.Position]string{jury.SafePass: green, jury.NeedsReview: yellow, jury.UnsafeFail: red}
