package importing

import (
	"archive/zip"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/subject"
)

// Bounds of what an archive unpacks to. Real logs shrink to a tenth, long repetitions to a hundredth.
const (
	leastUnpacked = 1 << 30
	mostRatio     = 200
)

// archive opens the file as a ZIP archive.
func (f *File) archive() (*zip.Reader, error) {
	a, err := subject.OpenArchive(f.file, f.Size, maxEntries)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return a, nil
}

// recogniseArchive finds what an archive has.
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
	d, s := newStream(strings.NewReader(string(data))), &signs{members: map[string]jsontext.Kind{}}
	if d.peek() != '{' {
		return f.broken(entry.Name, errors.New("expected an object"))
	}
	if err := d.members(func(name string) error { return f.member(s, d, name) }); err != nil {
		return f.broken(entry.Name, err)
	}
	return nil
}

// samples reads a packed log of Inspect, a sample at a time.
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
