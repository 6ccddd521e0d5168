package token_test

import (
	"crypto"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/log/token"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
)

// TestSoftHSM has keys made on a token sign, and OpenSSL verify. The keys stay on the token, and do nothing but sign.
func TestSoftHSM(t *testing.T) {
	soft := rig.NewToken(t)
	h := helperOf(t, soft.Helper(t))
	for _, algorithm := range []evidence.Algorithm{evidence.ES256, evidence.RS256} {
		uri := "pkcs11:token=house;object=" + string(algorithm)
		key := must.Get(h.FindOrGenerate(t.Context(), uri, algorithm))(t)
		p := key.Protection
		must.Hold(t, p.NeverExtractable && p.Local && p.Kind == "pkcs11" && p.Manufacturer == "SoftHSM project", "the key is protected by %+v", p)
		signer := must.Get(h.Signer(key))(t)
		signature := must.Get(signer.Sign(nil, digest, crypto.SHA256))(t)
		openssl(t, key.Public, []byte("text"), signature)
		again, err := h.FindOrGenerate(t.Context(), uri, algorithm)
		must.Hold(t, err == nil && again.URI == key.URI, "again %+v, %v", again, err)
		if public, _ := pem.Decode([]byte(soft.Command(t, "public", uri))); public == nil || !key.Public.(interface{ Equal(crypto.PublicKey) bool }).Equal(parsed(t, public.Bytes)) {
			t.Errorf("%s: jurat-pkcs11 public prints another key", algorithm)
		}
	}
	shown := soft.Tool(t, "--list-objects", "--type", "privkey")
	must.Hold(t, strings.Count(shown, "Access:     sensitive, always sensitive, never extractable, local") == 2 && strings.Count(shown, "Usage:      sign\n") == 2,
		"pkcs11-tool shows\n%s", shown)
}

func parsed(t *testing.T, der []byte) crypto.PublicKey {
	t.Helper()
	return must.Get(evidence.ParsePublicKey(der))(t)
}

func openssl(t *testing.T, public crypto.PublicKey, message, signature []byte) {
	t.Helper()
	der := must.Get(evidence.MarshalPublicKey(public))(t)
	dir := t.TempDir()
	for name, content := range map[string][]byte{"key": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), "message": message, "signature": signature} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	rig.Run(t, "openssl", "dgst", "-sha256", "-verify", dir+"/key", "-signature", dir+"/signature", dir+"/message")
}

// TestSameSignatureAsFromFile: the token signs a payload of the test vectors as the key file did.
func TestSameSignatureAsFromFile(t *testing.T) {
	soft := rig.NewToken(t)
	rig.Run(t, "softhsm2-util", "--import", "../../../evidence/testdata/keys/worthless-test-key-rs256.pem", "--token", soft.Label, "--pin", soft.PIN, "--label", "vector", "--id", "02")
	text := must.Get(os.ReadFile("../../../testdata/vectors/sealing/action-rs256.record.json"))(t)
	r := must.Get(evidence.Open(text))(t)
	h := helperOf(t, soft.Helper(t, "--allow-imported"))
	key := must.Get(h.Find(t.Context(), "pkcs11:object=vector"))(t)
	signer := must.Get(h.Signer(key))(t)
	sum := sha256.Sum256(r.Canonical())
	signature, err := signer.Sign(nil, sum[:], crypto.SHA256)
	must.Hold(t, err == nil && string(signature) == string(r.Signatures[0]), "the token's signature differs from the file's: %v", err)
}

// TestRefused: what the helper refuses, and how it says so.
func TestRefused(t *testing.T) {
	soft := rig.NewToken(t)
	file := filepath.Join(t.TempDir(), "key.pem")
	rig.Run(t, "openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", file)
	rig.Run(t, "softhsm2-util", "--import", file, "--token", soft.Label, "--pin", soft.PIN, "--label", "imported", "--id", "01")
	make := func(kind, id, label string, more ...string) {
		t.Helper()
		soft.Tool(t, append([]string{"--keypairgen", "--key-type", kind, "--id", id, "--label", label, "--usage-sign"}, more...)...)
	}
	make("EC:prime256v1", "02", "open", "--extractable")
	make("EC:secp384r1", "03", "p384", "--sensitive")
	make("EC:edwards25519", "04", "edwards", "--sensitive")
	make("EC:prime256v1", "05", "twin", "--sensitive")
	make("EC:prime256v1", "06", "twin", "--sensitive")
	h, lenient := helperOf(t, soft.Helper(t)), helperOf(t, soft.Helper(t, "--allow-imported"))
	for uri, want := range map[string]error{
		"pkcs11:object=imported": token.ErrRefused, "pkcs11:object=open": token.ErrRefused, "pkcs11:object=p384": token.ErrUnsupported,
		"pkcs11:object=edwards": token.ErrUnsupported, "pkcs11:object=twin": token.ErrNotFound, "pkcs11:object=none": token.ErrNotFound,
		"pkcs11:token=house": token.ErrRefused, "pkcs11:token=other;object=a": token.ErrNotFound, "pkcs11:object=a;type=public": token.ErrRefused,
		"https://example.com/pkcs11:object=ab": token.ErrRefused, "pkcs11:object=twin;id=%06": nil,
	} {
		must.Fail(t, want, uri)(h.Find(t.Context(), uri))
		if uri == "pkcs11:object=imported" {
			want = nil
		}
		must.Fail(t, want, uri, "imported keys allowed")(lenient.Find(t.Context(), uri))
	}
	for _, algorithm := range []evidence.Algorithm{evidence.Ed25519, evidence.MLDSA65} {
		_, err := h.FindOrGenerate(t.Context(), "pkcs11:object=new", algorithm)
		must.Hold(t, errors.Is(err, token.ErrUnsupported) && strings.Contains(err.Error(), string(algorithm)), "a new key for %s: %v", algorithm, err)
	}
}

