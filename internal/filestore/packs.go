package filestore

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"jurat/internal/atomicfile"
)

// packs are the packs of one folder of a store. They lie in a folder below it, beside an index of each that is full:
//
//	3f1c….pack
//	3f1c….index   where each of its files is
//
// A pack without an index that holds is read to its end. The index is only a help: it can be made again. A damaged pack gets none, so that whoever looks
// for a file in it is told.
type packs struct {
	folder string // in the store, of the files
	dir    string // of the packs, a path

	mu     sync.Mutex // guards what follows
	known  map[string]*known
	broken map[string]bool // indexes that were found not to hold, or to be missing
	last   string          // the id of the pack in which a file was found last: the next one is likely there, too
}

const (
	packsFolder    = "packs"
	packExtension  = ".pack"
	indexExtension = ".index"
)

// names is what the names of all files in the packs begin with.
func (s *packs) names() string { return s.folder + "/" }

func packFile(dir, id string) string  { return filepath.Join(dir, id+packExtension) }
func indexFile(dir, id string) string { return filepath.Join(dir, id+indexExtension) }

// known is what is known of a pack that has no index.
type known struct {
	upTo  int64
	last  packed // the one that ends there
	found map[hashed]int64
	again map[hashed][]int64 // where those are that were found before
	lost  []*Damage
}

// holds reports whether what is known still stands: the process of the pack may have taken back what it could not add, and added other files.
func (k *known) holds(p *pack) (bool, error) {
	for _, d := range k.lost {
		if d.From < packHead {
			continue
		}
		if e, err := p.entryAt(d.From); e != nil || err != nil {
			return false, err
		}
	}
	if k.upTo == packHead {
		return true, nil
	}
	e, err := p.entryAt(k.last.at)
	return e != nil && e.name == k.last.name && e.end() == k.upTo, err
}

// hashed is the beginning of the digest of a name.
type hashed [16]byte

func hashOf(name string) hashed {
	sum := sha256.Sum256([]byte(name))
	return hashed(sum[:16])
}

// ids lists the packs. Those without an index come first: what was added last is in them.
func (s *packs) ids() (ids []string, indexed map[string]bool, err error) {
	list, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	indexed = map[string]bool{}
	for _, entry := range list {
		if id, is := strings.CutSuffix(entry.Name(), packExtension); is {
			ids = append(ids, id)
		} else if id, is := strings.CutSuffix(entry.Name(), indexExtension); is {
			indexed[id] = true
		}
	}
	slices.SortStableFunc(ids, func(a, b string) int { return cmp.Compare(order(indexed[a]), order(indexed[b])) })
	return ids, indexed, nil
}

func order(indexed bool) int {
	if indexed {
		return 1
	}
	return 0
}

// A visit is what is done with a file in a pack. It reports whether that was the last: a file that was made again is there twice.
type visit func(p *pack, e *packed) (last bool, err error)

// visit finds a file in all packs. Its error wraps fs.ErrNotExist if there is no such file, or if all were void. A damaged pack hides no file of another: its
// error comes when the others have been looked at. It wraps ErrDamaged if the file may be in what is damaged.
func (s *packs) visit(op, name string, flag int, do visit) error {
	met, there := false, false
	counting := func(p *pack, e *packed) (bool, error) {
		met, there = true, there || !e.void
		return do(p, e)
	}
	s.mu.Lock()
	likely := s.last
	s.mu.Unlock()
	if likely != "" && flag == os.O_RDONLY {
		_, err := os.Stat(indexFile(s.dir, likely))
		if last, _, err := s.in(likely, err == nil, name, flag, counting); last || err != nil && !errors.Is(err, ErrDamaged) {
			return err
		}
	}
	ids, indexed, err := s.ids()
	if err != nil {
		return err
	}
	var damaged []error
	var lost []*Damage
	for _, id := range ids {
		last, unread, err := s.in(id, indexed[id], name, flag, counting)
		if last {
			s.mu.Lock()
			s.last = id
			s.mu.Unlock()
			return err
		}
		if err != nil && !errors.Is(err, ErrDamaged) {
			return err
		}
		damaged, lost = append(damaged, err), append(lost, unread...)
	}
	for _, d := range lost { // a file that is elsewhere is likely there only
		has, err := d.has(name)
		if err != nil {
			return err
		}
		if has || !met {
			damaged = append(damaged, d)
		}
	}
	if err := errors.Join(damaged...); err != nil {
		return err
	}
	if !there {
		return &fs.PathError{Op: op, Path: filepath.Join(filepath.Dir(s.dir), filepath.Base(name)), Err: fs.ErrNotExist}
	}
	return nil
}

