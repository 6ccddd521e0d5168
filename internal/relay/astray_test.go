package relay

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"jurat/internal/must"
)

// leading starts a relay before a provider that answers with a status and the headers that the test's own headers name. ORIGIN stands for the provider's own address.
func leading(t *testing.T, change func(*Options)) *proxied {
	t.Helper()
	return start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, values := range r.Header {
			if after, is := strings.CutPrefix(name, "X-Say-"); is {
				for _, v := range values {
					w.Header().Add(after, strings.ReplaceAll(v, "ORIGIN", "http://"+r.Host))
				}
			}
		}
		var status int
		fmt.Sscan(r.Header.Get("X-Status"), &status)
		w.WriteHeader(status)
		io.WriteString(w, "moved")
	}), change)
}

// TestLeadsPast: an answer that leads a client past the relay is not handed out in closed mode, which says what to do; in open mode it passes, and is counted. One that leads back through the relay
// to the same provider passes.
func TestLeadsPast(t *testing.T) {
	for _, c := range []struct {
		status       int
		header, text string
		astray       bool
	}{
		{301, "Location", "ORIGIN/v1/chat/", true},
		{302, "Location", "ORIGIN/v1/chat/", true},
		{303, "Location", "https://elsewhere.example/", true},
		{307, "Location", "ORIGIN/v1/chat/", true},
		{308, "Location", "//elsewhere.example/v1/chat/", true},
		{308, "Location", "HTTP://elsewhere.example", true},
		{300, "Location", "ORIGIN/v1/chat/", true},
		{307, "Location", `http:\\elsewhere.example/`, true},
		{307, "Location", "/\telsewhere.example/", true},
		{307, "Location", "http://FRONT@elsewhere.example/api/v1", true},
		{307, "Location", "http://FRONT.elsewhere.example/api/v1", true},
		{307, "Location", "https://FRONT/api/v1", true},
		{201, "Location", "ORIGIN/files/1", true},
		{200, "X-Goog-Upload-URL", "ORIGIN/upload?id=secret", true},
		{200, "X-Goog-Upload-Control-URL", "ORIGIN/upload?id=secret", true},
		{202, "Operation-Location", "ORIGIN/operations/1", true},
		{202, "Azure-AsyncOperation", "ORIGIN/operations/1", true},
		{200, "Refresh", "0; URL='ORIGIN/'", true},
		{200, "Refresh", "0, url=ORIGIN/", true},
		{200, "Refresh", "0 url = ORIGIN/", true},
		{200, "Refresh", "0;ORIGIN/", true},
		{200, "Refresh", ".5 \"ORIGIN/\"", true},

		{307, "Location", "http://FRONT/api/v1/chat/", false},
		{308, "Location", "/api/v1/chat/", false},
		{302, "Location", "/r/token/api/v1/chat/", false},
		{303, "Location", "other#part", false},
		{307, "Location", "?again=1", false},
		{201, "Location", "../files/1", false},
		{200, "Refresh", "5", false},
		{200, "Refresh", "5;", false},
		{200, "Refresh", "5, /api/v1/chat", false},
		{200, "Content-Location", "ORIGIN/v1/chat/1", false},
		{200, "Link", `<ORIGIN/v1/chat?page=2>; rel="next"`, false},
	} {
		for _, mode := range []Mode{Closed, Open} {
			t.Run(fmt.Sprintf("%d %s %s %v", c.status, c.header, c.text, mode), func(t *testing.T) {
				p := leading(t, func(o *Options) { o.Mode = mode })
				req := must.Get(http.NewRequest("POST", p.url()+"/v1/chat", strings.NewReader("{}")))(t)
				req.Header.Set("X-Status", fmt.Sprint(c.status))
				req.Header.Set("X-Say-"+c.header, strings.ReplaceAll(c.text, "FRONT", strings.TrimPrefix(p.relay.URL, "http://")))
				answer := must.Get(p.client.Transport.RoundTrip(req))(t)
				text, err := io.ReadAll(answer.Body)
				answer.Body.Close()
				if err != nil {
					t.Fatal(err)
				}
				refused := answer.StatusCode == http.StatusBadGateway && strings.Contains(string(text), "recorder: ") && strings.Contains(string(text), "--upstream") && answer.Header.Get(c.header) == ""
				if refused != (c.astray && mode == Closed) || !refused && (answer.StatusCode != c.status || string(text) != "moved") {
					t.Errorf("%d %v %s", answer.StatusCode, answer.Header, text)
				}
				s := p.last(t, 1)
				if want := map[bool]Ended{true: RecorderCut, false: Complete}[refused]; s.outcome.Ended != want || s.outcome.Status != c.status || s.outcome.Delivered != 0 && refused {
					t.Errorf("recorded as %+v", s.outcome)
				}
				if strings.Contains(fmt.Sprint(s.outcome.Reason), "secret") || strings.Contains(string(text), "secret") {
					t.Errorf("a secret is told: %v %s", s.outcome.Reason, text)
				}
				if counted := len(p.missed) == 1; counted != (c.astray && mode == Open) {
					t.Errorf("missed: %v", p.missed)
				}
			})
		}
	}
}

