package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/jsonform"
)

// A Label is what is known of a case. No juror sees it.
type Label struct {
	Failed bool   // what the agent did was wrong
	Kind   string // of failure or of case, such as "injection"; "": not said
	Trade  string // the field in which the agent works, such as "airline"; "": not said
	Source string // who or what decided on the outcome; "": not said
}

// Labels are labels by the names of cases.
type Labels map[string]Label

// A LabelError is a problem of a labels file, with its place.
type LabelError struct {
	File         string
	Line, Column int    // from 1
	Pointer      string // JSON Pointer; "": the document
	Reason       string
}

func (e *LabelError) Error() string {
	place := fmt.Sprintf("%s, line %d, column %d", e.File, e.Line, e.Column)
	if e.Pointer != "" {
		place += ", " + e.Pointer
	}
	return place + ": " + e.Reason
}

const (
	maxLabels   = 32 << 20 // bytes of a labels file
	maxProblems = 20       // that are told at once
	maxWord     = 200      // bytes of a kind, a trade, a source
)

// LabelsFile is the name of the labels file in a folder of cases.
const LabelsFile = "labels.json"

// ReadLabels reads a labels file. Its errors about content are *LabelError, joined.
func ReadLabels(file string) (Labels, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("reading labels: %w", err)
	}
	defer f.Close()
	doc, err := io.ReadAll(io.LimitReader(f, maxLabels+1))
	if err != nil {
		return nil, fmt.Errorf("reading labels: %w", err)
	}
	if len(doc) > maxLabels {
		return nil, fmt.Errorf("reading labels: %s: longer than %d MiB", file, maxLabels>>20)
	}
	return ParseLabels(filepath.Base(file), doc)
}

// ParseLabels reads labels: an object with a member for each case, named as the case's folder. Each has either "outcome", "good" or
// "failed", or "task_success", true or false. It may have "kind", "trade" and "source", which are texts, "why", a text for people, and "task" and
// "trial", texts or numbers. The laboratory ignores the last three. Everything else is a problem. The error joins up to 20 problems.
func ParseLabels(file string, doc []byte) (Labels, error) {
	p := &labelParser{file: file, doc: doc, from: jsontext.NewDecoder(bytes.NewReader(doc)), labels: Labels{}}
	p.document()
	if len(p.problems) > 0 {
		return nil, errors.Join(p.problems...)
	}
	return p.labels, nil
}

type labelParser struct {
	file     string
	doc      []byte
	from     *jsontext.Decoder
	labels   Labels
	problems []error
}

// wrong notes a problem at an offset, and reports whether reading goes on.
func (p *labelParser) wrong(offset int64, pointer jsontext.Pointer, format string, args ...any) bool {
	before := p.doc[:min(offset, int64(len(p.doc)))]
	start := bytes.LastIndexByte(before, '\n') + 1
	p.problems = append(p.problems, &LabelError{p.file, bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1,
		string(pointer), fmt.Sprintf(format, args...)})
	return len(p.problems) < maxProblems
}

// at is the offset of the token that comes next.
func (p *labelParser) at() int64 {
	_ = p.from.PeekKind()
	rest := p.doc[p.from.InputOffset():]
	return p.from.InputOffset() + int64(len(rest)-len(bytes.TrimLeft(rest, " \t\r\n,:")))
}

func (p *labelParser) syntax(err error) {
	offset, pointer, reason := p.from.InputOffset(), p.from.StackPointer(), err
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		offset, pointer, reason = syntactic.ByteOffset, syntactic.JSONPointer, syntactic.Err
	}
	if errors.Is(err, io.EOF) {
		reason = io.ErrUnexpectedEOF
	}
	p.wrong(offset, pointer, "this is not JSON: %s", jsonform.Syntax(reason))
}

const wantLabels = `want {"CASE": {"outcome": "good" or "failed", "kind": "…", "trade": "…"}, …}, with a member for each folder of a case`

func (p *labelParser) document() {
	start := p.at()
	open, err := p.from.ReadToken()
	switch {
	case err != nil:
		p.syntax(err)
		return
	case open.Kind() != '{':
		p.wrong(start, "", "%s", wantLabels)
		return
	}
	for p.from.PeekKind() != '}' {
		if !p.label() {
			return
		}
	}
	if _, err := p.from.ReadToken(); err != nil {
		p.syntax(err)
		return
	}
	if _, err := p.from.ReadToken(); !errors.Is(err, io.EOF) {
		p.wrong(p.from.InputOffset(), "", "something follows the object: want one object and nothing else")
	}
	if len(p.labels) == 0 && len(p.problems) == 0 {
		p.wrong(start, "", "it labels no case: %s", wantLabels)
	}
}

