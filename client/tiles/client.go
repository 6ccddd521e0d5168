// Package tiles reads a log over HTTP in the layout of C2SP tlog-tiles. It trusts only what a checkpoint proves.
//
//	GET URL/checkpoint             the signed checkpoint
//	GET URL/tile/LEVEL/INDEX       256 hashes of the tree, or as many as there are (.p/WIDTH)
//	GET URL/tile/entries/INDEX     the 256 entries under a tile of level 0
//
// A Client fetches. A Tree compares what it fetches with the root of one checkpoint, whose signature the caller has checked. It proves where entries
// are, and that the tree has only grown.
//
// # The log as tiles
//
// The server makes tiles of the hashes that are in the database anyway: a tile is one query for 256 of them, and never shows what no signed
// checkpoint covers. Tiles never change, so any cache may keep them, and other programs' monitors can read them: a test runs Tessera's `fsck`.
package tiles

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/bits"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"
	"golang.org/x/sync/errgroup"

	"jurat/evidence/operator"
)

var (
	// ErrUnavailable says that the log did not answer a request.
	ErrUnavailable = errors.New("the log does not answer as it should")
	// ErrRefused says that the log shows something only to authorised readers.
	ErrRefused = errors.New("the log does not show this to everybody")
)

const (
	maxCheckpoint = 1_000_000 // the largest signed note
	attempts      = 4         // number of attempts per request
	maxWait       = 30 * time.Second
	timeout       = time.Minute // for one answer, unless Config.HTTP has another
)

// Config configures a Client.
type Config struct {
	URL   string       // required: the part before /checkpoint, such as https://jurat.example/log
	Token string       // sent as a bearer token if entries are not public; "": none
	HTTP  *http.Client // nil: a client with a timeout of one minute
}

// A Client fetches from one log. It is safe for concurrent use.
type Client struct {
	config Config
	base   string
}

// New makes a Client. It returns an error if the URL is not allowed.
func New(c Config) (*Client, error) {
	base, err := url.Parse(c.URL)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	switch ip := net.ParseIP(base.Hostname()); {
	case base.Host == "" || base.Scheme != "https" && base.Scheme != "http" || base.RawQuery != "" || base.Fragment != "":
		return nil, fmt.Errorf("log: %q: want https://, a host and perhaps a path", c.URL)
	case c.Token != "" && base.Scheme != "https" && base.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()):
		return nil, fmt.Errorf("log: %q: the connection would not protect the token: want https", c.URL)
	}
	if c.HTTP == nil {
		c.HTTP = &http.Client{Timeout: timeout}
	}
	if c.Token != "" {
		// A redirect could send the token to another port, or without TLS, on the same host.
		straight := *c.HTTP
		straight.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		c.HTTP = &straight
	}
	return &Client{config: c, base: strings.TrimRight(c.URL, "/") + "/"}, nil
}

// URL returns the log's URL, with a slash at the end.
func (c *Client) URL() string { return c.base }

// Checkpoint fetches the checkpoint. The caller must check its signatures. Its errors are ErrUnavailable, ErrRefused
// and *InconsistentError.
func (c *Client) Checkpoint(ctx context.Context) (string, error) {
	doc, err := c.fetch(ctx, "checkpoint", maxCheckpoint)
	return string(doc), err
}

// wide fetches a tile or bundle, of at most most bytes for each of its hashes or entries, and returns its width. If the log no longer serves a
// partial one, wide fetches the whole one, which begins with it.
func (c *Client) wide(ctx context.Context, t tlog.Tile, most int64) (data []byte, width int, err error) {
	data, err = c.fetch(ctx, Path(t), int64(t.W)*most)
	if status, is := errors.AsType[*statusError](err); is && t.W < Width && (status.status == http.StatusNotFound || status.status == http.StatusGone) {
		t.W = Width
		data, err = c.fetch(ctx, Path(t), Width*most)
	}
	return data, t.W, err
}

