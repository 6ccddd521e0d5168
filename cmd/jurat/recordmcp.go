package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"jurat/internal/installation"
	"jurat/internal/uuid7"
	"jurat/recorder"
)

type recordMCPCmd struct {
	Agent   string   `required:"" placeholder:"NAME" help:"The name of the agent, whose client starts this."`
	Chain   string   `placeholder:"NAME" help:"The chain of all that passes. Default: each session has its own."`
	Server  string   `placeholder:"NAME" help:"What records call the server. Default: its program. With a name of its own, changed tools are noticed also when its command is another."`
	Command []string `arg:"" optional:"" passthrough:"" help:"The server and its arguments, after --."`
	witnessFlags
}

// Help is shown by 'jurat record mcp --help'.
func (*recordMCPCmd) Help() string {
	return `Starts a server of the Model Context Protocol and stands between it and its client: an agent such as Claude Desktop, Claude Code, or
any other that starts MCP servers. What passes is not changed. Each use of a tool is sealed with its arguments and its result, and so is everything
else that is asked or told, but for pings, progress and log messages, which are counted.

In the client's configuration put 'jurat record mcp --agent NAME --' before the server's command:

    {"mcpServers": {"files": {"command": "jurat", "args": ["--data", "/var/lib/jurat", "record", "mcp", "--agent", "support",
        "--", "npx", "-y", "@modelcontextprotocol/server-filesystem", "/srv/files"]}}}

If a server says something else of a tool than it said before, in this session or an earlier one, that is an act of its own (recorder_event:
tool_definition_changed), which 'jurat verify' tells of.

    jurat record mcp --agent support -- npx -y @modelcontextprotocol/server-filesystem /srv/files
    jurat record mcp --agent support --chain monday --server files -- python files.py
` + `
In closed mode a request reaches the server once it is in a journal on disk, and an answer reaches the client once its record is in the log. If
that fails, the session ends, and the client hears nothing that is not recorded. In open mode everything passes, and what was missed is
counted and sealed later.
`
}

// Run stands between a client and a server.
func (c *recordMCPCmd) Run(ctx context.Context, a *app, io stdio) error {
	command := c.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	if len(command) == 0 {
		return hint(errors.New("no server is named"), "jurat record mcp --agent %s -- PROGRAM ARGUMENTS", c.Agent)
	}
	program, err := exec.LookPath(command[0])
	if err != nil {
		return fmt.Errorf("the server %s cannot be run: %w", command[0], err)
	}
	o, err := c.witness()
	if err = errors.Join(err, flagName("--agent", c.Agent)); err != nil {
		return err
	}
	session, err := uuid7.New(time.Now(), rand.Reader)
	if err != nil {
		return err
	}
	about := recorder.PipeOptions{Origin: "stdio:" + cmp.Or(c.Server, filepath.Base(program)), Server: cmp.Or(c.Server, strings.Join(command, "\x00")), Chain: cmp.Or(c.Chain, "mcp-"+session)}
	if err := errors.Join(flagName("--server", about.Origin), flagName("--chain", recorder.Chain(c.Agent, about.Chain))); err != nil {
		return err
	}
	o.Agent, o.Pipes, o.Log = c.Agent, true, io.logger(false)
	return a.withStamps(ctx, io, c.keyFlags, c.stampFlags, func(i *installation.Installation) error {
		r, err := recorder.On(ctx, i, o)
		if err != nil {
			return err
		}
		reason, err := passed(r, about, exec.Command(program, command[1:]...), io)
		return errors.Join(err, r.Stop(context.WithoutCancel(ctx), reason))
	})
}

// passed runs a server behind a pipe. A signal goes on to the server, and a second one ends it.
func passed(r *recorder.Recorder, about recorder.PipeOptions, server *exec.Cmd, io stdio) (reason string, err error) {
	pipe, err := r.Pipe(about)
	if err != nil {
		return "it could not begin", err
	}
	toServer, err := server.StdinPipe()
	if err != nil {
		return "it could not begin", err
	}
	fromServer, err := server.StdoutPipe()
	if err != nil {
		return "it could not begin", err
	}
	server.Stderr = os.Stderr
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
