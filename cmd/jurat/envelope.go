package main

import (
	"context"
	"fmt"
	"os"

	"jurat/aep"
	"jurat/client"
	"jurat/dsse"
	"jurat/evidence"
	"jurat/internal/atomicfile"
	"jurat/internal/installation"
	"jurat/internal/ledger"
)

// envelope writes the file into a DSSE envelope.
func (c *exportCmd) envelope(ctx context.Context, a *app, io stdio, doc []byte) error {
	switch {
	case aep.Is(doc):
		return hint(fmt.Errorf("%s: an evidence package holds no record, and an envelope is for records", c.File), "--openssl writes what openssl needs to check it")
	case dsse.Is(doc):
		return fmt.Errorf("%s: it is already in an envelope", c.File)
	}
	if err := c.separate("--dsse", c.DSSE); err != nil {
		return err
	}
	statement, err := dsse.Statement(doc)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	signers, err := c.exporter(ctx, a)
	if err != nil {
		return err
	}
	e, err := dsse.Sign(statement, signers)
	if err != nil {
		return err
	}
	if c.DSSE == "-" {
		return io.print(e)
	}
	file, err := e.Marshal()
	if err != nil {
		return err
	}
	return atomicfile.Replace(c.DSSE, file, 0o644)
}

// separate refuses to write what is exported over what it is made of.
func (c *exportCmd) separate(flag, name string) error {
	out, err := os.Stat(name)
	if err != nil {
		return nil // there is nothing to write over
	}
	for _, file := range []string{c.File, c.Key} {
		if in, err := os.Stat(file); err == nil && os.SameFile(in, out) {
			return fmt.Errorf("%s %s: that is a file that it would be made of", flag, name)
		}
	}
	return nil
}

// exporter returns what signs envelopes: the key in --key, or the installation's operator.
func (c *exportCmd) exporter(ctx context.Context, a *app) (signers []evidence.Signer, err error) {
	if c.Key != "" {
		signers, err := readKeys([]string{c.Key}, client.ParseKey)
		if err != nil {
			return nil, fmt.Errorf("--key: %w", err)
		}
		return signers, nil
	}
	err = a.with(ctx, func(i *installation.Installation) error {
		signers, err = i.Keys.Signers(ctx, evidence.RoleOperator, ledger.OperatorName)
		return err
	})
	return signers, hint(err, "or give a private key with --key FILE")
}
