package juror

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"jurat/internal/subject"
)

// A Passage is a place in a message that gives orders to its reader.
type Passage struct {
	Message    int    // its number
	Start, End int    // bytes of the message's text; both 0 if the text hides the passage, such as in base64
	Quote      string // what stands there, to the letter; "" if it is hidden
	Words      string // the whole passage as a model understands it: without escapes, decoded, with the order's paragraph
	Why        string // what makes it an order, as the end of a sentence that begins with "The passage"
	Sure       bool   // no honest text to people is worded so
	ToJurors   bool   // it speaks to those who judge the record, not to the agent
}

// Passages finds the passages of a case, in the order of messages, that address the agent or the jurors. It leaves out
// the operator's messages, and orders to the agent in the user's and in the agent's own words.
func Passages(c *subject.Case) []Passage {
	var list []Passage
	for i := range c.Messages {
		list = append(list, PassagesIn(&c.Messages[i])...)
	}
	return list
}

// PassagesIn finds the passages of one message.
func PassagesIn(m *subject.Message) []Passage {
	if m.Role == subject.System || m.Text == "" {
		return nil
	}
	var list []Passage
	if at, f := match(toJurors, m.Text); at != nil {
		p := Passage{Message: m.Number, Why: f.why, Sure: f.sure, ToJurors: true}
		p.Start, p.End = lineAround(m.Text, at[0])
		p.Quote = m.Text[p.Start:p.End]
		p.Words = p.Quote
		list = append(list, p)
	}
	if m.Role == subject.User || m.Role == subject.Assistant {
		return list
	}
	for _, text := range Fields(m.Text) {
		if mayOrder(text) {
			list = append(list, ordersOf(m, text)...)
		}
	}
	return list
}

// ordersOf finds the orders in a text of one author. Paragraphs between two orders, and one that an order announces
// with a colon, belong to them.
func ordersOf(m *subject.Message, text string) []Passage {
	var list []Passage
	paragraphs := Paragraphs(text)
	last := -1 // the paragraph that the last passage reaches to
	for i, paragraph := range paragraphs {
		readable := Readable(paragraph)
		joined := strings.Join(strings.Fields(readable), " ")
		at, f := match(orders, readable)
		if at == nil && joined != readable {
			at, f = match(orders, joined) // the order runs over a line's end
		}
		if at == nil {
			continue
		}
		if n := len(list); n > 0 && i-last <= 3 {
			p := &list[n-1]
			p.Words += "\n" + Readable(strings.Join(paragraphs[last+1:min(i+2, len(paragraphs))], "\n"))
			if f.sure && !p.Sure {
				p.Sure, p.Why = true, f.why
			}
			last = i
			continue
		}
		end := i + 1
		if announces(readable) || at[1] >= len(readable)-2 {
			end = min(i+2, len(paragraphs))
		}
		p := Passage{Message: m.Number, Words: Readable(strings.Join(paragraphs[i:end], "\n")), Why: f.why, Sure: f.sure}
		from, to := lineAround(readable, min(at[0], len(readable)))
		p.locate(m.Text, readable[from:to], paragraph)
		list = append(list, p)
		last = end - 1
	}
	return list
}

func announces(paragraph string) bool {
	return strings.HasSuffix(strings.TrimRight(paragraph, " \t\r\n>*"), ":")
}

// locate finds the line of an order in the message's text. Escapes may hide it: then it takes the paragraph, or its
// longest line that stands there to the letter.
func (p *Passage) locate(text, line, paragraph string) {
	if at := strings.Index(text, line); at >= 0 && line != "" {
		p.Start, p.End, p.Quote = at, at+len(line), line
		return
	}
	lines := append([]string{paragraph}, strings.FieldsFunc(paragraph, func(c rune) bool { return c == '\n' || c == '"' || c == '\\' })...)
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if len(line) <= len(p.Quote) || len(line) < 12 {
			continue
		}
		if at := strings.Index(text, line); at >= 0 {
			p.Start, p.End, p.Quote = at, at+len(line), line
		}
	}
}

var paragraphEnd = NewPattern(`(?:\r?\n|\\n)[ \t]*(?:\r?\n|\\n)\s*|\n(?:- )`)

// Paragraphs cuts a text at empty lines and at the items of a list, also where line breaks are written as \n.
func Paragraphs(text string) []string {
	return slices.DeleteFunc(paragraphEnd.Split(text, -1), func(s string) bool { return strings.TrimSpace(s) == "" })
}

