package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/crypto/sha3"

	"jurat/evidence"
	"jurat/reputation"
	"jurat/verify"
)

// TestFeedback: the feedback of ERC-8004 has the lower bound, the view, and the hash that goes into the transaction.
func TestFeedback(t *testing.T) {
	keccak := func(doc []byte) string {
		h := sha3.NewLegacyKeccak256()
		h.Write(doc)
		return fmt.Sprintf("%x", h.Sum(nil))
	}
	if got := keccak(nil); got != "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470" {
		t.Fatalf("this is not Ethereum's KECCAK-256: %s", got)
	}
	v := &reputation.View{At: "2026-02-01T00:00:00Z", Classes: []reputation.Class{
		{Class: reputation.Models, Bounds: &reputation.Bounds{Lower: 6000, Upper: 9000}, Good: reputation.Sum{Units: 11, Weight: 11 << 20}},
		{Class: reputation.Models, Bounds: &reputation.Bounds{Lower: 7500, Upper: 9900}, Good: reputation.Sum{Units: 30, Weight: 30 << 20}},
		{Class: reputation.People, Bounds: &reputation.Bounds{Lower: 9000, Upper: 9900}, Good: reputation.Sum{Units: 90, Weight: 90 << 20}},
		{Class: reputation.Rules, Status: reputation.Uncounted},
	}}
	form, err := v.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var out, complaints bytes.Buffer
	c := &reputationCmd{Registry: "eip155:1:0x1", AgentID: "22", Client: "eip155:1:0x2"}
	if err := c.feedback(stdio{out: &out, err: &complaints}, v, form); err != nil {
		t.Fatal(err)
	}
	var feedback struct {
		AgentRegistry, AgentID, ClientAddress, Tag1, Tag2 string
		Value, ValueDecimals                              int
		Jurat                                             struct {
			View   json.RawMessage
			Digest evidence.Digest
		}
	}
	if err := json.Unmarshal(out.Bytes(), &feedback); err != nil {
		t.Fatal(err)
	}
	if feedback.Value != 7500 || feedback.ValueDecimals != 4 || feedback.AgentID != "22" || feedback.Tag2 != "models" || feedback.Jurat.Digest != evidence.DigestOf(form) ||
		!bytes.Equal(append(bytes.Clone(feedback.Jurat.View), '\n'), form) {
		t.Errorf("%+v", feedback)
	}
	if hash := keccak(bytes.TrimSuffix(out.Bytes(), []byte("\n"))); !strings.Contains(complaints.String(), "0x"+hash) {
		t.Errorf("%s does not name %s", complaints.String(), hash)
	}
}

// TestLies: a file is named as refuted for what would count, and not for a chain of which it has some records.
func TestLies(t *testing.T) {
	for _, c := range []struct {
		guarantee verify.Guarantee
		status    verify.Status
		want      bool
	}{{verify.Chain, verify.Refuted, false}, {verify.Content, verify.Refuted, true}, {verify.Content, verify.NotProved, false}} {
		report := &verify.Report{Outcome: c.status, Guarantees: []verify.Finding{{Guarantee: verify.Order, Status: verify.Proved}, {Guarantee: c.guarantee, Status: c.status}}}
		if got := lies(report); got != c.want {
			t.Errorf("%s %s: %v", c.guarantee, c.status, got)
		}
	}
}
