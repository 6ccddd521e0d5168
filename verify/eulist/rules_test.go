package eulist

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/test/must"
)

var sentinels = []error{ErrMalformed, ErrAlgorithm, ErrSigner, ErrExpired, ErrSignature, ErrChain, ErrHistory}

// checkError requires that err wraps want and no other sentinel.
func checkError(t *testing.T, err, want error) {
	t.Helper()
	for _, sentinel := range sentinels {
		must.Need(t, errors.Is(err, sentinel) == (sentinel == want), "error %v, want exactly %v", err, want)
	}
}

func verify(raw []byte, signers Signers) (*List, error) {
	u, err := Parse(raw)
	if err != nil {
		return nil, err
	}
	return u.Verify(signers)
}

// TestSignatureRules breaks one rule at a time and signs the result. Cases without an error are close to a rule and must
// be accepted.
func TestSignatureRules(t *testing.T) {
	other := testKey(t, "other")
	short := must.Get(rsa.GenerateKey(rand.Reader, 1024))(t)
	const sha1RSA = "http://www.w3.org/2000/09/xmldsig#rsa-sha1"
	for _, rule := range []struct {
		name   string
		change func(d *draft)
		want   error
	}{
		{"correct", func(d *draft) {}, nil},
		{"the root by its Id", func(d *draft) { d.uri = "#root" }, nil},
		{"signed properties without transforms", func(d *draft) { d.propertiesTransforms = "" }, nil},
		{"signed properties with an empty list of transforms", func(d *draft) { d.propertiesTransforms = "<ds:Transforms/>" }, ErrSignature},
		{"the older attribute, and SHA-1 in it", func(d *draft) {
			d.named, d.namedDigest = "SigningCertificate", digestValue(crypto.SHA1, d.certificate)
		}, nil},
		{"a key beside the certificate", func(d *draft) { d.keyInfo = "<ds:KeyName>a</ds:KeyName>" + d.keyInfo }, nil},
		{"a further certificate", func(d *draft) { d.keyInfo += d.keyInfo }, nil},
		{"an old list, whose signer's certificate ended since", func(d *draft) { d.issued = "2030-01-01T00:00:00Z" }, nil},

		{"issued after the certificate's end", func(d *draft) { d.issued = "2030-01-01T00:00:01Z" }, ErrExpired},
		{"signed by another key", func(d *draft) { d.key = other }, ErrSignature},
		{"another certificate for the same key", func(d *draft) { d.by(t, d.scheme, d.digest, d.key) }, ErrSigner},
		{"another certificate is named", func(d *draft) { d.namedDigest = digestValue(crypto.SHA256, []byte("other")) }, ErrSignature},
		{"the certificate is named by no known hash", func(d *draft) { d.namedDigest = strings.Replace(d.namedDigest, "sha256", "md5", 1) }, ErrAlgorithm},
		{"the list by SHA-1", func(d *draft) { d.digest = sha1Digest }, ErrAlgorithm},
		{"SignedInfo by SHA-1", func(d *draft) {
			d.by(t, sha1RSA, d.digest, other).scheme = "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha1"
		}, ErrAlgorithm},
		{"an RSA key of 1024 bits", func(d *draft) { d.by(t, "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256", d.digest, short) }, ErrSignature},
		{"the scheme of another key", func(d *draft) { d.scheme = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256" }, ErrSignature},

		{"over an unknown reference", func(d *draft) { d.uri = "#elsewhere" }, ErrMalformed},
		{"over the signed properties alone", func(d *draft) { d.uri = "#properties" }, ErrMalformed},
		{"over another list", func(d *draft) { d.uri = "https://example.com/list.xml" }, ErrMalformed},
		{"over the root by XPointer", func(d *draft) { d.uri = "#xpointer(/)" }, ErrMalformed},
		{"the properties of something else", func(d *draft) { d.propertiesURI = "#root" }, ErrMalformed},
		{"the properties of another signature", func(d *draft) { d.target = "#other" }, ErrMalformed},
		{"not enveloped", func(d *draft) { d.transforms = fmt.Sprintf(transform, exclusiveMethod) }, ErrMalformed},
		{"enveloped alone", func(d *draft) { d.transforms = fmt.Sprintf(transform, enveloped) }, ErrMalformed},
		{"enveloped twice", func(d *draft) { d.transforms += d.transforms }, ErrMalformed},
		{"an XPath transform", func(d *draft) {
			d.transforms = `<ds:Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><ds:XPath>not(//TSPService)</ds:XPath></ds:Transform>` + d.transforms
		}, ErrMalformed},
		{"an element that is not a transform", func(d *draft) { d.transforms = strings.ReplaceAll(d.transforms, "ds:Transform", "ds:Transformer") }, ErrMalformed},
		{"the properties by another transform", func(d *draft) {
			d.propertiesTransforms = strings.Replace(d.propertiesTransforms, exclusiveMethod, enveloped, 1)
		}, ErrMalformed},
		{"a reference without its type", func(d *draft) { d.propertiesType = "" }, ErrMalformed},
		{"two references of one type", func(d *draft) { d.propertiesURI += `" Id="a"><ds:DigestMethod/></ds:Reference><ds:Reference URI="` }, ErrMalformed},
		{"a certificate that is not base64", func(d *draft) { d.keyInfo = strings.Replace(d.keyInfo, "MII", "?II", 1) }, ErrMalformed},
		{"a digest method by another name", func(d *draft) { d.namedDigest = strings.ReplaceAll(d.namedDigest, "DigestMethod", "Method") }, ErrMalformed},
		{"a list of prefixes", func(d *draft) {
			d.transforms = strings.Replace(d.transforms, "></ds:Transform>", `><ec:InclusiveNamespaces xmlns:ec="`+exclusiveMethod+`" PrefixList="x"/></ds:Transform>`, 2)
		}, ErrMalformed},
		{"inclusive canonical form", func(d *draft) { d.canonicalization = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315" }, ErrMalformed},
		{"no certificate", func(d *draft) { d.keyInfo = "<ds:KeyName>a</ds:KeyName>" }, ErrMalformed},
		{"no certificate named", func(d *draft) { d.named = "CompleteCertificateRefs" }, ErrMalformed},
		{"something beside the properties", func(d *draft) { d.object = "<ds:Manifest/>" }, ErrMalformed},
		{"two signatures", func(d *draft) { d.providers += `<ds:Signature xmlns:ds="` + dsig + `"/>` }, ErrMalformed},
	} {
		t.Run(rule.name, func(t *testing.T) {
			d := newDraft(t)
			signers := d.signers()
			rule.change(d)
			if rule.want != ErrSigner {
				signers = d.signers()
			}
			_, err := verify(d.build(t), signers)
			checkError(t, err, rule.want)
		})
	}
}

// TestWrapping moves the signed part and puts other content in its place. The package must refuse the list, or read
// only what was signed.
func TestWrapping(t *testing.T) {
	d := newDraft(t)
	genuine := string(d.build(t))
	want := must.Get(verify([]byte(genuine), d.signers()))(t)
	false7 := provider("Mallory", service(timeStamps, selfSigned(t, "mallory", testKey(t, "mallory")), state{granted, "2010-01-01T00:00:00Z"}))
	begin, end := strings.Index(genuine, "<ds:Signature "), strings.Index(genuine, "</TrustServiceStatusList>")
	signature := genuine[begin:end]
	without := genuine[:begin] + genuine[end:]
	body := strings.TrimPrefix(without, d.declaration)
	forged := strings.Replace(body, "<TrustServiceProvider>", false7+"<TrustServiceProvider>", 1)
	forgedRoot := strings.Replace(forged, `Id="root"`, `Id="forged"`, 1)
	in := func(where, what string) func() string {
		return func() string { return strings.Replace(genuine, where, what+where, 1) }
	}
	for name, attack := range map[string]func() string{
		"a service put in":               in("<TrustServiceProvider>", false7),
		"a second list of providers":     in("<ds:Signature ", "<TrustServiceProviderList>"+false7+"</TrustServiceProviderList>"),
		"a second root after the first":  func() string { return genuine + forgedRoot },
		"a second root before the first": func() string { return forgedRoot + body },
		"the genuine list within a forged one": func() string {
			return strings.Replace(forgedRoot, "</TrustServiceStatusList>", strings.Replace(body, "</TrustServiceStatusList>", "", 1)+signature+"</TrustServiceStatusList></TrustServiceStatusList>", 1)
		},
		"the genuine list in the signature": func() string {
			return strings.Replace(forgedRoot, "</TrustServiceStatusList>", strings.Replace(signature, "</ds:Signature>", "<ds:Object>"+body+"</ds:Object></ds:Signature>", 1)+"</TrustServiceStatusList>", 1)
		},
		"the genuine list in the properties": func() string {
			return strings.Replace(forgedRoot, "</TrustServiceStatusList>", strings.Replace(signature, "<ds:Object>", "<ds:Object>"+body, 1)+"</TrustServiceStatusList>", 1)
		},
		"the reference turned to the copy": func() string {
			return strings.Replace(forgedRoot, "</TrustServiceStatusList>", body+strings.Replace(signature, `URI=""`, `URI="#root"`, 1)+"</TrustServiceStatusList>", 1)
		},
		"the signature deeper": func() string {
			return strings.Replace(forgedRoot, "<TrustServiceProvider>", signature+"<TrustServiceProvider>", 1)
		},
		"the signature before the list": func() string {
			return strings.Replace(without, "<SchemeInformation>", signature+"<SchemeInformation>", 1)
		},
		"the signature alone":             func() string { return d.declaration + signature },
		"two signatures":                  func() string { return genuine[:end] + strings.ReplaceAll(signature, `Id="`, `Id="x`) + genuine[end:] },
		"services in the signature":       in("</ds:KeyInfo>", "<TrustServiceProviderList>"+false7+"</TrustServiceProviderList>"),
		"services in unsigned properties": in("</xades:QualifyingProperties>", `<xades:UnsignedProperties>`+false7+`</xades:UnsignedProperties>`),
		"fake signed properties before":   in("<xades:SignedProperties", `<xades:SignedProperties Id="fake"/>`),
		"fake signed properties after":    in("</xades:QualifyingProperties>", `<xades:SignedProperties Id="fake"/>`),
		"a second object":                 in("</ds:Signature>", `<ds:Object/>`),
		"fake qualifying properties":      in("<xades:QualifyingProperties", `<xades:QualifyingProperties xmlns:xades="`+xades+`" Target="#sig"/>`),
		"two Ids":                         in("<TrustServiceProvider>", `<a Id="root"/>`),
		"two Ids in other letters":        in("<TrustServiceProvider>", `<a ID="properties"/>`),
		"a comment in a status": func() string {
			return strings.ReplaceAll(genuine, granted, granted[:len(granted)-2]+"<!-- -->"+granted[len(granted)-2:])
		},
		"a comment that ends a status": func() string { return strings.ReplaceAll(genuine, granted, granted+"<!-- x -->") },
		"CDATA in a status":            func() string { return strings.ReplaceAll(genuine, granted, "<![CDATA["+granted+"]]>") },
		"an entity in a status":        func() string { return strings.ReplaceAll(genuine, "granted", "&#103;ranted") },
		"an entity that is declared": func() string {
			return strings.Replace(strings.ReplaceAll(genuine, "granted", "&g;"), d.declaration, d.declaration+`<!DOCTYPE a [<!ENTITY g "granted">]>`, 1)
		},
		"an empty document type":               func() string { return strings.Replace(genuine, d.declaration, d.declaration+`<!DOCTYPE a>`, 1) },
		"a processing instruction in a status": func() string { return strings.ReplaceAll(genuine, granted, granted+"<?x y?>") },
		"a processing instruction at the front": func() string {
			return strings.Replace(genuine, d.declaration, d.declaration+`<?xml-stylesheet href="x"?>`, 1)
		},
		"xml:base": func() string { return strings.Replace(genuine, "<TSPServices>", `<TSPServices xml:base="urn:x">`, 1) },
		"a prefix declared again": func() string {
			return strings.Replace(genuine, "<TSPServices>", `<TSPServices xmlns:x="urn:other">`, 1)
		},
		"a namespace declared again": func() string { return strings.Replace(genuine, "<TSPServices>", `<TSPServices xmlns="`+tsl+`">`, 1) },
		"another namespace":          func() string { return strings.Replace(genuine, "<TSPServices>", `<TSPServices xmlns="urn:x">`, 1) },
		"another prefix of the same namespace": func() string {
			return strings.ReplaceAll(strings.Replace(genuine, d.root, d.root+` xmlns:y="`+tsl+`"`, 1), "TSPServices>", "y:TSPServices>")
		},
		"an attribute in another order": func() string {
			return strings.Replace(genuine, d.root, `xmlns:x="urn:unused" xml:lang="en" Id="root"`, 1)
		},
		"ends of lines of another system": func() string { return strings.ReplaceAll(genuine, "\n", "\r\n") },
		"another Id of the root":          func() string { return strings.Replace(genuine, `Id="root"`, `Id="root2"`, 1) },
		"no Id of the root":               func() string { return strings.Replace(genuine, `Id="root"`, ``, 1) },
		"text after the list":             func() string { return genuine + "text" },
		"a comment after the list":        func() string { return genuine + "<!-- text -->" },
		"a byte order mark":               func() string { return "\ufeff" + genuine },
		"in Latin-1":                      func() string { return strings.Replace(genuine, "UTF-8", "ISO-8859-1", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			changed := attack()
			must.Need(t, changed != genuine, "nothing is changed")
			got, err := verify([]byte(changed), d.signers())
			if err != nil {
				return
			}
			got.Digest = want.Digest
			must.Equal(t, cmp.Diff(want, got), "")
		})
	}
}

// TestHarmlessSpelling: spellings with the same canonical form give the same list.
func TestHarmlessSpelling(t *testing.T) {
	d := newDraft(t)
	genuine := string(d.build(t))
	for _, spelling := range []string{
		strings.ReplaceAll(genuine, granted, "<![CDATA["+granted+"]]><!-- -->"),
		"\ufeff" + strings.ReplaceAll(genuine, "\n", "\r\n") + "\n<!-- the end -->",
		strings.Replace(genuine, d.root, ` xmlns:x='urn:unused' xml:lang='e&#110;' Id='root'`, 1),
	} {
		l := must.Get(verify([]byte(spelling), d.signers()))(t)
		if state := l.Services[0].States[0]; state.Status != granted {
			t.Errorf("%+v", l.Services[0])
		}
	}
}

// TestFlippedBytes changes bytes of a list, one at a time. The list is refused, or everything read from it stays the
// same.
func TestFlippedBytes(t *testing.T) {
	d := newDraft(t)
	checkFlipped(t, d.build(t), d.signers(), 2)
}

func TestFlippedBytesOfRealList(t *testing.T) {
	raw := realFile(t, "tsl-ee.xml")
	checkFlipped(t, raw, realList(t, "tsl-ee.xml").itsOwn(), len(raw)/50)
}

func checkFlipped(t *testing.T, genuine []byte, signers Signers, step int) {
	t.Helper()
	want := must.Get(verify(genuine, signers))(t)
	changes, refused := 0, 0
	for i := 0; i < len(genuine); i += step {
		changed := slices.Clone(genuine)
		changed[i] ^= []byte{1, 0x20}[changes%2]
		changes++
		got, err := verify(changed, signers)
		if err != nil {
			refused++
			continue
		}
		got.Digest = want.Digest
		must.Equal(t, cmp.Diff(want, got), "", "byte", i)
	}
	must.Hold(t, refused >= changes*3/4, "of %d changes, only %d were refused", changes, refused)
}

// TestXMLRules: documents that are not well-formed, or exceed what trusted lists need, are refused.
func TestXMLRules(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("<a>", n) + strings.Repeat("</a>", n) }
	for _, text := range []string{"", " ", "a", "<a>", "<a", "</a>", "<a></b>", "<a><b></c></a>", "<a></a:a>", "<a/><b/>", "<a/>b", "<a>&b;</a>", "<a>&amp</a>", "<a>&#0;</a>", "<a>&#xD800;</a>", "<a>&#x110000;</a>",
		"<a>&#;</a>", "<a>&#x;</a>", "<a>&65;</a>", "<a>&#-1;</a>", "<a>&#99999999999;</a>", "<a>]]></a>", "<a b='<'/>", "<a b=1/>", "<a b/>", "<a b'1'/>", "<a b=1'/>", "<a b='1' b='2'/>", "<a b='1'c='2'/>", "<a b='1/>",
		"<a><!-- -- --></a>", "<a><!-- </a>", "<a><!---></a>", "<a><![CDATA[</a>", "<a><?b?></a>", "<!DOCTYPE a><a/>", "<?xml version='1.1'?><a/>", "<?xml version='1.0' encoding='latin1'?><a/>",
		" <?xml version='1.0'?><a/>", "<a>\x00</a>", "<a>\x1b</a>", "<a>\xff</a>", "<a>\xed\xa0\x80</a>", "<a>\ufffe</a>", "<ä/>", "<1/>", "<:a/>", "<a:/>", "<a:b:c xmlns:a='urn:a'/>", "<a:b/>", "<b a:c=''/>",
		"<![CDATA[ ]]><a/>", "&#32;<a/>", "<a b='&#xD800;'/>", "<a b='&#xD800;' c='\ufffd'/>", "<a><!-- \xff --></a>", "<a><!-- \x01 --></a>", "<?xml version='1.0' a='b'?><a/>", "<?xml?><a/>", "<a/><?xml version='1.0'?>",
		"<a xmlns:b=''/>", "<a xmlns:b='b'/>", "<a xmlns:xml='urn:x'/>", "<a xmlns:b='" + xmlNamespace + "'/>", "<a xmlns:xmlns='urn:x'/>", "<a xmlns='http://www.w3.org/2000/xmlns/'/>",
		"<a xmlns='urn:a' xmlns='urn:b'/>", "<a xmlns:b='urn:x' xmlns:c='urn:x' b:d='' c:d=''/>", "<xmlns:a/>", "<a><b Id='1'/><b ID='1'/></a>", "<a id='1'><b xml:id='1'/></a>",
		deep(maxDepth + 1), "<a>" + strings.Repeat("<b/>", maxElements) + "</a>", "<a" + numbered(" a%d=''", maxAttributes+1) + "/>", "<a" + numbered(" a%d=''", 200_000) + "/>",
		"<a" + numbered(" xmlns:a%d='urn:a'", 40) + "><a" + numbered(" xmlns:b%d='urn:a'", 40) + "/></a>", "<a>" + strings.Repeat(" ", MaxSize) + "</a>"} {
		must.Fail(t, ErrMalformed, text[:min(100, len(text))])(parseXML([]byte(text)))
	}
	for _, text := range []string{deep(maxDepth), "<a" + numbered(" a%d=''", maxAttributes) + "/>", "<a/><!-- -->", "<a>]]</a>", "<a>></a>", "<a b='>'/>"} {
		must.Fail(t, nil, text[:min(100, len(text))])(parseXML([]byte(text)))
	}
}

func numbered(format string, n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, format, i)
	}
	return text.String()
}

// TestListRules breaks each rule about the content of a list.
func TestListRules(t *testing.T) {
	tsu := selfSigned(t, "tsu", testKey(t, "tsu"))
	good := service(timeStamps, tsu, state{granted, "2017-01-01T00:00:00Z"})
	for name, change := range map[string]func(text string) string{
		"another root": func(s string) string { return strings.ReplaceAll(s, "TrustServiceStatusList", "TrustList") },
		"no territory": func(s string) string { return strings.Replace(s, "<SchemeTerritory> QQ </SchemeTerritory>", "", 1) },
		"two territories": func(s string) string {
			return strings.Replace(s, "<SchemeTerritory>", "<SchemeTerritory>XX</SchemeTerritory><SchemeTerritory>", 1)
		},
		"a sequence below zero":     func(s string) string { return strings.Replace(s, "Number>7<", "Number>-7<", 1) },
		"a sequence beyond 32 bits": func(s string) string { return strings.Replace(s, "Number>7<", "Number>4294967296<", 1) },
		"a time without a zone":     func(s string) string { return strings.Replace(s, "2017-01-01T00:00:00Z", "2017-01-01T00:00:00", 1) },
		"a status with an element":  func(s string) string { return strings.Replace(s, granted, granted+"<a/>", 1) },
		"a text between elements":   func(s string) string { return strings.Replace(s, "<TSPServices>", "<TSPServices>text", 1) },
		"two statuses": func(s string) string {
			return strings.Replace(s, "<ServiceStatus>", "<ServiceStatus>x</ServiceStatus><ServiceStatus>", 1)
		},
		"two histories": func(s string) string {
			return strings.Replace(s, "<ServiceHistory>", "<ServiceHistory></ServiceHistory><ServiceHistory>", 1)
		},
		"an extension whose critical flag is not a boolean": func(s string) string {
			return strings.Replace(s, "</ServiceInformation>", "<ServiceInformationExtensions><Extension><a/></Extension></ServiceInformationExtensions></ServiceInformation>", 1)
		},
		"a status in no namespace": func(s string) string { return strings.Replace(s, "<ServiceStatus>", "<ServiceStatus xmlns=''>", 1) },
	} {
		d := newDraft(t)
		d.providers = provider("A", good)
		_, err := Parse([]byte(change(string(d.build(t)))))
		must.Hold(t, errors.Is(err, ErrMalformed), "%s: %v", name, err)
	}
	d := newDraft(t)
	d.providers = provider("A", strings.Replace(good, "<X509Certificate>", "<X509Certificate>?", 1), good)
	l, err := verify(d.build(t), d.signers())
	must.Hold(t, err == nil && len(l.Services) == 2 && l.Services[0].Unreadable == 1 && len(l.Services[1].Certificates) == 1,
		"one bad certificate: %+v, %v", l, err)
}

// TestStates: a history whose states are not in order is refused, and services are found by their exact type.
func TestStates(t *testing.T) {
	const withdrawn = "http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/withdrawn"
	past := []state{{withdrawn, "2024-05-01T00:00:00Z"}, {granted, "2017-01-01T00:00:00Z"}, {granted, "2017-01-01T00:00:00Z"}}
	for _, tt := range []struct {
		name, kind string
		states     []state
		err        error
	}{
		{"in order", timeStamps, past, nil},
		{"the service type TSA", strings.TrimSuffix(timeStamps, "/QTST"), past, nil},
		{"the service type TSS-QC", strings.Replace(timeStamps, "QTST", "TSS-QC", 1), past, nil},
		{"the service type TSS-AdESQCandQES", strings.Replace(timeStamps, "QTST", "TSS-AdESQCandQES", 1), past, nil},
		{"out of order", timeStamps, []state{{granted, "2017-01-01T00:00:00Z"}, {withdrawn, "2018-01-01T00:00:00Z"}}, ErrHistory},
		{"two statuses at once", timeStamps, []state{{granted, "2017-01-01T00:00:00Z"}, {withdrawn, "2017-01-01T00:00:00Z"}}, ErrHistory},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDraft(t)
			d.providers = provider("A", service(tt.kind, nil, tt.states...))
			l := must.Get(verify(d.build(t), d.signers()))(t)
			checkError(t, l.Services[0].CheckHistory(), tt.err)
			must.Hold(t, (len(l.Of(timeStamps)) == 1) == (tt.kind == timeStamps), "%d services", len(l.Of(timeStamps)))
		})
	}
}

