// Package visit serves a visitor of the portal: it verifies the visitor's files by the visitor's trust file, and
// describes the result in the visitor's language. It does not depend on a browser: its input and output are JSON.
package visit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/evidence/scitt"
	"jurat/verify"
	"jurat/verify/trust"
)

// A Source is a file of the visitor's.
type Source struct {
	Name string
	Size int64
	From io.ReaderAt
}

func (s *Source) reader() *io.SectionReader { return io.NewSectionReader(s.From, 0, s.Size) }

// A Visit keeps the last result, so that more of it can be shown. It is for one goroutine.
type Visit struct {
	// Verify calls Progress with the bytes read and the size of the file that it verifies. May be nil.
	Progress func(file int, read, size int64)
	Now      func() time.Time

	files     []*examined
	exchanges *verify.Exchanges // what the files show together of exchanges between agents; nil: nothing
}

// An examined file, with the records that are kept to be shown.
type examined struct {
	name    string
	report  *verify.Report // nil: the file could not be verified
	answers *verify.Answers
	records []*evidence.Record
	held    int64    // bytes of payloads in records
	left    bool     // there are more records than are kept
	broken  *claimed // the record by which a file does not open; nil: it opens, or it is not known
}

// mostHeld limits the payloads that are kept for showing, in bytes. The records beyond it are verified but not shown.
const mostHeld = 64 << 20

// A Request asks for a verification. It names files by their index among the sources; a missing index means that
// there is no such file.
type Request struct {
	Files       []int  `json:"files"`
	Trust       *int   `json:"trust"`
	CRLs        []int  `json:"crls"`
	Policy      *int   `json:"policy"`
	Sort        bool   `json:"sort"` // take trust file, lists, checkpoint and the like out of Files, by what they are
	Checkpoint  *int   `json:"checkpoint"`
	Consistency *int   `json:"consistency"`
	Entries     *int   `json:"entries"`
	Before      string `json:"before"` // RFC 3339; "": not asked
	At          string `json:"at"`     // RFC 3339; "": now
}

// An Answer holds the result for each file.
type Answer struct {
	Files []FileAnswer `json:"files"`
}

// A FileAnswer has a report, or an error if the file cannot be verified.
type FileAnswer struct {
	Name   string `json:"name"`
	Report string `json:"report,omitzero"` // what 'jurat verify --json' prints
	Error  string `json:"error,omitzero"`
}

