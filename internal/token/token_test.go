package token_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/token"
)

// keeper is a Backend that keeps keys in memory. lie, if set, changes signatures.
type keeper struct {
	mu   sync.Mutex
	keys map[string]crypto.Signer
	lie  func(signature []byte) []byte
	err  error // of every call
}

func newKeeper() *keeper { return &keeper{keys: map[string]crypto.Signer{}} }

func (k *keeper) Generate(_ context.Context, uri string, algorithm evidence.Algorithm) (token.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return token.Key{}, k.err
	}
	if k.keys[uri] != nil {
		return token.Key{}, token.ErrExists
	}
	private, err := newKey(algorithm)
	if err != nil {
		return token.Key{}, err
	}
	k.keys[uri] = private
	return describe(uri, private), nil
}

func describe(uri string, private crypto.Signer) token.Key {
	algorithm, err := evidence.AlgorithmOf(private.Public())
	if err != nil {
		panic(err)
	}
	return token.Key{URI: uri, Algorithm: algorithm, Public: private.Public(),
		Protection: token.Protection{Kind: "memory", Model: "map", Local: true}}
}

func (k *keeper) Keys(context.Context) (keys []token.Key, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for uri, private := range k.keys {
		keys = append(keys, describe(uri, private))
	}
	return keys, k.err
}

func (k *keeper) Key(_ context.Context, uri string) (token.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch private := k.keys[uri]; {
	case k.err != nil:
		return token.Key{}, k.err
	case private == nil:
		return token.Key{}, fmt.Errorf("%w: %s", token.ErrNotFound, uri)
	default:
		return describe(uri, private), nil
	}
}

func (k *keeper) Sign(_ context.Context, uri string, data []byte) (crypto.PublicKey, []byte, error) {
	k.mu.Lock()
	private, lie, err := k.keys[uri], k.lie, k.err
	k.mu.Unlock()
	if err != nil {
		return nil, nil, err
	}
	if private == nil {
		return nil, nil, token.ErrNotFound
	}
	signature, err := private.Sign(rand.Reader, data, optsOf(private.Public()))
	if lie != nil {
		signature = lie(signature)
	}
	return private.Public(), signature, err
}

func optsOf(public crypto.PublicKey) crypto.Hash {
	if algorithm, _ := evidence.AlgorithmOf(public); algorithm == evidence.Ed25519 || algorithm.PostQuantum() {
		return 0
	}
	return crypto.SHA256
}

const mia = "pkcs11:object=mia"

