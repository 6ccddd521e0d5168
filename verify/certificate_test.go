package verify_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
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
	"jurat/verify"
	"jurat/verify/trust"
)

// A certificateCase changes one thing in a world.
type certificateCase struct {
	name   string
	change func(w *world)
	status verify.Status
	rule   string
	says   string
	judged bool // it is about path and revocation at the proved time, so that OpenSSL must find the same
}

func certificateCases(t *testing.T) []certificateCase {
	proved, not, refuted := verify.Proved, verify.NotProved, verify.Refuted
	hour := time.Hour
	return []certificateCase{
		{"as it should be", func(w *world) {}, proved, "", "certificates of Root CA", true},
		{"of the issuing CA itself", func(w *world) {
			w.finish = func(w *world, r *evidence.Record, o *verify.Options) {
				o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) { trusted.CAs[0].Certificate = w.made.issuing.Raw })
				o.CRLs = o.CRLs[1:] // revocation of the issuing CA is not checked when it is the trusted one
			}
		}, proved, "", "", false},

		// The path.
		{"no CA for this role", func(w *world) { w.trusted.Roles = []evidence.Role{evidence.RoleJuror} }, not, "certificate", "vouch for the role agent", false},
		{"no CA at all", func(w *world) {
			w.finish = func(w *world, r *evidence.Record, o *verify.Options) {
				o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) { trusted.CAs = nil })
			}
		}, not, "certificate", "neither this key nor a CA", false},
		{"no certificates", func(w *world) {
			w.finish = func(w *world, r *evidence.Record, o *verify.Options) { r.Certificates = nil }
		}, not, "unknown-key", "has no key", false},
		{"certificates of another key", func(w *world) {
			w.finish = func(w *world, r *evidence.Record, o *verify.Options) { r.Certificates = r.Certificates[1:] }
		}, not, "unknown-key", "has no key", false},
		{"the issuing CA's certificate is not there", func(w *world) {
			w.finish = func(w *world, r *evidence.Record, o *verify.Options) { r.Certificates = r.Certificates[:1] }
		}, not, "certificate", "no certificate path", false},
		{"the root that comes with the record", func(w *world) {
			w.finish = func(w *world, r *evidence.Record, o *verify.Options) {
				r.Certificates = append(r.Certificates, w.made.root.Raw)
				other := newKey(t)
				stranger := caTemplate("root", 1)
				o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) {
					trusted.CAs[0].Certificate = certify(t, stranger, other.Public(), stranger, other).Raw
				})
			}
		}, not, "certificate", "no certificate path", false},
		{"an issuing CA that the root did not certify", func(w *world) { w.forgeIssuing = true }, not, "certificate", "no certificate path", true},
		{"an issuing CA that is none", func(w *world) { w.issuing.IsCA, w.issuing.MaxPathLen = false, 0 }, not, "certificate", "no certificate path", true},
		{"an issuing CA that may not sign certificates", func(w *world) { w.issuing.KeyUsage = x509.KeyUsageCRLSign }, not, "certificate", "no certificate path", true},
		{"no CA allowed below the root", func(w *world) { w.root.MaxPathLen, w.root.MaxPathLenZero = 0, true }, not, "certificate", "no certificate path", true},
		{"expired", func(w *world) { w.signer.NotAfter = stamped.Add(-time.Second) }, not, "certificate", "that was valid at 2026", true},
		{"not yet valid", func(w *world) { w.signer.NotBefore = stamped.Add(time.Second) }, not, "certificate", "that was valid at 2026", true},
		{"in its last second", func(w *world) { w.signer.NotAfter = stamped; w.at = stamped }, proved, "", "", false}, // OpenSSL already counts this second as too late
		{"an issuing CA that had expired", func(w *world) { w.issuing.NotAfter = stamped.Add(-time.Second) }, not, "certificate", "no certificate path", true},
		{"an unknown critical extension", func(w *world) { w.signer.ExtraExtensions = []pkix.Extension{extension(true)} }, not, "certificate", "critical", true},
		{"an unknown extension", func(w *world) { w.signer.ExtraExtensions = []pkix.Extension{extension(false)} }, proved, "", "", true},
		{"an unknown critical extension of the issuing CA", func(w *world) { w.issuing.ExtraExtensions = []pkix.Extension{extension(true)} }, not, "certificate", "", true},
		{"names that the issuing CA may not certify", func(w *world) {
			w.issuing.PermittedURIDomains, w.issuing.PermittedDNSDomainsCritical = []string{"example.com"}, true
		}, not, "certificate", "", true},
		{"host names that the issuing CA may not certify", func(w *world) {
			w.issuing.PermittedDNSDomains, w.issuing.PermittedDNSDomainsCritical = []string{"example.com"}, true
		}, proved, "", "", true},
		{"URIs that the root may not certify", func(w *world) {
			w.root.ExcludedURIDomains, w.root.PermittedDNSDomainsCritical = []string{"example.com"}, true
		}, not, "certificate", "name constraints", true},
		{"no proved time", func(w *world) {
			w.finish = func(w *world, r *evidence.Record, o *verify.Options) { r.Timestamps = nil }
		}, not, "certificate", "time is not proved", false},
		{"more certificates than are looked at", func(w *world) {
			w.finish = func(w *world, r *evidence.Record, o *verify.Options) {
				r.Certificates = append(r.Certificates, slices.Repeat([][]byte{w.made.issuing.Raw}, 15)...)
			}
		}, not, "certificate", "with more than 16, none", false},
		{"as many certificates as are looked at, and what is none", func(w *world) {
			w.finish = func(w *world, r *evidence.Record, o *verify.Options) {
				r.Certificates = append([][]byte{[]byte("junk")}, append(r.Certificates, slices.Repeat([][]byte{w.made.issuing.Raw}, 13)...)...)
			}
		}, proved, "", "", false},

		{"more ways to the root than are tried", func(w *world) { w.finish = mazeOfCAs(t, 4) }, not, "effort", "more steps than this record", false},
		{"many ways to the root", func(w *world) { w.finish = mazeOfCAs(t, 3) }, proved, "", "", false},

		// The purpose.
		{"for encryption", func(w *world) { w.signer.KeyUsage = x509.KeyUsageKeyEncipherment }, not, "certificate", "key usage", false},
		{"without key usage", func(w *world) { w.signer.KeyUsage = 0 }, proved, "", "", false},
		{"for no purpose in particular", func(w *world) { w.signer.UnknownExtKeyUsage = nil }, not, "certificate", "documentSigning", false},
		{"for any purpose", func(w *world) {
			w.signer.UnknownExtKeyUsage, w.signer.ExtKeyUsage = nil, []x509.ExtKeyUsage{x509.ExtKeyUsageAny}
		}, not, "certificate", "documentSigning", false},
		{"for servers", func(w *world) {
			w.signer.UnknownExtKeyUsage, w.signer.ExtKeyUsage = nil, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}, not, "certificate", "documentSigning", false},
		{"for servers and documents", func(w *world) { w.signer.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }, proved, "", "", false},
		{"by a CA for servers", func(w *world) { w.issuing.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }, not, "certificate", "do not certify keys that sign documents", false},
		{"by a root for servers", func(w *world) { w.root.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }, not, "certificate", "do not certify keys that sign documents", false},
		{"by a CA for anything", func(w *world) { w.issuing.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny} }, proved, "", "", false},
		{"by a CA for documents", func(w *world) { w.issuing.UnknownExtKeyUsage = []asn1.ObjectIdentifier{oidDocumentSigning} }, proved, "", "", false},
		{"a CA's key", func(w *world) {
			w.signer.BasicConstraintsValid, w.signer.IsCA = true, true
		}, not, "certificate", "that of a CA", false},

		// The identity.
		{"another actor", func(w *world) { w.actor = "urn:jurat:agent:b" }, refuted, "actor", `"urn:jurat:agent:b"`, false},
		{"another role", func(w *world) { w.actor = "urn:jurat:juror:a" }, refuted, "actor", `"urn:jurat:juror:a"`, false},
		{"nobody", func(w *world) { w.actor = "" }, not, "certificate", "names 0 actors", false},
		{"somebody in other words", func(w *world) { w.actor = "https://a.example/" }, not, "certificate", "names 0 actors", false},
		{"a role that is none", func(w *world) { w.actor = "urn:jurat:king:a" }, not, "certificate", "another form", false},
		{"escaped without need", func(w *world) { w.actor = "urn:jurat:agent:%61" }, not, "certificate", "another form", false},
		{"in other letter case", func(w *world) { w.actor = "urn:JURAT:agent:a" }, not, "certificate", "another form", false},
		{"a name that is none", func(w *world) { w.actor = "urn:jurat:agent:%00" }, not, "certificate", "another form", false},
		{"two actors", func(w *world) { w.signer.URIs = []*url.URL{{Scheme: "urn", Opaque: "jurat:agent:b"}} }, not, "certificate", "names 2 actors", false},
		{"a good certificate beside another's", func(w *world) {
			w.finish = func(w *world, r *evidence.Record, o *verify.Options) {
				public, key := w.made.signer.PublicKey, newKey(t)
				second := caTemplate("second", 1)
				root := certify(t, second, key.Public(), second, key)
				template := newWorld().signer
				template.URIs = []*url.URL{{Scheme: "urn", Opaque: "jurat:agent:b"}}
				r.Certificates = append([][]byte{certify(t, template, public, root, key).Raw}, r.Certificates...)
				o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) {
					trusted.CAs = append([]trust.CA{{Name: "Second", Certificate: root.Raw, Roles: w.trusted.Roles, Custody: trust.ByOwner, Revocation: trust.NotAsked}}, trusted.CAs...)
				})
			}
		}, proved, "", "", false},

		// The signature.
		{"a signature that was changed", func(w *world) {
			w.finish = func(w *world, r *evidence.Record, o *verify.Options) { r.Signatures[0][9] ^= 1 }
		}, refuted, "signature", "was not made with the key", false},

		// Revocation.
		{"no lists", func(w *world) { w.lists = nil }, not, "revocation", "no revocation list of", true},
		{"no list of the issuing CA's", func(w *world) { w.lists = w.lists[:1] }, not, "revocation", `"CN=issuing"`, true},
		{"no list of the root's", func(w *world) { w.lists[0] = nil }, not, "revocation", `"CN=root"`, true},
		{"not asked", func(w *world) { w.lists, w.trusted.Revocation = nil, trust.NotAsked }, proved, "", "was not checked: Root CA", false},
		{"asked by name", func(w *world) { w.trusted.Revocation = trust.ByCRL }, proved, "", "", false},
		{"no moment of checking", func(w *world) { w.at = time.Time{} }, not, "revocation", "no moment of checking", false},
		{"a stale list", func(w *world) { w.lists[1].NextUpdate = stamped.Add(-time.Second); w.at = stamped }, not, "revocation", "stale", true},
		{"a list from after the moment of checking", func(w *world) { w.lists[1].ThisUpdate = stamped.Add(time.Second); w.at = stamped }, not, "revocation", "begins after the moment", true},
		{"lists of others in the issuers' names", func(w *world) { w.forgeLists = true }, not, "revocation", "not signed by the issuer", true},
		{"a list that a CA may not sign", func(w *world) { w.issuing.KeyUsage = x509.KeyUsageCertSign }, not, "revocation", "not signed by the issuer", true},
		{"a list with an unknown critical extension", func(w *world) { w.lists[1].ExtraExtensions = []pkix.Extension{extension(true)} }, not, "revocation", "cannot be used", true},
		{"a list with an unknown extension", func(w *world) { w.lists[1].ExtraExtensions = []pkix.Extension{extension(false)} }, proved, "", "", true},
		{"a delta list", func(w *world) {
			w.lists[1].ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 27}, Critical: true, Value: []byte{2, 1, 1}}}
		}, not, "revocation", "delta", true},
		{"a part of a list", func(w *world) {
			w.lists[1].ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 28}, Critical: true, Value: []byte{0x30, 3, 0x84, 1, 0xff}}}
		}, not, "revocation", "issuing distribution point", false},
		{"an entry with an unknown critical extension", func(w *world) {
			w.lists[1].RevokedCertificateEntries = []x509.RevocationListEntry{revocationOf(99, stamped, -1, extension(true))}
		}, not, "revocation", "cannot be used", true},
		{"an entry of another issuer's certificate", func(w *world) {
			w.lists[1].RevokedCertificateEntries = []x509.RevocationListEntry{revocationOf(99, stamped, -1,
				pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 29}, Value: []byte{0x30, 0}})}
		}, not, "revocation", "indirect", false},
		{"an entry for delta lists", func(w *world) {
			w.lists[1].RevokedCertificateEntries = []x509.RevocationListEntry{revocationOf(3, stamped.Add(-hour), 8)}
		}, not, "revocation", "removeFromCRL", false},
		{"a certificate twice", func(w *world) {
			e := revocationOf(99, stamped, -1)
			w.lists[1].RevokedCertificateEntries = []x509.RevocationListEntry{e, e}
		}, not, "revocation", "twice", false},
		{"another certificate revoked", func(w *world) {
			w.lists[1].RevokedCertificateEntries = []x509.RevocationListEntry{revocationOf(99, stamped.Add(-hour), 1)}
		}, proved, "", "", true},
		{"revoked before it existed", func(w *world) {
			w.lists[1].RevokedCertificateEntries = []x509.RevocationListEntry{revocationOf(3, stamped.Add(-hour), 1)}
		}, not, "revoked", "is revoked from 2025-12-31T23:00:00Z on", true},
		{"on hold before it existed", func(w *world) {
			w.lists[1].RevokedCertificateEntries = []x509.RevocationListEntry{revocationOf(3, stamped.Add(-hour), 6)}
		}, not, "revoked", "is revoked", true},
		{"revoked when it existed", func(w *world) {
			w.lists[1].RevokedCertificateEntries = []x509.RevocationListEntry{revocationOf(3, stamped, 1)}
		}, not, "revoked", "is revoked", false},
		{"revoked afterwards", func(w *world) {
			w.lists[1].RevokedCertificateEntries = []x509.RevocationListEntry{revocationOf(3, stamped.Add(hour), 1)}
		}, proved, "", "", false},
		{"revoked afterwards, by the operator's clock", func(w *world) {
			w.clock = trust.OperatorClock
			w.lists[1].RevokedCertificateEntries = []x509.RevocationListEntry{revocationOf(3, stamped.Add(hour), 1)}
		}, not, "revoked", "no independent authority", false},
		{"revoked afterwards, stolen before", func(w *world) {
			w.lists[1].RevokedCertificateEntries = []x509.RevocationListEntry{
				revocationOf(3, stamped.Add(hour), 1, dateExtension(t, 24, stamped.Add(-hour)))}
		}, not, "revoked", "2025-12-31T23:00:00Z", false},
		{"revoked afterwards, stolen later still", func(w *world) {
			w.lists[1].RevokedCertificateEntries = []x509.RevocationListEntry{
				revocationOf(3, stamped.Add(hour), 1, dateExtension(t, 24, stamped.Add(2*hour)))}
		}, proved, "", "", false},
		{"the issuing CA revoked", func(w *world) {
			w.lists[0].RevokedCertificateEntries = []x509.RevocationListEntry{revocationOf(2, stamped.Add(-hour), 2)}
		}, not, "revoked", `"CN=issuing"`, true},
		{"revoked, and of the issuing CA it is not known", func(w *world) {
			w.lists[0] = nil
			w.lists[1].RevokedCertificateEntries = []x509.RevocationListEntry{revocationOf(3, stamped.Add(-hour), 1)}
		}, not, "revoked", `"CN=signer"`, true},
		{"the newer of two lists", func(w *world) {
			w.finish = func(w *world, r *evidence.Record, o *verify.Options) {
				o.CRLs = append(o.CRLs, newerList(t, w, func(l *x509.RevocationList) {
					l.RevokedCertificateEntries = []x509.RevocationListEntry{revocationOf(2, stamped.Add(-hour), 1)}
				}))
				slices.Reverse(o.CRLs)
			}
		}, not, "revoked", `"CN=issuing"`, false},
		{"a list from after the certificate's end", func(w *world) {
			w.signer.NotAfter = stamped.Add(hour)
			w.lists[1].ThisUpdate = stamped.Add(2 * hour)
		}, not, "revocation", "need not name it any longer", false},
		{"a list that still names what has expired", func(w *world) {
			w.signer.NotAfter = stamped.Add(hour)
			w.lists[1].ThisUpdate = stamped.Add(2 * hour)
			w.lists[1].ExtraExtensions = []pkix.Extension{dateExtension(t, 60, stamped)}
		}, proved, "", "", false},
		{"a list that names only what expired later", func(w *world) {
			w.signer.NotAfter = stamped.Add(hour)
			w.lists[1].ThisUpdate = stamped.Add(2 * hour)
			w.lists[1].ExtraExtensions = []pkix.Extension{dateExtension(t, 60, stamped.Add(2*hour))}
		}, not, "revocation", "need not name it any longer", false},
	}
}

