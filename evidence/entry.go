package evidence

import "crypto/sha256"

// logEntry is what a log hashes for a record. It binds the payload and every signature, and tags the chain and the
// case without telling them, so that whoever watches a log sees when the same evidence is tried again, or a chain
// that he knows goes on.
type logEntry struct {
	Case       string   `json:"case,omitzero"`
	Chain      string   `json:"chain,omitzero"`
	Payload    Digest   `json:"payload"`
	Signatures [][]byte `json:"signatures"`
}

// LogEntry returns the record's entry: the bytes whose RFC 6962 leaf hash stands in the log.
func (r *Record) LogEntry() []byte {
	entry := logEntry{Payload: r.Digest, Signatures: r.Signatures}
	if r.Payload.ChainID != "" {
		entry.Chain = tag("jurat/chain/v1", r.Payload.ChainID)
	}
	if !r.Payload.Case.IsZero() {
		entry.Case = tag("jurat/case/v1", r.Payload.Case.String())
	}
	return marshal(entry) // the members are in canonical order and hold nothing that needs escaping
}

// tag hides a name behind a hash that only who knows the name can compute.
func tag(domain, name string) string {
	sum := sha256.Sum256([]byte(domain + "\x00" + name))
	return Digest(sum).String()
}
