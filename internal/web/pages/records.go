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

	"github.com/go-json-experiment/json/jsontext"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/court/subject"
	"jurat/internal/web/docket"
	"jurat/internal/web/words"
	"jurat/verify"
	"jurat/verify/trust"
)

type Sealed struct {
	Record        *evidence.Record
	Report        *verify.Report // on the record, or on a file that contains it
	Input         []Member
	Output        []Member
	Configuration []Member
	Links         []Link
	Proved        *trust.TimeOf
	Card          *subject.Card // of the agent that stands trial; nil: it is not shown here

	site words.Site
}

type Member struct {
	Name     string
	Text     string
	Withheld bool // sealed apart and not disclosed here: Text is the signed commitment to it
	Apart    bool // sealed apart and disclosed
	JSON     bool // not a string

	record string // id of the record
}

// A Link leads to another record or chain that this record names.
type Link struct {
	Name string // the key of the text that says what it is
	Href string // "": the name leads nowhere
	Text string
}

// NewSealed makes the page of a record from a report on it, or on a file that contains it. For an act of a trial the
// report should be on the trial, because a single act proves little. The statement names the page's address on site.
func NewSealed(r *evidence.Record, report *verify.Report, site words.Site) *Sealed {
	s := &Sealed{Record: r, Report: report, site: site}
	if t, is := report.TimeOf(r.Payload.RecordID); is {
		s.Proved = &t
	}
	s.Input, s.Output, s.Configuration = membersOf(r)
	s.links()
	return s
}

// Answers lists what verification found about the record, for each guarantee.
func (s *Sealed) Answers() (list []verify.Finding) {
	for _, f := range s.Report.Guarantees {
		list = append(list, s.Report.For(f.Guarantee, s.Record.Payload.RecordID))
	}
	return list
}

func (s *Sealed) Statement(lang words.Lang) []string {
	return s.site.OnRecord(s.Record, s.Report, lang)
}

func (s *Sealed) Trial() bool {
	return strings.HasPrefix(s.Record.Payload.ChainID, evidence.TrialPrefix)
}

func (s *Sealed) Reviewable() bool {
	p := &s.Record.Payload
	return len(p.Response) > 0 && (p.Role() == evidence.RoleAgent || p.ActionType == evidence.FinalJudgment) && p.ActionType != evidence.Delivery
}

// membersOf lists the members of a record's payload: what went in, what came out, and how.
func membersOf(r *evidence.Record) (input, output, configuration []Member) {
	p := &r.Payload
	input = members(r, "prompt", p.Prompt, "context", p.Context)
	output = members(r, "response", p.Response, "modified_response", p.ModifiedResponse, "changes", p.Changes)
	configuration = append(names("model", p.Model, "model_version", p.ModelVersion),
		members(r, "parameters", p.Parameters, "tools_used", p.ToolsUsed, "metadata", p.Metadata)...)
	return input, output, configuration
}

func members(r *evidence.Record, pairs ...any) []Member {
	var list []Member
	for pair := range slices.Chunk(pairs, 2) {
		name, value := pair[0].(string), pair[1].(jsontext.Value)
		if len(value) == 0 {
			continue
		}
		shown, withheld := r.Said("/"+name, value)
		if withheld {
			shown = value
		}
		list = append(list, Member{Name: name, Text: text(shown), Withheld: withheld, JSON: !withheld && shown.Kind() != '"',
			Apart: !withheld && slices.Contains(r.Payload.SealedApart, "/"+name), record: r.Payload.RecordID})
	}
	return append(list, ofMetadata(r, pairs)...)
}

// ofMetadata lists what is sealed apart inside metadata, which shows a commitment in its place.
func ofMetadata(r *evidence.Record, pairs []any) []Member {
	if !slices.Contains(pairs, any("metadata")) {
		return nil
	}
	var list []Member
	for _, pointer := range r.Payload.SealedApart {
		if evidence.InMetadata(pointer) {
			said, withheld := r.Said(pointer, nil)
			list = append(list, Member{Name: strings.TrimPrefix(pointer, "/"), Text: text(said), Withheld: withheld, Apart: !withheld, record: r.Payload.RecordID})
		}
	}
	return list
}

func names(pairs ...string) []Member {
	var list []Member
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			list = append(list, Member{Name: pair[0], Text: pair[1]})
		}
	}
	return list
}

func (s *Sealed) add(name, href, text string) {
	if text != "" {
		s.Links = append(s.Links, Link{name, href, text})
	}
}