// newerList is another list of the root, one minute newer.
func newerList(t *testing.T, w *world, change func(*x509.RevocationList)) *x509.RevocationList {
	t.Helper()
	template := *w.lists[0]
	template.ThisUpdate = template.ThisUpdate.Add(time.Minute)
	change(&template)
	return signList(t, &template, w.made.root, w.made.rootKey)
}

// TestEveryRuleOfACertificate changes one thing at a time about a record that a CA vouches for.
func TestEveryRuleOfACertificate(t *testing.T) {
	for _, tt := range slices.Concat(certificateCases(t), oldListCases(t)) {
		t.Run(tt.name, func(t *testing.T) {
			r, o, public := certifiedRecord(t, output("a"))
			w := newWorld()
			tt.change(w)
			o = w.build(t, r, o, public)
			report := verify.Record(r, o)
			got := report.Of(verify.Authentication)
			must.Hold(t, got.Status == tt.status && got.Rule == tt.rule && strings.Contains(got.Reason, tt.says),
				"%+v\nwant %s by rule %q, saying %q", got, tt.status, tt.rule, tt.says)
			n := report.Of(verify.NonRepudiation)
			must.Hold(t, n.Status == tt.status && n.Rule == tt.rule, "non-repudiation, with a key that its owner keeps: %+v", n)
			if (report.Outcome == verify.Proved) != (tt.status == verify.Proved) || (report.Outcome == verify.Refuted) != (tt.status == verify.Refuted) {
				t.Errorf("outcome %s", report.Outcome)
			}
			if tt.judged {
				must.Equal(t, opensslVerifies(t, w), tt.status == verify.Proved, "openssl verify")
			}
		})
	}
}

