package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"jurat/internal/must"
)

// TestReady asks a server that is ready, and then none. TestMachinesWithoutDatabase asks one that is not ready.
func TestReady(t *testing.T) {
	at := freeAddr(t)
	t.Setenv("JURAT_ADDR", at)
	_, _, stop := serve(t, "--data", t.TempDir()+"/data", "serve")
	if out, _ := ran(t, 0, "ready"); out != "ready: http://"+at+"\n" {
		t.Errorf("%q", out)
	}
	answered(t, 0, readiness{URL: "http://" + at, Ready: true}, "ready", "--json")
	if out, _ := ran(t, 0, "ready", at); out != "ready: http://"+at+"\n" { // as JURAT_ADDR and --addr have it
		t.Errorf("%q", out)
	}
	for _, wrong := range []string{"localhost", "jurat.example:port", "ftp://127.0.0.1:1", "127.0.0.1:1/path"} {
		_, errs := ran(t, exitCannot, "ready", wrong)
		has(t, errs, "want http:// or https:// and a host, such as http://127.0.0.1:8417")
	}
	stop()
	out, errs := ran(t, exitBad, "ready", "http://"+at+"/")
	has(t, out, "not ready: http://"+at+": no server answers there: ", "refused")
	if errs != "" {
		t.Errorf("it says %q beside the result", errs)
	}
}

// answered checks what 'jurat ready --json' says.
func answered(t *testing.T, code int, want readiness, args ...string) {
	t.Helper()
	out, _ := ran(t, code, args...)
	var got readiness
	if err := json.Unmarshal([]byte(out), &got); err != nil || got != want {
		t.Errorf("%s, %v: want %+v", out, err, want)
	}
}

// TestReadyByHTTPS: a server on this machine is asked by https whatever host its certificate names. Of any other server the certificate is
// checked.
func TestReadyByHTTPS(t *testing.T) {
	cert, key := certificateFor(t, t.TempDir())
	_, port, err := net.SplitHostPort(freeAddr(t))
	must.Do(t, err)
	for name, value := range map[string]string{"JURAT_ADDR": "0.0.0.0:" + port, "JURAT_TLS_CERT": cert, "JURAT_TLS_KEY": key} {
		t.Setenv(name, value)
	}
	serve(t, "--data", t.TempDir()+"/data", "serve")
	answered(t, 0, readiness{URL: "https://127.0.0.1:" + port, Ready: true}, "ready", "--json")
	out, _ := ran(t, exitBad, "ready", "http://127.0.0.1:"+port)
	has(t, out, "status 400, and the answer is not from jurat")

	through := httptest.NewServer(tunnel(t, "127.0.0.1:"+port))
	defer through.Close()
	for roots, want := range map[string]string{cert: "ready: https://jurat.example\n", os.DevNull: "certificate signed by unknown authority"} {
		asker := exec.Command("jurat", "ready", "https://jurat.example", "--timeout", "30s")
		asker.Env = append(os.Environ(), "HTTPS_PROXY="+through.URL, "SSL_CERT_FILE="+roots, "SSL_CERT_DIR="+t.TempDir())
		said, err := asker.CombinedOutput()
		if !strings.Contains(string(said), want) || (err == nil) != (roots == cert) {
			t.Errorf("%s, %v: want %s", said, err, want)
		}
	}
}

// tunnel is a proxy that leads every connection to one server, as a name in a DNS does.
func tunnel(t *testing.T, to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		far, err := net.Dial("tcp", to)
		if err != nil || r.Method != http.MethodConnect {
			t.Errorf("%s %s, %v", r.Method, r.Host, err)
			return
		}
		near, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprint(near, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { defer far.Close(); _, _ = io.Copy(far, near) }() // until either side closes
		defer near.Close()
		_, _ = io.Copy(near, far)
	}
}

// TestReadyOfOthers: what answers and is no server of jurat is not ready, whatever it says.
func TestReadyOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		want   string
	}{
		"another page": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<p>ready\n") }, "the answer is not from jurat"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				fmt.Fprint(w, "ready\n")
			}
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}, "status 302, and the answer is not from jurat"},
		"a long answer": {func(w http.ResponseWriter, _ *http.Request) {
			for _, err := w.Write(nil); err == nil; _, err = w.Write(make([]byte, 4096)) {
			}
		}, "the answer has more than 65536 bytes"},
		"no answer": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no answer within 300ms"},
		"a terminal's control": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"type":"x","title":"x","status":503,"detail":"a\u001b[2Jb\nready: it"}`)
		}, "not ready: http://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := httptest.NewServer(http.HandlerFunc(c.answer))
			defer other.Close()
			timeout := "30s"
			if name == "no answer" {
				timeout = "300ms"
			}
			out, _ := ran(t, exitBad, "ready", other.URL, "--timeout", timeout)
			has(t, out, c.want)
			if strings.Contains(out, "\x1b") || strings.Count(out, "\n") != 1 {
				t.Errorf("%q obeys what the server says", out)
			}
		})
	}
}

// TestReadyRefuses: addresses that name no server are mistakes of the caller, not of the server.
func TestReadyRefuses(t *testing.T) {
	for _, wrong := range []string{"jurat.example", "ftp://jurat.example", "https://", "https://a@jurat.example", "https://jurat.example/records", "https://jurat.example/?a", "https://[::1"} {
		_, said := ran(t, exitCannot, "ready", wrong)
		has(t, said, "the server's address")
	}
	_, said := ran(t, exitCannot, "ready", "--timeout=-1s")
	has(t, said, "--timeout", "above 0")
	for addr, want := range map[string]string{":8417": "http://127.0.0.1:8417", "[::]:1": "http://[::1]:1", "0.0.0.0:1": "http://127.0.0.1:1", "10.0.0.7:1": "http://10.0.0.7:1"} {
		got, err := (&readyCmd{Addr: addr}).own()
		if err != nil || got.String() != want {
			t.Errorf("%s: %v, %v", addr, got, err)
		}
	}
	for _, addr := range []string{"", "8417", "127.0.0.1:0", "127.0.0.1:"} {
		t.Setenv("JURAT_ADDR", addr)
		_, said := ran(t, exitCannot, "ready")
		has(t, said, "JURAT_ADDR", "jurat ready http://")
	}
}
