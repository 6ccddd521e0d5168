package main

import (
	"encoding/hex"
	"fmt"
	"slices"

	"jurat/client"
	"jurat/evidence"
	"jurat/verify/trust"
)

type trustSCITTCmd struct {
	Key    string `arg:"" help:"The public key (PEM), from its owner and over a way that you trust: not from the statement." placeholder:"FILE"`
	Issuer string `required:"" placeholder:"URI" help:"Whose key it is: the claim iss of what it signs, letter for letter."`
	For    string `name:"for" required:"" enum:"issuer,service" help:"What it signs: issuer (statements) or service (receipts of a transparency service)."`
	Name   string `placeholder:"TEXT" help:"The owner's name, for people. Default: the issuer."`
	KID    string `name:"kid" placeholder:"HEX" help:"The key id (kid) in its statements, as hexadecimal digits. Default: the SHA-256 of the public key in DER."`
	With   string `placeholder:"FILE" help:"Print this trust file with the key, in the place of what it says of the key."`
}

// Help is shown by 'jurat trust scitt --help'.
func (*trustSCITTCmd) Help() string {
	return `Writes a key of SCITT (RFC 9943) into a trust file: that of an issuer, who signs statements, or that of a transparency service, which
signs receipts. 'jurat verify' and 'jurat trial --exhibit' then check others' statements by it. A key or certificate that a statement
brings along proves nothing, so get the key from its owner.

    jurat trust scitt bank.pem --issuer https://bank.example --for issuer --with trust.json > with-bank.json`
}

// Run prints the trust file.
func (c *trustSCITTCmd) Run(io stdio) error {
	keys, err := readKeys([]string{c.Key}, client.ParsePublicKey)
	if err != nil {
		return err
	}
	key := trust.StatementKey{Name: c.Name, Issuer: c.Issuer, Use: trust.StatementUse(c.For)}
	if key.Name == "" {
		key.Name = c.Issuer
	}
	if key.PublicKey, err = evidence.MarshalPublicKey(keys[0]); err != nil {
		return fmt.Errorf("%s: %w", c.Key, err)
	}
	if key.Algorithm, err = evidence.AlgorithmOf(keys[0]); err != nil {
		return fmt.Errorf("%s: %w", c.Key, err)
	}
	key.KeyID = evidence.DigestOf(key.PublicKey)
	if key.COSEKeyID, err = hex.DecodeString(c.KID); err != nil {
		return fmt.Errorf("--kid: want hexadecimal digits, two for each byte: %w", err)
	}
	file := &trust.Trust{Format: trust.Format, Keys: []trust.Key{}, Authorities: []trust.Authority{}, Logs: []string{}}
	if c.With != "" {
		if file, err = readTrust(c.With); err != nil {
			return err
		}
	}
	same := func(known trust.StatementKey) bool {
		return known.KeyID == key.KeyID && known.Use == key.Use && known.Issuer == key.Issuer
	}
	file.SCITT = append(slices.DeleteFunc(slices.Clone(file.SCITT), same), key)
	if file, err = file.Prepared(); err != nil {
		return err
	}
	return printTrust(file, io)
}
