package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"jurat/internal/filestore"
	"jurat/internal/lock"
	"jurat/internal/must"
)

// OpenFiles opens a file store once more, as another process would.
type OpenFiles func(t *testing.T) filestore.Store

// Files checks file stores against the contract of filestore.Store. Every call of place makes a new, empty store.
func Files(t *testing.T, place func(t *testing.T) OpenFiles) {
	for name, test := range map[string]func(*testing.T, OpenFiles){
		"read":         read,
		"create":       create,
		"replace":      replace,
		"rename":       rename,
		"remove":       remove,
		"list":         list,
		"long list":    longList,
		"names":        names,
		"contents":     contents,
		"many at once": manyAtOnce,
		"ended":        ended,
	} {
		t.Run(name, func(t *testing.T) { test(t, place(t)) })
	}
}

// both are the names of a file that is not a secret and of one that is.
var both = []string{"a/b/plain.json", "a/b/secret.key"}

func wantContent(t *testing.T, c filestore.Store, name, content string) {
	t.Helper()
	if got, err := c.Read(t.Context(), name); err != nil || string(got) != content {
		t.Errorf("%s holds %q, %v; want %q", name, got, err, content)
	}
}

func wantNone(t *testing.T, c filestore.Store, names ...string) {
	t.Helper()
	for _, name := range names {
		if got, err := c.Read(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s holds %q, %v; want fs.ErrNotExist", name, got, err)
		}
	}
}

func read(t *testing.T, open OpenFiles) {
	wantNone(t, open(t), "none", "a/none.key")
	for _, name := range both {
		must.Do(t, open(t).Create(t.Context(), name, []byte("content")))
		wantContent(t, open(t), name, "content")
		got, err := open(t).Read(t.Context(), name)
		must.Do(t, err)
		got[0] = 'X' // the result belongs to the caller
		wantContent(t, open(t), name, "content")
	}
}

func create(t *testing.T, open OpenFiles) {
	for _, name := range both {
		must.Do(t, open(t).Create(t.Context(), name, []byte("first")))
		for range 2 {
			if err := open(t).Create(t.Context(), name, []byte("second")); !errors.Is(err, fs.ErrExist) {
				t.Errorf("%s: %v, want fs.ErrExist", name, err)
			}
		}
		wantContent(t, open(t), name, "first")
	}
}

func replace(t *testing.T, open OpenFiles) {
	for _, name := range both {
		for _, content := range []string{"one", "", "another"} {
			must.Do(t, open(t).Replace(t.Context(), name, []byte(content)))
			wantContent(t, open(t), name, content)
		}
	}
}

func rename(t *testing.T, open OpenFiles) {
	for _, name := range both {
		must.Want(t, open(t).Rename(t.Context(), name, name+"2"), fs.ErrNotExist)
	}
	must.Do(t, open(t).Create(t.Context(), "a/one.key", []byte("one")))
	must.Do(t, open(t).Rename(t.Context(), "a/one.key", "a/two.key"))
	wantNone(t, open(t), "a/one.key")
	wantContent(t, open(t), "a/two.key", "one")
	must.Do(t, open(t).Create(t.Context(), "a/one.key", []byte("other")))
	must.Do(t, open(t).Rename(t.Context(), "a/one.key", "a/two.key"))
	wantNone(t, open(t), "a/one.key")
	wantContent(t, open(t), "a/two.key", "other")
	must.Do(t, open(t).Rename(t.Context(), "a/two.key", "a/two.key"))
	wantContent(t, open(t), "a/two.key", "other")
	must.Do(t, open(t).Create(t.Context(), "a/one.key", []byte("one"))) // the name can be used again
}

func remove(t *testing.T, open OpenFiles) {
	for _, name := range both {
		must.Do(t, open(t).Create(t.Context(), name, []byte("content")))
		must.Do(t, open(t).Remove(t.Context(), name))
		wantNone(t, open(t), name)
		if err := open(t).Remove(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: removed twice: %v", name, err)
		}
	}
	must.Want(t, open(t).Remove(t.Context(), "no/such/file"), fs.ErrNotExist)
}

func listed(t *testing.T, c filestore.Store, folder string) []string {
	t.Helper()
	var got []string
	must.Do(t, c.List(t.Context(), folder, func(name string) error { got = append(got, name); return nil }))
	slices.Sort(got)
	return got
}

func list(t *testing.T, open OpenFiles) {
	if got := listed(t, open(t), "a"); len(got) > 0 {
		t.Errorf("an empty file store has %v", got)
	}
	all := []string{"a/b/1.json", "a/b/2.key", "a/b/c/3.key", "a/c/0.json"}
	for _, name := range append([]string{"a.key", "a-b/x", "ab/x", "b/a/x", "a%/x", "A/x"}, all...) {
		must.Do(t, open(t).Create(t.Context(), name, []byte("content")))
	}
	if got := listed(t, open(t), "a"); !slices.Equal(got, all) {
		t.Errorf("below a are %v, want %v", got, all)
	}
	if got := listed(t, open(t), "a/b"); !slices.Equal(got, all[:3]) {
		t.Errorf("below a/b are %v, want %v", got, all[:3])
	}
	if got := listed(t, open(t), "none"); len(got) > 0 {
		t.Errorf("below none are %v", got)
	}
	stop := errors.New("enough")
	n := 0
	if err := open(t).List(t.Context(), "a", func(string) error { n++; return stop }); !errors.Is(err, stop) || n != 1 {
		t.Errorf("after %d names: %v", n, err)
	}
	c := open(t)
	must.Do(t, c.List(t.Context(), "a", func(name string) error { return c.Remove(t.Context(), name) })) // found may change the store
	if got := listed(t, c, "a"); len(got) > 0 {
		t.Errorf("%v are left", got)
	}
}

