package llmtest

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/internal/llm"
)

// send does what a reply demands.
func (s *Server) send(w http.ResponseWriter, r *http.Request, call Call, reply Reply) {
	if reply.Model == "" {
		reply.Model = call.Settings.Model
	}
	if reply.Usage == (llm.Usage{}) {
		reply.Usage = Used
	}
	switch reply.Failure {
	case Nothing, Blocked, CutOff:
		write(w, http.StatusOK, s.vendor.answer(call, reply))
	case NoSchemas:
		if call.Schema.JSON == nil {
			write(w, http.StatusOK, s.vendor.answer(call, reply))
		} else {
			write(w, http.StatusBadRequest, s.vendor.wrong("response_format is not understood"))
		}
	case EchoedKey:
		write(w, http.StatusBadRequest, s.vendor.wrong("cannot make sense of "+s.Key+" in this request"))
	case NotJSON:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write([]byte("<!doctype html><title>Sign in to the network</title>"))
	case OtherShape:
		write(w, http.StatusOK, map[string]any{"hello": "world"})
	case Malformed:
		body := marshal(s.vendor.answer(call, reply))
		writeBytes(w, http.StatusOK, body[:len(body)-2])
	case BodyCut:
		body := marshal(s.vendor.answer(call, reply))
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		writeBytes(w, http.StatusOK, body[:len(body)/2])
		panic(http.ErrAbortHandler)
	case Closed:
		panic(http.ErrAbortHandler)
	case Redirected:
		http.Redirect(w, r, reply.Location, http.StatusTemporaryRedirect)
	default:
		if reply.Failure == RateLimited && s.vendor.Name != Gemini.Name { // Gemini's body has it instead
			w.Header().Set("Retry-After", strconv.Itoa(int(reply.RetryAfter/time.Second)))
		}
		f := s.vendor.fail(reply)
		write(w, f.status, f.body)
	}
}

func write(w http.ResponseWriter, status int, body any) { writeBytes(w, status, marshal(body)) }

func writeBytes(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body) // the caller may have disconnected
}

func marshal(v any) []byte {
	body, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err) // v consists of this package's own values
	}
	return body
}

// strict decodes a request. It refuses unknown and repeated members.
func strict(body []byte, into any) error {
	return json.Unmarshal(body, into, json.RejectUnknownMembers(true))
}

// object is short for JSON objects.
type object = map[string]any
