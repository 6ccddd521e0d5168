package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/court/card"
	"jurat/internal/kit/fault"
	"jurat/internal/log/access"
	"jurat/internal/log/installation"
	"jurat/internal/tap/relay"
	"jurat/internal/tap/sealer"
	"jurat/internal/tap/telemetry"
	"jurat/recorder"
)

type recordCmd struct {
	Run   recordRunCmd   `cmd:"" help:"Run an agent, and record its calls to models."`
	Proxy recordProxyCmd `cmd:"" help:"Record the calls of agents that run elsewhere: they reach their models through this."`
	OTLP  recordOTLPCmd  `cmd:"" name:"otlp" help:"Record what an agent's OpenTelemetry exporter tells: second hand, without a proxy."`
	A2A   recordA2ACmd   `cmd:"" name:"a2a" help:"Record what an agent and those who ask it say to each other: stands before the agent, or one that it asks."`
	MCP   recordMCPCmd   `cmd:"" name:"mcp" help:"Record the tools that an agent uses: stands between an MCP client and its server."`
}

type recordingFlags struct {
	Mode        string        `enum:"closed,open" default:"closed" help:"What happens if a call cannot be recorded. closed: it is not passed on, or its answer does not end. open: it passes, and the record says how many were missed."`
	Recorder    string        `name:"recorder" placeholder:"NAME" default:"recorder" help:"The recorder's name. It signs with its own keys, never an agent's."`
	InTheRecord bool          `name:"in-the-record" help:"Seal what was said in the record itself. Then it can never be erased."`
	Drain       time.Duration `placeholder:"TIME" help:"How long to read an answer on after its client left, such as 30s. Default: the connection closes at once."`
	Room        byteSize      `placeholder:"SIZE" default:"1GiB" help:"How much copies of calls under way may take, in memory and on disk."`
	Heartbeat   time.Duration `placeholder:"TIME" default:"5m" help:"How often the recorder seals that it is there, so that silence has a date."`
	keyFlags
	stampFlags
}

func (f *recordingFlags) witness() (recorder.Options, error) {
	o := recorder.Options{Name: f.Recorder, Mode: recorder.Mode(f.Mode), InTheRecord: f.InTheRecord, Drain: f.Drain, Room: int64(f.Room), Heartbeat: f.Heartbeat, Version: version()}
	return o, flagName("--recorder", f.Recorder)
}

type recorderFlags struct {
	Upstream map[string]string `placeholder:"NAME=URL" help:"Where /NAME/ leads. openai, anthropic and gemini are known. May be repeated."`
	Key      map[string]string `placeholder:"NAME=FILE" help:"The recorder puts the provider's key into each call: agents need none, and cannot go around it."`
	recordingFlags
}

func (f *recorderFlags) options() (recorder.Options, error) {
	o, err := f.witness()
	if err != nil {
		return o, err
	}
	o.Upstreams = recorder.Known()
	for name, address := range f.Upstream {
		o.Upstreams[name] = recorder.Upstream{Base: address, KeyIn: o.Upstreams[name].KeyIn}
	}
	for name, file := range f.Key {
		u, known := o.Upstreams[name]
		if !known {
			return o, hint(fmt.Errorf("--key %s: there is no such upstream", name), "--upstream %s=https://HOST names it", name)
		}
		key, err := readSecret("--key "+name, file)
		if err != nil {
			return o, err
		}
		u.Key = recorder.Secret(key)
		o.Upstreams[name] = u
	}
	return o, nil
}

func flagName(flag, name string) error {
	err := evidence.CheckName(name)
	fault.While(&err, "%s", flag)
	return err
}

// ifGiven is flagName of a flag that may be left out.
func ifGiven(flag, name string) error {
	if name == "" {
		return nil
	}
	return flagName(flag, name)
}

