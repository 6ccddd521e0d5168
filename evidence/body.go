package evidence

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/jsonform"
)

const (
	// MaxBody is the largest body in bytes that a record can hold, and that can be rebuilt from pieces.
	MaxBody = 32 << 20
	// MaxPieces is how many pieces a body may have.
	MaxPieces = 4096
)

// A Piece is a part of a body: bytes of its own, or a range of a body in an earlier record. A session of calls sends its whole context
// each time, and the log keeps it once.
type Piece struct {
	Own    []byte // if From is zero
	From   Digest // digest of the body that is copied from, as that record states it for the bytes that it seals
	At     int64  // offset in that body
	Length int64  // in bytes, at least 1
}

type base64Form struct {
	Base64 []byte `json:"base64"`
}

type copyForm struct {
	At     int64  `json:"at"`
	From   Digest `json:"from"`
	Length int64  `json:"length"`
}

type piecesForm struct {
	Pieces []jsontext.Value `json:"pieces"`
}

// ParseBody reads the member request_body or response_body: a text; or base64; or pieces. It checks the form and each length; whether
// the bodies exist from which pieces copy is for a reader of other records to find. Its errors are *FieldError and *SyntaxError.
func ParseBody(v jsontext.Value) ([]Piece, error) {
	own, notOwn := ownPiece(v)
	if notOwn == nil || v.Kind() == '"' {
		return []Piece{own}, notOwn
	}
	var form piecesForm
	if err := jsonform.DecodeForm(v, &form); err != nil {
		return nil, fmt.Errorf("want a string, or an object with base64 (%w) or pieces (%w)", notOwn, err)
	}
	if len(form.Pieces) == 0 || len(form.Pieces) > MaxPieces {
		return nil, fmt.Errorf("pieces: %d of them: want 1 to %d", len(form.Pieces), MaxPieces)
	}
	pieces, total := make([]Piece, len(form.Pieces)), int64(0)
	for i, value := range form.Pieces {
		piece, err := parsePiece(value)
		if err == nil {
			total += piece.Length // each is at most MaxBody
			err = tooLong(total)
		}
		if err != nil {
			return nil, fmt.Errorf("pieces: element %d: %w", i, err)
		}
		pieces[i] = piece
	}
	return pieces, nil
}

func tooLong(total int64) error {
	if total > MaxBody {
		return fmt.Errorf("the body is longer than %d bytes", MaxBody)
	}
	return nil
}

func parsePiece(v jsontext.Value) (Piece, error) {
	own, notOwn := ownPiece(v)
	if notOwn == nil {
		if own.Length == 0 {
			return Piece{}, errors.New("empty; leave it out")
		}
		return own, nil
	}
	var form copyForm
	if v.Kind() != '{' {
		return Piece{}, notOwn
	}
	if err := jsonform.DecodeForm(v, &form); err != nil {
		return Piece{}, fmt.Errorf("want a string, {base64} or {at, from, length}: %w", err)
	}
	switch {
	case form.From.IsZero():
		return Piece{}, errors.New("from: all zero: a digest of nothing")
	case form.At < 0 || form.At > MaxBody:
		return Piece{}, fmt.Errorf("at: want a whole number from 0 to %d", MaxBody)
	case form.Length < 1 || form.Length > MaxBody:
		return Piece{}, fmt.Errorf("length: want a whole number from 1 to %d", MaxBody)
	}
	return Piece{From: form.From, At: form.At, Length: form.Length}, nil
}

// ownPiece reads a text or base64.
func ownPiece(v jsontext.Value) (Piece, error) {
	var own []byte
	if v.Kind() == '"' {
		var err error
		if own, err = textBytes(v); err != nil {
			return Piece{}, err
		}
	} else {
		var form base64Form
		if err := jsonform.DecodeForm(v, &form); err != nil {
			return Piece{}, err
		}
		own = form.Base64
	}
	return Piece{Own: own, Length: int64(len(own))}, tooLong(int64(len(own)))
}

// FormatBody writes a body as ParseBody reads it. A body of one piece of its own is written without the list.
func FormatBody(pieces ...Piece) (jsontext.Value, error) {
	values := make([]jsontext.Value, len(pieces))
	for i, p := range pieces {
		if p.From.IsZero() {
			values[i] = formOf(p.Own)
		} else {
			values[i] = marshal(copyForm{p.At, p.From, p.Length})
		}
	}
	if len(pieces) == 1 && pieces[0].From.IsZero() { // it may be long: it is not read again
		return values[0], tooLong(int64(len(pieces[0].Own)))
	}
	v := marshal(piecesForm{values})
	_, err := ParseBody(v)
	return v, err
}

// formOf writes bytes as a text, if they are one that takes no more room than base64. A control character takes six bytes.
func formOf(own []byte) jsontext.Value {
	more := 0
	for _, c := range own {
		switch {
		case c == '"', c == '\\', c >= '\b' && c <= '\r' && c != '\v':
			more++
		case c < ' ':
			more += 5
		}
	}
	if more <= len(own)/3 && utf8.Valid(own) {
		return quoteIn(len(own)+more+len(`""`), own)
	}
	return marshal(base64Form{own})
}

// readBody checks the form of a body, unless it is sealed apart: then a text stands for a commitment, and every text is a body.
func readBody(v jsontext.Value) (jsontext.Value, error) {
	if v.Kind() == '"' && len(v)-len(`""`) <= MaxBody { // a text is no longer than its canonical form
		return v, nil
	}
	_, err := ParseBody(v)
	return v, err
}
