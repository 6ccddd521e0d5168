//go:build unix

package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/examples"
	"jurat/internal/court/schedule"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/test/must"
	"jurat/jury"
)

// delay is how long the slowest juror takes.
const delay = 200 * time.Millisecond

// BenchmarkTrial holds eight trials at a time, whose jurors take a fixed time to answer. The limit is the slowest jurors' answers, one after the other: the rest
// is what this program adds.
func BenchmarkTrial(b *testing.B) {
	h := furnish(b)
	on := aCase(b)
	config := deliberating()
	config.Ledger, config.Keys, config.Locks = h.Ledger, h.Keys, h.Locks
	var mu sync.Mutex
	var took, ideal time.Duration
	one := func(ctx context.Context) error {
		t, err := trial.Run(ctx, config, on)
		if err != nil {
			return err
		}
		if t.Result.Degraded {
			return fmt.Errorf("trial %s is degraded", t.ID)
		}
		mu.Lock()
		defer mu.Unlock()
		took += t.Records[len(t.Records)-1].Payload.Time().Sub(t.Records[0].Payload.Time())
		for _, r := range t.Records {
			if r.Payload.ActionType == evidence.PhaseOpening {
				ideal += delay
			}
		}
		return nil
	}
	must.Do(b, one(b.Context())) // the first trial makes the keys
	took, ideal = 0, 0
	var all meter
	for b.Loop() {
		all.during(b, 2*time.Second, 8, one)
	}
	of(b, "ms/trial", microseconds(took)/1000/float64(all.n), microseconds(ideal)/1000/float64(all.n))
	b.ReportMetric(all.cpu()/1000, "cpu-ms/trial")
}

func aCase(b *testing.B) *subject.Case {
	b.Helper()
	card, conversation, err := examples.Read(examples.Names()[0])
	must.Do(b, err)
	on := must.Get(subject.New(card, conversation))(b)
	return on
}

// deliberating returns a jury of three: one juror takes the full time, one half of it, one a quarter. The judge takes the full time.
func deliberating() trial.Config {
	judge := seat("judge")
	config := trial.Config{Judge: thinker(delay), Settings: jury.Settings{Judge: &judge, Rubric: jury.DefaultRubric(), Collaborative: true, MaxRounds: 1, Threshold: 2, Method: jury.FinalJudge}}
	for i, id := range []string{"slow", "middle", "fast"} {
		config.Settings.Seats = append(config.Settings.Seats, seat(id))
		config.Jurors = append(config.Jurors, thinker(delay>>i))
	}
	return config
}

func seat(id string) jury.Seat {
	return jury.Seat{JurorID: id, RoleName: id, RoleFocus: "a benchmark", Provider: "benchmark", Model: "none", Parameters: jsontext.Value("{}"), Template: evidence.DigestOf([]byte("benchmark"))}
}

// A thinker is a juror that waits, and always gives the same answer.
type thinker time.Duration

// Answer implements jury.Juror.
func (t thinker) Answer(ctx context.Context, _ jury.Brief) (jury.Answer, error) {
	select {
	case <-time.After(time.Duration(t)):
	case <-ctx.Done():
		return jury.Answer{}, ctx.Err()
	}
	o := jury.Opinion{Position: jury.SafePass, AxisScores: jury.Scores{}, Confidence: 0.8, Findings: []jury.Finding{}, Rationale: "Nobody has read anything. " + strings.Repeat("Nothing was found. ", 20)}
	for _, axis := range jury.DefaultRubric() {
		o.AxisScores[axis.ID] = axis.Max * 85 / 100
		o.TotalScore += o.AxisScores[axis.ID]
	}
	return jury.Answer{Opinion: o, Origin: jury.Origin{Model: "none", ModelVersion: "1"}, Speech: jury.Speech{Statement: "I stay with what I said.", Position: jury.SafePass, Reasoning: "Nothing new was said."}}, nil
}

// BenchmarkWatch holds a trial before a thousand watchers over WebSocket, in this process. Its limit is the same trial without them, in turn. Each must get every
// event, in order.
func BenchmarkWatch(b *testing.B) {
	h := furnish(b)
	h.watched(b, 0) // the first trial makes the keys
	var without, with timings
	for b.Loop() {
		without = append(without, h.watched(b, 0))
		with = append(with, h.watched(b, 1000))
	}
	of(b, "ms/trial", with.median()/1000, without.median()/1000)
}

// watched holds a trial before this number of watchers, and returns how long it took from its first opening to its closing.
func (h *house) watched(b *testing.B, watchers int) time.Duration {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	d := must.Get(schedule.Open(ctx, schedule.Config{Ledger: h.Ledger, Keys: h.Keys, Locks: h.Locks, Sit: func(*subject.Case, int64) trial.Config { return deliberating() }}))(b)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = (schedule.Delivery{}).WebSocket(w, r, func(ctx context.Context) (*schedule.Watching, error) { return d.Watch(ctx, r.URL.Path[1:], 0) }) // its watcher misses an event
	}))
	defer server.Close()
	id := must.Get(d.Submit(ctx, schedule.Order{Case: aCase(b)}))(b)
	ended := make(chan error, watchers)
	for range watchers {
		conn := must.Get(net.Dial("tcp", server.Listener.Addr().String()))(b)
		defer conn.Close()
		go func() { ended <- watch(conn, id) }()
	}
	conducted := make(chan struct{})
	go func() { defer close(conducted); d.Run(ctx) }()
	defer func() { cancel(); <-conducted }()
	events := must.Get(d.Watch(ctx, id, 0))(b)
	for _, err := range events.Frames {
		must.Do(b, err)
	}
	for range watchers {
		must.Do(b, <-ended)
	}
	records := must.Get(h.Ledger.Chain(ctx, id))(b)
	return records[len(records)-1].Payload.Time().Sub(records[1].Payload.Time())
}

// watch reads a trial's events over WebSocket (RFC 6455, section 5.2) with little code of its own, so that the benchmark measures the server.
func watch(conn net.Conn, id string) error {
	if _, err := fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", id); err != nil {
		return err
	}
	var head [4]byte
	for last := [4]byte{}; last != [4]byte{'\r', '\n', '\r', '\n'}; last = [4]byte{last[1], last[2], last[3], head[0]} {
		if _, err := io.ReadFull(conn, head[:1]); err != nil {
			return err
		}
	}
	for seq := 1; ; seq++ {
		if _, err := io.ReadFull(conn, head[:2]); err != nil || head[0] != 0x81 {
			return fmt.Errorf("after %d events: a frame %#x, %w", seq-1, head[0], err)
		}
		n := uint16(head[1])
		if n == 126 {
			if err := binary.Read(conn, binary.BigEndian, &n); err != nil {
				return err
			}
		}
		doc := make([]byte, n)
		if _, err := io.ReadFull(conn, doc); err != nil || !bytes.Contains(doc, fmt.Appendf(nil, `"seq":%d,`, seq)) {
			return fmt.Errorf("event %d is %.200s, %w", seq, doc, err)
		}
		if bytes.Contains(doc, []byte(`"trial_closed"`)) {
			return nil
		}
	}
}
