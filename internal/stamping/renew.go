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

// maxRenewals is how many evidence records one token renews or makes.
const maxRenewals = 10_000

// RenewConfig says which time stamps to renew, and how.
type RenewConfig struct {
	Before   time.Time         // those that rest on certificates that end before
	TSA      string            // who stamps, by name or URL; "": the first authority outside, or the built-in one if there is none
	Hash     crypto.Hash       // also all that rest on another hash than this; 0: hashes stay
	Progress func(done, n int) // told after every record that is stored; nil: nobody is told
}

// Renewed is what came of a renewal.
type Renewed struct {
	Authority string
	Records   int64 // evidence records that were added to records
	Requests  int   // tokens that the authority gave
	Foreign   int64 // time stamps that cannot be judged here: of authorities that are not configured, or damaged
	Full      int64 // evidence records that cannot grow any more
	Waiting   int64 // records that were left out, as they wait for this authority's first time stamp
}

// ErrEndsTooEarly says that an authority's own certificates end before what it is to renew must last.
var ErrEndsTooEarly = errors.New("its own certificates end before that")

// Renew has an authority renew time stamps of records before the certificates that these rest on end, many with one token:
// plain tokens by a new evidence record that covers them, evidence records by a further time stamp, or with another hash by
// a further chain. What there was stays. What is renewed is not renewed again, so that this can be broken off and repeated
// at any point: a crash leaves records that were not yet renewed.
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

// renewer is a renewal under way.
type renewer struct {
	*Timekeeper
	config RenewConfig
	result Renewed
	roots  []*x509.Certificate
	asks   func(context.Context, timestamp.Imprint) ([]byte, error)

	trees map[crypto.Hash]*timestamp.Tree
	due   []renewal
	waits int64 // the next record that waits for this authority; -1: to be looked up
}

// renewal is an evidence record to be made. The record itself, which may be large, is read again then.
type renewal struct {
	index int64
	id    string
	hash  crypto.Hash // of the tree
	entry int         // in the tree
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
		// It has nothing of this authority, and will: what it gets then may last long enough.
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

// waiting reports whether the record at this place waits for the authority's time stamp. Places are asked about in order.
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

// held is an evidence record that a record has.
type held struct {
	*timestamp.EvidenceRecord
	covered []bool // of the record's tokens
	lasts   bool   // beyond the moment, on a hash that may stay
}

// consider finds what of a record is to be renewed, and adds it to the trees.
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

// heads are the evidence records of a record that no other one of it goes on from.
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

// ends says when the first certificate ends on which a token rests.
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

// renew adds an evidence record to a tree: by a further time stamp, or, for another hash, a further chain.
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

// coverTokens adds an evidence record over the plain tokens that are due and that none covers.
//
// What an act about time stamps has is left alone as long as one of its own tokens lasts: renewing makes such acts, and
// renewing what is made by renewing would never end.
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

// flush has the trees stamped, and adds what comes of it to the records.
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

// stamp asks for one token, which has to last longer than what it renews.
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

// ClockOf says whose clock an authority of this name reads.
func ClockOf(name string) trust.Clock {
	if name == BuiltIn {
		return trust.OperatorClock
	}
	return trust.Independent
}
