package live_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jurat/internal/docket"
	"jurat/internal/installation"
	"jurat/internal/live"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
)

// BenchmarkWatchers holds a trial whose jurors and judge take 200 ms for an answer, in an installation on disk, once without anybody
// watching and once with a thousand WebSocket connections to it, in turn. Each watcher must get each event in order. Watchers and
// server share this process and its processors. x_unwatched is how much longer the watched trials took, in the median.
func BenchmarkWatchers(b *testing.B) {
	const watchers = 1000
	i, _, err := installation.OpenOrCreate(b.Context(), installation.Config{Dir: b.TempDir() + "/data"})
	if err != nil {
		b.Fatal(err)
	}
	defer i.Close()
	timeTrial(b, i, 0) // which makes the keys
	var alone, watched []time.Duration
	for b.Loop() {
		alone = append(alone, timeTrial(b, i, 0))
		watched = append(watched, timeTrial(b, i, watchers))
	}
	b.ReportMetric(float64(median(watched))/float64(median(alone)), "x_unwatched")
	b.ReportMetric(float64(median(alone).Milliseconds()), "ms_unwatched")
	b.ReportMetric(float64(median(watched).Milliseconds()), "ms_watched")
	b.ReportMetric(watchers, "watchers")
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func timeTrial(b *testing.B, i *installation.Installation, watchers int) time.Duration {
	b.Helper()
	d, err := docket.Open(b.Context(), docket.Config{Ledger: i.Ledger, Keys: i.Keys, Claim: i.Claim, Claimed: i.Claimed, Sit: deliberately})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		watch := func(ctx context.Context) (*docket.Watching, error) { return d.Watch(ctx, r.URL.Path[1:], 0) }
		if err := (live.Config{}).WebSocket(w, r, watch); err != nil {
			b.Error(err)
		}
	}))
	defer server.Close()
	id := submit(b, d)
	var watching sync.WaitGroup
	failed := make(chan error, watchers)
	for range watchers {
		c, err := handshake(server.Listener.Addr().String(), "/"+id)
		if err != nil {
			b.Fatal(err)
		}
		watching.Go(func() { failed <- watchTrial(c) })
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); d.Run(ctx) }()
	events, err := d.Watch(b.Context(), id, 0)
	if err != nil {
		b.Fatal(err)
	}
	for _, err := range events.Frames {
		if err != nil {
			b.Fatal(err)
		}
	}
	watching.Wait()
	for range watchers {
		if err := <-failed; err != nil {
			b.Fatal(err)
		}
	}
	cancel()
	<-ended
	records, err := i.Ledger.Chain(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return records[len(records)-1].Payload.Time().Sub(records[1].Payload.Time())
}

// deliberately seats jurattest's panel, each of whom takes 200 ms.
func deliberately(int64) (trial.Config, error) {
	jurors, judge := jurattest.Panel()
	for _, j := range append(slices.Clone(jurors), judge.(jury.Juror)) {
		j.(*jurattest.Juror).Delay = 200 * time.Millisecond
	}
	return trial.Config{Settings: jurattest.Settings(jury.FinalJudge), Jurors: jurors, Judge: judge}, nil
}

// handshake begins a WebSocket connection. The reader below is a few lines, so that what is measured is the server.
func handshake(addr, path string) (*bufio.Reader, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", path, addr)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReader(c)
	answer, err := http.ReadResponse(in, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		return nil, fmt.Errorf("%v: %v", answer, err)
	}
	return in, nil
}

// watchTrial reads a trial's events to the end, and closes nothing: the server does.
func watchTrial(in *bufio.Reader) error {
	for seq := 1; ; seq++ {
		doc, err := readFrame(in)
		if err != nil {
			return fmt.Errorf("after %d events: %w", seq-1, err)
		}
		if !bytes.Contains(doc, fmt.Appendf(nil, `"seq":%d,`, seq)) {
			return fmt.Errorf("event %d is %s", seq, doc)
		}
		if strings.Contains(string(doc), `"trial_closed"`) {
			return nil
		}
	}
}

// readFrame reads an unmasked text frame in one piece (RFC 6455, section 5.2).
func readFrame(in *bufio.Reader) ([]byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	if head[0] != 0x81 {
		return nil, fmt.Errorf("a frame that begins with %#x", head[0])
	}
	n := uint64(head[1])
	switch n {
	case 126:
		var length [2]byte
		if _, err := io.ReadFull(in, length[:]); err != nil {
			return nil, err
		}
		n = uint64(binary.BigEndian.Uint16(length[:]))
	case 127:
		var length [8]byte
		if _, err := io.ReadFull(in, length[:]); err != nil {
			return nil, err
		}
		n = binary.BigEndian.Uint64(length[:])
	}
	doc := make([]byte, n)
	_, err := io.ReadFull(in, doc)
	return doc, err
}
