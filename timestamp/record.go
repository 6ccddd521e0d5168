package timestamp

import (
	"bytes"
	"crypto"
	"fmt"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// The largest evidence record: half a century of yearly renewals, and a binary tree of any practical height.
const (
	maxArchiveTimeStamps = 64  // in one evidence record
	maxHashLists         = 256 // in one reduced hash tree
)

const evidenceRecordVersion = 1 // RFC 4998, 3.1

// EvidenceRecord is an RFC 4998 EvidenceRecord that was parsed but not authenticated. It does not change after
// ParseEvidenceRecord and is safe for concurrent use.
type EvidenceRecord struct {
	chains []archiveChain
}

// archiveChain is an ArchiveTimeStampChain (RFC 4998, 5.1): each time stamp renews the one before it, all over the
// same hash algorithm.
type archiveChain struct {
	element cryptobyte.String // its bytes, to be hashed when a further chain begins
	hash    crypto.Hash
	stamps  []archiveTimeStamp
}

// archiveTimeStamp is an ArchiveTimeStamp (RFC 4998, 4.1).
type archiveTimeStamp struct {
	element cryptobyte.String // its bytes
	hash    crypto.Hash
	lists   []hashList // the reduced hash tree, from the data objects up; nil: none
	stamp   []byte     // the token's DER
	token   *Unverified
}

// Tokens returns the record's time stamps, the oldest first.
func (e *EvidenceRecord) Tokens() (tokens []*Unverified) {
	for _, c := range e.chains {
		for _, a := range c.stamps {
			tokens = append(tokens, a.token)
		}
	}
	return tokens
}

// Hash is the algorithm of the last chain. A Tree that renews the record's last time stamp must have the same.
func (e *EvidenceRecord) Hash() crypto.Hash { return e.last().hash }

// Extends reports whether the record is a renewal of another: it has the same time stamps, byte for byte, and more.
func (e *EvidenceRecord) Extends(older *EvidenceRecord) bool {
	mine, theirs := e.elements(), older.elements()
	if len(mine) <= len(theirs) {
		return false
	}
	return slices.EqualFunc(mine[:len(theirs)], theirs, func(a, b cryptobyte.String) bool { return bytes.Equal(a, b) })
}

func (e *EvidenceRecord) elements() (list []cryptobyte.String) {
	for _, c := range e.chains {
		for _, a := range c.stamps {
			list = append(list, a.element)
		}
	}
	return list
}

func (e *EvidenceRecord) last() *archiveTimeStamp {
	chain := &e.chains[len(e.chains)-1]
	return &chain.stamps[len(chain.stamps)-1]
}

// hashList is a PartialHashtree: hashes of one length, in any order, none twice.
type hashList [][]byte

func (l hashList) has(hash []byte) bool {
	return slices.ContainsFunc(l, func(h []byte) bool { return bytes.Equal(h, hash) })
}

// ParseEvidenceRecord reads an EvidenceRecord in strict DER of at most MaxTokenSize bytes, and the tokens in it as
// Parse does, without authenticating anything. It returns ErrUnsupported or ErrAlgorithm for what it cannot judge,
// and ErrMalformed for any other error.
func ParseEvidenceRecord(der []byte) (*EvidenceRecord, error) {
	e, err := parseEvidenceRecord(der)
	if err != nil {
		return nil, fmt.Errorf("parsing evidence record: %w", err)
	}
	return e, nil
}

func parseEvidenceRecord(der []byte) (*EvidenceRecord, error) {
	d, s := decode(der, MaxTokenSize, "evidence record")
	contents := d.read(&s, asn1.SEQUENCE, "evidence record")
	d.end(s, "evidence record")

	d.version(&contents, evidenceRecordVersion, "evidence record version")
	named := d.digestList(&contents)
	d.unsupported(&contents, context0Constructed, "cryptoInfos")
	d.unsupported(&contents, context1Constructed, "encryptionInfo")
	at := contents
	e := d.archiveSequence(&contents)
	d.end(contents, "evidence record members")
	// "It contains all digest algorithms used" (RFC 4998, 3.1). This check leaves no byte of the list unchecked.
	if d.err == nil && !sameAlgorithms(named, e.algorithms()) {
		d.fail(at, "digestAlgorithms are not those of the archive time stamps")
	}
	if d.err != nil {
		return nil, d.err
	}
	return e, nil
}

// digestList reads digestAlgorithms: a SEQUENCE OF, in any order.
func (d *decoder) digestList(s *cryptobyte.String) (list []crypto.Hash) {
	contents := d.read(s, asn1.SEQUENCE, "digestAlgorithms")
	for d.more(contents) && len(list) <= len(digestOIDs) {
		list = append(list, d.digest(&contents, "digest algorithm"))
	}
	d.end(contents, "digestAlgorithms")
	return list
}

// digest reads an AlgorithmIdentifier of an accepted hash.
func (d *decoder) digest(s *cryptobyte.String, what string) crypto.Hash {
	return d.digestIn(d.algorithm(s, what))
}

func (d *decoder) digestIn(a algorithm) crypto.Hash {
	if d.err != nil {
		return 0
	}
	hash, err := a.digest()
	if err != nil {
		d.failWith(err)
	}
	return hash
}

// unsupported refuses a part that this package does not know. Another reader may be able to verify the record.
func (d *decoder) unsupported(s *cryptobyte.String, tag asn1.Tag, what string) {
	if d.err == nil && s.PeekASN1Tag(tag) {
		d.failWith(fmt.Errorf("%w: %s", ErrUnsupported, what))
	}
}

func (e *EvidenceRecord) algorithms() (list []crypto.Hash) {
	for _, c := range e.chains {
		if !slices.Contains(list, c.hash) {
			list = append(list, c.hash)
		}
	}
	return list
}

func sameAlgorithms(named, used []crypto.Hash) bool {
	return len(named) == len(used) && !slices.ContainsFunc(used, func(h crypto.Hash) bool { return !slices.Contains(named, h) })
}

// archiveSequence reads ArchiveTimeStampSequence, the oldest chain first.
func (d *decoder) archiveSequence(s *cryptobyte.String) *EvidenceRecord {
	contents := d.read(s, asn1.SEQUENCE, "archive time stamp sequence")
	e, stamps := &EvidenceRecord{}, 0
	for d.more(contents) {
		element := d.element(&contents, asn1.SEQUENCE, "archive time stamp chain")
		chain := d.archiveChain(element, &stamps)
		e.chains = append(e.chains, chain)
	}
	if d.err == nil && len(e.chains) == 0 {
		d.fail(contents, "archive time stamp sequence without a chain")
	}
	return e
}

func (d *decoder) archiveChain(element cryptobyte.String, stamps *int) archiveChain {
	chain := archiveChain{element: element}
	contents := d.read(&element, asn1.SEQUENCE, "archive time stamp chain")
	if d.err == nil && contents.Empty() {
		d.fail(contents, "archive time stamp chain without a member")
	}
	for d.more(contents) {
		if *stamps++; *stamps > maxArchiveTimeStamps {
			d.failWith(fmt.Errorf("%w: more than %d archive time stamps", ErrUnsupported, maxArchiveTimeStamps))
			return chain
		}
		at := contents
		stamp := d.archiveTimeStamp(&contents)
		if len(chain.stamps) == 0 {
			chain.hash = stamp.hash
		}
		if d.err == nil && stamp.hash != chain.hash { // RFC 4998, 5.1
			d.fail(at, "archive time stamp with another hash algorithm than its chain")
		}
		chain.stamps = append(chain.stamps, stamp)
	}
	return chain
}

// archiveTimeStamp reads
//
//	ArchiveTimeStamp ::= SEQUENCE {
//	  digestAlgorithm [0] AlgorithmIdentifier OPTIONAL, attributes [1] Attributes OPTIONAL,
//	  reducedHashtree [2] SEQUENCE OF PartialHashtree OPTIONAL, timeStamp ContentInfo }
//
// with implicit tags. Without digestAlgorithm, the token's own algorithm counts.
func (d *decoder) archiveTimeStamp(s *cryptobyte.String) (a archiveTimeStamp) {
	a.element = d.element(s, asn1.SEQUENCE, "archive time stamp")
	element := a.element
	contents := d.read(&element, asn1.SEQUENCE, "archive time stamp")
	named, present := d.optional(&contents, context0Constructed, "digestAlgorithm")
	if present {
		a.hash = d.digestIn(d.algorithmIn(named, "digestAlgorithm"))
	}
	d.unsupported(&contents, context1Constructed, "attributes of an archive time stamp")
	tree, reduced := d.optional(&contents, context2Constructed, "reduced hash tree")
	a.stamp = d.element(&contents, asn1.SEQUENCE, "time stamp")
	d.end(contents, "archive time stamp")
	a.token = d.token(a.stamp)
	if d.err == nil && !present {
		a.hash = d.known(a.token.info.imprint.Hash)
	}
	if d.err == nil && reduced { // the size of an unknown hash is unknown, too
		a.lists = d.reducedHashtree(tree, a.hash.Size())
	}
	return a
}

func (d *decoder) token(der []byte) *Unverified {
	if d.err != nil {
		return nil
	}
	token, err := Parse(der)
	if err != nil {
		d.failWith(err)
	}
	return token
}

// known refuses the hash of an imprint with an unknown algorithm.
func (d *decoder) known(hash crypto.Hash) crypto.Hash {
	if hash == 0 {
		d.failWith(fmt.Errorf("%w: digest", ErrAlgorithm))
	}
	return hash
}

// reducedHashtree reads the lists. The first must have at least two hashes: implementations disagree about the root
// over a single one.
func (d *decoder) reducedHashtree(s cryptobyte.String, size int) (lists []hashList) {
	at := s
	for d.more(s) {
		if len(lists) == maxHashLists {
			d.failWith(fmt.Errorf("%w: a reduced hash tree of more than %d lists", ErrUnsupported, maxHashLists))
			return nil
		}
		lists = append(lists, d.hashList(d.read(&s, asn1.SEQUENCE, "partial hash tree"), size))
	}
	if d.err == nil && (len(lists) == 0 || len(lists[0]) < 2) {
		d.fail(at, "reduced hash tree that does not begin with two hashes")
	}
	return lists
}

func (d *decoder) hashList(s cryptobyte.String, size int) (list hashList) {
	at, seen := s, map[string]bool{}
	for d.more(s) {
		at := s
		hash := d.octets(&s, "hash")
		if d.err == nil && (len(hash) != size || seen[string(hash)]) {
			d.fail(at, "hash does not have the length of its algorithm, or is there twice")
		}
		seen[string(hash)] = true
		list = append(list, hash)
	}
	if d.err == nil && len(list) == 0 {
		d.fail(at, "partial hash tree without a hash")
	}
	return list
}
