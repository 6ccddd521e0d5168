package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A file is one in an archive: its name below the archive's folder, its mode and its content. In images it may be a folder, and have an owner.
type file struct {
	name    string
	mode    fs.FileMode
	content []byte
	owner   int // a user's and a group's number
}

// common are the files that every archive holds: what the README points to, and what a shell or a service manager reads.
func common(ctx context.Context, source string) ([]file, error) {
	listed, err := command(ctx, source, nil, "git", "ls-files", "-z", "--", "LICENSE", "README.md", "docs", "deploy", "examples", "cmd/jurat/completion")
	if err != nil {
		return nil, err
	}
	var files []file
	for name := range strings.SplitSeq(strings.TrimSuffix(string(listed), "\x00"), "\x00") {
		if path.Ext(name) == ".go" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(source, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		if rest, ok := strings.CutPrefix(name, "cmd/jurat/completion/"); ok {
			name = "completions/" + rest
		}
		files = append(files, file{name: name, mode: 0o644, content: content})
	}
	return files, nil
}

// pack writes the archive: sorted, with one time and no owner, so that nothing of this machine is in it.
func pack(folder, name string, p platform, at time.Time, files []file) error {
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	for i := range files {
		files[i].name = name + "/" + files[i].name
	}
	var packed bytes.Buffer
	write, suffix := writeTarGz, ".tar.gz"
	if p.os == "windows" {
		write, suffix = writeZip, ".zip"
	}
	if err := write(&packed, at, files); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, name+suffix), packed.Bytes(), 0o644)
}

func writeTarGz(to io.Writer, at time.Time, files []file) error {
	var plain bytes.Buffer
	if err := writeTar(&plain, at, files); err != nil {
		return err
	}
	return compress(to, plain.Bytes())
}

func compress(to io.Writer, plain []byte) error {
	compressed, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, err = compressed.Write(plain)
	return errors.Join(err, compressed.Close())
}

func writeTar(to io.Writer, at time.Time, files []file) error {
	w := tar.NewWriter(to)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: int64(f.mode.Perm()), Size: int64(len(f.content)), ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR, Uid: f.owner, Gid: f.owner}
		if f.mode.IsDir() {
			header.Name, header.Typeflag = f.name+"/", tar.TypeDir
		}
		if f.mode&fs.ModeSticky != 0 {
			header.Mode |= 0o1000
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(f.content); err != nil {
			return err
		}
	}
	return w.Close()
}

func writeZip(to io.Writer, at time.Time, files []file) error {
	w := zip.NewWriter(to)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(f.mode)
		one, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := one.Write(f.content); err != nil {
			return err
		}
	}
	return w.Close()
}

// sums writes the checksums of all files in the folder, in the form that sha256sum checks.
func sums(folder string) error {
	entries, err := os.ReadDir(folder) // sorted
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(content), entry.Name())
	}
	return os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(text.String()), 0o644)
}
