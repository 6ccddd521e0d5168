package keys

import (
	"cmp"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/verify/trust"
)

// Trusted returns the keys in the form of a trust file: each key's actor, its period, and the keys that sign only together. The log decides
// about every key that it names. For other keys, their files decide.
func Trusted(held []*Held, history *History) []trust.Key {
	var trusted []trust.Key
	for _, k := range history.Keys() {
		trusted = append(trusted, recordedKey(k))
	}
	for _, k := range held {
		if history.Key(k.KeyID) == nil {
			trusted = append(trusted, unrecordedKey(k, history))
		}
	}
	for _, k := range held {
		if history.Key(k.KeyID) == nil {
			pair(trusted, k, history)
		}
	}
	for n := range trusted {
		trusted[n].NotBefore = trusted[n].NotBefore.Add(-Skew)
	}
	slices.SortStableFunc(trusted, compareKeys)
	return trusted
}

func recordedKey(k *Key) trust.Key {
	t := trust.Key{Name: k.Name, Role: k.Role, Algorithm: k.Algorithm, KeyID: k.KeyID, PublicKey: k.PublicKey,
		Custody: trust.Custody(k.Custody), NotBefore: k.From, NotAfter: k.Until,
		Revoked: k.Revoked, WithFrom: k.WithFrom}
	if k.Sudden {
		t.NotAfter = k.Until.Add(Settling) // records in progress at that time count
	}
	if !k.With.IsZero() {
		t.With = []evidence.KeyID{k.With}
	}
	return t
}

// unrecordedKey returns the entry of a key that was made when its actor first signed, and that the log does not name. If the log names
// another key of the actor, two programs made a key at the same moment. The unrecorded key then ends soon after the other one begins.
func unrecordedKey(k *Held, history *History) trust.Key {
	t := trust.Key{Name: k.Name, Role: k.Role, Algorithm: k.Algorithm, KeyID: k.KeyID, PublicKey: k.PublicKey,
		Custody: trust.ByOperator, NotBefore: k.Created}
	for _, other := range history.Keys() {
		if other.Role == k.Role && other.Name == k.Name && rank(other.Algorithm) == rank(k.Algorithm) {
			t.NotAfter = later(k.Created, other.From.Add(Settling))
			break
		}
	}
	return t
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// pair pairs an actor's unrecorded key with the actor's other key. The second key never signs alone. The first may have signed alone until
// the second was made, unless it was made to sign with it.
func pair(trusted []trust.Key, k *Held, history *History) {
	find := func(second bool) *trust.Key {
		i := slices.IndexFunc(trusted, func(t trust.Key) bool {
			known := history.Key(t.KeyID)
			return t.Role == k.Role && t.Name == k.Name && t.Algorithm.PostQuantum() == second && t.With == nil &&
				(known == nil && t.NotAfter.IsZero() || known != nil && (known.Until.IsZero() || k.Created.Before(known.Until)))
		})
		if i < 0 {
			return nil
		}
		return &trusted[i]
	}
	first, second := find(false), find(true)
	if first == nil || second == nil {
		return
	}
	first.With, second.With = []evidence.KeyID{second.KeyID}, []evidence.KeyID{first.KeyID}
	if !k.Algorithm.PostQuantum() && k.With != second.KeyID || k.Algorithm.PostQuantum() && history.Key(first.KeyID) != nil {
		first.WithFrom = second.NotBefore.Add(Settling)
	}
}

// compareKeys orders keys by role and name, first keys before second keys, older keys before newer ones.
func compareKeys(a, b trust.Key) int {
	return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Name, b.Name), rank(a.Algorithm)-rank(b.Algorithm), a.NotBefore.Compare(b.NotBefore))
}

// Forever changes a trust file so that no key ends, and returns it. The log checks that records are intact: a record stays intact after its
// key's end. What it then proves is for the reader to judge.
func Forever(t *trust.Trust) *trust.Trust {
	for n := range t.Keys {
		t.Keys[n].NotAfter, t.Keys[n].Revoked = time.Time{}, time.Time{}
	}
	return t
}
