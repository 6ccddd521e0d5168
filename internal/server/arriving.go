package server

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// lastWords is how long the rest of a body may take after the server has begun to stop.
const lastWords = 5 * time.Second

// arriving is a request body that knows whether it has arrived completely.
type arriving struct {
	io.ReadCloser
	length int64 // as the request states it; -1: unknown
	whole  atomic.Bool
}

// arrive returns the body of a request.
func arrive(r *http.Request) *arriving { return &arriving{ReadCloser: r.Body, length: r.ContentLength} }

// Read implements io.Reader.
func (a *arriving) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err == io.EOF {
		a.whole.Store(true)
	}
	return n, err
}

// Hurry sets a deadline for the rest of the body, so that a silent caller does not delay the server's stop. It sets
// none if the body is complete, because net/http would take it for the end of the request.
func (a *arriving) Hurry(connection *http.ResponseController) {
	if a.length != 0 && !a.whole.Load() {
		_ = connection.SetReadDeadline(time.Now().Add(lastWords)) // fails only without a connection, as with a test's recorder
	}
}
