package eulist

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
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jurat/internal/test/listtest"
	"jurat/internal/test/must"
)

// judge skips the test if an outside program is not installed. In CI it fails the test.
func judge(t testing.TB, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	must.Need(t, os.Getenv("CI") != "true", "%s is not installed, and CI must run this test", program)
	t.Skipf("%s is not installed; this test compares results with it", program)
}

// xmlsecVerifies asks xmlsec1 whether a signature is valid, under any key.
func xmlsecVerifies(t testing.TB, list []byte) (bool, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "list.xml")
	must.Do(t, os.WriteFile(file, list, 0o600))
	out, err := exec.Command("xmlsec1", "--verify", "--insecure", "--id-attr:Id", xades+":SignedProperties", "--id-attr:Id", tsl+":TrustServiceStatusList", file).CombinedOutput()
	return err == nil, string(out)
}

// TestXMLSecOnRealLists: xmlsec1 and this package give the same answer on published lists, and on the lists with one
// byte changed.
func TestXMLSecOnRealLists(t *testing.T) {
	judge(t, "xmlsec1")
	for _, name := range []string{"eu-lotl-old.xml", "eu-lotl-pivot-282.xml", "eu-lotl-pivot-300.xml", "eu-lotl-pivot-335.xml", "eu-lotl-pivot-341.xml", "eu-lotl.xml", "tsl-be-v6.xml", "tsl-ee.xml"} {
		raw := realFile(t, name)
		changed := []byte(strings.Replace(string(raw), "<SchemeOperatorName>", "<SchemeOperatorName> ", 1))
		for _, list := range [][]byte{raw, changed} {
			u, err := Parse(list)
			must.Do(t, err)
			_, err = u.Verify(u.itsOwn())
			holds, out := xmlsecVerifies(t, list)
			must.Hold(t, holds == (err == nil) && holds != (len(list) != len(raw)), "%s: here %v, xmlsec1 %s", name, err, out)
		}
	}
}

// TestXMLSec: xmlsec1 accepts signatures of this package, and this package accepts signatures of xmlsec1.
func TestXMLSec(t *testing.T) {
	judge(t, "xmlsec1")
	rsaKey := must.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
	p384 := must.Get(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))(t)
	const more, enc = "http://www.w3.org/2001/04/xmldsig-more#", "http://www.w3.org/2001/04/xmlenc#"
	for name, change := range map[string]func(*draft){
		"ecdsa-sha256":                 func(d *draft) {},
		"ecdsa-sha384":                 func(d *draft) { d.by(t, more+"ecdsa-sha384", more+"sha384", p384) },
		"ecdsa-sha512":                 func(d *draft) { d.by(t, more+"ecdsa-sha512", enc+"sha512", p384) },
		"rsa-sha256":                   func(d *draft) { d.by(t, more+"rsa-sha256", enc+"sha256", rsaKey) },
		"rsa-sha384":                   func(d *draft) { d.by(t, more+"rsa-sha384", enc+"sha512", rsaKey) },
		"rsa-sha512":                   func(d *draft) { d.by(t, more+"rsa-sha512", enc+"sha512", rsaKey) },
		"the root by its Id":           func(d *draft) { d.uri = "#root" },
		"properties without transform": func(d *draft) { d.propertiesTransforms = "" },
		"properties without transform and namespaces around": func(d *draft) {
			d.propertiesTransforms, d.root = "", `Id="root" xml:lang="en" xml:space="preserve" xmlns:b="urn:b" xmlns:a="urn:a"`
		},
		"odd XML": func(d *draft) {
			d.providers += "<!-- a comment --><a:b xmlns:a='urn:a' a:z='1' b='&lt;&#9;&quot;\t' xmlns='' ><c xmlns='urn:a'/><![CDATA[<&]]>\r\n&#xD;</a:b>"
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDraft(t)
			change(d)
			ours := d.build(t)
			template := strings.NewReplacer("@LIST@", "", "@PROPERTIES@", "", "@VALUE@", "").Replace(d.template())
			theirs := listtest.FillByXMLSec(t, []byte(template), d.key, d.certificate)
			for _, list := range [][]byte{ours, theirs} {
				holds, out := xmlsecVerifies(t, list)
				must.Hold(t, holds, "xmlsec1: %s", out)
				u, err := Parse(list)
				if err == nil {
					_, err = u.Verify(d.signers())
				}
				must.Hold(t, err == nil, "%v\n%s", err, list)
			}
		})
	}
}

// itsOwn returns the list's own signer as trusted: the test checks only whether the signature is valid.
func (u *Unverified) itsOwn() Signers { return Signers{sha256.Sum256(u.signature.certificate)} }

