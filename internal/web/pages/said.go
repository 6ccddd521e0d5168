package pages

import (
	"bytes"
	"cmp"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/court/subject"
	"jurat/internal/web/words"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
)

// A stretch is a part of a foreign text: ordinary characters, or characters that need a mark to be visible.
type stretch struct {
	Text string
	Mark string // the characters' code points; "": no mark is needed, or there are too many already
	Shut bool   // it can change the direction of what follows, so it is isolated
	CR   bool   // a carriage return, which HTML keeps only as a character reference
}

// maxMarks is the largest number of marks for one text. A text of such characters alone would make the page thirty
// times as large. The rest is isolated by one plain <bdi>, which is short.
const maxMarks = 2000

// said splits a text into stretches for the template "said".
func said(text string) []stretch {
	text = strings.ToValidUTF8(text, "\uFFFD")
	var parts []stretch
	marks, from := 0, 0
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		if !needsMark(r) || marks >= maxMarks && !turns(r) && r != '\r' {
			at += size
			continue
		}
		if from < at {
			parts = append(parts, stretch{Text: text[from:at]})
		}
		run := at + size
		for r != '\r' { // repeated characters share a mark
			next, n := utf8.DecodeRuneInString(text[run:])
			if n == 0 || next != r {
				break
			}
			run += n
		}
		parts = append(parts, marked(text[at:run], r, (run-at)/size, marks < maxMarks))
		marks++
		at, from = run, run
	}
	if from < len(text) {
		parts = append(parts, stretch{Text: text[from:]})
	}
	return parts
}

func marked(text string, r rune, times int, named bool) stretch {
	s := stretch{Text: text, Shut: true, CR: r == '\r'}
	if named {
		s.Mark = fmt.Sprintf("U+%04X", r)
	}
	if named && times > 1 {
		s.Mark += fmt.Sprintf(" ×%d", times)
	}
	return s
}

func turns(r rune) bool {
	return r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 || r == 0x200E || r == 0x200F || r == 0x061C
}

// joins are invisible characters inside words: in Persian, in Indic scripts, in emoji.
func joins(r rune) bool { return r == 0x200C || r == 0x200D || r == 0xFE0F || r == 0xFE0E }

// needsMark reports whether a character is invisible, or changes how others show.
func needsMark(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || joins(r):
		return false
	case r >= 0xE0000 && r <= 0xE007F: // tags, which can hide text
		return true
	}
	return turns(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == 0x2028 || r == 0x2029 || r == 0x115F || r == 0x3164
}

// longText is the length in bytes from which a text gets a scrolling box.
const longText = 2500

func long(text string) bool { return len(text) > longText || strings.Count(text, "\n") > 40 }

// A tool result of more lines or bytes than these is folded.
const (
	foldLines = 12
	foldBytes = 1200
)

func folds(text string) bool { return lines(text) > foldLines || len(text) > foldBytes }

func lines(text string) int { return strings.Count(strings.TrimRight(text, "\n"), "\n") + 1 }

// maxPlain is the length in characters of a text in places that allow only plain characters: titles and attributes.
const maxPlain = 80

// plain prepares a text for a title or an attribute: one short line without invisible characters.
func plain(text string) string {
	var line strings.Builder
	n := 0
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		if n++; n > maxPlain {
			return line.String() + "…"
		}
		switch {
		case r == '\n' || r == '\t':
			r = ' '
		case needsMark(r):
			r = '\uFFFD'
		}
		line.WriteRune(r)
	}
	return line.String()
}

// moment is a time, or one that this program wrote into a value of package api; one that cannot be read is zero.
func moment(at any) time.Time {
	if text, is := at.(string); is {
		read, _ := time.Parse(time.RFC3339, text)
		return read
	}
	return at.(time.Time)
}

