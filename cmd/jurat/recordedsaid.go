package main

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/observe"
)

// withWords returns the records with what recorders saw said in prompt and response: it is in the bytes of these records alone.
func withWords(records []*evidence.Record) []*evidence.Record {
	list, window := slices.Clone(records), new(observed.Window)
	for i, r := range records {
		if o := r.Payload.Observed; o != nil {
			list[i] = wordsOf(r, o, window.Read(observed.Open(r)))
		}
	}
	return list
}

func wordsOf(r *evidence.Record, o *evidence.Observed, read observed.Reading) *evidence.Record {
	said, _ := observe.Project(observe.CallOf(o, read.Request, read.Response)) // where it cannot be read, the bytes are looked through
	made := *r
	p := &made.Payload
	p.SealedApart = slices.Clone(p.SealedApart)
	fill(p, "/prompt", &p.Prompt, said.Prompt, o.Request, read.Request)
	output := said.Output
	for _, c := range said.ToolCalls { // their texts stand in a text, with its escapes
		output = alongside(output, jsontext.Value(c.Arguments))
	}
	fill(p, "/response", &p.Response, output, o.Response, read.Response)
	return &made
}

// fill sets a member to what was read: the record's own value stays where nothing was, and else the bytes stand in for it, as a text and as the
// JSON that they may be. If the bytes are not in the file, the member is withheld.
func fill(p *evidence.Payload, pointer string, member *jsontext.Value, read jsontext.Value, stated *evidence.ObservedBody, body []byte) {
	switch {
	case read != nil:
		*member = read
		p.SealedApart = slices.DeleteFunc(p.SealedApart, func(at string) bool { return at == pointer })
	case *member != nil || p.Observed.Vantage == evidence.Telemetry:
	case body != nil:
		text, _ := jsontext.AppendQuote(nil, strings.ToValidUTF8(string(body), "\uFFFD"))
		*member = alongside(text, body)
	case stated != nil && stated.Bytes > 0:
		p.SealedApart = append(p.SealedApart, pointer)
	}
}

// alongside puts a value beside another; either may be none.
func alongside(value, more jsontext.Value) jsontext.Value {
	switch {
	case !more.IsValid():
		return value
	case value == nil:
		return more
	}
	return slices.Concat(jsontext.Value("["), value, jsontext.Value(","), bytes.TrimSpace(more), jsontext.Value("]"))
}
