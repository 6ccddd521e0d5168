package brief

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"jurat/evidence"
	"jurat/internal/kit/fault"
	"jurat/internal/log/ledger/storage"
)

const (
	// MaxLinked is how many records Gather returns at most, except for a longer chain that the caller asks for by
	// name.
	MaxLinked = 10_000
	// maxCandidates is how many records Gather reads at most: keys can collide, and a record can name another without
	// being linked to it.
	maxCandidates = 4 * MaxLinked
	// maxSeen is how many digests the gathered records may name in all.
	maxSeen = 20_000
	// lookupPage is how many records Gather reads, or looks up, at once.
	lookupPage = 128
)

var (
	// ErrCut is wrapped by Gathered.Cut if more records are linked than were gathered.
	ErrCut = errors.New("not all that is linked is here")
	// ErrHidden means that the reader may not read what was asked for, or a part of it.
	ErrHidden = errors.New("it is not for this reader")
)

// May reports whether a reader may read a record.
type May func(ctx context.Context, b *Brief) (bool, error)

// A Gathered is the set of records that belong to a chain or a record.
type Gathered struct {
	Indexes []int64 // of its records, in log order
	Cut     error   // why more records are linked than these; wraps ErrCut; nil: these are all
}

// Gather gathers the records that belong to a chain, or to a record, as far as its reader may read them (nil: all of
// them). A record is linked to those that it names by digest or by original_response_id, to those of its chain_id,
// and to those of the request that it calls its parent. Links count in both directions. Chains of trials and of the
// operator are complete in themselves: Gather does not follow links into them, and for a record in such a chain it
// returns the chain. It returns every chain whole or not at all, and does not follow records that the reader may not
// read.
//
// It returns storage.ErrNotFound if there is neither such a chain nor such a record, ErrHidden if the reader may not
// read it, and storage.ErrExpired if it was deleted after its retention time.
func (x *Index) Gather(ctx context.Context, name string, may May) (*Gathered, error) {
	there, err := x.store.Briefs(ctx, storage.BriefQuery{Chain: name, N: 1})
	if err != nil {
		return nil, fmt.Errorf("looking for chain %q: %w", name, err)
	}
	g := newGathering(x, may)
	if len(there) > 0 {
		return g.run(ctx, name, g.beginChain)
	}
	return g.run(ctx, name, g.begin)
}

// GatherRecord is Gather for the id of a record, even if a chain has the same name.
func (x *Index) GatherRecord(ctx context.Context, id string, may May) (*Gathered, error) {
	g := newGathering(x, may)
	return g.run(ctx, id, g.begin)
}

func (g *gathering) run(ctx context.Context, name string, begin func(context.Context, string) error) (_ *Gathered, err error) {
	defer fault.While(&err, "gathering what belongs to %q", name)
	err = begin(ctx, name)
	for err == nil && len(g.frontier)+len(g.again) > 0 {
		err = g.round(ctx)
	}
	if err != nil {
		return nil, err
	}
	if g.alone != nil {
		return &Gathered{Indexes: g.alone, Cut: g.cut}, nil
	}
	return &Gathered{Indexes: slices.Sorted(maps.Keys(g.has)), Cut: g.cut}, nil
}

// gathering is one run of Gather.
type gathering struct {
	index *Index
	may   May
	cut   error

	alone      []int64 // places of a chain that is returned alone; nil: linked records are gathered as well
	has        map[int64]bool
	frontier   []*Brief           // gathered, but its links are not followed yet
	looked     map[int64]bool     // gathered, or rejected for good
	refused    map[string][]int64 // by actor: deliveries that count once a record of the actor is gathered
	again      []int64            // those of them that count now
	seenAt     int                // how many records were read
	closed     map[string]bool    // chains that are gathered, or cannot be
	are, named map[tie]bool       // by what others name the gathered records, and what these name of others
	digests    int                // among the latter
	actors     map[string]bool    // of the gathered records
}

