package ca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jurat/evidence"
	"jurat/internal/log/token"
	"jurat/internal/test/must"
	"jurat/verify/trust"
)

var start = time.Date(2026, 1, 31, 16, 15, 0, 0, time.UTC)

// newCA makes a CA for two years. The clock is at what now points to.
func newCA(t *testing.T) (a *CA, now *time.Time) {
	t.Helper()
	now = new(start)
	a, err := Create(t.Context(), Config{Dir: filepath.Join(t.TempDir(), "ca"), Helper: &token.Helper{}, Now: func() time.Time { return *now }}, Plan{Name: "Example agents", Years: 2})
	must.Do(t, err)
	return a, now
}

func newKey(t *testing.T, curve elliptic.Curve) crypto.Signer {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(curve, rand.Reader))(t)
	return key
}

// asked is a request of a key.
func asked(t *testing.T, key crypto.Signer, template x509.CertificateRequest) []byte {
	t.Helper()
	der := must.Get(x509.CreateCertificateRequest(rand.Reader, &template, key))(t)
	return der
}

func named(uris ...string) (r x509.CertificateRequest) {
	for _, uri := range uris {
		r.URIs = append(r.URIs, &url.URL{Scheme: "urn", Opaque: uri})
	}
	return r
}

func issue(t *testing.T, a *CA, key crypto.Signer, name string, days int) (*x509.Certificate, error) {
	t.Helper()
	r := must.Get(ParseRequest(asked(t, key, named("jurat:agent:"+name))))(t)
	return a.Issue(t.Context(), r, days)
}

func mustIssue(t *testing.T, a *CA, name string, days int) *x509.Certificate {
	t.Helper()
	c := must.Get(issue(t, a, newKey(t, elliptic.P256()), name, days))(t)
	return c
}

func mustList(t *testing.T, a *CA) *x509.RevocationList {
	t.Helper()
	der, err := a.List(t.Context())
	must.Do(t, err)
	list, err := trust.ParseCRL(der)
	must.Need(t, err == nil && list.CheckSignatureFrom(a.Certificate) == nil, "%v", err)
	return list
}

// TestRequests: a request names one owner, by the key that signed it, and asks for nothing else.
func TestRequests(t *testing.T) {
	key := newKey(t, elliptic.P256())
	_, edward, err := ed25519.GenerateKey(rand.Reader)
	must.Do(t, err)
	for what, key := range map[string]crypto.Signer{"ES256": key, "Ed25519": edward} {
		r, err := ParseRequest(asked(t, key, named("jurat:reviewer:order%20desk")))
		must.Hold(t, err == nil && r.Role == evidence.RoleReviewer && r.Name == "order desk", "%s: %+v, %v", what, r, err)
	}
	good := asked(t, key, named("jurat:agent:mia"))
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: good})
	must.Fail(t, nil)(ParseRequest(text))
	for at := range good { // every byte counts
		changed := slices.Clone(good)
		changed[at] ^= 1
		must.Refuse(t, "", "byte", at, "changes nothing")(ParseRequest(changed))
	}
	withHost, withCA := named("jurat:agent:mia"), named("jurat:agent:mia")
	withHost.DNSNames = []string{"agent.example"}
	withCA.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: []byte{0x30, 3, 1, 1, 0xff}}}
	for what, doc := range map[string][]byte{
		"nobody": asked(t, key, x509.CertificateRequest{}), "two names": asked(t, key, named("jurat:agent:mia", "jurat:agent:ben")), "a host, too": asked(t, key, withHost),
		"a CA": asked(t, key, withCA), "a juror": asked(t, key, named("jurat:juror:mia")), "no role": asked(t, key, named("jurat:king:mia")),
		"a name in another form": asked(t, key, named("jurat:agent:%6dia")), "another URI": asked(t, key, named("other:mia")),
		"a key that cannot sign records": asked(t, newKey(t, elliptic.P384()), named("jurat:agent:mia")),
		"more after it":                  append(slices.Clone(text), "x"...), "no request": []byte("x"),
	} {
		r, err := ParseRequest(doc)
		must.Hold(t, err != nil, "%s: %+v", what, r)
	}
}

