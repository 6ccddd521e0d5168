package main

import (
	"context"
	"errors"

	"jurat/evidence"
	"jurat/internal/token"
)

// helperFlag says how tokens are reached.
type helperFlag struct {
	Helper string `name:"token-helper" placeholder:"HELPER" env:"JURAT_TOKEN_HELPER" help:"How the token is reached: unix:PATH of a socket, or a program such as 'jurat-token --module FILE --pin-file FILE'. See docs/token.md."`
}

func (f helperFlag) helper() (token.Helper, error) {
	if f.Helper == "" {
		return token.Helper{}, hint(errors.New("--token: no helper is named"), "--token-helper or JURAT_TOKEN_HELPER says how the token is reached; docs/token.md is about it")
	}
	return token.ParseHelper(f.Helper)
}

// find returns the key that a URI names, which is made if there is none. It returns nil if no URI is given.
func (f helperFlag) find(ctx context.Context, helpers *token.Helpers, uri string, algorithm evidence.Algorithm) (*token.Reference, error) {
	if uri == "" {
		return nil, nil
	}
	helper, err := f.helper()
	if err != nil {
		return nil, err
	}
	reference, err := helpers.FindOrGenerate(ctx, helper, uri, algorithm)
	if err != nil {
		return nil, err
	}
	return &reference, nil
}

// known returns the keys that URIs name. Each must be there.
func (f helperFlag) known(ctx context.Context, helpers *token.Helpers, uris []string) ([]token.Reference, error) {
	var list []token.Reference
	for _, uri := range uris {
		helper, err := f.helper()
		if err != nil {
			return nil, err
		}
		client, err := helpers.Client(helper)
		if err != nil {
			return nil, err
		}
		key, err := client.Key(ctx, uri)
		if err != nil {
			return nil, err
		}
		list = append(list, token.Reference{URI: key.URI, Helper: helper, Public: key.Public, Protection: &key.Protection})
	}
	return list, nil
}