// TestCanonicalForms compares canonical forms with those of libxml2.
func TestCanonicalForms(t *testing.T) {
	judge(t, "xmllint")
	for i, text := range canonicalSamples {
		file := filepath.Join(t.TempDir(), fmt.Sprint(i, ".xml"))
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		root, err := parseXML([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for option, m := range map[string]method{"--exc-c14n": exclusive, "--c14n": inclusive} {
			out, err := exec.Command("xmllint", option, file).Output()
			got := string(canonical(root, m, nil))
			must.Hold(t, err == nil && got == string(out), "%s of %s: %v\n got %s\nwant %s", option, text, err, got, out)
		}
	}
}

// canonicalSamples are well-formed and have no comments, which xmllint keeps.
var canonicalSamples = []string{
	`<a/>`,
	"\ufeff<?xml version='1.0' encoding=\"utf-8\" standalone='yes' ?>\n<a >\r\n</a >\n",
	`<a b="1" a='"2"' xmlns:z="urn:z" z:a="3" xmlns="urn:d" xmlns:y="urn:a" y:z="4"><b/><y:c z:d=""/></a>`,
	"<a b='x\ty\nz &#9;&#xA;&#13; &lt;&gt;&amp;&apos;&quot;'>&lt;&gt;&amp;&apos;&quot;&#9;&#10;&#13;]]&gt;</a>",
	`<a xmlns="urn:a"><b xmlns=""><c xmlns="urn:a"/><d xmlns=""/></b><e/></a>`,
	`<p:a xmlns:p="urn:1" xmlns:q="urn:2"><p:b xmlns:p="urn:2"><p:c xmlns:p="urn:1" q:x="" p:x=""/></p:b><q:d/></p:a>`,
	`<a xmlns:xml="http://www.w3.org/XML/1998/namespace" xml:lang="de" xml:base="urn:b"><b xml:lang=""/></a>`,
	"<a><![CDATA[<b>]]>&#x10FFFF;\u00e4<![CDATA[]]]]><![CDATA[>]]></a>",
	`<a xmlns:b="urn:b"><b xmlns:b="urn:b" xmlns:c="urn:c"><b:c xmlns:b="urn:b"/></b></a>`,
	"<a_1.b-c  x = 'y'\n></a_1.b-c\t>",
}

// TestChainRules breaks a chain of two pivots. In the correct chain, the Journal's signer names the second signer, and
// the second names the third.
func TestChainRules(t *testing.T) {
	one, two, three := listtest.NewSigner(t, "one"), listtest.NewSigner(t, "two"), listtest.NewSigner(t, "three")
	list := func(sequence int, by, next *listtest.Signer, uris ...string) *Unverified {
		l := listtest.List{Type: ListOfLists, Territory: "EU", Sequence: sequence, Issued: "2026-05-01T00:00:00Z", Next: "2026-10-01T00:00:00Z", URIs: uris,
			Pointers: []listtest.Pointer{{Location: "https://lists.example/eu.xml", Type: ListOfLists, Territory: "EU", Signers: []*listtest.Signer{next}}}}
		return must.Get(Parse(l.Sign(t, by)))(t)
	}
	const journal, newer = "https://journal.example/old", "https://journal.example/new"
	at := func(n int) string { return fmt.Sprintf("https://lists.example/eu-pivot-%d.xml", n) }
	first, second := list(10, one, two, at(10), journal), list(20, two, three, at(20), at(10), journal)
	both := []*Unverified{second, first}
	named := []string{at(20), at(10), journal, "https://lists.example/legal.html"}
	national := newDraft(t).build(t)
	for _, tt := range []struct {
		name   string
		began  *listtest.Signer
		pivots []*Unverified
		list   *Unverified
		want   error
	}{
		{"through two pivots", one, both, list(30, three, three, named...), nil},
		{"with a forged pivot beside", one, []*Unverified{list(10, three, three, journal), first, second}, list(30, three, three, named...), nil},
		{"from a newer publication", three, nil, list(30, three, three, newer, at(20), at(10), journal), nil},
		{"from the older publication, past the newer one", one, both, list(30, three, three, newer, at(20), at(10), journal), nil},
		{"without the first pivot", one, both[:1], list(30, three, three, named...), ErrChain},
		{"without the second pivot", one, both[1:], list(30, three, three, named...), ErrChain},
		{"without the named pivots, under the Journal's own signer", one, nil, list(30, one, three, named...), ErrChain},
		{"signed by the signer before the last pivot", one, both, list(30, two, three, named...), ErrSigner},
		{"a forged pivot alone", one, []*Unverified{list(10, three, two, journal), second}, list(30, three, three, named...), ErrSigner},
		{"pivots that the list does not name", one, both, list(30, three, three, journal), ErrSigner},
		{"pivots in another order", one, both, list(30, three, three, at(10), at(20), journal), ErrSigner},
		{"no publication named", one, both, list(30, three, three, at(20), at(10)), ErrChain},
		{"nothing named", one, both, list(30, three, three), ErrChain},
		{"signed by a stranger", three, both, list(30, three, three, named...), ErrSigner},
		{"a national list", one, nil, func() *Unverified { u, _ := Parse(national); return u }(), ErrMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := Chain(Signers{sha256.Sum256(tt.began.Certificate)}, tt.pivots, tt.list)
			checkError(t, err, tt.want)
			must.Hold(t, err != nil || l.Sequence == 30, "list %+v", l)
		})
	}
}

// realFile reads one of the lists that the EU and its member states have published. It skips the test if the lists are
// not here.
func realFile(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "lists", name))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("there is no ../shared/lists: the tests on real lists are skipped")
	}
	must.Do(t, err)
	return raw
}

