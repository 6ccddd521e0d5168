package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// The list of parts has the form of CycloneDX 1.6. Every part is read from the programs themselves.
type (
	bom struct {
		Schema       string       `json:"$schema"`
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Serial       string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp  string      `json:"timestamp"`
		Lifecycles []lifecycle `json:"lifecycles"`
		Component  component   `json:"component"`
	}
	lifecycle struct {
		Phase string `json:"phase"`
	}
	component struct {
		Type       string      `json:"type"`
		Ref        string      `json:"bom-ref"`
		Name       string      `json:"name"`
		Version    string      `json:"version"`
		Hashes     []hash      `json:"hashes,omitempty"`
		PURL       string      `json:"purl,omitempty"`
		Properties []property  `json:"properties,omitempty"`
		Components []component `json:"components,omitempty"`
	}
	hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn,omitempty"`
	}
)

// bom lists the parts of the programs, and further modules whose data are beside them.
func (b built) bom(further ...*debug.Module) ([]byte, error) {
	list := bom{Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", Spec: "1.6", Version: 1}
	list.Metadata = metadata{b.committed.Format(time.RFC3339), []lifecycle{{"post-build"}}, b.whole()}
	list.Dependencies = []dependency{{Ref: list.Metadata.Component.Ref}}
	for _, m := range further {
		list.Dependencies[0].On = append(list.Dependencies[0].On, part(m).Ref)
	}
	for _, p := range b.programs {
		list.Dependencies[0].On = append(list.Dependencies[0].On, p.ref(b))
		list.Dependencies = append(list.Dependencies, dependency{p.ref(b), p.needs()})
	}
	for _, m := range append(b.modules(), further...) {
		list.Components = append(list.Components, part(m))
	}
	list.Components = append(list.Components, standard(b.programs[0].info.GoVersion))
	// The serial number is a UUID of version 8 over the rest, so that the same build has the same.
	text, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	list.Serial = serial(text)
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(list)
	return out.Bytes(), err
}

// whole is what the archive holds: the programs, of one commit.
func (b built) whole() component {
	c := component{Type: "application", Ref: "release", Name: "jurat", Version: b.version, Properties: []property{
		{"jurat:commit", b.commit}, {"jurat:platform", b.platform.String()}}}
	for _, p := range b.programs {
		sum := sha256.Sum256(p.content)
		c.Components = append(c.Components, component{Type: "application", Ref: p.ref(b), Name: p.file, Version: b.version, Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sum)}}})
	}
	return c
}

func (p program) ref(b built) string { return "program/" + p.file + "@" + b.version }

// needs are the modules of a program. Which of them needs which is not written in it.
func (p program) needs() []string {
	var refs []string
	for _, m := range p.info.Deps {
		refs = append(refs, part(m).Ref)
	}
	return append(refs, standard(p.info.GoVersion).Ref)
}

// part is a module. Its sum is the one in go.sum, over the module's files, and not the checksum of one file.
func part(m *debug.Module) component {
	if m.Replace != nil {
		m = m.Replace
	}
	purl := purl(m.Path, m.Version)
	return component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl, Properties: []property{{"jurat:go.sum", m.Sum}}}
}

func standard(version string) component {
	version = strings.TrimPrefix(version, "go")
	purl := purl("std", version)
	return component{Type: "library", Ref: purl, Name: "std", Version: version, PURL: purl}
}

// purl is the module's package URL.
func purl(path, version string) string {
	words := strings.Split(path, "/")
	for i, w := range words {
		words[i] = url.PathEscape(w)
	}
	return "pkg:golang/" + strings.Join(words, "/") + "@" + strings.ReplaceAll(url.PathEscape(version), "+", "%2B")
}

func serial(text []byte) string {
	sum := sha256.Sum256(text)
	id := slices.Clone(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