// TestPIN counts how often the token gets a PIN: a wrong one once, and none where it says that a wrong one was tried.
func TestPIN(t *testing.T) {
	soft := rig.NewToken(t)
	spy, log := soft.Spy(t)
	for _, c := range []struct {
		pin, more string
		want      error
		logins    int
	}{
		{"wrong-4711", "", token.ErrPIN, 1}, {"wrong-4711", "", token.ErrPIN, 1}, {soft.PIN, "", token.ErrPIN, 1},
		{soft.PIN, " --again", token.ErrNotFound, 2}, {soft.PIN, "", token.ErrNotFound, 3},
	} {
		h := helperOf(t, rig.TokenHelper(t)+" --module "+spy+" --token house --pin-file "+soft.PINFile(t, c.pin)+c.more)
		for range 3 {
			must.Fail(t, c.want, c)(h.Find(t.Context(), mia))
		}
		text, err := os.ReadFile(log)
		n := strings.Count(string(text), "C_Login\n")
		must.Hold(t, err == nil && n == c.logins, "%v: the token got a PIN %d times, want %d: %v", c, n, c.logins, err)
	}
}

// TestMistakes are reported before a token gets a PIN.
func TestMistakes(t *testing.T) {
	soft := rig.NewToken(t)
	spy, log := soft.Spy(t)
	good, open := soft.PINFile(t, soft.PIN), soft.PINFile(t, soft.PIN)
	must.Do(t, os.Chmod(open, 0o644))
	soft.Init(t, "second")
	for arguments, want := range map[string]string{
		"--module= --pin-file " + good:                                                   "want --module FILE",
		"--module " + good + " --pin-file " + good:                                       "loading PKCS #11 library",
		"--module " + spy + " --token house --pin-file " + open:                          "everybody on this machine can read",
		"--module " + spy + " --token house --pin-file " + soft.PINFile(t, ""):           "want one line",
		"--module " + spy + " --token house --pin-file " + soft.PINFile(t, "a\nb"):       "want one line",
		"--module " + spy + " --token other --pin-file " + good:                          "0 tokens are present",
		"--module " + spy + " --pin-file " + good:                                        "2 tokens are present",
		"--module " + spy + " --token pkcs11:token=house?pin-value=1 --pin-file " + good: "a PIN",
		"--module " + spy + " --token house --sessions 0 --pin-file " + good:             "--sessions",
		"--module " + spy + " --pin-file " + good + " export x":                          "unknown command",
	} {
		must.Refuse(t, want, arguments)(helperOf(t, rig.TokenHelper(t)+" "+arguments).Find(t.Context(), mia))
	}
	text, err := os.ReadFile(log)
	must.Hold(t, err == nil && !strings.Contains(string(text), "C_Login\n"), "a token got a PIN: %v", err)
}

// TestTokenRemoved pulls the token out and puts it back, while the same client goes on.
func TestTokenRemoved(t *testing.T) {
	soft := rig.NewToken(t)
	h := helperOf(t, soft.Helper(t))
	key := must.Get(h.FindOrGenerate(t.Context(), mia, evidence.ES256))(t)
	signer := must.Get(h.Signer(key))(t)
	putBack := soft.Remove(t)
	signature, err := signer.Sign(nil, digest, crypto.SHA256)
	must.Hold(t, errors.Is(err, token.ErrUnavailable) && signature == nil, "without a token: signature %x, error %v", signature, err)
	must.Want(t, h.Ready(t.Context()), token.ErrUnavailable)
	putBack()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		_, err := signer.Sign(nil, digest, crypto.SHA256)
		if err == nil {
			break
		}
		must.Need(t, !time.Now().After(deadline), "with the token back: %v", err)
	}
}

// TestHelperKilled kills the helper again and again while many callers sign. Each call gives a valid signature or an error, and later calls work.
func TestHelperKilled(t *testing.T) {
	soft := rig.NewToken(t)
	script, pids := filepath.Join(t.TempDir(), "helper"), filepath.Join(t.TempDir(), "pids")
	must.Do(t, os.WriteFile(script, []byte("#!/bin/sh\necho $$ >> "+pids+"\nexec "+soft.Helper(t)+"\n"), 0o700))
	h := helperOf(t, script)
	key := must.Get(h.FindOrGenerate(t.Context(), mia, evidence.ES256))(t)
	signer := must.Get(h.Signer(key))(t)
	var signed atomic.Int64
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				switch _, err := signer.Sign(nil, digest, crypto.SHA256); {
				case err == nil:
					signed.Add(1)
				case errors.Is(err, token.ErrUnavailable):
					time.Sleep(10 * time.Millisecond)
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	for range 3 {
		before := signed.Load()
		for deadline := time.Now().Add(time.Minute); signed.Load() < before+10; time.Sleep(time.Millisecond) {
			must.Need(t, !time.Now().After(deadline), "signing does not go on")
		}
		text := must.Get(os.ReadFile(pids))(t)
		all := strings.Fields(string(text))
		rig.Run(t, "kill", "-9", all[len(all)-1])
	}
	close(stop)
	callers.Wait()
}
