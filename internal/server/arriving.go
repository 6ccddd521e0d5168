package server

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// lastWords is how long the rest of a body may take to come when the server is to end.
const lastWords = 5 * time.Second

// arriving is a body that knows whether all of it has come.
type arriving struct {
	io.ReadCloser
	length int64 // as the request says it; -1: unknown
	whole  atomic.Bool
}

// Read implements io.Reader.
func (a *arriving) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err == io.EOF {
		a.whole.Store(true)
	}
	return n, err
}

// hurry sets an end to waiting for the body, so that a caller who sends nothing does not hold up the server's end. Where all has come
// no deadline is set: net/http would take it for the end of the request.
func (a *arriving) hurry(connection *http.ResponseController) {
	if a.length != 0 && !a.whole.Load() {
		_ = connection.SetReadDeadline(time.Now().Add(lastWords)) // what is no connection has none, such as a test's recorder
	}
}
