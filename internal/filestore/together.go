package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"jurat/internal/atomicfile"
	"jurat/internal/lock"
)

// A packer adds the files of Folder.CreateAll to packs. Callers that come at once share the writing and the sync. Each process adds to packs
// of its own, one for each folder, and locks say whose. What an ended process left unfinished is continued by another.
type packer struct {
	files   *Folder
	folders []*packs
	locks   *lock.Folder
	most    int64 // bytes of a pack

	mu      sync.Mutex // guards waiting
	waiting []*wish

	turn      chan struct{} // held by the caller that writes, and guards own
	own       map[*packs]*owned
	finishing sync.WaitGroup
}

// An owned is a pack to which this process adds.
type owned struct {
	*pack
	id      string
	release func() // of its lock
	is      fs.FileInfo
}

// named reports whether a pack still has its name: someone may have moved the folder away.
func (o *owned) named() bool {
	info, err := os.Stat(o.file.Name())
	return err == nil && os.SameFile(info, o.is)
}

const (
	packBytes = 64 << 20 // a pack of this size is full

	// continued is up to which size another process continues a pack. A larger one that its process closes is full: whoever continues a
	// pack reads it first.
	continued = 4 << 20

	turnName     = "turn" // of the lock to begin or continue a pack
	turnPatience = 15 * time.Second
)

// A wish is one call of CreateAll.
type wish struct {
	files []File
	done  chan error // of capacity one
}

// Packed has CreateAll put the files below some folders into packs, and returns the store. Other methods find files in packs and outside.
// The locks say which process adds to which pack: every process that uses the folder must have the same. Close ends it.
func (f *Folder) Packed(locks *lock.Folder, folders ...string) *Folder {
	p := &packer{files: f, locks: locks, most: packBytes, turn: make(chan struct{}, 1), own: map[*packs]*owned{}}
	for _, folder := range folders {
		p.folders = append(p.folders, &packs{folder: folder, dir: f.path(path.Join(folder, packsFolder)), known: map[string]*known{}, broken: map[string]bool{}})
	}
	f.packer = p
	if is, err := os.Stat(f.dir); err == nil {
		f.is = is
	}
	return f
}

// Close releases the packs of this process.
func (f *Folder) Close() error {
	if f.packer == nil {
		return nil
	}
	return f.packer.close()
}

// of returns the packs that may have a file, or nil.
func (p *packer) of(name string) *packs {
	if p == nil {
		return nil
	}
	for _, s := range p.folders {
		if strings.HasPrefix(name, s.folder+"/") && !strings.HasPrefix(name, s.folder+"/"+packsFolder+"/") {
			return s
		}
	}
	return nil
}

// CreateAll implements Store. Files in packs are durable with one sync of each pack.
func (f *Folder) CreateAll(ctx context.Context, files []File) error {
	for _, file := range files {
		if err := check(ctx, "create", file.Name); err != nil {
			return err
		}
	}
	if len(files) > 0 && !slices.ContainsFunc(files, func(file File) bool { return f.packer.of(file.Name) == nil || len(file.Name) > maxName }) {
		return f.packer.commit(ctx, files)
	}
	for _, file := range files {
		if err := f.Create(ctx, file.Name, file.Content); err != nil {
			return err
		}
	}
	return nil
}

// maxName is how long the name of a file in a pack can be.
const maxName = 1<<16 - 1

// commit returns when files are durable in packs. The first caller that finds no other at work writes for all that wait.
func (p *packer) commit(ctx context.Context, files []File) error {
	w := &wish{files: files, done: make(chan error, 1)}
	p.mu.Lock()
	p.waiting = append(p.waiting, w)
	p.mu.Unlock()
	select {
	case err := <-w.done:
		return err
	case p.turn <- struct{}{}:
		p.writeWaiting()
		<-p.turn
	case <-ctx.Done():
		if p.withdraw(w) {
			return ctx.Err()
		}
	}
	return <-w.done // another caller has taken it: now only the outcome counts
}

