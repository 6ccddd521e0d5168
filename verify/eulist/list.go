package eulist

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Reasons for refusing a list.
var (
	ErrMalformed = errors.New("malformed")                                   // not in the form of trusted lists
	ErrAlgorithm = errors.New("algorithm not accepted")                      // another reader may accept it
	ErrSigner    = errors.New("not signed by one of its signers")            // the certificate is another one
	ErrExpired   = errors.New("issued after its signer's certificate ended") //
	ErrSignature = errors.New("signature does not hold")                     // the list, or the signed part, was changed
)

// Signers may sign a list. Each is the SHA-256 of a certificate in DER. Only a certificate that is equal to one of them counts: Verify
// does not build certificate paths.
type Signers [][sha256.Size]byte

const (
	tsl      = "http://uri.etsi.org/02231/v2#"
	tslTypes = "http://uri.etsi.org/02231/v2/additionaltypes#"
)

// Types of lists (ETSI TS 119 612, 5.3.3).
const (
	NationalList = "http://uri.etsi.org/TrstSvc/TrustedList/TSLType/EUgeneric"
	ListOfLists  = "http://uri.etsi.org/TrstSvc/TrustedList/TSLType/EUlistofthelists"
)

// A List is a trusted list whose signature is valid. All of it is read from what is signed.
type List struct {
	Type       string
	Territory  string // of the scheme, such as BE; EU is the list of the lists
	Sequence   int
	Issued     time.Time
	NextUpdate time.Time // zero: the list is closed, and no next one follows
	URIs       []string  // of the scheme, in order: the list of the lists names its pivots there
	Pointers   []Pointer
	Services   []Service
	Digest     [sha256.Size]byte // SHA-256 of the file
}

// A Pointer names another list and its signers.
type Pointer struct {
	Location, MIME, Type, Territory string
	Signers                         Signers
}

// XML is the MIME type of lists that programs read. Others, in PDF, are for people.
const XML = "application/vnd.etsi.tsl+xml"

// Unverified is a list that was parsed but not authenticated.
type Unverified struct {
	root      *element
	signature signature
	list      List
}

// UnverifiedInfo is what a list claims to be. A caller uses it to find the signers for Verify. It proves nothing.
type UnverifiedInfo struct {
	Type, Territory string
	Sequence        int
	Issued          time.Time
	Digest          [sha256.Size]byte
}

// Parse reads a trusted list, without authenticating it. All errors are ErrMalformed.
func Parse(raw []byte) (*Unverified, error) {
	root, err := parseXML(raw)
	if err != nil {
		return nil, fmt.Errorf("reading trusted list: %w", err)
	}
	r := &reader{}
	u := &Unverified{root: root, signature: r.readSignature(root), list: r.list(root)}
	u.list.Digest = sha256.Sum256(raw)
	if r.err != nil {
		return nil, fmt.Errorf("reading trusted list: %w", r.err)
	}
	return u, nil
}

// UnverifiedInfo returns what the list claims. Only Verify proves anything.
func (u *Unverified) UnverifiedInfo() UnverifiedInfo {
	return UnverifiedInfo{u.list.Type, u.list.Territory, u.list.Sequence, u.list.Issued, u.list.Digest}
}

// Verify checks that one of the signers signed the list, and returns its content. The caller must not change the
// result. It returns ErrMalformed, ErrAlgorithm, ErrSigner, ErrExpired or ErrSignature.
func (u *Unverified) Verify(signers Signers) (*List, error) {
	if err := u.signature.verify(u.root, signers, u.list.Issued); err != nil {
		return nil, fmt.Errorf("verifying list %d of %q: %w", u.list.Sequence, u.list.Territory, err)
	}
	return &u.list, nil
}

