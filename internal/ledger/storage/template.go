package storage

import "encoding/binary"

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
