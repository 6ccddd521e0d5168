package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/internal/must"
)

// TestTrustCAAlone: a reader who takes a CA into the operator's trust file hears that listed keys outlive their certificates. With --ca-alone the
// CA alone vouches, and what it revokes is not believed. What the trust file says of the end of a key stays.
func TestTrustCAAlone(t *testing.T) {
	data, ca := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "ca")
	jurat := func(args ...string) string {
		t.Helper()
		return doing(t, 0, append([]string{"--data", data}, args...)...)
	}
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	der := must.Get(x509.MarshalPKCS8PrivateKey(key))(t)
	private := written(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	jurat("init")
	jurat("ca", "init", "--ca", ca, "--name", "House CA")
	certificate := written(t, jurat("ca", "issue", "--ca", ca, written(t, requestBy(t, key, "mia"))))
	public := must.Get(x509.MarshalPKIXPublicKey(key.Public()))(t)
	jurat("keys", "register", "agent", "mia", "--public", written(t, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))), "--certificate", certificate, "--reason", "the owner asked")
	record := written(t, jurat("seal", written(t, jurat("sign", "--key", private, written(t, strings.ReplaceAll(action, "AGENT", "mia"))))))
	root, own := filepath.Join(ca, "ca.pem"), written(t, jurat("trust"))
	withCA := []string{"trust", "--ca", root, "--role", "agent", "--custody", "owner"}

	listed, errs := both(t, 0, append(withCA, "--with", own)...)
	if !strings.Contains(errs, "lists 1 key of these roles") || !strings.Contains(errs, "--ca-alone") {
		t.Errorf("the reader hears %q", errs)
	}
	alone, errs := both(t, 0, append(withCA, "--ca-alone", "--with", own)...)
	if strings.Contains(errs, "lists") || strings.Contains(alone, `"mia"`) || !strings.Contains(alone, `"operator"`) {
		t.Errorf("with --ca-alone the reader hears %q and has %s", errs, alone)
	}
	crl := func() string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "ca.crl")
		jurat("ca", "crl", "--ca", ca, "--out", file)
		return file
	}
	doing(t, 0, "verify", "--trust", written(t, alone), "--crl", crl(), record)

	jurat("ca", "revoke", "--ca", ca, certificate, "--cause", "keyCompromise")
	doing(t, 0, "verify", "--trust", written(t, listed), "--crl", crl(), record)
	if said := doing(t, 3, "verify", "--trust", written(t, alone), "--crl", crl(), record); !strings.Contains(said, "not proved authentication") {
		t.Errorf("after the revocation: %s", said)
	}
	jurat("keys", "revoke", evidence.DigestOf(public).String(), "--reason", "a laptop is gone")
	if ended, _ := both(t, 0, append(withCA, "--ca-alone", "--with", written(t, jurat("trust")))...); !strings.Contains(ended, `"revoked"`) {
		t.Errorf("the end of the key is lost: %s", ended)
	}
	doing(t, 2, "trust", "--ca-alone")
}

// requestBy is a certificate request (PKCS #10) of a key, in PEM.
func requestBy(t *testing.T, key crypto.Signer, name string) string {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{URIs: []*url.URL{{Scheme: "urn", Opaque: "jurat:agent:" + name}}}, key)
	must.Do(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}
