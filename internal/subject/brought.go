package subject

import "jurat/internal/convo"

// Options say how to read what people bring. The zero value reads a conversation by its structure, without a card.
type Options struct {
	Card  []byte // the agent's card; nil: there is none
	Form  Form   // "": by the structure of each conversation
	Check bool   // find every mistake, and not only the first
}

// A Brought is one case of a file, or what is wrong with it.
type Brought struct {
	Name     string // distinguishes the cases of a file; "" if the file is a single one
	Case     *Case  // nil if there are mistakes
	Mistakes []error
}

// Err returns the first mistake, or nil.
func (b *Brought) Err() error {
	if len(b.Mistakes) == 0 {
		return nil
	}
	return b.Mistakes[0]
}

// A Source names where a conversation was taken from, if it is one of many in a file of results. The evidence carries
// it.
type Source struct {
	Kind  string `json:"kind"`           // "inspect" or "promptfoo"
	ID    string `json:"id,omitzero"`    // of the sample, the result or the simulation
	Epoch string `json:"epoch,omitzero"` // of Inspect's sample, if given
}

// String names the source. The name distinguishes the cases of a file.
func (s *Source) String() string {
	if s.Epoch != "" {
		return s.ID + "_epoch_" + s.Epoch
	}
	return s.ID
}

// Build makes a case of a conversation and the agent's card, which may be nil, or returns what is wrong with them. The
// source is nil if the conversation was brought by itself. It ignores the option Card.
func Build(card, conversation *convo.Node, from *Source, o Options) (*Case, []error) {
	c := &Case{Form: o.Form, Source: from, checking: o.Check}
	if mistakes := c.build(card, conversation); mistakes != nil {
		return nil, mistakes
	}
	return c, nil
}
