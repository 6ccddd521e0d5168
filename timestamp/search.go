package timestamp

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// Paths are certificate paths, each from the given certificate to a trust anchor.
type Paths [][]*x509.Certificate

// A Search is a search for certificate paths.
type Search struct {
	From    *x509.Certificate
	Between []*x509.Certificate // possible intermediates; see Between
	Roots   []*x509.Certificate // trust anchors
	At      time.Time           // when the whole path must be valid; not zero
	Usage   x509.ExtKeyUsage    // that the whole path must allow
	Memory  *Memory             // saves work over many files; nil: none
}

var errSpent = fmt.Errorf("%w: the search for its certificate path takes more steps than this record or file has left", ErrEffort)

// Find searches the paths, as far as the share allows. crypto/x509 checks signatures, validity and extended key usage along the path, and
// refuses SHA-1 and unknown critical extensions; keeps checks path lengths, name constraints and the size of keys. If there is no
// path, the error is ErrEffort, or says why.
func (s *Share) Find(q Search) (Paths, error) {
	q.Between = q.candidates()
	if !q.leads() {
		q.Between = nil // no signature of theirs needs checking
		return q.find()
	}
	q.Roots = slices.DeleteFunc(slices.Clone(q.Roots), func(root *x509.Certificate) bool { return !q.valid(root) })
	a := s.once(q.key(), q.count(), q.Memory, func() (a answer) {
		a.paths, a.err = q.find()
		return a
	})
	return a.paths, a.err
}

// candidates are the intermediates that are valid at the time, each once, without those at the ends. So the answer no
// longer depends on the time.
func (q *Search) candidates() (list []*x509.Certificate) {
	for _, c := range q.Between {
		if q.valid(c) && !slices.ContainsFunc(slices.Concat(list, q.Roots), c.Equal) && !c.Equal(q.From) {
			list = append(list, c)
		}
	}
	return list
}

func (q *Search) valid(c *x509.Certificate) bool {
	return !q.At.Before(c.NotBefore) && !q.At.After(c.NotAfter)
}

// ends reports whether a certificate is a trust anchor, or names one as its issuer.
func (q *Search) ends(c *x509.Certificate) bool {
	return slices.ContainsFunc(q.Roots, func(root *x509.Certificate) bool { return q.valid(root) && (root.Equal(c) || names(c, root)) })
}

// names reports whether a certificate names another one as its issuer, byte for byte.
func names(c, issuer *x509.Certificate) bool { return bytes.Equal(c.RawIssuer, issuer.RawSubject) }

// leads reports whether the names lead to a trust anchor. If not, there is no path, and no signature must be checked.
func (q *Search) leads() bool {
	if !q.valid(q.From) {
		return false
	}
	reached := []*x509.Certificate{q.From}
	rest := slices.Clone(q.Between)
	for i := 0; i < len(reached); i++ {
		if q.ends(reached[i]) {
			return true
		}
		rest = slices.DeleteFunc(rest, func(c *x509.Certificate) bool {
			next := names(reached[i], c)
			if next {
				reached = append(reached, c)
			}
			return next
		})
	}
	return false
}

// count returns an upper bound of the steps of a search; it stops soon after maxOfRecord. A step goes from a certificate
// to one that it names as its issuer, on every way from the first certificate without repetition. A way ends at a
// trust anchor. Each step is one signature to check, and crypto/x509 checks no more than these.
func (q *Search) count() (steps int) {
	way := []*x509.Certificate{q.From}
	var walk func()
	walk = func() {
		last := way[len(way)-1]
		for _, root := range q.Roots {
			if names(last, root) {
				steps++
			}
		}
		for _, c := range q.Between {
			if steps > maxOfRecord {
				return
			}
			if names(last, c) && !slices.ContainsFunc(way, c.Equal) {
				steps++
				way = append(way, c)
				walk()
				way = way[:len(way)-1]
			}
		}
	}
	if !slices.ContainsFunc(q.Roots, q.From.Equal) {
		walk()
	}
	return steps
}

// key identifies the search by everything that its answer depends on; every certificate is valid at the time.
func (q *Search) key() [sha256.Size]byte {
	hash := sha256.New()
	put := func(n int) { hash.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) }
	put(int(q.Usage))
	for _, list := range [][]*x509.Certificate{{q.From}, q.Between, q.Roots} {
		put(len(list))
		for _, c := range list {
			put(len(c.Raw))
			hash.Write(c.Raw)
		}
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

func (q *Search) find() (Paths, error) {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	whole := map[*x509.Certificate]*x509.Certificate{} // by what crypto/x509 is asked about
	bare := func(c *x509.Certificate) *x509.Certificate {
		b := unconstrained(c)
		whole[b] = c
		return b
	}
	for _, c := range q.Roots {
		roots.AddCert(bare(c))
	}
	for _, c := range q.Between {
		between.AddCert(bare(c))
	}
	found, err := bare(q.From).Verify(x509.VerifyOptions{
		Roots:         roots, // never nil, because nil means the machine's roots
		Intermediates: between,
		CurrentTime:   q.At,
		KeyUsages:     []x509.ExtKeyUsage{q.Usage},
	})
	var paths Paths
	for _, path := range found {
		for i, c := range path {
			path[i] = whole[c]
		}
		if broken := keeps(path); broken != nil {
			err = cmp.Or(err, broken)
			continue
		}
		paths = append(paths, path)
	}
	if len(paths) > 0 {
		return paths, nil
	}
	return nil, err
}
