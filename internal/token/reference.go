package token

import (
	"context"
	"crypto"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
)

// A Reference stands where a private key would stand: it says which key signs, and which helper keeps that key.
type Reference struct {
	URI    string
	Helper Helper
	Public crypto.PublicKey

	Protection *Protection // the helper's word when the key was found; nil: none
}

// PEMType is of blocks that hold a reference: the public key, and in headers the URI and the helper.
const PEMType = "TOKEN KEY"

const (
	headerURI        = "Uri"
	headerHelper     = "Helper"
	headerProtection = "Protection"
)

// PEM writes a reference as ParseReference reads it. It returns an error for a reference that ParseReference would
// refuse.
func (r Reference) PEM() ([]byte, error) {
	helper, err := json.Marshal(r.Helper)
	if err != nil {
		return nil, fmt.Errorf("writing key reference: %w", err)
	}
	der, err := evidence.MarshalPublicKey(r.Public)
	if err != nil {
		return nil, fmt.Errorf("writing key reference: %w", err)
	}
	block := &pem.Block{Type: PEMType, Headers: map[string]string{headerURI: r.URI, headerHelper: string(helper)}, Bytes: der}
	if r.Protection != nil {
		protection, err := json.Marshal(r.Protection)
		if err != nil {
			return nil, fmt.Errorf("writing key reference: %w", err)
		}
		block.Headers[headerProtection] = string(protection)
	}
	if _, err := ParseReference(block); err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(block), nil
}

// ParseReference reads a block of type PEMType. It refuses a block of another type, a missing or further header, a
// URI or helper that is not valid, and a key that cannot sign payloads.
func ParseReference(block *pem.Block) (Reference, error) {
	r := Reference{URI: block.Headers[headerURI]}
	err := json.Unmarshal([]byte(block.Headers[headerHelper]), &r.Helper, json.RejectUnknownMembers(true))
	if err == nil {
		r.Public, err = evidence.ParsePublicKey(block.Bytes)
	}
	headers := 2
	if text, ok := block.Headers[headerProtection]; ok && err == nil {
		headers, r.Protection = 3, new(Protection)
		err = errors.Join(json.Unmarshal([]byte(text), r.Protection, json.RejectUnknownMembers(true)), r.Protection.Check())
	}
	if block.Type != PEMType || len(block.Headers) != headers {
		err = errors.Join(err, fmt.Errorf("it is a block %q with %d headers", block.Type, len(block.Headers)))
	}
	if err := errors.Join(err, CheckURI(r.URI), r.Helper.Check()); err != nil {
		return Reference{}, fmt.Errorf("reading key reference: want a block %q with the headers %s and %s: %w", PEMType, headerURI, headerHelper, err)
	}
	return r, nil
}

// Named names a key on the token that a URI names.
func Named(uri, name string) string {
	if strings.HasPrefix(uri, "pkcs11:") {
		return uri + ";object=" + name
	}
	return uri + "/" + name
}

// Helpers are those that an installation uses, each reached once. The zero value is ready. It is safe for concurrent use.
type Helpers struct {
	mu   sync.Mutex // held while the list changes
	used []used
}

type used struct {
	helper Helper
	client *Client
	key    Reference // one that the helper keeps: Ready asks for it; of a helper that was only asked for keys: none
}

// Client returns the client of a helper that the caller was told to use, not one that a key file names: for that
// there is Signer. It returns an error if the helper is not valid: see Helper.Check.
func (h *Helpers) Client(helper Helper) (*Client, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	u, err := h.use(helper)
	if err != nil {
		return nil, err
	}
	u.client.allow()
	return u.client, nil
}

// use returns the entry of a helper. mu is held.
func (h *Helpers) use(helper Helper) (*used, error) {
	n := slices.IndexFunc(h.used, func(u used) bool { return u.helper.equal(helper) })
	if n < 0 {
		client, err := New(helper)
		if err != nil {
			return nil, err
		}
		n, h.used = len(h.used), append(h.used, used{helper: helper, client: client})
	}
	return &h.used[n], nil
}

