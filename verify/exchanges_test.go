package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/must"
	"jurat/internal/observe"
	"jurat/jurattest"
	"jurat/verify"
	"jurat/verify/trust"
)

// An exchange is a message and its answer.
type exchange struct{ request, response string }

func messageOf(text, answer string) exchange {
	return exchange{`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"` + text + `"}]}}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"message":{"messageId":"a","role":"ROLE_AGENT","parts":[{"text":"` + answer + `"}]}}}`}
}

// sees has a house's recorder seal an exchange that it saw from one side, some time after the start.
func (e exchange) sees(t *testing.T, h *jurattest.House, side evidence.Side, after time.Duration) *evidence.Record {
	t.Helper()
	return h.Seal(t, payloadOf(t, e.act(side, after)))
}

func (e exchange) act(side evidence.Side, after time.Duration) observed.Act {
	a := observedCall(fmt.Sprint("call-", after, side), observe.A2A10, e.request, e.response)
	a.Type, a.Side, a.Began, a.At = evidence.ObservedMessage, side, a.Began.Add(after), a.At.Add(after)
	return a
}

// between verifies files with the trust of several houses, and returns what they show of exchanges.
func between(t *testing.T, houses []*jurattest.House, files ...*evidence.Bundle) *verify.Exchanges {
	t.Helper()
	var all []*trust.Trust
	for _, h := range houses {
		all = append(all, h.Trust(t))
	}
	joined := must.Get(trust.Join(all...))(t)
	o := verify.Options{Trust: joined, UnsafeAllowMock: true}
	o.Together = verify.NewTogether(o)
	for _, b := range files {
		verify.Bundle(b, o)
	}
	return o.Together.Exchanges()
}

// summary is a report in one line.
func summary(r *verify.Exchanges) string {
	if r == nil {
		return "nothing"
	}
	var list []string
	for _, p := range r.Pairs {
		var why []string
		for _, reason := range p.Why {
			why = append(why, reason.Reason)
		}
		list = append(list, fmt.Sprintf("pair of %d, proved %t, repeated %t, %s", p.Witnesses, p.Proved, p.Repeated, strings.Join(why, "; ")))
	}
	for range r.Differences {
		list = append(list, "difference")
	}
	for _, s := range r.Alone {
		list = append(list, "alone "+string(s.Side))
	}
	for _, d := range r.Doubtful {
		list = append(list, "doubtful "+d.Why)
	}
	return strings.Join(list, " | ")
}

