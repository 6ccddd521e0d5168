package operator

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
)

// A Checkpoint states what a log held at one time: how many entries, and one hash over all of them. Its text is that of
// C2SP tlog-checkpoint, without extension lines:
//
//	origin LF size LF base64(root) LF
//
// A log signs it as a note (C2SP signed-note). Only a checkpoint proves the order of a log.
type Checkpoint struct {
	Origin string    // the log's name, which is also its key's
	Size   int64     // how many entries, 0 to MaxEntries
	Root   tlog.Hash // RFC 6962 tree head over them
}

// MaxEntries is how many entries a log can have. Every JSON reader reads whole numbers up to it alike.
const MaxEntries = 1<<53 - 1

// FormatCheckpoint returns the text that a log signs. It returns an error if the origin is not a name, or the size is
// out of range.
func FormatCheckpoint(c Checkpoint) (string, error) {
	if err := checkOrigin(c.Origin); err != nil {
		return "", fmt.Errorf("formatting checkpoint: %w", err)
	}
	if err := checkEntries(c.Size); err != nil {
		return "", fmt.Errorf("formatting checkpoint: %w", err)
	}
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, base64.StdEncoding.EncodeToString(c.Root[:])), nil
}

// ParseCheckpoint reads the text of a checkpoint; the caller checks its signature. It is strict: what parses formats back to the same
// bytes, and any other text is an error.
func ParseCheckpoint(text string) (Checkpoint, error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 {
		return Checkpoint{}, errors.New("parsing checkpoint: want three lines: origin, size, root hash")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err == nil {
		err = checkEntries(size)
	}
	if err != nil {
		return Checkpoint{}, fmt.Errorf("parsing checkpoint: %w", err)
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		return Checkpoint{}, fmt.Errorf("parsing checkpoint: the root hash is not base64 of %d bytes", tlog.HashSize)
	}
	c := Checkpoint{Origin: lines[0], Size: size, Root: tlog.Hash(root)}
	again, err := FormatCheckpoint(c)
	if err != nil {
		return Checkpoint{}, err
	}
	if again != text { // a sign, a leading zero, loose bits or a carriage return in base64
		return Checkpoint{}, errors.New("parsing checkpoint: not in the one form of this content")
	}
	return c, nil
}

// checkEntries bounds sizes for package tlog. The holder of a log's key can sign any number, and from 2^62 on tlog's
// arithmetic overflows and never ends.
func checkEntries(size int64) error {
	if size < 0 || size > MaxEntries {
		return fmt.Errorf("size %d: want 0 to %d, the largest size of a log", size, int64(MaxEntries))
	}
	return nil
}

// SignCheckpoint writes the checkpoint as a note signed with the log's key. It returns an error if the key's name is not the origin.
func SignCheckpoint(c Checkpoint, log note.Signer) (string, error) {
	if log.Name() != c.Origin {
		return "", fmt.Errorf("signing checkpoint: the key is named %q, the log %q", log.Name(), c.Origin)
	}
	text, err := FormatCheckpoint(c)
	if err != nil {
		return "", err
	}
	signed, err := note.Sign(&note.Note{Text: text}, log)
	if err != nil {
		return "", fmt.Errorf("signing checkpoint: %w", err)
	}
	return string(signed), nil
}

// OpenNote is note.Open for notes that are stored and passed on. It also refuses a note with a signature line that is not strict base64, whoever
// signed it: package note reads such lines, and verifiers refute a checkpoint that has one.
func OpenNote(signed string, known note.Verifiers) (*note.Note, error) {
	n, err := note.Open([]byte(signed), known)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(signed[strings.LastIndex(signed, "\n\n")+2:]) { // n lacks a second signature by the same key
		_, signature, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		name, encoded, _ := strings.Cut(signature, " ")
		if _, err := base64.StdEncoding.Strict().DecodeString(encoded); err != nil {
			return nil, fmt.Errorf("the signature of %s is not in the one form that it may have: %w", name, err)
		}
	}
	return n, nil
}

// OpenCheckpoint reads a signed checkpoint. It returns an error unless the log's key signed it. It ignores other
// signatures, but refuses one that is not in the form that OpenNote describes.
func OpenCheckpoint(signed string, log note.Verifier) (Checkpoint, error) {
	n, err := OpenNote(signed, note.VerifierList(log))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("opening checkpoint: %w", err)
	}
	c, err := ParseCheckpoint(n.Text)
	if err != nil {
		return Checkpoint{}, err
	}
	if c.Origin != log.Name() {
		return Checkpoint{}, fmt.Errorf("opening checkpoint: it is of the log %q, not of %q", evidence.Abbreviate(c.Origin), log.Name())
	}
	return c, nil
}

func checkOrigin(origin string) error {
	if origin == "" || !utf8.ValidString(origin) || strings.ContainsFunc(origin, unicode.IsControl) {
		return fmt.Errorf("%q is not a name for a log", evidence.Abbreviate(origin))
	}
	return nil
}

// logKeyType is signed-note's type of Ed25519 keys of logs.
const logKeyType = 1

// LogPublicKey returns the public key in a verifier key of a log, as signed-note writes it: name+hash+base64. It returns an error
// for another kind of key, and for one that is written otherwise: package note reads several texts of one key.
func LogPublicKey(verifier string) (ed25519.PublicKey, error) {
	name, rest, _ := strings.Cut(verifier, "+")
	_, encoded, _ := strings.Cut(rest, "+")
	data, _ := base64.StdEncoding.DecodeString(encoded)
	key := bytes.TrimPrefix(data, []byte{logKeyType})
	if one, err := note.NewEd25519VerifierKey(name, key); err != nil || one != verifier {
		return nil, fmt.Errorf("%q is not the key of a log in its one form: want name+hash+base64 of a type and an Ed25519 public key", evidence.Abbreviate(verifier))
	}
	return key, nil
}
