package keys

import (
	"errors"
	"maps"
	"slices"
	"time"

	"jurat/evidence"
)

var (
	// ErrEvent says that an act about a key contradicts those before it.
	ErrEvent = errors.New("the event does not fit what the log says of keys")
	// ErrEnded says that a key signs no more: it was replaced, retired or revoked.
	ErrEnded = errors.New("the key signs no more")
	// ErrForeign says that a key is not one that may sign for this actor in this role.
	ErrForeign = errors.New("the key is not this actor's")
	// ErrIncomplete says that a key has not signed that signs only together with one that has.
	ErrIncomplete = errors.New("a signature is missing")
)

// Settling is how long after two keys became a pair, or a key came to its end, records still count that were under way
// then, or that another clock has stamped. It is for readers: the log itself takes nothing that comes late.
const Settling = time.Minute

// Skew is how much the clock of who stamps may be behind the one that says from when on a key is its actor's. It is for
// readers, too: what a new key signs at once may bear a time stamp of before.
const Skew = 5 * time.Minute

// A Key is a public key of which the log speaks. Its fields must not be changed.
type Key struct {
	Name         string
	Role         evidence.Role
	Algorithm    evidence.Algorithm
	KeyID        evidence.KeyID
	PublicKey    []byte   // DER SubjectPublicKeyInfo
	Certificates [][]byte // DER: its own, then those above it
	Custody      string   // operator.CustodyOwner or operator.CustodyOperator
	From         time.Time

	Until   time.Time // it signs nothing from then on; zero: no end is known
	Sudden  bool      // Until is when the log was told: there was no time to settle what was under way
	Revoked time.Time // others may have signed with it from then on; zero: it is not revoked

	With     evidence.KeyID // the key that it signs together with; zero: it signs alone
	WithFrom time.Time      // since when; zero: always

	replaced bool
}

// Ended reports whether the key signs no more. An end of which the log was told when it came has come, also by a clock that
// was set back since.
func (k *Key) Ended(at time.Time) bool {
	return !k.Revoked.IsZero() || k.Sudden || !k.Until.IsZero() && !at.Before(k.Until)
}

// end sets the end of a key, unless it has an earlier one.
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

// hands are an actor's latest keys. Either can be nil.
type hands struct{ first, second *Key }

func (h *hands) at(algorithm evidence.Algorithm) **Key {
	if algorithm.PostQuantum() {
		return &h.second
	}
	return &h.first
}

func (h *hands) all() []*Key {
	return slices.DeleteFunc([]*Key{h.first, h.second}, func(k *Key) bool { return k == nil })
}

// A History is what the log says of keys. It is not safe for concurrent changes.
type History struct {
	keys   []*Key // in the order of the log
	byID   map[evidence.KeyID]*Key
	actors map[actor]hands
	count  int64
	last   *evidence.Record
}

// NewHistory returns the history of a log that says nothing of keys.
func NewHistory() *History {
	return &History{byID: map[evidence.KeyID]*Key{}, actors: map[actor]hands{}}
}

// ReadHistory reads the chain, from its beginning and in the order of the log.
func ReadHistory(chain []*evidence.Record) (*History, error) {
	h := NewHistory()
	for _, r := range chain {
		if err := h.Apply(r); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// Clone returns a copy that can be changed without changing this one.
func (h *History) Clone() *History {
	c := &History{keys: make([]*Key, len(h.keys)), byID: make(map[evidence.KeyID]*Key, len(h.keys)),
		actors: maps.Clone(h.actors), count: h.count, last: h.last}
	for i, k := range h.keys {
		c.keys[i] = new(*k)
		c.byID[k.KeyID] = c.keys[i]
	}
	for who, has := range c.actors {
		for _, at := range []**Key{&has.first, &has.second} {
			if *at != nil {
				*at = c.byID[(*at).KeyID]
			}
		}
		c.actors[who] = has
	}
	return c
}

// Count returns how many acts the history was read from.
func (h *History) Count() int64 { return h.count }

// Keys returns every key, in the order in which the log names them first.
func (h *History) Keys() []*Key { return h.keys }

// Key returns the key with this id, or nil.
func (h *History) Key(id evidence.KeyID) *Key { return h.byID[id] }

// Current returns the latest key of an actor that is of this algorithm's kind, which may have ended, or nil.
func (h *History) Current(role evidence.Role, name string, algorithm evidence.Algorithm) *Key {
	has := h.actors[actor{role, name}]
	return *has.at(algorithm)
}

// Latest returns the latest keys of an actor, its first before its second. They may have ended.
func (h *History) Latest(role evidence.Role, name string) []*Key {
	has := h.actors[actor{role, name}]
	return has.all()
}

// Active returns the keys that sign for an actor at a time, its first before its second.
func (h *History) Active(role evidence.Role, name string, at time.Time) []*Key {
	return slices.DeleteFunc(h.Latest(role, name), func(k *Key) bool { return k.Ended(at) })
}
