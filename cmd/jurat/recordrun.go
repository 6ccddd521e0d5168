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

	"jurat/evidence"
	"jurat/internal/fault"
	"jurat/internal/installation"
	"jurat/recorder"
)

type recordRunCmd struct {
	Agent   string   `required:"" placeholder:"NAME" help:"The name of the agent."`
	Chain   string   `placeholder:"NAME" help:"One chain for the whole run. Default: each conversation has its own."`
	Command []string `arg:"" optional:"" passthrough:"" help:"The program and its arguments, after --."`
	recorderFlags
}

func (c *recordRunCmd) Run(ctx context.Context, a *app, io stdio) error {
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
	log := io.logger(false)
	token := rand.Text()
	o.Chain, o.Log = c.Chain, log
	o.WhoIs = func(_ context.Context, given string) (string, error) {
		if subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			return "", errors.New("it is unknown here")
		}
		return c.Agent, nil
	}
	return a.withStamps(ctx, io, c.keyFlags, c.stampFlags, func(i *installation.Installation) error {
		return record(ctx, i, o, func(r *recorder.Recorder) (string, error) {
			h, child := r.Handler(), exec.Command(program, command[1:]...)
			child.Stdin = os.Stdin
			child.Stdout, child.Stderr = io.passing()
			child.Env = append(os.Environ(), variables("http://"+l.Addr().String()+"/r/"+token)...)
			var asked atomic.Int64
			reason, err := runServed(ctx, child, l, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				asked.Add(1)
				h.ServeHTTP(w, req)
			}), log)
			if asked.Load() == 0 {
				log.Warn("nothing is recorded: no call came from the program. If it asks a model, it reads none of the variables, and must be told in another way to ask there: docs/recorder.md, 'Programs'",
					"variables", variableNames())
			}
			return reason, err
		})
	})
}

// programIn returns the program that a command line names, perhaps after --, where it is, and its arguments behind its name. The error is
// absent if none is named.
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

// variables tell the SDKs where to go.
func variables(base string) []string {
	var list []string
	for name, v := range recorder.Vendors() {
		list = append(list, v.Variable+"="+base+"/"+name+v.Path)
	}
	return list
}

func variableNames() string {
	var list []string
	for _, v := range recorder.Vendors() {
		list = append(list, v.Variable)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
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
	gone := make(chan struct{})
	go func() {
		select {
		case <-gone:
		case <-ctx.Done():
			_ = child.Process.Signal(syscall.SIGTERM) // it may have ended
		}
	}()
	failed := child.Wait()
	close(gone)
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
	Server  string   `placeholder:"NAME" help:"What records call a server that this starts. Default: its program. With a name of its own, changed tools are noticed also when its command is another."`
	Command []string `arg:"" optional:"" passthrough:"" help:"The server and its arguments, after --."`

	Upstream string   `placeholder:"URL" help:"A server that is reached over HTTP, in place of a command."`
	Listen   string   `default:"127.0.0.1:8420" placeholder:"ADDR" help:"Where clients of --upstream reach this, under the server's own path. An address beyond this machine needs --tls-key."`
	Also     []string `placeholder:"PATH" help:"Another path of --upstream that passes. May be given several times."`
	Key      string   `placeholder:"FILE" help:"The recorder holds the token for --upstream, and puts it into each call: clients need none, and cannot call around the recorder."`
	listenFlags
	logJSONFlag
	witnessFlags
}

func (c *recordMCPCmd) Run(ctx context.Context, a *app, io stdio) error {
	if len(c.Command) > 0 && strings.HasPrefix(c.Command[0], "-") && c.Command[0] != "--" { // the parser takes it for the server's program
		flag, _, _ := strings.Cut(c.Command[0], "=")
		return hint(fmt.Errorf("unknown flag %s", flag), "%s", cmp.Or(gone()["record mcp "+flag], "run 'jurat record mcp --help' to see what there is; a server's program goes after --"))
	}
	if c.Upstream != "" {
		return c.overHTTP(ctx, a, io)
	}
	if c.Key != "" || len(c.Also)+len(c.Host) > 0 {
		return errors.New("--key, --also and --host go with --upstream: a program's server is asked through a pipe, with what its own settings say")
	}
	program, command, err := programIn("server", c.Command, hint(errors.New("no server is named: write its program after --, with its arguments, or give --upstream"),
		"as in 'jurat record mcp --agent %s -- npx -y @modelcontextprotocol/server-filesystem /srv/files'", c.Agent))
	if err != nil {
		return err
	}
	o, err := c.witness()
	if err = errors.Join(err, flagName("--agent", c.Agent)); err != nil {
		return err
	}
	session, err := evidence.NewRecordID(time.Now(), rand.Reader)
	if err != nil {
		return err
	}
	about := recorder.PipeOptions{Origin: "stdio:" + cmp.Or(c.Server, filepath.Base(program)), Server: cmp.Or(c.Server, strings.Join(command, "\x00")), Chain: cmp.Or(c.Chain, "mcp-"+session)}
	if err := errors.Join(flagName("--server", about.Origin), flagName("--chain", recorder.Chain(c.Agent, about.Chain))); err != nil {
		return err
	}
	o.Agent, o.Pipes, o.Log = c.Agent, true, io.logger(false)
	return a.withStamps(ctx, io, c.keyFlags, c.stampFlags, func(i *installation.Installation) error {
		return record(ctx, i, o, func(r *recorder.Recorder) (string, error) {
			return passed(r, about, exec.Command(program, command[1:]...), io)
		})
	})
}

// overHTTP stands before a server that is reached over HTTP, until it is interrupted.
func (c *recordMCPCmd) overHTTP(ctx context.Context, a *app, io stdio) error {
	o, err := c.witness()
	if len(c.Command) > 0 {
		err = errors.Join(err, errors.New("--upstream names a server, and a command another: give one of them"))
	}
	o.Agent, o.Chain, o.Hosts, o.Log, o.MCP = c.Agent, c.Chain, lowered(c.Host), io.logger(c.LogJSON), &recorder.MCP{URL: c.Upstream, Also: c.Also}
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
	return c.serve(ctx, a, io, o, c.Listen, c.listenFlags, at.EscapedPath())
}

// passed runs a server behind a pipe. A signal goes on to the server, and a second one ends it.
func passed(r *recorder.Recorder, about recorder.PipeOptions, server *exec.Cmd, io stdio) (reason string, err error) {
	pipe, err := r.Pipe(about)
	toServer, noInput := server.StdinPipe()
	fromServer, noOutput := server.StdoutPipe()
	if err := errors.Join(err, noInput, noOutput); err != nil {
		return "it could not begin", err
	}
	_, server.Stderr = io.passing()
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
	failed := pipe.Run(io.in, bare(io.out), fromServer, toServer)
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
