package trustlist

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"jurat/internal/must"
)

// A draft is a list under construction, in which a test can change anything.
type draft struct {
	declaration, root, kind, territory, issued, uris, pointers, providers, tail string

	signatureID, target, transforms, propertiesTransforms, uri, propertiesURI string
	canonicalization, scheme, digest, named, namedDigest, keyInfo, object     string
	propertiesType                                                            string

	key         crypto.Signer
	certificate []byte
}

const transform = `<ds:Transform Algorithm="%s"></ds:Transform>`

func newDraft(t testing.TB) *draft {
	key := testKey(t, "operator")
	certificate := selfSigned(t, "operator", key)
	return &draft{
		declaration: `<?xml version="1.0" encoding="UTF-8"?>`,
		root:        `Id="root" xml:lang="en" xmlns:x="urn:unused"`,
		kind:        NationalList, territory: "QQ", issued: "2026-05-01T10:00:00Z",
		providers: provider("Notary &amp; Söhne", service(timeStamps, selfSigned(t, "tsu", testKey(t, "tsu")),
			state{granted, "2017-01-01T00:00:00Z"})),

		propertiesType: ` Type="` + propertiesType + `"`,
		signatureID:    "sig", target: "#sig", uri: "", propertiesURI: "#properties",
		transforms:           fmt.Sprintf(transform+transform, enveloped, exclusiveMethod),
		propertiesTransforms: "<ds:Transforms>" + fmt.Sprintf(transform, exclusiveMethod) + "</ds:Transforms>",
		canonicalization:     exclusiveMethod,
		scheme:               "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256",
		digest:               "http://www.w3.org/2001/04/xmlenc#sha256",
		named:                "SigningCertificateV2",
		namedDigest:          digestValue(crypto.SHA256, certificate),
		keyInfo:              fmt.Sprintf("<ds:X509Data><ds:X509Certificate>%s</ds:X509Certificate></ds:X509Data>", base64.StdEncoding.EncodeToString(certificate)),
		key:                  key, certificate: certificate,
	}
}

func digestValue(hash crypto.Hash, content []byte) string {
	uri := sha1Digest
	for name, h := range digests {
		if h == hash {
			uri = name
		}
	}
	return fmt.Sprintf(`<ds:DigestMethod Algorithm="%s"></ds:DigestMethod><ds:DigestValue>%s</ds:DigestValue>`, uri, base64.StdEncoding.EncodeToString(sum(hash, content)))
}

// signers returns the signers that a reader of the draft trusts.
func (d *draft) signers() Signers { return Signers{sha256.Sum256(d.certificate)} }

// template returns the list with placeholders for the values that signing computes.
func (d *draft) template() string {
	return d.declaration + `<TrustServiceStatusList xmlns="` + tsl + `" ` + d.root + `>
<SchemeInformation><TSLVersionIdentifier>6</TSLVersionIdentifier><TSLSequenceNumber>7</TSLSequenceNumber><TSLType>` + d.kind + `</TSLType>
<SchemeInformationURI>` + d.uris + `</SchemeInformationURI><SchemeTerritory> ` + d.territory + ` </SchemeTerritory>
<PointersToOtherTSL>` + d.pointers + `</PointersToOtherTSL><ListIssueDateTime>` + d.issued + `</ListIssueDateTime>
<NextUpdate><dateTime>2026-10-01T00:00:00Z</dateTime></NextUpdate></SchemeInformation>
<TrustServiceProviderList>` + d.providers + `</TrustServiceProviderList>` + d.signature() + `</TrustServiceStatusList>` + d.tail
}

func (d *draft) signature() string {
	method := `<ds:DigestMethod Algorithm="` + d.digest + `"></ds:DigestMethod>`
	return `<ds:Signature xmlns:ds="` + dsig + `" Id="` + d.signatureID + `"><ds:SignedInfo>
<ds:CanonicalizationMethod Algorithm="` + d.canonicalization + `"></ds:CanonicalizationMethod><ds:SignatureMethod Algorithm="` + d.scheme + `"></ds:SignatureMethod>
<ds:Reference URI="` + d.uri + `"><ds:Transforms>` + d.transforms + `</ds:Transforms>` + method + `<ds:DigestValue>@LIST@</ds:DigestValue></ds:Reference>
<ds:Reference` + d.propertiesType + ` URI="` + d.propertiesURI + `">` + d.propertiesTransforms + method + `<ds:DigestValue>@PROPERTIES@</ds:DigestValue></ds:Reference>
</ds:SignedInfo><ds:SignatureValue>@VALUE@</ds:SignatureValue><ds:KeyInfo>` + d.keyInfo + `</ds:KeyInfo>
<ds:Object><xades:QualifyingProperties xmlns:xades="` + xades + `" Target="` + d.target + `"><xades:SignedProperties Id="properties"><xades:SignedSignatureProperties>
<xades:SigningTime>2026-05-01T10:00:00Z</xades:SigningTime><xades:` + d.named + `><xades:Cert><xades:CertDigest>` + d.namedDigest + `</xades:CertDigest></xades:Cert></xades:` + d.named + `>
</xades:SignedSignatureProperties></xades:SignedProperties></xades:QualifyingProperties>` + d.object + `</ds:Object></ds:Signature>`
}

