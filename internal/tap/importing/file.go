package importing

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/court/subject"
)

// Limits. Files may be hostile, and of any length: one value at a time is in memory.
const (
	maxValue   = 64 << 20 // bytes of one conversation, one line, or one value that is passed over
	maxEntries = 100_000  // files in an archive
)

// A File is a file that is imported. It is open only while it is read, so that many can be at hand.
type File struct {
	Name   string          `json:"file"` // without its folder
	Format Format          `json:"format"`
	Size   int64           `json:"bytes"`
	SHA256 evidence.Digest `json:"sha256"`

	path   string
	file   *os.File
	header header
	label  string // the name of conversations without a name of their own
	given  string // the same, if the caller gave it
}

// Open reads a file once for its digest, and finds its format, unless one is given. The errors of a file that no format
// is certain of are ErrUnknown.
func Open(path string, format Format) (f *File, err error) {
	f = &File{Name: filepath.Base(path), Format: format, path: path}
	if f.file, err = os.Open(path); err != nil {
		return nil, err
	}
	if err = errors.Join(f.prepare(), f.file.Close()); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) prepare() (err error) {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fmt.Errorf("%s: a folder: name the files in it", f.Name)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file: it is read more than once; save it first", f.Name)
	}
	f.Size = info.Size()
	f.label = strings.TrimSuffix(f.Name, filepath.Ext(f.Name))
	f.label = cmp.Or(f.label, f.Name)
	if f.SHA256, err = f.digest(context.Background()); err != nil {
		return err
	}
	return f.recognise()
}

// with opens the file again for do, and makes sure that it is the same before and after. otherwise says what it means if it is not.
func (f *File) with(ctx context.Context, otherwise string, do func() error) (err error) {
	if f.file, err = os.Open(f.path); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.file.Close()) }()
	if err := f.unchanged(ctx, "since it was looked at: import it again"); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return f.unchanged(ctx, "while it was read: "+otherwise)
}

func (f *File) unchanged(ctx context.Context, otherwise string) error {
	now, err := f.digest(ctx)
	if err == nil && now != f.SHA256 {
		err = fmt.Errorf("%s: it was changed %s", f.Name, otherwise)
	}
	return err
}

// whole reads the file as it was when it was opened. What is appended meanwhile is not of it.
func (f *File) whole() *io.SectionReader { return io.NewSectionReader(f.file, 0, f.Size) }

func (f *File) text() io.Reader {
	head := make([]byte, 3)
	n, _ := io.ReadFull(f.whole(), head)
	if bytes.Equal(head[:n], []byte("\xef\xbb\xbf")) {
		return io.NewSectionReader(f.file, 3, f.Size-3)
	}
	return f.whole()
}

func (f *File) digest(ctx context.Context) (evidence.Digest, error) {
	h, whole, left := sha256.New(), f.whole(), f.Size
	for left > 0 && ctx.Err() == nil { // a large file takes seconds
		n, err := io.CopyN(h, whole, min(left, 64<<20))
		if left -= n; errors.Is(err, io.EOF) {
			return evidence.Digest{}, fmt.Errorf("%s: it became shorter while it was read", f.Name)
		} else if err != nil {
			return evidence.Digest{}, err
		}
	}
	return evidence.Digest(h.Sum(nil)), context.Cause(ctx)
}

// A Fault is something wrong in one place of a file. What follows can be read.
type Fault struct {
	File  string
	Place string // a JSON pointer, or a line
	Err   error
}

func (f *Fault) Error() string {
	text := f.Err.Error()
	if strings.HasPrefix(text, f.File+":") {
		return text // the reader names the place itself
	}
	return fmt.Sprintf("%s: %s: %v", f.File, f.Place, f.Err)
}

func (f *Fault) Unwrap() error { return f.Err }

// broken is an error after which nothing more can be read.
func (f *File) broken(place string, err error) error {
	return fmt.Errorf("%s: %s: %w", f.Name, place, err)
}

// Bounds of what an archive unpacks to. Real logs shrink to a tenth, long repetitions to a hundredth.
const (
	leastUnpacked = 1 << 30
	mostRatio     = 200
)

