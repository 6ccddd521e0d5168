package evidence

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// recordIDIn reads the id of the record that begins here, also if the record is damaged. An id after the damage is a
// guess: the first text that looks like one.
func recordIDIn(record []byte) string {
	dec := jsontext.NewDecoder(bytes.NewBuffer(record))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return guessRecordID(record[dec.InputOffset():])
		}
		if token.Kind() == '"' && dec.StackPointer() == "/payload/record_id" && CheckRecordID(token.String()) == nil {
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
	if CheckRecordID(id) != nil {
		return ""
	}
	return id
}
