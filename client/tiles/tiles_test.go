package tiles_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/client/tiles"
	"jurat/evidence/operator"
	"jurat/internal/test/must"
)

func TestPaths(t *testing.T) {
	for path, want := range map[string]tlog.Tile{
		"tile/0/000":                      {H: 8, L: 0, N: 0, W: 256},
		"tile/0/x001/x234/067":            {H: 8, L: 0, N: 1234067, W: 256},
		"tile/1/273.p/112":                {H: 8, L: 1, N: 273, W: 112},
		"tile/63/000.p/1":                 {H: 8, L: 63, N: 0, W: 1},
		"tile/entries/x001/000.p/255":     {H: 8, L: -1, N: 1000, W: 255},
		"tile/entries/999":                {H: 8, L: -1, N: 999, W: 256},
		"tile/0/x036/x028/x797/x018/963/": {}, // not this form
	} {
		rest := strings.TrimPrefix(path, "tile/")
		level, rest, _ := strings.Cut(rest, "/")
		got, err := tiles.Parse(level, rest)
		if want.H == 0 {
			must.Hold(t, err != nil, "%s: %v", path, got)
			continue
		}
		if err != nil || got != want || tiles.Path(got) != path {
			t.Errorf("%s: %v, %v, %s", path, got, err, tiles.Path(got))
		}
	}
	for _, bad := range []string{"0/", "0/00", "0/0000", "0/1234", "0/x1/000", "0/x000/001", "0/001/234", "0/x001", "0/000.p/0", "0/000.p/256", "0/000.p/01",
		"0/000.p/", "0/000.p/+1", "0/-01", "0/+01", "0/000.q/1", "00/000", "64/000", "-1/000", "data/000", "+1/000", "0/x999/x999/x999/x999/x999/x999/999",
		"0/xx001/000", "0/x001x/000", "0/000/", "entries/000.p/1.p/1", "0/٠٠٠"} {
		level, rest, _ := strings.Cut(bad, "/")
		got, err := tiles.Parse(level, rest)
		must.Hold(t, err != nil, "%s: %v", bad, got)
	}
}

