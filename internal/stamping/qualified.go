package stamping

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/internal/fault"
	"jurat/timestamp"
	"jurat/verify/trust"
)

var (
	// ErrListOutOfDate says that the trusted lists do not say any more whether an authority is a qualified service. It is asked again when
	// the operator gives newer lists.
	ErrListOutOfDate = errors.New("its trusted list is out of date")
	// ErrNotQualified says that a token is not a qualified time stamp by the trusted lists.
	ErrNotQualified = errors.New("its token is not a qualified time stamp")
)

// dueSoon is how long before the end of a list the operator is told.
const dueSoon = 14 * 24 * time.Hour

// A provider is what the trusted lists say of an authority: a trust file with the authorities of one provider.
type provider struct{ trust *trust.Trust }

// until returns when the newest of its lists says that a newer one is due; zero if no newer one is to come.
func (p provider) until() (until time.Time) {
	for _, a := range p.trust.Authorities {
		for _, s := range a.Services {
			if s.List.NextUpdate.IsZero() {
				return time.Time{}
			}
			if s.List.NextUpdate.After(until) {
				until = s.List.NextUpdate
			}
		}
	}
	return until
}

// fresh returns ErrListOutOfDate if no list says anything of now.
func (p provider) fresh(now time.Time) error {
	if until := p.until(); !until.IsZero() && now.After(until) {
		return fmt.Errorf("%w since %s: %s; fetch newer lists, and give them with 'jurat tsa --qualified'", ErrListOutOfDate,
			until.UTC().Format(time.RFC3339), p.list())
	}
	return nil
}

// list names the list of the first service.
func (p provider) list() string {
	s := p.trust.Authorities[0].Services[0]
	return fmt.Sprintf("the list of %s, number %d, issued %s", s.Territory, s.List.Sequence, s.List.Issued.UTC().Format(time.RFC3339))
}

// qualified returns ErrNotQualified unless a token that was just received is a qualified time stamp now.
func (p provider) qualified(token *timestamp.Unverified, imprint [sha256.Size]byte, now time.Time) (*trust.Qualified, error) {
	checker := trust.Checker{Trust: p.trust, At: now, Memory: timestamp.NewMemory(), Share: timestamp.NewShare()}
	stamped, err := checker.Verify(token, imprint)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotQualified, err)
	case stamped.Unqualified != nil:
		return nil, fmt.Errorf("%w: %s", ErrNotQualified, stamped.Unqualified.Reason)
	case stamped.Qualified == nil:
		return nil, fmt.Errorf("%w: no service of the trusted lists has made it", ErrNotQualified)
	}
	return stamped.Qualified, nil
}

// listed are the authorities of a trust file that have services.
func listed(file *trust.Trust) (provider, error) {
	p := provider{&trust.Trust{Format: trust.Format, Lists: file.Lists}}
	for _, a := range file.Authorities {
		if len(a.Services) > 0 {
			p.trust.Authorities = append(p.trust.Authorities, trust.Authority{Name: a.Name, Certificate: a.Certificate, Clock: trust.Independent, Services: a.Services})
		}
	}
	if len(p.trust.Authorities) == 0 {
		return p, errors.New("the trust file has no service of trusted lists: 'jurat trust eu' writes one that has")
	}
	var err error
	p.trust, err = p.trust.Prepared()
	return p, err
}

// of are those authorities that are of the provider of a qualified token: it may have several units behind one URL.
func (p provider) of(q *trust.Qualified) *trust.Trust {
	kept := *p.trust
	kept.Authorities = slices.DeleteFunc(slices.Clone(kept.Authorities), func(a trust.Authority) bool {
		return !slices.ContainsFunc(a.Services, func(s trust.Service) bool { return s.Territory == q.Territory && slices.Contains(s.TSP, q.TSP) })
	})
	return &kept
}

// AddQualified configures an authority that stamps every record from now on, and whose tokens are refused unless they are qualified time
// stamps by the trusted lists in a trust file. It asks the authority for one token, which says which provider of the lists it is, and keeps
// what the lists say of that. If the authority was added so before, from the same URL, what the lists say of it is replaced.
//
// The errors include ErrNotQualified, ErrListOutOfDate and those of Client.Stamp.
func (t *Timekeeper) AddQualified(ctx context.Context, o Outside, file *trust.Trust) (q *trust.Qualified, err error) {
	defer fault.While(&err, "adding qualified time-stamping authority")
	if q, err = t.findProvider(ctx, &o, file); err != nil {
		return nil, err
	}
	err = t.keep(ctx, o, func(before Outside) bool { return before.Qualified != nil && before.URL == o.URL })
	return q, err
}

func (t *Timekeeper) findProvider(ctx context.Context, o *Outside, file *trust.Trust) (*trust.Qualified, error) {
	all, err := listed(file)
	if err != nil {
		return nil, err
	}
	o.Qualified = all.trust
	client, err := o.check()
	if err != nil {
		return nil, err
	}
	client.now = t.Now
	var imprint [sha256.Size]byte
	der, err := client.Stamp(ctx, imprint)
	if err != nil {
		return nil, fmt.Errorf("trying it: %w", err)
	}
	token, err := timestamp.Parse(der)
	if err != nil {
		return nil, err
	}
	q, err := all.qualified(token, imprint, t.Now())
	if err != nil {
		return nil, err
	}
	o.Qualified = all.of(q)
	return q, nil
}

// Until says of an authority until when the trusted lists say that it is qualified; zero if it was not added as a qualified one, or no newer
// list is to come.
func (o *Outside) Until() time.Time {
	if o.Qualified == nil || len(o.Qualified.Authorities) == 0 {
		return time.Time{}
	}
	return provider{o.Qualified}.until()
}

// Due returns a note for each authority whose trusted lists are out of date, or soon will be. Its errors are those of
// List.
func (t *Timekeeper) Due(ctx context.Context) (notes []string, err error) {
	list, err := t.List(ctx)
	for _, o := range list {
		until := o.Until()
		switch {
		case until.IsZero() || until.Sub(t.Now()) > dueSoon:
		case t.Now().After(until):
			notes = append(notes, fmt.Sprintf("%s is not asked: %v", o.Name, provider{o.Qualified}.fresh(t.Now())))
		default:
			notes = append(notes, fmt.Sprintf("%s is asked until %s only: %s, is then out of date; fetch newer lists, and give them with 'jurat tsa --qualified'", o.Name,
				until.UTC().Format(time.RFC3339), provider{o.Qualified}.list()))
		}
	}
	return notes, err
}