// opensslVerifies asks OpenSSL about the path of the signer's certificate, with the same lists.
func opensslVerifies(t *testing.T, w *world) bool {
	t.Helper()
	lists := append([]*x509.RevocationList{}, w.made.lists...)
	return opensslAccepts(t, w.made.root, []*x509.Certificate{w.made.issuing}, lists, w.made.signer)[0]
}

// opensslAccepts asks OpenSSL which of these signers' certificates have a path to the root at the time of the record, through those between.
// If lists is not nil, a list must answer for every certificate on the path.
func opensslAccepts(t *testing.T, root *x509.Certificate, between []*x509.Certificate, lists []*x509.RevocationList, signers ...*x509.Certificate) (accepted []bool) {
	t.Helper()
	dir := t.TempDir()
	args := []string{"verify", "-purpose", "any", "-no-CApath", "-no-CAstore", "-attime", fmt.Sprint(stamped.Unix())}
	given := func(name, kind string, der []byte) string {
		write(t, dir, name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
		return name
	}
	args = append(args, "-CAfile", given("root.pem", "CERTIFICATE", root.Raw))
	for i, c := range between {
		args = append(args, "-untrusted", given(fmt.Sprintf("between-%d.pem", i), "CERTIFICATE", c.Raw))
	}
	if lists != nil {
		args = append(args, "-crl_check_all", "-extended_crl")
	}
	for i, list := range lists {
		args = append(args, "-CRLfile", given(fmt.Sprintf("%d.crl", i), "X509 CRL", list.Raw))
	}
	for i, c := range signers {
		args = append(args, given(fmt.Sprintf("signer-%d.pem", i), "CERTIFICATE", c.Raw))
	}
	said, _ := openssl(t, dir, args...)
	for i := range signers {
		accepted = append(accepted, strings.Contains(said, fmt.Sprintf("signer-%d.pem: OK\n", i)))
	}
	return accepted
}

// openssl runs the command in a folder. It returns what it said, and whether it succeeded.
func openssl(t *testing.T, dir string, args ...string) (said string, ok bool) {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		must.Need(t, os.Getenv("CI") != "true", "openssl is not installed; this test compares certificate paths with it")
		t.Skip("openssl is not installed; this test compares certificate paths with it")
	}
	cmd := exec.CommandContext(t.Context(), "openssl", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	t.Logf("openssl %s: %s", strings.Join(args, " "), strings.TrimSpace(string(out)))
	return string(out), err == nil
}

// opensslCA is the OpenSSL configuration for the test below.
const opensslCA = `
[ca]
default_ca = root
[root]
database = index.txt
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
copy_extensions = none
certificate = root.pem
private_key = root.key
default_crl_days = 30
crlnumber = crlnumber
crl_extensions = v3_list
[any]
commonName = supplied
[req]
distinguished_name = dn
prompt = no
[dn]
commonName = OpenSSL's
[v3_ca]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[v3_list]
authorityKeyIdentifier = keyid
[v3_signer]
basicConstraints = CA:false
keyUsage = critical, digitalSignature
extendedKeyUsage = 1.3.6.1.5.5.7.3.36
subjectAltName = URI:urn:jurat:agent:a%20courier
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
`

// TestCertificatesOfOpenSSL: jurat reads what OpenSSL certifies and revokes, for keys of every algorithm.
func TestCertificatesOfOpenSSL(t *testing.T) {
	for algorithm, kind := range map[evidence.Algorithm][]string{
		evidence.ES256:   {"-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"},
		evidence.RS256:   {"-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"},
		evidence.Ed25519: {"-algorithm", "ED25519"},
	} {
		t.Run(string(algorithm), func(t *testing.T) {
			dir := t.TempDir()
			run := func(args ...string) {
				t.Helper()
				_, ok := openssl(t, dir, args...)
				must.Need(t, ok, "openssl failed")
			}
			for name, text := range map[string]string{"ca.cnf": opensslCA, "index.txt": "", "crlnumber": "01\n"} {
				must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			span := []string{"-startdate", "20250101000000Z", "-enddate", "20300101000000Z", "-notext", "-batch", "-config", "ca.cnf"}
			run("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384", "-out", "root.key")
			run("req", "-new", "-config", "ca.cnf", "-key", "root.key", "-out", "root.csr")
			run(append([]string{"ca", "-selfsign", "-keyfile", "root.key", "-in", "root.csr", "-extensions", "v3_ca", "-out", "root.pem"}, span...)...)
			run(append([]string{"genpkey", "-out", "signer.key"}, kind...)...)
			run("pkcs8", "-topk8", "-nocrypt", "-in", "signer.key", "-outform", "DER", "-out", "signer.der")
			run("req", "-new", "-config", "ca.cnf", "-subj", "/CN=a courier", "-key", "signer.key", "-out", "signer.csr")
			run(append([]string{"ca", "-in", "signer.csr", "-extensions", "v3_signer", "-out", "signer.pem"}, span...)...)
			run("ca", "-gencrl", "-config", "ca.cnf", "-out", "before.crl")
			run("ca", "-revoke", "signer.pem", "-crl_compromise", "20250601000000Z", "-config", "ca.cnf")
			run("ca", "-gencrl", "-config", "ca.cnf", "-out", "after.crl")

			read := func(name string) []byte {
				t.Helper()
				doc := must.Get(os.ReadFile(filepath.Join(dir, name)))(t)
				return doc
			}
			certificate := func(name string) []byte {
				block, _ := pem.Decode(read(name))
				return block.Bytes
			}
			r, o := sealedWith(t, output("a courier"), read("signer.der"))
			r.Certificates = [][]byte{certificate("signer.pem")}
			o.At = time.Now()
			o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) {
				trusted.Keys, trusted.Authorities[0].Clock = nil, trust.Independent
				trusted.CAs = []trust.CA{{Name: "OpenSSL's", Certificate: certificate("root.pem"), Roles: []evidence.Role{evidence.RoleAgent}, Custody: trust.ByOwner}}
			})
			for name, want := range map[string]string{"before.crl": "", "after.crl": "revoked"} {
				list := must.Get(trust.ParseCRL(read(name)))(t)
				o.CRLs = []*x509.RevocationList{list}
				got := verify.Record(r, o).Of(verify.Authentication)
				must.Hold(t, got.Rule == want && (got.Status == verify.Proved) == (want == ""), "%s: %+v", name, got)
			}
		})
	}
}

