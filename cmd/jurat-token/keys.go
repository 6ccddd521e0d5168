package main

import (
	"context"
	"encoding/pem"
	"fmt"

	"jurat/evidence"
	"jurat/internal/pkcs11"
	"jurat/internal/token"
)

type tokensCmd struct{}

func (c *tokensCmd) Run(io streams, a *app) error {
	module, err := pkcs11.Load(a.Module)
	if err != nil {
		return err
	}
	defer module.Close() // the program ends, whether that works or not
	tokens, err := module.Tokens()
	for _, t := range tokens {
		fmt.Fprintf(io.out, "%s  %s %s, serial number %s\n", t.URI(), t.Manufacturer, t.Model, t.Serial)
	}
	return err
}

type keysCmd struct{}

func (c *keysCmd) Run(ctx context.Context, io streams, a *app) error {
	return a.with(io, func(t *pkcs11.Token) error {
		keys, err := t.Keys(ctx)
		for _, k := range keys {
			id, err := evidence.KeyIDOf(k.Public)
			if err != nil {
				return err
			}
			fmt.Fprintf(io.out, "%s  %s  %s\n", k.Algorithm, id, k.URI)
		}
		return err
	})
}

type generateCmd struct {
	URI       string             `arg:"" name:"uri" help:"The key's name, such as pkcs11:token=house;object=mia."`
	Algorithm evidence.Algorithm `name:"alg" default:"ES256" enum:"ES256,RS256,Ed25519" help:"ES256, RS256 or Ed25519."`
}

func (c *generateCmd) Run(ctx context.Context, io streams, a *app) error {
	return a.with(io, func(t *pkcs11.Token) error {
		k, err := t.Generate(ctx, c.URI, c.Algorithm)
		return shown(io, k, err)
	})
}

type publicCmd struct {
	URI string `arg:"" name:"uri" help:"The key's name."`
}

func (c *publicCmd) Run(ctx context.Context, io streams, a *app) error {
	return a.with(io, func(t *pkcs11.Token) error {
		k, err := t.Key(ctx, c.URI)
		return shown(io, k, err)
	})
}

// shown prints a public key for programs, and its name for people.
func shown(io streams, k token.Key, err error) error {
	if err != nil {
		return err
	}
	der, err := evidence.MarshalPublicKey(k.Public)
	if err != nil {
		return err
	}
	fmt.Fprintf(io.err, "%s\n%s\n", k.URI, evidence.DigestOf(der))
	return pem.Encode(io.out, &pem.Block{Type: "PUBLIC KEY", Bytes: der})
}
