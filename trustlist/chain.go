package trustlist

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

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

// pivotNumber reads the number, of at most nine digits, from a name that ends in -pivot-NUMBER.xml.
func pivotNumber(uri string) (number int, is bool) {
	name, isXML := strings.CutSuffix(uri, ".xml")
	before := strings.TrimRight(name, "0123456789")
	digits := name[len(before):]
	if !isXML || len(digits) > 9 || !strings.HasSuffix(before, "-pivot-") {
		return 0, false
	}
	number, err := strconv.Atoi(digits)
	return number, err == nil
}
