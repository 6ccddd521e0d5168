package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/log/installation"
	"jurat/internal/tap/relay"
)

// A Mode says what happens to a call that cannot be recorded.
type Mode = observed.Mode

// The modes.
const (
	Closed  = observed.Closed  // it is not made, or its answer does not end
	Passing = observed.Passing // it passes, and is counted
)

// Options say what is recorded, and where. The zero value of each field means what the field says.
type Options struct {
	// Folder is the data folder of the jurat installation. It is made if it is missing. "": jurat-data in the working directory.
	Folder string
	// Database is the URL of a PostgreSQL database that several machines share, and WrappingKey the file with the key to the secrets in it. "": all is in Folder.
	Database, WrappingKey string
	// TimeStamps names the authorities that stamp. nil: the built-in one and all that 'jurat tsa' shows.
	TimeStamps []string

	// Name is the recorder's own. It signs with keys of its own, never with an agent's. "": "recorder".
	Name string
	// Agent is whose calls come without a token or WithAgent. "": such calls are refused.
	Agent string
	// WhoIs returns the agent that a token belongs to. A call of the handler has it in the header "Jurat-Agent: Bearer TOKEN", or as /r/TOKEN before the path.
	// nil: tokens that 'jurat access grant NAME agent' made.
	WhoIs func(ctx context.Context, token string) (agent string, err error)
	// Chain is one chain for all calls that name none. "": each conversation has its own.
	Chain string

	// Mode is Closed if it is "".
	Mode Mode
	// Upstreams are the providers to which the handler leads, by the first element of the path: /NAME/…. nil: there is no handler.
	Upstreams map[string]Upstream
	// MCP is a server of the Model Context Protocol to which the handler leads, in the place of Upstreams. nil: there is none.
	MCP *MCP
	// Pipes says that the recorder is for [Recorder.Pipe], between clients and servers of the Model Context Protocol on their standard streams.
	Pipes bool
	// A2A is an agent before which the handler stands, or before which the recorded agent stands as a caller: every path leads there. It takes the place of
	// Upstreams. nil: there is none.
	A2A *A2A
	// Hosts are names, in lower case, of a reverse proxy on this machine that asks the handler. Under other names it answers nobody on this machine: a web page
	// can have its own name mean this machine.
	Hosts []string

	// InTheRecord seals what was said in the record itself. Then it can never be erased.
	InTheRecord bool
	// Drain is how long the handler reads an answer on after its client has left. 0: the provider's connection is closed at once.
	Drain time.Duration
	// Room is how many bytes copies of calls under way may take, in memory and on disk. 0: 1 GiB.
	Room int64
	// Heartbeat is how often the recorder seals that it is there, so that silence has a date. 0: five minutes.
	Heartbeat time.Duration

	// Version is of the program, for the record of the start. "": what the build says.
	Version string
	// Log is told of trouble, without texts or secrets. nil: slog.Default().
	Log *slog.Logger
}

// An Upstream is a provider to which a handler leads.
type Upstream struct {
	// Base is the provider's address: https://HOST, and maybe a path that goes before the caller's.
	Base string
	// Key is the provider's key. If it is set, it replaces every credential that a caller sends, so that agents need none and cannot call around the recorder.
	Key Secret
	// KeyIn is where the key goes: "authorization" (as a bearer), another header, or "?key=". "": authorization.
	KeyIn string
}

// A2A is an agent that others ask by the A2A protocol, through the handler.
type A2A struct {
	// Origin is the agent's scheme, host and port. Paths pass as they are.
	Origin string
	// Side says who is recorded: the agent that answers there, or the one that asks it. "": Answered.
	Side Side
	// RewriteCard is the origin by which callers reach the handler. If it is set, they get the agent's card with this origin, and without its
	// signatures, which would not hold; the log says so. "": the card passes as it is.
	RewriteCard string
}

// A Side is one of two agents that exchange messages.
type Side = evidence.Side

// The sides.
const (
	Asked    = evidence.Asked    // the recorded agent asks
	Answered = evidence.Answered // the recorded agent answers
)

