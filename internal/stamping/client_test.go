package stamping

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"jurat/timestamp"
)

// newAuthority makes an authority whose certificate is valid for an hour from this time.
func newAuthority(t *testing.T, from time.Time) (*timestamp.Authority, *x509.Certificate) {
	t.Helper()
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	from = from.UTC().Truncate(time.Second)
	rootKey, leafKey := key(), key()
	root, err := timestamp.NewRoot(timestamp.CertificateConfig{Key: rootKey, Serial: big.NewInt(1), NotBefore: from, NotAfter: from.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := timestamp.NewCertificate(timestamp.CertificateConfig{Key: leafKey, Serial: big.NewInt(2), NotBefore: from, NotAfter: from.Add(time.Hour)}, root, rootKey)
	if err != nil {
		t.Fatal(err)
	}
	a, err := timestamp.NewAuthority(timestamp.AuthorityConfig{Key: leafKey, Certificate: leaf, Chain: []*x509.Certificate{root},
		Now: func() time.Time { return from.Add(time.Minute) }})
	if err != nil {
		t.Fatal(err)
	}
	return a, root
}

// serve answers each query with the result of answer.
func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

// reply sends a reply as an authority does.
func reply(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", mediaReply)
	w.Write(body)
}

func query(t *testing.T, r *http.Request) []byte {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Content-Type") != mediaQuery || r.Method != http.MethodPost {
		t.Errorf("query: %v, %s %s", err, r.Method, r.Header.Get("Content-Type"))
	}
	return body
}

func newClient(t *testing.T, url string, root *x509.Certificate) *Client {
	t.Helper()
	c, err := NewClient(ClientConfig{URL: url, Roots: []*x509.Certificate{root}, Timeout: time.Minute,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var imprint = [32]byte{1, 2, 3}

func TestStamp(t *testing.T) {
	a, root := newAuthority(t, time.Now())
	c := newClient(t, serve(t, func(w http.ResponseWriter, r *http.Request) { reply(w, a.Respond(query(t, r))) }), root)
	token, err := c.Stamp(t.Context(), imprint)
	if err != nil {
		t.Fatal(err)
	}
	u, err := timestamp.Parse(token)
	if err != nil {
		t.Fatal(err)
	}
	verified, err := u.Verify(imprint, timestamp.Options{Roots: []*x509.Certificate{root}})
	if err != nil || verified.Nonce == nil || verified.Nonce.BitLen() < 64 {
		t.Errorf("the token: %v, %+v", err, verified)
	}
}

// TestStampWide: a request with a wider imprint gets a token over exactly that imprint, and nothing else is accepted.
func TestStampWide(t *testing.T) {
	a, root := newAuthority(t, time.Now())
	narrow := atomic.Bool{}
	c := newClient(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		request, err := timestamp.ParseRequest(query(t, r))
		if err != nil {
			t.Error(err)
			return
		}
		if narrow.Load() { // equal to the imprint as far as it goes
			request.Wide = timestamp.Imprint{Hash: crypto.SHA256, Sum: request.Wide.Sum[:32]}
		}
		again, err := request.Marshal()
		if err != nil {
			t.Error(err)
		}
		reply(w, a.Respond(again))
	}), root)
	wide := timestamp.Imprint{Hash: crypto.SHA512, Sum: make([]byte, 64)}
	token, err := c.StampImprint(t.Context(), wide)
	if err != nil {
		t.Fatal(err)
	}
	u, err := timestamp.Parse(token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.VerifyImprint(wide, timestamp.Options{Roots: []*x509.Certificate{root}}); err != nil {
		t.Error(err)
	}
	narrow.Store(true)
	if _, err := c.StampImprint(t.Context(), wide); !errors.Is(err, ErrAnswer) || !errors.Is(err, timestamp.ErrImprint) {
		t.Errorf("a SHA-256 for a SHA-512: %v", err)
	}
	if _, err := c.StampImprint(t.Context(), timestamp.Imprint{Hash: crypto.SHA512, Sum: make([]byte, 32)}); err == nil {
		t.Error("an imprint of the wrong length")
	}
}

// TestNoGoodAnswer: only a valid token is accepted, whatever an authority or an impostor answers.
func TestNoGoodAnswer(t *testing.T) {
	a, root := newAuthority(t, time.Now())
	other, _ := newAuthority(t, time.Now())
	respond := func(change func(r *timestamp.Request)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			request, err := timestamp.ParseRequest(query(t, r))
			if err != nil {
				t.Error(err)
				return
			}
			change(request)
			token, err := a.Issue(request)
			if err != nil {
				t.Error(err)
				return
			}
			response, err := timestamp.MarshalResponse(token)
			if err != nil {
				t.Error(err)
			}
			reply(w, response)
		}
	}
	tests := map[string]struct {
		answer http.HandlerFunc
		want   error
		cause  error // nil: not looked at
		asked  int32 // how often
	}{
		"garbage":                 {func(w http.ResponseWriter, r *http.Request) { reply(w, []byte("garbage")) }, ErrAnswer, timestamp.ErrMalformed, 1},
		"nothing":                 {func(w http.ResponseWriter, r *http.Request) { reply(w, nil) }, ErrAnswer, timestamp.ErrMalformed, 1},
		"too long":                {func(w http.ResponseWriter, r *http.Request) { reply(w, make([]byte, 1<<20)) }, ErrAnswer, nil, 1},
		"a web page":              {func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html>") }, ErrAnswer, nil, 1},
		"a rejection":             {func(w http.ResponseWriter, r *http.Request) { reply(w, a.Respond([]byte("?"))) }, ErrAnswer, nil, 1},
		"another request's token": {respond(func(r *timestamp.Request) { r.Imprint[0] ^= 1 }), ErrAnswer, timestamp.ErrImprint, 1},
		"a wrong nonce":           {respond(func(r *timestamp.Request) { r.Nonce.Add(r.Nonce, big.NewInt(1)) }), ErrAnswer, timestamp.ErrNonce, 1},
		"no nonce":                {respond(func(r *timestamp.Request) { r.Nonce = nil }), ErrAnswer, timestamp.ErrNonce, 1},
		"somebody else's token":   {func(w http.ResponseWriter, r *http.Request) { reply(w, other.Respond(query(t, r))) }, ErrAnswer, timestamp.ErrUntrusted, 1},
		"not found":               {http.NotFound, ErrAnswer, nil, 1},
		"an error":                {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }, ErrUnavailable, nil, 3},
		"too many requests":       {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(429) }, ErrUnavailable, nil, 3},
		"cut off": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			reply(w, []byte{0x30})
		}, ErrUnavailable, nil, 3},
		"hanging": {func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, ErrUnavailable, context.DeadlineExceeded, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			c := newClient(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				tt.answer(w, r)
			}), root)
			if name == "hanging" {
				c.config.Timeout = 200 * time.Millisecond
			}
			token, err := c.Stamp(t.Context(), imprint)
			if token != nil || !errors.Is(err, tt.want) || tt.cause != nil && !errors.Is(err, tt.cause) {
				t.Errorf("%d bytes, error %v; want %v, %v", len(token), err, tt.want, tt.cause)
			}
			if asked.Load() != tt.asked {
				t.Errorf("asked %d times, want %d", asked.Load(), tt.asked)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "tsa http://127.0.0.1") {
				t.Errorf("the error does not name the authority: %v", err)
			}
		})
	}
}

