package recorder_test

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"jurat/evidence"
	"jurat/internal/test/must"
	"jurat/recorder"
	"jurat/verify"
)

// wire is an upstream that answers with bytes as they stand, and keeps what it was asked.
type wire struct {
	address string
	asked   chan string
	answer  func(request string) string
}

func newWire(t *testing.T) *wire {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { listener.Close() })
	w := &wire{address: listener.Addr().String(), asked: make(chan string, 100)}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go w.serve(conn)
		}
	}()
	return w
}

func (w *wire) serve(conn net.Conn) {
	defer conn.Close()
	req, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	var b bytes.Buffer
	_ = req.Header.Write(&b)
	body, _ := io.ReadAll(req.Body)
	asked := b.String() + "\r\n" + string(body)
	w.asked <- asked
	_, _ = io.WriteString(conn, w.answer(asked))
}

// says writes an answer with headers and a body as they stand.
func says(body string, headers ...string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s", len(body), strings.Join(append(headers, ""), "\r\n"), body)
}

// sent writes a request as it stands, and returns the status and the body of the answer.
func sent(t *testing.T, address, request string) (int, string) {
	t.Helper()
	conn := must.Get(net.Dial("tcp", address))(t)
	defer conn.Close()
	must.Get(io.WriteString(conn, request))(t)
	answer := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	body, _ := io.ReadAll(answer.Body) // which may be cut off
	return answer.StatusCode, string(body)
}

// encoded writes a text in an encoding.
func encoded(t *testing.T, encoding, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "bare":
		w, _ = flate.NewWriter(&b, 9)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		w, _ = zstd.NewWriter(&b)
	}
	must.Get(io.WriteString(w, text))(t)
	must.Do(t, w.Close())
	return b.String()
}

const (
	askedText = `{"model":"m","messages":[{"role":"user","content":"shown text"}]}`
	otherText = `{"model":"m","messages":[{"role":"user","content":"hidden text"}]}`
)

