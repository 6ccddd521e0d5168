package operator

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"

	"jurat/evidence"
)

// A witness cosigns checkpoints of logs that it has seen grow, and nothing else (C2SP tlog-cosignature, the Ed25519 form). Its
// signature is a line of the signed note, beside the log's. A reader who does not know the witness skips the line.

// cosignatureType is the byte by which signed-note tells the keys of cosigners from those of logs.
const cosignatureType = 0x04

// cosignatureSize is the size of time and signature, which follow the key's hash in a witness's line.
const cosignatureSize = 8 + ed25519.SignatureSize

// A Witness is the public half of a witness's key. It is a note.Verifier of cosignatures.
type Witness struct {
	name string
	key  ed25519.PublicKey
}

var _ note.Verifier = (*Witness)(nil)

// ParseWitness reads a verifier key, as signed-note writes it: name+hash+base64, with the type byte 0x04. It is strict: what
// parses is written back as the same text, and any other text is an error.
func ParseWitness(text string) (*Witness, error) {
	name, rest, _ := strings.Cut(text, "+")
	_, encoded, _ := strings.Cut(rest, "+")
	data, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(data) != 1+ed25519.PublicKeySize {
		return nil, fmt.Errorf("%q is not the key of a witness: want name+hash+base64 of a type and an Ed25519 public key", evidence.Abbreviate(text))
	}
	w, err := NewWitness(name, data[1:])
	if err != nil {
		return nil, err
	}
	if w.String() != text {
		return nil, fmt.Errorf("the key of the witness %q is not in its one form, of type %d and with the hash %08x: a key of another type is not for cosigning", evidence.Abbreviate(name), cosignatureType, w.KeyHash())
	}
	return w, nil
}

// NewWitness gives a public key the name of a witness. It returns an error for a name with spaces or plus signs, and for a key of small
// order.
func NewWitness(name string, key ed25519.PublicKey) (*Witness, error) {
	if !isKeyName(name) {
		return nil, fmt.Errorf("%q is not a name for a witness: want one without spaces and plus signs, such as witness.example/w1", evidence.Abbreviate(name))
	}
	if _, err := evidence.AlgorithmOf(key); err != nil {
		return nil, fmt.Errorf("the key of the witness %q: %w", evidence.Abbreviate(name), err)
	}
	return &Witness{name: name, key: bytes.Clone(key)}, nil
}

// isKeyName is signed-note's rule for names of keys.
func isKeyName(name string) bool {
	return name != "" && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '+' })
}

// String writes the verifier key.
func (w *Witness) String() string {
	return fmt.Sprintf("%s+%08x+%s", w.name, w.KeyHash(), base64.StdEncoding.EncodeToString(w.typed()))
}

func (w *Witness) typed() []byte { return append([]byte{cosignatureType}, w.key...) }

// Name implements note.Verifier.
func (w *Witness) Name() string { return w.name }

// KeyHash implements note.Verifier.
func (w *Witness) KeyHash() uint32 {
	sum := sha256.Sum256(append([]byte(w.name+"\n"), w.typed()...))
	return binary.BigEndian.Uint32(sum[:])
}

// PublicKey returns the key without the name. Cosignatures do not cover the name, so two witnesses must not share a
// key.
func (w *Witness) PublicKey() ed25519.PublicKey { return bytes.Clone(w.key) }

// Verify implements note.Verifier: sig is a time and the signature over it and the checkpoint's text.
func (w *Witness) Verify(text, sig []byte) bool {
	if len(sig) != cosignatureSize || sig[0]&0x80 != 0 {
		return false
	}
	at := binary.BigEndian.Uint64(sig)
	return ed25519.Verify(w.key, cosigned(text, at), sig[8:])
}

// cosigned is the text that a witness signs.
func cosigned(text []byte, at uint64) []byte {
	return append(fmt.Appendf(nil, "cosignature/v1\ntime %d\n", at), text...)
}

// A Cosigner holds a witness's private key.
type Cosigner struct {
	Witness
	private ed25519.PrivateKey
}

const cosignerPrefix = "PRIVATE+KEY+"

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

// A Cosignature is a witness's statement about a checkpoint.
type Cosignature struct {
	Witness *Witness
	At      time.Time // when, by the witness's clock
	Line    string    // of the signed note, with its line feed
}

// IsAfter reports whether a cosignature is later than a moment. A witness can state any second below 2^63; package time cannot compare
// most of them.
func (c *Cosignature) IsAfter(moment time.Time) bool { return c.At.Unix() > moment.Unix() }

// Stated formats the time at which the witness says that it cosigned, for people.
func (c *Cosignature) Stated() string {
	if c.At.Unix() > lastSecond {
		return fmt.Sprintf("second %d since 1970", c.At.Unix())
	}
	return c.At.Format(time.RFC3339)
}

const lastSecond = 253402300799 // the last that RFC 3339 can write

// Cosignatures returns the cosignatures of these witnesses on a signed checkpoint, each once. It ignores those of
// other witnesses. It returns an error if a cosignature in the name of one of these witnesses is invalid: it was
// forged.
func Cosignatures(signed string, witnesses ...*Witness) ([]Cosignature, error) {
	known := make([]note.Verifier, len(witnesses))
	for i, w := range witnesses {
		known[i] = w
	}
	n, err := OpenNote(signed, note.VerifierList(known...))
	if unverified := (*note.UnverifiedNoteError)(nil); errors.As(err, &unverified) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading cosignatures: %w", err)
	}
	var found []Cosignature
	for _, s := range n.Sigs {
		data, err := base64.StdEncoding.DecodeString(s.Base64)
		if err != nil {
			return nil, fmt.Errorf("reading cosignatures: %w", err)
		}
		for _, w := range witnesses {
			if w.name == s.Name && w.KeyHash() == s.Hash {
				found = append(found, Cosignature{w, time.Unix(int64(binary.BigEndian.Uint64(data[4:])), 0).UTC(), "— " + s.Name + " " + s.Base64 + "\n"})
			}
		}
	}
	return found, nil
}
