package attested_test

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/cbor"
	"jurat/internal/subject/attested"
	"jurat/jurattest"
	"jurat/scitt"
	"jurat/verify"
	"jurat/verify/trust"
)

func key(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("..", "..", "..", "evidence", "testdata", "keys", "worthless-test-key-es256.pem"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(file)
	private, err := evidence.ParsePrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return private.(*ecdsa.PrivateKey)
}

// statement is signed with a key of the tests.
func statement(t *testing.T, payload []byte, more ...cbor.Pair) []byte {
	t.Helper()
	encode := func(value any) []byte {
		doc, err := cbor.Encode(value)
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	header := encode(append(cbor.Map{{Key: int64(1), Value: int64(-7)}, {Key: int64(4), Value: []byte("key-1")},
		{Key: int64(15), Value: cbor.Map{{Key: int64(1), Value: "https://bank.example"}, {Key: int64(2), Value: "transfer-7"}}}}, more...))
	digest := sha256.Sum256(encode([]any{"Signature1", header, []byte{}, payload}))
	r, s, err := ecdsa.Sign(nil, key(t), digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return encode(cbor.Tag{Number: 18, Content: []any{header, cbor.Map{}, payload, append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)}})
}

func known(t *testing.T) verify.Options {
	t.Helper()
	der, err := evidence.MarshalPublicKey(key(t).Public())
	if err != nil {
		t.Fatal(err)
	}
	made := &trust.Trust{SCITT: []trust.StatementKey{{Name: "the bank", Issuer: "https://bank.example", Use: trust.IssuesStatements, Algorithm: evidence.ES256,
		KeyID: evidence.DigestOf(der), PublicKey: der, COSEKeyID: []byte("key-1")}}}
	prepared, err := made.Prepared()
	if err != nil {
		t.Fatal(err)
	}
	return verify.Options{Trust: prepared}
}

func TestRead(t *testing.T) {
	s, err := attested.Read(statement(t, []byte("Transfer 7 was paid."), cbor.Pair{Key: int64(3), Value: "text/plain"}), known(t))
	if err != nil {
		t.Fatal(err)
	}
	v := s.Verification
	if s.Text != "Transfer 7 was paid." || s.Issuer != "https://bank.example" || s.Subject != "transfer-7" || s.ContentType != "text/plain" ||
		v.Signature != attested.Proved || v.Receipt != attested.NotProved || v.Trust == "" {
		t.Errorf("%+v", s)
	}
	if head := s.Head(); !strings.Contains(head, "has the key that signed it as the issuer's") || !strings.Contains(head, "not proved: it has no receipt") || strings.Contains(head, "Not verified") {
		t.Error(head)
	}
	unknown, err := attested.Read(s.File, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if head := unknown.Head(); unknown.Verification.Signature != attested.NotProved || unknown.Verification.Trust != "" || !strings.Contains(head, "Not verified: that the issuer signed it is not proved") {
		t.Error(head)
	}
}

// TestTexts: a payload that is no text is said to be none.
func TestTexts(t *testing.T) {
	digest := sha256.Sum256(nil)
	for want, payload := range map[string][]byte{"line\n\ttwo": []byte("line\n\ttwo"), "[1 bytes that are no text: sha256:": {0xff}, "[2 bytes that are no text: sha256:": []byte("a\x1b")} {
		if s, err := attested.Read(statement(t, payload), known(t)); err != nil || !strings.HasPrefix(s.Text, want) {
			t.Errorf("%v, %+v", err, s)
		}
	}
	s, err := attested.Read(statement(t, digest[:], cbor.Pair{Key: int64(258), Value: int64(-16)}, cbor.Pair{Key: int64(259), Value: "text/plain"}), known(t))
	if err != nil || s.Text != "[a digest of what is meant, which is not in the evidence: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855]" {
		t.Errorf("%v, %+v", err, s)
	}
}

func TestRefused(t *testing.T) {
	forged := statement(t, []byte("Transfer 7 was paid."))
	forged[len(forged)-1] ^= 1
	if _, err := attested.Read(forged, known(t)); !errors.Is(err, attested.ErrRefuted) || !strings.Contains(err.Error(), "was not signed with the key that it names") {
		t.Error(err)
	}
	h := jurattest.New(t)
	r := h.Seal(t, evidence.Payload{AgentID: "a", RequestID: "r1", Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "m-1",
		Prompt: jsontext.Value(`""`), Response: jsontext.Value(`""`), Parameters: jsontext.Value(`{}`)})
	signers, err := h.Keys.Signers(t.Context(), evidence.RoleOperator, "operator")
	if err != nil {
		t.Fatal(err)
	}
	own, err := scitt.Sign(r, "urn:jurat:operator:operator", signers[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := attested.Read(own, known(t)); !errors.Is(err, attested.ErrOwnRecord) {
		t.Error(err)
	}
	for _, file := range [][]byte{nil, []byte("{}"), forged[:20]} {
		if _, err := attested.Read(file, known(t)); err == nil {
			t.Errorf("%x", file)
		}
	}
}

func TestCheck(t *testing.T) {
	read := func() *attested.Statement {
		s, err := attested.Read(statement(t, []byte("Transfer 7 was paid.")), known(t))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if err := read().Check(nil); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(s *attested.Statement){
		"something else than its file":  func(s *attested.Statement) { s.Text = "Transfer 7 was not paid." },
		"something else than its file ": func(s *attested.Statement) { s.Issuer = "https://other.example" },
		"something else than its file.": func(s *attested.Statement) { s.Digest[0]++ },
		"unknown outcome":               func(s *attested.Statement) { s.Verification.Signature = "refuted" },
		"CBOR at byte":                  func(s *attested.Statement) { s.File = s.File[:len(s.File)-1] },
	} {
		s := read()
		change(s)
		if err := s.Check(nil); err == nil || !strings.Contains(err.Error(), strings.TrimRight(name, " .")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := read()
	if err := s.Check([]attested.Statement{*s}); err == nil || !strings.Contains(err.Error(), "duplicate") {
		t.Error(err)
	}
}
