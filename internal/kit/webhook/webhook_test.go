package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"jurat/internal/test/must"
)

const (
	secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // of the convention's own example
	newer  = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
)

var moment = time.Unix(1_790_000_000, 0)

type got struct {
	header http.Header
	body   []byte
}

// receiver answers with a status, and returns what it got.
func receiver(t *testing.T, status int, header ...string) (url string, took func() []got) {
	t.Helper()
	var all []got
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		all = append(all, got{r.Header, body})
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/hook?of=us", func() []got { s.Close(); return all }
}

func made(t *testing.T, c Config) *Receiver {
	t.Helper()
	return must.Get(New(c))(t)
}

// TestSend: the receiver's own library accepts what comes, with the old secret and the new one, and so does OpenSSL.
func TestSend(t *testing.T) {
	url, took := receiver(t, http.StatusNoContent)
	r := made(t, Config{URL: url, Secrets: []string{newer, secret}, Inward: true})
	body := []byte(`{"type":"reputation.crossed"}`)
	must.Get(r.Send(t.Context(), "msg_1", moment, body))(t)
	all := took()
	must.Need(t, len(all) == 1 && bytes.Equal(all[0].body, body) && all[0].header.Get("Content-Type") == "application/json", "%q", all)
	for _, one := range []string{secret, newer} {
		by := must.Get(standardwebhooks.NewWebhook(one))(t)
		must.Want(t, by.VerifyIgnoringTimestamp(all[0].body, all[0].header), nil)
		must.Say(t, by.VerifyIgnoringTimestamp(append(all[0].body, ' '), all[0].header), "", "another body is accepted")
		raw := must.Get(base64.StdEncoding.DecodeString(strings.TrimPrefix(one, secretPrefix)))(t)
		sum := hmac.New(sha256.New, raw)
		sum.Write([]byte("msg_1.1790000000." + string(body)))
		if want := "v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil)); !slices.Contains(strings.Fields(all[0].header.Get("webhook-signature")), want) {
			t.Errorf("%q has not %q", all[0].header.Get("webhook-signature"), want)
		}
	}
}

// TestOpenSSL: an outside program computes the same signature.
func TestOpenSSL(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is missing")
	}
	url, took := receiver(t, http.StatusOK)
	must.Get(made(t, Config{URL: url, Secrets: []string{secret}, Inward: true}).Send(t.Context(), "msg_2", moment, []byte("{}")))(t)
	raw, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	run := exec.Command("openssl", "dgst", "-sha256", "-mac", "HMAC", "-macopt", "hexkey:"+hex.EncodeToString(raw), "-binary")
	run.Stdin = strings.NewReader("msg_2.1790000000.{}")
	sum := must.Get(run.Output())(t)
	have, want := took()[0].header.Get("webhook-signature"), "v1,"+base64.StdEncoding.EncodeToString(sum)
	must.Hold(t, have == want, "%q, OpenSSL: %q", have, want)
}

// TestAnswers: only a status of success counts as taken, and redirects are not followed.
func TestAnswers(t *testing.T) {
	elsewhere, reached := receiver(t, http.StatusOK)
	for _, c := range []struct {
		status int
		header []string
		taken  bool
		after  time.Duration
	}{
		{200, nil, true, 0},
		{299, nil, true, 0},
		{301, []string{"Location", elsewhere}, false, 0},
		{307, []string{"Location", elsewhere}, false, 0},
		{400, nil, false, 0},
		{429, []string{"Retry-After", "120"}, false, 2 * time.Minute},
		{503, []string{"Retry-After", moment.Add(time.Hour).UTC().Format(http.TimeFormat)}, false, time.Hour},
		{503, []string{"Retry-After", "99999999999999999999"}, false, 0},
		{503, []string{"Retry-After", "9999999"}, false, 24 * time.Hour},
		{503, []string{"Retry-After", "-1"}, false, 0},
	} {
		url, _ := receiver(t, c.status, c.header...)
		_, err := made(t, Config{URL: url, Secrets: []string{secret}, Inward: true}).Send(t.Context(), "msg_3", moment, []byte("{}"))
		var refused *RefusedError
		must.Hold(t, c.taken == (err == nil) && (c.taken || errors.As(err, &refused) && refused.Status == c.status && refused.After == c.after),
			"%d %q: %v", c.status, c.header, err)
	}
	must.Equal(t, len(reached()), 0, "redirects that were followed")
	url, _ := receiver(t, http.StatusGone)
	must.Fail(t, ErrGone)(made(t, Config{URL: url, Secrets: []string{secret}, Inward: true}).Send(t.Context(), "msg_4", moment, nil))
}

