package token

import (
	"bufio"
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"jurat/evidence"
	"jurat/internal/fault"
)

// A Backend keeps keys. Its errors have one of this package's errors in their chain where one fits. It is safe for
// concurrent use.
type Backend interface {
	// Keys lists the keys that may sign.
	Keys(ctx context.Context) ([]Key, error)
	// Generate makes the key that a URI names, and refuses if there is one.
	Generate(ctx context.Context, uri string, algorithm evidence.Algorithm) (Key, error)
	// Key returns the key that a URI names.
	Key(ctx context.Context, uri string) (Key, error)
	// Sign signs a SHA-256 digest with ES256 or RS256, or a message with another algorithm. It says which key has signed.
	Sign(ctx context.Context, uri string, data []byte) (crypto.PublicKey, []byte, error)
}

// A Server answers requests from what a Backend keeps.
type Server struct {
	backend Backend
	log     *slog.Logger
	memory  *semaphore.Weighted // bytes of requests that are read or answered
}

const (
	atOnce      = 64               // requests of one connection that are answered at the same time
	connections = 64               // of one listener
	patience    = 30 * time.Second // for the rest of a frame, and for a peer to take one
	memory      = 3 * maxRequest
)

// NewServer makes a Server, which tells log about peers that break the protocol.
func NewServer(backend Backend, log *slog.Logger) *Server {
	return &Server{backend, log, semaphore.NewWeighted(memory)}
}

// Listen answers all that connect to a listener, until ctx ends. The listener is closed by then. It returns nil when
// ctx ends, and the listener's error otherwise.
func (s *Server) Listen(ctx context.Context, listener net.Listener) error {
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	var peers sync.WaitGroup
	defer peers.Wait()
	places := make(chan struct{}, connections)
	for {
		places <- struct{}{}
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("waiting for connections: %w", err)
		}
		peers.Go(func() {
			defer func() { <-places }()
			s.serveOne(ctx, conn)
		})
	}
}

func (s *Server) serveOne(ctx context.Context, conn net.Conn) {
	if err := s.Serve(ctx, conn, conn, conn); err != nil && ctx.Err() == nil {
		s.log.Warn("connection ended", "error", err)
	}
}

// A peer is one connection of a client.
type peer struct {
	*Server
	requests *reader
	answers  *writer
	closer   io.Closer
	work     sync.WaitGroup // requests under way
}

// Serve answers the requests that come in until there are no more, or ctx ends. It closes the connection by closer.
// It returns nil at the end of the input. Otherwise it returns the error of the connection, or how the peer broke the
// protocol.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer, closer io.Closer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &peer{Server: s, closer: closer,
		requests: &reader{in: bufio.NewReaderSize(in, 64<<10), deadline: readDeadline(in), patience: patience, most: maxRequest,
			reserve: func(n int) error { return s.memory.Acquire(ctx, int64(n)) }, release: func(n int) { s.memory.Release(int64(n)) }},
		answers: &writer{out: bufio.NewWriterSize(out, 64<<10), deadline: writeDeadline(out), patience: patience}}
	stop := context.AfterFunc(ctx, func() { closer.Close() })
	err := p.answerAll(ctx)
	p.work.Wait()
	if stop() {
		closer.Close() // nothing is left that closing could lose
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// A job is a request, and the size of its frame.
type job struct {
	request
	size int
}

// answerAll has workers answer. It starts one where all others are busy, up to atOnce. Workers stay, as a stack that has grown to the depth
// of a signature's verification saves the next one the same growth.
func (p *peer) answerAll(ctx context.Context) error {
	jobs, workers := make(chan job), 0
	defer close(jobs)
	for {
		frame, err := p.requests.next()
		if err != nil {
			return err
		}
		j := job{size: len(frame)}
		if err := errors.Join(decode(frame, &j.request), j.check()); err != nil {
			p.requests.release(j.size)
			return errors.Join(err, p.send(answer{ID: j.ID, Problem: problemOf(err)}))
		}
		select {
		case jobs <- j:
			continue
		default:
		}
		if workers < atOnce {
			workers++
			p.work.Go(func() {
				for j := range jobs {
					p.complete(ctx, j)
				}
			})
		}
		jobs <- j
	}
}

func (p *peer) complete(ctx context.Context, j job) {
	defer p.requests.release(j.size)
	if err := p.send(p.answer(ctx, j.request)); err != nil {
		p.closer.Close() // a client that takes no answers asks nothing more
	}
}

func (p *peer) send(a answer) error {
	a.Version = version
	frame, err := encode(a)
	if err != nil {
		return err
	}
	return p.answers.send(frame)
}

// answer does what a request asks for. A panic in the backend is an error of this request.
func (s *Server) answer(ctx context.Context, r request) (a answer) {
	err := fault.Guard(func() (err error) {
		a, err = s.do(ctx, r)
		return err
	})
	if err != nil {
		a = answer{Problem: problemOf(err)}
	}
	a.ID = r.ID
	return a
}

func (s *Server) do(ctx context.Context, r request) (answer, error) {
	switch r.Verb {
	case verbKeys:
		keys, err := s.backend.Keys(ctx)
		return listed(keys, err)
	case verbGenerate:
		k, err := s.backend.Generate(ctx, r.URI, r.Algorithm)
		return shown(k, err)
	case verbPublic:
		k, err := s.backend.Key(ctx, r.URI)
		return shown(k, err)
	case verbAttributes:
		k, err := s.backend.Key(ctx, r.URI)
		return answer{Protection: &k.Protection}, err
	case verbSign:
		return s.sign(ctx, r)
	}
	return answer{}, fmt.Errorf("%w: verb %q is unknown", errRequest, clip(r.Verb))
}

func (s *Server) sign(ctx context.Context, r request) (answer, error) {
	public, signature, err := s.backend.Sign(ctx, r.URI, r.Data)
	if err != nil {
		return answer{}, err
	}
	if err := checkSignature(public, r.Data, signature); err != nil {
		return answer{}, fmt.Errorf("%w: the token's signature is withheld: %w", errFailed, err)
	}
	return answer{Signature: signature}, nil
}

func listed(keys []Key, err error) (answer, error) {
	a := answer{}
	if len(keys) > maxKeys {
		return a, fmt.Errorf("%w: there are more than %d keys", ErrUnsupported, maxKeys)
	}
	for _, k := range keys {
		w, failed := wired(k)
		a.Keys, err = append(a.Keys, w), errors.Join(err, failed)
	}
	return a, err
}

func shown(k Key, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	w, err := wired(k)
	return answer{Key: &w}, err
}

// readDeadline sets deadlines where the system has them: not on every kind of standard input.
func readDeadline(in io.Reader) func(time.Time) error {
	if d, ok := in.(interface{ SetReadDeadline(time.Time) error }); ok {
		return whereThereAre(d.SetReadDeadline)
	}
	return func(time.Time) error { return nil }
}

func writeDeadline(out io.Writer) func(time.Time) error {
	if d, ok := out.(interface{ SetWriteDeadline(time.Time) error }); ok {
		return whereThereAre(d.SetWriteDeadline)
	}
	return func(time.Time) error { return nil }
}

func whereThereAre(set func(time.Time) error) func(time.Time) error {
	return func(t time.Time) error {
		if err := set(t); !errors.Is(err, os.ErrNoDeadline) {
			return err
		}
		return nil
	}
}
