package verify

import (
	"fmt"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/verify/trust"
)

// sighting is one of an exchange, by a recorder of its own.
func sighting(n int, side evidence.Side, began time.Time) *Sighting {
	s := &Sighting{Log: string(side) + ".example/log", Record: fmt.Sprint(n), Digest: evidence.DigestOf([]byte(fmt.Sprint(side, n))), Side: side, Keys: []evidence.KeyID{evidence.DigestOf([]byte(side))},
		Request: evidence.DigestOf([]byte("request")), Response: evidence.DigestOf([]byte("response")), Began: began}
	s.Existed = &trust.ProvedTime{Time: began.Add(time.Second)}
	return s
}

// TestOneOwner: whoever the trust file names behind both keys is one witness.
func TestOneOwner(t *testing.T) {
	for name, c := range map[string]struct {
		a, b trust.Identified
		one  bool
	}{
		"the same owner":                    {trust.Identified{Role: "recorder", Name: "a", Custody: trust.ByOwner}, trust.Identified{Role: "recorder", Name: "a", Custody: trust.ByOwner}, true},
		"one name, and the operators' keys": {trust.Identified{Role: "recorder", Name: "recorder", Custody: trust.ByOperator}, trust.Identified{Role: "recorder", Name: "recorder", Custody: trust.ByOperator}, false},
		"two owners":                        {trust.Identified{Role: "recorder", Name: "a", Custody: trust.ByOwner}, trust.Identified{Role: "recorder", Name: "b", Custody: trust.ByOwner}, false},
	} {
		m := new(exchangeMatcher)
		now := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
		asked, answered := sighting(1, evidence.Asked, now), sighting(2, evidence.Answered, now)
		asked.Owners, answered.Owners = []trust.Identified{c.a}, []trust.Identified{c.b}
		m.Take(asked, "")
		m.Take(answered, "")
		r := m.Report()
		if p := r.Pairs[0]; (p.Witnesses == 1) != c.one || c.one && p.Why[0].Rule != OneOwner {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestManyEqualExchanges: a hostile owner cannot make the comparison take hours, and what is left out is counted.
func TestManyEqualExchanges(t *testing.T) {
	m := new(exchangeMatcher)
	start := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	const each = 40_000
	for n := range each {
		m.Take(sighting(n, evidence.Asked, start.Add(time.Duration(n)*time.Hour)), "")
		m.Take(sighting(n, evidence.Answered, start.Add(time.Duration(each-n)*time.Hour)), "")
	}
	done := make(chan *Exchanges)
	go func() { done <- m.Report() }()
	select {
	case r := <-done:
		if 2*len(r.Pairs)+2*len(r.Differences)+len(r.Alone)+r.LeftOut < 2*each || r.LeftOut == 0 {
			t.Errorf("%d pairs, %d differences, %d alone, %d left out of %d", len(r.Pairs), len(r.Differences), len(r.Alone), r.LeftOut, 2*each)
		}
	case <-time.After(time.Minute):
		t.Fatal("not compared after a minute")
	}
}

func TestBounds(t *testing.T) {
	m := new(exchangeMatcher)
	start := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	for n := range maxSightings + 5 {
		s := sighting(n, evidence.Asked, start)
		s.Request = s.Digest
		m.Take(s, "")
	}
	m.Take(sighting(1, evidence.Answered, start), "a forgery")
	if r := m.Report(); r == nil || len(r.Alone) != maxListed || r.LeftOut != maxSightings+5-maxListed || len(r.Doubtful) != 1 {
		t.Errorf("%d alone, %d left out", len(r.Alone), r.LeftOut)
	}
}

// TestOneRecordInTwoFiles: what is proved of a record in one file counts, whichever file comes first.
func TestOneRecordInTwoFiles(t *testing.T) {
	now := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	for _, bareFirst := range []bool{true, false} {
		m := new(exchangeMatcher)
		asked, bare, answered := sighting(1, evidence.Asked, now), sighting(1, evidence.Asked, now), sighting(2, evidence.Answered, now)
		bare.Log, bare.Existed = "", nil
		both := []*Sighting{asked, bare}
		if bareFirst {
			both = []*Sighting{bare, asked}
		}
		for _, s := range append(both, answered) {
			m.Take(s, "")
		}
		if r := m.Report(); len(r.Pairs) != 1 || !r.Pairs[0].Proved || r.Pairs[0].Witnesses != 2 {
			t.Errorf("%t: %+v", bareFirst, r.Pairs)
		}
	}
}

// TestTheTimeThatCounts: of what several files prove of a record's time.
func TestTheTimeThatCounts(t *testing.T) {
	now := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	at := func(minutes int, clock trust.Clock) *trust.ProvedTime {
		return &trust.ProvedTime{Time: now.Add(time.Duration(minutes) * time.Minute), Clock: clock}
	}
	own, later, independent, lastly := at(1, trust.OperatorClock), at(2, trust.OperatorClock), at(3, trust.Independent), at(4, trust.Independent)
	inOrder := []*trust.ProvedTime{independent, lastly, own, later, nil}
	for i, a := range inOrder {
		for j, b := range inOrder {
			if got := earlier(a, b); got != (i < j) {
				t.Errorf("%d before %d: %t", i, j, got)
			}
		}
	}
}
