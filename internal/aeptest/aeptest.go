// Package aeptest makes evidence packages for tests. Its keys are committed and worthless.
package aeptest

import (
	"archive/zip"
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"maps"
	"slices"
	"testing"

	"jurat/evidence"
	"jurat/timestamp"
)

var (
	//go:embed worthless-test-key-rs256.pem
	rsaPEM []byte
	//go:embed worthless-test-key-mldsa65.pem
	mldsaPEM []byte
)

// Response is the text of the packages, and Canonical the form of it that they sign.
const (
	Response  = "Take the A9 by Nuremberg:  4.5 hours. \r\n\r\n\r\n\tDrive safely."
	Canonical = "Take the A9 by Nuremberg:  4.5 hours.\n\nDrive safely.\n"
)

// Members are the files of a package.
type Members map[string][]byte

// New makes an honest package: signed as the project signs, and stamped by an authority.
func New(t testing.TB, authority *timestamp.Authority) Members {
	t.Helper()
	m := Members{
		"response.txt":   []byte(Response),
		"canonical.bin":  []byte(Canonical),
		"metadata.json":  []byte(`{"model":"gpt-4.1","created_at":"2026-02-01T09:00:00Z","response_id":7}`),
		"public_key.pem": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: Public(t, Key(t).Public())}),
	}
	m.Sign(t, authority, false)
	return m
}

// Sign makes hash, signature and token of canonical.bin anew, with NULL in the DigestInfo or without.
func (m Members) Sign(t testing.TB, authority *timestamp.Authority, null bool) {
	t.Helper()
	digest := sha256.Sum256(m["canonical.bin"])
	m["hash.sha256"] = []byte(hex.EncodeToString(digest[:]))
	hash, signed := crypto.Hash(0), append([]byte("\x30\x2f\x30\x0b\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x04\x20"), digest[:]...)
	if null {
		hash, signed = crypto.SHA256, digest[:]
	}
	signature, err := rsa.SignPKCS1v15(rand.Reader, Key(t), hash, signed)
	check(t, err)
	m.SetSignature(t, authority, signature)
}

// SetSignature puts a signature in, and a token over it.
func (m Members) SetSignature(t testing.TB, authority *timestamp.Authority, signature []byte) {
	t.Helper()
	m["signature.sig"] = Base64(signature)
	m.Stamp(t, authority, sha256.Sum256(signature))
}

// Stamp puts a token over an imprint in.
func (m Members) Stamp(t testing.TB, authority *timestamp.Authority, imprint [32]byte) {
	t.Helper()
	token, err := authority.Issue(&timestamp.Request{Imprint: imprint, CertReq: true})
	check(t, err)
	m["timestamp.tsr"] = Base64(token)
}

// SignSecond adds an ML-DSA-65 signature over a message.
func (m Members) SignSecond(t testing.TB, message []byte) {
	t.Helper()
	signer, err := evidence.NewSigner(SecondKey(t), nil)
	check(t, err)
	signature, err := signer.Sign(message)
	check(t, err)
	m["signature_pqc.sig"] = Base64(signature)
	m["pqc_public_key.pem"] = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: Public(t, SecondKey(t).Public())})
	m["pqc_algorithm.json"] = []byte(`{"algorithm":"ML-DSA-65"}`)
}

// Zip writes the archive, the members by name.
func (m Members) Zip(t testing.TB) []byte {
	t.Helper()
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		member, err := w.Create(name)
		check(t, err)
		_, err = member.Write(m[name])
		check(t, err)
	}
	check(t, w.Close())
	return archive.Bytes()
}

// Key signs the packages.
func Key(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	key, ok := private(t, rsaPEM).(*rsa.PrivateKey)
	if !ok {
		t.Fatal("the test key is no RSA key")
	}
	return key
}

// SecondKey signs them a second time.
func SecondKey(t testing.TB) crypto.Signer { return private(t, mldsaPEM) }

func private(t testing.TB, doc []byte) crypto.Signer {
	t.Helper()
	block, _ := pem.Decode(doc)
	key, err := evidence.ParsePrivateKey(block.Bytes)
	check(t, err)
	return key
}

// Public is a key's SubjectPublicKeyInfo.
func Public(t testing.TB, key crypto.PublicKey) []byte {
	t.Helper()
	der, err := evidence.MarshalPublicKey(key)
	check(t, err)
	return der
}

// Base64 is the form of members that hold bytes.
func Base64(content []byte) []byte { return base64.StdEncoding.AppendEncode(nil, content) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
