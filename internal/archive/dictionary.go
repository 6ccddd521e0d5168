package archive

import (
	"encoding/binary"
	"slices"
)

const (
	gram    = 8       // bytes: shorter matches are not worth a reference
	segment = 64      // bytes: a dictionary consists of pieces of this length
	buckets = 1 << 20 // number of counters of grams
)

// train returns a dictionary of at most size bytes with what many samples have in common. It divides the samples into
// as many stretches as the dictionary has room for segments. From each stretch it takes the segment whose 8-byte
// grams occur in the most samples and were not taken before (the method of COVER, Liao et al. 2016). The most
// valuable segments come last, where they are nearest to a block.
//
// The package comment says why the library's trainer is not used.
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

// countGrams counts in how many samples each gram occurs. A gram in one sample only counts as zero.
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

// bestPiece finds the segment whose grams have the largest sum of counts.
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
