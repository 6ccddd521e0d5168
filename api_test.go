package jurat

import (
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"jurat/internal/test/must"
)

// public are the packages on which other programs may build.
var public = regexp.MustCompile(`^jurat/(evidence|timestamp|jury|verify|reputation|client|recorder)(/|$)`)

// TestPublicPackagesNameNothingInternal: nothing that a public package exports has a type of an internal package, which other programs cannot name.
func TestPublicPackagesNameNothingInternal(t *testing.T) {
	exports := map[string]string{}
	for _, p := range exported(t) {
		exports[p.ImportPath] = p.Export
	}
	load := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	found := 0
	for path := range exports {
		if !public.MatchString(path) {
			continue
		}
		found++
		scope := must.Get(load.Import(path))(t).Scope()
		for _, name := range scope.Names() {
			if object := scope.Lookup(name); object.Exported() {
				what := path + "." + name
				see := func(in string, used *types.TypeName) {
					t.Errorf("%s: %s has the type %s: give it a type of a public package", what, in, used.Type())
				}
				walkAPI(object.Type(), name, map[types.Type]bool{}, see)
			}
		}
	}
	must.Hold(t, found > 10, "this test found only %d public packages", found)
}

// walkAPI calls see with each internal type that a program reaches from a type by exported names. Types of other public packages are walked where they are.
func walkAPI(of types.Type, in string, done map[types.Type]bool, see func(in string, used *types.TypeName)) {
	if done[of] {
		return
	}
	done[of] = true
	next := func(t types.Type, in string) { walkAPI(t, in, done, see) }
	switch of := of.(type) {
	case *types.Alias:
		next(types.Unalias(of), in)
	case *types.Named:
		name := of.Obj()
		if name.Pkg() == nil || !strings.HasPrefix(name.Pkg().Path(), "jurat/") {
			return
		}
		if strings.HasPrefix(name.Pkg().Path(), "jurat/internal/") {
			see(in, name)
			return
		}
		for i := range of.NumMethods() {
			if m := of.Method(i); m.Exported() {
				next(m.Type(), in+"."+m.Name())
			}
		}
		for argument := range of.TypeArgs().Types() {
			next(argument, in)
		}
		next(of.Underlying(), in)
	case *types.Struct:
		for field := range of.Fields() {
			if field.Exported() || field.Embedded() {
				next(field.Type(), in+"."+field.Name())
			}
		}
	case *types.Interface:
		for m := range of.Methods() {
			if m.Exported() {
				next(m.Type(), in+"."+m.Name())
			}
		}
	case *types.Signature:
		next(of.Params(), in)
		next(of.Results(), in)
	case *types.Tuple:
		for v := range of.Variables() {
			next(v.Type(), in)
		}
	case *types.Map:
		next(of.Key(), in)
		next(of.Elem(), in)
	case interface{ Elem() types.Type }: // pointer, slice, array, channel
		next(of.Elem(), in)
	}
}
