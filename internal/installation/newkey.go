package installation

import (
	"context"
	"crypto"
	"crypto/ecdsa"
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

// Token names the hardware token on which a new installation makes the keys of its time-stamping authority.
type Token struct {
	URI    string // names the token only, without a key
	Helper string // the program that reaches it: see token.Helper.Use
}

// A maker makes the first keys of an installation, in files or on a token.
type maker struct {
	token  *Token // nil: in files
	helper *token.Helper
	id     string // keeps the key names on a token apart from other installations'
}

func newMaker(c Config, helper *token.Helper) maker {
	var id [8]byte
	rand.Read(id[:]) // never fails
	if c.Token != nil {
		helper.Use(c.Token.Helper)
	}
	return maker{c.Token, helper, fmt.Sprintf("%x", id)}
}

// make makes a P-256 key. It returns the PEM block for its file: the private key, or a reference to the key on the token.
func (m maker) make(ctx context.Context, name string) (crypto.Signer, []byte, error) {
	if m.token != nil {
		return m.onToken(ctx, name)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

func (m maker) onToken(ctx context.Context, name string) (crypto.Signer, []byte, error) {
	reference, err := m.helper.FindOrGenerate(ctx, token.Named(m.token.URI, "jurat-"+name+"-"+m.id), evidence.ES256)
	if err != nil {
		return nil, nil, err
	}
	key, err := m.helper.Signer(reference)
	if err != nil {
		return nil, nil, err
	}
	text, err := reference.PEM()
	return key, text, err
}

func writePrivate(ctx context.Context, files filestore.Store, name string, key []byte) error {
	return files.Create(ctx, path.Join(AuthorityFolder, name), key)
}
