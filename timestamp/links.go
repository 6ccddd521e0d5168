package timestamp

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// A Group is the data objects that an evidence record must and may cover.
type Group struct {
	Required [][]byte // the record must cover all of these; at least two
	Optional [][]byte // and may cover any of these
}

func (g Group) hashed(hash crypto.Hash) (hashes Group) {
	for _, object := range g.Required {
		hashes.Required = append(hashes.Required, sum(hash, object))
	}
	for _, object := range g.Optional {
		hashes.Optional = append(hashes.Optional, sum(hash, object))
	}
	return hashes
}

// A Link is one time stamp of an evidence record, with the imprint that it must have.
type Link struct {
	DER     []byte // of the token
	Token   *Unverified
	Imprint Imprint
}

// Links recomputes the hashes of RFC 4998, 4.3 and 5.3 from the data objects. It returns the record's time stamps,
// the oldest first, each with the imprint that it must have. VerifyLinks checks the tokens. covered says which of the
// group's optional data objects the record covers.
//
// In each chain, the first list of the first archive time stamp must have exactly the hashes of the same data
// objects. In the first chain these are the objects' own hashes. In later chains they are hashes of the object's hash
// and that of the earlier chains, in this order. Links returns ErrImprint if a data object is not covered, and
// ErrGroup if other data is covered, too.
func (e *EvidenceRecord) Links(g Group) (links []Link, covered []bool, err error) {
	if len(g.Required) < 2 {
		return nil, nil, errors.New("checking evidence record: a group needs at least two data objects")
	}
	objects := map[crypto.Hash]Group{} // their hashes, because data objects are long and there can be many chains
	for i, chain := range e.chains {
		before, err := e.before(i, chain.hash)
		if err != nil {
			return nil, nil, err
		}
		if _, hashed := objects[chain.hash]; !hashed {
			objects[chain.hash] = g.hashed(chain.hash)
		}
		here, err := chain.covered(objects[chain.hash], before)
		if err != nil {
			return nil, nil, fmt.Errorf("checking evidence record: chain %d: %w", i, err)
		}
		if i > 0 && !slices.Equal(here, covered) {
			return nil, nil, fmt.Errorf("checking evidence record: chain %d: %w: other data objects than the first chain", i, ErrImprint)
		}
		covered = here
		more, err := chain.links()
		if err != nil {
			return nil, nil, fmt.Errorf("checking evidence record: chain %d: %w", i, err)
		}
		links = append(links, more...)
	}
	return links, covered, nil
}

// before is the hash of the chains before the i-th, as an ArchiveTimeStampSequence; nil if there are none.
func (e *EvidenceRecord) before(i int, hash crypto.Hash) ([]byte, error) {
	if i == 0 {
		return nil, nil
	}
	sequence, err := marshalSequence(e.chains[:i])
	if err != nil {
		return nil, err
	}
	return sum(hash, sequence), nil
}

func marshalSequence(chains []archiveChain) ([]byte, error) {
	var b cryptobyte.Builder
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		for _, c := range chains {
			b.AddBytes(c.element)
		}
	})
	return b.Bytes()
}

// inTree is the entry in a tree for a data object with this hash.
func inTree(hash crypto.Hash, object, before []byte) []byte {
	if before == nil {
		return object
	}
	return sum(hash, slices.Concat(object, before))
}

// covered compares the first list of a chain with the hashes of the group.
func (c *archiveChain) covered(g Group, before []byte) ([]bool, error) {
	if c.stamps[0].lists == nil {
		return nil, fmt.Errorf("%w: a single data object is stamped, not a group", ErrImprint)
	}
	first := c.stamps[0].lists[0]
	known := map[string]bool{}
	for _, object := range g.Required {
		hash := inTree(c.hash, object, before)
		if !first.has(hash) {
			return nil, fmt.Errorf("%w: one of the data objects is not covered", ErrImprint)
		}
		known[string(hash)] = true
	}
	covered := make([]bool, len(g.Optional))
	for i, object := range g.Optional {
		hash := inTree(c.hash, object, before)
		if covered[i] = first.has(hash); covered[i] {
			known[string(hash)] = true
		}
	}
	if len(known) != len(first) {
		return nil, ErrGroup
	}
	return covered, nil
}

