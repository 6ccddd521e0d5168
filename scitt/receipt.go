package scitt

import (
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/url"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/cbor"
)

// RFC9162SHA256 is the verifiable data structure that is checked here: the tree of RFC 9162 with SHA-256.
const RFC9162SHA256 = 1

const (
	proofInclusion = int64(-1)
	maxSize        = 1<<53 - 1 // entries of a log: package tlog's arithmetic is sound far beyond, and overflows from 2^62 on
	maxPath        = 63
)

// A Receipt says that a log has an entry. It is unverified until Check has checked it with a key that the caller trusts.
type Receipt struct {
	Issuer    string // the claim iss of the transparency service; "" if there is none
	KeyID     []byte // a hint
	Structure int64  // the verifiable data structure; 0 if none is named
	Entry     []byte // of jurat's own receipts: the log's entry. nil: the receipt does not have it

	unread  error // it is none that can be read, and has nothing else
	message *sign1
	proof   []byte // of inclusion
	proofs  int
}

// parseReceipt reads a receipt. Of a structure that is not known here it reads only that.
func parseReceipt(doc []byte) (*Receipt, error) {
	m, err := parseSign1(doc)
	if err != nil {
		return nil, err
	}
	r := &Receipt{message: m, KeyID: m.keyID()}
	if r.Issuer, _, err = readClaims(m.protected); err != nil {
		return nil, err
	}
	if value, there := m.protected.Get(labelStructure); there {
		var ok bool
		if r.Structure, ok = value.(int64); !ok {
			return nil, errors.New("the verifiable data structure (395) is not a number")
		}
	}
	entry, _ := m.unprotected.Get(labelEntry)
	r.Entry, _ = entry.([]byte)
	if r.Structure != RFC9162SHA256 {
		return r, nil
	}
	return r, r.readProofs()
}

func (r *Receipt) readProofs() error {
	value, there := r.message.unprotected.Get(labelProofs)
	if !there {
		return errors.New("it has no proof (396)")
	}
	proofs, ok := value.(cbor.Map)
	if !ok {
		return errors.New("the proofs (396) are not a map")
	}
	if value, there = proofs.Get(proofInclusion); !there {
		return nil
	}
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		return fmt.Errorf("the proofs of inclusion (%d) are not an array with at least one", proofInclusion)
	}
	if r.proof, ok = list[0].([]byte); !ok {
		return errors.New("a proof of inclusion is not a byte string")
	}
	r.proofs = len(list)
	return nil
}

// A Proof is a proof that an entry is in a tree.
type Proof struct {
	Size, Index int64 // entries of the tree; the entry's place, from 0
	Path        tlog.RecordProof
}

// Proof reads the proof of inclusion. It returns ErrUnsupported if there is none that can be checked here.
func (r *Receipt) Proof() (*Proof, error) {
	switch {
	case r.unread != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, r.unread)
	case r.Structure != RFC9162SHA256:
		return nil, fmt.Errorf("%w: the verifiable data structure %d (395): only 1, RFC9162_SHA256, is known here", ErrUnsupported, r.Structure)
	case r.proof == nil:
		return nil, fmt.Errorf("%w: it has no proof of inclusion", ErrUnsupported)
	case r.proofs > 1:
		return nil, fmt.Errorf("%w: it has %d proofs of inclusion: only one is accepted", ErrUnsupported, r.proofs)
	}
	return parseProof(r.proof)
}

// parseProof reads two numbers and a path.
func parseProof(doc []byte) (*Proof, error) {
	value, err := cbor.Decode(doc)
	if err != nil {
		return nil, fmt.Errorf("proof of inclusion: %w", err)
	}
	list, _ := value.([]any)
	if len(list) != 3 {
		return nil, errors.New("proof of inclusion: want two numbers and a path")
	}
	size, okSize := list[0].(int64)
	index, okIndex := list[1].(int64)
	items, okPath := list[2].([]any)
	switch {
	case !okSize || !okIndex || !okPath:
		return nil, errors.New("proof of inclusion: want two numbers and a path")
	case len(items) > maxPath:
		return nil, fmt.Errorf("proof of inclusion: a path of %d nodes: at most %d", len(items), maxPath)
	case size < 1 || size > maxSize:
		return nil, fmt.Errorf("proof of inclusion: a tree of %d entries: want 1 to %d", size, int64(maxSize))
	case index < 0 || index >= size:
		return nil, fmt.Errorf("proof of inclusion: the index %d is not in a tree of %d entries", index, size)
	}
	p := &Proof{Size: size, Index: index}
	for _, item := range items {
		node, ok := item.([]byte)
		if !ok || len(node) != tlog.HashSize {
			return nil, fmt.Errorf("proof of inclusion: a node of the path is not a byte string of %d bytes", tlog.HashSize)
		}
		p.Path = append(p.Path, tlog.Hash(node))
	}
	return p, nil
}

