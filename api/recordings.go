package api

import "jurat/evidence"

// Recordings is one page of the chains in which recorders saw something, the one with the newest record first. It can be short or empty: as
// long as it has a cursor, there may be more.
type Recordings struct {
	Recordings []Recording `json:"recordings"`
	Next       string      `json:"next,omitzero"` // cursor of the next page; "": this is the last one
	Index      IndexState  `json:"index,omitzero"`
}

// A Recording is a chain in which recorders saw something. Each list of names has at most 20.
type Recording struct {
	Chain     string             `json:"chain"`
	Agents    []string           `json:"agents"`    // whose acts were seen
	Recorders []string           `json:"recorders"` // by whom
	Models    []string           `json:"models"`    // that answered, by the providers' word; otherwise that were asked
	Protocols []string           `json:"protocols"`
	Vantages  []evidence.Vantage `json:"vantages"` // from where it was seen

	First string `json:"first"` // when the first act began, by the recorder's clock
	Last  string `json:"last"`  // when the last act ended

	Acts   int64        `json:"acts"`            // that were seen
	Calls  int64        `json:"calls"`           // of models, among them
	Broken int64        `json:"broken"`          // acts that did not come to their end
	Lost   int64        `json:"lost"`            // of these, those during which the recorder died
	Missed int64        `json:"missed"`          // calls of these agents that passed without a record in this time, by the recorders' word
	Tokens *TokenCounts `json:"tokens,omitzero"` // absent: no provider reported any
	Trials []TrialLine  `json:"trials"`          // that judged records of the chain, the oldest first, as far as the caller may see them
}

// TokenCounts are sums of what providers reported.
type TokenCounts struct {
	Input  int64 `json:"input"`  // tokens read
	Output int64 `json:"output"` // tokens written
	Calls  int64 `json:"calls"`  // that reported counts
}
