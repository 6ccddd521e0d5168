package trustlist

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jurat/internal/listtest"
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
			if err == nil && l.Sequence != 30 {
				t.Errorf("list %d", l.Sequence)
			}
		})
	}
}

// realFile reads one of the lists that the EU and its member states have published. It skips the test if the lists are
// not here.
func realFile(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "shared", "lists", name))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("there is no ../shared/lists: the tests on real lists are skipped")
	}
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil || l.Sequence != 369 || l.Territory != "EU" || len(l.Pointers) != 43 {
		t.Fatalf("%+v, %v", l, err)
	}
	for i := range pivots {
		without := append(append([]*Unverified{}, pivots[:i]...), pivots[i+1:]...)
		if _, err := Chain(old, without, list369); !errors.Is(err, ErrChain) {
			t.Errorf("without pivot %d: %v", pivots[i].list.Sequence, err)
		}
	}
	if l, err := Chain(recent, nil, list388); err != nil || l.Sequence != 388 {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := Chain(recent, nil, list369); !errors.Is(err, ErrChain) {
		t.Errorf("list 369 was accepted without the pivots that it names: %v", err)
	}
	if _, err := Chain(old, pivots, list388); err == nil {
		t.Error("list 388 was accepted under the publication of 2019 without pivot 378")
	}
	if _, err := Chain(nil, pivots, list369); !errors.Is(err, ErrSigner) {
		t.Errorf("without trusted signers: %v", err)
	}
}

// TestNationalLists reads two lists under the list of the lists that names their signers.
func TestNationalLists(t *testing.T) {
	old := must.Get(Chain(journal(t, "oj-0.cert.pem"), realPivots(t), realList(t, "eu-lotl-old.xml")))(t)
	recent := must.Get(Chain(journal(t, "oj-1.cert.pem"), nil, realList(t, "eu-lotl.xml")))(t)
	be := must.Get(realList(t, "tsl-be-v6.xml").Verify(recent.Signers("BE")))(t)
	if be.Sequence != 81 || len(be.Of(timeStamps)) != 20 || be.NextUpdate.IsZero() {
		t.Errorf("%d, %d, %s", be.Sequence, len(be.Of(timeStamps)), be.NextUpdate)
	}
	ee := must.Get(realList(t, "tsl-ee.xml").Verify(old.Signers("EE")))(t)
	if _, err := realList(t, "tsl-ee.xml").Verify(old.Signers("BE")); !errors.Is(err, ErrSigner) {
		t.Errorf("Estonia's by Belgium: %v", err)
	}
	services := ee.Of(timeStamps)
	if len(services) != 32 {
		t.Errorf("%d services", len(services))
	}
	checkHistory(t, services)
}

// checkHistory checks the present and the last past state of the first service of Estonia's list.
func checkHistory(t *testing.T, services []Service) {
	t.Helper()
	states := services[0].States
	must.Do(t, services[0].CheckHistory())
	for i, from := range []string{"2020-09-28T22:01:00Z", "2016-06-30T22:01:00Z"} {
		if at := must.Get(time.Parse(time.RFC3339, from))(t); !states[i].From.Equal(at) || (states[i].Status == granted) != (i == 1) {
			t.Errorf("%+v, want one of %s", states[i], from)
		}
	}
}
