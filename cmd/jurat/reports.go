package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/xml"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/court/juror/rules"
	"jurat/internal/court/trial"
	"jurat/internal/kit/plural"
	"jurat/jury"
)

// A JUnit report as the strictest of its readers take it: one suite, and a test case for each case, with nothing that the schemas of
// Maven's Surefire and of Jenkins do not know. So what is known of a trial stands in system-out, a line for each fact.
//
//	failure   the trial fails (see trialCmd.failure), its type is as what
//	error     the case could not be read, or its trial could not be held to the end
//	skipped   its turn did not come, as the program was to end
//	passed    everything else
type junitTotals struct {
	Name     string `xml:"name,attr"`
	Tests    int    `xml:"tests,attr"`
	Failures int    `xml:"failures,attr"`
	Errors   int    `xml:"errors,attr"`
	Time     string `xml:"time,attr"`
}

type junitSuites struct {
	XMLName xml.Name `xml:"testsuites"`
	junitTotals
	Suites []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	junitTotals
	Skipped   int         `xml:"skipped,attr"`
	Timestamp string      `xml:"timestamp,attr,omitempty"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitOutcome `xml:"failure,omitempty"`
	Error   *junitOutcome `xml:"error,omitempty"`
	Skipped *junitOutcome `xml:"skipped,omitempty"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitOutcome struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }

func (c *trialCmd) junit(attempts []*attempt) ([]byte, error) {
	suite := junitSuite{junitTotals: junitTotals{Name: "jurat trial", Tests: len(attempts)}}
	var took time.Duration
	for _, at := range attempts {
		if !at.began.IsZero() && suite.Timestamp == "" {
			suite.Timestamp = at.began.UTC().Format("2006-01-02T15:04:05")
		}
		took += at.took
		suite.Cases = append(suite.Cases, c.junitCase(at))
	}
	suite.Failures = count(suite.Cases, func(one junitCase) bool { return one.Failure != nil })
	suite.Errors = count(suite.Cases, func(one junitCase) bool { return one.Error != nil })
	suite.Skipped = count(suite.Cases, func(one junitCase) bool { return one.Skipped != nil })
	suite.Time = seconds(took)
	all := junitSuites{junitTotals: suite.junitTotals, Suites: []junitSuite{suite}}
	all.Name = "jurat"
	doc, err := xml.MarshalIndent(&all, "", "  ")
	if err != nil {
		return nil, err
	}
	return append([]byte(xml.Header), append(doc, '\n')...), nil
}

func (c *trialCmd) junitCase(at *attempt) junitCase {
	one := junitCase{Name: inert(at.title()), Class: "jurat.trial", Time: seconds(at.took), Out: factsOf(at)}
	r := at.result()
	switch {
	case at.err != nil:
		one.Error = &junitOutcome{Message: inert(at.err.Error()), Type: "not_tried"}
	case r == nil:
		one.Skipped = &junitOutcome{Message: at.untried(nil)}
	default:
		said := fmt.Sprintf("%s %d/100 by %s%s", r.FinalVerdict, r.FinalScore, r.Phase3Judgment.Method, c.notes(at))
		text := said + "\n\n" + r.Phase3Judgment.Rationale
		for _, f := range findingsOf(at.trial) {
			text += fmt.Sprintf("\n- message %d, %s, %s%s: “%s”", f.Message, f.Rule, f.Severity, inRecord(f.Finding), f.Quote)
		}
		if kind := c.failure(at); kind != "" {
			one.Failure = &junitOutcome{Message: said, Type: kind, Text: inertLines(text)}
		} else {
			one.Out += "\n" + inertLines(text)
		}
	}
	return one
}

func (at *attempt) untried(said func(error) string) string {
	if at.err != nil {
		return said(at.err)
	}
	return "its turn did not come"
}

func factsOf(at *attempt) string {
	var text strings.Builder
	add := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&text, "%s: %s\n", name, inert(value))
		}
	}
	if at.on != nil {
		add("evidence", at.on.Digest().String())
	}
	if at.trial != nil {
		add("trial", at.trial.ID)
	}
	add("caseFile", at.file)
	if r := at.result(); r != nil {
		add("verdict", string(r.FinalVerdict))
		add("score", strconv.Itoa(r.FinalScore))
		add("degraded", strconv.FormatBool(r.Degraded))
		add("inconclusive", strconv.FormatBool(r.Inconclusive))
		add("offline", strconv.FormatBool(r.Offline))
		add("noModel", strconv.FormatBool(at.noModel))
	}
	return text.String()
}

// Sizes of a report in Markdown. GitHub refuses a comment of more than 65,536 characters.
const (
	mostMarkdown = 60_000 // bytes of a report
	mostRows     = 30_000 // of them for the table of cases
	mostFindings = 10     // of one case
	mostQuote    = 300    // characters of one text that is not the program's
)