// TestExtensions: an unknown critical extension makes a service unreliable.
func TestExtensions(t *testing.T) {
	for _, tt := range []struct {
		extension, critical string
	}{
		{`<Extension Critical="true"><Unheard xmlns="urn:x"/></Extension>`, "Unheard"},
		{`<Extension Critical="1"> <Unheard xmlns="urn:x"/> </Extension>`, "Unheard"},
		{`<Extension Critical="false"><Unheard xmlns="urn:x"/></Extension>`, ""},
		{`<Extension Critical="true"><AdditionalServiceInformation><URI>urn:for</URI></AdditionalServiceInformation></Extension>`, ""},
	} {
		d := newDraft(t)
		d.providers = strings.Replace(d.providers, "</ServiceInformation>", "<ServiceInformationExtensions>"+tt.extension+"</ServiceInformationExtensions></ServiceInformation>", 1)
		l := must.Get(verify(d.build(t), d.signers()))(t)
		critical := l.Services[0].States[0].Critical
		must.Hold(t, critical == tt.critical, "%s: %q", tt.extension, critical)
	}
}

// FuzzParse: a list that parses has one canonical form, and the canonical form parses to the same list.
func FuzzParse(f *testing.F) {
	f.Add(newDraft(f).build(f))
	for _, text := range canonicalSamples {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		root, err := parseXML(raw)
		if err != nil {
			return
		}
		for _, m := range []method{exclusive, inclusive} {
			form := canonical(root, m, nil)
			again, err := parseXML(form)
			must.Need(t, err == nil, "%q: %v", form, err)
			twice := canonical(again, m, nil)
			must.Hold(t, string(twice) == string(form), "%q became %q", form, twice)
			u, err := Parse(raw)
			v, errAgain := Parse(form)
			must.Need(t, (err == nil) == (errAgain == nil), "%v, but the canonical form gives %v", err, errAgain)
			if err == nil {
				u.list.Digest = v.list.Digest
				must.Equal(t, cmp.Diff(u.list, v.list), "")
				must.Fail(t, ErrSigner)(u.Verify(nil))
			}
		}
	})
}
