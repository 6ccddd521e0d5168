package verify_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

// smallList is a revocation list of a CA made for the test.
func smallList(t testing.TB) []byte {
	t.Helper()
	key, template := newKey(t), caTemplate("lister", 1)
	by := certify(t, template, key.Public(), template, key)
	return signList(t, &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: stamped, NextUpdate: stamped.Add(time.Hour),
		RevokedCertificateEntries: []x509.RevocationListEntry{revocationOf(7, stamped, 1, dateExtension(t, 24, stamped))}}, by, key).Raw
}

func TestParseCRL(t *testing.T) {
	der := smallList(t)
	armoured := pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
	for name, doc := range map[string][]byte{"DER": der, "PEM": armoured, "PEM after words": append([]byte("Revoked:\n"), armoured...)} {
		list, err := trust.ParseCRL(doc)
		if err != nil || len(list.RevokedCertificateEntries) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, tt := range []struct {
		name, says string
		doc        []byte
	}{
		{"nothing", "neither DER nor PEM", nil},
		{"text", "neither DER nor PEM", []byte("hello")},
		{"a certificate", `a "CERTIFICATE"`, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})},
		{"two blocks", "after the PEM block", append(bytes.Clone(armoured), armoured...)},
		{"two lists", "after the list", append(bytes.Clone(der), der...)},
		{"cut short", "malformed", der[:len(der)-1]},
		{"too large", "want at most", append([]byte{0x30}, make([]byte, 16<<20)...)},
	} {
		if _, err := trust.ParseCRL(tt.doc); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v; want an error about %q", tt.name, err, tt.says)
		}
	}
}

// FuzzParseCRL: every list that parses can be used without a panic, and unsigned data proves nothing.
func FuzzParseCRL(f *testing.F) {
	der := smallList(f)
	f.Add(der)
	f.Add(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}))
	f.Add([]byte("-----BEGIN X509 CRL-----\n-----END X509 CRL-----\n"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		list, err := trust.ParseCRL(doc)
		if err != nil {
			return
		}
		verify.Record(new(evidence.Record), verify.Options{At: stamped, CRLs: []*x509.RevocationList{list}})
		again, err := trust.ParseCRL(list.Raw)
		if err != nil || !bytes.Equal(again.Raw, list.Raw) {
			t.Fatalf("Parse accepted the list, but the verifier refuses it: %v", err)
		}
	})
}

// TestListWithoutAnEnd: a list without a next update cannot be shown to be the newest. It counts as of its own time.
func TestListWithoutAnEnd(t *testing.T) {
	for _, old := range []bool{false, true} {
		r, o, public := certifiedRecord(t, output("a"))
		w := newWorld()
		if old {
			outdated(w, 25*time.Hour)
		}
		o = w.build(t, r, o, public)
		o.CRLs[1].NextUpdate = time.Time{}
		if got := verify.Record(r, o).Of(verify.Authentication); (got.Rule == "revocation") == old || !old && !strings.Contains(got.Reason, "how long it is valid") {
			t.Errorf("later than the grace: %v: %+v", old, got)
		}
	}
}

// stampedElsewhere is a record with the token of an authority that has its own root. Its time is one hour after the
// mock's.
func stampedElsewhere(t *testing.T) (r *evidence.Record, o verify.Options, root *x509.Certificate, rootKey *ecdsa.PrivateKey) {
	t.Helper()
	r, o = standalone(t, output("a"))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	rootKey = newKey(t)
	config := timestamp.CertificateConfig{Key: rootKey, Serial: big.NewInt(5), NotBefore: stamped, NotAfter: stamped.AddDate(1, 0, 0)}
	root, err := timestamp.NewRoot(config)
	must(err)
	key := newKey(t)
	config.Key, config.Serial = key, big.NewInt(6)
	certificate, err := timestamp.NewCertificate(config, root, rootKey)
	must(err)
	authority, err := timestamp.NewAuthority(timestamp.AuthorityConfig{Key: key, Certificate: certificate, Chain: []*x509.Certificate{root},
		Now: func() time.Time { return stamped.Add(time.Hour) }})
	must(err)
	token, err := authority.Issue(&timestamp.Request{Imprint: r.Imprint(), CertReq: true})
	must(err)
	r.Timestamps = []evidence.Timestamp{{Kind: evidence.RFC3161, Token: token}}
	o.At = stamped.Add(24 * time.Hour)
	o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) {
		trusted.Authorities = []trust.Authority{{Name: "elsewhere", Certificate: root.Raw, Clock: trust.Independent, Revocation: trust.ByCRL}}
	})
	return r, o, root, rootKey
}