// A Secret is a text that prints as a placeholder.
type Secret string

func (Secret) String() string               { return relay.Secret("").String() }
func (Secret) Format(f fmt.State, _ rune)   { relay.Secret("").Format(f, 's') }
func (Secret) MarshalText() ([]byte, error) { return relay.Secret("").MarshalText() }
func (Secret) LogValue() slog.Value         { return relay.Secret("").LogValue() }

// Check refuses options that no recorder can be made of. Open does so too, before it makes anything.
func (o Options) Check() error {
	_, err := o.checked()
	return err
}

// checked returns the options with their defaults.
func (o Options) checked() (Options, error) {
	o.Folder, o.Name, o.Mode, o.Version = cmp.Or(o.Folder, "jurat-data"), cmp.Or(o.Name, "recorder"), cmp.Or(o.Mode, Closed), cmp.Or(o.Version, built())
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if err := evidence.CheckName(o.Name); err != nil {
		return o, fmt.Errorf("recorder: Name: %w", err)
	}
	if o.Agent != "" {
		if err := evidence.CheckName(o.Agent); err != nil {
			return o, fmt.Errorf("recorder: Agent: %w", err)
		}
	}
	if o.Mode != Closed && o.Mode != Passing {
		return o, fmt.Errorf("recorder: Mode: unknown value %q: recorder.Closed or recorder.Passing", o.Mode)
	}
	if o.Upstreams != nil && len(o.Upstreams) == 0 {
		return o, errors.New("recorder: Upstreams: it is empty; at least one is needed, or leave it nil")
	}
	_, _, err := o.upstreams()
	return o, err
}

// upstreams are where the handler leads, by name. root is the name of the one to which every path leads; "": a path begins with a name.
func (o Options) upstreams() (root string, list map[string]relay.Upstream, err error) {
	list = map[string]relay.Upstream{}
	for name, u := range o.Upstreams {
		if list[name], err = u.relayed(name); err != nil {
			return "", nil, fmt.Errorf("recorder: Upstreams: %s: %w", name, err)
		}
	}
	if o.MCP != nil {
		root = "mcp"
		if list[root], err = o.beforeServer(root); err != nil {
			return "", nil, fmt.Errorf("recorder: MCP: %w", err)
		}
	}
	if o.A2A != nil {
		root = "agent"
		if list[root], err = o.beforeAgent(); err != nil {
			return "", nil, fmt.Errorf("recorder: A2A: %w", err)
		}
	}
	return root, list, nil
}

func built() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Path == "" {
		return "unknown"
	}
	version := strings.TrimSpace(info.Main.Path + " " + info.Main.Version)
	if evidence.CheckName(version) != nil {
		return "unknown"
	}
	return version
}

// vantage is from where the recorder sees, as the record of its start says. The record of each call says it of that call.
func (o Options) vantage() evidence.Vantage {
	if o.Upstreams != nil || o.Pipes || o.A2A != nil || o.MCP != nil {
		return evidence.Proxy
	}
	return evidence.InProcess
}

func (o Options) installation() installation.Config {
	return installation.Config{Dir: o.Folder, DB: o.Database, WrappingKey: o.WrappingKey, TSA: o.TimeStamps}
}

// relayed returns the upstream as the relay takes it. It refuses one that cannot be asked, or whose calls could never be sealed.
func (u Upstream) relayed(name string) (relay.Upstream, error) {
	base, err := url.Parse(u.Base)
	if err != nil {
		return relay.Upstream{}, errors.New("field Base: it is no URL: https://HOST, and maybe a path")
	}
	r := relay.Upstream{Base: base, Key: relay.Secret(u.Key), KeyIn: cmp.Or(u.KeyIn, "authorization"), Version: "v1", Versioned: vendors[name].Versioned}
	if err := r.Check(name); err != nil {
		return r, err
	}
	if err := evidence.CheckName(r.Origin()); err != nil {
		return r, fmt.Errorf("its scheme and host would stand in each record: %w", err)
	}
	return r, nil
}

