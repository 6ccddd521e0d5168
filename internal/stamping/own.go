package stamping

import (
	"context"
	"crypto/x509"

	"jurat/timestamp"
	"jurat/verify/trust"
)

// Own is the built-in time-stamping authority: the operator's own clock.
type Own struct {
	*timestamp.Authority
	Root *x509.Certificate
}

// stamp issues a token. The certificate goes into it, so that a record needs nothing but the root.
func (a *Own) stamp(ctx context.Context, imprint [32]byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return a.Issue(&timestamp.Request{Imprint: imprint, CertReq: true})
}

// askImprint stamps an imprint that may be of another algorithm.
func (a *Own) askImprint(ctx context.Context, imprint timestamp.Imprint) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return a.Issue(&timestamp.Request{Wide: imprint, CertReq: true})
}

func (a *Own) trusted() trust.Authority {
	return trust.Authority{Name: "built-in authority", Certificate: a.Root.Raw, Clock: trust.OperatorClock}
}
