package keys

import (
	"bytes"
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/token"
)

const (
	extension = ".key"
	secondKey = ".second"     // before the extension; a base name never contains a point
	nextKey   = ".next-"      // before the algorithm; the key replaces another one as soon as the log says so
	pemType   = "PRIVATE KEY" // RFC 5958
)

// header is the first line of a key file, above the PEM block.
type header struct {
	Name    string         `json:"name"`
	Role    evidence.Role  `json:"role"`
	Created time.Time      `json:"created"`
	With    evidence.KeyID `json:"with,omitzero"`
}

// file returns the path of a key. It is readable, and differs for names that a file system may treat as equal.
func (r *Ring) file(at place) string {
	const readable = 60 // the bytes of the name that the path contains; every file system accepts this length
	safe := strings.Map(func(c rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", c) {
			return c
		}
		return '_'
	}, at.name)
	sum := sha256.Sum256([]byte(at.name))
	base := safe[:min(len(safe), readable)] + "-" + hex.EncodeToString(sum[:4])
	if at.second {
		base += secondKey
	}
	return path.Join(Folder, string(at.role), base+extension)
}

// nextFile returns the path of a new key until the log says that it replaces another.
func (r *Ring) nextFile(at place, algorithm evidence.Algorithm) string {
	return strings.TrimSuffix(r.file(at), extension) + nextKey + string(algorithm) + extension
}

// rotatedFile returns the path of a key that replaced another.
func (r *Ring) rotatedFile(at place, id evidence.KeyID) string {
	return strings.TrimSuffix(r.file(at), extension) + "." + hex.EncodeToString(id[:8]) + extension
}

func isNext(file string) bool { return strings.Contains(path.Base(file), nextKey) }

// writeKey writes a key into a new file. It never changes an existing file: then it returns ErrExists.
func (r *Ring) writeKey(ctx context.Context, file string, head header, key []byte) error {
	line, err := json.Marshal(head)
	if err != nil {
		return fmt.Errorf("encoding key: %w", err)
	}
	err = r.config.Files.Create(ctx, file, slices.Concat(line, []byte("\n"), key))
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %s", ErrExists, r.config.Files.Where(file))
	}
	return err
}

// newKey makes a private key and returns it in PEM.
func (r *Ring) newKey(role evidence.Role, name string, algorithm evidence.Algorithm) ([]byte, error) {
	private, err := r.config.NewKey(role, name, algorithm)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	der, err := evidence.MarshalPrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("encoding key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}), nil
}

// load reads a key file.
func (r *Ring) load(ctx context.Context, file string) (*Held, error) {
	text, err := r.config.Files.Read(ctx, file)
	if err != nil {
		return nil, err
	}
	key, err := r.parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", r.config.Files.Where(file), err)
	}
	key.File = r.config.Files.Where(file)
	return key, nil
}

func (r *Ring) parse(text []byte) (*Held, error) {
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	var head header
	if err := json.Unmarshal(line, &head, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("first line: %w", err)
	}
	block, rest := pem.Decode(rest)
	switch {
	case block == nil || block.Type != pemType && block.Type != token.PEMType || len(bytes.TrimSpace(rest)) > 0:
		return nil, fmt.Errorf("want one PEM block of type %q or %q after the first line", pemType, token.PEMType)
	case block.Type == token.PEMType:
		return r.onToken(head, block)
	}
	private, err := evidence.ParsePrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	return r.key(head, private)
}

// onToken returns the key on a token that block refers to.
func (r *Ring) onToken(head header, block *pem.Block) (*Held, error) {
	reference, err := token.ParseReference(block)
	if err != nil {
		return nil, err
	}
	private, err := r.config.Helper.Signer(reference)
	if err != nil {
		return nil, err
	}
	key, err := r.key(head, private)
	if err == nil {
		key.Token, key.Protection = reference.URI, reference.Protection
	}
	return key, err
}

func (r *Ring) key(head header, private crypto.Signer) (*Held, error) {
	signer, err := evidence.NewSigner(private, r.config.Random)
	if err != nil {
		return nil, err
	}
	public, err := evidence.MarshalPublicKey(private.Public())
	if err != nil {
		return nil, err
	}
	info := signer.Info()
	return &Held{Name: head.Name, Role: head.Role, Algorithm: info.Algorithm, KeyID: info.KeyID, PublicKey: public,
		Created: head.Created, With: head.With, signer: signer}, nil
}
