package filestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"slices"
)

// An index says where the files of a full pack are:
//
//	magic (16 bytes), size of the pack (8), number of files (8), checksum of the pack's name and of these (4)
//	for each file the beginning of the SHA-256 of its name (16) and where its entry is (8), sorted, in blocks of 170
//	at the end of each block a checksum of all before the first block, the number of the block, and the block (4)
//
// Each block that a search reads is checked: an index that was changed or cut off must not say that a file is not there.
type index struct {
	file  *os.File
	sum   uint32 // of the pack's name and what is before the blocks
	count int64  // of files
}

const (
	indexMagic = "jurat index v1\n\n"
	indexHead  = int64(len(indexMagic) + 16)
	indexEntry = 24
	sumSize    = 4
	blockFiles = 170 // a block is 4 KiB
	blockSize  = blockFiles*indexEntry + sumSize
)

// indexOf makes the index of a pack from sorted entries.
func indexOf(id string, size int64, entries [][indexEntry]byte) []byte {
	text := append([]byte{}, indexMagic...)
	text = binary.BigEndian.AppendUint64(text, uint64(size))
	text = binary.BigEndian.AppendUint64(text, uint64(len(entries)))
	sum := indexSum(id, text)
	text = binary.BigEndian.AppendUint32(text, sum)
	number := int64(0)
	for block := range slices.Chunk(entries, blockFiles) {
		begin := len(text)
		for _, one := range block {
			text = append(text, one[:]...)
		}
		text = binary.BigEndian.AppendUint32(text, blockSum(sum, number, text[begin:]))
		number++
	}
	return text
}

func indexSum(id string, head []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(id), castagnoli), castagnoli, head)
}

func blockSum(sum uint32, number int64, block []byte) uint32 {
	return crc32.Update(crc32.Update(sum, castagnoli, binary.BigEndian.AppendUint64(nil, uint64(number))), castagnoli, block)
}

// openIndex opens the index of a pack. It returns nil if there is none, or if it is not of this pack as it is. If the pack is shorter than it was,
// the index knows which files are lost.
func openIndex(dir, id string) (*index, error) {
	file, err := os.Open(indexFile(dir, id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	x := &index{file: file}
	if holds, err := x.begin(dir, id); err != nil || !holds {
		return nil, errors.Join(err, file.Close())
	}
	return x, nil
}

func (x *index) begin(dir, id string) (holds bool, err error) {
	info, err := x.file.Stat()
	if err != nil {
		return false, err
	}
	head := make([]byte, indexHead+sumSize)
	if n, err := x.file.ReadAt(head, 0); n < len(head) {
		return false, unlessEnd(err)
	}
	x.sum = indexSum(id, head[:indexHead])
	if string(head[:len(indexMagic)]) != indexMagic || binary.BigEndian.Uint32(head[indexHead:]) != x.sum {
		return false, nil
	}
	size := int64(binary.BigEndian.Uint64(head[len(indexMagic):]))
	x.count = int64(binary.BigEndian.Uint64(head[len(indexMagic)+8:]))
	if info.Size() != indexHead+sumSize+x.count*indexEntry+x.blocks()*sumSize {
		return false, nil
	}
	pack, err := os.Stat(packFile(dir, id))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return err == nil && pack.Size() <= size, err
}

func (x *index) blocks() int64 { return (x.count + blockFiles - 1) / blockFiles }

// block returns the entries of a block, or nil if it was changed.
func (x *index) block(number int64) ([]byte, error) {
	files := min(blockFiles, x.count-number*blockFiles)
	text := make([]byte, files*indexEntry+sumSize)
	if n, err := x.file.ReadAt(text, indexHead+sumSize+number*blockSize); n < len(text) {
		return nil, unlessEnd(err)
	}
	entries := text[:files*indexEntry]
	if binary.BigEndian.Uint32(text[len(entries):]) != blockSum(x.sum, number, entries) {
		return nil, nil
	}
	return entries, nil
}

// find returns where a file may be. It reports false if the index was changed.
func (x *index) find(name hashed) (places []int64, holds bool, err error) {
	low, high := int64(0), x.blocks()
	for low < high { // the first block whose last name is not before
		mid := (low + high) / 2
		entries, err := x.block(mid)
		if entries == nil || err != nil {
			return nil, false, err
		}
		if bytes.Compare(entries[len(entries)-indexEntry:][:16], name[:]) < 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	for ; low < x.blocks(); low++ {
		entries, err := x.block(low)
		if entries == nil || err != nil {
			return nil, false, err
		}
		for entry := range slices.Chunk(entries, indexEntry) {
			switch bytes.Compare(entry[:16], name[:]) {
			case 0:
				places = append(places, int64(binary.BigEndian.Uint64(entry[16:])))
			case 1:
				return places, true, nil
			}
		}
	}
	return places, true, nil
}
