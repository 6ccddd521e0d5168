package main

import (
	"io"
	"sync/atomic"
	"time"
)

const (
	heldLines = 4096            // of a log that wait to be written
	lastLines = 2 * time.Second // for them to be written when the program ends
)

// lossyWriter is a writer that never blocks its callers. A log's reader may have stopped reading, and a full pipe would then stop every
// request. It drops lines for which it has no room, and counts them. It is safe for concurrent use.
type lossyWriter struct {
	to    io.Writer
	lines chan item
	lost  atomic.Int64
	note  func(to io.Writer, lost int64) // writes how many lines were left out
}

// item is a line, or a caller that waits until all earlier lines are written.
type item struct {
	line    []byte
	written chan struct{}
}

func newLossyWriter(to io.Writer, note func(to io.Writer, lost int64)) *lossyWriter {
	p := &lossyWriter{to: to, lines: make(chan item, heldLines), note: note}
	go p.run() // as long as the process: a write that hangs cannot be ended
	return p
}

func (p *lossyWriter) run() {
	for next := range p.lines {
		if next.written != nil {
			close(next.written)
			continue
		}
		_, _ = p.to.Write(next.line) // the log's reader is gone, so there is no one to tell
		if lost := p.lost.Swap(0); lost > 0 {
			p.note(p.to, lost)
		}
	}
}

// Write implements io.Writer. It never fails and never waits.
func (p *lossyWriter) Write(line []byte) (int, error) {
	select {
	case p.lines <- item{line: append([]byte(nil), line...)}:
	default:
		p.lost.Add(1)
	}
	return len(line), nil
}

// flush waits until what was written is out, for as long as that may take.
func (p *lossyWriter) flush() {
	late := time.After(lastLines)
	written := make(chan struct{})
	select {
	case p.lines <- item{written: written}:
	case <-late:
		return
	}
	select {
	case <-written:
	case <-late:
	}
}
