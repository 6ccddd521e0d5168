package erasure

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/filestore"
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
func NewStore(files filestore.Store) *Store { return &Store{files: files} }

// A Store is two folders in an installation's file store. It is safe for concurrent use, even by several processes.
type Store struct {
	files filestore.Store

	// After is called after each step of Destroy; nil: it is not called. Tests crash there.
	After func(step string)
}

// The folders of a Store in the file store. Package backup copies them.
const (
	ValuesFolder = "apart/values"
	KeysFolder   = "apart-keys"
)

const (
	valueExtension = ".json"
	keyExtension   = ".key"
	keySize        = 32

	// maxMembers limits how many files one record can create.
	maxMembers = 256
)

// destroyed overwrites a key before its file is removed.
var destroyed = make([]byte, keySize)

// An entry is the content of a value's file.
type entry struct {
	Ciphertext []byte          `json:"ciphertext,omitempty"` // nonce, encrypted salt and value, tag; missing: the actor keeps the value
	Pointer    string          `json:"pointer"`
	Record     evidence.Digest `json:"record"`
}

// Keep durably stores the values that a record discloses. For a member that is sealed apart and not disclosed, it stores a note that the
// actor keeps the value, so that fsck does not report it as lost. Storing the note twice is not an error.
func (v *Store) Keep(ctx context.Context, record *evidence.Record) error {
	if n := len(record.Payload.SealedApart); n > maxMembers {
		return fmt.Errorf("record %s: %d members are sealed apart, and at most %d can be kept", record.Payload.RecordID, n, maxMembers)
	}
	var files []filestore.File
	for _, pointer := range record.Payload.SealedApart {
		of, err := v.filesOf(ctx, record, pointer)
		if err != nil {
			return fmt.Errorf("keeping %s of record %s: %w", pointer, record.Payload.RecordID, err)
		}
		files = append(files, of...)
	}
	if err := v.files.CreateAll(ctx, files); err != nil {
		return fmt.Errorf("keeping what is sealed apart of record %s: %w", record.Payload.RecordID, err)
	}
	return nil
}

// filesOf returns the files of a member, the value's first: a crash between them leaves a value that nobody can read. It stores a note itself,
// as it may be there.
func (v *Store) filesOf(ctx context.Context, record *evidence.Record, pointer string) ([]filestore.File, error) {
	at := placeOf(record.Digest, pointer)
	e := entry{Pointer: pointer, Record: record.Digest}
	i := slices.IndexFunc(record.Disclosures, func(d evidence.Disclosure) bool { return d.Pointer == pointer })
	if i < 0 {
		return nil, v.note(ctx, at, e)
	}
	key := make([]byte, keySize)
	rand.Read(key) // never fails
	text, err := e.sealed(key, at, &record.Disclosures[i])
	return []filestore.File{{Name: at.value, Content: text}, {Name: at.key, Content: key}}, err
}

