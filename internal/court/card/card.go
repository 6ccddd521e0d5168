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
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"

	"jurat/evidence"
)

// MaxSize is the size of the largest card in bytes.
const MaxSize = 1 << 20

const maxSignatures = 16

// algorithms are those by which signatures are checked. Any other, a MAC or `none` above all, checks nothing.
var algorithms = map[jose.SignatureAlgorithm]evidence.Algorithm{jose.ES256: evidence.ES256, jose.RS256: evidence.RS256, jose.EdDSA: evidence.Ed25519}

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

// A field is what the schema of A2A v1.0.1 (specification/a2a.proto) says of a member: whether it is required, and whether it is declared
// `optional`, which makes its default another thing than its absence.
type field struct {
	of       string // the message that stands there, or of which there is a list; "": none
	table    bool   // an object whose values are these messages
	required bool
	optional bool
}

// schema has each message of a card by its members' JSON names.
var schema = map[string]map[string]field{
	"AgentCard": {
		"name": {required: true}, "description": {required: true}, "version": {required: true},
		"supportedInterfaces": {of: "AgentInterface", required: true},
		"provider":            {of: "AgentProvider"},
		"documentationUrl":    {optional: true}, "iconUrl": {optional: true},
		"capabilities":         {of: "AgentCapabilities", required: true},
		"securitySchemes":      {table: true, of: "SecurityScheme"},
		"securityRequirements": {of: "SecurityRequirement"},
		"defaultInputModes":    {required: true}, "defaultOutputModes": {required: true},
		"skills": {of: "AgentSkill", required: true},
	},
	"AgentInterface": {"url": {required: true}, "protocolBinding": {required: true}, "tenant": {}, "protocolVersion": {required: true}},
	"AgentProvider":  {"url": {required: true}, "organization": {required: true}},
	"AgentCapabilities": {"streaming": {optional: true}, "pushNotifications": {optional: true},
		"extensions": {of: "AgentExtension"}, "extendedAgentCard": {optional: true}},
	"AgentExtension": {"uri": {}, "description": {}, "required": {}, "params": {}},
	"AgentSkill": {"id": {required: true}, "name": {required: true}, "description": {required: true}, "tags": {required: true},
		"examples": {}, "inputModes": {}, "outputModes": {}, "securityRequirements": {of: "SecurityRequirement"}},
	"SecurityRequirement": {"schemes": {table: true, of: "StringList"}},
	"StringList":          {"list": {}},
	"SecurityScheme": {"apiKeySecurityScheme": {of: "APIKeySecurityScheme", optional: true},
		"httpAuthSecurityScheme":      {of: "HTTPAuthSecurityScheme", optional: true},
		"oauth2SecurityScheme":        {of: "OAuth2SecurityScheme", optional: true},
		"openIdConnectSecurityScheme": {of: "OpenIdConnectSecurityScheme", optional: true},
		"mtlsSecurityScheme":          {of: "MutualTlsSecurityScheme", optional: true}},
	"APIKeySecurityScheme":        {"description": {}, "location": {required: true}, "name": {required: true}},
	"HTTPAuthSecurityScheme":      {"description": {}, "scheme": {required: true}, "bearerFormat": {}},
	"OAuth2SecurityScheme":        {"description": {}, "flows": {of: "OAuthFlows", required: true}, "oauth2MetadataUrl": {}},
	"OpenIdConnectSecurityScheme": {"description": {}, "openIdConnectUrl": {required: true}},
	"MutualTlsSecurityScheme":     {"description": {}},
	"OAuthFlows": {"authorizationCode": {of: "AuthorizationCodeOAuthFlow", optional: true},
		"clientCredentials": {of: "ClientCredentialsOAuthFlow", optional: true}, "implicit": {of: "ImplicitOAuthFlow", optional: true},
		"password": {of: "PasswordOAuthFlow", optional: true}, "deviceCode": {of: "DeviceCodeOAuthFlow", optional: true}},
	"AuthorizationCodeOAuthFlow": {"authorizationUrl": {required: true}, "tokenUrl": {required: true}, "refreshUrl": {},
		"scopes": {required: true}, "pkceRequired": {}},
	"ClientCredentialsOAuthFlow": {"tokenUrl": {required: true}, "refreshUrl": {}, "scopes": {required: true}},
	"ImplicitOAuthFlow":          {"authorizationUrl": {}, "refreshUrl": {}, "scopes": {}},
	"PasswordOAuthFlow":          {"tokenUrl": {}, "refreshUrl": {}, "scopes": {}},
	"DeviceCodeOAuthFlow": {"deviceAuthorizationUrl": {required: true}, "tokenUrl": {required: true}, "refreshUrl": {},
		"scopes": {required: true}},
}

