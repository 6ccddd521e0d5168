package timestamp

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/crypto/cryptobyte/asn1"
)

// MaxTreeEntries is the largest number of evidence records of one tree.
const MaxTreeEntries = 1 << 20

// A Tree is a hash tree over groups of data objects (RFC 4998, 4.2). An authority stamps its root. Then every group
// has an evidence record that verifies by itself. A Tree also renews evidence records, in both ways of RFC 4998, 5.2.
// One goroutine may use it.
//
//	tree := NewTree(crypto.SHA256)
//	i, err := tree.Add(object1, object2)      // and so on
//	root, err := tree.Root()                  // to be stamped
//	der, err := tree.EvidenceRecord(i, token) // for each
type Tree struct {
	hash    crypto.Hash
	entries []treeEntry
	leaves  map[string]int // index of each leaf's hash at the bottom; a hash that is renewed twice has one leaf
	levels  [][][]byte     // from the leaves to the root; made by Root
	token   []byte         // the last token that EvidenceRecord used
	stamp   *Unverified    // its parsed form
}

// treeEntry becomes one evidence record.
type treeEntry struct {
	leaf    int
	first   hashList        // the entry's own hashes in the first list of its reduced hash tree
	renewed *EvidenceRecord // nil: a new one
	rehash  bool            // begin a new chain
}

// NewTree begins a tree over SHA-256, SHA-384 or SHA-512. It returns ErrAlgorithm for any other hash.
func NewTree(hash crypto.Hash) (*Tree, error) {
	if _, known := digestOIDs[hash]; !known {
		return nil, fmt.Errorf("beginning hash tree: %w: %v", ErrAlgorithm, hash)
	}
	return &Tree{hash: hash, leaves: map[string]int{}}, nil
}

// Add adds a group of at least two data objects, and returns its number. It hashes the data at once and does not keep
// it. It returns an error for a repeated object, and if the tree is closed or full.
func (t *Tree) Add(objects ...[]byte) (int, error) {
	return t.addGroup(t.hashesOf(objects, nil), treeEntry{})
}

// AddHashes is Add for a caller that already has the objects' hashes, made with the tree's algorithm. It also refuses
// a hash of another length.
func (t *Tree) AddHashes(hashes ...[]byte) (int, error) {
	kept := make([][]byte, len(hashes))
	for i, hash := range hashes {
		if len(hash) != t.hash.Size() {
			return 0, fmt.Errorf("adding to hash tree: hash %d has %d bytes, want the %d of %v", i, len(hash), t.hash.Size(), t.hash)
		}
		kept[i] = bytes.Clone(hash)
	}
	return t.addGroup(kept, treeEntry{})
}

// Renew adds an evidence record whose last token the authority stamps again, so that it does not expire. It returns
// ErrAlgorithm if the record's hash algorithm is not the tree's.
func (t *Tree) Renew(e *EvidenceRecord) (int, error) {
	last := e.last()
	if last.hash != t.hash {
		return 0, fmt.Errorf("adding to hash tree: %w: the record's last chain is of %v, the tree of %v", ErrAlgorithm, last.hash, t.hash)
	}
	hash := sum(t.hash, last.stamp)
	return t.add(hash, treeEntry{first: hashList{hash}, renewed: e})
}

// Rehash adds an evidence record that gets a further chain with the tree's hash algorithm, over its data objects and
// all its chains. The data objects must be those that it covers. Its errors are those of EvidenceRecord.Links and of
// Add.
func (t *Tree) Rehash(e *EvidenceRecord, objects ...[]byte) (int, error) {
	if _, _, err := e.Links(Group{Required: objects}); err != nil {
		return 0, err
	}
	before, err := e.before(len(e.chains), t.hash)
	if err != nil {
		return 0, err
	}
	return t.addGroup(t.hashesOf(objects, before), treeEntry{renewed: e, rehash: true})
}

// hashesOf are the entries in the tree for data objects.
func (t *Tree) hashesOf(objects [][]byte, before []byte) [][]byte {
	hashes := make([][]byte, len(objects))
	for i, object := range objects {
		hashes[i] = inTree(t.hash, sum(t.hash, object), before)
	}
	return hashes
}

// addGroup keeps the hashes, and sorts them.
func (t *Tree) addGroup(hashes hashList, entry treeEntry) (int, error) {
	for i, hash := range hashes {
		if hashes[:i].has(hash) {
			return 0, errors.New("adding to hash tree: the same data object twice")
		}
	}
	if len(hashes) < 2 {
		return 0, errors.New("adding to hash tree: a group needs at least two data objects")
	}
	slices.SortFunc(hashes, bytes.Compare)
	entry.first = hashes
	return t.add(nodeHash(t.hash, entry.first), entry)
}

func (t *Tree) add(hash []byte, entry treeEntry) (int, error) {
	if t.levels != nil || len(t.entries) == MaxTreeEntries {
		return 0, fmt.Errorf("adding to hash tree: it is closed, or has %d entries", MaxTreeEntries)
	}
	leaf, there := t.leaves[string(hash)]
	if !there {
		leaf = len(t.leaves)
		t.leaves[string(hash)] = leaf
	}
	entry.leaf = leaf
	t.entries = append(t.entries, entry)
	return len(t.entries) - 1, nil
}

