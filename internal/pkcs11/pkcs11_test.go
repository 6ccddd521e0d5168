package pkcs11_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/pkcs11"
	"jurat/internal/token"
	"jurat/internal/tokentest"
)

var algorithms = []evidence.Algorithm{evidence.ES256, evidence.Ed25519, evidence.RS256}

// open logs in to a token in this process. Only one test at a time can do so, because a process can initialise a library
// once.
func open(t testing.TB, config pkcs11.Config, library string) *pkcs11.Token {
	t.Helper()
	module, err := pkcs11.Load(library)
	if err != nil {
		t.Fatal(err)
	}
	config.Module = module
	k := pkcs11.New(config)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := k.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return k
}

func opened(t testing.TB, soft *tokentest.Token) *pkcs11.Token {
	t.Helper()
	return open(t, pkcs11.Config{PIN: []byte(soft.PIN)}, soft.Module)
}

func generate(t testing.TB, k *pkcs11.Token, name string, algorithm evidence.Algorithm) token.Key {
	t.Helper()
	key, err := k.Generate(t.Context(), "pkcs11:token=house;object="+name, algorithm)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// dataOf returns the bytes of a message that are signed.
func dataOf(algorithm evidence.Algorithm, message []byte) []byte {
	if algorithm == evidence.Ed25519 {
		return message
	}
	digest := sha256.Sum256(message)
	return digest[:]
}

func sign(t testing.TB, k *pkcs11.Token, key token.Key, message []byte) []byte {
	t.Helper()
	public, signature, err := k.Sign(t.Context(), key.URI, dataOf(key.Algorithm, message))
	if err != nil {
		t.Fatal(err)
	}
	if !public.(interface{ Equal(crypto.PublicKey) bool }).Equal(key.Public) {
		t.Fatal("the signature is not by this key")
	}
	return signature
}

func check(t testing.TB, key token.Key, message, signature []byte) {
	t.Helper()
	id, err := evidence.KeyIDOf(key.Public)
	if err != nil {
		t.Fatal(err)
	}
	if err := evidence.CheckSignature(key.Public, evidence.SignerInfo{Algorithm: key.Algorithm, KeyID: id}, message, signature); err != nil {
		t.Fatal(err)
	}
}

// TestSign has each kind of key sign, and both jurat and OpenSSL verify.
func TestSign(t *testing.T) {
	k := opened(t, tokentest.New(t))
	for _, algorithm := range algorithms {
		t.Run(string(algorithm), func(t *testing.T) {
			key := generate(t, k, string(algorithm), algorithm)
			if key.Algorithm != algorithm || !key.Protection.NeverExtractable || !key.Protection.Local || key.Protection.Manufacturer != "SoftHSM project" {
				t.Errorf("the key is %+v", key)
			}
			for _, message := range []string{"a", strings.Repeat("long ", 10_000)} {
				signature := sign(t, k, key, []byte(message))
				check(t, key, []byte(message), signature)
				openssl(t, key, []byte(message), signature)
			}
			if algorithm != evidence.Ed25519 {
				if _, _, err := k.Sign(t.Context(), key.URI, []byte("a message")); !errors.Is(err, token.ErrRefused) {
					t.Errorf("a message in place of a digest: %v", err)
				}
			}
		})
	}
}

// TestVectors imports the keys of the test vectors, signs the vectors' payloads on the token, and has OpenSSL verify the token's
// signatures like those in the vectors, which were made with key files. Without randomness, they are the same bytes.
func TestVectors(t *testing.T) {
	soft := tokentest.New(t)
	ids := map[evidence.Algorithm]string{evidence.ES256: "01", evidence.RS256: "02", evidence.Ed25519: "03"}
	for algorithm, id := range ids {
		file := "../../evidence/testdata/keys/worthless-test-key-" + strings.ToLower(string(algorithm)) + ".pem"
		tokentest.Run(t, "softhsm2-util", "--import", file, "--token", soft.Label, "--pin", soft.PIN, "--label", string(algorithm), "--id", id)
	}
	k := open(t, pkcs11.Config{PIN: []byte(soft.PIN), AllowImported: true}, soft.Module)
	for algorithm := range ids {
		text, err := os.ReadFile("../../testdata/vectors/sealing/action-" + strings.ToLower(string(algorithm)) + ".record.json")
		if err != nil {
			t.Fatal(err)
		}
		r, err := evidence.Open(text)
		if err != nil {
			t.Fatal(err)
		}
		key, err := k.Key(t.Context(), "pkcs11:token=house;object="+string(algorithm))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.CheckSignature(0, key.Public); err != nil {
			t.Errorf("%s: the vector's key is another one: %v", algorithm, err)
		}
		signature := sign(t, k, key, r.Canonical())
		for _, s := range [][]byte{r.Signatures[0], signature} {
			check(t, key, r.Canonical(), s)
			openssl(t, key, r.Canonical(), s)
		}
		if same := bytes.Equal(signature, r.Signatures[0]); same != (algorithm != evidence.ES256) {
			t.Errorf("%s: the token's signature is the file's: %t", algorithm, same)
		}
	}
}

func openssl(t *testing.T, key token.Key, message, signature []byte) {
	t.Helper()
	der, err := evidence.MarshalPublicKey(key.Public)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{"key": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), "message": message, "signature": signature} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"dgst", "-sha256", "-verify", dir + "/key", "-signature", dir + "/signature", dir + "/message"}
	if key.Algorithm == evidence.Ed25519 {
		args = []string{"pkeyutl", "-verify", "-pubin", "-inkey", dir + "/key", "-rawin", "-in", dir + "/message", "-sigfile", dir + "/signature"}
	}
	tokentest.Run(t, "openssl", args...)
}

