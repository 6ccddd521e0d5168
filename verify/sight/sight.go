// Package sight recognises what kind of file a damaged one was, by texts in it.
package sight

import (
	"bytes"
	"errors"
	"io"

	"jurat/evidence"
)

// A Sight searches the bytes that pass for marks of a file's kind, also in a damaged file.
type Sight struct {
	from io.Reader
	Err  error  // of reading
	tail []byte // the end of the previous chunk
	seen [markCount]bool

	buffer []byte
}

// A Mark is a text that tells the kind of a file.
type Mark int

// The marks are the texts that only record and bundle files have together, and those that tell the kind of bundle.
const (
	BundleName Mark = iota
	BundleFormat
	RecordSchema
	SomeSignatures
	SomeTimestamps
	SomeRecords
	ASubmission
	AClosing
	markCount
)

var marks = [markCount][]byte{
	BundleName:     []byte(evidence.BundleFormat),
	BundleFormat:   []byte(`"format":"` + evidence.BundleFormat + `"`),
	RecordSchema:   []byte(`"schema":"` + evidence.Schema + `"`),
	SomeSignatures: []byte(`"signatures":[`),
	SomeTimestamps: []byte(`"timestamps":[`),
	SomeRecords:    []byte(`"records":[`),
	ASubmission:    []byte(evidence.Submission),
	AClosing:       []byte(evidence.TrialClosing),
}

const longestMark = 64

// New returns a Sight of what is read from a file.
func New(from io.Reader) *Sight { return &Sight{from: from} }

// Reader keeps io.Seeker if the file has it.
func (s *Sight) Reader() io.Reader {
	if seeker, seeks := s.from.(io.Seeker); seeks {
		return struct {
			io.Reader
			io.Seeker
		}{s, seeker}
	}
	return s
}

func (s *Sight) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.Err = err
	}
	s.Look(p[:n])
	return n, err
}

// Look takes in a part of the file. It ignores white space, which JSON allows around these names and values.
func (s *Sight) Look(chunk []byte) {
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

func (s *Sight) withoutSpace(chunk []byte) []byte {
	s.buffer = s.buffer[:0]
	for _, c := range chunk {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			s.buffer = append(s.buffer, c)
		}
	}
	return s.buffer
}

// Saw reports whether a mark was seen.
func (s *Sight) Saw(mark Mark) bool { return s.seen[mark] }

// Forget unsees a mark.
func (s *Sight) Forget(mark Mark) { s.seen[mark] = false }
