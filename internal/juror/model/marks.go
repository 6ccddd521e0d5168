package model

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"jurat/evidence"
)

// Labels of the derived tokens. They contain the format's version, so that two versions never share a token.
const (
	boundaryLabel = "jurat/prompt/v2 evidence"
	guardLabel    = "jurat/prompt/v2 guard"
	juryLabel     = "jurat/prompt/v2 jury"
	codeLabel     = "jurat/prompt/v2 code"
	orderLabel    = "jurat/prompt/v2 order"
)

const (
	boundaryBytes = 16
	codeBytes     = 6
)

// marks are the tokens of a prompt. The authors of the text shown in it cannot know them.
type marks struct {
	boundary string // of the evidence; the same for every seat of a trial
	guard    string // inside the evidence's frame: no answer may carry it; the same for every seat of a trial
	jury     string // boundary of what the jurors said; of this request alone. "" if they have not spoken yet
	code     string // every answer must carry it; of this request alone
}

// derive makes a token from a seed. While the token occurs in one of the texts, it derives the next one.
func derive(label string, seed evidence.Digest, n int, texts ...string) string {
	for counter := 0; ; counter++ {
		sum := sha256.Sum256([]byte(label + " " + seed.String() + " " + strconv.Itoa(counter)))
		token := hex.EncodeToString(sum[:n])
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, token) }) {
			return token
		}
	}
}

// leaked reports whether a text carries a token that no answer may carry.
func (m marks) leaked(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc([]string{m.guard, m.boundary, m.jury}, func(token string) bool { return token != "" && strings.Contains(text, token) })
}
