package filestore

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/bits"
	"os"
	"slices"
	"unicode"
	"unicode/utf8"

	"jurat/internal/atomicfile"
)

// A pack is a file that holds many small files. New ones are only added at its end:
//
//	magic (16 bytes), id of the pack (16)
//	for each file: checksum of the pack's id, the lengths and the name (4), state (1), length of the name (2), length of the content (4),
//	name, content
//
// A file is overwritten or voided where it is, by any process. So an offset that was found once stays right, unless its process took back
// what it could not add: then another name is there, or none.
//
// If the head of a file is damaged, its length is unknown. Reading then goes on at the next head whose checksum holds. Nobody can make a content
// pass for a head: the id is random, nobody but the operator's account can read it, and a text is encrypted before it is kept.
type pack struct {
	names  string // that all names in it begin with
	id     []byte
	noHead bool // what is before the first file is damaged
	file   *os.File
	size   int64
	text   []byte // what add writes next, kept for its room
}

const (
	magic     = "jurat files v1\n\n"
	idSize    = 16
	packHead  = int64(len(magic) + idSize)
	entryHead = 11

	// joined is up to which size contents are written together with others.
	joined = 64 << 10
)

// The states of a file in a pack.
const (
	isThere byte = 0xff
	isVoid  byte = 0
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Damage is a stretch of a pack that cannot be read. What follows it can. It wraps ErrDamaged.
type Damage struct {
	Pack     string // its path
	From, To int64  // offsets
}

// Error implements error.
func (d *Damage) Error() string {
	return fmt.Sprintf("%s: bytes %d to %d are damaged, and what was in them cannot be read: restore it from a copy", d.Pack, d.From, d.To)
}

// Unwrap returns ErrDamaged.
func (d *Damage) Unwrap() error { return ErrDamaged }

// has reports whether a name stands in the damaged bytes.
func (d *Damage) has(name string) (bool, error) {
	file, err := os.Open(d.Pack)
	if err != nil {
		return false, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	stretch := make([]byte, d.To-d.From)
	_, err = file.ReadAt(stretch, d.From)
	return bytes.Contains(stretch, []byte(name)), unlessEnd(err)
}

// createPack makes an empty pack, durably but for the names of the folders above.
func createPack(folder, names string) (p *pack, id string, err error) {
	head := make([]byte, packHead)
	copy(head, magic)
	rand.Read(head[len(magic):]) // never fails
	id = hex.EncodeToString(head[len(magic):])
	name := packFile(folder, id)
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, "", err
	}
	_, err = file.Write(head)
	if err = errors.Join(err, file.Sync(), atomicfile.SyncFolders(folder, folder)); err != nil {
		return nil, "", errors.Join(err, file.Close(), os.Remove(name))
	}
	return &pack{names: names, id: head[len(magic):], file: file, size: packHead}, id, nil
}

// openPack opens a pack that may be another process's. If its head is not whole, nothing is in it: its size is 0.
func openPack(folder, names, id string, flag int) (*pack, error) {
	file, err := os.OpenFile(packFile(folder, id), flag, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	head := make([]byte, packHead)
	switch _, err := file.ReadAt(head, 0); {
	case errors.Is(err, io.EOF):
		return &pack{file: file}, nil
	case err != nil:
		return nil, errors.Join(err, file.Close())
	case info.Size() == packHead && bytes.Equal(head, make([]byte, packHead)): // the length was durable before the bytes were
		return &pack{file: file}, nil
	}
	p := &pack{names: names, id: head[len(magic):], file: file, size: info.Size()}
	if string(head) == magic+string(idOfPack(id)) {
		return p, nil
	}
	if err := p.identify(head, id); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return p, nil
}

// idOfPack returns the id that stands in the name of a pack's file, or nil.
func idOfPack(id string) []byte {
	text, err := hex.DecodeString(id)
	if err != nil || len(text) != idSize {
		return nil
	}
	return text
}

// identify finds the id of a pack whose head is not what its file's name says: the one under which there are files. Someone may have renamed the
// file, or the head is damaged.
func (p *pack) identify(head []byte, id string) error {
	whole := bytes.HasPrefix(head, []byte(magic))
	for _, p.id = range [][]byte{idOfPack(id), head[len(magic):]} {
		at, err := p.nextAfter(packHead - 1)
		if err != nil {
			return err
		}
		if at != 0 {
			p.noHead = !whole || !bytes.Equal(p.id, head[len(magic):])
			return nil
		}
	}
	if !whole {
		return fmt.Errorf("%s: %w: this is no pack of files, or one of a later version", p.file.Name(), ErrDamaged)
	}
	return nil
}

// add writes files at the end. After an error, part of them may be there.
func (p *pack) add(files []File) error {
	p.text = p.text[:0]
	for _, file := range files {
		p.text = p.appendEntry(p.text, file.Name, len(file.Content))
		var alone []byte
		if len(file.Content) <= joined {
			p.text = append(p.text, file.Content...)
		} else {
			alone = file.Content
		}
		if alone != nil || len(p.text) >= 4*joined {
			if err := p.flush(alone); err != nil {
				return err
			}
		}
	}
	return p.flush(nil)
}

// flush writes what add has joined, and then more.
func (p *pack) flush(more []byte) error {
	for _, part := range [][]byte{p.text, more} {
		if _, err := p.file.WriteAt(part, p.size); err != nil {
			return err
		}
		p.size += int64(len(part))
	}
	clear(p.text) // it may have keys
	p.text = p.text[:0]
	return nil
}

// appendEntry appends what is before a content.
func (p *pack) appendEntry(text []byte, name string, length int) []byte {
	begin := len(text)
	text = append(text, make([]byte, entryHead)...)
	text = append(text, name...)
	e := text[begin:]
	e[4] = isThere
	binary.BigEndian.PutUint16(e[5:], uint16(len(name)))
	binary.BigEndian.PutUint32(e[7:], uint32(length))
	binary.BigEndian.PutUint32(e, p.sum(e))
	return text
}

// sum is the checksum of an entry's head: of all but the state, which changes.
func (p *pack) sum(e []byte) uint32 {
	return crc32.Update(crc32.Checksum(p.id, castagnoli), castagnoli, e[5:])
}

// A packed is a file in a pack.
type packed struct {
	name   string
	at     int64 // of its entry
	length int   // of its content
	void   bool
}

func (e packed) content() int64 { return e.at + int64(entryHead+len(e.name)) }
func (e packed) end() int64     { return e.content() + int64(e.length) }

// each calls found for each file from an offset on, and lost for each stretch that cannot be read. It returns where what can be read ends. What follows
// is what a crash left half added, or nothing, or lost was called for it.
func (p *pack) each(from int64, found func(e packed) error, lost func(d *Damage)) (int64, error) {
	if p.noHead && from <= packHead {
		lost(&Damage{p.file.Name(), 0, packHead})
	}
	for at := max(from, packHead); ; {
		end, err := p.run(at, found)
		if err != nil || end == p.size {
			return end, err
		}
		if at, err = p.nextAfter(end); err != nil {
			return end, err
		}
		if at == 0 {
			r, err := p.restAt(end)
			if r == isDamaged {
				lost(&Damage{p.file.Name(), end, p.size})
			}
			return end, err
		}
		lost(&Damage{p.file.Name(), end, at})
	}
}

// A rest is what follows the last file that can be read.
type rest int

const (
	isCut     rest = iota // a crash left it half added: no whole file was there
	isUnclear             // a crash may have left it, or it is a damaged file
	isDamaged             // no crash leaves such a thing, if bytes reach the disk in their order
)

// restAt says what begins at an offset where no file can be read, if none follows.
func (p *pack) restAt(at int64) (rest, error) {
	text := make([]byte, max(0, min(p.size-at, entryHead+maxName)))
	n, err := p.file.ReadAt(text, at)
	if err = unlessEnd(err); err != nil || n <= entryHead+len(p.names) { // a whole file is longer
		return isCut, err
	}
	text = text[:n]
	if e, err := p.next(bytes.NewReader(text), at, make([]byte, entryHead, 256)); e != nil || err != nil {
		return isCut, err // only its content is not all there
	}
	text = bytes.TrimRight(text, "\x00") // the length may have been durable before the bytes were
	if len(text) < entryHead {
		return isUnclear, nil
	}
	name := text[entryHead:]
	if len(name) >= int(binary.BigEndian.Uint16(text[5:])) || text[4] != isThere || !mayBegin(name, p.names) || p.wouldEnd(text, p.size-at) {
		return isDamaged, nil
	}
	return isUnclear, nil // the end of the name is not there, or its length is damaged
}

// mayBegin reports whether bytes may be the beginning of a name. A content hardly passes for one: it is encrypted.
func mayBegin(name []byte, names string) bool {
	common := min(len(name), len(names))
	return string(name[:common]) == names[:common] && !bytes.ContainsFunc(name[:max(0, len(name)-utf8.UTFMax)], func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) })
}

