package recording

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/atomicfile"
	"jurat/internal/observe"
	"jurat/internal/relay"
)

const definitionsFolder = "definitions"

// definitions remember what servers last said of their tools, in a file for each server, so that a change between two sessions is seen. Names and
// digests are all that they keep.
type definitions struct {
	folder string
	turns  turns // for each file, from reading it to replacing it
}

// A listing is what is remembered of a server.
type listing struct {
	Agent  string                     `json:"agent"`
	Server string                     `json:"server"` // as records name it
	Tools  map[string]evidence.Digest `json:"tools"`
}

const (
	mostTools   = 10_000  // of one server; others are not remembered
	longestList = 4 << 20 // of a file
)

// unknownChange begins what a record says if a list of tools was not compared with the one before.
const unknownChange = "whether a tool is defined as it was before: "

// watched compares the answer to a tools/list with what is remembered of the server, seals each change and remembers the answer. done must be called when the act is sealed; nil: it has no such
// answer. If the answer, or what is remembered, cannot be read, the act says that nobody can know what changed; in the second case, the list takes its place.
//
// It comes before the list's own record: if a change cannot be sealed, closed mode neither hands the list out nor says that it did. In open mode the list passes, and its record says what is
// not known. What could not be sealed is found again with the next list. The error may also say that other answers of the server had not been noted when the context ended.
func (e *exchange) watched(ctx context.Context, act *observed.Act) (done func(), err error) {
	if act.Type != evidence.ObservedTool || act.Response == nil {
		return nil, nil
	}
	tools, unread := observe.Definitions(callOf(act))
	if unread != "" && act.Ended == evidence.Complete && act.Status < http.StatusMultipleChoices {
		if act.Response.Refused {
			unread = "the answer to tools/list cannot be decoded"
		}
		e.recorder.Tell.Error("a list of tools cannot be compared with the one before, and the record says so", "server", act.Upstream.Origin, "why", unread)
		act.Missing = append(act.Missing, unknownChange+unread)
	}
	if len(tools) == 0 {
		return nil, nil
	}
	server := act.Upstream.Origin
	if e.call.Path != "" && e.call.Method != "" && act.Status != 0 { // on HTTP a host may have several
		server += e.call.Path
	}
	d := &e.recorder.definitions
	file := d.file(act.Agent, e.call.Upstream, server)
	done, err = d.turns.enter(ctx, file, func() bool { return false })
	if err != nil {
		return nil, fmt.Errorf("waiting until an earlier answer of the server %s about its tools is sealed: %w", server, err)
	}
	known, err := readListing(file)
	if err != nil {
		e.recorder.Tell.Error("whether a server's tools changed is not known, and the record says so", "server", server, "error", err)
		act.Missing = append(act.Missing, unknownChange+"what was remembered of the server's tools cannot be read")
	}
	known.Agent, known.Server = act.Agent, name(server)
	err = e.recorder.sealChanges(ctx, act.At, act.ChainID, known, tools)
	err = errors.Join(err, known.keep(file)) // what was sealed is not sealed again
	if err != nil && e.recorder.Mode == relay.Open {
		e.recorder.Tell.Error("a list of tools was not compared with the one before, and the record says so", "server", known.Server, "error", err)
		act.Missing = append(act.Missing, unknownChange+inWords(err))
		err = nil
	}
	return done, err
}

// file is where a server is remembered. Two commands, or two addresses, are two servers.
func (d *definitions) file(agent, upstream, server string) string {
	digest := evidence.DigestOf([]byte(agent + "\x00" + upstream + "\x00" + server))
	return filepath.Join(d.folder, fmt.Sprintf("%x.json", digest[:]))
}

// readListing returns what is remembered of a server: nothing, if there is no such file or it cannot be read.
func readListing(file string) (*listing, error) {
	nothing := &listing{Tools: map[string]evidence.Digest{}}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nothing, nil
	}
	l := new(listing)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		err = d.Decode(l)
	}
	if err == nil && l.Tools == nil {
		err = errors.New("it names no tools")
	}
	if err != nil {
		return nothing, fmt.Errorf("what is remembered of a server's tools: %s: %w", file, err)
	}
	return l, nil
}

// sealChanges seals each change against what is known, and has it known. at is when the server said so.
func (r *Recorder) sealChanges(ctx context.Context, at time.Time, chain string, known *listing, list []observe.Definition) error {
	for tool, after := range digestsOf(list) {
		before, seen := known.Tools[tool]
		if seen && before != after {
			change := &observed.Event{Event: observed.ToolDefinitionChanged, Agent: known.Agent, Server: known.Server, Tool: tool, Before: before, After: after}
			if _, err := r.sealEvent(ctx, "", chain, at, change); err != nil {
				return fmt.Errorf("the definition of the tool %s changed, and that could not be sealed: %w", evidence.Abbreviate(tool), err)
			}
			r.Tell.Warn("a server says something else of a tool than before", "server", known.Server, "tool", tool, "before", before, "after", after)
		}
		if seen || len(known.Tools) < mostTools {
			known.Tools[tool] = after
		}
	}
	return nil
}

// digestsOf returns a digest for each tool. Of one that is defined more than once, it is of all its definitions.
func digestsOf(list []observe.Definition) map[string]evidence.Digest {
	tools := map[string]evidence.Digest{}
	for _, d := range list {
		tool := d.Name
		if !observed.IsPlain(tool) {
			tool = "(a name of the digest " + evidence.DigestOf([]byte(tool)).String() + ")"
		}
		if before, twice := tools[tool]; twice {
			d.Digest = evidence.DigestOf(append(before[:], d.Digest[:]...))
		}
		tools[tool] = d.Digest
	}
	return tools
}

func (l *listing) keep(file string) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if len(text) > longestList {
		return fmt.Errorf("what %s says of its tools is too long to be remembered", l.Server)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return atomicfile.Replace(file, text, 0o600)
}
