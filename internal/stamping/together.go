package stamping

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"fmt"

	"jurat/evidence"
	"jurat/timestamp"
)

// together is the built-in authority when it stamps all waiting records with one token. It stamps the root of a hash tree over the records,
// and makes for each an evidence record that verifies alone (RFC 4998). The token is as late as the last of the records.
type together struct{ own *Own }

// StampGroup implements ledger.GroupStamper.
func (t together) StampGroup(records []*evidence.Record) ([]evidence.Timestamp, error) {
	tree, err := timestamp.NewTree(crypto.SHA256)
	if err != nil {
		return nil, err
	}
	entries := make([]int, len(records))
	for i, r := range records {
		signatures := sha256.Sum256(bytes.Join(r.Signatures, nil))
		if entries[i], err = tree.AddHashes(signatures[:], r.Digest[:]); err != nil {
			return nil, fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
		}
	}
	root, err := tree.Root()
	if err != nil {
		return nil, err
	}
	token, err := t.own.Issue(&timestamp.Request{Imprint: [32]byte(root.Sum), CertReq: true})
	if err != nil {
		return nil, err
	}
	// Verifying one evidence record, as a reader does, checks the tree for all of them.
	last := len(records) - 1
	if _, err := evidenceRecord(tree, entries[last], token, timestamp.Group{Required: groupOf(records[last])}); err != nil {
		return nil, err
	}
	stamps := make([]evidence.Timestamp, len(records))
	for i, entry := range entries {
		der, err := tree.EvidenceRecord(entry, token)
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", records[i].Payload.RecordID, err)
		}
		stamps[i] = evidence.Timestamp{Kind: evidence.RFC4998, Token: der}
	}
	return stamps, nil
}
