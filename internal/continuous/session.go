package continuous

import (
	"context"
	"errors"
	"slices"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/subject/sealed"
)

// maxSession is how many bytes of a chain's records are read for one trial.
const maxSession = 64 << 20

// errUnreadable says that nobody can read what a recorder saw.
var errUnreadable = errors.New("what was asked or answered cannot be read: it is erased, or copies from a record that is gone")

// session returns an act that a recorder saw, with what of its chain a jury needs: the records from which its bytes copy, and of those around it the ones that can be
// read with these. Texts that are sealed apart are disclosed: the operator's configuration says so (config.Continuous.Recorded). It returns errUnreadable or
// sealed.ErrTooMuch for an act that cannot be put before a jury.
func (s *Service) session(ctx context.Context, of *evidence.Record) ([]*evidence.Record, error) {
	before, after, err := s.chainOf(ctx, of)
	if err != nil {
		return nil, err
	}
	v := &session{service: s, ctx: ctx, have: map[evidence.Digest]bool{}}
	tried, err := v.open(of)
	if err != nil {
		return nil, err
	}
	sources, rest, err := v.sources(tried, before)
	if err != nil {
		return nil, err
	}
	v.has(append(sources, tried)...)
	if v.size > maxEvidence {
		return nil, sealed.ErrTooMuch
	}
	room := max(0, s.config.Settings.MaxRecords()-1-len(sources))
	following, err := v.readable(after, room/2, true)
	if err != nil {
		return nil, err
	}
	slices.Reverse(rest) // the nearest first
	preceding, err := v.readable(rest, room-len(following), false)
	if err != nil {
		return nil, err
	}
	chosen := slices.Concat(sources, preceding)
	place := map[evidence.Digest]int{}
	for i, r := range before {
		place[r.Digest] = i
	}
	slices.SortFunc(chosen, func(a, b *evidence.Record) int { return place[a.Digest] - place[b.Digest] })
	return slices.Concat(chosen, []*evidence.Record{tried}, following), nil
}

// chainOf returns the records of a chain before and after one, as far as they are about the same agent.
func (s *Service) chainOf(ctx context.Context, of *evidence.Record) (before, after []*evidence.Record, err error) {
	if of.Payload.ChainID == "" {
		return nil, nil, nil
	}
	most, size, found := s.config.Settings.MaxRecords(), 0, false
	for r, err := range s.config.Ledger.ChainRecords(ctx, of.Payload.ChainID) {
		if errors.Is(err, ledger.ErrExpired) {
			return nil, nil, nil // what rests on records that are gone is found to be unreadable
		}
		if err != nil {
			return nil, nil, err
		}
		switch {
		case r.Digest == of.Digest:
			found = true
		case !isAbout(&r.Payload, of.Payload.Observed.Agent):
		case !found:
			if size += len(r.Canonical()); size > maxSession {
				return nil, nil, sealed.ErrTooMuch
			}
			before = append(before, r)
		default:
			after = append(after, r)
		}
		if len(after) >= most {
			break
		}
	}
	return before, after, nil
}

// isAbout reports whether a record is an act of an agent, or one of nobody's that stands beside it, such as an event of the recorder.
func isAbout(p *evidence.Payload, agent string) bool {
	switch {
	case p.Observed != nil:
		return p.Observed.Agent == agent
	case p.Role() == evidence.RoleAgent:
		return p.Actor() == agent
	}
	return !p.ActionType.InTrial()
}

// A session is what is chosen of a chain.
type session struct {
	service *Service
	ctx     context.Context
	have    map[evidence.Digest]bool // bodies that what is chosen has
	size    int
}

// open discloses a record. It returns errUnreadable if a body is withheld, which is then erased.
func (v *session) open(r *evidence.Record) (*evidence.Record, error) {
	opened, err := v.service.config.Disclose(v.ctx, r)
	if err != nil {
		return nil, err
	}
	if _, whole := copied(opened); !whole {
		return nil, errUnreadable
	}
	return opened, nil
}

// copied returns from which bodies a record copies, and whether its own can be read.
func copied(r *evidence.Record) (from []evidence.Digest, whole bool) {
	p := &r.Payload
	for _, pointer := range []string{"/request_body", "/response_body"} {
		member := p.RequestBody
		if pointer == "/response_body" {
			member = p.ResponseBody
		}
		body, withheld := r.Said(pointer, member)
		if withheld {
			return nil, false
		}
		if len(body) == 0 {
			continue
		}
		pieces, err := evidence.ParseBody(body)
		if err != nil {
			return nil, false
		}
		for _, piece := range pieces {
			if !piece.From.IsZero() {
				from = append(from, piece.From)
			}
		}
	}
	return from, true
}

// bodies returns the digests of a record's bodies.
func bodies(r *evidence.Record) (list []evidence.Digest) {
	if o := r.Payload.Observed; o != nil && o.Request != nil {
		list = append(list, o.Request.Sealed())
	}
	if o := r.Payload.Observed; o != nil && o.Response != nil {
		list = append(list, o.Response.Sealed())
	}
	return list
}

// has takes in records that are chosen.
func (v *session) has(records ...*evidence.Record) {
	for _, r := range records {
		v.size += sizeOf(r)
		for _, body := range bodies(r) {
			v.have[body] = true
		}
	}
}

func sizeOf(r *evidence.Record) int {
	size := len(r.Canonical())
	for _, d := range r.Disclosures {
		size += len(d.Value)
	}
	return size
}

// sources returns the records from which one copies, and those from which these copy, and the others before it.
func (v *session) sources(of *evidence.Record, before []*evidence.Record) (sources, rest []*evidence.Record, err error) {
	needed := map[evidence.Digest]bool{}
	need := func(r *evidence.Record) {
		own := bodies(r)
		from, _ := copied(r)
		for _, body := range from {
			if !slices.Contains(own, body) {
				needed[body] = true
			}
		}
	}
	need(of)
	for _, r := range slices.Backward(before) {
		if !slices.ContainsFunc(bodies(r), func(body evidence.Digest) bool { return needed[body] }) {
			rest = append(rest, r)
			continue
		}
		opened, err := v.open(r)
		if err != nil {
			return nil, nil, err
		}
		for _, body := range bodies(r) {
			delete(needed, body)
		}
		need(opened)
		sources = append(sources, opened)
	}
	if len(needed) > 0 {
		return nil, nil, errUnreadable
	}
	slices.Reverse(rest)
	return sources, rest, nil
}

// readable returns up to so many of the records that copy from nothing but what is chosen. What follows the tried act may copy from each other.
func (v *session) readable(records []*evidence.Record, most int, follow bool) (list []*evidence.Record, err error) {
	for _, r := range records {
		if len(list) >= most {
			break
		}
		opened, err := v.open(r)
		if errors.Is(err, errUnreadable) {
			continue
		}
		if err != nil {
			return nil, err
		}
		from, _ := copied(opened)
		if slices.ContainsFunc(from, func(body evidence.Digest) bool { return !v.have[body] }) || v.size+sizeOf(opened) > maxEvidence {
			continue
		}
		if list = append(list, opened); follow {
			v.has(opened)
		} else {
			v.size += sizeOf(opened)
		}
	}
	return list, nil
}
