package evidence

import (
	"bytes"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// ConsistencyFormat is the version of the consistency file format that this package writes and reads.
const ConsistencyFormat = "jurat/consistency/v1"

// A Consistency proves that a log of one size is the beginning of the same log of another size (RFC 9162, section
// 2.1.4): nothing that it held was changed, moved or dropped. By itself it proves nothing: it is held against two signed
// checkpoints.
type Consistency struct {
	Origin   string // the log's name
	From, To int64  // the two sizes, the smaller first
	Proof    []tlog.Hash
}

// maxConsistency is the number of nodes that a proof can need: no log has 2^63 entries.
const maxConsistency = 64

// consistencyForm is a proof as it is written, its members in canonical order.
type consistencyForm struct {
	Format string   `json:"format"`
	From   int64    `json:"from"`
	Origin string   `json:"origin"`
	Proof  [][]byte `json:"proof"`
	To     int64    `json:"to"`
}

// Marshal writes the proof as a file: canonical JSON and a line feed.
func (c *Consistency) Marshal() ([]byte, error) {
	form, err := c.marshal()
	if err != nil {
		return nil, err
	}
	return append(form, '\n'), nil
}

func (c *Consistency) marshal() ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	form := consistencyForm{Format: ConsistencyFormat, From: c.From, Origin: c.Origin, To: c.To}
	for _, node := range c.Proof {
		form.Proof = append(form.Proof, bytes.Clone(node[:]))
	}
	return encode(form)
}

func (c *Consistency) check() error {
	if err := checkOrigin(c.Origin); err != nil {
		return fmt.Errorf("origin: %w", err)
	}
	if c.From < 0 || c.From > c.To || c.To > maxExact {
		return fmt.Errorf("from %d to %d: want two sizes, the smaller first", c.From, c.To)
	}
	if len(c.Proof) > maxConsistency {
		return fmt.Errorf("proof: %d nodes: want at most %d", len(c.Proof), maxConsistency)
	}
	return nil
}

// ParseConsistency reads a proof. It is strict: what parses marshals back to the same bytes.
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
		return nil, &SyntaxError{Offset: int64(len(file)), Reason: "the file ends with a line feed"}
	}
	var form consistencyForm
	if err := decode(doc, &form); err != nil {
		return nil, err
	}
	if form.Format != ConsistencyFormat {
		return nil, &SyntaxError{Pointer: "/format", Reason: fmt.Sprintf("want %q", ConsistencyFormat)}
	}
	c := &Consistency{Origin: form.Origin, From: form.From, To: form.To}
	for i, node := range form.Proof {
		if len(node) != tlog.HashSize {
			return nil, &SyntaxError{Pointer: fmt.Sprintf("/proof/%d", i), Reason: fmt.Sprintf("%d bytes: want %d", len(node), tlog.HashSize)}
		}
		c.Proof = append(c.Proof, tlog.Hash(node))
	}
	return c, sameBytes(c.marshal, doc)
}

// Check holds the proof against two checkpoints whose signatures the caller has checked.
func (c *Consistency) Check(small, large Checkpoint) error {
	if small.Origin != c.Origin || large.Origin != c.Origin || small.Size != c.From || large.Size != c.To {
		return fmt.Errorf("the proof is from %d to %d entries of the log %q, and not between these checkpoints", c.From, c.To, abbreviate(c.Origin))
	}
	if small.Size > 0 {
		return tlog.CheckTree(tlog.TreeProof(c.Proof), large.Size, large.Root, small.Size, small.Root)
	}
	if small.Root != EmptyRoot() || len(c.Proof) > 0 {
		return errors.New("every log begins empty, with one root and nothing to prove")
	}
	return nil
}

// EmptyRoot is the tree hash of a log without entries.
func EmptyRoot() tlog.Hash { return tlog.Hash(DigestOf(nil)) }
