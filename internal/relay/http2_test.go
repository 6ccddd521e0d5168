package relay

import (
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/internal/must"
)

// TestProviderOverTLS: providers speak HTTP/2. The call passes as over HTTP/1, and the witness learns by which certificate the provider was known.
func TestProviderOverTLS(t *testing.T) {
	gone := make(chan bool, 1)
	provider := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "X-Sum")
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: "+r.Proto+" "+r.RequestURI+" "+string(body)+"\n\n")
		w.(http.Flusher).Flush()
		if r.URL.Query().Has("wait") {
			<-r.Context().Done()
			gone <- true
			return
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
		w.Header().Set("X-Sum", "7")
	}))
	provider.EnableHTTP2 = true
	provider.StartTLS()
	defer provider.Close()
	next := newTransport().(*http.Transport)
	next.TLSClientConfig = provider.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	next.TLSClientConfig.NextProtos = nil
	defer next.CloseIdleConnections()
	p := start(t, http.NotFoundHandler(), func(o *Options) {
		o.Next = next
		o.Upstreams["api"] = Upstream{Base: mustParse(t, provider.URL+"/base")}
	})

	answer := must.Get(p.client.Post(p.url()+"/v1/a%2Fb?x=%41", "text/plain", strings.NewReader("hello")))(t)
	body, err := io.ReadAll(answer.Body)
	if want := "data: HTTP/2.0 /base/v1/a%2Fb?x=%41 hello\n\ndata: [DONE]\n\n"; err != nil || string(body) != want || answer.Trailer.Get("X-Sum") != "7" {
		t.Errorf("%q %v, trailer %v", body, err, answer.Trailer)
	}
	o := p.last(t, 1).outcome
	leaf := provider.Certificate()
	if o.TLS == nil || o.TLS.SPKISHA256 != sha256.Sum256(leaf.RawSubjectPublicKeyInfo) || o.TLS.NotAfter != evidence.FormatTime(leaf.NotAfter) || o.Terminal != "[DONE]" {
		t.Errorf("%+v %+v", o, o.TLS)
	}

	if answer, err = p.client.Get(p.url() + "/v1?wait"); err != nil {
		t.Fatal(err)
	}
	must.Get(io.ReadFull(answer.Body, make([]byte, 10)))(t)
	answer.Body.Close()
	<-gone
	if o := p.last(t, 2).outcome; o.Ended != ClientGone {
		t.Errorf("%+v", o)
	}
}