// TestLastTile: Parse refuses tiles beyond the largest possible log, and integer overflow must not make one acceptable.
func TestLastTile(t *testing.T) {
	for path, parses := range map[string]bool{
		"x035/x184/x372/x088/831":      true, // contains the last possible entry
		"x035/x184/x372/x088/832":      false,
		"x036/x028/x797/x018/x963/967": false, // the 2^55th tile: the index after its last entry is 2^63
	} {
		tile, err := tiles.Parse("0", path)
		must.Hold(t, (err == nil) == parses, "%s: %v, %v", path, tile, err)
	}
	for _, n := range []int64{1<<55 - 1, 1 << 55, math.MaxInt64} {
		for _, level := range []int{tiles.EntriesLevel, 0, 1, 7, 63} {
			tile := (tlog.Tile{H: 8, L: level, N: n, W: 256})
			must.Hold(t, !tiles.In(tile, operator.MaxEntries) && !tiles.In(tile, 3), "%v is in a tree", tile)
			must.Equal(t, tiles.Of(level, n, operator.MaxEntries).W, 0)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0", "x001/x234/067")
	f.Add("entries", "000.p/3")
	f.Add("data/000.p", "3")
	f.Add("63", "x036/x028/x797/x018/963")
	f.Fuzz(func(t *testing.T, level, rest string) {
		if tile, err := tiles.Parse(level, rest); err == nil && tiles.Path(tile) != "tile/"+level+"/"+rest {
			t.Errorf("%s/%s has another form %s", level, rest, tiles.Path(tile))
		}
	})
}

// TestWhichTilesATreeHas checks the example of C2SP tlog-tiles, a tree of size 70,000.
func TestWhichTilesATreeHas(t *testing.T) {
	for _, want := range []struct {
		level int
		index int64
		width int
	}{{0, 272, 256}, {0, 273, 112}, {0, 274, 0}, {1, 0, 256}, {1, 1, 17}, {1, 2, 0}, {2, 0, 1}, {3, 0, 0}, {8, 0, 0}, {63, 0, 0}, {tiles.EntriesLevel, 273, 112}} {
		tile := tiles.Of(want.level, want.index, 70_000)
		must.Hold(t, tile.W == want.width, "level %d, tile %d: %d wide", want.level, want.index, tile.W)
		must.Hold(t, want.width <= 0 || tiles.In(tile, 70_000), "%v is not in the tree", tile)
		if tile.W++; tile.W <= 256 && tiles.In(tile, 70_000) {
			t.Errorf("%v is in the tree", tile)
		}
	}
}

func TestEntriesAreReadStrictly(t *testing.T) {
	for _, entries := range [][][]byte{nil, {[]byte("one")}, {{}, []byte("two"), bytes.Repeat([]byte("x"), tiles.MaxEntry)}} {
		bundle := must.Get(tiles.FormatEntries(entries))(t)
		got, err := tiles.ParseEntries(bundle, len(entries))
		must.Hold(t, err == nil && slices.EqualFunc(got, entries, bytes.Equal), "%d entries: %v", len(entries), err)
		for _, n := range []int{len(entries) - 1, len(entries) + 1} {
			must.Refuse(t, "", len(entries), "entries pass for", n)(tiles.ParseEntries(bundle, n))
		}
		for cut := range min(len(bundle), 20) {
			must.Refuse(t, "", len(entries), "entries: cut by", cut+1)(tiles.ParseEntries(bundle[:len(bundle)-cut-1], len(entries)))
		}
	}
	must.Refuse(t, "", "an entry whose length does not fit")(tiles.FormatEntries([][]byte{make([]byte, tiles.MaxEntry+1)}))
}

// A shelf is a log in memory that serves its files over HTTP.
type shelf struct {
	mu     sync.Mutex // while it is held, no other goroutine reads or changes what follows
	files  map[string][]byte
	asked  map[string]int
	head   operator.Checkpoint
	before func(w http.ResponseWriter, r *http.Request) bool // answers itself; nil: nothing does
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/log/")
	s.asked[path]++
	if s.before != nil && s.before(w, r) {
		return
	}
	doc, there := s.files[path]
	if !there {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(doc)
}

func entry(i int64) []byte { return fmt.Appendf(nil, "entry %d", i) }

// newShelf makes a log of n entries and writes all its files by C2SP tlog-tiles, without package tiles.
func newShelf(t testing.TB, n int64) (*shelf, *tiles.Client) {
	t.Helper()
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		var list []tlog.Hash
		for _, i := range indexes {
			list = append(list, stored[i])
		}
		return list, nil
	})
	for i := range n {
		hashes := must.Get(tlog.StoredHashes(i, entry(i), reader))(t)
		stored = append(stored, hashes...)
	}
	root := must.Get(tlog.TreeHash(n, reader))(t)
	s := &shelf{files: map[string][]byte{"checkpoint": []byte("as it is")}, asked: map[string]int{}, head: operator.Checkpoint{Origin: "log", Size: n, Root: root}}
	for level := 0; n>>(8*level) > 0; level++ {
		for i := int64(0); i < n>>(8*level); i++ {
			name := fmt.Sprintf("%03d", i/256)
			if rest := n>>(8*level) - i/256*256; rest < 256 {
				name += fmt.Sprintf(".p/%d", rest)
			}
			hash := stored[tlog.StoredHashIndex(8*level, i)]
			path := fmt.Sprintf("tile/%d/%s", level, name)
			s.files[path] = append(s.files[path], hash[:]...)
			if level == 0 {
				bundle := "tile/entries/" + name
				s.files[bundle] = append(s.files[bundle], 0, byte(len(entry(i))))
				s.files[bundle] = append(s.files[bundle], entry(i)...)
			}
		}
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client := must.Get(tiles.New(tiles.Config{URL: server.URL + "/log"}))(t)
	return s, client
}

// TestTree makes every kind of proof, from trees of many sizes.
func TestTree(t *testing.T) {
	for _, n := range []int64{1, 2, 255, 256, 257, 511, 512, 700, 65_536 + 300} {
		s, client := newShelf(t, n)
		tree := client.Tree(t.Context(), s.head)
		for _, index := range []int64{0, n / 3, n - 1} {
			proof := must.Get(tree.ProveInclusion(index))(t)
			must.Want(t, tlog.CheckRecord(proof, n, s.head.Root, index, tlog.RecordHash(entry(index))), nil, "entry", index, "of", n)
		}
		for _, small := range []int64{0, 1, n / 2, n - 1, n} {
			if small == 0 && n == 1 {
				continue
			}
			old, _ := newShelf(t, small)
			proof := must.Get(tree.ProveConsistency(small))(t)
			if small == 0 {
				old.head.Root = operator.EmptyRoot()
			}
			must.Want(t, proof.Check(old.head, s.head), nil, "from", small, "to", n)
			fork := must.Get(tree.ProveFork(small))(t)
			old.head.Root[0] ^= 1 // of another history
			must.Want(t, fork.Check(old.head, s.head), operator.ErrFork, "the proof that", small, "and", n, "entries are a fork")
		}
		var next int64
		err := tree.Entries(0, n, func(index int64, got []byte) error {
			must.Need(t, index == next && bytes.Equal(got, entry(index)), "entry %d of %d: %d, %s", next, n, index, got)
			next++
			return nil
		})
		must.Hold(t, err == nil && next == n, "of %d entries came %d: %v", n, next, err)
	}
}

// TestNothingFalseIsGivenOut damages each file of a log in turn. The reader must report the file, or must not need it.
func TestNothingFalseIsGivenOut(t *testing.T) {
	const n = 256 + 256 + 30
	s, client := newShelf(t, n)
	for path, good := range s.files {
		if path == "checkpoint" {
			continue
		}
		for name, bad := range map[string][]byte{"changed": flipped(good, len(good)/2), "cut": good[:len(good)-1], "longer": append(slices.Clone(good), 0), "empty": {}} {
			s.set(path, bad)
			tree := client.Tree(t.Context(), s.head)
			err := tree.Entries(0, n, func(index int64, got []byte) error {
				must.Hold(t, bytes.Equal(got, entry(index)), "%s %s: entry %d is %q", path, name, index, got)
				return nil
			})
			var found *tiles.InconsistentError
			if !errors.As(err, &found) || !errors.Is(err, tiles.ErrInconsistent) {
				t.Errorf("%s %s: %v", path, name, err)
			} else if found.Path != path && !strings.Contains(found.Reason, "right edge") && !strings.Contains(found.Reason, path) {
				t.Errorf("%s %s: blames %s: %s", path, name, found.Path, found.Reason)
			}
		}
		s.set(path, good)
	}
}

func flipped(doc []byte, at int) []byte {
	other := slices.Clone(doc)
	other[at] ^= 1
	return other
}

func (s *shelf) set(path string, doc []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = doc
}

// TestSizesThatNoLogHas: a log's key can sign any size. An impossible size must give an error quickly.
func TestSizesThatNoLogHas(t *testing.T) {
	_, client := newShelf(t, 3)
	for _, size := range []int64{operator.MaxEntries + 1, 1<<60 + 1, 1<<62 - 1, 1 << 62, math.MaxInt64} {
		tree := client.Tree(t.Context(), operator.Checkpoint{Size: size})
		ask := map[string]func() error{
			"leaves":              func() error { _, err := tree.Leaves(size-1, size); return err },
			"an inclusion proof":  func() error { _, err := tree.ProveInclusion(size - 1); return err },
			"a consistency proof": func() error { _, err := tree.ProveConsistency(size - 1); return err },
			"the same size":       func() error { _, err := tree.ProveConsistency(size); return err },
			"entries":             func() error { return tree.Entries(0, size, func(int64, []byte) error { return nil }) },
		}
		for what, asked := range ask {
			must.Want(t, asked(), tiles.ErrInconsistent, what, "of", size)
		}
	}
	largest := client.Tree(t.Context(), operator.Checkpoint{Size: operator.MaxEntries})
	must.Fail(t, tiles.ErrUnavailable)(largest.Leaves(0, 1)) // there are no tiles of this size
}

// TestPartialTilesThatAreGone: once the full tile exists, the log may delete its partial tiles.
func TestPartialTilesThatAreGone(t *testing.T) {
	small, _ := newShelf(t, 300)
	large, client := newShelf(t, 600)
	large.files["tile/1/000.p/1"] = small.files["tile/1/000.p/1"] // this tile is not full yet in the larger log; tile 001 of level 0 is
	count := 0
	err := client.Tree(t.Context(), small.head).Entries(0, 300, func(int64, []byte) error { count++; return nil })
	must.Hold(t, err == nil && count == 300, "%d entries: %v", count, err)
}

// TestAnswersOfLogs: the client retries if a log is busy, does not retry if the log refuses, and does not report a log
// that is unreachable as inconsistent.
func TestAnswersOfLogs(t *testing.T) {
	s, client := newShelf(t, 3)
	busy := 2
	s.before = func(w http.ResponseWriter, _ *http.Request) bool {
		if busy == 0 {
			return false
		}
		busy--
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	}
	doc, err := client.Checkpoint(t.Context())
	must.Hold(t, err == nil && doc == "as it is" && s.asked["checkpoint"] == 3, "%q, %v, asked %d times", doc, err, s.asked["checkpoint"])
	s.before = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusUnauthorized); return true }
	_, err = client.Checkpoint(t.Context())
	must.Hold(t, errors.Is(err, tiles.ErrRefused) && s.asked["checkpoint"] == 4, "%v, asked %d times", err, s.asked["checkpoint"])
	s.before = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusNotFound); return true }
	_, err = client.Tree(t.Context(), s.head).ProveInclusion(1)
	must.Hold(t, errors.Is(err, tiles.ErrUnavailable) && !errors.Is(err, tiles.ErrInconsistent), "%v", err)
	gone := must.Get(tiles.New(tiles.Config{URL: "http://127.0.0.1:1/"}))(t)
	must.Fail(t, tiles.ErrUnavailable)(gone.Checkpoint(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must.Fail(t, context.Canceled)(gone.Checkpoint(ctx))
	for _, url := range []string{"", "jurat.example/log", "ftp://jurat.example", "https://jurat.example/log?x=1"} {
		must.Refuse(t, "", url, "is taken")(tiles.New(tiles.Config{URL: url}))
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		must.Equal(t, r.Header.Get("Authorization"), "")
	}))
	defer elsewhere.Close()
	sends := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusFound))
	defer sends.Close()
	trusting := must.Get(tiles.New(tiles.Config{URL: sends.URL, Token: "secret"}))(t)
	must.Fail(t, tiles.ErrUnavailable)(trusting.Checkpoint(t.Context()))
	must.Refuse(t, "", "New accepted a token for an unencrypted connection")(tiles.New(tiles.Config{URL: "http://jurat.example/log", Token: "secret"}))
}