func TestExpiredAuthority(t *testing.T) {
	past, root := newAuthority(t, time.Now().Add(-24*time.Hour))
	// The authority's own clock is right: the token's certificate was valid at its time, but its time is not now.
	c := newClient(t, serve(t, func(w http.ResponseWriter, r *http.Request) { reply(w, past.Respond(query(t, r))) }), root)
	if _, err := c.Stamp(t.Context(), imprint); !errors.Is(err, ErrAnswer) {
		t.Errorf("a token from yesterday was accepted for a new request: %v", err)
	}
}

func TestAnAuthorityThatComesBack(t *testing.T) {
	a, root := newAuthority(t, time.Now())
	var asked atomic.Int32
	var waits []time.Duration
	c := newClient(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < 3 {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		reply(w, a.Respond(query(t, r)))
	}), root)
	c.config.Sleep = func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}
	if _, err := c.Stamp(t.Context(), imprint); err != nil {
		t.Fatal(err)
	}
	if len(waits) != 2 || waits[0] < 7*time.Second || waits[1] > longestWait {
		t.Errorf("waited %v between attempts", waits)
	}
}

func TestCancelled(t *testing.T) {
	_, root := newAuthority(t, time.Now())
	ctx, cancel := context.WithCancel(t.Context())
	c := newClient(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		w.WriteHeader(500)
	}), root)
	if _, err := c.Stamp(ctx, imprint); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	_, root := newAuthority(t, time.Now())
	for _, c := range []ClientConfig{{}, {URL: "ftp://x", Roots: []*x509.Certificate{root}}, {URL: "http://", Roots: []*x509.Certificate{root}},
		{URL: "http://tsa.example"}} {
		if _, err := NewClient(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}
