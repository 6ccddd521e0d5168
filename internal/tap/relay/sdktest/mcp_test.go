package sdktest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/tap/relay"
	"jurat/internal/tap/traffic"
	"jurat/internal/test/must"
)

// A reader is a witness that reads what passes as a verifier does, and as whoever looks.
type reader struct {
	mu   sync.Mutex // held while said is used
	said []sight
	ends []relay.Ended
}

type sight struct {
	traffic.Projection
	facts string // which a record would state as parameters
}

type readerCall struct {
	*reader
	call *relay.Call
}

func (r *reader) Begin(_ context.Context, c *relay.Call) (relay.Exchange, error) {
	return readerCall{r, c}, nil
}
func (r *reader) Missed(*relay.Call, error) {}

func (r readerCall) End(_ context.Context, o *relay.Outcome) error {
	c := traffic.Call{Protocol: traffic.MCP + r.call.MCPVersion(), Path: r.call.Path, Status: o.Status}
	var err error
	if c.Request, err = io.ReadAll(r.call.Request.Open()); err != nil {
		return err
	}
	if o.Response != nil {
		c.ResponseType = o.Header.Get("Content-Type")
		if c.Response, err = io.ReadAll(o.Response.Open()); err != nil {
			return err
		}
	}
	p, err := traffic.Project(c)
	if err != nil {
		return err
	}
	act := &evidence.Observed{Protocol: c.Protocol, Path: c.Path, Status: int64(c.Status), Request: new(evidence.ObservedBody), Response: new(evidence.ObservedBody)}
	facts, _ := observed.FactsOf(act, c.Request, c.Response)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said, r.ends = append(r.said, sight{p, string(facts.Parameters)}), append(r.ends, o.Ended)
	return nil
}

// tools is a server with what servers have: tools that answer, fail, report progress and ask back, a resource and a prompt.
func tools() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	type numbers struct {
		A, B int
	}
	type sum struct {
		Sum int
	}
	mcp.AddTool(s, &mcp.Tool{Name: "add", Description: "adds"}, func(_ context.Context, _ *mcp.CallToolRequest, in numbers) (*mcp.CallToolResult, sum, error) {
		return nil, sum{in.A + in.B}, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "fail"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, fmt.Errorf("it failed")
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		if token := req.Params.GetProgressToken(); token != nil {
			if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1, Total: 2}); err != nil {
				return nil, nil, err
			}
		}
		answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Sure?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"ok": map[string]any{"type": "boolean"}}}})
		if err != nil {
			return nil, nil, err
		}
		said, err := req.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 5, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "Say yes."}}}})
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(answer.Action, answer.Content, " ", said.Model)}}}, nil, nil
	})
	s.AddResource(&mcp.Resource{URI: "file:///a", Name: "a", MIMEType: "text/plain"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "file:///a", Text: strings.Repeat("long ", 100_000)}}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "p"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "Hello."}}}}, nil
	})
	return s
}

// story has a client do what clients do, and returns all that it learned.
func story(t *testing.T, version string, transport mcp.Transport) string {
	t.Helper()
	var b strings.Builder
	var mu sync.Mutex
	note := func(what string, v any, err error) {
		mu.Lock()
		defer mu.Unlock()
		doc := fmt.Sprintf("%s", mustJSON(t, v))
		fmt.Fprintf(&b, "%s: %s %v\n", what, doc[:min(len(doc), 2000)], err)
	}
	progress := make(chan struct{}, 1)
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": true}}, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m-1", Content: &mcp.TextContent{Text: "Yes."}}, nil
		},
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) {
			select {
			case progress <- struct{}{}:
			default:
			}
		},
	})
	session := must.Get(client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version}))(t)
	note("initialized", session.InitializeResult(), nil)
	list, err := session.ListTools(t.Context(), nil)
	note("tools", list, err)
	for _, name := range []string{"add", "fail", "ask", "none"} {
		p := &mcp.CallToolParams{Name: name, Arguments: map[string]any{}}
		if name == "add" {
			p.Arguments = map[string]any{"A": 40, "B": 2}
		}
		p.SetProgressToken("p-" + name)
		result, err := session.CallTool(t.Context(), p)
		note(name, result, err)
	}
	resource, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "file:///a"})
	note("resource", resource, err)
	prompt, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"})
	note("prompt", prompt, err)
	note("ping", nil, session.Ping(t.Context(), nil))
	var all sync.WaitGroup
	sums := make([]string, 20)
	for i := range sums {
		all.Go(func() {
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "add", Arguments: map[string]any{"A": i, "B": i}})
			sums[i] = fmt.Sprintf("%s %v", mustJSON(t, result), err)
		})
	}
	all.Wait()
	note("at once", sums, nil)
	must.Want(t, session.Close(), nil)
	return b.String()
}

// ways are how a client reaches a server: each returns a transport, by itself or past a witness.
var ways = map[string]func(t *testing.T, past relay.Observer, mode relay.Mode, version string) mcp.Transport{
	"stdio": overPipe,
	"HTTP, events": func(t *testing.T, w relay.Observer, m relay.Mode, v string) mcp.Transport {
		return overHTTP(t, w, m, v, false)
	},
	"HTTP, documents": func(t *testing.T, w relay.Observer, m relay.Mode, v string) mcp.Transport {
		return overHTTP(t, w, m, v, true)
	},
}

