//go:build !((darwin || freebsd || linux || netbsd) && !android && !faketime)

package pkcs11

import (
	"fmt"
	"runtime"
)

func functionLister(string) (uintptr, error) {
	return 0, fmt.Errorf("PKCS #11 libraries are not supported on %s", runtime.GOOS)
}
