package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"jurat/internal/pkcs11"
	"jurat/internal/token"
)

type serveCmd struct {
	Listen string `placeholder:"PATH" env:"JURAT_TOKEN_LISTEN" help:"Listen on this Unix socket. Only the user that runs jurat-token reaches it."`
	Group  string `placeholder:"NAME" env:"JURAT_TOKEN_GROUP" help:"With --listen: members of this group reach the socket, too."`
}

func (c *serveCmd) Run(ctx context.Context, io streams, a *app) error {
	return a.with(io, func(t *pkcs11.Token) error {
		server := token.NewServer(t, slog.New(slog.NewTextHandler(io.err, nil)))
		if c.Listen == "" {
			return c.child(ctx, io, server)
		}
		listener, err := listen(c.Listen, c.Group)
		if err != nil {
			return err
		}
		if err := begin(ctx, io, t); err != nil {
			return errors.Join(err, listener.Close())
		}
		return server.Listen(ctx, listener)
	})
}

// begin logs in, so that a wrong PIN is known at once. A token that is not there yet may come.
func begin(ctx context.Context, io streams, t *pkcs11.Token) error {
	err := t.Open(ctx)
	if errors.Is(err, token.ErrUnavailable) {
		fmt.Fprintf(io.err, "jurat-token: %v; waiting for it\n", err)
		return nil
	}
	return err
}

// child answers on standard input and output. It ends with jurat, which closes standard input, and not by the Ctrl-C that is
// meant for jurat: what is under way there still wants signatures.
func (c *serveCmd) child(ctx context.Context, io streams, server *token.Server) error {
	if c.Group != "" {
		return errors.New("--group: the group of what? There is no socket without --listen")
	}
	signal.Ignore(os.Interrupt)
	ended, stop := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- server.Serve(ended, io.in, io.out, io.in) }()
	select {
	case err := <-served:
		return err
	case <-ended.Done(): // a read of standard input may go on until the program ends
		return nil
	}
}

// with does something with the token that the command line names.
func (a *app) with(io streams, do func(*pkcs11.Token) error) error {
	name, err := a.name()
	if err != nil {
		return err
	}
	if a.Sessions < 1 || a.Sessions > 1000 {
		return errors.New("--sessions: want 1 to 1000")
	}
	pin, err := a.pin()
	if err != nil {
		return err
	}
	module, err := pkcs11.Load(a.Module)
	if err != nil {
		return err
	}
	t := pkcs11.New(pkcs11.Config{Module: module, Token: name, PIN: pin, Sessions: a.Sessions, Again: a.Again, AllowImported: a.AllowImported})
	err = do(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(err, t.Close(ctx))
}

// name is the token that --token names: by its label, or by a URI.
func (a *app) name() (pkcs11.URI, error) {
	if len(a.Token) < len("pkcs11:") || a.Token[:len("pkcs11:")] != "pkcs11:" {
		return pkcs11.URI{Token: a.Token}, nil
	}
	return pkcs11.ParseURI(a.Token)
}