// in visits a file in one pack, and returns what else of the pack cannot be read. An error that wraps ErrDamaged says that the file was there.
func (s *packs) in(id string, indexed bool, name string, flag int, do visit) (last bool, lost []*Damage, err error) {
	var places []int64
	if indexed {
		places, indexed, err = s.fromIndex(id, hashOf(name))
		if err != nil || indexed && len(places) == 0 {
			return false, nil, err
		}
	}
	p, err := s.open(id, flag)
	if err != nil || p == nil {
		return false, nil, err
	}
	defer p.file.Close() //nolint:errcheck // what do changed is synced
	if Secret(name) {
		if err := checkAlone(p.file); err != nil {
			return false, nil, err
		}
	}
	if !indexed {
		if places, lost, err = s.fromPack(p, id, hashOf(name)); err != nil {
			return false, nil, err
		}
	}
	var damaged []error
	for _, at := range places {
		e, err := p.entryAt(at)
		if err != nil {
			return false, nil, err
		}
		if e == nil {
			next, err := p.nextAfter(at)
			if err != nil {
				return false, nil, err
			}
			damaged = append(damaged, &Damage{p.file.Name(), at, cmp.Or(next, p.size)})
			continue
		}
		if e.name != name {
			continue
		}
		if last, err := do(p, e); last || err != nil {
			return last, nil, err
		}
	}
	return false, lost, errors.Join(damaged...)
}

// open opens a pack. It returns nil if there is nothing in it.
func (s *packs) open(id string, flag int) (*pack, error) {
	p, err := openPack(s.dir, s.names(), id, flag)
	if errors.Is(err, fs.ErrNotExist) { // it was empty, and another process has removed it
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if p.size < packHead {
		return nil, p.file.Close()
	}
	return p, nil
}

// fromPack reads what was added to a pack, and returns where a file is, and what of the pack cannot be read.
func (s *packs) fromPack(p *pack, id string, name hashed) ([]int64, []*Damage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.known[id]
	holds := false
	if k != nil {
		var err error
		if holds, err = k.holds(p); err != nil {
			return nil, nil, err
		}
	}
	if !holds {
		k = &known{upTo: packHead, found: map[hashed]int64{}, again: map[hashed][]int64{}}
		s.known[id] = k
	}
	var tail []*Damage // it is looked at each time: another process may be adding
	end, err := p.each(k.upTo, func(e packed) error {
		k.last = e
		if one := hashOf(e.name); k.found[one] == 0 {
			k.found[one] = e.at
		} else {
			k.again[one] = append(k.again[one], e.at)
		}
		return nil
	}, func(d *Damage) {
		if d.To == p.size {
			tail = append(tail, d)
		} else {
			k.lost = append(k.lost, d)
		}
	})
	k.upTo = end
	lost := slices.Concat(k.lost, tail)
	if at, is := k.found[name]; is {
		return append([]int64{at}, k.again[name]...), lost, err
	}
	return nil, lost, err
}

// fromIndex looks into the index of a pack, and returns where a file may be. It reports false if there is no index that holds: then the pack must be read.
func (s *packs) fromIndex(id string, name hashed) (places []int64, holds bool, err error) {
	x, err := openIndex(s.dir, id)
	if err == nil && x != nil {
		places, holds, err = x.find(name)
		err = errors.Join(err, x.file.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if holds {
		delete(s.known, id)
	} else if err == nil {
		s.broken[id] = true
	}
	return places, holds, err
}

// indexHolds reports whether a pack has an index. It does not read all of it, but knows what this process has found out.
func (s *packs) indexHolds(id string) (bool, error) {
	s.mu.Lock()
	broken := s.broken[id]
	s.mu.Unlock()
	if broken {
		return false, nil
	}
	x, err := openIndex(s.dir, id)
	if err != nil || x == nil {
		return false, err
	}
	return true, x.file.Close()
}

// finish writes the index of a pack that is full, unless the pack is damaged, or may be.
func (s *packs) finish(p *pack, id string) error {
	var all [][indexEntry]byte
	damaged := false
	end, err := p.each(packHead, func(e packed) error {
		var one [indexEntry]byte
		name := hashOf(e.name)
		copy(one[:], name[:])
		binary.BigEndian.PutUint64(one[16:], uint64(e.at))
		all = append(all, one)
		return nil
	}, func(*Damage) { damaged = true })
	if err != nil || damaged {
		return err
	}
	if end < p.size {
		if r, err := p.restAt(end); r != isCut || err != nil {
			return err
		}
	}
	slices.SortFunc(all, func(a, b [indexEntry]byte) int { return bytes.Compare(a[:], b[:]) })
	if err := atomicfile.Replace(indexFile(s.dir, id), indexOf(id, p.size, all), 0o600); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.broken, id)
	return nil
}

// list calls found for every file that is there. What was in a damaged pack is not known: its error comes when the others are listed. It joins
// an error for each damage.
func (s *packs) list(found func(name string) error) error {
	ids, _, err := s.ids()
	if err != nil {
		return err
	}
	var damaged []error
	for _, id := range ids {
		p, err := s.open(id, os.O_RDONLY)
		if errors.Is(err, ErrDamaged) {
			damaged = append(damaged, err)
			continue
		}
		if err != nil {
			return err
		}
		if p == nil {
			continue
		}
		_, err = p.each(packHead, func(e packed) error {
			if e.void {
				return nil
			}
			return found(e.name)
		}, func(d *Damage) { damaged = append(damaged, d) })
		if err = errors.Join(err, p.file.Close()); err != nil {
			return err
		}
	}
	return errors.Join(damaged...)
}

// checkAlone returns an error if others can read a pack.
func checkAlone(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return checkMode(file.Name(), info)
}

// isPacks reports whether a folder holds packs.
func (p *packer) isPacks(folder string) bool {
	return p != nil && slices.ContainsFunc(p.folders, func(s *packs) bool { return s.dir == folder })
}

var errTooLong = fmt.Errorf("%w: it would become longer", fs.ErrInvalid)
