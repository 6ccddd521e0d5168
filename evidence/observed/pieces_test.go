package observed_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/test/must"
)

// edited returns a body with random insertions, deletions and moves.
func edited(random *rand.Rand, body []byte) []byte {
	body = slices.Clone(body)
	for range random.IntN(6) {
		at := random.IntN(len(body) + 1)
		n := min(random.IntN(2000), len(body)-at)
		switch random.IntN(3) {
		case 0:
			body = slices.Insert(body, at, randomBytes(random, random.IntN(1500))...)
		case 1:
			body = slices.Delete(body, at, at+n)
		case 2:
			moved := slices.Clone(body[at : at+n])
			body = append(moved, slices.Delete(body, at, at+n)...)
		}
	}
	return body
}

// randomBytes returns bytes, some of which repeat a block, and some of which are no UTF-8.
func randomBytes(random *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.IntN(256))
	}
	if random.IntN(3) == 0 {
		return bytes.Repeat(b[:min(len(b), 7)], 200)
	}
	return b
}

// TestPiecesMakeTheBody: whatever pieces are found, written and read again, they make the body.
func TestPiecesMakeTheBody(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	copied := 0
	for n := range 400 {
		first, second := randomBytes(random, random.IntN(20_000)), randomBytes(random, random.IntN(5_000))
		body := edited(random, append(slices.Clone(first), second...))
		value := must.Get(evidence.FormatBody(observed.Pieces(body, first, second)...))(t)
		pieces := must.Get(evidence.ParseBody(value))(t)
		var w observed.Window
		w.Keep(first)
		w.Keep(second)
		again, err := w.Rebuild(pieces)
		must.Need(t, err == nil && bytes.Equal(again, body), "%d: %d bytes became %d: %v", n, len(body), len(again), err)
		copied += int(observed.Copies(pieces))
	}
	must.Hold(t, copied >= 1_000_000, "only %d bytes were copied", copied)
}

// TestPiecesOfTwo: bytes of two earlier bodies are found in either, such as a picture of another conversation.
func TestPiecesOfTwo(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	picture, before := make([]byte, 50_000), make([]byte, 20_000)
	for i := range picture {
		picture[i] = byte(random.IntN(256))
	}
	for i := range before {
		before[i] = byte(random.IntN(256))
	}
	body := slices.Concat(before, []byte("new"), picture)
	pieces := observed.Pieces(body, before, picture)
	must.Hold(t, len(pieces) == 3 && pieces[0].Length == 20_000 && string(pieces[1].Own) == "new" && pieces[2].Length == 50_000,
		"%d pieces", len(pieces))
	pieces = observed.Pieces(slices.Concat(before[:200], picture[:400]), before)
	must.Hold(t, len(pieces) == 1 && pieces[0].From.IsZero(), "200 bytes are copied, which takes more room than they: %d pieces", len(pieces))
	pieces = observed.Pieces(nil, before)
	must.Hold(t, len(pieces) == 1 && pieces[0].Length == 0, "an empty body has %d pieces", len(pieces))
	pieces = observed.Pieces(body)
	must.Hold(t, len(pieces) == 1, "without earlier bodies there are %d pieces", len(pieces))
}

func TestRebuildRefuses(t *testing.T) {
	source := []byte("0123456789")
	var w observed.Window
	w.Keep(source)
	digest := evidence.DigestOf(source)
	for _, test := range []struct {
		piece evidence.Piece
		want  error
	}{
		{evidence.Piece{From: digest, At: 0, Length: 10}, nil},
		{evidence.Piece{From: digest, At: 9, Length: 1}, nil},
		{evidence.Piece{From: digest, At: 10, Length: 1}, observed.ErrBeyond},
		{evidence.Piece{From: digest, At: 1, Length: 10}, observed.ErrBeyond},
		{evidence.Piece{From: digest, At: 1 << 25, Length: 1}, observed.ErrBeyond},
		{evidence.Piece{From: evidence.DigestOf(nil), At: 0, Length: 1}, observed.ErrMissing},
	} {
		must.Fail(t, test.want, test.piece)(w.Rebuild([]evidence.Piece{test.piece}))
	}
}

// TestWindowForgets: the oldest bodies leave the window, and only they.
func TestWindowForgets(t *testing.T) {
	var w observed.Window
	var digests []evidence.Digest
	for i := range 5 {
		body := bytes.Repeat([]byte{byte(i)}, observed.MaxWindow/4)
		w.Keep(body)
		w.Keep(slices.Clone(body)) // counts once
		digests = append(digests, evidence.DigestOf(body))
	}
	for i, digest := range digests {
		_, err := w.Rebuild([]evidence.Piece{{From: digest, At: 0, Length: 1}})
		must.Equal(t, errors.Is(err, observed.ErrMissing), i == 0, "body", i, err)
	}
}

// session returns the requests of a session, each of which has the whole context before it.
func session(calls, context int) (requests [][]byte) {
	random := rand.New(rand.NewPCG(5, 5))
	words := strings.Fields("the parcel was sent to Kassel yesterday, and \"nobody\" knows\\nwhether it has come")
	text := func(n int) string {
		var b strings.Builder
		for b.Len() < n {
			b.WriteString(words[random.IntN(len(words))] + " ")
		}
		return b.String()
	}
	messages := []string{fmt.Sprintf(`{"role":"system","content":%q}`, text(context*9/10))}
	for range calls {
		messages = append(messages, fmt.Sprintf(`{"role":"user","content":%q}`, text(context/10/calls)))
		requests = append(requests, []byte(`{"model":"m","messages":[`+strings.Join(messages, ",")+`],"stream":true,"tools":[{"type":"function"}]}`))
		messages = append(messages, fmt.Sprintf(`{"role":"assistant","content":%q}`, text(200)))
	}
	return requests
}

// TestSessionIsKeptOnce: the bodies of 100 calls, each with 400 KB of context, take less than 1.2 times the longest, and each is rebuilt.
func TestSessionIsKeptOnce(t *testing.T) {
	requests := session(100, 400_000)
	var w observed.Window
	var earlier [][]byte
	total, longest := 0, 0
	for i, body := range requests {
		value := must.Get(evidence.FormatBody(observed.Pieces(body, earlier...)...))(t)
		pieces := must.Get(evidence.ParseBody(value))(t)
		again, err := w.Rebuild(pieces)
		must.Need(t, err == nil && bytes.Equal(again, body), "call %d: %v", i, err)
		w.Keep(body)
		earlier = [][]byte{body}
		total, longest = total+len(value), max(longest, len(body))
	}
	t.Logf("%d bytes of records for requests of at most %d bytes", total, longest)
	must.Hold(t, total <= longest*6/5, "%d bytes for a longest request of %d", total, longest)
}
