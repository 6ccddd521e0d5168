package subject

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"

	"jurat/internal/convo"
)

// inspectLog reads an evaluation log of Inspect in its JSON form: {"eval", "samples": [{"id", "epoch", "messages",
// "scores", …}]}. See https://inspect.aisi.org.uk/reference/inspect_ai.log.html (EvalLog, EvalSample). Scores, targets and
// events stay outside the evidence.
func (t *reader) inspectLog(log members) error {
	samples, err := t.file.elements(log.list["samples"])
	if err != nil {
		return err
	}
	if len(samples) == 0 {
		return t.file.ErrorAt(log.list["samples"].from, "/samples", "a log without samples: expected at least one, for example {\"id\": \"s1\", \"epoch\": 1, \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}; a log that was written without samples cannot be tried")
	}
	for i, at := range samples {
		if len(t.found) == maxCases {
			return t.file.ErrorAt(at.from, "", fmt.Sprintf("more than %d samples: split the log", maxCases))
		}
		t.inspectSample(at, fmt.Sprintf("/samples/%d", i))
	}
	return nil
}

// inspectSample reads one sample. Its evidence is {"messages"} and, where a message refers to them, {"attachments"}.
func (t *reader) inspectSample(at span, pointer string) {
	sample, err := t.file.members(at)
	from := &Source{Kind: "inspect", ID: sample.text("id"), Epoch: sample.text("epoch")}
	messages, there := sample.get("messages")
	switch {
	case err != nil:
		err = t.file.ErrorAt(at.from, pointer, err.Error())
	case !there:
		err = t.file.ErrorAt(at.from, pointer, "a sample without messages: expected Inspect's, for example {\"id\": \"s1\", \"epoch\": 1, \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}")
	default:
		err = t.room(messages)
	}
	if err != nil {
		t.wrong(from.String(), err)
		return
	}
	n, err := t.messagesOf(sample, messages, pointer)
	if err != nil {
		t.wrong(from.String(), err)
		return
	}
	t.build(from.String(), n, InspectForm, from)
}

// messagesOf reads the messages of a sample, with the sample's attachments if a message refers to one.
func (t *reader) messagesOf(sample members, at span, pointer string) (*convo.Node, error) {
	messages, err := t.file.parse(at, pointer+"/messages")
	attached, there := sample.get("attachments")
	if err != nil || !there || !bytes.Contains(t.file.raw[at.from:at.to], []byte(Attachment)) {
		return messages, err
	}
	attachments, err := t.file.parse(attached, pointer+"/attachments")
	if err != nil {
		return nil, err
	}
	return t.file.Object(at.from, at.to, pointer, convo.Member{Name: "messages", Value: messages}, convo.Member{Name: "attachments", Value: attachments}), nil
}

// Limits of Inspect's packed log.
const (
	maxEntries = 20_000
	maxSample  = 64 << 20
)

// readZip reads an evaluation log of Inspect in its packed form (.eval): a ZIP archive with a file for each sample,
// samples/ID_epoch_N.json. See the recorder in
// https://github.com/UKGovernmentBEIS/inspect_ai/blob/main/src/inspect_ai/log/_recorders/eval.py.
func (t *reader) readZip() error {
	name := t.file.name
	archive, err := zip.NewReader(bytes.NewReader(t.file.raw), int64(len(t.file.raw)))
	if err != nil {
		return &Error{File: name, Reason: "a broken archive: " + err.Error()}
	}
	if len(archive.File) > maxEntries {
		return &Error{File: name, Reason: fmt.Sprintf("more than %d files in the archive", maxEntries)}
	}
	total, seen := 0, map[string]bool{}
	for _, f := range archive.File {
		if dir, base := path.Split(f.Name); dir != "samples/" || path.Ext(base) != ".json" {
			continue
		}
		if seen[f.Name] {
			return &Error{File: name, Reason: fmt.Sprintf("the archive has %q twice", f.Name)}
		}
		seen[f.Name] = true
		if len(t.found) == maxCases {
			return &Error{File: name, Reason: fmt.Sprintf("more than %d samples: split the log", maxCases)}
		}
		data, err := unpack(f)
		if err != nil {
			return &Error{File: name, Reason: fmt.Sprintf("%q: %v", f.Name, err)}
		}
		if total += len(data); total > 2*MaxTranscripts {
			return &Error{File: name, Reason: fmt.Sprintf("more than %d MiB of samples: split the log", 2*MaxTranscripts>>20)}
		}
		t.file = newFile(name+":"+f.Name, data)
		t.inspectSample(span{to: int64(len(data))}, "")
	}
	if len(t.found) == 0 {
		return &Error{File: name, Reason: "an archive without samples: expected a log of Inspect (.eval) with samples/ID_epoch_N.json"}
	}
	return nil
}

func unpack(f *zip.File) ([]byte, error) {
	file, err := f.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return nil, fmt.Errorf("packed by the method %d, which is not known here: write the log as JSON with 'inspect log convert --to json'", f.Method)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSample+1))
	if err == nil && len(data) > maxSample {
		err = fmt.Errorf("longer than %d MiB", maxSample>>20)
	}
	return data, err
}
