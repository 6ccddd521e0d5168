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
	tree, count := new(operator.Frontier), newCensus(c.all, c.log.Size)
	fileRoot := tree.Root() // at the size of the file's checkpoint
	err := operator.ReadEntries(entriesOf(c.options.Entries), func(index int64, line []byte, entry *evidence.Entry) error {
		if index == known.Size {
			return fmt.Errorf("%w: there are more than the %d that the checkpoint covers", operator.ErrEntries, known.Size)
		}
		tree.Add(tlog.RecordHash(line))
		if tree.Size() == c.log.Size {
			fileRoot = tree.Root()
		}
		count.Take(index, entry)
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
		c.doubt(c.ofLog(), "entries", nil, "%v; they may have been changed on the way, so this says nothing against the log: get them again ('jurat log checkpoint --entries')", err)
	case err != nil:
		c.doubt(c.ofLog(), "entries", nil, "%v", err)
	case known.Size >= c.log.Size && fileRoot != c.log.Root:
		c.fork("the first %d entries of the reader's log have another root than the file's checkpoint of %d", c.log.Size, c.log.Size)
	default:
		return count.Judge(c.all, c.refuting(c.ofLog())) && (c.kind == OneRecord || c.judgeCensus(count, known))
	}
	return false
}

// tags compares what the log counts of actors and subjects with the records of the file, unless their places are
// refuted.
func (c *check) tags() {
	if worst := c.worst(Order); c.log == nil || worst != nil && worst.Status == Refuted {
		return
	}
	followCounts(c.all, func(r *evidence.Record) evidence.Digest { return c.said[r].Names }, c.refuting(Order))
}

// refuting returns refute for one guarantee.
func (c *check) refuting(g Guarantee) refute {
	return func(rule string, r *evidence.Record, format string, args ...any) {
		c.refute(g, rule, r, format, args...)
	}
}

// judgeCensus adds the findings of a census. It reports whether nothing is missing or falsely counted.
func (c *check) judgeCensus(n *census, known operator.Checkpoint) bool {
	whole := true
	for _, chain := range n.Chains {
		whole = c.judgeChain(chain) && whole
	}
	submissions := ""
	for _, r := range c.all {
		if r.Payload.ActionType != evidence.Submission {
			continue
		}
		of := n.Cases[evidence.CaseTag(r.Payload.Case)]
		if of.Wrong != "" {
			c.refute(Completeness, "count", r, "the log counts %s: it counts the submissions of this case falsely", of.Wrong)
			whole = false
		}
		submissions = fmt.Sprintf("in %s the same evidence was submitted %s", theseEntries(known.Size), plural.Of(of.Entries, "time"))
	}
	switch {
	case !whole:
	case c.kind == OneCheckpoint:
		c.whole = plural.Or(known.Size, "the 1 entry is there", fmt.Sprintf("all %d entries are there", known.Size))
	case known.Size < c.log.Size || len(n.Chains) == 0:
		// Entries that the log added between the reader's checkpoint and the file's were not brought. Records outside
		// chains have no count that could show a gap.
	default:
		c.whole = join("; ", fmt.Sprintf("the file has every record that %s of its %s", theseEntries(known.Size)+plural.Or(known.Size, " has", " have"), plural.Of(len(n.Chains), "chain")), submissions, n.About(c.all))
	}
	return whole
}

// judgeChain compares the file's records of one chain with the log's.
func (c *check) judgeChain(n *chainCount) bool {
	if n.Wrong != "" {
		c.refute(Completeness, "count", nil, "the log counts %s: it counts the records of chain %q falsely", n.Wrong, n.ID)
		return false
	}
	if n.Lacks > 0 {
		age := ""
		if n.Later == n.Lacks {
			age = fmt.Sprintf("; the log added them after the file's checkpoint of %d, so the file is older or was cut", c.log.Size)
		}
		c.refute(Completeness, "cut", nil, "the log has %d records of chain %q, the file has %d of them; missing chain_seq %s%s",
			n.Entries, n.ID, n.Entries-n.Lacks, strings.Join(n.Missing, ", "), age)
		return false
	}
	return true
}

func theseEntries(n int64) string {
	return plural.Or(n, "this ", "these ") + plural.Of(n, "entry")
}
