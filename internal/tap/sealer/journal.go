package sealer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/internal/kit/atomicfile"
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

// rewriteAbove is the size in bytes from which the journal is written anew with the open intents alone.
const rewriteAbove = 4 << 20

// A journal remembers on disk which calls have begun and not ended. Callers of begin that come together share one fsync. One process has a
// journal; readJournal reads it after that process.
type journal struct {
	path   string
	folder fs.FileInfo // in which it is

	mu        sync.Mutex
	file      *os.File // holds whole lines alone
	is        fs.FileInfo
	size      int64 // of the file
	rewriteAt int64 // the size at which the file is written anew
	open      map[string]*intent
	pending   []byte // lines that are not in the file
	unsynced  bool   // lines of the next batch are in the file already
	next      *batch // of the lines that are not durable
	writing   bool
	writer    sync.WaitGroup
	copying   bool   // the file is being written anew
	meanwhile []byte // lines that came into the file while it was being written anew
	broken    error  // why nothing more is written

	after func(step string) // see Config
}

// A batch is lines that become durable together.
type batch struct {
	done  chan struct{}
	err   error
	began []string // record ids, whose calls are not forwarded if the batch fails
}

func openJournal(path string, after func(step string)) (*journal, error) {
	j := &journal{path: path, after: after, open: map[string]*intent{}, next: &batch{done: make(chan struct{})}}
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	j.folder = folder
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.rewrite(); err != nil {
		return nil, err
	}
	return j, nil
}

// begin adds an intent. After an error the call must not be forwarded. If the intent is to be durable, begin returns when it is; otherwise when it is
// written: then it outlives this process, and is synced soon.
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
	delete(j.open, l.End)
	if j.broken == nil && l.Begin != nil {
		j.broken = j.inPlace(j.path, j.is) // write tells those who wait
	}
	if j.broken != nil {
		return nil, j.broken
	}
	j.pending = append(append(j.pending, text...), '\n')
	if now {
		if j.broken = j.writePending(); j.broken != nil {
			if !j.writing { // otherwise write tells those who wait
				j.fail()
			}
			return nil, j.broken
		}
		j.unsynced = true
	}
	b := j.next
	if l.Begin != nil {
		j.open[l.Begin.RecordID] = l.Begin
		if !now {
			b.began = append(b.began, l.Begin.RecordID)
		}
	}
	if !j.writing {
		j.writing = true
		j.writer.Go(j.write)
	}
	return b, nil
}

// inPlace returns an error if a file or folder is not the one that this process opened: the next process would not find what is written there.
func (j *journal) inPlace(path string, is fs.FileInfo) error {
	now, err := os.Stat(path)
	if err == nil && !os.SameFile(now, is) {
		err = errors.New("another one is in its place")
	}
	if err != nil {
		return fmt.Errorf("the journal of the recorder, %s, is not where it was opened: %w", j.path, err)
	}
	return nil
}

// writePending writes what is pending to the file, without a sync. After an error nothing of it is there: the file is cut back, so that half a
// line never stands before others. The caller has the lock.
func (j *journal) writePending() error {
	text := j.pending
	j.pending = nil
	if _, err := j.file.Write(text); err != nil {
		return fmt.Errorf("the journal %s cannot be written: %w", j.path, errors.Join(err, j.file.Truncate(j.size)))
	}
	j.size += int64(len(text))
	if j.copying {
		j.meanwhile = append(j.meanwhile, text...)
	}
	return nil
}

func (j *journal) write() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for (len(j.pending) > 0 || j.unsynced) && j.broken == nil {
		b := j.next
		sync := j.unsynced || len(b.began) > 0 // lines that end calls alone need none: see end
		j.unsynced, j.next = false, &batch{done: make(chan struct{})}
		b.err = j.writePending()
		if err := j.sync(sync && b.err == nil); b.err == nil {
			b.err = err
		}
		if b.err != nil { // an error of another meanwhile stays
			j.broken = b.err
		}
		j.settle(b)
		if j.broken == nil && j.size > j.rewriteAt { // the calls that have ended go out of the file
			draft, err := j.copyOpen()
			if err == nil {
				j.broken = j.replace(draft)
			} else { // there is no room for another file: this one goes on until it is twice as long
				j.rewriteAt = 2 * j.size
			}
		}
	}
	if j.broken != nil { // those who came while the last batch failed
		j.fail()
	}
	j.writing = false
}

// sync waits for the disk without the lock, if anything is to be durable.
func (j *journal) sync(wanted bool) (err error) {
	file := j.file
	j.mu.Unlock()
	defer j.mu.Lock()
	j.after("written")
	if wanted {
		if err = atomicfile.SyncData(file); err != nil {
			err = fmt.Errorf("the journal %s cannot be written: %w", j.path, err)
		}
	}
	j.after("synced")
	return err
}

func (j *journal) fail() {
	b := j.next
	j.pending, j.unsynced, j.next, b.err = nil, false, &batch{done: make(chan struct{})}, j.broken
	j.settle(b)
}

func (j *journal) settle(b *batch) {
	if b.err != nil {
		for _, id := range b.began {
			delete(j.open, id)
		}
	}
	close(b.done)
}

func (j *journal) rewrite() error {
	draft, err := j.copyOpen()
	if err != nil {
		return err
	}
	return j.replace(draft)
}

