package token_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/token"
	"jurat/internal/test/must"
)

const mia = "pkcs11:token=house;object=mia"

var digest = func() []byte { d := sha256.Sum256([]byte("text")); return d[:] }()

// says, if set in the environment, makes this program a helper that answers each request with this text.
const says = "JURAT_TEST_HELPER_SAYS"

func TestMain(m *testing.M) {
	text, ok := os.LookupEnv(says)
	if !ok {
		os.Exit(m.Run())
	}
	if text == "pin" {
		fmt.Fprintln(os.Stderr, "wrong")
		os.Exit(3)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Print(text)
	}
}

// saying returns a helper that answers each request with a text.
func saying(t *testing.T, text string) *token.Helper {
	t.Helper()
	t.Setenv(says, text)
	return helperOf(t, os.Args[0])
}

func helperOf(t testing.TB, command string) *token.Helper {
	t.Helper()
	h := &token.Helper{}
	h.Use(command)
	t.Cleanup(h.Close)
	return h
}

func signerOf(t testing.TB, h *token.Helper, public crypto.PublicKey) crypto.Signer {
	t.Helper()
	return must.Get(h.Signer(token.Reference{URI: mia, Public: public}))(t)
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	return must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
}

func quoted(b []byte) string { return fmt.Sprintf("%q", base64.StdEncoding.EncodeToString(b)) }

// TestHostileHelper lets no lie of a helper pass for a signature, and no helper keep a caller.
func TestHostileHelper(t *testing.T) {
	private, other := newKey(t), newKey(t)
	signed := func(key crypto.Signer, text string) []byte {
		digest := sha256.Sum256([]byte(text))
		return must.Get(key.Sign(rand.Reader, digest[:], crypto.SHA256))(t)
	}
	right := signed(private, "text")
	for name, c := range map[string]struct {
		text string
		want error // nil: any
	}{
		"other text":       {fmt.Sprintf(`{"id":1,"signature":%s}`+"\n", quoted(signed(private, "other"))), evidence.ErrSignature},
		"other key":        {fmt.Sprintf(`{"id":1,"signature":%s}`+"\n", quoted(signed(other, "text"))), evidence.ErrSignature},
		"no signature":     {`{"id":1}` + "\n", evidence.ErrSignature},
		"another id":       {fmt.Sprintf(`{"id":2,"signature":%s}`+"\n", quoted(right)), token.ErrUnavailable},
		"a member more":    {fmt.Sprintf(`{"id":1,"signature":%s,"w":1}`+"\n", quoted(right)), token.ErrUnavailable},
		"a member twice":   {fmt.Sprintf(`{"id":1,"id":1,"signature":%s}`+"\n", quoted(right)), token.ErrUnavailable},
		"no JSON":          {"hello\n", token.ErrUnavailable},
		"an unknown error": {`{"error":{"code":"odd","message":"m"},"id":1}` + "\n", nil},
		"error and answer": {fmt.Sprintf(`{"error":{"code":"refused","message":"m"},"id":1,"signature":%s}`+"\n", quoted(right)), token.ErrRefused},
		"a long line":      {strings.Repeat("x", 1<<17), token.ErrUnavailable},
		"silence":          {"", token.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			h := saying(t, c.text)
			if name == "silence" {
				h.Hurry(50 * time.Millisecond)
			}
			signature, err := signerOf(t, h, private.Public()).Sign(nil, digest, crypto.SHA256)
			must.Hold(t, err != nil && (c.want == nil || errors.Is(err, c.want)), "signature %x, error %v, want %v", signature, err, c.want)
		})
	}
	_, err := signerOf(t, saying(t, fmt.Sprintf(`{"id":1,"signature":%s}`+"\n", quoted(right))), private.Public()).Sign(nil, digest, crypto.SHA256)
	must.Hold(t, err == nil, "the right answer, from which the others are changed: %v", err)
}