func (c *Client) tile(ctx context.Context, t tlog.Tile) ([]byte, error) {
	data, width, err := c.wide(ctx, t, tlog.HashSize)
	if err != nil {
		return nil, err
	}
	if want := width * tlog.HashSize; len(data) != want {
		return nil, &InconsistentError{Path(t), data, fmt.Sprintf("it has %d bytes: want %d", len(data), want)}
	}
	return data[:t.W*tlog.HashSize], nil
}

// bundle fetches a bundle of entries.
func (c *Client) bundle(ctx context.Context, t tlog.Tile) ([][]byte, error) {
	data, width, err := c.wide(ctx, t, MaxEntry+2)
	if err != nil {
		return nil, err
	}
	entries, err := ParseEntries(data, width)
	if err != nil {
		return nil, &InconsistentError{Path(t), data, err.Error()}
	}
	return entries[:t.W], nil
}

// A statusError is an answer other than 200.
type statusError struct {
	path   string
	status int
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s: status %d %s", e.path, e.status, http.StatusText(e.status))
}

func (e *statusError) Is(target error) bool {
	if e.status == http.StatusUnauthorized || e.status == http.StatusForbidden {
		return target == ErrRefused
	}
	return target == ErrUnavailable
}

// fetch repeats a request until there is an answer, or no answer can be expected.
func (c *Client) fetch(ctx context.Context, path string, most int64) ([]byte, error) {
	for n := 1; ; n++ {
		doc, wait, err := c.once(ctx, path, most)
		if err == nil || wait < 0 || n == attempts {
			return doc, err
		}
		if wait == 0 {
			wait = time.Duration(n) * 250 * time.Millisecond
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(wait, maxWait)):
		}
	}
}

// once makes a request once. wait is how long to wait before another attempt. 0: the server does not say; negative:
// no other attempt.
func (c *Client) once(ctx context.Context, path string, most int64) (doc []byte, wait time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, -1, err
	}
	if c.config.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.config.Token)
	}
	answer, err := c.config.HTTP.Do(request)
	if ctx.Err() != nil {
		return nil, -1, ctx.Err()
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, worthAsking(answer), &statusError{path, answer.StatusCode}
	}
	doc, err = io.ReadAll(io.LimitReader(answer.Body, most+1))
	if err != nil {
		return nil, 0, fmt.Errorf("%w: reading %s: %w", ErrUnavailable, path, err)
	}
	if int64(len(doc)) > most {
		return nil, -1, &InconsistentError{path, doc, fmt.Sprintf("it is longer than %d bytes", most)}
	}
	return doc, 0, nil
}