// copyOpen makes a file with the open intents, durably. The caller has the lock, which copyOpen gives up while it waits for the disk: callers who
// wait for no disk go on, and replace adds their lines. Nobody else may copy or sync meanwhile.
func (j *journal) copyOpen() (draft *os.File, err error) {
	var text []byte
	for _, i := range j.open {
		l, err := json.Marshal(line{Begin: i})
		if err != nil {
			return nil, err
		}
		text = append(append(text, l...), '\n')
	}
	j.copying, j.meanwhile = true, nil
	j.mu.Unlock()
	defer func() {
		j.after("copied")
		j.mu.Lock()
		if err != nil {
			j.copying, j.meanwhile = false, nil
		}
	}()
	draft, err = os.OpenFile(j.path+".new", os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("writing the journal anew: %w", err)
	}
	_, err = draft.Write(text)
	if err = errors.Join(err, draft.Sync()); err != nil {
		return nil, errors.Join(fmt.Errorf("writing the journal anew: %w", err), draft.Close(), os.Remove(draft.Name()))
	}
	return draft, nil
}

func (j *journal) replace(draft *os.File) error {
	_, err := draft.Write(j.meanwhile)
	j.copying, j.meanwhile = false, nil
	if err = errors.Join(err, draft.Close()); err == nil {
		if j.file != nil {
			_ = j.file.Close() // its lines are in the draft; Windows gives no file the name of an open one
		}
		err = os.Rename(draft.Name(), j.path)
	}
	if err == nil {
		j.file, err = os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND, 0)
	}
	if err != nil {
		return fmt.Errorf("writing the journal %s anew: %w", j.path, err)
	}
	end, err := j.file.Seek(0, io.SeekEnd)
	if is, failed := j.file.Stat(); failed == nil {
		j.is = is
	} else {
		err = errors.Join(err, failed)
	}
	j.size, j.rewriteAt = end, max(rewriteAbove, 2*end)
	file := j.file
	j.mu.Unlock()
	defer j.mu.Lock()
	folder := filepath.Dir(j.path)
	err = errors.Join(err, file.Sync(), atomicfile.SyncFolders(folder, folder))
	j.after("rewritten")
	if err != nil {
		return fmt.Errorf("writing the journal %s anew: %w", j.path, err)
	}
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
	if err := j.inPlace(filepath.Dir(j.path), j.folder); err != nil { // another recorder may have read that one, and sealed what was under way as lost
		return err
	}
	j.writing = true
	err := j.rewrite()
	j.writing = false
	if err == nil {
		j.broken = nil
	}
	return err
}

// close ends a journal. It returns how many intents have no end.
func (j *journal) close() (left int, err error) {
	j.mu.Lock()
	j.broken = errors.New("the journal is closed")
	j.mu.Unlock()
	j.writer.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.open), j.file.Close()
}

// maxLine bounds a line of the journal: the fields of an intent are bounded too.
const maxLine = 64 << 10

// A damaged is a part of a journal that cannot be read. A call that began there is not known, but for what can still be read of it.
type damaged struct {
	line     int       // 0: it is a whole line, of which there can be no record
	ends     bool      // it is what a call left that has ended: the log knows that call
	recordID string    // "": not readable
	agent    string    // "": not readable
	after    time.Time // when the last call before it began; zero: there is none
}

// readJournal returns the intents in a journal that have no end, and what cannot be read. A last line that is not whole was not durable, so its call
// was not forwarded: it is no damage. Elsewhere half a line may stand before whole ones, or in their place.
func readJournal(path string) ([]*intent, []damaged, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	var c contents
	for r, n := bufio.NewReaderSize(file, 4*maxLine), 1; ; n++ {
		text, err := nextLine(r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, fmt.Errorf("the journal %s: line %d: %w", path, n, err)
		}
		c.take(n, text)
	}
	return c.left, c.damaged, nil
}

// nextLine reads a line. Of one that is too long to be any, it returns the beginning.
func nextLine(r *bufio.Reader) ([]byte, error) {
	text, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return text, err
	}
	text = bytes.Clone(text)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	return text, err
}

type contents struct {
	left    []*intent // that have no end, in their order
	last    time.Time
	damaged []damaged
}

// take reads what stands in a line of the file: one line, or after half a line another.
func (c *contents) take(number int, text []byte) {
	for text = bytes.TrimSpace(text); len(text) > 0; {
		l, length := firstLine(text)
		switch {
		case l.Begin != nil:
			c.end(l.Begin.RecordID) // none has two lines, unless the file is damaged
			c.left, c.last = append(c.left, l.Begin), l.Begin.Began
		case l.End != "":
			c.end(l.End)
		default:
			half := text[:length]
			c.damaged = append(c.damaged, damaged{line: number, ends: bytes.HasPrefix(half, []byte(`{"end":`)), recordID: member(half, "record_id"), agent: member(half, "agent"), after: c.last})
		}
		text = text[length:]
	}
}

func (c *contents) end(id string) {
	c.left = slices.DeleteFunc(c.left, func(i *intent) bool { return i.RecordID == id })
}

// begins matches where a line begins. In texts of intents quotation marks are escaped, so no caller can write it.
var begins = regexp.MustCompile(`\{"(begin|end)":`)

// firstLine reads a line at the beginning of a text, and returns how long it is. If there is none, the line is empty, and the next may begin after that length.
func firstLine(text []byte) (l line, length int) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err == nil && (l.Begin != nil) != (l.End != "") {
		return l, int(d.InputOffset())
	}
	if next := begins.FindIndex(text[1:]); next != nil {
		return line{}, 1 + next[0]
	}
	return line{}, len(text)
}

func member(half []byte, name string) (value string) {
	found := regexp.MustCompile(`"` + name + `":("(?:[^"\\]|\\.)*")`).FindSubmatch(half)
	if found == nil || json.Unmarshal(found[1], &value) != nil {
		return ""
	}
	return value
}
