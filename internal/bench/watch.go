package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"jurat/internal/schedule"
	"jurat/internal/trial"
	"net"
	"net/http"
	"time"
)

// Watch measures a trial with many watchers over WebSocket, alternating with the same trial without watchers. The watchers are in this
// process and connect over loopback. Each must get every event, in order.
func Watch(ctx context.Context, c Config) (*Report, error) {
	return run(c, "watch", func(c Config, dir string, r *Report) error {
		h, err := furnish(ctx, c, dir, "data")
		if err != nil {
			return err
		}
		r.Settings = Settings{Watchers: c.Watchers}
		return errors.Join(watched(ctx, c, h, r), h.Close())
	})
}

func watched(ctx context.Context, c Config, h *house, r *Report) error {
	if _, err := h.watch(ctx, c, 0); err != nil { // the first trial makes the keys
		return err
	}
	var without, with timings
	for begin := time.Now(); time.Since(begin) < c.Time || len(with) < 3; {
		alone, err := h.watch(ctx, c, 0)
		if err != nil {
			return err
		}
		together, err := h.watch(ctx, c, c.Watchers)
		if err != nil {
			return err
		}
		without, with = append(without, alone), append(with, together)
		c.Progress("trials watched", int64(min(time.Since(begin), c.Time)), int64(c.Time))
	}
	r.figure(fmt.Sprintf("time of a trial with %d watchers (median)", c.Watchers), "ms", float64(with.median().Microseconds())/1000,
		&Limit{"the same trial without watchers", float64(without.median().Microseconds()) / 1000})
	return nil
}

// watch holds a trial before this number of watchers, and returns how long it took from its first opening to its closing.
func (h *house) watch(ctx context.Context, c Config, watchers int) (took time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d, err := schedule.Open(ctx, schedule.Config{Ledger: h.Ledger, Keys: h.Keys, Locks: h.Locks(),
		Sit: func(string, int64) (trial.Config, error) { return deliberating(c.Delay), nil }})
	if err != nil {
		return 0, err
	}
	server, err := serve(ctx, d)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	on, err := aCase()
	if err != nil {
		return 0, err
	}
	id, err := d.Submit(ctx, schedule.Order{Case: on})
	if err != nil {
		return 0, err
	}
	ended := make(chan error, watchers)
	for range watchers {
		w, err := connect(ctx, server.Addr, "/"+id)
		if err != nil {
			return 0, err
		}
		defer w.close()
		go func() { ended <- w.toTheEnd() }()
	}
	conducted := make(chan struct{})
	go func() { defer close(conducted); d.Run(ctx) }()
	defer func() { cancel(); <-conducted }()
	events, err := d.Watch(ctx, id, 0)
	if err != nil {
		return 0, err
	}
	for _, err := range events.Frames {
		if err != nil {
			return 0, err
		}
	}
	for range watchers {
		if err := <-ended; err != nil {
			return 0, err
		}
	}
	records, err := h.Ledger.Chain(ctx, id)
	if err != nil {
		return 0, err
	}
	return records[len(records)-1].Payload.Time().Sub(records[1].Payload.Time()), nil
}

// serve serves trials over WebSocket on a free port.
func serve(ctx context.Context, d *schedule.Scheduler) (*http.Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Addr: listener.Addr().String(), ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The error is not lost: the watcher reports a missing event.
		_ = (schedule.Delivery{}).WebSocket(w, r, func(ctx context.Context) (*schedule.Watching, error) { return d.Watch(ctx, r.URL.Path[1:], 0) })
	})}
	go func() { _ = server.Serve(listener) }() // Close ends it
	return server, nil
}

// A watcher reads a WebSocket connection with minimal code of its own, so that the benchmark measures the server.
type watcher struct {
	conn net.Conn
	in   *bufio.Reader
}

func connect(ctx context.Context, addr, path string) (*watcher, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%w (each watcher takes two open files of this process)", err)
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", path, addr)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	in := bufio.NewReader(conn)
	answer, err := http.ReadResponse(in, nil)
	if err == nil && answer.StatusCode != http.StatusSwitchingProtocols {
		err = fmt.Errorf("the server answered %s", answer.Status)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &watcher{conn, in}, nil
}

func (w *watcher) close() { w.conn.Close() }

// toTheEnd reads a trial's events, and checks that all of them come in order.
func (w *watcher) toTheEnd() error {
	for seq := 1; ; seq++ {
		doc, err := w.frame()
		if err != nil {
			return fmt.Errorf("a watcher, after %d events: %w", seq-1, err)
		}
		if !bytes.Contains(doc, fmt.Appendf(nil, `"seq":%d,`, seq)) {
			return fmt.Errorf("a watcher's event %d is %.200s", seq, doc)
		}
		if bytes.Contains(doc, []byte(`"trial_closed"`)) {
			return nil
		}
	}
}

// frame reads an unmasked text frame in one piece (RFC 6455, section 5.2).
func (w *watcher) frame() ([]byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(w.in, head[:]); err != nil {
		return nil, err
	}
	if head[0] != 0x81 {
		return nil, fmt.Errorf("a frame that begins with %#x", head[0])
	}
	n := uint64(head[1])
	var err error
	switch n {
	case 126:
		var length uint16
		err = binary.Read(w.in, binary.BigEndian, &length)
		n = uint64(length)
	case 127:
		err = binary.Read(w.in, binary.BigEndian, &n)
	}
	if err != nil || n > 1<<20 {
		return nil, errors.Join(err, fmt.Errorf("a frame of %d bytes", n))
	}
	doc := make([]byte, n)
	_, err = io.ReadFull(w.in, doc)
	return doc, err
}
