package archive

import (
	"encoding/binary"
	"slices"
)

const (
	gram    = 8       // bytes: what is shorter is not worth a reference
	segment = 64      // bytes: a dictionary is made of pieces of at least this length
	buckets = 1 << 20 // of counts of grams
)

// train chooses what many samples have in common, at most size bytes: whoever reads a block has read this before it. The samples
// are cut into as many stretches as there is room for segments, and of each stretch that segment is taken whose 8-byte grams stand in
// the most samples and have not been taken yet (the method of COVER, Liao et al. 2016). What is worth most comes last, where it is nearest.
//
// The trainers at hand draw lots and iterate over maps; the same samples must make the same file.
func train(samples [][]byte, size int) []byte {
	counts := countGrams(samples)
	all := slices.Concat(samples...)
	n := size / segment
	if n == 0 || len(all) < 2*segment {
		return nil
	}
	stretch := max(segment, len(all)/n)
	var chosen []piece
	for at := 0; at+segment <= len(all) && len(chosen) < n; at += stretch {
		best := bestPiece(all[at:min(at+stretch+segment, len(all))], counts)
		if best.score == 0 {
			continue
		}
		for i := range len(best.text) - gram + 1 {
			counts[bucketOf(best.text[i:])] = 0
		}
		chosen = append(chosen, best)
	}
	slices.SortStableFunc(chosen, func(a, b piece) int { return int(a.score) - int(b.score) })
	var dictionary []byte
	for _, c := range chosen {
		dictionary = append(dictionary, c.text...)
	}
	return dictionary
}

type piece struct {
	text  []byte
	score int64
}

func bucketOf(b []byte) uint32 {
	return uint32(binary.LittleEndian.Uint64(b) * 0x9E3779B185EBCA87 >> 44)
}

// countGrams counts in how many samples each gram stands. What stands in one alone counts nothing.
func countGrams(samples [][]byte) []uint32 {
	counts, last := make([]uint32, buckets), make([]uint32, buckets)
	for n, sample := range samples {
		for i := 0; i+gram <= len(sample); i++ {
			if b := bucketOf(sample[i:]); last[b] != uint32(n+1) {
				last[b] = uint32(n + 1)
				counts[b]++
			}
		}
	}
	for b, c := range counts {
		if c == 1 {
			counts[b] = 0
		}
	}
	return counts
}

// bestPiece finds the segment whose grams count most.
func bestPiece(text []byte, counts []uint32) (best piece) {
	const grams = segment - gram + 1
	var score int64
	for i := 0; i+gram <= len(text); i++ {
		score += int64(counts[bucketOf(text[i:])])
		if i >= grams {
			score -= int64(counts[bucketOf(text[i-grams:])])
		}
		if start := i - grams + 1; start >= 0 && score > best.score {
			best = piece{text[start : start+segment], score}
		}
	}
	return best
}