// note stores that the actor keeps a value, unless another process, or this one before a crash, has done so.
func (v *Store) note(ctx context.Context, at place, e entry) error {
	text, err := e.text()
	if err != nil {
		return err
	}
	if err := v.files.Create(ctx, at.value, text); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// text returns the content of a file without a value.
func (e entry) text() ([]byte, error) {
	text, err := json.Marshal(e, json.Deterministic(true))
	return append(text, '\n'), err
}

// sealed returns the content of a file with a value. A long value is in memory once only: it is encrypted at the end of the room for its base64, and encoded
// from there to the beginning. What is written never reaches what is still to be read, since base64 is longer by a third.
func (e entry) sealed(key []byte, at place, d *evidence.Disclosure) ([]byte, error) {
	rest, err := e.text()
	if err != nil {
		return nil, err
	}
	const before, after = `{"ciphertext":"`, `",`
	length := sealedLength(d)
	room := base64.StdEncoding.EncodedLen(length)
	text := append(make([]byte, 0, len(before)+room+len(after)+len(rest)-len(`{`)), before...)
	encoded := text[len(text) : len(text)+room : len(text)+room]
	ciphertext, err := seal(encoded[room-length:], key, at, d)
	if err != nil {
		return nil, err
	}
	for out, part := encoded, [3 << 10]byte{}; len(ciphertext) > 0; {
		n := copy(part[:], ciphertext)
		base64.StdEncoding.Encode(out, part[:n])
		out, ciphertext = out[base64.StdEncoding.EncodedLen(n):], ciphertext[n:]
	}
	text = append(text[:len(text)+room], after...)
	return append(text, rest[1:]...), nil
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
func (v *Store) Open(ctx context.Context, record evidence.Digest, pointer string) (evidence.Disclosure, error) {
	at := placeOf(record, pointer)
	e, err := v.entry(ctx, at)
	if err != nil {
		return evidence.Disclosure{}, err
	}
	if len(e.Ciphertext) == 0 {
		return evidence.Disclosure{}, ErrElsewhere
	}
	key, err := v.key(ctx, at.key)
	if err != nil {
		return evidence.Disclosure{}, err
	}
	d, err := open(key, at, e.Ciphertext)
	if err != nil {
		return evidence.Disclosure{}, fmt.Errorf("%s: %w: %w", v.files.Where(at.value), ErrDamaged, err)
	}
	return d, nil
}

func (v *Store) entry(ctx context.Context, at place) (*entry, error) {
	text, err := v.files.Read(ctx, at.value)
	if err != nil {
		return nil, unread(err)
	}
	e := new(entry)
	if err := json.Unmarshal(text, e, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", v.files.Where(at.value), ErrDamaged, err)
	}
	if e.Record != at.record || e.Pointer != at.pointer {
		return nil, fmt.Errorf("%s: %w: it is named for %s of %v, and holds %s of %v",
			v.files.Where(at.value), ErrDamaged, at.pointer, at.record, e.Pointer, e.Record)
	}
	return e, nil
}

// key reads a key. If the key was overwritten, but a crash prevented the removal of its file, key returns ErrNone.
func (v *Store) key(ctx context.Context, file string) ([]byte, error) {
	key, err := v.files.Read(ctx, file)
	switch {
	case err != nil:
		return nil, unread(err)
	case len(key) != keySize:
		return nil, fmt.Errorf("%s: %w: a key has %d bytes, found %d", v.files.Where(file), ErrDamaged, keySize, len(key))
	case bytes.Equal(key, destroyed):
		return nil, ErrNone
	}
	return key, nil
}

// unread says what a file that cannot be read means for a value.
func unread(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrNone
	case errors.Is(err, filestore.ErrDamaged):
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// Destroy makes a value unreadable for ever, here and in every copy that lacks the key. It can be repeated after a
// crash at any step: each step leaves less than the one before. A missing file is not an error. Its errors are those
// of the file store.
func (v *Store) Destroy(ctx context.Context, record evidence.Digest, pointer string) error {
	at := placeOf(record, pointer)
	if err := v.files.Overwrite(ctx, at.key, destroyed); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("destroying %s: %w", v.files.Where(at.key), err)
	}
	v.after("key overwritten")
	if err := v.remove(ctx, at.key); err != nil {
		return fmt.Errorf("destroying key: %w", err)
	}
	v.after("key removed")
	// From here on, what remains is unreadable.
	if err := v.remove(ctx, at.value); err != nil {
		return fmt.Errorf("removing value: %w", err)
	}
	v.after("value removed")
	return nil
}

func (v *Store) after(step string) {
	if v.After != nil {
		v.After(step)
	}
}

// remove removes a file. A file that is gone already is not an error.
func (v *Store) remove(ctx context.Context, file string) error {
	if err := v.files.Remove(ctx, file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// A place says where a member of a record is kept.
type place struct {
	record     evidence.Digest
	pointer    string
	value, key string // file names
}

func placeOf(record evidence.Digest, pointer string) place {
	base := Name(record, pointer)
	shard := base[:2]
	return place{record: record, pointer: pointer,
		value: path.Join(ValuesFolder, shard, base+valueExtension), key: path.Join(KeysFolder, shard, base+keyExtension)}
}

// Name returns the name of the files of a member of a record, without the extension.
func Name(record evidence.Digest, pointer string) string {
	member := sha256.Sum256([]byte(pointer))
	return hex.EncodeToString(record[:]) + "-" + hex.EncodeToString(member[:8])
}