// build signs the draft unchanged, with this package's own canonical forms.
func (d *draft) build(t testing.TB) []byte {
	t.Helper()
	text := d.template()
	root, err := parseXML([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	form := exclusive
	if d.propertiesTransforms == "" {
		form = inclusive
	}
	signature := find(root, "Signature")
	hash := digests[d.digest]
	hash = cmp.Or(hash, crypto.SHA1)
	text = fill(text, "@LIST@", sum(hash, canonical(root, exclusive, signature)))
	text = fill(text, "@PROPERTIES@", sum(hash, canonical(find(root, "SignedProperties"), form, nil)))
	root = must.Get(parseXML([]byte(text)))(t)
	return []byte(fill(text, "@VALUE@", d.sign(t, canonical(find(root, "SignedInfo"), exclusive, nil))))
}

func fill(text, place string, value []byte) string {
	return strings.Replace(text, place, base64.StdEncoding.EncodeToString(value), 1)
}

func find(e *element, local string) *element {
	if e.local == local {
		return e
	}
	for _, child := range e.children {
		if child.element != nil {
			if found := find(child.element, local); found != nil {
				return found
			}
		}
	}
	return nil
}

func (d *draft) sign(t testing.TB, message []byte) []byte {
	t.Helper()
	by := schemes[d.scheme]
	by.hash = cmp.Or(by.hash, crypto.SHA1)
	digest := sum(by.hash, message)
	switch key := d.key.(type) {
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, key, digest)
		if err != nil {
			t.Fatal(err)
		}
		size := (key.Params().N.BitLen() + 7) / 8
		return append(r.FillBytes(make([]byte, size)), s.FillBytes(make([]byte, size))...)
	case *rsa.PrivateKey:
		var options crypto.SignerOpts = by.hash
		if strings.HasSuffix(d.scheme, "MGF1") {
			options = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: by.hash}
		}
		return must.Get(key.Sign(rand.Reader, digest, options))(t)
	}
	t.Fatalf("%T", d.key)
	return nil
}

// by signs the draft with another key.
func (d *draft) by(t testing.TB, scheme, digest string, key crypto.Signer) *draft {
	d.scheme, d.digest, d.key = scheme, digest, key
	d.certificate = selfSigned(t, "operator", key)
	d.namedDigest = digestValue(crypto.SHA512, d.certificate)
	d.keyInfo = fmt.Sprintf("<ds:X509Data><ds:X509Certificate>%s</ds:X509Certificate></ds:X509Data>", base64.StdEncoding.EncodeToString(d.certificate))
	return d
}

// testKey returns the same P-256 key for the same name.
func testKey(t testing.TB, name string) crypto.Signer {
	t.Helper()
	scalar := sha256.Sum256([]byte(name))
	return must.Get(ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar[:]))(t)
}

func selfSigned(t testing.TB, name string, key crypto.Signer) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name, Country: []string{"QQ"}},
		NotBefore: time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	return must.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
}

// What a verifier knows: see package trust.
const (
	timeStamps = "http://uri.etsi.org/TrstSvc/Svctype/TSA/QTST"
	granted    = "http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/granted"
)

// state is a status with the time that it began.
type state struct{ status, from string }

func provider(name string, services ...string) string {
	return `<TrustServiceProvider><TSPInformation><TSPName><Name xml:lang="en">` + name + `</Name></TSPName></TSPInformation><TSPServices>` +
		strings.Join(services, "\n") + `</TSPServices></TrustServiceProvider>`
}

// service writes a service with its states, newest first.
func service(kind string, certificate []byte, states ...state) string {
	identity := `<ServiceDigitalIdentity><DigitalId><X509Certificate>` + base64.StdEncoding.EncodeToString(certificate) + `</X509Certificate></DigitalId></ServiceDigitalIdentity>`
	instance := func(s state) string {
		return `<ServiceTypeIdentifier>` + kind + `</ServiceTypeIdentifier><ServiceName><Name xml:lang="en">a service</Name></ServiceName>` +
			identity + `<ServiceStatus>` + s.status + `</ServiceStatus><StatusStartingTime>` + s.from + `</StatusStartingTime>`
	}
	text := `<TSPService><ServiceInformation>` + instance(states[0]) + `</ServiceInformation><ServiceHistory>`
	for _, past := range states[1:] {
		text += `<ServiceHistoryInstance>` + instance(past) + `</ServiceHistoryInstance>`
	}
	return text + `</ServiceHistory></TSPService>`
}
