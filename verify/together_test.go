package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/tap/traffic"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/verify"
	"jurat/verify/trust"
)

// together verifies several bundles, each alone and all together.
func together(t *testing.T, o verify.Options, files ...*evidence.Bundle) (alone, joint []*verify.Report) {
	t.Helper()
	o.Together = verify.NewTogether(o)
	for _, b := range files {
		alone = append(alone, verify.Bundle(b, o))
	}
	return alone, o.Together.Reports()
}

// apart puts each record of a story into a file of its own.
func (s *story) apart(records ...*evidence.Record) []*evidence.Bundle {
	s.t.Helper()
	var files []*evidence.Bundle
	for _, r := range records {
		files = append(files, s.house.Bundle(s.t, r))
	}
	return files
}

// flow is an answer that belongs to no chain, its review and its delivery.
func flow(s *story) (a, b, d *evidence.Record) {
	a = s.add(answer())
	b = s.add(reviewOf(a, evidence.ApprovedWithModifications, routeA7))
	d = s.add(deliveryOf(routeA7, a, b))
	return a, b, d
}

// TestFlowTogether: an answer, its review and its delivery are in three files. In any order, they are proved
// together. Each file alone leaves open only what it says of the others.
func TestFlowTogether(t *testing.T) {
	s := newStory(t)
	a, b, d := flow(s)
	for _, order := range [][]*evidence.Record{{a, b, d}, {d, b, a}, {b, a, d}} {
		alone, joint := together(t, s.house.Options(t), s.apart(order...)...)
		for _, r := range alone {
			must.Hold(t, r.Outcome == verify.Proved || r.OpenAlone(), "alone: %s, %+v", r.Outcome, r.Guarantees)
		}
		must.Need(t, len(joint) == 1 && joint[0].Outcome == verify.Proved && joint[0].Records == 3, "together: %+v", joint)
		expect(t, joint[0], verify.HumanReview, verify.Proved, "", nil)
	}
}

// TestChainTogether: steps in separate files are one chain. They name one another by parent request or by digest.
func TestChainTogether(t *testing.T) {
	s := newStory(t)
	planner, toolA, toolB, execution := parallel(s)
	_, joint := together(t, s.house.Options(t), s.apart(execution, toolA, planner, toolB)...)
	must.Need(t, len(joint) == 1, "%d reports", len(joint))
	expect(t, joint[0], verify.Chain, verify.Proved, "", nil)

	asked := answer()
	asked.RequestID = "whole"
	part := answer()
	part.RequestID, part.ParentRequestID = "part", "whole"
	child := s.add(part)
	parent := s.add(asked)
	_, joint = together(t, s.house.Options(t), s.apart(parent, child)...)
	expect(t, joint[0], verify.Chain, verify.Proved, "", nil)
}

// TestMissingTogether: a file that the reader did not bring refutes nothing; the link is not proved.
func TestMissingTogether(t *testing.T) {
	s := newStory(t)
	planner, toolA, _, execution := parallel(s)
	for name, records := range map[string][]*evidence.Record{"the middle": {planner, execution}, "the beginning": {toolA, execution}} {
		_, joint := together(t, s.house.Options(t), s.apart(records...)...)
		must.Hold(t, len(joint) == 1 && joint[0].Outcome == verify.NotProved && joint[0].Of(verify.Chain).Status == verify.NotProved,
			"without %s: %+v", name, joint)
	}
	f := newStory(t)
	a, b, d := flow(f)
	rejected := reviewOf(a, evidence.Rejected, "")
	rejected.ReviewerID = "second@example.com"
	no := f.add(rejected)
	late := f.add(deliveryOf(routeA7, a, b))
	for name, records := range map[string][]*evidence.Record{"the review": {a, d}, "the answer": {b, d}} {
		_, joint := together(t, f.house.Options(t), f.apart(records...)...)
		must.Hold(t, len(joint) == 1 && joint[0].Of(verify.HumanReview).Status == verify.NotProved, "without %s: %+v", name, joint)
	}
	_, joint := together(t, f.house.Options(t), f.apart(a, b, no, late)...) // a file that is not here may contain a later approval
	expect(t, joint[0], verify.HumanReview, verify.NotProved, "delivery-rejected", late)
}

// TestContradictionTogether: a signed statement that another file contradicts is refuted.
func TestContradictionTogether(t *testing.T) {
	s := newStory(t)
	a := s.add(answer())
	b := s.add(reviewOf(a, evidence.ApprovedWithModifications, routeA7))
	d := s.add(deliveryOf(routeA9, a, b))
	_, joint := together(t, s.house.Options(t), s.apart(a, b, d)...)
	expect(t, joint[0], verify.HumanReview, verify.Refuted, "delivery", d)
}

// TestTwoLogsAreNotPutTogether: files of two logs, files without a proved place, and unrelated records are kept
// apart.
func TestTwoLogsAreNotPutTogether(t *testing.T) {
	s := newStory(t)
	a, b, d := flow(s)
	files := s.apart(a, b, d)
	untrusted := s.house.Options(t)
	trust := *untrusted.Trust
	trust.Logs = nil
	untrusted.Trust = &trust
	_, joint := together(t, untrusted, files...)
	must.Hold(t, joint == nil, "of no log that is trusted: %+v", joint)
	_, joint = together(t, s.house.Options(t), files[0], files[0])
	must.Hold(t, len(joint) == 0, "one answer, twice: %+v", joint)
}