// markdown writes a comment for a pull request. What others said stands in code spans alone, where it mentions nobody, links to nothing and is no HTML.
func (c *trialCmd) markdown(attempts []*attempt) ([]byte, error) {
	ordered := slices.Clone(attempts)
	slices.SortStableFunc(ordered, func(a, b *attempt) int { return cmp.Compare(severity(c.code(b)), severity(c.code(a))) })
	var text strings.Builder
	fmt.Fprintf(&text, "## jurat: %s\n\n", c.heading(attempts))
	if c.base != nil {
		fmt.Fprintf(&text, "Compared with a baseline of %s: only what got worse fails.\n\n", plural.Of(len(c.base.Cases), "case"))
	}
	text.WriteString("| | case | verdict | points | |\n|---|---|---|---:|---|\n")
	for i, at := range ordered {
		row := c.markdownRow(at)
		if text.Len()+len(row) > mostRows {
			fmt.Fprintf(&text, "\n%s more: the other reports have them.\n", plural.Of(len(ordered)-i, "case"))
			break
		}
		text.WriteString(row)
	}
	for i, at := range ordered {
		detail := c.markdownDetail(at)
		if text.Len()+len(detail) > mostMarkdown {
			fmt.Fprintf(&text, "\nThe findings of %s are left out: the other reports have them.\n", plural.Of(len(ordered)-i, "case"))
			break
		}
		text.WriteString(detail)
	}
	if slices.ContainsFunc(attempts, func(at *attempt) bool { return at.result() != nil && at.result().Offline }) {
		text.WriteString("\nThe jurors were rules, not language models: a first sieve, and not the judgement.\n")
	}
	return []byte(text.String()), nil
}

func (c *trialCmd) heading(attempts []*attempt) string {
	untried := count(attempts, func(at *attempt) bool { return at.result() == nil })
	failed := count(attempts, func(at *attempt) bool { return at.result() != nil && c.code(at) != 0 })
	var said remarks
	said.add(failed > 0, "%d of %s %s", failed, plural.Of(len(attempts), "case"), plural.Or(failed, "fails", "fail"))
	said.add(untried > 0, "%s could not be tried", plural.Of(untried, "case"))
	said.add(said == nil, "%s, and none fails", plural.Of(len(attempts), "case"))
	return strings.Join(said, ", ")
}

func (c *trialCmd) markdownRow(at *attempt) string {
	r := at.result()
	if r == nil {
		return fmt.Sprintf("| ❌ | %s | not tried | | |\n", code(at.title()))
	}
	notes := strings.TrimSpace(c.notes(at))
	return fmt.Sprintf("| %s | %s | %s | %d | %s |\n", pick(c.code(at) == 0, "✅", "❌"), code(at.title()), r.FinalVerdict, r.FinalScore, pick(notes == "", "", code(notes)))
}

