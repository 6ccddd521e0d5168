package main

import (
	"context"
	"errors"
	"fmt"

	"jurat/client"
	"jurat/evidence"
	"jurat/internal/token"
)

// signFlags say by what a payload is signed that another installation seals.
type signFlags struct {
	SignOnly bool     `name:"sign-only" help:"Only sign, with your own key: an installation elsewhere seals what is printed."`
	Key      []string `placeholder:"FILE" help:"With --sign-only: your private key, PKCS #8 in PEM. A second one makes the second signature."`
	Token    []string `placeholder:"URI" help:"With --sign-only: your private key on a token, in place of --key: pkcs11:token=LABEL;object=NAME."`
	helperFlag
	Prepare bool     `help:"With --sign-only: only print the bytes that are to be signed, for the keys that --public names."`
	Public  []string `placeholder:"FILE" help:"With --prepare: the public key in PEM. Repeat it for a second signature."`
}

// sign signs, or prepares to.
func (c *sealCmd) sign(ctx context.Context, io stdio) (err error) {
	if len(c.Signatures) > 0 || c.TSA != nil || c.PostQuantum {
		return errors.New("--signature, --tsa and --pq are for what is sealed here, and not for --sign-only")
	}
	switch {
	case c.Prepare && (len(c.Public) == 0 || len(c.Key)+len(c.Token) > 0):
		return errors.New("--prepare takes the public keys with --public FILE, and neither --key nor --token")
	case c.Prepare && len(c.Apart)+len(c.Provable) > 0:
		return errors.New("--prepare prints only what is signed, and the texts of --apart and --provable would be lost: use --key or --token")
	case !c.Prepare && (len(c.Key)+len(c.Token) == 0 || len(c.Public) > 0):
		return hint(errors.New("want --key FILE or --token URI"), "or --prepare --public FILE, to sign with something else")
	}
	doc, err := readInput(io.in, c.File)
	if err != nil {
		return err
	}
	if c.Prepare {
		return c.prepare(io, doc)
	}
	signers, err := readKeys(c.Key, client.ParseKey)
	if err != nil {
		return err
	}
	helper := &token.Helper{}
	defer helper.Close()
	onToken, err := c.onToken(ctx, helper)
	if err != nil {
		return err
	}
	pointers, err := readPointers("--apart", c.Apart)
	if err != nil {
		return err
	}
	provable, err := readProvable(c.Provable)
	if err != nil {
		return err
	}
	signed, err := client.SignApart(doc, client.Apart{Pointers: pointers, Provable: provable}, append(signers, onToken...)...)
	if errors.Is(err, token.ErrUnavailable) {
		return err
	}
	if err != nil {
		return hint(err, "'docs/format.md' lists the fields")
	}
	return io.print(signed)
}

// onToken returns what signs with the keys that --token names.
func (c *sealCmd) onToken(ctx context.Context, helper *token.Helper) ([]evidence.Signer, error) {
	references, err := c.known(ctx, helper, c.Token)
	if err != nil {
		return nil, err
	}
	var signers []evidence.Signer
	for _, r := range references {
		key, err := helper.Signer(r)
		if err != nil {
			return nil, err
		}
		signer, err := evidence.NewSigner(key, nil)
		if err != nil {
			return nil, err
		}
		signers = append(signers, signer)
	}
	return signers, nil
}

func (c *sealCmd) prepare(io stdio, doc []byte) error {
	keys, err := readKeys(c.Public, client.ParsePublicKey)
	if err != nil {
		return err
	}
	canonical, err := client.Prepare(doc, keys...)
	if err != nil {
		return hint(err, "'docs/format.md' lists the fields")
	}
	return io.document(canonical)
}

func readKeys[K any](files []string, parse func([]byte) (K, error)) ([]K, error) {
	var keys []K
	for _, file := range files {
		text, err := readFile(file)
		if err != nil {
			return nil, err
		}
		key, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
