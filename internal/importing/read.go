package importing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/convo"
	"jurat/internal/fault"
	"jurat/internal/subject"
)

// Exchanges reads the file from its beginning to its end. A *Fault among the errors says that one entry cannot be read, and the next
// follows; any other error is the last.
func (f *File) Exchanges(ctx context.Context) iter.Seq2[*Exchange, error] {
	return func(yield func(*Exchange, error) bool) {
		r := &reader{File: f, ctx: ctx, yield: yield}
		if err := r.read(); err != nil && !errors.Is(err, errStop) {
			yield(nil, err)
		}
	}
}

// errStop says that nobody wants more.
var errStop = errors.New("stopped")

// A reader reads the entries of a file once.
type reader struct {
	*File
	ctx   context.Context
	yield func(*Exchange, error) bool
}

// give hands on an exchange; nil is none.
func (r *reader) give(e *Exchange) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if e == nil {
		return nil
	}
	e.Conversation = r.fit(e.Conversation)
	if !r.yield(e, nil) {
		return errStop
	}
	return nil
}

// mostName leaves room in the name of a chain for that of the agent.
const mostName = 90

// fit returns a name that a chain can have: a digest stands for one that is none, or that others wrote and that may stand nowhere where nobody can erase it.
func (r *reader) fit(name string) string {
	if len(name) <= mostName && evidence.CheckName(name) == nil && isPlainOrNone(strings.TrimPrefix(name, r.label)) {
		return name
	}
	return "sha256-" + hex.EncodeToString(sum(name))[:40]
}

func sum(text string) []byte {
	d := sha256.Sum256([]byte(text))
	return d[:]
}

// bad tells of an entry that cannot be read.
func (r *reader) bad(place string, err error) error {
	if !r.yield(nil, r.fault(place, err)) {
		return errStop
	}
	return nil
}

func (r *reader) read() error {
	switch r.Format {
	case ClaudeCode:
		return r.session(newClaudeCode(r))
	case Codex:
		return r.session(newCodex(r))
	case OTel:
		return r.otel()
	}
	if r.header.archive {
		return r.samples()
	}
	return r.values(r.entry)
}

// entry reads one entry of a file that has many.
func (r *reader) entry(number int, place string, v jsontext.Value) error {
	var err error
	guarded := fault.Guard(func() error { err = r.entryOf(number, place, v); return nil })
	if guarded != nil {
		return r.bad(place, guarded)
	}
	return err
}

func (r *reader) entryOf(number int, place string, v jsontext.Value) error {
	switch r.Format {
	case Promptfoo:
		return r.result(number, place, v)
	case Inspect:
		return r.sample(number, place, v)
	}
	return r.conversation(number, place, v)
}

// values calls do for each entry, wherever the file has them.
func (r *reader) values(do func(number int, place string, v jsontext.Value) error) error {
	h := &r.header
	switch {
	case h.lines:
		return r.eachLine(do)
	case h.whole:
		data, err := io.ReadAll(io.LimitReader(r.text(), maxValue+1))
		if err == nil && len(data) > maxValue {
			err = errLong
		}
		if err != nil {
			return r.broken("the document", err)
		}
		return do(0, "the document", data)
	case h.single:
		d := newStream(r.text())
		v, err := d.value()
		if err == nil {
			err = d.end()
		}
		if err != nil {
			return r.broken("the document", err)
		}
		return do(0, "the document", v)
	}
	return r.list(do)
}

// list calls do for each entry of a document that has a list of them.
func (r *reader) list(do func(number int, place string, v jsontext.Value) error) error {
	d := newStream(r.text())
	pointer := ""
	for _, name := range r.header.path {
		pointer += "/" + name
	}
	last, stopped := 0, error(nil)
	found, err := d.at(r.header.path, func(i int, v jsontext.Value) error {
		last = i
		stopped = do(i+1, pointer+"/"+strconv.Itoa(i), v)
		return stopped
	})
	if stopped != nil {
		return stopped
	}
	if err == nil {
		err = d.end()
	}
	if err != nil {
		return r.broken("after "+pointer+"/"+strconv.Itoa(last), err)
	}
	if !found {
		return r.broken(pointer, errors.New("there is no list of entries"))
	}
	return nil
}

// eachLine calls do for each line.
func (r *reader) eachLine(do func(number int, place string, v jsontext.Value) error) error {
	return lines(r.text(), func(number int, line []byte) error {
		v := jsontext.Value(line).Clone()
		if !v.IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
			return r.bad(lineAt(number), errors.New("it is no JSON: expected one JSON value in each line"))
		}
		return do(number, lineAt(number), v)
	}, func(number int) error { return r.bad(lineAt(number), errLong) })
}

// A session reads the lines of a session file.
type session interface {
	line(place string, o object, raw jsontext.Value) error
	end() error
}

func (r *reader) session(s session) error {
	err := r.values(func(_ int, place string, v jsontext.Value) error {
		o := convo.ObjectOf(v)
		if o == nil {
			return r.bad(place, errors.New("expected an object"))
		}
		var err error
		if guarded := fault.Guard(func() error { err = s.line(place, o, v); return nil }); guarded != nil {
			return r.bad(place, guarded)
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.end()
}

// part reads one message or item into a unit. It names the kinds of what is not known here and was passed over.
func (r *reader) part(u *unit, form subject.Form, value jsontext.Value, what string) error {
	read, err := subject.ReadPart(r.Name+":"+u.place, form, slices.Concat([]byte("["), value, []byte("]")))
	if err != nil {
		return err
	}
	for _, kind := range read.Strange {
		u.lacks = lacking(u.lacks, "what "+what+" of a kind says that is not known here: "+plain(kind))
	}
	for _, o := range read.LeftOut {
		u.left = append(u.left, o.Kind)
	}
	u.messages = read.Messages
	return nil
}

func isPlainOrNone(text string) bool { return text == "" || observed.IsPlain(text) }

// plain returns a name that others wrote, if it may stand where nobody can erase it.
func plain(name string) string {
	if !isPlainOrNone(name) {
		return "(its name is not kept)"
	}
	return name
}
