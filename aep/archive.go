package aep

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
)

// Limits on reading an archive, whatever its headers say.
const (
	maxArchive   = 16 << 20
	maxMember    = 8 << 20
	maxTotal     = 16 << 20
	maxMembers   = 32
	maxDirectory = 64 << 10
)

// Signatures of the parts of an archive.
const (
	localHeader      = "PK\x03\x04"
	descriptorHeader = "PK\x07\x08"
	directoryHeader  = "PK\x01\x02"
	endHeader        = "PK\x05\x06"
)

const (
	localSize      = 30 // of a local header without name and extra field
	descriptorSize = 16
	entrySize      = 46 // of an entry of the directory without name, extra field and comment
	endSize        = 22
)

// Compression methods.
const (
	stored   = 0
	deflated = 8
)

// Flags that do not change a member's content: the compression level, sizes that follow the content, a name in UTF-8.
// Every other flag (encryption, patches) is refused.
const (
	sizesFollow  = 0x8
	harmlessFlag = 0x2 | 0x4 | sizesFollow | 0x800
)

// Extra fields that make some readers see another name or other sizes than those of the header.
const (
	zip64Extra       = 0x0001
	unicodePathExtra = 0x7075
)

// plainName accepts names of up to 100 letters, digits, dots, underscores and hyphens that begin with a letter or
// digit.
func plainName(name string) bool {
	other := func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
	}
	odd := func(c rune) bool { return other(c) && !strings.ContainsRune("._-", c) }
	return name != "" && len(name) <= 100 && !other(rune(name[0])) && !strings.ContainsFunc(name, odd)
}

// An entry is what the directory says of a member.
type entry struct {
	name          string
	extra         []byte
	flags, method uint16
	checksum      uint32 // CRC-32 of the content
	packed, size  uint32 // bytes in the archive, and unpacked
	offset        uint32 // of its local header
	plain         bool   // it is a file, and no folder, link or device
}

// unzip returns the members of an archive by name. It accepts only archives that every reader reads alike: one file
// after the other without a gap, then the directory, then its end. A reader from the front finds the same as a reader
// of the directory. Package archive/zip would do half of this, and brings what writes archives into the portal's program; tests compare
// with it.
func unzip(file []byte) (map[string][]byte, error) {
	directory, count, err := readEnd(file)
	if err != nil {
		return nil, err
	}
	entries, err := readDirectory(file[directory:len(file)-endSize], count)
	if err != nil {
		return nil, err
	}
	members, names := map[string][]byte{}, map[string]bool{}
	at, total := 0, 0
	for i := range entries {
		e := &entries[i]
		if err := e.check(names); err != nil {
			return nil, fmt.Errorf("member %q: %w", e.name, err)
		}
		packed, next, err := e.follow(file[:directory], at)
		if err != nil {
			return nil, fmt.Errorf("member %q: %w", e.name, err)
		}
		content, err := e.unpack(packed)
		if err != nil {
			return nil, fmt.Errorf("member %q: %w", e.name, err)
		}
		if total += len(content); total > maxTotal {
			return nil, fmt.Errorf("the members hold more than %d bytes together", maxTotal)
		}
		members[e.name], at = content, next
	}
	if at != directory {
		return nil, fmt.Errorf("%d bytes between the last member and the directory", directory-at)
	}
	return members, nil
}

// readEnd returns where the directory begins, and how many entries it has. The directory must end where the end record begins, and that must end
// the file.
func readEnd(file []byte) (directory, count int, err error) {
	if len(file) > maxArchive {
		return 0, 0, fmt.Errorf("%d bytes: at most %d are read", len(file), maxArchive)
	}
	le := binary.LittleEndian
	if len(file) < endSize || string(file[len(file)-endSize:][:4]) != endHeader || le.Uint16(file[len(file)-2:]) != 0 {
		return 0, 0, errors.New("the file does not end with the end of an archive: it is cut, or has more data after it")
	}
	end := file[len(file)-endSize:]
	size, start := le.Uint32(end[12:]), le.Uint32(end[16:])
	if size > maxDirectory {
		return 0, 0, fmt.Errorf("a directory of %d bytes: at most %d are read", size, maxDirectory)
	}
	if uint64(start)+uint64(size) != uint64(len(file)-endSize) {
		return 0, 0, errors.New("the directory is not directly before the end: there is data before, between or after")
	}
	if le.Uint32(end[4:]) != 0 || le.Uint16(end[8:]) != le.Uint16(end[10:]) {
		return 0, 0, errors.New("it is a part of an archive in several files")
	}
	if count = int(le.Uint16(end[10:])); count > maxMembers {
		return 0, 0, fmt.Errorf("%d members: at most %d are read", count, maxMembers)
	}
	return int(start), count, nil
}