// TestInward: without leave, no connection goes to an address that is not public, whatever the URL or the name says.
func TestInward(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "0.1.2.3", "192.0.0.8", "192.0.2.1", "198.18.0.1",
		"198.51.100.7", "203.0.113.9", "224.0.0.1", "240.0.0.1", "255.255.255.255", "[::1]", "[::]", "[fe80::1]", "[fc00::1]", "[fd12::1]", "[ff02::1]", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]",
		"[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[2001::1]", "[2001:db8::1]", "[::127.0.0.1]", "[fec0::1]", "[100::1]"} {
		must.Want(t, CheckURL("https://"+host+"/x", false), ErrInward, host)
	}
	for _, host := range []string{"93.184.216.34", "[2606:4700::1111]", "hooks.example.com", "hooks.example.com:8443"} {
		must.Want(t, CheckURL("https://"+host+"/x", false), nil, host)
	}
	for _, host := range []string{"169.254.169.254", "[fe80::1]", "0.0.0.0", "[::ffff:169.254.169.254]"} {
		must.Want(t, CheckURL("https://"+host+"/x", true), ErrInward, "inward", host)
	}
}

// TestNameLeadsInward: what counts is the address that is dialled, so a name that leads to this machine opens nothing.
func TestNameLeadsInward(t *testing.T) {
	reached := make(chan bool, 1)
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached <- true }))
	defer s.Close()
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	must.Do(t, err)
	t.Setenv("HTTPS_PROXY", s.URL) // a proxy would connect in our place
	for _, name := range []string{"localhost", "127.1", "2130706433", "0x7f000001"} {
		r, err := New(Config{URL: "https://" + net.JoinHostPort(name, port) + "/", Secrets: []string{secret}})
		if err != nil {
			continue // refused by its form
		}
		if _, err := r.Send(t.Context(), "msg_5", moment, nil); err == nil {
			t.Errorf("%s: sent", name)
		} else if name == "localhost" && !errors.Is(err, ErrInward) {
			t.Errorf("%s: %v", name, err)
		}
	}
	select {
	case <-reached:
		t.Error("the server on this machine was reached")
	default:
	}
}

// TestNoSecretInErrors: errors name neither secrets nor the path of the URL, which may be one.
func TestNoSecretInErrors(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	closed := "http://" + l.Addr().String() + "/services/T0/very-secret"
	l.Close()
	_, err := made(t, Config{URL: closed, Secrets: []string{secret}, Inward: true}).Send(t.Context(), "msg_6", moment, nil)
	must.Hold(t, err != nil && !strings.Contains(err.Error(), "very-secret"), "%v", err)
	for _, c := range []Config{
		{URL: "ftp://a.example/very-secret", Secrets: []string{secret}},
		{URL: "http://a.example/very-secret", Secrets: []string{secret}},
		{URL: "https://a:very-secret@a.example/", Secrets: []string{secret}},
		{URL: "https://a.example/#very-secret", Secrets: []string{secret}},
		{URL: "https:///very-secret", Secrets: []string{secret}},
		{URL: "very-secret\x00", Secrets: []string{secret}},
		{URL: "https://a.example/"},
		{URL: "https://a.example/", Secrets: []string{"very-secret"}},
		{URL: "https://a.example/", Secrets: []string{"whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 23))}},
		{URL: "https://a.example/", Secrets: []string{"whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 65))}},
		{URL: "https://a.example/", Secrets: []string{secret, newer, secret}},
	} {
		_, err := New(c)
		must.Hold(t, err != nil && !strings.Contains(err.Error(), "very-secret") && !strings.Contains(err.Error(), "MfKQ"), "%v: %v", c, err)
	}
}

// TestSlowReceiver: the caller's context ends an attempt.
func TestSlowReceiver(t *testing.T) {
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer s.Close()
	defer close(over)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	must.Fail(t, context.Canceled)(made(t, Config{URL: s.URL, Secrets: []string{secret}, Inward: true}).Send(ctx, "msg_7", moment, nil))
}
