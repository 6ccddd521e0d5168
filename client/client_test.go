package client_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/api"
	"jurat/client"
	"jurat/evidence"
	"jurat/jurattest"
	"jurat/property"
	"jurat/verify"
	"jurat/verify/trust"
)

const payload = `{"agent_id":"a","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"v","prompt":"p",
	"response":"r","parameters":{}}`

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func encoded(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// trustIn returns a trust file with one key.
func trustIn(signer evidence.Signer, public any) *trust.Trust {
	t := &trust.Trust{Format: trust.Format, Keys: []trust.Key{{Name: "a", Role: evidence.RoleAgent, Algorithm: signer.Info().Algorithm,
		KeyID: signer.Info().KeyID, PublicKey: must(evidence.MarshalPublicKey(public)), Custody: trust.ByOwner}}}
	return must(trust.Parse(must(t.Marshal())))
}

func Example() {
	// A private key as 'openssl genpkey -algorithm ed25519' writes it.
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		fmt.Println(err)
		return
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		fmt.Println(err)
		return
	}
	signer, err := client.ParseKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		fmt.Println(err)
		return
	}
	signed, err := client.Sign([]byte(`{"agent_id": "logistics-agent-v1", "request_id": "uuid", "timestamp": "2026-01-31T16:15:00Z",
		"model": "gpt-4.1", "model_version": "gpt-4.1-turbo-2026-01-25", "prompt": "Plan the best route.",
		"response": "Take the A9 by Nuremberg: 4.5 hours.", "parameters": {"temperature": 0.2}}`), signer)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(signed.Payload.Actor(), signed.Payload.ActionType, signed.Payload.Signers[0].Algorithm)
	fmt.Println(len(signed.Signatures), "signature,", len(signed.Timestamps), "time stamps")
	// Output:
	// logistics-agent-v1 model_output Ed25519
	// 1 signature, 0 time stamps
}

