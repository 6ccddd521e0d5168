package evidence

import (
	"strings"
	"testing"
)

// An actVector is the body of an act of the operator, and whether it is refused.
type actVector struct {
	Name       string     `json:"name"`
	ActionType ActionType `json:"action_type"`
	ChainID    string     `json:"chain_id"`
	Response   string     `json:"response"` // canonical JSON
	Refused    bool       `json:"refused,omitzero"`
}

const (
	aDigest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	bDigest = "sha256:2222222222222222222222222222222222222222222222222222222222222222"

	keptBody    = `{"by":"A. Person","days":183,"event":"kept","reason":"the law"}`
	chainBody   = `{"by":"A. Person","chain":"order-17","event":"held","reason":"a claim"}`
	recordBody  = `{"by":"A. Person","event":"held","reason":"a claim","record":"` + aDigest + `"}`
	allBody     = `{"by":"A. Person","event":"held","reason":"an audit"}`
	freeBody    = `{"by":"A. Person","event":"released","hold":"019b76da-a800-7af4-9dc1-0b1e7f1aa123","reason":"settled"}`
	expiredBody = `{"by":"A. Person","event":"expired","gone":{"archive":"` + aDigest + `","before":"2025-07-01T00:00:00Z","count":2,"from":256,"replaces":"` + bDigest +
		`","to":512},"reason":"their time is over"}`
)

// retentionVectors are all that a retention_event may say, and one thing after the other that it must not.
func retentionVectors(t *testing.T) []actVector {
	t.Helper()
	var list []actVector
	for _, good := range [][2]string{{"kept", keptBody}, {"a chain held", chainBody}, {"a record held", recordBody}, {"everything held", allBody}, {"released", freeBody},
		{"expired", expiredBody}} {
		list = append(list, actVector{Name: good[0], Response: good[1]})
	}
	for _, bad := range []struct{ name, of, old, new string }{
		{"an event that is none", keptBody, `"kept"`, `"forgotten"`},
		{"without an event", allBody, `"event":"held",`, ``},
		{"by nobody", keptBody, `"A. Person"`, `""`},
		{"without by", keptBody, `"by":"A. Person",`, ``},
		{"without a reason", keptBody, `,"reason":"the law"`, ``},
		{"with an empty reason", keptBody, `"the law"`, `""`},
		{"with a reason that is null", keptBody, `"the law"`, `null`},
		{"with a member more", keptBody, `{`, `{"at":1,`},
		{"kept for too short", keptBody, `183`, `182`},
		{"kept for parts of a day", keptBody, `183`, `183.5`},
		{"kept for a text of days", keptBody, `183`, `"183"`},
		{"kept without days", keptBody, `"days":183,`, ``},
		{"kept, of a chain", keptBody, `"days":183`, `"chain":"order-17","days":183`},
		{"kept, of a hold", keptBody, `"reason"`, `"hold":"019b76da-a800-7af4-9dc1-0b1e7f1aa123","reason"`},
		{"a chain and a record held", recordBody, `"event"`, `"chain":"order-17","event"`},
		{"a chain without a name held", chainBody, `"order-17"`, `""`},
		{"a chain with a name of white space held", chainBody, `"order-17"`, `" "`},
		{"no digest held", recordBody, aDigest, `sha256:11`},
		{"a digest of zeros held", recordBody, aDigest, "sha256:" + strings.Repeat("0", 64)},
		{"a digest in capitals held", recordBody, aDigest, "sha256:" + strings.Repeat("A", 64)},
		{"held for days", chainBody, `"event"`, `"days":183,"event"`},
		{"released without a hold", freeBody, `"hold":"019b76da-a800-7af4-9dc1-0b1e7f1aa123",`, ``},
		{"released from what is no record", freeBody, `019b76da-a800-7af4-9dc1-0b1e7f1aa123`, `order-17`},
		{"released, of a chain", freeBody, `"event"`, `"chain":"order-17","event"`},
		{"expired without what is gone", allBody, `"held"`, `"expired"`},
		{"expired, and nothing is gone", expiredBody, `"count":2`, `"count":0`},
		{"expired, and more than there was", expiredBody, `"count":2`, `"count":257`},
		{"expired from before the beginning", expiredBody, `"from":256`, `"from":-1`},
		{"expired from the end", expiredBody, `"from":256`, `"from":512`},
		{"expired, and the file is the same", expiredBody, aDigest, bDigest},
		{"expired, and no file is left", expiredBody, aDigest, "sha256:" + strings.Repeat("0", 64)},
		{"expired before no time", expiredBody, `2025-07-01T00:00:00Z`, `2025-07-32T00:00:00Z`},
		{"expired before a time that is not UTC", expiredBody, `2025-07-01T00:00:00Z`, `2025-07-01T00:00:00+02:00`},
		{"expired without an end", expiredBody, `,"to":512`, ``},
		{"expired with a member more", expiredBody, `,"to":512`, `,"to":512,"why":1`},
		{"expired, of a record", expiredBody, `their time is over"`, `their time is over","record":"` + aDigest + `"`},
	} {
		body := strings.Replace(bad.of, bad.old, bad.new, 1)
		if body == bad.of {
			t.Fatalf("%s: the vector changes nothing", bad.name)
		}
		if form, err := Canonical([]byte(body)); err != nil || string(form) != body {
			t.Fatalf("%s: the vector is not canonical, and would be refused for that: %v", bad.name, err)
		}
		list = append(list, actVector{Name: bad.name, Response: body, Refused: true})
	}
	for i := range list {
		list[i].Name, list[i].ActionType, list[i].ChainID = "retention: "+list[i].Name, RetentionEvent, OperatorPrefix+"retention"
	}
	return append(list, actVector{"retention: in another chain", RetentionEvent, OperatorPrefix + "keys", keptBody, true})
}
