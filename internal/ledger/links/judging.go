package links

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
	"jurat/verify"
)

// A Judging is what a record is judged by besides its chain: the records that it names, wherever they are.
type Judging struct {
	link     verify.Linked
	named    map[evidence.Digest]placedLink // those that were in the log when it was read
	subjects []placedLink                   // the records that a review or delivery is about, if the log has them
	reviews  []placedLink                   // the reviews of these, for a delivery
	upTo     int64                          // the size of the log up to which reviews are known; -1: not needed
	byAct    bool                           // the operator has admitted the actor to the chain
}

// gather reads the records that r names. They never change, so no other writer has to wait. It returns an
// *evidence.FieldError if r names too many.
func (k *Known) gather(ctx context.Context, r *evidence.Record) (*Judging, error) {
	j := &Judging{link: verify.Link(r), named: map[evidence.Digest]placedLink{}, upTo: -1}
	digests := append([]evidence.Digest{r.Payload.PreviousRecord}, r.Payload.Saw...)
	if len(digests) > maxNamed+1 {
		return nil, &evidence.FieldError{Field: "saw", Reason: fmt.Sprintf("names %d records, but the log can check at most %d", len(r.Payload.Saw), maxNamed)}
	}
	for _, digest := range digests {
		if digest.IsZero() {
			continue
		}
		found, err := k.find(func() (storage.Row, error) { return k.store.ByDigest(ctx, digest) })
		if err != nil {
			return nil, err
		}
		if found != nil {
			j.named[digest] = *found
		}
	}
	if !decides(&r.Payload) {
		return j, nil
	}
	return j, k.subjects(ctx, &r.Payload, j)
}

// find returns a record, or nil if it is missing or has expired.
func (k *Known) find(by func() (storage.Row, error)) (*placedLink, error) {
	row, err := by()
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrExpired) || err == nil && row.Entry != nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p, err := linkOf(&row)
	return &p, err
}

// subjects reads what a review or delivery is about. If that is a review itself, it also reads what that one is
// about.
func (k *Known) subjects(ctx context.Context, p *evidence.Payload, j *Judging) error {
	about := map[string]bool{}
	if p.OriginalResponseID != "" {
		about[p.OriginalResponseID] = true
	}
	for _, named := range j.named {
		if about[named.Payload().RecordID] = true; named.Payload().ActionType == evidence.HumanReview {
			about[named.Payload().OriginalResponseID] = true
		}
	}
	for id := range about {
		for range maxReviewed {
			found, err := k.find(func() (storage.Row, error) { return k.store.ByRecordID(ctx, id) })
			if err != nil {
				return err
			}
			if found == nil {
				break
			}
			j.subjects = append(j.subjects, *found)
			if found.Payload().ActionType != evidence.HumanReview {
				break
			}
			id = found.Payload().OriginalResponseID
		}
	}
	if p.ActionType != evidence.Delivery {
		return nil
	}
	return k.decided(ctx, j)
}

// decided reads the reviews of what a delivery is about.
func (k *Known) decided(ctx context.Context, j *Judging) (err error) {
	j.reviews = nil
	if len(j.subjects) == 0 {
		return nil
	}
	from := slices.MinFunc(j.subjects, byIndex).index
	if j.upTo, err = k.decisions.read(ctx, from); err != nil {
		return err
	}
	for _, subject := range j.subjects {
		for _, index := range k.decisions.on(subject.Payload().RecordID) {
			rows, err := k.store.Rows(ctx, index, 1)
			if err != nil {
				return err
			}
			if len(rows) == 0 || rows[0].Entry != nil {
				continue
			}
			p, err := linkOf(&rows[0])
			if err != nil {
				return err
			}
			j.reviews = append(j.reviews, p)
		}
	}
	return nil
}

// file returns the records that a reader of r would have, in log order: the end of its chain, what it names, and the
// reviews of that.
func (j *Judging) file(s *chainState) []placedLink {
	var all []placedLink
	if s != nil {
		all = slices.Clone(s.last)
	}
	for _, named := range j.named {
		all = append(all, named)
	}
	all = append(append(all, j.subjects...), j.reviews...)
	sort.Slice(all, func(i, j int) bool { return all[i].index < all[j].index })
	return slices.CompactFunc(all, func(a, b placedLink) bool { return a.index == b.index })
}

