package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/plural"
	"jurat/internal/words"
	"jurat/verify/trust"
)

type trustCmd struct {
	Own trustOwnCmd `cmd:"" default:"withargs" hidden:"" help:"Print this installation's trust file."`
	EU  trustEUCmd  `cmd:"" name:"eu" help:"Take time-stamping authorities from the European Union's trusted lists into a trust file."`
}

type trustOwnCmd struct {
	Files []string `arg:"" optional:"" name:"file" help:"Instead, say in words what this trust file means, and on what a pass under it rests."`
	Join  bool     `help:"Join several owners' trust files into one."`
	langFlag
	CA         string          `name:"ca" placeholder:"FILE" help:"Instead, write this CA into a trust file: its certificate, PEM or DER."`
	Name       string          `placeholder:"TEXT" help:"With --ca: the CA's name, for people. Default: the common name in its certificate."`
	Role       []evidence.Role `help:"With --ca: a role for whose keys the CA vouches. May be given several times." enum:"agent,reviewer,submitter,juror,judge,clerk,operator,recorder"`
	Custody    trust.Custody   `help:"With --ca: who keeps the keys that the CA certifies, owner or operator." default:"" enum:",owner,operator"`
	Revocation string          `help:"With --ca: how to find out whether a certificate was revoked: crl, none, or short, which asks nothing of certificates of at most a week." default:"crl" enum:"crl,none,short"`
	With       string          `placeholder:"FILE" help:"With --ca: print this trust file with the CA, in the place of what it says of the CA."`
	CAAlone    bool            `name:"ca-alone" help:"With --ca and --with: leave out the keys of these roles, so that the CA alone vouches. Keys that have ended or sign in pairs stay."`
}

// Run prints the trust file.
func (c *trustOwnCmd) Run(ctx context.Context, a *app, io stdio) error {
	switch {
	case len(c.Files) > 0 && (c.CA != "" || c.With != ""):
		return errors.New("--ca and --with go without a file as argument")
	case c.Join:
		return joinTrust(io, c.Files)
	case len(c.Files) > 1:
		return errors.New("one trust file is explained at a time; --join joins several")
	case len(c.Files) == 1:
		return explainTrust(io, c.Files[0], words.Lang(c.Lang))
	case c.CA != "":
		return c.withCA(io)
	}
	if len(c.Role) > 0 || c.Custody != "" || c.With != "" || c.Name != "" || c.CAAlone {
		return errors.New("--name, --role, --custody, --ca-alone and --with go with --ca FILE")
	}
	return a.with(ctx, func(i *installation.Installation) error {
		file, err := i.Trust(ctx)
		if err != nil {
			return err
		}
		return printTrust(file, io)
	})
}

// withCA prints a trust file with a CA in it.
func (c *trustOwnCmd) withCA(io stdio) error {
	if len(c.Role) == 0 || c.Custody == "" {
		return errors.New("--ca: want --role, for whose keys the CA vouches, and --custody owner or operator, for who keeps them")
	}
	certificate, err := readOneCertificate(c.CA)
	if err != nil {
		return err
	}
	ca := trust.CA{Name: cmp.Or(c.Name, certificate.Subject.CommonName, certificate.Subject.String()), Certificate: certificate.Raw, Roles: c.Role, Custody: c.Custody,
		Revocation: trust.Revocation(c.Revocation)}
	file := &trust.Trust{Format: trust.Format, Keys: []trust.Key{}, Authorities: []trust.Authority{}, Logs: []string{}}
	if c.With != "" {
		if file, err = readTrust("--with", c.With); err != nil {
			return err
		}
	}
	file.CAs = append(slices.DeleteFunc(slices.Clone(file.CAs), func(known trust.CA) bool { return bytes.Equal(known.Certificate, ca.Certificate) }), ca)
	listed := c.listed(file)
	if c.CAAlone {
		file.Keys = slices.DeleteFunc(slices.Clone(file.Keys), func(k trust.Key) bool { return slices.Contains(listed, k.KeyID) })
	} else if len(listed) > 0 {
		fmt.Fprintf(io.err, "jurat: the trust file lists %s of these roles. It believes listed keys even if the CA revokes their certificates: --ca-alone leaves them out.\n", plural.Of(len(listed), "key"))
	}
	if file, err = file.Prepared(); err != nil {
		return err
	}
	return printTrust(file, io)
}

// listed returns the keys of the CA's roles that the trust file lists and the CA could vouch for in its place. A certificate says neither that
// a key has ended nor that it signs together with others, so keys of which the trust file says so are not among them.
func (c *trustOwnCmd) listed(file *trust.Trust) (ids []evidence.KeyID) {
	var second []evidence.KeyID
	for _, k := range file.Keys {
		second = append(second, k.With...)
	}
	for _, k := range file.Keys {
		ended, pair := !k.NotAfter.IsZero() || !k.Revoked.IsZero(), len(k.With) > 0 || slices.Contains(second, k.KeyID)
		if slices.Contains(c.Role, k.Role) && !ended && !pair {
			ids = append(ids, k.KeyID)
		}
	}
	return ids
}

// printTrust prints a trust file, and its fingerprint on stderr.
func printTrust(file *trust.Trust, io stdio) error {
	fingerprint, err := file.Fingerprint()
	if err != nil {
		return err
	}
	if err := io.print(file); err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.err, "jurat: fingerprint %s\n", fingerprint)
	return err
}

// readOneCertificate reads a certificate, PEM or DER.
func readOneCertificate(file string) (*x509.Certificate, error) {
	text, err := readFile(file)
	if err != nil {
		return nil, err
	}
	if block, rest := pem.Decode(text); block != nil {
		if second, _ := pem.Decode(rest); second != nil || block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s: want one certificate in PEM, and nothing else", file)
		}
		text = block.Bytes
	}
	c, err := x509.ParseCertificate(text)
	if err != nil {
		return nil, fmt.Errorf("%s: want a certificate, PEM or DER: %w", file, err)
	}
	return c, nil
}

// joinTrust prints the trust files of several owners as one.
func joinTrust(io stdio, names []string) error {
	if len(names) < 2 {
		return hint(errors.New("one trust file needs no joining"), "jurat trust --join OURS.json THEIRS.json")
	}
	var files []*trust.Trust
	for _, name := range names {
		file, err := readTrust("trust file", name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		files = append(files, file)
	}
	joined, err := trust.Join(files...)
	if err != nil {
		return err
	}
	return printTrust(joined, io)
}
