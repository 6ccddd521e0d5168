package operator

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
)

// DrawBlock is how many records one draw is about: those of the log from a multiple of it on.
const DrawBlock = 64

// DrawsChain is the chain of the operator's acts that hold draws.
const DrawsChain = evidence.OperatorPrefix + "draws"

// MaxDraws is how many draws one act may hold.
const MaxDraws = 500

// drawContext begins what a witness signs. No cosignature begins with it, so that the two can have one key.
const drawContext = "jurat/draw/v1\n"

// ErrNoDraw says that a tree ends no block, so that no witness signs a draw of it.
var ErrNoDraw = fmt.Errorf("a draw is about a tree whose size is a multiple of %d", DrawBlock)

// Draw signs the draw of the block that this tree ends. The signature has no time and no randomness: asking again gives the same bytes. The
// caller must make sure that the tree is a beginning of the tree that the witness has cosigned. Draw returns ErrNoDraw for a tree that ends
// no block, and an error for an origin that is not a name.
func (c *Cosigner) Draw(tree Checkpoint) ([]byte, error) {
	text, err := drawText(tree)
	if err != nil {
		return nil, err
	}
	return ed25519.Sign(c.private, text), nil
}

// VerifyDraw reports whether the witness signed the draw of the block that this tree ends.
func (w *Witness) VerifyDraw(tree Checkpoint, signature []byte) bool {
	text, err := drawText(tree)
	return err == nil && len(signature) == ed25519.SignatureSize && ed25519.Verify(w.key, text, signature)
}

func drawText(tree Checkpoint) ([]byte, error) {
	if tree.Size < 1 || tree.Size%DrawBlock != 0 {
		return nil, fmt.Errorf("%w: this one has %d entries", ErrNoDraw, tree.Size)
	}
	text, err := FormatCheckpoint(tree)
	if err != nil {
		return nil, err
	}
	return []byte(drawContext + text), nil
}

// A Draw is what a witness signed about one block of the log.
type Draw struct {
	Root      []byte `json:"root"` // of the tree with Size entries
	Signature []byte `json:"signature"`
	Size      int64  `json:"size"`    // a multiple of DrawBlock: the block is the last DrawBlock entries before it
	Witness   string `json:"witness"` // its verifier key
}

// Tree returns the tree that the draw is about. The draw must have been read by ReadDraws.
func (d *Draw) Tree(origin string) Checkpoint {
	return Checkpoint{Origin: origin, Size: d.Size, Root: tlog.Hash(d.Root)}
}

// DrawsBody is the response of a draw: the draws that the operator got from witnesses.
type DrawsBody struct {
	Draws []Draw `json:"draws"` // 1 to MaxDraws, sorted by size and then by the bytes of the witness's key and of the signature
}

func (b *DrawsBody) checkSize() error {
	if n := len(b.Draws); n < 1 || n > MaxDraws {
		return fmt.Errorf("draws: %d of them, want 1 to %d", n, MaxDraws)
	}
	return nil
}

// ReadDraws reads an act of draws. It returns an error if the act stands in another chain or breaks a rule. It does not verify signatures:
// VerifyDraw does, with the log's name.
func ReadDraws(p *evidence.Payload) (*DrawsBody, error) {
	if p.ActionType != evidence.Draw || p.ChainID != DrawsChain {
		return nil, fmt.Errorf("%s in chain %q is not a %s of chain %q", p.ActionType, p.ChainID, evidence.Draw, DrawsChain)
	}
	body, err := Read[DrawsBody](p)
	if err != nil {
		return nil, err
	}
	for i := range body.Draws {
		if err := body.Draws[i].check(); err != nil {
			return nil, fmt.Errorf("response of %s: draw %d: %w", p.ActionType, i+1, err)
		}
		if i > 0 && CompareDraws(body.Draws[i-1], body.Draws[i]) >= 0 {
			return nil, fmt.Errorf("response of %s: draw %d: not sorted, or there twice", p.ActionType, i+1)
		}
	}
	return body, nil
}

// CompareDraws orders draws as an act holds them: by size, by witness, by signature.
func CompareDraws(a, b Draw) int {
	switch {
	case a.Size != b.Size:
		return int(min(max(a.Size-b.Size, -1), 1))
	case a.Witness != b.Witness:
		return bytes.Compare([]byte(a.Witness), []byte(b.Witness))
	}
	return bytes.Compare(a.Signature, b.Signature)
}

func (d *Draw) check() error {
	switch {
	case len(d.Root) != tlog.HashSize:
		return fmt.Errorf("root: %d bytes, want %d", len(d.Root), tlog.HashSize)
	case len(d.Signature) != ed25519.SignatureSize:
		return fmt.Errorf("signature: %d bytes, want %d", len(d.Signature), ed25519.SignatureSize)
	case d.Size < DrawBlock || d.Size > MaxEntries || d.Size%DrawBlock != 0:
		return fmt.Errorf("size: %d is not a multiple of %d from %d to %d", d.Size, DrawBlock, DrawBlock, int64(MaxEntries))
	case d.Witness == "":
		return errors.New("witness is missing")
	}
	if _, err := ParseWitness(d.Witness); err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	return nil
}
