package relay

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"jurat/internal/must"
)

// nobody is a witness that looks at nothing.
type nobody struct{}

func (nobody) Begin(context.Context, *Call) (Exchange, error) { return nobody{}, nil }
func (nobody) End(context.Context, *Outcome) error            { return nil }
func (nobody) Missed(*Call, error)                            {}

// FuzzUpstream: whatever bytes a client sends to a relay's listener, no other origin is reached than the upstream's, by no other name, and no path outside of its base.
func FuzzUpstream(f *testing.F) {
	other := must.Get(net.Listen("tcp", "127.0.0.1:0"))(f)
	defer other.Close()
	var strayed atomic.Int64
	go func() {
		for {
			conn, err := other.Accept()
			if err != nil {
				return
			}
			strayed.Add(1)
			conn.Close()
		}
	}()
	var wrong atomic.Pointer[string]
	provider := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		path, _, _ := strings.Cut(r.RequestURI, "?")
		clean := r.URL.Path
		if r.Host != r.Context().Value(http.LocalAddrContextKey).(net.Addr).String() || !strings.HasPrefix(path, "/base/") || strings.Contains(clean, "/../") || strings.HasSuffix(clean, "/..") {
			wrong.Store(new(r.Host + " " + r.RequestURI))
		}
	}))
	defer provider.Close()
	base := mustParse(f, provider.URL+"/base")
	h, err := New(nobody{}, Options{Upstreams: map[string]Upstream{"api": {Base: base}}, Folder: filepath.Join(f.TempDir(), "spool"), FingerprintKey: make([]byte, 32), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Start()
	defer server.Close()

	for _, head := range []string{
		"GET http://OTHER/api/x HTTP/1.1\r\nHost: OTHER\r\n\r\n", "CONNECT OTHER HTTP/1.1\r\nHost: OTHER\r\n\r\n", "GET /api/../../x HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /api/x HTTP/1.1\r\nHost: OTHER\r\nX-Forwarded-Host: OTHER\r\nForwarded: host=OTHER\r\n\r\n", "GET //OTHER/api HTTP/1.1\r\nHost: a\r\n\r\n", "POST /api/x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://OTHER/ HTTP/1.1\r\n\r\n",
		"GET /api/@OTHER/ HTTP/1.1\r\nHost: user@OTHER\r\n\r\n", "GET /api/x HTTP/1.1\r\nHost: a\r\nHost: OTHER\r\n\r\n", "GET /api/%2e%2e/x HTTP/1.1\r\nHost: a\r\n\r\n", "GET /r/t/api/x?u=http://OTHER HTTP/1.0\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET /api/\\OTHER HTTP/1.1\r\nHost: a\r\nConnection: Host\r\n\r\n",
	} {
		f.Add([]byte(head))
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		wrong.Store(nil)
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Skip(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
		_, _ = conn.Write(bytes.ReplaceAll(head, []byte("OTHER"), []byte(other.Addr().String()))) // the relay may have refused it already
		_ = conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
		if n := strayed.Load(); n > 0 {
			t.Errorf("another origin was asked %d times", n)
		}
		if w := wrong.Load(); w != nil {
			t.Errorf("the provider was asked %q", *w)
		}
	})
}
