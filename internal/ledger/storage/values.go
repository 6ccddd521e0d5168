package storage

import "context"

// Values keep what is sealed apart of records: each value by its name, encrypted, and its key in another place. They are safe for concurrent use, also by
// several processes. Every change is durable when its call returns, and a crash leaves all of it or nothing.
type Values interface {
	// Add keeps new values, all or none. Many callers at once share the work. If one of the names is there, the error wraps fs.ErrExist.
	Add(ctx context.Context, values []Value) error
	// Read returns a value. If there is none of this name, the error wraps fs.ErrNotExist. It wraps ErrDamaged if that cannot be told.
	Read(ctx context.Context, name string) (Value, error)
	// DestroyKey makes a value unreadable for ever, here and in every copy that lacks the key. It can be repeated. If there is no such value or key,
	// it does nothing.
	DestroyKey(ctx context.Context, name string) error
	// Remove removes a value whose key is destroyed, if it is there.
	Remove(ctx context.Context, name string) error
	// Each calls found for each name, in no order. It may miss values that are added or removed meanwhile.
	Each(ctx context.Context, found func(name string) error) error
	// Where describes the place of a value, for people.
	Where(name string) string
}

// A Value is sealed apart of a record.
type Value struct {
	Name   string
	Sealed []byte
	Key    []byte // of 32 bytes; nil: there is none, or it was destroyed
}
