package relay

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/internal/relay/scan"
)

// nobody is a witness that looks at nothing.
type nobody struct{}

func (nobody) Begin(context.Context, *Call) (Exchange, error) { return nobody{}, nil }
func (nobody) End(context.Context, *Outcome) error            { return nil }
func (nobody) Missed(*Call, error)                            {}

// ways are the ways to a provider that benchmarks compare: directly, through the standard library's reverse proxy, and through the relay.
func ways(b *testing.B, provider http.Handler) (names []string, address map[string]string, client *http.Client) {
	b.Helper()
	server := httptest.NewServer(provider)
	base, err := url.Parse(server.URL)
	if err != nil {
		b.Fatal(err)
	}
	transport := newTransport().(*http.Transport)
	bare := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(base) }, Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
	})
	address = map[string]string{"direct": server.URL, "reverse-proxy": bare.URL}
	closing := []*httptest.Server{bare, server}
	for _, mode := range []Mode{Open, Closed} {
		h, err := New(nobody{}, Options{
			Upstreams: map[string]Upstream{"api": {Base: base}}, Mode: mode, Folder: filepath.Join(b.TempDir(), "spool"), FingerprintKey: make([]byte, 32),
			Next: transport, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			b.Fatal(err)
		}
		relay := httptest.NewServer(h)
		address["relay-"+mode.String()] = relay.URL + "/api"
		closing = append([]*httptest.Server{relay}, closing...)
	}
	asks := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}
	b.Cleanup(func() {
		asks.CloseIdleConnections()
		transport.CloseIdleConnections()
		for _, s := range closing {
			s.Close()
		}
	})
	return []string{"direct", "reverse-proxy", "relay-open", "relay-closed"}, address, &http.Client{Transport: asks}
}

// chat is a provider that answers with a number of events, flushed one by one, and then the terminal event.
func chat(events int) http.Handler {
	event := "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"},\"finish_reason\":null}]}\n\n"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for range events {
			_, _ = io.WriteString(w, event)
			w.(http.Flusher).Flush()
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	})
}

// BenchmarkStream measures a call with a request of 4 KiB and an answer of 50 events, in turn over each way: until the first byte, and until
// the last.
func BenchmarkStream(b *testing.B) {
	names, address, client := ways(b, chat(50))
	request := strings.Repeat("x", 4<<10)
	first, last := map[string][]time.Duration{}, map[string][]time.Duration{}
	broken := 0
	for b.Loop() {
		for _, name := range names {
			began := time.Now()
			answer, err := client.Post(address[name]+"/v1/chat/completions", "application/json", strings.NewReader(request))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(answer.Body, make([]byte, 1)); err != nil {
				b.Fatal(err)
			}
			first[name] = append(first[name], time.Since(began))
			_, err = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			if err != nil && name == "reverse-proxy" {
				broken++ // Go's own proxy breaks a few calls off, without any relay near it
				first[name] = first[name][:len(first[name])-1]
				continue
			}
			if err != nil {
				b.Fatal(name, err)
			}
			last[name] = append(last[name], time.Since(began))
		}
	}
	for _, name := range names {
		b.ReportMetric(float64(median(first[name]).Microseconds()), name+"-first-µs")
		b.ReportMetric(float64(median(last[name]).Microseconds()), name+"-last-µs")
	}
	b.ReportMetric(float64(broken), "reverse-proxy-broken-off")
	for _, name := range names[2:] {
		b.ReportMetric(ratio(first, name), name+"-first-ratio")
		b.ReportMetric(ratio(last, name), name+"-last-ratio")
	}
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// ratio compares with the reverse proxy.
func ratio(times map[string][]time.Duration, name string) float64 {
	return float64(median(times[name])) / float64(median(times["reverse-proxy"]))
}

// BenchmarkThroughput measures 64 callers with requests and answers of 2 KiB.
func BenchmarkThroughput(b *testing.B) {
	body := []byte(fmt.Sprintf(`{"content":%q}`, strings.Repeat("x", 2<<10)))
	names, address, client := ways(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}))
	for _, name := range names {
		b.Run(name, func(b *testing.B) {
			b.SetParallelism(32) // 64 callers on two processors
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					answer, err := client.Post(address[name]+"/v1/x", "application/json", bytes.NewReader(body))
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}

// BenchmarkFinder measures how fast bodies are looked through.
func BenchmarkFinder(b *testing.B) {
	event := []byte("data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + strings.Repeat("some words ", 20) + "\"}}]}\n\n")
	for name, f := range map[string]func() finder{
		"events":   func() finder { return scan.NewEvents(Models.rulesOf(nil), nil) },
		"document": func() finder { return scan.NewDocument(Models.rulesOf(nil)) },
	} {
		b.Run(name, func(b *testing.B) {
			body := bytes.Repeat(event, 100)
			if name == "document" {
				body = append(append([]byte("["), bytes.Repeat(append(event[6:len(event)-2:len(event)-2], ','), 100)...), ']')
			}
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				f().Write(body)
			}
		})
	}
}
