package stamping

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
	"jurat/internal/ledger/storage"
	"jurat/timestamp"
	"jurat/verify/trust"
)

// maxRenewals is how many evidence records one token makes or renews at most.
const maxRenewals = 10_000

// RenewConfig says which time stamps to renew, and how.
type RenewConfig struct {
	Before   time.Time         // renew stamps whose certificates end before this time
	TSA      string            // the authority that stamps, by name or URL; "": the first outside authority, or the built-in one if there is none
	Hash     crypto.Hash       // also renew stamps that use another hash than this; 0: hashes stay as they are
	Progress func(done, n int) // called after each stored record; nil: progress is not reported
}

// Renewed is the result of a renewal.
type Renewed struct {
	Authority string
	Records   int64 // evidence records that were added to records
	Requests  int   // how many tokens the authority gave
	Foreign   int64 // time stamps that could not be judged: damaged, or from an authority that is not configured
	Full      int64 // evidence records that have reached their maximal size
	Waiting   int64 // records that were skipped, because they still wait for this authority's first time stamp
}

// ErrEndsTooEarly says that the authority's own certificates end before the time until which the renewed stamps must last.
var ErrEndsTooEarly = errors.New("its own certificates end before that")

// Renew renews time stamps of records before their certificates end. One token of an authority renews many records. A new evidence record
// covers plain tokens. An evidence record gets a further time stamp, or a further chain if the hash changes. Existing stamps stay. A
// renewed stamp is not renewed again, so the caller may interrupt Renew at any point and repeat it.
//
// The errors include ErrNotConfigured and ErrEndsTooEarly. If an error occurs, the result says what was renewed before it.
func (t *Timekeeper) Renew(ctx context.Context, config RenewConfig) (Renewed, error) {
	r, err := t.newRenewer(config)
	if err != nil {
		return Renewed{}, fmt.Errorf("renewing time stamps: %w", err)
	}
	if err := r.all(ctx); err != nil {
		return r.result, fmt.Errorf("renewing time stamps: %w", err)
	}
	return r.result, nil
}

// A renewer is a renewal in progress.
type renewer struct {
	*Timekeeper
	config RenewConfig
	result Renewed
	roots  []*x509.Certificate
	asks   func(context.Context, timestamp.Imprint) ([]byte, error)

	trees map[crypto.Hash]*timestamp.Tree
	due   []renewal
	waits int64 // the next record that waits for this authority; -1: not looked up yet
}

// A renewal is an evidence record that is to be made. The record, which may be large, is read again at that time.
type renewal struct {
	index int64
	id    string
	hash  crypto.Hash // the hash of the tree
	entry int         // its place in the tree
}

func (t *Timekeeper) newRenewer(config RenewConfig) (*renewer, error) {
	r := &renewer{Timekeeper: t, config: config, trees: map[crypto.Hash]*timestamp.Tree{}, roots: []*x509.Certificate{t.Stampers.own.Root}, waits: -1}
	for _, a := range t.Stampers.trusted {
		root, err := x509.ParseCertificate(a.Certificate)
		if err != nil {
			return nil, err
		}
		r.roots = append(r.roots, root)
	}
	r.result.Authority, r.asks = BuiltIn, t.Stampers.own.askImprint
	for _, c := range t.Stampers.outside {
		if config.TSA == "" || c.name == config.TSA || c.url == config.TSA {
			r.result.Authority, r.asks = c.name, c.askImprint
			return r, nil
		}
	}
	if config.TSA != "" && config.TSA != BuiltIn {
		return nil, fmt.Errorf("%q: %w", config.TSA, ErrNotConfigured)
	}
	return r, nil
}

func (r *renewer) all(ctx context.Context) error {
	for record, err := range r.Ledger.Records(ctx, 0) {
		if err != nil {
			return err
		}
		// The record has no stamp of this authority yet. The one that it will get may last long enough.
		waits, err := r.waiting(ctx, record.Index)
		if err != nil {
			return err
		}
		if waits {
			r.result.Waiting++
			continue
		}
		if err := r.consider(record.Index, record.Record); err != nil {
			return fmt.Errorf("record %s: %w", record.Payload.RecordID, err)
		}
		if len(r.due) >= r.most(maxRenewals) {
			if err := r.flush(ctx); err != nil {
				return err
			}
		}
	}
	return r.flush(ctx)
}

