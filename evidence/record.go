package evidence

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence/jsonform"
)

// A Record is a sealed payload with its proofs. Payload, digest and signatures never change. Time stamps and log
// proofs are added later. Disclosures, certificates, statements on their revocation, and proofs of properties can be
// added and removed.
//
// An opened Record is well-formed: its payload is complete, canonical and has this digest, and there is one signature
// for each signer that the payload names. Package verify checks whether it is true.
type Record struct {
	Payload      Payload
	Digest       Digest   // SHA-256 of the canonical payload
	Signatures   [][]byte // in the order of Payload.Signers
	Timestamps   []Timestamp
	Log          *LogProof // nil: no log is known to hold it
	Disclosures  []Disclosure
	Properties   []PropertyProof // of what is sealed apart; unverified
	Certificates [][]byte        // DER, of the signers; unverified until a reader's trust confirms them

	canonical []byte
}

// TimestampKind is the kind of a time stamp.
type TimestampKind string

const (
	// RFC3161 is a TimeStampToken over Record.Imprint.
	RFC3161 TimestampKind = "rfc3161"
)

// MaxToken is the largest time-stamp token in bytes that a record may carry.
const MaxToken = 64 << 10

// A Timestamp is a third party's statement about when the signatures existed.
type Timestamp struct {
	Kind  TimestampKind `json:"kind"`
	Token []byte        `json:"token"` // DER
}

// A LogProof gives the record's place in a log, and proves it against a checkpoint.
//
// Its members are in canonical order, and among them are those of LogCounts.
type LogProof struct {
	ActorSeq   int64    `json:"actor_seq,omitzero"`
	Anchors    []Anchor `json:"anchors,omitempty"` // stamped checkpoints of the same log; none inside a bundle, which has them for all
	CaseSeq    int64    `json:"case_seq,omitzero"`
	ChainSeq   int64    `json:"chain_seq,omitzero"`
	Checkpoint string   `json:"checkpoint,omitzero"` // C2SP signed note; "" inside a bundle, which has one for all
	Index      int64    `json:"index"`               // from 0
	Proof      [][]byte `json:"proof"`               // RFC 6962 audit path, 32 bytes a node, leaf to root
	Subject    Digest   `json:"subject,omitzero"`
	SubjectSeq int64    `json:"subject_seq,omitzero"`
}

// Counts returns the record's numbers within its chain and case, and those of its actor and subject; of nil, none.
func (l *LogProof) Counts() LogCounts {
	if l == nil {
		return LogCounts{}
	}
	return LogCounts{l.ActorSeq, l.CaseSeq, l.ChainSeq, l.Subject, l.SubjectSeq}
}

// recordForm is a record as it is written. Its members, at all levels, are in canonical order, so encoding it gives
// the canonical form.
type recordForm struct {
	Certificates [][]byte        `json:"certificates,omitempty"`
	Digest       Digest          `json:"digest"`
	Disclosures  []Disclosure    `json:"disclosures,omitempty"`
	Log          *LogProof       `json:"log,omitzero"`
	Payload      jsontext.Value  `json:"payload"`
	Properties   []PropertyProof `json:"properties,omitempty"`
	Signatures   [][]byte        `json:"signatures"`
	Timestamps   []Timestamp     `json:"timestamps"`
}

const (
	maxSignature   = 8 << 10  // the largest signature in bytes that a record may carry
	maxCertificate = 64 << 10 // the largest certificate
	maxProof       = 63       // nodes of an audit path: a log has fewer than 2^63 entries
)

// Canonical returns the bytes that are signed. The caller must not change them.
func (r *Record) Canonical() []byte { return r.canonical }

// Imprint returns what a time-stamping authority stamps: the SHA-256 of the signatures, one after the other.
func (r *Record) Imprint() [sha256.Size]byte { return sha256.Sum256(bytes.Join(r.Signatures, nil)) }

// CheckSignature verifies the i-th signature with a key that the caller trusts to be the signer's. Every failure has
// ErrSignature in its chain.
func (r *Record) CheckSignature(i int, public crypto.PublicKey) error {
	return CheckSignature(public, r.Payload.Signers[i], r.canonical, r.Signatures[i])
}

// CheckSignatureOf is CheckSignature for a caller that already knows the key's id. Its errors are the same.
func (r *Record) CheckSignatureOf(i int, id KeyID, public crypto.PublicKey) error {
	if id != r.Payload.Signers[i].KeyID {
		return fmt.Errorf("%w: the payload names another key", ErrSignature)
	}
	return checkSignature(public, r.Payload.Signers[i], r.canonical, r.Signatures[i])
}

