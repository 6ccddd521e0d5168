package subject

import (
	"cmp"

	"jurat/internal/convo"
)

// A Card is what an agent says of itself.
type Card struct {
	Name            string
	Description     string
	Version         string
	ProtocolVersion string // "1.0" or "0.3.0", as the card states it
	Organization    string
	Interfaces      []Interface // the preferred one first
	Skills          []Skill
}

// An Interface is an address at which the agent can be reached.
type Interface struct {
	URL       string
	Transport string
	Version   string
}

// A Skill is something that the agent declares it can do.
type Skill struct {
	ID          string
	Name        string
	Description string
	Tags        []string
	Examples    []string
}

func (c *Case) readCard(n *convo.Node) error {
	r := new(convo.Reader)
	switch {
	case looksLikeConversation(n):
		r.Fail(n, "expected an agent card, but this looks like a conversation; are the two files swapped?")
	case n.Kind != '{':
		r.Fail(n, "expected an agent card (an object), found %s", n.KindName())
	default:
		c.Card = cardOf(r, n)
	}
	return r.Err()
}

func cardOf(r *convo.Reader, n *convo.Node) Card {
	card := Card{Name: r.Str(n, "name"), Description: r.Str(n, "description"), Version: r.Str(n, "version"), ProtocolVersion: r.Str(n, "protocolVersion"),
		Organization: r.Str(n.Get("provider"), "organization")}
	if card.Name == "" {
		r.Fail(n, "an agent card without a name")
	}
	card.readInterfaces(r, n)
	for _, item := range r.Objects(n.Get("skills"), "a skill") {
		card.Skills = append(card.Skills, Skill{ID: r.Str(item, "id"), Name: r.Str(item, "name"), Description: r.Str(item, "description"),
			Tags: r.Texts(item.Get("tags")), Examples: r.Texts(item.Get("examples"))})
	}
	return card
}

// readInterfaces reads v1.0's list, or v0.3's members at the top level of the card.
func (card *Card) readInterfaces(r *convo.Reader, n *convo.Node) {
	list := n.Get("supportedInterfaces")
	for _, item := range r.Objects(list, "an interface") {
		one := Interface{URL: r.Str(item, "url"), Transport: r.Str(item, "protocolBinding"), Version: r.Str(item, "protocolVersion")}
		card.Interfaces = append(card.Interfaces, one)
		card.ProtocolVersion = cmp.Or(card.ProtocolVersion, one.Version)
	}
	if only := (Interface{URL: r.Str(n, "url"), Transport: r.Str(n, "preferredTransport"), Version: card.ProtocolVersion}); list.Absent() && only.URL != "" {
		card.Interfaces = append(card.Interfaces, only)
	}
}
