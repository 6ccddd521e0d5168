package keys

import (
	"slices"
	"sort"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/verify/trust"
)

// Trusted returns the keys as a trust file names them: whose they are, from when to when, and which sign only together. What the log
// says of a key counts. Of a key that the log does not name, its file counts.
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
	sort.SliceStable(trusted, func(i, j int) bool { return compareKeys(trusted[i], trusted[j]) < 0 })
	return trusted
}

func recordedKey(k *Key) trust.Key {
	t := trust.Key{Name: k.Name, Role: k.Role, Algorithm: k.Algorithm, KeyID: k.KeyID, PublicKey: k.PublicKey,
		Custody: trust.Custody(k.Custody), NotBefore: k.From, NotAfter: k.Until,
		Revoked: k.Revoked, WithFrom: k.WithFrom}
	if k.Sudden {
		t.NotAfter = k.Until.Add(Settling) // what was under way counts
	}
	if !k.With.IsZero() {
		t.With = []evidence.KeyID{k.With}
	}
	return t
}

// unrecordedKey is a key that was made when its actor first signed, and of which the log says nothing. Where it says that
// the actor has another, as two programs met the actor at the same moment, this one has no time beyond that.
func unrecordedKey(k *Held, history *History) trust.Key {
	t := trust.Key{Name: k.Name, Role: k.Role, Algorithm: k.Algorithm, KeyID: k.KeyID, PublicKey: k.PublicKey,
		Custody: trust.ByOperator, NotBefore: k.Created}
	for _, other := range history.Keys() {
		if other.Role == k.Role && other.Name == k.Name && other.Algorithm.PostQuantum() == k.Algorithm.PostQuantum() {
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

// pair finds the other key that an actor's unrecorded one signs together with: the second never signs alone, and the first
// may have, until the second was made, unless it was made to sign with it.
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

// compareKeys orders keys by role and name, first keys before second ones, older ones before newer ones.
func compareKeys(a, b trust.Key) int {
	second := func(k trust.Key) int {
		if k.Algorithm.PostQuantum() {
			return 1
		}
		return 0
	}
	for _, order := range []int{strings.Compare(string(a.Role), string(b.Role)), strings.Compare(a.Name, b.Name), second(a) - second(b)} {
		if order != 0 {
			return order
		}
	}
	return a.NotBefore.Compare(b.NotBefore)
}

// Forever returns a trust file in which no key ends. What a key signed while it was its actor's is as whole as it was; what
// it is worth after its end is not the log's question.
func Forever(t *trust.Trust) *trust.Trust {
	for n := range t.Keys {
		t.Keys[n].NotAfter, t.Keys[n].Revoked = time.Time{}, time.Time{}
	}
	return t
}