// Marshal returns the record as a file: canonical JSON and a line feed. Each content has exactly one such file. Its
// error says why Open would refuse the record.
func (r *Record) Marshal() ([]byte, error) {
	form, err := r.marshal()
	if err != nil {
		return nil, err
	}
	return append(form, '\n'), nil
}

func (r *Record) marshal() ([]byte, error) {
	form, err := r.form()
	if err != nil {
		return nil, err
	}
	return jsonform.Encode(form)
}

// form refuses what Open would refuse, so that every written file can be read.
func (r *Record) form() (*recordForm, error) {
	if err := r.checkParts(); err != nil {
		return nil, err
	}
	form := &recordForm{Payload: r.canonical, Digest: r.Digest, Signatures: r.Signatures, Timestamps: r.Timestamps,
		Log: r.Log, Certificates: r.Certificates}
	for _, d := range r.Disclosures {
		value, err := Canonical(d.Value)
		if err != nil {
			return nil, fmt.Errorf("disclosures: %s: %w", d.Pointer, err)
		}
		d.Value = value
		form.Disclosures = append(form.Disclosures, d)
	}
	for i, p := range r.Properties {
		statement, err := Canonical(p.Statement)
		if err != nil {
			return nil, fmt.Errorf("properties: %d: %w", i, err)
		}
		p.Statement = statement
		form.Properties = append(form.Properties, p)
	}
	return form, nil
}

// Open reads a record file. It is strict: what it opens marshals back to the same bytes. Read also takes other
// spellings. Its errors include *SyntaxError and *FieldError.
func Open(file []byte) (*Record, error) {
	doc, ok := bytes.CutSuffix(file, []byte("\n"))
	if !ok {
		return nil, &SyntaxError{Offset: int64(len(file)), Reason: "a record file must end with a line feed"}
	}
	return openRecord(doc)
}

// openRecord opens a record without its line feed, strictly.
func openRecord(doc []byte) (*Record, error) {
	var form recordForm
	if err := jsonform.Decode(doc, &form); err != nil {
		return nil, err
	}
	r, err := form.open()
	if err != nil {
		return nil, jsonform.Shift(err, doc, form.Payload, "/payload")
	}
	if err := jsonform.SameBytes(r.marshal, doc); err != nil {
		return nil, err
	}
	return r, nil
}

// OpenParts makes a record from the parts that a database stores. The record keeps the given slices. Its errors are
// those of Open.
func OpenParts(canonical []byte, signatures [][]byte, timestamps []Timestamp) (*Record, error) {
	form := recordForm{Payload: canonical, Digest: DigestOf(canonical), Signatures: signatures, Timestamps: timestamps}
	return form.open()
}

// open checks the parts against each other.
func (f *recordForm) open() (*Record, error) {
	payload, err := ParsePayload(f.Payload)
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	r := &Record{Payload: *payload, Digest: f.Digest, Signatures: f.Signatures, Timestamps: f.Timestamps, Log: f.Log,
		Disclosures: f.Disclosures, Properties: f.Properties, Certificates: f.Certificates, canonical: f.Payload}
	if err := r.checkParts(); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Record) checkParts() error {
	if digest := DigestOf(r.canonical); r.Digest != digest {
		return fmt.Errorf("digest: the payload's is %s, not %s", digest, r.Digest)
	}
	return errors.Join(r.checkSignatures(), checkTimestamps(r.Timestamps), r.checkLog(), r.checkDisclosureForm(), r.checkCertificates(),
		CheckProperties(r.Properties))
}

func (r *Record) checkSignatures() error {
	if len(r.Signatures) != len(r.Payload.Signers) {
		return fmt.Errorf("the payload names %d signers, the record has %d signatures", len(r.Payload.Signers), len(r.Signatures))
	}
	for i, s := range r.Signatures {
		if len(s) == 0 || len(s) > maxSignature {
			return fmt.Errorf("signature %d has %d bytes: want 1 to %d", i, len(s), maxSignature)
		}
	}
	return nil
}

func checkTimestamps(stamps []Timestamp) error {
	seen := make(map[[sha256.Size]byte]bool, len(stamps))
	for i, t := range stamps {
		if t.Kind != RFC3161 {
			return fmt.Errorf("timestamp %d: unknown kind %q: expected %s", i, Abbreviate(string(t.Kind)), RFC3161)
		}
		if len(t.Token) == 0 || len(t.Token) > MaxToken {
			return fmt.Errorf("timestamp %d: token of %d bytes: want 1 to %d", i, len(t.Token), MaxToken)
		}
		digest := sha256.Sum256(t.Token)
		if seen[digest] {
			return fmt.Errorf("timestamp %d: the same token twice", i)
		}
		seen[digest] = true
	}
	return nil
}