// waiting reports whether the record at this index waits for the authority's time stamp. The caller asks in the order of the log.
func (r *renewer) waiting(ctx context.Context, index int64) (bool, error) {
	if r.waits < index {
		waits, err := r.Ledger.Waiting(ctx, r.result.Authority, index, 1)
		if err != nil {
			return false, err
		}
		if r.waits = math.MaxInt64; len(waits) > 0 {
			r.waits = waits[0].Index
		}
	}
	return r.waits == index, nil
}

// held is an evidence record that a record already has.
type held struct {
	*timestamp.EvidenceRecord
	covered []bool // for each of the record's tokens: whether it is covered
	lasts   bool   // it lasts until config.Before, and its hash may stay
}

// consider finds the stamps of a record that must be renewed, and adds them to the trees.
func (r *renewer) consider(index int64, record *evidence.Record) error {
	group, n := groupWithTokens(record), renewal{index: index, id: record.Payload.RecordID}
	covered := make([]bool, len(group.Optional))
	for _, h := range r.heads(record, group) {
		objects := group.Required
		for j, token := range group.Optional {
			if h.covered[j] {
				covered[j], objects = true, append(objects[:len(objects):len(objects)], token)
			}
		}
		if !h.lasts {
			if err := r.renew(n, h, objects); err != nil {
				return err
			}
		}
	}
	return r.coverTokens(n, record, group, covered)
}

func groupWithTokens(record *evidence.Record) timestamp.Group {
	group := timestamp.Group{Required: groupOf(record)}
	for _, stamp := range record.Timestamps {
		if stamp.Kind == evidence.RFC3161 {
			group.Optional = append(group.Optional, stamp.Token)
		}
	}
	return group
}

// heads returns the evidence records of a record that no other of its evidence records continues.
func (r *renewer) heads(record *evidence.Record, group timestamp.Group) (heads []held) {
	var all []held
	for _, stamp := range record.Timestamps {
		if stamp.Kind != evidence.RFC4998 {
			continue
		}
		e, err := timestamp.ParseEvidenceRecord(stamp.Token)
		if err != nil {
			r.result.Foreign++
			continue
		}
		links, covered, err := e.Links(group)
		if err != nil {
			r.result.Foreign++
			continue
		}
		ends, known := r.ends(links[len(links)-1])
		if !known {
			r.result.Foreign++
			continue
		}
		all = append(all, held{e, covered, !ends.Before(r.config.Before) && (r.config.Hash == 0 || e.Hash() == r.config.Hash)})
	}
	for n, h := range all {
		goneOn := false
		for m, other := range all {
			goneOn = goneOn || m != n && other.Extends(h.EvidenceRecord)
		}
		if !goneOn {
			heads = append(heads, h)
		}
	}
	return heads
}

// ends returns the earliest end of a certificate in the token's chain. known is false if no root verifies the token.
func (r *renewer) ends(l timestamp.Link) (ends time.Time, known bool) {
	for _, root := range r.roots {
		token, err := l.Token.VerifyImprint(l.Imprint, timestamp.Options{Roots: []*x509.Certificate{root}})
		if err != nil {
			continue
		}
		if end := earliestEnd(token.Chain); !known || end.After(ends) {
			ends, known = end, true
		}
	}
	return ends, known
}

func earliestEnd(chain []*x509.Certificate) time.Time {
	ends := chain[0].NotAfter
	for _, c := range chain {
		if c.NotAfter.Before(ends) {
			ends = c.NotAfter
		}
	}
	return ends
}

// renew adds an evidence record to a tree: for a further time stamp, or, if the hash changes, for a further chain.
func (r *renewer) renew(n renewal, h held, objects [][]byte) (err error) {
	if n.hash = h.Hash(); r.config.Hash != 0 {
		n.hash = r.config.Hash
	}
	tree, err := r.tree(n.hash)
	if err != nil {
		return err
	}
	if n.hash == h.Hash() {
		n.entry, err = tree.Renew(h.EvidenceRecord)
	} else {
		n.entry, err = tree.Rehash(h.EvidenceRecord, objects...)
	}
	r.due = append(r.due, n)
	return err
}

