package main

import (
	"context"
	"crypto"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ca"
	"jurat/internal/token"
)

type keysRequestCmd struct {
	Name  newName       `arg:"" help:"The actor's name, as in agent_id or reviewer_id."`
	Role  evidence.Role `help:"agent or reviewer." default:"agent" enum:"agent,reviewer"`
	Key   string        `placeholder:"FILE" xor:"key" help:"Your private key: PKCS #8 in PEM. It does not leave this machine."`
	Token string        `placeholder:"URI" xor:"key" help:"Your private key on a token: pkcs11:token=LABEL;object=NAME."`
	helperFlag
	Checkpoint string `placeholder:"FILE" help:"The log's latest checkpoint, which shows that the request is not older."`
}

// Help is shown by 'jurat keys request --help'.
func (*keysRequestCmd) Help() string {
	return `Prints a certificate request (PKCS #10), signed with your key, for the name urn:jurat:ROLE:NAME. It needs no installation and no network.
Send it to the CA, which answers with a certificate ('jurat ca issue').

    curl -o checkpoint https://jurat.example/log/checkpoint
    jurat keys request logistics-agent-v1 --key private.pem --checkpoint checkpoint > request.pem

The digest of the checkpoint stands in the attribute challengePassword. A CA with the log at hand refuses requests without one: an old
request, which anyone may have copied, is then worth nothing. An ML-DSA-65 key has no certificate; register it beside the key that has one.`
}

// Run prints a request.
func (c *keysRequestCmd) Run(ctx context.Context, io stdio) (err error) {
	helper := &token.Helper{}
	defer helper.Close()
	key, err := c.key(ctx, helper)
	if err != nil {
		return err
	}
	challenge, err := c.challenge()
	if err != nil {
		return err
	}
	der, err := ca.MakeRequest(key, c.Role, string(c.Name), challenge)
	if err != nil {
		return err
	}
	if challenge == nil {
		fmt.Fprintln(io.err, "jurat: hint: the request does not say when it was made, and a CA with the log at hand refuses it; --checkpoint FILE says it")
	}
	return io.document(pem.EncodeToMemory(&pem.Block{Type: ca.PEMRequest, Bytes: der}))
}

// key returns the key that is named.
func (c *keysRequestCmd) key(ctx context.Context, helper *token.Helper) (crypto.Signer, error) {
	switch {
	case c.Token != "":
		references, err := c.known(ctx, helper, []string{c.Token})
		if err != nil {
			return nil, err
		}
		return helper.Signer(references[0])
	case c.Key == "":
		return nil, errors.New("want --key FILE or --token URI")
	}
	text, err := readFile(c.Key)
	if err != nil {
		return nil, err
	}
	key, _, err := helper.ParseKey(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Key, err)
	}
	return key, nil
}

// challenge reads the checkpoint. Who signed it is for the CA to know.
func (c *keysRequestCmd) challenge() (*ca.Challenge, error) {
	if c.Checkpoint == "" {
		return nil, nil
	}
	signed, err := readFile(c.Checkpoint)
	if err != nil {
		return nil, err
	}
	text, _, found := strings.Cut(string(signed), "\n\n")
	if !found {
		return nil, fmt.Errorf("%s: want a signed checkpoint, as 'jurat log checkpoint' prints it", c.Checkpoint)
	}
	checkpoint, err := operator.ParseCheckpoint(text + "\n")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Checkpoint, err)
	}
	challenge, err := ca.ChallengeOf(checkpoint)
	return &challenge, err
}
