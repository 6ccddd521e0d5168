package openssl_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"maps"
	"math/big"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/web/openssl"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

func sealed(t *testing.T, h *jurattest.House) *evidence.Record {
	t.Helper()
	return h.Seal(t, evidence.Payload{ActionType: evidence.Message, AgentID: "a", RequestID: "r", Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "1",
		Prompt: []byte(`"p"`), Response: []byte(`"r"`), Parameters: []byte(`{}`)})
}

func TestWrite(t *testing.T) {
	h := jurattest.New(t)
	record := sealed(t, h)
	for n, want := range map[int][]string{
		1: {"authority.pem", "payload.json", "public.pem", "signature.bin", "token.tsr", "verify.sh"},
		2: {"001-message/authority.pem", "001-message/payload.json", "001-message/public.pem", "001-message/signature.bin", "001-message/token.tsr",
			"002-message/authority.pem", "002-message/payload.json", "002-message/public.pem", "002-message/signature.bin", "002-message/token.tsr", "verify.sh"},
	} {
		files := map[string][]byte{}
		_, err := openssl.Write(slices.Repeat([]*evidence.Record{record}, n), h.Trust(t), func(name string, content []byte) error {
			files[name] = content
			return nil
		})
		must.Do(t, err)
		names := slices.Sorted(maps.Keys(files))
		must.Hold(t, slices.Equal(names, want), "files %q", names)
	}
}

// TestAnotherActor: openssl checks keys, but knows no names. So a record that another actor's key signed gives no files.
func TestAnotherActor(t *testing.T) {
	h := jurattest.New(t)
	record, trusted := sealed(t, h), h.Trust(t)
	for i := range trusted.Keys {
		if trusted.Keys[i].KeyID == record.Payload.Signers[0].KeyID {
			trusted.Keys[i].Name = "b"
		}
	}
	report := verify.Record(record, verify.Options{Trust: trusted})
	must.Need(t, report.Of(verify.Authentication).Rule == "actor", "%+v", report.Of(verify.Authentication))
	_, err := openssl.Write([]*evidence.Record{record}, trusted, func(name string, _ []byte) error {
		t.Errorf("%s is written", name)
		return nil
	})
	must.Want(t, err, openssl.ErrActor)
}

func TestOpenSSLAccepts(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed")
	}
	h := jurattest.NewForStrangers(t)
	dir := t.TempDir()
	_, err := openssl.Write([]*evidence.Record{sealed(t, h)}, h.Trust(t), func(name string, content []byte) error {
		return os.WriteFile(filepath.Join(dir, name), content, 0o644)
	})
	must.Do(t, err)
	verified := func() error { return exec.Command("sh", filepath.Join(dir, openssl.Script)).Run() }
	err = verified()
	must.Need(t, err == nil, "openssl refuses the written files: %v", err)
	must.Do(t, os.WriteFile(filepath.Join(dir, "payload.json"), []byte("{}"), 0o644))
	must.Hold(t, verified() != nil, "another payload is accepted")
}

func TestNothingIsWrittenThatCannotBeChecked(t *testing.T) {
	h := jurattest.New(t)
	record := sealed(t, h)
	waiting := *record
	waiting.Timestamps = nil
	for name, c := range map[string]struct {
		records []*evidence.Record
		trust   *trust.Trust
		want    error
	}{
		"no key":   {[]*evidence.Record{record}, &trust.Trust{}, openssl.ErrNoKey},
		"no stamp": {[]*evidence.Record{&waiting}, h.Trust(t), openssl.ErrNoStamp},
		"nothing":  {nil, h.Trust(t), nil},
	} {
		_, err := openssl.Write(c.records, c.trust, func(name string, _ []byte) error { t.Errorf("%s was written", name); return nil })
		must.Hold(t, err != nil && (c.want == nil || errors.Is(err, c.want)), "%s: %v", name, err)
	}
	broken := errors.New("no space")
	must.Fail(t, broken)(openssl.Write([]*evidence.Record{record}, h.Trust(t), func(string, []byte) error { return broken }))
}

// made is a certificate with its key.
type made struct {
	*x509.Certificate
	key crypto.Signer
}

