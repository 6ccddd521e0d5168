package evidence

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"slices"

	"jurat/evidence/jsonform"
)

// LogCounts holds the numbers of a record within its chain, among the submissions of its case, among the records of its
// actor and among the judgments about one subject. The log counts, because no actor can, and hashes the counts with the
// entry. So a branch of a chain that is left out shows as a gap, a case that is tried until it passes shows as submitted
// for the third time, and a judgment that is left out is missing from its subject's count.
//
// A log counts actors and subjects from some entry on, and then always: older entries have no ActorSeq and no Subject.
type LogCounts struct {
	ActorSeq   int64  `json:"actor_seq,omitzero"`   // from 1 for each actor, a name in a role; 0: the log did not count actors yet
	CaseSeq    int64  `json:"case_seq,omitzero"`    // of a submission, from 1 in each case; 0: not a submission
	ChainSeq   int64  `json:"chain_seq,omitzero"`   // from 1 in each chain_id; 0: in no chain
	Subject    Digest `json:"subject,omitzero"`     // SubjectTag of what the record judges; zero: it judges no actor that the log knows
	SubjectSeq int64  `json:"subject_seq,omitzero"` // from 1 for each Subject
}

// At returns the place of a record with these numbers in a log, without a proof.
func (c LogCounts) At(index int64) *LogProof {
	return &LogProof{ActorSeq: c.ActorSeq, CaseSeq: c.CaseSeq, ChainSeq: c.ChainSeq, Index: index, Subject: c.Subject, SubjectSeq: c.SubjectSeq}
}

// An Entry is what a log hashes for a record. It binds the payload and every signature, and tags the actor, the chain,
// the case and the subject without revealing their names. A reader of all entries can count them, and recognises the
// tags of names that the reader knows.
type Entry struct {
	Actor      Digest   `json:"actor,omitzero"` // ActorTag of the payload's actor
	ActorSeq   int64    `json:"actor_seq,omitzero"`
	Case       Digest   `json:"case,omitzero"` // CaseTag of the payload's case
	CaseSeq    int64    `json:"case_seq,omitzero"`
	Chain      Digest   `json:"chain,omitzero"` // ChainTag of the payload's chain_id
	ChainSeq   int64    `json:"chain_seq,omitzero"`
	Payload    Digest   `json:"payload"`
	Signatures [][]byte `json:"signatures"`
	Subject    Digest   `json:"subject,omitzero"` // SubjectTag of the actor that the record judges
	SubjectSeq int64    `json:"subject_seq,omitzero"`
}

// MaxEntry is the largest entry in bytes: the most signatures of the greatest length, in base64, and the text around
// them.
const MaxEntry = maxSigners*(maxSignature+2)/3*4 + 1024

// LogEntry returns the record's entry. The log holds the RFC 6962 leaf hash of these bytes.
func (r *Record) LogEntry(counts LogCounts) []byte {
	entry := Entry{Payload: r.Digest, Signatures: r.Signatures, ActorSeq: counts.ActorSeq, CaseSeq: counts.CaseSeq, ChainSeq: counts.ChainSeq,
		Subject: counts.Subject, SubjectSeq: counts.SubjectSeq}
	if counts.ActorSeq != 0 {
		entry.Actor = ActorTag(r.Payload.Role(), r.Payload.Actor())
	}
	if r.Payload.ChainID != "" {
		entry.Chain = ChainTag(r.Payload.ChainID)
	}
	if !r.Payload.Case.IsZero() {
		entry.Case = CaseTag(r.Payload.Case)
	}
	return marshal(&entry)
}

// ParseEntry reads an entry. It is strict: it accepts only bytes that a log can have hashed for a record. Its errors
// include *SyntaxError.
func ParseEntry(doc []byte) (*Entry, error) {
	entry, err := new(Entry), error(nil)
	if len(doc) > MaxEntry {
		err = fmt.Errorf("longer than %d bytes", MaxEntry)
	} else if err = jsonform.DecodeForm(doc, entry); err == nil {
		err = entry.check()
	}
	if err != nil {
		return nil, fmt.Errorf("parsing log entry: %w", err)
	}
	return entry, nil
}

func (e *Entry) check() error {
	if e.Payload.IsZero() {
		return errors.New("payload: missing")
	}
	if (e.ChainSeq > 0) != !e.Chain.IsZero() || e.CaseSeq > 0 && e.Case.IsZero() || (e.ActorSeq > 0) != !e.Actor.IsZero() ||
		!inRange(e.ActorSeq, e.CaseSeq, e.ChainSeq) || !fitsSubject(e.ActorSeq, e.Subject, e.SubjectSeq) {
		return errors.New("a count does not fit its tag, or is out of range")
	}
	if len(e.Signatures) == 0 || len(e.Signatures) > maxSigners {
		return fmt.Errorf("%d signatures: want 1 to %d", len(e.Signatures), maxSigners)
	}
	for i, s := range e.Signatures {
		if len(s) == 0 || len(s) > maxSignature {
			return fmt.Errorf("signature %d has %d bytes: want 1 to %d", i, len(s), maxSignature)
		}
	}
	return nil
}

// Fit reports whether the counts are possible for this payload.
func (c LogCounts) Fit(p *Payload) bool {
	judges := p.ActionType == FinalJudgment || p.ActionType == HumanReview || p.ActionType == KeyEvent
	return (c.ChainSeq > 0) == (p.ChainID != "") && (c.CaseSeq > 0) == (p.ActionType == Submission) &&
		inRange(c.ActorSeq, c.CaseSeq, c.ChainSeq) && fitsSubject(c.ActorSeq, c.Subject, c.SubjectSeq) && (judges || c.SubjectSeq == 0)
}