// TestIssue: a certificate is what verifiers ask for, and ends with the CA.
func TestIssue(t *testing.T) {
	a, now := newCA(t)
	c := mustIssue(t, a, "order%20desk", 30)
	if err := errors.Join(trust.CheckCertificate(c, evidence.RoleAgent, "order desk"), c.CheckSignatureFrom(a.Certificate)); err != nil || c.NotBefore.After(start) || c.NotAfter.Sub(c.NotBefore) != 30*24*time.Hour-time.Second {
		t.Errorf("%v, %s to %s", err, c.NotBefore, c.NotAfter)
	}
	for _, days := range []int{0, MaxDays + 1} {
		must.Refuse(t, "", "a life of", days, "days")(issue(t, a, newKey(t, elliptic.P256()), "ben", days))
	}
	*now = a.Certificate.NotAfter.Add(-time.Hour)
	c = mustIssue(t, a, "mia", 30)
	must.Hold(t, c.NotAfter.Equal(a.Certificate.NotAfter), "it ends at %s", c.NotAfter)
	*now = a.Certificate.NotAfter.Add(time.Second)
	must.Fail(t, ErrExpired)(issue(t, a, newKey(t, elliptic.P256()), "ben", 30))
	must.Fail(t, ErrExpired)(a.List(t.Context()))
}

// TestNamesHaveOneKey: while a key has a certificate for a name, no other key gets one, nor one for a name that looks like it.
func TestNamesHaveOneKey(t *testing.T) {
	a, now := newCA(t)
	key := newKey(t, elliptic.P256())
	first := must.Get(issue(t, a, key, "mia", 30))(t)
	must.Fail(t, nil)(issue(t, a, key, "mia", 30)) // the same key, again
	must.Fail(t, ErrTaken)(issue(t, a, newKey(t, elliptic.P256()), "mia", 30))
	must.Fail(t, ErrAlike)(issue(t, a, newKey(t, elliptic.P256()), "Mia", 30))
	*now = first.NotAfter.Add(time.Second)
	must.Fail(t, ErrAlike)(issue(t, a, newKey(t, elliptic.P256()), "Mia", 30)) // its records are still read
	must.Fail(t, nil)(issue(t, a, newKey(t, elliptic.P256()), "mia", 30))      // all have ended
}

// TestLists: a list names all that was ever revoked, and no other; each is later than the one before.
func TestLists(t *testing.T) {
	a, now := newCA(t)
	mia, ben := mustIssue(t, a, "mia", 1), mustIssue(t, a, "ben", 300)
	empty := mustList(t, a)
	revoke := func(c *x509.Certificate, cause Cause, from time.Time, want error) {
		t.Helper()
		err := a.Revoke(t.Context(), c, cause, from)
		must.Hold(t, errors.Is(err, want) && (want != nil || err == nil), "%v, want %v", err, want)
	}
	revoke(mia, "keyCompromise", time.Time{}, nil)
	revoke(mia, "keyCompromise", time.Time{}, ErrRevoked)
	since := start.Add(-time.Hour)
	revoke(mia, "keyCompromise", since, nil) // from an earlier time on
	revoke(mia, "keyCompromise", since, ErrRevoked)
	other, _ := newCA(t)
	revoke(mustIssue(t, other, "mia", 1), "keyCompromise", time.Time{}, ErrUnknown)
	must.Say(t, a.Revoke(t.Context(), ben, "keyCompromise", now.Add(time.Hour)), "", "revoked in the future")
	must.Say(t, a.Revoke(t.Context(), ben, "certificateHold", time.Time{}), "", "put on hold")
	*now = mia.NotAfter.Add(time.Hour)
	again, err := Open(t.Context(), a.config) // as another process finds it
	must.Do(t, err)
	list := mustList(t, again)
	if len(empty.RevokedCertificateEntries) != 0 || len(list.RevokedCertificateEntries) != 1 || list.RevokedCertificateEntries[0].SerialNumber.Cmp(mia.SerialNumber) != 0 ||
		list.RevokedCertificateEntries[0].ReasonCode != 1 || list.Number.Int64() != empty.Number.Int64()+1 || !list.ThisUpdate.After(empty.ThisUpdate) || !list.NextUpdate.Equal(list.ThisUpdate.Add(ListLife)) {
		t.Errorf("%+v", list)
	}
	for range 3 { // within one second
		next := mustList(t, a)
		must.Hold(t, next.ThisUpdate.After(list.ThisUpdate) && next.Number.Cmp(list.Number) > 0,
			"%s, %s after %s, %s", next.Number, next.ThisUpdate, list.Number, list.ThisUpdate)
		list = next
	}
	*now = now.AddDate(0, 0, -2)
	must.Refuse(t, "", "a list from the future")(a.List(t.Context()))
}

