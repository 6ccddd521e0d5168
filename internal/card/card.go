// Package card checks the signatures of A2A agent cards (A2A v1.0, section 8.4: JWS over RFC 8785), and what a card says of its agent's records.
//
// A signature is over the card without its signatures and without members that have their default value, in canonical form. Nothing here
// fetches the key that a card names (`jku`): it vouches for nothing, because the author of the card writes it, too. The caller brings the keys.
package card

import (
	"crypto"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"

	"jurat/evidence"
)

// MaxSize is the size of the largest card in bytes.
const MaxSize = 1 << 20

// maxSignatures bounds how many signatures of a card are read.
const maxSignatures = 16

// algorithms are those by which signatures are checked. Any other, a MAC or `none` above all, checks nothing.
var algorithms = map[jose.SignatureAlgorithm]evidence.Algorithm{jose.ES256: evidence.ES256, jose.RS256: evidence.RS256, jose.EdDSA: evidence.Ed25519}

// A Card is an agent card as it was read.
type Card struct {
	Signatures []Signature

	tree    map[string]any // without signatures
	payload []byte         // what is signed
}

// A Signature is a JWS signature of a card. Its header is what the signer says of itself.
type Signature struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	JKU       string `json:"jku"` // where the signer says that its key is found; never fetched

	protected, value string // base64url
}

// ErrNotThisKey says that a signature is not the given key's over the card.
var ErrNotThisKey = errors.New("the signature is not this key's over the card")

// Parse reads a card. It refuses what has no canonical form by RFC 8785, more than 1 MiB, and signatures that are not JWS signatures.
func Parse(doc []byte) (*Card, error) {
	c, err := parse(doc)
	if err != nil {
		return nil, fmt.Errorf("parsing agent card: %w", err)
	}
	return c, nil
}

func parse(doc []byte) (*Card, error) {
	if len(doc) > MaxSize {
		return nil, fmt.Errorf("longer than %d bytes", MaxSize)
	}
	whole, err := evidence.Canonical(doc)
	if err != nil {
		return nil, err
	}
	c := new(Card)
	if err := json.Unmarshal(whole, &c.tree); err != nil || c.tree == nil {
		return nil, errors.New("want a JSON object")
	}
	const member = "signatures"
	given, is := c.tree[member].([]any)
	if c.tree[member] != nil && !is || len(given) > maxSignatures {
		return nil, fmt.Errorf("/%s: want an array of at most %d", member, maxSignatures)
	}
	delete(c.tree, member)
	for i, one := range given {
		s, err := readSignature(one)
		if err != nil {
			return nil, fmt.Errorf("/%s/%d: %w", member, i, err)
		}
		c.Signatures = append(c.Signatures, *s)
	}
	c.payload, err = canonical(withoutDefaults(c.tree, "AgentCard"))
	return c, err
}

func readSignature(value any) (*Signature, error) {
	object, _ := value.(map[string]any)
	s := new(Signature)
	var has1, has2 bool
	s.protected, has1 = object["protected"].(string)
	s.value, has2 = object["signature"].(string)
	header, err := base64.RawURLEncoding.DecodeString(s.protected)
	if !has1 || !has2 || err != nil || strings.Contains(s.protected+s.value, ".") {
		return nil, errors.New(`want an object with "protected" and "signature", in base64url without padding`)
	}
	if err := json.Unmarshal(header, s); err != nil {
		return nil, errors.New("protected is not the JSON object of a JWS header")
	}
	return s, nil
}

func canonical(tree map[string]any) ([]byte, error) {
	doc, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	return evidence.Canonical(doc)
}

// Digest identifies a card, and does not depend on its signatures: SHA-256 over the canonical form of the card without them, as it is served.
func (c *Card) Digest() (evidence.Digest, error) {
	doc, err := canonical(c.tree)
	return evidence.DigestOf(doc), err
}

// Check returns an error unless a key made a signature over the card: ErrNotThisKey, or that the algorithm is none that is checked here.
func (c *Card) Check(s *Signature, key crypto.PublicKey) error {
	of, known := algorithms[jose.SignatureAlgorithm(s.Algorithm)]
	if is, err := evidence.AlgorithmOf(key); !known || err != nil || is != of {
		return fmt.Errorf("the signature is by %q, and the key is for another algorithm", s.Algorithm)
	}
	signed, err := jose.ParseDetached(s.protected+".."+s.value, c.payload, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(s.Algorithm)})
	if err == nil {
		err = signed.DetachedVerify(c.payload, key)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotThisKey, err)
	}
	return nil
}

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
