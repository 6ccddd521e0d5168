//go:build (darwin || freebsd || linux || netbsd) && !android && !faketime

package pkcs11

import (
	"fmt"

	"github.com/ebitengine/purego"
)

// functionLister loads a library and returns its C_GetFunctionList. The library stays loaded until the program ends.
func functionLister(path string) (uintptr, error) {
	library, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return 0, err
	}
	function, err := purego.Dlsym(library, "C_GetFunctionList")
	if err != nil {
		return 0, fmt.Errorf("this is no PKCS #11 library: %w", err)
	}
	return function, nil
}
