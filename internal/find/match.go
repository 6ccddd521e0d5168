package find

import (
	"context"
	"iter"
	"math"
	"slices"
	"strings"

	"jurat/evidence"
)

// A part is a stretch, or the tail.
type part struct {
	stretch
	tail []*doc // nil: a stretch
}

// parts iterates over the whole index as it is now.
func (x *Index) parts(oldest bool) iter.Seq[part] {
	x.mu.Lock()
	list := make([]part, 0, len(x.stretches)+1)
	for _, s := range x.stretches {
		list = append(list, part{stretch: s})
	}
	if len(x.tail) > 0 {
		list = append(list, part{tail: x.tail})
	}
	x.mu.Unlock()
	if !oldest {
		slices.Reverse(list)
	}
	return slices.Values(list)
}

// A matcher selects candidates: all records that a search finds, and some others.
type matcher struct {
	pieces []any // of the text
	where  string
	args   []any
	plain  bool // where selects all records
	fits   func(*doc) bool

	blocks map[int64]int64 // by number: the slots that have all pieces, as far as they were looked up

	from, to int64 // milliseconds
	scope    Scope
	trials   numberSet // of the scope
}

// matching returns the matcher of a search.
func (x *Index) matching(q *Records, in Scope) *matcher {
	m := &matcher{pieces: piecesOf(q.Text), blocks: map[int64]int64{}, from: math.MinInt64, to: math.MaxInt64, scope: in}
	var where []string
	add := func(condition string, args ...any) { where, m.args = append(where, condition), append(m.args, args...) }
	if q.Actor != "" {
		add("(actor = ? OR agent = ?)", q.Actor, q.Actor)
	}
	if q.Action != "" {
		add("action = ?", string(q.Action))
	}
	if q.Chain != "" {
		add("chain = ?", q.Chain)
	}
	if q.Record != "" {
		add("id = ?", q.Record)
	}
	if !q.From.IsZero() {
		m.from = q.From.UnixMilli()
		add("at >= ?", m.from)
	}
	if !q.To.IsZero() {
		m.to = q.To.UnixMilli()
		add("at < ?", m.to)
	}
	m.fits = func(d *doc) bool {
		at := d.at.UnixMilli()
		return (q.Actor == "" || q.Actor == d.actor || q.Actor == d.agent) && (q.Action == "" || q.Action == d.action) && (q.Chain == "" || q.Chain == d.chain) &&
			(q.Record == "" || q.Record == d.id) && at >= m.from && at < m.to && m.scoped(d) && d.has(q.Text)
	}
	m.plain = len(where) == 0
	if !in.All {
		m.trials = x.numbersOf(in.Trials)
	}
	m.where = strings.Join(append([]string{"place >= ? AND place < ?"}, where...), " AND ")
	return m
}

func (m *matcher) scoped(d *doc) bool {
	return m.scope.All || m.scope.Trials[d.chain] || m.scope.Agent != "" && d.role == evidence.RoleAgent && d.actor == m.scope.Agent
}

func (d *doc) has(folded string) bool {
	return folded == "" || slices.ContainsFunc(d.texts, func(text string) bool { return strings.Contains(text, folded) })
}

// numbersOf returns the numbers of trials.
func (x *Index) numbersOf(ids map[string]bool) (numbers numberSet) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id := range ids {
		if n := x.numbers[id]; n != 0 {
			numbers.add(n)
		}
	}
	return numbers
}

// piecesOf returns pieces that a text has: at most maxQuery of them, evenly from all of the text.
func piecesOf(folded string) (list []any) {
	var all []piece
	pieces(folded, func(p piece) {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	})
	step := max(1, (len(all)+maxQuery-1)/maxQuery)
	for i := 0; i < len(all); i += step {
		list = append(list, int64(all[i]))
	}
	return list
}

// places lists the candidates in a part, in log order.
func (m *matcher) places(ctx context.Context, x *Index, p part) (list []int64, err error) {
	if p.tail != nil {
		for _, d := range p.tail {
			if m.fits(d) {
				list = append(list, d.place)
			}
		}
		return list, nil
	}
	s, err := m.offsets(ctx, x, p.stretch)
	if s == nil || err != nil {
		return nil, err
	}
	for _, n := range s.offsets() {
		list = append(list, p.begin+int64(n))
	}
	return list, nil
}