// TestKeysStay asks the token for private keys, and has pkcs11-tool list what they may be used for.
func TestKeysStay(t *testing.T) {
	soft := tokentest.New(t)
	k := opened(t, soft)
	soft.Tool(t, "--keygen", "--key-type", "AES:32", "--id", "77", "--label", "wrapper", "--usage-wrap")
	soft.Tool(t, "--keypairgen", "--key-type", "EC:prime256v1", "--id", "02", "--label", "open", "--usage-sign", "--extractable")
	if value, wrapped, err := k.Export(t.Context(), "open", "wrapper"); err != nil || len(wrapped) == 0 {
		t.Fatalf("this test needs a key that can be exported: %d bytes, wrapped %d, %v", len(value), len(wrapped), err)
	}
	for _, algorithm := range algorithms {
		key := generate(t, k, string(algorithm), algorithm)
		id, err := evidence.KeyIDOf(key.Public)
		if err != nil {
			t.Fatal(err)
		}
		hexID := strings.TrimPrefix(id.String(), "sha256:")[:40]
		if value, wrapped, err := k.Export(t.Context(), string(algorithm), "wrapper"); err == nil || len(value) > 0 || len(wrapped) > 0 {
			t.Errorf("%s: exported as %x, wrapped as %x, error %v", algorithm, value, wrapped, err)
		}
		_, shown, _ := strings.Cut(soft.Tool(t, "--list-objects", "--type", "privkey"), hexID)
		usage := regexp.MustCompile(`(?m)Usage: +(.*?) *$`).FindStringSubmatch(shown)
		access := regexp.MustCompile(`(?m)Access: +(.*?) *$`).FindStringSubmatch(shown)
		if len(usage) == 0 || usage[1] != "sign" || len(access) == 0 || access[1] != "sensitive, always sensitive, never extractable, local" {
			t.Errorf("%s: pkcs11-tool shows\n%s", algorithm, shown)
		}
	}
}

func TestGenerateRefuses(t *testing.T) {
	k := opened(t, tokentest.New(t))
	generate(t, k, "mia", evidence.ES256)
	for uri, want := range map[string]error{
		"pkcs11:token=house;object=mia":        token.ErrExists,
		"pkcs11:token=house":                   token.ErrRefused,
		"pkcs11:token=house;object=a;id=%01":   token.ErrRefused,
		"pkcs11:token=other;object=a":          token.ErrNotFound,
		"pkcs11:object=a?pin-value=1234":       token.ErrRefused,
		"pkcs11:object=a;type=public":          token.ErrRefused,
		"https://example.com/pkcs11:object=ab": token.ErrRefused,
	} {
		if _, err := k.Generate(t.Context(), uri, evidence.ES256); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", uri, err, want)
		}
	}
	if _, err := k.Generate(t.Context(), "pkcs11:object=pq", evidence.MLDSA65); !errors.Is(err, token.ErrUnsupported) {
		t.Errorf("ML-DSA: %v", err)
	}
}

