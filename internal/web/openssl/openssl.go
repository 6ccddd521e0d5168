// Package openssl writes the files with which OpenSSL checks records without jurat: for each record payload.json (the signed bytes),
// signature.bin, public.pem, token.tsr and authority.pem, and verify.sh with the commands.
//
// Public keys and the authorities' roots come from a trust file, not from the records: a key cannot vouch for the record that it comes
// with.
package openssl

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/timestamp"
	"jurat/verify/trust"
)

var (
	// ErrNoStamp says that a record still waits for its time stamp.
	ErrNoStamp = errors.New("it has no time stamp yet")
	// ErrActor says that a record was signed with another actor's key than it names. No openssl command would notice that.
	ErrActor = errors.New("refuted")
	// ErrNoKey says that the trust file lacks the key that signed a record.
	ErrNoKey = errors.New("the trust file has no key")
)

// Script is the name of the script that checks the records.
const Script = "verify.sh"

// Put stores a file. Folders in the name are separated by slashes.
type Put func(name string, content []byte) error

// Write writes the files that check records, and returns the commands of the script. Several records get a folder each. Its errors include
// ErrNoStamp, ErrActor and ErrNoKey; with these it has written nothing.
func Write(records []*evidence.Record, trusted *trust.Trust, put Put) (commands string, err error) {
	if err := check(records, trusted); err != nil {
		return "", err
	}
	var all strings.Builder
	for i, r := range records {
		folder := ""
		if len(records) > 1 {
			folder = fmt.Sprintf("%03d-%s", i+1, r.Payload.ActionType)
		}
		below := func(name string, content []byte) error { return put(path.Join(folder, name), content) }
		commands, err := signatures(r, trusted, below)
		var stamps []command
		if err == nil {
			stamps, err = tokens(r, trusted, below)
		}
		if err != nil {
			return "", fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
		}
		all.WriteString(inFolder(folder, append(commands, stamps...)))
	}
	// The script stops at the first command that fails, and claims only what it has checked.
	const head = "#!/bin/sh\n# Checks every record in this folder with openssl alone.\nset -e\ncd \"$(dirname \"$0\")\"\n"
	end := "echo all verified: " + checked + "\n"
	if strings.Contains(all.String(), needsNewer) {
		end = "echo all verified, except ML-DSA-65 signatures: their commands stand in this file as comments and need OpenSSL 3.5. " + checked + "\n"
	}
	return all.String(), put(Script, []byte(head+all.String()+end))
}

// check returns an error if records cannot be checked with openssl. It runs before anything is written.
func check(records []*evidence.Record, trusted *trust.Trust) error {
	if len(records) == 0 {
		return errors.New("there is no record in the file")
	}
	for _, r := range records {
		if len(r.Timestamps) == 0 {
			return fmt.Errorf("record %s: %w", r.Payload.RecordID, ErrNoStamp)
		}
		for _, signer := range r.Payload.Signers {
			key := trusted.Key(signer.KeyID)
			if key == nil {
				if _, _, err := certified(r, signer.KeyID, trusted); err != nil {
					return fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
				}
				continue
			}
			if key.Role != r.Payload.Role() || key.Name != r.Payload.Actor() {
				return fmt.Errorf("record %s: %w: it names %s %q as its actor, but is signed with the key of %s %q", r.Payload.RecordID, ErrActor,
					r.Payload.Role(), r.Payload.Actor(), key.Role, key.Name)
			}
		}
	}
	return nil
}

// A command is one openssl command that checks something.
type command struct {
	line  string
	newer bool // it needs OpenSSL 3.5 or later
}

// needsNewer begins the comment that holds a command for OpenSSL 3.5 or later.
const needsNewer = "# ML-DSA-65 needs OpenSSL 3.5: "

// inFolder returns commands as lines of a shell script. Commands that need a newer OpenSSL become comments.
func inFolder(folder string, commands []command) string {
	lines := ""
	var run []string
	for _, c := range commands {
		if c.newer {
			lines += fmt.Sprintf("%s(cd %s && %s)\n", needsNewer, "./"+folder, c.line)
			continue
		}
		run = append(run, c.line)
	}
	if len(run) > 0 {
		lines += fmt.Sprintf("(cd %s && %s)\n", "./"+folder, strings.Join(run, " && "))
	}
	return lines
}

// checked tells the reader what the commands prove, and what they do not.
const checked = "'signatures, by the keys beside them, and time stamps. Only jurat verify checks what the records say of each other and of trials, whether keys had ended, whether keys or certificates were revoked, and the log.'"

func signatures(r *evidence.Record, trusted *trust.Trust, put Put) ([]command, error) {
	var commands []command
	err := put("payload.json", r.Canonical())
	for i, signer := range r.Payload.Signers {
		public, signature := numbered("public", i, ".pem"), numbered("signature", i, ".bin")
		err = errors.Join(err, put(signature, r.Signatures[i]))
		if key := trusted.Key(signer.KeyID); key != nil {
			err = errors.Join(err, put(public, inPEM("PUBLIC KEY", key.PublicKey)))
		} else {
			found, certErr := byCertificate(r, i, trusted, public, put)
			err, commands = errors.Join(err, certErr), append(commands, found...)
		}
		commands = append(commands, command{verifyCommand(signer.Algorithm, public, signature), signer.Algorithm == evidence.MLDSA65})
	}
	return commands, err
}

