package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"jurat/aep"
	"jurat/dsse"
	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/timestamp"
	"jurat/verify"
)

type exportCmd struct {
	File    string `arg:"" help:"A record file, a case file, or with --openssl an evidence package (.aep)."`
	OpenSSL string `name:"openssl" xor:"to" required:"" placeholder:"DIR" help:"Write what openssl needs to this folder; made if it is missing."`
	DSSE    string `name:"dsse" xor:"to" required:"" placeholder:"OUT" help:"Write a DSSE envelope around an in-toto statement to this file; - for standard output."`
	Trust   string `help:"With --openssl: the trust file whose public keys and authorities are written. Default: this installation's own."`
	Key     string `placeholder:"FILE" help:"With --dsse: the private key (PKCS #8 in PEM) that signs the envelope. Default: this installation's operator's."`
}

// Help is shown by 'jurat export --help'.
func (*exportCmd) Help() string {
	return `Writes, for each record, what openssl needs to check it without jurat: payload.json (the signed bytes), signature.bin,
public.pem, token.tsr, authority.pem and verify.sh with the commands, which are printed too. A record file is written to DIR
itself, each record of a case file to a folder of its own.

An evidence record (RFC 4998) is written, too, and each token in it with the imprint that jurat computed from the record. OpenSSL
checks that the authority stamped this imprint, and not how it follows from the record: 'jurat verify' does.

The public keys and the authorities' roots come from the trust file, not from the records: a key that comes with what it
vouches for vouches for nothing.

OpenSSL knows ML-DSA-65 since version 3.5. Such a signature is written, too (as public-2.pem and signature-2.bin, if it is
the second), and the command that checks it is there as a comment.

    jurat export case.jurat --openssl check && sh check/verify.sh

With --dsse it writes the whole file into a DSSE envelope around an in-toto statement, for tools that read those. The
envelope is signed by the operator (or with --key FILE), which says who handed the records over; who said what is still
shown by the signatures inside the records. 'jurat verify' checks both, with a trust file that has the operator's key: it is
made on first use, so write the trust file anew after the first export.

    jurat export case.jurat --dsse case.json && jurat trust > trust.json && jurat verify --trust trust.json case.json`
}

// Run writes the folder or the envelope.
func (c *exportCmd) Run(ctx context.Context, a *app, io stdio) error {
	switch {
	case c.DSSE != "" && c.Trust != "":
		return errors.New("--trust is for --openssl: an envelope takes nothing from a trust file")
	case c.OpenSSL != "" && c.Key != "":
		return errors.New("--key is for --dsse: nothing is signed for openssl")
	}
	doc, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	if c.DSSE != "" {
		return c.envelope(ctx, a, io, doc)
	}
	if aep.Is(doc) {
		return c.packaged(ctx, a, io, doc)
	}
	records, err := openRecords(doc)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	trust, err := c.trust(ctx, a)
	if err != nil {
		return err
	}
	if err := exportable(records, trust); err != nil {
		return err
	}
	var all strings.Builder
	for i, r := range records {
		folder := ""
		if len(records) > 1 {
			folder = fmt.Sprintf("%03d-%s", i+1, r.Payload.ActionType)
		}
		commands, err := exportRecord(filepath.Join(c.OpenSSL, folder), r, trust)
		if err != nil {
			return fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
		}
		all.WriteString(inFolder(folder, commands))
	}
	if err := writeScript(c.OpenSSL, all.String()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.out, "cd %s\n%s", quote(c.OpenSSL), all.String())
	return err
}

// exportable says before anything is written why a file cannot be checked with openssl.
func exportable(records []*evidence.Record, trust *verify.Trust) error {
	if len(records) == 0 {
		return errors.New("there is no record in the file")
	}
	for _, r := range records {
		if len(r.Timestamps) == 0 {
			return fmt.Errorf("record %s has no time stamp yet", r.Payload.RecordID)
		}
		for _, signer := range r.Payload.Signers {
			if trust.Key(signer.KeyID) == nil {
				return hint(fmt.Errorf("record %s: the trust file has no key %s", r.Payload.RecordID, signer.KeyID),
					"give the trust file of the installation that made the record, with --trust FILE")
			}
		}
	}
	return nil
}

// A command checks something with openssl.
type command struct {
	line  string
	newer bool // an OpenSSL before 3.5 cannot run it
}

// needsNewer is the comment before a command that most machines cannot run yet.
const needsNewer = "# ML-DSA-65 needs OpenSSL 3.5: "

// inFolder writes commands as lines of a shell script, those that need a newer OpenSSL as comments.
func inFolder(folder string, commands []command) string {
	lines := ""
	var run []string
	for _, c := range commands {
		if c.newer {
			lines += fmt.Sprintf("%s(cd %s && %s)\n", needsNewer, quote("./"+folder), c.line)
			continue
		}
		run = append(run, c.line)
	}
	if len(run) > 0 {
		lines += fmt.Sprintf("(cd %s && %s)\n", quote("./"+folder), strings.Join(run, " && "))
	}
	return lines
}

