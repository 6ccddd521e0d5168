package witness

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence/operator"
)

// Draw signs the draw of a block (package reputation/draw). The request has the block's tree as an unsigned checkpoint, the size of the tree
// that the witness has cosigned, and the proof that the first is the beginning of the second. Anybody may ask, as often as they like: the
// answer is always the same. Draw returns ErrMalformed, ErrUnknownLog, a *ConflictError with the size that the witness has cosigned, or
// ErrProof.
func (w *Witness) Draw(ctx context.Context, r Request) ([]byte, error) {
	tree, err := operator.ParseCheckpoint(r.Signed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if w.logs[tree.Origin] == nil {
		return nil, fmt.Errorf("%w: %q", ErrUnknownLog, tree.Origin)
	}
	known, err := last(ctx, w.db, tree.Origin)
	if err != nil {
		return nil, err
	}
	if err := begins(tree, known, r); err != nil {
		return nil, err
	}
	signature, err := w.key.Draw(tree)
	if errors.Is(err, operator.ErrNoDraw) {
		err = fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return signature, err
}

// begins returns an error unless a tree is the beginning of the known one.
func begins(tree, known operator.Checkpoint, r Request) error {
	switch {
	case r.Old != known.Size || tree.Size > known.Size:
		return &ConflictError{Size: known.Size}
	case tree.Size == known.Size && tree.Root != known.Root:
		return &ConflictError{Size: known.Size, Forked: true}
	case tree.Size == known.Size && len(r.Proof) > 0:
		return fmt.Errorf("%w: want an empty proof from %d to %d entries", ErrProof, tree.Size, known.Size)
	case tree.Size == known.Size:
		return nil
	case tree.Size == 0:
		return fmt.Errorf("%w: %w", ErrMalformed, operator.ErrNoDraw)
	}
	if err := tlog.CheckTree(r.Proof, known.Size, known.Root, tree.Size, tree.Root); err != nil {
		return fmt.Errorf("%w: from %d to %d entries: %w", ErrProof, tree.Size, known.Size, err)
	}
	return nil
}

// AskDraw asks the witness for the draw of the block that this tree ends. prove makes a proof from the tree's size to a larger one. A
// *ConflictError says that the witness has not cosigned so much of the log, or another history. Other errors include ErrUnavailable,
// ErrUnknownLog and ErrProof.
func (r *Remote) AskDraw(ctx context.Context, tree operator.Checkpoint, prove func(ctx context.Context, old, size int64) ([]tlog.Hash, error)) (operator.Draw, error) {
	text, err := operator.FormatCheckpoint(tree)
	if err != nil {
		return operator.Draw{}, err
	}
	size := max(r.known(operator.MaxEntries), tree.Size)
	for attempt := 0; ; attempt++ {
		proof, err := prove(ctx, tree.Size, size)
		if err != nil {
			return operator.Draw{}, err
		}
		answer, err := r.post(ctx, r.url("/draw"), Request{Old: size, Proof: proof, Signed: text})
		var conflict *ConflictError
		if errors.As(err, &conflict) && conflict.Size >= tree.Size && conflict.Size != size && attempt < 2 {
			size = conflict.Size
			continue
		}
		if err != nil {
			return operator.Draw{}, err
		}
		signature, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSuffix(answer, "\n"))
		if err != nil || !r.Key.VerifyDraw(tree, signature) {
			return operator.Draw{}, fmt.Errorf("%w: it has not signed the draw with the key of %s", ErrUnavailable, r.Key.Name())
		}
		return operator.Draw{Root: tree.Root[:], Signature: signature, Size: tree.Size, Witness: r.Key.String()}, nil
	}
}
