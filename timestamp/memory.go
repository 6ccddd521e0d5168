package timestamp

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"sync"
	"time"
)

// A Memory spares work where many tokens come from few authorities: it reads
// each certificate once, and looks for each certificate path once. What it
// remembers is known by the exact bytes of every certificate that was looked at
// and by which of them were valid at the token's time and until its renewal, as
// the answer rests on nothing else. A path that was not found is looked for again. It is safe for
// concurrent use; nil remembers nothing.
type Memory struct {
	mu           sync.Mutex // guards both maps
	certificates map[[sha256.Size]byte]*x509.Certificate
	paths        map[[sha256.Size]byte][]*x509.Certificate
}

// memorable bounds what is kept: whoever hands over tokens can put new
// certificates into each.
const memorable = 1 << 10

// NewMemory makes one that remembers nothing yet. It should not outlive the
// trust that it was used with.
func NewMemory() *Memory {
	return &Memory{certificates: map[[sha256.Size]byte]*x509.Certificate{}, paths: map[[sha256.Size]byte][]*x509.Certificate{}}
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

// path returns what find returns, without asking it twice.
func (m *Memory) path(key [sha256.Size]byte, find func() ([]*x509.Certificate, error)) ([]*x509.Certificate, error) {
	m.mu.Lock()
	known := m.paths[key]
	m.mu.Unlock()
	if known != nil {
		return known, nil
	}
	path, err := find()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.paths) < memorable {
		m.paths[key] = path
	}
	return path, nil
}

// question is all that the search for a path rests on.
func question(at, until time.Time, mock bool, signer *x509.Certificate, lists ...[]*x509.Certificate) [sha256.Size]byte {
	hash := sha256.New()
	put := func(c *x509.Certificate) {
		head := binary.BigEndian.AppendUint64(nil, uint64(len(c.Raw))<<3)
		if at.Before(c.NotBefore) {
			head[7] |= 1
		}
		if at.After(c.NotAfter) {
			head[7] |= 2
		}
		if !validAt([]*x509.Certificate{c}, until) {
			head[7] |= 4
		}
		hash.Write(head)
		hash.Write(c.Raw)
	}
	put(signer)
	for _, list := range lists {
		head := binary.BigEndian.AppendUint64(nil, uint64(len(list))<<1)
		if mock {
			head[7] |= 1
		}
		hash.Write(head)
		for _, c := range list {
			put(c)
		}
	}
	return [sha256.Size]byte(hash.Sum(nil))
}
