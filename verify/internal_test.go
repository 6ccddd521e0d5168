package verify

import (
	"bytes"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/evidence/property"
	"jurat/internal/kit/plural"
	"jurat/internal/test/must"
	"jurat/jury"
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
		p := r.Pairs[0]
		must.Hold(t, (p.Witnesses == 1) == c.one && (!c.one || p.Why[0].Rule == OneOwner), "%s: %+v", name, p)
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
		must.Hold(t, 2*len(r.Pairs)+2*len(r.Differences)+len(r.Alone)+r.LeftOut >= 2*each && r.LeftOut != 0,
			"%d pairs, %d differences, %d alone, %d left out of %d", len(r.Pairs), len(r.Differences), len(r.Alone), r.LeftOut, 2*each)
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
		r := m.Report()
		must.Hold(t, len(r.Pairs) == 1 && r.Pairs[0].Proved && r.Pairs[0].Witnesses == 2, "%t: %+v", bareFirst, r.Pairs)
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
			must.Equal(t, earlier(a, b), i < j, i, "before", j)
		}
	}
}

// TestDetails: without room, the worst finding of each record under each guarantee stays, and the others are counted.
func TestDetails(t *testing.T) {
	room := len("a long reason") + sizeOfText + sizeOfDetail + len("b") + sizeOfText
	d := &details{room: room, reasons: map[string]string{}, worst: map[question]int{}}
	admit := func(f Finding, reason string) {
		t.Helper()
		got, kept := d.admit(f)
		must.Hold(t, kept == (reason != "") && (!kept || got.Reason == reason), "%+v: %+v, %v; want %q", f, got, kept, reason)
	}
	admit(Finding{Content, NotProved, "", "r", "a long reason"}, "a long reason")
	admit(Finding{Content, NotProved, "", "s", "a long reason"}, "a long reason") // a known reason takes no room
	admit(Finding{Content, NotProved, "", "r", "b"}, "b")
	admit(Finding{Content, NotProved, "", "r", "c"}, "")
	admit(Finding{Content, Refuted, "", "r", "d"}, notTold)
	admit(Finding{Content, Refuted, "", "r", "e"}, "")
	admit(Finding{Order, NotProved, "", "r", "f"}, notTold)
	admit(Finding{Envelope, NotProved, "", "r", "g"}, notTold)
	admit(Finding{Envelope, Refuted, "", "r", "h"}, notTold)
	admit(Finding{Order, NotProved, "", "", "i"}, notTold)
	must.Equal(t, d.leftOut, 2)
}

// TestLongWays: in a file with a very long chain of links, the search must not use more stack than in another file.
func TestLongWays(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))
	const many = 50_000
	for name, lead := range map[string]func(p *evidence.Payload, next *evidence.Record, n int){
		"by digest":  func(p *evidence.Payload, next *evidence.Record, _ int) { p.Saw = []evidence.Digest{next.Digest} },
		"by request": func(p *evidence.Payload, _ *evidence.Record, n int) { p.ParentRequestID = fmt.Sprint(n + 1) },
	} {
		var records []*evidence.Record
		for n := range many {
			r := &evidence.Record{Payload: evidence.Payload{RequestID: fmt.Sprint(n)}, Digest: evidence.DigestOf(fmt.Append(nil, n))}
			records = append(records, r)
		}
		for n, r := range records[:many-1] {
			lead(&r.Payload, records[n+1], n)
		}
		last := records[many-1]
		last.Payload.ChainID = "c"
		g := newGraph(records)
		for n, r := range records {
			want := (thread{chain: "c"})
			must.Need(t, g.Threads[r] == want, "%s: record %d is of %+v", name, n, g.Threads[r])
		}
	}
}