func (f *File) archive() (*zip.Reader, error) {
	a, err := subject.OpenArchive(f.file, f.Size, maxEntries)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return a, nil
}

func (f *File) recogniseArchive() error {
	a, err := f.archive()
	if err != nil {
		return err
	}
	samples, exported := false, false
	seen := map[string]bool{}
	for _, entry := range a.File {
		if seen[entry.Name] {
			return fmt.Errorf("%s: the archive has %q twice", f.Name, cut(entry.Name, 200))
		}
		seen[entry.Name] = true
		if subject.IsSample(entry.Name) {
			samples = true
		}
		exported = exported || exportName.MatchString(path.Base(entry.Name))
		if entry.Name == "header.json" || entry.Name == "_journal/start.json" { // of a log whose program was ended there is the second alone
			if err := f.readEvalHeader(entry); err != nil {
				return err
			}
		}
	}
	switch {
	case !samples && exported:
		return f.notRead("a data export of a chat app (an archive with conversations.json)")
	case !samples:
		return f.unknown("the archive has no samples of Inspect")
	case f.Format != Unknown && f.Format != Inspect:
		return fmt.Errorf("%s: this looks like %s: leave --from out, or give --from %[2]s", f.Name, Inspect)
	}
	f.Format, f.header.archive = Inspect, true
	return nil
}

// exportName is the name of a file with conversations in the data export of a chat app.
var exportName = regexp.MustCompile(`^conversations(-[0-9]+)?\.json$`)

// readEvalHeader reads what a log of Inspect says of all samples. See the recorder in
// https://github.com/UKGovernmentBEIS/inspect_ai/blob/main/src/inspect_ai/log/_recorders/eval.py.
func (f *File) readEvalHeader(entry *zip.File) error {
	data, err := subject.Unpack(entry)
	if err != nil {
		return f.broken(entry.Name, err)
	}
	d, s := newStream(strings.NewReader(string(data))), &signs{kinds: map[string]jsontext.Kind{}}
	if d.peek() != '{' {
		return f.broken(entry.Name, errors.New("expected an object"))
	}
	if err := d.members(func(name string) error { return f.member(s, d, name) }); err != nil {
		return f.broken(entry.Name, err)
	}
	return nil
}

func (r *reader) samples() error {
	a, err := r.archive()
	if err != nil {
		return err
	}
	number, unpacked := 0, int64(0)
	for _, entry := range a.File {
		if !subject.IsSample(entry.Name) {
			continue
		}
		number++
		data, err := subject.Unpack(entry)
		if unpacked += int64(len(data)); unpacked > max(leastUnpacked, mostRatio*r.Size) {
			return r.broken(cut(entry.Name, 200), fmt.Errorf("the archive unpacks to more than %d times its size: unpack it yourself if it is no attack", mostRatio))
		}
		if err != nil {
			err = r.bad(cut(entry.Name, 200), err)
		} else {
			err = r.entry(number, cut(entry.Name, 200), data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

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
	if err != nil {
		return nil, err
	}
	return v.Clone(), nil
}

func (s *stream) token() (jsontext.Token, error) {
	s.bounded.read = 0
	return s.ReadToken()
}

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

// each calls do for each element of the array at a JSON pointer, and reads the document to its end. found says whether there is one.
func (s *stream) each(pointer string, do func(i int, v jsontext.Value) error) (found bool, err error) {
	depth := strings.Count(pointer, "/") + 1
	for begun := false; !begun || s.StackDepth() > 0; begun = true {
		token, err := s.token()
		if err != nil {
			return found, err
		}
		if token.Kind() != '[' || s.StackDepth() != depth || string(s.StackPointer()) != pointer {
			continue
		}
		if found {
			return found, fmt.Errorf("there are two values at %s: which one is meant is not known", pointer)
		}
		found = true
		for i := 0; s.peek() != ']'; i++ {
			v, err := s.value()
			if err == nil {
				err = do(i, v)
			}
			if err != nil {
				return found, err
			}
		}
	}
	return found, s.end()
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