func TestSignAndCheck(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer := must(client.ParseKey(encoded("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(private)))))
	signed := must(client.Sign([]byte(payload), signer))
	reread := must(evidence.Open(must(signed.Marshal())))
	report := must(client.Check(signed, reread, trustIn(signer, private.Public())))
	if f := report.Of(verify.NonRepudiation); f.Status != verify.Proved {
		t.Errorf("non-repudiation: %+v", f)
	}
	if f := report.Of(verify.Time); f.Status != verify.NotProved {
		t.Errorf("time of a record without a time stamp: %+v", f)
	}
	other := must(client.Sign([]byte(payload), signer)) // the key has another id
	if _, err := client.Check(signed, other, nil); !errors.Is(err, client.ErrOther) {
		t.Errorf("another record: %v", err)
	}
	forged := *reread
	forged.Signatures = other.Signatures
	if _, err := client.Check(signed, &forged, nil); !errors.Is(err, client.ErrOther) {
		t.Errorf("another signature: %v", err)
	}
	forged.Signatures = nil
	if _, err := client.Check(signed, &forged, nil); !errors.Is(err, client.ErrOther) {
		t.Errorf("no signature: %v", err)
	}
}

func TestSignRefuses(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer := must(evidence.NewSigner(private, nil))
	for want, doc := range map[string]string{
		"field prompt: missing":            strings.Replace(payload, `"prompt":"p",`, "", 1),
		"this member twice":                strings.Replace(payload, `{`, `{"agent_id":"b",`, 1),
		"an act of the operator":           `{"action_type":"erasure","agent_id":"a","timestamp":"2026-01-31T16:15:00Z","response":{}}`,
		"names other keys than those that": strings.Replace(payload, `{`, `{"signers":[{"alg":"ES256","key_id":"`+evidence.DigestOf(nil).String()+`"}],`, 1),
	} {
		if _, err := client.Sign([]byte(doc), signer); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("signed: %v, want %q", err, want)
		}
		if _, err := client.Prepare([]byte(doc), private.Public()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("prepared: %v, want %q", err, want)
		}
	}
	if _, err := client.Sign([]byte(payload)); err == nil {
		t.Error("Sign accepted a payload without signers")
	}
	if _, err := client.Prepare([]byte(payload)); err == nil {
		t.Error("Prepare accepted a payload without signers")
	}
}

// TestHighS: a program that does not know low S signs with a high S. Assemble replaces the signature by its low-S form.
func TestHighS(t *testing.T) {
	private := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	signer := must(evidence.NewSigner(private, nil))
	canonical := must(client.Prepare([]byte(payload), private.Public()))
	low := must(signer.Sign(canonical))
	var parts struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(low, &parts); err != nil {
		t.Fatal(err)
	}
	parts.S.Sub(elliptic.P256().Params().N, parts.S)
	high := must(asn1.Marshal(parts))
	r := must(client.Assemble(canonical, high))
	if string(r.Signatures[0]) != string(low) {
		t.Errorf("%x, want %x", r.Signatures[0], low)
	}
	given := must(evidence.OpenParts(canonical, [][]byte{high}, nil))
	if _, err := client.Check(given, r, nil); err != nil {
		t.Errorf("its twin is another: %v", err)
	}
	for _, signatures := range [][][]byte{nil, {low, low}, {append(low, 0)}, {[]byte("no signature")}} {
		if _, err := client.Assemble(canonical, signatures...); err == nil {
			t.Errorf("assembled with %x", signatures)
		}
	}
	for _, text := range []string{string(canonical) + "\n", " " + string(canonical), "{}", ""} {
		if _, err := client.Assemble([]byte(text), low); err == nil {
			t.Errorf("assembled %q", text)
		}
	}
}

// TestOpenSSL reads keys and signatures made by OpenSSL, and has OpenSSL verify signatures of this package.
func TestOpenSSL(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil && os.Getenv("CI") != "true" {
		t.Skip("openssl is not installed")
	}
	for name, make := range map[string]string{
		"P-256":   "openssl ecparam -genkey -name prime256v1 -noout | openssl pkcs8 -topk8 -nocrypt -out private.pem",
		"RSA":     "openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out private.pem",
		"Ed25519": "openssl genpkey -algorithm ed25519 -out private.pem",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			shell := func(line string) {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", line)
				cmd.Dir = dir
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", line, err, out)
				}
			}
			shell(make)
			shell("openssl pkey -in private.pem -pubout -out public.pem")
			read := func(file string) []byte { return must(os.ReadFile(filepath.Join(dir, file))) }
			public := must(client.ParsePublicKey(read("public.pem")))
			signer := must(client.ParseKey(read("private.pem")))
			canonical := must(client.Prepare([]byte(payload), public))
			if err := os.WriteFile(filepath.Join(dir, "payload.json"), canonical, 0o600); err != nil {
				t.Fatal(err)
			}
			for range 4 { // about half of OpenSSL's ECDSA signatures have a high S
				if name == "Ed25519" {
					shell("openssl pkeyutl -sign -inkey private.pem -rawin -in payload.json -out sig.bin")
				} else {
					shell("openssl dgst -sha256 -sign private.pem -out sig.bin payload.json")
				}
				r := must(client.Assemble(canonical, read("sig.bin")))
				if err := r.CheckSignature(0, public); err != nil {
					t.Error(err)
				}
			}
			if signer.Info().KeyID != must(evidence.KeyIDOf(public)) {
				t.Error("the private key does not belong to the public key")
			}
		})
	}
}

