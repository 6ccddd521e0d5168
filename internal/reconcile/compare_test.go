package reconcile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
)

var hour = at("2025-11-27T12:00:00Z")

// call is one of the log, which took a second and began some seconds after the hour.
func call(id string, after int, model string, in, out int64) Call {
	began := hour.Add(time.Duration(after) * time.Second)
	return Call{Record: evidence.DigestOf([]byte(id)), Began: began, Ended: began.Add(time.Second), Model: "m", Version: model, RequestIDs: []string{id}, Usage: &Tokens{in, out}, Status: 200}
}

func silent(c Call) Call { c.Usage = nil; return c }
func failed(c Call) Call { c.Usage, c.Status = nil, 429; return c }
func lost(c Call) Call   { c.Usage, c.Status, c.Lost, c.RequestIDs = nil, 0, true, nil; return c }

// export makes buckets of an hour: "hours after the first|model|requests|in|out", or "hours|-" for an empty one.
func export(t *testing.T, buckets ...string) *Export {
	t.Helper()
	e := &Export{Vendor: "openai"}
	for n, text := range buckets {
		p := strings.Split(text, "|")
		number := func(s string) (n int64) {
			if _, err := fmt.Sscan(s, &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		from := hour.Add(time.Duration(number(p[0])) * time.Hour)
		b := Bucket{From: from, To: from.Add(time.Hour), Line: n + 2}
		if p[1] == "-" {
			b.Empty = true
		} else {
			b.Model, b.Tokens = p[1], Tokens{number(p[3]), number(p[4])}
			if p[2] != "" {
				b.Requests = new(number(p[2]))
			}
		}
		e.Buckets = append(e.Buckets, b)
	}
	return e
}

// said shows findings as "kind model from-to".
func said(r *Report) string {
	var list []string
	for _, f := range r.Findings {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %.0f-%.0f", f.Kind, f.Model, f.From.Sub(hour).Hours(), f.To.Sub(hour).Hours())))
	}
	return strings.Join(list, ", ")
}

// TestBuckets compares sums of buckets.
func TestBuckets(t *testing.T) {
	two := []Call{call("a", 100, "m-1", 10, 1), call("b", 200, "m-1", 20, 2)}
	edge := call("e", 3600, "m-1", 5, 5) // begins with the second hour
	for name, c := range map[string]struct {
		buckets []string
		calls   []Call
		want    string
	}{
		"the same":                                    {[]string{"0|m-1|2|30|3"}, two, ""},
		"without requests":                            {[]string{"0|m-1||30|3"}, two, ""},
		"not divided by models":                       {[]string{"0||2|30|3"}, two, ""},
		"several lines for one model":                 {[]string{"0|m-1|1|10|1", "0|m-1|1|20|2"}, two, ""},
		"by the name that the caller used":            {[]string{"0|m|2|30|3"}, two, ""},
		"a request more":                              {[]string{"0|m-1|3|30|3"}, two, "around m-1 0-1"},
		"tokens more":                                 {[]string{"0|m-1|2|31|3"}, two, "around m-1 0-1"},
		"output more":                                 {[]string{"0|m-1||30|4"}, two, "around m-1 0-1"},
		"a request less":                              {[]string{"0|m-1|1|30|3"}, two, "unclaimed m-1 0-1"},
		"tokens less":                                 {[]string{"0|m-1|2|30|2"}, two, "unclaimed m-1 0-1"},
		"an empty bucket":                             {[]string{"0|-"}, two, "unclaimed m-1 0-1"},
		"a model that the log has not":                {[]string{"0|m-1|2|30|3", "0|m-2|1|1|1"}, two, "around m-2 0-1"},
		"a model that the provider has not":           {[]string{"0|m-1|2|30|3"}, append([]Call{call("c", 300, "m-2", 1, 1)}, two...), "unclaimed m-2 0-1"},
		"calls of another time":                       {[]string{"0|m-1|2|30|3"}, append([]Call{call("c", 7300, "m-1", 1, 1), call("d", -300, "m-1", 1, 1)}, two...), ""},
		"a failed call that the provider counts":      {[]string{"0|m-1|3|30|3"}, append([]Call{failed(call("c", 300, "m-1", 0, 0))}, two...), ""},
		"a failed call that it does not count":        {[]string{"0|m-1|2|30|3"}, append([]Call{failed(call("c", 300, "m-1", 0, 0))}, two...), ""},
		"a call without usage":                        {[]string{"0|m-1|3|99|9"}, append([]Call{silent(call("c", 300, "m-1", 0, 0))}, two...), "undecided m-1 0-1"},
		"a call without usage hides no request":       {[]string{"0|m-1|4|99|9"}, append([]Call{silent(call("c", 300, "m-1", 0, 0))}, two...), "around m-1 0-1"},
		"a lost call may not have been forwarded":     {[]string{"0|m-1|2|30|3"}, append([]Call{lost(call("c", 300, "m-1", 0, 0))}, two...), ""},
		"on an edge, counted here":                    {[]string{"0|m-1|3|35|8"}, append([]Call{edge}, two...), ""},
		"on an edge, counted in the next":             {[]string{"0|m-1|2|30|3"}, append([]Call{edge}, two...), ""},
		"on an edge, with other tokens":               {[]string{"0|m-1|3|33|6"}, append([]Call{edge}, two...), "undecided m-1 0-1"},
		"beyond what the edge allows":                 {[]string{"0|m-1|3|36|8"}, append([]Call{edge}, two...), "around m-1 0-1"},
		"edges inside do not matter for the sum":      {[]string{"0|m-1|2|33|6", "1|m-1|1|2|2"}, append([]Call{edge}, two...), ""},
		"two differences that cancel out":             {[]string{"0|m-1|2|29|3", "1|m-1|1|6|5"}, append([]Call{call("c", 5000, "m-1", 5, 5)}, two...), "unclaimed m-1 0-1, around m-1 1-2"},
		"the sum differs, each interval may be right": {[]string{"0|m-1|3|35|8", "1|m-1|1|5|5"}, append([]Call{edge}, two...), "around m-1 0-2"},
		"a hole between buckets":                      {[]string{"0|m-1|2|30|3", "2|m-1|1|1|1"}, two, "around m-1 2-3"},
	} {
		e := export(t, c.buckets...)
		if err := e.check(); err != nil {
			t.Fatal(err)
		}
		if got := said(Compare(e, c.calls, Order{Slack: 2 * time.Second})); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestBucketsOfATime: buckets that are not wholly in the time asked for are left out, and said to be.
func TestBucketsOfATime(t *testing.T) {
	e := export(t, "0|m-1|9|9|9", "1|m-1|1|5|5", "2|m-1|9|9|9")
	r := Compare(e, []Call{call("a", 4000, "m-1", 5, 5), call("b", 100, "m-1", 1, 1)}, Order{From: hour.Add(30 * time.Minute), To: hour.Add(150 * time.Minute)})
	if got := said(r); got != "" || r.Skipped != 2 || r.Calls != 1 || r.Sealed != (Tokens{5, 5}) || r.Counted.Tokens != (Tokens{5, 5}) || *r.Counted.Requests != 1 {
		t.Errorf("%q, %+v", got, r)
	}
}

// TestRows compares calls one by one.
func TestRows(t *testing.T) {
	row := func(id string, after int, model string, in, out int64) Row {
		return Row{ID: id, Time: hour.Add(time.Duration(after) * time.Second), Model: model, Tokens: Tokens{in, out}}
	}
	calls := []Call{call("a", 0, "m-1", 10, 1), call("b", 100, "m-1", 20, 2), call("c", 200, "m-1", 1, 1), call("z", 300, "m-1", 3, 3)}
	first, last := row("a", 0, "m-1", 10, 1), row("z", 301, "m-1", 3, 3)
	middle := []Row{row("b", 100, "m", 20, 2), row("c", 200, "", 1, 1)}
	for name, c := range map[string]struct {
		rows  []Row
		calls []Call
		want  Kind
		n     int
	}{
		"the same":                          {middle, calls, "", 0},
		"a call of the provider's":          {append([]Row{row("x", 50, "m-1", 1, 1)}, middle...), calls, Around, 1},
		"a call of the log's":               {middle[:1], calls, Unclaimed, 1},
		"other tokens":                      {[]Row{row("b", 100, "m-1", 20, 3), middle[1]}, calls, Differs, 1},
		"another model":                     {[]Row{row("b", 100, "m-9", 20, 2), middle[1]}, calls, Differs, 1},
		"no usage":                          {middle, []Call{calls[0], silent(calls[1]), calls[2], calls[3]}, Undecided, 1},
		"a call that failed":                {middle, append([]Call{failed(call("f", 150, "m", 0, 0))}, calls...), "", 0},
		"a call that was lost":              {middle, append([]Call{lost(call("f", 150, "m", 0, 0))}, calls...), Undecided, 1},
		"a call at the edge of the file":    {middle, append([]Call{call("e", 301, "m", 1, 1)}, calls...), Undecided, 1},
		"a call after the end of the file":  {middle, append([]Call{call("e", 900, "m", 1, 1)}, calls...), "", 0},
		"found by the answer's own id":      {[]Row{row("resp-b", 100, "m-1", 20, 2), middle[1]}, []Call{calls[0], {Record: calls[1].Record, Began: calls[1].Began, Ended: calls[1].Ended, Model: "m", RequestIDs: []string{"b", "resp-b"}, Version: "m-1", Usage: &Tokens{20, 2}, Status: 200}, calls[2], calls[3]}, "", 0},
		"a difference weighs more than not": {[]Row{row("x", 50, "m-1", 1, 1), middle[0], middle[1]}, []Call{calls[0], silent(calls[1]), calls[2], calls[3]}, Around, 2},
	} {
		e := &Export{Rows: append(append([]Row{first}, c.rows...), last)}
		r := Compare(e, c.calls, Order{Slack: 2 * time.Second})
		if r.Worst() != c.want || len(r.Findings) != c.n {
			t.Errorf("%s: %q, %+v", name, r.Worst(), r.Findings)
		}
	}
}

// TestRowsAreCountedOnce: a call that differs is one request of the provider's, as is one that the log has not.
func TestRowsAreCountedOnce(t *testing.T) {
	row := func(id string, after int) Row {
		return Row{ID: id, Time: hour.Add(time.Duration(after) * time.Second), Model: "m-1", Tokens: Tokens{9, 9}}
	}
	e := &Export{Rows: []Row{row("a", 0), row("x", 50), row("b", 100)}}
	r := Compare(e, []Call{call("a", 0, "m-1", 9, 9), silent(call("b", 100, "m-1", 0, 0))}, Order{})
	if *r.Counted.Requests != 3 || len(r.Findings) != 2 {
		t.Errorf("%d requests, %+v", *r.Counted.Requests, r.Findings)
	}
}

// TestManyBuckets: a year of minutes is compared in a time by their number.
func TestManyBuckets(t *testing.T) {
	e := &Export{}
	for n := range 365 * 24 * 60 {
		from := hour.Add(time.Duration(n) * time.Minute)
		e.Buckets = append(e.Buckets, Bucket{From: from, To: from.Add(time.Minute), Model: "m", Tokens: Tokens{1, 1}})
	}
	began := time.Now()
	if got := said(Compare(e, nil, Order{})); !strings.HasPrefix(got, "around m") || time.Since(began) > time.Minute {
		t.Errorf("%v, %.100s", time.Since(began), got)
	}
}