// links computes the imprint of each time stamp of a chain. From the second on, each covers the token before it (RFC
// 4998, 5.2: time-stamp renewal).
func (c *archiveChain) links() (links []Link, err error) {
	for j, stamp := range c.stamps {
		root := []byte(nil)
		if j > 0 {
			root = sum(c.hash, c.stamps[j-1].stamp)
		}
		switch {
		case stamp.lists == nil:
		case root != nil && !stamp.lists[0].has(root):
			return nil, fmt.Errorf("archive time stamp %d: %w: it does not cover the one before", j, ErrImprint)
		default:
			if root, err = reduce(c.hash, stamp.lists); err != nil {
				return nil, fmt.Errorf("archive time stamp %d: %w", j, err)
			}
		}
		links = append(links, Link{DER: stamp.stamp, Token: stamp.token, Imprint: Imprint{Hash: c.hash, Sum: root}})
	}
	return links, nil
}

// reduce computes the root from a reduced hash tree (RFC 4998, 4.3, step 3).
func reduce(hash crypto.Hash, lists []hashList) ([]byte, error) {
	node := nodeHash(hash, lists[0])
	for _, list := range lists[1:] {
		if list.has(node) {
			return nil, fmt.Errorf("%w: a list contains the hash that is computed for it", ErrImprint)
		}
		node = nodeHash(hash, append(slices.Clip(list), node))
	}
	return node, nil
}

// nodeHash hashes the sorted, concatenated hashes of a list.
func nodeHash(hash crypto.Hash, list hashList) []byte {
	if !slices.IsSortedFunc(list, bytes.Compare) {
		list = slices.SortedFunc(slices.Values(list), bytes.Compare)
	}
	h := hash.New()
	for _, one := range list {
		h.Write(one)
	}
	return h.Sum(nil)
}

// VerifyLinks verifies the time stamps of an evidence record. verify checks one token with the caller's trust: for
// its imprint, and until the time when the next one renewed it (zero for the last), as Options.Until. VerifyLinks
// checks all tokens, so that it finds a forged one behind one that cannot be checked. Its error joins all errors.
//
// It returns ErrOrder for a renewal that states an earlier time than the token that it renews.
func VerifyLinks(links []Link, verify func(l Link, until time.Time) (*Token, error)) ([]*Token, error) {
	tokens := make([]*Token, len(links))
	var errs []error
	for i := len(links) - 1; i >= 0; i-- {
		var until time.Time
		if i+1 < len(links) && tokens[i+1] != nil {
			until = tokens[i+1].GenTime.Add(tokens[i+1].Accuracy)
		}
		token, err := verify(links[i], until)
		if err == nil && i+1 < len(links) && links[i+1].Token.info.genTime.Before(token.GenTime) {
			err = fmt.Errorf("%w: at %s, and issued at %s", ErrOrder,
				formatGenTime(links[i+1].Token.info.genTime), formatGenTime(token.GenTime))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("its time stamp %d: %w", i, err))
			continue
		}
		tokens[i] = token
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return tokens, nil
}

// Verify checks an evidence record over a group with one set of trust: every token fully, and each at the time when
// the next one renewed it. The first token's time proves that the group existed by then. Its errors are those of
// Links, VerifyLinks and Unverified.VerifyImprint.
func (e *EvidenceRecord) Verify(g Group, opts Options) ([]*Token, error) {
	links, _, err := e.Links(g)
	if err != nil {
		return nil, err
	}
	tokens, err := VerifyLinks(links, func(l Link, until time.Time) (*Token, error) {
		opts := opts
		opts.Until = until
		return l.Token.VerifyImprint(l.Imprint, opts)
	})
	if err != nil {
		return nil, fmt.Errorf("verifying evidence record: %w", err)
	}
	return tokens, nil
}
