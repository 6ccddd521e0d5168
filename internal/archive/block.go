package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger/storage"
)

// Kinds of entries in a block. docs/format.md has the layout.
const (
	whole   = 1 // a complete record
	expired = 2 // what the log hashed for an expired record, and the act about its deletion
	counted = 3 // a complete record that the log counted for its actor
)

// maxEntry is the size limit of one record: a payload, its signatures, and the time stamps that it had when it was
// archived.
const maxEntry = evidence.MaxDocument + 8<<20

// Limits of one record. They bound the memory of a reader: each signature or time stamp takes more memory than the
// byte or two that it takes in a block. None may be empty.
const (
	maxSignatures = 16 // the limit of package evidence
	maxTimestamps = 1024
)

// appendRow appends a row's entry to a block.
func appendRow(b []byte, r *storage.Row) []byte {
	if r.Entry != nil {
		b = append(b, expired)
		b = appendBytes(b, r.Entry)
		return appendBytes(b, []byte(r.ExpiredBy))
	}
	if r.Counts.ActorSeq > 0 {
		b = binary.AppendUvarint(append(b, counted), uint64(r.Counts.ActorSeq))
		b = binary.AppendUvarint(b, uint64(r.Counts.SubjectSeq))
		if r.Counts.SubjectSeq > 0 {
			b = append(b, r.Counts.Subject[:]...)
		}
	} else {
		b = append(b, whole)
	}
	b = binary.AppendUvarint(b, uint64(r.Counts.ChainSeq))
	b = binary.AppendUvarint(b, uint64(r.Counts.CaseSeq))
	b = appendBytes(b, r.Payload)
	b = binary.AppendUvarint(b, uint64(len(r.Signatures)))
	for _, s := range r.Signatures {
		b = appendBytes(b, s)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Timestamps)))
	for _, t := range r.Timestamps {
		b = appendBytes(b, []byte(t.Kind))
		b = appendBytes(b, t.Token)
	}
	return b
}

func appendBytes(b, text []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(text)))
	return append(b, text...)
}

// parseBlock reads the n entries of a block, and returns an error for any bytes that appendRow would not write. The
// rows share the block's memory.
func parseBlock(block []byte, n int) ([]storage.Row, error) {
	p := parser{rest: block}
	rows := make([]storage.Row, n)
	for i := range rows {
		rows[i] = p.row()
		if p.err != nil {
			return nil, fmt.Errorf("record %d of the block: %w", i, p.err)
		}
	}
	if len(p.rest) > 0 {
		return nil, fmt.Errorf("%d bytes after the last record of the block", len(p.rest))
	}
	return rows, nil
}

// A parser reads until it finds an error.
type parser struct {
	rest []byte
	err  error
}

var errCutOff = errors.New("it is cut off")

func (p *parser) row() (r storage.Row) {
	if p.err == nil && len(p.rest) == 0 {
		p.err = errCutOff
	}
	if p.err != nil {
		return r
	}
	kind := p.rest[0]
	p.rest = p.rest[1:]
	switch kind {
	case whole:
		p.whole(&r)
	case counted:
		p.tags(&r)
		p.whole(&r)
	case expired:
		r.Entry, r.ExpiredBy = p.bytes(), string(p.bytes())
		if p.err == nil && (len(r.Entry) == 0 || r.ExpiredBy == "") {
			p.err = errors.New("it has expired, but lacks its act or its log entry")
		}
	default:
		p.err = fmt.Errorf("its kind is %d, want %d, %d or %d", kind, whole, expired, counted)
	}
	return r
}

// tags reads what the log counted of an actor and a subject.
func (p *parser) tags(r *storage.Row) {
	r.Counts.ActorSeq, r.Counts.SubjectSeq = p.count(operator.MaxEntries), p.count(operator.MaxEntries)
	if p.err == nil && r.Counts.ActorSeq == 0 {
		p.err = errors.New("it is counted as number 0 of its actor")
	}
	if p.err != nil || r.Counts.SubjectSeq == 0 {
		return
	}
	if len(p.rest) < len(r.Counts.Subject) {
		p.err = errCutOff
		return
	}
	copy(r.Counts.Subject[:], p.rest)
	if p.rest = p.rest[len(r.Counts.Subject):]; r.Counts.Subject.IsZero() {
		p.err = errors.New("its subject is zero")
	}
}

func (p *parser) whole(r *storage.Row) {
	r.Counts.ChainSeq, r.Counts.CaseSeq = p.count(operator.MaxEntries), p.count(operator.MaxEntries)
	if r.Payload = p.bytes(); p.err == nil && len(r.Payload) == 0 {
		p.err = errors.New("it has no payload")
	}
	for n := p.count(maxSignatures); n > 0 && p.err == nil; n-- {
		r.Signatures = append(r.Signatures, p.some("signature"))
	}
	for n := p.count(maxTimestamps); n > 0 && p.err == nil; n-- {
		r.Timestamps = append(r.Timestamps, evidence.Timestamp{Kind: evidence.TimestampKind(p.some("kind of time stamp")), Token: p.some("time stamp")})
	}
}

// some reads bytes, and sets an error if there are none.
func (p *parser) some(what string) []byte {
	b := p.bytes()
	if p.err == nil && len(b) == 0 {
		p.err = fmt.Errorf("it has an empty %s", what)
	}
	return b
}

// bytes reads a length and as many bytes.
func (p *parser) bytes() []byte {
	n := p.count(len(p.rest))
	if p.err == nil && n > int64(len(p.rest)) {
		p.err = errCutOff
	}
	if p.err != nil {
		return nil
	}
	text := p.rest[:n:n]
	p.rest = p.rest[n:]
	return text
}

// count reads a number in its shortest form, and sets an error if it is larger than most.
func (p *parser) count(most int) int64 {
	if p.err != nil {
		return 0
	}
	n, size := binary.Uvarint(p.rest)
	switch {
	case size <= 0:
		p.err = errCutOff
	case n > uint64(most):
		p.err = fmt.Errorf("its count is %d, want at most %d", n, most)
	case !bytes.Equal(binary.AppendUvarint(nil, n), p.rest[:size]):
		p.err = fmt.Errorf("the number %d is not in its shortest form", n)
	default:
		p.rest = p.rest[size:]
		return int64(n)
	}
	return 0
}