// sealedWith is a record signed with a key from elsewhere, in PKCS #8.
func sealedWith(t *testing.T, p evidence.Payload, pkcs8 []byte) (*evidence.Record, verify.Options) {
	t.Helper()
	key := must.Get(evidence.ParsePrivateKey(pkcs8))(t)
	signer := must.Get(evidence.NewSigner(key, nil))(t)
	h := jurattest.New(t)
	draft := must.Get(evidence.NewDraft(p))(t)
	r := must.Get(h.Ledger.Seal(t.Context(), draft, []evidence.Signer{signer}))(t)
	r = must.Get(h.Ledger.ProveOne(t.Context(), r))(t)
	return r, h.Options(t)
}

// TestListedKeyTakesPrecedence: no certificate changes what the trust file says of a key.
func TestListedKeyTakesPrecedence(t *testing.T) {
	r, o, public := certifiedRecord(t, output("a"))
	listed := o.Trust.Keys
	w := newWorld()
	w.actor = "urn:jurat:agent:b"
	o = w.build(t, r, o, public)
	o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) { trusted.Keys = listed })
	report := verify.Record(r, o)
	got := report.Of(verify.Authentication)
	must.Hold(t, got.Status == verify.Proved, "%+v", got)
	got = report.Of(verify.NonRepudiation)
	must.Hold(t, got.Rule == "custody", "the key's own custody counts: %+v", got)
}

