package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"jurat/internal/log/filestore"
	"jurat/internal/log/lock"
	"jurat/internal/test/must"
)

// OpenFiles opens a file store once more, as another process would.
type OpenFiles func(t *testing.T) filestore.Store

// Files checks file stores against the contract of filestore.Store. Every call of place makes a new, empty store.
func Files(t *testing.T, place func(t *testing.T) OpenFiles) {
	for name, test := range map[string]func(*shelf){
		"steps":        steps,
		"list":         list,
		"names":        names,
		"contents":     contents,
		"many at once": manyAtOnce,
		"ended":        ended,
	} {
		t.Run(name, func(t *testing.T) { test(&shelf{t, place(t), map[string]string{}, map[string]bool{}}) })
	}
}

// A shelf is a file store under test, and what it must have.
type shelf struct {
	*testing.T
	open OpenFiles
	has  map[string]string
	once map[string]bool // all names that it ever had, or could have
}

// do calls a method of a store that is opened anew, expects an error, and that the store then has what it must have.
func (s *shelf) do(want error, method, name, with string) {
	s.Helper()
	err := calls(s.Context(), s.open(s.T), name, with)[method]()
	if must.Want(s, err, want); want == nil {
		content := s.has[name]
		switch delete(s.has, name); method {
		case "create", "replace":
			s.has[name] = with
		case "rename":
			s.has[with] = content
		}
	}
	s.once[name] = true
	s.agrees()
}

// agrees compares each file with what it must have.
func (s *shelf) agrees() {
	s.Helper()
	for name := range s.once {
		content, there := s.has[name]
		for range 2 {
			got, err := s.open(s.T).Read(s.Context(), name)
			if string(got) != content || there != (err == nil) || !there && !errors.Is(err, fs.ErrNotExist) {
				s.Errorf("%s holds %q, %v; want %q", name, got, err, content)
			}
			clear(got) // the result belongs to the caller
		}
	}
}

// steps takes the steps of all methods, with a file that is not a secret and with one that is.
func steps(s *shelf) {
	for _, end := range []string{".json", ".key"} {
		one, two := "a/b/one"+end, "a/b/two"+end
		for _, step := range []struct {
			want               error
			method, name, with string
		}{
			{fs.ErrNotExist, "rename", one, two},
			{fs.ErrNotExist, "remove", one, ""},
			{fs.ErrNotExist, "remove", "no/such/file", ""},
			{nil, "create", one, "first"},
			{fs.ErrExist, "create", one, "second"},
			{fs.ErrExist, "create", one, "second"},
			{nil, "replace", one, ""},
			{nil, "replace", one, "another"},
			{nil, "rename", one, two},
			{nil, "create", one, "other"},
			{nil, "rename", one, two},
			{nil, "rename", two, two},
			{nil, "create", one, "one"}, // the name can be used again
			{nil, "remove", two, ""},
			{fs.ErrNotExist, "remove", two, ""},
			{nil, "replace", two, "new"},
		} {
			s.do(step.want, step.method, step.name, step.with)
		}
	}
}

// lists expects the names below some folders.
func (s *shelf) lists(folders ...string) {
	s.Helper()
	for _, folder := range folders {
		var got []string
		must.Do(s, s.open(s.T).List(s.Context(), folder, func(name string) error { got = append(got, name); return nil }))
		slices.Sort(got)
		want := slices.DeleteFunc(slices.Sorted(maps.Keys(s.has)), func(name string) bool { return !strings.HasPrefix(name, folder+"/") })
		if !slices.Equal(got, want) {
			s.Errorf("below %s are %d: %.500v, want %d: %.500v", folder, len(got), got, len(want), want)
		}
	}
}

