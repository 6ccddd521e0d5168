package importing

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/fault"
	"jurat/internal/observe"
	"jurat/internal/telemetry"
)

// mostUnpacked bounds a file that is packed with gzip.
const mostUnpacked = 1 << 30

// binaryBegins are the first bytes of protobuf: the tag of the first field, or the high bytes of a length before each message, as OpenTelemetry's collector writes them.
var binaryBegins = []byte{0x0a, 0, 1}

// recogniseOTLP reports whether the file is of telemetry and no text. What it would be as JSON, others find out.
func (f *File) recogniseOTLP() (bool, error) {
	head := make([]byte, 2)
	n, _ := io.ReadFull(f.whole(), head)
	packed := n == 2 && bytes.Equal(head, []byte{0x1f, 0x8b})
	if !packed && (n == 0 || !slices.Contains(binaryBegins, head[0])) {
		return false, nil
	}
	stop := errors.New("the first is enough")
	err := f.deliveries(func(_ string, e telemetry.Encoding, body []byte) error {
		data, err := telemetry.Decode(telemetry.Either, e, body)
		if err == nil && len(data.ResourceSpans)+len(data.ResourceLogs) > 0 {
			err = stop
		}
		return err
	})
	if err == nil {
		err = errors.New("it has no spans and no entries of logs")
	}
	switch {
	case errors.Is(err, stop) && f.Format != Unknown && f.Format != OTel:
		return false, fmt.Errorf("%s: this looks like %s: leave --from out, or give --from %s", f.Name, OTel, OTel)
	case errors.Is(err, stop):
		f.Format = OTel
		return true, nil
	case packed:
		return false, f.unknown(fmt.Sprintf("it is packed with gzip, and what is in it is no OTLP (unpack other files first): %v", err))
	}
	return false, nil // a text may begin with a line end
}

// deliveries calls do for each body that an exporter would send: a document of JSON, or a message of protobuf.
func (f *File) deliveries(do func(place string, e telemetry.Encoding, body []byte) error) error {
	in := bufio.NewReader(f.text())
	if head, _ := in.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return f.broken("its gzip header", err)
		}
		in = bufio.NewReader(&atMost{unpacked, mostUnpacked})
	}
	head, err := in.Peek(1)
	if err != nil {
		return f.broken("its beginning", err)
	}
	if slices.Contains(binaryBegins, head[0]) && !jsonBegins(in) {
		return f.messages(in, head[0] != binaryBegins[0], do)
	}
	d := newStream(in)
	for n := 1; ; n++ {
		place := fmt.Sprintf("document %d", n)
		v, err := d.value()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return f.broken(place, err)
		}
		if err := do(place, telemetry.JSON, v); err != nil {
			return err
		}
	}
}

// jsonBegins reports whether a text follows that begins with line ends and a JSON object, and is no protobuf: there 0x0a '{' is a field of 123 bytes.
func jsonBegins(in *bufio.Reader) bool {
	text, _ := in.Peek(in.Size())
	text = bytes.TrimLeft(text, " \t\r\n")
	return bytes.HasPrefix(text, []byte("{")) && bytes.HasPrefix(bytes.TrimLeft(text[1:], " \t\r\n"), []byte(`"`))
}

// messages reads protobuf: one message, or several with their lengths before them.
func (f *File) messages(in io.Reader, many bool, do func(place string, e telemetry.Encoding, body []byte) error) error {
	for n := 1; ; n++ {
		place, length := fmt.Sprintf("message %d", n), int64(telemetry.MaxBody)+1
		if many {
			var size [4]byte
			switch _, err := io.ReadFull(in, size[:]); {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return f.broken(place, fmt.Errorf("its length: %w", err))
			}
			if length = int64(binary.BigEndian.Uint32(size[:])); length == 0 { // a small packed file could have millions of them
				return f.broken(place, errors.New("it says that it has 0 bytes: an empty message tells nothing, so this is no file of an exporter"))
			} else if length > telemetry.MaxBody {
				return f.broken(place, fmt.Errorf("it says that it has %d bytes: at most %d are read", length, telemetry.MaxBody))
			}
		}
		body, err := io.ReadAll(io.LimitReader(in, length))
		if err == nil && many && int64(len(body)) < length {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return f.broken(place, err)
		}
		if err := do(place, telemetry.Protobuf, body); err != nil || !many {
			return err
		}
	}
}

// atMost fails after so many bytes.
type atMost struct {
	r    io.Reader
	left int64
}

func (a *atMost) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	if a.left -= int64(n); a.left < 0 {
		return 0, fmt.Errorf("it unpacks to more than %d MiB", mostUnpacked>>20)
	}
	return n, err
}

// otel reads what an exporter of OpenTelemetry wrote into a file, as if it had sent it to a recorder.
func (r *reader) otel() error {
	return r.deliveries(func(place string, e telemetry.Encoding, body []byte) error {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		var told *telemetry.Told
		err := fault.Guard(func() error {
			data, err := telemetry.Decode(telemetry.Either, e, body)
			if err == nil {
				told = telemetry.Find(data)
			}
			return err
		})
		if err != nil {
			return r.bad(place, err)
		}
		for _, reason := range told.Reasons {
			if err := r.bad(place, errors.New(reason)); err != nil {
				return err
			}
		}
		slices.SortStableFunc(told.Acts, func(a, b telemetry.Act) int { return a.Began.Compare(b.Began) })
		for i := range told.Acts {
			a := &told.Acts[i]
			at := ""
			if !a.Began.IsZero() {
				at = a.Began.UTC().Format(time.RFC3339Nano)
			}
			e := &Exchange{Conversation: or(a.Chain, or(a.Dialogue, or(r.given, a.Trace))), Entry: a.RequestID(), own: true, told: a,
				units: []unit{{raw: a.Body, place: fmt.Sprintf("%s, span %s", place, a.RequestID()), at: at}}}
			if err := r.give(e); err != nil {
				return err
			}
		}
		return nil
	})
}

// span is what a recorder seals of an act that telemetry in a file tells of: what it would seal had it been sent, and where it was found.
func (f *File) span(o *Options, e *Exchange, now time.Time) observed.Act {
	a := e.told.Observed(o.Agent, now)
	a.Recorder, a.ChainID = o.Recorder, o.Chain(e.Conversation)
	a.Request.Headers = f.headers(o, e)
	a.Missing = append(a.Missing, "whether the file is whole and unchanged since it was written", "a time that anybody but the writer of the file vouches for")
	return a
}

// counted says how many messages an exchange has before and after the answer, and the model that telemetry names.
func (e *Exchange) counted() (prompt, answers int, model string) {
	if e.told == nil {
		before, after := e.said()
		return len(before), len(after), ""
	}
	p, err := observe.Project(observe.Call{Protocol: observe.OTLP, Request: e.told.Body})
	if err != nil {
		return 0, 0, ""
	}
	facts, _ := observed.FactsOf(&evidence.Observed{Protocol: observed.OTLP, Request: new(evidence.ObservedBody)}, e.told.Body, nil)
	return len(p.Asked), len(p.Answered), or(facts.ModelVersion, facts.Model)
}
