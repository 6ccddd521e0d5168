package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"

	"jurat/aep"
	"jurat/internal/openssl"
	"jurat/timestamp"
	"jurat/verify/trust"
)

// packaged writes what openssl needs to check an evidence package.
func (c *exportCmd) packaged(ctx context.Context, a *app, io stdio, doc []byte) error {
	p, err := aep.Open(doc)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	trusted, err := c.trust(ctx, a)
	if err != nil {
		return err
	}
	null, err := p.CheckSignature()
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", c.File, err)
	case len(p.Token) == 0:
		return fmt.Errorf("%s: it has no time stamp", c.File)
	case trusted.Key(p.KeyID) == nil:
		return hint(fmt.Errorf("%s: the trust file has no key %s", c.File, p.KeyID), "give a trust file that says whose key it is, with --trust FILE")
	}
	if err := putPackage(c.put, p, trusted); err != nil {
		return err
	}
	commands, err := packageCommands(null, p.Token)
	if err != nil {
		return err
	}
	if err := openssl.WriteScript(c.put, commands); err != nil {
		return err
	}
	return c.tell(io, commands)
}

func putPackage(put openssl.Put, p *aep.Package, trusted *trust.Trust) error {
	response, err := timestamp.MarshalResponse(p.Token)
	if err != nil {
		return err
	}
	roots, err := openssl.Roots(trusted)
	if err != nil {
		return err
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: trusted.Key(p.KeyID).PublicKey})
	return errors.Join(put("canonical.bin", p.Canonical), put("signature.bin", p.Signature), put("public.pem", public),
		put("token.tsr", response), put("authority.pem", roots))
}

// packageCommands check the signature and the token. 'openssl dgst' refuses a DigestInfo without NULL, so the DigestInfo
// is put together by the commands themselves, from the digest that openssl computes, and compared with what was signed.
func packageCommands(null bool, token []byte) (string, error) {
	check := "openssl dgst -sha256 -verify public.pem -signature signature.bin canonical.bin"
	if !null {
		check = `{ printf '\060\057\060\013\006\011\140\206\110\001\145\003\004\002\001\004\040'; openssl dgst -sha256 -binary canonical.bin; } > digestinfo.bin &&
openssl pkeyutl -verify -pubin -inkey public.pem -in digestinfo.bin -sigfile signature.bin`
	}
	stamped, err := openssl.TokenCommand("-data signature.bin", "token.tsr", token)
	return "(" + check + " &&\n" + stamped + ")\n", err // in one line, so that the failure of either command fails the whole
}