// TestTwoHistoriesTogether: two files of one log are each proved, but show two histories.
func TestTwoHistoriesTogether(t *testing.T) {
	one, other := newStory(t), &story{t: t, house: jurattest.New(t)}
	a := one.add(answer())
	changed := answer()
	changed.Response = quoted(routeA7)
	b := other.add(changed)
	files := append(one.apart(a), other.apart(b)...)
	alone, joint := together(t, one.house.Options(t), files...)
	must.Need(t, alone[0].Outcome == verify.Proved && alone[1].Outcome == verify.Proved, "alone: %s, %s", alone[0].Outcome, alone[1].Outcome)
	must.Hold(t, len(joint) == 1 && joint[0].Of(verify.Order).Rule == "fork" && joint[0].Outcome == verify.Refuted, "%+v", joint)
}

// TestTwinsTogether: one log has a record_id twice. A ledger refuses this; a thief of its key can do it.
func TestTwinsTogether(t *testing.T) {
	c := newChance(t, 1)
	checkpoint, first, second := c.twins(t.Context())
	_, joint := together(t, c.house.Options(t), &evidence.Bundle{Records: []*evidence.Record{first}, Checkpoint: checkpoint},
		&evidence.Bundle{Records: []*evidence.Record{second}, Checkpoint: checkpoint})
	must.Need(t, len(joint) == 1, "%d reports", len(joint))
	expect(t, joint[0], verify.Order, verify.Refuted, "twin", second)
}

// TestGivenOn: passing on an answer unchanged, without a person, proves that and nothing more.
func TestGivenOn(t *testing.T) {
	for name, tell := range map[string]func(s *story, a *evidence.Record) evidence.Payload{
		"named by id and digest": func(_ *story, a *evidence.Record) evidence.Payload { return deliveryOf(routeA9, a) },
		"named by digest": func(_ *story, a *evidence.Record) evidence.Payload {
			p := deliveryOf(routeA9, a)
			p.OriginalResponseID = ""
			return p
		},
		"with more that was seen": func(s *story, a *evidence.Record) evidence.Payload { return deliveryOf(routeA9, a, s.add(answer())) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.add(tell(s, s.add(answer())))
			report := s.report()
			expect(t, report, verify.GivenOn, verify.Proved, "", nil)
			f := report.Of(verify.HumanReview)
			must.Hold(t, f.Reason == "not asked", "it says something of a person: %+v", f)
		})
	}
}

// TestNotGivenOn: a text that was changed, decided on, or is missing is not passed on unchanged.
func TestNotGivenOn(t *testing.T) {
	for name, tell := range map[string]func(s *story, a *evidence.Record){
		"changed": func(s *story, a *evidence.Record) { s.add(deliveryOf(routeA7, a)) },
		"reviewed": func(s *story, a *evidence.Record) {
			s.add(reviewOf(a, evidence.ApprovedWithModifications, routeA7))
			s.add(deliveryOf(routeA9, a))
		},
		"which of two": func(s *story, a *evidence.Record) {
			p := deliveryOf(routeA9, a, s.add(answer()))
			p.OriginalResponseID = ""
			s.add(p)
		},
		"withheld": func(s *story, a *evidence.Record) {
			s.add(deliveryOf(routeA9, a), "/response").Disclosures = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			tell(s, s.add(answer()))
			report := s.report()
			f := report.Of(verify.GivenOn)
			must.Hold(t, f.Reason == "not asked", "%+v", f)
			f = report.Of(verify.HumanReview)
			must.Hold(t, f.Status == verify.NotProved && f.Rule == "unreviewed", "%+v", f)
		})
	}
	s := newStory(t)
	a := s.add(answer())
	s.add(reviewOf(a, evidence.Rejected, ""))
	d := s.add(deliveryOf(routeA9, a))
	expect(t, s.report(), verify.HumanReview, verify.Refuted, "delivery-rejected", d)
}

// TestOpenAlone: other files do not prove what the reader requires of each file.
func TestOpenAlone(t *testing.T) {
	s := newStory(t)
	a, b, d := flow(s)
	file := s.house.Bundle(t, d)
	o := s.house.Options(t)
	o.Require = []verify.Guarantee{verify.NonRepudiation}
	r := verify.Bundle(file, o)
	must.Hold(t, !r.OpenAlone(o.Require...), "without what is demanded: %+v", r.Guarantees)
	o.Require = []verify.Guarantee{verify.HumanReview}
	alone, joint := together(t, o, s.apart(a, b, d)...)
	for _, r := range alone {
		must.Hold(t, r.OpenAlone(o.Require...), "%s: %+v", r.Outcome, r.Guarantees)
	}
	must.Hold(t, len(joint) == 1 && joint[0].Outcome == verify.Proved, "%+v", joint)
}

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
	a := observedCall(fmt.Sprint("call-", after, side), traffic.A2A10, e.request, e.response)
	a.ActionType, a.Side = evidence.ObservedMessage, side
	a.Began, a.Timestamp = evidence.FormatTime(jurattest.Start.Add(after)), evidence.FormatTime(jurattest.Start.Add(after))
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
		must.Hold(t, got == c.want, "%s:\n%s, want\n%s", c.name, got, c.want)
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
	must.Hold(t, len(joined.Keys) == 2 && len(joined.Logs) == 2 && len(joined.Authorities) == 1,
		"%d keys, %d logs, %d authorities", len(joined.Keys), len(joined.Logs), len(joined.Authorities))
	other := a.Trust(t)
	other.Keys = slices.Clone(other.Keys)
	other.Keys[0].Custody = trust.ByOwner
	must.Refuse(t, "trust file 2: keys: element 0 is there in another file, too, and says something else")(trust.Join(a.Trust(t), other))
	witnessed := b.Trust(t)
	witnessed.Witnesses, witnessed.Quorum = []string{"w"}, 1
	must.Refuse(t, "different witnesses")(trust.Join(a.Trust(t), witnessed))
}
