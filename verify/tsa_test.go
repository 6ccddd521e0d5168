package verify_test

import (
	"crypto"
	"crypto/x509"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/timestamp"
	"jurat/verify/trust"
)

const day = 24 * time.Hour

// on is n days after the start of the tests' time.
func on(n int) time.Time { return jurattest.Start.Add(time.Duration(n) * day) }

// tsa is an authority with its own keys and a clock that tests set.
type tsa struct {
	*timestamp.Authority
	name    string
	root    *x509.Certificate
	rootKey crypto.Signer
	now     time.Time
}

func newTSA(t testing.TB, name string, ends time.Time) *tsa {
	t.Helper()
	a := &tsa{name: name}
	config := func(key string) timestamp.CertificateConfig {
		return timestamp.CertificateConfig{Key: jurattest.AuthorityKey(t, key), Serial: big.NewInt(5), NotBefore: jurattest.Start, NotAfter: ends, Operator: name}
	}
	top, under := config("tsa root "+name), config("tsa "+name)
	a.rootKey = top.Key
	a.root = must.Get(timestamp.NewRoot(top))(t)
	leaf := must.Get(timestamp.NewCertificate(under, a.root, top.Key))(t)
	a.Authority = must.Get(timestamp.NewAuthority(timestamp.AuthorityConfig{Key: under.Key, Certificate: leaf,
		Chain: []*x509.Certificate{a.root}, Now: func() time.Time { return a.now }, Rand: rand.NewChaCha8([32]byte{5})}))(t)
	return a
}

func (a *tsa) trusted(clock trust.Clock, notAfter time.Time) trust.Authority {
	return trust.Authority{Name: a.name, Certificate: a.root.Raw, Clock: clock, NotAfter: notAfter}
}

// plain stamps a record with a plain token.
func (a *tsa) plain(t testing.TB, r *evidence.Record, at time.Time) evidence.Timestamp {
	t.Helper()
	a.now = at
	return evidence.Timestamp{Kind: evidence.RFC3161, Token: must.Get(a.Issue(&timestamp.Request{Imprint: r.Imprint(), CertReq: true}))(t)}
}

// trusting replaces the authorities of a trust.
func trusting(t testing.TB, trusted *trust.Trust, authorities ...trust.Authority) *trust.Trust {
	t.Helper()
	changed := *trusted
	changed.Authorities = authorities
	return must.Get(trust.Parse(must.Get(changed.Marshal())(t)))(t)
}
