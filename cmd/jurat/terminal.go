package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/court/juror"
)

// stdio is what a command reads and writes. Everything that is printed may hold what a stranger wrote: names of members, files, agents,
// texts of errors. So run guards both writers, and no command has the bare ones:
//
//	io.err       one Write is one message, and one line
//	io.out       text for people; control characters are shown, and not obeyed
//	newPrinter   the same with colours, and each value stays in its line
//	io.line      one line of that
//	io.json      a value for machines, in which such characters are escaped
//	io.document  a file: byte for byte, unless a terminal shows it
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// guarded puts the doors before both writers.
func (std stdio) guarded() stdio {
	return stdio{in: std.in, out: outlet{std.out, true}, err: &messages{to: std.err}}
}

// passing are the streams behind the doors, for a program that the user has jurat start: what that writes is its own, and passes as it is.
func (std stdio) passing() (out, err io.Writer) { return behind(std.out), behind(std.err) }

func behind(out io.Writer) io.Writer {
	switch door := out.(type) {
	case outlet:
		return door.to
	case *messages:
		return door.to
	}
	return out
}

// inert shows control and direction-changing characters: an agent on trial must not move the cursor, colour its verdict green or turn a line round.
func inert(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\t':
			return ' '
		case obeyed(c):
			return unicode.ReplacementChar
		}
		return c
	}, s)
}

// obeyed reports whether a terminal does something at a character, instead of showing it.
func obeyed(c rune) bool {
	return unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) || unicode.Is(unicode.Zl, c) || unicode.Is(unicode.Zp, c)
}

func inertLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = inert(lines[i])
	}
	return strings.Join(lines, "\n")
}

// inertJSON escapes the same characters in a JSON document. They occur only inside strings, so the values do not change.
func inertJSON(doc []byte) []byte {
	var out bytes.Buffer
	runner := underRunner()
	for _, c := range string(doc) {
		if c > 0x7e && obeyed(c) || c == '#' && runner {
			fmt.Fprintf(&out, `\u%04x`, c)
		} else {
			out.WriteRune(c)
		}
	}
	return out.Bytes()
}

// underRunner reports whether a runner reads this program's output for commands: of GitHub Actions, or one like it, or of Azure Pipelines.
func underRunner() bool { return os.Getenv("GITHUB_ACTIONS") != "" || os.Getenv("TF_BUILD") != "" }

// uncommanded changes what a runner would take for a command of an agent on trial: "::" at the beginning of a line, "##[" and "##vso[" anywhere.
func uncommanded(text string) string {
	if !underRunner() {
		return text
	}
	lines := strings.Split(strings.NewReplacer("##[", "# #[", "##vso[", "# #vso[").Replace(text), "\n")
	for i, line := range lines {
		if bare := strings.TrimLeftFunc(line, blank); strings.HasPrefix(bare, "::") {
			lines[i] = strings.TrimSuffix(line, bare) + ": " + bare[1:]
		}
	}
	return strings.Join(lines, "\n")
}

// blank reports whether a character does not show: a runner skips those before a command.
func blank(c rune) bool { return unicode.IsSpace(c) || c == '\ufeff' || c == unicode.ReplacementChar }

// oneLine is an error as one line: joined errors one after the other, other line feeds inert, what the JSON library refused in words for people.
func oneLine(err error) string {
	if plain := evidence.Steady(err); plain.Error() != err.Error() {
		return inert(plain.Error())
	}
	text := err.Error()
	var inner []error
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		inner = e.Unwrap()
	case interface{ Unwrap() error }:
		inner = append(inner, e.Unwrap())
	}
	var line strings.Builder
	for _, e := range inner {
		if e == nil {
			continue
		}
		before, after, found := strings.Cut(text, e.Error())
		if !found {
			continue
		}
		if before == "\n" && line.Len() > 0 { // errors.Join puts it between two
			before = "; "
		}
		line.WriteString(inert(before) + oneLine(e))
		text = after
	}
	return line.String() + inert(text)
}