// TestTwoReaders: where the side that gets a message need not read in it what the recorder reads, the record is not proved to say what was said, or the call is refused.
func TestTwoReaders(t *testing.T) {
	t.Parallel()
	const skippable = "\x50\x2a\x4d\x18\x04\x00\x00\x00more"
	ask := func(body string, headers ...string) string {
		return fmt.Sprintf("POST /up/v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s", len(body), strings.Join(append(headers, ""), "\r\n"), body)
	}
	const accept = "Accept-Encoding: gzip, deflate, br, zstd"
	const refused, unproved, proved = "refused", "unproved", "proved"
	tests := map[string]struct {
		request, answer string // "": as ever
		want            string
	}{
		"plain": {want: proved},
	}
	for _, header := range []string{"Content-Encoding", "content-type", "Authorization", "X-API-Key", "Content-Length", "Host", "Jurat-Agent", "jurat-chain", "Accept-Encoding", "Cookie", "x-goog-api-key", "Api-Key", "Mcp-Session-Id", "Anthropic-Version"} {
		value := map[string]string{"Content-Encoding": "deflate", "Host": "127.0.0.1", "Content-Length": fmt.Sprint(len(askedText)), "content-type": "application/json"}[header]
		extra := []string{"Connection: close, " + header}
		if !slices.Contains([]string{"Host", "Content-Length", "content-type"}, header) {
			extra = append(extra, header+": "+value)
		}
		tests["request names "+header] = struct{ request, answer, want string }{request: ask(askedText, extra...), want: refused}
	}
	for _, header := range []string{"Content-Encoding", "content-type", "Content-Length", "X-Request-Id", "Set-Cookie"} {
		tests["answer names "+header] = struct{ request, answer, want string }{
			answer: says(answered, "Content-Type: application/json", "Connection: x-own", "Connection: "+header, "Content-Encoding: deflate"), want: "no answer"}
	}
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		good, kind := encoded(t, coding, answered), "Content-Type: application/json"
		header := "Content-Encoding: " + coding
		for name, one := range map[string]struct {
			body, want string
			headers    []string
		}{
			"good":               {good, proved, []string{header}},
			"in capitals":        {good, proved, []string{"content-ENCODING:  " + strings.ToUpper(coding) + " "}},
			"one byte behind":    {good + "x", unproved, []string{header}},
			"a text behind":      {good + strings.Repeat(" hidden text", 20), unproved, []string{header}},
			"plain JSON behind":  {good + strings.Replace(answered, "Yes.", "No.", 1), unproved, []string{header}},
			"without its end":    {good[:len(good)-5], unproved, []string{header}},
			"two headers":        {good, unproved, []string{header, header}},
			"and identity":       {good, unproved, []string{header + ", identity"}},
			"contradicted":       {good, unproved, []string{header, "Content-Encoding: identity"}},
			"not what it says":   {answered, unproved, []string{header}},
			"two content types":  {good, unproved, []string{header, "Content-Type: text/event-stream"}},
			"behind in a second": {encoded(t, "gzip", good+"x"), unproved, []string{header + ", gzip"}},
			"behind a second":    {encoded(t, "br", good) + "x", unproved, []string{header + ", br"}},
		} {
			request := ask(askedText, accept)
			tests["answer in "+coding+", "+name] = struct{ request, answer, want string }{request, says(one.body, append(one.headers, kind)...), one.want}
		}
		tests["answer in "+coding+", not offered"] = struct{ request, answer, want string }{ask(askedText), says(good, header, kind), unproved}
		tests["request in "+coding] = struct{ request, answer, want string }{request: ask(encoded(t, coding, askedText), header), want: unproved}
		tests["request in "+coding+", with another behind"] = struct{ request, answer, want string }{request: ask(encoded(t, coding, askedText)+otherText, header), want: unproved}
	}
	tests["answer in two encodings"] = struct{ request, answer, want string }{ask(askedText, accept), says(encoded(t, "br", encoded(t, "gzip", answered)), "Content-Encoding: gzip, br", "Content-Type: application/json"), proved}
	for name, body := range map[string]string{
		"two members":             encoded(t, "gzip", answered[:20]) + encoded(t, "gzip", answered[20:]),
		"a member and one behind": encoded(t, "gzip", answered) + encoded(t, "gzip", "\n"),
		"a member and an empty":   encoded(t, "gzip", answered) + encoded(t, "gzip", ""),
	} {
		tests["answer in gzip of "+name] = struct{ request, answer, want string }{ask(askedText, accept), says(body, "Content-Encoding: gzip", "Content-Type: application/json"), unproved}
		tests["answer in gzip of "+name+", and then in br"] = struct{ request, answer, want string }{ask(askedText, accept), says(encoded(t, "br", body), "Content-Encoding: gzip, br", "Content-Type: application/json"), unproved}
	}
	tests["stream in gzip of two members"] = struct{ request, answer, want string }{ask(askedText, accept),
		says(encoded(t, "gzip", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Yes\"}}]}\n\n")+encoded(t, "gzip", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\", not\"}}]}\n\n"), "Content-Encoding: gzip", "Content-Type: text/event-stream"), unproved}
	tests["answer in zstd of two frames"] = struct{ request, answer, want string }{ask(askedText, accept),
		says(encoded(t, "zstd", answered[:20])+skippable+encoded(t, "zstd", answered[20:])+skippable, "Content-Encoding: zstd", "Content-Type: application/json"), proved}
	tests["answer in bare deflate"] = struct{ request, answer, want string }{ask(askedText, accept), says(encoded(t, "bare", answered), "Content-Encoding: deflate", "Content-Type: application/json"), unproved}
	tests["request in bare deflate, with another behind"] = struct{ request, answer, want string }{request: ask(encoded(t, "bare", askedText)+otherText, "Content-Encoding: deflate"), want: unproved}
	tests["request in an unknown encoding"] = struct{ request, answer, want string }{request: ask(askedText, "Content-Encoding: aes128gcm"), want: unproved}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWire(t)
			w.answer = func(string) string {
				if test.answer != "" {
					return test.answer
				}
				return says(answered, "Content-Type: application/json")
			}
			if test.request == "" {
				test.request = ask(askedText)
			}
			folder := filepath.Join(t.TempDir(), "data")
			r := open(t, recorder.Options{Folder: folder, Agent: "mia", Chain: "one", Upstreams: map[string]recorder.Upstream{"up": {Base: "http://" + w.address}}})
			server := httptest.NewServer(r.Handler())
			defer server.Close()
			status, body := sent(t, strings.TrimPrefix(server.URL, "http://"), test.request)
			must.Do(t, r.Close(t.Context()))
			calls, _ := records(t, folder)
			switch test.want {
			case refused:
				must.Hold(t, status == http.StatusBadRequest && len(calls) == 0 && len(w.asked) == 0 && strings.Contains(body, "Connection"),
					"status %d, %d records, asked %d times: %s", status, len(calls), len(w.asked), body)
				return
			case "no answer":
				if status != http.StatusBadGateway || len(calls) != 1 || calls[0].Payload.Observed.Ended != evidence.UpstreamError || calls[0].Payload.ResponseBody != nil {
					t.Errorf("status %d, %d records: %s", status, len(calls), body)
				}
				return
			}
			i, trusted := opened(t, folder)
			file := chain(t, i, calls[0].Payload.ChainID)
			report := verify.Bundle(file, verify.Options{Trust: trusted, Require: []verify.Guarantee{verify.Vantage}})
			want := map[string]verify.Status{unproved: verify.NotProved, proved: verify.Proved}[test.want]
			got := report.Of(verify.Vantage)
			must.Hold(t, len(calls) == 1 && got.Status == want && report.Outcome == want, "%d records, status %d: %+v", len(calls), status, got)
			last := file.Records[len(file.Records)-1]
			said, _ := last.Said("/response_body", last.Payload.ResponseBody)
			must.Hold(t, test.want != proved || strings.Contains(string(said), `Yes.`), "it says %s", said)
		})
	}
}

