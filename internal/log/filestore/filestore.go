// Package filestore keeps the small files of an installation beside its log: keys, certificates, settings. They are in
// a folder of one machine, or in a database that several machines share. Callers need not know which.
//
// A file exists completely or not at all, also after a crash, and a change is durable when its call returns. A file
// whose name ends in .key is a secret: in a folder, only the operator's account can read it. In a database all files
// are encrypted.
//
// # The small files of an installation are in a file store
//
// They are created, replaced, renamed, removed and listed, each atomically. So the users (`keys`, `erasure`,
// `installation`) are the same for one machine and for many, and so are their steps, ordered so that a crash after any of
// them leaves nothing unfinished: they need no transactions across files, which a folder could not offer. If several
// machines meet an actor at once, one of them makes its key.
//
// # Files in a database are encrypted
//
// Others than the operator may read a database, its copies, its write-ahead log or its backups. So a file is
// encrypted there with AES-256-GCM under a wrapping key of 32 bytes. Each machine has the wrapping key in a file, and
// the database never contains it. The file's name is authenticated data, so that one file cannot pass for another.
//
// The key file has one line for each key, in base64. The first key wraps, all of them unwrap. So the key can be
// changed while every machine can still read what another has written.
//
// # All small files are wrapped in the database
//
// Not only secrets are encrypted: someone who can write to the database could otherwise add an authority's root, or
// an outside authority that the trust file then contains. Payloads are not encrypted: they are evidence that many
// people read, and disk encryption protects a database better. Refused: a key for each secret under one main key.
// Changing the main key would then change one row, but an old main key would open the old secrets for ever. Wrapping
// the files again goes row by row and can be interrupted, because the key file can contain several keys. A key
// management service can replace the key file without other changes.
package filestore

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"jurat/internal/kit/atomicfile"
)

// A Store keeps files by name: paths with slashes, as fs.ValidPath requires. It is safe for concurrent use, also by
// several processes. Its methods return the context's error once the context has ended. A change that was in progress
// then may have been made or not. Every call is limited in time: an unreachable store is an error.
type Store interface {
	// Read returns the content of a file. The error wraps fs.ErrNotExist if there is none.
	Read(ctx context.Context, name string) ([]byte, error)
	// Create makes a new file. If the file exists, it changes nothing and the error wraps fs.ErrExist: of several
	// processes, one makes the file.
	Create(ctx context.Context, name string, content []byte) error
	// Replace makes a file, or replaces the existing one.
	Replace(ctx context.Context, name string, content []byte) error
	// Rename gives a file another name, and replaces a file that has that name. The error wraps fs.ErrNotExist if
	// there is no such file.
	Rename(ctx context.Context, from, to string) error
	// Remove removes a file. The error wraps fs.ErrNotExist if it is missing; the removal is durable then, too.
	Remove(ctx context.Context, name string) error
	// List calls found for every file below a folder, in no order. It may miss files that are created or removed
	// meanwhile. After a crash it may list the name of an unfinished file.
	List(ctx context.Context, folder string, found func(name string) error) error
	// Where describes the place of a file, for people.
	Where(name string) string
}

// A File is a file to be created.
type File struct {
	Name    string
	Content []byte
}

// Secret reports whether only the operator may read a file of this name.
func Secret(name string) bool { return path.Ext(name) == ".key" }

// check returns an error for an invalid name, or the context's error.
func check(ctx context.Context, op, name string) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return ctx.Err()
}

// ReadJSON reads a file strictly into a value. The error wraps fs.ErrNotExist if there is no such file.
func ReadJSON(ctx context.Context, files Store, name string, into any) error {
	text, err := files.Read(ctx, name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("reading %s: %w", files.Where(name), err)
	}
	return nil
}

