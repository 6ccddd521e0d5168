package subject

import _ "embed"

// ChatSchema is the JSON schema of a conversation in its plain form, chat messages.
//
//go:embed schemas/chat.json
var ChatSchema []byte

// CardSchema is the JSON schema of an agent card, as far as this package reads it.
//
//go:embed schemas/card.json
var CardSchema []byte
