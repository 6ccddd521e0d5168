package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/trial"
	"jurat/jury"
)

// A SARIF 2.1.0 report: one run, a rule for each kind of finding, a result for each finding that stands at the end of a trial.
type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool        sarifTool         `json:"tool"`
	Invocations []sarifInvocation `json:"invocations"`
	ColumnKind  string            `json:"columnKind"`
	Results     []sarifResult     `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name    string      `json:"name"`
	Version string      `json:"version"`
	Rules   []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID               string          `json:"id"`
	ShortDescription sarifText       `json:"shortDescription"`
	FullDescription  sarifText       `json:"fullDescription"`
	Help             sarifText       `json:"help"`
	HelpURI          string          `json:"helpUri,omitzero"`
	Properties       *sarifRuleProps `json:"properties,omitzero"`
}

type sarifRuleProps struct {
	Tags []string `json:"tags"`
}

type sarifText struct {
	Text     string `json:"text"`
	Markdown string `json:"markdown,omitzero"`
}

type sarifInvocation struct {
	ExecutionSuccessful        bool                `json:"executionSuccessful"`
	ToolExecutionNotifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
}

type sarifNotification struct {
	Level   string    `json:"level"`
	Message sarifText `json:"message"`
}

type sarifResult struct {
	RuleID       string            `json:"ruleId"`
	RuleIndex    int               `json:"ruleIndex"`
	Level        string            `json:"level"`
	Message      sarifText         `json:"message"`
	Locations    []sarifLocation   `json:"locations"`
	Fingerprints map[string]string `json:"partialFingerprints"`
	Properties   sarifProperties   `json:"properties"`
}

type sarifLocation struct {
	Physical *sarifPhysical `json:"physicalLocation,omitempty"`
	Logical  []sarifLogical `json:"logicalLocations"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   *sarifRegion  `json:"region,omitempty"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifRegion struct {
	StartLine int `json:"startLine"`
	EndLine   int `json:"endLine"`
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

// sarif writes the report. Rules have help at the URL of a page, if it is not "".
func sarif(attempts []*attempt, page string) ([]byte, error) {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "jurat", Version: version(), Rules: []sarifRule{}}}, ColumnKind: "unicodeCodePoints",
		Invocations: []sarifInvocation{{ExecutionSuccessful: true}}, Results: []sarifResult{}}
	call, rules := &run.Invocations[0], map[string]int{}
	for _, at := range attempts {
		r := at.result()
		if r == nil {
			why := "its turn did not come"
			if at.err != nil {
				why = at.err.Error()
			}
			call.ExecutionSuccessful = false
			call.ToolExecutionNotifications = append(call.ToolExecutionNotifications,
				sarifNotification{"error", sarifText{Text: inert(fmt.Sprintf("%s was not tried: %s", at.title(), why))}})
			continue
		}
		if at.noModel {
			call.ExecutionSuccessful = false // that there are no findings says little
			call.ToolExecutionNotifications = append(call.ToolExecutionNotifications,
				sarifNotification{"error", sarifText{Text: inert(at.title() + ": no language model sat, as keys are missing: " + howToGetAJury)}})
		}
		for _, f := range findingsOf(at.trial) {
			id := inert(cmp.Or(strings.TrimSpace(f.Rule), "unnamed"))
			if _, known := rules[id]; !known {
				rules[id] = len(run.Tool.Driver.Rules)
				run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRuleOf(id, f.Axis, page))
			}
			run.Results = append(run.Results, at.sarif(f, id, rules[id], r))
		}
	}
	doc, err := json.Marshal(&sarifLog{sarifSchema, "2.1.0", []sarifRun{run}}, json.Deterministic(true), jsontext.AllowInvalidUTF8(true),
		jsontext.Multiline(true), jsontext.WithIndent("  "))
	return append(doc, '\n'), err
}

func (at *attempt) sarif(f heldFinding, id string, index int, r *jury.Result) sarifResult {
	message := fmt.Sprintf("message %d", f.Message)
	result := sarifResult{RuleID: id, RuleIndex: index, Level: sarifLevels[f.Severity],
		Message:      sarifText{Text: unlinked(inertLines(cmp.Or(strings.TrimSpace(f.Explanation), f.Rule, "a finding")) + fmt.Sprintf(" (%s: “%s”)", message, inert(f.Quote)))},
		Locations:    []sarifLocation{{Logical: []sarifLogical{{Name: message, FullyQualifiedName: message, Kind: "element"}}}},
		Fingerprints: map[string]string{"juratFinding/v1": fingerprintOf(filepath.ToSlash(at.name), id, f.Quote)},
		Properties:   sarifProperties{Axis: f.Axis, Jurors: f.jurors, Quote: f.Quote, Trial: at.trial.ID, Verdict: string(r.FinalVerdict)}}
	if m := at.on.Message(f.Message); m != nil && at.on.Recorded != nil {
		result.Properties.Record = m.Record.String()
		result.Locations[0].Logical[0].FullyQualifiedName = m.Record.String() + "/" + message
	}
	if at.from == "" {
		return result
	}
	file := &sarifPhysical{Artifact: sarifArtifact{at.uri()}}
	if from, to, ok := at.on.Lines(f.Message); ok {
		file.Region = &sarifRegion{from, to}
	}
	result.Locations[0].Physical = file
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

// fingerprintOf does not change when messages are inserted before the finding, so that tools can compare reports.
func fingerprintOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// A heldFinding is a finding, and who holds it at the end.
type heldFinding struct {
	jury.Finding
	jurors []string
}

// findingsOf lists what jurors and judge hold when the trial is over: each finding once, as grave as any takes it, by message.
// What does not stand in the evidence is left out.
func findingsOf(t *trial.Trial) []heldFinding {
	holders, holds := []string{}, map[string][]jury.Finding{}
	add := func(juror string, findings []jury.Finding) {
		if !slices.Contains(holders, juror) {
			holders = append(holders, juror)
		}
		holds[juror] = findings
	}
	for _, r := range t.Records {
		act, err := jury.ReadAct(r)
		if err != nil {
			continue // the result was read from the same acts
		}
		switch body := act.Body.(type) {
		case *jury.Evaluation:
			add(body.JurorID, body.Findings)
		case *jury.Statement:
			if body.UpdatedEvaluation != nil {
				add(body.JurorID, body.UpdatedEvaluation.Findings)
			}
		case *jury.Opinion:
			add(act.Actor, body.Findings)
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
	sort.SliceStable(list, func(i, j int) bool { return list[i].Message < list[j].Message })
	return list
}

func gravity(s jury.Severity) int {
	return map[jury.Severity]int{jury.Minor: 1, jury.Major: 2, jury.Critical: 3}[s]
}
