package telemetry

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"google.golang.org/protobuf/encoding/protowire"
)

// An answer is written in the encoding of the request.
type answer struct {
	w        http.ResponseWriter
	signal   Signal
	encoding Encoding // "": the request's is unknown, and the answer is JSON
}

// Fields of the protocol's messages: ExportTraceServiceResponse and its like, ExportTracePartialSuccess and its like, google.rpc.Status.
const (
	partialSuccess = 1
	rejected       = 1
	errorMessage   = 2
	statusCode     = 1
	statusMessage  = 2
)

// rejectedNames are the members that count what was refused.
var rejectedNames = map[Signal]string{Traces: "rejectedSpans", Logs: "rejectedLogRecords"}

// done says that everything is recorded that can be; what cannot is counted, and must not be sent again.
func (a *answer) done(told *Told) {
	if a.encoding == Protobuf {
		var body []byte // the same for each signal
		if told.Refused > 0 {
			inner := protowire.AppendVarint(protowire.AppendTag(nil, rejected, protowire.VarintType), uint64(told.Refused))
			inner = protowire.AppendString(protowire.AppendTag(inner, errorMessage, protowire.BytesType), reasons(told))
			body = protowire.AppendBytes(protowire.AppendTag(nil, partialSuccess, protowire.BytesType), inner)
		}
		a.write(http.StatusOK, body)
		return
	}
	members := map[string]any{}
	if told.Refused > 0 {
		members["partialSuccess"] = map[string]string{rejectedNames[a.signal]: strconv.Itoa(told.Refused), "errorMessage": reasons(told)}
	}
	a.writeJSON(http.StatusOK, members)
}

func reasons(told *Told) string { return strings.Join(told.Reasons, "; ") }

// codes are those of google.rpc.Status. The protocol says that receivers may leave them out.
var codes = map[int]int32{http.StatusBadRequest: 3, http.StatusNotFound: 5, http.StatusForbidden: 7, http.StatusRequestEntityTooLarge: 8, http.StatusMethodNotAllowed: 12, http.StatusUnsupportedMediaType: 12,
	http.StatusInternalServerError: 13, http.StatusServiceUnavailable: 14, http.StatusUnauthorized: 16}

// retryAfter is how many seconds a sender should wait.
const retryAfter = 2

// fail says why nothing, or not all, is recorded. With the status 503 the sender sends it again.
func (a *answer) fail(status int, why string) {
	if status == http.StatusServiceUnavailable {
		a.w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	why = strings.ToValidUTF8(why, "\ufffd")
	if a.encoding == Protobuf {
		body := protowire.AppendVarint(protowire.AppendTag(nil, statusCode, protowire.VarintType), uint64(codes[status]))
		a.write(status, protowire.AppendString(protowire.AppendTag(body, statusMessage, protowire.BytesType), why))
		return
	}
	a.writeJSON(status, map[string]any{"code": codes[status], "message": why})
}

func (a *answer) writeJSON(status int, members map[string]any) {
	body, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		status, body = http.StatusInternalServerError, nil
	}
	a.encoding = JSON
	a.write(status, body)
}

func (a *answer) write(status int, body []byte) {
	media := "application/json"
	if a.encoding == Protobuf {
		media = "application/x-protobuf"
	}
	a.w.Header().Set("Content-Type", media)
	a.w.WriteHeader(status)
	_, _ = a.w.Write(body) // a sender that has left sends it again
}
