//go:build unix

package relay

// unixModes says that a folder's mode tells who can read it.
const unixModes = true
