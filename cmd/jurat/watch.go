package main

import (
	"context"
	"fmt"
	"io"
	"os"
)

// watched is a file that is read until the program is to end, and that tells how far it is read.
type watched struct {
	ctx  context.Context
	from io.ReadSeeker
	read int64
	tell func(read int64)
}

// watch tells on stderr how much of a large file is done.
func watch(ctx context.Context, out stdio, file *os.File) io.Reader {
	w := &watched{ctx: ctx, from: file, tell: func(int64) {}}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		tell := progress(out, fmt.Sprintf("%s: KiB verified", file.Name()))
		w.tell = func(read int64) { tell(read>>10, info.Size()>>10) }
	}
	return w
}

// Seek goes to another place, as is done where a file is looked through before it is read.
func (w *watched) Seek(offset int64, whence int) (int64, error) {
	at, err := w.from.Seek(offset, whence)
	if err == nil {
		w.read = at
	}
	return at, err
}

func (w *watched) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.from.Read(p)
	w.read += int64(n)
	w.tell(w.read)
	return n, err
}
