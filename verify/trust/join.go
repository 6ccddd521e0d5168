package trust

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
)

// Join returns a trust file that trusts what each of several trusts: for files of several owners. What two of them say of the same key, authority or
// CA must be the same, as must what they demand of witnesses and take from trusted lists: neither may loosen what the other demands.
func Join(files ...*Trust) (*Trust, error) {
	joined := &Trust{Format: Format, Keys: []Key{}, Authorities: []Authority{}, Logs: []string{}}
	for i, t := range files {
		if err := joined.take(t); err != nil {
			return nil, fmt.Errorf("trust file %d: %w", i+1, err)
		}
	}
	for _, t := range files {
		if joined.Quorum != t.Quorum || !equalSets(joined.Witnesses, t.Witnesses) {
			return nil, errors.New("the files demand different witnesses: a log that one of them has witnessed would pass without")
		}
	}
	return joined.Prepared()
}

// take adds what another trust file has.
func (t *Trust) take(other *Trust) error {
	if other.Lists != nil && t.Lists != nil && !sameForm(other.Lists, t.Lists) {
		return errors.New("it has other trusted lists than a file before it: join them first, and take the lists into the result with 'jurat trust eu'")
	}
	t.Lists = cmp.Or(t.Lists, other.Lists)
	t.Quorum = max(t.Quorum, other.Quorum)
	t.Logs, t.Witnesses = union(t.Logs, other.Logs), union(t.Witnesses, other.Witnesses)
	var err error
	if t.Keys, err = merged(t.Keys, other.Keys, func(k *Key) string { return k.KeyID.String() }); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	if t.Authorities, err = merged(t.Authorities, other.Authorities, func(a *Authority) string { return string(a.Certificate) }); err != nil {
		return fmt.Errorf("authorities: %w", err)
	}
	if t.CAs, err = merged(t.CAs, other.CAs, func(c *CA) string { return string(c.Certificate) }); err != nil {
		return fmt.Errorf("cas: %w", err)
	}
	return nil
}

// merged adds elements that are not there yet. Two that are the same thing must say the same of it.
func merged[T any](list, more []T, identity func(*T) string) ([]T, error) {
	for i := range more {
		at := slices.IndexFunc(list, func(known T) bool { return identity(&known) == identity(&more[i]) })
		switch {
		case at < 0:
			list = append(list, more[i])
		case !sameForm(&list[at], &more[i]):
			return nil, fmt.Errorf("element %d is there in another file, too, and says something else: leave one of them out", i)
		}
	}
	return list, nil
}

// sameForm reports whether two values are written alike.
func sameForm(a, b any) bool {
	one, err := json.Marshal(a, json.Deterministic(true))
	other, err2 := json.Marshal(b, json.Deterministic(true))
	return err == nil && err2 == nil && bytes.Equal(one, other)
}

func union(list, more []string) []string {
	for _, text := range more {
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}

func equalSets(a, b []string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(text string) bool { return !slices.Contains(b, text) })
}
