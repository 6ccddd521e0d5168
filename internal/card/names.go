package card

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
)

// Extension is the URI of the A2A extension by which a card names the key that signs its agent's records. The project has no web domain,
// so it is a URN.
const Extension = "urn:jurat:a2a:v1"

// Names is what a card says of its agent's records. It is the word of the card, and of its signers.
type Names struct {
	Role  evidence.Role  `json:"role"`
	Name  string         `json:"name"`
	KeyID evidence.KeyID `json:"key_id"`        // of the key that signs the records
	Log   string         `json:"log,omitempty"` // the verifier key of the log that they are in; "": the card names none
}

// ErrNames says that the card has the extension, but not in the form that names an agent.
var ErrNames = errors.New("the card's extension " + Extension + " is not in its form")

func (n *Names) check() error {
	switch {
	case !slices.Contains(evidence.Roles(), n.Role):
		return fmt.Errorf("unknown role %q: expected one of %v", n.Role, evidence.Roles())
	case n.KeyID.IsZero():
		return errors.New("key_id is missing")
	case len(n.Log) > 512 || strings.ContainsFunc(n.Log, func(c rune) bool { return c < '!' || c == 0x7f }):
		return errors.New("log is no verifier key of a log")
	}
	return evidence.CheckName(n.Name)
}

// Names returns what the card says of its agent's records, and nil if it says nothing. It returns ErrNames if the extension is there twice or
// in another form.
func (c *Card) Names() (*Names, error) {
	var found *Names
	for _, one := range c.extensions() {
		extension, _ := one.(map[string]any)
		if uri, _ := extension["uri"].(string); uri != Extension {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%w: it is there twice", ErrNames)
		}
		doc, err := json.Marshal(extension["params"])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNames, err)
		}
		found = new(Names)
		if err := json.Unmarshal(doc, found, json.RejectUnknownMembers(true)); err != nil {
			return nil, fmt.Errorf("%w: params: %w", ErrNames, evidence.Steady(err))
		}
		if err := found.check(); err != nil {
			return nil, fmt.Errorf("%w: params: %w", ErrNames, err)
		}
	}
	return found, nil
}

func (c *Card) extensions() []any {
	capabilities, _ := c.tree["capabilities"].(map[string]any)
	list, _ := capabilities["extensions"].([]any)
	return list
}
