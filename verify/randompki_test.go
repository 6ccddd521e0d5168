package verify_test

import (
	"crypto/ecdsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/test/must"
	"jurat/verify"
	"jurat/verify/trust"
)

// A randomPKI is a root, CAs below it, a signer, and the lists of all issuers, with faults by chance.
type randomPKI struct {
	random       *rand.Rand
	certificates []*x509.Certificate // the root first, the signer last
	keys         []*ecdsa.PrivateKey
	lists        []*x509.RevocationList
	faults       []string
}

// fault reports, rarely, that something is to be wrong.
func (p *randomPKI) fault(name string, at int) bool {
	if p.random.IntN(40) > 0 {
		return false
	}
	p.faults = append(p.faults, fmt.Sprintf("%s of %d", name, at))
	return true
}

// ca is a template of a CA. OpenSSL and jurat ask the same of it: dates, rights, path length, names, critical extensions.
func (p *randomPKI) ca(at int) *x509.Certificate {
	c := caTemplate(fmt.Sprintf("CA %d", at), int64(at+1))
	c.NotBefore, c.NotAfter = stamped.AddDate(0, -1-p.random.IntN(20), 0), stamped.AddDate(0, 1+p.random.IntN(20), 0)
	switch p.random.IntN(6) {
	case 0:
		c.MaxPathLen, c.MaxPathLenZero = 0, true
	case 1:
		c.MaxPathLen = 1 + p.random.IntN(2)
	}
	switch p.random.IntN(6) {
	case 0:
		c.UnknownExtKeyUsage = []asn1.ObjectIdentifier{oidDocumentSigning}
	case 1:
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny}
	case 2:
		c.PermittedDNSDomains, c.PermittedDNSDomainsCritical = []string{"example.com"}, true // a signer has no such name
	}
	if at > 0 {
		p.spoilCA(c, at)
	}
	p.spoil(c, at)
	return c
}

func (p *randomPKI) spoilCA(c *x509.Certificate, at int) {
	switch {
	case p.fault("no CA", at):
		c.IsCA, c.MaxPathLen, c.MaxPathLenZero = false, 0, false
	case p.fault("no right to certify", at):
		c.KeyUsage = x509.KeyUsageCRLSign
	case p.fault("no right to list", at):
		c.KeyUsage = x509.KeyUsageCertSign
	case p.fault("other names only", at):
		c.PermittedURIDomains, c.PermittedDNSDomainsCritical = []string{"example.com"}, true
	}
}

// spoil breaks what every certificate has.
func (p *randomPKI) spoil(c *x509.Certificate, at int) {
	switch {
	case p.fault("expiry", at):
		c.NotAfter = stamped.Add(-time.Duration(1+p.random.IntN(1000)) * time.Second)
	case p.fault("beginning", at):
		c.NotBefore = stamped.Add(time.Duration(1+p.random.IntN(1000)) * time.Second)
	case at > 0 && p.fault("critical extension", at):
		c.ExtraExtensions = []pkix.Extension{extension(true)}
	}
}

// signed makes the next certificate. If it is to be forged, another key of the issuer's name signs it.
func (p *randomPKI) signed(t *testing.T, template *x509.Certificate, public any) {
	t.Helper()
	n := len(p.certificates)
	if n == 0 {
		p.certificates = append(p.certificates, certify(t, template, public, template, p.keys[0]))
		return
	}
	issuer, key := p.certificates[n-1], p.keys[n-1]
	if p.fault("forged certificate", n) {
		key = newKey(t)
	}
	by := caTemplate(issuer.Subject.CommonName, 1) // crypto/x509 refuses to sign with a CA that may not
	p.certificates = append(p.certificates, certify(t, template, public, certify(t, by, key.Public(), by, key), key))
}

