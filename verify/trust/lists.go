package trust

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
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
				return fmt.Errorf("reading trust file: authorities/%d/services/%d: %w", i, j, err)
			}
		}
		if len(a.Services) > 0 && t.Lists == nil {
			return fmt.Errorf("reading trust file: authorities/%d: it has services, and there is no lists that says from where", i)
		}
	}
	if t.Lists == nil {
		return nil
	}
	if err := t.Lists.check(); err != nil {
		return fmt.Errorf("reading trust file: lists: %w", err)
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
