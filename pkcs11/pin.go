package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/term"
)

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
