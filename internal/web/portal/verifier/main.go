//go:build js && wasm

// Command verifier is the program of the verification portal. It runs in a Web Worker, which calls it, and reads
// files for it.
package main

import (
	"fmt"
	"io"
	"syscall/js"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/web/portal/visit"
	"jurat/internal/web/words"
)

// main gives the worker a function ask(what, argument, sources) that answers with JSON: {"answer": …} or {"error":
// "…"}. The call does all the work, and the worker handles no other message meanwhile; to cancel, the page ends the
// worker.
func main() {
	v := &visit.Visit{Now: time.Now, Progress: func(file int, read, size int64) {
		js.Global().Call("juratProgress", file, float64(read), float64(size))
	}}
	ask := js.FuncOf(func(_ js.Value, args []js.Value) any { return reply(v, args) })
	js.Global().Call("juratReady", ask)
	select {}
}

func reply(v *visit.Visit, args []js.Value) string {
	answer, err := answer(v, args[0].String(), []byte(args[1].String()), sources(args[2]))
	var form struct {
		Answer any    `json:"answer,omitempty"`
		Error  string `json:"error,omitzero"`
	}
	if form.Answer = answer; err != nil {
		form.Answer, form.Error = nil, err.Error()
	}
	doc, err := json.Marshal(form, jsontext.AllowInvalidUTF8(true)) // which replaces it by U+FFFD
	if err != nil {
		return `{"error":"the answer cannot be written"}`
	}
	return string(doc)
}

// A part is a range of a file's records to show.
type part struct {
	File  int        `json:"file"`
	From  int        `json:"from"`
	Count int        `json:"count"`
	Lang  words.Lang `json:"lang"`
}

func answer(v *visit.Visit, what string, argument []byte, sources []visit.Source) (any, error) {
	if what == "verify" {
		return v.Verify(argument, sources)
	}
	var p part
	if err := json.Unmarshal(argument, &p); err != nil {
		return nil, err
	}
	switch what {
	case "trust":
		if len(sources) != 1 {
			return nil, fmt.Errorf("%d trust files", len(sources))
		}
		return v.Trust(sources[0])
	case "view":
		return v.View(p.File, p.Lang)
	case "records":
		return v.Records(p.File, p.From, p.Count, p.Lang)
	}
	return nil, fmt.Errorf("unknown question %q", what)
}

func sources(list js.Value) []visit.Source {
	var all []visit.Source
	for i := range list.Length() {
		s := list.Index(i)
		all = append(all, visit.Source{Name: s.Get("name").String(), Size: int64(s.Get("size").Float()), From: file{s}})
	}
	return all
}

// A file is read through the worker, which reads synchronously.
type file struct{ source js.Value }

func (f file) ReadAt(p []byte, offset int64) (n int, err error) {
	defer func() {
		if thrown := recover(); thrown != nil { // for example because the file was changed on the disk meanwhile
			if _, ok := thrown.(js.Error); !ok {
				panic(thrown)
			}
			err = fmt.Errorf("reading: %v", thrown)
		}
	}()
	n = js.CopyBytesToGo(p, f.source.Call("read", float64(offset), len(p)))
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
