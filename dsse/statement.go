package dsse

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// Constants of a statement.
const (
	StatementType = "https://in-toto.io/Statement/v1"
	PredicateType = "urn:jurat:sealed-records:v1"
)

// about is in every predicate, for people who see it in other tools.
const about = "The DSSE signature around this statement is that of whoever exported these records, and says only that they did. " +
	"Who said what is shown by the signatures inside the records: each was made over the record's canonical payload, and is no DSSE signature."

// ErrOther says that an envelope holds a statement of another kind.
var ErrOther = errors.New("the statement in the envelope is not one about sealed records")

// statementForm is a statement as it is written, with its members in canonical order.
type statementForm struct {
	Type          string        `json:"_type"`
	Predicate     predicateForm `json:"predicate"`
	PredicateType string        `json:"predicateType"`
	Subject       []subjectForm `json:"subject"`
}

// predicateForm holds either a bundle or a record: the file without its line feed.
type predicateForm struct {
	About  string         `json:"about"`
	Bundle jsontext.Value `json:"bundle,omitzero"`
	Record jsontext.Value `json:"record,omitzero"`
}

type subjectForm struct {
	Digest struct {
		SHA256 string `json:"sha256"`
	} `json:"digest"`
	Name string `json:"name"`
}

// Statement returns the statement about a record file or a bundle file, in any spelling. Each content has exactly one
// statement. It returns an error if the file cannot be opened or has no record.
func Statement(file []byte) ([]byte, error) {
	form := statementForm{Type: StatementType, Predicate: predicateForm{About: about}, PredicateType: PredicateType}
	doc, records, err := open(file)
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, errors.New("the file has no record, so a statement has no subject")
	}
	if evidence.IsBundle(file) {
		form.Predicate.Bundle = doc
	} else {
		form.Predicate.Record = doc
	}
	for _, r := range records {
		s := subjectForm{Name: r.Payload.RecordID}
		s.Digest.SHA256 = hex.EncodeToString(r.Digest[:])
		form.Subject = append(form.Subject, s)
	}
	statement, err := json.Marshal(form)
	if err != nil {
		return nil, fmt.Errorf("writing statement: %w", err)
	}
	return statement, nil
}

// open returns the file in its canonical form, without the line feed, and its records.
func open(file []byte) (jsontext.Value, []*evidence.Record, error) {
	if evidence.IsBundle(file) {
		b, _, err := evidence.ReadWholeBundle(file)
		if err != nil {
			return nil, nil, err
		}
		return written(b, b.Records)
	}
	r, _, err := evidence.Read(file)
	if err != nil {
		return nil, nil, err
	}
	return written(r, []*evidence.Record{r})
}

func written(file interface{ Marshal() ([]byte, error) }, records []*evidence.Record) (jsontext.Value, []*evidence.Record, error) {
	doc, err := file.Marshal()
	return bytes.TrimSuffix(doc, []byte("\n")), records, err
}

// File returns the record file or bundle file inside. It returns an error with ErrOther in its chain if the statement
// is of another kind. It refuses a statement that differs from Statement of its file, so the subjects are the
// records.
func (e *Envelope) File() ([]byte, error) {
	var kind struct {
		PredicateType string `json:"predicateType"`
	}
	if err := json.Unmarshal(e.statement, &kind); err != nil {
		return nil, fmt.Errorf("opening statement: %w", evidence.Steady(err))
	}
	if kind.PredicateType != PredicateType {
		return nil, fmt.Errorf("%w: its predicateType is %q", ErrOther, kind.PredicateType)
	}
	var form statementForm
	if err := json.Unmarshal(e.statement, &form); err != nil {
		return nil, fmt.Errorf("opening statement: %w", evidence.Steady(err))
	}
	inside := form.Predicate.Record
	if inside == nil {
		inside = form.Predicate.Bundle
	}
	file := append(bytes.Clone(inside), '\n')
	again, err := Statement(file)
	if err != nil {
		return nil, fmt.Errorf("opening statement: %w", err)
	}
	if !bytes.Equal(again, e.statement) {
		return nil, errors.New("opening statement: it contradicts the records in it, or is not in its one form")
	}
	return file, nil
}