// TestCustodyOfCertifiedKeys: the reader says who keeps the keys that a CA certifies.
func TestCustodyOfCertifiedKeys(t *testing.T) {
	r, o, public := certifiedRecord(t, output("a"))
	w := newWorld()
	w.trusted.Custody = trust.ByOperator
	report := verify.Record(r, w.build(t, r, o, public))
	got := report.Of(verify.NonRepudiation)
	must.Hold(t, got.Status == verify.NotProved && got.Rule == "custody" && report.Outcome == verify.Proved, "%s, %+v", report.Outcome, got)
}

// TestIdentity: each name has exactly one form in a certificate.
func TestIdentity(t *testing.T) {
	for name, want := range map[string]string{
		"a":                "urn:jurat:agent:a",
		"user@example.com": "urn:jurat:agent:user%40example.com",
		"a b/c:d%e?f#g+h":  "urn:jurat:agent:a%20b%2Fc%3Ad%25e%3Ff%23g%2Bh",
		"Z-9._~":           "urn:jurat:agent:Z-9._~",
		"логистика":        "urn:jurat:agent:%D0%BB%D0%BE%D0%B3%D0%B8%D1%81%D1%82%D0%B8%D0%BA%D0%B0",
	} {
		if got := trust.Identity(evidence.RoleAgent, name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
			continue
		}
		r, o, public := certifiedRecord(t, output(name))
		w := newWorld()
		w.actor = want
		got := verify.Record(r, w.build(t, r, o, public)).Of(verify.Authentication)
		must.Hold(t, got.Status == verify.Proved, "%q: %+v", name, got)
	}
}

