package telemetry

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/encoding/protowire"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/tap/sealer"
	"jurat/internal/tap/traffic"
)

// Config says whose acts are recorded, and by whom.
type Config struct {
	// Report seals an act. Its error is that of a log that does not seal.
	Report func(ctx context.Context, act observed.Act, otherID string) (sealer.Account, error)
	// Agent is whose telemetry comes without a token. "": such telemetry is refused.
	Agent string
	// WhoIs returns the agent that a token belongs to. nil: no token counts.
	WhoIs func(ctx context.Context, token string) (agent string, err error)
	// Services are the agents of programs by their service.name, where there is no token.
	Services map[string]string
	// Chain is one chain for all acts that name none. "": each conversation, or else each trace, has its own.
	Chain string
	// Hosts are names, in lower case, by which requests may ask for this receiver beside addresses and localhost.
	Hosts []string

	Log *slog.Logger // of what is refused, without texts; nil: slog.Default()
	Now func() time.Time
}

// A Receiver is a handler for OTLP over HTTP. It is safe for concurrent use.
type Receiver struct {
	Config
	reading  chan struct{} // one for each request whose body is in memory, until it is answered
	decoding chan struct{} // one for each that is being decoded, which takes a multiple of its memory
	sealing  chan struct{} // one for each whose acts are being sealed
	counts   [len(names)]atomic.Int64
}

const (
	mostReading  = 16
	mostDecoding = 2
	mostSealing  = 8
	waitForTurn  = 10 * time.Second
	waitForBody  = time.Minute
	sealAtOnce   = 16 // chains of one request
)

func New(c Config) *Receiver {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Receiver{Config: c, reading: make(chan struct{}, mostReading), decoding: make(chan struct{}, mostDecoding), sealing: make(chan struct{}, mostSealing)}
}

const (
	sealed = iota
	known
	another
	others
	refused
	metrics
)

var names = [...]string{sealed: "acts sealed", known: "acts told again", another: "other accounts of acts", others: "spans and log entries that tell of no act", refused: "spans and events refused", metrics: "requests with metrics, which are not recorded"}

// Counts says in words what came so far; "": nothing.
func (r *Receiver) Counts() string {
	var list []string
	for i := range r.counts {
		if n := r.counts[i].Load(); n > 0 {
			list = append(list, fmt.Sprintf("%s: %d", names[i], n))
		}
	}
	return strings.Join(list, ", ")
}

type refusal struct {
	status int
	err    error
}

func (r *refusal) Error() string { return r.err.Error() }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Errorf(format, args...)}
}

var signals = map[string]Signal{"/v1/traces": Traces, "/v1/logs": Logs, "/v1/metrics": ofMetrics}

const ofMetrics Signal = "metrics"

// A question is a request that names what it is about, and how that is written. The answer is written in the same way.
type question struct {
	*http.Request
	w        http.ResponseWriter
	signal   Signal
	encoding Encoding // "": it is unknown, and the answer is JSON
}

func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	q := &question{Request: req, w: w, signal: signals[req.URL.Path]}
	told, err := r.post(q)
	if err == nil {
		q.done(told)
		return
	}
	status := http.StatusServiceUnavailable // an error that is no refusal may pass
	if refusal, is := errors.AsType[*refusal](err); is {
		status = refusal.status
	}
	r.Log.Warn("telemetry was not recorded", "signal", string(q.signal), "status", status, "error", err) // clients of gRPC show no answer of HTTP
	q.fail(status, err.Error())
}

func (r *Receiver) post(q *question) (*Told, error) {
	if q.signal == "" {
		return nil, refuse(http.StatusNotFound, "unknown path: want /v1/traces, /v1/logs or /v1/metrics; with gRPC, set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf")
	}
	if q.Method != http.MethodPost {
		q.w.Header().Set("Allow", http.MethodPost)
		return nil, refuse(http.StatusMethodNotAllowed, "%.20q: OTLP is sent by POST", q.Method)
	}
	switch media, _, err := mime.ParseMediaType(q.Header.Get("Content-Type")); {
	case err == nil && media == "application/x-protobuf":
		q.encoding = Protobuf
	case err == nil && media == "application/json":
		q.encoding = JSON
	default:
		return nil, refuse(http.StatusUnsupportedMediaType, "content type %.100q: send application/x-protobuf or application/json", q.Header.Get("Content-Type"))
	}
	return r.take(q)
}