func (r *Record) checkLog() error {
	if r.Log == nil {
		return nil
	}
	if r.Log.Index < 0 || r.Log.Index > maxExact || len(r.Log.Proof) > maxProof {
		return errors.New("log: index or proof out of range")
	}
	if err := CheckAnchors(r.Log.Checkpoint, r.Log.Anchors); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	if !r.Log.Counts().Fit(&r.Payload) {
		return errors.New("log: the counts are not those of this kind of record")
	}
	for i, node := range r.Log.Proof {
		if len(node) != sha256.Size {
			return fmt.Errorf("log: proof node %d has %d bytes: want %d", i, len(node), sha256.Size)
		}
	}
	return nil
}

func (r *Record) checkDisclosureForm() error {
	last := ""
	for _, d := range r.Disclosures {
		if d.Pointer <= last || len(d.Salt) != saltSize {
			return fmt.Errorf("disclosures: not sorted by pointer, or a salt does not have %d bytes", saltSize)
		}
		if _, listed := slices.BinarySearch(r.Payload.SealedApart, d.Pointer); !listed { // both are sorted
			return fmt.Errorf("disclosures: %q is not sealed apart in the payload", Abbreviate(d.Pointer))
		}
		last = d.Pointer
	}
	return nil
}

func (r *Record) checkCertificates() error {
	for i, der := range r.Certificates {
		if len(der) == 0 || len(der) > maxCertificate {
			return fmt.Errorf("certificate %d has %d bytes: want 1 to %d", i, len(der), maxCertificate)
		}
	}
	return nil
}

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

// Reveal returns the members of a payload in canonical form. It replaces commitments by disclosed values that match
// them. withheld lists the pointers of the commitments that stay. It does not check signatures. Its errors are those
// of ParsePayload, Canonical and CheckDisclosures.
func Reveal(canonical []byte, disclosures []Disclosure) (revealed map[string]jsontext.Value, withheld []string, err error) {
	payload, err := ParsePayload(canonical)
	if err != nil {
		return nil, nil, err
	}
	disclosures = slices.Clone(disclosures)
	for i := range disclosures {
		d := &disclosures[i]
		if d.Value, err = Canonical(d.Value); err != nil {
			return nil, nil, fmt.Errorf("disclosures: %s: %w", d.Pointer, err)
		}
	}
	r := &Record{Payload: *payload, canonical: canonical, Disclosures: disclosures}
	if err := r.CheckDisclosures(); err != nil {
		return nil, nil, err
	}
	m, err := membersOf(canonical)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range disclosures {
		if err := m.set(d.Pointer, d.Value); err != nil {
			return nil, nil, err
		}
	}
	for _, pointer := range payload.SealedApart {
		if r.disclosure(pointer) < 0 {
			withheld = append(withheld, pointer)
		}
	}
	return m, withheld, nil
}

// Said returns the value of the member at a pointer; value is its value in the payload. If the member is sealed
// apart, Said returns the disclosed value if it matches, and otherwise reports that it is withheld.
func (r *Record) Said(pointer string, value jsontext.Value) (said jsontext.Value, withheld bool) {
	if !slices.Contains(r.Payload.SealedApart, pointer) {
		return value, false
	}
	if i := r.disclosure(pointer); i >= 0 && r.CheckDisclosure(r.Disclosures[i]) == nil { // another false one does not hide it
		return r.Disclosures[i].Value, false
	}
	return nil, true
}

const (
	// MaxDocument is the largest payload in bytes, as given and in canonical form. Each part of a record or bundle
	// file has its own bound; the reader of files must bound the whole.
	MaxDocument = 32 << 20
	// MaxDepth is the deepest nesting of arrays and objects in a payload.
	MaxDepth = 128
)

// ofPayload bounds a payload, and a disclosed value.
var ofPayload = jsonform.Bounds{Size: MaxDocument, Depth: MaxDepth}

// ofFile bounds a record, or the parts of a bundle around the records. The payloads and disclosed values in it have
// their own bounds.
var ofFile = jsonform.Bounds{Size: MaxRecord, Depth: 2 * MaxDepth}

// SyntaxError says where a document is wrong, and why.
type SyntaxError = jsonform.Error

