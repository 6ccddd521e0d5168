//go:build !js

package operator

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
)

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

// A Cosigner holds a witness's private key.
type Cosigner struct {
	Witness
	private ed25519.PrivateKey
}

// GenerateCosigner makes a key for a witness. A nil random is crypto/rand. It refuses the names that NewWitness
// refuses, and passes on the errors of random.
func GenerateCosigner(random io.Reader, name string) (*Cosigner, error) {
	if random == nil {
		random = rand.Reader
	}
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(random, seed); err != nil {
		return nil, fmt.Errorf("making the key of a witness: %w", err)
	}
	return newCosigner(name, seed)
}

func newCosigner(name string, seed []byte) (*Cosigner, error) {
	private := ed25519.NewKeyFromSeed(seed)
	w, err := NewWitness(name, private.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, err
	}
	return &Cosigner{Witness: *w, private: private}, nil
}

// ParseCosigner reads what MarshalPrivate writes, and returns an error for any other text.
func ParseCosigner(text string) (*Cosigner, error) {
	parts := strings.SplitN(text, "+", 5) // base64 may hold one more
	wrong := errors.New("not the private key of a witness: want PRIVATE+KEY+name+hash+base64")
	if len(parts) != 5 || !strings.HasPrefix(text, cosignerPrefix) {
		return nil, wrong
	}
	data, err := base64.StdEncoding.Strict().DecodeString(parts[4])
	if err != nil || len(data) != 1+ed25519.SeedSize || data[0] != cosignatureType {
		return nil, wrong
	}
	c, err := newCosigner(parts[2], data[1:])
	if err != nil {
		return nil, err
	}
	if c.MarshalPrivate() != text {
		return nil, wrong
	}
	return c, nil
}

// MarshalPrivate writes the private key in the form in which package note writes those of logs.
func (c *Cosigner) MarshalPrivate() string {
	data := append([]byte{cosignatureType}, c.private.Seed()...)
	return fmt.Sprintf("%s%s+%08x+%s", cosignerPrefix, c.name, c.KeyHash(), base64.StdEncoding.EncodeToString(data))
}

// Cosign returns the line by which the witness states: at this time, the checkpoint with this text was of the largest
// tree that it had seen of the log, and it had seen no other history. The caller must make sure that this is true.
func (c *Cosigner) Cosign(text string, at time.Time) string {
	seconds := uint64(max(0, at.Unix()))
	line := binary.BigEndian.AppendUint32(nil, c.KeyHash())
	line = binary.BigEndian.AppendUint64(line, seconds)
	line = append(line, ed25519.Sign(c.private, cosigned([]byte(text), seconds))...)
	return "— " + c.name + " " + base64.StdEncoding.EncodeToString(line) + "\n"
}