// TestForeignKeys tries keys that jurat did not make: one that was imported, and one that can be exported.
func TestForeignKeys(t *testing.T) {
	soft := tokentest.New(t)
	file := filepath.Join(t.TempDir(), "key.pem")
	tokentest.Run(t, "openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", file)
	soft.Tool(t, "--write-object", file, "--type", "privkey", "--id", "01", "--label", "imported", "--usage-sign", "--sensitive")
	public := filepath.Join(t.TempDir(), "public.der")
	tokentest.Run(t, "openssl", "pkey", "-in", file, "-pubout", "-outform", "DER", "-out", public)
	soft.Tool(t, "--write-object", public, "--type", "pubkey", "--id", "01", "--label", "imported")
	soft.Tool(t, "--keypairgen", "--key-type", "EC:prime256v1", "--id", "02", "--label", "open", "--usage-sign", "--extractable")
	soft.Tool(t, "--keypairgen", "--key-type", "EC:secp384r1", "--id", "03", "--label", "p384", "--usage-sign", "--sensitive")
	soft.Tool(t, "--keypairgen", "--key-type", "EC:prime256v1", "--id", "05", "--label", "twin", "--usage-sign", "--sensitive")
	soft.Tool(t, "--keypairgen", "--key-type", "EC:prime256v1", "--id", "06", "--label", "twin", "--usage-sign", "--sensitive")

	for _, allowed := range []bool{false, true} {
		t.Run(map[bool]string{false: "by default", true: "imported keys allowed"}[allowed], func(t *testing.T) {
			k := open(t, pkcs11.Config{PIN: []byte(soft.PIN), AllowImported: allowed}, soft.Module)
			wants := map[string]error{"imported": token.ErrRefused, "open": token.ErrRefused, "p384": token.ErrUnsupported, "twin": token.ErrNotFound, "none": token.ErrNotFound}
			if allowed {
				wants["imported"] = nil
			}
			for name, want := range wants {
				uri := "pkcs11:object=" + name
				key, err := k.Key(t.Context(), uri)
				_, signature, signing := k.Sign(t.Context(), uri, dataOf(evidence.ES256, []byte("text")))
				if !errors.Is(err, want) || !errors.Is(signing, want) {
					t.Errorf("%s: %v and %v, want %v", name, err, signing, want)
				}
				if err == nil {
					check(t, key, []byte("text"), signature)
				}
			}
			keys, err := k.Keys(t.Context())
			if want := map[bool]int{false: 2, true: 3}[allowed]; err != nil || len(keys) != want {
				t.Errorf("%d keys are listed, want %d: %v", len(keys), want, err)
			}
		})
	}
}

// TestPIN counts how often the library is told a PIN.
func TestPIN(t *testing.T) {
	soft := tokentest.New(t)
	spy, log := soft.Spy(t)
	logins := func() int {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "C_Login\n")
	}
	clock := time.Unix(0, 0)
	now := func() time.Time { return clock }
	try := func(config pkcs11.Config, want error, logged int) {
		t.Helper()
		t.Run("", func(t *testing.T) {
			config.Now = now
			before := logs(t, log)
			k := open(t, config, spy)
			for range 5 {
				if err := k.Open(t.Context()); !errors.Is(err, want) {
					t.Errorf("opening: %v, want %v", err, want)
				}
				clock = clock.Add(time.Hour)
			}
			if n := logins() - before; n != logged {
				t.Errorf("the library got the PIN %d times, want %d", n, logged)
			}
		})
	}
	flags := func(want string) {
		t.Helper()
		if shown := tokentest.Run(t, "pkcs11-tool", "--module", soft.Module, "--list-token-slots"); strings.Contains(shown, "user PIN count low") != (want != "") {
			t.Errorf("the token says\n%s", shown)
		}
	}
	right, wrong := []byte(soft.PIN), []byte("wrong-4711")
	try(pkcs11.Config{PIN: clone(right)}, nil, 1)
	flags("")
	try(pkcs11.Config{PIN: clone(wrong)}, token.ErrPIN, 1)
	flags("low")
	try(pkcs11.Config{PIN: clone(wrong)}, token.ErrPIN, 0) // the token has counted the failed attempts
	try(pkcs11.Config{PIN: clone(right)}, token.ErrPIN, 0)
	try(pkcs11.Config{PIN: clone(right), Again: true}, nil, 1)
	try(pkcs11.Config{PIN: clone(right)}, nil, 1)
	flags("")
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }

