package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// A container image holds the program, root certificates for TLS, and licences: no shell, no package manager, no library. The archive with it
// has the form of an OCI image layout, and beside it the list by which older programs of Docker load an image.

const (
	// repository is the name under which an image is loaded. Nobody can publish another image under it: it names this machine.
	repository = "localhost/jurat"
	// user is who the program is in a container. No file of the image belongs to this user but the data folder.
	user = 65532
	// rootsModule is where root certificates come from.
	rootsModule = "golang.org/x/crypto/x509roots/fallback"
)

type (
	descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int               `json:"size"`
		Annotations map[string]string `json:"annotations,omitempty"`
		Platform    map[string]string `json:"platform,omitempty"`
	}
	imageIndex struct {
		Schema    int          `json:"schemaVersion"`
		MediaType string       `json:"mediaType"`
		Manifests []descriptor `json:"manifests"`
	}
	imageManifest struct {
		Schema      int               `json:"schemaVersion"`
		MediaType   string            `json:"mediaType"`
		Config      descriptor        `json:"config"`
		Layers      []descriptor      `json:"layers"`
		Annotations map[string]string `json:"annotations"`
	}
	imageConfig struct {
		Created      string      `json:"created"`
		Architecture string      `json:"architecture"`
		OS           string      `json:"os"`
		Config       execution   `json:"config"`
		RootFS       rootFS      `json:"rootfs"`
		History      []madeLayer `json:"history"`
	}
	execution struct {
		User         string              `json:"User"`
		ExposedPorts map[string]struct{} `json:"ExposedPorts"`
		Env          []string            `json:"Env"`
		Entrypoint   []string            `json:"Entrypoint"`
		Cmd          []string            `json:"Cmd"`
		Volumes      map[string]struct{} `json:"Volumes"`
		WorkingDir   string              `json:"WorkingDir"`
		Labels       map[string]string   `json:"Labels"`
		StopSignal   string              `json:"StopSignal"`
		Healthcheck  healthcheck         `json:"Healthcheck"` // Docker's addition to OCI's configuration
	}
	healthcheck struct {
		Test        []string      `json:"Test"`
		Interval    time.Duration `json:"Interval"`
		Timeout     time.Duration `json:"Timeout"`
		StartPeriod time.Duration `json:"StartPeriod"`
		Retries     int           `json:"Retries"`
	}
	rootFS struct {
		Type  string   `json:"type"`
		Diffs []string `json:"diff_ids"`
	}
	madeLayer struct {
		Created string `json:"created"`
		By      string `json:"created_by"`
	}
	loaded struct { // an image in manifest.json, as 'docker save' writes it
		Config string   `json:"Config"`
		Tags   []string `json:"RepoTags"`
		Layers []string `json:"Layers"`
	}
)

// image makes the archive with the container image of a platform. Only the program that runs in containers is in it: jurat-token needs the
// system's C library.
func image(ctx context.Context, source, folder string, b built, licences []notice) error {
	b.programs = slices.DeleteFunc(slices.Clone(b.programs), func(p program) bool { return p.file != "jurat" })
	files, err := rootFiles(ctx, source, b, licences)
	if err != nil {
		return err
	}
	packed, err := b.layout(files)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, b.name()+".oci.tar"), packed, 0o644)
}

