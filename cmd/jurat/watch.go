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
	from io.Reader
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

func (w *watched) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.from.Read(p)
	w.read += int64(n)
	w.tell(w.read)
	return n, err
}
