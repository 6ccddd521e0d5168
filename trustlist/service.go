package trustlist

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Types of services (ETSI TS 119 612, 5.5.1). Other types have similar names and mean less.
const (
	QualifiedTimeStamps   = "http://uri.etsi.org/TrstSvc/Svctype/TSA/QTST"
	QualifiedCertificates = "http://uri.etsi.org/TrstSvc/Svctype/CA/QC"
)

// Granted is the only status in which a service is qualified (ETSI TS 119 612, 5.5.4).
const Granted = "http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/granted"

// QualifiedFrom is when Regulation (EU) No 910/2014 began to apply. No service was qualified under it before.
var QualifiedFrom = time.Date(2016, 6, 30, 22, 0, 0, 0, time.UTC)

// A Service of a provider, with its history in the list.
type Service struct {
	Territory    string   // of the list
	Providers    []string // the provider's name in several languages, and then its trade names (ETSI TS 119 612, 5.4.1 and 5.4.2)
	Certificates [][]byte // DER: of the service, or of the CA that issues its certificates
	Unreadable   int      // how many more certificates are not base64
	States       []State  // in the order of the list: the present one, then the past, newest first
}

// A State of a service, valid until the next one begins.
type State struct {
	Type     string
	Names    []string // in several languages
	Status   string
	From     time.Time
	Critical string // a critical extension that this package does not know; empty: none
}

var (
	ErrHistory = errors.New("the history is not in order") // two states for one time
	ErrBefore  = errors.New("the list says nothing of that time")
)

// Of returns the services that are, or have been, of a type.
func (l *List) Of(kind string) (services []Service) {
	for _, s := range l.Services {
		if slices.ContainsFunc(s.States, func(state State) bool { return state.Type == kind }) {
			services = append(services, s)
		}
	}
	return services
}

// At returns the state at a moment: the one with the latest beginning that is not after it (ETSI TS 119 615, 4.6). It
// returns ErrHistory for a history that is out of order, and ErrBefore if the list says nothing of the moment.
func (s *Service) At(moment time.Time) (State, error) {
	for i := 1; i < len(s.States); i++ {
		newer, older := s.States[i-1], s.States[i]
		if newer.From.Before(older.From) || newer.From.Equal(older.From) && (newer.Status != older.Status || newer.Type != older.Type) {
			return State{}, fmt.Errorf("%w: %s stands before %s", ErrHistory, newer.From.Format(time.RFC3339), older.From.Format(time.RFC3339))
		}
	}
	for _, state := range s.States {
		if !state.From.After(moment) {
			return state, nil
		}
	}
	return State{}, fmt.Errorf("%w: %s", ErrBefore, moment.UTC().Format(time.RFC3339))
}

// QualifiedAt reports whether the service was qualified as a service of a type at a moment. Its errors are those of
// At.
func (s *Service) QualifiedAt(kind string, moment time.Time) (bool, error) {
	state, err := s.At(moment)
	if err != nil && !errors.Is(err, ErrBefore) {
		return false, err
	}
	return state.Type == kind && state.Status == Granted && state.Critical == "" && !moment.Before(QualifiedFrom), nil
}

func (r *reader) provider(e *element, territory string) (services []Service) {
	information := r.only(e, tsl, "TSPInformation")
	names := r.values(r.only(information, tsl, "TSPName"), tsl, "Name")
	for _, name := range r.values(r.maybe(information, tsl, "TSPTradeName"), tsl, "Name") {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, service := range r.all(r.only(e, tsl, "TSPServices"), tsl, "TSPService") {
		s := r.service(service)
		s.Territory, s.Providers = territory, names
		services = append(services, s)
	}
	return services
}

func (r *reader) service(e *element) (s Service) {
	information := r.only(e, tsl, "ServiceInformation")
	s.Certificates, s.Unreadable = r.certificates(r.only(information, tsl, "ServiceDigitalIdentity"))
	s.States = append(s.States, r.state(information))
	for _, past := range r.all(r.maybe(e, tsl, "ServiceHistory"), tsl, "ServiceHistoryInstance") {
		s.States = append(s.States, r.state(past))
	}
	return s
}

func (r *reader) state(e *element) (s State) {
	s.Type = r.value(r.only(e, tsl, "ServiceTypeIdentifier"))
	s.Names = r.values(r.only(e, tsl, "ServiceName"), tsl, "Name")
	s.Status = r.value(r.only(e, tsl, "ServiceStatus"))
	s.From = r.time(r.only(e, tsl, "StatusStartingTime"))
	for _, extension := range r.all(r.maybe(e, tsl, "ServiceInformationExtensions"), tsl, "Extension") {
		r.extension(extension, &s)
	}
	return s
}

const qualifications = "http://uri.etsi.org/TrstSvc/SvcInfoExt/eSigDir-1999-93-EC-TrustedList/#"

// extension passes over the extensions that ETSI TS 119 612, 5.5.9 defines: none of them changes whether a time-stamping service is qualified.
func (r *reader) extension(e *element, s *State) {
	critical := r.attributeOf(e, "Critical")
	for _, child := range e.children {
		switch c := child.element; {
		case c == nil:
		case c.is(tsl, "AdditionalServiceInformation"), c.is(qualifications, "Qualifications"), c.is(tsl, "ExpiredCertsRevocationInfo"), c.is(tslTypes, "TakenOverBy"):
		case critical != "false" && critical != "0" && s.Critical == "":
			s.Critical = c.local
		}
	}
}
