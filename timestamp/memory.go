package timestamp

import (
	"crypto/sha256"
	"crypto/x509"
	"sync"
)

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
	maxAnswers      = 2 * maxOfFile // more than a file can pay for, so that few of its searches are made again
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
