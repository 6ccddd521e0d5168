package verify_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"net/url"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/verify"
	"jurat/verify/trust"
)

// stamped is the time of a House's records: its authority is the mock.
var stamped = jurattest.Start

var oidDocumentSigning = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 36}

// certify signs a certificate. If parent and key are the certificate's own, it is a root.
func certify(t testing.TB, template *x509.Certificate, public crypto.PublicKey, by *x509.Certificate, key crypto.Signer) *x509.Certificate {
	t.Helper()
	der := must.Get(x509.CreateCertificate(rand.Reader, template, by, public, key))(t)
	return must.Get(x509.ParseCertificate(der))(t)
}

func caTemplate(name string, serial int64) *x509.Certificate {
	return &x509.Certificate{Subject: pkix.Name{CommonName: name}, SerialNumber: big.NewInt(serial), NotBefore: stamped.AddDate(-1, 0, 0),
		NotAfter: stamped.AddDate(2, 0, 0), BasicConstraintsValid: true, IsCA: true, MaxPathLen: -1,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}
}

// A world is a record with a root that vouches for its signer through an issuing CA. A test changes one thing in it.
type world struct {
	actor   string // whom the signer's certificate names
	root    *x509.Certificate
	issuing *x509.Certificate // the other two are templates as well
	signer  *x509.Certificate
	lists   []*x509.RevocationList // templates of the root's and the issuing CA's
	trusted trust.CA
	clock   trust.Clock
	at      time.Time

	forgeIssuing bool // the issuing CA's certificate is not by the root
	forgeLists   bool // the lists are by others of the same names
	finish       func(*world, *evidence.Record, *verify.Options)

	made made
}

// made holds what build made from the templates.
type made struct {
	root, issuing, signer *x509.Certificate
	rootKey, issuingKey   *ecdsa.PrivateKey
	lists                 []*x509.RevocationList
}

func newWorld() *world {
	list := func() *x509.RevocationList {
		return &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: stamped.Add(-time.Hour), NextUpdate: stamped.Add(48 * time.Hour)}
	}
	return &world{actor: "urn:jurat:agent:a", root: caTemplate("root", 1), issuing: caTemplate("issuing", 2),
		signer: &x509.Certificate{Subject: pkix.Name{CommonName: "signer"}, SerialNumber: big.NewInt(3), NotBefore: stamped.AddDate(0, -1, 0),
			NotAfter: stamped.AddDate(1, 0, 0), KeyUsage: x509.KeyUsageDigitalSignature,
			UnknownExtKeyUsage: []asn1.ObjectIdentifier{oidDocumentSigning}},
		lists:   []*x509.RevocationList{list(), list()},
		trusted: trust.CA{Name: "Root CA", Roles: []evidence.Role{evidence.RoleAgent}, Custody: trust.ByOwner},
		clock:   trust.Independent, at: stamped.Add(24 * time.Hour)}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	return must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
}

// build makes certificates and lists from the templates, and puts them into the record and the options.
func (w *world) build(t testing.TB, r *evidence.Record, o verify.Options, public crypto.PublicKey) verify.Options {
	t.Helper()
	if w.actor != "" {
		uri := must.Get(url.Parse(w.actor))(t)
		w.signer.URIs = append(w.signer.URIs, uri)
	}
	rootKey, issuingKey := newKey(t), newKey(t)
	root := certify(t, w.root, rootKey.Public(), w.root, rootKey)
	certifier := rootKey
	if w.forgeIssuing {
		certifier = newKey(t)
	}
	// The signer here is a root with all rights: crypto/x509 refuses to make some certificates that the tests need.
	parent := certify(t, caTemplate(w.root.Subject.CommonName, 1), certifier.Public(), caTemplate(w.root.Subject.CommonName, 1), certifier)
	issuing := certify(t, w.issuing, issuingKey.Public(), parent, certifier)
	signer := certify(t, w.signer, public, issuing, issuingKey)

	w.made = made{root: root, issuing: issuing, signer: signer, rootKey: rootKey, issuingKey: issuingKey}
	for i, key := range []*ecdsa.PrivateKey{rootKey, issuingKey} {
		if i >= len(w.lists) || w.lists[i] == nil {
			continue
		}
		if w.forgeLists {
			key = newKey(t)
		}
		template := caTemplate([]string{w.root.Subject.CommonName, w.issuing.Subject.CommonName}[i], 1)
		by := certify(t, template, key.Public(), template, key)
		w.made.lists = append(w.made.lists, signList(t, w.lists[i], by, key))
	}
	r.Certificates = [][]byte{signer.Raw, issuing.Raw}
	w.trusted.Certificate = root.Raw
	o.At, o.CRLs = w.at, w.made.lists
	o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) {
		trusted.Keys, trusted.CAs = nil, []trust.CA{w.trusted}
		trusted.Authorities[0].Clock = w.clock
	})
	if w.finish != nil {
		w.finish(w, r, &o)
	}
	return o
}

func signList(t testing.TB, template *x509.RevocationList, by *x509.Certificate, key crypto.Signer) *x509.RevocationList {
	t.Helper()
	der := must.Get(x509.CreateRevocationList(rand.Reader, template, by, key))(t)
	return must.Get(trust.ParseCRL(der))(t)
}

// reread is the trust as its file has it.
func reread(t testing.TB, trusted *trust.Trust) *trust.Trust {
	t.Helper()
	return must.Get(trust.Parse(must.Get(trusted.Marshal())(t)))(t)
}

// changedTrust returns a changed copy of a trust file, parsed again.
func changedTrust(t testing.TB, trusted *trust.Trust, change func(*trust.Trust)) *trust.Trust {
	t.Helper()
	parsed := reread(t, trusted)
	change(parsed)
	return reread(t, parsed)
}

// certifiedRecord is a record, what its House trusts, and the key of its signer.
func certifiedRecord(t *testing.T, p evidence.Payload) (*evidence.Record, verify.Options, crypto.PublicKey) {
	t.Helper()
	r, o := standalone(t, p)
	public := must.Get(evidence.ParsePublicKey(o.Trust.Key(r.Payload.Signers[0].KeyID).PublicKey))(t)
	return r, o, public
}

// extension makes an unknown extension.
func extension(critical bool) pkix.Extension {
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 99999, 1}, Critical: critical, Value: []byte{5, 0}}
}

// revocationOf makes a list's entry. The reason 0 is left out.
func revocationOf(serial int64, when time.Time, reason int, extensions ...pkix.Extension) x509.RevocationListEntry {
	return x509.RevocationListEntry{SerialNumber: big.NewInt(serial), RevocationTime: when, ReasonCode: max(reason, 0), ExtraExtensions: extensions}
}

// dateExtension is invalidityDate (24) of an entry, or expiredCertsOnCRL (60) of a list.
func dateExtension(t testing.TB, id int, when time.Time) pkix.Extension {
	t.Helper()
	value := must.Get(asn1.MarshalWithParams(when.UTC(), "generalized"))(t)
	return pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, id}, Value: value}
}
