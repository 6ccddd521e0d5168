package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"

	"jurat/evidence"
)

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
