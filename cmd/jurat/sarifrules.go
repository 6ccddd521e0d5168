package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"jurat/internal/juror/rules"
)

// sarifRuleOf describes a rule to the people who read a report. Jurors that are models name faults as they like: what they mean stands with each finding.
func sarifRuleOf(id, axis, page string) sarifRule {
	rule := sarifRule{ID: id, ShortDescription: sarifText{Text: strings.ReplaceAll(id, "-", " ")}}
	if axis = inert(axis); axis != "" {
		rule.Properties = &sarifRuleProps{Tags: []string{"agent", axis}}
	}
	help, ok := rules.HelpOf(id)
	if !ok {
		text := "A juror named this fault. What the agent did, where and why it counts stands with each finding."
		rule.FullDescription = sarifText{Text: text}
		rule.Help = sarifText{Text: text, Markdown: text}
		return rule
	}
	rule.FullDescription = sarifText{Text: help.Wrong}
	rule.Help = sarifText{Text: fmt.Sprintf("%s\n\nIt leaves alone: %s\n\nWhat to do: %s", help.Wrong, help.Leaves, help.Do),
		Markdown: fmt.Sprintf("%s\n\n**It leaves alone:** %s\n\n**What to do:** %s", help.Wrong, help.Leaves, help.Do)}
	if page != "" {
		rule.HelpURI = page + "#" + id
	}
	return rule
}

// checkHelpURL refuses what cannot be the address of a page. "" names none.
func checkHelpURL(page string) error {
	if page == "" {
		return nil
	}
	switch u, err := url.Parse(page); {
	case err != nil:
		return err
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return fmt.Errorf("%q is no http or https URL", page)
	case u.Fragment != "" || strings.Contains(page, "#"):
		return errors.New("the URL of the page, without #: the name of the rule is added")
	}
	return nil
}
