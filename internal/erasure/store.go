// Package erasure keeps the values that are sealed apart, so that they can be disclosed later, or destroyed. A Keeper decides what is
// sealed apart for each actor, an Eraser destroys values, and a Fsck checks the kept values against the log.
//
// Each value is encrypted (AES-256-GCM, together with the salt of its commitment) under a key of its own. In a data folder the values are
// in a table and the keys in a file of slots:
//
//	apart/values.db      the values: copy them into backups as you like
//	apart-keys/N.keys    the keys, of 32 bytes: keep them only where they can be destroyed
//
// In a database that machines share, each is a file of its file store (see InFiles).
//
// # One key for each value, and keys apart from values
//
// Backups copy the values and leave out the keys, so destroying one key of 32 bytes erases the value from every copy. A value's name is
// RECORD-MEMBER: the payload's digest, and the beginning of the SHA-256 of the JSON pointer. So no text of an actor is part of a name. It is not
// the record id: a draft that is sealed twice has two sets of salts, and the log accepts one.
//
// A value and its key are durable before the record is appended, so no record in the log has lost its texts. A crash before that leaves a value
// whose record is not in the log. It proves and harms nothing, but it is a text that an actor said, so fsck reports it.
//
// # What "destroyed" means
//
// Destroy overwrites the key with zeros where it is and syncs it, and then removes the value. That suffices if both the file system and the disk write in place.
// SSDs write elsewhere and keep the old block until they collect it. File systems that copy on write (btrfs, ZFS, APFS), data journals,
// snapshots and backups keep the old key as long as they keep the old state. There a value is gone when the last copy of its key is gone.
// So put `apart-keys` on storage that you can destroy as a whole, or that is encrypted itself, without snapshots. If you must back it up,
// keep the backups for less time than you may keep the texts. A reader to whom a text was disclosed still has it.
//
// # An erasure is an act, and the act comes first
//
// The order is intent, act, key, value. The intent fixes the act's record id, so the act is in the log once, even after crashes and races.
// Once the act is in the log, the next process that opens the installation finishes the erasure. For a moment the act may precede the
// erasure. That is better than a text that is gone without an act that says so.
//
// # An erasure looks before it acts
//
// Erasing one copy of a text does not erase the same text in another record. So the Eraser searches every payload and every kept value for
// the text. It also looks for parts of the text that are strings of their own, such as quotations in a juror's findings. The search finds
// equal text only.
package erasure

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"jurat/evidence"
	"jurat/internal/filestore"
	"jurat/internal/ledger/storage"
)

var (
	// ErrNone says that the store has no value for a member: it was destroyed or lost.
	ErrNone = errors.New("its value is no longer kept here")
	// ErrElsewhere says that the actor sealed the member apart before sending it, so the store never had its value.
	ErrElsewhere = errors.New("its value was never here: the actor sealed it apart and keeps it")
	// ErrDamaged says that a kept value was changed since it was stored.
	ErrDamaged = errors.New("its value is damaged or was tampered with")
)

// NewStore returns the store of an installation's disclosures.
func NewStore(values storage.Values) *Store { return &Store{values: values} }

// A Store keeps disclosures. It is safe for concurrent use, even by several processes.
type Store struct {
	values storage.Values

	// After is called after each step of Destroy; nil: it is not called. Tests crash there.
	After func(step string)
}

const (
	keySize = 32

	// maxMembers limits how many values one record can create.
	maxMembers = 256
)

// elsewhere is in place of a value that the actor keeps. No encrypted value is so short.
var elsewhere = []byte("the actor keeps it")

// Keep durably stores the values that a record discloses. For a member that is sealed apart and not disclosed, it stores a note that the
// actor keeps the value, so that fsck does not report it as lost. Storing the note twice is not an error.
func (v *Store) Keep(ctx context.Context, record *evidence.Record) error {
	if n := len(record.Payload.SealedApart); n > maxMembers {
		return fmt.Errorf("record %s: %d members are sealed apart, and at most %d can be kept", record.Payload.RecordID, n, maxMembers)
	}
	var values []storage.Value
	for _, pointer := range record.Payload.SealedApart {
		value, err := sealed(record, pointer)
		if err == nil && value.Key == nil {
			err = v.note(ctx, value)
		} else {
			values = append(values, value)
		}
		if err != nil {
			return fmt.Errorf("keeping %s of record %s: %w", pointer, record.Payload.RecordID, err)
		}
	}
	if err := v.values.Add(ctx, values); err != nil {
		return fmt.Errorf("keeping what is sealed apart of record %s: %w", record.Payload.RecordID, err)
	}
	return nil
}

