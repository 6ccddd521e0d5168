// Package listtest writes trusted lists for tests, and signs them. It knows no canonical form: what it writes is in it as it stands.
package listtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"jurat/internal/must"
)

// A Signer signs lists: an operator of a scheme.
type Signer struct {
	Certificate []byte // DER
	key         *ecdsa.PrivateKey
}

// NewSigner makes a signer, the same key for the same name.
func NewSigner(t testing.TB, name string) *Signer {
	t.Helper()
	scalar := sha256.Sum256([]byte("listtest " + name))
	key := must.Get(ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar[:]))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	return &Signer{der, key}
}

// PEM is the signer's certificate, as the Official Journal publishes it.
func (s *Signer) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate})
}

// A List is a list to be written.
type List struct {
	Type, Territory string
	Sequence        int
	Issued, Next    string
	URIs            []string
	Pointers        []Pointer
	Services        []Service
}

// A Pointer names another list.
type Pointer struct {
	Location, Type, Territory string
	Signers                   []*Signer
}

// A Service is one of a provider of its own.
type Service struct {
	TSP, Name, Type string
	Trade           []string // further names of the provider
	Certificates    [][]byte
	States          []State // newest first
	Extension       string  // XML; empty: none
}

// A State is a status that began at a time.
type State struct{ Status, From string }

const (
	tsl   = "http://uri.etsi.org/02231/v2#"
	types = "http://uri.etsi.org/02231/v2/additionaltypes#"
	dsig  = "http://www.w3.org/2000/09/xmldsig#"
	xades = "http://uri.etsi.org/01903/v1.3.2#"
	c14n  = "http://www.w3.org/2001/10/xml-exc-c14n#"
)

// Sign writes the list with a signature.
func (l *List) Sign(t testing.TB, by *Signer) []byte {
	t.Helper()
	before, after := `<TrustServiceStatusList xmlns="`+tsl+`" Id="list">`+l.scheme()+l.providers(), `</TrustServiceStatusList>`
	properties := by.properties()
	info := `<ds:SignedInfo xmlns:ds="` + dsig + `">` + tag("ds:CanonicalizationMethod", c14n) + tag("ds:SignatureMethod", "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256") +
		`<ds:Reference URI=""><ds:Transforms>` + tag("ds:Transform", dsig+"enveloped-signature") + tag("ds:Transform", c14n) + `</ds:Transforms>` + digested(before+after) + `</ds:Reference>` +
		`<ds:Reference Type="http://uri.etsi.org/01903#SignedProperties" URI="#signed"><ds:Transforms>` + tag("ds:Transform", c14n) + `</ds:Transforms>` + digested(properties) + `</ds:Reference></ds:SignedInfo>`
	digest := sha256.Sum256([]byte(info))
	r, s, err := ecdsa.Sign(rand.Reader, by.key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	value := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	return []byte(before + `<ds:Signature xmlns:ds="` + dsig + `" Id="signature">` + info + `<ds:SignatureValue>` + base64.StdEncoding.EncodeToString(value) + `</ds:SignatureValue>` +
		`<ds:KeyInfo><ds:X509Data><ds:X509Certificate>` + base64.StdEncoding.EncodeToString(by.Certificate) + `</ds:X509Certificate></ds:X509Data></ds:KeyInfo>` +
		`<ds:Object><xades:QualifyingProperties xmlns:xades="` + xades + `" Target="#signature">` + properties + `</xades:QualifyingProperties></ds:Object></ds:Signature>` + after)
}

var filledIn = regexp.MustCompile(`(<ds:DigestValue>|<ds:SignatureValue>)[^<]*`)

// SignByXMLSec is Sign by the program xmlsec1, from a template without digests and signature.
func (l *List) SignByXMLSec(t testing.TB, by *Signer) []byte {
	t.Helper()
	folder := t.TempDir()
	write := func(name string, content []byte) string {
		file := filepath.Join(folder, name)
		must.Do(t, os.WriteFile(file, content, 0o600))
		return file
	}
	key := must.Get(x509.MarshalPKCS8PrivateKey(by.key))(t)
	out, err := exec.Command("xmlsec1", "--sign", "--privkey-pem", write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))+","+write("certificate.pem", by.PEM()),
		"--id-attr:Id", xades+":SignedProperties", "--id-attr:Id", tsl+":TrustServiceStatusList", write("template.xml", filledIn.ReplaceAll(l.Sign(t, by), []byte("$1")))).Output()
	if err != nil {
		t.Fatalf("xmlsec1: %v\n%s", err, out)
	}
	return out
}

func tag(name, algorithm string) string {
	return fmt.Sprintf(`<%s Algorithm="%s"></%s>`, name, algorithm, name)
}

