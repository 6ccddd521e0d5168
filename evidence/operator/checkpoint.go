package operator

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
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
	if err := cmp.Or(checkOrigin(c.Origin), checkEntries(c.Size)); err != nil {
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
	if err := checkNoteKey(key); err != nil {
		return nil, fmt.Errorf("the key of the log %q: %w", evidence.Abbreviate(name), err)
	}
	return key, nil
}

// checkNoteKey refuses what package note takes for a key: what is no point, or of small order, so that one signature fits every checkpoint.
func checkNoteKey(key ed25519.PublicKey) error {
	der, err := evidence.MarshalPublicKey(key)
	if err == nil {
		_, err = evidence.ParsePublicKey(der)
	}
	return err
}

// ConsistencyFormat is the version of the consistency file format that this package writes and reads.
const ConsistencyFormat = "jurat/consistency/v1"

// A Consistency proves that a log of one size is the beginning of the same log at another size (RFC 9162, section
// 2.1.4): the log changed, moved and dropped nothing. Or it proves a fork: see ErrFork. Check compares it with two
// signed checkpoints.
type Consistency struct {
	Origin   string // the log's name
	From, To int64  // the two sizes, the smaller first
	Proof    []tlog.Hash
}

// maxConsistency exceeds the number of nodes that any proof needs.
const maxConsistency = 64

// consistencyForm is a proof as it is written, its members in canonical order.
type consistencyForm struct {
	Format string   `json:"format"`
	From   int64    `json:"from"`
	Origin string   `json:"origin"`
	Proof  [][]byte `json:"proof"`
	To     int64    `json:"to"`
}

// Marshal returns the proof as a file: canonical JSON and a line feed. It returns an error if origin, sizes or number
// of nodes are out of range.
func (c *Consistency) Marshal() ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	form := consistencyForm{Format: ConsistencyFormat, From: c.From, Origin: c.Origin, To: c.To}
	for _, node := range c.Proof {
		form.Proof = append(form.Proof, bytes.Clone(node[:]))
	}
	doc, err := json.Marshal(form)
	if err != nil {
		return nil, fmt.Errorf("writing consistency proof: %w", err)
	}
	return append(doc, '\n'), nil
}

func (c *Consistency) check() error {
	if err := checkOrigin(c.Origin); err != nil {
		return fmt.Errorf("origin: %w", err)
	}
	if c.From < 0 || c.From > c.To || c.To > MaxEntries {
		return fmt.Errorf("from %d to %d: want two sizes, the smaller first", c.From, c.To)
	}
	if len(c.Proof) > maxConsistency {
		return fmt.Errorf("proof: %d nodes: want at most %d", len(c.Proof), maxConsistency)
	}
	return nil
}

// ParseConsistency reads a proof. It is strict: what parses marshals back to the same bytes. Its error has an *evidence.SyntaxError in
// its chain where a place in the file is wrong.
func ParseConsistency(file []byte) (*Consistency, error) {
	c, err := parseConsistency(file)
	if err != nil {
		return nil, fmt.Errorf("reading consistency proof: %w", err)
	}
	return c, nil
}

func parseConsistency(file []byte) (*Consistency, error) {
	doc, ok := bytes.CutSuffix(file, []byte("\n"))
	if !ok {
		return nil, &evidence.SyntaxError{Offset: int64(len(file)), Reason: "the file ends with a line feed"}
	}
	var form consistencyForm
	if err := evidence.DecodeForm(doc, &form); err != nil {
		return nil, err
	}
	if form.Format != ConsistencyFormat {
		return nil, &evidence.SyntaxError{Pointer: "/format", Reason: fmt.Sprintf("want %q", ConsistencyFormat)}
	}
	c := &Consistency{Origin: form.Origin, From: form.From, To: form.To}
	for i, node := range form.Proof {
		if len(node) != tlog.HashSize {
			return nil, &evidence.SyntaxError{Pointer: fmt.Sprintf("/proof/%d", i), Reason: fmt.Sprintf("%d bytes: want %d", len(node), tlog.HashSize)}
		}
		c.Proof = append(c.Proof, tlog.Hash(node))
	}
	return c, c.check()
}

// ErrFork says that one key signed two histories, and that the proof shows this to any reader.
var ErrFork = errors.New("the two checkpoints are of two histories")

// Check compares the proof with two checkpoints whose signatures the caller has checked. An error with ErrFork in its
// chain proves that the smaller log is not the beginning of the larger one. The nodes lead to the larger root, so
// they are in that tree, and they give another root at the smaller size. Such nodes cannot be forged. Any other error
// says nothing about the log: anyone can make a proof that does not hold.
func (c *Consistency) Check(small, large Checkpoint) error {
	if small.Origin != c.Origin || large.Origin != c.Origin || small.Size != c.From || large.Size != c.To {
		return fmt.Errorf("the proof is from %d to %d entries of the log %q, not between these checkpoints", c.From, c.To, evidence.Abbreviate(c.Origin))
	}
	if err := c.check(); err != nil {
		return err
	}
	switch {
	case c.From == c.To && small.Root != large.Root:
		return fmt.Errorf("%w: they have %d entries and different roots", ErrFork, c.From)
	case c.From == 0 && small.Root != EmptyRoot():
		return fmt.Errorf("%w: the one of 0 entries is not that of an empty log", ErrFork)
	case c.From == 0 && len(c.Proof) > 0:
		return errors.New("every log begins empty, so a proof from 0 entries has no nodes")
	case c.From == 0:
		return nil
	}
	before, after, complete := c.roots()
	inside := complete && after == large.Root // the nodes are in the larger tree
	if inside && before != small.Root {
		return fmt.Errorf("%w: the first %d of the %d entries have another root than was signed for %d", ErrFork, c.From, c.To, c.From)
	}
	proof := c.Proof
	if inside && c.From&(c.From-1) == 0 {
		proof = proof[1:] // RFC 9162 leaves this node out
	}
	if err := tlog.CheckTree(tlog.TreeProof(proof), large.Size, large.Root, small.Size, small.Root); err != nil {
		return fmt.Errorf("the proof from %d to %d entries does not hold; it may have been damaged at its source or on the way: %w", c.From, c.To, err)
	}
	return nil
}

