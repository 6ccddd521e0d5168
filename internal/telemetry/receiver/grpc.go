package receiver

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"jurat/internal/telemetry"
)

// services are what is taken by gRPC, by the path.
var services = map[string]telemetry.Signal{
	"/opentelemetry.proto.collector.trace.v1.TraceService/Export":     telemetry.Traces,
	"/opentelemetry.proto.collector.logs.v1.LogsService/Export":       telemetry.Logs,
	"/opentelemetry.proto.collector.metrics.v1.MetricsService/Export": ofMetrics,
}

const (
	mediaGRPC = "application/grpc"
	prefix    = 5 // bytes before a message of gRPC: whether it is compressed, and its length
)

// isGRPC reports whether a request is a call of gRPC. gRPC-Web is not: it ends otherwise.
func isGRPC(req *http.Request) bool {
	media := mediaType(req)
	return media == mediaGRPC || strings.HasPrefix(media, mediaGRPC+"+")
}

// serveGRPC takes a unary call of gRPC (its specification "gRPC over HTTP2").
func (r *Receiver) serveGRPC(w http.ResponseWriter, req *http.Request) {
	if req.ProtoMajor != 2 {
		http.Error(w, "gRPC needs HTTP/2", http.StatusHTTPVersionNotSupported)
		return
	}
	w.Header().Set("Content-Type", mediaGRPC)
	w.Header().Set("Grpc-Accept-Encoding", "identity,gzip,deflate,br,zstd")
	q := question{req, services[req.URL.Path], telemetry.Protobuf}
	told, err := r.call(w, &q)
	if err != nil {
		failCall(w, r.failed(&q, err), err.Error())
		return
	}
	body := response(told)
	_, _ = w.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)) // a sender that has left sends it again
	trail(w, "Grpc-Status", "0")
}

func (r *Receiver) call(w http.ResponseWriter, q *question) (*telemetry.Told, error) {
	media := mediaType(q.Request)
	switch {
	case q.signal == "":
		return nil, refuse(http.StatusNotImplemented, "%.200q is not here: OTLP's services of traces, logs and metrics are", q.URL.Path)
	case q.Method != http.MethodPost:
		return nil, refuse(http.StatusMethodNotAllowed, "%.20q: gRPC calls by POST", q.Method)
	case media != mediaGRPC && media != mediaGRPC+"+proto":
		return nil, refuse(http.StatusUnsupportedMediaType, "the content type is %.100q: send application/grpc, with protobuf", media)
	}
	return r.take(w, q, func(body io.Reader) ([]byte, error) { return message(body, q.Header.Get("Grpc-Encoding")) })
}

// message reads the one message that a unary call has.
func message(body io.Reader, encoding string) ([]byte, error) {
	src := bufio.NewReader(body)
	head := make([]byte, prefix)
	if _, err := io.ReadFull(src, head); err != nil {
		return nil, refuse(http.StatusBadRequest, "the call breaks off before its message: %w", err)
	}
	long := int64(binary.BigEndian.Uint32(head[1:]))
	switch compressed := head[0]; {
	case long > telemetry.MaxBody:
		return nil, refuse(http.StatusRequestEntityTooLarge, "the message says that it has %d bytes, of at most %d: export fewer spans at a time", long, telemetry.MaxBody)
	case compressed == 0:
		encoding = ""
	case compressed != 1:
		return nil, refuse(http.StatusBadRequest, "the message begins with %d: want 0, or 1 if it is compressed", compressed)
	case encoding == "" || encoding == "identity":
		return nil, refuse(http.StatusInternalServerError, "the message says that it is compressed, and the call has no grpc-encoding that says how")
	}
	own := &io.LimitedReader{R: src, N: long}
	m, err := decoded(own, encoding)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, own); err != nil { // what follows a compressed stream that has ended
		return nil, refuse(http.StatusBadRequest, "the message breaks off: %w", err)
	}
	if own.N > 0 {
		return nil, refuse(http.StatusBadRequest, "the message says that it has %d bytes, and breaks off after %d", long, long-own.N)
	}
	if _, err := src.ReadByte(); err == nil {
		return nil, refuse(http.StatusBadRequest, "more follows the message, and a call of Export has one")
	} else if !errors.Is(err, io.EOF) {
		return nil, refuse(http.StatusBadRequest, "the call breaks off after its message: %w", err)
	}
	return m, nil
}

// failCall says why nothing, or not all, is recorded. UNAVAILABLE alone has the sender send it again, and after how long.
func failCall(w http.ResponseWriter, status int, why string) {
	why = strings.ToValidUTF8(why[:min(len(why), maxMessage)], "\ufffd")
	trail(w, "Grpc-Status", strconv.Itoa(int(codes[status])))
	trail(w, "Grpc-Message", percented(why))
	if status == http.StatusServiceUnavailable {
		trail(w, "Grpc-Status-Details-Bin", base64.RawStdEncoding.EncodeToString(withRetry(problem(status, why))))
	}
	w.WriteHeader(http.StatusOK)
}

func trail(w http.ResponseWriter, name, value string) { w.Header().Set(http.TrailerPrefix+name, value) }

const maxMessage = 1000 // bytes: clients bound what headers and trailers take

// Fields of google.rpc.Status, google.protobuf.Any, google.rpc.RetryInfo and google.protobuf.Duration.
const (
	statusDetails = 3
	anyType       = 1
	anyValue      = 2
	retryDelay    = 1
	seconds       = 1
)

// withRetry adds to a google.rpc.Status when the sender should send it again (OTLP, "OTLP/gRPC Throttling").
func withRetry(status []byte) []byte {
	delay := protowire.AppendVarint(protowire.AppendTag(nil, seconds, protowire.VarintType), retryAfter)
	info := protowire.AppendBytes(protowire.AppendTag(nil, retryDelay, protowire.BytesType), delay)
	any := protowire.AppendString(protowire.AppendTag(nil, anyType, protowire.BytesType), "type.googleapis.com/google.rpc.RetryInfo")
	any = protowire.AppendBytes(protowire.AppendTag(any, anyValue, protowire.BytesType), info)
	return protowire.AppendBytes(protowire.AppendTag(status, statusDetails, protowire.BytesType), any)
}

// percented writes a status message as gRPC has it: printable ASCII but '%' as it is.
func percented(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
