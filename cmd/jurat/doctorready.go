package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"jurat/client"
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
