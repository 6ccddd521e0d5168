package subject

import "jurat/internal/convo"

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
	if looksLikeConversation(n) {
		return n.Errorf("expected an agent card, but this looks like a conversation; are the two files swapped?")
	}
	if n.Kind != '{' {
		return n.Errorf("expected an agent card (an object), found %s", n.KindName())
	}
	card := &c.Card
	err := readStrings(n, map[string]*string{"name": &card.Name, "description": &card.Description,
		"version": &card.Version, "protocolVersion": &card.ProtocolVersion})
	if err != nil {
		return err
	}
	if card.Name == "" {
		return n.Errorf("an agent card without a name")
	}
	if provider := n.Get("provider"); !provider.Absent() {
		if card.Organization, err = provider.Str("organization"); err != nil {
			return err
		}
	}
	if err := card.readInterfaces(n); err != nil {
		return err
	}
	return card.readSkills(n)
}

// readStrings reads optional strings. If several fail, it returns the error that comes first in the file.
func readStrings(n *convo.Node, into map[string]*string) error {
	for i, name := range n.Names {
		target, wanted := into[name]
		if !wanted || n.Members[i].Absent() {
			continue
		}
		text, err := n.Str(name)
		if err != nil {
			return err
		}
		*target = text
	}
	return nil
}

// readInterfaces reads v1.0's list, or v0.3's members at the top level of the card.
func (card *Card) readInterfaces(n *convo.Node) error {
	list := n.Get("supportedInterfaces")
	if list.Absent() {
		var only Interface
		err := readStrings(n, map[string]*string{"url": &only.URL, "preferredTransport": &only.Transport})
		if err == nil && only.URL != "" {
			only.Version = card.ProtocolVersion
			card.Interfaces = append(card.Interfaces, only)
		}
		return err
	}
	return convo.EachObject(list, "an interface", func(item *convo.Node) error {
		var one Interface
		err := readStrings(item, map[string]*string{"url": &one.URL, "protocolBinding": &one.Transport, "protocolVersion": &one.Version})
		card.Interfaces = append(card.Interfaces, one)
		if card.ProtocolVersion == "" {
			card.ProtocolVersion = one.Version
		}
		return err
	})
}

func (card *Card) readSkills(n *convo.Node) error {
	return convo.EachObject(n.Get("skills"), "a skill", func(item *convo.Node) (err error) {
		var s Skill
		if err = readStrings(item, map[string]*string{"id": &s.ID, "name": &s.Name, "description": &s.Description}); err != nil {
			return err
		}
		if s.Tags, err = stringList(item.Get("tags")); err != nil {
			return err
		}
		if s.Examples, err = stringList(item.Get("examples")); err != nil {
			return err
		}
		card.Skills = append(card.Skills, s)
		return nil
	})
}

func stringList(list *convo.Node) ([]string, error) {
	if list.Absent() {
		return nil, nil
	}
	if list.Kind != '[' {
		return nil, list.Errorf("expected an array of strings, found %s", list.KindName())
	}
	var texts []string
	for _, item := range list.Members {
		if item.Kind != '"' {
			return nil, item.Errorf("expected a string, found %s", item.KindName())
		}
		texts = append(texts, item.Text)
	}
	return texts, nil
}
