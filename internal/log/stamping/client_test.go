package stamping

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"jurat/internal/log/filestore"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/timestamp"
)

// newAuthority makes an authority whose certificate is valid for an hour from this time.
func newAuthority(t *testing.T, from time.Time) (*timestamp.Authority, *x509.Certificate) {
	t.Helper()
	key := func() *ecdsa.PrivateKey {
		return must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	}
	from = from.UTC().Truncate(time.Second)
	rootKey, leafKey := key(), key()
	root, err := timestamp.NewRoot(timestamp.CertificateConfig{Key: rootKey, Serial: big.NewInt(1), NotBefore: from, NotAfter: from.Add(time.Hour)})
	must.Do(t, err)
	leaf, err := timestamp.NewCertificate(timestamp.CertificateConfig{Key: leafKey, Serial: big.NewInt(2), NotBefore: from, NotAfter: from.Add(time.Hour)}, root, rootKey)
	must.Do(t, err)
	a, err := timestamp.NewAuthority(timestamp.AuthorityConfig{Key: leafKey, Certificate: leaf, Chain: []*x509.Certificate{root},
		Now: func() time.Time { return from.Add(time.Minute) }})
	must.Do(t, err)
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

// answers answers each request after a change to it.
func answers(t *testing.T, a *timestamp.Authority, change func(r *timestamp.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		request, err := jurattest.ParseQuery(query(t, r))
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
		must.Want(t, err, nil)
		reply(w, response)
	}
}

// same is no change.
func same(*timestamp.Request) {}

func impatient(t *testing.T, url string, root *x509.Certificate) *Client {
	t.Helper()
	c := must.Get(newClient(url, []*x509.Certificate{root}))(t)
	c.timeout = time.Minute
	c.sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return c
}

var imprint = [32]byte{1, 2, 3}

func TestStamp(t *testing.T) {
	a, root := newAuthority(t, time.Now())
	c := impatient(t, serve(t, answers(t, a, same)), root)
	token := must.Get(c.Stamp(t.Context(), imprint))(t)
	u := must.Get(timestamp.Parse(token))(t)
	verified, err := u.Verify(imprint, timestamp.Options{Roots: []*x509.Certificate{root}})
	must.Hold(t, err == nil && verified.Nonce != nil && verified.Nonce.BitLen() >= 64, "the token: %v, %+v", err, verified)
}

// TestStampWhileTheClockStands: a good token is good beside an installation whose clock stands still an hour ahead.
func TestStampWhileTheClockStands(t *testing.T) {
	a, root := newAuthority(t, time.Now())
	files := filestore.NewFolder(t.TempDir())
	roots := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw}))
	must.Do(t, (&Timekeeper{Files: files}).Add(t.Context(), Outside{Name: "a", URL: serve(t, answers(t, a, same)), Roots: roots}, true))
	ahead := time.Now().Add(time.Hour)
	s := must.Get(Open(t.Context(), files, nil, []string{"a"}, func() time.Time { return ahead }))(t)
	stamped := must.Get(s.Stamp(t.Context(), imprint))(t)
	must.Len(t, stamped.Missing, 0)
	must.Len(t, stamped.Tokens, 1)
}

// TestNoGoodAnswer: only a valid token is accepted, whatever an authority or an impostor answers.
func TestNoGoodAnswer(t *testing.T) {
	a, root := newAuthority(t, time.Now())
	other, _ := newAuthority(t, time.Now())
	respond := func(change func(r *timestamp.Request)) http.HandlerFunc { return answers(t, a, change) }
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
		"a rejection":             {func(w http.ResponseWriter, r *http.Request) { reply(w, []byte{0x30, 5, 0x30, 3, 2, 1, 2}) }, ErrAnswer, nil, 1},
		"another request's token": {respond(func(r *timestamp.Request) { r.Imprint[0] ^= 1 }), ErrAnswer, timestamp.ErrImprint, 1},
		"a wrong nonce":           {respond(func(r *timestamp.Request) { r.Nonce.Add(r.Nonce, big.NewInt(1)) }), ErrAnswer, timestamp.ErrNonce, 1},
		"no nonce":                {respond(func(r *timestamp.Request) { r.Nonce = nil }), ErrAnswer, timestamp.ErrNonce, 1},
		"somebody else's token":   {answers(t, other, same), ErrAnswer, timestamp.ErrUntrusted, 1},
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
			c := impatient(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				tt.answer(w, r)
			}), root)
			if name == "hanging" {
				c.timeout = 200 * time.Millisecond
			}
			token, err := c.Stamp(t.Context(), imprint)
			must.Hold(t, token == nil && errors.Is(err, tt.want) && (tt.cause == nil || errors.Is(err, tt.cause)),
				"%d bytes, error %v; want %v, %v", len(token), err, tt.want, tt.cause)
			must.Equal(t, asked.Load(), tt.asked)
			must.Hold(t, err == nil || strings.HasPrefix(err.Error(), "tsa http://127.0.0.1"), "the error does not name the authority: %v", err)
		})
	}
}

func TestExpiredAuthority(t *testing.T) {
	past, root := newAuthority(t, time.Now().Add(-24*time.Hour))
	// The authority's own clock is right: the token's certificate was valid at its time, but its time is not now.
	c := impatient(t, serve(t, answers(t, past, same)), root)
	must.Fail(t, ErrAnswer)(c.Stamp(t.Context(), imprint))
}

func TestAnAuthorityThatComesBack(t *testing.T) {
	a, root := newAuthority(t, time.Now())
	var asked atomic.Int32
	var waits []time.Duration
	c := impatient(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < 3 {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		answers(t, a, same)(w, r)
	}), root)
	c.sleep = func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}
	must.Get(c.Stamp(t.Context(), imprint))(t)
	must.Hold(t, len(waits) == 2 && waits[0] >= 7*time.Second && waits[1] <= longestWait, "waited %v between attempts", waits)
}

func TestCancelled(t *testing.T) {
	_, root := newAuthority(t, time.Now())
	ctx, cancel := context.WithCancel(t.Context())
	c := impatient(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		w.WriteHeader(500)
	}), root)
	must.Fail(t, context.Canceled)(c.Stamp(ctx, imprint))
}

func TestNewRefuses(t *testing.T) {
	_, root := newAuthority(t, time.Now())
	for _, url := range []string{"", "ftp://x", "http://"} {
		must.Refuse(t, "", url, "is accepted")(newClient(url, []*x509.Certificate{root}))
	}
	must.Refuse(t, "", "a client without a root is accepted")(newClient("http://tsa.example", nil))
}

// TestLateStampsContradictNoClaim: an authority whose clock is behind stamps too early. A token earlier than the claimed
// time, less the tolerance of readers, is not added: it would contradict the claim. A record whose claim is in the far
// future accepts any token.
func TestLateStampsContradictNoClaim(t *testing.T) {
	now := time.Now()
	for name, at := range map[string]struct {
		claimed, stamped time.Time
		want             bool
	}{
		"before the stamp":      {now, now.Add(time.Minute), true},
		"a little after it":     {now, now.Add(-4 * time.Minute), true},
		"too much, for now":     {now.Add(3 * time.Minute), now.Add(-3 * time.Minute), false},
		"of the far future":     {now.Add(time.Hour), now, true},
		"as late as is allowed": {now, now.Add(-5 * time.Minute), true},
	} {
		got := fitsClaim(at.claimed, at.stamped, now)
		must.Hold(t, got == at.want, "%s: it is added: %v, want %v", name, got, at.want)
	}
}