// TestHeadersOfOneHop: headers for one connection are gone before the call is described, whoever makes it: no record has a credential that was not sent.
func TestHeadersOfOneHop(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.answer = func(string) string {
		return says(answered, "Content-Type: application/json", "Connection: X-Own", "X-Own: 7")
	}
	folder := filepath.Join(t.TempDir(), "data")
	r := open(t, recorder.Options{Folder: folder, Agent: "mia", Upstreams: map[string]recorder.Upstream{"up": {Base: "http://" + w.address}}})
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	head := "Host: 127.0.0.1\r\nProxy-Authorization: Basic c2VjcmV0\r\nConnection: X-Secret-Own , keep-alive\r\nX-Secret-Own: 1\r\nContent-Type: application/json\r\n"
	if status, body := sent(t, strings.TrimPrefix(server.URL, "http://"), fmt.Sprintf("POST /up/v1/chat/completions HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s", head, len(askedText), askedText)); status != 200 || body != answered {
		t.Fatalf("%d %s", status, body)
	}
	client := &http.Client{Transport: r.Transport(nil)}
	req := question(t, "http://"+w.address+"/v1/chat/completions", "one")
	req.Header = http.Header{"connection": {"x-secret-own"}, "x-secret-own": {"1"}, "proxy-authorization": {"Basic c2VjcmV0"}, "content-type": {"application/json"}}
	must.Get(ask(t, client, req))(t)
	for _, named := range []string{"x-api-key", "content-encoding", "AUTHORIZATION", "jurat-chain"} {
		req := question(t, "http://"+w.address+"/v1/chat/completions", "one")
		req.Header["connection"], req.Header[named] = []string{named}, []string{"deflate"}
		must.Refuse(t, "Connection", named)(ask(t, client, req))
	}
	must.Do(t, r.Close(t.Context()))
	calls, _ := records(t, folder)
	must.Need(t, len(calls) == 2 && len(w.asked) == 2, "%d calls recorded, %d made", len(calls), len(w.asked))
	for n := range calls {
		o, asked := calls[n].Payload.Observed, <-w.asked
		if o.Credential != "" || strings.Contains(string(o.Request.Headers), "wn") || strings.Contains(strings.ToLower(asked), "secret") || strings.Contains(asked, "Proxy-Auth") {
			t.Errorf("call %d: credential %q, headers %s; the provider got %s", n, o.Credential, o.Request.Headers, asked)
		}
	}
}

// TestEncodingInAnySpelling: a header in an odd spelling is read as any other, also in a program that sets it itself.
func TestEncodingInAnySpelling(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.answer = func(string) string { return says(answered, "Content-Type: application/json") }
	folder := filepath.Join(t.TempDir(), "data")
	r := open(t, recorder.Options{Folder: folder, Agent: "mia"})
	req := question(t, "http://"+w.address+"/v1/chat/completions", "one")
	body := encoded(t, "gzip", askedText)
	req.Body, req.ContentLength, req.GetBody = io.NopCloser(strings.NewReader(body)), int64(len(body)), nil
	req.Header["content-encoding"], req.Header["x-api-key"] = []string{"gzip"}, []string{"k"}
	must.Get(ask(t, &http.Client{Transport: r.Transport(nil)}, req))(t)
	must.Do(t, r.Close(t.Context()))
	calls, _ := records(t, folder)
	o := calls[0].Payload.Observed
	if o.Request.Encoding != "gzip" || !strings.HasPrefix(o.Credential, "authorization:") || !strings.Contains(strings.Join(o.Missing, " "), "x-api-key:") || o.Request.DecodedSHA256 != evidence.DigestOf([]byte(askedText)) {
		t.Errorf("%+v %+v", o, o.Request)
	}
}