// certify makes a certificate for a key, by a CA; nil: by itself.
func certify(t *testing.T, name string, public crypto.PublicKey, by *made, change func(*x509.Certificate)) *made {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Do(t, err)
	if public == nil {
		public = key.Public()
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: jurattest.Start.AddDate(-1, 0, 0),
		NotAfter: jurattest.Start.AddDate(0, 1, 0), BasicConstraintsValid: true, MaxPathLen: -1} // it has ended when the script runs
	change(template)
	issuer := &made{template, key}
	if by != nil {
		issuer = by
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, issuer.Certificate, public, issuer.key))(t)
	parsed := must.Get(x509.ParseCertificate(der))(t)
	return &made{parsed, key}
}

func ca(c *x509.Certificate) { c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign }

// signer is the template of an actor's certificate.
func signer(actor string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.KeyUsage, c.UnknownExtKeyUsage = x509.KeyUsageDigitalSignature, []asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 36}}
		c.URIs = []*url.URL{{Scheme: "urn", Opaque: "jurat:agent:" + actor}}
	}
}

// by makes the trust file know a record's signer by a CA alone, and gives the record its certificates.
func by(t *testing.T, r *evidence.Record, trusted *trust.Trust, root *made, given ...*made) {
	t.Helper()
	trusted.Keys = nil
	trusted.CAs = []trust.CA{{Name: "CA", Certificate: root.Raw, Roles: []evidence.Role{evidence.RoleAgent}, Custody: trust.ByOwner}}
	r.Certificates = nil
	for _, c := range given {
		r.Certificates = append(r.Certificates, c.Raw)
	}
	reread(t, trusted)
}

func reread(t *testing.T, trusted *trust.Trust) {
	t.Helper()
	doc := must.Get(trusted.Marshal())(t)
	parsed := must.Get(trust.Parse(doc))(t)
	*trusted = *parsed
}

// exported writes a record's files into a folder, and returns a function that runs the script.
func exported(t *testing.T, r *evidence.Record, trusted *trust.Trust) (dir string, run func() (string, error)) {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed")
	}
	dir = t.TempDir()
	_, err := openssl.Write([]*evidence.Record{r}, trusted, func(name string, content []byte) error {
		return os.WriteFile(filepath.Join(dir, name), content, 0o644)
	})
	must.Do(t, err)
	return dir, func() (string, error) {
		out, err := exec.Command("sh", filepath.Join(dir, openssl.Script)).CombinedOutput()
		return string(out), err
	}
}

func keyOf(t *testing.T, r *evidence.Record, trusted *trust.Trust) crypto.PublicKey {
	t.Helper()
	public := must.Get(evidence.ParsePublicKey(trusted.Key(r.Payload.Signers[0].KeyID).PublicKey))(t)
	return public
}

// TestCertifiedKeys: openssl checks that a CA of the trust file certified the key, when the record existed, and takes no other key.
func TestCertifiedKeys(t *testing.T) {
	root := certify(t, "root", nil, nil, ca)
	issuing := certify(t, "issuing", nil, root, ca)
	for name, anchor := range map[string]*made{"by the root": root, "by an issuing CA that the reader lists": issuing} {
		t.Run(name, func(t *testing.T) {
			h := jurattest.NewForStrangers(t)
			r := sealed(t, h)
			trusted := h.Trust(t)
			own := certify(t, "signer", keyOf(t, r, trusted), issuing, signer("a"))
			stranger := certify(t, "stranger", nil, issuing, signer("a"))
			by(t, r, trusted, anchor, stranger, issuing, own)
			dir, run := exported(t, r, trusted)
			if out, err := run(); err != nil || !strings.Contains(out, "all verified") || !strings.Contains(out, "whether keys or certificates were revoked") {
				t.Fatalf("%v\n%s", err, out)
			}
			otherCA := certify(t, "root", nil, nil, ca)
			for file, content := range map[string][]byte{
				"certificate.pem": encoded(stranger, issuing),
				"ca.pem":          encoded(otherCA),
				"public.pem":      publicKey(t, stranger),
			} {
				kept := must.Get(os.ReadFile(filepath.Join(dir, file)))(t)
				must.Do(t, os.WriteFile(filepath.Join(dir, file), content, 0o644))
				out, err := run()
				must.Hold(t, err != nil, "another %s is accepted\n%s", file, out)
				must.Do(t, os.WriteFile(filepath.Join(dir, file), kept, 0o644))
			}
			out, err := run()
			must.Hold(t, err == nil, "%v\n%s", err, out)
		})
	}
}

