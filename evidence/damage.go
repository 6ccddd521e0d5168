package evidence

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// inRecord names the record in which a bundle stops being JSON, or stops being canonical.
func inRecord(doc []byte, err error) error {
	var syntax *SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	var index int
	if _, scanErr := fmt.Sscanf(syntax.Pointer, "/records/%d", &index); scanErr != nil {
		return err
	}
	return &RecordError{Index: index, RecordID: recordIDIn(fromRecord(doc, index)), Err: err}
}

// fromRecord returns a damaged bundle from the beginning of a record on; nil if the damage stands before that.
func fromRecord(doc []byte, index int) []byte {
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc))
	for dec.StackPointer() != "/records" {
		if _, err := dec.ReadToken(); err != nil {
			return nil
		}
	}
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '[' {
		return nil
	}
	for range index {
		if err := dec.SkipValue(); err != nil {
			return nil
		}
	}
	return bytes.TrimLeft(doc[dec.InputOffset():], ", \t\r\n")
}

// recordIDIn reads the id of the record that begins here, however it goes on. An id that stands behind damage is a
// guess: the first that looks like one.
func recordIDIn(record []byte) string {
	dec := jsontext.NewDecoder(bytes.NewBuffer(record))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return guessRecordID(record[dec.InputOffset():])
		}
		if token.Kind() == '"' && dec.StackPointer() == "/payload/record_id" && checkRecordID(token.String()) == nil {
			return token.String()
		}
		if dec.StackDepth() == 0 {
			return ""
		}
	}
}

func guessRecordID(rest []byte) string {
	rest, _, _ = bytes.Cut(rest, []byte(`"timestamps":[`)) // the last member of a record
	_, rest, _ = bytes.Cut(rest, []byte(`"record_id":"`))
	id := string(rest[:min(len(rest), len("00000000-0000-7000-8000-000000000000"))])
	if checkRecordID(id) != nil {
		return ""
	}
	return id
}
