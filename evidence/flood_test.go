package evidence

import (
	"fmt"
	"strings"
	"testing"

	"jurat/internal/must"
)

// TestFloods checks records with very many time stamps or commitments. The time must grow linearly with their number.
// With quadratic time, these sizes took minutes.
func TestFloods(t *testing.T) {
	t.Run("time stamps", func(t *testing.T) {
		stamps := make([]Timestamp, 500_000)
		for i := range stamps {
			stamps[i] = Timestamp{Kind: RFC3161, Token: fmt.Append(nil, i)}
		}
		if err := checkTimestamps(stamps); err != nil {
			t.Error(err)
		}
		if err := checkTimestamps(append(stamps, stamps[17])); err == nil || !strings.Contains(err.Error(), "timestamp 500000: the same token twice") {
			t.Error(err)
		}
	})
	t.Run("commitments", func(t *testing.T) {
		r := &Record{}
		var metadata, pointers []string
		for i := range 20_000 {
			d := Disclosure{Pointer: fmt.Sprintf("/metadata/%06d", i), Salt: make([]byte, saltSize), Value: []byte("1")}
			metadata = append(metadata, fmt.Sprintf("%q:%q", strings.TrimPrefix(d.Pointer, "/metadata/"), d.commitment()))
			pointers = append(pointers, fmt.Sprintf("%q", d.Pointer))
			r.Payload.SealedApart, r.Disclosures = append(r.Payload.SealedApart, d.Pointer), append(r.Disclosures, d)
		}
		r.canonical = []byte(`{"metadata":{` + strings.Join(metadata, ",") + `},"sealed_apart":[` + strings.Join(pointers, ",") + `]}`)
		m := must.Get(membersOf(r.canonical))(t)
		if err := checkApart(m, r.Payload.SealedApart, rules[ModelOutput]); err != nil {
			t.Error(err)
		}
		if err := r.CheckDisclosures(); err != nil {
			t.Error(err)
		}
		r.Disclosures[19_999].Value = []byte("2")
		if err := r.CheckDisclosures(); err == nil {
			t.Error("the one false value was not detected")
		}
	})
}