func (r *Receiver) take(q *question) (*Told, error) {
	if !r.asksForThis(q.Host) {
		return nil, refuse(http.StatusForbidden, "the request asks for the host %.100q: give the recorder that name with --host", q.Host)
	}
	agent, err := r.agentOf(q.Request)
	if err != nil {
		return nil, err
	}
	leave, err := turn(q.Context(), r.reading) // until the end: who waits for another turn has a body and acts in memory
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := http.NewResponseController(q.w).SetReadDeadline(time.Now().Add(waitForBody)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	body, err := decoded(http.MaxBytesReader(q.w, q.Body, MaxBody), strings.Join(q.Header.Values("Content-Encoding"), ","))
	if r, is := errors.AsType[*refusal](err); is && errors.Is(r.err, os.ErrDeadlineExceeded) {
		return nil, fmt.Errorf("it did not come within %v: %w", waitForBody, r.err) // no refusal: what is refused for good is lost
	}
	if err != nil {
		return nil, err
	}
	if q.signal == ofMetrics {
		r.counts[metrics].Add(1)
		return new(Told), nil
	}
	return r.record(q, agent, body)
}

// asksForThis reports whether a request names an address, this machine, or a name that the operator gave. A page can have its own name lead here.
func (r *Receiver) asksForThis(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	return host == "localhost" || net.ParseIP(host) != nil || slices.Contains(r.Hosts, host)
}

// agentOf returns whose token the request has; "": it has none.
func (r *Receiver) agentOf(req *http.Request) (string, error) {
	token, is := strings.CutPrefix(req.Header.Get("Jurat-Agent"), "Bearer ")
	switch {
	case req.Header.Get("Jurat-Agent") == "" && r.Agent == "" && len(r.Services) == 0:
		return "", refuse(http.StatusUnauthorized, "the agent is unknown: send 'Jurat-Agent: Bearer TOKEN'; exporters take it from OTEL_EXPORTER_OTLP_HEADERS")
	case req.Header.Get("Jurat-Agent") == "":
		return "", nil
	case !is || r.WhoIs == nil:
		return "", refuse(http.StatusUnauthorized, "the header Jurat-Agent has no token that counts here: want 'Bearer TOKEN'")
	}
	agent, err := r.WhoIs(req.Context(), token)
	if err != nil {
		return "", refuse(http.StatusUnauthorized, "the token does not say which agent this is: %w", err)
	}
	return agent, nil
}

// turn waits until fewer than all places are taken. The caller must call leave.
func turn(ctx context.Context, places chan struct{}) (leave func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(waitForTurn):
		return nil, errors.New("too many requests at a time: send it again later")
	}
}

func decoded(src io.Reader, encoding string) ([]byte, error) {
	encoding = strings.ToLower(strings.TrimSpace(encoding))
	d, err := traffic.DecodeOne(encoding, bufio.NewReader(src))
	if errors.Is(err, traffic.ErrEncoding) {
		return nil, refuse(http.StatusUnsupportedMediaType, "the encoding: %w: send gzip, deflate, br, zstd or none", err)
	}
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "the body does not begin as its encoding %.20q has it: %w", encoding, err)
	}
	defer d.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(io.LimitReader(d, MaxBody+1))
	_, large := errors.AsType[*http.MaxBytesError](err)
	switch {
	case len(body) > MaxBody, large:
		return nil, refuse(http.StatusRequestEntityTooLarge, "the body has more than %d bytes, decoded: export fewer spans at a time", MaxBody)
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "the body breaks off, or is not as its encoding %.20q has it: %w", encoding, err)
	}
	return body, nil
}

func (r *Receiver) record(q *question, agent string, body []byte) (*Told, error) {
	header := q.Header.Get("Jurat-Chain")
	if header != "" {
		if err := sealer.CheckChain(cmp.Or(agent, r.Agent), header); err != nil {
			return nil, refuse(http.StatusBadRequest, "Jurat-Chain: %w", err)
		}
	}
	told, err := r.decode(q, body)
	if err != nil {
		return nil, err
	}
	acts := r.belonging(told, agent, header)
	leave, err := turn(q.Context(), r.sealing)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := r.seal(q.Context(), acts); err != nil {
		return nil, err
	}
	r.counts[others].Add(int64(told.Others))
	r.counts[refused].Add(int64(told.Refused))
	if told.Refused > 0 {
		r.Log.Warn("spans or events were refused", "signal", string(q.signal), "refused", told.Refused, "reasons", told.Reasons)
	}
	return told, nil
}

func (r *Receiver) decode(q *question, body []byte) (*Told, error) {
	leave, err := turn(q.Context(), r.decoding)
	if err != nil {
		return nil, err
	}
	defer leave()
	data, err := Decode(q.signal, q.encoding, body)
	if errors.Is(err, ErrLarge) {
		return nil, refuse(http.StatusRequestEntityTooLarge, "%w: export fewer spans at a time", err)
	}
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%w", err)
	}
	return Find(data), nil
}

// An act is told of an agent, in a chain.
type act struct {
	*Act
	agent, chain string
	missing      []string
}

// belonging finds out whose each act is, and which chain it belongs to. Acts of nobody are refused.
func (r *Receiver) belonging(told *Told, agent, header string) map[string][]act {
	chains := map[string][]act{}
	for i := range told.Acts {
		a := act{Act: &told.Acts[i], agent: cmp.Or(agent, r.Services[told.Acts[i].Service], r.Agent)}
		if a.agent == "" {
			told.Refuse(fmt.Sprintf("nobody says which agent the service %.100q is: send a token, or map the service with --service", a.Service))
			continue
		}
		a.place(cmp.Or(header, r.Chain))
		chains[a.chain] = append(chains[a.chain], a)
	}
	return chains
}

