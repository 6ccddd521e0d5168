package duties

import (
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/kit/plural"
	"jurat/verify"
)

// Format is the version of the report format.
const Format = "jurat/duties/v1"

// A Report says what records answer of a mapping.
type Report struct {
	Format   string   `json:"format"`
	Mapping  *Mapping `json:"mapping"`
	Agent    string   `json:"agent,omitzero"` // "": every agent
	From     string   `json:"from,omitzero"`
	To       string   `json:"to,omitzero"`
	Log      string   `json:"log"`
	Trust    string   `json:"trust"` // fingerprint of the trust file by which the records were verified
	Acts     int      `json:"acts"`  // of the agent; 0: there is nothing to report
	Clauses  []Clause `json:"clauses"`
	Warnings []string `json:"warnings"`
	Claims   string   `json:"claims"`
}

// A Clause says what answers a clause.
type Clause struct {
	ID       string   `json:"id"`
	Asks     string   `json:"asks"`
	Applies  string   `json:"applies,omitzero"`
	Lines    []Line   `json:"lines"`
	Settings []string `json:"settings"` // what the installation's settings say of it
	NotShown []string `json:"not_shown"`

	lines []line
	keeps bool // about how long logs are kept, which settings answer
}

// A Line says which records show something.
type Line struct {
	Shows      string             `json:"shows"`
	Members    string             `json:"members"`
	Records    int                `json:"records"`
	First      *Place             `json:"first,omitzero"`
	Last       *Place             `json:"last,omitzero"`
	Guarantees []verify.Guarantee `json:"guarantees"` // by which the records were checked
	Proved     int                `json:"proved"`     // records of which all of these are proved
	NotProved  int                `json:"not_proved"`
	Refuted    int                `json:"refuted"`
	People     []string           `json:"people,omitempty"` // of decisions: who decided, at most 100
	Note       string             `json:"note,omitzero"`
}

// A Place names a record.
type Place struct {
	Record string `json:"record"`
	Time   string `json:"time"` // by its own word
}

// claims is in every report.
const claims = "This report says which records exist. It does not say that a duty is met: that is a legal question, largely answered outside the log."

// Found is how a record was verified, for each guarantee.
type Found func(recordID string, g verify.Guarantee) verify.Status

// Report puts facts and mapping together. expired is how many records were deleted, as acts in the log say.
func (f *Facts) Report(m *Mapping, found Found, expired int64, log, trust string) *Report {
	f.settle()
	r := &Report{Format: Format, Mapping: m, Agent: f.Selection.Agent, From: stamp(f.Selection.From), To: stamp(f.Selection.To), Log: log, Trust: trust,
		Acts: len(f.shows[Acts]), Clauses: []Clause{}, Warnings: f.warnings(), Claims: claims}
	for _, c := range m.clauses {
		r.Clauses = append(r.Clauses, f.clause(c, found, expired))
	}
	return r
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return evidence.FormatTime(t)
}

func (f *Facts) clause(c Clause, found Found, expired int64) Clause {
	c.Lines, c.Settings = []Line{}, []string{}
	for _, l := range c.lines {
		c.Lines = append(c.Lines, f.line(&l, found))
	}
	if c.keeps {
		c.Settings = []string{fmt.Sprintf("This program deletes a record only by 'jurat log expire', and only if it is proved to be %d days old",
			operator.MinRetention)}
		if expired > 0 {
			c.Settings = append(c.Settings, fmt.Sprintf("%s of all agents were deleted after their time, by acts in the log", plural.Of(expired, "record")))
		}
		if !f.spans(operator.MinRetention) {
			c.NotShown = append(slices.Clip(c.NotShown), fmt.Sprintf("That anything was kept for six months: the first and the last act of this report are less than %d days apart", operator.MinRetention))
		}
	}
	return c
}

func (f *Facts) line(l *line, found Found) Line {
	records := f.shows[l.fact]
	made := Line{Shows: l.shows, Members: l.members, Records: len(records), Guarantees: l.proof}
	if len(records) > 0 {
		first, last := records[0], records[len(records)-1]
		made.First, made.Last = &Place{first.id, first.time}, &Place{last.id, last.time}
	}
	for _, r := range records {
		worst := verify.Proved
		for _, g := range l.proof {
			if status := found(r.id, g); status.Worse(worst) {
				worst = status
			}
		}
		switch worst {
		case verify.Proved:
			made.Proved++
		case verify.NotProved:
			made.NotProved++
		default:
			made.Refuted++
		}
	}
	if l.fact == Reviewed {
		made.People = f.people
	}
	switch {
	case l.fact == Gaps && f.missed > 0:
		made.Note = fmt.Sprintf("%s passed without a record", plural.Of(f.missed, "call"))
	case l.fact == Gaps && len(f.shows[Seen]) > 0 && len(f.shows[Starts]) == 0:
		made.Note = "no start of a recorder is in this report, so nothing says that gaps would be reported"
	}
	return made
}