// messages writes to stderr. It prints each Write as one line, whatever the message contains.
type messages struct {
	to  io.Writer
	log *slog.Logger // where it is set, messages are lines of this log

	lossy *lossyWriter // set once a server logs; nil: writes block
	quiet bool         // only errors and their hints are written
}

// hush leaves out what is neither a result nor an error.
func (std stdio) hush() {
	if m, ok := std.err.(*messages); ok {
		m.quiet = true
	}
}

// hushed reports whether only results and errors are wanted.
func (std stdio) hushed() bool {
	m, ok := std.err.(*messages)
	return ok && m.quiet
}

func (m *messages) Write(text []byte) (int, error) {
	if m.quiet && bytes.HasPrefix(text, []byte(noteBegins)) {
		return len(text), nil
	}
	line := uncommanded(inert(strings.TrimSuffix(string(text), "\n")))
	return len(text), m.line(line)
}

// noteBegins is how messages of the program begin. A server's log has other lines.
const noteBegins = "jurat: "

func (m *messages) line(line string) error {
	if m.log != nil {
		m.log.Info(strings.TrimPrefix(line, noteBegins))
		return nil
	}
	_, err := io.WriteString(m.to, line+"\n")
	return err
}

// tell says something beside the result, in a line on stderr.
func (std stdio) tell(format string, args ...any) { std.tellIf(true, format, args...) }

func (std stdio) tellIf(applies bool, format string, args ...any) {
	if applies {
		fmt.Fprintln(std.err, noteBegins+fmt.Sprintf(format, args...))
	}
}

func (std stdio) fail(what, hint string) {
	if m, ok := std.err.(*messages); ok && m.log != nil {
		var more []any
		if hint != "" {
			more = []any{"hint", hint}
		}
		m.log.Error(what, more...)
		return
	} else if ok {
		std.err = &messages{to: m.to, lossy: m.lossy} // also where notes are left out
	}
	std.tell("%s", what)
	std.tellIf(hint != "", "hint: %s", hint)
}

// logger returns a server's log, on stderr, which no caller waits for. With asJSON, messages become lines of it. Go's own library logs there, too.
func (std stdio) logger(asJSON bool) *slog.Logger {
	made := slog.New(slog.NewTextHandler(std.err, nil))
	if m, ok := std.err.(*messages); ok {
		if m.lossy == nil {
			m.lossy = newLossyWriter(m.to, leftOut(asJSON))
			m.to = m.lossy
		}
		if asJSON {
			m.log = cmp.Or(m.log, slog.New(slog.NewJSONHandler(escaping{m.to}, nil)))
			made = m.log
		}
	}
	log.SetFlags(0)
	log.SetOutput(library{made})
	return made
}

// A library takes what Go's own library logs, without what it quotes: net/http quotes what came on a connection unexpectedly, which may be an answer.
type library struct{ log *slog.Logger }

var inQuotes = juror.NewPattern(`"(?:[^"\\]|\\.)*"?`)

func (l library) Write(line []byte) (int, error) {
	l.log.Warn(inQuotes().ReplaceAllString(strings.TrimSpace(string(line)), "(…)"))
	return len(line), nil
}

// leftOut says how many lines of a log are missing, in the log's own form.
func leftOut(asJSON bool) func(to io.Writer, lost int64) {
	return func(to io.Writer, lost int64) {
		line := &messages{to: to}
		if asJSON {
			line.log = slog.New(slog.NewJSONHandler(escaping{to}, nil))
		}
		fmt.Fprintf(line, "jurat: %d lines are left out here: stderr was not read", lost)
	}
}

// flush waits for a while until what is to come out on stderr is out.
func (std stdio) flush() {
	if m, ok := std.err.(*messages); ok && m.lossy != nil {
		m.lossy.flush()
	}
}

type escaping struct{ to io.Writer }

