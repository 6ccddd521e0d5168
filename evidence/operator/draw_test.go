package operator

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
)

func drawnTree(size int64) Checkpoint {
	return Checkpoint{Origin: "jurat.example/log", Size: size, Root: tlog.RecordHash([]byte("x"))}
}

// TestDraw: a draw is the same each time, is no cosignature, and is valid for this tree and this witness alone.
func TestDraw(t *testing.T) {
	one, other := testCosigners[0], testCosigners[1]
	signature, err := one.Draw(drawnTree(64))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := one.Draw(drawnTree(64)); err != nil || !bytes.Equal(again, signature) {
		t.Errorf("drawn again: another signature, %v", err)
	}
	if !one.VerifyDraw(drawnTree(64), signature) || other.VerifyDraw(drawnTree(64), signature) || one.VerifyDraw(drawnTree(128), signature) {
		t.Error("valid where it must not be, or not where it must")
	}
	root, origin := drawnTree(64), drawnTree(64)
	root.Root[0] ^= 1
	origin.Origin = "jurat.example/lod"
	if one.VerifyDraw(root, signature) || one.VerifyDraw(origin, signature) {
		t.Error("valid for another tree or log")
	}
	for i := range signature {
		changed := bytes.Clone(signature)
		changed[i] ^= 1
		if one.VerifyDraw(drawnTree(64), changed) {
			t.Errorf("valid with byte %d changed", i)
		}
	}
	if one.VerifyDraw(drawnTree(64), signature[:63]) || one.VerifyDraw(drawnTree(64), nil) {
		t.Error("a short signature is valid")
	}
	text, err := FormatCheckpoint(drawnTree(64))
	if err != nil {
		t.Fatal(err)
	}
	if one.Verify([]byte(text), append(make([]byte, 8), signature...)) {
		t.Error("a draw passes for a cosignature")
	}
	for _, size := range []int64{-64, 0, 1, 63, 65, MaxEntries + 1} {
		if _, err := one.Draw(drawnTree(size)); err == nil {
			t.Errorf("size %d: drawn", size)
		}
	}
	if _, err := one.Draw(drawnTree(65)); !errors.Is(err, ErrNoDraw) {
		t.Errorf("size 65: %v", err)
	}
}

// TestReadDraws: an act of draws is read strictly, in its own chain.
func TestReadDraws(t *testing.T) {
	var body DrawsBody
	for _, size := range []int64{64, 128} {
		signature, err := testCosigners[0].Draw(drawnTree(size))
		if err != nil {
			t.Fatal(err)
		}
		root := drawnTree(size).Root
		body.Draws = append(body.Draws, Draw{Root: root[:], Signature: signature, Size: size, Witness: testCosigners[0].Witness.String()})
	}
	act := func(body DrawsBody) *evidence.Payload {
		response, err := Encode(body)
		if err != nil {
			t.Fatal(err)
		}
		return &evidence.Payload{ActionType: evidence.Draw, ChainID: DrawsChain, Response: response}
	}
	good := act(body)
	read, err := ReadDraws(good)
	if err != nil || len(read.Draws) != 2 || read.Draws[1].Tree("jurat.example/log") != drawnTree(128) || Check(good) != nil {
		t.Fatalf("%+v, %v", read, err)
	}
	for name, change := range map[string]func(*DrawsBody){
		"none":            func(b *DrawsBody) { b.Draws = []Draw{} },
		"unsorted":        func(b *DrawsBody) { b.Draws[0], b.Draws[1] = b.Draws[1], b.Draws[0] },
		"twice":           func(b *DrawsBody) { b.Draws[1] = b.Draws[0] },
		"short root":      func(b *DrawsBody) { b.Draws[0].Root = make([]byte, 31) },
		"long signature":  func(b *DrawsBody) { b.Draws[0].Signature = make([]byte, 65) },
		"no block":        func(b *DrawsBody) { b.Draws[0].Size = 65 },
		"size 0":          func(b *DrawsBody) { b.Draws[0].Size = 0 },
		"too large":       func(b *DrawsBody) { b.Draws[1].Size = MaxEntries/64*64 + 64 },
		"no witness":      func(b *DrawsBody) { b.Draws[0].Witness = "" },
		"a log's key":     func(b *DrawsBody) { b.Draws[0].Witness = "a+00000000+AAAA" },
		"more than there": func(b *DrawsBody) { b.Draws = make([]Draw, MaxDraws+1) },
	} {
		changed := DrawsBody{Draws: append([]Draw{}, body.Draws...)}
		change(&changed)
		if _, err := ReadDraws(act(changed)); err == nil {
			t.Errorf("%s: read", name)
		}
	}
	for name, change := range map[string]func(*evidence.Payload){
		"chain":  func(p *evidence.Payload) { p.ChainID = ListsChain },
		"action": func(p *evidence.Payload) { p.ActionType = evidence.TrustedList },
		"member": func(p *evidence.Payload) {
			p.Response = []byte(strings.Replace(string(p.Response), `{"draws"`, `{"by":"x","draws"`, 1))
		},
		"space": func(p *evidence.Payload) { p.Response = append([]byte(" "), p.Response...) },
	} {
		changed := *good
		change(&changed)
		if _, err := ReadDraws(&changed); err == nil {
			t.Errorf("%s: read", name)
		}
	}
}