// TestLeadsElsewhere: an address of the relay itself that does not lead to the same server is refused in closed mode. No call is missed in open mode, as the relay refuses it there.
func TestLeadsElsewhere(t *testing.T) {
	only := func(o *Options) {
		u := o.Upstreams["api"]
		u.Only = []string{"/v1/chat", "/v1/other"}
		o.Upstreams["api"] = u
	}
	for _, c := range []struct {
		location string
		change   func(*Options)
		astray   bool
	}{
		{"/v1/chat/", nil, true},
		{"/anthropic/v1/chat/", nil, true},
		{"/api/v1/chat/", only, true},
		{"/api/v1/other", only, false},
		{"/", nil, true},
	} {
		for _, mode := range []Mode{Closed, Open} {
			p := leading(t, func(o *Options) {
				o.Mode, o.Upstreams["anthropic"] = mode, o.Upstreams["api"]
				if c.change != nil {
					c.change(o)
				}
			})
			req := must.Get(http.NewRequest("POST", p.url()+"/v1/chat", strings.NewReader("{}")))(t)
			req.Header.Set("X-Status", "307")
			req.Header.Set("X-Say-Location", c.location)
			answer := must.Get(p.client.Transport.RoundTrip(req))(t)
			answer.Body.Close()
			if refused := answer.StatusCode == http.StatusBadGateway; refused != (c.astray && mode == Closed) {
				t.Errorf("%s, %v: %d", c.location, mode, answer.StatusCode)
			}
			if len(p.missed) > 0 {
				t.Errorf("%s, %v: missed: %v", c.location, mode, p.missed)
			}
		}
	}
}

// TestAnotherService: where else the provider can be asked is said of its own address, and not of the relay's.
func TestAnotherService(t *testing.T) {
	for _, mode := range []Mode{Closed, Open} {
		p := leading(t, func(o *Options) { o.Mode = mode })
		req := must.Get(http.NewRequest("POST", p.url()+"/v1/chat", strings.NewReader("{}")))(t)
		req.Header.Set("X-Status", "200")
		req.Header.Set("X-Say-Alt-Svc", `h2="elsewhere.example:443", h3=":443"`)
		answer := must.Get(p.client.Transport.RoundTrip(req))(t)
		answer.Body.Close()
		if s := p.last(t, 1); answer.StatusCode != 200 || answer.Header.Get("Alt-Svc") != "" || s.outcome.Ended != Complete || len(p.missed) > 0 {
			t.Errorf("%v: %d %v %+v %v", mode, answer.StatusCode, answer.Header, s.outcome, p.missed)
		}
	}
}

// TestAstrayIsLogged: a log as JSON names the mode as one as text does.
func TestAstrayIsLogged(t *testing.T) {
	for _, mode := range []Mode{Closed, Open} {
		var log bytes.Buffer
		p := leading(t, func(o *Options) { o.Mode, o.Log = mode, slog.New(slog.NewJSONHandler(&log, nil)) })
		req := must.Get(http.NewRequest("POST", p.url()+"/v1/chat", strings.NewReader("{}")))(t)
		req.Header.Set("X-Status", "307")
		req.Header.Set("X-Say-Location", "ORIGIN/v1/chat/")
		answer := must.Get(p.client.Transport.RoundTrip(req))(t)
		answer.Body.Close()
		p.last(t, 1)
		if !strings.Contains(log.String(), fmt.Sprintf(`"mode":%q`, mode)) {
			t.Errorf("%v: %s", mode, &log)
		}
	}
}
