package pages

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/docket"
	"jurat/internal/subject"
	"jurat/internal/words"
	"jurat/verify"
)

func recordingPath(chain string) string { return "/recordings/" + url.PathEscape(chain) }

// Recordings is the page that lists recorded chains.
type Recordings struct {
	Searched
	Found  []Recording
	Events string // the address of the stream that says when there is something new; "": the page does not follow
}

// A Recording is a recorded chain in a list.
type Recording struct{ api.Recording }

func (r Recording) Path() string { return recordingPath(r.Chain) }

// ID identifies the chain on the page.
func (r Recording) ID() string {
	sum := sha256.Sum256([]byte(r.Chain))
	return "chain-" + hex.EncodeToString(sum[:6])
}

// Seen says from where it was seen.
func (r Recording) Seen(lang words.Lang) (list []string) {
	for _, v := range r.Vantages {
		list = append(list, seenFrom(lang, v, strings.Join(r.Recorders, ", ")))
	}
	return list
}

func seenFrom(lang words.Lang, v evidence.Vantage, recorder string) string {
	return cmp.Or(words.Of(lang).Say("vantage."+string(v), "recorder", recorder), plain(string(v)))
}

func (r Recording) Gapless() bool { return r.Broken == 0 && r.Missed == 0 }

func (l *Recordings) Fill(list api.Recordings) {
	l.found("recordings", list.Next, list.Index)
	for _, r := range list.Recordings {
		l.Found = append(l.Found, Recording{r})
	}
}

func (l *Recordings) Filters() bool { return len(filtersOf(l.Query)) > 0 }

// ActsPerPage is how many acts the page of a chain shows.
const ActsPerPage = 20

const (
	newPerAct      = 40    // messages that are shown of an act
	recordedSpeech = 3_000 // bytes of what people and agents said
	recordedData   = 1_200 // bytes of what tools were called with and returned
)

// A Conversation is the page of a recorded chain, or of one act of it.
type Conversation struct {
	Recording
	Steps  []RecordedStep
	From   int64 // the number of the first act on the page
	To     int64
	Total  int64 // of records
	After  int64 // the number of the act after the last one; 0: there is none
	Alone  bool  // one act, whole
	Events string
	Send   bool // the viewer may begin a trial of it
	Key    string
	Panel  []string // the models that would sit
	Rules  bool     // rules would sit
	Rests  string   // on whose word every proved record on the page rests; "": it differs, and each says it
	Refusal

	shown    map[int]string    // places on the page, by number of messages
	requests map[string]string // places of acts, by the recorder's id of the request
}

// A RecordedStep is an act in a recorded chain, or what a recorder says of itself.
type RecordedStep struct {
	docket.RecordedAct
	RecordedProof
	At   time.Time
	page *Conversation
}

// A RecordedProof says what is proved of a record.
type RecordedProof struct {
	Status verify.Status // of who and when; "": it was not verified
	Why    string        // why it is not proved, in English
	Rests  string        // on whose word it rests, in the page's language
}

// NewConversation makes the page of a part of a chain. The proofs are by record.
func NewConversation(line api.Recording, part *docket.ChainPart, total int64, proofs map[string]RecordedProof) *Conversation {
	last := part.From + int64(len(part.Acts)) - 1
	c := &Conversation{Recording: Recording{line}, From: part.From, To: last, Total: max(total, last), After: part.Next, shown: map[int]string{}, requests: map[string]string{}}
	for _, a := range slices.Concat(part.Acts, part.Events) {
		c.Steps = append(c.Steps, RecordedStep{a, proofs[a.Record], timeOf(&a), c})
	}
	slices.SortStableFunc(c.Steps, func(a, b RecordedStep) int {
		if a.Number > 0 && b.Number > 0 {
			return cmp.Compare(a.Number, b.Number)
		}
		return a.At.Compare(b.At)
	})
	c.sayOnce()
	for i := range c.Steps {
		if s := &c.Steps[i]; s.RequestID != "" {
			c.requests[s.RequestID] = s.Anchor()
		}
		for j, m := range c.Steps[i].News() {
			if m.Number > 0 {
				c.shown[m.Number] = c.Steps[i].place(j)
			}
		}
	}
	return c
}

// sayOnce takes what all proved records rest on out of the acts, if that is the same.
func (c *Conversation) sayOnce() {
	for _, s := range c.Steps {
		if s.Rests == "" {
			continue
		}
		if c.Rests != "" && s.Rests != c.Rests {
			c.Rests = ""
			return
		}
		c.Rests = s.Rests
	}
	for i := range c.Steps {
		c.Steps[i].Rests = ""
	}
}

// timeOf is when an act began, or when its record says that it is.
func timeOf(a *docket.RecordedAct) time.Time {
	text := a.Time
	if a.Observed != nil {
		text = a.Observed.Began
	}
	at, _ := evidence.ParseTime(text) // valid since it was logged
	return at
}

// Earlier returns the address of the page before; "": this is the first one.
func (c *Conversation) Earlier() string {
	if c.From <= 1 || c.Alone {
		return ""
	}
	return c.page(max(1, (c.From-2)/ActsPerPage+1))
}

// Later returns the address of the page after; "": this is the last one.
func (c *Conversation) Later() string {
	if c.After == 0 || c.Alone {
		return ""
	}
	return c.page((c.After-1)/ActsPerPage + 1)
}

func (c *Conversation) page(n int64) string {
	if n == 1 {
		return c.Path()
	}
	return c.Path() + "?page=" + strconv.FormatInt(n, 10)
}

