package api

import "jurat/evidence"

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
