// Command jurat-token signs for jurat with keys on a hardware token, through the vendor's PKCS #11 library. It is a program of
// its own: jurat stays free of vendors' libraries and of PINs, and survives a library that crashes. docs/token.md is about it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"jurat/internal/token"
)

// app is the command line.
type app struct {
	Module   string `placeholder:"FILE" required:"" env:"JURAT_TOKEN_MODULE" help:"The vendor's PKCS #11 library, such as /usr/lib/softhsm/libsofthsm2.so."`
	Token    string `placeholder:"URI" env:"JURAT_TOKEN_NAME" help:"Which token: its label, or a URI such as pkcs11:token=house;serial=0123. Default: the only one that is present."`
	Sessions int    `default:"8" help:"How many signatures the token makes at once."`

	PINFile       string `name:"pin-file" placeholder:"FILE" env:"JURAT_TOKEN_PIN_FILE" help:"The file that has the PIN. Not everybody may be able to read it."`
	PINCredential string `name:"pin-credential" placeholder:"NAME" env:"JURAT_TOKEN_PIN_CREDENTIAL" help:"The systemd credential that has the PIN."`
	Again         bool   `help:"Try the PIN once although a wrong one was tried since the last right one. For the person who has put it right."`
	AllowImported bool   `name:"allow-imported" help:"Let keys sign that the token does not say it made itself. Keys that can be exported never sign."`

	Serve    serveCmd    `cmd:"" default:"withargs" help:"Answer jurat on standard input and output, or on a socket (default)."`
	Tokens   tokensCmd   `cmd:"" help:"List the tokens that the library finds. This needs no PIN."`
	Keys     keysCmd     `cmd:"" help:"List the keys that may sign."`
	Generate generateCmd `cmd:"" help:"Make a key on the token, and print its public half."`
	Public   publicCmd   `cmd:"" help:"Print the public half of a key."`
}

const about = `jurat-token signs for jurat with keys on a hardware token. jurat starts it, or reaches it over a socket. jurat never sees the PIN.

Begin with what is there, then make a key:
  jurat-token --module /usr/lib/softhsm/libsofthsm2.so tokens
  jurat-token --module ... --token house generate "pkcs11:token=house;object=mia" > mia.pem

Have jurat use it as a child, or run it by itself, under another user:
  export JURAT_TOKEN_HELPER="jurat-token --module /usr/lib/softhsm/libsofthsm2.so --token house --pin-file /etc/jurat/pin"
  jurat-token --module ... --token house --pin-file /etc/jurat/pin --listen /run/jurat-token.sock --group jurat

The PIN comes from --pin-file or --pin-credential, or else from a prompt on the terminal. A PIN is tried once.
Exit codes: 0 as asked, 2 it could not be done.`

// streams are what the program reads and writes.
type streams struct {
	in       io.ReadCloser
	out, err io.Writer
}

func main() { os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})) }

const exitCannot = 2

func run(args []string, io streams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var a app
	code := -1
	parser, err := kong.New(&a, kong.Name("jurat-token"), kong.Description(about), kong.Writers(io.out, io.err), kong.Exit(func(c int) { code = c }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(io, &a))
	if err != nil {
		return report(io, err)
	}
	parsed, err := parser.Parse(args)
	if code >= 0 { // --help has been answered
		return code
	}
	if err == nil {
		err = parsed.Run()
	}
	return report(io, err)
}

func report(io streams, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(io.err, "jurat-token: %v\n", err)
	if errors.Is(err, token.ErrPIN) {
		fmt.Fprintln(io.err, "hint: put the PIN right, and add --again, which allows one more try")
	}
	return exitCannot
}
