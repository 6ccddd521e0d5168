package recording

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/internal/atomicfile"
)

// An intent is what the journal keeps of a call from before it is forwarded until its record is in the log: what is known then, and no
// text of the call.
type intent struct {
	RecordID string              `json:"record_id"`
	Agent    string              `json:"agent"`
	Chain    string              `json:"chain"` // where the record goes if nothing more becomes known
	Began    time.Time           `json:"began"`
	CallID   string              `json:"call"` // the files of the spool begin with it
	Method   string              `json:"method"`
	Origin   string              `json:"origin"`
	Path     string              `json:"path"`
	Protocol string              `json:"protocol"`
	Type     evidence.ActionType `json:"type,omitempty"` // "": ObservedCall
	Side     evidence.Side       `json:"side,omitempty"`
	Bytes    int64               `json:"bytes"`
	SHA256   evidence.Digest     `json:"sha256"` // of the request's body
	Vantage  evidence.Vantage    `json:"vantage"`
}

// A line of the journal begins a call or ends one.
type line struct {
	Begin *intent `json:"begin,omitempty"`
	End   string  `json:"end,omitempty"` // record_id
}

// rewriteAbove is the size in bytes at which the journal is written anew with the open intents alone.
const rewriteAbove = 4 << 20

// A journal remembers on disk which calls have begun and not ended. Callers of begin that come together share one fsync. One process has a
// journal; readJournal reads it after that process.
type journal struct {
	path string

	mu       sync.Mutex
	file     *os.File
	size     int64
	open     map[string]*intent // by record id
	pending  []byte             // lines that are not in the file
	unsynced bool               // lines of the next batch are in the file already
	next     *batch             // of the pending lines
	writing  bool
	broken   error // why nothing more is written

	after func(step string) // see Config
}

// A batch is lines that become durable together.
type batch struct {
	done  chan struct{}
	err   error
	began []string // record ids, whose calls are not forwarded if the batch fails
}

// openJournal begins an empty journal.
func openJournal(path string, after func(step string)) (*journal, error) {
	j := &journal{path: path, after: after, open: map[string]*intent{}, next: &batch{done: make(chan struct{})}}
	if err := j.rewrite(); err != nil {
		return nil, err
	}
	return j, nil
}

// begin adds an intent. After an error the call must not be forwarded. If the intent is to be durable, begin returns when it is; otherwise when it is written: then it outlives this process, and is
// synced soon.
func (j *journal) begin(ctx context.Context, i *intent, durable bool) error {
	b, err := j.add(line{Begin: i}, !durable)
	if err != nil {
		return err
	}
	if !durable {
		j.after("written at once")
		return nil
	}
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		j.end(i.RecordID)
		return ctx.Err()
	}
}

// end forgets an intent, whose record is in the log. It waits for no disk: if the line is lost, the log still has the record.
func (j *journal) end(recordID string) {
	_, _ = j.add(line{End: recordID}, false) // what is not forgotten is looked up in the log later
}

// add queues a line and sees to it that somebody writes, or writes it now.
func (j *journal) add(l line, now bool) (*batch, error) {
	text, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return nil, j.broken
	}
	b := j.next
	if l.Begin != nil {
		j.open[l.Begin.RecordID] = l.Begin
		b.began = append(b.began, l.Begin.RecordID)
	}
	delete(j.open, l.End)
	j.pending = append(append(j.pending, text...), '\n')
	if now {
		err = j.writeNow()
	}
	switch {
	case j.writing: // whoever writes sees to it
	case err != nil:
		j.fail()
	default:
		j.writing = true
		go j.write()
	}
	return b, err
}

// writeNow writes what is pending without a sync. The caller has the lock.
func (j *journal) writeNow() error {
	text := j.pending
	j.pending, j.unsynced = nil, true
	_, err := j.file.Write(text) // whole lines, also while append writes others
	j.size += int64(len(text))
	if err != nil {
		j.broken = fmt.Errorf("the journal %s cannot be written: %w", j.path, err)
	}
	return j.broken
}

