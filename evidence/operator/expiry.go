package operator

import (
	"errors"
	"fmt"

	"jurat/evidence"
)

// ExpiryChain is the chain of the operator's acts that removed the content of old records.
const ExpiryChain = evidence.OperatorPrefix + "expiry"

// MinRetention is the fewest days for which a record is kept: six months, as Articles 19 and 26(6) of the EU AI Act require of logs.
const MinRetention = 183

// ExpiryBody is the response of an expiry: the content of so many records was removed. The log keeps its hashes, and
// each of these records names the act.
type ExpiryBody struct {
	Before string          `json:"before"` // RFC 3339: they were sealed before this
	By     string          `json:"by"`
	Count  int64           `json:"count"`           // how many
	Except []string        `json:"except,omitzero"` // chains that were to stay, sorted
	From   int64           `json:"from"`            // their places: of the first, and after the last
	Places evidence.Digest `json:"places"`          // SHA-256 of all their places, each in 8 bytes, big-endian, in log order
	Reason string          `json:"reason"`
	To     int64           `json:"to"`
}

// ReadExpiry reads an expiry. It returns an error if the act stands in another chain or contradicts itself.
func ReadExpiry(p *evidence.Payload) (*ExpiryBody, error) {
	return readIn[ExpiryBody](p, evidence.Expiry, ExpiryChain)
}

func (b *ExpiryBody) check() error {
	if b.By == "" || b.Reason == "" {
		return errors.New("by or reason is empty")
	}
	if _, err := evidence.ParseTime(b.Before); err != nil {
		return fmt.Errorf("before: %w", err)
	}
	if b.From < 0 || b.To > MaxEntries || b.Count < 1 || b.Count > b.To-b.From || b.Places.IsZero() {
		return fmt.Errorf("%d records of %d to %d contradict each other, or the digest of their places is zero", b.Count, b.From, b.To)
	}
	for i, chain := range b.Except {
		if err := evidence.CheckName(chain); err != nil {
			return fmt.Errorf("except: %w", err)
		}
		if i > 0 && chain <= b.Except[i-1] {
			return errors.New("except: the chains are not sorted, or one is there twice")
		}
	}
	if b.Except != nil && len(b.Except) == 0 {
		return errors.New("except is empty")
	}
	return nil
}