func digested(text string) string {
	digest := sha256.Sum256([]byte(text))
	return tag("ds:DigestMethod", "http://www.w3.org/2001/04/xmlenc#sha256") + `<ds:DigestValue>` + base64.StdEncoding.EncodeToString(digest[:]) + `</ds:DigestValue>`
}

// properties are the signed properties in canonical form: each element declares its namespace where nothing around it does.
func (s *Signer) properties() string {
	named := strings.NewReplacer(`<ds:DigestMethod `, `<ds:DigestMethod xmlns:ds="`+dsig+`" `, `<ds:DigestValue>`, `<ds:DigestValue xmlns:ds="`+dsig+`">`).Replace(digested(string(s.Certificate)))
	return `<xades:SignedProperties xmlns:xades="` + xades + `" Id="signed"><xades:SignedSignatureProperties><xades:SigningTime>2026-05-01T10:00:00Z</xades:SigningTime>` +
		`<xades:SigningCertificateV2><xades:Cert><xades:CertDigest>` + named + `</xades:CertDigest></xades:Cert></xades:SigningCertificateV2></xades:SignedSignatureProperties></xades:SignedProperties>`
}

func (l *List) scheme() string {
	text := fmt.Sprintf("<SchemeInformation><TSLVersionIdentifier>6</TSLVersionIdentifier><TSLSequenceNumber>%d</TSLSequenceNumber><TSLType>%s</TSLType><SchemeInformationURI>", l.Sequence, l.Type)
	for _, uri := range l.URIs {
		text += `<URI xml:lang="en">` + uri + `</URI>`
	}
	text += `</SchemeInformationURI><SchemeTerritory>` + l.Territory + `</SchemeTerritory><PointersToOtherTSL>`
	for _, p := range l.Pointers {
		text += `<OtherTSLPointer><ServiceDigitalIdentities>`
		for _, s := range p.Signers {
			text += `<ServiceDigitalIdentity>` + identity(s.Certificate) + `</ServiceDigitalIdentity>`
		}
		text += `</ServiceDigitalIdentities><TSLLocation>` + p.Location + `</TSLLocation><AdditionalInformation><OtherInformation><TSLType>` + p.Type + `</TSLType></OtherInformation>` +
			`<OtherInformation><SchemeTerritory>` + p.Territory + `</SchemeTerritory></OtherInformation><OtherInformation><ns:MimeType xmlns:ns="` + types + `">application/vnd.etsi.tsl+xml</ns:MimeType></OtherInformation>` +
			`</AdditionalInformation></OtherTSLPointer>`
	}
	return text + `</PointersToOtherTSL><ListIssueDateTime>` + l.Issued + `</ListIssueDateTime><NextUpdate><dateTime>` + l.Next + `</dateTime></NextUpdate></SchemeInformation>`
}

func identity(certificate []byte) string {
	return `<DigitalId><X509Certificate>` + base64.StdEncoding.EncodeToString(certificate) + `</X509Certificate></DigitalId>`
}

func (l *List) providers() string {
	text := `<TrustServiceProviderList>`
	for _, s := range l.Services {
		text += `<TrustServiceProvider><TSPInformation><TSPName><Name xml:lang="en">` + s.TSP + `</Name></TSPName>` + s.trade() + `</TSPInformation><TSPServices><TSPService>`
		for i, state := range s.States {
			text += s.state(i, state)
		}
		if len(s.States) > 1 {
			text += `</ServiceHistory>`
		}
		text += `</TSPService></TSPServices></TrustServiceProvider>`
	}
	return text + `</TrustServiceProviderList>`
}

func (s *Service) trade() (text string) {
	for _, name := range s.Trade {
		text += `<Name xml:lang="en">` + name + `</Name>`
	}
	if text != "" {
		text = `<TSPTradeName>` + text + `</TSPTradeName>`
	}
	return text
}

func (s *Service) state(i int, state State) string {
	element, before := "ServiceHistoryInstance", ""
	switch i {
	case 0:
		element = "ServiceInformation"
	case 1:
		before = `<ServiceHistory>`
	}
	ids := ""
	for _, c := range s.Certificates {
		ids += identity(c)
	}
	extension := s.Extension
	if extension != "" {
		extension = `<ServiceInformationExtensions>` + extension + `</ServiceInformationExtensions>`
	}
	return before + `<` + element + `><ServiceTypeIdentifier>` + s.Type + `</ServiceTypeIdentifier><ServiceName><Name xml:lang="en">` + s.Name + `</Name></ServiceName><ServiceDigitalIdentity>` + ids +
		`</ServiceDigitalIdentity><ServiceStatus>` + state.Status + `</ServiceStatus><StatusStartingTime>` + state.From + `</StatusStartingTime>` + extension + `</` + element + `>`
}
