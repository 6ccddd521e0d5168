// Package erasure keeps the values that are sealed apart, so that they can be disclosed later, or destroyed. A Keeper decides what is
// sealed apart for each actor, and destroys values. A Fsck checks the kept values against the log.
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
// RECORD-MEMBER: the payload's digest, and the beginning of the SHA-256 of the JSON pointer, so it has no text of an actor in it. It is not the
// record id: a draft that is sealed twice has two sets of salts, and the log accepts one.
//
// A value and its key are durable before the record is appended, so no record in the log has lost its texts. A crash before that leaves a value
// whose record is not in the log: a text that an actor said, so fsck reports it.
//
// # What "destroyed" means
//
// Destroy overwrites the key with zeros where it is and syncs it, and then removes the value. That suffices if file system and disk write in
// place. SSDs keep the old block until they collect it. File systems that copy on write (btrfs, ZFS, APFS), data journals, snapshots and backups
// keep the old key as long as the old state. There a value is gone when the last copy of its key is gone. So put `apart-keys` on storage that you
// can destroy as a whole, or that is encrypted itself, without snapshots. If you must back it up, keep the backups for less time than you may keep
// the texts. A reader to whom a text was disclosed still has it.
//
// # An erasure is an act, and the act comes first
//
// The order is intent, act, key, value. The intent fixes the act's record id, so the act is in the log once, even after crashes and races.
// Then the next process that opens the installation finishes the erasure. An act may precede its erasure for a moment: that is better than a
// text that is gone without an act that says so.
//
// # An erasure looks before it acts
//
// Erasing one copy of a text does not erase the same text in another record. So Erase searches every payload and every kept value for it, and for
// parts of it that are strings of their own, such as quotations in a juror's findings. The search finds equal text only.
package erasure