func newGathering(x *Index, may May) *gathering {
	if may == nil {
		may = func(context.Context, *Brief) (bool, error) { return true, nil }
	}
	return &gathering{index: x, may: may, has: map[int64]bool{}, looked: map[int64]bool{}, refused: map[string][]int64{}, closed: map[string]bool{},
		are: map[tie]bool{}, named: map[tie]bool{}, actors: map[string]bool{}}
}

// begin gathers the record that the caller asked for, and its chain if it is in one.
func (g *gathering) begin(ctx context.Context, id string) error {
	first, err := g.index.ByID(ctx, id)
	if err != nil {
		return err
	}
	if first.ChainID != "" {
		return g.beginChain(ctx, first.ChainID)
	}
	if ok, err := g.may(ctx, first); err != nil || !ok {
		return errors.Join(err, ErrHidden)
	}
	g.add(first)
	return nil
}

// beginChain gathers the chain that the caller asked for, however long it is. If it is longer than MaxLinked, it
// keeps only the places of its records and follows no links.
func (g *gathering) beginChain(ctx context.Context, chain string) error {
	g.closed[chain] = true
	var places []int64
	var list []*Brief
	for b, err := range g.chain(ctx, chain) {
		if err != nil {
			return err
		}
		if places = append(places, b.Index); len(places) <= MaxLinked {
			list = append(list, b)
		}
	}
	switch {
	case len(list) > 0 && list[0].Apart():
		g.alone = places
		return nil
	case len(list) < len(places):
		g.alone = places
		g.cutAt("the chain %q has %d records", chain, len(places))
		return nil
	}
	for _, b := range list {
		g.add(b)
	}
	return nil
}

