package verify

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/plural"
)

// errEntries says that something is wrong with the entries, and not with reading them.
var errEntries = errors.New("these are not the entries that the log signed")

// spelling is how many bytes a line can have beside its entry: a byte order mark, a carriage return, a line feed.
const spelling = 5

// readEntries goes through the entries of a log, one canonical JSON object and a line feed each. It keeps one of them. A byte order mark before
// the first and carriage returns before line feeds, which programs add on the way, are no part of an entry: none can have them there.
func readEntries(from io.Reader, take func(index int64, line []byte, entry *evidence.Entry) error) error {
	lines := bufio.NewReaderSize(from, evidence.MaxEntry+spelling)
	for index := int64(0); ; index++ {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		case errors.Is(err, io.EOF) && len(line) <= evidence.MaxEntry:
			return fmt.Errorf("%w: entry %d does not end with a line feed", errEntries, index)
		case errors.Is(err, io.EOF), errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("%w: entry %d is longer than %d bytes", errEntries, index, evidence.MaxEntry)
		case err != nil:
			return fmt.Errorf("reading the log's entries: %w", err)
		}
		if index == 0 {
			if err := evidence.CheckEncoding(line); err != nil {
				return fmt.Errorf("%w: %w", errEntries, err)
			}
			line = evidence.CutMark(line)
		}
		line = bytes.TrimSuffix(line[:len(line)-1], []byte("\r"))
		if len(line) > evidence.MaxEntry {
			return fmt.Errorf("%w: entry %d is longer than %d bytes", errEntries, index, evidence.MaxEntry)
		}
		entry, err := evidence.ParseEntry(line)
		if err != nil {
			return fmt.Errorf("%w: entry %d: %w", errEntries, index, err)
		}
		if err := take(index, line, entry); err != nil {
			return err
		}
	}
}

// A frontier is the right edge of a tree that grows by leaves: one hash for each bit of its size, the largest subtree
// first. It is all that must be kept to compute the root (RFC 9162, section 2.1.1).
type frontier struct {
	size  int64
	nodes []tlog.Hash
}

func (f *frontier) add(leaf tlog.Hash) {
	f.nodes = append(f.nodes, leaf)
	for full := f.size; full&1 == 1; full >>= 1 {
		last := len(f.nodes) - 1
		f.nodes[last-1] = tlog.NodeHash(f.nodes[last-1], f.nodes[last])
		f.nodes = f.nodes[:last]
	}
	f.size++
}

func (f *frontier) root() tlog.Hash {
	if f.size == 0 {
		return operator.EmptyRoot()
	}
	root := f.nodes[len(f.nodes)-1]
	for _, left := range slices.Backward(f.nodes[:len(f.nodes)-1]) {
		root = tlog.NodeHash(left, root)
	}
	return root
}

// wholeLog goes through all entries that a checkpoint covers: they must have its root and that of the file's checkpoint,
// and hold no more of the file's chains than the file does. Entries of another root are nobody's, and say nothing of the log. It reports
// whether nothing was found.
func (c *check) wholeLog(known operator.Checkpoint) bool {
	tree, count := new(frontier), c.newCensus()
	fileRoot := tree.root() // at the size of the file's checkpoint
	err := readEntries(entriesOf(c.options.Entries), func(index int64, line []byte, entry *evidence.Entry) error {
		if index == known.Size {
			return fmt.Errorf("%w: there are more than the %d of the checkpoint", errEntries, known.Size)
		}
		tree.add(tlog.RecordHash(line))
		if tree.size == c.log.Size {
			fileRoot = tree.root()
		}
		count.take(index, entry)
		return nil
	})
	switch {
	case err == nil && tree.size < known.Size:
		err = fmt.Errorf("%w: there are %d, and the checkpoint covers %d", errEntries, tree.size, known.Size)
	case err == nil && tree.root() != known.Root:
		err = fmt.Errorf("%w: they have another root than the checkpoint of %d", errEntries, known.Size)
	}
	switch {
	case errors.Is(err, errEntries):
		c.doubt(c.ofLog(), "entries", nil, "%v; whoever handed them over may have changed them, so nothing is said against the log: get them anew ('jurat log entries')", err)
	case err != nil:
		c.doubt(c.ofLog(), "entries", nil, "%v", err)
	case known.Size >= c.log.Size && fileRoot != c.log.Root:
		c.fork("the first %d entries of the reader's log have another root than the file's checkpoint of %d", c.log.Size, c.log.Size)
	case c.kind == OneRecord:
		return true
	default:
		return c.judgeCensus(count, known)
	}
	return false
}

