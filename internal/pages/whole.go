package pages

import (
	"net/url"
	"strconv"
	"unicode/utf8"

	"jurat/evidence"
	"jurat/internal/subject"
)

// A longer text is not sent with a page: its beginning is, with its length and a link to the whole text.
const (
	wholeData   = 4_000  // bytes of what tools were called with and returned, and of members of records
	wholeSpeech = 20_000 // bytes of what agents and people said

	beginBytes = 600 // of a beginning
	beginLines = 8
)

// An Extent is a text, or its beginning.
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

// A Call is a call of a tool in a message.
type Call struct {
	subject.ToolCall
	Body Extent // the arguments
}

// Parts of a message on its own page.
const textPart = "text"

func callPart(i int) string { return "call-" + strconv.Itoa(i+1) }

// Path returns the address of the page that shows the message whole.
func (m Message) Path() string {
	return submissionPath(m.Trial) + "/messages/" + strconv.Itoa(m.Number)
}

// Body returns the message's text as far as the courtroom carries it.
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

// Body returns the member's text as far as the record's page carries it.
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

// A Part is a text of the page.
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

// A Mention is a message that has the text.
type Mention struct {
	*subject.Message
	Line string // the text, with what surrounds it
}

// Path returns the address of the courtroom.
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