// withdraw takes a wish back, unless another caller has taken it.
func (p *packer) withdraw(w *wish) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.waiting)
	p.waiting = slices.DeleteFunc(p.waiting, func(other *wish) bool { return other == w })
	return len(p.waiting) < n
}

// writeWaiting writes for all that wait. If that fails, each is tried alone, so that nobody gets the error of another. The caller has the turn.
func (p *packer) writeWaiting() {
	p.mu.Lock()
	batch := p.waiting
	p.waiting = nil
	p.mu.Unlock()
	err := p.write(batch)
	for _, w := range batch {
		if err != nil && len(batch) > 1 {
			w.done <- p.write([]*wish{w})
		} else {
			w.done <- err
		}
	}
}

// write adds files to the packs of this process. After an error none of them is there, unless the disk does not even let them be taken back.
// The caller has the turn.
func (p *packer) write(batch []*wish) error {
	added := map[*packs]int64{} // and the size before
	var errs []error
	for _, s := range p.folders {
		files := filesIn(s, p, batch)
		if len(files) == 0 {
			continue
		}
		o, err := p.ownOf(s)
		if err != nil {
			return errors.Join(fmt.Errorf("beginning a pack in %s: %w", s.dir, err), p.takeBack(added))
		}
		added[s] = o.size
		if err := o.add(files); err != nil {
			return errors.Join(fmt.Errorf("writing to %s: %w", o.file.Name(), err), p.takeBack(added))
		}
		p.files.after("written in " + s.folder)
	}
	failed := make([]error, len(p.folders))
	var syncing sync.WaitGroup
	for n, s := range p.folders {
		if _, is := added[s]; is {
			syncing.Go(func() { failed[n] = atomicfile.SyncData(p.own[s].file) })
		}
	}
	syncing.Wait()
	if errs = append(errs, failed...); errors.Join(errs...) != nil {
		return errors.Join(errors.Join(errs...), p.takeBack(added))
	}
	p.files.after("synced")
	for s := range added {
		if p.own[s].size >= p.most {
			p.finish(s)
		}
	}
	return nil
}

func filesIn(s *packs, p *packer, batch []*wish) (files []File) {
	for _, w := range batch {
		for _, file := range w.files {
			if p.of(file.Name) == s {
				files = append(files, file)
			}
		}
	}
	return files
}

// takeBack takes off what was added. If that fails, nothing more is added to that pack.
func (p *packer) takeBack(added map[*packs]int64) error {
	var errs []error
	for s, before := range added {
		o := p.own[s]
		if err := errors.Join(o.file.Truncate(before), o.file.Sync()); err != nil {
			errs = append(errs, fmt.Errorf("taking back what was not whole: %w", err), p.drop(s))
			continue
		}
		o.size = before
	}
	return errors.Join(errs...)
}