// A census counts what the log has of the chains and cases of a file.
type census struct {
	cut    int64 // the size of the file's checkpoint
	chains map[evidence.Digest]*chainCensus
	cases  map[evidence.Digest]*caseCensus
	order  []*chainCensus // in the order of the file
}

type chainCensus struct {
	id      string
	here    map[evidence.Digest]bool // payloads of the file's records of the chain
	entries int64                    // of the chain, in the log
	missing []string                 // chain_seq of entries that the file has not, the first ones
	lacks   int64                    // how many those are in all
	later   int64                    // and how many of them came after the file's checkpoint
	wrong   string                   // how the log counted falsely
}

type caseCensus struct {
	submissions int64
	wrong       string
}

// maxMissing bounds how many missing records a report lists.
const maxMissing = 10

func (c *check) newCensus() *census {
	n := &census{cut: c.log.Size, chains: map[evidence.Digest]*chainCensus{}, cases: map[evidence.Digest]*caseCensus{}}
	for _, r := range c.all {
		if p := &r.Payload; p.ActionType == evidence.Submission {
			n.cases[evidence.CaseTag(p.Case)] = new(caseCensus)
		}
		id := r.Payload.ChainID
		if id == "" {
			continue
		}
		tag := evidence.ChainTag(id)
		if n.chains[tag] == nil {
			n.chains[tag] = &chainCensus{id: id, here: map[evidence.Digest]bool{}}
			n.order = append(n.order, n.chains[tag])
		}
		n.chains[tag].here[r.Digest] = true
	}
	return n
}

func (n *census) take(index int64, e *evidence.Entry) {
	if chain := n.chains[e.Chain]; chain != nil {
		chain.take(e, index >= n.cut)
	}
	if of := n.cases[e.Case]; of != nil && e.CaseSeq > 0 {
		if of.submissions++; e.CaseSeq != of.submissions && of.wrong == "" {
			of.wrong = fmt.Sprintf("as submission %d the one that is number %d in it", e.CaseSeq, of.submissions)
		}
	}
}

func (n *chainCensus) take(e *evidence.Entry, later bool) {
	if n.entries++; e.ChainSeq != n.entries && n.wrong == "" {
		n.wrong = fmt.Sprintf("as record %d the one that is number %d in it", e.ChainSeq, n.entries)
	}
	if n.here[e.Payload] {
		return
	}
	if n.lacks++; len(n.missing) < maxMissing {
		n.missing = append(n.missing, fmt.Sprint(e.ChainSeq))
	} else if len(n.missing) == maxMissing {
		n.missing = append(n.missing, "…")
	}
	if later {
		n.later++
	}
}

// judgeCensus draws the conclusions, and reports whether nothing is missing or falsely counted.
func (c *check) judgeCensus(n *census, known operator.Checkpoint) bool {
	whole := true
	for _, chain := range n.order {
		whole = c.judgeChain(chain) && whole
	}
	submissions := ""
	for _, r := range c.all {
		if r.Payload.ActionType != evidence.Submission {
			continue
		}
		of := n.cases[evidence.CaseTag(r.Payload.Case)]
		if of.wrong != "" {
			c.refute(Completeness, "count", r, "the log counts %s: it counts the submissions of this case falsely", of.wrong)
			whole = false
		}
		submissions = fmt.Sprintf("in %s the same evidence was submitted %s", theseEntries(known.Size), plural.Of(of.submissions, "time"))
	}
	switch {
	case !whole:
	case c.kind == OneCheckpoint:
		c.whole = plural.Or(known.Size, "the 1 entry is there", fmt.Sprintf("all %d entries are there", known.Size))
	case known.Size < c.log.Size || len(n.order) == 0:
		// What the log took in between the reader's checkpoint and the file's is shown to nobody; and records of no chain
		// have no count that could show what is missing.
	default:
		c.whole = join("; ", fmt.Sprintf("the file has every record that %s of its %s", theseEntries(known.Size)+plural.Or(known.Size, " has", " have"), plural.Of(len(n.order), "chain")), submissions)
	}
	return whole
}

// judgeChain holds the file's records of one chain against the log's.
func (c *check) judgeChain(n *chainCensus) bool {
	if n.wrong != "" {
		c.refute(Completeness, "count", nil, "the log counts %s: it counts the records of chain %q falsely", n.wrong, n.id)
		return false
	}
	if n.lacks > 0 {
		age := ""
		if n.later == n.lacks {
			age = fmt.Sprintf("; the log took them in after the file's checkpoint of %d, so the file is older, or was cut", c.log.Size)
		}
		c.refute(Completeness, "cut", nil, "the log has %d records of chain %q, the file has %d of them; missing chain_seq %s%s",
			n.entries, n.id, n.entries-n.lacks, strings.Join(n.missing, ", "), age)
		return false
	}
	return true
}
