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

// Inputs are what the reader brings, because none of it may come from the verified file. The zero Inputs bring
// nothing and prove nothing.
type Inputs struct {
	Trust  *InputFile  // the reader's trust file; nil: none
	Before *time.Time  // also ask whether everything existed before it; nil: do not ask
	At     *time.Time  // the moment of checking; nil: now, by Now
	CRLs   []InputFile // revocation lists

	Grace *time.Duration // see verify.Options.Grace; nil: trust.DefaultGrace

	// What the reader knows of the log from elsewhere; nil: nothing.
	Checkpoint  *InputFile
	Consistency *InputFile
	Entries     io.ReaderAt // read while files are verified

	Now func() time.Time
}

// An InputFile is a file that the reader chose.
type InputFile struct {
	Name string // the reader's name for it, for errors
	From io.Reader
}

// maxFile bounds a file that is held in memory. A trust file of a hundred thousand keys has half that size.
const maxFile = 64 << 20

// Options reads all inputs and returns them as options. Its errors name the file that cannot be read.
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
	if q.Grace != nil {
		if o.Grace = *q.Grace; o.Grace <= 0 {
			return o, fmt.Errorf("grace: %s: want a duration above zero, such as 24h", o.Grace)
		}
	}
	var err error
	if o.Trust, err = ReadTrust(q.Trust); err != nil {
		return o, err
	}
	o.KeepFingerprint()
	if q.Consistency != nil && q.Checkpoint == nil {
		return o, errors.New("consistency: the proof is between two checkpoints; bring the other checkpoint, too")
	}
	if o.Checkpoint, err = parsed(q.Checkpoint, maxFile, checkpoint); err != nil {
		return o, err
	}
	o.Consistency, err = parsed(q.Consistency, maxFile, consistency)
	return o, err
}

// moments reads the times. Verification treats the zero time as absent, so moments refuses it.
func (q *Inputs) moments(o *Options) error {
	if q.At == nil {
		o.At = q.Now()
	} else if o.At = *q.At; o.At.IsZero() {
		return errors.New("at: the moment of checking must be after the year 0")
	}
	if q.Before != nil {
		if o.Before = *q.Before; o.Before.IsZero() {
			return errors.New("before: the time must be after the year 0")
		}
	}
	return nil
}

// ReadPolicy reads a policy file. Its errors name the file.
func ReadPolicy(file *InputFile) (*PolicyTerms, error) {
	return parsed(file, MaxPolicy, ParsePolicy)
}

// ReadTrust reads a trust file. It returns nil if file is nil. Its errors name the file.
func ReadTrust(file *InputFile) (*trust.Trust, error) { return parsed(file, maxFile, trust.Parse) }

func checkpoint(doc []byte) (string, error) {
	if len(doc) == 0 {
		return "", errors.New("an empty file is no checkpoint")
	}
	return evidence.MendNote(string(doc)), nil
}

// consistency reads a proof in any JSON spelling.
func consistency(doc []byte) (*operator.Consistency, error) {
	form, _, err := evidence.Mend(doc)
	if err != nil {
		return nil, fmt.Errorf("reading consistency proof: %w", err)
	}
	return operator.ParseConsistency(form)
}

// parsed reads at most the given number of bytes, and names the file in errors. It returns the zero value for no
// file.
func parsed[T *trust.Trust | *x509.RevocationList | *operator.Consistency | *PolicyTerms | string](file *InputFile, most int64, parse func([]byte) (T, error)) (T, error) {
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
	content, err := parse(evidence.CutMark(doc))
	if err != nil {
		return none, fmt.Errorf("%s: %w", file.Name, err)
	}
	return content, nil
}
