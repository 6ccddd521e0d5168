package verify

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/plural"
)

// LogState says which log a file was cut from, and how long the log was then. It comes from the file's verified
// checkpoint.
type LogState struct {
	Origin string `json:"origin"`
	Size   int64  `json:"size"`
}

// knowsLog reports whether the reader brought a checkpoint or entries of a log.
func (o *Options) knowsLog() bool { return o.Checkpoint != "" || o.Entries != nil }

// knownLog compares the log that the file was cut from with the log that the reader knows from elsewhere. The sender
// chose the file and its checkpoint. The reader chose the other log.
func (c *check) knownLog() {
	if !c.options.knowsLog() {
		return
	}
	if c.log == nil {
		c.doubt(c.ofLog(), "checkpoint", nil, "the file has no valid checkpoint that shows which log it was cut from")
		return
	}
	known := *c.log // entries alone are compared with the file's own checkpoint
	if c.options.Checkpoint != "" {
		var err error
		if known, err = c.openCheckpoint(c.options.Checkpoint); err != nil {
			c.doubt(c.ofLog(), "checkpoint", nil, "the reader's checkpoint: %v", err)
			return
		}
		if known.Origin != c.log.Origin {
			c.doubt(c.ofLog(), "checkpoint", nil, "the reader's checkpoint is of the log %s, and the file is of the log %s", known.Origin, c.log.Origin)
			return
		}
	}
	if c.oneLog(known) && (c.options.Entries == nil || c.wholeLog(known)) {
		c.known = &known
	}
}

// ofLog returns the guarantee that rests on what the reader knows of the log. A single record has no Completeness.
func (c *check) ofLog() Guarantee {
	if c.kind == OneRecord {
		return Order
	}
	return Completeness
}

// fork refutes the guarantee: one key has signed two histories.
func (c *check) fork(format string, args ...any) {
	c.refute(Order, "fork", nil, format, args...)
	if g := c.ofLog(); g != Order {
		c.refute(g, "fork", nil, format, args...)
	}
}

// oneLog checks whether the shorter of the two logs is the beginning of the longer one. It reports whether later
// checks can rely on it.
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
		return true // wholeLog compares the entries
	}
	c.doubt(c.ofLog(), "consistency", nil, "the reader's checkpoint covers %s and the file's %d, and nothing shows that they are of one history: %v; this says nothing against the log: get the proof from %d to %d entries ('jurat log checkpoint --since'), or bring the log's entries",
		plural.Of(known.Size, "entry"), c.log.Size, err, small.Size, large.Size)
	return false
}

var errNoProof = errors.New("there is no consistency proof")

// noteLog reports how far the reader's knowledge of the log reaches. Only entries prove completeness of a bundle: a
// checkpoint shows that the log has lost nothing, but not which of its entries belong to a chain.
func (c *check) noteLog() {
	switch {
	case c.known == nil:
	case c.kind == ManyRecords && c.whole == "":
		c.doubt(Completeness, "tail", nil, "%s; only the log's entries up to such a checkpoint show whether its chains continue after their last record here", c.logsCompared())
	case c.kind == OneRecord:
		c.notes[Order] += "; " + c.logsCompared()
	default:
		c.notes[Completeness] = joined(c.notes[Completeness], c.whole, c.logsCompared())
	}
}

// logsCompared describes how the file's log relates to the reader's.
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

// joined puts semicolons between those parts that say something.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "; ")
}

// Checkpoint checks a checkpoint by itself: whether a log that the reader trusts signed it. With Options.Checkpoint
// or Options.Entries it also checks whether that log is the one that the reader knows, and has lost nothing of it.
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

// maxCheckpoint bounds the size of a checkpoint: three lines, and room for the signatures of many witnesses.
const maxCheckpoint = 1 << 20

// checkpointIn returns a file as a signed note, and whether that is the text of a checkpoint followed by signatures, valid or not.
func checkpointIn(file []byte) (signed string, is bool) {
	if len(file) > maxCheckpoint {
		return "", false
	}
	signed = evidence.MendNote(string(file))
	n, err := note.Open([]byte(signed), nil)
	var unverified *note.UnverifiedNoteError
	if errors.As(err, &unverified) {
		n = unverified.Note
	}
	if n == nil {
		return "", false
	}
	_, err = operator.ParseCheckpoint(n.Text)
	return signed, err == nil
}