// label reads the name and the label of a case.
func (p *labelParser) label() bool {
	at := p.at()
	token, err := p.from.ReadToken()
	if err != nil {
		p.syntax(err)
		return false
	}
	name := token.String()
	pointer := p.from.StackPointer()
	if why := notACase(name); why != "" && !p.wrong(at, pointer, "%s", why) {
		return false
	}
	at = p.at()
	open, err := p.from.ReadToken()
	switch {
	case err != nil:
		p.syntax(err)
		return false
	case open.Kind() != '{':
		if open.Kind() == '[' {
			p.wrong(at, pointer, `want an object such as {"outcome": "good"}`)
			return false
		}
		return p.wrong(at, pointer, `want an object such as {"outcome": "good"}`)
	}
	return p.members(name, pointer, at)
}

func (p *labelParser) members(name string, pointer jsontext.Pointer, start int64) bool {
	var l Label
	outcomes := 0
	for p.from.PeekKind() != '}' {
		at := p.at()
		token, err := p.from.ReadToken()
		if err != nil {
			p.syntax(err)
			return false
		}
		member := token.String()
		here := p.from.StackPointer()
		valueAt := p.at()
		value, err := p.from.ReadValue()
		if err != nil {
			p.syntax(err)
			return false
		}
		if member == "outcome" || member == "task_success" {
			outcomes++
		}
		if why, ofName := l.set(member, value); why != "" {
			if !ofName {
				at = valueAt
			}
			if !p.wrong(at, here, "%s", why) {
				return false
			}
		}
	}
	if _, err := p.from.ReadToken(); err != nil {
		p.syntax(err)
		return false
	}
	p.labels[name] = l
	switch outcomes {
	case 0:
		return p.wrong(start, pointer, `the outcome is missing: want "outcome": "good" or "failed"`)
	case 1:
		return true
	}
	return p.wrong(start, pointer, `"outcome" and "task_success" say the same thing: give one of them`)
}

// set takes a member of a label. It returns what is wrong, and whether it is the member's name.
func (l *Label) set(member string, value jsontext.Value) (why string, ofName bool) {
	text, isText := "", value.Kind() == '"'
	if isText {
		raw, err := jsontext.AppendUnquote(nil, value)
		if err != nil {
			return err.Error(), false
		}
		text = string(raw)
	}
	word := map[string]*string{"kind": &l.Kind, "trade": &l.Trade, "source": &l.Source}[member]
	switch {
	case member == "outcome":
		if l.Failed = text == "failed"; text != "failed" && text != "good" || !isText {
			return fmt.Sprintf(`%s: want "good" or "failed"`, short(value)), false
		}
	case member == "task_success":
		if l.Failed = value.Kind() == 'f'; value.Kind() != 'f' && value.Kind() != 't' {
			return fmt.Sprintf("%s: want true or false", short(value)), false
		}
	case word != nil:
		if why := notAWord(text); !isText || why != "" {
			return fmt.Sprintf("%s: want a text of at most %d bytes without control characters", short(value), maxWord), false
		}
		*word = text
	case member == "why":
		if !isText {
			return fmt.Sprintf("%s: want a text", short(value)), false
		}
	case member == "task" || member == "trial":
		if !isText && value.Kind() != '0' {
			return fmt.Sprintf("%s: want a text or a number", short(value)), false
		}
	default:
		return fmt.Sprintf(`unknown member %q: want "outcome" (or "task_success"), "kind", "trade", "source", "why", "task", "trial"`, member), true
	}
	return "", false
}

func short(value jsontext.Value) string {
	if text := strings.ToValidUTF8(string(value), "\uFFFD"); len(text) <= 40 {
		return text
	}
	return "a value of " + fmt.Sprint(len(value)) + " bytes"
}

func notAWord(text string) string {
	if len(text) > maxWord || strings.ContainsFunc(text, unicode.IsControl) {
		return "not a word"
	}
	return ""
}

// notACase says why a name cannot be that of a case's folder; "" if it can.
func notACase(name string) string {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\`) || notAWord(name) != "" || !filepath.IsLocal(name) {
		return fmt.Sprintf("%q cannot be a case: want the name of a folder beside the labels, without a path", name)
	}
	return ""
}

// Names lists the cases in order.
func (l Labels) Names() []string {
	names := make([]string, 0, len(l))
	for name := range l {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
