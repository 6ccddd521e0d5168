package subject

import (
	"fmt"
	"jurat/internal/convo"
	"jurat/internal/must"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
)

// TestSchemas: the schemas name the roles, the types of parts and the members that this package reads, and no others.
func TestSchemas(t *testing.T) {
	var chat struct {
		Defs struct {
			Message struct {
				Properties map[string]struct {
					Enum []string `json:"enum"`
				} `json:"properties"`
			} `json:"message"`
			Part struct {
				AnyOf []struct {
					Properties struct {
						Type struct {
							Enum []string `json:"enum"`
						} `json:"type"`
					} `json:"properties"`
				} `json:"anyOf"`
			} `json:"part"`
		} `json:"$defs"`
	}
	must.Do(t, json.Unmarshal(ChatSchema, &chat))
	list := chat.Defs.Message.Properties["role"].Enum
	if len(list) != 6 {
		t.Fatalf("roles: %v", list)
	}
	for _, role := range list {
		text := fmt.Sprintf(`[{"role":"assistant","tool_calls":[{"id":"1","name":"f"}]},{"role":%q,"content":"x"}]`, role)
		if _, err := NewAs(ChatForm, nil, []byte(text)); err != nil {
			t.Errorf("role %s: %v", role, err)
		}
	}
	kinds := 0
	for _, part := range chat.Defs.Part.AnyOf {
		for _, kind := range part.Properties.Type.Enum {
			kinds++
			if _, err := NewAs(ChatForm, nil, fmt.Appendf(nil, `[{"role":"user","content":[{"type":%q,"text":"x"}]}]`, kind)); err != nil {
				t.Errorf("part %s: %v", kind, err)
			}
		}
	}
	if kinds != len(convo.Unreadables)+5 {
		t.Errorf("the schema has %d types of parts", kinds)
	}
	for _, name := range append(slices.Clone(chatMembers), "requestor") {
		if _, there := chat.Defs.Message.Properties[name]; !there {
			t.Errorf("the schema does not have %s", name)
		}
	}
	var card struct {
		Properties map[string]any `json:"properties"`
	}
	must.Do(t, json.Unmarshal(CardSchema, &card))
	for _, name := range []string{"name", "description", "version", "protocolVersion", "url", "preferredTransport", "provider", "supportedInterfaces", "skills"} {
		if _, there := card.Properties[name]; !there {
			t.Errorf("the schema of the card does not have %s", name)
		}
	}
	if len(card.Properties) != 9 {
		t.Errorf("the schema of the card has %d members", len(card.Properties))
	}
}
