package verify

import (
	"errors"
	"fmt"
	"io"
	"math"

	"golang.org/x/mod/sumdb/note"

	"jurat/evidence/operator"
	"jurat/internal/plural"
)

// LogState is which log a file was cut from, and how long the log was then, as its verified checkpoint says.
type LogState struct {
	Origin string `json:"origin"`
	Size   int64  `json:"size"`
}

// knowsLog reports whether the reader brought something about a log.
func (o *Options) knowsLog() bool { return o.Checkpoint != "" || o.Entries != nil }

// knownLog holds the log that the file was cut from against the log that the reader knows from elsewhere. The sender
// chose the file and its checkpoint; the reader chose the other.
func (c *check) knownLog() {
	if !c.options.knowsLog() {
		return
	}
	if c.log == nil {
		c.doubt(c.ofLog(), "checkpoint", nil, "the file has no checkpoint that shows which log it was cut from")
		return
	}
	known := *c.log // with entries alone, they are held against the file's own checkpoint
	if c.options.Checkpoint != "" {
		var err error
		if known, err = c.openCheckpoint(c.options.Checkpoint); err != nil {
			c.doubt(c.ofLog(), "checkpoint", nil, "of the checkpoint that the reader brought: %v", err)
			return
		}
		if known.Origin != c.log.Origin {
			c.doubt(c.ofLog(), "checkpoint", nil, "the reader's checkpoint is of the log %s, and the file of the log %s", known.Origin, c.log.Origin)
			return
		}
	}
	if c.oneLog(known) && (c.options.Entries == nil || c.wholeLog(known)) {
		c.known = &known
	}
}

// ofLog is the guarantee that rests on what the reader knows of the log. A record alone is part of no whole.
func (c *check) ofLog() Guarantee {
	if c.kind == OneRecord {
		return Order
	}
	return Completeness
}

// fork refutes: one key has signed two histories.
func (c *check) fork(format string, args ...any) {
	c.refute(Order, "fork", nil, format, args...)
	if g := c.ofLog(); g != Order {
		c.refute(g, "fork", nil, format, args...)
	}
}

// oneLog asks whether the shorter of the two logs is the beginning of the longer one, and reports whether this may be
// gone on from.
func (c *check) oneLog(known operator.Checkpoint) bool {
	small, large := known, *c.log
	if small.Size > large.Size {
		small, large = large, small
	}
	switch {
	case small.Size == 0 && small.Root != operator.EmptyRoot():
		c.fork("the log %s has signed a checkpoint of 0 entries that is not that of an empty log", known.Origin)
		return false
	case small.Size == large.Size && small.Root != large.Root:
		c.fork("the log %s has signed two checkpoints of %d entries with different roots: it shows different readers different histories", known.Origin, known.Size)
		return false
	case small.Size == large.Size, small.Size == 0:
		return true
	}
	err := errNoProof
	if proof := c.options.Consistency; proof != nil {
		err = proof.Check(small, large)
	}
	switch {
	case err == nil:
		return true
	case errors.Is(err, operator.ErrFork):
		c.fork("the key of the log %s has signed two histories: %v", known.Origin, err)
		return false
	case c.options.Entries != nil && known.Size >= c.log.Size:
		return true // the entries will show it
	}
	c.doubt(c.ofLog(), "consistency", nil, "the reader's checkpoint covers %s and the file's %d, and nothing shows that they are of one history: %v; that says nothing against the log: get the proof from %d to %d entries ('jurat log consistency'), or bring the log's entries",
		plural.Of(known.Size, "entry"), c.log.Size, err, small.Size, large.Size)
	return false
}

var errNoProof = errors.New("there is no consistency proof")

// noteLog says, once everything was asked, how far the reader's knowledge of the log reaches. Completeness of a bundle is
// proved by entries alone: a checkpoint shows that nothing of the log is gone, and not what of it belongs to a chain.
func (c *check) noteLog() {
	switch {
	case c.known == nil:
	case c.kind == ManyRecords && c.whole == "":
		c.doubt(Completeness, "tail", nil, "%s; whether its chains go on after their last record here, only the log's entries up to such a checkpoint show", c.logsCompared())
	case c.kind == OneRecord:
		c.notes[Order] += "; " + c.logsCompared()
	default:
		c.notes[Completeness] = join("; ", c.notes[Completeness], c.whole, c.logsCompared())
	}
}

// logsCompared says how the file's log stands to the reader's.
func (c *check) logsCompared() string {
	switch file, known := c.log.Size, c.known.Size; {
	case c.options.Checkpoint == "":
		return fmt.Sprintf("the entries are those of the file's own checkpoint of %d", file)
	case file < known:
		return fmt.Sprintf("the log has lost nothing, and the file was cut at %d of the %s that the reader's checkpoint covers", file, plural.Of(known, "entry"))
	case file > known:
		return fmt.Sprintf("the log has lost nothing of the %s that the reader's checkpoint covers, and had %d when the file was cut", plural.Of(known, "entry"), file)
	}
	return "the file was cut at the reader's own checkpoint of " + plural.Of(c.log.Size, "entry")
}

func join(between string, parts ...string) string {
	joined := ""
	for _, part := range parts {
		if joined != "" && part != "" {
			joined += between
		}
		joined += part
	}
	return joined
}

// entriesOf reads from the beginning, also if the file was read before.
func entriesOf(r io.ReaderAt) io.Reader { return io.NewSectionReader(r, 0, math.MaxInt64) }

// Checkpoint checks a checkpoint by itself: whether a log that the reader trusts signed it, and, with Options.Checkpoint or
// Options.Entries, whether that log is the one that the reader knows, and has lost nothing of it.
func Checkpoint(signed string, o Options) *Report {
	c := newCheck(o, OneCheckpoint)
	c.begin(signed, nil)
	c.findings = append(c.findings, c.placed...)
	if c.log != nil {
		c.notes[Order] = fmt.Sprintf("the log %s has signed that it had %s", c.log.Origin, plural.Of(c.log.Size, "entry")) + c.witnesses
	}
	c.knownLog()
	c.noteLog()
	return c.report()
}

// maxCheckpoint bounds what is looked at as a checkpoint: three lines, and room for the signatures of many witnesses.
const maxCheckpoint = 1 << 20

// isCheckpoint recognises the text of a checkpoint with signatures after it, valid or not.
func isCheckpoint(file []byte) bool {
	if len(file) > maxCheckpoint {
		return false
	}
	n, err := note.Open(file, nil)
	var unverified *note.UnverifiedNoteError
	if errors.As(err, &unverified) {
		n = unverified.Note
	}
	if n == nil {
		return false
	}
	_, err = operator.ParseCheckpoint(n.Text)
	return err == nil
}