// worthAsking returns how long to wait until another attempt can have another answer, as wait of once.
func worthAsking(answer *http.Response) time.Duration {
	if answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode < http.StatusInternalServerError {
		return -1
	}
	seconds, err := strconv.Atoi(answer.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

const (
	height = 8
	// Width is how many hashes, or entries, a whole tile has.
	Width = 1 << height
	// EntriesLevel is the level of a Tile of entries instead of hashes.
	EntriesLevel = -1

	maxLevel = 63
	maxIndex = operator.MaxEntries / Width // index of the tile with the last possible entry
)

// ofTlog begins the paths of package tlog, which name the height.
const ofTlog = "tile/8/"

// Path returns the path of a tile below a log's URL: C2SP tlog-tiles writes tile/LEVEL/INDEX and tile/entries/INDEX,
// the index in groups of three digits, and .p/WIDTH after it for a partial tile.
func Path(t tlog.Tile) string {
	t.H = height
	level, rest, _ := strings.Cut(strings.TrimPrefix(t.Path(), ofTlog), "/")
	if t.L == EntriesLevel {
		level = "entries"
	}
	return "tile/" + level + "/" + rest
}

// Parse reads what Path writes after "tile/": the level, or "entries", and the rest. Each tile has exactly one path;
// Parse returns an error for any other spelling.
func Parse(level, rest string) (tlog.Tile, error) {
	known := map[string]string{"entries": "data", "data": "unknown"}[level]
	t, err := tlog.ParseTilePath(ofTlog + cmp.Or(known, level) + "/" + rest)
	if err != nil || strings.Contains(level, "/") || t.L > maxLevel || t.N > maxIndex {
		return t, fmt.Errorf("tile/%s/%s: want entries or a level from 0 to %d, an index such as x001/234, and .p/WIDTH with 1 to %d after that of a partial tile", level, rest, maxLevel, Width-1)
	}
	return t, nil
}

// In reports whether a tree of this size contains the whole tile.
func In(t tlog.Tile, size int64) bool {
	if shift := height * max(0, t.L); shift < 64 {
		return t.N <= maxIndex && t.N*Width+int64(t.W) <= size>>shift
	}
	return false
}

// Of returns the tile with an index at a level, as wide as a tree of this size has it. Its width is 0 if the tree
// does not have it.
func Of(level int, index, size int64) tlog.Tile {
	t := tlog.Tile{H: height, L: level, N: index}
	if shift := height * max(0, level); shift < 64 && index <= maxIndex {
		t.W = int(max(0, min(Width, size>>shift-index*Width)))
	}
	return t
}

// MaxEntry is the largest entry that a bundle can hold.
const MaxEntry = math.MaxUint16

// FormatEntries encodes a bundle: each entry is preceded by its length in two bytes. It returns an error if an entry
// is longer than MaxEntry.
func FormatEntries(entries [][]byte) ([]byte, error) {
	var bundle []byte
	for i, entry := range entries {
		if len(entry) > MaxEntry {
			return nil, fmt.Errorf("entry %d of a bundle has %d bytes: %d is the most", i, len(entry), MaxEntry)
		}
		bundle = append(binary.BigEndian.AppendUint16(bundle, uint16(len(entry))), entry...)
	}
	return bundle, nil
}

// ParseEntries reads a bundle of exactly n entries. It returns an error for any other bytes.
func ParseEntries(bundle []byte, n int) ([][]byte, error) {
	var entries [][]byte
	for len(bundle) >= 2 {
		length := int(binary.BigEndian.Uint16(bundle))
		if bundle = bundle[2:]; len(bundle) < length {
			break
		}
		entries, bundle = append(entries, bundle[:length:length]), bundle[length:]
		if len(entries) > n {
			return nil, fmt.Errorf("a bundle of entries has more than %d", n)
		}
	}
	if len(bundle) > 0 {
		return nil, errors.New("a bundle of entries ends in the middle of one")
	}
	if len(entries) != n {
		return nil, fmt.Errorf("a bundle of entries has %d: want %d", len(entries), n)
	}
	return entries, nil
}

// ErrInconsistent says that the log serves data that its checkpoint does not cover.
var ErrInconsistent = errors.New("what the log serves is not what it signed")

// An InconsistentError holds data that a log served and that contradicts its checkpoint.
type InconsistentError struct {
	Path   string // of the tile or bundle
	Served []byte // the data; for a bundle, the wrong entry
	Reason string
}

func (e *InconsistentError) Error() string {
	return fmt.Sprintf("%v: %s: %s", ErrInconsistent, e.Path, e.Reason)
}

func (e *InconsistentError) Is(target error) bool { return target == ErrInconsistent }

// parallel is how many tiles are fetched at a time.
const parallel = 8

// A Tree is the tree of one checkpoint, read from tiles. Every hash that it returns is proved under the checkpoint's
// root. It ends with its context.
type Tree struct {
	ctx    context.Context
	client *Client
	head   operator.Checkpoint
	reader tlog.HashReader
	kept   map[tlog.Tile][]byte // proved tiles, without whole ones of level 0, of which there are many

	served  map[tlog.Tile][]byte // the tiles read last
	fetched error                // why that failed
}

// Tree makes the tree of a checkpoint whose signature the caller has checked.
func (c *Client) Tree(ctx context.Context, head operator.Checkpoint) *Tree {
	t := &Tree{ctx: ctx, client: c, head: head, kept: map[tlog.Tile][]byte{}}
	t.reader = tlog.TileHashReader(tlog.Tree{N: head.Size, Hash: head.Root}, (*tileReader)(t))
	return t
}

// possible refuses sizes that no log can have. The holder of the log's key can sign any size. From 2^62 on, the
// arithmetic of package tlog overflows and never ends, which would stop every monitor.
func (t *Tree) possible() error {
	if t.head.Size < 0 || t.head.Size > operator.MaxEntries {
		return &InconsistentError{Path: "checkpoint", Reason: fmt.Sprintf("it is over %d entries: no log can have more than %d", t.head.Size, int64(operator.MaxEntries))}
	}
	return nil
}

// Head returns the checkpoint.
func (t *Tree) Head() operator.Checkpoint { return t.head }

// ReadHashes implements tlog.HashReader. It returns an *InconsistentError if the log's data contradicts the
// checkpoint, and ErrUnavailable or ErrRefused if the log does not serve it.
func (t *Tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	if len(indexes) == 0 {
		return nil, nil
	}
	if err := t.possible(); err != nil {
		return nil, err
	}
	t.served, t.fetched = nil, nil
	hashes, err := t.reader.ReadHashes(indexes)
	if err == nil || t.fetched != nil {
		return hashes, err
	}
	return nil, t.blame(err)
}

// blame finds the first wrong tile. Tiles of higher levels come first; each must contain the hash of the tile below
// it.
func (t *Tree) blame(reason error) error {
	lowestLast := func(a, b tlog.Tile) int { return cmp.Or(b.L-a.L, cmp.Compare(a.N, b.N)) }
	batch := slices.SortedFunc(maps.Keys(t.served), lowestLast)
	for _, tile := range batch {
		above := Of(tile.L+1, tile.N/Width, t.head.Size)
		data, known := t.served[above]
		if !known {
			data, known = t.kept[above]
		}
		if tile.W < Width || !known {
			continue // on the right edge: all of these together give the root
		}
		at := tile.N % Width * tlog.HashSize
		if rootOf(t.served[tile]) != tlog.Hash(data[at:at+tlog.HashSize]) {
			return &InconsistentError{Path(tile), t.served[tile], fmt.Sprintf("it does not hash to what %s says of it", Path(above))}
		}
	}
	if len(batch) == 0 {
		return reason
	}
	edge := batch[len(batch)-1]
	return &InconsistentError{Path(edge), t.served[edge], fmt.Sprintf("the tiles on the right edge do not give the root of %d entries", t.head.Size)}
}

// rootOf hashes a whole tile.
func rootOf(tile []byte) tlog.Hash {
	var level []tlog.Hash
	for hash := range slices.Chunk(tile, tlog.HashSize) {
		level = append(level, tlog.Hash(hash))
	}
	for len(level) > 1 {
		for i := range len(level) / 2 {
			level[i] = tlog.NodeHash(level[2*i], level[2*i+1])
		}
		level = level[:len(level)/2]
	}
	return level[0]
}

// tileReader makes a Tree a tlog.TileReader.
type tileReader Tree

func (r *tileReader) Height() int { return height }

func (r *tileReader) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	data := make([][]byte, len(tiles))
	r.fetched = inParallel(r.ctx, len(tiles), func(ctx context.Context, i int) (err error) {
		if kept, there := r.kept[tiles[i]]; there {
			data[i] = kept
			return nil
		}
		data[i], err = r.client.tile(ctx, tiles[i])
		return err
	})
	if r.fetched != nil {
		return nil, r.fetched
	}
	r.served = make(map[tlog.Tile][]byte, len(tiles))
	for i, tile := range tiles {
		r.served[tile] = data[i]
	}
	return data, nil
}

// SaveTiles implements tlog.TileReader. tlog calls it with tiles that are proved under the root.
func (r *tileReader) SaveTiles(tiles []tlog.Tile, data [][]byte) {
	for i, tile := range tiles {
		if tile.L > 0 || tile.W < Width {
			r.kept[tile] = data[i]
		}
	}
}

// inParallel does n things, a few at a time, and returns the first error.
func inParallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(parallel)
	for i := range n {
		all.Go(func() error { return do(ctx, i) })
	}
	return all.Wait()
}