// TestVolume: links within each record's allowance do not count, and the bound is the last accepted number.
func TestVolume(t *testing.T) {
	naming := func(n int) *evidence.Record {
		return &evidence.Record{Payload: evidence.Payload{ActionType: evidence.Message, Saw: make([]evidence.Digest, n-1), PreviousRecord: evidence.Digest{1}}}
	}
	v := new(volume)
	for range 3 * linksOfFile / linksOfRecord {
		must.Need(t, !v.Take(naming(linksOfRecord)), "links within each record's allowance used up the common allowance")
	}
	must.Hold(t, !v.Take(naming(linksOfRecord+linksOfFile)) && !v.Take(naming(linksOfRecord)), "the largest allowed number was refused")
	must.Hold(t, v.Take(naming(linksOfRecord+1)), "one more than the largest allowed number was accepted")
	must.Hold(t, !v.Take(naming(linksOfRecord+1)) && v.Exceeded != "", "links beyond the bound were reported other than once")
}

func TestCounted(t *testing.T) {
	for got, want := range map[string]string{
		plural.Of(1, "review"): "1 review", plural.Of(0, "delivery"): "0 deliveries", plural.Of(2, "chain"): "2 chains", plural.Of(1, "delivery"): "1 delivery",
		theseEntries(1): "this 1 entry", theseEntries(7): "these 7 entries", plural.Or(1, "is", "are"): "is", plural.Or(0, "is", "are"): "are",
	} {
		must.Equal(t, got, want)
	}
}

const material = `{"agentCard":{},"conversation":[
{"role":"user","content":[{"type":"text","text":"Line one."},{"type":"image_url","image_url":{"url":"x"}},{"type":"text","text":"Line \"two\"."}]},
{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"get_parcel","arguments":"{\"id\": 17}"}}]},
{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"ship","arguments":{"to":"Kassel","at":1}}}]}]}`

func acts(message int, quote string, unfounded bool) []jury.Act {
	o := jury.Opinion{Findings: []jury.Finding{{Message: message, Quote: quote, Unfounded: unfounded}}}
	return []jury.Act{{Body: &jury.Opening{}}, {Digest: evidence.DigestOf([]byte("act")), Body: &jury.Evaluation{Opinion: o}}}
}

func TestFind(t *testing.T) {
	for _, tt := range []struct {
		message int
		quote   string
		found   bool // as invented
	}{
		{1, "Line one.", false}, {1, "one.\n[image_url]\nLine \"two\"", false}, {1, "Line three", true}, {2, "Line one.", true},
		{2, "get_parcel", false}, {2, `{"id": 17}`, false}, {2, `{"id":17}`, true}, {3, `{"at":1,"to":"Kassel"}`, false}, {3, "Kassel", false},
		{4, "Kassel", true}, {1, "Line one. Line", true},
	} {
		act, got := inventedIn([]byte(material), acts(tt.message, tt.quote, false))
		must.Hold(t, (got != nil) == tt.found && (got == nil || !act.IsZero()), "message %d, %q: %+v", tt.message, tt.quote, got)
	}
	_, got := inventedIn([]byte(material), acts(1, "Line three", true))
	must.Hold(t, got == nil, "a quotation that is marked is held against the act")
	_, got = inventedIn([]byte(`{"conversation":[]}`), acts(1, "Line three", false))
	must.Hold(t, got != nil, "a quotation from an empty conversation stands")
	for _, other := range []string{`{"agentCard":{},"conversation":{"history":[]}}`, `{"records":[]}`, `{"conversation":[{"role":"user","parts":[]}]}`, `[]`, `{`} {
		_, got := inventedIn([]byte(other), acts(1, "Line three", false))
		must.Hold(t, got == nil, "%s: %+v", other, got)
	}
}