// Root closes the tree and returns the imprint for the authority. It returns an error if the tree is empty.
func (t *Tree) Root() (Imprint, error) {
	if len(t.entries) == 0 {
		return Imprint{}, errors.New("closing hash tree: it is empty")
	}
	if t.levels == nil {
		leaves := make([][]byte, len(t.leaves))
		for hash, i := range t.leaves {
			leaves[i] = []byte(hash)
		}
		t.levels = [][][]byte{leaves}
		for level := leaves; len(level) > 1; {
			level = t.above(level)
			t.levels = append(t.levels, level)
		}
	}
	return Imprint{Hash: t.hash, Sum: t.levels[len(t.levels)-1][0]}, nil
}

// above joins neighbours. A node without a neighbour goes up unchanged.
func (t *Tree) above(level [][]byte) [][]byte {
	var up [][]byte
	for pair := range slices.Chunk(level, 2) {
		if len(pair) == 1 {
			up = append(up, pair[0])
			continue
		}
		up = append(up, nodeHash(t.hash, pair))
	}
	return up
}

// lists is the reduced hash tree of an entry: its own list first, then, on the way up, the hashes that each node is
// joined with.
func (t *Tree) lists(entry treeEntry) []hashList {
	lists := make([]hashList, 0, len(t.levels))
	if len(entry.first) > 1 {
		lists = append(lists, entry.first)
	}
	at := entry.leaf
	for _, level := range t.levels[:len(t.levels)-1] {
		if beside := at ^ 1; beside < len(level) {
			list := hashList(level[beside : beside+1 : beside+1])
			if len(lists) == 0 { // a single hash is in the same list as its neighbour
				list = append(list, entry.first...)
				slices.SortFunc(list, bytes.Compare)
			}
			lists = append(lists, list)
		}
		at /= 2
	}
	return lists
}

// EvidenceRecord writes the evidence record of an entry, with the token that an authority gave for the root. The
// caller verifies the token. EvidenceRecord refuses a token with another imprint, or with an earlier time than the
// token that it renews. It returns ErrUnsupported if the record is full: begin a new one.
func (t *Tree) EvidenceRecord(i int, token []byte) ([]byte, error) {
	der, err := t.evidenceRecord(t.entries[i], token)
	if err != nil {
		return nil, fmt.Errorf("writing evidence record: %w", err)
	}
	return der, nil
}

func (t *Tree) evidenceRecord(entry treeEntry, token []byte) ([]byte, error) {
	root, err := t.Root()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(t.token, token) { // the token is the same for all entries
		stamp, err := Parse(token)
		if err != nil {
			return nil, err
		}
		t.token, t.stamp = bytes.Clone(token), stamp
	}
	stamp := t.stamp
	switch {
	case !stamp.info.imprint.equal(root):
		return nil, ErrImprint
	case entry.renewed != nil && stamp.info.genTime.Before(entry.renewed.last().token.info.genTime):
		return nil, ErrOrder
	}
	e := &EvidenceRecord{}
	if entry.renewed != nil {
		e.chains = slices.Clone(entry.renewed.chains)
	}
	if entry.renewed == nil || entry.rehash {
		e.chains = append(e.chains, archiveChain{hash: t.hash})
	}
	return e.marshalWith(t.lists(entry), token)
}

// marshalWith writes an evidence record with one more time stamp at the end of its last chain. Earlier time stamps
// stay byte for byte. It refuses a result that ParseEvidenceRecord would refuse.
func (e *EvidenceRecord) marshalWith(lists []hashList, token []byte) ([]byte, error) {
	before, last := e.chains[:len(e.chains)-1], e.chains[len(e.chains)-1]
	w := newBackward(e.room(lists, token))
	record := w.end()
	chains := w.end()
	chain := w.end()
	w.addArchiveTimeStamp(last.hash, lists, token)
	for _, stamp := range slices.Backward(last.stamps) {
		w.add(stamp.element)
	}
	w.wrap(asn1.SEQUENCE, chain)
	for _, c := range slices.Backward(before) {
		w.add(c.element)
	}
	w.wrap(asn1.SEQUENCE, chains)
	algorithms := w.end()
	for _, hash := range slices.Backward(e.algorithms()) {
		w.addAlgorithm(asn1.SEQUENCE, digestOIDs[hash])
	}
	w.wrap(asn1.SEQUENCE, algorithms)
	w.addElement(asn1.INTEGER, []byte{evidenceRecordVersion})
	w.wrap(asn1.SEQUENCE, record)
	der := w.bytes()
	if size := e.size() + 1; len(der) > MaxTokenSize || size > maxArchiveTimeStamps {
		return nil, fmt.Errorf("%w: it would have %d archive time stamps and %d bytes", ErrUnsupported, size, len(der))
	}
	return der, nil
}

// room estimates how many bytes marshalWith writes. It is seldom too small.
func (e *EvidenceRecord) room(lists []hashList, token []byte) int {
	n := 128 + len(token)
	for _, list := range lists {
		n += 4
		for _, h := range list {
			n += 2 + len(h)
		}
	}
	for _, c := range e.chains {
		n += 8 + len(c.element)
	}
	return n
}

func (w *backward) addArchiveTimeStamp(hash crypto.Hash, lists []hashList, token []byte) {
	stamp := w.end()
	w.add(token)
	if len(lists) > 0 {
		tree := w.end()
		for _, list := range slices.Backward(lists) {
			partial := w.end()
			for _, h := range slices.Backward(list) {
				w.addElement(asn1.OCTET_STRING, h)
			}
			w.wrap(asn1.SEQUENCE, partial)
		}
		w.wrap(context2Constructed, tree)
	}
	w.addAlgorithm(context0Constructed, digestOIDs[hash])
	w.wrap(asn1.SEQUENCE, stamp)
}

func (e *EvidenceRecord) size() (n int) {
	for _, c := range e.chains {
		n += len(c.stamps)
	}
	return n
}