// readDirectory reads this many entries, which must be all.
func readDirectory(directory []byte, count int) (entries []entry, err error) {
	le := binary.LittleEndian
	for range count {
		if len(directory) < entrySize || string(directory[:4]) != directoryHeader {
			return nil, errDirectory
		}
		head, rest := directory[:entrySize], directory[entrySize:]
		name, extra, comment := int(le.Uint16(head[28:])), int(le.Uint16(head[30:])), int(le.Uint16(head[32:]))
		if len(rest) < name+extra+comment || le.Uint16(head[34:]) != 0 { // in the first of several files
			return nil, errDirectory
		}
		entries = append(entries, entry{name: string(rest[:name]), extra: rest[name : name+extra], flags: le.Uint16(head[8:]), method: le.Uint16(head[10:]),
			checksum: le.Uint32(head[16:]), packed: le.Uint32(head[20:]), size: le.Uint32(head[24:]), offset: le.Uint32(head[42:]), plain: isPlain(head[5], le.Uint32(head[38:]))})
		directory = rest[name+extra+comment:]
	}
	if len(directory) > 0 {
		return nil, errDirectory
	}
	return entries, nil
}

var errDirectory = errors.New("the directory is not one entry after the other, as many as the end says")

// isPlain reads the attributes of a file by the system that made them.
func isPlain(system byte, attributes uint32) bool {
	const unix, macOS = 3, 19
	if system == unix || system == macOS {
		const kind, none, regular = 0xf000, 0, 0x8000
		return attributes>>16&kind == none || attributes>>16&kind == regular
	}
	const folder, volume = 0x10, 0x8
	return attributes&(folder|volume) == 0
}

// check refuses members that are not plain files.
func (e *entry) check(names map[string]bool) error {
	name := strings.ToLower(e.name) // the same file on some machines
	switch {
	case !plainName(e.name):
		return errors.New("want a plain file name: letters, digits, dots, hyphens and underscores, no folder")
	case names[name]:
		return errors.New("it is there twice")
	case !e.plain:
		return errors.New("want a plain file, and it is a folder, a link or a device")
	case e.flags&1 != 0:
		return errors.New("it is encrypted")
	case e.flags&^harmlessFlag != 0:
		return fmt.Errorf("the flags %#x are not supported", e.flags)
	case e.method != stored && e.method != deflated:
		return fmt.Errorf("the compression method %d is not supported", e.method)
	}
	names[name] = true
	return checkExtra(e.extra)
}

func checkExtra(extra []byte) error {
	for len(extra) > 0 {
		if len(extra) < 4 || len(extra) < 4+int(binary.LittleEndian.Uint16(extra[2:])) {
			return errors.New("an extra field is cut")
		}
		if id := binary.LittleEndian.Uint16(extra); id == zip64Extra || id == unicodePathExtra {
			return fmt.Errorf("the extra field %#04x is not supported: it can give another name or size", id)
		}
		extra = extra[4+int(binary.LittleEndian.Uint16(extra[2:])):]
	}
	return nil
}

var errOtherwise = errors.New("the data before or after it contradicts the directory")

// follow returns the packed bytes of the member that begins at a place, and where the next must begin. The directory
// and the headers at the member must agree.
func (e *entry) follow(file []byte, at int) (packed []byte, next int, err error) {
	le := binary.LittleEndian
	if uint64(e.offset) != uint64(at) || len(file)-at < localSize || string(file[at:at+4]) != localHeader {
		return nil, 0, errors.New("it does not begin where the one before it ends")
	}
	head, nameSize := file[at:at+localSize], len(e.name)
	extra := int(le.Uint16(head[28:]))
	start := at + localSize + nameSize + extra
	end := uint64(start) + uint64(e.packed)
	switch {
	case end > uint64(len(file)):
		return nil, 0, errors.New("it is cut, or overlaps the directory")
	case int(le.Uint16(head[26:])) != nameSize || string(file[at+localSize:at+localSize+nameSize]) != e.name:
		return nil, 0, errors.New("it does not begin where the one before it ends, or has another name there")
	case le.Uint16(head[6:]) != e.flags || le.Uint16(head[8:]) != e.method:
		return nil, 0, errOtherwise
	}
	if err := checkExtra(file[start-extra : start]); err != nil {
		return nil, 0, err
	}
	sizes, next := head[14:26], int(end)
	if e.flags&sizesFollow != 0 {
		if next += descriptorSize; next > len(file) || string(file[end:end+4]) != descriptorHeader {
			return nil, 0, errOtherwise
		}
		sizes = file[end+4 : next]
	}
	if le.Uint32(sizes) != e.checksum || le.Uint32(sizes[4:]) != e.packed || le.Uint32(sizes[8:]) != e.size {
		return nil, 0, errOtherwise
	}
	return file[start:end], next, nil
}

// unpack returns a member's content. It refuses content above the limit.
func (e *entry) unpack(packed []byte) ([]byte, error) {
	content := packed
	if e.method == deflated {
		rest := bytes.NewReader(packed)
		var err error
		if content, err = io.ReadAll(io.LimitReader(flate.NewReader(rest), maxMember+1)); err != nil {
			return nil, err
		}
		if len(content) <= maxMember && rest.Len() > 0 {
			return nil, errors.New("there is more data after the end of its compressed bytes")
		}
	}
	switch {
	case len(content) > maxMember:
		return nil, fmt.Errorf("it holds more than %d bytes", maxMember)
	case uint64(len(content)) != uint64(e.size) || crc32.ChecksumIEEE(content) != e.checksum:
		return nil, errors.New("its length or checksum is not what the directory says")
	}
	return content, nil
}
