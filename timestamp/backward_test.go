package timestamp

import (
	"bytes"
	"fmt"
	"testing"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/internal/must"
)

// TestBackward writes elements with every size of header, with too little reserved space and with enough. It compares
// them with the bytes of cryptobyte, which writes from front to back.
func TestBackward(t *testing.T) {
	for _, size := range []int{0, 1, 0x7f, 0x80, 0xff, 0x100, 0xffff, 0x10000, 0x1000000} {
		for _, room := range []int{0, 1, size, size + 64} {
			t.Run(fmt.Sprintf("%d in %d", size, room), func(t *testing.T) {
				contents := bytes.Repeat([]byte{0xab}, size)
				b := cryptobyte.NewBuilder(nil)
				b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
					b.AddASN1Int64(3)
					b.AddASN1(context0Constructed, func(b *cryptobyte.Builder) { addOID(b, oidSHA256) })
					b.AddASN1OctetString(contents)
				})
				b.AddASN1(asn1.SEQUENCE, func(*cryptobyte.Builder) {})
				want := must.Get(b.Bytes())(t)

				w := newBackward(room)
				w.wrap(asn1.SEQUENCE, w.end())
				sequence := w.end()
				w.addElement(asn1.OCTET_STRING, contents)
				w.addAlgorithm(context0Constructed, oidSHA256)
				w.addElement(asn1.INTEGER, []byte{3})
				w.wrap(asn1.SEQUENCE, sequence)
				if got := w.bytes(); !bytes.Equal(got, want) {
					t.Errorf("%d bytes, want %d; they begin %x, want %x", len(got), len(want), got[:min(32, len(got))], want[:min(32, len(want))])
				}
			})
		}
	}
}
