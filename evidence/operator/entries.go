package operator

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
)

// ErrEntries says that the entries are wrong. Errors of reading them are other errors.
var ErrEntries = errors.New("these are not the entries that the log signed")

// spelling is how many bytes a line can have in addition to its entry: a byte order mark, a carriage return, a line
// feed.
const spelling = 5

// ReadEntries reads the entries of a log: one canonical JSON object and a line feed each. It holds one entry at a
// time. It ignores a byte order mark before the first entry and carriage returns before line feeds: other programs
// add them, and no entry contains them. It returns ErrEntries if a line is not an entry, the error of take, or the
// error of reading.
func ReadEntries(from io.Reader, take func(index int64, line []byte, entry *evidence.Entry) error) error {
	lines := bufio.NewReaderSize(from, evidence.MaxEntry+spelling)
	for index := int64(0); ; index++ {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		case errors.Is(err, io.EOF) && len(line) <= evidence.MaxEntry:
			return fmt.Errorf("%w: entry %d does not end with a line feed", ErrEntries, index)
		case errors.Is(err, io.EOF), errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("%w: entry %d is longer than %d bytes", ErrEntries, index, evidence.MaxEntry)
		case err != nil:
			return fmt.Errorf("reading the log's entries: %w", err)
		}
		if index == 0 {
			if err := evidence.CheckEncoding(line); err != nil {
				return fmt.Errorf("%w: %w", ErrEntries, err)
			}
			line = evidence.CutMark(line)
		}
		line = bytes.TrimSuffix(line[:len(line)-1], []byte("\r"))
		entry, err := evidence.ParseEntry(line)
		if err != nil {
			return fmt.Errorf("%w: entry %d: %w", ErrEntries, index, err)
		}
		if err := take(index, line, entry); err != nil {
			return err
		}
	}
}

// A Frontier is the right edge of a tree that grows by leaves: one hash for each bit of its size, the largest subtree
// first. The root can be computed from it alone (RFC 9162, section 2.1.1). The zero Frontier is that of an empty log.
type Frontier struct {
	size  int64
	nodes []tlog.Hash
}

// Add adds the hash of the next leaf.
func (f *Frontier) Add(leaf tlog.Hash) {
	f.nodes = append(f.nodes, leaf)
	for full := f.size; full&1 == 1; full >>= 1 {
		last := len(f.nodes) - 1
		f.nodes[last-1] = tlog.NodeHash(f.nodes[last-1], f.nodes[last])
		f.nodes = f.nodes[:last]
	}
	f.size++
}

// Size returns how many leaves it has.
func (f *Frontier) Size() int64 { return f.size }

// Root returns the root of the tree over all leaves so far.
func (f *Frontier) Root() tlog.Hash {
	if f.size == 0 {
		return EmptyRoot()
	}
	root := f.nodes[len(f.nodes)-1]
	for _, left := range slices.Backward(f.nodes[:len(f.nodes)-1]) {
		root = tlog.NodeHash(left, root)
	}
	return root
}
