package evidence

import (
	"slices"
	"testing"
)

const (
	startBody  = `{"configuration":"` + aDigest + `","event":"start","mode":"closed","vantage":"proxy","version":"jurat 1.9"}`
	stopBody   = `{"event":"stop","reason":"SIGTERM"}`
	stopCounts = `{"calls":3,"event":"stop","reason":"SIGTERM","since":"2026-01-31T16:14:00Z"}`
	modeBody   = `{"event":"mode","mode":"open","reason":"the disk is full"}`
	setBody    = `{"configuration":"` + bDigest + `","event":"configuration","reason":"read again"}`
	gapBody    = `{"event":"gap","missed":[{"agent":"b","calls":2,"minute":"2026-01-31T16:14:00Z"},{"agent":"a","calls":1,"minute":"2026-01-31T16:15:00Z"}],"reason":"the disk is full"}`
	crashBody  = `{"agent":"a","began":"2026-01-31T16:14:00.5Z","event":"lost_in_crash","protocol":"openai.chat","request_sha256":"` + aDigest + `"}`
	toolBody   = `{"after":"` + bDigest + `","agent":"a","before":"` + aDigest + `","event":"tool_definition_changed","server":"files","tool":"read"}`
	recorderID = "recorder-gate"
)

// recorderVectors are events of recorders, and bodies that each break one rule.
func recorderVectors(t *testing.T) []actVector {
	t.Helper()
	all := makeActs(t, "recorder", RecorderEvent, recorderID, [][2]string{{"start", startBody}, {"stop", stopBody}, {"heartbeat", heartbeatBody}, {"mode", modeBody},
		{"configuration", setBody}, {"gap", gapBody}, {"lost in crash", crashBody}, {"tool definition changed", toolBody}, {"stop that counts", stopCounts}}, []badAct{
		{"an event that is none", stopBody, `"stop"`, `"pause"`},
		{"without an event", stopBody, `"event":"stop",`, ``},
		{"without a reason", stopBody, `,"reason":"SIGTERM"`, ``},
		{"an empty reason", stopBody, `"SIGTERM"`, `""`},
		{"a member of another event", stopBody, `"event":"stop"`, `"event":"stop","mode":"open"`},
		{"an unknown member", stopBody, `"SIGTERM"`, `"SIGTERM","zone":1`},
		{"a mode that is none", modeBody, `"open"`, `"ajar"`},
		{"without a mode", modeBody, `"mode":"open",`, ``},
		{"a vantage that is none", startBody, `"proxy"`, `"moon"`},
		{"settings of zeros", startBody, aDigest, "sha256:0000000000000000000000000000000000000000000000000000000000000000"},
		{"without settings", startBody, `"configuration":"` + aDigest + `",`, ``},
		{"fewer calls than none", heartbeatBody, `"calls":3`, `"calls":-1`},
		{"half a call", heartbeatBody, `"calls":3`, `"calls":3.5`},
		{"since no time", heartbeatBody, `16:14:00Z`, `16:14:00`},
		{"without calls", heartbeatBody, `"calls":3,`, ``},
		{"nothing missed", gapBody, `{"agent":"b","calls":2,"minute":"2026-01-31T16:14:00Z"},{"agent":"a","calls":1,"minute":"2026-01-31T16:15:00Z"}`, ``},
		{"no call missed", gapBody, `"calls":2`, `"calls":0`},
		{"missed by nobody", gapBody, `"agent":"b"`, `"agent":""`},
		{"missed at no time", gapBody, `16:14:00Z`, `16:14`},
		{"missed out of order", gapBody, `16:14:00Z`, `16:16:00Z`},
		{"missed twice", gapBody, `"agent":"b","calls":2,"minute":"2026-01-31T16:14:00Z"`, `"agent":"a","calls":2,"minute":"2026-01-31T16:15:00Z"`},
		{"missed, and more", gapBody, `"calls":2`, `"calls":2,"errors":1`},
		{"a crash at no time", crashBody, `"2026-01-31T16:14:00.5Z"`, `""`},
		{"a crash without a digest", crashBody, `,"request_sha256":"` + aDigest + `"`, ``},
		{"a tool without a name", toolBody, `"tool":"read"`, `"tool":""`},
		{"a tool without a definition", toolBody, `"after":"` + bDigest + `",`, ``},
		{"a stop that counts since no time", stopCounts, `,"since":"2026-01-31T16:14:00Z"`, ``},
		{"a stop that counts nothing since a time", stopCounts, `"calls":3,`, ``},
		{"a stop that counts fewer than none", stopCounts, `"calls":3`, `"calls":-1`},
		{"a stop that counts since another text", stopCounts, `16:14:00Z`, `16:14`},
		{"a stop that counts without a reason", stopCounts, `,"reason":"SIGTERM"`, ``},
	})
	// A recorder's event may stand in any chain that is neither a trial's nor the operator's.
	return slices.DeleteFunc(all, func(v actVector) bool { return v.ChainID != recorderID })
}