func logs(t *testing.T, file string) int {
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(text), "C_Login\n")
}

// TestTokenRemoved pulls a token out and puts it back, while the same process goes on.
func TestTokenRemoved(t *testing.T) {
	soft := tokentest.New(t)
	var mu sync.Mutex
	clock := time.Unix(0, 0)
	k := open(t, pkcs11.Config{PIN: []byte(soft.PIN), Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		clock = clock.Add(time.Minute)
		return clock
	}}, soft.Module)
	key := generate(t, k, "mia", evidence.ES256)
	sign(t, k, key, []byte("before"))
	putBack := soft.Remove(t)
	_, signature, err := k.Sign(t.Context(), key.URI, dataOf(evidence.ES256, []byte("meanwhile")))
	if !errors.Is(err, token.ErrUnavailable) || signature != nil {
		t.Fatalf("without a token: signature %x, error %v", signature, err)
	}
	putBack()
	check(t, key, []byte("after"), sign(t, k, key, []byte("after")))
}

// TestAnotherToken puts another token in the place of one that was pulled out. It must not get the PIN.
func TestAnotherToken(t *testing.T) {
	soft := tokentest.New(t)
	spy, log := soft.Spy(t)
	var clock time.Time
	k := open(t, pkcs11.Config{PIN: []byte(soft.PIN), Now: func() time.Time { clock = clock.Add(time.Minute); return clock }}, spy)
	if err := k.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	key := generate(t, k, "mia", evidence.ES256)
	soft.Remove(t)
	if _, _, err := k.Sign(t.Context(), key.URI, dataOf(evidence.ES256, nil)); !errors.Is(err, token.ErrUnavailable) {
		t.Errorf("signing without a token: %v", err)
	}
	soft.Init(t, soft.Label)
	before := logs(t, log)
	for range 3 {
		if _, _, err := k.Sign(t.Context(), key.URI, dataOf(evidence.ES256, nil)); !errors.Is(err, token.ErrUnavailable) {
			t.Errorf("signing with another token: %v", err)
		}
	}
	if n := logs(t, log) - before; n != 0 {
		t.Errorf("another token got the PIN %d times", n)
	}
	if _, _, err := k.Sign(t.Context(), key.URI, nil); err == nil || !strings.Contains(err.Error(), "another serial number") {
		t.Errorf("the reason is %v", err)
	}
}

// TestTwoTokens demands a choice where two tokens fit.
func TestTwoTokens(t *testing.T) {
	soft := tokentest.New(t)
	soft.Init(t, "second")
	k := opened(t, soft)
	if err := k.Open(t.Context()); !errors.Is(err, token.ErrRefused) {
		t.Errorf("two tokens, and none named: %v", err)
	}
}

// TestGrowingStacks has stacks move and the collector run while the library writes through pointers.
func TestGrowingStacks(t *testing.T) {
	k := opened(t, tokentest.New(t))
	key := generate(t, k, "mia", evidence.ES256)
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for depth := range 20 {
				deep(depth*10, func() { check(t, key, []byte("text"), sign(t, k, key, []byte("text"))) })
				var callers sync.WaitGroup
				callers.Go(func() { check(t, key, []byte("text"), sign(t, k, key, []byte("text"))) }) // on a stack that is small again
				callers.Wait()
			}
		})
	}
	callers.Wait()
}

func deep(n int, do func()) byte {
	var frame [512]byte
	if n == 0 {
		do()
		return frame[0]
	}
	return frame[n%512] + deep(n-1, do)
}

func TestLoadRefuses(t *testing.T) {
	text := filepath.Join(t.TempDir(), "library.so")
	if err := os.WriteFile(text, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"/does/not/exist.so", text, "libc.so.6"} {
		if _, err := pkcs11.Load(file); err == nil {
			t.Errorf("%s was loaded", file)
		}
	}
}