// TestWeakCASignatures: a certificate with a weak digest proves nothing.
func TestWeakCASignatures(t *testing.T) {
	r, o, public := certifiedRecord(t, output("a"))
	w := newWorld()
	w.trusted.Revocation = trust.NotAsked
	o = w.build(t, r, o, public)
	key := must.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
	template := caTemplate("old", 1)
	root := certify(t, template, key.Public(), template, key)
	for _, tt := range []struct {
		algorithm x509.SignatureAlgorithm
		proved    bool
	}{{x509.SHA256WithRSA, true}, {x509.SHA1WithRSA, false}} {
		signer := *w.signer
		signer.SignatureAlgorithm = tt.algorithm
		r.Certificates = [][]byte{certify(t, &signer, public, root, key).Raw}
		o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) { trusted.CAs[0].Certificate = root.Raw })
		got := verify.Record(r, o).Of(verify.Authentication)
		must.Hold(t, (got.Status == verify.Proved) == tt.proved, "%s: %+v", tt.algorithm, got)
	}
}

// TestStrict: what passes by default passes by Strict only if all that applies is proved, by an independent clock, and revocation was asked.
func TestStrict(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*trust.Trust)
		rule   map[verify.Guarantee]string
	}{
		"as it should be": {func(*trust.Trust) {}, nil},
		"the authority is not asked": {func(f *trust.Trust) { f.Authorities[0].Revocation = trust.NotAsked },
			map[verify.Guarantee]string{verify.Time: "policy"}},
		"the operator's clock": {func(f *trust.Trust) { f.Authorities[0].Clock = trust.OperatorClock },
			map[verify.Guarantee]string{verify.Time: "policy"}},
		"the CA is not asked": {func(f *trust.Trust) { f.CAs[0].Revocation = trust.NotAsked },
			map[verify.Guarantee]string{verify.Authentication: "policy"}},
		"the operator keeps the keys": {func(f *trust.Trust) { f.CAs[0].Custody = trust.ByOperator },
			map[verify.Guarantee]string{verify.NonRepudiation: "custody"}},
	} {
		r, o, root, rootKey := stampedElsewhere(t)
		public := must.Get(evidence.ParsePublicKey(o.Trust.Key(r.Payload.Signers[0].KeyID).PublicKey))(t)
		o = newWorld().build(t, r, o, public)
		o.CRLs = append(o.CRLs, signList(t, &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: o.At.Add(-time.Second), NextUpdate: o.At.Add(time.Hour)}, root, rootKey))
		o.Trust = changedTrust(t, o.Trust, func(f *trust.Trust) {
			f.Authorities[0].Clock, f.Authorities[0].Revocation = trust.Independent, trust.ByCRL
			test.change(f)
		})
		if report := verify.Record(r, o); report.Outcome != verify.Proved || report.Policy != verify.Default || len(report.Identities) != 1 {
			t.Errorf("%s, by default: %+v", name, report)
		}
		o.Policy = verify.Strict
		report := verify.Record(r, o)
		want := map[bool]verify.Status{true: verify.Proved, false: verify.NotProved}[test.rule == nil]
		must.Hold(t, report.Outcome == want && report.Policy == verify.Strict && len(report.Uncounted) == 0, "%s: %+v", name, report)
		for g, rule := range test.rule {
			f := report.Of(g)
			must.Hold(t, f.Rule == rule, "%s: %+v", name, f)
		}
	}
}
