package evidence

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A Checkpoint says what a log held at one time: so many entries, and one hash over all of them. Its text is that of
// C2SP tlog-checkpoint, without extension lines:
//
//	origin LF size LF base64(root) LF
//
// and a log signs it as a note (C2SP signed-note). The order of a log is proved by nothing else.
type Checkpoint struct {
	Origin string    // the log's name, which is also its key's
	Size   int64     // how many entries, 0 to MaxEntries
	Root   tlog.Hash // RFC 6962 tree head over them
}

// MaxEntries is how many entries a log can have at most: the index of each is a whole number that every reader of JSON reads alike.
const MaxEntries = maxExact

// FormatCheckpoint writes the text that is signed.
func FormatCheckpoint(c Checkpoint) (string, error) {
	if err := checkOrigin(c.Origin); err != nil {
		return "", fmt.Errorf("formatting checkpoint: %w", err)
	}
	if err := checkEntries(c.Size); err != nil {
		return "", fmt.Errorf("formatting checkpoint: %w", err)
	}
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, base64.StdEncoding.EncodeToString(c.Root[:])), nil
}

// ParseCheckpoint reads the text of a checkpoint, whose signature the caller has checked or will check. It is strict:
// what parses formats back to the same bytes.
func ParseCheckpoint(text string) (Checkpoint, error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || lines[3] != "" {
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
		return Checkpoint{}, errors.New("parsing checkpoint: not in the one form that this content has")
	}
	return c, nil
}

// checkEntries bounds what is computed with. Whoever has a log's key can sign any number, and from 2^62 on the arithmetic of package tlog
// overflows and does not end.
func checkEntries(size int64) error {
	if size < 0 || size > MaxEntries {
		return fmt.Errorf("size %d: want 0 to %d, as no log can have more entries", size, int64(MaxEntries))
	}
	return nil
}

// SignCheckpoint writes the checkpoint as a note signed by the log, whose key must have the log's name.
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

// OpenCheckpoint reads a signed checkpoint, and returns it only if the log's key signed it. Signatures by others may
// stand beside: they are neither needed nor checked.
func OpenCheckpoint(signed string, log note.Verifier) (Checkpoint, error) {
	n, err := note.Open([]byte(signed), note.VerifierList(log))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("opening checkpoint: %w", err)
	}
	c, err := ParseCheckpoint(n.Text)
	if err != nil {
		return Checkpoint{}, err
	}
	if c.Origin != log.Name() {
		return Checkpoint{}, fmt.Errorf("opening checkpoint: it is of the log %q, not of %q", abbreviate(c.Origin), log.Name())
	}
	return c, nil
}

func checkOrigin(origin string) error {
	if origin == "" || !utf8.ValidString(origin) || strings.ContainsFunc(origin, unicode.IsControl) {
		return fmt.Errorf("%q is no name for a log", abbreviate(origin))
	}
	return nil
}
