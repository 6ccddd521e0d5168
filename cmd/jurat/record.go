package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/installation"
	"jurat/internal/recording"
	"jurat/internal/relay"
)

type recordCmd struct {
	Run   recordRunCmd   `cmd:"" help:"Run an agent, and record its calls to models."`
	Proxy recordProxyCmd `cmd:"" help:"Record the calls of agents that run elsewhere: they reach their models through this."`
}

// recorderFlags are common to all recorders of calls to models.
type recorderFlags struct {
	Mode        string            `enum:"closed,open" default:"closed" help:"What happens if a call cannot be recorded. closed: it is not passed on, or its answer does not end. open: it passes, and the record says how many were missed."`
	Recorder    string            `name:"recorder" placeholder:"NAME" default:"recorder" help:"The recorder's own name. It signs with keys of its own, never with an agent's."`
	Upstream    map[string]string `placeholder:"NAME=URL" help:"Where /NAME/ leads. openai, anthropic and gemini are known. May be given several times."`
	Key         map[string]string `placeholder:"NAME=FILE" help:"The recorder holds the key of this provider: it puts the key from FILE into each call, so that agents need none and cannot call around the recorder."`
	InTheRecord bool              `name:"in-the-record" help:"Seal what was said in the record itself. Then it can never be erased."`
	Drain       time.Duration     `placeholder:"TIME" help:"How long to read an answer on after its client has left, such as 30s. Default: the provider's connection is closed at once."`
	Room        byteSize          `placeholder:"SIZE" default:"1GiB" help:"How much copies of calls under way may take, in memory and on disk."`
	Heartbeat   time.Duration     `placeholder:"TIME" default:"5m" help:"How often the recorder seals that it is there, so that silence has a date."`
	keyFlags
	stampFlags
}

// vendors are the upstreams that are known, with the variable by which SDKs are told another address, and where the key goes.
var vendors = map[string]struct{ base, variable, path, key string }{
	"openai":    {"https://api.openai.com", "OPENAI_BASE_URL", "/v1", "authorization"},
	"anthropic": {"https://api.anthropic.com", "ANTHROPIC_BASE_URL", "", "x-api-key"},
	"gemini":    {"https://generativelanguage.googleapis.com", "GOOGLE_GEMINI_BASE_URL", "", "x-goog-api-key"},
}

// upstreams reads the flags --upstream and --key.
func (f *recorderFlags) upstreams() (map[string]relay.Upstream, error) {
	list := map[string]relay.Upstream{}
	add := func(name, address string) error {
		base, err := url.Parse(address)
		if err != nil {
			return fmt.Errorf("--upstream %s: %w", name, err)
		}
		u := relay.Upstream{Base: base}
		if file, given := f.Key[name]; given {
			key, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("--key %s: %w", name, err)
			}
			u.Key, u.KeyIn = relay.Secret(strings.TrimSpace(string(key))), vendors[name].key
			if u.Key == "" {
				return fmt.Errorf("--key %s: %s is empty", name, file)
			}
			if u.KeyIn == "" {
				u.KeyIn = "authorization"
			}
		}
		list[name] = u
		return nil
	}
	for name, p := range vendors {
		if err := add(name, p.base); err != nil {
			return nil, err
		}
	}
	for name, address := range f.Upstream {
		if err := add(name, address); err != nil {
			return nil, err
		}
	}
	for name := range f.Key {
		if _, known := list[name]; !known {
			return nil, hint(fmt.Errorf("--key %s: there is no such upstream", name), "--upstream %s=https://HOST names it", name)
		}
	}
	return list, nil
}

// mode is the mode of the relay.
func (f *recorderFlags) mode() relay.Mode {
	if f.Mode == "open" {
		return relay.Open
	}
	return relay.Closed
}

// checked refuses what no recorder can be made of, before anything is made.
func (f *recorderFlags) checked(agent string) error {
	if err := evidence.CheckName(f.Recorder); err != nil {
		return fmt.Errorf("--recorder: %w", err)
	}
	if agent == "" {
		return nil
	}
	if err := evidence.CheckName(agent); err != nil {
		return fmt.Errorf("--agent: %w", err)
	}
	return nil
}

// A recorderOrder says whose calls are recorded.
type recorderOrder struct {
	agent, chain string
	whoIs        func(context.Context, string) (string, error)
	upstreams    map[string]relay.Upstream
	hosts        []string // names of a reverse proxy before the recorder
	log          *slog.Logger
}

// record opens a recorder on an installation, has do serve with its handler, and ends it.
func (f *recorderFlags) record(ctx context.Context, i *installation.Installation, o recorderOrder, do func(http.Handler) (reason string, err error)) error {
	secret, err := i.ServerSecret(ctx, "recorder")
	if err != nil {
		return err
	}
	settings, err := f.settings(o)
	if err != nil {
		return err
	}
	r, err := recording.Open(ctx, recording.Config{Log: actsOn(i).Observations(), Name: f.Recorder, Folder: filepath.Join(i.Dir, "recorder"), Mode: f.mode(), Agent: o.agent, WhoIs: o.whoIs,
		Chain: o.chain, Vantage: evidence.Proxy, InTheRecord: f.InTheRecord, Version: version(), Configuration: settings, Heartbeat: f.Heartbeat, Tell: o.log})
	if err != nil {
		return err
	}
	ending := context.WithoutCancel(ctx) // what passed is sealed, however this ends
	h, err := relay.New(r, relay.Options{Upstreams: o.upstreams, Mode: f.mode(), Folder: r.Spool(), FingerprintKey: secret, Cap: int64(f.Room), Drain: f.Drain, Hosts: o.hosts, Log: o.log})
	if err != nil {
		return errors.Join(err, r.Close(ending, "it could not begin"))
	}
	reason, err := do(h)
	return errors.Join(err, h.Wait(ending), r.Close(ending, reason))
}