// ListJSON reads every JSON file below a folder by a function, and returns what is in them. It leaves out files that are removed meanwhile. Unfinished
// files of a crash have other names. Its errors are those of List and of read.
func ListJSON[V any](ctx context.Context, files Store, folder string, read func(file string) (V, error)) (list []V, err error) {
	err = files.List(ctx, folder, func(file string) error {
		if path.Ext(file) != ".json" {
			return nil
		}
		one, err := read(file)
		if err == nil {
			list = append(list, one)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return list, err
}

// A Folder is a Store of files in a folder. The first file makes the folder. Several processes may use it.
type Folder struct {
	dir    string
	synced sync.Map    // paths of folders whose own names are durable
	is     fs.FileInfo // the folder as it was opened; nil: it was not there
}

var _ Store = (*Folder)(nil)

// NewFolder returns the file store in a folder.
func NewFolder(dir string) *Folder {
	f := &Folder{dir: filepath.Clean(dir)}
	if is, err := os.Stat(f.dir); err == nil {
		f.is = is
	}
	return f
}

// Where implements Store: it returns the file's path.
func (f *Folder) Where(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

// Read implements Store. It refuses a secret that other users can read.
func (f *Folder) Read(ctx context.Context, name string) ([]byte, error) {
	if err := check(ctx, "read", name); err != nil {
		return nil, err
	}
	read := os.ReadFile
	if Secret(name) {
		read = ReadPrivate
	}
	return read(f.Where(name))
}

// ReadPrivate reads a file that only its owner can access. It returns an error if others can.
func ReadPrivate(file string) ([]byte, error) {
	open, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer open.Close() // closing a file that was only read loses nothing
	if err := atomicfile.CheckPrivate(open); err != nil {
		return nil, err
	}
	return io.ReadAll(open)
}

func (f *Folder) Create(ctx context.Context, name string, content []byte) error {
	return f.put(ctx, name, content, "create", atomicfile.Create)
}

func (f *Folder) Replace(ctx context.Context, name string, content []byte) error {
	return f.put(ctx, name, content, "replace", atomicfile.Replace)
}

func (f *Folder) put(ctx context.Context, name string, content []byte, op string, write func(string, []byte, os.FileMode) error) error {
	if err := errors.Join(check(ctx, op, name), f.stays()); err != nil {
		return err
	}
	file := f.Where(name)
	err := write(file, content, 0o600)
	if err != nil && !errors.Is(err, fs.ErrExist) { // the process that made an existing file may have crashed before the sync below
		return err
	}
	return errors.Join(err, f.syncAbove(filepath.Dir(file)))
}

// stays returns an error if another folder, or none, is where this one was opened. What is written there would not be found with the rest.
func (f *Folder) stays() error {
	if f.is == nil {
		return nil
	}
	now, err := os.Stat(f.dir)
	if err == nil && !os.SameFile(now, f.is) {
		err = errors.New("another folder is in its place")
	}
	if err != nil {
		return fmt.Errorf("%s is not where it was opened: %w", f.dir, err)
	}
	return nil
}

// syncAbove makes the name of a file's folder durable, and the names of the folders above it: they may be new.
func (f *Folder) syncAbove(folder string) error {
	if _, done := f.synced.Load(folder); done || folder == f.dir {
		return nil
	}
	if err := atomicfile.SyncFolders(filepath.Dir(folder), f.dir); err != nil {
		return err
	}
	f.synced.Store(folder, true)
	return nil
}

func (f *Folder) Rename(ctx context.Context, from, to string) error {
	if err := errors.Join(check(ctx, "rename", from), check(ctx, "rename", to)); err != nil {
		return err
	}
	return atomicfile.Rename(f.Where(from), f.Where(to))
}

func (f *Folder) Remove(ctx context.Context, name string) error {
	if err := check(ctx, "remove", name); err != nil {
		return err
	}
	file := f.Where(name)
	err := os.Remove(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	folder := filepath.Dir(file)
	// This also runs if the file is already gone: an earlier process may have crashed before its sync.
	if synced := atomicfile.SyncFolders(folder, folder); !errors.Is(synced, fs.ErrNotExist) {
		err = errors.Join(err, synced)
	}
	return err
}

func (f *Folder) List(ctx context.Context, folder string, found func(name string) error) error {
	if err := check(ctx, "list", folder); err != nil {
		return err
	}
	return filepath.WalkDir(f.Where(folder), func(file string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the folder never existed, or the file was removed during the listing
		}
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(f.dir, file)
		if err != nil {
			return err
		}
		return found(filepath.ToSlash(name))
	})
}

const (
	keySize = 32
	// maxKeys is how many keys a file may have. It has two while one replaces the other.
	maxKeys = 8
)

var (
	// ErrOtherKey means that a file is wrapped under a key that is not among the given ones.
	ErrOtherKey = errors.New("it is wrapped under another wrapping key")
	// ErrDamaged means that the stored bytes are not what was wrapped, or were wrapped for another name.
	ErrDamaged = errors.New("it is damaged, or was wrapped under another name")
)

// An ID identifies a wrapping key without revealing it.
type ID string

// Keys are one or more wrapping keys. The first one wraps. They are safe for concurrent use.
type Keys struct{ list []key }

type key struct {
	id   ID
	aead cipher.AEAD
}

// Generate returns the text of a key file with one new key.
func Generate() []byte {
	secret := make([]byte, keySize)
	rand.Read(secret) // never fails
	return fmt.Appendf(nil, "# jurat wrapping key %s: without it the secrets in the database are lost\n%s\n",
		idOf(secret), base64.StdEncoding.EncodeToString(secret))
}

// Parse reads the text of a key file. Its errors contain nothing of that text.
func Parse(text []byte) (*Keys, error) {
	keys := new(Keys)
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		secret, err := base64.StdEncoding.Strict().DecodeString(string(line))
		if err != nil || len(secret) != keySize {
			return nil, fmt.Errorf("line %d: want a key of %d bytes in base64, or a comment that begins with #", n, keySize)
		}
		if err := keys.add(secret); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if len(keys.list) == 0 {
		return nil, errors.New("it contains no wrapping key")
	}
	return keys, nil
}

func (k *Keys) add(secret []byte) error {
	id := idOf(secret)
	if k.find(id) != nil {
		return fmt.Errorf("the key %s occurs twice", id)
	}
	if len(k.list) == maxKeys {
		return fmt.Errorf("more than %d keys", maxKeys)
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	k.list = append(k.list, key{id, aead})
	return err
}

func idOf(secret []byte) ID {
	sum := sha256.Sum256(append([]byte("jurat/wrapping-key/v1\x00"), secret...))
	return ID(hex.EncodeToString(sum[:8]))
}

// IDs returns the IDs of the keys, the wrapping one first.
func (k *Keys) IDs() []ID {
	ids := make([]ID, len(k.list))
	for n := range k.list {
		ids[n] = k.list[n].id
	}
	return ids
}

// Wrap encrypts the content of a file under the first key, and returns the key's ID.
func (k *Keys) Wrap(name string, secret []byte) (ID, []byte) {
	first := &k.list[0]
	return first.id, first.aead.Seal(nil, nil, secret, bound(name))
}

// Unwrap decrypts what Wrap has encrypted for this name. Errors wrap ErrOtherKey or ErrDamaged.
func (k *Keys) Unwrap(name string, id ID, wrapped []byte) ([]byte, error) {
	key := k.find(id)
	if key == nil {
		return nil, fmt.Errorf("%w: %s; the given keys are %s", ErrOtherKey, id, k)
	}
	secret, err := key.aead.Open(nil, nil, wrapped, bound(name))
	if err != nil {
		return nil, ErrDamaged
	}
	return secret, nil
}

// Has reports whether Keys contains a key.
func (k *Keys) Has(id ID) bool { return k.find(id) != nil }

func (k *Keys) find(id ID) *key {
	i := slices.IndexFunc(k.list, func(key key) bool { return key.id == id })
	if i < 0 {
		return nil
	}
	return &k.list[i]
}

// String returns the IDs, so that printing Keys does not reveal them.
func (k *Keys) String() string {
	var names []string
	for _, id := range k.IDs() {
		names = append(names, string(id))
	}
	return strings.Join(names, ", ")
}

func bound(name string) []byte { return []byte("jurat/wrapped/v1\x00" + name) }
