package trust

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/timestamp"
)

// Lists are the trusted lists of the European Union that authorities of a trust file were taken from. The same lists give the same authorities.
type Lists struct {
	Journal      []evidence.Digest `json:"oj"` // of the certificates in the Official Journal with which the reader began
	LOTL         ListVersion       `json:"lotl"`
	Issued       time.Time         `json:"issued"`                 // when the list of the lists was
	Territories  []string          `json:"territories,omitempty"`  // only these were looked at; empty: all
	GrantedSince time.Time         `json:"granted_since,omitzero"` // only services that were granted then or later; zero: all that ever were
}

// A ListVersion is one issue of a trusted list.
type ListVersion struct {
	Sequence int             `json:"sequence"`
	Digest   evidence.Digest `json:"digest"` // of the file
}

const (
	// QualifiedTimeStamps is the type of the services that count (ETSI TS 119 612, 5.5.1). Other types have similar names and mean less.
	QualifiedTimeStamps = "http://uri.etsi.org/TrstSvc/Svctype/TSA/QTST"
	// Granted is the only status in which a service is qualified (ETSI TS 119 612, 5.5.4).
	Granted = "http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/granted"
)

// QualifiedFrom is when Regulation (EU) No 910/2014 began to apply. No service was qualified under it before.
var QualifiedFrom = time.Date(2016, 6, 30, 22, 0, 0, 0, time.UTC)

// A Service is what a trusted list says of a service to which a certificate belongs.
type Service struct {
	Territory string          `json:"territory"` // whose list it is, as the list writes it
	TSP       []string        `json:"tsp"`       // the provider's names: in several languages, and those that it trades under
	Name      string          `json:"name"`
	Type      string          `json:"type"`   // a URI
	Status    []ServiceStatus `json:"status"` // newest first
	List      ServiceList     `json:"list"`
}

// A ServiceStatus held from a time on until that of the one before it.
type ServiceStatus struct {
	From   time.Time `json:"from"`
	Status string    `json:"status"`         // a URI
	Type   string    `json:"type,omitempty"` // of the service at that time; empty: the one that it has now
}

// A ServiceList is the list that a service stands in.
type ServiceList struct {
	ListVersion
	Issued     time.Time `json:"issued"`
	NextUpdate time.Time `json:"next_update,omitzero"` // zero: no next one is to come
}

// prepareLists refuses what no list can have said.
func (t *Trust) prepareLists() error {
	for i, a := range t.Authorities {
		for j := range a.Services {
			if err := a.Services[j].check(); err != nil {
				return fmt.Errorf("authorities/%d/services/%d: %w", i, j, err)
			}
		}
		if len(a.Services) > 0 && t.Lists == nil {
			return fmt.Errorf("authorities/%d: it has services, and there is no lists that says from where", i)
		}
	}
	if t.Lists == nil {
		return nil
	}
	if err := t.Lists.check(); err != nil {
		return fmt.Errorf("lists: %w", err)
	}
	return nil
}

func (l *Lists) check() error {
	switch {
	case len(l.Journal) == 0:
		return errors.New("oj is empty")
	case slices.Contains(l.Journal, evidence.Digest{}):
		return errors.New("oj has a digest that is left out, or of zeros")
	case !rising(l.Journal, func(a, b evidence.Digest) int { return bytes.Compare(a[:], b[:]) }):
		return errors.New("oj is not sorted, or has a digest twice")
	case l.Issued.IsZero():
		return errors.New("issued is left out")
	case slices.ContainsFunc(l.Territories, func(t string) bool { return !isTerritory(t) }) || !rising(l.Territories, strings.Compare):
		return errors.New("territories are not two capital letters each, sorted, each once")
	}
	return l.LOTL.check("lotl")
}

// rising reports whether a list is sorted and has nothing twice.
func rising[T any](list []T, compare func(a, b T) int) bool {
	for i := 1; i < len(list); i++ {
		if compare(list[i-1], list[i]) >= 0 {
			return false
		}
	}
	return true
}

func isTerritory(text string) bool {
	return len(text) == 2 && text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'A' && text[1] <= 'Z'
}

func (v *ListVersion) check(what string) error {
	if v.Sequence < 1 || v.Sequence > 1<<31-1 {
		return fmt.Errorf("%s: sequence is %d, want a whole number from 1 to 2147483647", what, v.Sequence)
	}
	if v.Digest.IsZero() {
		return fmt.Errorf("%s: digest is left out, or of zeros", what)
	}
	return nil
}