// write writes batches until nothing is pending.
func (j *journal) write() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for (len(j.pending) > 0 || j.unsynced) && j.broken == nil {
		text, b := j.pending, j.next
		j.pending, j.unsynced, j.next = nil, false, &batch{done: make(chan struct{})}
		if j.size > rewriteAbove {
			b.err = j.rewrite() // with what is open now, so with all of the batch
		} else {
			b.err = j.append(text, len(b.began) > 0)
		}
		if b.err != nil { // an error of writeNow meanwhile stays
			j.broken = b.err
		}
		j.settle(b)
	}
	if j.broken != nil { // those who came while the last batch failed
		j.fail()
	}
	j.writing = false
}

// fail tells all that wait that the journal is broken.
func (j *journal) fail() {
	b := j.next
	j.pending, j.unsynced, j.next, b.err = nil, false, &batch{done: make(chan struct{})}, j.broken
	j.settle(b)
}

// settle tells those who wait for a batch what became of it.
func (j *journal) settle(b *batch) {
	if b.err != nil {
		for _, id := range b.began {
			delete(j.open, id)
		}
	}
	close(b.done)
}

// append writes lines to the file and syncs it, without the lock. Lines that end calls alone need no sync: see end.
func (j *journal) append(text []byte, sync bool) error {
	file := j.file
	j.mu.Unlock()
	_, err := file.Write(text)
	j.after("written")
	if err == nil && sync {
		err = file.Sync()
	}
	j.after("synced")
	j.mu.Lock()
	j.size += int64(len(text))
	if err != nil {
		return fmt.Errorf("the journal %s cannot be written: %w", j.path, err)
	}
	return nil
}

// rewrite replaces the file by one that has the open intents alone.
func (j *journal) rewrite() error {
	var text []byte
	for _, i := range j.open {
		l, err := json.Marshal(line{Begin: i})
		if err != nil {
			return err
		}
		text = append(append(text, l...), '\n')
	}
	if err := atomicfile.Replace(j.path, text, 0o600); err != nil {
		return fmt.Errorf("writing the journal %s: %w", j.path, err)
	}
	j.after("rewritten")
	file, err := os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("opening the journal: %w", err)
	}
	if j.file != nil {
		_ = j.file.Close() // its lines are in the new file
	}
	j.file, j.size = file, int64(len(text))
	return nil
}

// repair opens a journal again whose disk failed. It returns the error if the disk still fails.
func (j *journal) repair() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken == nil {
		return nil
	}
	if j.writing {
		return j.broken
	}
	if err := j.rewrite(); err != nil {
		return err
	}
	j.broken = nil
	return nil
}

// close ends a journal. It returns how many intents have no end.
func (j *journal) close() (left int, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.broken = errors.New("the journal is closed")
	return len(j.open), j.file.Close()
}

// maxLine bounds a line of the journal: the fields of an intent are bounded too.
const maxLine = 64 << 10

// readJournal returns the intents in a journal that have no end. A line that is not whole was not durable, so its call was not forwarded; no
// other line may be damaged.
func readJournal(path string) ([]*intent, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	var order []string
	open := map[string]*intent{}
	for r, n := bufio.NewReaderSize(file, maxLine), 1; ; n++ {
		text, err := r.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("the journal %s: line %d: %w", path, n, err)
		}
		var l line
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&l); err != nil {
			return nil, fmt.Errorf("the journal %s: line %d: %w; move the file away to go on without knowing which calls had begun", path, n, err)
		}
		if l.Begin != nil {
			order, open[l.Begin.RecordID] = append(order, l.Begin.RecordID), l.Begin
		}
		delete(open, l.End)
	}
	var left []*intent
	for _, id := range order {
		if i := open[id]; i != nil {
			left = append(left, i)
			delete(open, id)
		}
	}
	return left, nil
}
