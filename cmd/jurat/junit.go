package main

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A JUnit report as the strictest of its readers take it: one suite, and a test case for each case, with nothing that the schemas of
// Maven's Surefire and of Jenkins do not know. So what is known of a trial stands in system-out, a line for each fact.
//
//	failure   the trial fails (see trialCmd.failure), its type is as what
//	error     the case could not be read, or its trial could not be held to the end
//	skipped   its turn did not come, as the program was to end
//	passed    everything else
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Time      string      `xml:"time,attr"`
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

// junit writes the report.
func (c *trialCmd) junit(attempts []*attempt) ([]byte, error) {
	suite := junitSuite{Name: "jurat trial", Tests: len(attempts)}
	var took time.Duration
	for _, at := range attempts {
		one := c.junitCase(at)
		switch {
		case one.Failure != nil:
			suite.Failures++
		case one.Error != nil:
			suite.Errors++
		case one.Skipped != nil:
			suite.Skipped++
		}
		if !at.began.IsZero() && suite.Timestamp == "" {
			suite.Timestamp = at.began.UTC().Format("2006-01-02T15:04:05")
		}
		took += at.took
		suite.Cases = append(suite.Cases, one)
	}
	suite.Time = seconds(took)
	all := junitSuites{Name: "jurat", Tests: suite.Tests, Failures: suite.Failures, Errors: suite.Errors, Time: suite.Time, Suites: []junitSuite{suite}}
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
		one.Skipped = &junitOutcome{Message: "its turn did not come"}
	default:
		said := fmt.Sprintf("%s %d/100 by %s%s", r.FinalVerdict, r.FinalScore, r.Phase3Judgment.Method, at.flags())
		if compared := c.compared(at); compared != "" {
			said += "  " + compared
		}
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

// factsOf is what is known of a trial, a line for each fact.
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