func (f *Facts) spans(days int) bool {
	acts := f.shows[Acts]
	if len(acts) == 0 {
		return false
	}
	first, _ := evidence.ParseTime(acts[0].time)
	last, _ := evidence.ParseTime(acts[len(acts)-1].time)
	return last.Sub(first) >= time.Duration(days)*24*time.Hour
}

func (f *Facts) warnings() []string {
	list := []string{}
	if len(f.shows[Acts]) == 0 {
		who := "an agent"
		if f.Selection.Agent != "" {
			who = fmt.Sprintf("the agent %q", f.Selection.Agent)
		}
		list = append(list, fmt.Sprintf("The log has no act of %s in this time", who))
	}
	if f.missed > 0 {
		list = append(list, fmt.Sprintf("%s passed without a record, by the recorders' own word: the log is not complete", plural.Of(f.missed, "call")))
	}
	if n := len(f.shows[Lost]); n > 0 {
		list = append(list, fmt.Sprintf("%s under way when a recorder died: of these the log has no answer", plural.Of(n, "call")+plural.Or(n, " was", " were")))
	}
	if f.cut {
		list = append(list, fmt.Sprintf("Not checked: calls that copy from more than %d earlier calls of their conversation. They count as not proved", mostSources))
	}
	if f.hidden > 0 {
		list = append(list, fmt.Sprintf("Of %s the evidence is sealed apart, so their agent is not known here: they are not counted", plural.Of(f.hidden, "trial")))
	}
	return list
}

// A Mapping says which facts of records answer which clauses.
type Mapping struct {
	ID      string   `json:"id"`
	Version int      `json:"version"` // changes when a clause or a line does
	Of      string   `json:"of"`
	Dates   string   `json:"dates"`
	Drafts  []string `json:"drafts"` // standards that are named, and not mapped

	clauses []Clause // without Lines and Settings
}

// A line is one thing that records can show.
type line struct {
	fact    Fact
	shows   string
	members string
	proof   []verify.Guarantee // by which the records are checked
}

var (
	signed   = []verify.Guarantee{verify.Content, verify.Authentication, verify.Time, verify.Order}
	observed = []verify.Guarantee{verify.Content, verify.Authentication, verify.Time, verify.Order, verify.Vantage}
)

// Names of members that several lines have.
const (
	ofActs     = "action_type, agent_id or observed.agent, timestamp"
	ofEvents   = "response.event of recorder_event"
	ofVersions = "model, model_version"
)

const recorderSees = "A recorder proves what passed it. It is not shown that every act of the agent did: the agent can have gone around it, or run without it"