func (r *reader) list(root *element) (l List) {
	if !root.is(tsl, "TrustServiceStatusList") {
		r.fail(root, "it is no trusted list")
	}
	scheme := r.only(root, tsl, "SchemeInformation")
	l.Type = r.value(r.only(scheme, tsl, "TSLType"))
	l.Territory = r.value(r.only(scheme, tsl, "SchemeTerritory"))
	l.Sequence = r.number(r.only(scheme, tsl, "TSLSequenceNumber"))
	l.Issued = r.time(r.only(scheme, tsl, "ListIssueDateTime"))
	if next := r.maybe(r.only(scheme, tsl, "NextUpdate"), tsl, "dateTime"); next != nil {
		l.NextUpdate = r.time(next)
	}
	l.URIs = r.values(r.only(scheme, tsl, "SchemeInformationURI"), tsl, "URI")
	for _, pointer := range r.all(r.maybe(scheme, tsl, "PointersToOtherTSL"), tsl, "OtherTSLPointer") {
		l.Pointers = append(l.Pointers, r.pointer(pointer))
	}
	for _, provider := range r.all(r.maybe(root, tsl, "TrustServiceProviderList"), tsl, "TrustServiceProvider") {
		l.Services = append(l.Services, r.provider(provider, l.Territory)...)
	}
	return l
}

func (r *reader) pointer(e *element) (p Pointer) {
	p.Location = r.value(r.only(e, tsl, "TSLLocation"))
	for _, identity := range r.all(r.maybe(e, tsl, "ServiceDigitalIdentities"), tsl, "ServiceDigitalIdentity") {
		certificates, _ := r.certificates(identity)
		for _, certificate := range certificates {
			p.Signers = append(p.Signers, sha256.Sum256(certificate))
		}
	}
	for _, other := range r.all(r.maybe(e, tsl, "AdditionalInformation"), tsl, "OtherInformation") {
		for _, member := range r.elements(other) {
			switch {
			case member.is(tsl, "TSLType"):
				p.Type = r.value(member)
			case member.is(tsl, "SchemeTerritory"):
				p.Territory = r.value(member)
			case member.is(tslTypes, "MimeType"):
				p.MIME = r.value(member)
			}
		}
	}
	return p
}

// certificates returns the certificates of an identity. It only counts one that is not base64, because it must not
// invalidate the list.
func (r *reader) certificates(identity *element) (list [][]byte, unreadable int) {
	for _, id := range r.all(identity, tsl, "DigitalId") {
		for _, e := range r.all(id, tsl, "X509Certificate") {
			if der, err := decode(r.value(e)); err == nil && len(der) > 0 {
				list = append(list, der)
			} else {
				unreadable++
			}
		}
	}
	return list, unreadable
}

// Signers returns the signers of a territory's list, collected from all pointers to it.
func (l *List) Signers(territory string) (signers Signers) {
	for _, p := range l.Pointers {
		if p.Territory == territory && strings.EqualFold(p.MIME, XML) {
			signers = append(signers, p.Signers...)
		}
	}
	return signers
}

// Territories returns the territories whose lists this list names, sorted.
func (l *List) Territories() (territories []string) {
	for _, p := range l.Pointers {
		if p.Type == NationalList && strings.EqualFold(p.MIME, XML) {
			territories = append(territories, p.Territory)
		}
	}
	slices.Sort(territories)
	return slices.Compact(territories)
}

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

// ErrHistory says that a service has two states for one time.
var ErrHistory = errors.New("the history is not in order")

// Of returns the services that are, or have been, of a type.
func (l *List) Of(kind string) (services []Service) {
	for _, s := range l.Services {
		if slices.ContainsFunc(s.States, func(state State) bool { return state.Type == kind }) {
			services = append(services, s)
		}
	}
	return services
}