// Leaves returns the leaf hashes from index from up to, but not including, to. Its errors are those of ReadHashes.
func (t *Tree) Leaves(from, to int64) ([]tlog.Hash, error) {
	indexes := make([]int64, 0, max(0, to-from))
	for i := from; i < to; i++ {
		indexes = append(indexes, tlog.StoredHashIndex(0, i))
	}
	return t.ReadHashes(indexes)
}

// Entries calls take with the entries from index from up to, but not including, to, in order. Each is proved to hash
// to its leaf. It returns the first error of take, and those of ReadHashes.
func (t *Tree) Entries(from, to int64, take func(index int64, entry []byte) error) error {
	const step = parallel * Width
	for start := from; start < to; start = (start/step + 1) * step {
		end := min(to, (start/step+1)*step)
		leaves, err := t.Leaves(start, end)
		if err != nil {
			return err
		}
		entries, err := t.bundles(start/Width, (end-1)/Width)
		if err != nil {
			return err
		}
		for i, leaf := range leaves {
			index := start + int64(i)
			entry := entries[index-start/Width*Width]
			if tlog.RecordHash(entry) != leaf {
				return &InconsistentError{Path(Of(EntriesLevel, index/Width, t.head.Size)), entry, fmt.Sprintf("entry %d does not hash to its leaf %v", index, leaf)}
			}
			if err := take(index, entry); err != nil {
				return err
			}
		}
	}
	return nil
}