// numbered returns a file name, without a number for the first file, since a second one is rare.
func numbered(name string, i int, extension string) string {
	if i == 0 {
		return name + extension
	}
	return fmt.Sprintf("%s-%d%s", name, i+1, extension)
}

func verifyCommand(algorithm evidence.Algorithm, public, signature string) string {
	if algorithm == evidence.Ed25519 || algorithm == evidence.MLDSA65 { // these sign the payload itself, not its hash
		return fmt.Sprintf("openssl pkeyutl -verify -pubin -inkey %s -rawin -in payload.json -sigfile %s", public, signature)
	}
	return fmt.Sprintf("openssl dgst -sha256 -verify %s -signature %s payload.json", public, signature)
}

// tokens writes each token inside a response, which is the form that openssl reads by default.
func tokens(r *evidence.Record, trusted *trust.Trust, put Put) ([]command, error) {
	var err error
	stamped := "signature.bin"
	if len(r.Signatures) > 1 { // a token stamps all signatures, concatenated
		stamped = "signatures.bin"
		err = put(stamped, bytes.Join(r.Signatures, nil))
	}
	var commands []command
	for i, stamp := range r.Timestamps {
		response, wrapErr := timestamp.MarshalResponse(stamp.Token)
		name := numbered("token", i, ".tsr")
		err = errors.Join(err, wrapErr, put(name, response))
		line, lineErr := tokenCommand("-data "+stamped, name, stamp.Token)
		err, commands = errors.Join(err, lineErr), append(commands, command{line: line})
	}
	var roots []byte
	for _, authority := range trusted.Authorities {
		roots = append(roots, inPEM("CERTIFICATE", authority.Certificate)...)
	}
	return commands, errors.Join(err, put("authority.pem", roots))
}

// tokenCommand is the command that checks a token in a file. Each authority of authority.pem is trusted by itself, whoever certified it, and its
// certificates need to have been valid at the token's time. Its error says that the token cannot be read.
func tokenCommand(what, name string, token []byte) (string, error) {
	t, err := timestamp.Parse(token)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("openssl ts -verify %s -in %s -CAfile authority.pem -untrusted authority.pem -partial_chain -attime %d", what, name, t.UnverifiedInfo().GenTime.Unix()), nil
}

// certified returns how a CA of the trust file vouches for a signer whose key that does not list, and when the record existed. It does not ask
// whether anything was revoked or has ended since, and the script says so. Its errors include ErrNoKey and ErrActor.
func certified(r *evidence.Record, id evidence.KeyID, trusted *trust.Trust) (trust.Vouching, time.Time, error) {
	unasked := *trusted
	unasked.CAs, unasked.Authorities = slices.Clone(trusted.CAs), slices.Clone(trusted.Authorities)
	for i := range unasked.CAs {
		unasked.CAs[i].Revocation = trust.NotAsked
	}
	for i := range unasked.Authorities {
		unasked.Authorities[i].Revocation, unasked.Authorities[i].NotAfter = trust.NotAsked, time.Time{}
	}
	checker := trust.Checker{Trust: &unasked, Memory: timestamp.NewMemory(), Share: timestamp.NewShare()}
	var at trust.Proof
	for _, stamp := range r.Timestamps {
		if t, err := checker.Token(stamp.Token, r.Imprint(), trust.Proof{}); err == nil { // otherwise the script has openssl say what is wrong with it
			at.Add(t)
		}
	}
	given, err := trust.ReadCertificates(r, id)
	if err == nil && len(given.Signers) == 0 {
		err = fmt.Errorf("%w %s", ErrNoKey, id)
	}
	if err != nil {
		return trust.Vouching{}, time.Time{}, err
	}
	found := checker.Vouch(r, given, at)
	switch found.Rule {
	case "":
		return found, at.Earliest.Time, nil
	case "actor":
		return found, time.Time{}, fmt.Errorf("%w: it names %s %q as its actor: %w", ErrActor, r.Payload.Role(), r.Payload.Actor(), found.Err)
	}
	return found, time.Time{}, fmt.Errorf("%w %s, and none of its CAs vouches for that key: %w", ErrNoKey, id, found.Err)
}

// byCertificate writes the i-th signer's key and its certificates, and returns the command that checks them by the CA of the trust file.
func byCertificate(r *evidence.Record, i int, trusted *trust.Trust, public string, put Put) ([]command, error) {
	found, at, err := certified(r, r.Payload.Signers[i].KeyID, trusted)
	if err != nil {
		return nil, err
	}
	var chain []byte
	last := len(found.Path) - 1
	for _, c := range found.Path[:last] {
		chain = append(chain, inPEM("CERTIFICATE", c.Raw)...)
	}
	certificate, root := numbered("certificate", i, ".pem"), numbered("ca", i, ".pem")
	return []command{
		{line: fmt.Sprintf("openssl verify -purpose any -partial_chain -no-CApath -no-CAstore -attime %d -CAfile %s -untrusted %s %s", at.Unix(), root, certificate, certificate)},
		{line: fmt.Sprintf("openssl x509 -in %s -noout -pubkey | cmp - %s", certificate, public)},
	}, errors.Join(put(certificate, chain), put(root, inPEM("CERTIFICATE", found.Path[last].Raw)), put(public, inPEM("PUBLIC KEY", found.Path[0].RawSubjectPublicKeyInfo)))
}

func inPEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