// TestWordsOfLibraries: what a server writes where HTTP has no place for it stands in no record, as it could not be erased there.
func TestWordsOfLibraries(t *testing.T) {
	t.Parallel()
	const canary = "canary-bearer-token"
	for name, answer := range map[string]string{
		"a line that is no header":   "HTTP/1.1 200 OK\r\nAuthorization Bearer " + canary + "\r\n\r\n",
		"a header that is continued": "HTTP/1.1 200 OK\r\n " + canary + "\r\n\r\n",
		"a status that is none":      "HTTP/1.1 " + canary + "\r\n\r\n",
		"a protocol that is none":    canary + "/1.1 200 OK\r\n\r\n",
		"a length that is none":      "HTTP/1.1 200 OK\r\nContent-Length: " + canary + "\r\n\r\n",
		"a transfer that is none":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + canary + "\r\n\r\n",
		"a chunk that is none":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + canary + "\r\n",
		"an option of one hop":       "HTTP/1.1 200 OK\r\nConnection: Content-" + canary + "\r\nContent-Length: 0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWire(t)
			w.answer = func(string) string { return answer }
			folder := filepath.Join(t.TempDir(), "data")
			r := open(t, recorder.Options{Folder: folder, Agent: "mia"})
			_, err := ask(t, &http.Client{Transport: r.Transport(nil)}, question(t, "http://"+w.address+"/v1/chat/completions", "one"))
			must.Hold(t, err != nil, "the call succeeded")
			must.Do(t, r.Close(t.Context()))
			calls, _ := records(t, folder)
			must.Need(t, len(calls) == 1, "%d records", len(calls))
			o := calls[0].Payload.Observed
			text := strings.ToLower(strings.Join(o.Missing, "\n"))
			must.Hold(t, !strings.Contains(text, canary) && strings.Contains(text, "why the call ended: "), "it says %q", o.Missing)
		})
	}
}

// TestHeadersThatSayNothing: of headers a record has those that are in a closed form, since nobody can erase what stands there.
func TestHeadersThatSayNothing(t *testing.T) {
	t.Parallel()
	const canary = "a canary text"
	w := newWire(t)
	w.answer = func(string) string {
		headers := []string{"Content-Type: application/json; charset=utf-8; note=\"" + canary + "\"", "Date: Thu, 26 Nov 2026 10:00:00 GMT", "Openai-Processing-Ms: 17"}
		for _, name := range []string{"X-Request-Id", "Request-Id", "Cf-Ray", "Openai-Version", "Retry-After", "X-Ms-Request-Id", "X-Should-Retry", "Openai-Organization"} {
			headers = append(headers, name+": "+canary)
		}
		return says(answered, headers...)
	}
	folder := filepath.Join(t.TempDir(), "data")
	r := open(t, recorder.Options{Folder: folder, Agent: "mia", Upstreams: map[string]recorder.Upstream{"up": {Base: "http://" + w.address}}})
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	req := question(t, server.URL+"/up/v1/chat/completions", "one")
	req.Header.Set("Accept-Encoding", "gzip, deflate;q=0.5, *;q=0")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	for _, name := range []string{"User-Agent", "Accept", "Idempotency-Key", "X-Client-Request-Id", "X-Request-Id", "Openai-Beta", "Openai-Project", "Traceparent", "X-Stainless-Timeout", "A2a-Extensions", "Mcp-Method"} {
		req.Header.Set(name, canary)
	}
	must.Get(ask(t, http.DefaultClient, req))(t)
	must.Do(t, r.Close(t.Context()))
	calls, _ := records(t, folder)
	document := must.Get(calls[0].Marshal())(t)
	must.Hold(t, !strings.Contains(string(document), canary), "the record has the canary: %s", document)
	o := calls[0].Payload.Observed
	must.Equal(t, string(o.Request.Headers), `{"accept-encoding":"gzip, deflate;q=0.5, *;q=0","anthropic-version":"2023-06-01"}`)
	if got := string(o.Response.Headers); got != `{"date":"Thu, 26 Nov 2026 10:00:00 GMT","openai-processing-ms":"17"}` || o.Response.Type != "application/json" {
		t.Errorf("response: %s, %s", got, o.Response.Type)
	}
}
