package verify

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"jurat/aep"
	"jurat/dsse"
	"jurat/evidence"
	"jurat/internal/fault"
)

// Read checks a record file or a bundle file, also in an envelope, a checkpoint or an evidence package, as it comes in. It reads a bundle once, record by record, on all
// cores, and keeps of each record what other records' rules may ask of it, and of the acts of a trial everything: so what it
// needs grows with how many records there are, and not with how long they are. A file that is an io.Seeker is looked through before, as the
// members of a bundle may stand in any order. Whatever is no bundle is read into memory, and has at most MaxWhole bytes.
//
// A file whose form was lost on the way (see evidence.Read) is read in its canonical form, and the report says so. A file that is recognisably ours but cannot be
// opened gets a report in which its content is refuted; ErrNotOurs is for files that are something else, ErrFault for those on
// which the program itself fails, and other errors are the reader's.
func Read(file io.Reader, o Options) (*Report, error) {
	return answered(func() (*Report, error) { return read(file, o) })
}

// answered is what do answers, or an ErrFault if it panics.
func answered(do func() (*Report, error)) (r *Report, err error) {
	err = fault.Guard(func() (err error) {
		r, err = do()
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

func read(file io.Reader, o Options) (*Report, error) {
	start := make([]byte, enoughToKnow)
	n, err := io.ReadFull(file, start)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	start = start[:n]
	if evidence.BeginsAsBundle(start) {
		return bundleFrom(again(file, start), o)
	}
	whole, err := io.ReadAll(io.LimitReader(io.MultiReader(bytes.NewReader(start), file), MaxWhole+1))
	if err != nil {
		return nil, err
	}
	if len(whole) > MaxWhole {
		return nil, fmt.Errorf("more than %d bytes, and no bundle, which alone is read as it comes in", MaxWhole)
	}
	return one(whole, o)
}

// MaxWhole is how many bytes a file may have that is read as a whole.
const MaxWhole = 1 << 30

// enoughToKnow is how much of a file is looked at to see how it begins.
const enoughToKnow = 4 << 10

// again returns a file of which the beginning was read, from its beginning on.
func again(file io.Reader, start []byte) io.Reader {
	if seeker, seeks := file.(io.Seeker); seeks {
		if _, err := seeker.Seek(int64(-len(start)), io.SeekCurrent); err == nil {
			return file
		}
	}
	return io.MultiReader(bytes.NewReader(start), file)
}

// File checks a file that is in memory.
func File(file []byte, o Options) (*Report, error) {
	return answered(func() (*Report, error) {
		if evidence.BeginsAsBundle(file[:min(len(file), enoughToKnow)]) {
			return bundleFrom(bytes.NewReader(file), o)
		}
		return one(file, o)
	})
}

// one checks a file that does not begin as a bundle does: a record, an envelope, a package, a checkpoint, or something damaged.
func one(file []byte, o Options) (*Report, error) {
	doc := evidence.CutMark(file)
	o.mended = len(doc) < len(file)
	switch {
	case aep.Is(file):
		return packageFile(file, o), nil
	case dsse.Is(doc):
		return envelope(doc, o)
	}
	if note := mendedNote(file); isCheckpoint(note) {
		o.mended = !bytes.Equal(note, file)
		return Checkpoint(string(note), o), nil
	}
	if err := evidence.CheckEncoding(file); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotOurs, err)
	}
	r, mended, err := evidence.Read(file)
	if err == nil {
		o.mended = mended
		return record(r, o), nil
	}
	if evidence.IsBundle(file) {
		_, err = evidence.ReadBundle(bytes.NewReader(file)) // which it does not begin as
	}
	seen := new(sight)
	seen.look(file)
	seen.seen[bundleName] = evidence.IsBundle(file) // a record may well speak about bundles
	return seen.damaged(err, evidence.BeginsAsRecord(file), o)
}

// mendedNote is a file as a signed note, if it is not too long to be one.
func mendedNote(file []byte) []byte {
	if len(file) > maxCheckpoint {
		return nil
	}
	return []byte(evidence.MendNote(string(file)))
}

// bundleFrom checks a bundle, or says what else it is.
func bundleFrom(file io.Reader, o Options) (*Report, error) {
	seen := &sight{from: file}
	bundle, err := evidence.ReadBundle(seen.reader())
	var r *Report
	if err == nil {
		r, err = readBundle(bundle, o)
	}
	if err == nil || errors.Is(err, evidence.ErrBehind) || errors.Is(err, ErrFault) {
		return r, err
	}
	if _, drained := io.Copy(io.Discard, seen); drained != nil {
		return nil, drained
	}
	if seen.err != nil {
		return nil, seen.err
	}
	return seen.damaged(err, false, o)
}

// readBundle checks a bundle. Its error says why the file cannot be opened or read.
func readBundle(bundle *evidence.BundleReader, o Options) (*Report, error) {
	c := newCheck(o, ManyRecords)
	c.begin(bundle.Checkpoint, bundle.CheckpointTimestamps)
	type result struct {
		examined
		raw *evidence.RawRecord
		err error
	}
	work := func(raw *evidence.RawRecord) result {
		r, err := raw.Open()
		if err != nil {
			return result{err: err}
		}
		return result{examined: c.examine(r), raw: raw}
	}
	take := func(r result) error {
		if r.err == nil {
			r.err = bundle.Take(r.raw.Index, r.record)
		}
		if r.err != nil {
			return r.err
		}
		c.mended = c.mended || r.raw.Mended()
		c.take(r.examined)
		return nil
	}
	if err := inOrder(bundle.Next, io.EOF, (*evidence.RawRecord).Size, work, take); err != nil {
		return nil, err
	}
	c.mended = c.mended || bundle.Mended()
	return c.bundle(), nil
}

// sight watches a file go by for what tells what it is, also where it is damaged.
type sight struct {
	from io.Reader
	err  error  // of reading
	tail []byte // the end of what went by last
	seen [markCount]bool

	buffer []byte
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

// reader hands on whether the file can be gone through twice.
func (s *sight) reader() io.Reader {
	if seeker, seeks := s.from.(io.Seeker); seeks {
		return struct {
			io.Reader
			io.Seeker
		}{s, seeker}
	}
	return s
}

func (s *sight) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	s.look(p[:n])
	return n, err
}

// look takes no notice of white space, which may stand anywhere around these names and values.
func (s *sight) look(chunk []byte) {
	chunk = s.withoutSpace(chunk)
	seam := append(s.tail, chunk[:min(len(chunk), longestMark)]...)
	for i, mark := range marks {
		s.seen[i] = s.seen[i] || bytes.Contains(seam, mark) || bytes.Contains(chunk, mark)
	}
	if len(chunk) < longestMark {
		chunk = seam
	}
	s.tail = bytes.Clone(chunk[max(0, len(chunk)-longestMark):])
}

func (s *sight) withoutSpace(chunk []byte) []byte {
	s.buffer = s.buffer[:0]
	for _, c := range chunk {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			s.buffer = append(s.buffer, c)
		}
	}
	return s.buffer
}

func (s *sight) is(mark int) bool { return s.seen[mark] }

// damaged is the report on a file that cannot be opened, if it is ours. Of a file that begins as a record does, and may be one in another's
// words, the error says what is wrong.
func (s *sight) damaged(err error, begins bool, o Options) (*Report, error) {
	found := 0
	for _, mark := range []int{bundleFormat, recordSchema, someSignatures, someTimestamps, someRecords} {
		if s.is(mark) {
			found++
		}
	}
	switch {
	case found < 2 && begins:
		return nil, fmt.Errorf("%w: %w", ErrNotOurs, err)
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
