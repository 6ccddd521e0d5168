package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"jurat/internal/kit/atomicfile"
	"jurat/internal/log/ledger/storage"
)

// The places of Values in their folder.
const (
	ValuesFile = "apart/values.db"
	KeysFolder = "apart-keys"
	logFile    = "jurat.db" // installation.DatabaseFile
)

// A slot is a key, and of whose value: the beginning of the SHA-256 of its name.
const (
	keySize  = 32
	slotSize = keySize + 16
)

//go:embed values.sql
var valuesSchema string

var valuesForm = form{"CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;" + valuesSchema, "apart-1"}

// Values are storage.Values in a file, with their keys beside it. The first value makes both. See the package's documentation.
type Values struct {
	InPlace func() error // of the log beside them, to be set before use: Values open no file in a folder that replaces the log's

	dir  string
	made int64 // the file of slots that this process began last; used by who holds turn

	mu     sync.Mutex // guards store, closed and adding
	store  *Store     // nil: it is not open
	closed bool
	adding []*adding

	turn storage.Lock // held by the caller that writes for all who wait
}

var _ storage.Values = (*Values)(nil)

// An adding is one call of Add.
type adding struct {
	values []storage.Value
	done   chan error // of capacity one
}

// NewValues returns the values that are kept in a folder. The caller closes them.
func NewValues(dir string) *Values {
	return &Values{InPlace: func() error { return nil }, dir: dir, turn: storage.NewLock()}
}

// open opens the file, once. To add, it makes the file if it is missing; else the error then wraps fs.ErrNotExist.
func (v *Values) open(ctx context.Context, toAdd bool) (*Store, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return nil, storage.ErrClosed
	}
	if v.store != nil {
		return v.store, nil
	}
	if err := v.InPlace(); err != nil {
		return nil, err
	}
	s, err := v.openFile(ctx, toAdd)
	if err != nil {
		return nil, translate(err)
	}
	if err := v.InPlace(); err != nil { // the folder was replaced meanwhile, and the file may be another folder's
		return nil, errors.Join(err, s.Close())
	}
	v.store = s
	return s, nil
}

func (v *Values) openFile(ctx context.Context, toAdd bool) (*Store, error) {
	path := filepath.Join(v.dir, filepath.FromSlash(ValuesFile))
	_, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && toAdd:
		if err = mkdir(filepath.Dir(path)); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case protected(path) != nil:
		return openReadOnly(ctx, path, valuesForm, protected(path))
	}
	return begin(ctx, path, valuesForm, "FULL")
}

// mkdir makes a folder durably, unless it is there.
func mkdir(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	return atomicfile.SyncFolders(filepath.Dir(folder), filepath.Dir(folder))
}

// Close closes the file.
func (v *Values) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	if v.store == nil {
		return nil
	}
	return v.store.Close()
}

// Add implements storage.Values. The first caller that finds no other at work writes for all who wait, in one transaction.
func (v *Values) Add(ctx context.Context, values []storage.Value) error {
	a := &adding{values, make(chan error, 1)}
	v.mu.Lock()
	v.adding = append(v.adding, a)
	v.mu.Unlock()
	select {
	case err := <-a.done:
		return err
	case v.turn <- struct{}{}:
		v.addWaiting(context.WithoutCancel(ctx))
		v.turn.Release()
	case <-ctx.Done():
		if v.withdraw(a) {
			return ctx.Err()
		}
	}
	return <-a.done // another caller has taken it: now only the outcome counts
}

// withdraw takes an adding back, unless another caller has taken it.
func (v *Values) withdraw(a *adding) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := len(v.adding)
	v.adding = slices.DeleteFunc(v.adding, func(other *adding) bool { return other == a })
	return len(v.adding) < n
}

// addWaiting adds for all who wait. If that fails, each is tried alone, so that nobody gets the error of another.
func (v *Values) addWaiting(ctx context.Context) {
	v.mu.Lock()
	batch := v.adding
	v.adding = nil
	v.mu.Unlock()
	var all []storage.Value
	for _, a := range batch {
		all = append(all, a.values...)
	}
	err := v.add(ctx, all)
	for _, a := range batch {
		if err != nil && len(batch) > 1 {
			a.done <- v.add(ctx, a.values)
		} else {
			a.done <- err
		}
	}
}