func list(s *shelf) {
	s.lists("a")
	for _, name := range []string{"a.key", "a-b/x", "ab/x", "b/a/x", "a%/x", "A/x", "a/b/1.json", "a/b/2.key", "a/b/c/3.key", "a/c/0.json"} {
		s.do(nil, "create", name, "content")
	}
	s.lists("a", "a/b", "none")
	c, stop, n := s.open(s.T), errors.New("enough"), 0
	must.Want(s, c.List(s.Context(), "a", func(string) error { n++; return stop }), stop)
	must.Equal(s, n, 1)
	must.Do(s, c.List(s.Context(), "a", func(name string) error { // found may change the store
		delete(s.has, name)
		return c.Remove(s.Context(), name)
	}))
	s.lists("a")
	s.agrees()

	var many []string
	for n := range 2345 {
		many = append(many, fmt.Sprintf("long/%02x/%04d.json", n%3, n))
		s.has[many[n]] = ""
	}
	var all sync.WaitGroup
	for part := range slices.Chunk(many, 500) {
		all.Go(func() {
			for _, name := range part {
				must.Want(s, c.Create(s.Context(), name, nil), nil)
			}
		})
	}
	all.Wait()
	s.lists("long")
}

// calls are the methods for a file of a store. with is the content, or another name.
func calls(ctx context.Context, c filestore.Store, name, with string) map[string]func() error {
	return map[string]func() error{
		"create":    func() error { return c.Create(ctx, name, []byte(with)) },
		"replace":   func() error { return c.Replace(ctx, name, []byte(with)) },
		"rename":    func() error { return c.Rename(ctx, name, with) },
		"rename to": func() error { return c.Rename(ctx, with, name) },
		"remove":    func() error { return c.Remove(ctx, name) },
		"read":      func() error { _, err := c.Read(ctx, name); return err },
	}
}

func (s *shelf) refuses(ctx context.Context, name, other string, want error) {
	s.Helper()
	for method, call := range calls(ctx, s.open(s.T), name, other) {
		if err := call(); !errors.Is(err, want) {
			s.Errorf("%s %q: %v", method, name, err)
		}
	}
}

// ended checks that a call with an ended context changes nothing.
func ended(s *shelf) {
	s.do(nil, "create", "a/b", "content")
	ctx, end := context.WithCancel(s.Context())
	end()
	must.Want(s, s.open(s.T).List(ctx, "a", func(string) error { return nil }), context.Canceled)
	for _, name := range []string{"a/b", "a/c"} {
		s.refuses(ctx, name, "a/d", context.Canceled)
		s.once[name], s.once["a/d"] = true, true
	}
	s.agrees()
}

// names checks that no name leads out of a file store.
func names(s *shelf) {
	for _, name := range []string{"", "/", "/etc/passwd", "..", "../x", "a/../../x", "a//b", "a/", "./a"} {
		s.refuses(s.Context(), name, "x", fs.ErrInvalid)
	}
	for _, name := range []string{"日本/é.key", "a'b/\"x\".json", "a b/%_\\.json"} {
		if s.do(nil, "create", name, name); s.open(s.T).Where(name) == "" {
			s.Errorf("Where(%q) is empty", name)
		}
	}
}

func contents(s *shelf) {
	all := make([]byte, 256)
	for n := range all {
		all[n] = byte(n)
	}
	for n, content := range [][]byte{nil, {0}, all, bytes.Repeat(all, 5000)} {
		for _, extension := range []string{".key", ".json"} {
			s.do(nil, "create", fmt.Sprint("contents/", n, extension), string(content))
		}
	}
}

// manyAtOnce checks that of many callers who make the same file at once, one succeeds, and all read its content.
func manyAtOnce(s *shelf) {
	const callers = 12
	for _, name := range []string{"a/b/plain.json", "a/b/secret.key"} {
		made, read := make([]bool, callers), make([]string, callers)
		var all sync.WaitGroup
		for n := range callers {
			c := s.open(s.T)
			all.Go(func() {
				err := c.Create(s.Context(), name, fmt.Append(nil, "by ", n))
				if made[n] = err == nil; !made[n] {
					must.Want(s, err, fs.ErrExist)
				}
				content, err := c.Read(s.Context(), name)
				must.Want(s, err, nil)
				read[n] = string(content)
			})
		}
		all.Wait()
		winner := slices.Index(made, true)
		if winner < 0 || slices.Contains(made[winner+1:], true) {
			s.Fatalf("%s was made by %v", name, made)
		}
		for n := range read {
			must.Equal(s, read[n], fmt.Sprint("by ", winner))
		}
	}
}

// OpenLocks opens locks once more, as another process would.
type OpenLocks func(t *testing.T) lock.Locks