func record(ctx context.Context, i *installation.Installation, o recorder.Options, do func(*recorder.Recorder) (reason string, err error)) error {
	r, err := recorder.Open(i.Lend(ctx), o)
	if err != nil {
		return err
	}
	reason, err := do(r)
	return errors.Join(err, r.Stop(context.WithoutCancel(ctx), reason)) // what passed is sealed, however this ends
}

// serveBy passes calls on until the context ends, and then those that have begun, by these protocols; nil: those that net/http has.
func serveBy(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger, protocols *http.Protocols) error {
	s := &http.Server{Handler: h, Protocols: protocols, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	return serveUntil(ctx, l, s, 30*time.Second)
}

type recordProxyCmd struct {
	Listen string `default:"127.0.0.1:8419" placeholder:"ADDR" help:"Where to listen. Beyond this machine it needs --tls-key, as paths carry tokens."`
	Agent  string `placeholder:"NAME" help:"Whose calls come without a token. Without this, every call needs one of 'jurat access grant NAME agent'."`
	Chain  string `placeholder:"NAME" help:"One chain for all calls that name none. Default: each conversation has its own."`
	listenFlags
	logJSONFlag
	recorderFlags
}

func (c *recordProxyCmd) Run(ctx context.Context, a *app, std stdio) error {
	o, err := c.options()
	o.Agent, o.Chain, o.Hosts, o.Log = c.Agent, c.Chain, lowered(c.Host), std.logger(c.LogJSON)
	if err := errors.Join(err, ifGiven("--agent", c.Agent)); err != nil {
		return err
	}
	return c.serve(ctx, a, std, o, c.Listen, c.listenFlags, "")
}

type listenFlags struct {
	TLSCert string   `name:"tls-cert" placeholder:"FILE" help:"Certificates in PEM: the recorder's, then those above it."`
	TLSKey  string   `name:"tls-key" placeholder:"FILE" help:"The private key to it, in PEM."`
	Host    []string `placeholder:"NAME" help:"A name by which a reverse proxy on this machine, or a program, asks. May be repeated."`
}

type logJSONFlag struct {
	LogJSON bool `name:"log-json" help:"Write the log as JSON lines."`
}

// serve records what passes a listener until it is interrupted. It is asked under a path.
func (f *recordingFlags) serve(ctx context.Context, a *app, std stdio, o recorder.Options, listen string, by listenFlags, path string) error {
	if err := errors.Join(by.mayListen(listen), o.Check()); err != nil {
		return err
	}
	l, err := listenAt("--listen", listen, by.TLSCert, by.TLSKey)
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // the server has, unless it did not begin
	defer roomy()()
	return a.withStamps(ctx, std, f.keyFlags, f.stampFlags, func(i *installation.Installation) error {
		return record(ctx, i, o, func(r *recorder.Recorder) (string, error) {
			std.flush()
			if err := std.line("%s%s", address(l, by.TLSKey), path); err != nil {
				return "it could not say where it listens", err
			}
			return "it was interrupted", serveBy(ctx, l, r.Handler(), o.Log, nil)
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

func (f *listenFlags) mayListen(listen string) error {
	_, _, err := net.SplitHostPort(listen)
	return cmp.Or(refuse((f.TLSCert == "") != (f.TLSKey == ""), "--tls-cert, --tls-key: one needs the other"),
		hint(refuse(err != nil, "--listen %s: %w", listen, err), "--listen 127.0.0.1:8419 has a host and a port"),
		hint(refuse(f.TLSKey == "" && !isLoopback(listen), "--listen %s: tokens and keys would travel over http", listen), "--tls-cert and --tls-key serve https"))
}

func address(l net.Listener, key string) string {
	return pick(key == "", "http://", "https://") + l.Addr().String()
}

type recordA2ACmd struct {
	Agent       string `required:"" placeholder:"NAME" help:"The name of the agent that is recorded."`
	As          string `enum:"callee,caller" default:"callee" help:"callee: the agent is behind this, and answers. caller: it asks another one through this."`
	Upstream    string `required:"" placeholder:"URL" help:"The agent behind this: scheme, host and port. Paths pass as they are."`
	Listen      string `default:"127.0.0.1:8420" placeholder:"ADDR" help:"Where to listen. Beyond this machine it needs --tls-key, as callers send credentials."`
	Chain       string `placeholder:"NAME" help:"One chain for all messages. Default: that of the context or task which the agent names."`
	RewriteCard string `name:"rewrite-card" placeholder:"URL" help:"Hand out the agent's card with this address in the place of the agent's own, and without its signatures, which would not hold. Default: the card passes as it is."`
	listenFlags
	logJSONFlag
	recordingFlags
}

func flagOrigin(flag, address string) error {
	_, err := card.ParseOrigin(address)
	fault.While(&err, "%s %q", flag, address)
	return err
}

func (c *recordA2ACmd) Run(ctx context.Context, a *app, std stdio) error {
	o, err := c.witness()
	err = errors.Join(err, flagName("--agent", c.Agent), flagOrigin("--upstream", c.Upstream))
	if c.RewriteCard != "" {
		err = cmp.Or(err, flagOrigin("--rewrite-card", c.RewriteCard))
	}
	if err != nil {
		return err
	}
	o.Agent, o.Chain, o.Hosts, o.Log = c.Agent, c.Chain, lowered(c.Host), std.logger(c.LogJSON)
	o.A2A = &recorder.A2A{Origin: c.Upstream, Side: recorder.Answered, RewriteCard: c.RewriteCard}
	if c.As == "caller" {
		o.A2A.Side = recorder.Asked
	}
	return c.serve(ctx, a, std, o, c.Listen, c.listenFlags, "")
}

type recordOTLPCmd struct {
	Listen  string            `default:"127.0.0.1:4318" placeholder:"ADDR" help:"Where to listen. Beyond this machine, tokens and texts need --tls-key."`
	Agent   string            `placeholder:"NAME" help:"Whose telemetry has no token. Without this or --service, all need one of 'jurat access grant NAME agent'."`
	Service map[string]string `placeholder:"NAME=AGENT" help:"Whose telemetry a program named NAME (service.name) sends without a token. May be repeated."`
	Chain   string            `placeholder:"NAME" help:"One chain for all acts that name none. Default: each conversation has its own, or else each trace."`
	listenFlags
	logJSONFlag
	Recorder    string        `name:"recorder" placeholder:"NAME" default:"recorder" help:"The recorder's name. It signs with its own keys, never an agent's."`
	InTheRecord bool          `name:"in-the-record" help:"Seal what was told in the record itself. Then it can never be erased."`
	Heartbeat   time.Duration `placeholder:"TIME" default:"5m" help:"How often the recorder seals that it is there, so that silence has a date."`
	keyFlags
	stampFlags
}

func (c *recordOTLPCmd) Run(ctx context.Context, a *app, std stdio) error {
	if err := c.check(); err != nil {
		return err
	}
	l, err := listenAt("--listen", c.Listen, c.TLSCert, c.TLSKey, "h2", "http/1.1")
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // the server has, unless it did not begin
	defer roomy()()
	log := std.logger(c.LogJSON)
	return a.withStamps(ctx, std, c.keyFlags, c.stampFlags, func(i *installation.Installation) error {
		settings := map[string]any{"protocol": "otlp", "agent": c.Agent, "services": c.Service, "chain": c.Chain, "in_the_record": c.InTheRecord}
		r, err := secondHand(ctx, i, sealer.Config{Name: c.Recorder, InTheRecord: c.InTheRecord, Heartbeat: c.Heartbeat, Tell: log}, settings)
		if err != nil {
			return err
		}
		h := telemetry.New(telemetry.Config{Report: r.Report, Agent: c.Agent, Services: c.Service, Chain: c.Chain, Hosts: lowered(c.Host), Log: log,
			WhoIs: access.New(access.Config{Ledger: i.Ledger, Keys: i.Keys}).Agent})
		std.flush()
		reason := "it could not say where it listens"
		if err = std.line("%s", address(l, c.TLSKey)); err == nil {
			// HTTP/2 comes without TLS, too: so an exporter by gRPC gets an answer, and the log says what it needs instead.
			protocols := new(http.Protocols)
			protocols.SetHTTP1(true)
			protocols.SetHTTP2(true)
			protocols.SetUnencryptedHTTP2(true)
			err, reason = serveBy(ctx, l, h, log, protocols), "it was interrupted"
		}
		if counts := h.Counts(); counts != "" {
			reason += "; " + counts
		}
		return errors.Join(err, r.Close(context.WithoutCancel(ctx), reason))
	})
}

func (c *recordOTLPCmd) check() error {
	err := errors.Join(flagName("--recorder", c.Recorder), c.mayListen(c.Listen))
	if c.Agent != "" {
		err = errors.Join(err, flagName("--agent", c.Agent), checkChain(c.Agent, c.Chain))
	}
	for service, agent := range c.Service {
		nameless := refuse(strings.TrimSpace(service) == "", "--service: the program has no name")
		err = errors.Join(err, hint(nameless, "--service NAME=AGENT, with its service.name"), flagName("--service "+service, agent), checkChain(agent, c.Chain))
	}
	return err
}

func checkChain(agent, name string) error {
	if name == "" {
		return nil
	}
	err := sealer.CheckChain(agent, name)
	fault.While(&err, "--chain")
	return err
}

// secondHand opens a recorder of what others tell of acts. It seals the digest of its settings, so that a reader may ask about them.
func secondHand(ctx context.Context, i *installation.Installation, c sealer.Config, settings map[string]any) (*sealer.Recorder, error) {
	doc, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	form, err := evidence.Canonical(doc)
	if err != nil {
		return nil, err
	}
	c.Log, c.Folder, c.Mode, c.Vantage = actsOn(i).Observations(), recorder.Folder(i.Dir), relay.Closed, evidence.Telemetry
	c.Version, c.Configuration = version(), evidence.DigestOf(form)
	return sealer.Open(ctx, c)
}

type recordRunCmd struct {
	Agent   string   `required:"" placeholder:"NAME" help:"The name of the agent."`
	Chain   string   `placeholder:"NAME" help:"One chain for the whole run. Default: each conversation has its own."`
	Command []string `arg:"" optional:"" passthrough:"" help:"The program and its arguments, after --."`
	recorderFlags
}

func (c *recordRunCmd) Run(ctx context.Context, a *app, std stdio) error {
	program, command, err := programIn("program", c.Command, hint(errors.New("no program is named: write it after --, with its arguments"), "as in 'jurat record run --agent %s -- python agent.py'", c.Agent))
	if err != nil {
		return err
	}
	o, err := c.options()
	if err = errors.Join(err, flagName("--agent", c.Agent)); err == nil {
		throughVariables(o.Upstreams)
		err = o.Check()
	}
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // the server has, unless it did not begin
	log := std.logger(false)
	token := rand.Text()
	o.Chain, o.Log = c.Chain, log
	o.WhoIs = func(_ context.Context, given string) (string, error) {
		if subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			return "", errors.New("it is unknown here")
		}
		return c.Agent, nil
	}
	return a.withStamps(ctx, std, c.keyFlags, c.stampFlags, func(i *installation.Installation) error {
		return record(ctx, i, o, func(r *recorder.Recorder) (string, error) {
			h, child := r.Handler(), exec.Command(program, command[1:]...)
			child.Stdin = os.Stdin
			child.Stdout, child.Stderr = std.passing()
			child.Env = append(os.Environ(), variables("http://"+l.Addr().String()+"/r/"+token)...)
			var asked atomic.Int64
			reason, err := runServed(ctx, child, l, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				asked.Add(1)
				h.ServeHTTP(w, req)
			}), log)
			if asked.Load() == 0 {
				log.Warn("nothing is recorded: no call came from the program. If it asks a model, it ignores these variables: see docs/recorder.md, 'Programs'",
					"variables", joined(slices.Sorted(slices.Values(variables(""))), ", ", func(set string) string { return set[:strings.Index(set, "=")] }))
			}
			return reason, err
		})
	})
}

// programIn returns where the program is that a command line names, perhaps after --, and the command line from it on; absent if none is named.
func programIn(what string, command []string, absent error) (program string, _ []string, err error) {
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	if len(command) == 0 {
		return "", nil, absent
	}
	program, err = exec.LookPath(command[0])
	fault.While(&err, "the %s %s cannot be run", what, command[0])
	return program, command, err
}

// throughVariables has upstreams lead where the SDKs would go now.
func throughVariables(upstreams map[string]recorder.Upstream) {
	for name, v := range recorder.Vendors() {
		if address := os.Getenv(v.Variable); address != "" {
			u := upstreams[name]
			u.Base = strings.TrimSuffix(strings.TrimSuffix(address, "/"), v.Path)
			upstreams[name] = u
		}
	}
}

func variables(base string) (list []string) {
	for name, v := range recorder.Vendors() {
		list = append(list, v.Variable+"="+base+"/"+name+v.Path)
	}
	return list
}

// runServed runs a program while the handler serves. A signal goes on to the program.
func runServed(ctx context.Context, child *exec.Cmd, l net.Listener, h http.Handler, log *slog.Logger) (reason string, err error) {
	served, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- serveBy(served, l, h, log, nil) }()
	defer func() { stop(); err = errors.Join(err, <-ended) }()
	if err := child.Start(); err != nil {
		return "the program could not be started", err
	}
	alone := context.AfterFunc(ctx, func() { _ = child.Process.Signal(syscall.SIGTERM) }) // it may have ended
	failed := child.Wait()
	alone()
	if exit, is := errors.AsType[*exec.ExitError](failed); is {
		return fmt.Sprintf("the program ended with %s", exit.ProcessState), childCode(exit)
	}
	return "the program ended", failed
}

// childCode is the exit code of a program, as shells have it for one that a signal ended.
func childCode(exit *exec.ExitError) error {
	if status, is := exit.Sys().(syscall.WaitStatus); is && status.Signaled() {
		return exitCode(128 + int(status.Signal()))
	}
	return exitCode(exit.ExitCode())
}

type recordMCPCmd struct {
	Agent   string   `required:"" placeholder:"NAME" help:"The name of the agent, whose client starts this."`
	Chain   string   `placeholder:"NAME" help:"The chain of all that passes. Default: each session has its own."`
	Server  string   `placeholder:"NAME" help:"The started server's name in records. Default: its program. A name shows changed tools even under a new command."`
	Command []string `arg:"" optional:"" passthrough:"" help:"The server and its arguments, after --."`

	Upstream string   `placeholder:"URL" help:"A server that is reached over HTTP, in place of a command."`
	Listen   string   `default:"127.0.0.1:8420" placeholder:"ADDR" help:"Where clients reach --upstream, under its path. Beyond this machine it needs --tls-key."`
	Also     []string `placeholder:"PATH" help:"Another path of --upstream that passes. May be repeated."`
	Key      string   `placeholder:"FILE" help:"The recorder puts the token for --upstream into each call: clients need none, and cannot go around it."`
	listenFlags
	logJSONFlag
	recordingFlags
}

func (c *recordMCPCmd) Run(ctx context.Context, a *app, std stdio) error {
	if len(c.Command) > 0 && strings.HasPrefix(c.Command[0], "-") && c.Command[0] != "--" { // the parser takes it for the server's program
		flag, _, _ := strings.Cut(c.Command[0], "=")
		return hint(fmt.Errorf("unknown flag %s", flag), "%s", cmp.Or(gone()["record mcp "+flag], "see 'jurat record mcp --help'; a server's program goes after --"))
	}
	if c.Upstream != "" {
		return c.overHTTP(ctx, a, std)
	}
	if c.Key != "" || len(c.Also)+len(c.Host) > 0 {
		return errors.New("--key, --also and --host go with --upstream: a program's server is asked through a pipe, with what its own settings say")
	}
	program, command, err := programIn("server", c.Command, hint(errors.New("no server is named: write its program and arguments after --, or give --upstream"),
		"as in 'jurat record mcp --agent %s -- npx -y @modelcontextprotocol/server-filesystem /srv/files'", c.Agent))
	if err != nil {
		return err
	}
	o, err := c.witness()
	err = errors.Join(err, flagName("--agent", c.Agent))
	session, none := evidence.NewRecordID(time.Now(), rand.Reader)
	about := recorder.PipeOptions{Origin: "stdio:" + cmp.Or(c.Server, filepath.Base(program)), Server: cmp.Or(c.Server, strings.Join(command, "\x00")), Chain: cmp.Or(c.Chain, "mcp-"+session)}
	if err := cmp.Or(err, none, errors.Join(flagName("--server", about.Origin), flagName("--chain", recorder.Chain(c.Agent, about.Chain)))); err != nil {
		return err
	}
	o.Agent, o.Pipes, o.Log = c.Agent, true, std.logger(false)
	return a.withStamps(ctx, std, c.keyFlags, c.stampFlags, func(i *installation.Installation) error {
		return record(ctx, i, o, func(r *recorder.Recorder) (string, error) {
			return passed(r, about, exec.Command(program, command[1:]...), std)
		})
	})
}

// overHTTP stands before a server that is reached over HTTP, until it is interrupted.
func (c *recordMCPCmd) overHTTP(ctx context.Context, a *app, std stdio) error {
	o, err := c.witness()
	err = errors.Join(err, refuse(len(c.Command) > 0, "--upstream names a server, and a command another: give one of them"))
	o.Agent, o.Chain, o.Hosts, o.Log, o.MCP = c.Agent, c.Chain, lowered(c.Host), std.logger(c.LogJSON), &recorder.MCP{URL: c.Upstream, Also: c.Also}
	if c.Key != "" {
		key, failed := readSecret("--key", c.Key)
		o.MCP.Key, err = recorder.Secret(key), errors.Join(err, failed)
	}
	if err = errors.Join(err, flagName("--agent", c.Agent)); err == nil {
		err = o.Check()
	}
	if err != nil {
		return err
	}
	at, err := url.Parse(c.Upstream)
	if err != nil {
		return err
	}
	return c.serve(ctx, a, std, o, c.Listen, c.listenFlags, at.EscapedPath())
}

// passed runs a server behind a pipe. A signal goes on to the server, and a second one ends it.
func passed(r *recorder.Recorder, about recorder.PipeOptions, server *exec.Cmd, std stdio) (reason string, err error) {
	pipe, err := r.Pipe(about)
	toServer, noInput := server.StdinPipe()
	fromServer, noOutput := server.StdoutPipe()
	if err := errors.Join(err, noInput, noOutput); err != nil {
		return "it could not begin", err
	}
	_, server.Stderr = std.passing()
	ownGroup(server)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := server.Start(); err != nil {
		return "the server could not be started", err
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		for n := 0; ; n++ {
			select {
			case s := <-signals:
				if n > 0 {
					s = os.Kill
				}
				_ = server.Process.Signal(s) // it may have ended
			case <-over:
				return
			}
		}
	}()
	failed := pipe.Run(std.in, bare(std.out), fromServer, toServer)
	if failed != nil { // it has no client any more
		_ = server.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(5*time.Second, func() { _ = server.Process.Kill() })
		defer kill.Stop()
	}
	_ = toServer.Close() // one that has closed its output is told that nobody listens
	ended := server.Wait()
	if failed != nil {
		return "what passed could not be recorded", failed
	}
	if exit, is := errors.AsType[*exec.ExitError](ended); is {
		return fmt.Sprintf("the server ended with %s", exit.ProcessState), childCode(exit)
	}
	return "the server ended", ended
}
