package timestamp

import (
	"crypto/sha256"
	"crypto/x509"
	"sync"
)

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
	key := sha256.Sum256(der)
	m.mu.Lock()
	known := m.certificates[key]
	m.mu.Unlock()
	if known != nil {
		return known, nil
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	learn(m.certificates, maxCertificates, key, c)
	return c, nil
}

// remember returns the answer of do, and remembers it by key.
func (m *Memory) remember(key [sha256.Size]byte, do func() answer) answer {
	if m == nil {
		return do()
	}
	m.mu.Lock()
	known, there := m.answers[key]
	m.mu.Unlock()
	if there {
		return known
	}
	a := do()
	m.mu.Lock()
	defer m.mu.Unlock()
	learn(m.answers, maxAnswers, key, a)
	return a
}

func learn[T any](known map[[sha256.Size]byte]T, most int, key [sha256.Size]byte, value T) {
	if len(known) >= most {
		clear(known)
	}
	known[key] = value
}
