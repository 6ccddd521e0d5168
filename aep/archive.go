package aep

import (
	"archive/zip"
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
	endHeader        = "PK\x05\x06"
)

const (
	localSize      = 30 // of a local header without name and extra field
	descriptorSize = 16
	endSize        = 22
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

// unzip returns the members of an archive by name. It accepts only archives that every reader reads alike: one file
// after the other without a gap, then the directory, then its end. A reader from the front finds the same as a reader
// of the directory.
func unzip(file []byte) (map[string][]byte, error) {
	directory, err := checkEnd(file)
	if err != nil {
		return nil, err
	}
	archive, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	if len(archive.File) > maxMembers {
		return nil, fmt.Errorf("%d members: at most %d are read", len(archive.File), maxMembers)
	}
	members, names := map[string][]byte{}, map[string]bool{}
	at, total := 0, 0
	for _, f := range archive.File {
		if err := checkMember(f, names); err != nil {
			return nil, fmt.Errorf("member %q: %w", f.Name, err)
		}
		packed, next, err := follow(file[:directory], f, at)
		if err != nil {
			return nil, fmt.Errorf("member %q: %w", f.Name, err)
		}
		content, err := unpack(packed, f)
		if err != nil {
			return nil, fmt.Errorf("member %q: %w", f.Name, err)
		}
		if total += len(content); total > maxTotal {
			return nil, fmt.Errorf("the members hold more than %d bytes together", maxTotal)
		}
		members[f.Name], at = content, next
	}
	if at != directory {
		return nil, fmt.Errorf("%d bytes between the last member and the directory", directory-at)
	}
	return members, nil
}

// checkEnd returns where the directory begins. The directory must end where the end record begins, and that must end
// the file.
func checkEnd(file []byte) (directory int, err error) {
	if len(file) > maxArchive {
		return 0, fmt.Errorf("%d bytes: at most %d are read", len(file), maxArchive)
	}
	if len(file) < endSize || string(file[len(file)-endSize:][:4]) != endHeader {
		return 0, errors.New("the file does not end with the end of an archive: it is cut, or has more data after it")
	}
	end := file[len(file)-endSize:]
	size, start := binary.LittleEndian.Uint32(end[12:]), binary.LittleEndian.Uint32(end[16:])
	if size > maxDirectory {
		return 0, fmt.Errorf("a directory of %d bytes: at most %d are read", size, maxDirectory)
	}
	if uint64(start)+uint64(size) != uint64(len(file)-endSize) {
		return 0, errors.New("the directory is not directly before the end: there is data before, between or after")
	}
	return int(start), nil
}

// checkMember refuses members that are not plain files.
func checkMember(f *zip.File, names map[string]bool) error {
	name := strings.ToLower(f.Name) // the same file on some machines
	switch {
	case !plainName(f.Name):
		return errors.New("want a plain file name: letters, digits, dots, hyphens and underscores, no folder")
	case names[name]:
		return errors.New("it is there twice")
	case !f.Mode().IsRegular():
		return fmt.Errorf("want a plain file, not one of type %v", f.Mode().Type())
	case f.Flags&1 != 0:
		return errors.New("it is encrypted")
	case f.Flags&^harmlessFlag != 0:
		return fmt.Errorf("the flags %#x are not supported", f.Flags)
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return fmt.Errorf("the compression method %d is not supported", f.Method)
	}
	names[name] = true
	return checkExtra(f.Extra)
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
func follow(file []byte, f *zip.File, at int) (packed []byte, next int, err error) {
	le := binary.LittleEndian
	offset, err := f.DataOffset()
	if err != nil {
		return nil, 0, err
	}
	if len(file)-at < localSize || string(file[at:at+4]) != localHeader {
		return nil, 0, errors.New("it does not begin where the one before it ends")
	}
	head, nameSize := file[at:at+localSize], len(f.Name)
	extra := int(le.Uint16(head[28:]))
	start := at + localSize + nameSize + extra
	end := uint64(start) + f.CompressedSize64
	switch {
	case end > uint64(len(file)):
		return nil, 0, errors.New("it is cut, or overlaps the directory")
	case offset != int64(start) || int(le.Uint16(head[26:])) != nameSize || string(file[at+localSize:at+localSize+nameSize]) != f.Name:
		return nil, 0, errors.New("it does not begin where the one before it ends, or has another name there")
	case le.Uint16(head[6:]) != f.Flags || le.Uint16(head[8:]) != f.Method:
		return nil, 0, errOtherwise
	}
	if err := checkExtra(file[start-extra : start]); err != nil {
		return nil, 0, err
	}
	sizes, next := head[14:26], int(end)
	if f.Flags&sizesFollow != 0 {
		if next += descriptorSize; next > len(file) || string(file[end:end+4]) != descriptorHeader {
			return nil, 0, errOtherwise
		}
		sizes = file[end+4 : next]
	}
	if le.Uint32(sizes) != f.CRC32 || uint64(le.Uint32(sizes[4:])) != f.CompressedSize64 || uint64(le.Uint32(sizes[8:])) != f.UncompressedSize64 {
		return nil, 0, errOtherwise
	}
	return file[start:end], next, nil
}

// unpack returns a member's content. It refuses content above the limit.
func unpack(packed []byte, f *zip.File) ([]byte, error) {
	content := packed
	if f.Method == zip.Deflate {
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
	case uint64(len(content)) != f.UncompressedSize64 || crc32.ChecksumIEEE(content) != f.CRC32:
		return nil, errors.New("its length or checksum is not what the directory says")
	}
	return content, nil
}
