package sealer

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/tap/relay"
	"jurat/internal/test/must"
)

// TestClientLeavesAtEveryChunk: wherever a client leaves an answer, by HTTP/1.1 or HTTP/2, in either mode, the provider's connection is closed, and the call is one record that says so, with no more bytes
// delivered than received. No goroutine stays.
func TestClientLeavesAtEveryChunk(t *testing.T) {
	const events = 6 // the last one is terminal
	for _, mode := range []relay.Mode{relay.Closed, relay.Open} {
		for _, h2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, HTTP/2: %v", mode, h2), func(t *testing.T) {
				before := runtime.NumGoroutine()
				log := &shelf{}
				d := newDesk(t, t.TempDir(), log, func(c *Config) { c.Mode = mode })
				next, gone := make(chan bool), make(chan time.Time, 1)
				d.answer = func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					w.Header().Set("Content-Type", "text/event-stream")
					w.(http.Flusher).Flush()
					for n := range events {
						select {
						case <-next:
						case <-r.Context().Done():
							gone <- time.Now()
							return
						}
						fmt.Fprint(w, event(n, events))
						w.(http.Flusher).Flush()
					}
				}
				server := httptest.NewUnstartedServer(d.relay)
				server.EnableHTTP2 = h2
				if h2 {
					server.StartTLS()
				} else {
					server.Start()
				}
				slowest := time.Duration(0)
				for after := range events {
					left := leaves(t, server, after, events, next)
					select {
					case at := <-gone:
						slowest = max(slowest, at.Sub(left))
					case <-time.After(time.Minute):
						t.Fatalf("after %d events the provider's connection stays open", after)
					}
					waitFor(t, func() bool { return len(log.acts(evidence.ObservedCall)) == after+1 })
					o := log.acts(evidence.ObservedCall)[after].Observed
					if o.Ended != evidence.ClientGone || o.Response == nil || o.Response.Delivered == nil || *o.Response.Delivered > o.Response.Bytes || o.Response.Bytes != int64(len(firstEvents(after, events))) {
						t.Errorf("after %d events: %s, %+v", after, o.Ended, o.Response)
					}
				}
				t.Logf("the provider's connection was closed after at most %v", slowest)
				server.Close()
				d.end()
				d.provider.Close()
				http.DefaultClient.CloseIdleConnections()
				must.Equal(t, len(log.acts(evidence.ObservedCall)), events)
				waitFor(t, func() bool { runtime.Gosched(); return runtime.NumGoroutine() <= before })
			})
		}
	}
}

// TestClientLeavesWithoutReading: of an answer that the client did not take, the record says how much it took at most: less than came.
func TestClientLeavesWithoutReading(t *testing.T) {
	for _, mode := range []relay.Mode{relay.Closed, relay.Open} {
		log := &shelf{}
		d := newDesk(t, t.TempDir(), log, func(c *Config) { c.Mode = mode })
		gone := make(chan bool, 1)
		d.answer = func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				fmt.Fprint(w, event(0, 9))
			}
			gone <- true
		}
		ctx, cancel := context.WithCancel(t.Context())
		req := must.Get(http.NewRequestWithContext(ctx, "POST", d.server.URL+"/openai/v1/chat/completions", strings.NewReader(question(true, user("leaves")))))(t)
		answer := must.Get(http.DefaultClient.Do(req))(t)
		must.Get(io.ReadFull(answer.Body, make([]byte, 1<<20)))(t)
		time.Sleep(50 * time.Millisecond) // the buffers fill
		cancel()
		answer.Body.Close()
		<-gone
		waitFor(t, func() bool { return len(log.acts(evidence.ObservedCall)) == 1 })
		o := log.acts(evidence.ObservedCall)[0].Observed
		must.Hold(t, o.Ended == evidence.ClientGone && *o.Response.Delivered >= 1<<20 && *o.Response.Delivered < o.Response.Bytes,
			"%v: %s, %d of %d bytes delivered", mode, o.Ended, *o.Response.Delivered, o.Response.Bytes)
		d.end()
	}
}

// event is one of a stream, of which the last is terminal.
func event(n, of int) string {
	if n == of-1 {
		return "data: [DONE]\n\n"
	}
	return fmt.Sprintf("data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%d\"}}]}\n\n", n)
}

// firstEvents are the first events.
func firstEvents(n, of int) string {
	var all strings.Builder
	for n := range n {
		all.WriteString(event(n, of))
	}
	return all.String()
}

// leaves makes a call, reads so many events, and leaves. It returns when.
func leaves(t *testing.T, server *httptest.Server, after, of int, next chan<- bool) time.Time {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := server.Client()
	defer client.CloseIdleConnections()
	req := must.Get(http.NewRequestWithContext(ctx, "POST", server.URL+"/openai/v1/chat/completions", strings.NewReader(question(true, user(fmt.Sprintf("leaves after %d", after))))))(t)
	answer := must.Get(client.Do(req))(t)
	defer answer.Body.Close()
	must.Need(t, answer.ProtoMajor == 2 == server.EnableHTTP2, "%v", answer.Proto)
	for n := range after {
		next <- true
		must.Get(io.ReadFull(answer.Body, make([]byte, len(event(n, of)))))(t)
	}
	left := time.Now()
	cancel()
	return left
}
