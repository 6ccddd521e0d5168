package verify

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/evidence/scitt"
	"jurat/internal/kit/fault"
	"jurat/internal/kit/inorder"
	"jurat/verify/trust"
)

// Read checks a file while it reads it: a record, a bundle, a SCITT statement around a record, or a checkpoint. It reads a bundle once, record by
// record, on all cores, and keeps of each record what other records' rules need, and all of a trial's acts. So its memory depends on the number of
// records, not on their length. It searches an io.Seeker first, because the members of a bundle may stand in any order. It reads any other file into
// memory, at most MaxWhole bytes.
//
// A file that lost its form on the way (see evidence.Read) is read in its canonical form, and the report says so. A
// file that is recognisably jurat's but cannot be opened gets a report in which its content is refuted. Read returns
// ErrNotOurs for any other kind of file, ErrFault if the program itself fails, and the errors of reading file.
func Read(file io.Reader, o Options) (*Report, error) {
	return answered(func() (*Report, error) { return read(file, o) })
}

// answered returns what do returns, or ErrFault if do panics.
func answered(do func() (*Report, error)) (r *Report, err error) {
	err = fault.Guard(func() (err error) {
		r, err = do()
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

func read(file io.Reader, o Options) (*Report, error) {
	start := make([]byte, enoughToKnow)
	n, err := io.ReadFull(file, start)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	start = start[:n]
	if evidence.BeginsAsBundle(start) {
		return bundleFrom(again(file, start), o)
	}
	whole, err := io.ReadAll(io.LimitReader(io.MultiReader(bytes.NewReader(start), file), MaxWhole+1))
	if err != nil {
		return nil, err
	}
	if len(whole) > MaxWhole {
		return nil, fmt.Errorf("the file has more than %d bytes and is not a bundle: only bundles may be larger", MaxWhole)
	}
	return one(whole, o)
}

// MaxWhole is the largest file, in bytes, that is read into memory.
const MaxWhole = 1 << 30

// enoughToKnow is how many bytes show what kind of file it is.
const enoughToKnow = 4 << 10

// again returns a reader of the whole file after its start was read.
func again(file io.Reader, start []byte) io.Reader {
	if seeker, seeks := file.(io.Seeker); seeks {
		if _, err := seeker.Seek(int64(-len(start)), io.SeekCurrent); err == nil {
			return file
		}
	}
	return io.MultiReader(bytes.NewReader(start), file)
}

// File checks a file in memory. It returns the errors of Read.
func File(file []byte, o Options) (*Report, error) {
	return answered(func() (*Report, error) {
		if evidence.BeginsAsBundle(file[:min(len(file), enoughToKnow)]) {
			return bundleFrom(bytes.NewReader(file), o)
		}
		return one(file, o)
	})
}

// one checks a file that does not begin as a bundle: a record, a statement, a checkpoint, or a damaged file.
func one(file []byte, o Options) (*Report, error) {
	doc := evidence.CutMark(file)
	o.mended = len(doc) < len(file)
	if scitt.Is(file) {
		return statementFile(file, o)
	}
	if signed, is := checkpointIn(file); is {
		o.mended = signed != string(file)
		return Checkpoint(signed, o), nil
	}
	if err := evidence.CheckEncoding(file); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotOurs, err)
	}
	r, mended, err := evidence.Read(file)
	if err == nil {
		o.mended = mended
		return record(r, o), nil
	}
	if evidence.IsBundle(file) {
		_, err = evidence.ReadBundle(bytes.NewReader(file)) // fails: file is no bundle
	}
	seen := &sight{seen: map[string]bool{}}
	seen.Look(file)
	if !evidence.IsBundle(file) { // a record can mention bundles
		seen.seen[evidence.BundleFormat] = false
	}
	return damagedFile(seen, err, evidence.BeginsAsRecord(file), o)
}

// bundleFrom checks a bundle, or finds out what else the file is.
func bundleFrom(file io.Reader, o Options) (*Report, error) {
	seen := &sight{from: file, seen: map[string]bool{}}
	bundle, err := evidence.ReadBundle(seen.Reader())
	var r *Report
	if err == nil {
		r, err = readBundle(bundle, o)
	}
	if err == nil || errors.Is(err, evidence.ErrBehind) || errors.Is(err, ErrFault) {
		return r, err
	}
	if _, drained := io.Copy(io.Discard, seen); drained != nil {
		return nil, drained
	}
	if seen.Err != nil {
		return nil, seen.Err
	}
	return damagedFile(seen, err, false, o)
}

// readBundle checks a bundle. Its error says why the file cannot be opened or read.
func readBundle(bundle *evidence.BundleReader, o Options) (*Report, error) {
	c := newCheck(o, ManyRecords)
	c.begin(bundle.Checkpoint, bundle.Anchors)
	type result struct {
		examined
		raw *evidence.RawRecord
		err error
	}
	work := func(raw *evidence.RawRecord) result {
		r, err := raw.Open()
		if err != nil {
			return result{err: err}
		}
		return result{examined: c.examine(r), raw: raw}
	}
	take := func(r result) error {
		if r.err == nil {
			r.err = bundle.Take(r.raw.Index, r.record)
		}
		if r.err != nil {
			return r.err
		}
		c.mended = c.mended || r.raw.Mended()
		c.take(r.examined)
		return nil
	}
	if err := inorder.Do(bundle.Next, (*evidence.RawRecord).Size, work, take); err != nil {
		return nil, err
	}
	c.mended = c.mended || bundle.Mended()
	return c.bundle(), nil
}

// damagedFile returns the report on a file that is ours and cannot be opened. If the file begins as a record and is not one,
// its error says what is wrong.
func damagedFile(s *sight, err error, begins bool, o Options) (*Report, error) {
	found := 0
	for _, mark := range telling {
		if s.seen[mark] {
			found++
		}
	}
	switch {
	case found < 2 && begins:
		return nil, fmt.Errorf("%w: %w", ErrNotOurs, err)
	case found < 2:
		return nil, ErrNotOurs
	case !s.seen[evidence.BundleFormat]:
		return damaged(OneRecord, "", o, err), nil
	}
	kind := ManyRecords
	if s.seen[string(evidence.Submission)] || s.seen[string(evidence.TrialClosing)] {
		kind = Trial
	}
	var in *evidence.RecordError
	if errors.As(err, &in) {
		return damaged(kind, in.RecordID, o, fmt.Errorf("at place %d of the bundle: %w", in.Index+1, in.Err)), nil
	}
	return damaged(kind, "", o, err), nil
}

// A sight searches the bytes that pass for marks of a file's kind, also in a damaged file.
type sight struct {
	from   io.Reader
	Err    error  // of reading
	passed []byte // the end of what was read, in which a mark may have begun
	seen   map[string]bool
}

// telling are the texts that only record and bundle files have together. marks are these and those that tell the kind of bundle.
var (
	telling = []string{`"format":"` + evidence.BundleFormat + `"`, `"schema":"` + evidence.Schema + `"`, `"signatures":[`, `"timestamps":[`, `"records":[`}
	marks   = append([]string{evidence.BundleFormat, string(evidence.Submission), string(evidence.TrialClosing)}, telling...)
)

const longestMark = 64

// Reader keeps io.Seeker if the file has it.
func (s *sight) Reader() io.Reader {
	if seeker, seeks := s.from.(io.Seeker); seeks {
		return struct {
			io.Reader
			io.Seeker
		}{s, seeker}
	}
	return s
}

func (s *sight) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.Err = err
	}
	s.Look(p[:n])
	return n, err
}