func (v *Values) add(ctx context.Context, values []storage.Value) error {
	if len(values) == 0 {
		return nil
	}
	s, err := v.open(ctx, true)
	if err != nil {
		return err
	}
	return s.transact(ctx, func(ctx context.Context) error {
		if err := v.leaveReserve(); err != nil {
			return err
		}
		first := int64(1)
		if err := s.prepared.Run(ctx, storage.Statement{Text: `SELECT seq + 1 FROM sqlite_sequence`, Row: into(&first)}); err != nil {
			return err
		}
		keyed := slices.ContainsFunc(values, func(value storage.Value) bool { return value.Key != nil })
		slots, keys, err := v.slots(ctx, s, keyed)
		if err != nil {
			return err
		}
		if slots == nil {
			return v.insert(ctx, s, first, keys, values)
		}
		written := make(chan error, 1)
		go func() { written <- writeKeys(slots, first, values) }() // mostly waits for the disk
		err = v.insert(ctx, s, first, keys, values)
		return errors.Join(err, <-written, slots.Close())
	})
}

// leaveReserve returns storage.ErrDiskFull if the log beside the values has used its reserve: what room there is, is for
// further revocations.
func (v *Values) leaveReserve() error {
	log := &Store{path: filepath.Join(v.dir, logFile)}
	there, err := exists(log.path)
	if err == nil && there {
		_, err = log.reserveMissing()
	}
	return err
}