// sealed encrypts a member under a new key. Of one that is not disclosed it returns a note, without a key.
func sealed(record *evidence.Record, pointer string) (value storage.Value, err error) {
	value = storage.Value{Name: Name(record.Digest, pointer), Sealed: elsewhere}
	i := slices.IndexFunc(record.Disclosures, func(d evidence.Disclosure) bool { return d.Pointer == pointer })
	if i < 0 {
		return value, nil
	}
	value.Key = make([]byte, keySize)
	rand.Read(value.Key) // never fails
	value.Sealed, err = seal(value.Key, bound(record.Digest, pointer), &record.Disclosures[i])
	return value, err
}

// note stores that the actor keeps a value, unless another process, or this one before a crash, has done so.
func (v *Store) note(ctx context.Context, note storage.Value) error {
	if err := v.values.Add(ctx, []storage.Value{note}); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Forget destroys the values of a record that the log did not accept. Its errors are those of Destroy, joined.
func (v *Store) Forget(ctx context.Context, record *evidence.Record) error {
	var errs []error
	for _, pointer := range record.Payload.SealedApart {
		errs = append(errs, v.Destroy(ctx, record.Digest, pointer))
	}
	return errors.Join(errs...)
}

// Open returns the disclosure of a member of a record. The errors include ErrNone, ErrElsewhere and ErrDamaged.
func (v *Store) Open(ctx context.Context, record evidence.Digest, pointer string) (d evidence.Disclosure, err error) {
	name := Name(record, pointer)
	value, err := v.values.Read(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d, ErrNone
	case cannotBeFound(err):
		return d, fmt.Errorf("%w: %w", ErrDamaged, err)
	case err != nil:
		return d, err
	case bytes.Equal(value.Sealed, elsewhere):
		return d, ErrElsewhere
	case value.Key == nil:
		return d, ErrNone
	}
	if d, err = open(value.Key, bound(record, pointer), value.Sealed); err != nil {
		return d, fmt.Errorf("%s: %w: %w", v.values.Where(name), ErrDamaged, err)
	}
	d.Pointer = pointer
	return d, nil
}

// cannotBeFound reports whether an error says that the place of a value or of its key is damaged: then the key cannot be destroyed, either.
func cannotBeFound(err error) bool {
	return errors.Is(err, storage.ErrDamaged) || errors.Is(err, filestore.ErrDamaged)
}

// Destroy makes a value unreadable for ever, here and in every copy that lacks the key. It can be repeated after a
// crash at any step: each step leaves less than the one before. A missing value is not an error.
func (v *Store) Destroy(ctx context.Context, record evidence.Digest, pointer string) error {
	name := Name(record, pointer)
	if err := v.values.DestroyKey(ctx, name); err != nil {
		return fmt.Errorf("destroying the key of %s: %w", v.values.Where(name), err)
	}
	v.after("key destroyed")
	// From here on, what remains is unreadable.
	if err := v.values.Remove(ctx, name); err != nil {
		return fmt.Errorf("removing %s: %w", v.values.Where(name), err)
	}
	v.after("value removed")
	return nil
}

func (v *Store) after(step string) {
	if v.After != nil {
		v.After(step)
	}
}

// Name returns the name under which the value of a member of a record is kept.
func Name(record evidence.Digest, pointer string) string {
	member := sha256.Sum256([]byte(pointer))
	return hex.EncodeToString(record[:]) + "-" + hex.EncodeToString(member[:8])
}

const saltSize = 32

// seal encrypts salt and value for a place. The key encrypts nothing else.
func seal(key, place []byte, d *evidence.Disclosure) ([]byte, error) {
	if len(d.Salt) != saltSize {
		return nil, errors.New("a salt has 32 bytes")
	}
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	plain := append(append(make([]byte, 0, len(d.Salt)+len(d.Value)+aead.Overhead()), d.Salt...), d.Value...)
	return aead.Seal(plain[:0], nil, plain, place), nil // in place: a value may be long
}

func open(key, place, ciphertext []byte) (d evidence.Disclosure, err error) {
	aead, err := newAEAD(key)
	if err != nil {
		return d, err
	}
	plain, err := aead.Open(nil, nil, ciphertext, place)
	if err != nil {
		return d, errors.New("the value does not open with its key")
	}
	if len(plain) <= saltSize {
		return d, errors.New("there is no value in it")
	}
	d.Salt, d.Value = plain[:saltSize:saltSize], plain[saltSize:]
	return d, nil
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// bound returns the additional data that binds a value to its place. A value that is copied to another member or record does not open.
func bound(record evidence.Digest, pointer string) []byte {
	return []byte("jurat/apart/v1\x00" + record.String() + "\x00" + pointer)
}
