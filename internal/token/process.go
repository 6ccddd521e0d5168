package token

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

const (
	maxLine = 64 << 10 // bytes of an answer
	maxText = 1024     // bytes of a URI, a message and any other text
	exitPIN = 3        // exit code of a helper whose PIN is wrong, missing or locked
)

// A request asks for one thing: "key", "generate" or "sign".
type request struct {
	ID        uint32 `json:"id"`
	Do        string `json:"do"`
	URI       string `json:"uri"`
	Algorithm string `json:"alg,omitzero"`    // of generate
	Digest    []byte `json:"digest,omitzero"` // of sign: SHA-256 of the message
}

// An answer has the id of its request.
type answer struct {
	ID        uint32   `json:"id"`
	Key       *keyInfo `json:"key"`
	Signature []byte   `json:"signature"`
	Problem   *problem `json:"error"`
}

type problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// A process is a helper that runs, with the requests of any number of callers.
type process struct {
	command  *exec.Cmd
	out      io.Closer // of its standard output
	requests chan []byte
	answered func()        // is called at each answer
	ending   chan struct{} // closed once the helper is to end
	end      func()        // closes ending, and kills the helper if that does not end it
	gone     chan struct{} // closed once the helper has ended
	why      error         // set before gone is closed

	mu      sync.Mutex // held while the fields below change
	waiting map[uint32]chan answer
	last    uint32
}

// start starts a helper, which ends when its standard input does, or else so much later.
func start(words []string, answered func(), later time.Duration) (*process, error) {
	p := &process{command: exec.Command(words[0], words[1:]...), requests: make(chan []byte, 64), answered: answered,
		ending: make(chan struct{}), gone: make(chan struct{}), waiting: map[uint32]chan answer{}}
	p.end = sync.OnceFunc(func() {
		close(p.ending)
		time.AfterFunc(later, p.kill)
	})
	said := &tail{}
	p.command.Stderr = said
	p.command.WaitDelay = time.Second // for a grandchild that holds standard error open
	in, err := p.command.StdinPipe()
	out, outErr := p.command.StdoutPipe()
	if err := errors.Join(err, outErr); err != nil {
		return nil, err
	}
	p.out = out
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go p.write(in)
	go p.read(out, said)
	return p, nil
}

// write writes requests, several at once where several wait. If that fails, read finds why.
func (p *process) write(in io.WriteCloser) {
	defer in.Close() // fails if the helper has ended
	out := bufio.NewWriterSize(in, maxLine)
	for {
		select {
		case line := <-p.requests:
			_, err := out.Write(append(line, '\n'))
			if err == nil && len(p.requests) == 0 {
				err = out.Flush()
			}
			if err != nil {
				return
			}
		case <-p.ending:
			return
		}
	}
}

// read hands answers to those who wait for them, and says how the helper ended.
func (p *process) read(out io.Reader, said *tail) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxLine)
	var broken error
	for broken == nil && lines.Scan() {
		broken = p.take(lines.Bytes())
	}
	if err := lines.Err(); !errors.Is(err, os.ErrClosed) { // kill closed it
		broken = cmp.Or(broken, err)
	}
	if broken != nil {
		p.kill()
	}
	p.end()
	err := p.command.Wait()
	kind, exit := ErrUnavailable, (*exec.ExitError)(nil)
	if errors.As(err, &exit) && exit.ExitCode() == exitPIN {
		kind = ErrPIN
	}
	p.why = fmt.Errorf("%w: the helper %s ended: %w%s", kind, p.command.Path, cmp.Or(broken, err, errors.New("exit status 0")), said)
	close(p.gone)
}

// kill ends the helper by force, and what is read of it, as a child of the helper may hold its output open. Both fail if it has ended.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	_ = p.out.Close()
}

func (p *process) take(line []byte) error {
	var a answer
	if err := json.Unmarshal(line, &a, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("its answer: %w", err)
	}
	p.mu.Lock()
	asker := p.waiting[a.ID]
	delete(p.waiting, a.ID)
	p.mu.Unlock()
	if asker == nil {
		return fmt.Errorf("it answered request %d, which waits for no answer", a.ID)
	}
	p.answered()
	asker <- a // has room for one
	return nil
}

// ask waits for the answer to a request. A caller that gives up stays in the list until its answer comes.
func (p *process) ask(ctx context.Context, r request) (answer, error) {
	asker := make(chan answer, 1)
	p.mu.Lock()
	p.last++
	r.ID = p.last
	p.waiting[r.ID] = asker
	p.mu.Unlock()
	line, err := json.Marshal(r)
	if err != nil {
		return answer{}, err
	}
	select {
	case p.requests <- line:
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	case <-p.gone:
		return answer{}, p.why
	}
	select {
	case a := <-asker:
		return a, nil
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	case <-p.gone:
		return answer{}, p.why
	}
}

// A tail keeps the last bytes of what a helper writes to standard error.
type tail struct {
	mu   sync.Mutex // held while the text changes
	text []byte
}

func (t *tail) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, text...)
	t.text = t.text[max(0, len(t.text)-maxText):]
	return len(text), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.text) == 0 {
		return ""
	}
	return fmt.Sprintf(", and said %q", strings.TrimSpace(string(t.text)))
}
