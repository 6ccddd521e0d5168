package evidence

import "crypto/sha256"

// LogCounts says which one a record is: of its chain, and of those that submit its case. The log counts, as no actor
// can, and what it counts is part of what it hashes. So a branch of a chain that somebody leaves out shows as a gap, and
// a case that is tried until it passes shows as submitted for the third time.
type LogCounts struct {
	CaseSeq  int64 `json:"case_seq,omitzero"`  // of a submission, from 1 in each case; 0: not a submission
	ChainSeq int64 `json:"chain_seq,omitzero"` // from 1 in each chain_id; 0: in no chain
}

// logEntry is what a log hashes for a record. It binds the payload and every signature, and tags the chain and the
// case without telling them.
type logEntry struct {
	Case       string   `json:"case,omitzero"`
	CaseSeq    int64    `json:"case_seq,omitzero"`
	Chain      string   `json:"chain,omitzero"`
	ChainSeq   int64    `json:"chain_seq,omitzero"`
	Payload    Digest   `json:"payload"`
	Signatures [][]byte `json:"signatures"`
}

// LogEntry returns the record's entry: the bytes whose RFC 6962 leaf hash stands in the log.
func (r *Record) LogEntry(counts LogCounts) []byte {
	entry := logEntry{Payload: r.Digest, Signatures: r.Signatures, CaseSeq: counts.CaseSeq, ChainSeq: counts.ChainSeq}
	if r.Payload.ChainID != "" {
		entry.Chain = tag("jurat/chain/v1", r.Payload.ChainID)
	}
	if !r.Payload.Case.IsZero() {
		entry.Case = tag("jurat/case/v1", r.Payload.Case.String())
	}
	return marshal(entry) // the members are in canonical order and hold nothing that needs escaping
}

// Fit reports whether a log can have counted a record so.
func (c LogCounts) Fit(p *Payload) bool {
	return (c.ChainSeq > 0) == (p.ChainID != "") && (c.CaseSeq > 0) == (p.ActionType == Submission) &&
		min(c.ChainSeq, c.CaseSeq) >= 0 && max(c.ChainSeq, c.CaseSeq) <= maxExact
}

// tag hides a name behind a hash that only who knows the name can compute.
func tag(domain, name string) string {
	sum := sha256.Sum256([]byte(domain + "\x00" + name))
	return Digest(sum).String()
}