// coverTokens adds an evidence record over the plain tokens that are due and not covered yet.
//
// An act about time stamps is skipped as long as one of its own tokens lasts. Renewing makes such acts, so renewing them each time would
// never end.
func (r *renewer) coverTokens(n renewal, record *evidence.Record, group timestamp.Group, covered []bool) (err error) {
	imprint := record.Imprint()
	objects, lasting := group.Required, false
	for j, der := range group.Optional {
		if covered[j] {
			continue
		}
		token, err := timestamp.Parse(der)
		if err != nil {
			r.result.Foreign++
			continue
		}
		ends, known := r.ends(timestamp.Link{Token: token, Imprint: timestamp.Imprint{Hash: crypto.SHA256, Sum: imprint[:]}})
		switch {
		case !known:
			r.result.Foreign++
		case ends.Before(r.config.Before) || r.config.Hash != 0:
			objects = append(objects[:len(objects):len(objects)], der)
		}
		lasting = lasting || known && !ends.Before(r.config.Before)
	}
	if len(objects) == len(group.Required) || lasting && record.Payload.ActionType == evidence.LateStamp {
		return nil
	}
	if n.hash = r.config.Hash; n.hash == 0 {
		n.hash = crypto.SHA256
	}
	tree, err := r.tree(n.hash)
	if err != nil {
		return err
	}
	n.entry, err = tree.Add(objects...)
	r.due = append(r.due, n)
	return err
}

func (r *renewer) tree(hash crypto.Hash) (*timestamp.Tree, error) {
	if r.trees[hash] == nil {
		tree, err := timestamp.NewTree(hash)
		if err != nil {
			return nil, err
		}
		r.trees[hash] = tree
	}
	return r.trees[hash], nil
}

// flush stamps the trees, and adds the resulting evidence records to the records.
func (r *renewer) flush(ctx context.Context) error {
	tokens := map[crypto.Hash][]byte{}
	for hash, tree := range r.trees {
		token, err := r.stamp(ctx, tree)
		if err != nil {
			return err
		}
		tokens[hash] = token
	}
	var late []ledger.LateStamp
	held := 0
	for k, n := range r.due {
		record, err := r.Ledger.Record(ctx, n.id)
		if err != nil {
			return err
		}
		held += len(record.Canonical())
		stamp, err := evidenceRecord(r.trees[n.hash], n.entry, tokens[n.hash], groupWithTokens(record))
		switch {
		case errors.Is(err, timestamp.ErrUnsupported):
			r.result.Full++
		case err != nil:
			return fmt.Errorf("record %s: %w", n.id, err)
		default:
			late = append(late, ledger.LateStamp{Pending: ledger.Pending{Wait: storage.Wait{Index: n.index}, Record: record},
				Timestamp: stamp, By: r.result.Authority})
		}
		if len(late) < operator.MaxLateStamps && held < ledger.MaxHeld && k+1 < len(r.due) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		settled, err := r.addLate(ctx, late)
		if err != nil {
			return err
		}
		r.result.Records += int64(settled)
		if late, held = nil, 0; r.config.Progress != nil {
			r.config.Progress(k+1, len(r.due))
		}
	}
	r.due, r.trees = nil, map[crypto.Hash]*timestamp.Tree{}
	return nil
}

// stamp gets one token over a tree. It returns ErrEndsTooEarly if the token ends before the renewed stamps must last.
func (r *renewer) stamp(ctx context.Context, tree *timestamp.Tree) ([]byte, error) {
	root, err := tree.Root()
	if err != nil {
		return nil, err
	}
	token, err := r.asks(ctx, root)
	if err != nil {
		return nil, err
	}
	r.result.Requests++
	stamped, err := timestamp.Parse(token)
	if err != nil {
		return nil, err
	}
	ends, known := r.ends(timestamp.Link{Token: stamped, Imprint: root})
	if !known {
		return nil, fmt.Errorf("%s: its token cannot be verified", r.result.Authority)
	}
	if ends.Before(r.config.Before) {
		return nil, fmt.Errorf("%s: %w: on %s, and what it renews is to last until %s", r.result.Authority, ErrEndsTooEarly,
			ends.UTC().Format(time.DateOnly), r.config.Before.UTC().Format(time.DateOnly))
	}
	return token, nil
}

// ClockOf returns whose clock the authority of this name uses.
func ClockOf(name string) trust.Clock {
	if name == BuiltIn {
		return trust.OperatorClock
	}
	return trust.Independent
}