func longList(t *testing.T, open OpenFiles) {
	c := open(t)
	var all []string
	for n := range 2345 {
		all = append(all, fmt.Sprintf("long/%02x/%04d.json", n%3, n))
	}
	var wg sync.WaitGroup
	for part := range slices.Chunk(all, 500) {
		wg.Go(func() {
			for _, name := range part {
				must.Want(t, c.Create(t.Context(), name, nil), nil)
			}
		})
	}
	wg.Wait()
	slices.Sort(all)
	if got := listed(t, c, "long"); !slices.Equal(got, all) {
		t.Errorf("%d are listed, want %d", len(got), len(all))
	}
}

// ended checks that a call with an ended context changes nothing.
func ended(t *testing.T, open OpenFiles) {
	c := open(t)
	must.Do(t, c.Create(t.Context(), "a/b", []byte("content")))
	ctx, end := context.WithCancel(t.Context())
	end()
	_, err := c.Read(ctx, "a/b")
	for what, err := range map[string]error{"Read": err, "Create": c.Create(ctx, "a/c", nil), "Replace": c.Replace(ctx, "a/b", nil),
		"Rename": c.Rename(ctx, "a/b", "a/c"), "Remove": c.Remove(ctx, "a/b"),
		"List": c.List(ctx, "a", func(string) error { return nil })} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
	wantContent(t, c, "a/b", "content")
	wantNone(t, c, "a/c")
}

// names checks that no name leads out of a file store.
func names(t *testing.T, open OpenFiles) {
	c := open(t)
	for _, name := range []string{"", "/", "/etc/passwd", "..", "../x", "a/../../x", "a//b", "a/", "./a"} {
		for what, err := range map[string]error{"Create": c.Create(t.Context(), name, nil), "Replace": c.Replace(t.Context(), name, nil), "Remove": c.Remove(t.Context(), name),
			"Rename to": c.Rename(t.Context(), "x", name), "Rename": c.Rename(t.Context(), name, "x")} {
			if !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("%s %q: %v", what, name, err)
			}
		}
		if _, err := c.Read(t.Context(), name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("Read %q: %v", name, err)
		}
	}
	for _, name := range []string{"日本/é.key", "a'b/\"x\".json", "a b/%_\\.json"} {
		must.Do(t, c.Create(t.Context(), name, []byte(name)))
		wantContent(t, open(t), name, name)
		if c.Where(name) == "" {
			t.Errorf("Where(%q) is empty", name)
		}
	}
}

func contents(t *testing.T, open OpenFiles) {
	all := make([]byte, 256)
	for n := range all {
		all[n] = byte(n)
	}
	for n, content := range [][]byte{nil, {0}, all, bytes.Repeat(all, 5000)} {
		for _, extension := range []string{".key", ".json"} {
			name := fmt.Sprint("contents/", n, extension)
			must.Do(t, open(t).Create(t.Context(), name, content))
			if got, err := open(t).Read(t.Context(), name); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(content))
			}
		}
	}
}

// manyAtOnce checks that of many callers who make the same file at once, one succeeds, and all read its content.
func manyAtOnce(t *testing.T, open OpenFiles) {
	const callers = 12
	for _, name := range both {
		made, read := make([]bool, callers), make([]string, callers)
		var wg sync.WaitGroup
		for n := range callers {
			c := open(t)
			wg.Go(func() {
				err := c.Create(t.Context(), name, fmt.Append(nil, "by ", n))
				if err != nil && !errors.Is(err, fs.ErrExist) {
					t.Error(err)
				}
				made[n] = err == nil
				content, err := c.Read(t.Context(), name)
				if err != nil {
					t.Error(err)
				}
				read[n] = string(content)
			})
		}
		wg.Wait()
		winner := slices.Index(made, true)
		if winner < 0 || slices.Contains(made[winner+1:], true) {
			t.Fatalf("%s was made by %v", name, made)
		}
		for n := range read {
			must.Equal(t, read[n], fmt.Sprint("by ", winner))
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
	if is, err := c.Locked(t.Context(), name); is != want || err != nil {
		t.Errorf("%s is locked: %t, %v; want %t", name, is, err, want)
	}
}

// oneHolder checks that one holder at a time has a lock, here and in other processes.
func oneHolder(t *testing.T, open OpenLocks) {
	here, there := open(t), open(t)
	held, release := mustLock(t, here, "trial-1")
	for _, c := range []lock.Locks{here, there} {
		if _, _, err := c.Lock(t.Context(), "trial-1"); !errors.Is(err, lock.ErrTaken) {
			t.Errorf("locked twice: %v", err)
		}
		wantLocked(t, c, "trial-1", true)
		wantLocked(t, c, "trial-2", false)
	}
	_, other := mustLock(t, there, "trial-2")
	wantLocked(t, here, "trial-2", true)
	other()
	wantLocked(t, here, "trial-1", true)
	if held.Err() != nil {
		t.Error(held.Err())
	}
	release()
	if held.Err() == nil {
		t.Error("the context of the lock is still alive")
	}
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
	if cause := context.Cause(held); !errors.Is(cause, context.Canceled) {
		t.Error(cause)
	}
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
				if errors.Is(err, lock.ErrTaken) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
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
	stop := make(chan struct{})
	for range 4 {
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if _, err := asks.Locked(t.Context(), "trial-1"); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for range 500 {
		_, release, err := c.Lock(t.Context(), "trial-1")
		if err != nil {
			t.Errorf("no other process has the lock: %v", err)
			break
		}
		release()
	}
	close(stop)
	asking.Wait()
}