// AIAct is the mapping of Regulation (EU) 2024/1689. The words are ours: read the law itself.
func AIAct() *Mapping {
	return &Mapping{ID: "eu-ai-act", Version: 2, Of: "Regulation (EU) 2024/1689 (EU AI Act), in words of our own", Dates: "By secondary sources, " +
		"after the Digital Omnibus of 2026 the duties for high-risk systems of Annex III apply from 2 December 2027, and those of Annex I from 2 August 2028. " +
		"This was not checked against the Official Journal: check it there. Whether a system is high-risk is for its provider and deployer to say",
		Drafts: []string{"ISO/IEC DIS 24970 (logging of AI systems) is a draft, and is not mapped", "prEN 18229-1 (logging) is a draft in enquiry, and is not mapped; no harmonised standard lists fields yet"},
		clauses: []Clause{
			{ID: "12(1)", Asks: "The system technically allows for the automatic recording of events over its lifetime.", lines: []line{
				{Acts, "acts of the agent are recorded, by itself or by a recorder", ofActs, signed},
				{Seen, "acts that a recorder saw as bytes, without the agent's help", "observed, request_body, response_body", observed},
				{Told, "acts that somebody told (telemetry, imported files), second hand", "observed.fidelity, observed.vantage", signed},
				{Starts, "a recorder began, and says in which mode", ofEvents + " start: mode, version, configuration", signed},
				{Stops, "a recorder ended, and says why", ofEvents + " stop: reason", signed},
				{Gaps, "a recorder says that calls passed without a record", ofEvents + " gap: missed", signed},
				{Lost, "calls that were under way when a recorder died", "observed.ended lost_in_crash; " + ofEvents + " lost_in_crash", signed},
			}, NotShown: []string{recorderSees, "What was before the first record, and after the last one"}},
			{ID: "12(2)(a)", Asks: "Events that help to identify situations in which the system may present a risk, or a substantial modification.", lines: []line{
				{Failed, "acts that failed, broke off or were refused", "observed.ended, observed.status", observed},
				{Judged, "verdicts of a jury on the agent", "response of final_judgment", signed},
				{JudgedBadly, "of these, verdicts that it is not safe or that a person must decide", "response.position, response.review", signed},
				{Corrected, "people rejected or changed what the agent said, or a verdict on it", "approval_status, modified_response, changes", signed},
				{OtherModel, "the model or its version is another one than in the act before", ofVersions, signed},
				{OtherSettings, "a recorder's settings or mode changed", ofEvents + " configuration, mode", signed},
				{OtherTool, "the definition of a tool changed", ofEvents + " tool_definition_changed: before, after", signed},
			}, NotShown: []string{"Whether a situation is a risk, or a change a substantial modification, is for people to judge", "Changes that no record states, such as another prompt template or weights under the same name of a model"}},
			{ID: "12(2)(b)", Asks: "Events that help post-market monitoring.", lines: []line{
				{Acts, "acts of the agent, with times", ofActs, signed},
				{Tried, "trials in which the agent was put before a jury", "submission", signed},
				{Judged, "verdicts of a jury on the agent", "response of final_judgment", signed},
				{Reviewed, "decisions of people about what the agent said, or about a verdict on it", "human_review", signed},
			}, NotShown: []string{"A plan for post-market monitoring, and what was learned outside the log", "Incidents that nobody put before a jury or a reviewer"}},
			{ID: "12(2)(c)", Asks: "Events that help deployers to monitor the operation (Article 26(5)).", lines: []line{
				{Inputs, "what went into the agent's acts", "prompt, context, request_body", signed},
				{Outputs, "what came out", "response, response_body", signed},
				{Tools, "tools that it used", "tools_used, observed_tool", signed},
				{Models, "which model answered, by the actor's or the provider's word", ofVersions + ", parameters", signed},
			}, NotShown: []string{"Who the deployer is: records name agents, recorders and people, not organisations", "What the agent did by ways that no record has"}},
			{ID: "12(3)", Asks: "Period of each use, reference database, input data that led to a match, and the people who verified the results.",
				Applies: "only to the remote biometric identification systems of Annex III, point 1(a)", lines: []line{
					{Periods, "start and end of an act", "observed.began, observed.ended_ms", observed},
					{Inputs, "input data", "prompt, context, request_body", signed},
					{Reviewed, "people who decided, by name", "reviewer_id", signed},
				}, NotShown: []string{"The reference database against which input was checked, unless it is in a prompt or a tool's call", "Whether an input led to a match", "That two people verified a result separately (Article 14(5)), unless there are two reviews of it"}},
			{ID: "19(1)", keeps: true, Asks: "The provider keeps the logs under its control for a period that fits the purpose, of at least six months.", lines: []line{
				{Acts, "acts of the agent that the log has", ofActs, signed},
			}, NotShown: []string{"What is kept outside of this installation, and that backups are readable"}},
			{ID: "26(5)", Asks: "The deployer monitors the operation, informs the provider and others, and suspends use where there is a risk.", lines: []line{
				{Tried, "trials in which the agent was put before a jury", "submission", signed},
				{Reviewed, "decisions of people about what the agent said, or about a verdict on it", "human_review", signed},
				{Corrected, "of these, rejections and changes", "approval_status, modified_response, changes", signed},
				{Delivered, "what was delivered, decided on or not", "delivery", signed},
			}, NotShown: []string{"That anybody was informed, or that use was suspended", "That the people who decided were trained and had authority (Article 26(2))"}},
			{ID: "26(6)", keeps: true, Asks: "The deployer keeps the logs under its control for a period that fits the purpose, of at least six months.", lines: []line{
				{Acts, "acts of the agent that the log has", ofActs, signed},
			}, NotShown: []string{"Which logs are under the deployer's control", "What is kept outside of this installation"}},
			{ID: "50", Asks: "People are told that they interact with an AI system, and artificial content is marked.",
				Applies: "to some systems, high-risk or not", lines: nil,
				NotShown: []string{"Anything of it: records have what the agent said, and not what an interface showed around it"}},
			{ID: "86", Asks: "A person affected by a decision can get an explanation of the system's role in it and the main elements of the decision.",
				Applies: "to decisions on the basis of high-risk systems of Annex III", lines: []line{
					{Inputs, "what the agent was given", "prompt, context, request_body", signed},
					{Outputs, "what it answered", "response, response_body", signed},
					{Reviewed, "what people decided on it, and why", "approval_status, changes", signed},
				}, NotShown: []string{"Why a model answered as it did", "That an explanation was given. One can be made from what 'jurat explain' writes of a record"}},
		}}
}
