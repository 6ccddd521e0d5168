package verify_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/observe"
	"jurat/jurattest"
	"jurat/verify"
)

// TestSessionGrowsTheLog: 100 calls that each send the whole context of 400 KB make a log that is at most twice as long as the longest
// request: payloads, signatures, a time-stamp token for each record, and the values and salts that open commitments. Each request is rebuilt
// to its digest.
func TestSessionGrowsTheLog(t *testing.T) {
	h := jurattest.New(t)
	random := rand.New(rand.NewPCG(3, 3))
	words := strings.Fields("the parcel was sent to Kassel yesterday, and \"nobody\" knows whether it has come. Ask the depot; then answer the customer")
	text := func(n int) string {
		var b strings.Builder
		for b.Len() < n {
			b.WriteString(words[random.IntN(len(words))] + " ")
		}
		return b.String()
	}
	messages := []string{fmt.Sprintf(`{"role":"system","content":%q}`, text(350_000))}
	var records []*evidence.Record
	var earlier [][]byte
	longest := 0
	for i := range 100 {
		messages = append(messages, fmt.Sprintf(`{"role":"user","content":%q}`, text(400)))
		request := `{"model":"m","messages":[` + strings.Join(messages, ",") + `],"stream":false}`
		act := observedCall(fmt.Sprint("call-", i), observe.OpenAIChat, request, anAnswer)
		act.Request.Earlier = earlier
		if i > 0 {
			act.PreviousRecord = records[i-1].Digest
		}
		records = append(records, h.Seal(t, payloadOf(t, act), "/request_body", "/response_body"))
		earlier, longest = [][]byte{[]byte(request)}, max(longest, len(request))
		messages = append(messages, `{"role":"assistant","content":"In Kassel."}`)
	}
	b := h.Bundle(t, records...)
	kept := 0
	for _, r := range b.Records {
		kept += len(r.Canonical()) + len(slices.Concat(r.Signatures...))
		for _, stamp := range r.Timestamps {
			kept += len(stamp.Token)
		}
		for _, d := range r.Disclosures {
			kept += len(d.Pointer) + len(d.Salt) + len(d.Value)
		}
	}
	t.Logf("%d bytes for a longest request of %d: %.2f times as many", kept, longest, float64(kept)/float64(longest))
	if kept > 2*longest {
		t.Errorf("the records have %d bytes, and the longest request has %d", kept, longest)
	}
	if got := verify.Bundle(b, h.Options(t)).Of(verify.Vantage); got.Status != verify.Proved {
		t.Errorf("%+v", got)
	}
	var w observed.Window
	for i, r := range b.Records {
		if read := w.Read(observed.Open(r)); len(read.Errs) > 0 || evidence.DigestOf(read.Request) != r.Payload.Observed.Request.SHA256 {
			t.Fatalf("call %d: %v", i, read.Errs)
		}
	}
}