// withoutDefaults leaves out each member of a message that has its default value and is neither required nor declared `optional`. Members
// that the schema does not know stay.
func withoutDefaults(message map[string]any, name string) map[string]any {
	out := make(map[string]any, len(message))
	for member, value := range message {
		f, known := schema[name][member]
		if known && f.of != "" {
			value = f.inside(value)
		}
		if !known || f.required || value != nil && (f.optional || !empty(value)) {
			out[member] = value
		}
	}
	return out
}

// inside does the same with the messages in a member's value. What is of another type stays.
func (f *field) inside(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if !f.table {
			return withoutDefaults(v, f.of)
		}
		out := make(map[string]any, len(v))
		for key, one := range v {
			out[key] = (&field{of: f.of}).inside(one)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = f.inside(one)
		}
		return out
	}
	return value
}

func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// Readdress returns a card whose agent is reached at another origin (scheme, host and port), with the paths that it has. It leaves out the signatures,
// which would not hold, and interfaces that another origin has or that speak gRPC: who used one would go past the new origin.
func Readdress(doc []byte, from, to *url.URL) ([]byte, error) {
	c, err := Parse(doc)
	if err != nil {
		return nil, err
	}
	left := 0
	for _, member := range []string{"supportedInterfaces", "additionalInterfaces"} {
		list, there := c.tree[member].([]any)
		if !there {
			continue
		}
		kept := []any{}
		for _, one := range list {
			if moved := readdressed(one, from, to); moved != nil {
				kept = append(kept, moved)
			}
		}
		c.tree[member] = kept
		left += len(kept)
	}
	if _, there := c.tree["url"]; there {
		moved := readdressed(c.tree, from, to)
		if moved == nil {
			return nil, fmt.Errorf("the agent card's url is not at %s, or speaks gRPC, which cannot pass here", originOf(from))
		}
		c.tree, left = moved, left+1
	}
	if left == 0 {
		return nil, fmt.Errorf("the agent card names no interface at %s that can pass here", originOf(from))
	}
	return json.Marshal(c.tree, json.Deterministic(true))
}

// readdressed returns an interface at the new origin; nil: it is none that moves.
func readdressed(one any, from, to *url.URL) map[string]any {
	face, is := one.(map[string]any)
	if !is {
		return nil
	}
	for _, member := range []string{"protocolBinding", "transport", "preferredTransport"} {
		if kind, named := face[member].(string); named && strings.EqualFold(kind, "GRPC") {
			return nil
		}
	}
	address, _ := face["url"].(string)
	u, err := url.Parse(address)
	if err != nil || originOf(u) != originOf(from) || u.User != nil {
		return nil
	}
	moved := maps.Clone(face)
	u.Scheme, u.Host = to.Scheme, to.Host
	moved["url"] = u.String()
	return moved
}

// originOf is scheme, host and port, with the port that a scheme stands for.
func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return strings.ToLower(u.Scheme + "://" + u.Hostname() + ":" + port)
}

// ErrNoOrigin says that an address is more than scheme, host and port, or less.
var ErrNoOrigin = errors.New("want https://HOST or http://HOST, with a port if need be, and nothing else: paths pass as they are")

// ParseOrigin reads the address of an agent: scheme, host and port alone.
func ParseOrigin(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("it is no URL")
	case u.Scheme == "grpc" || u.Scheme == "grpcs":
		return nil, errors.New("gRPC cannot be recorded: name the agent's address for JSON-RPC or HTTP with JSON")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "":
		return nil, ErrNoOrigin
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}
