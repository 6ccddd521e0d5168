package timestamp

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
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
		c := reached[i] // it ends at a trust anchor, or at a certificate that names one as its issuer
		if slices.ContainsFunc(q.Roots, func(root *x509.Certificate) bool { return q.valid(root) && (root.Equal(c) || names(c, root)) }) {
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

// Bounds of the search for certificate paths. A step compares a certificate with one that may have issued it: see
// search.count. docs/format.md has the same numbers, because two verifiers must agree.
const (
	maxOfRecord = 128  // steps of one record
	maxOfFile   = 2048 // steps of all records of a file, and
	addedByEach = 32   // further ones for each record
)

// A Budget bounds the search for certificate paths in one file, because the sender of the file controls its
// certificates. It counts steps and measures no time, so the answer is the same on every machine. One goroutine may use it.
//
// To examine several records at once, give each a NewShare, and call Settle in the order of the file. If Settle returns
// false, examine that record again with a Share of the Budget.
type Budget struct{ left int }

// NewBudget makes the budget of a file.
func NewBudget() *Budget { return &Budget{maxOfFile} }

// A Share is what one record may spend. It is not safe for concurrent use.
type Share struct {
	most, spent int
	own         map[[sha256.Size]byte]answer
}

// An answer is the result of a search.
type answer struct {
	paths Paths
	err   error
}

// NewShare returns the share of a record by itself, or before its turn.
func NewShare() *Share { return &Share{most: maxOfRecord, own: map[[sha256.Size]byte]answer{}} }

// Share returns the share of the record that comes after all settled ones.
func (b *Budget) Share() *Share {
	s := NewShare()
	s.most = min(s.most, b.left+addedByEach)
	return s
}

// Settle takes a share back, in the order of the file. It returns false, and changes nothing, if a Share of the Budget
// would have given other results; of such a share it returns true.
func (b *Budget) Settle(s *Share) bool {
	left := b.left + addedByEach - s.spent
	if left < 0 {
		return false
	}
	b.left = left
	return true
}

// once runs do if the record has not run it before and there are enough steps left.
func (s *Share) once(key [sha256.Size]byte, steps int, m *Memory, do func() answer) answer {
	if a, known := s.own[key]; known {
		return a
	}
	if s.spent+steps > s.most {
		return answer{err: errSpent}
	}
	s.spent += steps
	s.own[key] = m.remember(key, do)
	return s.own[key]
}

// Once runs do, which costs one step, such as checking the signature of a revocation list. key identifies the work.
// Its error is remembered. Once returns ErrEffort if no step is left.
func (s *Share) Once(m *Memory, key [sha256.Size]byte, do func() error) error {
	return s.once(key, 1, m, func() answer { return answer{err: do()} }).err
}

// A Memory saves work for many tokens from few authorities: it parses each certificate once, and searches each
// certificate path once. The key of an entry is the exact bytes of every certificate that could be in the path and
// was valid at the token's time. The answer depends on nothing else. A Memory is safe
// for concurrent use; nil remembers nothing.
type Memory struct {
	mu           sync.Mutex // guards both maps
	certificates map[[sha256.Size]byte]*x509.Certificate
	answers      map[[sha256.Size]byte]answer
}

// Bounds of the entries, because the sender of tokens can put new certificates into each. When there are as many, all are forgotten.
const (
	maxCertificates = 1 << 10
	maxAnswers      = 1 << 13
)

// NewMemory returns an empty Memory. Use it only as long as the same trust.
func NewMemory() *Memory {
	return &Memory{certificates: map[[sha256.Size]byte]*x509.Certificate{}, answers: map[[sha256.Size]byte]answer{}}
}

// Parse is like the function Parse, with remembered certificates. All errors are ErrMalformed.
func (m *Memory) Parse(der []byte) (*Unverified, error) { return parse(der, m.certificate) }

func (m *Memory) certificate(der []byte) (*x509.Certificate, error) {
	if m == nil {
		return x509.ParseCertificate(der)
	}
	return remembered(m, m.certificates, maxCertificates, sha256.Sum256(der), func() (*x509.Certificate, error) { return x509.ParseCertificate(der) })
}

// remember returns the answer of do, and remembers it by key.
func (m *Memory) remember(key [sha256.Size]byte, do func() answer) answer {
	if m == nil {
		return do()
	}
	a, _ := remembered(m, m.answers, maxAnswers, key, func() (answer, error) { return do(), nil }) // what failed is a part of the answer
	return a
}

// remembered returns what is known by a key, or what do returns; that is then known, unless it failed.
func remembered[T any](m *Memory, known map[[sha256.Size]byte]T, most int, key [sha256.Size]byte, do func() (T, error)) (T, error) {
	m.mu.Lock()
	value, there := known[key]
	m.mu.Unlock()
	if there {
		return value, nil
	}
	value, err := do()
	if err != nil {
		return value, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(known) >= most {
		clear(known)
	}
	known[key] = value
	return value, nil
}
