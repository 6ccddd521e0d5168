package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"jurat/internal/plural"
)

// Sizes of a report in Markdown. GitHub refuses a comment of more than 65,536 characters.
const (
	mostMarkdown = 60_000 // bytes of a report
	mostRows     = 30_000 // of them for the table of cases
	mostFindings = 10     // of one case
	mostQuote    = 300    // characters of one text that is not the program's
)

// markdown writes the report as a comment for a pull request. What agents, jurors and files said stands in code spans alone: there it
// mentions nobody, links to nothing and is no HTML.
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

// heading says how many cases came to what.
func (c *trialCmd) heading(attempts []*attempt) string {
	var failed, untried int
	for _, at := range attempts {
		switch {
		case at.result() == nil:
			untried++
		case c.code(at) != 0:
			failed++
		}
	}
	var said []string
	if failed > 0 {
		said = append(said, fmt.Sprintf("%d of %s %s", failed, plural.Of(len(attempts), "case"), plural.Or(failed, "fails", "fail")))
	}
	if untried > 0 {
		said = append(said, fmt.Sprintf("%s could not be tried", plural.Of(untried, "case")))
	}
	if said == nil {
		return fmt.Sprintf("%s, and none fails", plural.Of(len(attempts), "case"))
	}
	return strings.Join(said, ", ")
}

// markdownRow is the line of a case in the table.
func (c *trialCmd) markdownRow(at *attempt) string {
	mark, r := "❌", at.result()
	if r == nil {
		return fmt.Sprintf("| %s | %s | not tried | | |\n", mark, code(at.title()))
	}
	if c.code(at) == 0 {
		mark = "✅"
	}
	notes := strings.TrimSpace(at.flags() + "  " + c.compared(at))
	if notes != "" {
		notes = code(notes)
	}
	return fmt.Sprintf("| %s | %s | %s | %d | %s |\n", mark, code(at.title()), r.FinalVerdict, r.FinalScore, notes)
}

// markdownDetail says why a case fails. It is "" for one that does not.
func (c *trialCmd) markdownDetail(at *attempt) string {
	if c.code(at) == 0 {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\n### %s\n\n", code(at.title()))
	r := at.result()
	if r == nil {
		why := "its turn did not come"
		if at.err != nil {
			why = oneLine(at.err)
		}
		fmt.Fprintf(&text, "It was not tried: %s\n", code(why))
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
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + s + fence
}
