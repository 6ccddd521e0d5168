// Command jurat-pkcs11 signs for jurat with keys on a hardware token, through the vendor's PKCS #11 library. It is a program and a module of its
// own: jurat stays free of C, of vendors' libraries and of PINs, and survives a library that crashes. docs/token.md is about it.
//
// A token locks itself after a few wrong PINs. So a PIN is tried once in a process, and not at all where the token says that a wrong one was
// tried since the last right one: an earlier process may have tried the same.
//
// A key signs only if the token says that the key is sensitive and cannot be exported, and has been so since the token made it. --allow-imported
// drops the second demand.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/term"
)

const usage = `usage: jurat-pkcs11 --module FILE [OPTION]... [generate URI | public URI]

Signs for jurat with keys on a hardware token. jurat starts it, and never sees the PIN:

  export JURAT_TOKEN_HELPER="jurat-pkcs11 --module /usr/lib/softhsm/libsofthsm2.so --token house --pin-file /etc/jurat/pin"

generate makes a key on the token, such as pkcs11:token=house;object=mia. It and public print the public half of a key.
Without a --pin-file, the program asks for the PIN on the terminal. A PIN is tried once.
Exit codes: 0 as asked, 2 it could not be done, 3 the PIN is wrong, missing or locked.

`

type options struct {
	module, token, pinFile, algorithm string
	sessions                          int
	again, imported                   bool
}

// Exit codes. jurat reads exitPIN, and starts no further process then.
const (
	exitCannot = 2
	exitPIN    = 3
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, in io.Reader, out, says io.Writer) int {
	var o options
	flags := flag.NewFlagSet("jurat-pkcs11", flag.ContinueOnError)
	flags.SetOutput(says)
	flags.StringVar(&o.module, "module", os.Getenv("JURAT_TOKEN_MODULE"), "the vendor's PKCS #11 library ($JURAT_TOKEN_MODULE)")
	flags.StringVar(&o.token, "token", os.Getenv("JURAT_TOKEN_NAME"), "the token's label or URI, as pkcs11:serial=0123 ($JURAT_TOKEN_NAME). Default: the only one")
	flags.StringVar(&o.pinFile, "pin-file", os.Getenv("JURAT_TOKEN_PIN_FILE"), "the file that has the PIN, which not everybody may read ($JURAT_TOKEN_PIN_FILE)")
	flags.StringVar(&o.algorithm, "alg", "ES256", "of generate: ES256 or RS256")
	flags.IntVar(&o.sessions, "sessions", 8, "how many signatures the token makes at once")
	flags.BoolVar(&o.again, "again", false, "try the PIN once although a wrong one was tried; for the person who corrected it")
	flags.BoolVar(&o.imported, "allow-imported", false, "let keys sign that the token does not say it made. Keys that can be exported never sign")
	flags.Usage = func() {
		fmt.Fprint(says, usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return exitCannot
	}
	err := o.do(flags.Args(), in, out)
	if err == nil {
		return 0
	}
	fmt.Fprintf(says, "jurat-pkcs11: %v\n", err)
	if errors.Is(err, errPIN) {
		fmt.Fprintln(says, "hint: correct the PIN, and run 'jurat-pkcs11 --again public URI' once")
		return exitPIN
	}
	return exitCannot
}

func (o options) do(words []string, in io.Reader, out io.Writer) error {
	serves := len(words) == 0
	if !serves && (len(words) != 2 || words[0] != "generate" && words[0] != "public") {
		return fmt.Errorf("unknown command %q: see jurat-pkcs11 --help", words)
	}
	if o.module == "" || o.sessions < 1 || o.sessions > 1000 {
		return errors.New("want --module FILE, and --sessions from 1 to 1000")
	}
	signal.Ignore(os.Interrupt) // Ctrl-C is meant for jurat, which finishes what is under way and then closes the input
	t, err := open(o)
	if err != nil {
		return err
	}
	defer t.ctx.Close()
	if serves {
		return serve(t.do, in, out, o.sessions)
	}
	a := t.do(request{Do: map[string]string{"public": "key"}[words[0]], URI: words[1]})
	if words[0] == "generate" {
		a = t.do(request{Do: "generate", URI: words[1], Algorithm: o.algorithm})
	}
	if a.Error != nil {
		return errors.New(a.Error.Message)
	}
	return pem.Encode(out, &pem.Block{Type: "PUBLIC KEY", Bytes: a.Key.Public})
}

var errPIN = errors.New("the PIN is wrong, missing or locked")

// pin reads the PIN from its file, or else asks on the terminal, whatever standard input is.
func (o options) pin() (string, error) {
	if o.pinFile != "" {
		return pinFrom(o.pinFile)
	}
	terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return "", fmt.Errorf("%w: name a --pin-file, as there is no terminal to ask on", errPIN)
	}
	defer terminal.Close()
	fmt.Fprintf(terminal, "PIN of token %q: ", o.token)
	pin, err := term.ReadPassword(int(terminal.Fd()))
	fmt.Fprintln(terminal)
	if err != nil {
		return "", fmt.Errorf("reading the PIN: %w", err)
	}
	return checkedPIN(pin)
}