// contradicts returns an *Error for the first finding that the verifier makes with the record but not without it.
func (j *Judging) contradicts(s *chainState) error {
	file := j.file(s)
	var before []verify.Linked
	for _, p := range file {
		q := p.Payload()
		if slices.Contains(q.Saw, j.link.Digest()) || q.PreviousRecord == j.link.Digest() {
			return &Error{Rule: "causality", Record: q.RecordID, Reason: "that record names this one, and is in the log before it"}
		}
		before = append(before, p.Linked)
	}
	known := map[[2]string]bool{}
	for _, f := range verify.Contradictions(before) {
		known[[2]string{f.Record, f.Rule}] = true
	}
	for _, f := range verify.Contradictions(append(before, j.link)) {
		if !known[[2]string{f.Record, f.Rule}] {
			return &Error{Rule: f.Rule, Record: f.Record, Reason: f.Reason, itself: f.Record == j.link.Payload().RecordID}
		}
	}
	return nil
}

// admitted reports whether the record's actor may add to the chain, judged by the chain and by what the record is
// about.
func (j *Judging) admitted(s *chainState) bool {
	p := j.link.Payload()
	if s.count == 0 || j.byAct || storage.ActorOf(p) == s.owner || p.Role() == evidence.RoleAgent && s.agents[p.Actor()] {
		return true
	}
	if !decides(p) {
		return false
	}
	for _, subject := range j.subjects {
		q := subject.Payload()
		if q.ChainID == s.id && (p.ActionType == evidence.HumanReview || storage.ActorOf(q) == storage.ActorOf(p)) {
			return true
		}
	}
	return false
}

// judge returns ErrNotAdmitted, wrapped, or an *Error if a record must not follow at the end of a chain. s is nil for
// a record without a chain.
func (j *Judging) judge(s *chainState) error {
	if s != nil && !j.admitted(s) {
		return fmt.Errorf("%w: field chain_id: %q does not belong to %q: the chain's owner must admit the agent with next_agent, or the operator with 'jurat access grant --chain'; or use another chain_id",
			ErrNotAdmitted, s.id, j.link.Payload().Actor())
	}
	var link *Error
	if err := j.contradicts(s); !errors.As(err, &link) || s != nil || j.ofTheirOwn() {
		return err
	}
	// An actor who knows only the digest of another's record must learn nothing of its content.
	return &Error{Rule: link.Rule, Reason: "it contradicts a record that it names", itself: true}
}

// ofTheirOwn reports whether all records that r names are its actor's, or its actor is a reviewer, who may read
// everything.
func (j *Judging) ofTheirOwn() bool {
	p := j.link.Payload()
	if p.Role() == evidence.RoleReviewer {
		return true
	}
	for _, subject := range j.subjects {
		if q := subject.Payload(); q.Role() == evidence.RoleAgent && storage.ActorOf(q) != storage.ActorOf(p) {
			return false
		}
	}
	for _, named := range j.named {
		if q := named.Payload(); q.Role() == evidence.RoleAgent && storage.ActorOf(q) != storage.ActorOf(p) {
			return false
		}
	}
	return true
}

// prepare updates what a record is judged by: its chain, by at most most records, and the reviews of what it is
// about.
func (k *Known) prepare(ctx context.Context, j *Judging, most int64) (s *chainState, err error) {
	p := j.link.Payload()
	if j.upTo >= 0 {
		if err := k.decided(ctx, j); err != nil {
			return nil, err
		}
	}
	if p.ChainID == "" {
		return nil, nil
	}
	if s, err = k.upToDate(ctx, p.ChainID, most); err != nil {
		return nil, err
	}
	if !j.byAct && p.Role() == evidence.RoleAgent && !j.admitted(s) {
		j.byAct, err = k.admissions.has(ctx, p.ChainID, p.Actor())
	}
	return s, err
}

// Look reads what a record is judged by. It returns an *evidence.FieldError for a record that names too many others.
// Its other errors are those of the store.
func (k *Known) Look(ctx context.Context, r *evidence.Record) (*Judging, error) {
	j, _, err := k.look(ctx, r)
	return j, err
}

// Judge returns an error if the record could not be appended now. Otherwise it returns what to judge the record by
// once more when it gets its place.
func (k *Known) Judge(ctx context.Context, r *evidence.Record) (*Judging, error) {
	j, s, err := k.look(ctx, r)
	if err != nil {
		return nil, err
	}
	return j, j.judge(s)
}

func (k *Known) look(ctx context.Context, r *evidence.Record) (*Judging, *chainState, error) {
	j, err := k.gather(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	s, err := k.prepare(ctx, j, 0)
	return j, s, err
}