// offsets returns the candidates in a stretch; nil if there are none.
func (m *matcher) offsets(ctx context.Context, x *Index, in stretch) (*set, error) {
	if in.latest < m.from || in.earliest >= m.to || m.scope.nothing(in) {
		return nil, nil
	}
	s := everything()
	if len(m.pieces) > 0 {
		may, err := m.may(ctx, x, in.begin)
		if !may || err != nil {
			return nil, err
		}
		if s, err = x.withPieces(ctx, in.begin, m.pieces); s == nil || err != nil {
			return nil, err
		}
	}
	if !m.plain || len(m.pieces) == 0 {
		if err := x.narrow(ctx, s, in, m.where, m.args); err != nil {
			return nil, err
		}
	}
	if !m.scope.All {
		if err := m.limit(ctx, x, s, in); err != nil {
			return nil, err
		}
	}
	if s.empty() {
		return nil, nil
	}
	return s, nil
}

// nothing reports whether a stretch has nothing of a scope: neither trials, nor records of an agent.
func (s *Scope) nothing(in stretch) bool { return !s.All && s.Agent == "" && len(in.trials) == 0 }

// may reports whether the stretch that begins at a place can have records with all pieces.
func (m *matcher) may(ctx context.Context, x *Index, begin int64) (bool, error) {
	block, slot := slotOf(begin)
	slots, known := m.blocks[block]
	if !known {
		var err error
		if slots, err = x.slotsWith(ctx, block, m.pieces); err != nil {
			return false, err
		}
		m.blocks[block] = slots
	}
	return slots&slot != 0, nil
}

// slotsWith returns the slots of a block that have all pieces.
func (x *Index) slotsWith(ctx context.Context, block int64, pieces []any) (int64, error) {
	rows, err := x.db.QueryContext(ctx, "SELECT slots FROM blocks WHERE block = ? AND piece IN ("+marks(len(pieces))+")", append([]any{block}, pieces...)...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	all, n := int64(-1), 0
	for ; rows.Next(); n++ {
		var slots int64
		if err := rows.Scan(&slots); err != nil {
			return 0, err
		}
		all &= slots
	}
	if n < len(pieces) {
		all = 0
	}
	return all, rows.Err()
}

// limit removes what is not in the scope.
func (m *matcher) limit(ctx context.Context, x *Index, s *set, in stretch) error {
	allowed := new(set)
	if m.scope.Agent != "" {
		allowed = everything()
		if err := x.narrow(ctx, allowed, in, "place >= ? AND place < ? AND actor = ? AND role = ?", []any{m.scope.Agent, string(evidence.RoleAgent)}); err != nil {
			return err
		}
	}
	for _, n := range s.offsets() {
		if m.trials.has(in.trial(n)) {
			allowed.add(n)
		}
	}
	s.and(allowed)
	return nil
}

// withPieces returns the records of a stretch that have all pieces; nil if there are none.
func (x *Index) withPieces(ctx context.Context, begin int64, pieces []any) (*set, error) {
	rows, err := x.db.QueryContext(ctx, "SELECT places FROM pieces WHERE stretch = ? AND piece IN ("+marks(len(pieces))+")", append([]any{begin}, pieces...)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	s, n := everything(), 0
	for ; rows.Next(); n++ {
		var places []byte
		if err := rows.Scan(&places); err != nil {
			return nil, err
		}
		s.and(decode(places))
	}
	if err := rows.Err(); err != nil || n < len(pieces) || s.empty() {
		return nil, err
	}
	return s, nil
}

// narrow keeps the records of a stretch that fulfil a condition.
func (x *Index) narrow(ctx context.Context, s *set, in stretch, where string, args []any) error {
	rows, err := x.db.QueryContext(ctx, "SELECT place FROM records WHERE "+where, append([]any{in.begin, in.after}, args...)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	kept := new(set)
	for rows.Next() {
		var place int64
		if err := rows.Scan(&place); err != nil {
			return err
		}
		if n := place - in.begin; n >= 0 && n < stretchRecords {
			kept.add(int(n))
		}
	}
	s.and(kept)
	return rows.Err()
}
