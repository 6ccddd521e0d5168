package model

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/court/juror"
	"jurat/internal/court/subject"
	"jurat/jury"
)

// showEvidence writes what is under trial as lines of data below the clerk's headings.
func showEvidence(c *subject.Case, how *jury.Shortening) (string, error) {
	if how != nil && how.Rule != Shorten {
		return "", fmt.Errorf("shortening by the rule %q, which is not known here: want %s", how.Rule, Shorten)
	}
	var pieces []piece
	if c.Card.Text != nil {
		card := c.Card.Text.Clone()
		if err := card.Indent(jsontext.WithIndent(" ")); err != nil {
			return "", fmt.Errorf("reading evidence: %w", err)
		}
		pieces = append(pieces, piece{heading: "agent card: what the agent says of itself, no message", text: string(card)})
	}
	if !c.HasCard && c.Recorded == nil {
		pieces = append(pieces, piece{heading: "agent card, no message", text: "none was submitted: what the agent says of itself is not known"})
	}
	if c.LeftOut != nil {
		var lines []string
		for _, o := range c.LeftOut {
			lines = append(lines, fmt.Sprintf("%s: %d", o.What, o.Count))
		}
		pieces = append(pieces, piece{heading: "what of the conversation is not shown, no message", text: strings.Join(lines, "\n")})
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

func unshow(shown string) string {
	return codePoint.ReplaceAllStringFunc(shown, func(written string) string {
		n, err := strconv.ParseUint(codePoint.FindStringSubmatch(written)[1], 16, 32)
		if err != nil || !utf8.ValidRune(rune(n)) {
			return written
		}
		return string(rune(n))
	})
}

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

// Shorten is the rule that shortens evidence above a trial's limit. The length of evidence is the number of bytes of
// its texts: the card, the state of the task, and of each message its text and the names and arguments of its calls.
//
// Above the limit, the longest results of tools are cut to a common length: the greatest that suffices, but at least
// 400 bytes. If that does not suffice, the agent's own texts are cut in the same way. The texts of the user and the
// operator, and tool calls, are never cut, so evidence may stay above the limit. A cut text keeps its beginning and
// its end, half each, in whole characters. A line between them, which the record cannot write, says how many
// characters are left out. The result depends only on the evidence and the limit. Quotations are checked against the
// full text.
//
// Values in the part of a tool's result that is left out stay if a later message repeats them, each with its
// surroundings up to the next comma, bracket or line end. They take up to half of the length: first those that calls or
// the agent's words repeat, then those that only results repeat, in the order of the text. A value is a word of 3 to
// 128 bytes with a digit, or one of at least 4 bytes that occurs less than 4 times in the result. Names of members are no values.
const Shorten = "jurat/shorten/v2"

// shortestCut is the smallest length in bytes to which a text is cut.
const shortestCut = 400

// kind says whether a text may be cut, and in which order.
type kind int

const (
	kept kind = iota
	result
	narration
)

// A piece is one text of the evidence below its heading.
type piece struct {
	heading  string
	text     string
	kind     kind
	from, to int    // the part of the text that is left out; from == to: the whole text is kept
	stays    []span // what of that part stays all the same, in order
}

func (p *piece) omitted() int {
	n := utf8.RuneCountInString(p.text[p.from:p.to])
	for _, s := range p.stays {
		n -= utf8.RuneCountInString(p.text[s.from:s.to])
	}
	return n
}

func shorten(pieces []piece, how *jury.Shortening) {
	if how == nil {
		return
	}
	excess := -how.Limit
	for i := range pieces {
		excess += len(pieces[i].text)
	}
	if excess <= 0 {
		return
	}
	l := laterOf(pieces)
	for _, k := range []kind{result, narration} {
		if excess > 0 {
			excess -= cut(pieces, k, excess, l)
		}
	}
}

// cut shortens the pieces of a kind to the greatest common length that saves enough, and returns how many bytes it
// saved.
func cut(pieces []piece, k kind, excess int, l *later) (saved int) {
	var sizes []int
	for _, p := range pieces {
		if p.kind == k {
			sizes = append(sizes, len(p.text))
		}
	}
	longest := slices.Max(append(sizes, shortestCut))
	if longest == shortestCut {
		return 0
	}
	saving := func(length int) (sum int) {
		for _, size := range sizes {
			sum += max(0, size-length)
		}
		return sum
	}
	// The first cut, counted down from the longest text, that saves enough; the shortest where none does.
	n := sort.Search(longest-shortestCut, func(n int) bool { return saving(longest-n) >= excess })
	length := longest - n
	for i := range pieces {
		if p := &pieces[i]; p.kind == k && len(p.text) > length {
			p.cutTo(length)
			saved += p.to - p.from
			if k == result {
				l.keep(pieces, i, length)
			}
		}
	}
	return saved
}

// keep cuts a result again so that the values which later pieces repeat have room in the same length.
func (l *later) keep(pieces []piece, i, length int) {
	const line = len(bar) + 1 // each value stands on a line of its own
	p := &pieces[i]
	found := l.repeated(pieces, i, span{p.from, p.to})
	var stays []span
	room := length / 2
	for _, s := range found {
		if room -= s.to - s.from + line; room < 0 {
			break
		}
		stays = append(stays, s)
	}
	if stays == nil {
		return
	}
	slices.SortFunc(stays, func(a, b span) int { return a.from - b.from })
	p.stays = apart(stays)
	used := 0
	for _, s := range p.stays {
		used += s.to - s.from + line
	}
	p.cutTo(length - used)
}

func apart(list []span) []span {
	joined := list[:1]
	for _, s := range list[1:] {
		if last := &joined[len(joined)-1]; s.from < last.to {
			last.to = max(last.to, s.to)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// cutTo keeps that many bytes of a longer text, or a few less, because it splits no character.
func (p *piece) cutTo(length int) {
	p.from, p.to = length-length/2, len(p.text)-length/2
	for !utf8.RuneStart(p.text[p.from]) {
		p.from--
	}
	for p.to < len(p.text) && !utf8.RuneStart(p.text[p.to]) {
		p.to++
	}
}

// A span is a part of a text, in bytes.
type span struct{ from, to int }

// Limits of what counts as a value that later messages repeat.
const (
	longestWord    = 128 // bytes; longer ones are data, not values
	longestSegment = 240 // bytes; a longer one stays as the neighbourhood of its value
	commonWord     = 4   // a word without a digit that occurs as often as this in one result distinguishes nothing
)

// later says of each word in which piece it occurs last, among all words and among those of calls and of the agent. Names of
// members do not count: results of the same tool always repeat them.
type later struct {
	last  map[string]int
	inAct map[string]int
}

func laterOf(pieces []piece) *later {
	l := &later{map[string]int{}, map[string]int{}}
	for i := range pieces {
		p := &pieces[i]
		words(p.text, func(w word) {
			if w.key {
				return
			}
			l.last[w.text] = i
			if p.kind != result {
				l.inAct[w.text] = i
			}
		})
	}
	return l
}

// A word is a run of letters, digits and the signs that stand inside identifiers, addresses and amounts.
type word struct {
	span
	text  string
	digit bool
	key   bool // the name of a member in JSON
}

// words calls each for every word of a text, in order.
func words(text string, each func(word)) {
	start, digit := -1, false
	end := func(to int) {
		from := start
		start = -1
		for to > from && strings.IndexByte(".-_@/+", text[to-1]) >= 0 { // the end of a sentence is not part of a value
			to--
		}
		if to-from >= 3 && to-from <= longestWord {
			each(word{span{from, to}, text[from:to], digit, isKey(text[to:])})
		}
	}
	for i, r := range text {
		inWord := unicode.IsLetter(r) || unicode.IsDigit(r) || start >= 0 && r < utf8.RuneSelf && strings.IndexByte(".-_@/+", byte(r)) >= 0
		if !inWord {
			if start >= 0 {
				end(i)
			}
			continue
		}
		if start < 0 {
			start, digit = i, false
		}
		digit = digit || unicode.IsDigit(r)
	}
	if start >= 0 {
		end(len(text))
	}
}

// isKey reports whether a colon follows the quotation mark that ends a name.
func isKey(rest string) bool {
	rest, quoted := strings.CutPrefix(rest, `"`)
	return quoted && strings.HasPrefix(strings.TrimLeft(rest[:min(len(rest), 4)], " "), ":")
}

// repeated returns the parts of piece i, between two places of its text, that hold a value which a later piece
// repeats: first what calls and the agent repeat, then what only results repeat. A part is the segment around the value,
// up to a comma, a bracket or a line end: in JSON, a member with its name.
func (l *later) repeated(pieces []piece, i int, within span) []span {
	text := pieces[i].text
	count := map[string]int{}
	words(text, func(w word) { count[w.text]++ })
	var acted, other []span
	literals := []string{"true", "false", "null"}
	words(text[within.from:within.to], func(w word) {
		if w.key || !w.digit && (len(w.text) < 4 || count[w.text] >= commonWord || slices.Contains(literals, w.text)) {
			return
		}
		w.from, w.to = w.from+within.from, w.to+within.from
		list := &other
		switch {
		case l.inAct[w.text] > i:
			list = &acted
		case l.last[w.text] <= i:
			return
		}
		if n := len(*list); n > 0 && (*list)[n-1].to >= w.to {
			return // of the same segment
		}
		*list = append(*list, segment(text, w.span, within))
	})
	return append(acted, other...)
}

func segment(text string, w, within span) span {
	low, high := max(within.from, w.from-longestSegment/2), min(within.to, w.to+longestSegment/2)
	s := w
	for s.from > low && strings.IndexByte(",;{}[]\n", text[s.from-1]) < 0 {
		s.from--
	}
	for s.to < high && strings.IndexByte(",;{}[]\n", text[s.to]) < 0 {
		s.to++
	}
	for s.from < w.from && !utf8.RuneStart(text[s.from]) {
		s.from++
	}
	for s.to > w.to && s.to < len(text) && !utf8.RuneStart(text[s.to]) {
		s.to--
	}
	for s.from < w.from && text[s.from] == ' ' {
		s.from++
	}
	return s
}
