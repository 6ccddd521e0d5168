package witness

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"jurat/evidence/operator"
)

// maxLogged is how many bytes of one refusal are logged: any caller can cause refusals without limit.
const maxLogged = 1 << 10

// Handler serves add-checkpoint, /healthz and /key. It logs each refusal and its reason, together with what the log's own key signed. Two
// checkpoints of one size with different roots, both signed by a log, are evidence against that log.
func (w *Witness) Handler(log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /add-checkpoint", func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(out, r.Body, maxRequest))
		if err != nil {
			http.Error(out, "the request is too large, or broke off", http.StatusBadRequest)
			return
		}
		request, err := ParseRequest(string(body))
		var line string
		if err == nil {
			line, err = w.AddCheckpoint(r.Context(), request)
		}
		if err != nil {
			w.refuse(out, r, log, string(body), err)
			return
		}
		out.Header().Set("Content-Type", "text/plain; charset=utf-8")
		out.Header().Set("Cache-Control", "no-store")
		_, _ = io.WriteString(out, line) // a caller who has gone can ask again
	})
	mux.HandleFunc("GET /healthz", func(out http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(out, "ok\n") })
	mux.HandleFunc("GET /key", func(out http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(out, w.key.String()) })
	return mux
}

// statuses are the HTTP statuses that C2SP tlog-witness assigns to errors.
var statuses = []struct {
	is     error
	status int
}{
	{ErrMalformed, http.StatusBadRequest},
	{ErrUnknownLog, http.StatusNotFound},
	{ErrSignature, http.StatusForbidden},
	{ErrProof, http.StatusUnprocessableEntity},
}

func (w *Witness) refuse(out http.ResponseWriter, r *http.Request, log *slog.Logger, body string, err error) {
	var conflict *ConflictError
	if errors.As(err, &conflict) {
		level := slog.LevelInfo
		if conflict.Forked {
			level = slog.LevelError
		}
		log.Log(r.Context(), level, "not cosigned", "why", clip(err.Error()), "signed", w.evidenceIn(body))
		out.Header().Set("Content-Type", sizeMedia)
		out.WriteHeader(http.StatusConflict)
		_, _ = fmt.Fprintf(out, "%d\n", conflict.Size)
		return
	}
	for _, s := range statuses {
		if errors.Is(err, s.is) {
			if s.is == ErrProof { // the log signed this checkpoint, so it is kept, although anyone may have sent it with a false proof
				log.Error("not cosigned", "why", clip(err.Error()), "signed", w.evidenceIn(body))
			} else {
				log.Info("not cosigned", "why", clip(err.Error()))
			}
			http.Error(out, err.Error(), s.status)
			return
		}
	}
	log.Error("not cosigned", "why", err)
	http.Error(out, "the witness failed", http.StatusInternalServerError)
}

// evidenceIn returns the part of a request that a known key of the log signed: the checkpoint without other signatures.
func (w *Witness) evidenceIn(body string) string {
	request, err := ParseRequest(body)
	if err != nil {
		return ""
	}
	origin, _, _ := strings.Cut(request.Signed, "\n")
	n, err := operator.OpenNote(request.Signed, note.VerifierList(w.logs[origin]...))
	if err != nil {
		return ""
	}
	n.UnverifiedSigs = nil
	signed, err := note.Sign(n)
	if err != nil {
		return ""
	}
	return clip(string(signed))
}

// clip cuts a text to the length that is logged.
func clip(text string) string {
	if len(text) <= maxLogged {
		return text
	}
	return strings.ToValidUTF8(text[:maxLogged], "") + "..."
}
