package evidence

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"slices"

	"jurat/internal/jsonform"
)

// An Anchor is a checkpoint of the log that authorities have stamped: what it covers existed by then. Later tokens
// renew the earlier ones, before these can no longer be relied on.
type Anchor struct {
	Checkpoint  string   `json:"checkpoint"`  // C2SP signed note
	Consistency [][]byte `json:"consistency"` // RFC 9162 nodes, 32 bytes each, between it and the file's checkpoint

	// Timestamps are RFC 3161 tokens in DER. Those of the first generation are over the checkpoint, and those of each
	// further one over the checkpoint and all generations before; see Imprint.
	Timestamps [][][]byte `json:"timestamps"`
}

// Bounds of the anchors of a file.
const (
	MaxAnchorTokens = 1024    // together
	MaxAnchorBytes  = 8 << 20 // of checkpoints and tokens, together
	maxConsistency  = 64      // nodes
)

// Imprints returns what the tokens of each generation stamp, and then what those of a further one would: the SHA-256 of the checkpoint, or of
// the canonical form of {"checkpoint", "timestamps"} with the generations before. It takes time by the size of the anchor alone, however many
// generations there are. Its error is that the checkpoint is no text.
func (a *Anchor) Imprints() ([][sha256.Size]byte, error) {
	const end = "]}"
	doc, err := jsonform.Encode(struct {
		Checkpoint string     `json:"checkpoint"`
		Timestamps [][][]byte `json:"timestamps"`
	}{a.Checkpoint, [][][]byte{}})
	if err != nil {
		return nil, err
	}
	list := [][sha256.Size]byte{sha256.Sum256([]byte(a.Checkpoint))}
	before := sha256.New()
	before.Write(bytes.TrimSuffix(doc, []byte(end)))
	for i, generation := range a.Timestamps {
		if doc, err = jsonform.Encode(generation); err != nil {
			return nil, err
		}
		if i > 0 {
			before.Write([]byte(","))
		}
		before.Write(doc)
		whole, err := before.(hash.Cloner).Clone()
		if err != nil {
			return nil, err
		}
		whole.Write([]byte(end))
		list = append(list, [sha256.Size]byte(whole.Sum(nil)))
	}
	return list, nil
}

// CheckAnchors returns an error unless a file with this checkpoint may have these anchors.
func CheckAnchors(checkpoint string, anchors []Anchor) error {
	if checkpoint == "" && len(anchors) > 0 {
		return errors.New("anchors: the file has stamped checkpoints, but no checkpoint")
	}
	tokens, size := 0, 0
	for i := range anchors {
		a := &anchors[i]
		if err := a.check(); err != nil {
			return fmt.Errorf("anchors: %d: %w", i, err)
		}
		size += len(a.Checkpoint)
		for _, token := range slices.Concat(a.Timestamps...) {
			tokens++
			size += len(token)
		}
	}
	if tokens > MaxAnchorTokens || size > MaxAnchorBytes {
		return fmt.Errorf("anchors: %d tokens, and %d bytes with the checkpoints: want at most %d and %d", tokens, size, MaxAnchorTokens, MaxAnchorBytes)
	}
	return nil
}

func (a *Anchor) check() error {
	if a.Checkpoint == "" || len(a.Timestamps) == 0 {
		return errors.New("the checkpoint or its time stamps are missing")
	}
	if len(a.Consistency) > maxConsistency || slices.ContainsFunc(a.Consistency, func(node []byte) bool { return len(node) != sha256.Size }) {
		return fmt.Errorf("consistency: want at most %d nodes of %d bytes", maxConsistency, sha256.Size)
	}
	var stamps []Timestamp
	for _, generation := range a.Timestamps {
		if len(generation) == 0 {
			return errors.New("timestamps: a generation without a token")
		}
		for _, token := range generation {
			stamps = append(stamps, Timestamp{Kind: RFC3161, Token: token})
		}
	}
	return checkTimestamps(stamps)
}
