package main

import (
	"context"
	"errors"

	"jurat/evidence"
	"jurat/internal/token"
)

// helperFlag says how tokens are reached.
type helperFlag struct {
	Helper string `name:"token-helper" placeholder:"HELPER" env:"JURAT_TOKEN_HELPER" help:"The program that reaches the token, such as 'jurat-pkcs11 --module FILE --pin-file FILE'. See docs/token.md."`
}

func (f helperFlag) helper() (string, error) {
	if f.Helper == "" {
		return "", hint(errors.New("--token: no helper is named"), "--token-helper or JURAT_TOKEN_HELPER says how the token is reached; docs/token.md is about it")
	}
	return f.Helper, nil
}

// find returns the key that a URI names, which is made if there is none. It returns nil if no URI is given.
func (f helperFlag) find(ctx context.Context, helper *token.Helper, uri string, algorithm evidence.Algorithm) (*token.Reference, error) {
	if uri == "" {
		return nil, nil
	}
	program, err := f.helper()
	if err != nil {
		return nil, err
	}
	helper.Use(program)
	reference, err := helper.FindOrGenerate(ctx, uri, algorithm)
	if err != nil {
		return nil, err
	}
	return &reference, nil
}

// known returns the keys that URIs name. Each must be there.
func (f helperFlag) known(ctx context.Context, helper *token.Helper, uris []string) ([]token.Reference, error) {
	var list []token.Reference
	for _, uri := range uris {
		program, err := f.helper()
		if err != nil {
			return nil, err
		}
		helper.Use(program)
		reference, err := helper.Find(ctx, uri)
		if err != nil {
			return nil, err
		}
		list = append(list, reference)
	}
	return list, nil
}