// Locks checks locks against the contract of lock.Locks. Every call of place makes new locks that are all free.
func Locks(t *testing.T, place func(t *testing.T) OpenLocks) {
	for name, test := range map[string]func(*testing.T, OpenLocks){
		"one holder":            oneHolder,
		"ends with the context": endsWithContext,
		"exclusive":             exclusive,
		"lock names":            lockNames,
		"asking takes nothing":  askingTakesNothing,
	} {
		t.Run(name, func(t *testing.T) { test(t, place(t)) })
	}
}

func mustLock(t *testing.T, c lock.Locks, name string) (held context.Context, release func()) {
	t.Helper()
	held, release, err := c.Lock(t.Context(), name)
	must.Do(t, err)
	return held, release
}

func wantLocked(t *testing.T, c lock.Locks, name string, want bool) {
	t.Helper()
	must.Give(c.Locked(t.Context(), name))(t, want)
}

// oneHolder checks that one holder at a time has a lock, here and in other processes.
func oneHolder(t *testing.T, open OpenLocks) {
	here, there := open(t), open(t)
	held, release := mustLock(t, here, "trial-1")
	for _, c := range []lock.Locks{here, there} {
		_, _, err := c.Lock(t.Context(), "trial-1")
		must.Want(t, err, lock.ErrTaken)
		wantLocked(t, c, "trial-1", true)
		wantLocked(t, c, "trial-2", false)
	}
	_, other := mustLock(t, there, "trial-2")
	wantLocked(t, here, "trial-2", true)
	other()
	wantLocked(t, here, "trial-1", true)
	must.Want(t, held.Err(), nil)
	release()
	must.Want(t, held.Err(), context.Canceled)
	wantLocked(t, here, "trial-1", false)
	_, release = mustLock(t, there, "trial-1")
	defer release()
	wantLocked(t, here, "trial-1", true)
}

// endsWithContext checks that work under a lock ends with the caller's context.
func endsWithContext(t *testing.T, open OpenLocks) {
	ctx, cancel := context.WithCancel(t.Context())
	held, release, err := open(t).Lock(ctx, "trial-1")
	must.Do(t, err)
	defer release()
	cancel()
	<-held.Done()
	must.Want(t, context.Cause(held), context.Canceled)
	wantLocked(t, open(t), "trial-1", true) // until it is released
}

// exclusive checks that no two of many callers have a lock at once.
func exclusive(t *testing.T, open OpenLocks) {
	shared := open(t)
	var inside, held atomic.Int32
	var all sync.WaitGroup
	for n := range 8 {
		c := shared
		if n%2 == 0 {
			c = open(t)
		}
		all.Go(func() {
			for range 200 {
				_, release, err := c.Lock(t.Context(), "trial-1")
				if err != nil {
					must.Want(t, err, lock.ErrTaken)
					continue
				}
				must.Equal(t, inside.Add(1), 1)
				held.Add(1)
				inside.Add(-1)
				release()
			}
		})
	}
	all.Wait()
	if held.Load() == 0 {
		t.Error("nobody ever had it")
	}
}

// lockNames checks that a name that could not be a file name is refused everywhere.
func lockNames(t *testing.T, open OpenLocks) {
	c := open(t)
	for _, id := range []string{"", ".", "..", "../trial-1", "a/b", ".hidden"} {
		if _, release, err := c.Lock(t.Context(), id); err == nil {
			release()
			t.Errorf("%q is locked", id)
		}
		if _, err := c.Locked(t.Context(), id); err == nil {
			t.Errorf("%q could be locked", id)
		}
	}
}

// askingTakesNothing checks that callers of Locked do not prevent others from locking.
func askingTakesNothing(t *testing.T, open OpenLocks) {
	c, asks := open(t), open(t)
	var asking sync.WaitGroup
	defer asking.Wait()
	var stop atomic.Bool
	defer stop.Store(true)
	for range 4 {
		asking.Go(func() {
			for err := error(nil); err == nil && !stop.Load(); {
				_, err = asks.Locked(t.Context(), "trial-1")
				must.Want(t, err, nil)
			}
		})
	}
	for range 500 {
		_, release := mustLock(t, c, "trial-1") // no other process has it
		release()
	}
}