func TestKeysRefused(t *testing.T) {
	private := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	good := encoded("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(private)))
	public := encoded("PUBLIC KEY", must(x509.MarshalPKIXPublicKey(private.Public())))
	if _, err := client.ParseKey(append([]byte("# mine\n"), good...)); err != nil {
		t.Errorf("with a comment: %v", err)
	}
	for want, text := range map[string][]byte{
		"found none":                   nil,
		"openssl pkcs8 -topk8":         encoded("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(private))),
		`found "PUBLIC KEY"`:           public,
		"another after it":             append(append([]byte{}, good...), good...),
		"parsing private key":          encoded("PRIVATE KEY", []byte{1, 2, 3}),
		"an ECDSA key on P-384":        encoded("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))))),
		`found "ENCRYPTED PRIVATE KEY`: encoded("ENCRYPTED PRIVATE KEY", []byte{1}),
	} {
		if _, err := client.ParseKey(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := client.ParsePublicKey(good); err == nil || !strings.Contains(err.Error(), "-pubout") {
		t.Errorf("a private key: %v", err)
	}
	if _, err := client.ParsePublicKey(public); err != nil {
		t.Error(err)
	}
}

// FuzzParseKeys: every key that parses can make signatures that are valid by this format.
func FuzzParseKeys(f *testing.F) {
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	f.Add(encoded("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(private))))
	f.Add(encoded("PUBLIC KEY", must(x509.MarshalPKIXPublicKey(private.Public()))))
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if signer, err := client.ParseKey(text); err == nil && signer.Info().KeyID.IsZero() {
			t.Error("a key without an id")
		}
		if public, err := client.ParsePublicKey(text); err == nil {
			if _, err := evidence.KeyIDOf(public); err != nil {
				t.Error(err)
			}
		}
	})
}

const refund = `{"agent_id":"shop","request_id":"r-1","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"1",
	"prompt":"p","response":"r","parameters":{},"metadata":{"amount":120.5}}`

// TestProve: an owner seals a value apart, and proves a property of it without any installation.
func TestProve(t *testing.T) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer := must(evidence.NewSigner(private, nil))
	apart := client.Apart{Pointers: []string{"/prompt"}, Provable: map[string]property.Kind{"/metadata/amount": "decimal:2"}}
	mine := must(client.SignApart([]byte(refund), apart, signer))
	sent := *mine
	sent.Disclosures = nil
	about := evidence.Member{Record: &sent, Pointer: "/metadata/amount"}
	below := property.Statement{Form: property.Range, Lo: jsontext.Value("0"), Hi: jsontext.Value("5000")}
	if err := client.Prove(below, about); !errors.Is(err, evidence.ErrWithheld) {
		t.Errorf("without the value: %v", err)
	}
	if err := client.Disclose(&sent, mine); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the same statement again takes the place of the first
		if err := client.Prove(below, about); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := evidence.Withhold([]*evidence.Record{&sent}, []string{"/metadata/amount", "/prompt"}); err != nil {
		t.Fatal(err)
	}
	file := must(sent.Marshal())
	read := must(evidence.Open(file))
	if found := verify.Record(read, verify.Options{}); len(read.Properties) != 1 || len(found.Properties) != 1 || found.Of(verify.Property).Status != verify.Proved || len(read.Disclosures) != 0 {
		t.Errorf("%+v", found)
	}

	if err := client.Prove(property.Statement{Form: property.Range, Lo: jsontext.Value("0"), Hi: jsontext.Value("100")}, evidence.Member{Record: mine, Pointer: "/metadata/amount"}); !errors.Is(err, property.ErrFalse) {
		t.Errorf("false: %v", err)
	}
	if err := client.Prove(below, evidence.Member{Record: mine, Pointer: "/prompt"}); !errors.Is(err, evidence.ErrUnprovable) {
		t.Errorf("not provable: %v", err)
	}
	lied := *mine
	lied.Disclosures = slices.Clone(mine.Disclosures)
	lied.Disclosures[0].Value = jsontext.Value("99.5")
	if err := client.Prove(below, evidence.Member{Record: &lied, Pointer: "/metadata/amount"}); !errors.Is(err, evidence.ErrDisclosure) {
		t.Errorf("another value: %v", err)
	}
	if err := client.Disclose(&sent, &lied); !errors.Is(err, evidence.ErrDisclosure) || len(sent.Disclosures) != 0 {
		t.Errorf("disclosing another value: %v", err)
	}
	if _, err := client.SignApart([]byte(refund), client.Apart{Provable: map[string]property.Kind{"/metadata/amount": "date"}}, signer); err == nil {
		t.Error("a number was made provable as a date")
	}
}

// TestProperty: the request has the statement as docs/api.md writes it, and the answer is the server's bundle.
func TestProperty(t *testing.T) {
	house := jurattest.New(t)
	bundle := house.Bundle(t, house.Seal(t, must(evidence.ParseDraft([]byte(strings.Replace(refund, "2026-01-31", "2025-12-31", 1)))).Payload))
	doc := must(bundle.Marshal())
	var path, sent string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, sent = r.Method+" "+r.URL.Path, string(must(io.ReadAll(r.Body)))
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write(doc); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	got, err := connect(t, client.Config{URL: s.URL}).Property(t.Context(), "a/b", api.Property{Form: "range", Pointer: "/metadata/amount", Lo: []byte("0"), Hi: []byte("5000")})
	if err != nil || got.Records[0].Digest != bundle.Records[0].Digest {
		t.Errorf("%v, %v", got, err)
	}
	if path != "POST /v1/records/a/b/properties" || sent != `{"form":"range","pointer":"/metadata/amount","lo":0,"hi":5000}` {
		t.Errorf("%s %s", path, sent)
	}
}
