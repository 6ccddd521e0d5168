package relay

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"jurat/internal/test/must"
)

// TestNoSecretIsShown: marked secrets in all places do not come to the witness, the log, or the spool, and all of them come to the provider
// but those that are jurat's own.
func TestNoSecretIsShown(t *testing.T) {
	const mark = "sk-MARKED"
	var provided http.Header
	var query, log string
	var logged bytes.Buffer
	var p *proxied
	p = start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		provided, query = r.Header.Clone(), r.URL.RawQuery
		w.Header().Set("Set-Cookie", mark)
		w.Header().Set("Mcp-Session-Id", mark)
		w.Header().Set("X-Request-Id", "req-7")
		for range 1000 {
			fmt.Fprint(w, strings.Repeat("0", 1000))
		}
		files, _ := filepath.Glob(filepath.Join(p.folder, "*"))
		for _, file := range files {
			text, _ := os.ReadFile(file)
			log += string(text)
		}
	}), func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&logged, nil)); o.MemoryPerBody = 1 })
	req, _ := http.NewRequest(http.MethodPost, p.relay.URL+"/r/tok/api/x?alt=sse&key="+mark+"1&KEY="+mark+"2&%6bey="+mark+"3&other="+mark+"&"+mark, strings.NewReader("{}"))
	secrets := []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key", "Cookie", "Mcp-Param-Token", "Proxy-Authorization", "X-Anything"}
	for _, name := range secrets {
		req.Header.Set(name, mark+name)
	}
	req.Header.Set("Authorization", "Bearer "+mark)
	req.Header.Set("X-Api-Key", mark)
	req.Header.Set("Jurat-Agent", "Bearer tok")
	req.Header.Set("Jurat-Chain", "chain-1")
	req.Header.Set("Jurat-Other", "x")
	req.Header.Set("X-Stainless-Retry-Count", "2")
	answer := must.Get(p.client.Do(req))(t)
	_, _ = io.Copy(io.Discard, answer.Body)
	seen := p.last(t, 1)
	shown := must.Get(json.Marshal([]any{seen.call, seen.outcome.Header}))(t)
	for where, text := range map[string]string{"the witness": string(shown), "the log": logged.String(), "the spool": log} {
		must.Hold(t, !strings.Contains(text, mark), "%s has a secret: %s", where, text)
	}
	for _, name := range secrets {
		if has := strings.Contains(provided.Get(name), mark); has == (name == "Proxy-Authorization") {
			t.Errorf("the provider got %s: %q", name, provided.Get(name))
		}
	}
	must.Hold(t, strings.Contains(query, "key="+mark+"1") && provided.Get("Jurat-Agent")+provided.Get("Jurat-Chain")+provided.Get("Jurat-Other") == "",
		"the provider got %q, %v", query, provided)
	c := seen.call
	if c.Token != "tok" || c.Chain != "chain-1" || c.Path != "/x" || c.Query.Encode() != "alt=sse" || c.Header.Get("X-Stainless-Retry-Count") != "2" || seen.outcome.Header.Get("X-Request-Id") != "req-7" {
		t.Errorf("%+v", c)
	}
	prints := map[string][]string{}
	for _, credential := range c.Credentials {
		prints[credential.Where] = append(prints[credential.Where], credential.Fingerprint)
	}
	if len(prints["?key="]) != 3 || prints["authorization"][0] != prints["x-api-key"][0] || prints["authorization"][0] == prints["api-key"][0] || prints["authorization"][0] != p.handler.fingerprint(mark) || len(prints["authorization"][0]) != 64 {
		t.Errorf("%v", prints)
	}
}