// bundles fetches the bundles from one index to another, and returns all their entries.
func (t *Tree) bundles(first, last int64) ([][]byte, error) {
	got := make([][][]byte, last-first+1)
	err := inParallel(t.ctx, len(got), func(ctx context.Context, i int) (err error) {
		got[i], err = t.client.bundle(ctx, Of(EntriesLevel, first+int64(i), t.head.Size))
		return err
	})
	return slices.Concat(got...), err
}

// ProveInclusion returns the audit path of the entry at an index. It returns an error if the checkpoint does not
// cover it, and those of ReadHashes.
func (t *Tree) ProveInclusion(index int64) ([]tlog.Hash, error) {
	if index < 0 || index >= t.head.Size {
		return nil, fmt.Errorf("entry %d is not among the %d that the checkpoint covers", index, t.head.Size)
	}
	if err := t.possible(); err != nil {
		return nil, err
	}
	return tlog.ProveRecord(t.head.Size, index, t)
}

// ProveConsistency returns the proof from the first size entries of the tree to all of it. Its Check compares it with
// a smaller checkpoint. It refuses a size that the checkpoint does not cover. Its other errors are those of
// ReadHashes.
func (t *Tree) ProveConsistency(size int64) (*operator.Consistency, error) {
	if size < 0 || size > t.head.Size {
		return nil, fmt.Errorf("the checkpoint covers %d entries, not the first %d", t.head.Size, size)
	}
	if err := t.possible(); err != nil {
		return nil, err
	}
	proof := &operator.Consistency{Origin: t.head.Origin, From: size, To: t.head.Size}
	if size == 0 || size == t.head.Size {
		return proof, nil
	}
	var err error
	proof.Proof, err = tlog.ProveTree(t.head.Size, size, t)
	return proof, err
}

// ProveFork is ProveConsistency without trust in any smaller root. If a smaller checkpoint under the same key is not
// of the beginning of this tree, the proof shows this to any reader. See operator.ErrFork. Its errors are those of
// ProveConsistency.
func (t *Tree) ProveFork(size int64) (*operator.Consistency, error) {
	proof, err := t.ProveConsistency(size)
	if err != nil || len(proof.Proof) == 0 || size&(size-1) != 0 {
		return proof, err
	}
	root, err := t.ReadHashes([]int64{tlog.StoredHashIndex(bits.TrailingZeros64(uint64(size)), 0)})
	proof.Proof = slices.Concat(root, proof.Proof)
	return proof, err
}
