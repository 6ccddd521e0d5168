package relay

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"jurat/internal/tap/traffic"
)

// A spool keeps copies of bodies while their calls last, within limits for all of them together.
type spool struct {
	folder               string
	perBody, memory, cap int64 // what one may hold in memory, and all in memory and in all
	inMemory, held       atomic.Int64

	mu      sync.Mutex       // held while what is held changes
	callers map[string]int64 // what the copies of each caller hold
}

// mostInMemory is how much all bodies may hold in memory together. Beyond, they go to files at once.
const mostInMemory = 64 << 20

func (s *spool) full() bool { return s.held.Load() >= s.cap }

// share is how many times as much as is free the copies of one caller may hold. So one that fills the spool leaves a fifth of it to others.
const share = 4

// take gives a caller room, unless all copies, or its own where so much is free, would hold too much.
func (s *spool) take(caller string, n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch free := s.cap - s.held.Load() - n; {
	case caller != "" && s.callers[caller]+n > share*free:
		return fmt.Errorf("%w: the copies of one caller may hold at most %d times what is free of %d bytes", ErrSpoolFull, share, s.cap)
	case free < 0:
		return fmt.Errorf("%w: all copies together may hold %d bytes", ErrSpoolFull, s.cap)
	}
	s.held.Add(n)
	if s.callers == nil {
		s.callers = map[string]int64{}
	}
	s.callers[caller] += n
	return nil
}

func (s *spool) give(caller string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held.Add(-n)
	if left := s.callers[caller] - n; left > 0 {
		s.callers[caller] = left
	} else {
		delete(s.callers, caller)
	}
}

func (s *spool) toMemory(n int64) bool {
	if s.inMemory.Add(n) <= s.memory {
		return true
	}
	s.inMemory.Add(-n)
	return false
}

// A Body is the copy of a body. Its exported fields are set when the body has ended. A witness may read it from many goroutines.
type Body struct {
	Bytes  int64    // how many passed
	SHA256 [32]byte // of what passed
	// Kept counts the bytes from the beginning that the copy has.
	Kept int64
	// Partial is set in open mode if there was no room for the whole copy. Of a partial request, Bytes and SHA256 are about the copy
	// alone, since the rest passes unseen.
	Partial bool
	// Apart is set if nothing is kept, since the messages in it are calls of their own.
	Apart bool
	// Encoding is the body's Content-Encoding, in lower case; empty if there is none.
	Encoding string

	maxDecoded int64
	spool      *spool
	name       string
	caller     string // whose room it takes; "": it is not told apart

	mu     sync.Mutex // held while the following is used
	n      int64      // what passed so far
	kept   int64
	hash   hash.Hash
	memory []byte
	file   *os.File // holds the whole copy, once it is there
	hidden bool     // the file is encrypted
	block  cipher.Block
	lost   error // why nothing more is kept
}

func (s *spool) body(name, encoding string, maxDecoded int64) *Body {
	return &Body{spool: s, name: name, Encoding: encoding, maxDecoded: maxDecoded, hash: sha256.New()}
}

// response is the copy of an answer. The name of its file says how it is encoded, for Left.
func (s *spool) response(id, encoding string, maxDecoded int64) *Body {
	return s.body(id+responseFile+suffixOf(encoding), encoding, maxDecoded)
}

const mostDecoded = 64 << 20

const (
	responseFile = ".response"

	// unnamed stands for an encoding that can be in no file's name.
	unnamed = "unknown"
)

var nameable = regexp.MustCompile(`^[a-z0-9-]+(,[a-z0-9-]+)*$`)

func suffixOf(encoding string) string {
	encoding = strings.ReplaceAll(encoding, " ", "")
	switch {
	case encoding == "":
		return ""
	case len(encoding) > 40 || !nameable.MatchString(encoding):
		encoding = unnamed
	}
	return "." + encoding
}

// Left opens the copy of an answer that a process that died has left in its spool, as far as it was on disk. The caller closes it with done. The error
// wraps fs.ErrNotExist if there is none.
func Left(spool, id string) (b *Body, done func() error, err error) {
	files, err := os.ReadDir(spool)
	if err != nil {
		return nil, nil, err
	}
	at := slices.IndexFunc(files, func(f fs.DirEntry) bool { return strings.HasPrefix(f.Name(), id+responseFile) })
	if at < 0 {
		return nil, nil, fs.ErrNotExist
	}
	file, err := os.Open(filepath.Join(spool, files[at].Name()))
	if err != nil {
		return nil, nil, err
	}
	encoding := strings.TrimPrefix(strings.TrimPrefix(files[at].Name(), id+responseFile), ".")
	b = &Body{Encoding: encoding, maxDecoded: mostDecoded, file: file}
	sum := sha256.New()
	b.Bytes, err = io.Copy(sum, file)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	b.Kept = b.Bytes
	sum.Sum(b.SHA256[:0])
	return b, file.Close, nil
}

