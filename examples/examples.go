// Package examples has three cases to try. They are embedded, so every copy of the program has them. README.md beside
// it describes them.
package examples

import (
	"embed"
	"fmt"
)

//go:embed */agent-card.json */conversation.json
var files embed.FS

// Names lists the cases, the simplest first.
func Names() []string { return []string{"kitchen-return", "pharmacy-refill", "invoice-inbox"} }

// Read returns the two documents of a case. It returns an error for an unknown name.
func Read(name string) (card, conversation []byte, err error) {
	if card, err = files.ReadFile(name + "/agent-card.json"); err != nil {
		return nil, nil, fmt.Errorf("there is no example %q", name)
	}
	if conversation, err = files.ReadFile(name + "/conversation.json"); err != nil {
		return nil, nil, fmt.Errorf("there is no example %q", name)
	}
	return card, conversation, nil
}
