package server

import "net/http"

// watched is a ResponseWriter that stores the status.
type watched struct {
	http.ResponseWriter
	Status int // 0: the answer has not begun
}

// Unwrap is for http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *watched) WriteHeader(status int) {
	if w.Status == 0 && status >= 200 || status == http.StatusSwitchingProtocols {
		w.Status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *watched) Write(p []byte) (int, error) {
	if w.Status == 0 {
		w.Status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}
