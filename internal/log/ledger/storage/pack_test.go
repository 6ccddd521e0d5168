package storage

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"jurat/evidence"
	"jurat/internal/test/must"
)

// TestPack checks that what is packed is unpacked as it was, whatever it contains, with any dictionary.
func TestPack(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	random := rand.New(rand.NewPCG(1, 2))
	payloads := []string{"", " ", "the end of the end", string(every), strings.Repeat("and so on, ", 200), strings.Repeat("0", 1<<17)}
	for range 100 {
		b := make([]byte, random.IntN(400))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		payloads = append(payloads, string(b), strings.Repeat(string(b), 3))
	}
	tokens := [][]byte{nil, []byte("token"), every}
	rows := []Row{{Payload: []byte("the end"), Timestamps: []evidence.Timestamp{{Token: tokens[1]}}}}
	for name, dictionary := range map[string][]byte{"none": nil, "words": NewDictionary("the end of", nil), "rows": NewDictionary("the", rows), "noise": every} {
		c := must.Get(newCodec(1, dictionary))(t)
		for i, payload := range payloads {
			row := Row{Payload: []byte(payload), Signatures: [][]byte{[]byte("sign"), []byte("ature")}[:i%3],
				Timestamps: []evidence.Timestamp{{Kind: "a", Token: tokens[i%len(tokens)]}, {Token: tokens[i/3%len(tokens)]}}[:i%3]}
			if i%5 == 4 && payload != "" {
				row = Row{Entry: []byte(payload), ExpiredBy: "act id"}
			}
			packed, got := c.pack(&row), Row{}
			content := packed.Blob
			if packed.Dictionary != Plain {
				content = must.Get(c.unpack(packed.Blob, nil))(t)
			}
			must.Do(t, got.setContent(content))
			diff := cmp.Diff(row, got, cmpopts.EquateEmpty())
			must.Need(t, diff == "", "%s: %q (-want +got):\n%s", name, payload, diff)
		}
	}
}

// TestUnpackDamaged checks that every changed byte of a blob is noticed, and that nothing unpacks to more than it may.
func TestUnpackDamaged(t *testing.T) {
	c := must.Get(newCodec(1, NewDictionary("words", nil)))(t)
	row := Row{Payload: []byte(strings.Repeat("What the record says, as text. ", 9)), Signatures: [][]byte{{1, 2, 3}}, Timestamps: []evidence.Timestamp{{Kind: "k", Token: []byte("token")}}}
	blob := c.pack(&row).Blob
	for i := range blob {
		for _, bit := range []byte{1, 0x80} {
			bad := bytes.Clone(blob)
			bad[i] ^= bit
			got, err := c.unpack(bad, nil)
			must.Hold(t, err != nil || bytes.Equal(got, Content(&row)), "byte %d of %d can be changed unnoticed", i, len(blob))
		}
		must.Refuse(t, "", i, "bytes of", len(blob), "unpack")(c.unpack(blob[:i], nil))
	}
	must.Refuse(t, "", "a blob of two unpacks")(c.unpack(append(bytes.Clone(blob), blob[12:]...), nil))
	zeros := make([]byte, 1<<20)
	for _, parts := range [][2][]byte{{must.Get(c.encoder())(t).zstd.EncodeAll(zeros, nil), nil}, {nil, c.rest.Encode(nil, zeros)}} {
		_, err := c.unpack(slices.Concat([]byte{0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, byte(len(parts[0]))}, parts[0], parts[1]), nil)
		must.Hold(t, err != nil && !strings.Contains(err.Error(), "checksum"), "more than it says unpacks: %v", err)
	}
	content := Content(&row)
	for i := range content {
		if new(Row).setContent(content[:i]) == nil && i != len(content)-len("\x0c\x01k\x04\x05token") && i != len(content)-len("\x04\x03123\x0c\x01k\x04\x05token") {
			t.Errorf("%d bytes of %d of the content are read", i, len(content))
		}
	}
	for _, many := range []Row{{Signatures: make([][]byte, maxSignatures+1)}, {Timestamps: make([]evidence.Timestamp, maxTimestamps+1)}} {
		many.Payload = []byte("p")
		must.Hold(t, new(Row).setContent(Content(&many)) != nil, "%d signatures and %d time stamps are read", len(many.Signatures), len(many.Timestamps))
	}
}