func realList(t testing.TB, name string) *Unverified {
	t.Helper()
	return must.Get(Parse(realFile(t, name)))(t)
}

// journal returns the certificates of a publication in the Official Journal.
func journal(t testing.TB, name string) (signers Signers) {
	t.Helper()
	for rest := realFile(t, name); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return signers
		}
		signers = append(signers, sha256.Sum256(block.Bytes))
	}
}

func realPivots(t testing.TB) (pivots []*Unverified) {
	for _, n := range []string{"282", "300", "335", "341"} {
		pivots = append(pivots, realList(t, "eu-lotl-pivot-"+n+".xml"))
	}
	return pivots
}

// TestChain proves a published list of the lists, starting from the Official Journal.
func TestChain(t *testing.T) {
	old, recent := journal(t, "oj-0.cert.pem"), journal(t, "oj-1.cert.pem")
	list369, list388 := realList(t, "eu-lotl-old.xml"), realList(t, "eu-lotl.xml")
	pivots := realPivots(t)
	l, err := Chain(old, pivots, list369)
	must.Need(t, err == nil && l.Sequence == 369 && l.Territory == "EU" && len(l.Pointers) == 43, "%+v, %v", l, err)
	for i := range pivots {
		without := append(append([]*Unverified{}, pivots[:i]...), pivots[i+1:]...)
		if _, err := Chain(old, without, list369); !errors.Is(err, ErrChain) {
			t.Errorf("without pivot %d: %v", pivots[i].list.Sequence, err)
		}
	}
	l, err = Chain(recent, nil, list388)
	must.Hold(t, err == nil && l.Sequence == 388, "%+v, %v", l, err)
	must.Fail(t, ErrChain, "list 369 was accepted without the pivots that it names")(Chain(recent, nil, list369))
	must.Refuse(t, "", "list 388 was accepted under the publication of 2019 without pivot 378")(Chain(old, pivots, list388))
	must.Fail(t, ErrSigner, "without trusted signers")(Chain(nil, pivots, list369))
}

// TestNationalLists reads two lists under the list of the lists that names their signers.
func TestNationalLists(t *testing.T) {
	old := must.Get(Chain(journal(t, "oj-0.cert.pem"), realPivots(t), realList(t, "eu-lotl-old.xml")))(t)
	recent := must.Get(Chain(journal(t, "oj-1.cert.pem"), nil, realList(t, "eu-lotl.xml")))(t)
	be := must.Get(realList(t, "tsl-be-v6.xml").Verify(recent.Signers("BE")))(t)
	must.Hold(t, be.Sequence == 81 && len(be.Of(timeStamps)) == 20 && !be.NextUpdate.IsZero(),
		"%d, %d, %s", be.Sequence, len(be.Of(timeStamps)), be.NextUpdate)
	ee := must.Get(realList(t, "tsl-ee.xml").Verify(old.Signers("EE")))(t)
	must.Fail(t, ErrSigner, "Estonia's by Belgium")(realList(t, "tsl-ee.xml").Verify(old.Signers("BE")))
	services := ee.Of(timeStamps)
	must.Hold(t, len(services) == 32, "%d services", len(services))
	checkHistory(t, services)
}

// checkHistory checks the present and the last past state of the first service of Estonia's list.
func checkHistory(t *testing.T, services []Service) {
	t.Helper()
	states := services[0].States
	must.Do(t, services[0].CheckHistory())
	for i, from := range []string{"2020-09-28T22:01:00Z", "2016-06-30T22:01:00Z"} {
		at := must.Get(time.Parse(time.RFC3339, from))(t)
		must.Hold(t, states[i].From.Equal(at) && (states[i].Status == granted) == (i == 1), "%+v, want one of %s", states[i], from)
	}
}

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
	must.Need(t, err == nil, "%v\n%s", err, text)
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
		must.Do(t, err)
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