// clock formats a time for people, the same in every language.
func clock(at any) string {
	if t := moment(at); !t.IsZero() {
		return t.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	return "–"
}

// instant formats a time for programs, for <time datetime>.
func instant(at any) string { return moment(at).UTC().Format(time.RFC3339Nano) }

// kinds has the kind of each type of values that have a name, as keys of texts begin.
var kinds = map[reflect.Type]string{
	reflect.TypeFor[verify.Guarantee]():        "guarantee",
	reflect.TypeFor[verify.Status]():           "status",
	reflect.TypeFor[trust.Clock]():             "clock",
	reflect.TypeFor[evidence.ActionType]():     "action",
	reflect.TypeFor[evidence.Role]():           "role",
	reflect.TypeFor[evidence.ApprovalStatus](): "approval",
	reflect.TypeFor[jury.Position]():           "position",
	reflect.TypeFor[jury.Method]():             "method",
	reflect.TypeFor[jury.Severity]():           "severity",
	reflect.TypeFor[jury.ConsensusStatus]():    "consensus",
	reflect.TypeFor[jury.AbsenceReason]():      "absence",
	reflect.TypeFor[subject.Role]():            "speaker",
	reflect.TypeFor[api.State]():               "state",
	reflect.TypeFor[Mark]():                    "mark",
}

// known returns the name of a record's value in a language, or "" if it has none.
func known(lang words.Lang, value any) string {
	return words.OfPages(lang).Say(kinds[reflect.TypeOf(value)] + "." + fmt.Sprint(value))
}

// name returns the name of a record's value in a language. It returns values without a name unchanged.
func name(lang words.Lang, value any) string {
	return cmp.Or(known(lang, value), plain(fmt.Sprint(value)))
}

// class returns the class in the style sheet of a value with a name; "unknown" for others, so that records cannot invent classes.
func class(value any) string {
	if known(words.English, value) == "" {
		return "unknown"
	}
	return strings.ReplaceAll(fmt.Sprint(value), " ", "_")
}

// Choose returns the language of a page: the chosen one, or else the first available one of an Accept-Language header.
func Choose(chosen, accept string) words.Lang {
	if slices.Contains(words.Langs(), words.Lang(chosen)) {
		return words.Lang(chosen)
	}
	best, weight := words.English, 0.0
	for part := range strings.SplitSeq(accept[:min(len(accept), 1000)], ",") {
		tag, parameters, _ := strings.Cut(part, ";")
		primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		if q := quality(parameters); q > weight && slices.Contains(words.Langs(), words.Lang(primary)) {
			best, weight = words.Lang(primary), q
		}
	}
	return best
}

// quality reads the weight of a language (RFC 9110, section 12.4.2). The default is 1.
func quality(parameters string) float64 {
	value, is := strings.CutPrefix(strings.TrimSpace(parameters), "q=")
	if !is {
		return 1
	}
	var q float64
	if _, err := fmt.Sscanf(value, "%g", &q); err != nil || q < 0 || q > 1 {
		return 0
	}
	return q
}

// text returns a JSON value in readable form: the content of a string, indented JSON for other values.
func text(v jsontext.Value) string {
	if len(v) == 0 {
		return ""
	}
	var s string
	if v.Kind() == '"' && json.Unmarshal(v, &s) == nil {
		return s
	}
	shown := bytes.Clone(v)
	indented := jsontext.Value(shown)
	if err := indented.Indent(jsontext.WithIndent("  ")); err != nil {
		return string(v) // shown unchanged, because text must never disappear only because it cannot be laid out
	}
	return string(indented)
}

// Paths of pages. Their identifiers come from records, so they are untrusted.

func submissionPath(id string) string { return "/submissions/" + url.PathEscape(id) }

func recordPath(id string) string { return "/records/" + url.PathEscape(id) }

func chainPath(id string) string { return "/chains/" + url.PathEscape(id) }

// A longer text is not sent with a page: its beginning is, with its length and a link to the whole text.
const (
	wholeData   = 4_000  // bytes of what tools were called with and returned, and of members of records
	wholeSpeech = 20_000 // bytes of what agents and people said

	beginBytes = 600 // of a beginning
	beginLines = 8
)

type Extent struct {
	Text  string
	Href  string // of the page with the whole text, with its place there; "": Text is the whole text
	Chars int    // of the whole text
	Lines int
}

// extent cuts a text that has more bytes than a page carries.
func extent(text string, most int, href string) Extent {
	e := Extent{Text: text, Chars: utf8.RuneCountInString(text), Lines: lines(text)}
	if len(text) > most {
		e.Text, e.Href = begin(text), href
	}
	return e
}

// begin returns the beginning of a text, and cuts no character.
func begin(text string) string {
	end := min(len(text), beginBytes)
	for end > 0 && end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	n := 0
	for at, r := range text[:end] {
		if r == '\n' {
			if n++; n == beginLines {
				return text[:at]
			}
		}
	}
	return text[:end]
}

type Call struct {
	subject.ToolCall
	Body Extent // the arguments
}

// Parts of a message on its own page.
const textPart = "text"

func callPart(i int) string { return "call-" + strconv.Itoa(i+1) }

func (m Message) Path() string {
	return submissionPath(m.Trial) + "/messages/" + strconv.Itoa(m.Number)
}

func (m Message) Body() Extent {
	most := wholeSpeech
	if m.Role == subject.Tool {
		most = wholeData
	}
	return extent(m.Text, most, m.Path()+"#"+textPart)
}

// Calls returns the calls that the message makes, with their arguments as far as the courtroom carries them.
func (m Message) Calls() (list []Call) {
	for i, call := range m.ToolCalls {
		list = append(list, Call{call, extent(call.Arguments, wholeData, m.Path()+"#"+callPart(i))})
	}
	return list
}

func (m Member) Body() Extent {
	return extent(m.Text, wholeData, recordPath(m.record)+"/member?"+url.Values{"name": {m.Name}}.Encode()+"#"+textPart)
}

// Whole is the page of one message of a conversation, or of one member of a record, that shows it whole.
type Whole struct {
	Message  *subject.Message // nil: it is a member
	Member   string           // its name; "": it is a message
	Back     string           // the address of the page that shows its beginning
	Parts    []Part
	Withheld bool
}

type Part struct {
	ID   string
	Tool string // the name of the called tool; "": it is the text itself
	Text string
	Code bool
}

// WholeMessage returns the page of a message; nil if the courtroom shows no such message.
func (c *Court) WholeMessage(number int) *Whole {
	if number < 1 || number > len(c.Messages) {
		return nil
	}
	m := c.Messages[number-1]
	w := &Whole{Message: m.Message, Back: submissionPath(c.ID) + "#message-" + strconv.Itoa(m.Number)}
	if m.Text != "" {
		w.Parts = append(w.Parts, Part{ID: textPart, Text: m.Text, Code: m.Role == subject.Tool})
	}
	for i, call := range m.ToolCalls {
		w.Parts = append(w.Parts, Part{ID: callPart(i), Tool: call.Name, Text: call.Arguments, Code: true})
	}
	return w
}

// WholeMember returns the page of a member of a record; nil if the record has no such member.
func WholeMember(r *evidence.Record, name string) *Whole {
	input, output, configuration := membersOf(r)
	for _, list := range [][]Member{input, output, configuration} {
		for _, m := range list {
			if m.Name == name {
				return &Whole{Member: name, Back: recordPath(r.Payload.RecordID), Withheld: m.Withheld, Parts: []Part{{ID: textPart, Text: m.Text, Code: m.JSON}}}
			}
		}
	}
	return nil
}

// Mentions is the page of the messages of a conversation that have a text.
type Mentions struct {
	Trial string
	Query string
	Found []Mention
	Refusal
}

type Mention struct {
	*subject.Message
	Line string // the text, with what surrounds it
}

func (m *Mentions) Path() string { return submissionPath(m.Trial) }

// Find fills in the messages that have a text, as excerpt says: it returns the part of a text that has it.
func (m *Mentions) Find(c *Court, excerpt func(text string) (string, bool)) {
	for _, message := range c.Messages {
		texts := []string{message.Text}
		for _, call := range message.ToolCalls {
			texts = append(texts, call.Name, call.Arguments)
		}
		for _, text := range texts {
			if line, has := excerpt(text); has {
				m.Found = append(m.Found, Mention{message.Message, line})
				break
			}
		}
	}
}