func TestExchanges(t *testing.T) {
	parcel, again := messageOf("Where is it?", "In Bern."), messageOf("And now?", "In Bonn.")
	pair := "pair of 2, proved true, repeated false, "
	for _, c := range []struct {
		name string
		want string
		make func(a, b *jurattest.House) []*evidence.Bundle
	}{
		{"both sides", pair, func(a, b *jurattest.House) []*evidence.Bundle {
			return []*evidence.Bundle{a.Bundle(t, parcel.sees(t, a, evidence.Asked, 0)), b.Bundle(t, parcel.sees(t, b, evidence.Answered, time.Millisecond))}
		}},
		{"in the other order", pair, func(a, b *jurattest.House) []*evidence.Bundle {
			return []*evidence.Bundle{b.Bundle(t, parcel.sees(t, b, evidence.Answered, 0)), a.Bundle(t, parcel.sees(t, a, evidence.Asked, 0))}
		}},
		{"one of them alone", pair + " | alone asked", func(a, b *jurattest.House) []*evidence.Bundle {
			return []*evidence.Bundle{a.Bundle(t, parcel.sees(t, a, evidence.Asked, 0), again.sees(t, a, evidence.Asked, 1)), b.Bundle(t, parcel.sees(t, b, evidence.Answered, 0))}
		}},
		{"one side", "nothing", func(a, b *jurattest.House) []*evidence.Bundle {
			return []*evidence.Bundle{a.Bundle(t, parcel.sees(t, a, evidence.Asked, 0)), b.Bundle(t, parcel.sees(t, b, evidence.Asked, 0))}
		}},
		{"the same file twice", "nothing", func(a, b *jurattest.House) []*evidence.Bundle {
			file := a.Bundle(t, parcel.sees(t, a, evidence.Asked, 0))
			return []*evidence.Bundle{file, file}
		}},
		{"both files twice", pair, func(a, b *jurattest.House) []*evidence.Bundle {
			one, other := a.Bundle(t, parcel.sees(t, a, evidence.Asked, 0)), b.Bundle(t, parcel.sees(t, b, evidence.Answered, 0))
			return []*evidence.Bundle{one, other, one, other}
		}},
		{"one owner on both sides", "pair of 1, proved true, repeated false, both records are in one log, jurattest.example/log; one key signed both: KEY", func(a, b *jurattest.House) []*evidence.Bundle {
			return []*evidence.Bundle{a.Bundle(t, parcel.sees(t, a, evidence.Asked, 0)), a.Bundle(t, parcel.sees(t, a, evidence.Answered, 0))}
		}},
		{"swapped answers", "difference | difference", func(a, b *jurattest.House) []*evidence.Bundle {
			x, y := exchange{parcel.request, again.response}, exchange{again.request, parcel.response}
			return []*evidence.Bundle{a.Bundle(t, parcel.sees(t, a, evidence.Asked, 0), again.sees(t, a, evidence.Asked, 1)), b.Bundle(t, x.sees(t, b, evidence.Answered, 0), y.sees(t, b, evidence.Answered, 1))}
		}},
		{"a second attempt that was answered otherwise", pair + " | alone answered", func(a, b *jurattest.House) []*evidence.Bundle {
			other := exchange{parcel.request, again.response}
			return []*evidence.Bundle{a.Bundle(t, parcel.sees(t, a, evidence.Asked, 0)), b.Bundle(t, parcel.sees(t, b, evidence.Answered, 0), other.sees(t, b, evidence.Answered, 1))}
		}},
		{"equal exchanges", "pair of 2, proved true, repeated true,  | pair of 2, proved true, repeated true,  | alone asked", func(a, b *jurattest.House) []*evidence.Bundle {
			return []*evidence.Bundle{a.Bundle(t, parcel.sees(t, a, evidence.Asked, 0), parcel.sees(t, a, evidence.Asked, 1), parcel.sees(t, a, evidence.Asked, 2)),
				b.Bundle(t, parcel.sees(t, b, evidence.Answered, 0), parcel.sees(t, b, evidence.Answered, 1))}
		}},
		{"at another time", "alone asked | alone answered", func(a, b *jurattest.House) []*evidence.Bundle {
			now := jurattest.Start.Add(time.Hour)
			asked := a.Bundle(t, parcel.sees(t, a, evidence.Asked, 0))
			b.Now = func() time.Time { return now }
			return []*evidence.Bundle{asked, b.Bundle(t, parcel.sees(t, b, evidence.Answered, time.Hour))}
		}},
		{"no bytes", "alone asked | alone answered", func(a, b *jurattest.House) []*evidence.Bundle {
			empty := exchange{parcel.request, ""}
			return []*evidence.Bundle{a.Bundle(t, empty.sees(t, a, evidence.Asked, 0)), b.Bundle(t, empty.sees(t, b, evidence.Answered, 0))}
		}},
		{"a time that is not proved", "pair of 2, proved false, repeated false, the time of record RECORD is not proved", func(a, b *jurattest.House) []*evidence.Bundle {
			file := b.Bundle(t, parcel.sees(t, b, evidence.Answered, 0))
			file.Records[0].Timestamps = nil
			return []*evidence.Bundle{a.Bundle(t, parcel.sees(t, a, evidence.Asked, 0)), file}
		}},
		{"a record that is in no log", "pair of 1, proved true, repeated false, record RECORD is not proved to be in a log: nothing shows that two owners kept them", func(a, b *jurattest.House) []*evidence.Bundle {
			file := b.Bundle(t, parcel.sees(t, b, evidence.Answered, 0))
			file.Checkpoint = ""
			return []*evidence.Bundle{a.Bundle(t, parcel.sees(t, a, evidence.Asked, 0)), file}
		}},
	} {
		a, b := jurattest.New(t), jurattest.NewNeighbour(t)
		files := c.make(a, b)
		got := summary(between(t, []*jurattest.House{a, b}, files...))
		for _, f := range files {
			for _, r := range f.Records {
				got = strings.ReplaceAll(strings.ReplaceAll(got, r.Payload.RecordID, "RECORD"), r.Payload.Signers[0].KeyID.String(), "KEY")
			}
		}
		if got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.want)
		}
	}
}

