package installation

import (
	"crypto"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"jurat/evidence"
	"jurat/timestamp"
)

// together is the built-in authority where it stamps the records of a transaction with one token: a hash tree over them, of which it
// stamps the root, and for each record an evidence record that verifies alone (RFC 4998). The token is as late as the last of them.
type together struct{ own *authority }

// StampGroup implements ledger.GroupStamper.
func (t together) StampGroup(records []*evidence.Record) ([]evidence.Timestamp, error) {
	tree, err := timestamp.NewTree(crypto.SHA256)
	if err != nil {
		return nil, err
	}
	groups, entries := make([][][]byte, len(records)), make([]int, len(records))
	for i, r := range records {
		groups[i] = groupOf(r)
		if entries[i], err = tree.Add(groups[i]...); err != nil {
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
	stamps := make([]evidence.Timestamp, len(records))
	write := func(i int) error {
		der, err := tree.EvidenceRecord(entries[i], token)
		if err != nil {
			return fmt.Errorf("record %s: %w", records[i].Payload.RecordID, err)
		}
		stamps[i] = evidence.Timestamp{Kind: evidence.RFC4998, Token: der}
		return nil
	}
	if err := onAllCores(len(records), write); err != nil {
		return nil, err
	}
	// One of them is held against what it is over, as every reader will: if the tree were wrong, none would be right.
	last := len(records) - 1
	_, err = evidenceRecord(tree, entries[last], token, timestamp.Group{Required: groups[last]})
	return stamps, err
}

// onAllCores does something for each of so many, on all cores that are idle: everybody waits for it. Nobody is waited for who has not
// begun, as he may stand behind all that a busy processor has to do; what he does not take is done by the others. The first one is
// done before the rest, which then find what it has made for all.
func onAllCores(n int, each func(i int) error) error {
	if err := each(0); err != nil {
		return err
	}
	errs := make([]error, n)
	var taken atomic.Int64
	var done sync.WaitGroup
	done.Add(n - 1)
	work := func() {
		for i := taken.Add(1); i < int64(n); i = taken.Add(1) {
			errs[i] = each(int(i))
			done.Done()
		}
	}
	for range min(runtime.GOMAXPROCS(0), 1+n/perCore) - 1 {
		go work()
	}
	work()
	done.Wait()
	return errors.Join(errs...)
}

// perCore is for how many it is worth waking another core.
const perCore = 8