// CheckHistory returns ErrHistory unless each state began before the one that the list names before it. Then the state at a moment is the first that began no
// later (ETSI TS 119 615, 4.6).
func (s *Service) CheckHistory() error {
	for i := 1; i < len(s.States); i++ {
		newer, older := s.States[i-1], s.States[i]
		if newer.From.Before(older.From) || newer.From.Equal(older.From) && (newer.Status != older.Status || newer.Type != older.Type) {
			return fmt.Errorf("%w: %s stands before %s", ErrHistory, newer.From.Format(time.RFC3339), older.From.Format(time.RFC3339))
		}
	}
	return nil
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
		case c == nil, c.is(tsl, "AdditionalServiceInformation"), c.is(qualifications, "Qualifications"),
			c.is(tsl, "ExpiredCertsRevocationInfo"), c.is(tslTypes, "TakenOverBy"):
		case critical != "false" && critical != "0" && s.Critical == "":
			s.Critical = c.local
		}
	}
}

// ErrChain says that pivots are missing between the Official Journal and the list of the lists.
var ErrChain = errors.New("the chain of pivots is not complete")

const maxPivots = 64

// Chain verifies the EU's list of the lists, beginning with the certificates that the Official Journal publishes. A
// pivot is a former list of the lists. A signer that was known before the pivot signed it, and the pivot names the
// signers from then on. The list names its pivots and the publications that they follow, newest first. Chain demands
// all pivots between one of these publications and the list, in this order. It ignores other pivots. Its errors are
// ErrChain and those of Verify.
func Chain(journal Signers, pivots []*Unverified, list *Unverified) (*List, error) {
	if list.list.Type != ListOfLists {
		return nil, fmt.Errorf("%w: it is no list of the lists", ErrMalformed)
	}
	var first error
	for _, numbers := range segments(list.list.URIs) {
		verified, err := along(journal, numbers, pivots, list)
		if err == nil {
			return verified, nil
		}
		if first == nil {
			first = err
		}
	}
	if first == nil {
		first = fmt.Errorf("%w: the list names no publication in the Official Journal", ErrChain)
	}
	return nil, fmt.Errorf("verifying the list of the lists: %w", first)
}

// segments returns, for each publication that the list's URIs name, the pivots between it and the list, oldest first.
func segments(uris []string) (list [][]int) {
	var numbers []int
	before := true
	for _, uri := range uris {
		number, is := pivotNumber(uri)
		if !is {
			if before {
				list = append(list, slices.Clone(numbers))
			}
			before = false
			continue
		}
		numbers, before = slices.Insert(numbers, 0, number), true
		if len(numbers) > maxPivots {
			return list
		}
	}
	return list
}

// along verifies each pivot in turn, and then the list.
func along(signers Signers, numbers []int, pivots []*Unverified, list *Unverified) (*List, error) {
	for _, number := range numbers {
		pivot, err := step(signers, number, pivots)
		if err != nil {
			return nil, err
		}
		signers = pivot.Signers(pivot.Territory)
	}
	return list.Verify(signers)
}

// step verifies the pivot with a number. It skips other lists that claim the same number.
func step(signers Signers, number int, pivots []*Unverified) (*List, error) {
	err := fmt.Errorf("%w: pivot %d is missing", ErrChain, number)
	for _, p := range pivots {
		if p.list.Type != ListOfLists || p.list.Sequence != number {
			continue
		}
		pivot, refused := p.Verify(signers)
		if refused == nil {
			return pivot, nil
		}
		err = fmt.Errorf("pivot %d: %w", number, refused)
	}
	return nil, err
}

// Pivots returns the addresses of the pivots that a list of the lists claims to have, by their sequence numbers.
func (u *Unverified) Pivots() map[int]string {
	pivots := map[int]string{}
	for _, uri := range u.list.URIs {
		if number, is := pivotNumber(uri); is {
			pivots[number] = uri
		}
	}
	return pivots
}

var pivotName = regexp.MustCompile(`-pivot-([0-9]{1,9})\.xml$`)

// pivotNumber reads the number of a pivot from its address.
func pivotNumber(uri string) (number int, is bool) {
	found := pivotName.FindStringSubmatch(uri)
	if found == nil {
		return 0, false
	}
	number, err := strconv.Atoi(found[1])
	return number, err == nil
}