// TestForgedCounterpart: who copies the digests of an exchange into a record that no trusted key signs, or that contradicts itself, is no witness.
func TestForgedCounterpart(t *testing.T) {
	parcel := messageOf("Where is it?", "In Bern.")
	a, b, impostor := jurattest.New(t), jurattest.NewNeighbour(t), jurattest.NewImpostor(t)
	asked := a.Bundle(t, parcel.sees(t, a, evidence.Asked, 0))
	forged := impostor.Bundle(t, parcel.sees(t, impostor, evidence.Answered, 0))
	r := between(t, []*jurattest.House{a, b}, asked, forged)
	if r == nil || len(r.Pairs) != 0 || len(r.Doubtful) != 1 || !strings.Contains(r.Doubtful[0].Why, "content is not proved: signed with the key") {
		t.Errorf("an untrusted key: %s", summary(r))
	}
	p := payloadOf(t, parcel.act(evidence.Answered, 0))
	p.ResponseBody = []byte(strings.Replace(string(p.ResponseBody), "Bern", "Born", 1))
	r = between(t, []*jurattest.House{a, b}, asked, b.Bundle(t, b.Seal(t, p)))
	if r == nil || len(r.Pairs) != 0 || len(r.Doubtful) != 1 || !strings.Contains(r.Doubtful[0].Why, "vantage is refuted") {
		t.Errorf("other bytes than its digest: %s", summary(r))
	}
	broken := b.Bundle(t, parcel.sees(t, b, evidence.Answered, 0))
	broken.Records[0].Signatures[0][9] ^= 1
	r = between(t, []*jurattest.House{a, b}, asked, broken)
	if r == nil || len(r.Pairs) != 0 || len(r.Doubtful) != 1 || !strings.Contains(r.Doubtful[0].Why, "content is refuted") {
		t.Errorf("a broken signature: %s", summary(r))
	}
}

// TestJoin: a joined trust file trusts what each does, and refuses what would loosen one of them.
func TestJoin(t *testing.T) {
	a, b := jurattest.New(t), jurattest.NewNeighbour(t)
	a.Seal(t, payloadOf(t, call()))
	b.Seal(t, payloadOf(t, call()))
	joined := must.Get(trust.Join(a.Trust(t), b.Trust(t), a.Trust(t)))(t)
	if len(joined.Keys) != 2 || len(joined.Logs) != 2 || len(joined.Authorities) != 1 {
		t.Errorf("%d keys, %d logs, %d authorities", len(joined.Keys), len(joined.Logs), len(joined.Authorities))
	}
	other := a.Trust(t)
	other.Keys = slices.Clone(other.Keys)
	other.Keys[0].Custody = trust.ByOwner
	if _, err := trust.Join(a.Trust(t), other); err == nil || !strings.Contains(err.Error(), "trust file 2: keys: element 0 is there in another file, too, and says something else") {
		t.Error(err)
	}
	witnessed := b.Trust(t)
	witnessed.Witnesses, witnessed.Quorum = []string{"w"}, 1
	if _, err := trust.Join(a.Trust(t), witnessed); err == nil || !strings.Contains(err.Error(), "different witnesses") {
		t.Error(err)
	}
}