// ownOf returns the pack to which this process adds, which it begins or takes over.
func (p *packer) ownOf(s *packs) (*owned, error) {
	if o := p.own[s]; o != nil {
		if o.named() {
			return o, nil
		}
		if err := p.drop(s); err != nil {
			return nil, err
		}
	}
	if err := p.files.stays(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	if err := p.files.syncAbove(s.dir); err != nil {
		return nil, err
	}
	release, err := p.lock()
	if err != nil {
		return nil, err
	}
	defer release()
	o, err := p.takeOver(s)
	if err == nil && o == nil {
		o, err = p.begin(s)
	}
	if err != nil {
		if o != nil { // another one could not be taken over
			o.release()
			err = errors.Join(err, o.file.Close())
		}
		return nil, err
	}
	if o.is, err = o.file.Stat(); err != nil {
		o.release()
		return nil, errors.Join(err, o.file.Close())
	}
	p.own[s] = o
	return o, nil
}

func (p *packer) begin(s *packs) (*owned, error) {
	made, id, err := createPack(s.dir, s.names())
	if err != nil {
		return nil, err
	}
	p.files.after("pack made in " + s.folder)
	_, release, err := p.locks.Lock(context.Background(), id)
	if err != nil {
		return nil, errors.Join(err, made.file.Close())
	}
	return &owned{pack: made, id: id, release: release}, nil
}

// takeOver looks after the packs of processes that have ended: it continues one of them, and finishes those that are full. It returns nil if
// there is none to continue. The caller has the lock.
func (p *packer) takeOver(s *packs) (*owned, error) {
	ids, indexed, err := s.ids()
	if err != nil {
		return nil, err
	}
	var mine *owned
	for _, id := range ids {
		if indexed[id] {
			holds, err := s.indexHolds(id)
			if err != nil {
				return mine, err
			}
			if holds {
				continue
			}
		}
		_, release, err := p.locks.Lock(context.Background(), id)
		if errors.Is(err, lock.ErrTaken) {
			continue
		}
		if err != nil {
			return mine, err
		}
		if _, err := os.Stat(indexFile(s.dir, id)); !indexed[id] && err == nil {
			release() // it has become full since the packs were listed
			continue
		}
		o := &owned{id: id, release: release}
		if keep, err := p.inherit(s, o, indexed[id], mine == nil); err != nil || !keep {
			if release(); err != nil {
				return mine, err
			}
			continue
		}
		mine = o
	}
	return mine, nil
}

// inherit opens the pack of a process that has ended. It reports whether to continue it, and finishes it if it is full, if its index does not hold, if it is
// damaged, or if a crash left something half added: what cannot be read is left alone.
func (p *packer) inherit(s *packs, o *owned, indexed, mayContinue bool) (keep bool, err error) {
	o.pack, err = openPack(s.dir, s.names(), o.id, os.O_RDWR)
	if errors.Is(err, ErrDamaged) {
		return false, nil // whoever looks for a file is told
	}
	if err != nil {
		return false, err
	}
	if o.size < packHead { // a crash came before its head was whole; Windows removes no open file
		return false, errors.Join(o.file.Close(), os.Remove(o.file.Name()))
	}
	defer func() {
		if !keep {
			err = errors.Join(err, o.file.Close())
		}
	}()
	full := o.size >= continued || indexed
	if !full {
		damaged := false
		end, err := o.each(packHead, func(packed) error { return nil }, func(*Damage) { damaged = true })
		if err != nil {
			return false, err
		}
		full = damaged || end != o.size
	}
	if full {
		return false, s.finish(o.pack, o.id)
	}
	return mayContinue, nil
}

// finish ends a full pack, and begins to write its index. The caller has the turn.
func (p *packer) finish(s *packs) {
	o := p.own[s]
	delete(p.own, s)
	p.finishing.Go(func() {
		_ = s.finish(o.pack, o.id) // without an index it is read as before, and the next process that begins a pack tries again
		_ = o.file.Close()         // it was synced
		o.release()
	})
}

// drop ends a pack as it is. The caller has the turn.
func (p *packer) drop(s *packs) error {
	o := p.own[s]
	delete(p.own, s)
	defer o.release()
	return o.file.Close()
}

func (p *packer) close() error {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	var errs []error
	for _, s := range p.folders {
		switch o := p.own[s]; {
		case o == nil:
		case o.size >= continued:
			p.finish(s)
		default:
			errs = append(errs, p.drop(s))
		}
	}
	p.finishing.Wait()
	return errors.Join(errs...)
}

// lock waits until this process may begin or continue a pack.
func (p *packer) lock() (release func(), err error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), turnPatience, fmt.Errorf("another process has held the lock %q for %v", turnName, turnPatience))
	defer cancel()
	for {
		_, release, err := p.locks.Lock(ctx, turnName)
		if !errors.Is(err, lock.ErrTaken) {
			return release, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
	}
}