// list makes the list of a CA.
func (p *randomPKI) list(t *testing.T, at int) {
	t.Helper()
	if p.fault("no list", at) {
		return
	}
	template := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: stamped.Add(-time.Hour), NextUpdate: stamped.Add(time.Hour),
		RevokedCertificateEntries: []x509.RevocationListEntry{revocationOf(999, stamped.Add(-time.Hour), 1)}}
	name, key := p.certificates[at].Subject.CommonName, p.keys[at]
	switch {
	case p.fault("revoked child", at):
		template.RevokedCertificateEntries = append(template.RevokedCertificateEntries, revocationOf(int64(at+2), stamped.Add(-time.Hour), 1+p.random.IntN(5)))
	case p.fault("stale list", at):
		template.NextUpdate = stamped.Add(-time.Second)
	case p.fault("early list", at):
		template.ThisUpdate = stamped.Add(time.Second)
	case p.fault("forged list", at):
		key = newKey(t)
	case p.fault("list of another", at):
		name = "nobody"
	case p.fault("critical extension of a list", at):
		template.ExtraExtensions = []pkix.Extension{extension(true)}
	case p.fault("delta list", at):
		template.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 27}, Critical: true, Value: []byte{2, 1, 1}}}
	}
	by := caTemplate(name, 1)
	p.lists = append(p.lists, signList(t, template, certify(t, by, key.Public(), by, key), key))
}

func newRandomPKI(t *testing.T, seed uint64, public any) *randomPKI {
	t.Helper()
	p := &randomPKI{random: rand.New(rand.NewPCG(seed, 7))}
	depth := 1 + p.random.IntN(4)
	for at := range depth {
		p.keys = append(p.keys, newKey(t))
		p.signed(t, p.ca(at), p.keys[at].Public())
	}
	signer := newWorld().signer
	signer.SerialNumber = big.NewInt(int64(depth + 1))
	signer.ExtraExtensions = []pkix.Extension{actorName(t, "urn:jurat:agent:a")}
	p.spoilNames(signer, depth)
	p.signed(t, signer, public)
	for at := range depth {
		p.list(t, at)
	}
	return p
}

// spoilNames breaks a signer's dates only: an extension of its own would replace its name.
func (p *randomPKI) spoilNames(c *x509.Certificate, at int) {
	names := c.ExtraExtensions
	p.spoil(c, at)
	if len(c.ExtraExtensions) == 1 && !c.ExtraExtensions[0].Id.Equal(names[0].Id) {
		c.ExtraExtensions = append(names, c.ExtraExtensions...)
	}
}

// actorName is the extension with an actor's URI.
func actorName(t *testing.T, uri string) pkix.Extension {
	t.Helper()
	value := must.Get(asn1.Marshal([]asn1.RawValue{{Class: asn1.ClassContextSpecific, Tag: 6, Bytes: []byte(uri)}}))(t)
	return pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: value}
}

// TestRandomPKIs: on random hierarchies jurat says what OpenSSL says.
func TestRandomPKIs(t *testing.T) {
	r, o, public := certifiedRecord(t, output("a"))
	found := map[bool]int{}
	many, _, _ := chanceOfTest(t, 40, 200)
	for seed := range uint64(many) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := newRandomPKI(t, seed, public)
			record := *r
			for _, c := range p.certificates[1:] {
				record.Certificates = append([][]byte{c.Raw}, record.Certificates...)
			}
			reader := o
			reader.At, reader.CRLs = stamped, p.lists
			reader.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) {
				trusted.Keys, trusted.Authorities[0].Clock = nil, trust.Independent
				trusted.CAs = []trust.CA{{Name: "root", Certificate: p.certificates[0].Raw, Roles: []evidence.Role{evidence.RoleAgent}, Custody: trust.ByOwner}}
			})
			got := verify.Record(&record, reader).Of(verify.Authentication)
			last := len(p.certificates) - 1
			lists := append([]*x509.RevocationList{}, p.lists...)
			says := opensslAccepts(t, p.certificates[0], p.certificates[1:last], lists, p.certificates[last])[0]
			if found[says]++; says != (got.Status == verify.Proved) {
				t.Errorf("depth %d, faults %q: openssl says %v, jurat %+v", len(p.certificates)-1, p.faults, says, got)
			}
		})
	}
	must.Hold(t, found[true] >= many/4 && found[false] >= many/4,
		"OpenSSL accepts %d and refuses %d: the faults are too rare or too frequent", found[true], found[false])
}