// insert adds rows in the running transaction, from a number on.
func (v *Values) insert(ctx context.Context, s *Store, first, keys int64, values []storage.Value) error {
	for i := range values {
		err := s.prepared.Run(ctx, storage.Statement{Text: `INSERT INTO apart (id, name, keys, sealed) VALUES ($1, $2, $3, $4)`,
			Args: []any{first + int64(i), packName(values[i].Name), keys, values[i].Sealed}})
		if errors.Is(err, storage.ErrNotUnique) {
			return &fs.PathError{Op: "add", Path: v.Where(values[i].Name), Err: fs.ErrExist}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeKeys writes keys durably. A file that grows is synced more slowly, so it grows by many slots at once.
func writeKeys(slots *os.File, first int64, values []storage.Value) error {
	const growth = 2048 * slotSize
	size, err := slots.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	length := slotSize * int64(len(values))
	if end := first*slotSize + length; end > size {
		length += growth - end%growth
	}
	text := make([]byte, length)
	defer clear(text)
	for i := range values {
		if values[i].Key != nil {
			copy(text[copy(text[i*slotSize:], values[i].Key)+i*slotSize:], owner(values[i].Name))
		}
	}
	if _, err := slots.WriteAt(text, first*slotSize); err != nil {
		return err
	}
	return atomicfile.SyncData(slots)
}

// slots opens the file of slots for new values, and returns its number. If there is none, it makes one if there are keys. The caller is in a transaction.
func (v *Values) slots(ctx context.Context, s *Store, keyed bool) (*os.File, int64, error) {
	n := v.made
	err := s.prepared.Run(ctx, storage.Statement{Text: `SELECT keys FROM apart ORDER BY id DESC LIMIT 1`, Row: into(&n)})
	if err != nil {
		return nil, 0, err
	}
	file, err := os.OpenFile(v.slotsFile(n), os.O_WRONLY, 0)
	if !errors.Is(err, fs.ErrNotExist) {
		return file, n, err
	}
	if !keyed {
		return nil, n, nil
	}
	n = rand.Int64()
	folder := filepath.Join(v.dir, KeysFolder)
	if err := mkdir(folder); err != nil {
		return nil, 0, err
	}
	if file, err = os.OpenFile(v.slotsFile(n), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, 0, err
	}
	v.made = n
	return file, n, atomicfile.SyncFolders(folder, folder)
}

func (v *Values) slotsFile(n int64) string {
	return filepath.Join(v.dir, KeysFolder, fmt.Sprintf("%016x.keys", n))
}

// A row is a value without its key.
type row struct {
	id, keys int64
	sealed   []byte
}

// find reads a row. The row itself has to say its name, not only the index.
func (v *Values) find(ctx context.Context, name string) (r row, err error) {
	s, err := v.open(ctx, false)
	if errors.Is(err, fs.ErrNotExist) {
		return r, &fs.PathError{Op: "read", Path: v.Where(name), Err: fs.ErrNotExist}
	}
	if err != nil {
		return r, err
	}
	err = engine{s}.Read(ctx, func(from storage.Reader) error {
		there := false
		const query = `SELECT id, name, keys, sealed FROM apart WHERE id = (SELECT id FROM apart WHERE name = $1)`
		err := from.Run(ctx, storage.Statement{Text: query, Args: []any{packName(name)},
			Row: func(scan storage.Scan) error {
				var is []byte
				there = true
				if err := scan(&r.id, &is, &r.keys, &r.sealed); err != nil || bytes.Equal(is, packName(name)) {
					return err
				}
				return fmt.Errorf("%w: the index names another row", storage.ErrDamaged)
			}})
		if err == nil && !there {
			err = fs.ErrNotExist
		}
		return err
	})
	if err != nil {
		err = &fs.PathError{Op: "read", Path: v.Where(name), Err: err}
	}
	return r, err
}

// Read implements storage.Values. It refuses keys that other users can read.
func (v *Values) Read(ctx context.Context, name string) (storage.Value, error) {
	r, err := v.find(ctx, name)
	if err != nil {
		return storage.Value{}, err
	}
	slot, err := v.slot(r, atomicfile.CheckPrivate)
	if slot == nil {
		return storage.Value{Name: name, Sealed: r.sealed}, err
	}
	return storage.Value{Name: name, Sealed: r.sealed, Key: slot[:keySize]}, nil // if it is another's, the value does not open
}

// slot reads the slot of a row from a file that check has nothing against. It returns nil if there is no key in it.
func (v *Values) slot(r row, check func(*os.File) error) ([]byte, error) {
	slots, err := os.Open(v.slotsFile(r.keys))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer slots.Close() // closing a file that was only read loses nothing
	if err := check(slots); err != nil {
		return nil, err
	}
	slot := make([]byte, slotSize)
	if _, err := slots.ReadAt(slot, r.id*slotSize); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if bytes.Equal(slot[:keySize], make([]byte, keySize)) {
		return nil, nil
	}
	return slot, nil
}

// owner is what a slot says of whose key it has.
func owner(name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return sum[:slotSize-keySize]
}

// DestroyKey implements storage.Values. It also finds a key whose row is lost or changed: a copy of the row may be elsewhere. A program cannot make sure that
// the medium keeps no older copy: see docs/threat-model.md.
func (v *Values) DestroyKey(ctx context.Context, name string) error {
	r, err := v.find(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return v.destroyAlone(name)
	}
	if err != nil {
		return err
	}
	slot, err := v.slot(r, func(*os.File) error { return nil })
	switch {
	case slot == nil:
		return err
	case !bytes.Equal(slot[keySize:], owner(name)):
		return v.destroyAlone(name)
	}
	return destroy(v.slotsFile(r.keys), r.id*slotSize)
}

// destroyAlone destroys a key that no row leads to, in whichever file it is.
func (v *Values) destroyAlone(name string) error {
	folder := filepath.Join(v.dir, KeysFolder)
	files, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, file := range files {
		path := filepath.Join(folder, file.Name())
		slots, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		defer clear(slots)
		for at := 0; at+slotSize <= len(slots); at += slotSize {
			if bytes.Equal(slots[at+keySize:at+slotSize], owner(name)) {
				if err := destroy(path, int64(at)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// destroy overwrites a slot.
func destroy(path string, at int64) error {
	slots, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = slots.WriteAt(make([]byte, slotSize), at)
	return errors.Join(err, atomicfile.SyncData(slots), slots.Close())
}

// Remove implements storage.Values. It gives the room of the value back.
func (v *Values) Remove(ctx context.Context, name string) error {
	s, err := v.open(ctx, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.transact(ctx, func(ctx context.Context) error {
		return s.prepared.Run(ctx, storage.Statement{Text: `DELETE FROM apart WHERE name = $1`, Args: []any{packName(name)}})
	}); err != nil {
		return err
	}
	return s.freePages(ctx, nil)
}

func (v *Values) Each(ctx context.Context, found func(name string) error) error {
	s, err := v.open(ctx, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for after := int64(0); ; {
		var names [][]byte
		err := engine{s}.Read(ctx, func(from storage.Reader) error {
			const query = `SELECT id, name FROM apart WHERE id > $1 ORDER BY id LIMIT 1000`
			return from.Run(ctx, storage.Statement{Text: query, Args: []any{after}, Row: func(scan storage.Scan) error {
				var name []byte
				err := scan(&after, &name)
				names = append(names, name)
				return err
			}})
		})
		if err != nil {
			return fmt.Errorf("reading %s: %w", s.path, err)
		}
		if len(names) == 0 {
			return nil
		}
		for _, name := range names {
			if err := found(unpackName(name)); err != nil {
				return err
			}
		}
	}
}

func (v *Values) Where(name string) string {
	return name + " in " + filepath.Join(v.dir, filepath.FromSlash(ValuesFile))
}

// packName is a name as the table has it: of two hexadecimal numbers their bytes.
func packName(name string) []byte {
	record, member, _ := strings.Cut(name, "-")
	b, err := hex.DecodeString(record + member)
	if err != nil || unpackName(b) != name {
		return []byte(name)
	}
	return b
}

func unpackName(b []byte) string {
	const digest, member = 32, 8
	if len(b) != digest+member {
		return string(b)
	}
	return hex.EncodeToString(b[:digest]) + "-" + hex.EncodeToString(b[digest:])
}
