// Package aep reads the Evidence Package (.aep) of the Aletheia AI project, an older format with a similar purpose: a
// ZIP archive in which one text is signed and time-stamped.
//
// Opening a package checks only its form. Everything in it, above all its public key, is a claim by the maker of the
// archive: package verify compares it with what a reader trusts. docs/format.md says what is accepted.
//
// # A neighbour's package passes for what it can prove
//
// An evidence package (`.aep`) is in no log, and its metadata was never signed. If order were required, no package
// could pass, and the exit code would carry no information. If order were not checked, the report would hide what is
// missing. So both are checked, answered "not proved", and not required. A displayed text that differs from the
// signed one deceives its reader, so then content is not proved. The report names all members beyond the first seven,
// and trusts none of them.
//
// # Archives are read only if they can be read in one way
//
// A ZIP archive describes its content twice, and readers differ in which description they believe. `archive/zip`
// reads the directory. This package also compares every local header with it, and allows no byte between the members.
// It bounds the unpacked size.
package aep

import (
	"bytes"
	"crypto/rsa"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	"jurat/evidence"
)

// Names of the members that a package has.
const (
	responseFile  = "response.txt"
	canonicalFile = "canonical.bin"
	hashFile      = "hash.sha256"
	signatureFile = "signature.sig"
	tokenFile     = "timestamp.tsr"
	metadataFile  = "metadata.json"
	publicKeyFile = "public_key.pem"
)

// Names of members that a package may have.
const (
	secondSignatureFile = "signature_pqc.sig"
	secondKeyFile       = "pqc_public_key.pem"
	secondKindFile      = "pqc_algorithm.json"
)

var required = []string{responseFile, canonicalFile, hashFile, signatureFile, tokenFile, metadataFile, publicKeyFile}

// A Package is the content of an archive. All of it is unverified.
type Package struct {
	Response  []byte // the text for people
	Canonical []byte // the bytes that are signed
	Hash      evidence.Digest
	Signature []byte // RSA, over Canonical; empty: it is not signed
	Token     []byte // RFC 3161, DER; empty: it is not stamped
	Metadata  []byte
	KeyID     evidence.KeyID // of PublicKey
	PublicKey []byte         // DER SubjectPublicKeyInfo; nil: no key and no signature
	Second    *Second        // nil: there is no second signature
	Others    []string       // names of further members, sorted

	key *rsa.PublicKey
}

// Is recognises a package, even a damaged one: a ZIP archive that names at least two of the members that only a
// package has together.
func Is(file []byte) bool {
	names := 0
	for _, name := range required {
		if bytes.Contains(file, []byte(name)) {
			names++
		}
	}
	return bytes.HasPrefix(file, []byte(localHeader)) && names >= 2
}

// Open reads a package. Its error says what is wrong with the archive or a member.
func Open(file []byte) (*Package, error) {
	p, err := open(file)
	if err != nil {
		return nil, fmt.Errorf("opening evidence package: %w", err)
	}
	return p, nil
}

func open(file []byte) (*Package, error) {
	members, err := unzip(file)
	if err != nil {
		return nil, err
	}
	for _, name := range required {
		if _, there := members[name]; !there {
			return nil, fmt.Errorf("the member %s is missing", name)
		}
	}
	p := &Package{Response: members[responseFile], Canonical: members[canonicalFile], Metadata: members[metadataFile]}
	if p.Hash, err = readHash(members[hashFile]); err != nil {
		return nil, fmt.Errorf("%s: %w", hashFile, err)
	}
	if p.Signature, err = readBase64(members[signatureFile]); err != nil {
		return nil, fmt.Errorf("%s: %w", signatureFile, err)
	}
	if p.Token, err = readBase64(members[tokenFile]); err != nil {
		return nil, fmt.Errorf("%s: %w", tokenFile, err)
	}
	if err := p.readKey(members[publicKeyFile]); err != nil {
		return nil, fmt.Errorf("%s: %w", publicKeyFile, err)
	}
	p.Second = readSecond(members)
	for name := range members {
		if !slices.Contains(required, name) && (p.Second == nil || !slices.Contains(secondFiles, name)) {
			p.Others = append(p.Others, name)
		}
	}
	slices.Sort(p.Others)
	return p, nil
}

func (p *Package) readKey(member []byte) error {
	if len(member) == 0 && len(p.Signature) == 0 {
		return nil
	}
	der, err := readPEM(member)
	if err != nil {
		return err
	}
	public, err := evidence.ParsePublicKey(der)
	if err != nil {
		return err
	}
	key, ok := public.(*rsa.PublicKey)
	if !ok {
		return fmt.Errorf("a key of type %T: want RSA", public)
	}
	p.key, p.PublicKey, p.KeyID = key, der, evidence.DigestOf(der)
	return nil
}

// readHash reads 64 hexadecimal digits. It accepts both cases, as the first verifiers of such packages did.
func readHash(member []byte) (evidence.Digest, error) {
	var digest evidence.Digest
	text := line(member)
	if len(text) != hex.EncodedLen(len(digest)) {
		return digest, fmt.Errorf("want %d hexadecimal digits", hex.EncodedLen(len(digest)))
	}
	_, err := hex.Decode(digest[:], text)
	return digest, err
}

// readBase64 refuses line breaks, which encoding/base64 skips.
func readBase64(member []byte) ([]byte, error) {
	text := line(member)
	if bytes.ContainsAny(text, "\r\n") {
		return nil, errors.New("want base64 in one line")
	}
	content := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(content, text)
	return content[:n], err
}

// readPEM reads one public key and allows no text around it.
func readPEM(member []byte) ([]byte, error) {
	text := bytes.TrimSpace(member)
	if !bytes.HasPrefix(text, []byte("-----BEGIN ")) {
		return nil, errors.New("want a public key in PEM and nothing before it")
	}
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "PUBLIC KEY" || len(block.Headers) > 0 || len(rest) > 0 {
		return nil, errors.New("want one PUBLIC KEY in PEM and nothing after it")
	}
	return block.Bytes, nil
}

// line removes the line end that tools add at the end of a file.
func line(member []byte) []byte {
	member, _ = bytes.CutSuffix(member, []byte("\n"))
	member, _ = bytes.CutSuffix(member, []byte("\r"))
	return member
}