// TestKeyCustody: the relay's own key replaces everything that a caller sends, wherever it goes.
func TestKeyCustody(t *testing.T) {
	for _, place := range []string{"authorization", "x-api-key", "X-Goog-Api-Key", "?key="} {
		got := make(chan string, 1)
		p := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got <- fmt.Sprintln(r.Header["Authorization"], r.Header["X-Api-Key"], r.Header["X-Goog-Api-Key"], r.Header["Api-Key"], r.Header["Cookie"], r.URL.RawQuery)
		}), func(o *Options) {
			o.Upstreams["api"] = Upstream{Base: o.Upstreams["api"].Base, Key: "own&key", KeyIn: place}
		})
		req, _ := http.NewRequest(http.MethodGet, p.url()+"/x?key=caller&alt=sse&K%45Y=caller&b=c", nil)
		for _, name := range credentialHeaders {
			req.Header.Set(name, "caller")
		}
		answer := must.Get(p.client.Do(req))(t)
		answer.Body.Close()
		want := map[string]string{
			"authorization": "[Bearer own&key] [] [] [] [] alt=sse&b=c", "x-api-key": "[] [own&key] [] [] [] alt=sse&b=c",
			"X-Goog-Api-Key": "[] [] [own&key] [] [] alt=sse&b=c", "?key=": "[] [] [] [] [] alt=sse&b=c&key=own%26key",
		}[place]
		must.Equal(t, <-got, want+"\n", place)
		c := p.last(t, 1).call
		if !c.Custody || len(c.Credentials) != 1 || c.Credentials[0].Where != strings.ToLower(place) || c.Credentials[0].Fingerprint != p.handler.fingerprint("own&key") {
			t.Errorf("%+v", c)
		}
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	u := Upstream{Key: "own-key"}
	text := must.Get(json.Marshal(u))(t)
	var logged bytes.Buffer
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "key", u.Key, "upstream", u)
	all := fmt.Sprintf("%v %+v %#v %s %q %x %d %v", u, u, u, u.Key, u.Key, u.Key, u.Key, &u) + string(text) + logged.String()
	must.Hold(t, !strings.Contains(all, "own") && !strings.Contains(all, fmt.Sprintf("%x", "own")), "%v", all)
}

// TestUpstreamConfusion: no request reaches another origin than the upstream's, or a path outside of its base.
func TestUpstreamConfusion(t *testing.T) {
	var mu sync.Mutex
	var reached []string
	p := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		reached = append(reached, r.Host+" "+r.RequestURI)
	}), func(o *Options) {
		base := *o.Upstreams["api"].Base
		base.Path = "/base/"
		o.Upstreams["based"] = Upstream{Base: &base}
		o.Hosts = []string{"evil.example"} // or it would be refused
	})
	other := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer other.Close()
	go func() {
		for {
			conn, err := other.Accept()
			if err != nil {
				return
			}
			t.Error("another origin was asked")
			conn.Close()
		}
	}()
	evil := other.Addr().String()
	here, there := p.relay.Listener.Addr().String(), strings.TrimPrefix(p.provider.URL, "http://")
	for line, want := range map[string]string{
		"GET http://" + evil + "/api/x":            "400",
		"GET http://" + here + "/api/x":            "400",
		"GET https://user:pw@" + evil + "/api/x":   "400",
		"CONNECT " + evil:                          "405",
		"CONNECT /api/x":                           "405",
		"TRACE /api/x":                             "405",
		"OPTIONS *":                                "200",
		"GET //" + evil + "/api/x":                 "400",
		"GET /api//" + evil + "/x":                 "400",
		"GET /api/%2F%2f" + evil:                   "400",
		"GET /api/../x":                            "400",
		"GET /based/../../x":                       "400",
		"GET /based/%2e%2E/x":                      "400",
		"GET /based/.%2e%2fx":                      "400",
		"GET /based/..%5cx":                        "400",
		"GET /based/a\\..\\..\\x":                  "400",
		"GET /api/./x":                             "400",
		"GET /api/%0d%0aHost:%20" + evil:           "400",
		"GET /api/%zz":                             "400",
		"GET /@" + evil + "/x":                     "404",
		"GET /" + evil + "/x":                      "404",
		"GET /":                                    "404",
		"GET /r/token":                             "404",
		"GET /api:80@" + evil + "/":                "404",
		"GET /api/@" + evil + "/x?http://" + evil:  there + " /@" + evil + "/x?http://" + evil,
		"GET /api":                                 there + " /",
		"GET /based/x%2Fy?u=//" + evil:             there + " /base/x%2Fy?u=//" + evil,
		"GET /r/token/based":                       there + " /base/",
		"GET /r/to%2Fken/api/x":                    there + " /x",
		"GET /api/x HTTP/1.0\r\nX-Forwarded-Host:": there + " /x",
	} {
		for _, host := range []string{here, evil, "evil.example", there} {
			reached = nil
			conn := must.Get(net.Dial("tcp", here))(t)
			if !strings.Contains(line, "HTTP/") {
				line += " HTTP/1.1"
			}
			fmt.Fprintf(conn, "%s\r\nHost: %s\r\nConnection: close\r\n\r\n", line, host)
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			must.Need(t, err == nil, "%s: %v", line, err)
			_, _ = io.Copy(io.Discard, answer.Body)
			conn.Close()
			mu.Lock()
			got := fmt.Sprint(answer.StatusCode)
			if len(reached) > 0 {
				got = strings.Join(reached, ", ")
			}
			mu.Unlock()
			must.Hold(t, got == want, "%q with host %s: %s, should be %s", line, host, got, want)
		}
	}
}

