package dsse_test

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/dsse"
	"jurat/evidence"
	"jurat/jurattest"
)

func sealed(t testing.TB, h *jurattest.House) *evidence.Record {
	t.Helper()
	return h.Seal(t, evidence.Payload{AgentID: "a", RequestID: "r1", Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "m-1",
		Prompt: jsontext.Value(`"Which route?"`), Response: jsontext.Value(`"The A9."`), Parameters: jsontext.Value(`{"temperature":0.2}`)})
}

func files(t testing.TB) (record, bundle []byte) {
	t.Helper()
	h := jurattest.New(t)
	r := sealed(t, h)
	record, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if bundle, err = h.Bundle(t, r, sealed(t, h)).Marshal(); err != nil {
		t.Fatal(err)
	}
	return record, bundle
}

func signers(t testing.TB) []evidence.Signer {
	t.Helper()
	s, err := jurattest.New(t).Keys.Signers(t.Context(), evidence.RoleOperator, "operator")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func enveloped(t testing.TB, file []byte) []byte {
	t.Helper()
	statement, err := dsse.Statement(file)
	if err != nil {
		t.Fatal(err)
	}
	return signed(t, statement)
}

func signed(t testing.TB, statement []byte) []byte {
	t.Helper()
	e, err := dsse.Sign(statement, signers(t))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := e.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestPAE is the example of the DSSE specification.
func TestPAE(t *testing.T) {
	if got := string(dsse.PAE("http://example.com/HelloWorld", []byte("hello world"))); got != "DSSEv1 29 http://example.com/HelloWorld 11 hello world" {
		t.Error(got)
	}
}

func TestFileComesOutAsItWentIn(t *testing.T) {
	record, bundle := files(t)
	for _, file := range [][]byte{record, bundle} {
		doc := enveloped(t, file)
		if !dsse.Is(doc) {
			t.Error("not recognised")
		}
		e, err := dsse.Parse(doc)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.File(); err != nil || string(got) != string(file) {
			t.Errorf("%v: %s", err, got)
		}
		if again, err := e.Marshal(); err != nil || string(again) != string(doc) {
			t.Errorf("%v: %s", err, again)
		}
	}
}

// TestStatement reads the statement as an in-toto tool does that does not know jurat.
func TestStatement(t *testing.T) {
	_, bundle := files(t)
	b, err := evidence.ParseBundle(bundle)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := dsse.Statement(bundle)
	if err != nil {
		t.Fatal(err)
	}
	var statement struct {
		Type          string `json:"_type"`
		PredicateType string `json:"predicateType"`
		Predicate     map[string]jsontext.Value
		Subject       []struct {
			Name   string
			Digest map[string]string
		}
	}
	if err := json.Unmarshal(doc, &statement, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	if statement.Type != "https://in-toto.io/Statement/v1" || statement.PredicateType != "urn:jurat:sealed-records:v1" || len(statement.Subject) != 2 {
		t.Errorf("%+v", statement)
	}
	for i, s := range statement.Subject {
		r := b.Records[i]
		if s.Name != r.Payload.RecordID || "sha256:"+s.Digest["sha256"] != r.Digest.String() || len(s.Digest) != 1 {
			t.Errorf("%+v", s)
		}
	}
	about := strings.Trim(string(statement.Predicate["about"]), `"`)
	page, err := os.ReadFile(filepath.Join("..", "docs", "format.md"))
	if err != nil {
		t.Fatal(err)
	}
	if quoted := strings.Join(strings.Fields(strings.ReplaceAll(string(page), "\n> ", " ")), " "); !strings.Contains(quoted, about) || len(statement.Predicate) != 2 {
		t.Errorf("docs/format.md does not contain: %s", about)
	}
	if form, err := evidence.Canonical(doc); err != nil || string(form) != string(doc) {
		t.Errorf("not canonical: %v", err)
	}
}

// TestOtherSpellings: Parse accepts JSON and base64 as other tools write them.
func TestOtherSpellings(t *testing.T) {
	record, _ := files(t)
	doc := enveloped(t, record)
	pretty := jsontext.Value(bytes.Clone(doc))
	if err := pretty.Indent(); err != nil {
		t.Fatal(err)
	}
	e, err := dsse.Parse(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(pretty), "\n" + string(doc), strings.ReplaceAll(string(doc), "application/vnd", `application\/vnd`),
		fmt.Sprintf(`{"payloadType":"application/vnd.in-toto+json","signatures":[{"sig":"%s"}],"payload":"%s"}`,
			base64.URLEncoding.EncodeToString([]byte("\xfb\xff")), base64.URLEncoding.EncodeToString(e.Statement()))} {
		e, err := dsse.Parse([]byte(text))
		if err != nil || !dsse.Is([]byte(text)) {
			t.Errorf("%v: %.80s", err, text)
			continue
		}
		if _, err := e.File(); err != nil {
			t.Error(err)
		}
	}
}

// TestIs: a file that only mentions envelopes is not an envelope.
func TestIs(t *testing.T) {
	record, _ := files(t)
	doc := string(enveloped(t, record))
	h := jurattest.New(t)
	p := evidence.Payload{AgentID: "a", RequestID: "r1", Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "m-1", Prompt: jsontext.Value(`""`),
		Response: jsontext.Value(`{"payload":"","payloadType":"application/vnd.in-toto+json","signatures":[]}`), Parameters: jsontext.Value(`{}`)}
	about, err := h.Seal(t, p).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		doc  string
		want bool
	}{
		{doc, true}, {doc[:len(doc)-40], true}, {string(record), false}, {string(about), false}, {"", false}, {"[]", false}, {"{}", false}, {"{", false},
		{`{"payloadType":1}`, false}, {strings.Replace(doc, "in-toto", "cyclonedx", 1), false}, {"\x00" + doc, false},
	} {
		if got := dsse.Is([]byte(tt.doc)); got != tt.want {
			t.Errorf("%.60q: %t", tt.doc, got)
		}
	}
}

func TestEnvelopesRefused(t *testing.T) {
	record, _ := files(t)
	doc := string(enveloped(t, record))
	_, signature, _ := strings.Cut(doc, `"signatures":[`)
	signature, _, _ = strings.Cut(signature, "]")
	for _, tt := range []struct{ name, doc, want string }{
		{"not JSON", "{", "the document ends too early"},
		{"more in it", strings.Replace(doc, "{", `{"x":1,`, 1), "unknown member"},
		{"a member twice", strings.Replace(doc, "{", `{"payloadType":"x",`, 1), "has this member twice"},
		{"another type", strings.Replace(doc, "in-toto", "cyclonedx", 1), "payloadType"},
		{"no signature", strings.Replace(doc, signature, "", 1), "0 signatures"},
		{"too many", strings.Replace(doc, signature, strings.Repeat(signature+",", 16)+signature, 1), "17 signatures"},
		{"a payload that is no base64", strings.Replace(doc, `"payload":"`, `"payload":"!`, 1), "payload: illegal"},
		{"a payload in two lines", strings.Replace(doc, `"payload":"`, `"payload":"\n`, 1), "in one line"},
		{"a signature that is no base64", strings.Replace(doc, `"sig":"`, `"sig":"!`, 1), "signatures/0: illegal"},
	} {
		if _, err := dsse.Parse([]byte(tt.doc)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestStatementsRefused(t *testing.T) {
	record, bundle := files(t)
	own, err := dsse.Statement(record)
	if err != nil {
		t.Fatal(err)
	}
	statement := string(own)
	for _, tt := range []struct{ name, statement, want string }{
		{"another predicate", strings.Replace(statement, "sealed-records:v1", "sealed-records:v2", 1), "not one about sealed records"},
		{"another digest", strings.Replace(statement, `"subject":[{"digest":{"sha256":"`, `"subject":[{"digest":{"sha256":"0`, 1), "contradicts the records"},
		{"another subject too", strings.Replace(statement, `"subject":[`, `"subject":[{"digest":{"sha256":""},"name":""},`, 1), "contradicts the records"},
		{"another sentence", strings.Replace(statement, "is no DSSE signature", "is a DSSE signature", 1), "contradicts the records"},
		{"another type", strings.Replace(statement, "Statement/v1", "Statement/v0.1", 1), "contradicts the records"},
		{"another spelling", " " + statement, "contradicts the records"},
		{"more in it", strings.Replace(statement, "{", `{"x":1,`, 1), "contradicts the records"},
		{"more in the predicate", strings.Replace(statement, `"record":`, `"bundle":{},"record":`, 1), "contradicts the records"},
		{"no record", `{"predicateType":"urn:jurat:sealed-records:v1"}`, "opening statement"},
		{"a record that does not open", strings.Replace(statement, `"schema":"jurat`, `"schema":"other`, 1), "opening statement"},
		{"not JSON", "text", "opening statement"},
	} {
		e, err := dsse.Parse(signed(t, []byte(tt.statement)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.File()
		if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, dsse.ErrOther) != (tt.name == "another predicate") {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	empty, err := (&evidence.Bundle{}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range [][]byte{empty, bundle[1:], nil} {
		if _, err := dsse.Statement(file); err == nil {
			t.Errorf("a statement about %.20q", file)
		}
	}
	if _, err := dsse.Sign(own, nil); err == nil {
		t.Error("Sign made an envelope without a signature")
	}
}

// TestOpenSSL: the signatures have the form that other tools expect. ECDSA (in DER) and RSA PKCS #1 v1.5 sign SHA-256 of
// PAE, Ed25519 signs PAE itself. The test builds PAE from the envelope's text, without the code under test.
func TestOpenSSL(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil && os.Getenv("CI") != "true" {
		t.Skip("openssl is not installed")
	}
	record, _ := files(t)
	statement, err := dsse.Statement(record)
	if err != nil {
		t.Fatal(err)
	}
	for _, algorithm := range []string{"es256", "rs256", "ed25519"} {
		t.Run(algorithm, func(t *testing.T) {
			pemKey, err := os.ReadFile(filepath.Join("..", "evidence", "testdata", "keys", "worthless-test-key-"+algorithm+".pem"))
			if err != nil {
				t.Fatal(err)
			}
			block, _ := pem.Decode(pemKey)
			key, err := evidence.ParsePrivateKey(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			signer, err := evidence.NewSigner(key, nil)
			if err != nil {
				t.Fatal(err)
			}
			e, err := dsse.Sign(statement, []evidence.Signer{signer})
			if err != nil {
				t.Fatal(err)
			}
			doc, err := e.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			public, err := evidence.MarshalPublicKey(key.Public())
			if err != nil {
				t.Fatal(err)
			}
			if out, err := judge(t, doc, public, algorithm); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			changed := strings.Replace(string(doc), `"payload":"eyJ`, `"payload":"eyK`, 1)
			if out, err := judge(t, []byte(changed), public, algorithm); err == nil {
				t.Errorf("accepts a changed payload: %s", out)
			}
		})
	}
}

// judge has OpenSSL check the signature of an envelope.
func judge(t *testing.T, doc, public []byte, algorithm string) (string, error) {
	t.Helper()
	var envelope struct {
		Payload     []byte
		PayloadType string
		Signatures  []struct{ Keyid, Sig string }
	}
	if err := json.Unmarshal(doc, &envelope, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	signature, err := base64.StdEncoding.DecodeString(envelope.Signatures[0].Sig)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, content := range map[string]string{
		"pae":       fmt.Sprintf("DSSEv1 %d %s %d %s", len(envelope.PayloadType), envelope.PayloadType, len(envelope.Payload), envelope.Payload),
		"signature": string(signature), "public.pem": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"dgst", "-sha256", "-verify", "public.pem", "-signature", "signature", "pae"}
	if algorithm == "ed25519" {
		args = []string{"pkeyutl", "-verify", "-pubin", "-inkey", "public.pem", "-rawin", "-in", "pae", "-sigfile", "signature"}
	}
	cmd := exec.Command("openssl", args...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// FuzzParse: Parse never panics, and the file in an envelope can be put into an envelope again.
func FuzzParse(f *testing.F) {
	record, bundle := files(f)
	f.Add(enveloped(f, record))
	f.Add(enveloped(f, bundle))
	f.Fuzz(func(t *testing.T, doc []byte) {
		e, err := dsse.Parse(doc)
		if err != nil {
			return
		}
		file, err := e.File()
		if err != nil {
			return
		}
		if again, err := dsse.Statement(file); err != nil || string(again) != string(e.Statement()) {
			t.Errorf("%v: %s", err, again)
		}
	})
}
