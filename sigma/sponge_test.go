package sigma

import (
	"encoding/hex"
	"math/big"
	"os"
	"testing"

	"github.com/go-json-experiment/json"
)

// The draft's vectors of the transformation by Fiat and Shamir with SHAKE128.
func TestPublishedSponge(t *testing.T) {
	doc, err := os.ReadFile("testdata/fiatShamirShake128Vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		ID         string `json:"Id"`
		Function   string
		Tag        string
		SessionID  string `json:"SessionId"`
		Operations []struct {
			Type   string `json:"type"`
			Length int    `json:"length"`
			Data   string `json:"data"`
		}
		Output    string
		Challenge string
	}
	if err := json.Unmarshal(doc, &list); err != nil {
		t.Fatal(err)
	}
	done := 0
	for _, v := range list {
		switch v.Function {
		case "DeriveSessionID":
			if id := sessionID(string(unhex(t, v.Tag))); hex.EncodeToString(id[:]) != v.Output {
				t.Errorf("%s: %x, want %s", v.ID, id, v.Output)
			}
		case "DuplexSponge", "DecodeUint":
			var absorbed []byte
			squeezed := 0
			for _, o := range v.Operations {
				if o.Type == "absorb" && squeezed == 0 {
					absorbed = append(absorbed, unhex(t, o.Data)...)
				} else {
					squeezed += o.Length
				}
				if o.Type == "absorb" && squeezed > 0 {
					squeezed = -1 // the sponge of this package absorbs first: what absorbs again is not used
					break
				}
			}
			if squeezed < 0 {
				continue
			}
			s := sponge([32]byte(unhex(t, v.SessionID)))
			s.Write(absorbed)
			if v.Function == "DecodeUint" {
				want, _ := new(big.Int).SetString(v.Challenge[2:], 16)
				if got := squeezeScalar(s); new(big.Int).SetBytes(got[:]).Cmp(want) != 0 {
					t.Errorf("%s: %x, want %x", v.ID, got, want)
				}
				break
			}
			out := make([]byte, squeezed)
			s.Read(out)
			if want := v.Output; len(want) > 0 && hex.EncodeToString(out)[len(out)*2-len(want):] != want {
				t.Errorf("%s: %x, want %s", v.ID, out, want)
			}
		default:
			continue // Sumcheck is another protocol
		}
		done++
	}
	if done < 8 {
		t.Errorf("%d vectors were used", done)
	}
}