// rootFiles are all files of the image.
func rootFiles(ctx context.Context, source string, b built, licences []notice) ([]file, error) {
	roots, from, err := rootCertificates(ctx, source)
	if err != nil {
		return nil, err
	}
	parts, err := b.bom(&from.module)
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile(filepath.Join(source, "LICENSE"))
	if err != nil {
		return nil, err
	}
	return withFolders([]file{
		{name: "data", mode: fs.ModeDir | 0o700, owner: user},
		{name: "tmp", mode: fs.ModeDir | fs.ModeSticky | 0o777},
		{name: "etc/passwd", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:0::/:/nonexistent\njurat:x:%d:%[1]d::/data:/nonexistent\n", user)},
		{name: "etc/group", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:\njurat:x:%d:\n", user)},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: roots},
		{name: "usr/local/bin/jurat", mode: 0o755, content: b.programs[0].content},
		{name: "usr/share/doc/jurat/LICENSE", mode: 0o644, content: own},
		{name: "usr/share/doc/jurat/THIRD-PARTY.txt", mode: 0o644, content: render(slices.Concat(licences, from.notices))},
		{name: "usr/share/doc/jurat/sbom.cdx.json", mode: 0o644, content: parts},
	}), nil
}

// An origin is a module from which data come, and its licences.
type origin struct {
	module  debug.Module
	notices []notice
}

// rootCertificates returns the certificates by which programs know servers on the Internet, in PEM.
func rootCertificates(ctx context.Context, source string) (roots []byte, from origin, err error) {
	const print = "./internal/release/roots"
	here := platform{runtime.GOOS, runtime.GOARCH}.env()
	if roots, err = command(ctx, source, here, "go", "run", "-trimpath", "-buildvcs=false", "-mod=readonly", print); err != nil {
		return nil, from, err
	}
	said, err := command(ctx, source, nil, "go", "list", "-m", "-mod=readonly", "-json=Path,Version,Sum", rootsModule)
	if err != nil {
		return nil, from, err
	}
	if err := json.Unmarshal(said, &from.module); err != nil {
		return nil, from, fmt.Errorf("what go list says of %s: %w", rootsModule, err)
	}
	if said, err = command(ctx, source, here, "go", "list", "-mod=readonly", "-deps", "-json=ImportPath,Dir,Standard,Module", print); err != nil {
		return nil, from, err
	}
	packages, err := packagesIn(said)
	if err != nil {
		return nil, from, err
	}
	if from.notices, err = collect(packages); err != nil {
		return nil, from, err
	}
	name := rootsModule + " " + from.module.Version
	if err := covered(from.notices, name); err != nil {
		return nil, from, err
	}
	from.notices = append(from.notices, notice{name, "the root certificates", ofMozilla})
	return roots, from, nil
}

const ofMozilla = `The certificates in /etc/ssl/certs/ca-certificates.crt are those of Mozilla's root program (certdata.txt of NSS).
This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
If a copy of the MPL was not distributed with this file, You can obtain one at https://mozilla.org/MPL/2.0/.
`

// withFolders adds the folders of files, and sorts all, so that each folder comes before what is in it.
func withFolders(files []file) []file {
	there := map[string]bool{".": true}
	for _, f := range slices.Clone(files) {
		for dir := path.Dir(f.name); !there[dir]; dir = path.Dir(dir) {
			there[dir] = true
			files = append(files, file{name: dir, mode: fs.ModeDir | 0o755})
		}
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	return files
}

// layout packs files as an image.
func (b built) layout(files []file) ([]byte, error) {
	var blobs []file
	blob := func(media string, content []byte) descriptor {
		sum := fmt.Sprintf("%x", sha256.Sum256(content))
		blobs = append(blobs, file{name: "blobs/sha256/" + sum, mode: 0o644, content: content})
		return descriptor{MediaType: media, Digest: "sha256:" + sum, Size: len(content)}
	}
	place := func(d descriptor) string { return "blobs/sha256/" + strings.TrimPrefix(d.Digest, "sha256:") }

	var plain, compressed bytes.Buffer
	if err := writeTar(&plain, b.committed, files); err != nil {
		return nil, err
	}
	if err := compress(&compressed, plain.Bytes()); err != nil {
		return nil, err
	}
	layer := blob("application/vnd.oci.image.layer.v1.tar+gzip", compressed.Bytes())
	text, err := json.Marshal(b.config(fmt.Sprintf("sha256:%x", sha256.Sum256(plain.Bytes()))))
	if err != nil {
		return nil, err
	}
	config := blob("application/vnd.oci.image.config.v1+json", text)
	const manifestType = "application/vnd.oci.image.manifest.v1+json"
	if text, err = json.Marshal(imageManifest{2, manifestType, config, []descriptor{layer}, b.labels()}); err != nil {
		return nil, err
	}
	manifest := blob(manifestType, text)
	tag := repository + ":" + strings.ReplaceAll(b.version, "+", "-")
	manifest.Annotations = map[string]string{"io.containerd.image.name": tag, "org.opencontainers.image.ref.name": tag}
	manifest.Platform = map[string]string{"os": b.platform.os, "architecture": b.platform.arch}
	for name, value := range map[string]any{
		"oci-layout":    map[string]string{"imageLayoutVersion": "1.0.0"},
		"index.json":    imageIndex{2, "application/vnd.oci.image.index.v1+json", []descriptor{manifest}},
		"manifest.json": []loaded{{place(config), []string{tag}, []string{place(layer)}}},
	} {
		if text, err = json.Marshal(value); err != nil {
			return nil, err
		}
		blobs = append(blobs, file{name: name, mode: 0o644, content: text})
	}
	var whole bytes.Buffer
	err = writeTar(&whole, b.committed, withFolders(blobs))
	return whole.Bytes(), err
}

// config says how the image runs.
func (b built) config(diff string) imageConfig {
	at := b.committed.Format(time.RFC3339)
	return imageConfig{at, b.platform.arch, b.platform.os, execution{
		User:         fmt.Sprintf("%d:%[1]d", user),
		ExposedPorts: map[string]struct{}{"8417/tcp": {}},
		Env:          []string{"PATH=/usr/local/bin", "JURAT_DATA=/data", "JURAT_ADDR=0.0.0.0:8417"},
		Entrypoint:   []string{"/usr/local/bin/jurat"},
		Cmd:          []string{"serve"},
		Volumes:      map[string]struct{}{"/data": {}},
		WorkingDir:   "/",
		Labels:       b.labels(),
		StopSignal:   "SIGTERM",
		Healthcheck:  healthcheck{[]string{"CMD", "/usr/local/bin/jurat", "ready"}, 30 * time.Second, 10 * time.Second, time.Minute, 3},
	}, rootFS{"layers", []string{diff}}, []madeLayer{{at, "scripts/release"}}}
}

// labels are OCI's annotations, which say of what the image is made. None names a licence: there are many, and the image holds them.
func (b built) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "jurat",
		"org.opencontainers.image.description": "Puts AI agents before a jury and seals what is said into records that anyone can verify.",
		"org.opencontainers.image.version":     b.version,
		"org.opencontainers.image.revision":    b.commit,
		"org.opencontainers.image.created":     b.committed.Format(time.RFC3339),
	}
}