func inRange(counts ...int64) bool { return slices.Min(counts) >= 0 && slices.Max(counts) <= maxExact }

// fitsSubject reports whether a subject has its count. A log that counts subjects counts actors, too.
func fitsSubject(actorSeq int64, subject Digest, seq int64) bool {
	return inRange(seq) && (seq > 0) == !subject.IsZero() && (seq == 0 || actorSeq > 0)
}

// ActorTag returns the tag of an actor in a log's entries. A name is of one actor in each role.
func ActorTag(role Role, name string) Digest { return tag("jurat/subject/v1", string(role)+":"+name) }

// SubjectTag returns the tag of an actor that is judged. It equals ActorTag, so what an actor did and what is said of the
// actor are found by one tag.
func SubjectTag(role Role, name string) Digest { return ActorTag(role, name) }

// ChainTag returns the tag of a chain in a log's entries.
func ChainTag(chainID string) Digest { return tag("jurat/chain/v1", chainID) }

// CaseTag returns the tag of a case in a log's entries.
func CaseTag(digest Digest) Digest { return tag("jurat/case/v1", digest.String()) }

// tag hides a name behind a hash. Only readers who know the name can compute it.
func tag(domain, name string) Digest { return sha256.Sum256([]byte(domain + "\x00" + name)) }

// An Anchor is a checkpoint of the log that authorities have stamped: what it covers existed by then. Later tokens
// renew the earlier ones, before these can no longer be relied on.
type Anchor struct {
	Checkpoint  string   `json:"checkpoint"`  // C2SP signed note
	Consistency [][]byte `json:"consistency"` // RFC 9162 nodes, 32 bytes each, between it and the file's checkpoint

	// Timestamps are RFC 3161 tokens in DER. Those of the first generation are over the checkpoint, and those of each
	// further one over the checkpoint and all generations before; see Imprint.
	Timestamps [][][]byte `json:"timestamps"`
}

// Bounds of the anchors of a file.
const (
	MaxAnchorTokens = 1024    // together
	MaxAnchorBytes  = 8 << 20 // of checkpoints and tokens, together
	maxConsistency  = 64      // nodes
)

// Imprints returns what the tokens of each generation stamp, and then what those of a further one would: the SHA-256 of the checkpoint, or of
// the canonical form of {"checkpoint", "timestamps"} with the generations before. It takes time by the size of the anchor alone, however many
// generations there are. Its error is that the checkpoint is no text.
func (a *Anchor) Imprints() ([][sha256.Size]byte, error) {
	const end = "]}"
	doc, err := jsonform.Encode(struct {
		Checkpoint string     `json:"checkpoint"`
		Timestamps [][][]byte `json:"timestamps"`
	}{a.Checkpoint, [][][]byte{}})
	if err != nil {
		return nil, err
	}
	list := [][sha256.Size]byte{sha256.Sum256([]byte(a.Checkpoint))}
	before := sha256.New()
	before.Write(bytes.TrimSuffix(doc, []byte(end)))
	for i, generation := range a.Timestamps {
		if doc, err = jsonform.Encode(generation); err != nil {
			return nil, err
		}
		if i > 0 {
			before.Write([]byte(","))
		}
		before.Write(doc)
		whole, err := before.(hash.Cloner).Clone()
		if err != nil {
			return nil, err
		}
		whole.Write([]byte(end))
		list = append(list, [sha256.Size]byte(whole.Sum(nil)))
	}
	return list, nil
}

// CheckAnchors returns an error unless a file with this checkpoint may have these anchors.
func CheckAnchors(checkpoint string, anchors []Anchor) error {
	if checkpoint == "" && len(anchors) > 0 {
		return errors.New("anchors: the file has stamped checkpoints, but no checkpoint")
	}
	tokens, size := 0, 0
	for i := range anchors {
		a := &anchors[i]
		if err := a.check(); err != nil {
			return fmt.Errorf("anchors: %d: %w", i, err)
		}
		size += len(a.Checkpoint)
		for _, token := range slices.Concat(a.Timestamps...) {
			tokens++
			size += len(token)
		}
	}
	if tokens > MaxAnchorTokens || size > MaxAnchorBytes {
		return fmt.Errorf("anchors: %d tokens, and %d bytes with the checkpoints: want at most %d and %d", tokens, size, MaxAnchorTokens, MaxAnchorBytes)
	}
	return nil
}

func (a *Anchor) check() error {
	if a.Checkpoint == "" || len(a.Timestamps) == 0 {
		return errors.New("the checkpoint or its time stamps are missing")
	}
	if len(a.Consistency) > maxConsistency || slices.ContainsFunc(a.Consistency, func(node []byte) bool { return len(node) != sha256.Size }) {
		return fmt.Errorf("consistency: want at most %d nodes of %d bytes", maxConsistency, sha256.Size)
	}
	var stamps []Timestamp
	for _, generation := range a.Timestamps {
		if len(generation) == 0 {
			return errors.New("timestamps: a generation without a token")
		}
		for _, token := range generation {
			stamps = append(stamps, Timestamp{Kind: RFC3161, Token: token})
		}
	}
	return checkTimestamps(stamps)
}