func (s *Sealed) links() {
	p, add := &s.Record.Payload, s.add
	if p.ChainID != "" {
		if s.Trial() {
			add("link.trial", submissionPath(p.ChainID), p.ChainID)
		}
		add("link.chain", chainPath(p.ChainID), p.ChainID)
	}
	if !p.PreviousRecord.IsZero() {
		add("link.previous", recordPath(p.PreviousRecord.String()), p.PreviousRecord.String())
	}
	add("link.original", recordPath(p.OriginalResponseID), p.OriginalResponseID)
	for _, d := range p.Saw {
		add("link.saw", recordPath(d.String()), d.String())
	}
	add("link.parent", "", p.ParentRequestID)
}

// Tried takes over the agent's card from the submission of the record's trial, if the viewer may see it.
func (s *Sealed) Tried(submission *evidence.Record) {
	material, withheld := submission.Said("/response", submission.Payload.Response)
	if withheld || submission.Payload.ActionType != evidence.Submission {
		return
	}
	if on, err := subject.Parse(material); err == nil && on.HasCard {
		s.Card = &on.Card
	}
}

// Command verifies the record offline, as its file is called after it was saved.
func (s *Sealed) Command() string {
	return "jurat verify --trust trust.json " + quote(s.Record.Payload.RecordID+".jurat")
}

// Belongs stores how many records belong together with this one, and whether there are more.
func (s *Sealed) Belongs(n int, cut bool) {
	if n > 1 && s.Record.Payload.ChainID == "" {
		s.add("link.case", chainPath(s.Record.Payload.RecordID), strconv.Itoa(n))
	}
	if cut {
		s.add("link.cut", "", strconv.Itoa(n))
	}
}

// maxLanes is the number of lanes of a timeline. Further actors share the last one.
const maxLanes = 8

const stepsPerPage = 200

// A Chain is a timeline.
type Chain struct {
	ID          string
	Report      *verify.Report
	Trial       bool
	Cut         bool // more records are linked to it than are shown
	Lanes       []Lane
	Steps       []Step
	Page, Pages int // counted from 1
}

// A Lane belongs to an actor.
type Lane struct {
	Number int
	Role   evidence.Role
	Name   string
	Others int // how many actors share the last lane with this one
}

// A Step is one record in a timeline.
type Step struct {
	verify.Step
	Lane  int
	Human bool
	Line  string // the beginning of the text
}

func NewChain(id string, records []*evidence.Record, report *verify.Report, page int) *Chain {
	c := &Chain{ID: id, Trial: strings.HasPrefix(id, evidence.TrialPrefix), Report: report,
		Pages: (len(records) + stepsPerPage - 1) / stepsPerPage}
	c.Page = min(max(page, 1), max(c.Pages, 1))
	byID := map[string]*evidence.Record{}
	for _, r := range records {
		byID[r.Payload.RecordID] = r
	}
	steps := verify.Timeline(records, report.Answers().TimeOf)
	lanes := map[[2]string]int{}
	for _, s := range steps {
		lane := c.lane(lanes, s)
		c.Steps = append(c.Steps, Step{Step: s, Lane: lane, Human: s.Role == evidence.RoleReviewer, Line: line(byID[s.RecordID])})
	}
	from := (c.Page - 1) * stepsPerPage
	c.Steps = c.Steps[from:min(from+stepsPerPage, len(c.Steps))]
	return c
}

func (c *Chain) lane(lanes map[[2]string]int, s verify.Step) int {
	who := [2]string{string(s.Role), s.Actor}
	if n, known := lanes[who]; known {
		return n
	}
	if len(c.Lanes) == maxLanes {
		c.Lanes[maxLanes-1].Others++
		lanes[who] = maxLanes
		return maxLanes
	}
	c.Lanes = append(c.Lanes, Lane{Number: len(c.Lanes) + 1, Role: s.Role, Name: s.Actor})
	lanes[who] = len(c.Lanes)
	return len(c.Lanes)
}

// line returns the beginning of a record's text. Acts of a trial have none here, because the courtroom shows them.
func line(r *evidence.Record) string {
	if r == nil || r.Payload.ActionType.InTrial() {
		return ""
	}
	for _, m := range members(r, "modified_response", r.Payload.ModifiedResponse, "response", r.Payload.Response) {
		if !m.Withheld {
			return plain(m.Text)
		}
	}
	return ""
}

func (c *Chain) Before() int { return c.Page - 1 }

func (c *Chain) Next() int { return c.Page + 1 }

func recordingPath(chain string) string { return "/recordings/" + url.PathEscape(chain) }

type Recordings struct {
	Searched
	Found  []Recording
	Events string // the address of the stream that says when there is something new; "": the page does not follow
}

type Recording struct{ api.Recording }

func (r Recording) Path() string { return recordingPath(r.Chain) }

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
	Index  api.IndexState
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