// listen has a server answer on a socket, and returns a client of it.
func listen(t testing.TB, backend token.Backend) *token.Client {
	t.Helper()
	path := socket(t)
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- token.NewServer(backend, slog.New(slog.DiscardHandler)).Listen(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return clientOf(t, token.Helper{Socket: path})
}

func socket(t testing.TB) string {
	dir, err := os.MkdirTemp("", "token") // t.TempDir is too long a path for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

func clientOf(t testing.TB, helper token.Helper) *token.Client {
	t.Helper()
	client, err := token.New(helper)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// TestSign seals with each algorithm over the protocol as with the key itself.
func TestSign(t *testing.T) {
	backend := newKeeper()
	client := listen(t, backend)
	for _, algorithm := range evidence.Algorithms() {
		t.Run(string(algorithm), func(t *testing.T) {
			uri := "pkcs11:object=" + string(algorithm)
			key, err := client.Generate(t.Context(), uri, algorithm)
			if err != nil {
				t.Fatal(err)
			}
			signer, err := evidence.NewSigner(client.Signer(uri, key.Public), rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			for _, message := range []string{"text", strings.Repeat("text", 1<<20)} {
				signature, err := signer.Sign([]byte(message))
				if err != nil {
					t.Fatal(err)
				}
				if err := evidence.CheckSignature(key.Public, signer.Info(), []byte(message), signature); err != nil {
					t.Error(err)
				}
			}
			again, err := client.Key(t.Context(), uri)
			if err != nil || again.Protection != (token.Protection{Kind: "memory", Model: "map", Local: true}) {
				t.Errorf("the key is %+v, %v", again, err)
			}
		})
	}
	if keys, err := client.Keys(t.Context()); err != nil || len(keys) != len(evidence.Algorithms()) {
		t.Errorf("%d keys: %v", len(keys), err)
	}
}

// TestErrors has each error cross the wire.
func TestErrors(t *testing.T) {
	backend := newKeeper()
	client := listen(t, backend)
	for _, want := range []error{token.ErrNotFound, token.ErrExists, token.ErrRefused, token.ErrUnavailable, token.ErrUnsupported, token.ErrPIN} {
		backend.mu.Lock()
		backend.err = fmt.Errorf("%w: because\x1b", want)
		backend.mu.Unlock()
		_, err := client.Key(t.Context(), mia)
		if !errors.Is(err, want) || !strings.Contains(err.Error(), `because\x1b`) {
			t.Errorf("%v arrives as %v", want, err)
		}
	}
	backend.mu.Lock()
	backend.err = errors.New("anything")
	backend.mu.Unlock()
	if _, err := client.Keys(t.Context()); err == nil || !strings.Contains(err.Error(), "anything") {
		t.Errorf("another error arrives as %v", err)
	}
}

// TestManyCallers gives each caller the signature over its own data.
func TestManyCallers(t *testing.T) {
	backend := newKeeper()
	client := listen(t, backend)
	key, err := client.Generate(t.Context(), mia, evidence.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for i := range 200 {
		callers.Go(func() {
			for j := range 10 {
				if _, err := client.Sign(t.Context(), mia, key.Public, fmt.Appendf(nil, "%d %d", i, j)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
}

// TestWrongSignatureIsWithheld has a token give a wrong signature, which must not leave the helper.
func TestWrongSignatureIsWithheld(t *testing.T) {
	for _, algorithm := range evidence.Algorithms() {
		backend := newKeeper()
		backend.lie = func(signature []byte) []byte { signature[len(signature)/2] ^= 1; return signature }
		client := listen(t, backend)
		key, err := client.Generate(t.Context(), mia, algorithm)
		if err != nil {
			t.Fatal(err)
		}
		data := sha256.Sum256(nil)
		if signature, err := client.Sign(t.Context(), mia, key.Public, data[:]); err == nil || !strings.Contains(err.Error(), "withheld") {
			t.Errorf("%s: signature %x, error %v", algorithm, signature, err)
		}
	}
}

// frame writes a message as it travels.
func frame(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

// hostile answers each connection with what answer makes of the first request.
func hostile(t *testing.T, answer func(conn net.Conn, request string)) *token.Client {
	t.Helper()
	path := socket(t)
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				answer(conn, readFrame(conn))
				io.Copy(io.Discard, conn)
			}()
		}
	}()
	return clientOf(t, token.Helper{Socket: path})
}

func readFrame(in io.Reader) string {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return ""
	}
	text := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(in, text); err != nil {
		return ""
	}
	return string(text)
}

// TestHostileHelper lets no lie of a helper pass for a signature, and no helper keep a caller.
func TestHostileHelper(t *testing.T) {
	private, err := newKey(evidence.ES256)
	if err != nil {
		t.Fatal(err)
	}
	other, err := newKey(evidence.ES256)
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256([]byte("text"))
	signed := func(key crypto.Signer, text string) []byte {
		digest := sha256.Sum256([]byte(text))
		signature, err := key.Sign(rand.Reader, digest[:], crypto.SHA256)
		if err != nil {
			t.Error(err)
		}
		return signature
	}
	right := signed(private, "text")
	for name, text := range map[string]string{
		"other text":        fmt.Sprintf(`{"id":1,"signature":%s,"v":1}`, quoted(signed(private, "other"))),
		"other key":         fmt.Sprintf(`{"id":1,"signature":%s,"v":1}`, quoted(signed(other, "text"))),
		"no signature":      `{"id":1,"v":1}`,
		"another id":        fmt.Sprintf(`{"id":2,"signature":%s,"v":1}`, quoted(right)),
		"another version":   fmt.Sprintf(`{"id":1,"signature":%s,"v":2}`, quoted(right)),
		"not canonical":     fmt.Sprintf(`{"v":1,"id":1,"signature":%s}`, quoted(right)),
		"a member more":     fmt.Sprintf(`{"id":1,"signature":%s,"v":1,"w":1}`, quoted(right)),
		"a member twice":    fmt.Sprintf(`{"id":1,"id":1,"signature":%s,"v":1}`, quoted(right)),
		"no JSON":           "hello",
		"an unknown error":  `{"error":{"code":"odd","message":"m"},"id":1,"v":1}`,
		"error and answer":  fmt.Sprintf(`{"error":{"code":"pin","message":"m"},"id":1,"signature":%s,"v":1}`, quoted(right)),
		"nothing":           "",
		"an id that is odd": fmt.Sprintf(`{"id":1.5,"signature":%s,"v":1}`, quoted(right)),
	} {
		t.Run(name, func(t *testing.T) {
			client := hostile(t, func(conn net.Conn, _ string) { conn.Write(frame(text)) })
			if signature, err := client.Sign(t.Context(), mia, private.Public(), digest[:]); err == nil {
				t.Errorf("signature %x is taken", signature)
			}
		})
	}
	t.Run("a long frame", func(t *testing.T) {
		client := hostile(t, func(conn net.Conn, _ string) { conn.Write([]byte{0xff, 0xff, 0xff, 0xff}) })
		if _, err := client.Sign(t.Context(), mia, private.Public(), digest[:]); !errors.Is(err, token.ErrUnavailable) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("silence", func(t *testing.T) {
		client := hostile(t, func(net.Conn, string) {})
		client.SetTimeout(50 * time.Millisecond)
		if _, err := client.Sign(t.Context(), mia, private.Public(), digest[:]); !errors.Is(err, token.ErrUnavailable) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("the right answer", func(t *testing.T) { // what the others are changed from
		client := hostile(t, func(conn net.Conn, _ string) {
			conn.Write(frame(fmt.Sprintf(`{"id":1,"signature":%s,"v":1}`, quoted(right))))
		})
		if _, err := client.Sign(t.Context(), mia, private.Public(), digest[:]); err != nil {
			t.Error(err)
		}
	})
}

// TestHostileKeys refuses what a helper calls a key and is not one, or is not the one that was asked for.
func TestHostileKeys(t *testing.T) {
	private, err := newKey(evidence.ES256)
	if err != nil {
		t.Fatal(err)
	}
	der, err := evidence.MarshalPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	key := func(algorithm, uri string, public []byte) string {
		return fmt.Sprintf(`{"alg":%q,"public":%s,"uri":%q}`, algorithm, quoted(public), uri)
	}
	for name, k := range map[string]string{
		"the wrong algorithm": key("RS256", mia, der),
		"another algorithm":   key("Ed25519", mia, der),
		"no key":              key("ES256", mia, der[1:]),
		"a PIN":               key("ES256", mia+"?pin-value=1", der),
		"no name":             key("ES256", "", der),
		"control characters":  key("ES256", "pkcs11:\u009b", der),
	} {
		client := hostile(t, func(conn net.Conn, _ string) { conn.Write(frame(`{"id":1,"key":` + k + `,"v":1}`)) })
		if k, err := client.Generate(t.Context(), mia, evidence.ES256); err == nil {
			t.Errorf("%s: %+v is taken", name, k)
		}
		client = hostile(t, func(conn net.Conn, _ string) { conn.Write(frame(`{"id":1,"keys":[` + k + `],"v":1}`)) })
		if keys, err := client.Keys(t.Context()); err == nil {
			t.Errorf("%s: %+v are taken", name, keys)
		}
	}
	right := func() *token.Client {
		return hostile(t, func(conn net.Conn, _ string) {
			conn.Write(frame(`{"id":1,"key":` + key("ES256", mia, der) + `,"v":1}`))
		})
	}
	if _, err := right().Generate(t.Context(), mia, evidence.ES256); err != nil {
		t.Errorf("the right key: %v", err)
	}
	if _, err := right().Generate(t.Context(), mia, evidence.Ed25519); err == nil {
		t.Error("a key of another algorithm than was asked for is taken")
	}
}

func quoted(b []byte) string { return fmt.Sprintf("%q", base64.StdEncoding.EncodeToString(b)) }

func newKey(algorithm evidence.Algorithm) (crypto.Signer, error) {
	switch algorithm {
	case evidence.RS256:
		return rsa.GenerateKey(rand.Reader, 2048)
	case evidence.Ed25519:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	case evidence.MLDSA65:
		return evidence.NewMLDSA65(&[32]byte{1}), nil
	}
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

// TestHostileClient lets no client end the server, or keep others from being answered.
func TestHostileClient(t *testing.T) {
	backend := newKeeper()
	path := socket(t)
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- token.NewServer(backend, slog.New(slog.DiscardHandler)).Listen(ctx, listener) }()
	for name, bad := range map[string][]byte{
		"nothing":         {},
		"half a length":   {0, 0},
		"a long frame":    {0xff, 0xff, 0xff, 0xff},
		"an empty frame":  {0, 0, 0, 0},
		"half a frame":    frame(`{"id":1,"v":1,"verb":"keys"}`)[:10],
		"no JSON":         frame("hello"),
		"not canonical":   frame(`{"v":1,"id":1,"verb":"keys"}`),
		"another version": frame(`{"id":1,"v":2,"verb":"keys"}`),
		"an unknown verb": frame(`{"id":1,"uri":"a:b","v":1,"verb":"export"}`),
		"a PIN":           frame(`{"id":1,"uri":"pkcs11:object=a?pin-value=1","v":1,"verb":"public"}`),
		"no URI":          frame(`{"id":1,"v":1,"verb":"public"}`),
		"a member more":   frame(`{"data":"AA==","id":1,"uri":"a:b","v":1,"verb":"public"}`),
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Write(bad); err != nil {
				t.Fatal(err)
			}
			if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			said, err := io.ReadAll(conn)
			if err != nil || len(said) > 0 && !strings.Contains(string(said), `"code":"bad_request"`) {
				t.Errorf("the answer is %q, %v", said, err)
			}
		})
	}
	client := clientOf(t, token.Helper{Socket: path})
	if _, err := client.Generate(t.Context(), mia, evidence.ES256); err != nil {
		t.Errorf("after all that, an honest client: %v", err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestCheckURI(t *testing.T) {
	for uri, ok := range map[string]bool{mia: true, "awskms:alias/mia": true, "": false, "mia": false, ":mia": false, "pkcs11:": false, "pkcs11:a b": false,
		"pkcs11:a\n": false, "pkcs11:ä": false, "pkcs11:a?pin-value=1": false, "pkcs11:a?PIN-source=f": false, "a:" + strings.Repeat("b", 1024): false} {
		if err := token.CheckURI(uri); (err == nil) != ok {
			t.Errorf("%q: %v", uri, err)
		}
	}
}

func TestParseHelper(t *testing.T) {
	for text, ok := range map[string]bool{"jurat-token --module x": true, "/opt/jurat-token-aws": true, "unix:/run/jurat.sock": true,
		"": false, "sh -c true": false, "/tmp/jurat-tokens": false, "unix:": false, "unix:run/x": false} {
		h, err := token.ParseHelper(text)
		if (err == nil) != ok {
			t.Errorf("%q: %+v, %v", text, h, err)
		}
		if ok && h.String() != text {
			t.Errorf("%q is written as %q", text, h)
		}
	}
}

// TestSignerRefuses what a helper does not sign.
func TestSignerRefuses(t *testing.T) {
	client := listen(t, newKeeper())
	key, err := client.Generate(t.Context(), mia, evidence.ES256)
	if err != nil {
		t.Fatal(err)
	}
	for _, opts := range []crypto.SignerOpts{crypto.SHA512, crypto.Hash(0)} {
		if _, err := client.Signer(mia, key.Public).Sign(nil, make([]byte, 32), opts); err == nil {
			t.Errorf("%v is signed", opts)
		}
	}
}

// TestDocument has the conversation in the document follow the protocol.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/token.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(text)) {
		if message, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "    {"); ok {
			found++
			if err := token.CheckMessage([]byte("{" + message)); err != nil {
				t.Errorf("%s: %v", message, err)
			}
		}
	}
	if found < 6 || !strings.Contains(string(text), fmt.Sprintf("at most %d bytes, an answer %d,", token.MaxRequest, token.MaxAnswer)) {
		t.Errorf("%d messages, and want: at most %d bytes, an answer %d", found, token.MaxRequest, token.MaxAnswer)
	}
}

// TestRefusedPINStartsNoHelper has a helper end after its PIN was refused. No other is started, which would try the PIN again.
func TestRefusedPINStartsNoHelper(t *testing.T) {
	dir := t.TempDir()
	script, starts := filepath.Join(dir, "jurat-token-test"), filepath.Join(dir, "starts")
	text := `{"error":{"code":"pin","message":"wrong"},"id":1,"v":1}`
	program := fmt.Sprintf("#!/bin/sh\necho start >> %s\nhead -c 5 > /dev/null # a helper answers what it has read\nprintf '\\000\\000\\000\\%03o%%s' '%s'\n", starts, len(text), text)
	if err := os.WriteFile(script, []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	client := clientOf(t, token.Helper{Program: []string{script}})
	for range 5 {
		if _, err := client.Keys(t.Context()); !errors.Is(err, token.ErrPIN) {
			t.Errorf("error %v", err)
		}
		time.Sleep(150 * time.Millisecond) // longer than the first wait before a helper is started again
	}
	if started, err := os.ReadFile(starts); err != nil || string(started) != "start\n" {
		t.Errorf("the helper was started:\n%s%v", started, err)
	}
}

// TestKeyFileStartsNoProgram: a reference, which may come from a foreign backup, starts a program only where this machine names it.
func TestKeyFileStartsNoProgram(t *testing.T) {
	dir := t.TempDir()
	script, starts := filepath.Join(dir, "jurat-token-evil"), filepath.Join(dir, "starts")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho start >> "+starts+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	helper := token.Helper{Program: []string{script}}
	sign := func(told bool) error {
		var helpers token.Helpers
		defer helpers.Close()
		signer, err := helpers.Signer(token.Reference{URI: "pkcs11:token=house;object=a", Helper: helper, Public: key.Public()})
		if err != nil {
			t.Fatal(err)
		}
		if told {
			if _, err := helpers.Client(helper); err != nil {
				t.Fatal(err)
			}
		}
		_, err = signer.Sign(nil, []byte("text"), crypto.Hash(0))
		return err
	}
	for _, named := range []string{"", "jurat-token", script + " --more"} {
		t.Setenv(token.HelperVariable, named)
		if err := sign(false); !errors.Is(err, token.ErrNotAllowed) {
			t.Errorf("with %q: error %v", named, err)
		}
	}
	if started, err := os.ReadFile(starts); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it was started: %s%v", started, err)
	}
	t.Setenv(token.HelperVariable, script)
	if err := sign(false); err == nil || errors.Is(err, token.ErrNotAllowed) {
		t.Errorf("where the machine names it: error %v", err)
	}
	t.Setenv(token.HelperVariable, "")
	if err := sign(true); err == nil || errors.Is(err, token.ErrNotAllowed) {
		t.Errorf("where the process was told: error %v", err)
	}
	if started, err := os.ReadFile(starts); err != nil || string(started) != "start\nstart\n" {
		t.Errorf("started %q, %v", started, err)
	}
}

// TestReferenceOfOtherForm: the error for a block of another type or with a further header says what is wrong.
func TestReferenceOfOtherForm(t *testing.T) {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	file, err := token.Reference{URI: "pkcs11:token=house;object=a", Helper: token.Helper{Socket: "/run/helper"}, Public: public}.PEM()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(block *pem.Block)
		want   string
	}{
		{func(block *pem.Block) { block.Type = "PRIVATE KEY" }, `a block "PRIVATE KEY" with 2 headers`},
		{func(block *pem.Block) { block.Headers["Comment"] = "mine" }, "with 3 headers"},
	} {
		block, _ := pem.Decode(file)
		if _, err := token.ParseReference(block); err != nil {
			t.Fatal(err)
		}
		c.change(block)
		if _, err := token.ParseReference(block); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("error %v, want one that ends in %q", err, c.want)
		}
	}
}
