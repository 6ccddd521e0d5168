package subject

import "jurat/internal/subject/tree"

// Build makes a case of a conversation and the agent's card, which may be nil, or returns what is wrong with them. The
// source is nil if the conversation was brought by itself. It ignores the option Card.
func Build(card, conversation *tree.Node, from *Source, o Options) (*Case, []error) {
	c := &Case{Form: o.Form, Source: from, checking: o.Check}
	if mistakes := c.build(card, conversation); mistakes != nil {
		return nil, mistakes
	}
	return c, nil
}