// errPath says that a path is not as long as its tree demands.
var errPath = errors.New("proof of inclusion: the path does not have the length that index and size demand")

// Root computes the tree's root from the entry (RFC 9162, section 2.1.3.2).
func (p *Proof) Root(entry []byte) (tlog.Hash, error) {
	hash, at, last := tlog.RecordHash(entry), p.Index, p.Size-1
	for _, node := range p.Path {
		if last == 0 {
			return tlog.Hash{}, errPath
		}
		if at%2 == 1 || at == last {
			hash = tlog.NodeHash(node, hash)
			for at%2 == 0 && at != 0 {
				at, last = at/2, last/2
			}
		} else {
			hash = tlog.NodeHash(hash, node)
		}
		at, last = at/2, last/2
	}
	if last != 0 {
		return tlog.Hash{}, errPath
	}
	return hash, nil
}

// Check verifies the receipt for an entry with a key that the caller trusts, and returns the root that was signed. Its error has
// evidence.ErrSignature in its chain if the key did not sign this root, and ErrUnsupported if that cannot be checked here.
func (r *Receipt) Check(public crypto.PublicKey, entry []byte) (tlog.Hash, error) {
	p, err := r.Proof()
	if err != nil {
		return tlog.Hash{}, err
	}
	root, err := p.Root(entry)
	if err != nil {
		return tlog.Hash{}, err
	}
	if !r.message.detached && string(r.message.payload) != string(root[:]) {
		return tlog.Hash{}, fmt.Errorf("%w: the receipt is about another root than the proof gives", evidence.ErrSignature)
	}
	return root, r.message.check(public, root[:])
}

// LogIssuer returns the name of a log as an issuer of receipts.
func LogIssuer(origin string) string { return "urn:jurat:log:" + url.PathEscape(origin) }

// A Log signs receipts.
type Log struct {
	Key  string                               // the verifier key, as package note writes it
	Sign func(message []byte) ([]byte, error) // with the log's Ed25519 key, over the message itself
}

// keys are the log's key for what Go's notes are signed with, and for COSE.
func (l Log) keys() (note.Verifier, ed25519.PublicKey, error) {
	verifier, err := note.NewVerifier(l.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("making receipt: %w", err)
	}
	public, err := operator.LogPublicKey(l.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("making receipt: %w", err)
	}
	return verifier, public, nil
}

// ErrNoReceipt says that a log makes no receipt for a record, because the record has no proof of its place in that log.
var ErrNoReceipt = errors.New("no receipt can be made")

// SignReceipt makes a receipt for the record's entry, for the tree of the record's own checkpoint. It returns ErrNoReceipt if the
// record has none that this log signed, and the errors of Sign. So the log signs no other root than it has signed before.
func SignReceipt(r *evidence.Record, log Log) ([]byte, error) {
	verifier, public, err := log.keys()
	if err != nil {
		return nil, err
	}
	if r.Log == nil || r.Log.Checkpoint == "" {
		return nil, fmt.Errorf("%w: the record carries no proof of its place in a log", ErrNoReceipt)
	}
	tree, err := operator.OpenCheckpoint(r.Log.Checkpoint, verifier)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoReceipt, err)
	}
	entry, p := r.LogEntry(r.Log.LogCounts), Proof{Size: tree.Size, Index: r.Log.Index}
	for _, node := range r.Log.Proof {
		p.Path = append(p.Path, tlog.Hash(node))
	}
	if p.Index >= p.Size {
		return nil, fmt.Errorf("%w: the record's checkpoint does not cover it", ErrNoReceipt)
	}
	if root, err := p.Root(entry); err != nil || root != tree.Root {
		return nil, fmt.Errorf("%w: the record is not at its place in the log", ErrNoReceipt)
	}
	doc, err := p.sign(entry, tree, public, log.Sign)
	if err != nil {
		return nil, fmt.Errorf("making receipt: %w", err)
	}
	return doc, nil
}

func (p *Proof) sign(entry []byte, tree operator.Checkpoint, public ed25519.PublicKey, sign func([]byte) ([]byte, error)) ([]byte, error) {
	header, err := logHeader(tree, public)
	if err != nil {
		return nil, err
	}
	proof, err := cbor.Encode([]any{p.Size, p.Index, nodes(p.Path)})
	if err != nil {
		return nil, err
	}
	return signing{
		protected:   header,
		unprotected: cbor.Map{{Key: labelProofs, Value: cbor.Map{{Key: proofInclusion, Value: []any{proof}}}}, {Key: labelEntry, Value: entry}},
		payload:     tree.Root[:],
		detached:    true,
	}.by(sign)
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
