package verify

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/plural"
)

// wholeLog reads all entries that a checkpoint covers. They must have its root and the root of the file's checkpoint,
// and hold no more records of the file's chains than the file does. Entries with another root prove nothing about the
// log. wholeLog reports whether it found nothing wrong.
func (c *check) wholeLog(known operator.Checkpoint) bool {
	tree, count := new(operator.Frontier), c.newCensus()
	fileRoot := tree.Root() // at the size of the file's checkpoint
	err := operator.ReadEntries(entriesOf(c.options.Entries), func(index int64, line []byte, entry *evidence.Entry) error {
		if index == known.Size {
			return fmt.Errorf("%w: there are more than the %d that the checkpoint covers", operator.ErrEntries, known.Size)
		}
		tree.Add(tlog.RecordHash(line))
		if tree.Size() == c.log.Size {
			fileRoot = tree.Root()
		}
		count.take(index, entry)
		return nil
	})
	switch {
	case err == nil && tree.Size() < known.Size:
		err = fmt.Errorf("%w: there are %d, and the checkpoint covers %d", operator.ErrEntries, tree.Size(), known.Size)
	case err == nil && tree.Root() != known.Root:
		err = fmt.Errorf("%w: their root is not that of the checkpoint of %d", operator.ErrEntries, known.Size)
	}
	switch {
	case errors.Is(err, operator.ErrEntries):
		c.doubt(c.ofLog(), "entries", nil, "%v; they may have been changed on the way, so this says nothing against the log: get them again ('jurat log entries')", err)
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

// A census counts the log's records of the file's chains and cases.
type census struct {
	cut    int64 // the size of the file's checkpoint
	chains map[evidence.Digest]*chainCensus
	cases  map[evidence.Digest]*caseCensus
	order  []*chainCensus // in the order of the file
}

type chainCensus struct {
	id      string
	here    map[evidence.Digest]bool // payloads of the chain's records in the file
	entries int64                    // number of the chain's entries in the log
	missing []string                 // chain_seq of the first entries that the file lacks
	lacks   int64                    // how many entries the file lacks
	later   int64                    // how many of them the log added after the file's checkpoint
	wrong   string                   // where the log's count is wrong
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

// judgeCensus adds the findings of a census. It reports whether nothing is missing or falsely counted.
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
		// Entries that the log added between the reader's checkpoint and the file's were not brought. Records outside
		// chains have no count that could show a gap.
	default:
		c.whole = join("; ", fmt.Sprintf("the file has every record that %s of its %s", theseEntries(known.Size)+plural.Or(known.Size, " has", " have"), plural.Of(len(n.order), "chain")), submissions)
	}
	return whole
}

// judgeChain compares the file's records of one chain with the log's.
func (c *check) judgeChain(n *chainCensus) bool {
	if n.wrong != "" {
		c.refute(Completeness, "count", nil, "the log counts %s: it counts the records of chain %q falsely", n.wrong, n.id)
		return false
	}
	if n.lacks > 0 {
		age := ""
		if n.later == n.lacks {
			age = fmt.Sprintf("; the log added them after the file's checkpoint of %d, so the file is older or was cut", c.log.Size)
		}
		c.refute(Completeness, "cut", nil, "the log has %d records of chain %q, the file has %d of them; missing chain_seq %s%s",
			n.entries, n.id, n.entries-n.lacks, strings.Join(n.missing, ", "), age)
		return false
	}
	return true
}

func theseEntries(n int64) string {
	return plural.Or(n, "this ", "these ") + plural.Of(n, "entry")
}