// request is the copy of a request. No other process reads it, and it may have secrets; so it is in no file in clear.
func (s *spool) request(id, encoding string, maxDecoded int64) *Body {
	b := s.body(id+".request", encoding, maxDecoded)
	b.hidden = true
	return b
}

// crossed encrypts or decrypts what stands at an offset. The key is for this file alone, and each byte is written once.
func (b *Body) crossed(p []byte, at int64) []byte {
	if b.block == nil {
		return p
	}
	var counter [aes.BlockSize]byte
	binary.BigEndian.PutUint64(counter[8:], uint64(at/aes.BlockSize))
	skip := at % aes.BlockSize
	out := append(make([]byte, skip, skip+int64(len(p))), p...)
	cipher.NewCTR(b.block, counter[:]).XORKeyStream(out, out)
	return out[skip:]
}

// Write counts what passed and keeps a copy of it. After an error, the copy stays as it is.
func (b *Body) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n += int64(len(p))
	b.hash.Write(p)
	if b.lost != nil {
		return 0, b.lost
	}
	if b.lost = b.keep(p); b.lost != nil {
		return 0, b.lost
	}
	b.kept += int64(len(p))
	return len(p), nil
}

func (b *Body) keep(p []byte) error {
	n := int64(len(p))
	if err := b.spool.take(b.caller, n); err != nil {
		return err
	}
	err := b.store(p)
	if err != nil {
		b.spool.give(b.caller, n)
	}
	return err
}

func (b *Body) store(p []byte) error {
	if b.file == nil && int64(len(b.memory)+len(p)) <= b.spool.perBody && b.spool.toMemory(int64(len(p))) {
		b.memory = append(b.memory, p...)
		return nil
	}
	if b.file == nil {
		if err := b.toFile(); err != nil {
			return err
		}
	}
	if _, err := b.file.WriteAt(b.crossed(p, b.kept), b.kept); err != nil {
		return fmt.Errorf("writing the copy of a body: %w", err)
	}
	return nil
}

func (b *Body) toFile() (err error) {
	if b.hidden { // under a key that is gone with the process
		key := make([]byte, 32)
		rand.Read(key)
		if b.block, err = aes.NewCipher(key); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(filepath.Join(b.spool.folder, b.name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("making a file for the copy of a body: %w", err)
	}
	if _, err := file.WriteAt(b.crossed(b.memory, 0), 0); err != nil {
		return errors.Join(fmt.Errorf("writing the copy of a body: %w", err), file.Close(), os.Remove(file.Name()))
	}
	b.spool.inMemory.Add(-int64(len(b.memory)))
	b.file, b.memory = file, nil
	return nil
}

func (b *Body) seal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hash.Sum(b.SHA256[:0])
	b.Bytes, b.Kept, b.Partial = b.n, b.kept, b.lost != nil
}

// apart gives the copy back, and counts what follows.
func (b *Body) apart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.Apart {
		b.Apart = true
		b.lost = errors.Join(errApart, b.empty())
	}
}

var errApart = errors.New("its messages are kept apart")

// release gives the copy's memory and file back. Reading it then fails.
func (b *Body) release() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if errors.Is(b.lost, os.ErrClosed) {
		return nil
	}
	b.lost = os.ErrClosed
	return b.empty()
}

func (b *Body) empty() error {
	b.spool.give(b.caller, b.kept)
	b.spool.inMemory.Add(-int64(len(b.memory)))
	file := b.file
	if b.memory, b.file, b.kept = nil, nil, 0; file == nil {
		return nil
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// ReadAt reads from the copy.
func (b *Body) ReadAt(p []byte, at int64) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case errors.Is(b.lost, os.ErrClosed):
		return 0, fmt.Errorf("the copy of a body is read after the end of its call: %w", os.ErrClosed)
	case b.file != nil:
		n, err := b.file.ReadAt(p, at)
		copy(p, b.crossed(p[:n], at))
		return n, err
	}
	return bytes.NewReader(b.memory).ReadAt(p, at)
}

// Open reads the copy from its beginning. A body in memory is a *bytes.Reader: net/http sends the header of a request together with it, and for others in a
// packet of its own.
func (b *Body) Open() io.Reader {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == nil && int64(len(b.memory)) == b.Kept {
		return bytes.NewReader(b.memory)
	}
	return io.NewSectionReader(b, 0, b.Kept)
}

// read copies a body into b, until it ends or there is no more room. It returns what was read and not kept.
func (b *Body) read(src io.Reader) (left []byte, err error) {
	buf := make([]byte, 16<<10)
	defer clear(buf) // it may have secrets
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if _, lost := b.Write(buf[:n]); lost != nil {
				return bytes.Clone(buf[:n]), lost
			}
		}
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errReading, err)
		}
	}
}

var errReading = errors.New("reading the body of the request")

// Decoded reads the copy without its encoding. Reading fails with ErrRefused when the decoded body is too large.
func (b *Body) Decoded() (io.ReadCloser, error) {
	return traffic.Decode(b.Encoding, b.Open(), b.maxDecoded)
}