// TestTokenInPathIsForThisMachine: over a network, a token in the path could be read.
func TestTokenInPathIsForThisMachine(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1:1": true, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true, "@": true, "192.0.2.1:1": false, "[2001:db8::1]:2": false, "x": false} {
		must.Equal(t, isPrivate(&http.Request{RemoteAddr: address}), want, address)
	}
	p := start(t, http.NotFoundHandler(), nil)
	req := httptest.NewRequest(http.MethodGet, "/r/tok/api/x", nil)
	req.RemoteAddr = "192.0.2.1:1"
	_, err := p.handler.routeOf(req)
	refusal, is := errors.AsType[*Refusal](err)
	must.Hold(t, is && refusal.Status == 403, "over a network: %v", err)
	req.TLS = &tls.ConnectionState{}
	r, err := p.handler.routeOf(req)
	must.Hold(t, err == nil && r.token == "tok", "over TLS: %+v %v", r, err)
}

// TestVersionInThePath: a caller may leave out the version that goes before some paths, unless the provider's address has it.
func TestVersionInThePath(t *testing.T) {
	for base, paths := range map[string]map[string]string{
		"https://api.example":     {"/api/messages": "/v1/messages", "/api/messages/count_tokens": "/v1/messages/count_tokens", "/api/v1/messages": "/v1/messages", "/api/": "/", "/api/messages2": "/messages2", "/api/other/messages": "/other/messages"},
		"https://api.example/v1":  {"/api/messages": "/v1/messages", "/api/v1/messages": "/v1/v1/messages"},
		"https://api.example/v1/": {"/api/messages": "/v1/messages"},
		"https://api.example/gw":  {"/api/messages": "/gw/v1/messages", "/api/v1/messages": "/gw/v1/messages"},
	} {
		p := start(t, http.NotFoundHandler(), func(o *Options) {
			o.Upstreams["api"] = Upstream{Base: mustParse(t, base), Version: "v1", Versioned: []string{"messages", "models"}}
		})
		for asked, want := range paths {
			r, err := p.handler.routeOf(httptest.NewRequest(http.MethodPost, asked+"?beta=true", nil))
			must.Hold(t, err == nil && r.path == want && r.query == "beta=true", "%s at %s: %s?%s, %v: want %s", asked, base, r.path, r.query, err, want)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	at := func(address string) *url.URL { return mustParse(t, address) }
	for name, u := range map[string]Upstream{
		"Api": {Base: at("https://x")}, "r": {Base: at("https://x")}, "a/b": {Base: at("https://x")}, "none": {}, "file": {Base: at("file:///x")},
		"user": {Base: at("https://u:p@x")}, "query": {Base: at("https://x?key=1")}, "opaque": {Base: at("https:x")}, "key": {Base: at("https://x"), Key: "k"},
	} {
		must.Refuse(t, name)(New(newRecorder(), Options{Upstreams: map[string]Upstream{name: u}, Folder: t.TempDir(), FingerprintKey: make([]byte, 32)}))
	}
	good := map[string]Upstream{"a": {Base: at("https://x/v1")}}
	for _, o := range []Options{{}, {Upstreams: good}, {Upstreams: good, FingerprintKey: make([]byte, 31)}, {Upstreams: good, FingerprintKey: make([]byte, 32)}} {
		must.Refuse(t, "", o)(New(newRecorder(), o))
	}
	must.Refuse(t, "", "no witness is taken")(New(nil, Options{Upstreams: good, FingerprintKey: make([]byte, 32), Folder: t.TempDir()}))
}

// TestPagesInBrowsers: a page that makes its own name mean this machine, and one that would use a key that the recorder keeps, are refused.
func TestPagesInBrowsers(t *testing.T) {
	p := start(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), func(o *Options) {
		o.Upstreams["kept"] = Upstream{Base: o.Upstreams["api"].Base, Key: "k", KeyIn: "authorization"}
		o.Hosts = []string{"recorder.example"}
	})
	for _, c := range []struct {
		path, host, site string
		want             int
	}{
		{"/kept/x", "", "", 200}, {"/kept/x", "localhost:1", "", 200}, {"/kept/x", "[::1]:1", "", 200}, {"/kept/x", "LOCALHOST", "", 200}, {"/kept/x", "evil.example", "", 421},
		{"/kept/x", "127.0.0.1.evil.example:80", "", 421}, {"/kept/x", "localhost.evil", "", 421}, {"/kept/x", "192.0.2.1", "", 421}, {"/kept/x", "recorder.example:443", "", 200},
		{"/kept/x", "", "cross-site", 403}, {"/kept/x", "", "same-origin", 200},
		{"/kept/x", "", "same-site", 403}, {"/kept/x", "", "none", 200},
		{"/api/x", "evil.example", "", 421}, {"/api/x", "", "cross-site", 403}, {"/api/x", "localhost:1", "", 200}, // what it says would be sealed as the agent's
		{"/api/x", "", "https://evil.example", 403}, {"/api/x", "", "null", 403}, {"/api/x", "localhost:1", "http://localhost:2", 403}, {"/api/x", "localhost:1", "http://localhost:1", 200},
		{"/kept/x", "", "https://evil.example", 403}, {"/kept/x", "localhost:1", "https://recorder.example", 200},
	} {
		req, _ := http.NewRequest(http.MethodPost, p.relay.URL+c.path, nil)
		req.Host = c.host
		if c.site == "null" || strings.Contains(c.site, ":") {
			req.Header.Set("Origin", c.site)
		} else if c.site != "" {
			req.Header.Set("Sec-Fetch-Site", c.site)
		}
		answer := must.Get(p.client.Do(req))(t)
		answer.Body.Close()
		must.Hold(t, answer.StatusCode == c.want, "%+v: %d", c, answer.StatusCode)
	}
}

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
				must.Do(t, err)
				refused := answer.StatusCode == http.StatusBadGateway && strings.Contains(string(text), "recorder: ") && strings.Contains(string(text), "--upstream") && answer.Header.Get(c.header) == ""
				must.Hold(t, refused == (c.astray && mode == Closed) && (refused || answer.StatusCode == c.status && string(text) == "moved"),
					"%d %v %s", answer.StatusCode, answer.Header, text)
				s := p.last(t, 1)
				want := map[bool]Ended{true: RecorderCut, false: Complete}[refused]
				must.Hold(t, s.outcome.Ended == want && s.outcome.Status == c.status && (s.outcome.Delivered == 0 || !refused), "recorded as %+v", s.outcome)
				must.Hold(t, !strings.Contains(fmt.Sprint(s.outcome.Reason), "secret") && !strings.Contains(string(text), "secret"),
					"a secret is told: %v %s", s.outcome.Reason, text)
				must.Equal(t, len(p.missed) == 1, c.astray && mode == Open, "missed", p.missed)
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
			must.Equal(t, answer.StatusCode == http.StatusBadGateway, c.astray && mode == Closed, c.location, mode, answer.StatusCode)
			must.Hold(t, len(p.missed) == 0, "%s, %v: missed: %v", c.location, mode, p.missed)
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
		must.Get(io.Copy(io.Discard, answer.Body))(t)
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
		must.Hold(t, strings.Contains(log.String(), fmt.Sprintf(`"mode":%q`, mode)), "%v: %s", mode, &log)
	}
}
