package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"jurat/evidence"
	"jurat/internal/atomicfile"
	"jurat/internal/ca"
	"jurat/internal/lock"
	"jurat/internal/token"
)

type caCmd struct {
	Init   caInitCmd   `cmd:"" help:"Make a CA: its key and its certificate."`
	Issue  caIssueCmd  `cmd:"" help:"Issue the certificate that a request asks for."`
	Revoke caRevokeCmd `cmd:"" help:"Revoke a certificate."`
	CRL    caCRLCmd    `cmd:"" name:"crl" help:"Print a new revocation list."`
}

// caFlags name a CA.
type caFlags struct {
	CA string `name:"ca" placeholder:"DIR" env:"JURAT_CA" default:"./jurat-ca" help:"The CA's folder."`
}

// with opens the CA.
func (f *caFlags) with(ctx context.Context, do func(authority *ca.CA) error) error {
	helper := &token.Helper{}
	defer helper.Close()
	authority, err := ca.Open(ctx, ca.Config{Dir: f.CA, Helper: helper})
	if err == nil {
		err = do(authority)
	}
	switch {
	case errors.Is(err, ca.ErrNone):
		return hint(err, "'jurat ca init' makes one; --ca DIR or JURAT_CA says where it is")
	case errors.Is(err, ca.ErrTaken):
		return hint(err, "'jurat ca revoke FILE --cause CAUSE' frees the name")
	case errors.Is(err, ca.ErrAlike):
		return hint(err, "records of both would look like one actor's; choose a name that differs in more than its letters' form")
	case errors.Is(err, ca.ErrExpired):
		return hint(err, "make a new CA in another folder, and give readers its certificate")
	case errors.Is(err, lock.ErrTaken):
		return hint(err, "another process acts in this folder; try again")
	}
	return err
}

type caInitCmd struct {
	caFlags
	Name  string `required:"" help:"The CA's name, as readers see it: that of the organisation that vouches for the keys."`
	Token string `placeholder:"URI" help:"Its key on a token: pkcs11:token=LABEL;object=NAME. It is made if it is not there."`
	helperFlag
	Years int `help:"How many years it lasts." default:"10"`
}

// Run makes a CA.
func (c *caInitCmd) Run(ctx context.Context, io stdio) error {
	helper := &token.Helper{}
	defer helper.Close()
	on, err := c.find(ctx, helper, c.Token, evidence.ES256)
	if err != nil {
		return err
	}
	if _, err := ca.Create(ctx, ca.Config{Dir: c.CA, Helper: helper}, ca.Plan{Name: c.Name, On: on, Years: c.Years}); err != nil {
		return err
	}
	return io.line("%s", filepath.Join(c.CA, ca.Certificate))
}

type caIssueCmd struct {
	caFlags
	Request string `arg:"" optional:"" default:"-" help:"A certificate request (PKCS #10), PEM or DER; - is standard input."`
	Days    int    `help:"How long it is valid." default:"30"`
}

// Run issues a certificate.
func (c *caIssueCmd) Run(ctx context.Context, io stdio) error {
	doc, err := readInput(io.in, c.Request)
	if err != nil {
		return err
	}
	request, err := ca.ParseRequest(doc)
	if err != nil {
		return hint(fmt.Errorf("refusing request: %w", err), "'jurat ca issue --help' shows how OpenSSL makes one; nothing was issued")
	}
	return c.with(ctx, func(authority *ca.CA) error {
		made, err := authority.Issue(ctx, request, c.Days)
		if err != nil {
			return err
		}
		return io.document(ca.PEM(made))
	})
}

type caRevokeCmd struct {
	caFlags
	Certificate string     `arg:"" help:"The certificate; the CA's folder has those that it issued."`
	Cause       ca.Cause   `required:"" help:"keyCompromise, affiliationChanged, superseded, cessationOfOperation, privilegeWithdrawn or unspecified." enum:"keyCompromise,affiliationChanged,superseded,cessationOfOperation,privilegeWithdrawn,unspecified"`
	InvalidFrom *time.Time `help:"When others may first have had the key (RFC 3339). Default: nothing is said, and now counts."`
}

// Run revokes a certificate.
func (c *caRevokeCmd) Run(ctx context.Context, io stdio) error {
	certificate, err := readOneCertificate(c.Certificate)
	if err != nil {
		return err
	}
	var invalid time.Time
	if c.InvalidFrom != nil {
		invalid = *c.InvalidFrom
	}
	return c.with(ctx, func(authority *ca.CA) error {
		if err := authority.Revoke(ctx, certificate, c.Cause, invalid); err != nil {
			return err
		}
		return io.line("revoked: 'jurat ca crl' makes the list that says so")
	})
}

type caCRLCmd struct {
	caFlags
	Out string `short:"o" placeholder:"FILE" help:"Write it there, in the place of what is there."`
}

// Run prints a list.
func (c *caCRLCmd) Run(ctx context.Context, io stdio) error {
	return c.with(ctx, func(authority *ca.CA) error {
		der, err := authority.List(ctx)
		if err != nil {
			return err
		}
		text := pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
		if c.Out != "" {
			return atomicfile.Replace(c.Out, text, 0o644)
		}
		return io.document(text)
	})
}
