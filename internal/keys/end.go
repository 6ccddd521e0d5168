package keys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/token"
)

// RotateOwned replaces an actor's keys by keys that the actor holds itself. It does not matter who holds the old keys. From then on this
// installation does not sign for the actor. The errors include ErrNoSuchKey, and ErrPair if one key is to replace an owner's two.
func (r *Registrar) RotateOwned(ctx context.Context, role evidence.Role, name string, given []OwnerKey, why Why) error {
	return r.change(ctx, "rotating key", why, func(h *History) ([]operator.KeyEventBody, error) {
		events, err := owned(role, name, given)
		if err != nil {
			return nil, err
		}
		before, old, err := r.present(ctx, h, role, name)
		if err != nil {
			return nil, err
		}
		if len(events) < len(old) && old[0].Custody == operator.CustodyOwner {
			return nil, ErrPair
		}
		return r.rotate(before, old, events)
	})
}

// Rotate makes new keys for an actor whose keys the operator holds. They replace the old keys, and Rotate destroys the old private halves.
// algorithm is that of the first key; "" keeps the old one. If on is not nil, the first key is the one on a token that on names. An old key
// on a token stays there, and no longer signs for this installation. The errors include ErrOwner and ErrNoSuchKey.
func (r *Registrar) Rotate(ctx context.Context, role evidence.Role, name string, algorithm evidence.Algorithm, on *token.Reference, why Why) error {
	return r.change(ctx, "rotating key", why, func(h *History) ([]operator.KeyEventBody, error) {
		before, old, err := r.present(ctx, h, role, name)
		if err != nil {
			return nil, err
		}
		var events []operator.KeyEventBody
		for _, k := range old {
			if k.Custody == operator.CustodyOwner {
				return nil, ErrOwner
			}
			next, where := k.Algorithm, on
			if next.PostQuantum() {
				where = nil // a second key is always in a file
			} else if algorithm != "" {
				next = algorithm
			}
			key, err := r.Ring.Next(ctx, role, name, next, where)
			if err != nil {
				return nil, err
			}
			events = append(events, key.body())
		}
		return r.rotate(before, old, events)
	})
}

// present returns the keys of an actor that can be replaced, the second before the first. They are the keys that sign, or else the last
// that did. before holds the events for those among them that the log does not name yet; they must be logged first.
func (r *Registrar) present(ctx context.Context, h *History, role evidence.Role, name string) (before, old []operator.KeyEventBody, err error) {
	keys := h.Active(role, name, r.Now())
	if len(keys) == 0 {
		keys = h.Latest(role, name)
	}
	for _, k := range keys {
		old = append(old, bodyOf(k))
	}
	if before, err = r.unrecorded(ctx, role, name); err != nil {
		return nil, nil, err
	}
	if old = append(old, before...); len(old) == 0 {
		return nil, nil, fmt.Errorf("%w: %s %q has none", ErrNoSuchKey, role, name)
	}
	slices.SortStableFunc(old, func(a, b operator.KeyEventBody) int { return rank(b.Algorithm) - rank(a.Algorithm) })
	return before, old, nil
}

// unrecorded returns the events that register the keys that an actor got when it first signed.
func (r *Registrar) unrecorded(ctx context.Context, role evidence.Role, name string) ([]operator.KeyEventBody, error) {
	keys, err := r.Ring.Unrecorded(ctx, role, name)
	var events []operator.KeyEventBody
	for _, k := range keys {
		event := k.body()
		event.Event, event.From = operator.KeyRegistered, written(k.Created)
		events = append(events, event)
	}
	return events, err
}

// rotate returns the events by which each new key replaces the old key of its kind.
func (r *Registrar) rotate(before, old, events []operator.KeyEventBody) ([]operator.KeyEventBody, error) {
	from, list := r.since(old...), slices.Clone(before)
	for _, e := range events {
		n := slices.IndexFunc(old, func(k operator.KeyEventBody) bool { return rank(k.Algorithm) == rank(e.Algorithm) })
		if n < 0 {
			return nil, fmt.Errorf("%w: %s %q has no key that one of %s can replace; rotate the other key, and register this one afterwards", ErrNoSuchKey, e.Role, e.Name, e.Algorithm)
		}
		e.Event, e.From, e.Replaces = operator.KeyRotated, written(from), old[n].KeyID
		list = append(list, e)
	}
	return list, nil
}

