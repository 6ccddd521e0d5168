package operator

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
)

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
