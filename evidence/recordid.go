package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"
)

// NewRecordID makes a UUIDv7: 48 bits of milliseconds, then randomness, so that ids sort by time. If random is nil, it uses crypto/rand. It returns
// an error for times before 1970 or after the year 10889, and the errors of random.
func NewRecordID(t time.Time, random io.Reader) (string, error) {
	ms := t.UnixMilli()
	if ms < 0 || ms >= 1<<48 {
		return "", fmt.Errorf("making record id: %s does not fit into a UUIDv7", t)
	}
	var id [16]byte
	if _, err := io.ReadFull(randomOr(random), id[:]); err != nil {
		return "", fmt.Errorf("drawing record id: %w", err)
	}
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return formatID(id[:]), nil
}

// RecordIDFor makes a record id from words that identify what is recorded. The same words give the same id, so it is
// recorded once. The id has the time of the UUIDv7 in like, or the beginning of 1970 if like is not a UUIDv7.
func RecordIDFor(like string, words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	id := sum[:16]
	copy(id, make([]byte, 6))
	if CheckRecordID(like) == nil {
		if time, err := hex.DecodeString(like[:8] + like[9:13]); err == nil {
			copy(id, time)
		}
	}
	return formatID(id)
}

// formatID formats 16 bytes as a UUIDv7.
func formatID(id []byte) string {
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	h := hex.EncodeToString(id)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// idForm is the shape of a UUIDv7: x is a hexadecimal digit in lower case, v that of the variant.
const idForm = "xxxxxxxx-xxxx-7xxx-vxxx-xxxxxxxxxxxx"

// CheckRecordID returns an error if id is not a UUIDv7 in lower case.
func CheckRecordID(id string) error {
	wrong := len(id) != len(idForm)
	for i := 0; i < len(id) && !wrong; i++ {
		digits := idForm[i : i+1]
		switch digits {
		case "x":
			digits = "0123456789abcdef"
		case "v":
			digits = "89ab"
		}
		wrong = strings.IndexByte(digits, id[i]) < 0
	}
	if wrong {
		return fmt.Errorf("%q is not a UUIDv7 in lower case", Abbreviate(id))
	}
	return nil
}