// Whole returns the address at which the act stands among the others.
func (c *Conversation) Whole() string {
	return c.page((c.From-1)/ActsPerPage+1) + "#act-" + strconv.FormatInt(c.From, 10)
}

func (c *Conversation) RecordsPath() string { return chainPath(c.Chain) }

func (s RecordedStep) Anchor() string {
	if s.Number == 0 {
		return "event-" + s.Record
	}
	return "act-" + strconv.FormatInt(s.Number, 10)
}

func (s RecordedStep) place(i int) string { return s.Anchor() + "-" + strconv.Itoa(i+1) }

func (s RecordedStep) Path() string {
	return s.page.Path() + "/acts/" + strconv.FormatInt(s.Number, 10)
}

// A RecordedMessage is a message of an act, with its place.
type RecordedMessage struct {
	subject.Message
	Place string
	Index int

	step RecordedStep
}

// Shown is the number that the page shows: in the chain, or where that is not known in the act.
func (m RecordedMessage) Shown() int { return cmp.Or(m.Number, m.Index) }

func (s RecordedStep) Agents() []string { return s.page.Recording.Agents }

// Alone reports whether the page shows this act alone.
func (s RecordedStep) Alone() bool { return s.page.Alone }

// RetryAt returns the place of the attempt before; "": it is not on the page.
func (s RecordedStep) RetryAt() string { return s.page.requests[s.Observed.RetryOf] }

// News lists the messages that are new in the act. What the recorder says of it for a jury is left out: the page says it in its own language.
func (s RecordedStep) News() (list []RecordedMessage) {
	for _, m := range s.Messages {
		if m.Part != "observed" && s.Event == nil {
			list = append(list, RecordedMessage{m, s.place(len(list)), len(list) + 1, s})
		}
	}
	return list
}

// Shown lists the messages that the page shows: the first and the last ones, if there are many.
func (s RecordedStep) Shown() []RecordedMessage {
	all := s.News()
	if s.page.Alone || len(all) <= newPerAct {
		return all
	}
	return append(all[:newPerAct/4:newPerAct/4], all[len(all)-newPerAct*3/4:]...)
}

// LeftOut is how many messages of the act the page does not show.
func (s RecordedStep) LeftOut() int { return len(s.News()) - len(s.Shown()) }

func (m RecordedMessage) Body() Extent {
	most := recordedSpeech
	if m.Role == subject.Tool {
		most = recordedData
	}
	return m.cut(m.Text, most, m.Place)
}

func (m RecordedMessage) cut(text string, most int, place string) Extent {
	if m.step.page.Alone {
		most = len(text)
	}
	return extent(text, most, m.step.Path()+"#text-"+place)
}

// Alone reports whether the page shows the message's act alone.
func (m RecordedMessage) Alone() bool { return m.step.page.Alone }

// Uses lists the calls of the message, with their arguments as far as the page carries them.
func (m RecordedMessage) Uses() (list []RecordedUse) {
	for i, call := range m.ToolCalls {
		place := m.Place + "-call-" + strconv.Itoa(i+1)
		list = append(list, RecordedUse{call, m.cut(call.Arguments, recordedData, place), place, m.step.page.shown[call.Result]})
	}
	return list
}

// Answers returns the place of the message with the call that this one answers; "": it is not on the page.
func (m RecordedMessage) Answers() string { return m.step.page.shown[m.CallNumber] }

// A RecordedUse is a call of a tool.
type RecordedUse struct {
	subject.ToolCall
	Body     Extent
	Place    string
	ResultAt string // the place of its result; "": it is not on the page
}

// Whole reports whether the act came to its end without a failure.
func (s RecordedStep) Whole() bool {
	return s.Observed.Ended == evidence.Complete && s.Observed.Status < 400 && s.Error == ""
}

// From says from where it was seen.
func (s RecordedStep) From(lang words.Lang) string {
	return seenFrom(lang, s.Observed.Vantage, s.Recorder)
}

// SecondHand reports whether nobody saw the bytes.
func (s RecordedStep) SecondHand() bool { return s.Observed.Fidelity == evidence.ByAttributes }

// Lacking says which bytes cannot be read, and why.
func (s RecordedStep) Lacking(lang words.Lang) (list []string) {
	says := words.OfPages(lang)
	for _, lack := range s.Lacks {
		of := "recording.request"
		if lack.Direction == "response" {
			of = "recording.response"
		}
		list = append(list, says.Say(of)+" "+says.Say("recording.lacking."+string(lack.Why)))
	}
	return list
}

// millis writes a time after the beginning; "": it is not known.
func millis(n *int64) string {
	switch {
	case n == nil:
		return ""
	case *n < 1000:
		return fmt.Sprintf("%d ms", *n)
	}
	return fmt.Sprintf("%d.%d s", *n/1000, *n%1000/100)
}

func (s RecordedStep) Dollars() string {
	if s.Cost == nil {
		return ""
	}
	n := (*s.Cost + 99) / 100 // in hundredths of a cent, rounded up as costs are
	return fmt.Sprintf("$%d.%04d", n/10_000, n%10_000)
}

// Happened says what a recorder says of itself.
func (s RecordedStep) Happened(lang words.Lang) string {
	says, e, missed := words.OfPages(lang), s.Event, int64(0)
	key := "recording.event." + string(e.Event)
	if e.Event == observed.ModeChanged {
		key += "." + string(e.Mode)
	}
	for _, m := range e.Missed {
		missed = min(missed+m.Calls, 1<<53)
	}
	return cmp.Or(says.Say(key, "recorder", s.Recorder, "n", missed), says.Say("recording.event", "recorder", s.Recorder))
}
