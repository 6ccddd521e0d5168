package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/internal/must"
)

// inProcess is a client whose calls a recorder sees.
func inProcess(t *testing.T, provider http.Handler, change func(*Options)) (*recorder, *http.Client, string) {
	t.Helper()
	server := httptest.NewServer(provider)
	o := Options{Folder: filepath.Join(t.TempDir(), "spool"), FingerprintKey: make([]byte, 32), Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	r := newRecorder()
	next := &http.Transport{}
	transport := must.Get(NewTransport(next, r, o))(t)
	t.Cleanup(func() {
		if err := transport.Wait(context.Background()); err != nil {
			t.Error(err)
		}
		if n := transport.spool.held.Load(); n != 0 {
			t.Errorf("the spool holds %d bytes at the end", n)
		}
		next.CloseIdleConnections()
		server.Close()
	})
	return r, &http.Client{Transport: transport}, server.URL
}

func TestTransport(t *testing.T) {
	for _, mode := range []Mode{Closed, Open} {
		r, client, address := inProcess(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: %s%s\n\ndata: [DONE]\n\n", body, r.Header.Get("Jurat-Agent"))
		}), func(o *Options) { o.Mode = mode })
		ask := func() (string, error) {
			req, _ := http.NewRequest(http.MethodPost, address+"/v1/x?key=secret", strings.NewReader("hello"))
			req.Header.Set("Jurat-Agent", "Bearer tok")
			answer, err := client.Do(req)
			if err != nil {
				return "", err
			}
			defer answer.Body.Close()
			if req.Header.Get("Jurat-Agent") == "" {
				t.Error("the caller's request was changed")
			}
			body, err := io.ReadAll(answer.Body)
			return string(body), err
		}
		const whole = "data: hello\n\ndata: [DONE]\n\n"
		if body, err := ask(); err != nil || body != whole {
			t.Errorf("%q %v", body, err)
		}
		s := r.last(t, 1)
		if s.call.Vantage != evidence.InProcess || s.call.Token != "tok" || s.call.Origin != address || s.call.Path != "/v1/x" || string(s.request) != "hello" || string(s.response) != whole || s.outcome.Terminal != "[DONE]" || len(s.call.Credentials) != 1 {
			t.Errorf("%+v %+v", s.call, s.outcome)
		}
		r.onEnd(func(*Call, *Outcome) error { return errors.New("the disk is full") })
		body, err := ask()
		if mode == Closed && (!errors.Is(err, ErrNotRecorded) || errors.Is(err, io.EOF) || body != "data: hello\n\n") || mode == Open && (err != nil || body != whole) {
			t.Errorf("%v: %q %v", mode, body, err)
		}
		r.onBegin(func(*Call) error { return errors.New("the disk is full") })
		_, err = ask()
		if refusal, is := errors.AsType[*Refusal](err); mode == Closed && (!is || refusal.Status != 503) || mode == Open && err != nil {
			t.Errorf("%v: %v", mode, err)
		}
	}
}

// TestTransportEnds: a body that is closed early, a call without an answer and an answer without a body have an end each.
func TestTransportEnds(t *testing.T) {
	r, client, address := inProcess(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: x\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}), nil)
	answer, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	must.Get(io.ReadFull(answer.Body, make([]byte, 9)))(t)
	answer.Body.Close()
	if o := r.last(t, 1).outcome; o.Ended != ClientGone || o.Delivered != 9 {
		t.Errorf("%+v", o)
	}
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if answer, err = client.Do(req); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, answer.Body); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	answer.Body.Close()
	if o := r.last(t, 2).outcome; o.Ended != ClientGone {
		t.Errorf("%+v", o)
	}
	if answer, err = client.Head(address); err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if o := r.last(t, 3).outcome; o.Ended != Complete {
		t.Errorf("%+v", o)
	}
	if _, err := client.Get("http://127.0.0.1:1/"); err == nil {
		t.Error("somebody is on port 1")
	}
	if o := r.last(t, 4).outcome; o.Ended != UpstreamError {
		t.Errorf("%+v", o)
	}
}

// TestTransportHeadIsRecordedFirst: an answer without a body is handed out after it was recorded.
func TestTransportHeadIsRecordedFirst(t *testing.T) {
	r, client, address := inProcess(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }), nil)
	r.onEnd(func(*Call, *Outcome) error { return errors.New("no") })
	if answer, err := client.Post(address, "text/plain", bytes.NewReader(nil)); !errors.Is(err, ErrNotRecorded) {
		t.Errorf("%v %v", answer, err)
	}
}
