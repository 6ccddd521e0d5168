package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"jurat/internal/installation"
	"jurat/recorder"
)

type recordRunCmd struct {
	Agent   string   `required:"" placeholder:"NAME" help:"The name of the agent."`
	Chain   string   `placeholder:"NAME" help:"One chain for the whole run. Default: each conversation has its own."`
	Command []string `arg:"" optional:"" passthrough:"" help:"The program and its arguments, after --."`
	recorderFlags
}

// Run runs the program.
func (c *recordRunCmd) Run(ctx context.Context, a *app, io stdio) error {
	command := c.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	if len(command) == 0 {
		return hint(errors.New("no program is named: write it after --, with its arguments"), "as in 'jurat record run --agent %s -- python agent.py'", c.Agent)
	}
	program, err := exec.LookPath(command[0])
	if err != nil {
		return fmt.Errorf("the program %s cannot be run: %w", command[0], err)
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
		return record(ctx, i, o, func(h http.Handler) (string, error) {
			child := exec.Command(program, command[1:]...)
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
	go func() { ended <- serveCalls(served, l, h, log) }()
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
