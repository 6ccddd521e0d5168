package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/config"
	"jurat/internal/webhook"
)

// A hookTest is what became of one message.
type hookTest struct {
	Host   string         `json:"host"` // without the path, which may hold a secret
	ID     string         `json:"id"`   // the header webhook-id
	Sent   jsontext.Value `json:"sent"`
	Status int            `json:"status,omitzero"` // of the answer; absent: there was none
	Millis int64          `json:"millis"`
	Taken  bool           `json:"taken"`
	Why    string         `json:"why,omitzero"` // why it was not taken
	Do     string         `json:"do,omitzero"`
}

// testWebhook sends the message.
func (c *doctorCmd) testWebhook(ctx context.Context, io stdio) error {
	hook, receiver, err := c.receiver()
	if err != nil {
		return hint(fmt.Errorf("--config: %w", err), "docs/configuration.md shows such a file")
	}
	done, err := sendTest(ctx, hook, receiver)
	if err != nil {
		return err
	}
	if err := c.tellWebhook(io, done); err != nil || done.Taken {
		return err
	}
	return exitCode(exitBad)
}

// receiver returns the webhook, with the receiver that the server would make of it.
func (c *doctorCmd) receiver() (*config.Webhook, *webhook.Receiver, error) {
	name := cmp.Or(c.Config, config.DefaultFile)
	doc, err := readFile(name)
	if err != nil {
		return nil, nil, err
	}
	file, err := config.Parse(doc)
	if err == nil && file.Webhook == nil {
		err = errors.New("it names no webhook")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	r, err := file.Webhook.Receiver(os.Getenv)
	return file.Webhook, r, err
}

func sendTest(ctx context.Context, w *config.Webhook, to *webhook.Receiver) (hookTest, error) {
	now := time.Now()
	body, err := json.Marshal(map[string]any{"type": "webhook.test", "timestamp": evidence.FormatTime(now), "data": map[string]any{}}, json.Deterministic(true))
	if err != nil {
		return hookTest{}, err
	}
	t := hookTest{Host: hostOf(w.URL), ID: "test-" + rand.Text(), Sent: body}
	t.Status, err = to.Try(ctx, t.ID, now, body)
	t.Millis, t.Taken = time.Since(now).Milliseconds(), err == nil
	if ctx.Err() != nil {
		return t, ctx.Err()
	}
	if err != nil {
		t.Why, t.Do = err.Error(), hookAdvice(w, t.Status, err)
	}
	return t, nil
}

// hostOf is a URL without its path and query. The configuration was checked, so it is a URL.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// hookAdvice says what to do about a message that was not taken.
func hookAdvice(w *config.Webhook, status int, err error) string {
	var name *net.DNSError
	var refused *webhook.RefusedError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, webhook.ErrInward) && w.Inward:
		return "Link-local addresses stay closed. Give the receiver an address of the private network, or a public one."
	case errors.Is(err, webhook.ErrInward):
		return "If the receiver is in your own network, write inward: true beside its url. If not, ask why its name leads to such an address."
	case errors.Is(err, webhook.ErrGone):
		return "The receiver wants no more messages, and the server would send it none of this kind again. Subscribe anew there, and correct the url."
	case errors.As(err, &name):
		return "This machine does not find the name. Correct the url, or the name server of this machine."
	case errors.As(err, &unknown), errors.As(err, &host), errors.As(err, &invalid):
		return "The receiver's certificate is not good for this name. Mend it there, or name the file of your own authority in SSL_CERT_FILE, here and for the server."
	case errors.Is(err, syscall.ECONNREFUSED):
		return "Nothing listens there. Start the receiver, or correct the port in the url."
	case isNet && timeout.Timeout():
		return "The receiver did not answer within 20 s. Ask for a firewall between, or let the receiver answer before it works on the message."
	case !errors.As(err, &refused):
		return "The connection did not come about, or broke. Look at the receiver's log."
	case status >= 300 && status < 400:
		return "Redirects are not followed. Write the address that the receiver redirects to as url."
	case status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusBadRequest:
		return "If the receiver says that the signature is wrong: give it the secret that this file names, and set both clocks right. Otherwise its log says what it lacks."
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		return "The receiver takes no messages at this path. Correct the url."
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		return "The receiver is busy. The server tries again after a pause; try again later."
	}
	return "The receiver failed. Look for the message's id in its log."
}

func (c *doctorCmd) tellWebhook(io stdio, t hookTest) error {
	if c.JSON {
		return io.json(t)
	}
	p := newPrinter(io.out)
	p.line("sent to %s, webhook-id %s:", t.Host, t.ID)
	p.text("  ", string(t.Sent))
	took := fmt.Sprintf("after %.1f s", float64(t.Millis)/1000)
	if t.Taken {
		p.line("taken, with status %d, %s", t.Status, took)
		return p.err
	}
	p.warning("", "not taken, "+took+": "+strings.TrimSuffix(t.Why, "."))
	p.text("", t.Do)
	return p.err
}
