package evidence

import (
	"encoding/base64"
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
	return slices.Concat(expiryVectors(t), certificateVectors(t), revocationVectors(t), trialVectors(t), recorderVectors(t))
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

const (
	issuedBody  = `{"by":"A. Person","ca":"` + aDigest + `","certificate":"MAA=","event":"issued","reason":"a request"}`
	revokedBody = `{"by":"A. Person","ca":"` + aDigest + `","cause":"keyCompromise","event":"revoked","from":"2026-01-31T16:15:00Z","invalid_from":"2026-01-30T00:00:00Z",` +
		`"reason":"a theft","serial":"a1b2c3"}`
	unspecifiedBody = `{"by":"A. Person","ca":"` + aDigest + `","cause":"unspecified","event":"revoked","from":"2026-01-31T16:15:00Z","reason":"a change","serial":"1"}`

	crlBody = `{"by":"A. Person","ca":"` + aDigest + `","digest":"` + bDigest + `","kind":"crl","next_update":"2026-02-07T16:15:00Z","number":"12","reason":"daily",` +
		`"this_update":"2026-01-31T16:15:00Z"}`
	ocspBody = `{"by":"A. Person","ca":"` + aDigest + `","digest":"` + bDigest + `","kind":"ocsp","next_update":"2026-02-07T16:15:00Z","reason":"asked for","serial":"a1b2c3",` +
		`"this_update":"2026-01-31T16:15:00Z"}`
)

func certificateVectors(t *testing.T) []actVector {
	t.Helper()
	longest := strings.Replace(revokedBody, "a1b2c3", "f"+strings.Repeat("0", 39), 1)
	return makeActs(t, "certificate", CertificateEvent, OperatorPrefix+"certificates",
		[][2]string{{"issued", issuedBody}, {"revoked", revokedBody}, {"revoked without a cause", unspecifiedBody}, {"revoked, with the longest serial number", longest}}, []badAct{
			{"an event that is none", issuedBody, `"issued"`, `"renewed"`},
			{"without an event", issuedBody, `"event":"issued",`, ``},
			{"by nobody", issuedBody, `"A. Person"`, `""`},
			{"without a reason", issuedBody, `,"reason":"a request"`, ``},
			{"of a CA without a key", issuedBody, `"ca":"` + aDigest + `",`, ``},
			{"of a CA of zeros", issuedBody, aDigest, "sha256:" + strings.Repeat("0", 64)},
			{"with a member more", issuedBody, `{`, `{"at":1,`},
			{"issued without a certificate", issuedBody, `"certificate":"MAA=",`, ``},
			{"issued, an empty certificate", issuedBody, `MAA=`, ``},
			{"issued, not base64", issuedBody, `MAA=`, `M`},
			{"issued, base64 without its end", issuedBody, `MAA=`, `MAA`},
			{"issued, too large", issuedBody, `MAA=`, base64.StdEncoding.EncodeToString(make([]byte, 65537))},
			{"issued, with a serial number", issuedBody, `}`, `,"serial":"1"}`},
			{"issued, with a cause", issuedBody, `"certificate"`, `"cause":"unspecified","certificate"`},
			{"issued, from a time on", issuedBody, `,"reason"`, `,"from":"2026-01-31T16:15:00Z","reason"`},
			{"revoked, with a certificate", unspecifiedBody, `"event"`, `"certificate":"MAA=","event"`},
			{"revoked without a serial number", revokedBody, `,"serial":"a1b2c3"`, ``},
			{"revoked, the serial number 0", unspecifiedBody, `"serial":"1"`, `"serial":"0"`},
			{"revoked, a zero before the serial number", unspecifiedBody, `"serial":"1"`, `"serial":"01"`},
			{"revoked, a serial number in capitals", revokedBody, `a1b2c3`, `A1B2C3`},
			{"revoked, a serial number with colons", revokedBody, `a1b2c3`, `a1:b2:c3`},
			{"revoked, a serial number of 41 digits", revokedBody, `a1b2c3`, strings.Repeat("1", 41)},
			{"revoked, a number for a serial number", unspecifiedBody, `"serial":"1"`, `"serial":1`},
			{"revoked without a cause", revokedBody, `"cause":"keyCompromise",`, ``},
			{"revoked, for what is no cause", revokedBody, `keyCompromise`, `removeFromCRL`},
			{"revoked, a cause in other letters", revokedBody, `keyCompromise`, `keycompromise`},
			{"revoked without a time", revokedBody, `"from":"2026-01-31T16:15:00Z",`, ``},
			{"revoked, from no time on", revokedBody, `2026-01-31T16:15:00Z`, `2026-01-32T16:15:00Z`},
			{"revoked, invalid from no time on", revokedBody, `2026-01-30T00:00:00Z`, `yesterday`},
			{"revoked, invalid from later on", revokedBody, `2026-01-30T00:00:00Z`, `2026-01-31T16:15:00.001Z`},
		})
}

func revocationVectors(t *testing.T) []actVector {
	t.Helper()
	return makeActs(t, "revocation", RevocationEvidence, OperatorPrefix+"certificates",
		[][2]string{{"a list", crlBody}, {"a response", ocspBody}, {"the list 0", strings.Replace(crlBody, `"12"`, `"0"`, 1)},
			{"for a moment", strings.Replace(crlBody, `2026-02-07`, `2026-01-31`, 1)}}, []badAct{
			{"a kind that is none", crlBody, `"crl"`, `"delta"`},
			{"without a kind", crlBody, `"kind":"crl",`, ``},
			{"by nobody", crlBody, `"A. Person"`, `""`},
			{"without a reason", crlBody, `"reason":"daily",`, ``},
			{"without a CA", crlBody, `"ca":"` + aDigest + `",`, ``},
			{"without a digest", crlBody, `"digest":"` + bDigest + `",`, ``},
			{"a digest of zeros", crlBody, bDigest, "sha256:" + strings.Repeat("0", 64)},
			{"with a member more", crlBody, `{`, `{"at":1,`},
			{"a list without a number", crlBody, `"number":"12",`, ``},
			{"a list with a number that is none", crlBody, `"12"`, `"0x12"`},
			{"a list with a zero before its number", crlBody, `"12"`, `"012"`},
			{"a list with a number of 50 digits", crlBody, `"12"`, `"` + strings.Repeat("1", 50) + `"`},
			{"a list with a number below zero", crlBody, `"12"`, `"-1"`},
			{"a list with a number that is not a text", crlBody, `"12"`, `12`},
			{"a list of a serial number", crlBody, `"reason":"daily",`, `"reason":"daily","serial":"1",`},
			{"a response with a number", ocspBody, `"reason"`, `"number":"1","reason"`},
			{"a response without a serial number", ocspBody, `"serial":"a1b2c3",`, ``},
			{"a response with a serial number that is none", ocspBody, `a1b2c3`, `xyz`},
			{"without this_update", crlBody, `,"this_update":"2026-01-31T16:15:00Z"`, ``},
			{"this_update is no time", crlBody, `2026-01-31T16:15:00Z`, `2026-01-31`},
			{"without next_update", crlBody, `"next_update":"2026-02-07T16:15:00Z",`, ``},
			{"next_update is before this_update", crlBody, `2026-02-07T16:15:00Z`, `2026-01-31T16:14:59Z`},
		})
}
