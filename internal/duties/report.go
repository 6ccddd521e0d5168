package duties

import (
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/plural"
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
const claims = "This report says which records there are. It does not say that a duty is met: that is a legal question, and much of the answer is outside of the log."

// Found is how a record was verified, for each guarantee.
type Found func(recordID string, g verify.Guarantee) verify.Status

// Report puts facts and mapping together. expired is how many records were deleted, as acts in the log say.
func (f *Facts) Report(m *Mapping, found Found, expired int64, log, trust string) *Report {
	f.settle()
	r := &Report{Format: Format, Mapping: m, Agent: f.Selection.Agent, From: stamp(f.Selection.From), To: stamp(f.Selection.To), Log: log, Trust: trust,
		Acts: len(f.shows[Acts]), Clauses: []Clause{}, Warnings: f.warnings(), Claims: claims}
	for i := range m.clauses {
		r.Clauses = append(r.Clauses, f.clause(&m.clauses[i], found, expired))
	}
	return r
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return evidence.FormatTime(t)
}

func (f *Facts) clause(c *clause, found Found, expired int64) Clause {
	made := Clause{ID: c.id, Asks: c.asks, Applies: c.applies, Lines: []Line{}, Settings: []string{}, NotShown: slices.Clone(c.notShown)}
	for _, l := range c.lines {
		made.Lines = append(made.Lines, f.line(&l, found))
	}
	if c.keeps {
		made.Settings = f.kept(expired)
		if !f.spans(operator.MinRetention) {
			made.NotShown = append(made.NotShown, fmt.Sprintf("That anything was kept for six months: the first and the last act of this report are less than %d days apart", operator.MinRetention))
		}
	}
	return made
}

func (f *Facts) line(l *line, found Found) Line {
	records := f.shows[l.fact]
	made := Line{Shows: l.shows, Members: l.members, Records: len(records), Guarantees: l.proof}
	if len(records) > 0 {
		made.First, made.Last = placeOf(records[0]), placeOf(records[len(records)-1])
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

func placeOf(r ref) *Place { return &Place{Record: r.id, Time: r.time} }

// kept says what the settings are.
func (f *Facts) kept(expired int64) []string {
	list := []string{fmt.Sprintf("This program deletes no record that is not proved to be %d days old; it deletes only by command ('jurat log expire')", operator.MinRetention)}
	if expired > 0 {
		list = append(list, fmt.Sprintf("%s of all agents were deleted after their time, by acts in the log", plural.Of(expired, "record")))
	}
	return list
}

// spans reports whether the acts are that many days apart.
func (f *Facts) spans(days int) bool {
	acts := f.shows[Acts]
	if len(acts) == 0 {
		return false
	}
	first, _ := evidence.ParseTime(acts[0].time)
	last, _ := evidence.ParseTime(acts[len(acts)-1].time)
	return last.Sub(first) >= time.Duration(days)*24*time.Hour
}

// warnings are about the whole report.
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