// TestHostileKeys refuses what a helper calls a key and is not one, or is not the one that was asked for.
func TestHostileKeys(t *testing.T) {
	der := must.Get(evidence.MarshalPublicKey(newKey(t).Public()))(t)
	public, _, err := ed25519.GenerateKey(rand.Reader)
	must.Do(t, err)
	edwards := must.Get(evidence.MarshalPublicKey(public))(t)
	answer := func(algorithm, uri string, public []byte, kind string) string {
		return fmt.Sprintf(`{"id":1,"key":{"alg":%q,"public":%s,"uri":%q,"protection":{"kind":%q,"local":true,"never_extractable":true}}}`+"\n", algorithm, quoted(public), uri, kind)
	}
	for name, text := range map[string]string{
		"the wrong algorithm": answer("RS256", mia, der, "pkcs11"),
		"Ed25519":             answer("Ed25519", mia, edwards, "pkcs11"),
		"no key":              answer("ES256", mia, der[1:], "pkcs11"),
		"a PIN":               answer("ES256", mia+"?pin-value=1", der, "pkcs11"),
		"no name":             answer("ES256", "", der, "pkcs11"),
		"control characters":  answer("ES256", "pkcs11:\u009b", der, "pkcs11"),
		"no protection":       answer("ES256", mia, der, ""),
		"nothing":             `{"id":1}` + "\n",
	} {
		k, err := saying(t, text).FindOrGenerate(t.Context(), mia, evidence.ES256)
		must.Hold(t, err != nil, "%s: %+v is taken", name, k)
	}
	must.Fail(t, nil, "the right key")(saying(t, answer("ES256", mia, der, "pkcs11")).FindOrGenerate(t.Context(), mia, evidence.ES256))
	_, err = saying(t, answer("ES256", mia, der, "pkcs11")).FindOrGenerate(t.Context(), mia, evidence.RS256)
	must.Hold(t, err != nil, "a key of another algorithm than was asked for is taken")
}

// TestRefusedPINStartsNoHelper has a helper end because of its PIN. No other is started, which would try the PIN again.
func TestRefusedPINStartsNoHelper(t *testing.T) {
	dir := t.TempDir()
	script, starts := filepath.Join(dir, "helper"), filepath.Join(dir, "starts")
	must.Do(t, os.WriteFile(script, []byte("#!/bin/sh\necho start >> "+starts+"\nexit 3\n"), 0o700))
	h := helperOf(t, script)
	for range 5 {
		must.Fail(t, token.ErrPIN)(h.Find(t.Context(), mia))
		time.Sleep(150 * time.Millisecond) // longer than the first wait before a helper is started again
	}
	started, err := os.ReadFile(starts)
	must.Hold(t, err == nil && string(started) == "start\n", "the helper was started:\n%s%v", started, err)
}

// TestHelperThatStays: a helper that does not end with its input, or whose child holds its output open, does not keep who closes it.
func TestHelperThatStays(t *testing.T) {
	const waits = `while test -e "$0"; do sleep 0.1; done`
	for name, stays := range map[string]string{"it": waits, "its child": "(" + waits + ") & wait"} {
		t.Run(name, func(t *testing.T) {
			script := filepath.Join(t.TempDir(), "helper")
			answer := `{"id":1,"error":{"code":"not_found","message":"m"}}`
			must.Do(t, os.WriteFile(script, []byte("#!/bin/sh\nread line\necho '"+answer+"'\n"+stays+"\n"), 0o700))
			h := &token.Helper{}
			h.Use(script)
			h.Hurry(time.Second)
			must.Fail(t, token.ErrNotFound)(h.Find(t.Context(), mia))
			closed := make(chan struct{})
			go func() {
				h.Close()
				close(closed)
			}()
			select {
			case <-closed:
			case <-time.After(30 * time.Second):
				t.Error("Close waits for the helper")
			}
		})
	}
}

// TestHelperThatDoesNotRead is replaced once its pipe is full, even if its callers always give up before the helper's time is over.
func TestHelperThatDoesNotRead(t *testing.T) {
	dir := t.TempDir()
	script, starts := filepath.Join(dir, "helper"), filepath.Join(dir, "starts")
	must.Do(t, os.WriteFile(starts, nil, 0o600))
	must.Do(t, os.WriteFile(script, []byte("#!/bin/sh\necho >> "+starts+"\nexec sleep 60\n"), 0o700))
	h := helperOf(t, script)
	h.Hurry(time.Second)
	defer time.AfterFunc(20*time.Second, h.Close).Stop() // ends a caller that hangs
	for len(must.Get(os.ReadFile(starts))(t)) < 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := h.Find(ctx, mia+strings.Repeat("x", 900))
		cancel()
		must.Need(t, errors.Is(err, context.DeadlineExceeded) || errors.Is(err, token.ErrUnavailable), "%v", err)
	}
	h.Hurry(50 * time.Millisecond)
	must.Fail(t, token.ErrUnavailable)(signerOf(t, h, newKey(t).Public()).Sign(nil, digest, crypto.SHA256))
}

