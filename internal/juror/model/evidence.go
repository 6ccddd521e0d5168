package model

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/juror"
	"jurat/internal/subject"
	"jurat/jury"
)

// showEvidence writes what is under trial as lines of data below the clerk's headings.
func showEvidence(c *subject.Case, material []byte, how *jury.Shortening) (string, error) {
	if how != nil && how.Rule != Shorten {
		return "", fmt.Errorf("shortening by the rule %q, which is not known here: want %s", how.Rule, Shorten)
	}
	card, err := cardOf(material)
	if err != nil {
		return "", err
	}
	var pieces []piece
	if card != "" {
		pieces = append(pieces, piece{heading: "agent card: what the agent says of itself, no message", text: card})
	}
	if !c.HasCard && c.Recorded == nil {
		pieces = append(pieces, piece{heading: "agent card, no message", text: "none was submitted: what the agent says of itself is not known"})
	}
	if c.LeftOut != nil {
		pieces = append(pieces, leftOut(c))
	}
	if c.Recorded != nil {
		pieces = append(pieces, verified(c.Recorded))
	}
	for i := range c.Messages {
		pieces = append(pieces, piecesOf(c, &c.Messages[i])...)
	}
	if c.TaskState != "" {
		pieces = append(pieces, piece{heading: "state of the task at the end, no message", text: c.TaskState})
	}
	shorten(pieces, how)
	var s strings.Builder
	for i := range pieces {
		pieces[i].write(&s)
	}
	showPassages(&s, c)
	return s.String(), nil
}

// mostPassages bounds the passages that are repeated. A record that gives instructions throughout shows it by itself.
const mostPassages = 5

// showPassages repeats, below the evidence, passages that give instructions to their reader and that the agent did not
// write. A reader that meets them a second time as such, with their place, takes them less for its task.
func showPassages(s *strings.Builder, c *subject.Case) {
	n := 0
	for _, found := range juror.Passages(c) {
		if m := c.Message(found.Message); m.Role == subject.Assistant || found.Words == "" || n == mostPassages {
			continue
		}
		n++
		p := piece{text: begin(found.Words, mostOfPassage), heading: fmt.Sprintf("passage of message %d, repeated here because it gives instructions to its reader; "+
			"chosen by a program, which may miss some and choose harmless ones", found.Message)}
		p.write(s)
	}
}

// mostOfPassage is how many bytes of a passage are repeated.
const mostOfPassage = 400

