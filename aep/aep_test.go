package aep_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"

	"jurat/aep"
	"jurat/internal/aeptest"
	"jurat/timestamp"
)

func open(t *testing.T, m aeptest.Members) *aep.Package {
	t.Helper()
	p, err := aep.Open(m.Zip(t))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOpen(t *testing.T) {
	m := aeptest.New(t, timestamp.NewMock())
	m["claim.txt"] = []byte("a member that nobody knows")
	p := open(t, m)
	if string(p.Response) != aeptest.Response || string(p.Canonical) != aeptest.Canonical || p.Hash != sha256.Sum256(p.Canonical) ||
		string(p.Metadata) != string(m["metadata.json"]) || p.KeyID != sha256.Sum256(p.PublicKey) || p.Second != nil ||
		strings.Join(p.Others, " ") != "claim.txt" {
		t.Errorf("%+v", p)
	}
	if null, err := p.CheckSignature(); null || err != nil {
		t.Errorf("signature: NULL %t, %v", null, err)
	}
	if _, err := timestamp.Parse(p.Token); err != nil {
		t.Error(err)
	}
}

// TestMembersRefused: an error about a member names the member.
func TestMembersRefused(t *testing.T) {
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	public := func(key crypto.PublicKey) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: aeptest.Public(t, key)}))
	}
	honest := aeptest.New(t, timestamp.NewMock())
	signature, key := string(honest["signature.sig"]), string(honest["public_key.pem"])
	for _, tt := range []struct{ member, content, want string }{
		{"hash.sha256", "", "64 hexadecimal digits"},
		{"hash.sha256", strings.Repeat("0", 63) + "x", "invalid byte"},
		{"hash.sha256", string(honest["hash.sha256"]) + "  canonical.bin", "64 hexadecimal digits"},
		{"signature.sig", "!" + signature[1:], "illegal base64"},
		{"signature.sig", signature[:64] + "\n" + signature[64:], "in one line"},
		{"signature.sig", signature + "\n\n", "in one line"},
		{"signature.sig", strings.TrimRight(signature, "="), "illegal base64"},
		{"timestamp.tsr", "{}", "illegal base64"},
		{"public_key.pem", "", "want a public key in PEM"},
		{"public_key.pem", "x\n" + key, "nothing before it"},
		{"public_key.pem", key + key, "nothing after it"},
		{"public_key.pem", strings.ReplaceAll(key, "PUBLIC KEY", "CERTIFICATE"), "one PUBLIC KEY"},
		{"public_key.pem", public(p256.Public()), "want RSA"},
		{"public_key.pem", public(weak.Public()), "1024 bits"},
	} {
		m := aeptest.New(t, timestamp.NewMock())
		m[tt.member] = []byte(tt.content)
		if _, err := aep.Open(m.Zip(t)); err == nil || !strings.Contains(err.Error(), tt.member+": ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s of %.20q: %v, want %q", tt.member, tt.content, err, tt.want)
		}
	}
	for name := range honest {
		m := aeptest.New(t, timestamp.NewMock())
		delete(m, name)
		if _, err := aep.Open(m.Zip(t)); err == nil || !strings.Contains(err.Error(), name+" is missing") {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// TestLineEnds: a line end after a text member is accepted, because common tools write one.
func TestLineEnds(t *testing.T) {
	for _, end := range []string{"\n", "\r\n"} {
		m := aeptest.New(t, timestamp.NewMock())
		for _, name := range []string{"hash.sha256", "signature.sig", "timestamp.tsr", "public_key.pem"} {
			m[name] = append(m[name], end...)
		}
		if _, err := open(t, m).CheckSignature(); err != nil {
			t.Errorf("%q: %v", end, err)
		}
	}
}

// TestUnsigned: packages without a key, a signature or a token open, and have no valid signature.
func TestUnsigned(t *testing.T) {
	m := aeptest.New(t, timestamp.NewMock())
	m["signature.sig"], m["timestamp.tsr"], m["public_key.pem"] = nil, nil, nil
	p := open(t, m)
	if _, err := p.CheckSignature(); len(p.Signature) != 0 || len(p.Token) != 0 || !errors.Is(err, aep.ErrSignature) {
		t.Errorf("%+v: %v", p, err)
	}
}

// TestBothDigestInfos: DigestInfo is accepted with NULL parameters and without parameters, and in no other form.
func TestBothDigestInfos(t *testing.T) {
	const (
		with    = "\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20"
		without = "\x30\x2f\x30\x0b\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x04\x20"
	)
	key := aeptest.Key(t)
	size := key.Size()
	digest := sha256.Sum256([]byte(aeptest.Canonical))
	other := sha256.Sum256([]byte("another text"))
	hash, ff := string(digest[:]), func(n int) string { return strings.Repeat("\xff", n) }
	padded := func(info string) string { return "\x00\x01" + ff(size-3-len(info)) + "\x00" + info }
	for _, tt := range []struct {
		name, message string
		null, valid   bool
	}{
		{"with NULL", padded(with + hash), true, true},
		{"without NULL", padded(without + hash), false, true},
		{"another digest", padded(without + string(other[:])), false, false},
		{"bytes after it, short padding", "\x00\x01" + ff(8) + "\x00" + without + hash + strings.Repeat("\x55", size-3-8-len(without)-32), false, false},
		{"bytes after it, with NULL", "\x00\x01" + ff(8) + "\x00" + with + hash + strings.Repeat("\x55", size-3-8-len(with)-32), false, false},
		{"bytes in the parameters", padded("\x30\x33\x30\x0f\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x04\x02\x55\x55\x04\x20" + hash), false, false},
		{"a long length", padded("\x30\x81\x2f\x30\x0b\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x04\x20" + hash), false, false},
		{"an indefinite length", padded("\x30\x80\x30\x0b\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x04\x20" + hash + "\x00\x00"), false, false},
		{"the bare digest", padded(hash), false, false},
		{"the hexadecimal digest", padded(string(aeptest.New(t, timestamp.NewMock())["hash.sha256"])), false, false},
		{"SHA-384's identifier", padded("\x30\x2f\x30\x0b\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x02\x04\x20" + hash), false, false},
		{"padding of zeros", "\x00\x01" + strings.Repeat("\x00", size-2-len(without+hash)) + without + hash, false, false},
		{"random padding", "\x00\x02" + ff(size-3-len(without+hash)) + "\x00" + without + hash, false, false},
		{"the left half of the padding is free", "\x00\x01" + strings.Repeat("\xfe", size-3-len(without+hash)) + "\x00" + without + hash, false, false},
	} {
		if len(tt.message) != size {
			t.Fatalf("%s: %d bytes", tt.name, len(tt.message))
		}
		m := aeptest.New(t, timestamp.NewMock())
		m["signature.sig"] = aeptest.Base64(raw(key, tt.message))
		null, err := open(t, m).CheckSignature()
		if tt.valid != (err == nil) || null != tt.null || err != nil && !errors.Is(err, aep.ErrSignature) {
			t.Errorf("%s: NULL %t, %v", tt.name, null, err)
		}
	}
	// The same number with a leading zero byte, and a number that is equal modulo n.
	signature := raw(key, padded(without+hash))
	beyond := new(big.Int).Add(new(big.Int).SetBytes(signature), key.N).Bytes()
	for _, s := range [][]byte{append([]byte{0}, signature...), beyond, signature[:size-1], nil} {
		m := aeptest.New(t, timestamp.NewMock())
		m["signature.sig"] = aeptest.Base64(s)
		if _, err := open(t, m).CheckSignature(); !errors.Is(err, aep.ErrSignature) {
			t.Errorf("%d bytes: %v", len(s), err)
		}
	}
}

// raw is the RSA operation without padding rules: what a dishonest owner of the key could sign.
func raw(key *rsa.PrivateKey, message string) []byte {
	n := new(big.Int).Exp(new(big.Int).SetBytes([]byte(message)), key.D, key.N)
	return n.FillBytes(make([]byte, key.Size()))
}

func TestSecond(t *testing.T) {
	digest := sha256.Sum256([]byte(aeptest.Canonical))
	for _, message := range [][]byte{[]byte(aeptest.Canonical), digest[:]} {
		m := aeptest.New(t, timestamp.NewMock())
		m.SignSecond(t, message)
		p := open(t, m)
		if err := errors.Join(p.Second.Readable(), p.CheckSecond()); err != nil || len(p.Others) != 0 || p.Second.KeyID != sha256.Sum256(p.Second.PublicKey) {
			t.Errorf("%v, %v", err, p.Others)
		}
		p.Second.Signature[100] ^= 1
		if err := p.CheckSecond(); !errors.Is(err, aep.ErrSignature) {
			t.Errorf("a changed one: %v", err)
		}
	}
	for name, change := range map[string]func(m aeptest.Members){
		"signature_pqc.sig: ":  func(m aeptest.Members) { m["signature_pqc.sig"] = []byte("?") },
		"pqc_public_key.pem: ": func(m aeptest.Members) { delete(m, "pqc_public_key.pem") },
		"want ML-DSA-65":       func(m aeptest.Members) { m["pqc_public_key.pem"] = m["public_key.pem"] },
		"parsing public key":   func(m aeptest.Members) { m["pqc_public_key.pem"] = draftKey(m["pqc_public_key.pem"]) },
	} {
		m := aeptest.New(t, timestamp.NewMock())
		m.SignSecond(t, digest[:])
		change(m)
		p := open(t, m)
		if err := p.Second.Readable(); err == nil || !strings.Contains(err.Error(), name) || p.CheckSecond() == nil {
			t.Errorf("%v, want %q", err, name)
		}
	}
	m := aeptest.New(t, timestamp.NewMock())
	m["pqc_public_key.pem"] = []byte("a key without a signature")
	if p := open(t, m); p.Second != nil || len(p.Others) != 1 || p.CheckSecond() == nil {
		t.Errorf("%+v", p)
	}
}

// draftKey writes an ML-DSA-65 key under another object identifier, as drafts of the standard did.
func draftKey(doc []byte) []byte {
	block, _ := pem.Decode(doc)
	block.Bytes[16]++ // the last byte of 2.16.840.1.101.3.4.3.18
	return pem.EncodeToMemory(block)
}

func TestBinding(t *testing.T) {
	const metadata = `{"b": 1.0, "a": "x"}`
	for _, tt := range []struct {
		response, canonical string
		want                aep.Binding
	}{
		{aeptest.Response, aeptest.Canonical, aep.BindsText},
		{"", "", aep.BindsText},
		{" \n\n ", "", aep.BindsText},
		{"\n\n\na", "\na\n", aep.BindsText},
		{"a\r\rb\r\n", "a\n\nb\n", aep.BindsText},
		{"a\n \n\t\n\n", "a\n", aep.BindsText},
		{"as it stands \n\n\n", "as it stands \n\n\n", aep.BindsText},
		{"a\u00a0", "a\n", aep.BindsNothing}, // no-break space, which the package's rules do not count as white space
		{"a", "b\n", aep.BindsNothing},
		{"a", "a", aep.BindsText},
		{"a\n", "a", aep.BindsNothing},
		{"e\u0301", "\u00e9\n", aep.BindsNothing}, // equal only after Unicode normalisation
		{"a", "a\n\n" + `{"claim":"c","confidence":0.850000,"model":"m","policy_version":"1"}`, aep.BindsClaim},
		{"a", "a\n\n" + `{"claim":"c","confidence":0.850000,"model":"m","policy_version":"1"}` + "\n", aep.BindsNothing},
		{"a", "a\n\n" + `{"claim":"c","confidence":"high","model":"m","policy_version":"1"}`, aep.BindsNothing},
		{"a", "a\n\n" + `{"claim":"c","confidence":0.850000,"model":"m"}`, aep.BindsNothing},
		{"a", "a\n\n" + `{"claim":"c","confidence":1,"model":"m","policy_version":"1","x":1}`, aep.BindsNothing},
		{"a", "a\n" + `{"a":"x","b":1}`, aep.BindsMetadata},
		{"a", "a\n" + `{"a":"y","b":1}`, aep.BindsNothing},
	} {
		p := &aep.Package{Response: []byte(tt.response), Canonical: []byte(tt.canonical), Metadata: []byte(metadata)}
		if got := p.Binding(); got != tt.want {
			t.Errorf("%q as %q: %d, want %d", tt.response, tt.canonical, got, tt.want)
		}
	}
}

func TestIs(t *testing.T) {
	file := aeptest.New(t, timestamp.NewMock()).Zip(t)
	for name, tt := range map[string]struct {
		file []byte
		want bool
	}{
		"a package": {file, true}, "cut": {file[:len(file)/2], true}, "nothing": {nil, false},
		"after something": {append([]byte("x"), file...), false},
		"another archive": {aeptest.Members{"word/document.xml": []byte("canonical.bin")}.Zip(t), false},
	} {
		if got := aep.Is(tt.file); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
