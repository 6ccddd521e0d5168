package timestamp

import (
	"crypto/sha256"
	"crypto/x509"
	"sync"
)

// A Memory spares work where many tokens come from few authorities: it reads
// each certificate once, and looks for each certificate path once. What it
// remembers is known by the exact bytes of every certificate that could stand in
// the path and was valid at the token's time, as the answer rests on nothing else. A path that was not found is looked for again. It is safe for
// concurrent use; nil remembers nothing.
type Memory struct {
	mu           sync.Mutex // guards both maps
	certificates map[[sha256.Size]byte]*x509.Certificate
	paths        map[[sha256.Size]byte]Paths
}

// memorable bounds what is kept: whoever hands over tokens can put new
// certificates into each.
const memorable = 1 << 10

// NewMemory makes one that remembers nothing yet. It should not outlive the
// trust that it was used with.
func NewMemory() *Memory {
	return &Memory{certificates: map[[sha256.Size]byte]*x509.Certificate{}, paths: map[[sha256.Size]byte]Paths{}}
}

// Parse is like the function Parse.
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
	if len(m.certificates) < memorable {
		m.certificates[key] = c
	}
	return c, nil
}

// find returns what the function does, without asking it twice.
func (m *Memory) find(key [sha256.Size]byte, find func() (Paths, error)) (Paths, error) {
	if m == nil {
		return find()
	}
	m.mu.Lock()
	known := m.paths[key]
	m.mu.Unlock()
	if known != nil {
		return known, nil
	}
	paths, err := find()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.paths) < memorable {
		m.paths[key] = paths
	}
	return paths, nil
}
