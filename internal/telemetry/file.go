package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/observe/otlp"
)

// ReadFile finds the acts in a file of exported traces or logs. It takes what exporters and collectors write: OTLP/JSON, one body or many, one after
// another (the collector's file exporter writes one on each line) or in an array; and one body in protobuf. Logs in protobuf cannot be told from
// traces by their bytes, and are read as traces.
//
// The caller seals each of the Acts, or makes what it needs of it: [Act.Observed] is the act as a record states it, [observe.Project] of its Request
// (protocol [observe.OTLP]) are the messages in it, and Missing of Observed is what the sender did not tell. It is all the sender's word.
//
// Its errors say which document of the file is wrong, and why. An error has ErrNoTelemetry in its chain if the file has nothing of OTLP in it.
func ReadFile(file []byte) (*Told, error) {
	start := bytes.TrimLeft(file, " \t\r\n\ufeff")
	if len(start) == 0 {
		return nil, fmt.Errorf("the file is empty: %w", ErrNoTelemetry)
	}
	var all otlp.Data
	if start[0] != '{' && start[0] != '[' {
		data, err := Decode(Traces, Protobuf, file)
		if err != nil || len(data.ResourceSpans) == 0 {
			return nil, errors.Join(ErrNoTelemetry, err)
		}
		return find(data, roomFor(file)), nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(start))
	for n := 1; ; n++ {
		doc, err := d.ReadValue()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("document %d of the file: not JSON: %w", n, err)
		}
		if err := add(&all, doc); err != nil {
			return nil, fmt.Errorf("document %d of the file: %w", n, err)
		}
	}
	if len(all.ResourceSpans)+len(all.ResourceLogs) == 0 {
		return nil, ErrNoTelemetry
	}
	return find(&all, roomFor(file)), nil
}

func roomFor(file []byte) int { return max(mostTold, 4*len(file)) }

// ErrNoTelemetry says that a file has nothing of OTLP in it.
var ErrNoTelemetry = errors.New("no spans and no logs of OpenTelemetry (OTLP) are in it")

// add adds a document, or those in an array.
func add(all *otlp.Data, doc jsontext.Value) error {
	docs := []jsontext.Value{doc}
	if doc.Kind() == jsontext.KindBeginArray {
		if err := json.Unmarshal(doc, &docs); err != nil {
			return err
		}
	}
	for _, doc := range docs {
		data, err := Decode("", JSON, doc)
		if err != nil {
			return err
		}
		all.ResourceSpans = append(all.ResourceSpans, data.ResourceSpans...)
		all.ResourceLogs = append(all.ResourceLogs, data.ResourceLogs...)
	}
	return nil
}
