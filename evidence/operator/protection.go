package operator

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// Protection says how a key is kept: on which token, and what the token says about it. It is only the operator's
// word, taken from a program that keeps keys.
type Protection struct {
	Kind             string `json:"kind"`  // "pkcs11", or another program's own word
	Local            bool   `json:"local"` // the token made the key
	Manufacturer     string `json:"manufacturer,omitempty"`
	Model            string `json:"model,omitempty"`
	NeverExtractable bool   `json:"never_extractable"` // the key could never leave the token in clear
	Serial           string `json:"serial,omitempty"`
}

// Check refuses texts that are too long, or that are unsafe to show on a terminal.
func (p Protection) Check() error {
	const most = 64 // bytes of a text
	for _, text := range []string{p.Kind, p.Manufacturer, p.Model, p.Serial} {
		control := strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 })
		if len(text) > most || control || !utf8.ValidString(text) {
			return errors.New("protection: a text is longer than 64 bytes, or has control characters")
		}
	}
	if p.Kind == "" {
		return errors.New("protection: kind is missing")
	}
	return nil
}