// TestInterrupted: a CA that was made in part goes on with its key; one that is there, is taken by another process, or has lost a file, is not made anew.
func TestInterrupted(t *testing.T) {
	a, _ := newCA(t)
	file := func(name string) string { return filepath.Join(a.config.Dir, name) }
	must.Fail(t, ErrExists)(Create(t.Context(), a.config, Plan{Name: "x", Years: 1}))
	must.Do(t, os.Remove(file(Certificate)))
	must.Fail(t, ErrNone)(Open(t.Context(), a.config))
	again, err := Create(t.Context(), a.config, Plan{Name: "x", Years: 1})
	must.Hold(t, err == nil && slices.Equal(again.Certificate.RawSubjectPublicKeyInfo, a.Certificate.RawSubjectPublicKeyInfo), "%v", err)
	err = again.exclusively(t.Context(), "waiting", func() error {
		_, err := again.List(t.Context())
		return err
	})
	must.Hold(t, err != nil, "two act at once")
	must.Do(t, os.WriteFile(file(stateFile), []byte(`{"number":1,"revoked":[],"more":1}`), 0o600))
	must.Refuse(t, "", "a changed file is read")(again.List(t.Context()))
	must.Do(t, os.Remove(file(stateFile)))
	must.Refuse(t, "", "issued without knowing what is revoked")(issue(t, again, newKey(t, elliptic.P256()), "mia", 1))
	for _, plan := range []Plan{{Name: "", Years: 1}, {Name: "x"}, {Name: "x", Years: 31}, {Name: strings.Repeat("x", 65), Years: 1}} {
		must.Refuse(t, "", plan)(Create(t.Context(), Config{Dir: t.TempDir(), Helper: &token.Helper{}}, plan))
	}
}

// TestOpenSSLAgrees: OpenSSL finds each certificate valid, or revoked, or expired, as the CA means it.
func TestOpenSSLAgrees(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("no openssl")
	}
	folder := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(folder, name)
		must.Do(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return file
	}
	a, now := newCA(t)
	var all []*x509.Certificate
	for i := range 12 {
		all = append(all, mustIssue(t, a, fmt.Sprintf("agent-%d", i), 1+i))
	}
	*now = now.Add(time.Hour)
	for i, c := range all {
		if i%3 == 0 {
			must.Do(t, a.Revoke(t.Context(), c, slices.Sorted(func(yield func(Cause) bool) {
				for cause := range causes {
					if !yield(cause) {
						return
					}
				}
			})[i/3], time.Time{}))
		}
	}
	list := mustList(t, a)
	root, crl := write("ca.pem", "CERTIFICATE", a.Certificate.Raw), write("list.pem", "X509 CRL", list.Raw)
	for i, c := range all {
		at := list.ThisUpdate.Add(4*24*time.Hour + time.Hour)
		want := "OK"
		if i%3 == 0 {
			want = "certificate revoked"
		} else if at.After(c.NotAfter) {
			want = "certificate has expired"
		}
		said, err := exec.Command("openssl", "verify", "-x509_strict", "-crl_check", "-purpose", "any", "-attime", strconv.FormatInt(at.Unix(), 10), "-CAfile", root, "-CRLfile", crl,
			write("leaf.pem", "CERTIFICATE", c.Raw)).CombinedOutput()
		must.Hold(t, (err == nil) == (want == "OK") && strings.Contains(string(said), want), "agent-%d: %v, %s, want %q", i, err, said, want)
	}
}

// TestListsOfOneSecond: a list that is made right after another is not dated in the future, where no reader would believe it yet.
func TestListsOfOneSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := Create(t.Context(), Config{Dir: filepath.Join(t.TempDir(), "ca"), Helper: &token.Helper{}}, Plan{Name: "Example agents", Years: 2})
		must.Do(t, err)
		var last time.Time
		for range 3 {
			der, err := a.List(t.Context())
			must.Do(t, err)
			list, err := x509.ParseRevocationList(der)
			if err != nil || !list.ThisUpdate.After(last) || list.ThisUpdate.After(time.Now()) {
				t.Fatalf("%v at %v, after %v: %v", list.ThisUpdate, time.Now(), last, err)
			}
			last = list.ThisUpdate
		}
	})
}
