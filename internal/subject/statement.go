package subject

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/subject/attested"
	"jurat/internal/subject/tree"
)

// MaxStatements is how many statements of others a case can have.
const MaxStatements = 100

// AddStatements adds statements of others to the evidence. Their messages follow those of the case.
func (c *Case) AddStatements(list ...attested.Statement) error {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(c.material, &members); err != nil {
		return unfit("%v", err)
	}
	if members["statements"] != nil {
		return unfit("the case has statements already")
	}
	var err error
	if members["statements"], err = json.Marshal(list); err != nil {
		return unfit("statements: %v", err)
	}
	doc, err := json.Marshal(members)
	if err != nil {
		return unfit("statements: %v", err)
	}
	form, err := evidence.Canonical(doc)
	if err != nil {
		return tree.NotJSON(evidenceName, doc, err)
	}
	if len(form) > 2*MaxFile {
		return unfit("with the statements, it is longer than %d MiB", 2*MaxFile>>20)
	}
	if err := c.takeStatements(list); err != nil {
		return err
	}
	c.material = form
	return nil
}

// takeStatements makes messages of statements.
func (c *Case) takeStatements(list []attested.Statement) error {
	if len(list) == 0 || len(list) > MaxStatements {
		return unfit("statements: want 1 to %d", MaxStatements)
	}
	for i := range list {
		s := &list[i]
		if err := s.Check(list[:i]); err != nil {
			return unfit("statement %d: %v", i+1, err)
		}
		c.Messages = append(c.Messages, Message{Number: len(c.Messages) + 1, Role: Statement, Name: s.Issuer, Text: s.Text, Head: s.Head()})
	}
	c.Statements = list
	return nil
}

// readStatements takes the statements of evidence; nil: it has none.
func (c *Case) readStatements(value jsontext.Value) error {
	if value == nil {
		return nil
	}
	var list []attested.Statement
	if err := json.Unmarshal(value, &list, json.RejectUnknownMembers(true)); err != nil {
		return unfit("statements: %v", err)
	}
	return c.takeStatements(list)
}
