// Command release makes what people download: for each platform an archive with the programs, their completions, the documents
// and every licence, a list of the parts that they are built of (an SBOM), for Linux a container image, and the checksums of all. scripts/release calls it.
//
//	release REPOSITORY FOLDER [PLATFORM…]
//
// It builds what is committed, of a fresh clone. The same commit and the same version of Go give the same bytes on every machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

// A platform is an operating system and a processor, as Go names them.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// platforms are those for which there are archives.
var platforms = []platform{
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"linux", "amd64"}, {"linux", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// programs are those that an archive for the platform holds. jurat-token loads libraries of vendors as Unix systems have them.
func (p platform) programs() []string {
	if p.os == "windows" {
		return []string{"jurat"}
	}
	return []string{"jurat", "jurat-token"}
}

func run(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errors.New("want a repository, a folder, and the platforms if not all")
	}
	wanted, err := choose(args[2:])
	if err != nil {
		return err
	}
	return release(ctx, args[0], args[1], wanted)
}

// choose finds the platforms of these names; without any, all.
func choose(names []string) ([]platform, error) {
	if len(names) == 0 {
		return platforms, nil
	}
	var wanted []platform
	for _, name := range names {
		at := slices.IndexFunc(platforms, func(p platform) bool { return p.String() == name })
		if at < 0 {
			return nil, fmt.Errorf("no archives are made for %q, only for %v", name, platforms)
		}
		wanted = append(wanted, platforms[at])
	}
	return wanted, nil
}

// release makes every archive, and last the checksums, in the folder.
func release(ctx context.Context, repository, folder string, wanted []platform) error {
	source, err := clone(ctx, repository)
	if err != nil {
		return err
	}
	defer os.RemoveAll(source)
	for i, p := range wanted {
		fmt.Fprintf(os.Stderr, "release: %s (%d of %d)\n", p, i+1, len(wanted))
		if err := one(ctx, source, folder, p); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return sums(folder)
}

// one makes the archive of one platform, and beside it the list of its parts; for Linux also a container image.
func one(ctx context.Context, source, folder string, p platform) error {
	built, err := build(ctx, source, p)
	if err != nil {
		return err
	}
	parts, err := built.bom()
	if err != nil {
		return err
	}
	licences, err := thirdParty(ctx, source, p, built.modules())
	if err != nil {
		return err
	}
	files, err := common(ctx, source)
	if err != nil {
		return err
	}
	files = append(files, file{name: "THIRD-PARTY.txt", mode: 0o644, content: render(licences)}, file{name: "sbom.cdx.json", mode: 0o644, content: parts})
	for _, program := range built.programs {
		files = append(files, file{name: program.file, mode: 0o755, content: program.content})
	}
	if err := os.WriteFile(filepath.Join(folder, built.name()+".cdx.json"), parts, 0o644); err != nil {
		return err
	}
	if p.os == "linux" {
		if err := image(ctx, source, folder, built, licences); err != nil {
			return fmt.Errorf("container image: %w", err)
		}
	}
	return pack(folder, built.name(), p, built.committed, files)
}
