package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/api"
	"jurat/evidence"
)

// silence is how long Watch waits for any sign of the server. The server sends one every 15 seconds.
const silence = time.Minute

// errBroken says that a stream ended before the trial did, or was silent too long.
var errBroken = errors.New("the connection ended before the trial did")

// Watch iterates over the events of a trial after a given one (0: from the first), until the trial ends, however long
// that takes. If the connection ends, Watch connects again and continues after the last event. It ends with an error
// after Config.Attempts failed attempts in a row.
func (c *Client) Watch(ctx context.Context, id string, after int64) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		for failed := 0; ; {
			w := watch{yield: yield, after: after}
			err := c.listen(ctx, id, &w)
			if w.stopped || err == nil {
				return
			}
			if failed++; w.after > after {
				after, failed = w.after, 0
			}
			if failed >= c.config.Attempts || !(errors.Is(err, errBroken) || mayPass(err)) || ctx.Err() != nil {
				yield(api.Event{}, fmt.Errorf("watching %s after event %d: %w", id, after, err))
				return
			}
			select {
			case <-time.After(pause << max(0, failed-1)):
			case <-ctx.Done():
			}
		}
	}
}

// watch is one connection to a trial.
type watch struct {
	yield   func(api.Event, error) bool
	after   int64
	stopped bool // the caller stopped iterating
}

// listen returns nil when the trial is over.
func (c *Client) listen(ctx context.Context, id string, w *watch) error {
	lines, end, err := c.stream(ctx, fmt.Sprintf("%s?after=%d", submissionPath(id, "/events"), w.after))
	if lines == nil {
		return err
	}
	defer end()
	for lines.Scan() {
		doc, isData := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !isData {
			continue // event boundaries and signs of life
		}
		if last, err := w.tell(doc); last || err != nil || w.stopped {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("an event has more than %d bytes", c.config.MaxAnswer)
	}
	return errors.Join(errBroken, lines.Err())
}

// stream asks for an answer that the server sends line by line. The answer ends when the server is silent for too long, or when end is
// called. Without an answer (204) lines is nil.
func (c *Client) stream(ctx context.Context, path string) (lines *bufio.Scanner, end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	dead := time.AfterFunc(silence, cancel)
	var answer *http.Response
	end = func() {
		dead.Stop()
		cancel()
		if answer != nil {
			_ = answer.Body.Close() // what was read is complete, or its reader has an error
		}
	}
	if answer, err = c.send(ctx, http.MethodGet, path, "", nil); err == nil && answer.StatusCode == http.StatusOK {
		lines = bufio.NewScanner(lively{answer.Body, dead})
		lines.Buffer(nil, int(min(c.config.MaxAnswer, 1<<30)))
		return lines, end, nil
	}
	defer end()
	if err != nil || answer.StatusCode == http.StatusNoContent {
		return nil, nil, err
	}
	doc, err := io.ReadAll(io.LimitReader(answer.Body, c.config.MaxAnswer))
	if err != nil {
		return nil, nil, &url.Error{Op: http.MethodGet, URL: path, Err: err}
	}
	return nil, nil, problemIn(answer, doc)
}

// lively is an answer whose bytes are signs of life.
type lively struct {
	io.Reader
	dead *time.Timer
}

func (l lively) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if n > 0 {
		l.dead.Reset(silence)
	}
	return n, err
}

// tell passes an event to the caller if it is the next one.
func (w *watch) tell(doc []byte) (last bool, err error) {
	e := api.Event{JSON: bytes.Clone(doc)}
	if err := json.Unmarshal(e.JSON, &e); err != nil {
		return false, fmt.Errorf("reading an event: %w", evidence.Steady(err))
	}
	if e.Seq != w.after+1 {
		return false, fmt.Errorf("event %d came after event %d", e.Seq, w.after)
	}
	w.after = e.Seq
	w.stopped = !w.yield(e, nil)
	return e.Type == api.LastEvent, nil
}

// Conduct iterates over what the log had about an agent when it was of a size that a checkpoint says: the case files of the
// trials that judged it, and bundles of its own records. It holds one at a time. Verify them with your own trust file: package
// reputation computes what they are worth, and with the log's entries (package tiles) whether any is missing. Conduct ends after an
// error, also if the server stops in the middle. It is not repeated: what came before would come again.
func (c *Client) Conduct(ctx context.Context, agent string, size int64) iter.Seq2[*evidence.Bundle, error] {
	return func(yield func(*evidence.Bundle, error) bool) {
		path := fmt.Sprintf("/v1/agents/%s/conduct?size=%d", url.PathEscape(agent), size)
		lines, end, err := c.stream(ctx, path)
		if lines == nil {
			if err == nil {
				err = errors.New("the answer is empty")
			}
			yield(nil, fmt.Errorf("%s %s: %w", http.MethodGet, path, err))
			return
		}
		defer end()
		for n := 1; lines.Scan(); n++ {
			bundle, err := evidence.ParseBundle(append(lines.Bytes(), '\n')) // which the Scanner cut off
			if err != nil && lines.Err() != nil {
				break // the connection ended within the line
			}
			if err != nil {
				err = fmt.Errorf("%s %s: file %d: %w", http.MethodGet, path, n, err)
			}
			if !yield(bundle, err) || err != nil {
				return
			}
		}
		switch err := lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(nil, fmt.Errorf("%s %s: a file has more than %d bytes", http.MethodGet, path, c.config.MaxAnswer))
		case err != nil:
			yield(nil, &url.Error{Op: http.MethodGet, URL: path, Err: err})
		}
	}
}