// TestNoHelper: where the machine names no helper, or one that is missing, the error says what to do, and the helper's last words are in it.
func TestNoHelper(t *testing.T) {
	t.Setenv(says, "pin")
	for command, want := range map[string]string{"": "set JURAT_TOKEN_HELPER", "/no/such/helper --a b": "/no/such/helper", os.Args[0]: `said "wrong"`} {
		t.Setenv(token.Variable, command)
		var h token.Helper
		_, err := signerOf(t, &h, newKey(t).Public()).Sign(nil, digest, crypto.SHA256)
		must.Hold(t, err != nil && strings.Contains(err.Error(), want) && h.Ready(t.Context()) != nil, "%q: error %v, want one with %q", command, err, want)
		h.Close()
	}
}

func TestCheckURI(t *testing.T) {
	for text, ok := range map[string]bool{mia: true, "aws-kms:key/1": true, "": false, "house": false, ":x": false, "pkcs11:": false, "pkcs11:a b": false,
		mia + "?pin-value=1": false, mia + "?PIN-source=/x": false, "pkcs11:" + strings.Repeat("x", 1100): false} {
		err := token.CheckURI(text)
		must.Hold(t, (err == nil) == ok, "%q: %v", text, err)
	}
}

// TestSignerRefuses what a helper does not sign.
func TestSignerRefuses(t *testing.T) {
	s := signerOf(t, helperOf(t, "/no/such/helper"), newKey(t).Public())
	for name, opts := range map[string]crypto.SignerOpts{"a message": crypto.Hash(0), "SHA-384": crypto.SHA384, "PSS": &rsa.PSSOptions{Hash: crypto.SHA256}} {
		_, err := s.Sign(nil, digest, opts)
		must.Hold(t, errors.Is(err, token.ErrUnsupported), "%s: %v", name, err)
	}
	must.Fail(t, token.ErrUnsupported)(s.Sign(nil, digest[1:], crypto.SHA256))
}

// TestReferenceOfOtherForm: the error for a block that is no reference says what is wrong.
func TestReferenceOfOtherForm(t *testing.T) {
	file := must.Get(token.Reference{URI: mia, Public: newKey(t).Public(), Protection: &operator.Protection{Kind: "pkcs11"}}.PEM())(t)
	public, _, err := ed25519.GenerateKey(rand.Reader)
	must.Do(t, err)
	edwards := must.Get(evidence.MarshalPublicKey(public))(t)
	for _, c := range []struct {
		change func(block *pem.Block)
		want   string
	}{
		{func(block *pem.Block) { block.Type = "PRIVATE KEY" }, `a block "PRIVATE KEY" with 2 headers`},
		{func(block *pem.Block) { block.Headers["Helper"] = "sh -c true" }, "with 3 headers"},
		{func(block *pem.Block) { block.Headers["Uri"] = mia + "?pin-value=1" }, "only the helper knows the PIN"},
		{func(block *pem.Block) { block.Bytes = edwards }, "a key for Ed25519 cannot be on a token, only one for ES256 or RS256: unsupported"},
	} {
		block, _ := pem.Decode(bytes.Clone(file))
		must.Get(token.ParseReference(block))(t)
		c.change(block)
		_, err := token.ParseReference(block)
		must.Hold(t, err != nil && strings.HasSuffix(err.Error(), c.want), "error %v, want one that ends in %q", err, c.want)
	}
}

// TestDocument: the conversation in the document is one that a helper can have.
func TestDocument(t *testing.T) {
	text := must.Get(os.ReadFile("../../../docs/token.md"))(t)
	for line := range strings.Lines(string(text)) {
		if message, ok := strings.CutPrefix(line, `    {"id":2,"key":`); ok {
			r, err := saying(t, `{"id":1,"key":`+message).Find(t.Context(), mia)
			must.Hold(t, err == nil && r.URI != mia && r.Protection.Manufacturer == "SoftHSM project", "%+v, %v", r, err)
			return
		}
	}
	t.Error("no answer with a key is in the document")
}