// TestRevokedAuthority: a token stays valid if it is older than the revocation and the revocation reason does not mean
// that the key was stolen.
func TestRevokedAuthority(t *testing.T) {
	before, after := stamped.Add(30*time.Minute), stamped.Add(2*time.Hour) // the token's time is between both
	entry := func(when time.Time, reason int) []x509.RevocationListEntry {
		return []x509.RevocationListEntry{revocationOf(6, when, reason)}
	}
	none := []x509.RevocationListEntry{}
	tests := []struct {
		name    string
		entries []x509.RevocationListEntry // nil: there is no list
		change  func(list *x509.RevocationList, o *verify.Options)
		rule    string // "": the time is proved
		says    string
	}{
		{"not revoked", none, nil, "", "authorities that the reader trusts"},
		{"another one revoked", []x509.RevocationListEntry{revocationOf(7, before, 1)}, nil, "", ""},
		{"no list", nil, nil, "revocation", "no revocation list of"},
		{"a stale list", none, func(_ *x509.RevocationList, o *verify.Options) { o.At = stamped.AddDate(0, 6, 0) }, "revocation", "stale"},
		{"replaced afterwards", entry(after, 4), nil, "", ""},
		{"no longer the operator's, afterwards", entry(after, 3), nil, "", ""},
		{"closed afterwards", entry(after, 5), nil, "", ""},
		{"closed before", entry(before, 5), nil, "revoked", "from 2026-01-01T00:30:00Z on"},
		{"closed when it stamped", entry(stamped.Add(time.Hour), 5), nil, "revoked", "from 2026-01-01T01:00:00Z on"},
		{"key stolen afterwards", entry(after, 1), nil, "revoked", "makes all its tokens worthless"},
		{"the CA's key stolen afterwards", entry(after, 2), nil, "revoked", "worthless"},
		{"on hold", entry(after, 6), nil, "revoked", "worthless"},
		{"for no stated reason, afterwards", entry(after, -1), nil, "revoked", "worthless"},
		{"unspecified, and said so, afterwards", entry(after, 9), func(list *x509.RevocationList, _ *verify.Options) { list.RevokedCertificateEntries[0].ReasonCode = 0 }, "", ""},
		{"not asked", entry(before, 1), func(_ *x509.RevocationList, o *verify.Options) { o.Trust.Authorities[0].Revocation = trust.NotAsked }, "", "was not checked"},
		{"not asked, without a word", nil, func(_ *x509.RevocationList, o *verify.Options) { o.Trust.Authorities[0].Revocation = "" }, "", "was not checked"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, o, root, rootKey := stampedElsewhere(t)
			var list *x509.RevocationList
			if tt.entries != nil {
				list = signList(t, &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: stamped.Add(3 * time.Hour),
					NextUpdate: stamped.AddDate(0, 1, 0), RevokedCertificateEntries: tt.entries}, root, rootKey)
				o.CRLs = []*x509.RevocationList{list}
			}
			if tt.change != nil {
				tt.change(list, &o)
			}
			got := verify.Record(r, o).Of(verify.Time)
			if got.Rule != tt.rule || (got.Status == verify.Proved) != (tt.rule == "") || !strings.Contains(got.Reason, tt.says) {
				t.Errorf("%+v; want rule %q, saying %q", got, tt.rule, tt.says)
			}
		})
	}
}

