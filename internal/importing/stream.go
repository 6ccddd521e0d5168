package importing

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/subject"
)

// A stream reads a JSON document value by value. Names that stand twice and broken characters are for those to refuse who read a value:
// so one bad value does not hide the others.
type stream struct {
	*jsontext.Decoder
	bounded *bounded
}

func newStream(r io.Reader) *stream {
	b := &bounded{r: r}
	return &stream{jsontext.NewDecoder(b, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)), b}
}

// A bounded reader fails after maxValue bytes, unless it is begun anew: a decoder holds a whole value in memory.
type bounded struct {
	r    io.Reader
	read int64
}

var errLong = subject.ErrLong

func (b *bounded) Read(p []byte) (int, error) {
	if b.read > maxValue {
		return 0, errLong
	}
	n, err := b.r.Read(p)
	b.read += int64(n)
	return n, err
}

// value reads a value whole. It is valid for as long as the caller wants.
func (s *stream) value() (jsontext.Value, error) {
	s.bounded.read = 0
	v, err := s.ReadValue()
	if err == nil {
		err = evidence.CheckValues(v)
	}
	return v.Clone(), err
}

func (s *stream) token() (jsontext.Token, error) {
	s.bounded.read = 0
	return s.ReadToken()
}

// peek is PeekKind, where another value begins.
func (s *stream) peek() jsontext.Kind {
	s.bounded.read = 0
	return s.PeekKind()
}

// skip passes over a value of any length.
func (s *stream) skip() error {
	for depth := s.StackDepth(); ; {
		if _, err := s.token(); err != nil {
			return err
		}
		if s.StackDepth() <= depth {
			return nil
		}
	}
}

// members calls do for each member of the object that comes next. do must read the value.
func (s *stream) members(do func(name string) error) error {
	if _, err := s.token(); err != nil {
		return err
	}
	for s.peek() == '"' {
		name, err := s.token()
		if err != nil {
			return err
		}
		if err := do(name.String()); err != nil {
			return err
		}
	}
	_, err := s.token()
	return err
}

// elements calls do for each element of the array that comes next.
func (s *stream) elements(do func(i int, v jsontext.Value) error) error {
	if _, err := s.token(); err != nil {
		return err
	}
	for i := 0; ; i++ {
		if kind := s.peek(); kind == ']' || kind == jsontext.KindInvalid {
			break
		}
		v, err := s.value()
		if err != nil {
			return err
		}
		if err := do(i, v); err != nil {
			return err
		}
	}
	_, err := s.token()
	return err
}

// end returns an error if anything but white space follows.
func (s *stream) end() error {
	_, err := s.token()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		return errors.New("something follows after the end of the JSON document")
	}
	return err
}

// errTwice is what is wrong with a list that stands in a file more than once.
func errTwice(pointer string) error {
	return fmt.Errorf("there are two values at %s: which one is meant is not known", pointer)
}

// at calls do for each element of the array at a path of member names, and reads the document to its end. found says whether
// there is one.
func (s *stream) at(path []string, do func(i int, v jsontext.Value) error) (found bool, err error) {
	pointer := "/" + strings.Join(path, "/")
	switch kind := s.peek(); {
	case len(path) == 0 && kind == '[':
		return true, s.elements(do)
	case len(path) == 0 || kind != '{':
		return false, s.skip()
	}
	return found, s.members(func(name string) error {
		if name != path[0] {
			return s.skip()
		}
		there, err := s.at(path[1:], do)
		if err == nil && there && found {
			err = errTwice(pointer)
		}
		found = found || there
		return err
	})
}

// lines calls do for each line of a text that is not blank, with its number from 1. A line that is too long is an error of its own: long is
// called for it.
func lines(r io.Reader, do func(number int, line []byte) error, long func(number int) error) error {
	in := bufio.NewReaderSize(r, 1<<16)
	for number := 1; ; number++ {
		line, err := readLine(in)
		if errors.Is(err, errLong) {
			if err := long(number); err != nil {
				return err
			}
			continue
		}
		if len(bytes.TrimSpace(line)) > 0 {
			if err := evidence.CheckValues(line); err != nil {
				return fmt.Errorf("%s: %w", lineAt(number), err)
			}
			if err := do(number, line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readLine reads a line without its end. The rest of a line that is too long is passed over.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		piece, err := in.ReadSlice('\n')
		if long = long || len(line)+len(piece) > maxValue; !long {
			line = append(line, piece...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long:
			return nil, errLong // at the end of the file, the next call says so
		case err != nil:
			return line, err
		}
		return bytes.TrimRight(line, "\r\n"), nil
	}
}

func lineAt(number int) string { return "line " + strconv.Itoa(number) }
