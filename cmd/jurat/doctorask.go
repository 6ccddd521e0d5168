package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/client"
	"jurat/evidence"
	"jurat/internal/config"
	"jurat/internal/webhook"
)

// readyFlags are those of --ready.
type readyFlags struct {
	Timeout time.Duration `default:"5s" help:"With --ready: how long to wait for the answer."`

	Addr   string `hidden:"" default:"127.0.0.1:8417" env:"JURAT_ADDR"` // these are the variables of 'jurat serve'
	TLSKey string `name:"tls-key" hidden:"" env:"JURAT_TLS_KEY"`
}

// readiness is what was found.
type readiness struct {
	URL    string `json:"url"`
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"`
}

// ready asks.
func (c *doctorCmd) ready(ctx context.Context, io stdio) error {
	server, err := c.server()
	if err != nil {
		return err
	}
	if c.Timeout <= 0 {
		return fmt.Errorf("--timeout %s: want a time above 0, such as 5s", c.Timeout)
	}
	found := readiness{URL: server.String()}
	if err := c.ask(ctx, server); ctx.Err() != nil {
		return ctx.Err()
	} else if err != nil {
		found.Reason = err.Error()
	}
	found.Ready = found.Reason == ""
	if err := found.say(c.JSON, io); err != nil {
		return err
	}
	if !found.Ready {
		return exitCode(exitBad)
	}
	return nil
}

func (f readiness) say(asJSON bool, io stdio) error {
	switch {
	case asJSON:
		return io.json(f)
	case f.Ready:
		return io.line("ready: %s", f.URL)
	}
	return io.line("not ready: %s: %s", f.URL, f.Reason)
}

// maxReadyAnswer is more than a server says about itself, in bytes.
const maxReadyAnswer = 64 << 10

// ask returns why the server is not ready.
func (c *doctorCmd) ask(ctx context.Context, server *url.URL) error {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	if isLoopback(net.JoinHostPort(server.Hostname(), "0")) {
		// The certificate names the host that people type. Nothing secret is sent, and what listens on this machine's port is the server.
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	}
	asker, err := client.NewClient(client.Config{URL: server.String(), HTTP: &http.Client{Transport: transport}, MaxAnswer: maxReadyAnswer})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	err = asker.Ready(ctx)
	var failed *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s", c.Timeout)
	case errors.As(err, &failed):
		return fmt.Errorf("no server answers there: %w", failed.Err)
	}
	return err
}

// server is the address to ask.
func (c *doctorCmd) server() (*url.URL, error) {
	if c.URL == "" {
		return c.own()
	}
	at := c.URL
	if _, port, err := net.SplitHostPort(at); err == nil && isPort(port) {
		at = "http://" + at // as JURAT_ADDR has it
	}
	u, err := url.Parse(at)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("the server's address %q: want http:// or https:// and a host, such as http://127.0.0.1:8417", c.URL)
	}
	u.Path = ""
	return u, nil
}

func isPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

// own is the address of the server that has the same environment as this command.
func (c *doctorCmd) own() (*url.URL, error) {
	host, port, err := net.SplitHostPort(c.Addr)
	if err != nil || port == "" || port == "0" {
		return nil, hint(fmt.Errorf("JURAT_ADDR %q names no port", c.Addr), "name the server's address: jurat doctor --ready http://127.0.0.1:8417")
	}
	switch ip := net.ParseIP(host); { // a server that listens on all addresses listens on this machine's own, too
	case host == "" || ip != nil && ip.IsUnspecified() && ip.To4() != nil:
		host = "127.0.0.1"
	case ip != nil && ip.IsUnspecified():
		host = "::1"
	}
	scheme := "http"
	if c.TLSKey != "" {
		scheme = "https"
	}
	return &url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port)}, nil
}

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
