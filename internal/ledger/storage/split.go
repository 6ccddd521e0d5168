package storage

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/evidence"
)

// The rest begins with a byte that says what the text is.
const (
	expiredText = 1 << iota // what the log hashed, instead of a payload
	shortText               // it has codes for words
)

// split splits what a row consists of into its text and the rest, which is mostly random. It leaves out what can be
// computed: the record's id, which the row has, and in tokens the hashes of the signatures and of what the token states.
func (w *words) split(row *Row) (text, rest []byte) {
	kind, text, tail := byte(expiredText), row.Entry, []byte(row.ExpiredBy)
	if row.Entry == nil {
		kind, tail = 0, binary.AppendUvarint(nil, uint64(len(row.Signatures)))
		for _, s := range row.Signatures {
			tail = appendBytes(tail, s)
		}
		signed, at := sha256.Sum256(bytes.Join(row.Signatures, nil)), 0
		for _, t := range row.Timestamps {
			says := statement(t.Token)
			stated, token := sha256.Sum256(says), t.Token
			tail = appendBytes(tail, []byte(t.Kind))
			if token, at = cut(token, stated[:]); !bytes.Equal(statement(token), says) {
				token, at = t.Token, 0 // join would compute another hash
			}
			tail = binary.AppendUvarint(tail, uint64(at))
			token, at = cut(token, signed[:])
			tail = binary.AppendUvarint(tail, uint64(at))
			tail = appendBytes(tail, token)
		}
		text, at = cut(row.Payload, []byte(row.RecordID))
		tail = append(binary.AppendUvarint(nil, uint64(at)), tail...)
	}
	text, raw, ok := w.shorten(text)
	if ok {
		kind |= shortText
	}
	return text, append(appendBytes([]byte{kind}, raw), tail...)
}

// join sets what split has split. The text has at most most bytes.
func (w *words) join(row *Row, text, rest []byte, most int) (err error) {
	p := parser{rest: rest}
	kind := p.count(expiredText | shortText)
	raw := p.bytes()
	if kind&shortText != 0 {
		if text, err = w.lengthen(text, raw, most); err != nil {
			return err
		}
	}
	if kind&expiredText != 0 {
		row.Entry, row.ExpiredBy = text, string(p.rest)
		if p.bad || len(text) == 0 {
			return errDamagedContent
		}
		return nil
	}
	payload := paste(&p, text, p.count(len(text)+1), []byte(row.RecordID))
	signatures, timestamps := [][]byte(nil), []evidence.Timestamp(nil)
	for n := p.count(maxSignatures); n > 0; n-- {
		signatures = append(signatures, p.bytes())
	}
	signed := sha256.Sum256(bytes.Join(signatures, nil))
	for len(p.rest) > 0 && !p.bad && len(timestamps) < maxTimestamps {
		kind, stated, imprint, token := p.bytes(), p.count(len(rest)), p.count(len(rest)), p.bytes()
		token = paste(&p, token, imprint, signed[:])
		sum := sha256.Sum256(statement(token))
		timestamps = append(timestamps, evidence.Timestamp{Kind: evidence.TimestampKind(kind), Token: paste(&p, token, stated, sum[:])})
	}
	if p.bad || len(p.rest) > 0 {
		return errDamagedContent
	}
	row.Payload, row.Signatures, row.Timestamps = payload, signatures, timestamps
	return nil
}

// cut removes the first occurrence of what from b, and returns its place, from 1 on, or 0.
func cut(b, what []byte) (left []byte, at int) {
	i := bytes.Index(b, what)
	if i < 0 || len(what) == 0 {
		return b, 0
	}
	return append(append(make([]byte, 0, len(b)), b[:i]...), b[i+len(what):]...), i + 1
}

// paste reverses cut.
func paste(p *parser, b []byte, at int, what []byte) []byte {
	if p.bad = p.bad || at > len(b)+1; p.bad || at == 0 {
		return b
	}
	return append(append(append(make([]byte, 0, len(b)+len(what)), b[:at-1]...), what...), b[at-1:]...)
}

// statement is what the signature of a time stamp token covers (RFC 3161, 2.4.2): the content of the first element after
// the name of its type. It returns nil for everything else.
func statement(token []byte) []byte {
	const name = "\x06\x0b\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x01\x04"
	_, after, _ := bytes.Cut(token, []byte(name))
	var explicit, content cryptobyte.String
	s := cryptobyte.String(after)
	if !s.ReadASN1(&explicit, asn1.Tag(0).ContextSpecific().Constructed()) || !explicit.ReadASN1(&content, asn1.OCTET_STRING) {
		return nil
	}
	return content
}

// A template is what the rest of every row has in common: the certificates and the structure of time stamp tokens. The
// rest is kept as its differences from it. zstd would take ten times as long for what is mostly random.
type template struct {
	text []byte
	at   [1 << 12]uint16 // places in text, from 1 on, by the hash of the window there
}

const window = 8 // a shorter match is not worth its place and length

func newTemplate(text []byte) *template {
	t := &template{text: text[:min(len(text), MaxDictionary-1)]}
	for i := range len(t.text) - window + 1 {
		t.at[slot(binary.LittleEndian.Uint64(t.text[i:]))] = uint16(i + 1)
	}
	return t
}

func slot(window uint64) uint64 { return window * 0x9e3779b97f4a7c15 >> 52 }

// diff returns b as its own bytes, after their number, and the places and lengths of what the template has, in turn.
func (t *template) diff(b []byte) (d []byte) {
	d = make([]byte, 0, len(b))
	own := 0 // where the bytes of its own begin
	for i := 0; i+window <= len(b); {
		p := int(t.at[slot(binary.LittleEndian.Uint64(b[i:]))]) - 1
		if p < 0 {
			i++
			continue
		}
		end := p
		for i < len(b) && end < len(t.text) && b[i] == t.text[end] {
			i, end = i+1, end+1
		}
		if end-p < window { // another window has the same hash
			i += p + 1 - end
			continue
		}
		begin := i - (end - p)
		for begin > own && p > 0 && b[begin-1] == t.text[p-1] {
			begin, p = begin-1, p-1
		}
		d = appendBytes(d, b[own:begin])
		d = binary.AppendUvarint(binary.AppendUvarint(d, uint64(p)), uint64(end-p))
		own = i
	}
	return appendBytes(d, b[own:])
}

// patch reverses diff. The result has at most most bytes.
func (t *template) patch(d []byte, most int) ([]byte, error) {
	p := parser{rest: d}
	b := make([]byte, 0, min(2*len(d), most))
	for {
		b = append(b, p.bytes()...)
		if p.bad || len(b) > most {
			return nil, errDamagedContent
		}
		if len(p.rest) == 0 {
			return b, nil
		}
		from := p.count(len(t.text))
		b = append(b, t.text[from:from+p.count(len(t.text)-from)]...)
	}
}
