package evidence

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jurat/internal/must"
	"jurat/internal/sigkey"
)

// openssl runs the command in a folder, and reports whether it succeeded.
func openssl(t *testing.T, dir string, args ...string) bool {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("openssl is not installed; this test compares signatures with it")
		}
		t.Skip("openssl is not installed; this test compares signatures with it")
	}
	cmd := exec.CommandContext(t.Context(), "openssl", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	t.Logf("openssl %s: %s", strings.Join(args, " "), strings.TrimSpace(string(out)))
	return err == nil
}

// judged returns the algorithms that this OpenSSL supports. It supports ML-DSA since version 3.5.
func judged(t *testing.T) []Algorithm {
	t.Helper()
	if !openssl(t, t.TempDir(), "pkey", "-in", absolute(t, keyFiles[MLDSA65]), "-noout") {
		t.Log("this OpenSSL does not know ML-DSA-65: only the other algorithms are tested")
		return slices.DeleteFunc(Algorithms(), Algorithm.PostQuantum)
	}
	return Algorithms()
}

func absolute(t *testing.T, keyFile string) string {
	t.Helper()
	return must.Get(filepath.Abs(filepath.Join("testdata", "keys", keyFile)))(t)
}

// hashes reports whether OpenSSL hashes the payload before it signs with this algorithm.
func hashes(algorithm Algorithm) bool { return algorithm == ES256 || algorithm == RS256 }

// TestOpenSSLVerifies gives OpenSSL signatures made by this package, with the right payload and with a changed one.
func TestOpenSSLVerifies(t *testing.T) {
	for _, algorithm := range judged(t) {
		t.Run(string(algorithm), func(t *testing.T) {
			dir := keyFolder(t, algorithm)
			r := seal(t, testPayload, nil, testSigner(t, algorithm))
			writeFile(t, dir, "payload.json", r.Canonical())
			writeFile(t, dir, "signature.bin", r.Signatures[0])
			verify := []string{"dgst", "-sha256", "-verify", "public.pem", "-signature", "signature.bin", "payload.json"}
			if !hashes(algorithm) {
				verify = []string{"pkeyutl", "-verify", "-pubin", "-inkey", "public.pem", "-rawin", "-in", "payload.json", "-sigfile", "signature.bin"}
			}
			if !openssl(t, dir, verify...) {
				t.Error("OpenSSL refuses the signature")
			}
			writeFile(t, dir, "payload.json", flipped(r.Canonical(), 10))
			if openssl(t, dir, verify...) {
				t.Error("OpenSSL accepts the signature over another payload")
			}
		})
	}
}

// TestOpenSSLSigns gives this package signatures made by OpenSSL. About half of OpenSSL's ECDSA signatures have a high
// S.
func TestOpenSSLSigns(t *testing.T) {
	payload := seal(t, testPayload, nil).Canonical()
	for _, algorithm := range judged(t) {
		t.Run(string(algorithm), func(t *testing.T) {
			dir := keyFolder(t, algorithm)
			writeFile(t, dir, "payload.json", payload)
			sign := []string{"dgst", "-sha256", "-sign", "private.pem", "-out", "signature.bin", "payload.json"}
			if !hashes(algorithm) {
				sign = []string{"pkeyutl", "-sign", "-inkey", "private.pem", "-rawin", "-in", "payload.json", "-out", "signature.bin"}
			}
			if !openssl(t, dir, sign...) {
				t.Fatal("OpenSSL does not sign")
			}
			signature := readFile(t, filepath.Join(dir, "signature.bin"))
			if algorithm == ES256 {
				signature = must.Get(sigkey.LowS(signature))(t)
			}
			info := testSigner(t, algorithm).Info()
			if err := CheckSignature(testKey(t, algorithm).Public(), info, payload, signature); err != nil {
				t.Error(err)
			}
		})
	}
}

// keyFolder returns a folder with a test key as private.pem, and its public key, written by OpenSSL, as public.pem.
func keyFolder(t *testing.T, algorithm Algorithm) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, dir, "private.pem", readFile(t, filepath.Join("testdata", "keys", keyFiles[algorithm])))
	if !openssl(t, dir, "pkey", "-in", "private.pem", "-pubout", "-out", "public.pem") {
		t.Fatal("OpenSSL does not read the key")
	}
	if !openssl(t, dir, "pkey", "-pubin", "-in", "public.pem", "-outform", "DER", "-out", "public.der") {
		t.Fatal("OpenSSL does not write the key")
	}
	if id := DigestOf(readFile(t, filepath.Join(dir, "public.der"))); id != testSigner(t, algorithm).Info().KeyID {
		t.Errorf("the key id by OpenSSL is %s", id)
	}
	return dir
}

func writeFile(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
}