// place chooses the chain of an act: the name that the sender gave for jurat, the operator's, the conversation's, or the trace's.
func (a *act) place(given string) {
	dialogue, named := a.Conversation()
	if !named {
		a.missing = append(a.missing, "the chain that the sender names: its digest stands for it")
	}
	for _, name := range []string{a.Chain, given, dialogue, a.Trace} {
		if name == "" {
			continue
		}
		a.chain = sealer.ChainOf(a.agent, name)
		err := evidence.CheckName(a.chain)
		if err == nil {
			return
		}
		a.missing = append(a.missing, "the chain that the sender names: "+err.Error())
	}
}

// seal seals the acts of each chain in the order in which they began.
func (r *Receiver) seal(ctx context.Context, chains map[string][]act) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sealAtOnce)
	for _, acts := range chains {
		slices.SortStableFunc(acts, func(a, b act) int { return a.Began.Compare(b.Began) })
		group.Go(func() error {
			for i := range acts {
				if err := r.sealOne(ctx, &acts[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (r *Receiver) sealOne(ctx context.Context, a *act) error {
	o := a.Observed(a.agent, r.Now())
	o.ChainID, o.Missing = a.chain, append(o.Missing, a.missing...)
	account, err := r.Report(ctx, o, a.RecordID(a.agent, true))
	if err != nil {
		return fmt.Errorf("the log does not seal: %w", err)
	}
	switch account {
	case sealer.New:
		r.counts[sealed].Add(1)
	case sealer.Known:
		r.counts[known].Add(1)
	case sealer.Another:
		r.counts[another].Add(1)
		r.Log.Warn("another account of an act came; both are in the log", "agent", a.agent, "chain", a.chain, "span", evidence.Abbreviate(a.RequestID()))
	}
	return nil
}

// Fields of the protocol's messages: ExportTraceServiceResponse and its like, ExportTracePartialSuccess and its like, google.rpc.Status.
const (
	partialSuccess = 1
	rejected       = 1
	errorMessage   = 2
	statusCode     = 1
	statusMessage  = 2
)

var rejectedNames = map[Signal]string{Traces: "rejectedSpans", Logs: "rejectedLogRecords"}

// done says that everything is recorded that can be; what cannot is counted, and must not be sent again.
func (q *question) done(told *Told) {
	if q.encoding == Protobuf {
		var body []byte // the same for each signal
		if told.Refused > 0 {
			inner := protowire.AppendVarint(protowire.AppendTag(nil, rejected, protowire.VarintType), uint64(told.Refused))
			inner = protowire.AppendString(protowire.AppendTag(inner, errorMessage, protowire.BytesType), reasons(told))
			body = protowire.AppendBytes(protowire.AppendTag(nil, partialSuccess, protowire.BytesType), inner)
		}
		q.write(http.StatusOK, body)
		return
	}
	members := map[string]any{}
	if told.Refused > 0 {
		members["partialSuccess"] = map[string]string{rejectedNames[q.signal]: strconv.Itoa(told.Refused), "errorMessage": reasons(told)}
	}
	q.writeJSON(http.StatusOK, members)
}

func reasons(told *Told) string { return strings.Join(told.Reasons, "; ") }

// codes are those of google.rpc.Status. The protocol says that receivers may leave them out.
var codes = map[int]int32{http.StatusBadRequest: 3, http.StatusRequestEntityTooLarge: 8, http.StatusMethodNotAllowed: 12, http.StatusUnsupportedMediaType: 12,
	http.StatusInternalServerError: 13, http.StatusServiceUnavailable: 14, http.StatusUnauthorized: 16, http.StatusForbidden: 7, http.StatusNotFound: 5}

const retryAfter = 2 // seconds

// fail says why nothing, or not all, is recorded. With the status 503 the sender sends it again.
func (q *question) fail(status int, why string) {
	if status == http.StatusServiceUnavailable {
		q.w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	why = strings.ToValidUTF8(why, "\ufffd")
	if q.encoding == Protobuf {
		body := protowire.AppendVarint(protowire.AppendTag(nil, statusCode, protowire.VarintType), uint64(codes[status]))
		q.write(status, protowire.AppendString(protowire.AppendTag(body, statusMessage, protowire.BytesType), why))
		return
	}
	q.writeJSON(status, map[string]any{"code": codes[status], "message": why})
}

func (q *question) writeJSON(status int, members map[string]any) {
	body, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		status, body = http.StatusInternalServerError, nil
	}
	q.encoding = JSON
	q.write(status, body)
}

func (q *question) write(status int, body []byte) {
	media := "application/json"
	if q.encoding == Protobuf {
		media = "application/x-protobuf"
	}
	q.w.Header().Set("Content-Type", media)
	q.w.WriteHeader(status)
	_, _ = q.w.Write(body) // a sender that has left sends it again
}