// writeScript writes the commands as a program that stops at the first that fails, and never says more than it checked.
func writeScript(folder, commands string) error {
	const head = "#!/bin/sh\n# Checks every record in this folder with openssl alone.\nset -e\ncd \"$(dirname \"$0\")\"\n"
	end := "echo all verified\n"
	if strings.Contains(commands, needsNewer) {
		end = "echo all verified, except ML-DSA-65 signatures: their commands stand in this file as comments and need OpenSSL 3.5\n"
	}
	return os.WriteFile(filepath.Join(folder, "verify.sh"), []byte(head+commands+end), 0o755)
}

func (c *exportCmd) trust(ctx context.Context, a *app) (trust *verify.Trust, err error) {
	if c.Trust != "" {
		return readTrust(c.Trust)
	}
	err = a.with(ctx, func(i *installation.Installation) error {
		trust, err = i.Trust()
		return err
	})
	return trust, hint(err, "or give the trust file with --trust FILE")
}

// openRecords opens a record file or a bundle file, also in an envelope.
func openRecords(doc []byte) ([]*evidence.Record, error) {
	if aep.Is(doc) {
		return nil, errors.New("an evidence package holds no record")
	}
	if dsse.Is(doc) {
		e, err := dsse.Parse(doc)
		if err != nil {
			return nil, err
		}
		if doc, err = e.File(); err != nil {
			return nil, err
		}
	}
	_, records, err := openFile(doc)
	return records, err
}

// exportRecord writes one record's folder and returns the commands that check it there.
func exportRecord(folder string, r *evidence.Record, trust *verify.Trust) ([]command, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	put := func(name string, content []byte) error {
		return os.WriteFile(filepath.Join(folder, name), content, 0o644)
	}
	commands, err := exportSignatures(r, trust, put)
	if err != nil {
		return nil, err
	}
	stamps, err := exportTokens(r, trust, put)
	return append(commands, stamps...), err
}

func exportSignatures(r *evidence.Record, trust *verify.Trust, put func(string, []byte) error) ([]command, error) {
	var commands []command
	err := put("payload.json", r.Canonical())
	for i, signer := range r.Payload.Signers {
		key := trust.Key(signer.KeyID) // there: see exportable
		public, signature := numbered("public", i, ".pem"), numbered("signature", i, ".bin")
		err = errors.Join(err, put(public, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: key.PublicKey})),
			put(signature, r.Signatures[i]))
		commands = append(commands, command{verifyCommand(signer.Algorithm, public, signature), signer.Algorithm == evidence.MLDSA65})
	}
	return commands, err
}

// numbered names the first file of a kind plainly, as there is hardly ever a second.
func numbered(name string, i int, extension string) string {
	if i == 0 {
		return name + extension
	}
	return fmt.Sprintf("%s-%d%s", name, i+1, extension)
}

func verifyCommand(algorithm evidence.Algorithm, public, signature string) string {
	if algorithm == evidence.Ed25519 || algorithm == evidence.MLDSA65 { // which sign the payload itself
		return fmt.Sprintf("openssl pkeyutl -verify -pubin -inkey %s -rawin -in payload.json -sigfile %s", public, signature)
	}
	return fmt.Sprintf("openssl dgst -sha256 -verify %s -signature %s payload.json", public, signature)
}

// exportTokens writes each token as the response it came in, which is what openssl reads by default.
func exportTokens(r *evidence.Record, trust *verify.Trust, put func(string, []byte) error) ([]command, error) {
	roots, err := rootsOf(trust)
	if err != nil {
		return nil, err
	}
	stamped := "signature.bin"
	if len(r.Signatures) > 1 { // a token stamps all of them, one after the other
		stamped = "signatures.bin"
		err = put(stamped, joined(r))
	}
	var commands []command
	for i, stamp := range r.Timestamps {
		if stamp.Kind == evidence.RFC4998 {
			inner, ersErr := exportEvidenceRecord(r, i, put)
			err, commands = errors.Join(err, ersErr), append(commands, inner...)
			continue
		}
		response, wrapErr := timestamp.MarshalResponse(stamp.Token)
		name := numbered("token", i, ".tsr")
		err = errors.Join(err, wrapErr, put(name, response))
		commands = append(commands, command{line: fmt.Sprintf("openssl ts -verify -data %s -in %s -CAfile authority.pem", stamped, name)})
	}
	return commands, errors.Join(err, put("authority.pem", roots))
}

// joined is what a token stamps.
func joined(r *evidence.Record) []byte { return bytes.Join(r.Signatures, nil) }

// rootsOf is every authority's root in PEM.
func rootsOf(trust *verify.Trust) ([]byte, error) {
	var roots bytes.Buffer
	for _, authority := range trust.Authorities {
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate}); err != nil {
			return nil, err
		}
	}
	return roots.Bytes(), nil
}
