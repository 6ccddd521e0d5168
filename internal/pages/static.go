package pages

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
)

// AssetPrefix is the path of static files.
const AssetPrefix = "/static/"

//go:embed static
var staticFiles embed.FS

// An asset is a static file under a name that changes with its content, so that browsers can keep it forever.
type asset struct {
	path    string // contains the digest of the content
	kind    string // media type
	content []byte
}

var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// assets holds the static files by their plain names.
var assets = func() map[string]asset {
	byName := map[string]asset{}
	entries, err := staticFiles.ReadDir("static")
	if err != nil {
		panic(err) // the files are part of the program
	}
	for _, e := range entries {
		content, err := staticFiles.ReadFile("static/" + e.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(content)
		extension := path.Ext(e.Name())
		byName[e.Name()] = asset{AssetPrefix + strings.TrimSuffix(e.Name(), extension) + "." + hex.EncodeToString(sum[:8]) + extension,
			contentTypes[extension], content}
	}
	return byName
}()

// assetPath returns the path of a static file.
func assetPath(name string) (string, error) {
	a, is := assets[name]
	if !is {
		return "", fmt.Errorf("there is no static file %q", name)
	}
	return a.path, nil
}

// Asset returns the static file at a path, and its media type.
func Asset(path string) (content []byte, mediaType string, found bool) {
	for _, a := range assets {
		if a.path == path {
			return a.content, a.kind, true
		}
	}
	return nil, "", false
}
