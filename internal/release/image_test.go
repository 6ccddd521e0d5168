package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// An opened is an image as a reader finds it.
type opened struct {
	config imageConfig
	tag    string
	files  map[string]*tar.Header
	read   map[string][]byte
}

// open reads an image from its index on, and checks every digest, size and type on the way.
func open(t *testing.T, archive string, at time.Time) opened {
	t.Helper()
	packed, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	outer, parts := untar(t, packed, at)
	for name, h := range outer {
		if h.Uid != 0 || h.Gid != 0 || h.Mode&0o022 != 0 {
			t.Errorf("%s: owner %d:%d, mode %o", name, h.Uid, h.Gid, h.Mode)
		}
	}
	used := map[string]bool{"oci-layout": true, "index.json": true, "manifest.json": true}
	get := func(d descriptor, media string) []byte {
		t.Helper()
		place := "blobs/" + strings.Replace(d.Digest, ":", "/", 1)
		content := parts[place]
		if d.MediaType != media || d.Size != len(content) || d.Digest != fmt.Sprintf("sha256:%x", sha256.Sum256(content)) {
			t.Fatalf("%+v is not %d bytes of type %s", d, len(content), media)
		}
		used[place] = true
		return content
	}
	var i imageIndex
	var m imageManifest
	var of opened
	unmarshal(t, parts["index.json"], &i)
	if len(i.Manifests) != 1 {
		t.Fatalf("%+v", i)
	}
	unmarshal(t, get(i.Manifests[0], "application/vnd.oci.image.manifest.v1+json"), &m)
	unmarshal(t, get(m.Config, "application/vnd.oci.image.config.v1+json"), &of.config)
	if len(m.Layers) != 1 || len(of.config.RootFS.Diffs) != 1 || !maps.Equal(m.Annotations, of.config.Config.Labels) {
		t.Fatalf("%+v, %+v", m, of.config)
	}
	plain := decompress(t, get(m.Layers[0], "application/vnd.oci.image.layer.v1.tar+gzip"))
	if of.config.RootFS.Diffs[0] != fmt.Sprintf("sha256:%x", sha256.Sum256(plain)) {
		t.Error("the configuration names another layer")
	}
	of.tag = i.Manifests[0].Annotations["org.opencontainers.image.ref.name"]
	ofDocker(t, parts["manifest.json"], of.tag, m)
	if string(parts["oci-layout"]) != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("%s", parts["oci-layout"])
	}
	for name := range parts {
		if !used[name] {
			t.Errorf("%s belongs to nothing", name)
		}
	}
	of.files, of.read = untar(t, plain, at)
	return of
}

// ofDocker checks the list by which older programs of Docker load the same image.
func ofDocker(t *testing.T, text []byte, tag string, m imageManifest) {
	t.Helper()
	var list []loaded
	unmarshal(t, text, &list)
	place := func(d descriptor) string { return "blobs/" + strings.Replace(d.Digest, ":", "/", 1) }
	if len(list) != 1 || list[0].Config != place(m.Config) || !slices.Equal(list[0].Layers, []string{place(m.Layers[0])}) || !slices.Equal(list[0].Tags, []string{tag}) {
		t.Errorf("%s", text)
	}
}