// Canonical returns the RFC 8785 form of a JSON document.
//
// RFC 8785 alone maps many documents to one form: 9007199254740993 becomes 9007199254740992, 1e400 has no
// form at all, -0 becomes 0. Canonical refuses those, so that two documents with different content never
// share a form and so never share a digest. It also refuses what RFC 8785 takes from I-JSON: duplicate
// member names, lone surrogates, invalid UTF-8, text after the value. Every refusal is a *SyntaxError.
func Canonical(doc []byte) ([]byte, error) { return ofPayload.Canonical(doc) }

// DecodeForm reads canonical JSON into a form, a pointer to a struct with its members in canonical order. It returns
// a *SyntaxError if the document has other members, or differs from what the form marshals to.
func DecodeForm(doc []byte, form any) error { return jsonform.DecodeForm(doc, form) }

// MaxValues is how many commas and opening brackets outside of strings a text of JSON may have that others wrote: it bounds the values in it.
const MaxValues = jsonform.MaxValues

// CheckValues returns a *SyntaxError if a text has more than MaxValues, before it is read into values. The text may be broken, or a stream of documents.
func CheckValues(text []byte) error { return jsonform.CheckValues(text) }

// Values counts them.
func Values(text []byte) int { return jsonform.Values(text) }

// CheckEncoding returns a *SyntaxError that says how to convert a text if the text begins as UTF-16.
func CheckEncoding(text []byte) error { return jsonform.CheckEncoding(text) }

// CutMark removes the byte order mark before a text in UTF-8.
func CutMark(file []byte) []byte { return jsonform.CutMark(file) }

// Steady rewords an error of the JSON library for people. A report must have the same words on every machine.
func Steady(err error) error { return jsonform.Steady(err) }

// Abbreviate cuts a text to 40 bytes, so that an error about a hostile file stays readable.
func Abbreviate(text string) string { return jsonform.Abbreviate(text) }

// Read opens a record file as Open does, and also a file that lost its canonical form. Editors, mail and JSON
// libraries change line ends, white space, the order of members and the spelling of strings and numbers. None of that
// changes the content. Read restores the canonical form, over which digest and signatures are made. mended reports
// that the file had another form. A document that has no canonical form (see Canonical) is refused with the place,
// and so is everything that Open refuses.
func Read(file []byte) (r *Record, mended bool, err error) {
	if r, err = Open(file); err == nil {
		return r, false, nil
	}
	doc := CutMark(file)
	r, _, err = jsonform.Mend(ofFile, bytes.TrimSuffix(doc, []byte("\n")), openRecord)
	return r, err == nil, jsonform.ShiftBy(err, len(file)-len(doc))
}

// Mend returns a JSON file in its canonical form, with a line feed at the end. mended reports that the file had
// another form. Its errors are those of Canonical.
func Mend(file []byte) (form []byte, mended bool, err error) {
	doc := CutMark(file)
	form, err = ofFile.Canonical(doc)
	if err != nil {
		return nil, false, jsonform.ShiftBy(err, len(file)-len(doc))
	}
	form = append(form, '\n')
	return form, !bytes.Equal(form, file), nil
}

// MendNote returns a signed note without a byte order mark, with plain line feeds, and with exactly one at its end. A
// note can hold nothing else in these places.
func MendNote(note string) string {
	note = strings.ReplaceAll(strings.TrimPrefix(note, jsonform.ByteOrderMark), "\r\n", "\n")
	return strings.TrimRight(note, "\n") + "\n"
}

// firstMember is the name of the first member of a JSON object; "" if the beginning of the file does not show it.
func firstMember(start []byte) string {
	dec := jsontext.NewDecoder(bytes.NewReader(CutMark(start)))
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
		return ""
	}
	name, err := dec.ReadToken()
	if err != nil || name.Kind() != '"' {
		return ""
	}
	return name.String()
}

// BeginsAsRecord reports whether a file begins as a record does: with one of its members, in any order and spelling.
// A payload has none of these members, and a bundle has none.
func BeginsAsRecord(start []byte) bool {
	switch firstMember(start) {
	case "certificates", "digest", "disclosures", "log", "payload", "properties", "signatures", "timestamps":
		return true
	}
	return false
}

// BeginsAsBundle reports whether a file begins as a bundle does, with its members in any order and spelling.
func BeginsAsBundle(start []byte) bool {
	switch firstMember(start) {
	case "anchors", "checkpoint", "format", "records":
		return true
	}
	return false
}
