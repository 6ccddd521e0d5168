package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
	"jurat/verify"
)

// A judged says whom a record judges, and what the log must still lack for that to be so.
type judged struct {
	subject  evidence.Digest // zero: no actor that the log knows
	noChain  string          // the log has no record of this chain; "": it does not matter
	noRecord string          // the log has no record with this id; "": it does not matter
}

// holds returns errLinksMoved if the log has by now what it lacked when the subject was looked up. What the log had
// then, it has unchanged for ever.
func (j *judged) holds(found storage.Found) error {
	_, there := found.Places[j.noRecord]
	if j.noRecord != "" && there || j.noChain != "" && found.Chains[j.noChain] > 0 {
		return errLinksMoved
	}
	return nil
}

// lookSubjects finds out from the log whom each of the records judges. Callers have no say in it.
func (l *Ledger) lookSubjects(ctx context.Context, a *appending) error {
	a.judged = make([]judged, len(a.records))
	for i, r := range a.records {
		look := &subjectLook{ctx: ctx, ledger: l, earlier: a.records[:i], judged: &a.judged[i]}
		subject, err := verify.JudgedActor(&r.Payload, verify.NamedActor(&r.Payload), look)
		if err != nil {
			return fmt.Errorf("looking for the actor that record %s judges: %w", r.Payload.RecordID, err)
		}
		if subject.IsZero() {
			subject = look.left
		}
		a.judged[i].subject = subject
	}
	return nil
}

// A subjectLook is a census.Log that notes what the log lacks.
type subjectLook struct {
	ctx     context.Context
	ledger  *Ledger
	earlier []*evidence.Record // of the same transaction
	judged  *judged
	left    evidence.Digest // the subject of a trial whose submission, which names it, has expired
}

func (s *subjectLook) First(chain string) (*verify.LoggedRecord, error) {
	rows, err := s.ledger.cfg.Store.InChain(s.ctx, chain, 0, 1)
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 {
		record, err := rows[0].Record()
		if errors.Is(err, ErrExpired) {
			return nil, s.leftInChain(chain)
		}
		return seen(record, err)
	}
	s.judged.noChain = chain
	return s.before(func(p *evidence.Payload) bool { return p.ChainID == chain }), nil
}

// before finds a record of the same transaction.
func (s *subjectLook) before(is func(*evidence.Payload) bool) *verify.LoggedRecord {
	for _, r := range s.earlier {
		if is(&r.Payload) {
			return verify.Logged(r)
		}
	}
	return nil
}

func (s *subjectLook) Named(id string) (*verify.LoggedRecord, error) {
	row, err := s.ledger.cfg.Store.ByRecordID(s.ctx, id)
	if err == nil {
		record, err := row.Record()
		if errors.Is(err, ErrExpired) { // the log keeps what the rules need of it, unless a recorder made it
			if err := s.refuseSeen(&row, err); err != nil {
				return nil, err
			}
			return &verify.LoggedRecord{Chain: row.ChainID, Digest: row.Digest, Actor: row.Actor}, nil
		}
		return seen(record, err)
	}
	if !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	s.judged.noRecord = id
	return s.before(func(p *evidence.Payload) bool { return p.RecordID == id }), nil
}

// refuseSeen returns an error unless it is known that a record that has expired was not a recorder's: of a recorder's, the log does not know any more which
// agent was seen, and so whom a review would judge. A reader who kept a copy would know. A review in a trial judges the agent on trial, whoever made the record.
func (s *subjectLook) refuseSeen(row *storage.Row, expired error) error {
	if strings.HasPrefix(row.ChainID, evidence.TrialPrefix) {
		return nil
	}
	role, err := s.ledger.roleOf(s.ctx, row.Actor)
	switch {
	case err != nil:
		return err
	case role == evidence.RoleRecorder:
		return fmt.Errorf("%w; a recorder made it, and the log does not know any more which agent it was about", expired)
	case role == "":
		return fmt.Errorf("%w; the log does not know any more whether a recorder made it, and so whom the review judges", expired)
	}
	return nil
}

// roleOf finds the role of an actor by its tag: from the key events, and of one whose key was made as it was first used, from its newest record. "": neither says
// it.
func (l *Ledger) roleOf(ctx context.Context, tag evidence.Digest) (evidence.Role, error) {
	known, err := l.Keys(ctx)
	if err != nil {
		return "", err
	}
	for _, k := range known.Keys() {
		if evidence.ActorTag(k.Role, k.Name) == tag {
			return k.Role, nil
		}
	}
	rows, err := l.lastOf(ctx, tag, 1)
	if err != nil || len(rows) == 0 {
		return "", err
	}
	record, err := rows[0].Record()
	if errors.Is(err, ErrExpired) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return record.Payload.Role(), nil
}

