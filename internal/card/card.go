// Package card signs A2A agent cards and checks their signatures (A2A v1.0, section 8.4: JWS over RFC 8785).
//
// The specification's canonical form leaves out members that have their default value, and its readers disagree on which those
// are. So one card has several canonical forms, of which each implementation makes one. Check tries them in the order of Forms and
// says which one held, and Uncovered says what the signature does not cover in that form.
//
// A key that a card names (`jku`) vouches for nothing, because the author of the card writes it, too. Nothing here fetches it: the
// caller brings the key.
package card

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
)

// A Form is a way in which implementations make a card canonical before they sign it.
type Form string

const (
	// Defaults leaves out each member of the schema that has its default value and is neither required nor declared `optional`.
	// Members that the schema does not know stay. This is section 8.4.1 applied to the card as it is served.
	Defaults Form = "defaults"
	// Served is the card as it is served.
	Served Form = "served"
	// Emptied leaves out members that the schema does not know, defaults, and then every empty text, list and object, wherever it
	// stands. The SDKs for JavaScript and Python do this.
	Emptied Form = "emptied"
)

// Forms lists the forms in the order in which Check tries them.
func Forms() []Form { return []Form{Defaults, Served, Emptied} }

// MaxSize is the size of the largest card in bytes.
const MaxSize = 1 << 20

// signatures is the member that no form contains.
const signatures = "signatures"

// A Card is an agent card as it was read. One goroutine may use it at a time.
type Card struct {
	Signatures []Signature

	tree  map[string]any // without signatures
	given []any          // signatures, as they stand in the card

	forms map[Form][]byte // made so far
}

// Parse reads a card. It refuses what has no canonical form by RFC 8785, more than 1 MiB, and signatures that are not JWS signatures.
func Parse(doc []byte) (*Card, error) {
	if len(doc) > MaxSize {
		return nil, fmt.Errorf("parsing agent card: longer than %d bytes", MaxSize)
	}
	canonical, err := evidence.Canonical(doc)
	if err != nil {
		return nil, fmt.Errorf("parsing agent card: %w", err)
	}
	c := new(Card)
	if err := json.Unmarshal(canonical, &c.tree); err != nil || c.tree == nil {
		return nil, errors.New("parsing agent card: want a JSON object")
	}
	if c.given, err = c.takeSignatures(); err != nil {
		return nil, fmt.Errorf("parsing agent card: %w", err)
	}
	return c, nil
}

func (c *Card) takeSignatures() ([]any, error) {
	found, ok := c.tree[signatures]
	delete(c.tree, signatures)
	if !ok || found == nil {
		return nil, nil
	}
	list, ok := found.([]any)
	if !ok {
		return nil, fmt.Errorf("/%s: want an array", signatures)
	}
	if len(list) > maxSignatures {
		return nil, fmt.Errorf("/%s: %d signatures, more than %d", signatures, len(list), maxSignatures)
	}
	for i, one := range list {
		s, err := readSignature(one)
		if err != nil {
			return nil, fmt.Errorf("/%s/%d%w", signatures, i, err)
		}
		c.Signatures = append(c.Signatures, *s)
	}
	return list, nil
}

// Digest identifies a card, and does not depend on its signatures: SHA-256 over the form Served.
func (c *Card) Digest() (evidence.Digest, error) {
	doc, err := c.Canonical(Served)
	if err != nil {
		return evidence.Digest{}, err
	}
	return evidence.DigestOf(doc), nil
}

// Canonical returns the card without its signatures in one form. It fails if the card does not fit the schema of that form.
func (c *Card) Canonical(form Form) ([]byte, error) {
	if doc, made := c.forms[form]; made {
		return doc, nil
	}
	doc, err := c.canonical(form)
	if err != nil {
		return nil, err
	}
	if c.forms == nil {
		c.forms = map[Form][]byte{}
	}
	c.forms[form] = doc
	return doc, nil
}

func (c *Card) canonical(form Form) ([]byte, error) {
	tree, err := c.in(form)
	if err != nil {
		return nil, fmt.Errorf("agent card in the form %q: %w", form, err)
	}
	doc, err := json.Marshal(tree, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("agent card in the form %q: %w", form, err)
	}
	return evidence.Canonical(doc)
}

func (c *Card) in(form Form) (map[string]any, error) {
	switch form {
	case Served:
		return c.tree, nil
	case Defaults:
		return withoutDefaults(c.tree, "AgentCard", "")
	case Emptied:
		known, err := onlyKnown(c.tree, "AgentCard", "")
		if err != nil {
			return nil, err
		}
		left, _ := emptied(known).(map[string]any)
		return left, nil
	}
	return nil, errors.New("unknown form")
}

// Uncovered lists the members of the card that are not in a form, as JSON pointers in order: a signature over that form says
// nothing of them. A member that only says its default is not listed for Defaults, which is made so that it makes no difference.
func (c *Card) Uncovered(form Form) []string {
	if form != Emptied {
		return nil
	}
	var found []string
	uncovered(c.tree, "AgentCard", "", &found)
	slices.Sort(found)
	return found
}

// Sign returns the card with one more signature, over the form Defaults, by a key under its key id or the kid that is given. It
// refuses a card that the three forms do not read alike, because other implementations would then refuse the signature.
func (c *Card) Sign(key evidence.Signer, kid string) ([]byte, error) {
	payload, err := c.Canonical(Defaults)
	if err != nil {
		return nil, err
	}
	for _, form := range Forms() {
		other, err := c.Canonical(form)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(other, payload) {
			return nil, fmt.Errorf("the card has members that implementations of A2A canonicalise differently, so that some would refuse the signature: %w", c.difference(form))
		}
	}
	made, err := sign(key, kid, payload)
	if err != nil {
		return nil, fmt.Errorf("signing agent card: %w", err)
	}
	tree := maps.Clone(c.tree)
	tree[signatures] = append(slices.Clone(c.given), made)
	doc, err := json.Marshal(tree, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("signing agent card: %w", err)
	}
	return evidence.Canonical(doc)
}

// difference names the first member that one form has and the other has not.
func (c *Card) difference(form Form) error {
	a, errA := c.in(Defaults)
	b, errB := c.in(form)
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	if place := firstDifference(c.tree, a, b, ""); place != "" {
		return fmt.Errorf("%s: leave it out, or give it a value", place)
	}
	return errors.New("the forms differ")
}
