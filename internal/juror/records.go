package juror

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// A reference is an identifier under its name.
type reference struct{ key, id string }

// recordFor returns the record that a call acts on, as it was last read before. Within one result the outermost
// object counts, not a part of it that bears an id of its own.
//
// The arguments name a record by its id: under the same name, or, where the record's own is just "id", under any. Ids
// deeper inside the arguments are of its parts.
func (r *reading) recordFor(k *call) *record {
	return once(&r.memo.about, k, func() *record {
		about := -1
		args := record{fields: k.object}
		for name := range k.object {
			id := args.text(name)
			for _, key := range []string{name, "id"} {
				if i := r.lastReferred(reference{key, id}, k.msg); i >= 0 && (about < 0 || r.moreRecent(i, about)) {
					about = i
				}
			}
		}
		if about < 0 {
			return nil
		}
		return &r.records[about]
	})
}

// moreRecent prefers a later result, and in it the earlier record.
func (r *reading) moreRecent(i, than int) bool {
	if a, b := r.records[i].msg, r.records[than].msg; a != b {
		return a > b
	}
	return i < than
}

// lastReferred returns the place of the record with an identifier that moreRecent prefers, of those before message n.
func (r *reading) lastReferred(ref reference, n int) int {
	places := r.referred()[ref]
	i := sort.Search(len(places), func(i int) bool { return r.records[places[i]].msg >= n }) - 1
	for ; i > 0 && r.records[places[i-1]].msg == r.records[places[i]].msg; i-- {
	}
	if i < 0 {
		return -1
	}
	return places[i]
}

// referred lists the records under their identifiers, without those that are a means to pay with.
func (r *reading) referred() map[reference][]int {
	return r.memo.referred.get(func() map[reference][]int {
		places := map[reference][]int{}
		for i, one := range r.records {
			if id := one.id(); len(id) >= 3 && !ofPayment.MatchString(one.idKey()) {
				ref := reference{one.idKey(), id}
				places[ref] = append(places[ref], i)
			}
		}
		return places
	})
}

// A countIndex finds counts in records by the words of their keys.
type countIndex struct {
	words   []string // sorted
	entries map[string][]counted
}

// counted is a count under a key of a record.
type counted struct {
	record, order int // its place among the records, and in the record
	count         int
	key           string
	msg           int
}

func (r *reading) countIndex() *countIndex {
	return r.memo.countIndex.get(func() *countIndex {
		x := &countIndex{entries: map[string][]counted{}}
		for i := range r.records {
			if r.late() {
				break
			}
			for j, one := range leaves("", map[string]any(r.records[i].fields)) {
				x.add(one, counted{record: i, order: j, key: one.key, msg: r.records[i].msg})
			}
		}
		x.words = slices.Sorted(maps.Keys(x.entries))
		return x
	})
}

func (x *countIndex) add(one leaf, c counted) {
	v, err := strconv.Atoi(one.text)
	if !one.number || err != nil {
		return
	}
	c.count = v
	for _, word := range nameWords(one.key) {
		x.entries[word] = append(x.entries[word], c)
	}
}

// under lists, for each record that has counts under keys with a word that begins so, the largest of them.
func (x *countIndex) under(prefix string) []counted {
	var all []counted
	for i := sort.SearchStrings(x.words, prefix); i < len(x.words) && strings.HasPrefix(x.words[i], prefix); i++ {
		all = append(all, x.entries[x.words[i]]...)
	}
	slices.SortFunc(all, func(a, b counted) int {
		return cmp.Or(cmp.Compare(a.record, b.record), cmp.Compare(b.count, a.count), cmp.Compare(a.order, b.order))
	})
	return slices.CompactFunc(all, func(a, b counted) bool { return a.record == b.record })
}

// lastCount finds the largest count under a key that begins with a noun, in the last record before a message that has
// such a key.
func (r *reading) lastCount(noun string, n int) (count int, key string, msg int) {
	list := once(&r.memo.counts, noun, func() []counted { return r.countIndex().under(noun) })
	i := sort.Search(len(list), func(i int) bool { return list[i].msg >= n })
	if i == 0 {
		return 0, "", 0
	}
	return list[i-1].count, list[i-1].key, list[i-1].msg
}
