package verify

import (
	"bytes"
	"errors"
	"io"

	"jurat/evidence"
)

// A sight searches the bytes that pass for marks of a file's kind, also in a damaged file.
type sight struct {
	from io.Reader
	Err  error  // of reading
	tail []byte // the end of the previous chunk
	seen [markCount]bool

	buffer []byte
}

// A mark is a text that tells the kind of a file.
type mark int

// The marks are the texts that only record and bundle files have together, and those that tell the kind of bundle.
const (
	bundleName mark = iota
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

// newSight returns a Sight of what is read from a file.
func newSight(from io.Reader) *sight { return &sight{from: from} }

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

// Saw reports whether a mark was seen.
func (s *sight) Saw(mark mark) bool { return s.seen[mark] }

// Forget unsees a mark.
func (s *sight) Forget(mark mark) { s.seen[mark] = false }
