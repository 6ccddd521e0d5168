// Package webhook sends messages to addresses that the operator names, by the Standard Webhooks convention
// (www.standardwebhooks.com): the receiver can tell who sent a message, and whether it got it before.
//
// # No message goes inward
//
// Otherwise a user who may name an address could make this server ask the machines beside it. So a connection is made only to addresses of the
// public Internet. This is decided for the address that is dialled, after the name was looked up, so that a name cannot lead elsewhere at
// the second look. Redirects are not followed, and no proxy of the environment is used, as either would connect in our place. An operator
// who has a receiver in the own network says so, for that receiver alone ([Config].Inward). Link-local addresses stay closed even then.
package webhook

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"code.dny.dev/ssrf"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Limits of secrets, by the convention, in bytes.
const (
	minSecret = 24
	maxSecret = 64
)

const (
	secretPrefix = "whsec_"
	sendTime     = 20 * time.Second
	maxAnswer    = 64 << 10 // bytes of an answer that are read, so that the connection can be used again
	maxWait      = 24 * time.Hour
)

var (
	ErrGone   = errors.New("the receiver answers that it is gone (status 410)")
	ErrInward = errors.New("the address is not one of the public Internet")
)

// A RefusedError says that the receiver did not take a message.
type RefusedError struct {
	Status int
	After  time.Duration // the receiver wants to be left alone for so long; 0: it does not say
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the receiver answers with status %d", e.Status)
}

type Config struct {
	URL     string
	Secrets []string // one; or two while a new one takes the place of the old: then the receiver accepts either
	Inward  bool     // it may be in a private network, and be reached by plain http
}

// A Receiver gets messages. It is safe for concurrent use.
type Receiver struct {
	url     string
	signers []*standardwebhooks.Webhook
	http    *http.Client
}

// New makes a Receiver. Its errors do not repeat a secret.
func New(c Config) (*Receiver, error) {
	if err := CheckURL(c.URL, c.Inward); err != nil {
		return nil, err
	}
	if len(c.Secrets) < 1 || len(c.Secrets) > 2 {
		return nil, fmt.Errorf("%d secrets, want 1 or 2", len(c.Secrets))
	}
	r := &Receiver{url: c.URL, http: client(c.Inward)}
	for _, secret := range c.Secrets {
		if err := CheckSecret(secret); err != nil {
			return nil, err
		}
		signer, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			return nil, errBadSecret
		}
		r.signers = append(r.signers, signer)
	}
	return r, nil
}

// CheckURL returns an error unless messages can be sent to a URL. Without inward that is https, to a host that is no private address.
func CheckURL(text string, inward bool) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("want an https URL")
	case u.User != nil || u.Fragment != "":
		return errors.New("want a URL without user, password and fragment")
	case u.Scheme == "http" && !inward:
		return errors.New("want https; http is only for a receiver of the own network, with inward: true")
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return ofGuardian(guardian(inward).SafeAddr(ip))
	}
	return nil
}

var errBadSecret = fmt.Errorf("want a secret of the form %s and base64 of %d to %d random bytes", secretPrefix, minSecret, maxSecret)

// CheckSecret returns an error unless a secret has the form of the convention. It does not repeat the secret.
func CheckSecret(secret string) error {
	text, has := strings.CutPrefix(secret, secretPrefix)
	raw, err := base64.StdEncoding.DecodeString(text)
	if !has || err != nil || len(raw) < minSecret || len(raw) > maxSecret {
		return errBadSecret
	}
	return nil
}

// public refuses addresses that IANA's registries keep for other uses than the public Internet. near also accepts those of private networks
// and of this machine, but no link-local ones: there clouds answer what no one else may ask.
var (
	public = ssrf.New(ssrf.WithAnyPort())
	near   = ssrf.New(ssrf.WithAnyPort(),
		ssrf.WithAllowedV4Prefixes(prefixes("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")...),
		ssrf.WithAllowedV6Prefixes(prefixes("::1/128", "fc00::/7")...))
)

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

func guardian(inward bool) *ssrf.Guardian {
	if inward {
		return near
	}
	return public
}

func client(inward bool) *http.Client {
	dialer := &net.Dialer{Timeout: sendTime / 2, Control: guardian(inward).Safe}
	return &http.Client{
		Timeout: sendTime,
		Transport: &http.Transport{Proxy: nil, DialContext: dialer.DialContext, TLSHandshakeTimeout: sendTime / 2, ForceAttemptHTTP2: true,
			MaxIdleConns: 2, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxAnswer},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Send sends a message, and returns the status of the answer; 0: there was none. The error is nil if the receiver has taken it. id is that of
// the message, and the same in each attempt: by it, the receiver knows a message that it has taken before. Its errors include ErrGone, ErrInward
// and *RefusedError.
func (r *Receiver) Send(ctx context.Context, id string, at time.Time, body []byte) (status int, err error) {
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	var signatures []string
	for _, signer := range r.signers {
		signature, err := signer.Sign(id, at, body)
		if err != nil {
			return 0, err
		}
		signatures = append(signatures, signature)
	}
	post.Header.Set("Content-Type", "application/json")
	post.Header.Set("User-Agent", "jurat")
	post.Header.Set(standardwebhooks.HeaderWebhookID, id)
	post.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	post.Header.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	answer, err := r.http.Do(post)
	if err != nil {
		return 0, plain(err)
	}
	defer answer.Body.Close()
	io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer)) // what it says, and whether it says it to the end, does not matter
	switch {
	case answer.StatusCode >= 200 && answer.StatusCode < 300:
		return answer.StatusCode, nil
	case answer.StatusCode == http.StatusGone:
		return answer.StatusCode, ErrGone
	}
	return answer.StatusCode, &RefusedError{Status: answer.StatusCode, After: after(answer.Header.Get("Retry-After"), at)}
}

// plain takes the URL out of an error: it may hold a secret of the receiver's.
func plain(err error) error {
	if of, is := errors.AsType[*url.Error](err); is {
		err = of.Err
	}
	return ofGuardian(err)
}

func ofGuardian(err error) error {
	for _, refused := range []error{ssrf.ErrProhibitedIP, ssrf.ErrProhibitedNetwork, ssrf.ErrInvalidHostPort} {
		if errors.Is(err, refused) {
			return fmt.Errorf("%w: %w", ErrInward, err)
		}
	}
	return err
}

// after reads a Retry-After header, which is a number of seconds or a date.
func after(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil && seconds > 0 {
		return min(time.Duration(seconds)*time.Second, maxWait)
	}
	if date, err := http.ParseTime(text); err == nil && date.After(now) {
		return min(date.Sub(now), maxWait)
	}
	return 0
}