// TestRevokedAuthorityBesideAnother: a revoked authority does not weaken another authority's token.
func TestRevokedAuthorityBesideAnother(t *testing.T) {
	r, o, root, rootKey := stampedElsewhere(t)
	other, otherRoot := laterToken(t, r)
	r.Timestamps = append(r.Timestamps, other)
	o.Trust = withAuthority(o.Trust, otherRoot)
	o.CRLs = []*x509.RevocationList{signList(t, &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: stamped, NextUpdate: stamped.AddDate(0, 1, 0),
		RevokedCertificateEntries: []x509.RevocationListEntry{revocationOf(6, stamped, 1)}}, root, rootKey)}
	report := verify.Record(r, o)
	if at, ok := report.TimeOf(r.Payload.RecordID); !ok || at.Authority != "second" || report.Of(verify.Time).Status != verify.Proved {
		t.Errorf("%+v, %+v", at, report.Of(verify.Time))
	}
}

// TestAuthorityKnownTwice: the checker tries each authority in turn, until one accepts the token.
func TestAuthorityKnownTwice(t *testing.T) {
	r, o, _, _ := stampedElsewhere(t)
	token := must.Get(timestamp.Parse(r.Timestamps[0].Token))(t)
	itself := trust.Authority{Name: "itself", Certificate: token.UnverifiedInfo().Certificates[0].Raw, Clock: trust.Independent}
	for _, reverse := range []bool{false, true} {
		o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) {
			trusted.Authorities = append(trusted.Authorities[:1:1], itself) // the first has no list that shows that it is not revoked
			if reverse {
				slices.Reverse(trusted.Authorities)
			}
		})
		report := verify.Record(r, o)
		if at, ok := report.TimeOf(r.Payload.RecordID); !ok || at.Authority != "itself" || report.Of(verify.Time).Status != verify.Proved {
			t.Errorf("%+v, %+v", at, report.Of(verify.Time))
		}
	}
}

// TestWeakListSignature: a list with a weak digest proves nothing.
func TestWeakListSignature(t *testing.T) {
	r, o, root, rootKey := stampedElsewhere(t)
	template := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: stamped, NextUpdate: stamped.AddDate(0, 1, 0)}
	for _, tt := range []struct {
		algorithm x509.SignatureAlgorithm
		rule      string
	}{{x509.ECDSAWithSHA256, ""}, {x509.ECDSAWithSHA1, "revocation"}} {
		template.SignatureAlgorithm = tt.algorithm
		o.CRLs = []*x509.RevocationList{signList(t, template, root, rootKey)}
		if got := verify.Record(r, o).Of(verify.Time); got.Rule != tt.rule {
			t.Errorf("%s: %+v", tt.algorithm, got)
		}
	}
}

// TestKeyRevoked: after the revocation date a thief may have the key. Then only an independent clock shows that the
// record is older.
func TestKeyRevoked(t *testing.T) {
	for _, tt := range []struct {
		name    string
		clock   trust.Clock
		revoked time.Time
		stamps  bool
		proved  bool
	}{
		{"afterwards", trust.Independent, stamped.Add(time.Second), true, true},
		{"just then", trust.Independent, stamped, true, false},
		{"before", trust.Independent, stamped.Add(-time.Second), true, false},
		{"afterwards, by the operator's clock", trust.OperatorClock, stamped.Add(time.Hour), true, false},
		{"afterwards, without a time", trust.Independent, stamped.Add(time.Hour), false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, o := standalone(t, output("a"))
			o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) {
				trusted.Keys[0].Revoked, trusted.Keys[0].Custody = tt.revoked, trust.ByOwner
				trusted.Authorities[0].Clock = tt.clock
			})
			if !tt.stamps {
				r.Timestamps = nil
			}
			report := verify.Record(r, o)
			for _, g := range []verify.Guarantee{verify.Authentication, verify.NonRepudiation} {
				got := report.Of(g)
				if tt.proved && got.Status != verify.Proved || !tt.proved && (got.Status != verify.NotProved || got.Rule != "revoked") {
					t.Errorf("%+v", got)
				}
			}
			if got := report.Of(verify.Content); got.Status != verify.Proved {
				t.Errorf("a revoked key must not change the answer on the content: %+v", got)
			}
		})
	}
}
