package trustlist

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"jurat/internal/must"
)

// judge skips the test if an outside program is not installed. In CI it fails the test.
func judge(t testing.TB, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed, and CI must run this test", program)
	}
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
			if err != nil {
				t.Fatal(err)
			}
			_, err = u.Verify(u.itsOwn())
			if holds, out := xmlsecVerifies(t, list); holds != (err == nil) || holds == (len(list) != len(raw)) {
				t.Errorf("%s: here %v, xmlsec1 %s", name, err, out)
			}
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
			theirs := xmlsecSigns(t, d)
			for _, list := range [][]byte{ours, theirs} {
				if holds, out := xmlsecVerifies(t, list); !holds {
					t.Errorf("xmlsec1: %s", out)
				}
				u, err := Parse(list)
				if err == nil {
					_, err = u.Verify(d.signers())
				}
				if err != nil {
					t.Errorf("%v\n%s", err, list)
				}
			}
		})
	}
}

// xmlsecSigns has xmlsec1 fill the draft's template.
func xmlsecSigns(t testing.TB, d *draft) []byte {
	t.Helper()
	folder := t.TempDir()
	key := must.Get(x509.MarshalPKCS8PrivateKey(d.key))(t)
	template := strings.NewReplacer("@LIST@", "", "@PROPERTIES@", "", "@VALUE@", "").Replace(d.template())
	write := func(name string, content []byte) string {
		file := filepath.Join(folder, name)
		must.Do(t, os.WriteFile(file, content, 0o600))
		return file
	}
	keys := write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})) + "," +
		write("certificate.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: d.certificate}))
	out, err := exec.Command("xmlsec1", "--sign", "--privkey-pem", keys, "--id-attr:Id", xades+":SignedProperties", "--id-attr:Id", tsl+":TrustServiceStatusList",
		write("template.xml", []byte(template))).Output()
	if err != nil {
		t.Fatalf("xmlsec1: %v\n%s", err, out)
	}
	return out
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
			if got := string(canonical(root, m, nil)); err != nil || got != string(out) {
				t.Errorf("%s of %s: %v\n got %s\nwant %s", option, text, err, got, out)
			}
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
