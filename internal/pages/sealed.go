package pages

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/incident"
	"jurat/internal/subject"
	"jurat/internal/words"
	"jurat/verify"
	"jurat/verify/trust"
)

// Sealed is the page of one record.
type Sealed struct {
	Record        *evidence.Record
	Report        *verify.Report // on the record, or on a file that contains it
	Input         []Member
	Output        []Member
	Configuration []Member
	Links         []Link
	Proved        *trust.TimeOf
	Card          *subject.Card // of the agent that stands trial; nil: it is not shown here

	site incident.Site
}

// A Member is a member of the signed payload.
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
func NewSealed(r *evidence.Record, report *verify.Report, site incident.Site) *Sealed {
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

// add adds a link unless the text is empty.
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

// stepsPerPage is how many records of a long chain a page shows.
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
