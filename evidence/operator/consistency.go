package operator

import (
	"bytes"
	"errors"
	"fmt"

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