// roots computes the two roots that the nodes lead to, by RFC 9162, section 2.1.4.2, without its step 2: where the smaller size is a
// power of two, roots computes the smaller root, too. A proof of a fork there has one node more, the root of that size.
func (c *Consistency) roots() (small, large tlog.Hash, ok bool) {
	if c.From < 1 || c.From >= c.To || len(c.Proof) == 0 {
		return small, large, false
	}
	first, last := c.From-1, c.To-1
	for first&1 == 1 {
		first, last = first>>1, last>>1
	}
	small, large = c.Proof[0], c.Proof[0]
	for _, node := range c.Proof[1:] {
		switch {
		case last == 0:
			return small, large, false
		case first&1 == 1 || first == last:
			small, large = tlog.NodeHash(node, small), tlog.NodeHash(node, large)
			for first&1 == 0 && first > 0 {
				first, last = first>>1, last>>1
			}
		default:
			large = tlog.NodeHash(large, node)
		}
		first, last = first>>1, last>>1
	}
	return small, large, last == 0
}

// EmptyRoot is the tree hash of a log without entries.
func EmptyRoot() tlog.Hash { return tlog.Hash(evidence.DigestOf(nil)) }

// ErrEntries says that the entries are wrong. Errors of reading them are other errors.
var ErrEntries = errors.New("these are not the entries that the log signed")

// spelling is how many bytes a line can have in addition to its entry: a byte order mark, a carriage return, a line
// feed.
const spelling = 5

// ReadEntries reads the entries of a log: one canonical JSON object and a line feed each. It holds one entry at a
// time. It ignores a byte order mark before the first entry and carriage returns before line feeds: other programs
// add them, and no entry contains them. It returns ErrEntries if a line is not an entry, the error of take, or the
// error of reading.
func ReadEntries(from io.Reader, take func(index int64, line []byte, entry *evidence.Entry) error) error {
	lines := bufio.NewReaderSize(from, evidence.MaxEntry+spelling)
	for index := int64(0); ; index++ {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		case errors.Is(err, io.EOF) && len(line) <= evidence.MaxEntry:
			return fmt.Errorf("%w: entry %d does not end with a line feed", ErrEntries, index)
		case errors.Is(err, io.EOF), errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("%w: entry %d is longer than %d bytes", ErrEntries, index, evidence.MaxEntry)
		case err != nil:
			return fmt.Errorf("reading the log's entries: %w", err)
		}
		if index == 0 {
			if err := evidence.CheckEncoding(line); err != nil {
				return fmt.Errorf("%w: %w", ErrEntries, err)
			}
			line = evidence.CutMark(line)
		}
		line = bytes.TrimSuffix(line[:len(line)-1], []byte("\r"))
		entry, err := evidence.ParseEntry(line)
		if err != nil {
			return fmt.Errorf("%w: entry %d: %w", ErrEntries, index, err)
		}
		if err := take(index, line, entry); err != nil {
			return err
		}
	}
}

// A Frontier is the right edge of a tree that grows by leaves: one hash for each bit of its size, the largest subtree
// first. The root can be computed from it alone (RFC 9162, section 2.1.1). The zero Frontier is that of an empty log.
type Frontier struct {
	size  int64
	nodes []tlog.Hash
}

// Add adds the hash of the next leaf.
func (f *Frontier) Add(leaf tlog.Hash) {
	f.nodes = append(f.nodes, leaf)
	for full := f.size; full&1 == 1; full >>= 1 {
		last := len(f.nodes) - 1
		f.nodes[last-1] = tlog.NodeHash(f.nodes[last-1], f.nodes[last])
		f.nodes = f.nodes[:last]
	}
	f.size++
}

// Size returns how many leaves it has.
func (f *Frontier) Size() int64 { return f.size }

// Root returns the root of the tree over all leaves so far.
func (f *Frontier) Root() tlog.Hash {
	if f.size == 0 {
		return EmptyRoot()
	}
	root := f.nodes[len(f.nodes)-1]
	for _, left := range slices.Backward(f.nodes[:len(f.nodes)-1]) {
		root = tlog.NodeHash(left, root)
	}
	return root
}

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
	inner := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '+' }
	if name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, inner) { // signed-note's rule for names of keys
		return nil, fmt.Errorf("%q is not a name for a witness: want one without spaces and plus signs, such as witness.example/w1", evidence.Abbreviate(name))
	}
	if err := checkNoteKey(key); err != nil {
		return nil, fmt.Errorf("the key of the witness %q: %w", evidence.Abbreviate(name), err)
	}
	return &Witness{name: name, key: bytes.Clone(key)}, nil
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

const cosignerPrefix = "PRIVATE+KEY+"

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

// KeyChange is what happened to a key.
type KeyChange string

const (
	KeyRegistered KeyChange = "registered" // the operator registered it
	KeyRotated    KeyChange = "rotated"    // it replaces another key
	KeyRetired    KeyChange = "retired"    // it no longer signs
	KeyRevoked    KeyChange = "revoked"    // another party may hold it
)
