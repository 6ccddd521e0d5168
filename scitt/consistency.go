package scitt

import (
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/cbor"
)

// A Growth is what a receipt of consistency says: the tree of From entries is the beginning of that of To.
type Growth struct {
	From, To int64
	Path     tlog.TreeProof
}

// IsConsistency reports whether a receipt is about two sizes of a log, and not about an entry.
func (r *Receipt) IsConsistency() bool { return r.proof == nil && r.growth != nil }

// Growth reads the proof of consistency. It returns ErrUnsupported if there is none that can be checked here.
func (r *Receipt) Growth() (*Growth, error) {
	switch {
	case r.Structure != RFC9162SHA256 || r.growth == nil:
		return nil, fmt.Errorf("%w: it has no proof of consistency", ErrUnsupported)
	case r.growths > 1:
		return nil, fmt.Errorf("%w: it has %d proofs of consistency: only one is accepted", ErrUnsupported, r.growths)
	case r.message.detached:
		return nil, fmt.Errorf("%w: the newer root is not in it", ErrUnsupported)
	}
	from, to, path, err := readPath("proof of consistency", r.growth)
	switch {
	case err != nil:
		return nil, err
	case from < 1 || from >= to || to > maxSize:
		return nil, fmt.Errorf("proof of consistency: from %d to %d entries: want two sizes from 1 to %d, the smaller first", from, to, int64(maxSize))
	case len(r.message.payload) != tlog.HashSize:
		return nil, fmt.Errorf("proof of consistency: the newer root has %d bytes instead of %d", len(r.message.payload), tlog.HashSize)
	}
	return &Growth{from, to, path}, nil
}

// CheckGrowth verifies a receipt of consistency with a key that the caller trusts, for a root of the smaller size whose signature by the same key the caller has
// verified. It returns the newer root. Its error has evidence.ErrSignature in its chain if the key did not sign that root, or if the proof does not lead from the
// one to the other, which anybody can bring about: no header that is signed has the proof.
func (r *Receipt) CheckGrowth(public crypto.PublicKey, before tlog.Hash) (*Growth, tlog.Hash, error) {
	g, err := r.Growth()
	if err != nil {
		return nil, tlog.Hash{}, err
	}
	root := tlog.Hash(r.message.payload)
	if err := tlog.CheckTree(g.Path, g.To, root, g.From, before); err != nil {
		return nil, tlog.Hash{}, fmt.Errorf("%w: the proof does not lead from the root of %d entries to that of %d", evidence.ErrSignature, g.From, g.To)
	}
	return g, root, r.message.check(public, root[:])
}

// SignConsistency makes the receipt of consistency from the tree of a record's checkpoint to that of a later one. Both must be signed by the log, so that it signs no
// other root than it has signed before. It returns ErrNoReceipt if the later one is not larger.
func SignConsistency(before, after string, path tlog.TreeProof, log Log) ([]byte, error) {
	verifier, public, err := log.keys()
	if err != nil {
		return nil, err
	}
	old, err := operator.OpenCheckpoint(before, verifier)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoReceipt, err)
	}
	tree, err := operator.OpenCheckpoint(after, verifier)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoReceipt, err)
	}
	if old.Size < 1 || old.Size >= tree.Size {
		return nil, fmt.Errorf("%w: from %d to %d entries the log has not grown", ErrNoReceipt, old.Size, tree.Size)
	}
	if err := tlog.CheckTree(path, tree.Size, tree.Root, old.Size, old.Root); err != nil {
		return nil, fmt.Errorf("%w: the proof between the two checkpoints does not hold: %w", ErrNoReceipt, err)
	}
	doc, err := signGrowth(Growth{old.Size, tree.Size, path}, tree, public, log.Sign)
	if err != nil {
		return nil, fmt.Errorf("making receipt: %w", err)
	}
	return doc, nil
}

func signGrowth(g Growth, tree operator.Checkpoint, public ed25519.PublicKey, sign func([]byte) ([]byte, error)) ([]byte, error) {
	header, err := logHeader(tree, public)
	if err != nil {
		return nil, err
	}
	proof, err := cbor.Encode([]any{g.From, g.To, nodes(g.Path)})
	if err != nil {
		return nil, err
	}
	return signing{protected: header, unprotected: cbor.Map{{Key: labelProofs, Value: cbor.Map{{Key: proofConsistency, Value: []any{proof}}}}}, payload: tree.Root[:]}.by(sign)
}

// logHeader is the protected header of a log's receipt.
func logHeader(tree operator.Checkpoint, public ed25519.PublicKey) (cbor.Map, error) {
	id, err := evidence.KeyIDOf(public)
	return cbor.Map{{Key: labelAlg, Value: numberEdDSA}, {Key: labelKeyID, Value: id[:]}, {Key: labelStructure, Value: int64(RFC9162SHA256)},
		{Key: labelClaims, Value: cbor.Map{{Key: claimIssuer, Value: LogIssuer(tree.Origin)}}}}, err
}

func nodes(path []tlog.Hash) []any {
	list := make([]any, len(path))
	for i := range path {
		list[i] = path[i][:]
	}
	return list
}

// readPath reads two numbers and a path.
func readPath(what string, doc []byte) (first, second int64, path []tlog.Hash, err error) {
	value, err := cbor.Decode(doc)
	if err != nil {
		return 0, 0, nil, fmt.Errorf("%s: %w", what, err)
	}
	list, ok := value.([]any)
	if !ok || len(list) != 3 {
		return 0, 0, nil, errors.New(what + ": want two numbers and a path")
	}
	first, okFirst := list[0].(int64)
	second, okSecond := list[1].(int64)
	items, okPath := list[2].([]any)
	switch {
	case !okFirst || !okSecond || !okPath:
		return 0, 0, nil, errors.New(what + ": want two numbers and a path")
	case len(items) > maxPath:
		return 0, 0, nil, fmt.Errorf("%s: a path of %d nodes: at most %d", what, len(items), maxPath)
	}
	for _, item := range items {
		node, ok := item.([]byte)
		if !ok || len(node) != tlog.HashSize {
			return 0, 0, nil, fmt.Errorf("%s: a node of the path is not a byte string of %d bytes", what, tlog.HashSize)
		}
		path = append(path, tlog.Hash(node))
	}
	return first, second, path, nil
}