// TestParseDemand: each error names the demand's field, the byte and the reason.
func TestParseDemand(t *testing.T) {
	for text, want := range map[string]string{
		"range:/a=0..5":                    "",
		"range:/a=-1.5..2.25":              "",
		"range:/a=2026-01-01..2026-12-31":  "",
		`in:/a=x,"y, z",7,null`:            "",
		"not_in:/a/b=x":                    "",
		"age_at_least:/born=18@2026-01-01": "",

		"":                             "form at byte 0: ",
		"between:/a=0..5":              "form at byte 0: ",
		"equal:/a=/b":                  "form at byte 0: ",
		"at_most_sum:/a=5":             "form at byte 0: ",
		"range:a=0..5":                 "pointer at byte 6: ",
		"range:/a~2=0..5":              "pointer at byte 6: ",
		"range:/a":                     "pointer at byte 8: ",
		"range:/a=5":                   "range at byte 9: ",
		"range:/a=5..5":                "range at byte 9: ",
		"range:/a=x..y":                "range at byte 9: ",
		"range:/a=0..1e999":            "range at byte 9: ",
		"in:/a=":                       "set at byte 6: ",
		"in:/a=x,x":                    "set at byte 6: ",
		`in:/a="x`:                     "set at byte 6: ",
		`in:/a="x"y`:                   "set at byte 6: ",
		"age_at_least:/a=x@2026-01-01": "years at byte 16: ",
		"age_at_least:/a=18":           "age at byte 16: ",
		"age_at_least:/a=18@soon":      "age at byte 16: ",
	} {
		_, err := ParseDemand(text)
		must.Hold(t, (err == nil) == (want == "") && (err == nil || strings.Contains(err.Error(), ": "+want)), "%q: %v, want %q", text, err, want)
	}
}

// TestImplied: a proof counts for a demand only with the same audience, and of the same member.
func TestImplied(t *testing.T) {
	const a, b = "sha256:aa", "sha256:bb"
	in := &property.Statement{Format: property.Format, Kind: property.Text, Form: property.In, Set: []jsontext.Value{jsontext.Value(`"x"`), jsontext.Value(`"y"`)},
		Members: []property.Member{{Record: a, Pointer: "/p"}}}
	forOne := *in
	forOne.Audience = "auditor"
	for n, c := range []struct {
		demand, audience string
		statement        *property.Statement
		record           string
		want             bool
	}{
		{"in:/p=x,y,z", "", in, a, true},
		{"in:/p=x", "", in, a, false},
		{"in:/p=x,y", "", in, b, false},
		{"in:/q=x,y", "", in, a, false},
		{"in:/p=x,y", "", &forOne, a, false},
		{"in:/p=x,y", "auditor", &forOne, a, true},
		{"in:/p=x,y", "auditor", in, a, false},
		{"not_in:/p=z", "", in, a, true},
		{"not_in:/p=y", "", in, a, false},
		{"range:/p=0..5", "", in, a, false},
	} {
		d := must.Get(ParseDemand(c.demand))(t)
		d.Audience = c.audience
		must.Equal(t, d.implied(c.statement, c.record), c.want, n, c.demand)
	}
}

// A RuleRow is a row of the tables of rules.
type RuleRow struct {
	Name string
	Of   []Guarantee

	Found atomic.Bool // it found something since this was last false
	Off   bool        // it finds nothing
}