func (s *Service) check() error {
	switch {
	case !isTerritory(s.Territory):
		return fmt.Errorf("territory %q is not two capital letters", s.Territory)
	case len(s.TSP) == 0 || slices.Contains(s.TSP, ""):
		return errors.New("tsp is empty, or a name in it is")
	case s.Name == "" || s.Type == "":
		return errors.New("name or type is empty")
	case s.List.Issued.IsZero():
		return errors.New("list: issued is left out")
	case len(s.Status) == 0:
		return errors.New("status is empty")
	}
	for i, status := range s.Status {
		if status.Status == "" || status.From.IsZero() {
			return fmt.Errorf("status/%d: status or from is left out", i)
		}
		if i > 0 && status.From.After(s.Status[i-1].From) {
			return fmt.Errorf("status/%d: it is newer than the one before", i)
		}
		if before := s.Status[max(i-1, 0)]; i > 0 && status.From.Equal(before.From) && (status.Status != before.Status || status.Type != before.Type) {
			return fmt.Errorf("status/%d: it is of the same time as the one before, and says something else", i)
		}
	}
	return s.List.check("list")
}

// Qualified is a time that a service has stamped which was qualified then, as a trusted list says. The word is that of Regulation (EU) No
// 910/2014, so it names the list.
type Qualified struct {
	Time      time.Time `json:"time"`      // as ProvedTime.Time
	Authority string    `json:"authority"` // as the trust file names it
	Territory string    `json:"territory"`
	TSP       string    `json:"tsp"` // the provider's name, as the token's certificate has it
	Service   string    `json:"service"`
	List      ListIssue `json:"list"`
}

// A ListIssue names the issue of a territory's list.
type ListIssue struct {
	Sequence int       `json:"sequence"`
	Issued   time.Time `json:"issued"`
}

// Unqualified says why a time by an authority of the trusted lists is not qualified.
type Unqualified struct{ Rule, Reason string }

// unqualifiedBy are the rules in the order in which they are asked.
var unqualifiedBy = []string{"before-eidas", "service", "status", "operator-name", "list"}

// step is the place of the rule in this order. Of several tokens of a record, the report names the one that came furthest.
func (u *Unqualified) step() int { return slices.Index(unqualifiedBy, u.Rule) }

// HasServices reports whether the trust file names services of trusted lists.
func (t *Trust) HasServices() bool {
	return slices.ContainsFunc(t.Authorities, func(a Authority) bool { return len(a.Services) > 0 })
}

// roots returns the certificates of all authorities.
func (t *Trust) roots() []*x509.Certificate {
	roots := make([]*x509.Certificate, len(t.Authorities))
	for i := range t.Authorities {
		roots[i] = t.Authorities[i].root
	}
	return roots
}

// A listed is a service whose certificate is the token signer's, or that of the CA which issued it.
type listed struct {
	authority *Authority
	*Service
	proves bool // the token proves a time by the authority
}

// qualified says whether the trusted lists make a token qualified that proves a time (ETSI TS 119 615, 4.6). It returns neither if no
// authority with services proves the token's time. Which services are asked depends on nothing that the token's sender can leave out.
func (c *Checker) qualified(l link, shown Proof) (*Qualified, *Unqualified) {
	var services []listed
	var token *timestamp.Token
	known := l.SignerAmong(c.Trust.roots())
	for i := range c.Trust.Authorities {
		a := &c.Trust.Authorities[i]
		if len(a.Services) == 0 || !l.Concerns(a.root, known...) {
			continue
		}
		direct := timestamp.Options{Roots: []*x509.Certificate{a.root}, Intermediates: known, Memory: c.Memory, Direct: true, UnsafeAllowMock: c.UnsafeAllowMock}
		if _, err := l.verify(direct); err != nil {
			continue // its certificate is another's
		}
		direct.Policies = a.policies
		found, err := c.directlyBy(a, l, direct, shown)
		if err == nil {
			token = found
		}
		for j := range a.Services {
			services = append(services, listed{a, &a.Services[j], err == nil})
		}
	}
	if token == nil {
		return nil, nil
	}
	j := judgement{token: token, other: shown.Earliest, at: c.At}
	service, rule, reason := j.of(services)
	if rule != "" {
		return nil, &Unqualified{rule, reason}
	}
	return &Qualified{Time: token.GenTime.Add(token.Accuracy), Authority: service.authority.Name, Territory: service.Territory, TSP: j.operator(),
		Service: service.Name, List: ListIssue{service.List.Sequence, service.List.Issued.UTC()}}, nil
}

// directlyBy verifies that an authority proves the token's time, whose certificate in the lists is the token signer's, or that of the CA which
// issued it. It has a budget of its own and leaves no trace, so that it never affects what else is proved.
func (c *Checker) directlyBy(a *Authority, l link, direct timestamp.Options, shown Proof) (*timestamp.Token, error) {
	token, err := l.verify(direct)
	if err != nil {
		return nil, err
	}
	apart := *c
	apart.Share = timestamp.NewShare()
	t, err := apart.by(a, token, shown, validUntil(l, direct))
	switch {
	case err != nil:
		return nil, err
	case t.Clock != a.Clock: // a thief of its key may have made the token
		return nil, errLost
	}
	return token, nil
}