import (
	"bytes"
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/property"
	"jurat/internal/kit/fault"
	"jurat/internal/log/filestore"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/storage"
	"jurat/jury"
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

	// After is called after each step of Destroy and Erase; nil: it is not called. Tests crash there.
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
		if value.Key != nil {
			values = append(values, value)
		} else if err = v.values.Add(ctx, []storage.Value{value}); errors.Is(err, fs.ErrExist) { // noted by another process, or by this one before a crash
			err = nil
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

// Forget destroys the values of a record that the log did not accept. Notes that the actor keeps a value stay: without salts of its own, the
// same record may be in the log. Its errors are those of Destroy, joined.
func (v *Store) Forget(ctx context.Context, record *evidence.Record) error {
	var errs []error
	for _, d := range record.Disclosures {
		errs = append(errs, v.Destroy(ctx, record.Digest, d.Pointer))
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

// Disclose returns a copy of a record with its disclosures. What is no longer kept, or withheld, stays closed. It refuses a value that is damaged.
func (k *Keeper) Disclose(ctx context.Context, r *evidence.Record, withheld []string) (*evidence.Record, error) {
	disclosed := new(*r)
	disclosed.Disclosures = nil
	for _, pointer := range r.Payload.SealedApart {
		if slices.Contains(withheld, pointer) {
			continue
		}
		d, err := k.Open(ctx, r.Digest, pointer)
		if errors.Is(err, ErrNone) || errors.Is(err, ErrElsewhere) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("disclosing %s of record %s: %w", pointer, r.Payload.RecordID, err)
		}
		disclosed.Disclosures = append(disclosed.Disclosures, d)
	}
	if err := disclosed.CheckDisclosures(); err != nil {
		return nil, fmt.Errorf("disclosing record %s: %w", r.Payload.RecordID, err)
	}
	return disclosed, nil
}

// A Keeper decides what is sealed apart, keeps the values, and destroys them. All its fields are required. It is safe for concurrent use.
type Keeper struct {
	*Store
	Operator  ledger.Operator // seals the acts of erasure; set once the log is open
	Now       func() time.Time
	Files     filestore.Store                                                  // holds the settings, and the intents of erasures
	CheckName func(ctx context.Context, role evidence.Role, name string) error // refuses a name under which no actor may act
}

// Apart returns a draft that names the members to seal apart, and those to make provable: those that the draft names, which it must have, and
// those that its actor's setting names and the draft has. Members that the actor sealed apart itself stay as they are. A verdict is never sealed
// apart: naming it returns an *evidence.FieldError. So does a member that the actor sealed apart itself without the commitment that the setting
// wants, since only the actor can add that.
func (k *Keeper) Apart(ctx context.Context, draft *evidence.Draft) (*evidence.Draft, error) {
	if role := draft.Role(); role != evidence.RoleAgent && role != evidence.RoleReviewer {
		return draft, nil // acts of a jury or of the operator are open to every reader
	}
	setting, err := k.SettingOf(ctx, draft.Actor())
	if err != nil {
		return nil, err
	}
	verdict := len(draft.ModifiedResponse) > 0 && jury.IsModifiedVerdict(draft.ModifiedResponse)
	if verdict && slices.Contains(draft.Apart(), "/modified_response") {
		return nil, &evidence.FieldError{Field: "modified_response", Reason: "is a verdict, which is not sealed apart: the reason, in changes, can be"}
	}
	apart, kinds := []string(nil), draft.Provable()
	for _, pointer := range setting.Pointers {
		switch {
		case verdict && pointer == "/modified_response": // a verdict is never withheld
		case !draft.Has(pointer):
		case slices.Contains(draft.SealedApart, pointer):
			if err := setting.madeProvable(draft, pointer); err != nil {
				return nil, err
			}
		default:
			apart = append(apart, pointer)
			kind, provable := setting.Provable[pointer]
			if _, asked := kinds[pointer]; provable && !asked { // what the draft itself asks for counts
				kinds[pointer] = kind
			}
		}
	}
	return draft.SealingApart(kinds, apart...), nil
}

// A Setting names the members of an actor's payloads that are always sealed apart.
type Setting struct {
	Actor    string                   `json:"actor"`              // agent_id or reviewer_id
	Pointers []string                 `json:"pointers"`           // at least one, sorted
	Provable map[string]property.Kind `json:"provable,omitempty"` // those of Pointers that are made provable, and their kinds
}

// madeProvable returns an error unless a member that the actor sealed apart itself is provable as the setting wants.
func (s *Setting) madeProvable(draft *evidence.Draft, pointer string) error {
	kind, wanted := s.Provable[pointer]
	is := func(p evidence.Provable) bool { return p.Pointer == pointer && p.Kind == kind }
	if !wanted || slices.ContainsFunc(draft.Payload.Provable, is) {
		return nil
	}
	return &evidence.FieldError{Field: pointer, Reason: fmt.Sprintf(
		"must be provable as %s for %q, and was sealed apart without that: its owner must add the commitment to \"provable\" before signing", kind, draft.Actor())}
}

// SettingsFolder is the folder of settings in the file store.
const SettingsFolder = "apart/settings"

func (s *Setting) check() error {
	if err := evidence.CheckName(s.Actor); err != nil {
		return fmt.Errorf("actor: %w", err)
	}
	if len(s.Pointers) == 0 {
		return errors.New("pointers: want at least one")
	}
	for n, pointer := range s.Pointers {
		if !slices.Contains(evidence.ApartMembers(), pointer) && !evidence.InMetadata(pointer) {
			return fmt.Errorf("pointers: %q cannot be sealed apart, want one of %v or /metadata/NAME", pointer, evidence.ApartMembers())
		}
		if n > 0 && s.Pointers[n-1] >= pointer {
			return errors.New("pointers: not sorted, or one is there twice")
		}
	}
	for pointer, kind := range s.Provable {
		if !slices.Contains(s.Pointers, pointer) {
			return fmt.Errorf("provable: %q is not among the pointers", pointer)
		}
		if err := kind.Check(); err != nil {
			return fmt.Errorf("provable: %s: %w", pointer, err)
		}
	}
	return nil
}

// apartSettingFile names an actor's file by a digest, because actors choose their names. With a file each, two settings made at once both stay.
func apartSettingFile(actor string) string {
	sum := sha256.Sum256([]byte(actor))
	return SettingsFolder + "/" + hex.EncodeToString(sum[:16]) + ".json"
}

// Set replaces an actor's setting. What is to be provable is sealed apart, too. The setting holds for records that are sealed from then on. It
// returns an error if the setting is not valid, or if the name is refused.
func (k *Keeper) Set(ctx context.Context, s Setting) (err error) {
	defer fault.While(&err, "setting what is sealed apart")
	s.Pointers = slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(slices.Clone(s.Pointers), maps.Keys(s.Provable)))))
	if err := s.check(); err != nil {
		return err
	}
	if k.CheckName(ctx, evidence.RoleReviewer, s.Actor) != nil { // an actor whose name is refused in both roles seals nothing
		if err := k.CheckName(ctx, evidence.RoleAgent, s.Actor); err != nil {
			return fmt.Errorf("actor: %w", err)
		}
	}
	text, err := json.Marshal(s, jsontext.WithIndent("  "), json.Deterministic(true))
	if err != nil {
		return err
	}
	return k.Files.Replace(ctx, apartSettingFile(s.Actor), append(text, '\n'))
}