// settings is the digest of what a reader may ask about: a change of it is seen in the log.
func (o Options) settings() (evidence.Digest, error) {
	origins := map[string]any{}
	for name, u := range o.Upstreams {
		origins[name] = map[string]any{"base": u.Base, "key_held": u.Key != ""}
	}
	all := map[string]any{"mode": o.Mode, "upstreams": origins, "agent": o.Agent, "chain": o.Chain, "in_the_record": o.InTheRecord}
	if a := o.A2A; a != nil {
		all["a2a"] = map[string]any{"origin": a.Origin, "side": a.Side, "rewrite_card": a.RewriteCard}
	}
	if m := o.MCP; m != nil {
		all["mcp"] = map[string]any{"url": m.URL, "also": m.Also, "key_held": m.Key != ""}
	}
	doc, err := json.Marshal(all)
	if err != nil {
		return evidence.Digest{}, err
	}
	form, err := evidence.Canonical(doc)
	return evidence.DigestOf(form), err
}

// MCP is a server of the Model Context Protocol that clients reach over HTTP, through the handler. The handler's paths are the server's own.
type MCP struct {
	// URL is the server's address. Of its host this path alone passes, without a query.
	URL string
	// Also are other paths that pass. What passes is sealed, so paths that give out tokens do not belong here.
	Also []string
	// Key is a bearer token for the server. If it is set, it replaces every credential that a client sends.
	Key Secret
}

// beforeServer returns the server as the relay takes it. It refuses what no recorder before a server can be made of.
func (o Options) beforeServer(name string) (none relay.Upstream, err error) {
	m := o.MCP
	u, err := url.Parse(m.URL)
	if o.Upstreams != nil || o.Pipes || o.A2A != nil {
		return none, errors.New("a handler leads to a server of MCP or elsewhere, and not to both")
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return none, errors.New("URL: it is no address of a server: https://HOST/PATH")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return none, errors.New("URL: it must have no user, query or fragment; a token belongs into Key")
	}
	for _, path := range m.Also {
		if p, err := url.ParseRequestURI(path); err != nil || p.EscapedPath() != path || !strings.HasPrefix(path, "/") {
			return none, fmt.Errorf("field Also: %q is no path: it must begin with a slash, and have no query", path)
		}
	}
	only := append([]string{cmp.Or(u.EscapedPath(), "/")}, m.Also...)
	r := relay.Upstream{Base: &url.URL{Scheme: u.Scheme, Host: u.Host}, Speaks: relay.MCP, Only: only, Key: relay.Secret(m.Key), KeyIn: "authorization"}
	return r, r.Check(name)
}

// A Vendor is a provider whose SDKs are known.
type Vendor struct {
	Base     string // its address
	Variable string // the environment variable by which its SDKs are told another address
	Path     string // what that address ends in
	KeyIn    string // where its key goes, see Upstream

	// Versioned are paths that lead to those below /v1: Anthropic's own SDKs add /v1 to the variable's address, and the AI SDK expects it there.
	Versioned []string
}

var vendors = map[string]Vendor{
	"openai":    {Base: "https://api.openai.com", Variable: "OPENAI_BASE_URL", Path: "/v1", KeyIn: "authorization"},
	"anthropic": {Base: "https://api.anthropic.com", Variable: "ANTHROPIC_BASE_URL", KeyIn: "x-api-key", Versioned: []string{"messages", "models", "files"}},
	"gemini":    {Base: "https://generativelanguage.googleapis.com", Variable: "GOOGLE_GEMINI_BASE_URL", KeyIn: "x-goog-api-key"},
}

// Vendors are the providers that are known, by the name of their upstream.
func Vendors() map[string]Vendor { return maps.Clone(vendors) }

// Known returns upstreams that lead to all vendors.
func Known() map[string]Upstream {
	list := map[string]Upstream{}
	for name, v := range vendors {
		list[name] = Upstream{Base: v.Base, KeyIn: v.KeyIn}
	}
	return list
}