// settings is the digest of what a reader may ask about: a change of it is seen in the log.
func (f *recorderFlags) settings(o recorderOrder) (evidence.Digest, error) {
	origins := map[string]any{}
	for name, u := range o.upstreams {
		origins[name] = map[string]any{"base": u.Base.String(), "key_held": u.Key != ""}
	}
	doc, err := json.Marshal(map[string]any{"mode": f.Mode, "upstreams": origins, "agent": o.agent, "chain": o.chain, "in_the_record": f.InTheRecord})
	if err != nil {
		return evidence.Digest{}, err
	}
	form, err := evidence.Canonical(doc)
	return evidence.DigestOf(form), err
}

// agentOf finds the agent of a token that 'jurat access grant' made.
func agentOf(register *access.Register) func(context.Context, string) (string, error) {
	return func(ctx context.Context, token string) (string, error) {
		grant, err := register.Who(ctx, token)
		if err != nil {
			return "", err
		}
		if !grant.Has(access.Agent) {
			return "", fmt.Errorf("it belongs to %s, who is no agent", grant.Name)
		}
		return grant.Name, nil
	}
}

// serveCalls passes calls on until the context ends, and then those that have begun.
func serveCalls(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	return serveUntil(ctx, l, s, 30*time.Second)
}

type recordProxyCmd struct {
	Listen  string   `default:"127.0.0.1:8419" placeholder:"ADDR" help:"Where to listen. An address beyond this machine needs --tls-key, as paths carry tokens."`
	Agent   string   `placeholder:"NAME" help:"Whose calls come without a token. Without this, every call needs one of 'jurat access grant NAME --role agent'."`
	Chain   string   `placeholder:"NAME" help:"One chain for all calls that name none. Default: each conversation has its own."`
	TLSCert string   `name:"tls-cert" placeholder:"FILE" help:"Certificates in PEM: the recorder's, then those above it."`
	TLSKey  string   `name:"tls-key" placeholder:"FILE" help:"The private key to it, in PEM."`
	Host    []string `placeholder:"NAME" help:"A name by which a reverse proxy on this machine asks for a provider whose key the recorder holds. May be given several times."`
	LogJSON bool     `name:"log-json" help:"Write the log as JSON lines."`
	recorderFlags
}

// Help is shown by 'jurat record proxy --help'.
func (*recordProxyCmd) Help() string {
	return `Passes calls of models on as they are, byte for byte, and seals each: who asked whom, what was said, when, and how it ended.
An agent reaches OpenAI by http://127.0.0.1:8419/openai/v1, Anthropic by /anthropic, Gemini by /gemini. The agent says who it is by
the header 'Jurat-Agent: Bearer TOKEN', or by /r/TOKEN before the path. 'Jurat-Chain: NAME' names the conversation.

The recorder signs as a witness, in a role of its own. What it seals proves what passed here, and not that nothing passed elsewhere;
with --key the agent has no key of the provider's, so it cannot call around the recorder.

    jurat record proxy --agent support
    jurat record proxy --upstream local=http://127.0.0.1:11434 --agent support
    jurat record proxy --key openai=openai.key --agent support
` + modesHelp
}

const modesHelp = `
In closed mode nothing passes that is not recorded: a call is in a journal on disk before it is forwarded, and the end of its answer is
held back until its record is in the log. If that fails, the connection breaks off. In open mode everything passes, and what
was missed is counted and sealed later.
`

// Run records until it is interrupted.
func (c *recordProxyCmd) Run(ctx context.Context, a *app, io stdio) error {
	log := io.logger(c.LogJSON)
	upstreams, err := c.upstreams()
	if err = errors.Join(err, c.checked(c.Agent), c.mayListen()); err != nil {
		return err
	}
	l, err := listenAt("--listen", c.Listen, c.TLSCert, c.TLSKey)
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // the server has, unless it did not begin
	return a.withStamps(ctx, io, c.keyFlags, c.stampFlags, func(i *installation.Installation) error {
		register := access.New(access.Config{Ledger: i.Ledger, Keys: i.Keys})
		o := recorderOrder{agent: c.Agent, chain: c.Chain, whoIs: agentOf(register), upstreams: upstreams, hosts: lowered(c.Host), log: log}
		return c.record(ctx, i, o, func(h http.Handler) (string, error) {
			io.flush()
			if err := io.line("%s", c.address(l)); err != nil {
				return "it could not say where it listens", err
			}
			return "it was interrupted", serveCalls(ctx, l, h, log)
		})
	})
}

func lowered(names []string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = strings.ToLower(name)
	}
	return list
}

// mayListen refuses to carry tokens in the clear.
func (c *recordProxyCmd) mayListen() error {
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return errors.New("--tls-cert, --tls-key: one needs the other")
	}
	if c.TLSKey == "" && !isLoopback(c.Listen) {
		return hint(fmt.Errorf("--listen %s: other machines would send tokens and keys over plain http", c.Listen), "--tls-cert and --tls-key serve https")
	}
	return nil
}

func (c *recordProxyCmd) address(l net.Listener) string {
	if c.TLSKey != "" {
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}
