package keys

import (
	"errors"
	"maps"
	"slices"
	"time"

	"jurat/evidence"
)

var (
	// ErrEvent says that a key event contradicts the events before it.
	ErrEvent = errors.New("the event does not fit what the log says of keys")
	// ErrEnded says that a key was replaced, retired or revoked, and signs no longer.
	ErrEnded = errors.New("the key has ended")
	// ErrForeign says that a key may not sign for this actor in this role.
	ErrForeign = errors.New("the key belongs to another actor")
	// ErrIncomplete says that only one of two keys that sign together has signed.
	ErrIncomplete = errors.New("a signature is missing")
)

// Settling is a period of grace for readers. Records that were in progress when two keys became a pair or a key ended, or that were stamped
// by another clock, still count this long. The log itself accepts no late record.
const Settling = time.Minute

// Skew is a tolerance for readers, too. The clock that stamps a record may be this far behind the clock that dates the key. So a record
// that a new key signs at once may have a time stamp before the key's beginning.
const Skew = 5 * time.Minute

// A Key is a public key that the log names. Callers must not change its fields.
type Key struct {
	Name         string
	Role         evidence.Role
	Algorithm    evidence.Algorithm
	KeyID        evidence.KeyID
	PublicKey    []byte   // DER SubjectPublicKeyInfo
	Certificates [][]byte // DER: the key's own, then those above it, as they were registered last
	Custody      string   // operator.CustodyOwner or operator.CustodyOperator

	Card       evidence.Digest // the A2A agent card that belongs to the key; zero: the log names none
	CardRecord string          // the id of the record that names it

	From time.Time

	Until   time.Time // the end of the key; zero: it has none yet
	Sudden  bool      // the key ended at once, when the event was logged; records in progress had no time to settle
	Revoked time.Time // signatures from then on do not count; zero: it is not revoked

	With     evidence.KeyID // the key that signs together with this one; zero: it signs alone
	WithFrom time.Time      // the time since when they sign together; zero: always

	replaced   bool
	registered []certified // every list of certificates, in the order of the log
}

// A certified is a list of certificates, and the time from which the log names it for a key.
type certified struct {
	from         time.Time
	certificates [][]byte
}

// Ended reports whether the key has ended at a time. A sudden end is final: it holds even if the clock was set back afterwards.
func (k *Key) Ended(at time.Time) bool {
	return !k.Revoked.IsZero() || k.Sudden || !k.Until.IsZero() && !at.Before(k.Until)
}

// end sets the end of a key, unless the key has an earlier end.
func (k *Key) end(at time.Time, sudden bool) {
	if at.Before(k.From) {
		at = k.From
	}
	if k.Until.IsZero() || at.Before(k.Until) {
		k.Until, k.Sudden = at, sudden
	}
}

// An actor is one name in one role.
type actor struct {
	role evidence.Role
	name string
}

// hands holds an actor's latest keys, by rank. Each may be nil.
type hands [2]*Key

// rank is 0 for the algorithms of first keys, and 1 for that of second ones.
func rank(algorithm evidence.Algorithm) int {
	if algorithm.PostQuantum() {
		return 1
	}
	return 0
}

// A History is the state of all keys that the log names. Changing it is not safe for concurrent use.
type History struct {
	keys   []*Key // in the order of the log
	byID   map[evidence.KeyID]*Key
	actors map[actor]hands
	count  int64
	last   *evidence.Record
}

// NewHistory returns an empty history.
func NewHistory() *History {
	return &History{byID: map[evidence.KeyID]*Key{}, actors: map[actor]hands{}}
}

// ReadHistory reads a whole chain of key events, in the order of the log. Its errors have ErrEvent in their chain.
func ReadHistory(chain []*evidence.Record) (*History, error) {
	h := NewHistory()
	for _, r := range chain {
		if err := h.Apply(r); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// Clone returns an independent copy.
func (h *History) Clone() *History {
	c := &History{keys: make([]*Key, len(h.keys)), byID: make(map[evidence.KeyID]*Key, len(h.keys)),
		actors: maps.Clone(h.actors), count: h.count, last: h.last}
	for i, k := range h.keys {
		c.keys[i] = new(*k)
		c.byID[k.KeyID] = c.keys[i]
	}
	for who, has := range c.actors {
		for n, k := range has {
			if k != nil {
				has[n] = c.byID[k.KeyID]
			}
		}
		c.actors[who] = has
	}
	return c
}

// Count returns the number of acts in the history.
func (h *History) Count() int64 { return h.count }

// Keys returns every key, in the order in which the log first names them.
func (h *History) Keys() []*Key { return h.keys }

// Key returns the key with this id, or nil.
func (h *History) Key(id evidence.KeyID) *Key { return h.byID[id] }

// Current returns an actor's latest key of this algorithm's kind, or nil. The key may have ended.
func (h *History) Current(role evidence.Role, name string, algorithm evidence.Algorithm) *Key {
	return h.actors[actor{role, name}][rank(algorithm)]
}

// Latest returns an actor's latest keys, the first before the second. They may have ended.
func (h *History) Latest(role evidence.Role, name string) []*Key {
	has := h.actors[actor{role, name}]
	return slices.DeleteFunc(has[:], func(k *Key) bool { return k == nil })
}

// Active returns the keys that sign for an actor at a time, the first before the second.
func (h *History) Active(role evidence.Role, name string, at time.Time) []*Key {
	return slices.DeleteFunc(h.Latest(role, name), func(k *Key) bool { return k.Ended(at) })
}
