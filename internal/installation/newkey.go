package installation

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"path"

	"jurat/evidence"
	"jurat/internal/filestore"
	"jurat/internal/token"
)

// Token names the hardware token on which a new installation makes the keys of its log and of its time-stamping authority.
type Token struct {
	URI    string // names the token only, without a key
	Helper token.Helper
}

// A maker makes the first keys of an installation, in files or on a token.
type maker struct {
	token   *Token // nil: in files
	helpers *token.Helpers
	id      string // keeps the key names on a token apart from other installations'
}

func newMaker(c Config, helpers *token.Helpers) maker {
	var id [8]byte
	rand.Read(id[:]) // never fails
	return maker{c.Token, helpers, fmt.Sprintf("%x", id)}
}

// make makes a key. It returns the PEM block for its file: the private key, or a reference to the key on the token.
func (m maker) make(ctx context.Context, name string, algorithm evidence.Algorithm) (crypto.Signer, []byte, error) {
	if m.token != nil {
		return m.onToken(ctx, name, algorithm)
	}
	key, err := inFile(algorithm)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

func inFile(algorithm evidence.Algorithm) (crypto.Signer, error) {
	if algorithm == evidence.Ed25519 {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func (m maker) onToken(ctx context.Context, name string, algorithm evidence.Algorithm) (crypto.Signer, []byte, error) {
	reference, err := m.helpers.FindOrGenerate(ctx, m.token.Helper, token.Named(m.token.URI, "jurat-"+name+"-"+m.id), algorithm)
	if err != nil {
		return nil, nil, err
	}
	key, err := m.helpers.Signer(reference)
	if err != nil {
		return nil, nil, err
	}
	text, err := reference.PEM()
	return key, text, err
}

// readSigner reads a private key, or a reference to one on a token. rest is the text of the file after the PEM block.
func readSigner(ctx context.Context, files filestore.Store, helpers *token.Helpers, file string) (key crypto.Signer, rest string, err error) {
	text, err := files.Read(ctx, file)
	if err != nil {
		return nil, "", err
	}
	if key, rest, err = helpers.ParseKey(text); err != nil {
		return nil, "", fmt.Errorf("reading %s: %w", files.Where(file), err)
	}
	return key, rest, nil
}

func writePrivate(ctx context.Context, files filestore.Store, name string, key []byte) error {
	return files.Create(ctx, path.Join(AuthorityFolder, name), key)
}
