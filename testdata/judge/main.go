// Command judge holds what jurat serves against Tessera, another implementation of the C2SP specifications, which was written by others.
//
//	judge log URL LOGKEY [WITNESSKEY...]     reads a whole log: every tile, every entry, proofs of both kinds, and cosignatures
//	judge grow FOLDER                        is a log of Tessera's: prints its key, reads the witness's URL and key, and grows
//	                                         under that witness until 300 entries are published with its cosignature
//	judge speed FOLDER SECONDS BYTES CALLERS is a log of Tessera's, and says how many entries a second it takes
//
// It is a module of its own, so that nothing of it is in jurat.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	formats "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/api"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"github.com/transparency-dev/tessera/storage/posix"
	"golang.org/x/mod/sumdb/note"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	err := errors.New("usage: judge log URL LOGKEY [WITNESSKEY...] | judge grow FOLDER | judge speed FOLDER SECONDS BYTES CALLERS")
	switch args := os.Args[1:]; {
	case len(args) >= 3 && args[0] == "log":
		err = judgeLog(ctx, args[1], args[2], args[3:])
	case len(args) == 2 && args[0] == "grow":
		err = grow(ctx, args[1])
	case len(args) == 5 && args[0] == "speed":
		var n [3]int
		for i := range n {
			n[i], _ = strconv.Atoi(args[i+2]) // 0 is refused
		}
		err = speed(ctx, args[1], n[0], n[1], n[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}

func judgeLog(ctx context.Context, at, logKey string, witnessKeys []string) error {
	root, err := url.Parse(strings.TrimRight(at, "/") + "/")
	if err != nil {
		return err
	}
	log, err := client.NewHTTPFetcher(root, nil)
	if err != nil {
		return err
	}
	key, err := formats.NewVerifier(logKey)
	if err != nil {
		return err
	}
	if err := fsck.New(key.Name(), key, log, leaves, fsck.Opts{N: 4}).Check(ctx); err != nil {
		return fmt.Errorf("fsck: %w", err)
	}
	head, signed, _, err := client.FetchCheckpoint(ctx, log.ReadCheckpoint, key, key.Name())
	if err != nil {
		return err
	}
	for _, text := range witnessKeys {
		witness, err := formats.NewVerifierForCosignatureV1(text)
		if err != nil {
			return fmt.Errorf("witness: %w", err)
		}
		if n, err := note.Open(signed, note.VerifierList(witness)); err != nil || len(n.Sigs) != 1 {
			return fmt.Errorf("witness %s has not cosigned: %w", witness.Name(), err)
		}
	}
	if err := proofs(ctx, log, head.Size, head.Hash); err != nil {
		return err
	}
	fmt.Printf("%d entries, %d witnesses\n", head.Size, len(witnessKeys))
	return nil
}

// proofs has inclusion and consistency proved from the tiles.
func proofs(ctx context.Context, log *client.HTTPFetcher, size uint64, root []byte) error {
	builder, err := client.NewProofBuilder(ctx, size, log.ReadTile)
	if err != nil {
		return err
	}
	for _, index := range []uint64{0, size / 3, size / 2, size - 1} {
		hashes, err := client.FetchLeafHashes(ctx, log.ReadTile, index, 1, size)
		if err != nil {
			return err
		}
		path, err := builder.InclusionProof(ctx, index)
		if err != nil {
			return err
		}
		if err := proof.VerifyInclusion(rfc6962.DefaultHasher, index, size, hashes[0], path, root); err != nil {
			return fmt.Errorf("entry %d: %w", index, err)
		}
	}
	_, err = builder.ConsistencyProof(ctx, size/2, size)
	return err
}

// leaves hashes a bundle of entries.
func leaves(bundle []byte) ([][]byte, error) {
	var entries api.EntryBundle
	if err := entries.UnmarshalText(bundle); err != nil {
		return nil, err
	}
	var hashes [][]byte
	for _, entry := range entries.Entries {
		hashes = append(hashes, rfc6962.DefaultHasher.HashLeaf(entry))
	}
	return hashes, nil
}

// newKey makes a key for a log of Tessera's, and returns its public form, too.
func newKey() (signer note.Signer, public string, err error) {
	private, public, err := note.GenerateKey(rand.Reader, "tessera.example/log")
	if err == nil {
		signer, err = note.NewSigner(private)
	}
	return signer, public, err
}

func grow(ctx context.Context, folder string) error {
	signer, public, err := newKey()
	if err != nil {
		return err
	}
	fmt.Println(public)
	var at, key string
	if _, err := fmt.Fscanln(bufio.NewReader(os.Stdin), &at, &key); err != nil {
		return fmt.Errorf("reading the witness's URL and key: %w", err)
	}
	witnessURL, err := url.Parse(at)
	if err != nil {
		return err
	}
	witness, err := tessera.NewWitness(key, witnessURL)
	if err != nil {
		return err
	}
	storage, err := posix.New(ctx, posix.Config{Path: folder})
	if err != nil {
		return err
	}
	appender, stop, reader, err := tessera.NewAppender(ctx, storage, tessera.NewAppendOptions().
		WithCheckpointSigner(signer).WithCheckpointInterval(200*time.Millisecond).WithBatching(64, 50*time.Millisecond).
		WithWitnesses(tessera.NewWitnessGroup(1, witness), &tessera.WitnessOptions{Timeout: 5 * time.Second}))
	if err != nil {
		return err
	}
	awaiter := tessera.NewPublicationAwaiter(ctx, reader.ReadCheckpoint, 50*time.Millisecond)
	for i := range 300 {
		future := appender.Add(ctx, tessera.NewEntry(bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 20)))
		if i%60 == 59 || i == 299 { // several checkpoints, one after the other
			if _, _, err := awaiter.Await(ctx, future); err != nil {
				return fmt.Errorf("entry %d: %w", i, err)
			}
		}
	}
	return stop(ctx)
}
