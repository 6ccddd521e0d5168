// Package api defines the HTTP interface between an installation of jurat and its clients: requests, answers, and
// problems. Server and client use the same types and errors, so they cannot disagree.
//
// docs/api.md describes the interface to people, /openapi.json of every server to programs. Sealed records and
// bundles are sent as files (docs/format.md).
package api

import (
	"encoding/json"

	"jurat/evidence"
)

// IdempotencyKey is the header by which the server recognises a repeated POST. The same key and the same body get the
// same answer and create nothing twice, even after a crash of either side.
const IdempotencyKey = "Idempotency-Key"

// A Review is a person's decision on a record. The server adds the reviewer, the record, and a missing time.
type Review struct {
	ApprovalStatus     string          `json:"approval_status"`               // approved, approved_with_modifications or rejected
	ModifiedResponse   json.RawMessage `json:"modified_response,omitzero"`    // string, object or array: the text to give instead; required exactly for approved_with_modifications
	Changes            json.RawMessage `json:"changes,omitzero"`              // string, object or array: what was changed, and the reason for the decision
	Context            json.RawMessage `json:"context,omitzero"`              // string, object or array
	Timestamp          string          `json:"timestamp,omitzero"`            // RFC 3339, UTC with Z
	ActionType         string          `json:"action_type,omitzero"`          // human_review
	ReviewerID         string          `json:"reviewer_id,omitzero"`          // the token's name
	OriginalResponseID string          `json:"original_response_id,omitzero"` // the record's id
}

// A Property is a statement about a value that is sealed apart. The server proves it without showing the value.
type Property struct {
	Form     string            `json:"form"`              // range, in, not_in or age_at_least
	Pointer  string            `json:"pointer"`           // a provable member of the record
	Lo       json.RawMessage   `json:"lo,omitzero"`       // range
	Hi       json.RawMessage   `json:"hi,omitzero"`       // range
	Set      []json.RawMessage `json:"set,omitzero"`      // in and not_in
	Years    int               `json:"years,omitzero"`    // age_at_least
	At       string            `json:"at,omitzero"`       // age_at_least: a date, as 2026-11-23
	Audience string            `json:"audience,omitzero"` // for whom the proof is made; part of what is proved
}

// A Delivery names the review that approved the delivered answer.
type Delivery struct {
	Review string `json:"review"` // record id
}

// A Listing is a page of a list of records, in the order of the log.
type Listing struct {
	Records []Entry `json:"records"`
	Next    string  `json:"next,omitzero"` // cursor of the next page; absent: this is the last one for now
}

// An Entry summarises a record.
type Entry struct {
	Index      int64  `json:"index"` // place in the log, from 0
	RecordID   string `json:"record_id"`
	Digest     string `json:"digest"` // of the payload
	ActionType string `json:"action_type"`
	Role       string `json:"role"`
	Actor      string `json:"actor"`
	Timestamp  string `json:"timestamp"` // as the actor says
	ChainID    string `json:"chain_id,omitzero"`
	RequestID  string `json:"request_id,omitzero"`
}

// A GrantState says whether a token is valid.
type GrantState string

const (
	GrantGood    GrantState = "good"
	GrantExpired GrantState = "expired"
	GrantRevoked GrantState = "revoked"
)

// A Grant says what the bearer of a token may do. The token itself is nowhere.
type Grant struct {
	Token    evidence.Digest `json:"token"` // SHA-256 of the token
	Name     string          `json:"name"`
	Roles    []string        `json:"roles"` // agent, submitter, reviewer, auditor or operator; sorted
	Since    string          `json:"since"`
	NotAfter string          `json:"not_after"`
	State    GrantState      `json:"state"`
	Session  bool            `json:"session"` // a browser's session, opened with a token or a link
	By       string          `json:"by"`
	Reason   string          `json:"reason"`
}

// AccessList says who may do what.
type AccessList struct {
	Grants []Grant  `json:"grants"`
	Public []string `json:"public_chains"`
	Agents []string `json:"public_agents"`
}

// A Revocation ends a token, and every session that was opened with it.
type Revocation struct {
	Reason string `json:"reason"` // at most 1,000 bytes; it is recorded
}
