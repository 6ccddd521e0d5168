// Package listtest writes trusted lists for tests, and signs them. It knows no canonical form: what it writes is in it as it stands.
package listtest

import (
	"crypto"
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
	"text/template"
	"time"

	"jurat/internal/test/must"
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
	written := func(signature string) string {
		var text strings.Builder
		must.Do(t, form.Execute(&text, struct {
			*List
			Signature string
		}{l, signature}))
		return text.String()
	}
	properties := by.properties()
	info := `<ds:SignedInfo xmlns:ds="` + dsig + `">` + tag("ds:CanonicalizationMethod", c14n) + tag("ds:SignatureMethod", "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256") +
		`<ds:Reference URI=""><ds:Transforms>` + tag("ds:Transform", dsig+"enveloped-signature") + tag("ds:Transform", c14n) + `</ds:Transforms>` + digested(written("")) + `</ds:Reference>` +
		`<ds:Reference Type="http://uri.etsi.org/01903#SignedProperties" URI="#signed"><ds:Transforms>` + tag("ds:Transform", c14n) + `</ds:Transforms>` + digested(properties) + `</ds:Reference></ds:SignedInfo>`
	digest := sha256.Sum256([]byte(info))
	r, s, err := ecdsa.Sign(rand.Reader, by.key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	value := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	return []byte(written(`<ds:Signature xmlns:ds="` + dsig + `" Id="signature">` + info + `<ds:SignatureValue>` + encoded(value) + `</ds:SignatureValue>` +
		`<ds:KeyInfo><ds:X509Data><ds:X509Certificate>` + encoded(by.Certificate) + `</ds:X509Certificate></ds:X509Data></ds:KeyInfo><ds:Object>` +
		`<xades:QualifyingProperties xmlns:xades="` + xades + `" Target="#signature">` + properties + `</xades:QualifyingProperties></ds:Object></ds:Signature>`))
}

var encoded = base64.StdEncoding.EncodeToString
var filledIn = regexp.MustCompile(`(<ds:DigestValue>|<ds:SignatureValue>)[^<]*`)

// SignByXMLSec is Sign by the program xmlsec1.
func (l *List) SignByXMLSec(t testing.TB, by *Signer) []byte {
	t.Helper()
	return FillByXMLSec(t, filledIn.ReplaceAll(l.Sign(t, by), []byte("$1")), by.key, by.Certificate)
}

// FillByXMLSec has xmlsec1 sign a template, which is a list without digests and signature.
func FillByXMLSec(t testing.TB, template []byte, key crypto.Signer, certificate []byte) []byte {
	t.Helper()
	folder := t.TempDir()
	write := func(name string, content []byte) string {
		file := filepath.Join(folder, name)
		must.Do(t, os.WriteFile(file, content, 0o600))
		return file
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must.Get(x509.MarshalPKCS8PrivateKey(key))(t)})
	keys := write("key.pem", private) + "," + write("certificate.pem", (&Signer{Certificate: certificate}).PEM())
	out, err := exec.Command("xmlsec1", "--sign", "--privkey-pem", keys, "--id-attr:Id", xades+":SignedProperties",
		"--id-attr:Id", tsl+":TrustServiceStatusList", write("template.xml", template)).Output()
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
	return tag("ds:DigestMethod", "http://www.w3.org/2001/04/xmlenc#sha256") + `<ds:DigestValue>` + encoded(digest[:]) + `</ds:DigestValue>`
}

// properties are the signed properties in canonical form: each element declares its namespace where nothing around it does.
func (s *Signer) properties() string {
	named := strings.NewReplacer(`<ds:DigestMethod `, `<ds:DigestMethod xmlns:ds="`+dsig+`" `, `<ds:DigestValue>`, `<ds:DigestValue xmlns:ds="`+dsig+`">`).Replace(digested(string(s.Certificate)))
	return `<xades:SignedProperties xmlns:xades="` + xades + `" Id="signed"><xades:SignedSignatureProperties><xades:SigningTime>2026-05-01T10:00:00Z</xades:SigningTime>` +
		`<xades:SigningCertificateV2><xades:Cert><xades:CertDigest>` + named + `</xades:CertDigest></xades:Cert></xades:SigningCertificateV2></xades:SignedSignatureProperties></xades:SignedProperties>`
}

// form is a list in canonical form. What stands in place of its signature is written as it is.
var form = template.Must(template.New("").Funcs(template.FuncMap{"base64": encoded}).Parse(
	`<TrustServiceStatusList xmlns="` + tsl + `" Id="list"><SchemeInformation><TSLVersionIdentifier>6</TSLVersionIdentifier>
<TSLSequenceNumber>{{.Sequence}}</TSLSequenceNumber><TSLType>{{.Type}}</TSLType>
<SchemeInformationURI>{{range .URIs}}<URI xml:lang="en">{{.}}</URI>{{end}}</SchemeInformationURI><SchemeTerritory>{{.Territory}}</SchemeTerritory>
<PointersToOtherTSL>{{range .Pointers}}<OtherTSLPointer><ServiceDigitalIdentities>{{range .Signers}}<ServiceDigitalIdentity>
{{template "identity" .Certificate}}</ServiceDigitalIdentity>{{end}}</ServiceDigitalIdentities><TSLLocation>{{.Location}}</TSLLocation>
<AdditionalInformation><OtherInformation><TSLType>{{.Type}}</TSLType></OtherInformation>
<OtherInformation><SchemeTerritory>{{.Territory}}</SchemeTerritory></OtherInformation>
<OtherInformation><ns:MimeType xmlns:ns="` + types + `">application/vnd.etsi.tsl+xml</ns:MimeType></OtherInformation>
</AdditionalInformation></OtherTSLPointer>{{end}}</PointersToOtherTSL>
<ListIssueDateTime>{{.Issued}}</ListIssueDateTime><NextUpdate><dateTime>{{.Next}}</dateTime></NextUpdate></SchemeInformation>
<TrustServiceProviderList>{{range $s := .Services}}<TrustServiceProvider><TSPInformation><TSPName><Name xml:lang="en">{{.TSP}}</Name></TSPName>
{{with .Trade}}<TSPTradeName>{{range .}}<Name xml:lang="en">{{.}}</Name>{{end}}</TSPTradeName>{{end}}</TSPInformation><TSPServices><TSPService>
{{range $i, $state := .States}}{{if eq $i 1}}<ServiceHistory>{{end}}<{{template "state" $i}}>
<ServiceTypeIdentifier>{{$s.Type}}</ServiceTypeIdentifier><ServiceName><Name xml:lang="en">{{$s.Name}}</Name></ServiceName>
<ServiceDigitalIdentity>{{range $s.Certificates}}{{template "identity" .}}{{end}}</ServiceDigitalIdentity>
<ServiceStatus>{{.Status}}</ServiceStatus><StatusStartingTime>{{.From}}</StatusStartingTime>
{{with $s.Extension}}<ServiceInformationExtensions>{{.}}</ServiceInformationExtensions>{{end}}</{{template "state" $i}}>{{end}}
{{if gt (len .States) 1}}</ServiceHistory>{{end}}</TSPService></TSPServices></TrustServiceProvider>{{end}}</TrustServiceProviderList>
{{.Signature}}</TrustServiceStatusList>` +
		`{{define "identity"}}<DigitalId><X509Certificate>{{base64 .}}</X509Certificate></DigitalId>{{end}}` +
		`{{define "state"}}{{if .}}ServiceHistoryInstance{{else}}ServiceInformation{{end}}{{end}}`))