// begin returns the beginning of a text, in whole characters.
func begin(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// leftOut says what the conversation has and jurors are not shown.
func leftOut(c *subject.Case) piece {
	var lines []string
	for _, o := range c.LeftOut {
		lines = append(lines, fmt.Sprintf("%s: %d", o.What, o.Count))
	}
	return piece{heading: "what of the conversation is not shown, no message", text: strings.Join(lines, "\n")}
}

// verified writes what the submitter found when verifying the records.
func verified(r *subject.Recorded) piece {
	v := &r.Verification
	var s strings.Builder
	fmt.Fprintf(&s, "%s\nproved: %s", v.Outcome, strings.Join(v.Proved, ", "))
	for _, d := range v.NotProved {
		of := "all records"
		if d.Records != nil {
			of = "the records " + strings.Join(d.Records, ", ")
		}
		fmt.Fprintf(&s, "\nnot proved of %s: %s: %s", of, d.Guarantee, d.Reason)
	}
	return piece{heading: "what the submitter found when verifying the records that the messages come from, no message", text: s.String()}
}

// cardOf returns the submitted agent card, indented; "" if the evidence has none. It returns an error if the evidence
// is not JSON.
func cardOf(material []byte) (string, error) {
	var whole struct {
		Card jsontext.Value `json:"agentCard"`
	}
	if err := json.Unmarshal(material, &whole); err != nil {
		return "", fmt.Errorf("reading evidence: %w", err)
	}
	if whole.Card == nil {
		return "", nil
	}
	if err := whole.Card.Indent(jsontext.WithIndent(" ")); err != nil {
		return "", fmt.Errorf("reading evidence: %w", err)
	}
	return string(whole.Card), nil
}

// piecesOf splits a message into one piece for each speaker and kind of text.
func piecesOf(c *subject.Case, m *subject.Message) []piece {
	var list []piece
	add := func(k kind, text, format string, args ...any) {
		list = append(list, piece{heading: fmt.Sprintf("message %d, %s", m.Number, fmt.Sprintf(format, args...)), text: text, kind: k})
	}
	if m.Head != "" {
		add(kept, m.Head, "record that begins here, not to be quoted")
	}
	switch m.Role {
	case subject.System:
		add(kept, m.Text, "operator: instructions to the agent")
	case subject.User:
		if m.Text != "" || len(m.ToolCalls) == 0 {
			add(kept, m.Text, "user: what the user says to the agent")
		}
	case subject.Tool:
		if m.CallNumber == 0 {
			add(result, m.Text, "what the agent was given, or the result of a call that is in no message")
			break
		}
		whose, failed := "", ""
		if m.AnswersTo == subject.User {
			whose = "the user's own "
		}
		if m.Failed {
			failed = ", which the log marks as an error"
		}
		add(result, m.Text, "tool: result of %scall %d of %d in message %d%s", whose, m.CallPlace, len(c.Message(m.CallNumber).ToolCalls), m.CallNumber, failed)
	case subject.Reviewer:
		add(kept, m.Text, "reviewer: what a person decided on what the agent said")
	case subject.Operator:
		add(kept, m.Text, "operator: what became of what the agent said")
	case subject.Recorder:
		add(kept, m.Text, "recorder: what a program that saw the agent's acts says of them")
	case subject.Assistant:
		switch {
		case m.Text == "" && len(m.ToolCalls) > 0:
		case m.Part == "prompt":
			add(narration, m.Text, "agent: what a prompt says that the agent had said")
		default:
			add(narration, m.Text, "agent: what the agent says")
		}
	default: // an unknown role is not taken for the agent
		add(kept, m.Text, "somebody else: neither the agent nor its user")
	}
	caller := "agent"
	if m.Caller() == subject.User {
		caller = "user"
	}
	for i, call := range m.ToolCalls {
		add(kept, call.Name, "%s: tool call %d of %d, name", caller, i+1, len(m.ToolCalls))
		if call.Arguments != "" {
			add(kept, call.Arguments, "%s: tool call %d of %d, arguments", caller, i+1, len(m.ToolCalls))
		}
	}
	if m.Name != "" {
		add(kept, m.Name, "name of who speaks, not to be quoted")
	}
	return list
}

func (p *piece) write(s *strings.Builder) {
	fmt.Fprintf(s, "\n%s\n", p.heading)
	if p.from == p.to {
		barred(s, p.text)
		return
	}
	barred(s, p.text[:p.from])
	fmt.Fprintf(s, "(left out here: %d characters; a quotation from them cannot be checked by sight)\n", p.omitted())
	if p.stays != nil {
		s.WriteString("(what later messages repeat of them:)\n")
		for _, stay := range p.stays {
			barred(s, p.text[stay.from:stay.to])
		}
		s.WriteString("(the end, without a gap:)\n")
	}
	barred(s, p.text[p.to:])
}

// bar begins each line of data, so that no such line can look like one of the frame's.
const bar = "| "

// hidden reports whether a character is invisible or changes how others show: controls, format characters such as
// those that reverse a line, zero-width characters and tags, variation selectors, fillers, private use, line
// separators.
func hidden(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '⟨': // so that text cannot imitate a written code point
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// show writes invisible characters as their code points.
func show(text string) string {
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var s strings.Builder
	for _, r := range text {
		if hidden(r) {
			fmt.Fprintf(&s, "⟨U+%04X⟩", r)
		} else {
			s.WriteRune(r)
		}
	}
	return s.String()
}

var codePoint = regexp.MustCompile(`⟨U\+([0-9A-F]{4,6})⟩`)

// unshow reverses show.
func unshow(shown string) string {
	return codePoint.ReplaceAllStringFunc(shown, func(written string) string {
		n, err := strconv.ParseUint(codePoint.FindStringSubmatch(written)[1], 16, 32)
		if err != nil || !utf8.ValidRune(rune(n)) {
			return written
		}
		return string(rune(n))
	})
}

// barred writes a text as lines of data.
func barred(s *strings.Builder, text string) {
	for line := range strings.SplitSeq(show(text), "\n") {
		s.WriteString(bar)
		s.WriteString(line)
		s.WriteByte('\n')
	}
}

// quoted finds a juror's quotation in a message, in its original or its shown form, and returns the passage as it stands
// there. It returns the quotation unchanged if the message does not have it.
func quoted(m *subject.Message, quote string) string {
	if m == nil {
		return quote
	}
	plain := unshow(quote)
	for _, text := range []string{quote, plain, strings.ReplaceAll(strings.TrimPrefix(plain, bar), "\n"+bar, "\n")} {
		if passage, found := m.Passage(text); found && strings.TrimSpace(passage) != "" {
			return passage
		}
	}
	return quote
}