// HelperVariable is the environment variable that names the helper of this machine.
const HelperVariable = "JURAT_TOKEN_HELPER"

// ErrNotAllowed says that a key file names a program which this machine was not told to start.
var ErrNotAllowed = errors.New("this machine does not allow the helper program that the key file names")

// allowed reports whether a helper that a key file names may be reached. A key file may come from a backup that another person wrote,
// so it starts no program: only the program that HelperVariable names, or one that this process was told to use. mu is held.
func (h *Helpers) allowed(helper Helper) bool {
	if helper.Socket != "" || slices.ContainsFunc(h.used, func(u used) bool { return u.helper.equal(helper) }) {
		return true
	}
	own, err := ParseHelper(os.Getenv(HelperVariable))
	return err == nil && own.equal(helper)
}

// Signer returns what signs with the key that a reference names. It does not connect yet. If this machine was not told to start the
// program that the reference names, signing fails with ErrNotAllowed.
func (h *Helpers) Signer(r Reference) (crypto.Signer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	allowed := h.allowed(r.Helper)
	u, err := h.use(r.Helper)
	if err != nil {
		return nil, err
	}
	if !allowed {
		u.client.refuse(fmt.Errorf("%w: if you trust it, set %s=%q", ErrNotAllowed, HelperVariable, r.Helper))
	}
	u.key = r
	return u.client.Signer(r.URI, r.Public), nil
}

// ParseKey reads a private key in PEM, or a reference to one on a token, as Signer takes it. rest is the text after
// it. Its errors are those of ParseReference, Signer and evidence.ParsePrivateKey.
func (h *Helpers) ParseKey(text []byte) (key crypto.Signer, rest string, err error) {
	block, after := pem.Decode(text)
	switch {
	case block == nil:
		err = errors.New("want a private key in PEM")
	case block.Type == PEMType:
		var reference Reference
		if reference, err = ParseReference(block); err == nil {
			key, err = h.Signer(reference)
		}
	default:
		key, err = evidence.ParsePrivateKey(block.Bytes)
	}
	return key, string(after), err
}

// FindOrGenerate returns a reference to the key that a URI names. If the helper has no such key, it makes one. It
// refuses a key of another algorithm. Its other errors are those of the Client.
func (h *Helpers) FindOrGenerate(ctx context.Context, helper Helper, uri string, algorithm evidence.Algorithm) (Reference, error) {
	client, err := h.Client(helper)
	if err != nil {
		return Reference{}, err
	}
	k, err := client.Key(ctx, uri)
	if errors.Is(err, ErrNotFound) {
		if k, err = client.Generate(ctx, uri, algorithm); err == nil {
			k, err = client.Key(ctx, k.URI)
		}
	}
	if err == nil && k.Algorithm != algorithm {
		err = fmt.Errorf("key %s is for %s, and one for %s is wanted", k.URI, k.Algorithm, algorithm)
	}
	return Reference{k.URI, helper, k.Public, &k.Protection}, err
}

// Ready returns an error if a helper that keeps a key cannot be reached now, or has another key in its place.
func (h *Helpers) Ready(ctx context.Context) error {
	h.mu.Lock()
	all := slices.Clone(h.used)
	h.mu.Unlock()
	for _, u := range all {
		if u.key.Public == nil {
			continue
		}
		k, err := u.client.Key(ctx, u.key.URI)
		if err == nil && !u.key.Public.(interface{ Equal(crypto.PublicKey) bool }).Equal(k.Public) {
			err = fmt.Errorf("%s is another key than it was", u.key.URI)
		}
		if err != nil {
			return fmt.Errorf("keys of helper %s: %w", u.helper, err)
		}
	}
	return nil
}

// Close ends all helpers that were started. Its errors are those of Client.Close, joined.
func (h *Helpers) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var err error
	for _, u := range h.used {
		err = errors.Join(err, u.client.Close())
	}
	h.used = nil
	return err
}