// pinFrom reads a file, and drops the line end that editors add.
func pinFrom(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", fmt.Errorf("reading the PIN: %w", err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return "", fmt.Errorf("reading the PIN: everybody on this machine can read %s: run 'chmod o= %s', and change the PIN", file, file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading the PIN: %w", err)
	}
	return checkedPIN(bytes.TrimRight(text, "\r\n"))
}

// checkedPIN refuses what cannot be a PIN, as each try of a wrong one counts.
func checkedPIN(pin []byte) (string, error) {
	const most = 255
	if len(pin) == 0 || len(pin) > most || bytes.ContainsAny(pin, "\r\n\x00") {
		return "", fmt.Errorf("%w: want one line of 1 to %d bytes", errPIN, most)
	}
	return string(pin), nil
}

// A request asks for one thing: "key", "generate" or "sign". docs/token.md specifies it.
type request struct {
	ID        uint32 `json:"id"`
	Do        string `json:"do"`
	URI       string `json:"uri"`
	Algorithm string `json:"alg,omitempty"`    // of generate
	Digest    []byte `json:"digest,omitempty"` // of sign: SHA-256 of the message
}

// An answer has the id of its request.
type answer struct {
	ID        uint32   `json:"id"`
	Key       *keyInfo `json:"key,omitempty"`
	Signature []byte   `json:"signature,omitempty"`
	Error     *problem `json:"error,omitempty"`
}

type problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// keyInfo says of a key what jurat has to know.
type keyInfo struct {
	URI        string     `json:"uri"`
	Algorithm  string     `json:"alg"`
	Public     []byte     `json:"public"` // DER SubjectPublicKeyInfo
	Protection protection `json:"protection"`
}

// protection is what the token says of how it keeps a key.
type protection struct {
	Kind             string `json:"kind"`
	Manufacturer     string `json:"manufacturer,omitempty"`
	Model            string `json:"model,omitempty"`
	Serial           string `json:"serial,omitempty"`
	NeverExtractable bool   `json:"never_extractable"`
	Local            bool   `json:"local"`
}

const maxLine = 64 << 10

// serve answers requests, one a line, until there are no more. As many are answered at once as the token has sessions.
func serve(do func(request) answer, in io.Reader, out io.Writer, sessions int) error {
	var working sync.WaitGroup
	defer working.Wait()
	var writing sync.Mutex
	answers, slots := json.NewEncoder(out), make(chan struct{}, sessions)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		slots <- struct{}{}
		working.Go(func() {
			defer func() { <-slots }()
			a := do(r)
			writing.Lock()
			defer writing.Unlock()
			if err := answers.Encode(a); err != nil {
				die(err) // jurat is gone
			}
		})
	}
	return lines.Err()
}

// die ends the program when the token or jurat is gone. jurat starts it again. Requests under way stay without an answer.
func die(err error) {
	fmt.Fprintf(os.Stderr, "jurat-pkcs11: %v\n", err)
	os.Exit(exitCannot)
}
