package jurat

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jurat/internal/test/must"
)

// mayCall lists, method by method, the packages that may add records to a log. All other code must use them, so that the
// rules on who may act, what an act is bound to and which keys sign it apply everywhere.
var mayCall = map[string][]string{
	"(*jurat/internal/log/ledger.Ledger).Seal":        {"jurat/internal/court/acts", "jurat/internal/court/trial", "jurat/internal/test/jurattest"}, // the last makes logs for tests
	"(*jurat/internal/log/ledger.Ledger).Accept":      {"jurat/internal/court/acts"},
	"(*jurat/internal/log/ledger.Ledger).SealNext":    nil, // through ledger.Operator
	"(*jurat/internal/log/ledger.Ledger).SealLast":    nil,
	"(*jurat/internal/log/ledger.Ledger).Settle":      nil,
	"(*jurat/internal/log/ledger.Ledger).Anchor":      nil,
	"(jurat/internal/log/ledger.Operator).Seal":       {"jurat/internal/log/erasure", "jurat/internal/court/schedule"},
	"(jurat/internal/log/ledger.Operator).SealNext":   {"jurat/internal/log/installation"},
	"(jurat/internal/log/ledger.Operator).ChangeKeys": {"jurat/internal/log/installation"}, // for keys.Ring, in its Config.Change
	"(jurat/internal/log/ledger.Operator).SealLast":   {"jurat/internal/log/access"},
	"(jurat/internal/log/ledger.Operator).Settle":     {"jurat/internal/log/stamping"},
	"(jurat/internal/log/ledger.Operator).Anchor":     {"jurat/internal/log/stamping"},
}

// sealingRoom is the package that has these methods.
const sealingRoom = "jurat/internal/log/ledger"

// TestWhoSeals: only these packages add records to a log: those of the acts of people and agents, of the clerk of a
// trial, and of the operator.
func TestWhoSeals(t *testing.T) {
	packages := exported(t)
	exports := map[string]string{}
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	files := token.NewFileSet()
	config := types.Config{Importer: importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })} // reads each package once
	called := map[string][]string{}                                                                                                                 // method -> packages
	for _, p := range packages {
		if !strings.HasPrefix(p.ImportPath, "jurat/") || p.ImportPath == sealingRoom || !slices.Contains(p.Deps, sealingRoom) {
			continue
		}
		for _, method := range methodsUsed(t, p, files, &config) {
			if may, watched := mayCall[method]; watched {
				called[method] = append(called[method], p.ImportPath)
				must.Hold(t, slices.Contains(may, p.ImportPath), "%s calls %s: acts are sealed by %v", p.ImportPath, method, may)
			}
		}
	}
	for method, may := range mayCall {
		for _, path := range may {
			must.Hold(t, slices.Contains(called[method], path), "%s is listed, but does not call %s: remove it from the list", path, method)
		}
	}
}

type exportedPackage struct {
	ImportPath, Dir, Export string
	GoFiles, Deps           []string
}

// exported lists the packages of the module and their dependencies, with the files that have their compiled types.
func exported(t *testing.T) []exportedPackage {
	t.Helper()
	return goList[exportedPackage](t, os.Environ(), "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Deps", "./...")
}

// methodsUsed lists the methods and functions that a package's files use, without its tests.
func methodsUsed(t *testing.T, p exportedPackage, files *token.FileSet, config *types.Config) []string {
	t.Helper()
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		file := must.Get(parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution))(t)
		parsed = append(parsed, file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	_, err := config.Check(p.ImportPath, files, parsed, info)
	must.Need(t, err == nil, "%v", err)
	var names []string
	for _, used := range info.Uses {
		if f, ok := used.(*types.Func); ok {
			names = append(names, f.FullName())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