func (c *trialCmd) markdownDetail(at *attempt) string {
	if c.code(at) == 0 {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\n### %s\n\n", code(at.title()))
	r := at.result()
	if r == nil {
		fmt.Fprintf(&text, "It was not tried: %s\n", code(at.untried(oneLine)))
		return text.String()
	}
	if r.Phase3Judgment.Rationale != "" {
		fmt.Fprintf(&text, "%s\n\n", code(r.Phase3Judgment.Rationale))
	}
	findings := findingsOf(at.trial)
	slices.SortStableFunc(findings, func(a, b heldFinding) int { return gravity(b.Severity) - gravity(a.Severity) })
	for i, f := range findings {
		if i == mostFindings {
			fmt.Fprintf(&text, "- %s more\n", plural.Of(len(findings)-i, "finding"))
			break
		}
		fmt.Fprintf(&text, "- message %d, %s, %s: %s", f.Message, code(f.Rule), code(string(f.Severity)), code(f.Quote))
		if f.Explanation != "" {
			fmt.Fprintf(&text, "  \n  %s", code(f.Explanation))
		}
		text.WriteString("\n")
	}
	return text.String()
}

// code is a text of others as a code span, in one line, which also fits into a cell of a table.
func code(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '|':
			return '¦' // a bar ends the cell, also in a code span
		case unicode.IsSpace(r):
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
	s = strings.TrimSpace(inert(s))
	if utf8.RuneCountInString(s) > mostQuote {
		s = string([]rune(s)[:mostQuote]) + " …"
	}
	if s == "" {
		return "(empty)"
	}
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	space := pick(strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`"), " ", "")
	return fence + space + s + space + fence
}

// A SARIF 2.1.0 report: one run, a rule for each kind of finding, a result for each finding that stands at the end of a trial.
type sarifLog struct {
	Schema  string      `json:"$schema"`
	Version string      `json:"version"`
	Runs    [1]sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool struct {
		Driver struct {
			Name    string      `json:"name"`
			Version string      `json:"version"`
			Rules   []sarifRule `json:"rules"`
		} `json:"driver"`
	} `json:"tool"`
	Invocations [1]struct {
		ExecutionSuccessful        bool                `json:"executionSuccessful"`
		ToolExecutionNotifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	} `json:"invocations"`
	ColumnKind string        `json:"columnKind"`
	Results    []sarifResult `json:"results"`
}

type sarifRule struct {
	ID               string              `json:"id"`
	ShortDescription sarifText           `json:"shortDescription"`
	FullDescription  sarifText           `json:"fullDescription"`
	Help             sarifText           `json:"help"`
	HelpURI          string              `json:"helpUri,omitzero"`
	Properties       map[string][]string `json:"properties,omitempty"`
}

type sarifText struct {
	Text     string `json:"text"`
	Markdown string `json:"markdown,omitzero"`
}

type sarifNotification struct {
	Level   string    `json:"level"`
	Message sarifText `json:"message"`
}

type sarifResult struct {
	RuleID    string    `json:"ruleId"`
	RuleIndex int       `json:"ruleIndex"`
	Level     string    `json:"level"`
	Message   sarifText `json:"message"`
	Locations [1]struct {
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region struct {
				StartLine int `json:"startLine"`
				EndLine   int `json:"endLine"`
			} `json:"region,omitzero"`
		} `json:"physicalLocation,omitzero"`
		Logical [1]sarifLogical `json:"logicalLocations"`
	} `json:"locations"`
	Fingerprints map[string]string `json:"partialFingerprints"`
	Properties   sarifProperties   `json:"properties"`
}

type sarifLogical struct {
	Name               string `json:"name"`
	FullyQualifiedName string `json:"fullyQualifiedName"`
	Kind               string `json:"kind"`
}

type sarifProperties struct {
	Axis    string   `json:"axis"`
	Jurors  []string `json:"jurors"`
	Quote   string   `json:"quote"`
	Trial   string   `json:"trial"`
	Verdict string   `json:"verdict"`
	Record  string   `json:"record,omitempty"`
}

const sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

var sarifLevels = map[jury.Severity]string{jury.Critical: "error", jury.Major: "warning", jury.Minor: "note"}

// sarif writes the report. Rules have help at the URL of a page, if one is named.
func (c *trialCmd) sarif(attempts []*attempt) ([]byte, error) {
	run := sarifRun{ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
	driver, call, rules := &run.Tool.Driver, &run.Invocations[0], map[string]int{}
	driver.Name, driver.Version, driver.Rules = "jurat", version(), []sarifRule{}
	failed := func(text string) {
		call.ToolExecutionNotifications = append(call.ToolExecutionNotifications, sarifNotification{"error", sarifText{Text: inert(text)}})
	}
	for _, at := range attempts {
		r := at.result()
		if r == nil {
			failed(fmt.Sprintf("%s was not tried: %s", at.title(), at.untried(error.Error)))
			continue
		}
		if at.noModel {
			failed(at.title() + ": no language model sat, as keys are missing: " + howToGetAJury)
		}
		for _, f := range findingsOf(at.trial) {
			id := inert(cmp.Or(strings.TrimSpace(f.Rule), "unnamed"))
			if _, known := rules[id]; !known {
				rules[id] = len(driver.Rules)
				driver.Rules = append(driver.Rules, sarifRuleOf(id, f.Axis, c.SARIFHelp))
			}
			run.Results = append(run.Results, at.sarif(f, id, rules[id], r))
		}
	}
	call.ExecutionSuccessful = call.ToolExecutionNotifications == nil
	return marshalIndented(&sarifLog{sarifSchema, "2.1.0", [1]sarifRun{run}}, jsontext.AllowInvalidUTF8(true))
}

func (at *attempt) sarif(f heldFinding, id string, index int, r *jury.Result) sarifResult {
	message := fmt.Sprintf("message %d", f.Message)
	said := inertLines(cmp.Or(strings.TrimSpace(f.Explanation), f.Rule, "a finding"))
	// It does not change when messages are inserted before the finding, so that tools can compare reports.
	same := sha256.Sum256([]byte(filepath.ToSlash(at.name) + "\x00" + id + "\x00" + f.Quote))
	result := sarifResult{RuleID: id, RuleIndex: index, Level: sarifLevels[f.Severity],
		Message:      sarifText{Text: unlinked(fmt.Sprintf("%s (%s: “%s”)", said, message, inert(f.Quote)))},
		Fingerprints: map[string]string{"juratFinding/v1": fmt.Sprintf("%x", same)},
		Properties:   sarifProperties{Axis: f.Axis, Jurors: f.jurors, Quote: f.Quote, Trial: at.trial.ID, Verdict: string(r.FinalVerdict)}}
	place := &result.Locations[0]
	place.Logical[0] = sarifLogical{message, message, "element"}
	if m := at.on.Message(f.Message); m != nil && at.on.Recorded != nil {
		result.Properties.Record = m.Record.String()
		place.Logical[0].FullyQualifiedName = m.Record.String() + "/" + message
	}
	if at.from != "" {
		place.Physical.Artifact.URI = at.uri()
		place.Physical.Region.StartLine, place.Physical.Region.EndLine, _ = at.on.Lines(f.Message)
	}
	return result
}

// unlinked breaks what SARIF reads as a link in a message, so that an agent cannot put one into a report.
func unlinked(text string) string { return strings.ReplaceAll(text, "](", "] (") }

// uri is where the evidence stands, as SARIF wants it: relative to where the program runs, if it was given so.
func (at *attempt) uri() string {
	path := filepath.ToSlash(filepath.Clean(at.from))
	if filepath.IsAbs(at.from) {
		return (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(path, "/")}).String()
	}
	return (&url.URL{Path: path}).String()
}

type heldFinding struct {
	jury.Finding
	jurors []string
}

// findingsOf lists what jurors and judge hold at the end, if it stands in the evidence: each finding once, as grave as any takes it, by message.
func findingsOf(t *trial.Trial) []heldFinding {
	var holders []string
	holds := map[string][]jury.Finding{}
	add := func(juror string, findings []jury.Finding) {
		if _, known := holds[juror]; !known {
			holders = append(holders, juror)
		}
		holds[juror] = findings
	}
	for _, said := range t.Said {
		switch body := said.Body.(type) {
		case *jury.Evaluation:
			add(body.JurorID, body.Findings)
		case *jury.Statement:
			if body.UpdatedEvaluation != nil {
				add(body.JurorID, body.UpdatedEvaluation.Findings)
			}
		case *jury.Opinion:
			add(said.Juror, body.Findings)
		}
	}
	var list []heldFinding
	for _, juror := range holders {
		for _, f := range holds[juror] {
			if f.Unfounded {
				continue
			}
			i := slices.IndexFunc(list, func(h heldFinding) bool { return h.Message == f.Message && h.Rule == f.Rule && h.Quote == f.Quote })
			if i < 0 {
				list = append(list, heldFinding{f, []string{juror}})
				continue
			}
			if gravity(f.Severity) > gravity(list[i].Severity) {
				list[i].Finding = f
			}
			if !slices.Contains(list[i].jurors, juror) {
				list[i].jurors = append(list[i].jurors, juror)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b heldFinding) int { return a.Message - b.Message })
	return list
}

func gravity(s jury.Severity) int {
	return map[jury.Severity]int{jury.Minor: 1, jury.Major: 2, jury.Critical: 3}[s]
}

// sarifRuleOf describes a rule to the people who read a report. Jurors that are models name faults as they like: what they mean stands with each finding.
func sarifRuleOf(id, axis, page string) sarifRule {
	rule := sarifRule{ID: id, ShortDescription: sarifText{Text: strings.ReplaceAll(id, "-", " ")}}
	if axis = inert(axis); axis != "" {
		rule.Properties = map[string][]string{"tags": {"agent", axis}}
	}
	help, ok := rules.HelpOf(id)
	if !ok {
		text := "A juror named this fault. What the agent did, where and why it counts stands with each finding."
		rule.FullDescription.Text, rule.Help = text, sarifText{Text: text, Markdown: text}
		return rule
	}
	rule.FullDescription.Text = help.Wrong
	rule.Help = sarifText{Text: fmt.Sprintf("%s\n\nIt leaves alone: %s\n\nWhat to do: %s", help.Wrong, help.Leaves, help.Do),
		Markdown: fmt.Sprintf("%s\n\n**It leaves alone:** %s\n\n**What to do:** %s", help.Wrong, help.Leaves, help.Do)}
	rule.HelpURI = pick(page != "", page+"#"+id, "")
	return rule
}

// checkHelpURL refuses what cannot be the address of a page. "" names none.
func checkHelpURL(page string) error {
	if page == "" {
		return nil
	}
	u, err := url.Parse(page)
	if err != nil {
		return err
	}
	return cmp.Or(refuse(u.Scheme != "https" && u.Scheme != "http" || u.Host == "", "%q is no http or https URL", page),
		refuse(u.Fragment != "" || strings.Contains(page, "#"), "the URL of the page, without #: the name of the rule is added"))
}