// Unset removes an actor's setting. Members that were sealed apart by it stay so. It returns an error if there is no setting.
func (k *Keeper) Unset(ctx context.Context, actor string) error {
	err := k.Files.Remove(ctx, apartSettingFile(actor))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%q has no setting", actor)
	}
	return err
}

// SettingOf returns an actor's setting, or one without pointers. If it is unreadable, sealing must not go on with the member open to every reader.
func (k *Keeper) SettingOf(ctx context.Context, actor string) (Setting, error) {
	file := apartSettingFile(actor)
	s, err := readSetting(ctx, k.Files, file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Setting{Actor: actor}, nil
	case err == nil && s.Actor != actor:
		err = fmt.Errorf("reading %s: it is the setting of %q, not of %q", k.Files.Where(file), s.Actor, actor)
	}
	return s, err
}

func readSetting(ctx context.Context, files filestore.Store, file string) (s Setting, err error) {
	if err := filestore.ReadJSON(ctx, files, file, &s); err != nil {
		return Setting{}, err
	}
	if err := s.check(); err != nil {
		return Setting{}, fmt.Errorf("reading %s: %w", files.Where(file), err)
	}
	return s, nil
}

// Settings returns every setting, sorted by actor. It refuses a file that is not a setting.
func (k *Keeper) Settings(ctx context.Context) ([]Setting, error) {
	list, err := filestore.ListJSON(ctx, k.Files, SettingsFolder, func(file string) (Setting, error) { return readSetting(ctx, k.Files, file) })
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b Setting) int { return cmp.Compare(a.Actor, b.Actor) })
	return list, nil
}

// Files are a file store that makes several files at once.
type Files interface {
	filestore.Store
	CreateAll(ctx context.Context, files []filestore.File) error // all or none
}

// InFiles are storage.Values in a file store that several machines share: each value and each key is a file.
type InFiles struct{ Files Files }

var _ storage.Values = InFiles{}

const (
	valuesFolder = "apart/values"
	keysFolder   = "apart-keys"
)

func valueFile(name string) string {
	return path.Join(valuesFolder, name[:min(2, len(name))], name+".value")
}
func keyFile(name string) string { return path.Join(keysFolder, name[:min(2, len(name))], name+".key") }

func (v InFiles) Add(ctx context.Context, values []storage.Value) error {
	var files []filestore.File
	for i := range values {
		files = append(files, filestore.File{Name: valueFile(values[i].Name), Content: values[i].Sealed})
		if values[i].Key != nil {
			files = append(files, filestore.File{Name: keyFile(values[i].Name), Content: values[i].Key})
		}
	}
	return v.Files.CreateAll(ctx, files)
}

func (v InFiles) Read(ctx context.Context, name string) (value storage.Value, err error) {
	value.Name = name
	if value.Sealed, err = v.Files.Read(ctx, valueFile(name)); err != nil {
		return value, err
	}
	value.Key, err = v.Files.Read(ctx, keyFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return value, err
}

// DestroyKey implements storage.Values. The database returns nothing of a removed file: see package postgres.
func (v InFiles) DestroyKey(ctx context.Context, name string) error {
	return v.remove(ctx, keyFile(name))
}

func (v InFiles) Remove(ctx context.Context, name string) error {
	return v.remove(ctx, valueFile(name))
}

// remove removes a file. A file that is gone already is not an error.
func (v InFiles) remove(ctx context.Context, file string) error {
	if err := v.Files.Remove(ctx, file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Each implements storage.Values. It also finds a key that is alone.
func (v InFiles) Each(ctx context.Context, found func(name string) error) error {
	nameOf := func(file string) string { return strings.TrimSuffix(path.Base(file), path.Ext(file)) }
	if err := v.Files.List(ctx, valuesFolder, func(file string) error { return found(nameOf(file)) }); err != nil {
		return err
	}
	return v.Files.List(ctx, keysFolder, func(file string) error {
		if _, err := v.Files.Read(ctx, valueFile(nameOf(file))); !errors.Is(err, fs.ErrNotExist) {
			return nil // it was found with its value
		}
		return found(nameOf(file))
	})
}

func (v InFiles) Where(name string) string { return v.Files.Where(valueFile(name)) }