// watch returns the rows of a table, which from now on say whether they find something.
func (t rules[In]) watch() (rows []*RuleRow) {
	for i := range t {
		row, ask := &RuleRow{Name: t[i].name, Of: t[i].of}, t[i].ask
		t[i].ask = func(in In, a *asked) {
			if row.Off {
				return
			}
			if ask(in, a); a.found {
				row.Found.Store(true)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// Rules returns the rows of all tables.
var Rules = sync.OnceValue(func() (rows []*RuleRow) {
	for _, table := range []interface{ watch() []*RuleRow }{
		rulesOfTrust, rulesOfLog, rulesOfAnchors, rulesOfNothing, rulesOfVolume, rulesOfTime, rulesOfSignature, rulesOfKey, rulesOfCertificate,
		rulesOfCustody, rulesOfDisclosures, rulesOfPlace, rulesOfValue, rulesOfDemand, rulesOfProof, rulesOfProofs, rulesOfEvent, rulesOfSight, rulesOfGaps, rulesOfConfiguration, rulesOfNaming,
		rulesOfCounts, rulesOfReview, rulesOfDelivery, rulesOfChains, rulesOfChain, rulesOfRest[Vantage], rulesOfRest[HumanReview],
		rulesOfRest[GivenOn], rulesOfRest[Chain], rulesOfFiles, rulesOfIDs, rulesOfOneAct, rulesOfBodies, rulesOfBeginning, rulesOfAct,
		rulesOfTrial, rulesOfReplay, rulesOfActs, rulesOfReadersLog, rulesOfEntries, rulesOfChainCount,
		rulesOfCaseCount, rulesOfTail, rulesOfExport, rulesOfExporter,
	} {
		rows = append(rows, table.watch()...)
	}
	return rows
})

// RootOf returns the root over the entries of a file.
func RootOf(t testing.TB, doc []byte) tlog.Hash {
	t.Helper()
	tree := new(operator.Frontier)
	err := operator.ReadEntries(bytes.NewReader(doc), func(_ int64, line []byte, _ *evidence.Entry) error {
		tree.Add(tlog.RecordHash(line))
		return nil
	})
	must.Do(t, err)
	return tree.Root()
}

// KeptOf returns how many of a bundle's records a check still holds once each is examined, with any text of them, and how long the texts are that it has copied.
func KeptOf(b *evidence.Bundle, o Options) (held, copied int) {
	file, err := b.Marshal()
	if err != nil {
		panic(err)
	}
	reader, err := evidence.ReadBundle(bytes.NewReader(file))
	if err != nil {
		panic(err)
	}
	c := newCheck(o, ManyRecords)
	c.begin(reader.Checkpoint, nil)
	var seen []weak.Pointer[byte]
	for range b.Records {
		raw, err := reader.Next()
		if err != nil {
			panic(err)
		}
		r, err := raw.Open()
		if err != nil {
			panic(err)
		}
		seen = append(seen, weak.Make(&r.Payload.Response[0]), weak.Make(&r.Canonical()[0]))
		c.take(c.examine(r))
	}
	runtime.GC()
	for _, p := range seen {
		if p.Value() != nil {
			held++
		}
	}
	return held, texts(reflect.ValueOf(c), map[reflect.Value]bool{})
}

// texts returns how many bytes the texts have that can be reached from a value.
func texts(v reflect.Value, seen map[reflect.Value]bool) (n int) {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer, reflect.Interface:
		if v.Kind() == reflect.Pointer && seen[v] || v.IsNil() {
			return 0
		}
		seen[v] = true
		return texts(v.Elem(), seen)
	case reflect.Struct:
		for _, field := range v.Fields() {
			n += texts(field, seen)
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return v.Len()
		}
		for _, element := range v.Seq2() {
			n += texts(element, seen)
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			n += texts(key, seen) + texts(value, seen)
		}
	}
	return n
}

// TestUnknownNamesProveNothing: a reason under a name that no rule has is found all the same, whoever gives it.
func TestUnknownNamesProveNothing(t *testing.T) {
	for _, of := range [][]string{ofDoubts, ofServices, ofVouching} {
		for _, name := range append([]string{"new"}, of...) {
			speaking := slices.DeleteFunc(slices.Clone(of), func(rule string) bool { return !(&asked{rule: rule}).speaks(name, of) })
			must.Len(t, speaking, 1)
		}
	}
	f := &findings{applies: func(Guarantee) bool { return true }}
	ask(f, rulesOfReplay, nil, &heard{file: &file{graph: new(graph)}, wrong: &jury.Discrepancy{Rule: "new"}})
	for _, g := range ofTrial {
		must.Hold(t, f.worst(g) != nil, "%s is proved of a trial whose replay breaks a rule that no table has", g)
	}
}
