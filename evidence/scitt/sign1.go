package scitt

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/kit/cbor"
	"jurat/internal/kit/sigkey"
)

// Header parameters (RFC 9052, RFC 9360, RFC 9597, RFC 9942).
const (
	labelAlg         = int64(1)
	labelCrit        = int64(2)
	labelContentType = int64(3)
	labelKeyID       = int64(4)
	labelClaims      = int64(15)
	labelChain       = int64(33)
	labelThumbprint  = int64(34)
	labelReceipts    = int64(394)
	labelStructure   = int64(395)
	labelProofs      = int64(396)
)

// understood are the parameters that may be critical, because this package does what they ask.
var understood = []any{labelAlg, labelContentType, labelKeyID, labelClaims, labelStructure}

// numbers are those of the algorithms (RFC 9053) by which statements and receipts are signed. -8 also stands for Ed448, whose keys are refused elsewhere.
var numbers = map[evidence.Algorithm]int64{evidence.ES256: -7, evidence.Ed25519: -8}

const (
	tagSign1 = 18
	context1 = "Signature1"
)

// ErrUnsupported says that a signature or a receipt cannot be checked here. It says nothing about whether it is valid.
var ErrUnsupported = errors.New("it cannot be checked")

// A sign1 is an opened COSE_Sign1. Nothing in it is verified. Of the unprotected header, which anybody can change, only receipts, the record, proofs and
// the entry are looked at, and none of them contradicts what is signed.
type sign1 struct {
	protected, unprotected cbor.Map

	header    []byte // the protected header, as it was signed
	payload   []byte
	detached  bool // the payload is not there
	signature []byte
}

// parseSign1 reads a tagged COSE_Sign1.
func parseSign1(doc []byte) (*sign1, error) {
	value, err := cbor.Decode(doc)
	if err != nil {
		return nil, err
	}
	tag, ok := value.(cbor.Tag)
	if !ok || tag.Number != tagSign1 {
		return nil, errors.New("want a COSE_Sign1 with the tag 18")
	}
	parts, ok := tag.Content.([]any)
	if !ok || len(parts) != 4 {
		return nil, errors.New("COSE_Sign1: want an array of four: protected header, unprotected header, payload, signature")
	}
	m := new(sign1)
	if m.header, ok = parts[0].([]byte); !ok {
		return nil, errors.New("COSE_Sign1: the protected header is not a byte string")
	}
	if len(m.header) > 0 {
		if m.protected, err = cbor.DecodeMap(m.header); err != nil {
			return nil, fmt.Errorf("COSE_Sign1: protected header: %w", err)
		}
	}
	if m.unprotected, ok = parts[1].(cbor.Map); !ok {
		return nil, errors.New("COSE_Sign1: the unprotected header is not a map")
	}
	if m.payload, ok = parts[2].([]byte); !ok {
		if parts[2] != nil {
			return nil, errors.New("COSE_Sign1: the payload is neither a byte string nor null")
		}
		m.detached = true
	}
	if m.signature, ok = parts[3].([]byte); !ok {
		return nil, errors.New("COSE_Sign1: the signature is not a byte string")
	}
	return m, nil
}

// critical returns an error unless everything that must be understood is.
func (m *sign1) critical() error {
	value, there := m.protected.Get(labelCrit)
	if !there {
		return nil
	}
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		return errors.New("crit (2) is not an array of header parameters")
	}
	for _, label := range list {
		switch label.(type) {
		case int64, string:
		default:
			return errors.New("crit (2) is not an array of header parameters")
		}
		if _, there := m.protected.Get(label); !there {
			return fmt.Errorf("crit (2) names the header parameter %v, which is missing", label)
		}
		if !slices.Contains(understood, label) {
			return fmt.Errorf("%w: the header parameter %v is critical, and not known here", ErrUnsupported, label)
		}
	}
	return nil
}

// algorithm returns the algorithm that the protected header names.
func (m *sign1) algorithm() (evidence.Algorithm, error) {
	value, there := m.protected.Get(labelAlg)
	if !there {
		return "", errors.New("the protected header names no algorithm")
	}
	number, ok := value.(int64)
	if !ok {
		return "", fmt.Errorf("%w: the algorithm is not a number", ErrUnsupported)
	}
	for algorithm, of := range numbers {
		if of == number {
			return algorithm, nil
		}
	}
	return "", fmt.Errorf("%w: the algorithm %d: ES256 (-7) and Ed25519 (-8) are checked here", ErrUnsupported, number)
}

// check verifies the signature over a payload. Its error has evidence.ErrSignature in its chain if the key did not make
// it, and ErrUnsupported if that cannot be known.
func (m *sign1) check(public crypto.PublicKey, payload []byte) error {
	if err := m.critical(); err != nil {
		return err
	}
	algorithm, err := m.algorithm()
	if err != nil {
		return err
	}
	if is, err := evidence.AlgorithmOf(public); err != nil || is != algorithm {
		return fmt.Errorf("%w: the signature is by %s, and the key is another kind of key", evidence.ErrSignature, algorithm)
	}
	id, err := evidence.KeyIDOf(public)
	if err != nil {
		return err
	}
	signature := m.signature
	if algorithm == evidence.ES256 {
		if signature, err = sigkey.ECDSAFromRaw(m.signature); err != nil {
			return fmt.Errorf("%w: %w", evidence.ErrSignature, err)
		}
	}
	signed, err := toBeSigned(m.header, payload)
	if err != nil {
		return err
	}
	return evidence.CheckSignature(public, evidence.SignerInfo{Algorithm: algorithm, KeyID: id}, signed, signature)
}

// keyID returns the hint about the key; nil if there is none. One that is not protected is not looked at: anybody can put it there.
func (m *sign1) keyID() []byte {
	value, _ := m.protected.Get(labelKeyID)
	id, _ := value.([]byte)
	return id
}

// toBeSigned returns the Sig_structure of RFC 9052, section 4.4, without external data.
func toBeSigned(header, payload []byte) ([]byte, error) {
	return cbor.Encode([]any{context1, header, []byte{}, payload})
}

// Is recognises a tagged COSE_Sign1 by its first bytes, which begin no text and no archive. The rest may be damaged.
func Is(file []byte) bool { return bytes.HasPrefix(file, []byte{0xd2, 0x84}) }

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

// ErrNoReceipt says that a log makes no receipt for a record, because the record has no proof of its place in that log.
var ErrNoReceipt = errors.New("no receipt can be made")