func seen(r *evidence.Record, err error) (*verify.LoggedRecord, error) {
	if err != nil {
		return nil, err
	}
	return verify.Logged(r), nil
}

// leftInChain finds the subject of a trial whose submission has expired: the log keeps the counts of the trial's other
// records.
func (s *subjectLook) leftInChain(chain string) error {
	for row, err := range s.ledger.chainRows(s.ctx, chain) {
		if err != nil {
			return err
		}
		if row.Counts.SubjectSeq > 0 {
			s.left = row.Counts.Subject
			break
		}
	}
	return nil
}

// A Counted is a record of an actor, or a judgment about one, as the log has counted it.
type Counted struct {
	Index    int64
	RecordID string
	Digest   evidence.Digest
	Counts   evidence.LogCounts
	Record   *evidence.Record // nil: it has expired
}

// OfActor iterates over the records of an actor that the log has counted, in log order, and holds a few at a time. It
// takes time for these records alone, however long the log is. It ends after an error, ErrDamaged if a number is missing.
func (l *Ledger) OfActor(ctx context.Context, role evidence.Role, name string) iter.Seq2[Counted, error] {
	tag := evidence.ActorTag(role, name)
	return counted(func(from int64) ([]storage.Row, error) { return l.cfg.Store.OfActor(ctx, tag, from, smallPage) },
		func(c evidence.LogCounts) int64 { return c.ActorSeq })
}

// LastOfActor returns the last n records of an actor that the log has counted, the newest first. It reads few rows, however
// long the log is. Its errors are those of the store, and of records that cannot be read.
func (l *Ledger) LastOfActor(ctx context.Context, role evidence.Role, name string, n int64) (list []Counted, err error) {
	rows, err := l.lastOf(ctx, evidence.ActorTag(role, name), n)
	for i := range slices.Backward(rows) {
		c, err := countedOf(&rows[i])
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, err
}

func countedOf(row *storage.Row) (c Counted, err error) {
	c = Counted{Index: row.Index, RecordID: row.RecordID, Digest: row.Digest, Counts: row.Counts}
	if row.Entry == nil { // otherwise it has expired
		c.Record, err = row.Record()
	}
	return c, err
}

// lastOf returns the last n rows of an actor, in log order.
func (l *Ledger) lastOf(ctx context.Context, tag evidence.Digest, n int64) ([]storage.Row, error) {
	size, err := l.Size(ctx)
	if err != nil {
		return nil, err
	}
	from := sort.Search(int(size), func(from int) bool { // the first index from which there are at most n
		if err != nil {
			return true
		}
		var rows []storage.Row
		rows, err = l.cfg.Store.OfActor(ctx, tag, int64(from), n+1)
		return int64(len(rows)) <= n
	})
	if err != nil {
		return nil, err
	}
	return l.cfg.Store.OfActor(ctx, tag, int64(from), n)
}

// About iterates over the judgments about an actor, as OfActor does over the actor's records.
func (l *Ledger) About(ctx context.Context, role evidence.Role, name string) iter.Seq2[Counted, error] {
	tag := evidence.SubjectTag(role, name)
	return counted(func(from int64) ([]storage.Row, error) { return l.cfg.Store.About(ctx, tag, from, smallPage) },
		func(c evidence.LogCounts) int64 { return c.SubjectSeq })
}

// CountsFrom reports whether the log has counted a record of an actor, or a judgment about one, from an index on. It takes
// the same time in a log of any length.
func (l *Ledger) CountsFrom(ctx context.Context, role evidence.Role, name string, from int64) (bool, error) {
	own, err := l.cfg.Store.OfActor(ctx, evidence.ActorTag(role, name), from, 1)
	if err != nil || len(own) > 0 {
		return err == nil, err
	}
	about, err := l.cfg.Store.About(ctx, evidence.SubjectTag(role, name), from, 1)
	return len(about) > 0, err
}

func counted(page func(from int64) ([]storage.Row, error), seq func(evidence.LogCounts) int64) iter.Seq2[Counted, error] {
	return func(yield func(Counted, error) bool) {
		n := int64(0)
		opened(paged(0, page), func(row *storage.Row) (Counted, error) {
			if n++; seq(row.Counts) != n {
				return Counted{}, fmt.Errorf("%w: row %d was counted as number %d, but is number %d", ErrDamaged, row.Index, seq(row.Counts), n)
			}
			return countedOf(row)
		}, "reading what the log counts of an actor")(yield)
	}
}
