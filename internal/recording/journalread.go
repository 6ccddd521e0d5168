package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"
)

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
	c := contents{open: map[string]*intent{}}
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
	return c.left(), c.damaged, nil
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

// contents are what was read of a journal.
type contents struct {
	order   []string
	open    map[string]*intent
	last    time.Time
	damaged []damaged
}

// take reads what stands in a line of the file: one line, or after half a line another.
func (c *contents) take(number int, text []byte) {
	for text = bytes.TrimSpace(text); len(text) > 0; {
		l, length := firstLine(text)
		switch {
		case l.Begin != nil:
			c.order, c.open[l.Begin.RecordID], c.last = append(c.order, l.Begin.RecordID), l.Begin, l.Begin.Began
		case l.End != "":
			delete(c.open, l.End)
		default:
			half := text[:length]
			c.damaged = append(c.damaged, damaged{line: number, ends: bytes.HasPrefix(half, []byte(`{"end":`)), recordID: member(half, "record_id"), agent: member(half, "agent"), after: c.last})
		}
		text = text[length:]
	}
}

// left returns the intents without an end.
func (c *contents) left() (left []*intent) {
	for _, id := range c.order {
		if i := c.open[id]; i != nil {
			left = append(left, i)
			delete(c.open, id)
		}
	}
	return left
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

// member returns a member of half a line, if it is there as a whole.
func member(half []byte, name string) (value string) {
	found := regexp.MustCompile(`"` + name + `":("(?:[^"\\]|\\.)*")`).FindSubmatch(half)
	if found == nil || json.Unmarshal(found[1], &value) != nil {
		return ""
	}
	return value
}
