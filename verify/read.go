package verify

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/fault"
	"jurat/internal/inorder"
	"jurat/scitt"
	"jurat/verify/trust"
)

// Read checks a file while it reads it: a record, a bundle, a SCITT statement around a record, or a checkpoint. It reads a bundle once, record by
// record, on all cores, and keeps of each record what other records' rules need, and all of a trial's acts. So its memory depends on the number of
// records, not on their length. It searches an io.Seeker first, because the members of a bundle may stand in any order. It reads any other file into
// memory, at most MaxWhole bytes.
//
// A file that lost its form on the way (see evidence.Read) is read in its canonical form, and the report says so. A
// file that is recognisably jurat's but cannot be opened gets a report in which its content is refuted. Read returns
// ErrNotOurs for any other kind of file, ErrFault if the program itself fails, and the errors of reading file.
func Read(file io.Reader, o Options) (*Report, error) {
	return answered(func() (*Report, error) { return read(file, o) })
}

// answered returns what do returns, or ErrFault if do panics.
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
		return nil, fmt.Errorf("the file has more than %d bytes and is not a bundle: only bundles may be larger", MaxWhole)
	}
	return one(whole, o)
}

// MaxWhole is the largest file, in bytes, that is read into memory.
const MaxWhole = 1 << 30

// enoughToKnow is how many bytes show what kind of file it is.
const enoughToKnow = 4 << 10

// again returns a reader of the whole file after its start was read.
func again(file io.Reader, start []byte) io.Reader {
	if seeker, seeks := file.(io.Seeker); seeks {
		if _, err := seeker.Seek(int64(-len(start)), io.SeekCurrent); err == nil {
			return file
		}
	}
	return io.MultiReader(bytes.NewReader(start), file)
}

// File checks a file in memory. It returns the errors of Read.
func File(file []byte, o Options) (*Report, error) {
	return answered(func() (*Report, error) {
		if evidence.BeginsAsBundle(file[:min(len(file), enoughToKnow)]) {
			return bundleFrom(bytes.NewReader(file), o)
		}
		return one(file, o)
	})
}

// one checks a file that does not begin as a bundle: a record, a statement, a checkpoint, or a damaged file.
func one(file []byte, o Options) (*Report, error) {
	doc := evidence.CutMark(file)
	o.mended = len(doc) < len(file)
	if scitt.Is(file) {
		return statementFile(file, o)
	}
	if signed, is := checkpointIn(file); is {
		o.mended = signed != string(file)
		return Checkpoint(signed, o), nil
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
		_, err = evidence.ReadBundle(bytes.NewReader(file)) // fails: file is no bundle
	}
	seen := &sight{seen: map[string]bool{}}
	seen.Look(file)
	if !evidence.IsBundle(file) { // a record can mention bundles
		seen.seen[evidence.BundleFormat] = false
	}
	return damagedFile(seen, err, evidence.BeginsAsRecord(file), o)
}

// bundleFrom checks a bundle, or finds out what else the file is.
func bundleFrom(file io.Reader, o Options) (*Report, error) {
	seen := &sight{from: file, seen: map[string]bool{}}
	bundle, err := evidence.ReadBundle(seen.Reader())
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
	if seen.Err != nil {
		return nil, seen.Err
	}
	return damagedFile(seen, err, false, o)
}

// readBundle checks a bundle. Its error says why the file cannot be opened or read.
func readBundle(bundle *evidence.BundleReader, o Options) (*Report, error) {
	c := newCheck(o, ManyRecords)
	c.begin(bundle.Checkpoint, bundle.Anchors)
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
	if err := inorder.Do(bundle.Next, (*evidence.RawRecord).Size, work, take); err != nil {
		return nil, err
	}
	c.mended = c.mended || bundle.Mended()
	return c.bundle(), nil
}

// damagedFile returns the report on a file that is ours and cannot be opened. If the file begins as a record and is not one,
// its error says what is wrong.
func damagedFile(s *sight, err error, begins bool, o Options) (*Report, error) {
	found := 0
	for _, mark := range telling {
		if s.seen[mark] {
			found++
		}
	}
	switch {
	case found < 2 && begins:
		return nil, fmt.Errorf("%w: %w", ErrNotOurs, err)
	case found < 2:
		return nil, ErrNotOurs
	case !s.seen[evidence.BundleFormat]:
		return damaged(OneRecord, "", o, err), nil
	}
	kind := ManyRecords
	if s.seen[string(evidence.Submission)] || s.seen[string(evidence.TrialClosing)] {
		kind = Trial
	}
	var in *evidence.RecordError
	if errors.As(err, &in) {
		return damaged(kind, in.RecordID, o, fmt.Errorf("at place %d of the bundle: %w", in.Index+1, in.Err)), nil
	}
	return damaged(kind, "", o, err), nil
}

// A sight searches the bytes that pass for marks of a file's kind, also in a damaged file.
type sight struct {
	from io.Reader
	Err  error  // of reading
	tail []byte // the end of the previous chunk
	seen map[string]bool

	buffer []byte
}

// telling are the texts that only record and bundle files have together. marks are these and those that tell the kind of bundle.
var (
	telling = []string{`"format":"` + evidence.BundleFormat + `"`, `"schema":"` + evidence.Schema + `"`, `"signatures":[`, `"timestamps":[`, `"records":[`}
	marks   = append([]string{evidence.BundleFormat, string(evidence.Submission), string(evidence.TrialClosing)}, telling...)
)