func unmarshal(t *testing.T, text []byte, to any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

func decompress(t *testing.T, content []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil || !r.ModTime.IsZero() || r.Name != "" {
		t.Fatalf("%v, %v, %q", err, r.ModTime, r.Name)
	}
	return plain
}

// untar reads an archive in which all is in order, has one time, and comes after the folder that it is in.
func untar(t *testing.T, packed []byte, at time.Time) (headers map[string]*tar.Header, contents map[string][]byte) {
	t.Helper()
	headers, contents = map[string]*tar.Header{}, map[string][]byte{}
	last := ""
	for r := tar.NewReader(bytes.NewReader(packed)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return headers, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(h.Name, "/")
		folder := filepath.Dir(name)
		if !h.ModTime.Equal(at) || h.Uname+h.Gname != "" || name <= last || folder != "." && headers[folder] == nil {
			t.Errorf("%s after %s: %+v", name, last, h)
		}
		headers[name], last = h, name
		switch h.Typeflag {
		case tar.TypeReg:
			if contents[name], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		case tar.TypeDir:
		default:
			t.Errorf("%s is of type %c", name, h.Typeflag)
		}
	}
}

// imagesAreTrue checks each image of a release: what is in it, who owns it, and what it says of itself.
func imagesAreTrue(t *testing.T, dist, commit string) {
	t.Helper()
	archives, err := filepath.Glob(filepath.Join(dist, "*.oci.tar"))
	if err != nil || len(archives) == 0 {
		t.Fatal(archives, err)
	}
	at, err := time.Parse(time.RFC3339, subject)
	if err != nil {
		t.Fatal(err)
	}
	for _, archive := range archives {
		of := open(t, archive, at)
		p := platform{of.config.OS, of.config.Architecture}
		if filepath.Base(archive) != "jurat_"+tag+"_"+p.os+"_"+p.arch+".oci.tar" || of.tag != "localhost/jurat:"+tag {
			t.Errorf("%s holds %s for %s", archive, of.tag, p)
		}
		files := unpack(t, dist, p)
		for name, want := range map[string][]byte{"usr/local/bin/jurat": files["jurat"].content, "usr/share/doc/jurat/LICENSE": files["LICENSE"].content} {
			if !bytes.Equal(of.read[name], want) || len(want) == 0 {
				t.Errorf("%s: %s is another than in the archive", p, name)
			}
		}
		labels := of.config.Config.Labels
		if labels["org.opencontainers.image.version"] != tag || labels["org.opencontainers.image.created"] != "2026-01-31T07:15:00Z" || labels["org.opencontainers.image.revision"] != commit {
			t.Errorf("%v", labels)
		}
		belong(t, of)
		rootsAreTrue(t, of.read["etc/ssl/certs/ca-certificates.crt"], of.read["usr/share/doc/jurat/THIRD-PARTY.txt"])
		imagePartsAreTrue(t, of, files["sbom.cdx.json"].content)
	}
}

// TestImage makes an image for another processor, of a program that is none.
func TestImage(t *testing.T) {
	t.Parallel()
	at, err := time.Parse(time.RFC3339, subject)
	if err != nil {
		t.Fatal(err)
	}
	dist := t.TempDir()
	uses := func(paths ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{GoVersion: "go1.26.8"}
		for _, path := range paths {
			info.Deps = append(info.Deps, &debug.Module{Path: path, Version: "v1.0.0", Sum: "h1:x"})
		}
		return info
	}
	b := built{platform{"linux", "arm64"}, tag, strings.Repeat("a", 40), at.UTC(), []program{
		{"jurat", []byte("program"), uses("modernc.org/sqlite")}, {"jurat-token", []byte("another"), uses("github.com/ebitengine/purego", "modernc.org/sqlite")}}}
	if err := image(t.Context(), root, dist, b, nil); err != nil {
		t.Fatal(err)
	}
	whole, err := b.bom()
	if err != nil {
		t.Fatal(err)
	}
	licence, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	if err := pack(dist, b.name(), b.platform, at, []file{{name: "jurat", mode: 0o755, content: []byte("program")}, {name: "LICENSE", mode: 0o644, content: licence}, {name: "sbom.cdx.json", mode: 0o644, content: whole}}); err != nil {
		t.Fatal(err)
	}
	imagesAreTrue(t, dist, b.commit)
}

// belong checks that the user of the image can change nothing in it but the data folder and temporary files.
func belong(t *testing.T, of opened) {
	t.Helper()
	var mine []string
	for name, h := range of.files {
		if h.Uid != 0 || h.Gid != 0 || h.Mode&0o002 != 0 {
			mine = append(mine, fmt.Sprintf("%s %d:%d %o %c", name, h.Uid, h.Gid, h.Mode, h.Typeflag))
		}
		if h.Mode&0o6000 != 0 {
			t.Errorf("%s has the mode %o", name, h.Mode)
		}
	}
	slices.Sort(mine)
	if want := []string{"data 65532:65532 700 5", "tmp 0:0 1777 5"}; !slices.Equal(mine, want) || of.config.Config.User != "65532:65532" {
		t.Errorf("the user %s has %q, want %q", of.config.Config.User, mine, want)
	}
	if want := fmt.Sprintf("%v", map[string]struct{}{"/data": {}}); fmt.Sprintf("%v", of.config.Config.Volumes) != want {
		t.Errorf("volumes: %v", of.config.Config.Volumes)
	}
}

// rootsAreTrue: the image has all of Mozilla's roots but those that are restricted, and says whose they are.
func rootsAreTrue(t *testing.T, text, licences []byte) {
	t.Helper()
	there, restricted := map[string]bool{}, 0
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		there[string(block.Bytes)] = true
	}
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			restricted++
		}
		if there[string(root.Certificate)] != (root.Constraint == nil) {
			t.Errorf("a root with a restriction: %t, in the image: %t", root.Constraint != nil, there[string(root.Certificate)])
		}
		delete(there, string(root.Certificate))
	}
	if pool := x509.NewCertPool(); len(there) > 0 || restricted == 0 || !pool.AppendCertsFromPEM(text) {
		t.Errorf("%d certificates are of somebody else, %d are restricted", len(there), restricted)
	}
	for _, want := range []string{"\n" + rootsModule + " v", ": the root certificates\n", "https://mozilla.org/MPL/2.0/"} {
		if !bytes.Contains(licences, []byte(want)) {
			t.Errorf("THIRD-PARTY.txt lacks %q", want)
		}
	}
}

// imagePartsAreTrue: the list in the image has what is in the image, and not what is in the archive beside it.
func imagePartsAreTrue(t *testing.T, of opened, ofArchive []byte) {
	t.Helper()
	text := of.read["usr/share/doc/jurat/sbom.cdx.json"]
	var list, other bom
	unmarshal(t, text, &list)
	unmarshal(t, ofArchive, &other)
	programs := list.Metadata.Component.Components
	if len(programs) != 1 || programs[0].Hashes[0].Content != fmt.Sprintf("%x", sha256.Sum256(of.read["usr/local/bin/jurat"])) {
		t.Errorf("%+v", programs)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(list.Components, func(c component) bool { return c.Name == name })
	}
	if !has(rootsModule) || has("github.com/ebitengine/purego") || !has("modernc.org/sqlite") || len(list.Components) != len(other.Components) {
		t.Errorf("it lists %d parts, and the archive's list %d", len(list.Components), len(other.Components))
	}
	file := filepath.Join(t.TempDir(), "image.cdx.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	judgeList(t, file)
}