func (e escaping) Write(line []byte) (int, error) {
	if _, err := e.to.Write(inertJSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// errGone says that the reader closed standard output, as head does.
var errGone = errors.New("standard output is closed")

// outlet is standard output. For people it shows what a terminal would obey.
type outlet struct {
	to     io.Writer
	people bool
}

func (o outlet) Write(text []byte) (int, error) {
	shown := text
	if o.people {
		shown = []byte(uncommanded(inertLines(string(text))))
	}
	_, err := o.to.Write(shown)
	switch {
	case errors.Is(err, syscall.EPIPE):
		return 0, fmt.Errorf("%w: %w", errGone, err)
	case err != nil:
		return 0, err
	}
	return len(text), nil
}

func bare(out io.Writer) io.Writer {
	if o, ok := out.(outlet); ok {
		return outlet{to: o.to}
	}
	return out
}

func (std stdio) line(format string, args ...any) error { return std.lineUnless(nil, format, args...) }

// lineUnless prints a line, unless what it tells of failed.
func (std stdio) lineUnless(failed error, format string, args ...any) error {
	p := newPrinter(std.out)
	p.err = failed
	p.line(format, args...)
	return p.err
}

// documents is where files go: byte for byte, as they are kept and compared. A terminal is shown them inert.
func (std stdio) documents() io.Writer {
	if terminalOf(std.out) != nil {
		return std.out
	}
	return bare(std.out)
}

// document prints a file that stands in memory, unless making it failed. So does print, and machine for JSON.
func (std stdio) document(doc []byte, err error) error {
	if err == nil {
		_, err = std.documents().Write(doc)
	}
	return err
}

func (std stdio) print(file marshaler, err error) error { return std.document(fileOf(file, err)) }

type marshaler interface{ Marshal() ([]byte, error) }

func fileOf(file marshaler, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return file.Marshal()
}

func (std stdio) json(value any) error { return std.machine(marshalIndented(value)) }

// jsonLine prints an object in one line. A name of a file in it may be anything.
func (std stdio) jsonLine(value any) error {
	doc, err := json.Marshal(value, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	return std.machine(append(doc, '\n'), err)
}

// machine prints a JSON document for machines. Its bytes need not be canonical.
func (std stdio) machine(doc []byte, err error) error {
	if err == nil {
		_, err = bare(std.out).Write(inertJSON(doc))
	}
	return err
}

// machineOf prints a JSON document that is too large to be held.
func (std stdio) machineOf(doc interface{ Write(io.Writer) error }) error {
	w := &inertJSONWriter{to: bare(std.out)}
	if err := doc.Write(w); err != nil {
		return err
	}
	_, err := w.Write([]byte{'\n'})
	return err
}

// An inertJSONWriter writes inertJSON of what it is given in pieces, which may end inside a character.
type inertJSONWriter struct {
	to   io.Writer
	tail []byte // the beginning of a character
}

func (w *inertJSONWriter) Write(p []byte) (int, error) {
	doc := append(w.tail, p...)
	end := len(doc)
	for last := len(doc) - 1; last >= max(0, len(doc)-utf8.UTFMax); last-- {
		if utf8.RuneStart(doc[last]) {
			if !utf8.FullRune(doc[last:]) {
				end = last
			}
			break
		}
	}
	w.tail = bytes.Clone(doc[end:])
	if _, err := w.to.Write(inertJSON(doc[:end])); err != nil {
		return 0, err
	}
	return len(p), nil
}

// marshalIndented is a value as a document of JSON, for machines and for people who look at it.
func marshalIndented(v any, more ...json.Options) ([]byte, error) {
	doc, err := json.Marshal(v, append(more, json.Deterministic(true), jsontext.Multiline(true), jsontext.WithIndent("  "))...)
	return append(doc, '\n'), err
}

type shown struct{ value any }

// Format implements fmt.Formatter.
func (s shown) Format(state fmt.State, verb rune) {
	text := fmt.Sprintf(fmt.FormatString(state, verb), s.value)
	_, _ = io.WriteString(state, inert(text)) // into fmt's buffer
}

// show has values printed inert. Painted text was made of what is.
func show(args []any) {
	for i, arg := range args {
		switch value := arg.(type) {
		case painted, int: // a number may be a width
		case error:
			args[i] = shown{oneLine(value)}
		default:
			args[i] = shown{arg}
		}
	}
}

func terminalOf(out io.Writer) *os.File {
	if m, ok := out.(*messages); ok && m.lossy != nil {
		out = m.lossy.to
	}
	if file, ok := behind(out).(*os.File); ok && isTerminal(file) {
		return file
	}
	return nil
}

const (
	heldLines = 4096            // of a log that wait to be written
	lastLines = 2 * time.Second // for them to be written when the program ends
)

// lossyWriter is a writer that never blocks its callers. A log's reader may have stopped reading, and a full pipe would then stop every
// request. It drops lines for which it has no room, and counts them. It is safe for concurrent use.
type lossyWriter struct {
	to    io.Writer
	lines chan item
	lost  atomic.Int64
	note  func(to io.Writer, lost int64) // writes how many lines were left out
}

// item is a line, or a caller that waits until all earlier lines are written.
type item struct {
	line    []byte
	written chan struct{}
}

func newLossyWriter(to io.Writer, note func(to io.Writer, lost int64)) *lossyWriter {
	p := &lossyWriter{to: to, lines: make(chan item, heldLines), note: note}
	go p.run() // as long as the process: a write that hangs cannot be ended
	return p
}

func (p *lossyWriter) run() {
	for next := range p.lines {
		if next.written != nil {
			close(next.written)
			continue
		}
		_, _ = p.to.Write(next.line) // the log's reader is gone, so there is no one to tell
		if lost := p.lost.Swap(0); lost > 0 {
			p.note(p.to, lost)
		}
	}
}

// Write implements io.Writer. It never fails and never waits.
func (p *lossyWriter) Write(line []byte) (int, error) {
	select {
	case p.lines <- item{line: append([]byte(nil), line...)}:
	default:
		p.lost.Add(1)
	}
	return len(line), nil
}

func (p *lossyWriter) flush() {
	late, written := time.After(lastLines), make(chan struct{})
	select {
	case p.lines <- item{written: written}:
		select {
		case <-written:
		case <-late:
		}
	case <-late:
	}
}

// progress tells how far something is that takes longer than a second, how fast it is, and when it will be done if it goes on so.
func progress(std stdio, what string) func(done, total int64) {
	begin, before := time.Now(), int64(0)
	last := begin
	return func(done, total int64) {
		if done < before { // of another step
			begin = time.Now()
		}
		if before = done; time.Since(last) >= time.Second {
			last = time.Now()
			std.tell("%s", howFar(what, done, total, last.Sub(begin)))
		}
	}
}

func howFar(what string, done, total int64, in time.Duration) string {
	text := fmt.Sprintf("%s: %d of %d", what, done, total)
	if done <= 0 || in <= 0 {
		return text
	}
	rate := float64(done) / in.Seconds()
	text += fmt.Sprintf(pick(rate < 100, ", %.2g a second", ", %.0f a second"), rate)
	if done >= total {
		return text
	}
	rest := time.Duration(float64(total-done) / rate * float64(time.Second))
	return text + ", about " + max(rest, time.Second).Round(time.Second).String() + " more"
}

// watched is a file that is read until the program is to end, and that tells how far it is read.
type watched struct {
	ctx  context.Context
	from io.ReadSeeker
	read int64
	tell func(read int64)
}

func watch(ctx context.Context, out stdio, file *os.File) io.Reader {
	w := &watched{ctx: ctx, from: file, tell: func(int64) {}}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		tell := progress(out, fmt.Sprintf("%s: KiB verified", file.Name()))
		w.tell = func(read int64) { tell(read>>10, info.Size()>>10) }
	}
	return w
}

// Seek goes to another place, as is done where a file is looked through before it is read.
func (w *watched) Seek(offset int64, whence int) (int64, error) {
	at, err := w.from.Seek(offset, whence)
	if err == nil {
		w.read = at
	}
	return at, err
}

func (w *watched) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.from.Read(p)
	w.read += int64(n)
	w.tell(w.read)
	return n, err
}