const longestMark = 64

// Reader keeps io.Seeker if the file has it.
func (s *sight) Reader() io.Reader {
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
		s.Err = err
	}
	s.Look(p[:n])
	return n, err
}

// Look takes in a part of the file. It ignores white space, which JSON allows around these names and values.
func (s *sight) Look(chunk []byte) {
	s.buffer = s.buffer[:0]
	for _, c := range chunk {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			s.buffer = append(s.buffer, c)
		}
	}
	chunk = s.buffer
	seam := append(s.tail, chunk[:min(len(chunk), longestMark)]...)
	for _, mark := range marks {
		if !s.seen[mark] && (bytes.Contains(seam, []byte(mark)) || bytes.Contains(chunk, []byte(mark))) {
			s.seen[mark] = true
		}
	}
	if len(chunk) < longestMark {
		chunk = seam
	}
	s.tail = bytes.Clone(chunk[max(0, len(chunk)-longestMark):])
}

// Inputs are what the reader brings, because none of it may come from the verified file. The zero Inputs bring
// nothing and prove nothing.
type Inputs struct {
	Trust  *InputFile  // the reader's trust file; nil: none
	Before *time.Time  // also ask whether everything existed before it; nil: do not ask
	At     *time.Time  // the moment of checking; nil: now, by Now
	CRLs   []InputFile // revocation lists

	Grace *time.Duration // see verify.Options.Grace; nil: trust.DefaultGrace

	// What the reader knows of the log from elsewhere; nil: nothing.
	Checkpoint  *InputFile
	Consistency *InputFile
	Entries     io.ReaderAt // read while files are verified

	Now func() time.Time
}

// An InputFile is a file that the reader chose.
type InputFile struct {
	Name string // the reader's name for it, for errors
	From io.Reader
}

// maxFile bounds a file that is held in memory. A trust file of a hundred thousand keys has half that size.
const maxFile = 64 << 20

// Options reads all inputs and returns them as options. Its errors name the file that cannot be read.
func (q *Inputs) Options() (Options, error) {
	o := Options{Entries: q.Entries}
	if err := q.moments(&o); err != nil {
		return o, err
	}
	for _, file := range q.CRLs {
		list, err := parsed(&file, trust.MaxCRL, trust.ParseCRL)
		if err != nil {
			return o, err
		}
		o.CRLs = append(o.CRLs, list)
	}
	if q.Grace != nil {
		if o.Grace = *q.Grace; o.Grace <= 0 {
			return o, fmt.Errorf("grace: %s: want a duration above zero, such as 24h", o.Grace)
		}
	}
	var err error
	if o.Trust, err = ReadTrust(q.Trust); err != nil {
		return o, err
	}
	o.KeepFingerprint()
	if q.Consistency != nil && q.Checkpoint == nil {
		return o, errors.New("consistency: the proof is between two checkpoints; bring the other checkpoint, too")
	}
	if o.Checkpoint, err = parsed(q.Checkpoint, maxFile, checkpoint); err != nil {
		return o, err
	}
	o.Consistency, err = parsed(q.Consistency, maxFile, consistency)
	return o, err
}

// moments reads the times. Verification treats the zero time as absent, so moments refuses it.
func (q *Inputs) moments(o *Options) error {
	if q.At == nil {
		o.At = q.Now()
	} else if o.At = *q.At; o.At.IsZero() {
		return errors.New("at: the moment of checking must be after the year 0")
	}
	if q.Before != nil {
		if o.Before = *q.Before; o.Before.IsZero() {
			return errors.New("before: the time must be after the year 0")
		}
	}
	return nil
}

// ReadPolicy reads a policy file. Its errors name the file.
func ReadPolicy(file *InputFile) (*PolicyTerms, error) {
	return parsed(file, MaxPolicy, ParsePolicy)
}

// ReadTrust reads a trust file. It returns nil if file is nil. Its errors name the file.
func ReadTrust(file *InputFile) (*trust.Trust, error) { return parsed(file, maxFile, trust.Parse) }

func checkpoint(doc []byte) (string, error) {
	if len(doc) == 0 {
		return "", errors.New("an empty file is no checkpoint")
	}
	return evidence.MendNote(string(doc)), nil
}

// consistency reads a proof in any JSON spelling.
func consistency(doc []byte) (*operator.Consistency, error) {
	form, _, err := evidence.Mend(doc)
	if err != nil {
		return nil, fmt.Errorf("reading consistency proof: %w", err)
	}
	return operator.ParseConsistency(form)
}

// parsed reads at most the given number of bytes, and names the file in errors. It returns the zero value for no
// file.
func parsed[T *trust.Trust | *x509.RevocationList | *operator.Consistency | *PolicyTerms | string](file *InputFile, most int64, parse func([]byte) (T, error)) (T, error) {
	var none T
	if file == nil {
		return none, nil
	}
	doc, err := io.ReadAll(io.LimitReader(file.From, most+1))
	if err == nil && int64(len(doc)) > most {
		err = fmt.Errorf("more than %d bytes", most)
	}
	if err != nil {
		return none, fmt.Errorf("%s: %w", file.Name, err)
	}
	content, err := parse(evidence.CutMark(doc))
	if err != nil {
		return none, fmt.Errorf("%s: %w", file.Name, err)
	}
	return content, nil
}
