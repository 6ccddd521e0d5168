package evidence

import (
	"strings"
	"testing"
)

const (
	comparedBody = `{"by":"A. Person","calls":{"count":2,"digest":"` + aDigest + `","failed":0,"input":30,"output":8,"unknown":0},"differences":{"around":1,"differs":0,"unclaimed":0,"undecided":0},` +
		`"file":{"bytes":185,"digest":"` + bDigest + `","format":"OpenAI, usage API"},"findings":[{"from":"2026-01-31T16:00:00Z","kind":"around","line":1,"model":"m","to":"2026-01-31T17:00:00Z",` +
		`"what":"the provider counts 3 requests"}],"key_held":true,"provider":{"input":40,"output":9,"requests":3},"scope":{"agent":"mia","from":"2026-01-31T16:00:00Z","origin":"https://api.example",` +
		`"size":5,"slack_ms":5000,"to":"2026-01-31T17:00:00Z","vendor":"openai"},"skipped":1}`
	noneCompared = `{"by":"A. Person","calls":{"count":0,"digest":"` + aDigest + `","failed":0,"input":0,"output":0,"unknown":0},"differences":{"around":0,"differs":0,"unclaimed":0,"undecided":0},` +
		`"file":{"bytes":0,"digest":"` + bDigest + `","format":"calls, CSV"},"provider":{"input":0,"output":0},"scope":{"from":"2026-01-31T16:00:00Z","size":1,"slack_ms":0,"to":"2026-01-31T16:00:00.000000001Z"}}`
)

func usageVectors(t *testing.T) []actVector {
	t.Helper()
	zeros := "sha256:" + strings.Repeat("0", 64)
	return makeActs(t, "usage", UsageComparison, "", [][2]string{{"compared", comparedBody}, {"nothing on either side", noneCompared}}, []badAct{
		{"by nobody", comparedBody, `"A. Person"`, `""`},
		{"of no file", comparedBody, bDigest, zeros},
		{"of calls without a digest", comparedBody, aDigest, zeros},
		{"a file in no format", comparedBody, `"OpenAI, usage API"`, `""`},
		{"fewer than none", comparedBody, `"input":40`, `"input":-1`},
		{"half a token", comparedBody, `"output":9`, `"output":9.5`},
		{"more than can be counted", comparedBody, `"input":40`, `"input":9007199254740992`},
		{"without tokens", comparedBody, `"input":40,`, ``},
		{"without the log's side", comparedBody, `"input":30,`, ``},
		{"more failed than there are", comparedBody, `"failed":0`, `"failed":3`},
		{"failed and unknown, more than there are", comparedBody, `"failed":0,"input":30,"output":8,"unknown":0`, `"failed":1,"input":30,"output":8,"unknown":2`},
		{"more calls than records", comparedBody, `"count":2`, `"count":6`},
		{"a difference that is not counted", comparedBody, `"around":1`, `"around":0`},
		{"a difference that is none", comparedBody, `"kind":"around"`, `"kind":"beside"`},
		{"a difference that says nothing", comparedBody, `"the provider counts 3 requests"`, `""`},
		{"a difference in line 0", comparedBody, `"line":1`, `"line":0`},
		{"a difference at no time", comparedBody, `"from":"2026-01-31T16:00:00Z","kind"`, `"from":"noon","kind"`},
		{"a difference of a model without a name", comparedBody, `"model":"m"`, `"model":" "`},
		{"a difference in no record", comparedBody, `"model":"m"`, `"model":"m","record":"` + zeros + `"`},
		{"no list of differences", comparedBody, `[{"from"`, `[{"for":1,"from"`},
		{"a key held by nobody", comparedBody, `"key_held":true`, `"key_held":false`},
		{"nothing skipped", comparedBody, `"skipped":1`, `"skipped":0`},
		{"an agent without a name", comparedBody, `"agent":"mia"`, `"agent":""`},
		{"no time at all", comparedBody, `"size":5,"slack_ms":5000,"to":"2026-01-31T17:00:00Z"`, `"size":5,"slack_ms":5000,"to":"2026-01-31T16:00:00Z"`},
		{"of an empty log", noneCompared, `"size":1`, `"size":0`},
		{"clocks that differ by more than a day", comparedBody, `5000`, `86400001`},
		{"clocks that differ backwards", comparedBody, `5000`, `-1`},
		{"a vendor that is none", comparedBody, `"vendor":"openai"`, `"vendor":"abacus"`},
		{"with more to say", comparedBody, `"skipped":1`, `"skipped":1,"sum":2`},
		{"without a scope of its own", comparedBody, `"scope":{"agent":"mia",`, `"scope":{"agents":"mia",`},
	})
}
