package convo

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ErrCut is the error of a stream that ends before the vendor's last event. The readers return the part that came
// with it.
var ErrCut = errors.New("the stream ends before its last event")

// ErrUnended is ErrCut of a stream in which each answer that began says why it stopped. Some servers send nothing more.
var ErrUnended = fmt.Errorf("%w, and all answers had stopped", ErrCut)

// A StreamError is an error that a vendor reports within a stream, after a success status.
type StreamError struct{ Body jsontext.Value } // in the form of the vendor's errors

func (e *StreamError) Error() string { return "the vendor ends the stream with an error" }

// An Event is one server-sent event.
type Event struct {
	Name string // "": message
	Data []byte
}

// Events splits a body into server-sent events by the HTML standard (section 9.2.6): lines end with CR, LF or both,
// an empty line ends an event, and an event without an empty line at its end does not count.
func Events(body []byte) iter.Seq[Event] { return events(body, func([]byte) bool { return false }) }

// answerEvents returns the events of a model's answer that have data. Some servers leave out the empty line at the end: there, an event
// counts if its data is whole.
func answerEvents(body []byte) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for e := range events(body, isWhole) {
			if len(bytes.TrimSpace(e.Data)) > 0 && !yield(e) {
				return
			}
		}
	}
}

const done = "[DONE]" // the data of OpenAI's last event

func isWhole(data []byte) bool {
	return string(data) == done || isObject(data)
}

func isObject(data []byte) bool {
	return bytes.HasPrefix(data, []byte("{")) && jsontext.Value(data).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// events returns events, and one without an empty line at its end if its data counts.
func events(body []byte, counts func(data []byte) bool) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		body = bytes.TrimPrefix(body, []byte("\ufeff"))
		var e Event
		some := false
		for len(body) > 0 {
			end := bytes.IndexAny(body, "\r\n")
			if end < 0 {
				end = len(body)
			}
			line := body[:end]
			if bytes.HasPrefix(body[end:], []byte("\r\n")) {
				end++
			}
			body = body[min(end+1, len(body)):]
			if len(line) == 0 {
				if some && !yield(e) {
					return
				}
				e, some = Event{}, false
				continue
			}
			name, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(name) {
			case "event":
				e.Name = string(value)
			case "data":
				if some {
					e.Data = append(e.Data, '\n')
				}
				e.Data, some = append(e.Data, value...), true
			}
		}
		if some && counts(e.Data) {
			yield(e)
		}
	}
}

// maxIndex limits the number of a choice, block, call or candidate in a stream.
const maxIndex = 1 << 10

// numbered holds the parts of an answer by their numbers. It takes memory for the parts that arrived, whatever their
// numbers are.
type numbered[T any] map[int]*T

// at returns the part with a number, and adds it if it is new.
func (n *numbered[T]) at(number int) (*T, error) {
	if number < 0 || number > maxIndex {
		return nil, fmt.Errorf("number %d is out of range", number)
	}
	if *n == nil {
		*n = numbered[T]{}
	}
	part := (*n)[number]
	if part == nil {
		part = new(T)
		(*n)[number] = part
	}
	return part, nil
}

// all returns the parts in the order of their numbers.
func (n numbered[T]) all() iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		for _, number := range slices.Sorted(maps.Keys(n)) {
			if !yield(number, n[number]) {
				return
			}
		}
	}
}

// notTheProtocol names the member that has the wrong type. It leaves out the library's own text, which is not stable.
func notTheProtocol(err error) error {
	var semantic *json.SemanticError
	if errors.As(err, &semantic) && semantic.JSONPointer != "" {
		return fmt.Errorf("an event does not follow the vendor's protocol: %s has the wrong type", semantic.JSONPointer)
	}
	return errors.New("an event does not follow the vendor's protocol")
}