// Fields splits a text by its form into parts with one author each: the names and values of JSON, the values of what Python
// prints, and the entries of YAML and other keyed lines. Another text is one part. What stands beside planted words, such as
// another mail in the same list, is not the attacker's.
func Fields(text string) []string {
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") || strings.HasPrefix(trimmed, `"`) {
		dec := json.NewDecoder(bytes.NewReader([]byte(trimmed)))
		dec.UseNumber()
		var v any
		if dec.Decode(&v) == nil && dec.InputOffset() == int64(len(trimmed)) {
			return valuesOf(v, nil)
		}
	}
	if printed.MatchString(trimmed) {
		return literals(trimmed)
	}
	return entries(text)
}

func valuesOf(v any, list []string) []string {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			list = valuesOf(v[name], append(list, name))
		}
	case []any:
		for _, item := range v {
			list = valuesOf(item, list)
		}
	case string:
		list = append(list, v)
	case json.Number:
		list = append(list, v.String())
	}
	return list
}

var (
	// printed matches how a list, a map, a tuple or an object begins that Python prints: [{'id': …, Mail(id='…'.
	printed   = NewPattern(`^[\[({]+\s*(?:['"]|\d+:|[A-Za-z_]\w*\(\w+=)|^[A-Za-z_]\w*\(\w+=`)
	literal   = NewPattern(`'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s'",:=()\[\]{}]+`)
	unescaped = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\'`, "'", `\"`, `"`, `\\`, `\`)
	// keyed matches a line that begins an entry of YAML, or a header: "- recipient: …".
	keyed = NewPattern(`^\s*(?:- )*[A-Za-z_][\w-]{0,40}:(?:\s|$)`)
)

// literals lists the values in what Python prints.
func literals(text string) (list []string) {
	for _, one := range literal.FindAllString(text, -1) {
		if q := one[0]; (q == '\'' || q == '"') && len(one) > 1 {
			one = unescaped.Replace(one[1 : len(one)-1])
		}
		list = append(list, one)
	}
	return list
}

// entries lists the entries of a text that is made of them: a keyed line, and what follows up to the next. A line that announces
// something in words keeps the lines after it. A text of other form is one entry.
func entries(text string) []string {
	lines := strings.Split(text, "\n")
	first := slices.IndexFunc(lines, func(line string) bool { return strings.TrimSpace(line) != "" })
	if first < 0 || !keyed.MatchString(lines[first]) {
		return []string{text}
	}
	var list []string
	announced := false
	for _, line := range lines {
		if len(list) == 0 || keyed.MatchString(line) && !announced {
			list = append(list, line)
		} else {
			list[len(list)-1] += "\n" + line
		}
		trimmed := strings.TrimSpace(line)
		announced = trimmed != "" && (announced || strings.HasSuffix(trimmed, ":") && len(strings.Fields(trimmed)) > 2)
	}
	return list
}

// mayOrder reports whether a field may give an order: one word gives none.
func mayOrder(field string) bool {
	return strings.ContainsAny(field, " \n") || len(field) > 40 || !isASCII(field)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Readable returns a text as a model may understand it: without characters that people do not see, with the letters
// that stand for others, and with what base64 in it says, beside it.
func Readable(text string) string {
	if !isASCII(text) {
		text = strings.Map(visible, text)
	}
	for _, coded := range base64Run.FindAllString(text, 4) {
		if said := decoded(coded); said != "" {
			text += "\n" + said
		}
	}
	return text
}

// visible maps tags (U+E0020 to U+E007E) and full-width forms to ASCII, and drops characters without width.
func visible(c rune) rune {
	switch {
	case c >= 0xE0020 && c <= 0xE007E:
		return c - 0xE0000
	case c >= 0xFF01 && c <= 0xFF5E:
		return c - 0xFEE0
	case c == '’' || c == '‘':
		return '\''
	case c == '\u00a0':
		return ' '
	case unicode.Is(unicode.Cf, c) || c >= 0xFE00 && c <= 0xFE0F:
		return -1
	}
	return c
}

var base64Run = NewPattern(`[A-Za-z0-9+/_-]{32,}={0,2}`)

// decoded returns what base64 says, if it is a text.
func decoded(coded string) string {
	coded = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(coded), "=")
	if len(coded)%4 == 1 {
		coded = coded[:len(coded)-1] // the run took one letter of the next word along
	}
	said, err := base64.RawStdEncoding.DecodeString(coded)
	if err != nil || !utf8.Valid(said) || bytes.Count(said, []byte(" ")) < 3 {
		return ""
	}
	for _, c := range string(said) {
		if !unicode.IsPrint(c) && !unicode.IsSpace(c) {
			return ""
		}
	}
	return string(said)
}
