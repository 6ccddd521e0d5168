package juror

import (
	"index/suffixarray"
	"slices"
	"sort"
	"strings"
)

// A haystack says which of many texts hold a needle. It searches them one after the other until that has cost more
// than an index would, and then makes the index: a long conversation may ask for as many needles as it has words.
type haystack struct {
	data  string // the texts, each with a seam after it
	ends  []int  // where each text ends
	asked map[string][]int
	spent int // bytes searched so far
	index *suffixarray.Index
}

// seam is in no needle: texts and needles are valid UTF-8.
const seam = "\xff"

// indexCost is how often the texts may be searched through before the index is the cheaper way.
const indexCost = 32

func newHaystack(texts []string) *haystack {
	h := &haystack{asked: map[string][]int{}}
	var data strings.Builder
	for _, text := range texts {
		data.WriteString(text)
		h.ends = append(h.ends, data.Len())
		data.WriteString(seam)
	}
	h.data = data.String()
	return h
}

// holding lists the texts that hold a needle, in order, by their places in the list that the haystack was made of.
func (h *haystack) holding(needle string) []int {
	if places, ok := h.asked[needle]; ok {
		return places
	}
	if h.index == nil && h.spent > indexCost*len(h.data) {
		h.index = suffixarray.New([]byte(h.data))
	}
	var places []int
	if h.index != nil && needle != "" {
		places = h.lookUp(needle)
	} else {
		places = h.search(needle)
	}
	h.asked[needle] = places
	return places
}

func (h *haystack) lookUp(needle string) []int {
	places := h.index.Lookup([]byte(needle), -1)
	for i, at := range places {
		places[i] = sort.SearchInts(h.ends, at)
	}
	slices.Sort(places)
	return slices.Clip(slices.Compact(places))
}

func (h *haystack) search(needle string) []int {
	h.spent += len(h.data)
	var places []int
	for start := 0; start < len(h.data); {
		at := strings.Index(h.data[start:], needle)
		if at < 0 {
			break
		}
		place := sort.SearchInts(h.ends, start+at)
		places = append(places, place)
		start = h.ends[place] + len(seam)
	}
	return places
}