// Retire ends a key from now on. What it signed before stays valid. The errors include ErrNoSuchKey.
func (r *Registrar) Retire(ctx context.Context, id evidence.KeyID, why Why) error {
	return r.endKey(ctx, id, operator.KeyRetired, time.Time{}, why)
}

// Revoke ends a key that others may have used. Signatures from the time from on do not count; zero means now. The errors include
// ErrNoSuchKey.
func (r *Registrar) Revoke(ctx context.Context, id evidence.KeyID, from time.Time, why Why) error {
	return r.endKey(ctx, id, operator.KeyRevoked, from, why)
}

func (r *Registrar) endKey(ctx context.Context, id evidence.KeyID, event operator.KeyChange, from time.Time, why Why) error {
	doing := map[operator.KeyChange]string{operator.KeyRetired: "retiring key", operator.KeyRevoked: "revoking key"}[event]
	return r.change(ctx, doing, why, func(h *History) ([]operator.KeyEventBody, error) {
		role, name, err := r.whose(ctx, h, id)
		if err != nil {
			return nil, err
		}
		before, known, err := r.present(ctx, h, role, name)
		if err != nil {
			return nil, err
		}
		if k := h.Key(id); k != nil {
			known = []operator.KeyEventBody{bodyOf(k)}
		}
		n := slices.IndexFunc(known, func(e operator.KeyEventBody) bool { return e.KeyID == id })
		if n < 0 {
			return nil, fmt.Errorf("%w: %s", ErrNoSuchKey, id)
		}
		body := known[n]
		if role == evidence.RoleOperator && (h.Key(id) == nil || !h.Key(id).Ended(r.Now())) {
			return nil, errors.New("this key signs the operator's acts, this one included: rotate it first")
		}
		end := r.since(body)
		if !from.IsZero() {
			end = from
		}
		body.Event, body.From, body.PublicKey, body.Protection = event, written(end), nil, nil
		return append(before, body), nil
	})
}

// whose returns the actor that a key belongs to, or ErrNoSuchKey.
func (r *Registrar) whose(ctx context.Context, h *History, id evidence.KeyID) (evidence.Role, string, error) {
	if k := h.Key(id); k != nil {
		return k.Role, k.Name, nil
	}
	files, err := r.Ring.Keys(ctx)
	if err != nil {
		return "", "", err
	}
	for _, k := range files {
		if k.KeyID == id {
			return k.Role, k.Name, nil
		}
	}
	return "", "", fmt.Errorf("%w: %s", ErrNoSuchKey, id)
}

// body returns an event body that describes a key that the operator holds.
func (k *Held) body() operator.KeyEventBody {
	return operator.KeyEventBody{Algorithm: k.Algorithm, KeyID: k.KeyID, Name: k.Name, Role: k.Role, Custody: operator.CustodyOperator,
		PublicKey: k.PublicKey, Protection: k.Protection}
}

// bodyOf returns an event body that describes a key of the log.
func bodyOf(k *Key) operator.KeyEventBody {
	return operator.KeyEventBody{Algorithm: k.Algorithm, KeyID: k.KeyID, Name: k.Name, Role: k.Role, Custody: k.Custody, From: written(k.From)}
}

// since returns the present second. If one of the keys began later, because the clock was set back, it returns that time: a key cannot end
// before it began.
func (r *Registrar) since(keys ...operator.KeyEventBody) time.Time {
	at := r.Now().UTC().Truncate(time.Second)
	for _, k := range keys {
		if from, err := evidence.ParseTime(k.From); err == nil && from.After(at) {
			at = from
		}
	}
	return at
}

func written(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }
