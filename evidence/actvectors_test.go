package evidence

import (
	"slices"
	"strings"
	"testing"
)

// An actVector is the body of an act of the operator. If Refused is set, a reader must refuse it.
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

	expiredBody = `{"before":"2025-07-01T00:00:00Z","by":"A. Person","count":2,"from":256,"places":"` + aDigest + `","reason":"their time is over","to":512}`
	exceptBody  = `{"before":"2025-07-01T00:00:00Z","by":"A. Person","count":1,"except":["order-17","order-18"],"from":0,"places":"` + aDigest +
		`","reason":"their time is over","to":1}`
)

// A badAct is the body of an act with one change, for which it is refused.
type badAct struct{ name, of, old, new string }

// actVectors are the accepted forms of some acts of the operator, and bodies that each break one rule.
func actVectors(t *testing.T) []actVector {
	t.Helper()
	return slices.Concat(expiryVectors(t), trialVectors(t), recorderVectors(t))
}

// makeActs returns the vectors of one action type: good bodies by name, and bad ones.
func makeActs(t *testing.T, prefix string, action ActionType, chain string, good [][2]string, bad []badAct) []actVector {
	t.Helper()
	var list []actVector
	for _, g := range good {
		list = append(list, actVector{Name: g[0], Response: g[1]})
	}
	for _, b := range bad {
		body := strings.Replace(b.of, b.old, b.new, 1)
		if body == b.of {
			t.Fatalf("%s: %s: the change does not apply to the body", prefix, b.name)
		}
		if form, err := Canonical([]byte(body)); err != nil || string(form) != body {
			t.Fatalf("%s: %s: the vector is not canonical, so the rule under test would not be reached: %v", prefix, b.name, err)
		}
		list = append(list, actVector{Name: b.name, Response: body, Refused: true})
	}
	for i := range list {
		list[i].Name, list[i].ActionType, list[i].ChainID = prefix+": "+list[i].Name, action, chain
	}
	return append(list, actVector{prefix + ": in another chain", action, OperatorPrefix + "keys", good[0][1], true})
}

func expiryVectors(t *testing.T) []actVector {
	t.Helper()
	return makeActs(t, "expiry", Expiry, OperatorPrefix+"expiry", [][2]string{{"expired", expiredBody}, {"expired, but for two chains", exceptBody}}, []badAct{
		{"by nobody", expiredBody, `"A. Person"`, `""`},
		{"without by", expiredBody, `"by":"A. Person",`, ``},
		{"without a reason", expiredBody, `"reason":"their time is over",`, ``},
		{"with an empty reason", expiredBody, `"their time is over"`, `""`},
		{"with a reason that is null", expiredBody, `"their time is over"`, `null`},
		{"with a member more", expiredBody, `{`, `{"at":1,`},
		{"nothing has expired", expiredBody, `"count":2`, `"count":0`},
		{"more than there were", expiredBody, `"count":2`, `"count":257`},
		{"a count that is a text", expiredBody, `"count":2`, `"count":"2"`},
		{"from before the beginning", expiredBody, `"from":256`, `"from":-1`},
		{"from the end", expiredBody, `"from":256`, `"from":512`},
		{"to behind every log", expiredBody, `"to":512`, `"to":9007199254740992`},
		{"without an end", expiredBody, `,"to":512`, ``},
		{"without places", expiredBody, `"places":"` + aDigest + `",`, ``},
		{"with places of zeros", expiredBody, aDigest, "sha256:" + strings.Repeat("0", 64)},
		{"with places in capitals", expiredBody, aDigest, "sha256:" + strings.Repeat("A", 64)},
		{"before no time", expiredBody, `2025-07-01T00:00:00Z`, `2025-07-32T00:00:00Z`},
		{"before a time that is not UTC", expiredBody, `2025-07-01T00:00:00Z`, `2025-07-01T00:00:00+02:00`},
		{"but for no chain", exceptBody, `["order-17","order-18"]`, `[]`},
		{"but for null", exceptBody, `["order-17","order-18"]`, `null`},
		{"but for a chain that is not in a list", exceptBody, `["order-17","order-18"]`, `"order-17"`},
		{"but for a chain without a name", exceptBody, `"order-17"`, `""`},
		{"but for a chain twice", exceptBody, `"order-17"`, `"order-18"`},
		{"but for chains that are not sorted", exceptBody, `"order-17","order-18"`, `"order-18","order-17"`},
	})
}