// chain iterates over the records of a chain. It ends with ErrHidden if the reader may not read one, with
// storage.ErrExpired if one was deleted, or with another error.
func (g *gathering) chain(ctx context.Context, chain string) iter.Seq2[*Brief, error] {
	return func(yield func(*Brief, error) bool) {
		for b, err := range g.index.each(ctx, storage.BriefQuery{Chain: chain, Names: true}) {
			if err == nil && b.Expired() {
				err = fmt.Errorf("%w: record %s of chain %q", storage.ErrExpired, b.RecordID, chain)
			}
			if err == nil {
				var may bool
				if may, err = g.may(ctx, b); err == nil && !may {
					err = ErrHidden
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(b, nil) {
				return
			}
		}
	}
}

// upTo returns the records of a chain, or ErrCut if there are more than most.
func (g *gathering) upTo(ctx context.Context, chain string, most int) (list []*Brief, err error) {
	for b, err := range g.chain(ctx, chain) {
		if err != nil {
			return nil, err
		}
		if len(list) == most {
			return nil, fmt.Errorf("%w: the chain %q has more than %d records", ErrCut, chain, most)
		}
		list = append(list, b)
	}
	return list, nil
}

func (g *gathering) cutAt(format string, args ...any) {
	if g.cut == nil {
		g.cut = fmt.Errorf("%w: "+format, append([]any{ErrCut}, args...)...)
	}
}

// add gathers a record.
func (g *gathering) add(b *Brief) {
	g.has[b.Index], g.looked[b.Index] = true, true
	g.frontier = append(g.frontier, b)
	if !g.actors[b.Actor] {
		g.actors[b.Actor] = true
		g.again = append(g.again, g.refused[b.Actor]...)
		delete(g.refused, b.Actor)
	}
	if g.digests+len(b.Names) > maxSeen {
		g.cutAt("more than %d records are named", maxSeen)
		b.Names = nil
	}
	for _, t := range b.others() {
		if t.by == ByDigest && !g.named[t] {
			g.digests++
		}
		g.named[t] = true
	}
	for _, t := range b.own() {
		g.are[t] = true
	}
	if b.More {
		g.cutAt("record %s names more than %d records", b.RecordID, MaxNames)
	}
}

// round follows the links of the records that the last round gathered.
func (g *gathering) round(ctx context.Context) error {
	around, again := g.frontier, g.again
	g.frontier, g.again = nil, nil
	if err := g.lookAt(ctx, again); err != nil {
		return err
	}
	for page := range slices.Chunk(around, lookupPage) {
		places, err := g.index.store.Places(ctx, lookupOf(page))
		if err != nil {
			return err
		}
		if len(places) > maxCandidates {
			g.cutAt("more than %d records name, or are named by, the same records", maxCandidates)
		}
		if err := g.lookAt(ctx, places); err != nil {
			return err
		}
	}
	return nil
}

// lookupOf selects all records that these name, or that name these.
func lookupOf(page []*Brief) storage.Lookup {
	q := storage.Lookup{Most: maxCandidates + 1}
	for _, b := range page {
		q.Digests = append(q.Digests, b.Names...)
		if b.Original != "" {
			q.RecordIDs = append(q.RecordIDs, b.Original)
		}
		if b.Parent != "" {
			q.Keys = append(q.Keys, Key(ByRequest, b.Parent))
		}
		for _, t := range b.own() {
			q.Keys = append(q.Keys, Key(t.by, t.name))
		}
	}
	slices.Sort(q.Keys)
	q.Keys = slices.Compact(q.Keys)
	return q
}

// lookAt considers the records at these places, except those that were considered before.
func (g *gathering) lookAt(ctx context.Context, places []int64) error {
	places = slices.DeleteFunc(places, func(i int64) bool { return g.looked[i] })
	for at := 0; at < len(places); {
		if g.seenAt > maxCandidates {
			g.cutAt("more than %d records had to be read", maxCandidates)
			return nil
		}
		page := places[at:min(len(places), at+lookupPage)]
		g.seenAt += len(page)
		list, last, err := g.index.briefs(ctx, storage.BriefQuery{At: page, Names: true})
		if err != nil && !storage.Unreadable(err) {
			return err
		}
		for _, b := range list {
			if err := g.consider(ctx, b); err != nil {
				return err
			}
			if b.Action == evidence.Delivery && !g.looked[b.Index] && !g.actors[b.Actor] {
				g.refused[b.Actor] = append(g.refused[b.Actor], b.Index)
			}
		}
		if err == nil {
			at += len(page)
			continue
		}
		g.cutAt("%w", err)
		at += 1 + slices.IndexFunc(page, func(i int64) bool { return i > last }) // continue after the record that cannot be read
	}
	return nil
}

// consider gathers a record if it is linked to a gathered one, with its chain if it is in one.
func (g *gathering) consider(ctx context.Context, b *Brief) error {
	if g.looked[b.Index] {
		return nil
	}
	if b.Apart() || b.Expired() || b.ChainID != "" && g.closed[b.ChainID] {
		g.looked[b.Index] = true
		return nil
	}
	if !g.linked(b) {
		return nil // a later round finds it again if a record linked to it is gathered
	}
	g.looked[b.Index] = true
	list := []*Brief{b}
	if b.ChainID == "" {
		if ok, err := g.may(ctx, b); err != nil || !ok {
			return err
		}
	} else {
		g.closed[b.ChainID] = true
		var err error
		list, err = g.upTo(ctx, b.ChainID, MaxLinked)
		switch {
		case errors.Is(err, ErrHidden):
			return nil
		case errors.Is(err, ErrCut), errors.Is(err, storage.ErrExpired), err != nil && storage.Unreadable(err):
			g.cutAt("%w", err)
			return nil
		case err != nil:
			return err
		}
	}
	if len(g.has)+len(list) > MaxLinked {
		g.cutAt("more than %d records are linked", MaxLinked)
		return nil
	}
	for _, b := range list {
		g.add(b)
	}
	return nil
}

// linked reports whether a record and a gathered one are linked. Anyone with a copy of an answer can name it, and only its author delivers it.
func (g *gathering) linked(b *Brief) bool {
	names := b.Action != evidence.Delivery || g.actors[b.Actor]
	return names && slices.ContainsFunc(b.others(), func(t tie) bool { return g.are[t] }) || slices.ContainsFunc(b.own(), func(t tie) bool { return g.named[t] })
}