func overPipe(t *testing.T, past relay.Observer, mode relay.Mode, _ string) mcp.Transport {
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	if past != nil {
		r := must.Get(relay.New(past, relay.Options{Mode: mode, Folder: filepath.Join(t.TempDir(), "spool"), FingerprintKey: make([]byte, 32)}))(t)
		p := r.Pipe(relay.PipeOptions{Origin: "stdio:tools"})
		clientSays, serverSays := toServer, toClient
		toServer, fromClient2 := io.Pipe()
		toClient2, fromServer2 := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- p.Run(clientSays, fromServer2, serverSays, fromClient2) }()
		t.Cleanup(func() {
			select {
			case err := <-done:
				must.Want(t, err, nil)
			case <-time.After(20 * time.Second):
				t.Error("the pipe does not end")
			}
		})
		serve(t, &mcp.IOTransport{Reader: toServer, Writer: fromServer})
		return &mcp.IOTransport{Reader: toClient2, Writer: fromClient}
	}
	serve(t, &mcp.IOTransport{Reader: toServer, Writer: fromServer})
	return &mcp.IOTransport{Reader: toClient, Writer: fromClient}
}

func serve(t *testing.T, transport mcp.Transport) {
	go func() {
		_ = tools().Run(context.WithoutCancel(t.Context()), transport) // it ends with its client
	}()
}

func overHTTP(t *testing.T, past relay.Observer, mode relay.Mode, version string, documents bool) mcp.Transport {
	one := tools()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return one }, &mcp.StreamableHTTPOptions{JSONResponse: documents, Stateless: version >= "2026"})
	return &mcp.StreamableClientTransport{Endpoint: before(t, past, mode, handler)}
}

// before returns the address of a server or, if there is a witness, of a relay before it.
func before(t *testing.T, past relay.Observer, mode relay.Mode, handler http.Handler) string {
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections() // of streams
		server.Close()
	})
	if past == nil {
		return server.URL + "/mcp"
	}
	base := must.Get(url.Parse(server.URL))(t)
	h, err := relay.New(past, relay.Options{Upstreams: map[string]relay.Upstream{"mcp": {Base: base, Speaks: relay.MCP, Only: []string{"/mcp"}}}, Root: "mcp", Mode: mode,
		Folder: filepath.Join(t.TempDir(), "spool"), FingerprintKey: make([]byte, 32)})
	must.Do(t, err)
	between := httptest.NewServer(h)
	t.Cleanup(func() {
		between.CloseClientConnections()
		between.Close()
		must.Want(t, h.Wait(context.Background()), nil)
	})
	return between.URL + "/mcp"
}

// TestMCP: what the official SDK's client learns of the official SDK's server is the same through the relay, on each transport and in each version, and what passed is
// read without a problem.
func TestMCP(t *testing.T) {
	for way, transport := range ways {
		for _, version := range mcp.SupportedProtocolVersions() {
			t.Run(way+" "+version, func(t *testing.T) {
				t.Parallel()
				direct := story(t, version, transport(t, nil, relay.Closed, version))
				must.Need(t, strings.Contains(direct, version) && strings.Contains(direct, "42") && strings.Contains(direct, "it failed"), "%s", direct)
				for _, mode := range []relay.Mode{relay.Closed, relay.Open} {
					w := new(reader)
					must.Equal(t, story(t, version, transport(t, w, mode, version)), direct, mode, "through the relay")
					w.read(t)
				}
			})
		}
	}
}

// TestMCPWithEndpoints: a client of the transport of 2024-11-05 does not begin past a recorder in closed mode, and does as always in open mode.
func TestMCPWithEndpoints(t *testing.T) {
	one := tools()
	handler := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return one }, nil)
	for _, mode := range []relay.Mode{relay.Closed, relay.Open} {
		past := &mcp.SSEClientTransport{Endpoint: before(t, new(reader), mode, handler)}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil).Connect(t.Context(), past, nil)
		must.Hold(t, (err == nil) == (mode == relay.Open), "%v: %v", mode, err)
		if err == nil {
			session.Close()
		}
	}
}

// read checks that each use of a tool was seen with its result.
func (r *reader) read(t *testing.T) {
	t.Helper()
	used := func() (n int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, p := range r.said {
			if strings.Contains(p.facts, `"tool":`) {
				n++
			}
		}
		return n
	}
	long := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.ContainsFunc(r.said, func(p sight) bool { return strings.Contains(string(p.Output), "long long") })
	}
	for deadline := time.Now().Add(time.Minute); (used() < 24 || !long()) && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
	}
	n := used()
	must.Hold(t, n >= 24 && n <= 26, "%d uses of tools were seen", n) // the client may repeat one to bring what the server asked for
	must.Hold(t, long(), "the long resource was not seen")
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, p := range r.said {
		must.Hold(t, p.Problem == "", "%s: %s", p.facts, p.Problem)
		if strings.Contains(p.facts, `"tool":"add"`) && (!p.Complete || r.ends[i] != relay.Complete || !strings.Contains(string(p.Output), "Sum")) {
			t.Errorf("%s: %s: %s", p.facts, r.ends[i], p.Output)
		}
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	return must.Get(json.Marshal(v))(t)
}
