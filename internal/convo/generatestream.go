package convo

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ReadGenerateStream reads a stream of Gemini's streamGenerateContent: server-sent events, or one JSON array. The
// last chunk has a finish reason or a blocked prompt. It returns ErrCut with the answer so far, a *StreamError, or an
// error about a chunk that does not follow the protocol. The options are for each chunk's JSON.
func ReadGenerateStream(body []byte, options ...json.Options) (*GenerateAnswer, error) {
	var sum generateSum
	err := sum.read(body, json.JoinOptions(options...))
	return sum.answer(), err
}

type generateSum struct {
	whole      GenerateAnswer
	candidates numbered[candidateSum]
	values     int // in arguments that come in pieces
}

type candidateSum struct {
	GenerateCandidate
	calls []*partialCall
}

func (s *generateSum) read(body []byte, options json.Options) error {
	for data, err := range generateChunks(body, options) {
		if err != nil {
			return err
		}
		var chunk GenerateAnswer
		if err := json.Unmarshal(data, &chunk, options); err != nil {
			return notTheProtocol(err)
		}
		opened := chunk.Opened()
		err := s.add(*opened)
		if present(opened.Error) { // what stands beside it is kept
			return &StreamError{valueOf(map[string]jsontext.Value{"error": opened.Error})}
		}
		if err != nil {
			return err
		}
	}
	if !s.over() {
		return ErrCut
	}
	return nil
}

// generateChunks returns the chunks of a stream in either form. The error ErrCut ends an array without an end.
func generateChunks(body []byte, options json.Options) iter.Seq2[jsontext.Value, error] {
	return func(yield func(jsontext.Value, error) bool) {
		body := bytes.TrimPrefix(body, []byte("\ufeff"))
		if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
			for e := range answerEvents(body) {
				if !yield(e.Data, nil) {
					return
				}
			}
			return
		}
		d := jsontext.NewDecoder(bytes.NewBuffer(body), options) // a bytes.Buffer is read in place
		if _, err := d.ReadToken(); err != nil {
			yield(nil, ErrCut)
			return
		}
		for d.PeekKind() == jsontext.KindBeginObject {
			v, err := d.ReadValue()
			if err != nil {
				yield(nil, ErrCut)
				return
			}
			if !yield(v.Clone(), nil) {
				return
			}
		}
		if _, err := d.ReadToken(); err != nil {
			yield(nil, ErrCut)
		}
	}
}

func (s *generateSum) add(chunk GenerateAnswer) error {
	s.whole.ModelVersion = cmp.Or(chunk.ModelVersion, s.whole.ModelVersion)
	s.whole.ResponseID = cmp.Or(chunk.ResponseID, s.whole.ResponseID)
	if present(chunk.Usage) {
		s.whole.Usage = chunk.Usage
	}
	if chunk.PromptFeedback.BlockReason != "" {
		s.whole.PromptFeedback = chunk.PromptFeedback
	}
	for _, c := range chunk.Candidates {
		if c == nil {
			return errors.New("candidates: one is null")
		}
		sum, err := s.candidates.at(c.Index)
		if err != nil {
			return fmt.Errorf("candidates: %w", err)
		}
		sum.Index = c.Index
		sum.Content.Role = cmp.Or(c.Content.Role, sum.Content.Role)
		for _, part := range c.Content.Parts {
			if err := sum.take(part, &s.values); err != nil {
				return fmt.Errorf("partialArgs: %w", err)
			}
		}
		sum.FinishReason = cmp.Or(c.FinishReason, sum.FinishReason)
		sum.FinishMessage = cmp.Or(c.FinishMessage, sum.FinishMessage)
		if c.SafetyRatings != nil {
			sum.SafetyRatings = c.SafetyRatings
		}
	}
	return nil
}

// over reports that the stream is complete: the prompt is blocked, or every candidate has stopped.
func (s *generateSum) over() bool {
	if s.whole.PromptFeedback.BlockReason != "" {
		return true
	}
	for _, c := range s.candidates {
		if c.FinishReason == "" {
			return false
		}
	}
	return len(s.candidates) > 0
}

func (s *generateSum) answer() *GenerateAnswer {
	for _, c := range s.candidates.all() {
		for _, call := range c.calls {
			c.Content.Parts[call.part].FunctionCall.Args = call.args.value()
		}
		s.whole.Candidates = append(s.whole.Candidates, &c.GenerateCandidate)
	}
	return &s.whole
}