// Verify answers a Request. It returns an error about the request or about the files beside those to verify.
func (v *Visit) Verify(request []byte, sources []Source) (*Answer, error) {
	v.files, v.exchanges = nil, nil
	var r Request
	if err := json.Unmarshal(request, &r, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	if r.Sort {
		if err := r.sort(sources); err != nil {
			return nil, err
		}
	}
	o, err := v.options(&r, sources)
	if err != nil {
		return nil, err
	}
	o.Together = verify.NewTogether(o)
	answer := new(Answer)
	for _, place := range r.Files {
		source, err := at(sources, place)
		if err != nil {
			return nil, err
		}
		answer.Files = append(answer.Files, v.file(place, source, o))
	}
	v.exchanges = o.Together.Exchanges()
	for _, report := range o.Together.Reports() {
		answer.Files = append(answer.Files, v.together(report))
	}
	return answer, nil
}

// together adds the joint result of several files of one log, in the form of a further file.
func (v *Visit) together(report *verify.Report) FileAnswer {
	var names []string
	for _, e := range v.files {
		if e.report != nil && e.report.Log != nil && e.report.Kind != verify.SeveralFiles && e.report.Log.Origin == report.Log.Origin {
			names = append(names, e.name)
		}
	}
	if most := 3; len(names) > most {
		names = append(names[:most], "…")
	}
	e := &examined{name: strings.Join(names, " + ")}
	v.files = append(v.files, e)
	return e.answer(report)
}

// answer keeps the report on the file, and writes it.
func (e *examined) answer(report *verify.Report) FileAnswer {
	doc, err := report.Marshal()
	if err != nil {
		return FileAnswer{Name: e.name, Error: err.Error()}
	}
	e.report, e.answers = report, report.Answers()
	return FileAnswer{Name: e.name, Report: string(doc)}
}

func (v *Visit) options(r *Request, sources []Source) (o verify.Options, err error) {
	q := verify.Inputs{Now: v.Now}
	for text, moment := range map[*string]**time.Time{&r.Before: &q.Before, &r.At: &q.At} {
		if *text == "" {
			continue
		}
		t, err := time.Parse(time.RFC3339, *text)
		if err != nil {
			return o, fmt.Errorf("%q is not a time such as 2026-02-01T09:00:00Z", *text)
		}
		*moment = &t
	}
	var policy *verify.InputFile
	for _, one := range []struct {
		place *int
		file  **verify.InputFile
	}{{r.Trust, &q.Trust}, {r.Checkpoint, &q.Checkpoint}, {r.Consistency, &q.Consistency}, {r.Policy, &policy}} {
		if *one.file, err = input(sources, one.place); err != nil {
			return o, err
		}
	}
	for i := range r.CRLs {
		crl, err := input(sources, &r.CRLs[i])
		if err != nil {
			return o, err
		}
		q.CRLs = append(q.CRLs, *crl)
	}
	if r.Entries != nil {
		source, err := at(sources, *r.Entries)
		if err != nil {
			return o, err
		}
		q.Entries = source.reader()
	}
	if o, err = q.Options(); err != nil || policy == nil {
		return o, err
	}
	demanded, err := verify.ReadPolicy(policy)
	if err != nil {
		return o, err
	}
	return o, o.Adopt(demanded)
}

// input returns a file that the request names by its place; nil: it names none.
func input(sources []Source, place *int) (*verify.InputFile, error) {
	if place == nil {
		return nil, nil
	}
	source, err := at(sources, *place)
	if err != nil {
		return nil, err
	}
	return &verify.InputFile{Name: source.Name, From: source.reader()}, nil
}

func at(sources []Source, place int) (*Source, error) {
	if place < 0 || place >= len(sources) {
		return nil, fmt.Errorf("reading the request: there is no source %d", place)
	}
	return &sources[place], nil
}

// file verifies one file as the command does.
func (v *Visit) file(i int, source *Source, o verify.Options) FileAnswer {
	e := &examined{name: source.Name}
	v.files = append(v.files, e)
	o.Each = e.keep
	report, err := verify.Read(&told{from: source.reader(), size: source.Size, tell: func(read int64) {
		if v.Progress != nil {
			v.Progress(i, read, source.Size)
		}
	}}, o)
	if err != nil {
		return FileAnswer{Name: source.Name, Error: err.Error()}
	}
	if first := report.Guarantees[0]; first.Rule == "form" && first.Record != "" {
		e.broken = claimedIn(source, first.Record)
	}
	if report.Records == 0 { // the file did not open, so none of its records are shown
		e.records = nil
	}
	return e.answer(report)
}

func (e *examined) keep(r *evidence.Record) {
	size := int64(len(r.Canonical()))
	if e.left = e.left || e.held+size > mostHeld; !e.left {
		e.records, e.held = append(e.records, r), e.held+size
	}
}

// Trust describes a trust file, so that a visitor can compare it before using it. It returns an error if it is not
// one.
func (v *Visit) Trust(source Source) (*TrustAnswer, error) {
	t, err := verify.ReadTrust(&verify.InputFile{Name: source.Name, From: source.reader()})
	if err != nil {
		return nil, err
	}
	fingerprint, err := t.Fingerprint()
	if err != nil {
		return nil, err
	}
	return &TrustAnswer{Fingerprint: fingerprint.String(), Keys: len(t.Keys), Authorities: len(t.Authorities), CAs: len(t.CAs), Logs: len(t.Logs)}, nil
}

// A TrustAnswer lists the contents of a trust file.
type TrustAnswer struct {
	Fingerprint string `json:"fingerprint"`
	Keys        int    `json:"keys"`
	Authorities int    `json:"authorities"`
	CAs         int    `json:"cas"`
	Logs        int    `json:"logs"`
}

// told is a file that reports reading progress: often enough to be followed, rarely enough to cost little.
type told struct {
	from       io.ReadSeeker
	read, last int64
	size       int64
	tell       func(read int64)
}

// Seek moves to another place; verification does so when it scans a file before it reads it.
func (t *told) Seek(offset int64, whence int) (int64, error) {
	at, err := t.from.Seek(offset, whence)
	if err == nil {
		t.read, t.last = at, at
	}
	return at, err
}

func (t *told) Read(p []byte) (int, error) {
	n, err := t.from.Read(p)
	t.read += int64(n)
	if t.read-t.last > t.size/200 || errors.Is(err, io.EOF) {
		t.last = t.read
		t.tell(t.read)
	}
	return n, err
}

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
		if doc := whole(s, trust.MaxCRL); doc != nil {
			if _, err := trust.ParseCRL(doc); err == nil {
				return AsCRL
			}
		}
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
		source, err := at(sources, i)
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
				return fmt.Errorf("%s: %w", source.Name, ErrTwice)
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