// wouldEnd reports whether an entry would be whole and end where the pack ends if the length of its name were another.
func (p *pack) wouldEnd(text []byte, size int64) bool {
	n := size - entryHead - int64(binary.BigEndian.Uint32(text[7:]))
	if n <= 0 || n > int64(len(text)-entryHead) {
		return false
	}
	other := bytes.Clone(text[:entryHead+n])
	binary.BigEndian.PutUint16(other[5:], uint16(n))
	return binary.BigEndian.Uint32(other) == p.sum(other)
}

// run calls found for each file from an offset on, up to the first place without one, and returns that place.
func (p *pack) run(at int64, found func(e packed) error) (int64, error) {
	in := bufio.NewReaderSize(io.NewSectionReader(p.file, at, max(0, p.size-at)), 256<<10)
	head := make([]byte, entryHead, 256)
	for {
		e, err := p.next(in, at, head)
		if err != nil || e == nil || e.end() > p.size {
			return at, err
		}
		if err := found(*e); err != nil {
			return at, err
		}
		if _, err := in.Discard(e.length); err != nil {
			return at, err
		}
		at = e.end()
	}
}

// nextAfter returns where the first file after an offset begins, or 0 if there is none. It looks for what all names begin with.
func (p *pack) nextAfter(at int64) (int64, error) {
	names := []byte(p.names)
	window := make([]byte, 256<<10)
	for from := at + 1 + entryHead; from < p.size; from += int64(len(window) - len(names) + 1) {
		n, err := p.file.ReadAt(window[:min(int64(len(window)), p.size-from)], from)
		if unlessEnd(err) != nil {
			return 0, err
		}
		for i := 0; ; i++ {
			next := bytes.Index(window[i:n], names)
			if next < 0 {
				break
			}
			i += next
			e, err := p.entryAt(from + int64(i) - entryHead)
			if err != nil {
				return 0, err
			}
			if e != nil && fs.ValidPath(e.name) {
				return e.at, nil
			}
		}
	}
	return 0, nil
}

// next reads the head of the entry at an offset. It returns nil if there is none.
func (p *pack) next(in io.Reader, at int64, head []byte) (*packed, error) {
	head = head[:entryHead]
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, unlessEnd(err)
	}
	n := int(binary.BigEndian.Uint16(head[5:]))
	head = append(head, make([]byte, n)...)
	if _, err := io.ReadFull(in, head[entryHead:]); err != nil {
		return nil, unlessEnd(err)
	}
	if binary.BigEndian.Uint32(head) != p.sum(head) {
		return nil, nil
	}
	return &packed{string(head[entryHead:]), at, int(binary.BigEndian.Uint32(head[7:])), nearer(head[4]) == isVoid}, nil
}

// nearer returns the state that a byte was, if few of its bits were changed: no checksum protects it.
func nearer(state byte) byte {
	if bits.OnesCount8(state) < 4 {
		return isVoid
	}
	return isThere
}

func unlessEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// entryAt returns the entry at an offset, or nil if there is none.
func (p *pack) entryAt(at int64) (*packed, error) {
	e, err := p.next(io.NewSectionReader(p.file, at, max(0, p.size-at)), at, make([]byte, entryHead, 256))
	if err != nil || e == nil || e.end() > p.size {
		return nil, err
	}
	return e, nil
}

// read returns the content of a file.
func (p *pack) read(e *packed) ([]byte, error) {
	content := make([]byte, e.length)
	_, err := p.file.ReadAt(content, e.content())
	return content, err
}

// overwrite replaces the beginning of a file's content where it is.
func (p *pack) overwrite(e *packed, beginning []byte) error {
	if _, err := p.file.WriteAt(beginning, e.content()); err != nil {
		return err
	}
	return p.file.Sync()
}

// void destroys a file where it is, and gives back the room of its content. It can be repeated after a crash. The room is given back last: what stands there is zeros,
// durably, before and after it, so a crash at any moment changes nothing that is read.
func (p *pack) void(e *packed) error {
	if err := p.zero(e); err != nil {
		return err
	}
	if _, err := p.file.WriteAt([]byte{isVoid}, e.at+4); err != nil {
		return err
	}
	if err := p.file.Sync(); err != nil {
		return err
	}
	return atomicfile.Free(p.file, e.content(), int64(e.length))
}

// zero writes zeros over a content. Where the room was given back, a full disk has none for them, and nothing is to be written.
func (p *pack) zero(e *packed) error {
	_, err := p.file.WriteAt(make([]byte, e.length), e.content())
	if err == nil || !e.void {
		return err
	}
	content, unread := p.read(e)
	if unread != nil || slices.ContainsFunc(content, func(b byte) bool { return b != 0 }) {
		return errors.Join(err, unread)
	}
	return nil
}
