package storage

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"jurat/evidence"
	"jurat/internal/must"
)

// token is the beginning of a time stamp token that states something, and an attribute with the statement's hash.
func token(states, more string) []byte {
	sum := sha256.Sum256([]byte(states))
	element := fmt.Sprintf("\x04%c%s", len(states), states)
	return fmt.Appendf(nil, "before\x06\x0b\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x01\x04\xa0%c%s%s%s", len(element), element, sum[:], more)
}

// blob is the blob of a row, also if the row would be larger plain.
func (c *codec) blob(row *Row) []byte {
	text, rest := c.words.split(row)
	return c.compress(text, binary.LittleEndian.AppendUint32(rest, checksum(row)))
}

// TestPack checks that what is packed is unpacked as it was, whatever it contains, with any dictionary.
func TestPack(t *testing.T) {
	signature, nothing := sha256.Sum256([]byte("signature")), sha256.Sum256(nil)
	hash := "sha256:" + hex.EncodeToString(signature[:])
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	random := rand.New(rand.NewPCG(1, 2))
	payloads := []string{"", " ", "id", "idid", " the", " The end", "the end of the end, The End, THE END, ends ending endless", " the\x01 the", "\x01", "\xc0", " и The и конец", string(every),
		hash, hash[:70], strings.ToUpper(hash), "sha256:" + hash, hash + hash[7:], "sss" + hash + " end", strings.Repeat(" the end of "+hash, 100), "です。the", " конца концами", " " + strings.Repeat("end", 20)}
	parts := strings.Split("the|end| |The|Of|of|\\|n|\"|sha256:|0a|\x01|\xff|я|конец|ends|id|"+hash, "|")
	for range 300 {
		var b strings.Builder
		for range random.IntN(20) {
			b.WriteString(parts[random.IntN(len(parts))])
		}
		payloads = append(payloads, b.String())
	}
	tokens := [][]byte{nil, []byte("no token"), token("states", ""), token("states "+string(signature[:]), string(signature[:])), token("", string(nothing[:])),
		append(nothing[:], token("", "")...), token("states", "")[:30], token(string(nothing[:]), string(signature[:])), bytes.Repeat(token("states", ""), 3)}
	list := "the of end конец \xff\x00 x " + strings.Repeat("y", 100) + " the"
	for n := range 2000 {
		list += fmt.Sprintf(" w%s", strings.Repeat(string(rune('a'+n%26)), n/26%20))
	}
	for name, dictionary := range map[string][]byte{"none": nil, "words": NewDictionary(list, nil),
		"rows": NewDictionary(list, []Row{{Payload: []byte("the end"), Timestamps: []evidence.Timestamp{{Token: tokens[2]}}}}), "noise": every} {
		c := must.Get(newCodec(1, dictionary))(t)
		for i, payload := range payloads {
			row := Row{RecordID: "id", Payload: []byte(payload), Signatures: [][]byte{[]byte("sign"), []byte("ature")}[:i%3],
				Timestamps: []evidence.Timestamp{{Kind: "a", Token: tokens[i%len(tokens)]}, {Token: tokens[i/3%len(tokens)]}}[:i%3]}
			if i%5 == 4 && payload != "" {
				row = Row{RecordID: "id", Entry: []byte(payload), ExpiredBy: "act id"}
			}
			got := Row{RecordID: "id"}
			if err := c.expand(c.blob(&row), &got); err != nil {
				t.Fatalf("%s: %q: %v", name, payload, err)
			}
			if diff := cmp.Diff(row, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%s: %q (-want +got):\n%s", name, payload, diff)
			}
		}
	}
}

// TestUnpackDamaged checks that every changed byte of a blob is noticed, and that nothing unpacks to more than it may.
func TestUnpackDamaged(t *testing.T) {
	c := must.Get(newCodec(1, NewDictionary(strings.Repeat("w", maxWord), nil)))(t)
	row := Row{RecordID: "id", Payload: []byte(strings.Repeat("What the record says, as text. ", 9) + "id"), Signatures: [][]byte{{1, 2, 3}}, Timestamps: []evidence.Timestamp{{Kind: "k", Token: token("states", "")}}}
	blob := c.blob(&row)
	for i := range blob {
		for _, bit := range []byte{1, 0x80} {
			bad := bytes.Clone(blob)
			bad[i] ^= bit
			got := Row{RecordID: "id"}
			if err := c.expand(bad, &got); err == nil && !bytes.Equal(Content(&got), Content(&row)) {
				t.Errorf("byte %d of %d can be changed unnoticed", i, len(blob))
			}
		}
		if err := c.expand(blob[:i], &Row{RecordID: "id"}); err == nil {
			t.Errorf("%d bytes of %d unpack", i, len(blob))
		}
	}
	if err := c.expand(blob, &Row{RecordID: "another"}); err == nil {
		t.Error("the blob of another row unpacks")
	}
	if _, err := c.words.lengthen(bytes.Repeat([]byte{firstCode}, 100), nil, 99*(maxWord+1)); err == nil {
		t.Error("words lengthen to more than they may")
	}
}