// Look takes in a part of the file. It ignores white space, which JSON allows around these names and values.
func (s *sight) Look(chunk []byte) {
	for _, c := range chunk {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			s.passed = append(s.passed, c)
		}
	}
	for _, mark := range marks {
		s.seen[mark] = s.seen[mark] || bytes.Contains(s.passed, []byte(mark))
	}
	s.passed = append(s.passed[:0], s.passed[max(0, len(s.passed)-longestMark):]...)
}

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
func parsed[T any](file *InputFile, most int64, parse func([]byte) (T, error)) (T, error) {
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

// A Statement says what a SCITT statement of a record states. Only what the guarantees say is proved of it.
type Statement struct {
	Issuer      string    `json:"issuer,omitzero"`       // the claim iss
	Subject     string    `json:"subject,omitzero"`      // the claim sub
	ContentType string    `json:"content_type,omitzero"` // of the payload
	Receipts    []Receipt `json:"receipts,omitempty"`
}

// A Receipt says whether a receipt holds.
type Receipt struct {
	Issuer string `json:"issuer,omitzero"` // the claim iss
	Status Status `json:"status"`
	Reason string `json:"reason"`
}

// statementFile checks a SCITT statement with the record in it.
func statementFile(file []byte, o Options) (*Report, error) {
	s, err := scitt.Parse(file)
	switch {
	case err != nil && bytes.Contains(file, []byte(scitt.ContentType)): // it may be what stands unprotected that is not read here
		return unopened(o, NotProved, "form", err), nil
	case err != nil: // other programs may write what is not read here, so it is not said to be false
		return nil, fmt.Errorf("%w: %w", ErrNotOurs, err)
	case !s.Own():
		return nil, fmt.Errorf("%w: a statement (COSE_Sign1) that holds no record: a tool for SCITT of its issuer verifies it", ErrNotOurs)
	}
	r, err := s.Record()
	if errors.Is(err, scitt.ErrNoRecord) && !forged(s, o.Trust) {
		return unopened(o, NotProved, "no-record", err), nil
	}
	if err != nil {
		return unopened(o, Refuted, "form", err), nil
	}
	o.envelope = &envelope{s, r}
	return record(r, o), nil
}

// forged reports whether the statement was not signed with the key of the trust file that it names.
func forged(s *scitt.Statement, t *trust.Trust) bool {
	if t == nil {
		return false
	}
	prepared, err := t.Prepared()
	if err != nil {
		return false // no key counts
	}
	i := exporterKey(prepared, s)
	return i >= 0 && errors.Is(s.Check(prepared.Keys[i].Public()), evidence.ErrSignature)
}

// exporterKey returns the place of the key that the statement names; -1: the trust file does not have it.
func exporterKey(t *trust.Trust, s *scitt.Statement) int {
	return slices.IndexFunc(t.Keys, func(k trust.Key) bool { return string(k.KeyID[:]) == string(s.KeyID) })
}

// An envelope is a SCITT statement, and the record that it was made of.
type envelope struct {
	*scitt.Statement
	record *evidence.Record
}

// check checks who exported the record, and what the receipts prove.
func (s *envelope) check(c *check) {
	c.statement = &Statement{Issuer: evidence.Abbreviate(s.Issuer), Subject: evidence.Abbreviate(s.Subject), ContentType: evidence.Abbreviate(s.ContentType)}
	x := &export{envelope: s}
	var public crypto.PublicKey
	if i := exporterKey(c.Trust, s.Statement); i >= 0 {
		x.key = &c.Trust.Keys[i]
		public = x.key.Public()
		x.wrong = s.Check(public)
		c.notes[Envelope] = fmt.Sprintf("%s %q signed the statement; only the record's own signatures show who said what", x.key.Role, x.key.Name)
	}
	if x.wrong == nil {
		x.contradiction, x.unread = s.certificate(public)
	}
	ask(&c.findings, rulesOfExport, nil, x)
	if x.key != nil && x.wrong == nil {
		ask(&c.findings, rulesOfExporter, nil, x)
	}
	for i := range s.Receipts {
		c.statement.Receipts = append(c.statement.Receipts, s.receipt(c.Trust, &s.Receipts[i]))
	}
}

// export is a statement, and what the trust file says of its signer: the operator or the record's actor. A statement has no time that an authority
// vouches for.
type export struct {
	*envelope
	key           *trust.Key // that it names; nil: the trust file does not have it
	wrong         error      // why the signature is not that key's, or cannot be checked
	contradiction error      // what speaks against the certificate that it names
	unread        error      // why that certificate cannot be compared
}

// certificate says what speaks against a statement whose protected header names its signer's certificate. public is the key of the trust file that
// signed it; nil: none did, and then the key of the certificate is to have.
func (s *envelope) certificate(public crypto.PublicKey) (contradiction, unread error) {
	signed := public != nil
	if !signed {
		named := s.Certificate()
		if named == nil {
			return nil, nil
		}
		var err error
		if public, err = evidence.ParsePublicKey(named.RawSubjectPublicKeyInfo); err != nil {
			return nil, nil // a kind of key that is not known here
		}
		if err := s.Check(public); errors.Is(err, evidence.ErrSignature) {
			return errors.New("it was not signed with the key of the certificate that it names"), nil
		} else if err != nil {
			return nil, nil
		}
	}
	switch err := s.CheckCertificate(public); {
	case errors.Is(err, scitt.ErrCertificate):
		return err, nil
	case signed:
		return nil, err
	}
	return nil, nil
}

// receipt checks a receipt by a log of the trust file. The sizes and places in a receipt are in no signature. So a receipt that holds shows no
// number, and one that does not hold shows nothing: anybody can have put it there, or have changed it.
func (s *envelope) receipt(t *trust.Trust, rc *scitt.Receipt) Receipt {
	got := Receipt{Issuer: evidence.Abbreviate(rc.Issuer), Status: NotProved}
	origin, err := s.received(t, rc)
	switch {
	case errors.Is(err, scitt.ErrUnsupported):
		got.Reason = fmt.Sprintf("not checked: %v", err)
	case err != nil:
		got.Reason = err.Error()
	default:
		got.Status, got.Reason = Proved, fmt.Sprintf("the log %s has the record", origin)
	}
	return got
}

// received returns the log of the trust file that signed a receipt for the record's entry, or scitt.ErrUnsupported, wrapped, if that cannot be checked.
func (s *envelope) received(t *trust.Trust, rc *scitt.Receipt) (origin string, err error) {
	if _, err := rc.Proof(); err != nil {
		return "", fmt.Errorf("%w: %w", scitt.ErrUnsupported, err)
	}
	origin, public := t.LogKey(rc.KeyID)
	if public == nil {
		return "", fmt.Errorf("%w: the trust file names no log with its key", scitt.ErrUnsupported)
	}
	r := s.record
	entry, err := evidence.ParseEntry(rc.Entry)
	switch {
	case err != nil:
		return "", fmt.Errorf("the entry beside its proof: %w", err)
	case entry.Payload != r.Digest || !slices.EqualFunc(entry.Signatures, r.Signatures, slices.Equal[[]byte]):
		return "", errors.New("the entry beside its proof is that of another record")
	case r.Log != nil && string(r.LogEntry(r.Log.Counts())) != string(rc.Entry):
		return "", errors.New("the entry beside its proof has other counts than the record")
	case rc.Issuer != scitt.LogIssuer(origin):
		return "", fmt.Errorf("it names the issuer %q, and the key that it names is that of the log %s", evidence.Abbreviate(rc.Issuer), origin)
	}
	if _, err := rc.Check(public, rc.Entry); err != nil {
		return "", fmt.Errorf("the log %s did not sign the root that follows from the entry: %w", origin, err)
	}
	return origin, nil
}

// unopened is the report on a statement of a record that cannot be opened.
func unopened(o Options, status Status, rule string, err error) *Report {
	r := damaged(OneRecord, "", o, err)
	r.Guarantees[0].Status, r.Guarantees[0].Rule, r.Outcome = status, rule, status
	r.Guarantees = append(r.Guarantees, Finding{Guarantee: Envelope, Status: NotProved, Reason: "the file cannot be opened"})
	return r
}
