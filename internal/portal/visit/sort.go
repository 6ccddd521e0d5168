package visit

import (
	"bytes"
	"errors"
	"io"
	"jurat/verify"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/scitt"
	"jurat/verify/trust"
)

// Use says what a file of the visitor's is for. It follows from what the file is, and never from its name.
type Use string

const (
	ToVerify       Use = "file" // what is verified; also whatever is not recognised
	AsTrust        Use = "trust"
	AsPolicy       Use = "policy"
	AsCRL          Use = "crl"
	AsConsistency  Use = "consistency"
	AsEntries      Use = "entries"
	AsCheckpoint   Use = "checkpoint"
	startOfFile        = 64 << 10 // bytes in which a file is recognised, unless it is small enough to be held
	mostRecognised     = 64 << 20
)

// ErrTwice says that two files were given of which a verification takes one.
var ErrTwice = errors.New("only one of its kind can be used at a time")

// UseOf recognises a file by its content.
func UseOf(s *Source) Use {
	start := make([]byte, min(s.Size, startOfFile))
	if _, err := io.ReadFull(s.reader(), start); err != nil {
		return ToVerify
	}
	start = bytes.TrimLeft(evidence.CutMark(start), " \t\r\n")
	switch {
	case scitt.Is(start): // its payload can be any text
		return ToVerify
	case bytes.HasPrefix(start, []byte("-----BEGIN X509 CRL")):
		return AsCRL
	case bytes.HasPrefix(start, []byte{0x30}):
		return useOfDER(s)
	case bytes.HasPrefix(start, []byte("{")):
		return useOfJSON(s, start)
	case bytes.Contains(bytes.ReplaceAll(start, []byte("\r\n"), []byte("\n")), []byte("\n\n— ")):
		return AsCheckpoint
	}
	return ToVerify
}

// whole returns a file, or nil if it is too large to be anything but a file to verify.
func whole(s *Source, most int64) []byte {
	if s.Size > most {
		return nil
	}
	doc, err := io.ReadAll(s.reader())
	if err != nil {
		return nil
	}
	return doc
}

func useOfDER(s *Source) Use {
	if doc := whole(s, trust.MaxCRL); doc != nil {
		if _, err := trust.ParseCRL(doc); err == nil {
			return AsCRL
		}
	}
	return ToVerify
}

// useOfJSON tells entries by their first line, and other files by their format. In an entry, payload is a digest.
func useOfJSON(s *Source, start []byte) Use {
	line, _, _ := bytes.Cut(start, []byte("\n"))
	var entry struct {
		Payload jsontext.Value `json:"payload"`
	}
	if json.Unmarshal(line, &entry) == nil && entry.Payload.Kind() == '"' && !bytes.Contains(line, []byte(`"payloadType"`)) {
		return AsEntries
	}
	if evidence.BeginsAsRecord(start) {
		return ToVerify
	}
	var said struct {
		Format string `json:"format"`
	}
	if doc := whole(s, mostRecognised); doc == nil || json.Unmarshal(evidence.CutMark(doc), &said) != nil {
		return ToVerify
	}
	use, known := map[string]Use{trust.Format: AsTrust, verify.PolicyFormat: AsPolicy, operator.ConsistencyFormat: AsConsistency}[said.Format]
	if !known {
		return ToVerify
	}
	return use
}

// sort takes the files out of what is to be verified that are for something else, in any order. A checkpoint beside other files is what
// the visitor knows of the log; alone, it is verified itself.
func (r *Request) sort(sources []Source) error {
	var rest, checkpoints []int
	for _, i := range r.Files {
		source, err := at(sources, &i)
		if err != nil {
			return err
		}
		one := map[Use]**int{AsTrust: &r.Trust, AsPolicy: &r.Policy, AsConsistency: &r.Consistency, AsEntries: &r.Entries}
		switch use := UseOf(source); use {
		case AsCRL:
			r.CRLs = append(r.CRLs, i)
		case AsCheckpoint:
			checkpoints = append(checkpoints, i)
		case ToVerify:
			rest = append(rest, i)
		default:
			if *one[use] != nil {
				return &fileError{source.Name, ErrTwice}
			}
			*one[use] = &i
		}
	}
	if len(rest) > 0 && len(checkpoints) == 1 && r.Checkpoint == nil {
		r.Checkpoint, checkpoints = &checkpoints[0], nil
	}
	r.Files = append(rest, checkpoints...)
	if len(r.Files) == 0 {
		return errors.New("there is nothing to verify: only trust files, lists and the like")
	}
	return nil
}

// A fileError says which file is wrong.
type fileError struct {
	name string
	err  error
}

func (e *fileError) Error() string { return e.name + ": " + e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }
