package verify

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/verify/trust"
)

// Inputs are what a reader brings along, since nothing of it may come from what is verified. The zero Inputs bring nothing,
// and prove nothing.
type Inputs struct {
	Trust  *InputFile  // the reader's trust file; nil: none
	Before *time.Time  // also ask whether everything existed before it; nil: do not ask
	At     *time.Time  // the moment of checking; nil: now, by Now
	CRLs   []InputFile // revocation lists

	// What the reader knows of the log from elsewhere; nil: nothing.
	Checkpoint  *InputFile
	Consistency *InputFile
	Entries     io.ReaderAt // read while files are verified

	Now func() time.Time
}

// An InputFile is one that the reader chose.
type InputFile struct {
	Name string // as the reader calls it, for errors
	From io.Reader
}

// maxFile bounds a file that is held in memory whole. A trust file of a hundred thousand keys has half of it.
const maxFile = 64 << 20

// Options are those that verification takes.
func (q *Inputs) Options() (Options, error) {
	o := Options{Entries: q.Entries}
	if err := q.moments(&o); err != nil {
		return o, err
	}
	for _, file := range q.CRLs {
		list, err := parsed(&file, trust.MaxCRL, trust.ParseCRL)
		if err != nil {
			return o, err
		}
		o.CRLs = append(o.CRLs, list)
	}
	var err error
	if o.Trust, err = ReadTrust(q.Trust); err != nil {
		return o, err
	}
	if q.Consistency != nil && q.Checkpoint == nil {
		return o, errors.New("consistency: a proof between two checkpoints, and no checkpoint says which the other one is")
	}
	if o.Checkpoint, err = parsed(q.Checkpoint, maxFile, checkpoint); err != nil {
		return o, err
	}
	o.Consistency, err = parsed(q.Consistency, maxFile, consistency)
	return o, err
}

// moments reads the times. The zero time stands for none in verification, so it cannot be asked about.
func (q *Inputs) moments(o *Options) error {
	if q.At == nil {
		o.At = q.Now()
	} else if o.At = *q.At; o.At.IsZero() {
		return errors.New("at: nothing was checked before the year 1")
	}
	if q.Before != nil {
		if o.Before = *q.Before; o.Before.IsZero() {
			return errors.New("before: nothing existed before the year 1")
		}
	}
	return nil
}

// ReadTrust reads a trust file; no file is no trust.
func ReadTrust(file *InputFile) (*trust.Trust, error) { return parsed(file, maxFile, trust.Parse) }

func checkpoint(doc []byte) (string, error) {
	if len(doc) == 0 {
		return "", errors.New("an empty file is no checkpoint")
	}
	return evidence.MendNote(string(doc)), nil
}

// consistency reads a proof, in whatever spelling of JSON it came.
func consistency(doc []byte) (*operator.Consistency, error) {
	form, _, err := evidence.Mend(doc)
	if err != nil {
		return nil, fmt.Errorf("reading consistency proof: %w", err)
	}
	return operator.ParseConsistency(form)
}

// parsed reads no more of a file than it can have, and says in errors which file it is. No file gives nothing.
func parsed[T *trust.Trust | *x509.RevocationList | *operator.Consistency | string](file *InputFile, most int64, parse func([]byte) (T, error)) (T, error) {
	var none T
	if file == nil {
		return none, nil
	}
	doc, err := io.ReadAll(io.LimitReader(file.From, most+1))
	if err == nil && int64(len(doc)) > most {
		err = fmt.Errorf("more than %d bytes", most)
	}
	if err != nil {
		return none, fmt.Errorf("%s: %w", file.Name, err)
	}
	content, err := parse(doc)
	if err != nil {
		return none, fmt.Errorf("%s: %w", file.Name, err)
	}
	return content, nil
}