func encoded(list ...*made) (all []byte) {
	for _, c := range list {
		all = append(all, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return all
}

func publicKey(t *testing.T, c *made) []byte {
	t.Helper()
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: c.RawSubjectPublicKeyInfo})
}

// TestNoFilesForUncertifiedKeys: what openssl would not notice, or could not check, gives no files.
func TestNoFilesForUncertifiedKeys(t *testing.T) {
	root := certify(t, "root", nil, nil, ca)
	for _, tt := range []struct {
		name   string
		change func(*x509.Certificate)
		anchor *made
		want   error
	}{
		{"another actor", signer("b"), root, openssl.ErrActor},
		{"another CA", signer("a"), certify(t, "root", nil, nil, ca), openssl.ErrNoKey},
		{"for another purpose", func(c *x509.Certificate) { signer("a")(c); c.UnknownExtKeyUsage = nil }, root, openssl.ErrNoKey},
		{"ended before the record", func(c *x509.Certificate) { signer("a")(c); c.NotAfter = jurattest.Start.Add(-time.Hour) }, root, openssl.ErrNoKey},
		{"no certificate", nil, root, openssl.ErrNoKey},
	} {
		h := jurattest.NewForStrangers(t)
		r := sealed(t, h)
		trusted := h.Trust(t)
		var given []*made
		if tt.change != nil {
			given = append(given, certify(t, "signer", keyOf(t, r, trusted), root, tt.change))
		}
		by(t, r, trusted, tt.anchor, given...)
		_, err := openssl.Write([]*evidence.Record{r}, trusted, func(name string, _ []byte) error {
			t.Errorf("%s: %s is written", tt.name, name)
			return nil
		})
		must.Want(t, err, tt.want)
	}
}

// TestListedAuthorities: readers list an authority by whatever certificate they trust, and its certificates end.
func TestListedAuthorities(t *testing.T) {
	root := certify(t, "root", nil, nil, ca)
	issuing := certify(t, "issuing", nil, root, ca)
	stamps := certify(t, "authority", nil, issuing, func(c *x509.Certificate) {
		c.KeyUsage = x509.KeyUsageDigitalSignature
		c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: []byte{0x30, 10, 6, 8, 0x2b, 6, 1, 5, 5, 7, 3, 8}}}
	})
	authority, err := timestamp.NewAuthority(timestamp.AuthorityConfig{Key: stamps.key, Certificate: stamps.Certificate, Chain: []*x509.Certificate{issuing.Certificate, root.Certificate},
		Now: func() time.Time { return jurattest.Start.Add(time.Hour) }})
	must.Do(t, err)
	for _, tt := range []struct {
		name   string
		listed *made
		within bool // the token has the authority's certificate
	}{{"an issuing CA", issuing, true}, {"its own", stamps, true}, {"its own, which is not in the token", stamps, false}} {
		t.Run(tt.name, func(t *testing.T) {
			h := jurattest.NewForStrangers(t)
			r := sealed(t, h)
			trusted := h.Trust(t)
			trusted.Authorities[0].Certificate = tt.listed.Raw
			reread(t, trusted)
			r.Timestamps[0].Token, err = authority.Issue(&timestamp.Request{Imprint: r.Imprint(), CertReq: tt.within})
			must.Do(t, err)
			got := verify.Record(r, verify.Options{Trust: trusted}).Of(verify.Time)
			must.Need(t, got.Status == verify.Proved, "%+v", got)
			dir, run := exported(t, r, trusted)
			out, err := run()
			must.Hold(t, err == nil, "%v\n%s", err, out)
			must.Do(t, os.WriteFile(filepath.Join(dir, "authority.pem"), encoded(certify(t, "issuing", nil, nil, ca)), 0o644))
			out, err = run()
			must.Hold(t, err != nil, "another authority is accepted\n%s", out)
		})
	}
}
