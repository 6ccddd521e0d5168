package sdktest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jurat/internal/tap/relay"
	"jurat/internal/test/must"
)

// between has the test's own program stand between a client and the server that its arguments start.
const between = "JURAT_TEST_BETWEEN"

func TestMain(m *testing.M) {
	if mode := os.Getenv(between); mode != "" {
		if err := stand(mode, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// stand passes messages, and writes into a file how many uses of tools it saw.
func stand(mode string, command []string) error {
	if client := os.Getenv(between + "_CLIENT"); client != "" {
		return standForClient(client, command)
	}
	folder, err := os.MkdirTemp("", "between")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	o := relay.Options{Folder: filepath.Join(folder, "spool"), FingerprintKey: make([]byte, 32)}
	if mode == string(relay.Open) {
		o.Mode = relay.Open
	}
	w := new(reader)
	r, err := relay.New(w, o)
	if err != nil {
		return err
	}
	p := r.Pipe(relay.PipeOptions{Origin: "stdio:tools"})
	server := exec.Command(command[0], command[1:]...)
	server.Stderr = os.Stderr
	in, err := server.StdinPipe()
	if err != nil {
		return err
	}
	out, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	if err := p.Run(os.Stdin, os.Stdout, out, in); err != nil {
		return err
	}
	uses := 0
	for _, p := range w.said {
		if strings.Contains(p.facts, `"tool":`) && p.Complete && p.Problem == "" {
			uses++
		}
	}
	return os.WriteFile(os.Getenv(between+"_SAW"), fmt.Append(nil, uses), 0o600)
}

// scripts skips a test without the SDK.
func scripts(t *testing.T) (server, client string) {
	t.Helper()
	if os.Getenv("JURAT_TEST_MCP") == "" {
		must.Need(t, os.Getenv("CI") != "true", "JURAT_TEST_MCP names no folder with @modelcontextprotocol/sdk: scripts/test sdks sets it")
		t.Skip("JURAT_TEST_MCP names no folder with @modelcontextprotocol/sdk: scripts/test sdks sets it")
	}
	return filepath.Join("testdata", "server.mjs"), filepath.Join("testdata", "client.mjs")
}

// learned runs the client, and returns what it prints.
func learned(t *testing.T, variables []string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "node", args...)
	c.Env = append(os.Environ(), variables...)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	must.Need(t, err == nil, "%v\n%s\n%s", err, out, &errs)
	for _, want := range []string{`"Sum":42`, "it failed", `accept {\"ok\":true} m-1`, "progress 1", "long long", "Hello."} {
		must.Hold(t, strings.Contains(string(out), want), "no %s in\n%s", want, out)
	}
	return string(out)
}

// TestMCPTypeScript: what the SDK's client learns of the SDK's server is the same through the relay, on each transport.
func TestMCPTypeScript(t *testing.T) {
	server, client := scripts(t)
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		direct := learned(t, nil, client, "node", server)
		for _, mode := range []relay.Mode{relay.Closed, relay.Open} {
			saw := filepath.Join(t.TempDir(), "saw")
			through := learned(t, []string{between + "=" + string(mode), between + "_SAW=" + saw}, client, os.Args[0], "node", server)
			must.Hold(t, through == direct, "%v: direct\n%s\nthrough\n%s", mode, direct, through)
			uses, err := os.ReadFile(saw)
			must.Hold(t, string(uses) == "24", "%v: %s uses of tools were seen, %v", mode, uses, err)
		}
	})
	t.Run("HTTP", func(t *testing.T) {
		t.Parallel()
		s := exec.CommandContext(t.Context(), "node", server, "http")
		s.Stderr = os.Stderr
		in := must.Get(s.StdinPipe())(t)
		out := must.Get(s.StdoutPipe())(t)
		must.Do(t, s.Start())
		t.Cleanup(func() { _ = in.Close(); _ = s.Wait() })
		port := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
		base := &url.URL{Scheme: "http", Host: "127.0.0.1:" + strings.TrimSpace(port)}
		direct := learned(t, nil, client, base.String()+"/mcp")
		for _, mode := range []relay.Mode{relay.Closed, relay.Open} {
			w := new(reader)
			h, err := relay.New(w, relay.Options{Upstreams: map[string]relay.Upstream{"mcp": {Base: base, Speaks: relay.MCP, Only: []string{"/mcp"}}}, Root: "mcp", Mode: mode,
				Folder: filepath.Join(t.TempDir(), "spool"), FingerprintKey: make([]byte, 32)})
			must.Do(t, err)
			front := httptest.NewServer(h)
			must.Equal(t, learned(t, nil, client, front.URL+"/mcp"), direct, mode, "through the relay")
			w.read(t)
			front.CloseClientConnections()
			front.Close()
			must.Want(t, h.Wait(context.Background()), nil)
		}
	})
}

// TestMCPBetweenSDKs: the SDK for Go asks the server of the SDK for TypeScript, in each version that both speak.
func TestMCPBetweenSDKs(t *testing.T) {
	server, _ := scripts(t)
	for _, version := range mcp.SupportedProtocolVersions() {
		if version > "2025-11-25" {
			continue
		}
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			direct := story(t, version, &mcp.CommandTransport{Command: exec.Command("node", server)})
			through := exec.Command(os.Args[0], "node", server)
			saw := filepath.Join(t.TempDir(), "saw")
			through.Env = append(os.Environ(), between+"=closed", between+"_SAW="+saw)
			must.Equal(t, story(t, version, &mcp.CommandTransport{Command: through}), direct, "through the relay")
			if uses, err := os.ReadFile(saw); string(uses) != "24" || !strings.Contains(direct, version) || !strings.Contains(direct, "42") {
				t.Errorf("%s uses of tools were seen, %v\n%s", uses, err, direct)
			}
		})
	}
}
