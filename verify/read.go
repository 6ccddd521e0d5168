package verify

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"jurat/aep"
	"jurat/dsse"
	"jurat/evidence"
)

// Read checks a record file or a bundle file, also in an envelope, a checkpoint or an evidence package, as it comes in. It reads a bundle once, record by record, on all
// cores, and keeps of each record what other records' rules may ask of it, and of the acts of a trial everything: so what it
// needs grows with how many records there are, and not with how long they are. A file that is recognisably ours but cannot be
// opened gets a report in which its content is refuted; ErrNotOurs is for files that are something else, and other errors
// are the reader's.
func Read(file io.Reader, o Options) (*Report, error) {
	start := make([]byte, len(startWithCheckpoint))
	n, err := io.ReadFull(file, start)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	file = io.MultiReader(bytes.NewReader(start[:n]), file)
	if beginsAsBundle(start) {
		return bundleFrom(file, o)
	}
	whole, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	return one(whole, o)
}

// File checks a file that is in memory.
func File(file []byte, o Options) (*Report, error) {
	if beginsAsBundle(file) {
		return bundleFrom(bytes.NewReader(file), o)
	}
	return one(file, o)
}

// one checks a file that does not begin as a bundle does: a record, an envelope, a package, a checkpoint, or something damaged.
func one(file []byte, o Options) (*Report, error) {
	r, err := evidence.Open(file)
	switch {
	case err == nil:
		return Record(r, o), nil
	case aep.Is(file):
		return packageFile(file, o), nil
	case dsse.Is(file):
		return envelope(file, o)
	case isCheckpoint(file):
		return Checkpoint(string(file), o), nil
	case evidence.IsBundle(file):
		_, err = evidence.ReadBundle(bytes.NewReader(file)) // which it does not begin as
	}
	seen := new(sight)
	seen.look(file)
	seen.seen[bundleName] = evidence.IsBundle(file) // a record may well speak about bundles
	return seen.damaged(err, o)
}

// bundleFrom checks a bundle, or says what else it is.
func bundleFrom(file io.Reader, o Options) (*Report, error) {
	seen := &sight{from: file}
	in := bufio.NewReaderSize(seen, 64<<10)
	r, err := readBundle(in, o)
	if err == nil {
		return r, nil
	}
	if _, drained := io.Copy(io.Discard, in); drained != nil {
		return nil, drained
	}
	if seen.err != nil {
		return nil, seen.err
	}
	return seen.damaged(err, o)
}

// How bundles begin, with and without a checkpoint. Of both, as much is looked at as of the first.
const (
	startWithCheckpoint = `{"checkpoint":`
	startWithout        = `{"format":"jur`
)

func beginsAsBundle(file []byte) bool {
	return bytes.HasPrefix(file, []byte(startWithCheckpoint)) || bytes.HasPrefix(file, []byte(startWithout))
}

// readBundle checks a bundle. Its error says why the file cannot be opened or read.
func readBundle(in io.Reader, o Options) (*Report, error) {
	bundle, err := evidence.ReadBundle(in)
	if err != nil {
		return nil, err
	}
	c := newCheck(o, ManyRecords)
	c.begin(bundle.Checkpoint, bundle.CheckpointTimestamps)
	type result struct {
		examined
		index int
		err   error
	}
	work := func(raw *evidence.RawRecord) result {
		r, err := raw.Open()
		if err != nil {
			return result{err: err}
		}
		return result{examined: c.examine(r), index: raw.Index}
	}
	take := func(r result) error {
		if r.err == nil {
			r.err = bundle.Take(r.index, r.record)
		}
		if r.err != nil {
			return r.err
		}
		c.take(r.examined)
		return nil
	}
	if err := inOrder(bundle.Next, io.EOF, work, take); err != nil {
		return nil, err
	}
	return c.bundle(), nil
}

// sight watches a file go by for what tells what it is, also where it is damaged.
type sight struct {
	from io.Reader
	err  error  // of reading
	tail []byte // the end of what went by last
	seen [markCount]bool
}

// marks are what only record and bundle files have together, and what tells what kind of bundle it is.
const (
	bundleName = iota
	bundleFormat
	recordSchema
	someSignatures
	someTimestamps
	someRecords
	aSubmission
	aClosing
	markCount
)

var marks = [markCount][]byte{
	bundleName:     []byte(evidence.BundleFormat),
	bundleFormat:   []byte(`"format":"` + evidence.BundleFormat + `"`),
	recordSchema:   []byte(`"schema":"` + evidence.Schema + `"`),
	someSignatures: []byte(`"signatures":[`),
	someTimestamps: []byte(`"timestamps":[`),
	someRecords:    []byte(`"records":[`),
	aSubmission:    []byte(evidence.Submission),
	aClosing:       []byte(evidence.TrialClosing),
}

const longestMark = 64

func (s *sight) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	s.look(p[:n])
	return n, err
}

func (s *sight) look(chunk []byte) {
	seam := append(s.tail, chunk[:min(len(chunk), longestMark)]...)
	for i, mark := range marks {
		s.seen[i] = s.seen[i] || bytes.Contains(seam, mark) || bytes.Contains(chunk, mark)
	}
	if len(chunk) < longestMark {
		chunk = seam
	}
	s.tail = bytes.Clone(chunk[max(0, len(chunk)-longestMark):])
}

func (s *sight) is(mark int) bool { return s.seen[mark] }

// damaged is the report on a file that cannot be opened, if it is ours.
func (s *sight) damaged(err error, o Options) (*Report, error) {
	found := 0
	for _, mark := range []int{bundleFormat, recordSchema, someSignatures, someTimestamps, someRecords} {
		if s.is(mark) {
			found++
		}
	}
	switch {
	case found < 2:
		return nil, ErrNotOurs
	case !s.is(bundleName):
		return damaged(OneRecord, "", o, err), nil
	}
	kind := ManyRecords
	if s.is(aSubmission) || s.is(aClosing) {
		kind = Trial
	}
	var in *evidence.RecordError
	if errors.As(err, &in) {
		return damaged(kind, in.RecordID, o, fmt.Errorf("at place %d of the bundle: %w", in.Index+1, in.Err)), nil
	}
	return damaged(kind, "", o, err), nil
}