// A judgement asks about a token.
type judgement struct {
	token *timestamp.Token
	other *ProvedTime // the earliest other proof that the token existed; nil: none
	at    time.Time   // the moment of checking; zero: none is given
}

// of returns the first service that proves the token, if the token is qualified by all that are services of qualified time stamps, and otherwise
// the first rule that does not hold for one of them. Services that disagree qualify nothing.
func (j *judgement) of(services []listed) (first listed, rule, reason string) {
	moment := j.token.GenTime
	if moment.Before(QualifiedFrom) {
		return first, "before-eidas", fmt.Sprintf("it was stamped at %s, and no service was qualified before %s", utc(moment), utc(QualifiedFrom))
	}
	proves := func(s listed) bool { return s.proves }
	stamps := slices.DeleteFunc(slices.Clone(services), func(s listed) bool { _, kind := s.stateAt(moment); return kind != QualifiedTimeStamps })
	named := slices.IndexFunc(stamps, proves)
	if named < 0 {
		s := services[slices.IndexFunc(services, proves)]
		return first, "service", fmt.Sprintf("by %s, %q was no service of qualified time stamps at %s", s.source(), s.Name, utc(moment))
	}
	for _, ask := range []struct {
		rule   string
		reason func(*Service) string
	}{{"status", j.status}, {"operator-name", j.operatorName}, {"list", j.list}} {
		for _, s := range stamps {
			if reason := ask.reason(s.Service); reason != "" {
				return first, ask.rule, reason
			}
		}
	}
	return stamps[named], "", ""
}

// stateAt returns the status with the latest beginning that is not after a moment, and the type of the service then. Both are empty if the
// list says nothing of it.
func (s *Service) stateAt(moment time.Time) (status, kind string) {
	for _, state := range s.Status {
		if state.From.After(moment) {
			continue
		}
		if kind = state.Type; kind == "" {
			kind = s.Type
		}
		return state.Status, kind
	}
	return "", ""
}

// status returns why the service was not qualified when the token was made, or when something else first proves the token; "" if it was.
func (j *judgement) status(s *Service) string {
	moments := []time.Time{j.token.GenTime}
	if j.other != nil {
		moments = append(moments, j.other.Time)
	}
	for i, moment := range moments {
		status, kind := s.stateAt(moment)
		if status == Granted && kind == QualifiedTimeStamps {
			continue
		}
		said := "said nothing of it"
		if status != "" {
			said = fmt.Sprintf("was %q as %q", path.Base(status), path.Base(kind))
		}
		if i > 0 {
			return fmt.Sprintf("by %s, %q %s at %s, when the token is first proved to exist otherwise", s.source(), s.Name, said, utc(moment))
		}
		return fmt.Sprintf("by %s, %q %s at %s", s.source(), s.Name, said, utc(moment))
	}
	return ""
}

// territories are the territories of the lists that are not the country code of a name (ETSI TS 119 612, 5.3.10).
var territories = map[string]string{"GR": "EL", "GB": "UK"}

// operatorName returns why the token's certificate does not name the provider of the service; "" if it does.
func (j *judgement) operatorName(s *Service) string {
	subject := j.token.Signer.Subject
	if len(subject.Country) != 1 || len(subject.Organization) != 1 {
		return fmt.Sprintf("its certificate names %d countries and %d organisations, want one of each", len(subject.Country), len(subject.Organization))
	}
	territory := subject.Country[0]
	if other, differs := territories[territory]; differs {
		territory = other
	}
	if territory == s.Territory && slices.Contains(s.TSP, subject.Organization[0]) {
		return ""
	}
	return fmt.Sprintf("its certificate names %q in %q, and by %s the provider is %s", subject.Organization[0], subject.Country[0], s.source(), quoted(s.TSP))
}

func (j *judgement) operator() string { return j.token.Signer.Subject.Organization[0] }

func quoted(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(list, " or ")
}

// list returns why the list is too old to say this; "" if it is not.
func (j *judgement) list(s *Service) string {
	next := s.List.NextUpdate
	switch {
	case next.IsZero() && j.token.GenTime.After(s.List.Issued):
		return fmt.Sprintf("%s is the last one, and the token is of %s", s.source(), utc(j.token.GenTime))
	case next.IsZero():
		return ""
	case j.at.IsZero():
		return fmt.Sprintf("%s said until %s that it was qualified, and no moment of checking is given", s.source(), utc(next))
	case j.at.After(next):
		return fmt.Sprintf("%s said until %s that it was qualified: by %s a newer list is due", s.source(), utc(next), utc(j.at))
	}
	return ""
}

// source names the issue of the list.
func (s *Service) source() string {
	return fmt.Sprintf("the trusted list of %s, number %d, issued %s,", s.Territory, s.List.Sequence, utc(s.List.Issued))
}
