package words

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/test/must"
	"jurat/verify"
)

// TestExchanges: each kind of pair is said in each language, with its reasons, and no more lines than a reader reads.
func TestExchanges(t *testing.T) {
	sighting := func(log, record string) verify.Sighting {
		return verify.Sighting{Log: log, Record: record, Agent: "agent-" + log, Began: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), Side: evidence.Asked}
	}
	pair := func(proved bool, witnesses int, rules ...string) verify.ExchangePair {
		p := verify.ExchangePair{Asked: sighting("a", "r1"), Answered: sighting("b", "r2"), Proved: proved, Witnesses: witnesses}
		for _, rule := range rules {
			p.Why = append(p.Why, verify.ExchangeReason{Rule: rule, What: "WHAT-" + rule})
		}
		return p
	}
	r := &verify.Exchanges{
		Pairs:       []verify.ExchangePair{pair(true, 2), pair(true, 1, verify.OneLog, verify.OneKey, verify.OneOwner), pair(false, 1, verify.NoTime, verify.NoLog)},
		Differences: []verify.ExchangeDifference{{Asked: sighting("a", "r3"), Answered: sighting("b", "r4")}},
		Alone:       []verify.Sighting{sighting("a", "r5"), sighting("c", "r6")},
		Doubtful:    []verify.DoubtfulSighting{{Sighting: sighting("b", "r7")}},
	}
	for _, l := range Langs() {
		said := Exchanges(l, r, "")
		text := strings.Join(said, "\n")
		must.Hold(t, len(said) == 6, "%s: %s", l, text)
		must.Contain(t, text, "2026-01-31T00:00:00.000Z", `"agent-a"`, `"agent-b"`, "r1", "r4", "WHAT-one-log", "WHAT-one-key", "WHAT-one-owner", "WHAT-no-time", "WHAT-no-log", "2")
		of := Exchanges(l, r, "c")
		must.Hold(t, len(of) == 1 && strings.Contains(of[0], "1") && Exchanges(l, nil, "") == nil, "%s: of one log %q", l, of)
		for range 50 {
			r.Pairs = append(r.Pairs, pair(true, 2))
		}
		if many := Exchanges(l, r, ""); len(many) != mostExchanges+3 || !strings.Contains(many[mostExchanges], fmt.Sprint(len(r.Pairs)+1-mostExchanges)) {
			t.Errorf("%s: %d lines, %q", l, len(many), many[mostExchanges:])
		}
		r.Pairs = r.Pairs[:3]
	}
}
