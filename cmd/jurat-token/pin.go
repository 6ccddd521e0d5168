package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/term"

	"jurat/internal/token"
)

// pin reads the PIN from where the command line says that it is.
func (a *app) pin() ([]byte, error) {
	switch {
	case a.PINFile != "" && a.PINCredential != "":
		return nil, errors.New("--pin-file and --pin-credential: only one of them can have the PIN")
	case a.PINFile != "":
		return pinFrom(a.PINFile)
	case a.PINCredential != "":
		folder := os.Getenv("CREDENTIALS_DIRECTORY")
		if folder == "" || a.PINCredential != filepath.Base(a.PINCredential) {
			return nil, fmt.Errorf("%w: systemd has given no credential %q: see LoadCredentialEncrypted= in systemd.exec(5)", token.ErrPIN, a.PINCredential)
		}
		return pinFrom(filepath.Join(folder, a.PINCredential))
	}
	return prompted(a.Token)
}

// pinFrom reads a file, and drops the line's end that editors add.
func pinFrom(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("reading the PIN: %w", err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("reading the PIN: everybody on this machine can read %s: run 'chmod o= %s', and change the PIN", file, file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the PIN: %w", err)
	}
	return checkedPIN(bytes.TrimRight(text, "\r\n"))
}

// prompted asks on the terminal, whatever standard input is.
func prompted(name string) ([]byte, error) {
	terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: name --pin-file or --pin-credential, as there is no terminal to ask on", token.ErrPIN)
	}
	defer terminal.Close()
	fmt.Fprintf(terminal, "PIN of token %q: ", name)
	pin, err := term.ReadPassword(int(terminal.Fd()))
	fmt.Fprintln(terminal)
	if err != nil {
		return nil, fmt.Errorf("reading the PIN: %w", err)
	}
	return checkedPIN(pin)
}

// checkedPIN refuses what no PIN is, as each try of a wrong one counts.
func checkedPIN(pin []byte) ([]byte, error) {
	const most = 255
	if len(pin) == 0 || len(pin) > most || bytes.ContainsAny(pin, "\r\n\x00") {
		return nil, fmt.Errorf("%w: want one line of 1 to %d bytes", token.ErrPIN, most)
	}
	return pin, nil
}
