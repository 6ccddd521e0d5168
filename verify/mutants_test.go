package verify_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	strict "github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/verify"
)

// TestVerifiersAgree lets three verifiers judge mutants of files of every kind, and honest files: this package, the same for WebAssembly, and the
// second verifier. Each time they are others, by a seed that is printed; JURAT_TEST_SEED sets it. The short form tries few; JURAT_TEST_MUTANTS sets how many at length.
func TestVerifiersAgree(t *testing.T) {
	mutants, seed, long := chanceOfTest(t, 40, 20_000)
	if text := os.Getenv("JURAT_TEST_MUTANTS"); text != "" && long {
		mutants = must.Get(strconv.Atoi(text))(t)
	}
	honest := max(4, mutants/20)
	j := newJudges(t, long)
	m := newMutator(t)
	const lot = 1_000 // the second verifier remembers the signatures of a lot, which are those of the same files
	t.Run("mutants", func(t *testing.T) {
		for first := 0; first < mutants; first += lot {
			t.Run(fmt.Sprint(first), func(t *testing.T) {
				t.Parallel()
				own := m.of(t, rand.New(rand.NewPCG(seed, uint64(first))))
				files := map[string][]byte{}
				var list []verificationVector
				for i := first; i < min(mutants, first+lot); i++ {
					list = append(list, own.vector(i, files))
				}
				j.agree(t, list, files, false)
				t.Logf("changes: %v", own.tried)
			})
		}
	})
	for first := 0; first < honest; first += lot {
		t.Run(fmt.Sprint("honest ", first), func(t *testing.T) {
			c := newChanceOf(t, seed+uint64(first), jurattest.NewForStrangers(t))
			files := map[string][]byte{}
			var list []verificationVector
			for i := first; i < min(honest, first+lot); i++ {
				g := givenBundle(t, fmt.Sprintf("honest-%d", i), c.honestFile(t), c.house.Options(t))
				v := verificationVector{Name: g.name, File: g.name + ".jurat", Trust: g.name + ".trust"}
				files[v.File], files[v.Trust] = g.file, g.trust
				list = append(list, v)
			}
			j.agree(t, list, files, true)
		})
	}
}

// chanceOfTest is how many files a test with chance has, and the seed, which JURAT_TEST_SEED sets. At length it is another one each time.
func chanceOfTest(t *testing.T, short, length int) (n int, seed uint64, long bool) {
	t.Helper()
	n, seed = short, 1
	if long = os.Getenv("JURAT_TEST_LONG") != ""; long {
		n, seed = length, rand.Uint64()
	}
	if text := os.Getenv("JURAT_TEST_SEED"); text != "" {
		seed = must.Get(strconv.ParseUint(text, 10, 64))(t)
	}
	t.Logf("JURAT_TEST_SEED=%d", seed)
	return n, seed, long
}

// judges are the verifiers besides this package.
type judges struct {
	folder string // has every file of the vectors
	all    map[string][]byte
	wasm   []string
}

// newJudges builds this package for WebAssembly only for the long form, because that takes longer than the short one.
func newJudges(t *testing.T, long bool) *judges {
	t.Helper()
	j := &judges{folder: t.TempDir(), all: readVectors(t)}
	must.Do(t, os.CopyFS(j.folder, os.DirFS(vectorsDir)))
	if !long {
		return j
	}
	node, err := exec.LookPath("node")
	if err != nil && os.Getenv("CI") != "true" {
		return j // without WebAssembly
	}
	must.Do(t, err)
	answers := filepath.Join(t.TempDir(), "answers.wasm")
	build := exec.Command("go", "build", "-o", answers, "./testdata/answers")
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	must.Need(t, err == nil, "%v\n%s", err, out)
	root := must.Get(exec.Command("go", "env", "GOROOT").Output())(t)
	j.wasm = []string{node, filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec_node.js"), answers}
	return j
}

// agree compares what all verifiers find of these files.
func (j *judges) agree(t *testing.T, list []verificationVector, files map[string][]byte, honest bool) {
	t.Helper()
	all := maps.Clone(j.all)
	for name, file := range files {
		all[name] = file
		write(t, j.folder, name, file)
		t.Cleanup(func() { os.Remove(filepath.Join(j.folder, name)) })
	}
	native := make([]string, len(list), len(list)+1)
	for i := range list {
		o, err := readerFrom(all, list[i])
		if list[i].Refused = err != nil; list[i].Refused {
			native[i] = fmt.Sprintf("%s refused: %v", list[i].Name, err)
		} else {
			var r *verify.Report
			native[i] = list[i].Name + " none of ours"
			if r, list[i].Refused = reportFor(t, all, list[i], o); r != nil {
				list[i].Report = inDetail(r)
				native[i] = fmt.Sprintf("%s %x", list[i].Name, sha256.Sum256(must.Get(r.Marshal())(t)))
			}
		}
		must.Hold(t, !honest || !list[i].Refused && list[i].Report.Outcome != verify.Refuted, "%s: %+v", list[i].Name, list[i].Report)
	}
	doc := must.Get(strict.Marshal(vectorManifest{Format: "jurat/vectors/v1", Verifications: list}))(t)
	manifest := filepath.Join(j.folder, strings.ReplaceAll(t.Name(), "/", "-")+".json")
	must.Do(t, os.WriteFile(manifest, doc, 0o600))
	said := func(command []string) []string {
		var complaints bytes.Buffer
		run := exec.Command(command[0], append(command[1:], manifest)...)
		run.Stderr = &complaints
		out, err := run.Output()
		if err != nil {
			t.Errorf("%v\n%s", err, complaints.String()[:min(complaints.Len(), 8000)])
		}
		return strings.Split(string(out), "\n")
	}
	if j.wasm != nil {
		native, wasm := append(native, ""), said(j.wasm)
		for i := range max(len(native), len(wasm)) {
			if i >= len(native) || i >= len(wasm) || native[i] != wasm[i] {
				t.Errorf("WebAssembly differs, first at answer %d of %d and %d", i, len(native), len(wasm))
				break
			}
		}
	}
	second := said([]string{python(t), filepath.Join("..", "testdata", "second-verifier", "vectors.py")})
	must.Hold(t, len(second) == len(list)+1, "the second verifier judged %d files of %d", len(second)-1, len(list))
	if kept := os.Getenv("JURAT_TEST_KEEP"); kept != "" && t.Failed() {
		must.Want(t, os.CopyFS(filepath.Join(kept, strings.ReplaceAll(t.Name(), "/", "-")), os.DirFS(j.folder)), nil)
	}
}

// honestFile is a bundle that an honest installation writes: a trial, or what agents said and recorders saw.
func (c *chance) honestFile(t *testing.T) *evidence.Bundle {
	if c.t = t; c.once(2) {
		return c.house.Bundle(t, c.thirdTrial()...)
	}
	var records []*evidence.Record
	for i := range 1 + c.IntN(6) {
		p := output(of(c, chanceAgents...))
		if c.once(2) {
			act := of(c, call, message, tool)()
			act.RequestID, act.ChainID = fmt.Sprint("call-", i), ""
			p = payloadOf(t, act)
		}
		var apart []string
		if p.Response != nil && c.once(3) {
			apart = []string{"/response"}
		}
		r := c.house.Seal(t, p, apart...)
		if c.once(2) {
			r.Disclosures = nil
		}
		records = append(records, r)
	}
	return c.house.Bundle(t, records...)
}

// A mutator changes files: those that are verified, and those that a reader gives beside them.
type mutator struct {
	*rand.Rand
	t       *testing.T
	files   map[string][]byte
	vectors []verificationVector
	tried   map[string]int // changes by kind
}

func newMutator(t *testing.T) *mutator {
	m := &mutator{t: t, files: readVectors(t), tried: map[string]int{}}
	for _, v := range readVectorManifest(t).Verifications {
		if len(v.With) == 0 && len(m.files[v.File]) < 120_000 && v.Policy == "" {
			m.vectors = append(m.vectors, v)
		}
	}
	return m
}

// of is another one for the same files.
func (m *mutator) of(t *testing.T, r *rand.Rand) *mutator {
	return &mutator{Rand: r, t: t, files: m.files, vectors: m.vectors, tried: map[string]int{}}
}

// vector is a vector of which one file is changed. It adds the changed file to files.
func (m *mutator) vector(i int, files map[string][]byte) verificationVector {
	v := m.vectors[m.IntN(len(m.vectors))]
	v.CRLs = slices.Clone(v.CRLs)
	name := &v.File
	if m.IntN(4) == 0 {
		given := []*string{&v.Trust, &v.Checkpoint, &v.Consistency, &v.Entries}
		for _, names := range [][]string{v.CRLs} {
			for i := range names {
				given = append(given, &names[i])
			}
		}
		if given = slices.DeleteFunc(given, func(name *string) bool { return *name == "" }); len(given) > 0 {
			name = given[m.IntN(len(given))]
		}
	}
	v.Name = fmt.Sprintf("%d-%s", i, v.Name)
	files[v.Name+".mutant"] = m.mutant(m.files[*name])
	*name = v.Name + ".mutant"
	return v
}

// mutant is a file with one to three changes.
func (m *mutator) mutant(file []byte) []byte {
	file = bytes.Clone(file)
	for range 1 + m.IntN(3) {
		if kind, changed := m.change(file); len(changed) > 0 && !bytes.Equal(changed, file) {
			m.tried[kind]++
			file = changed
		}
	}
	return file
}

// change changes a file of any kind once. Nil: there is nothing in it to change so.
func (m *mutator) change(file []byte) (kind string, changed []byte) {
	root, isObject := treeOf(file).(map[string]any)
	choice := m.IntN(10)
	switch {
	case choice == 0 || len(file) == 0:
		return "bytes", m.bytes(file)
	case isObject && choice == 1:
		return "layout", m.layout(file)
	case isObject && choice == 2:
		if parts := takings(m.t, root, ""); len(parts) > 0 {
			return "part left out", less(m.t, file, parts[m.IntN(len(parts))])
		}
		return "", nil
	case isObject && choice < 5:
		return "DER", m.within(root, func(text string) []byte {
			der, err := base64.StdEncoding.DecodeString(text)
			if err != nil || len(der) == 0 || der[0] != 0x30 {
				return nil
			}
			if der = m.der(der); der == nil {
				return nil
			}
			return []byte(base64.StdEncoding.EncodeToString(der))
		})
	case isObject && choice == 5:
		return "signed note", m.within(root, func(text string) []byte {
			if !strings.Contains(text, "\n\n— ") {
				return nil
			}
			return m.lines([]byte(text))
		})
	case isObject && choice == 6:
		return "text", m.within(root, func(text string) []byte { return []byte(m.otherwise(text)) })
	case isObject:
		return "value", m.node(root)
	case file[0] == 0x30:
		return "DER", m.der(file)
	case file[0] == '{' && bytes.HasSuffix(file, []byte("\n")) && choice < 6: // entries, one in a line
		lines := bytes.Split(file[:len(file)-1], []byte("\n"))
		i := m.IntN(len(lines))
		if entry, is := treeOf(lines[i]).(map[string]any); is {
			lines[i] = bytes.TrimSuffix(m.node(entry), []byte("\n"))
		}
		return "entry", append(bytes.Join(lines, []byte("\n")), '\n')
	}
	return "lines", m.lines(file)
}

// bytes changes single bytes, or a stretch of them.
func (m *mutator) bytes(file []byte) []byte {
	at, file := m.IntN(len(file)+1), bytes.Clone(file)
	end := min(len(file), at+1+m.IntN(12))
	switch m.IntN(5) {
	case 0:
		return slices.Delete(file, at, end)
	case 1:
		return slices.Insert(file, at, bytes.Clone(file[at:end])...)
	case 2:
		return slices.Insert(file, at, []byte(odd[m.IntN(len(odd))])...)
	}
	if at < len(file) {
		file[at] ^= 1 << m.IntN(8)
	}
	return file
}

// layout changes what is between the values of a file in JSON, and nothing else.
func (m *mutator) layout(file []byte) []byte {
	switch m.IntN(5) {
	case 0:
		return append([]byte("\ufeff"), file...)
	case 1:
		return bytes.ReplaceAll(file, []byte("\n"), []byte("\r\n"))
	case 2:
		return append(bytes.Clone(file), []byte(" \n\t\x00\v}")[m.IntN(6)])
	case 3:
		return bytes.TrimSpace(file)
	}
	var doc bytes.Buffer
	if json.Indent(&doc, file, "", "  ") != nil {
		return nil
	}
	return doc.Bytes()
}

// within exchanges one of the texts in a file for which change has another.
func (m *mutator) within(root map[string]any, change func(string) []byte) []byte {
	var all []func() bool
	m.walk(root, func(value any, set func(any)) {
		if text, is := value.(string); is {
			all = append(all, func() bool {
				changed := change(text)
				if changed == nil {
					return false
				}
				if set(string(changed)); json.Valid(changed) { // written otherwise, and perhaps the same
					set(json.RawMessage(changed))
				}
				return true
			})
		}
	})
	for _, i := range m.Perm(len(all)) {
		if all[i]() {
			return m.written(root)
		}
	}
	return nil
}

// otherwise is a text written otherwise: as JSON, or as the text in it.
func (m *mutator) otherwise(text string) string {
	quoted := func(text string) string {
		doc := must.Get(json.Marshal(text))(m.t)
		return string(doc)
	}
	others := []string{quoted(strings.ToUpper(text)), quoted(strings.ToLower(text)), quoted(text + " "), quoted(" " + text), quoted(text + "\n"), quoted(text + "\x00"), quoted(text + text), quoted(text[:len(text)/2])}
	if text != "" && text[0] < 0x80 {
		others = append(others, fmt.Sprintf(`"\u%04x%s`, text[0], quoted(text)[1:][len(quoted(text[:1]))-2:]))
	}
	if i := strings.LastIndexByte(text, 'Z'); i > 0 && strings.Contains(text, "T") {
		for _, end := range []string{"+00:00", "-00:00", "+01:00", ".5Z", ".50Z", ".000Z", ".1234567891Z", "z", ""} {
			others = append(others, quoted(text[:i]+end))
		}
	}
	if data, err := base64.StdEncoding.DecodeString(text); err == nil && len(data) > 0 {
		bare := strings.TrimRight(text, "=")
		loose := bare[:len(bare)-1] + string(bare[len(bare)-1]+1) + text[len(bare):]
		for _, other := range []string{bare, loose, text + "=", text + "====", text[:4] + "\n" + text[4:], text[:4] + "\r" + text[4:], strings.NewReplacer("+", "-", "/", "_").Replace(text),
			base64.StdEncoding.EncodeToString(data[1:]), base64.StdEncoding.EncodeToString(append(data, 0))} {
			others = append(others, quoted(other))
		}
	}
	return others[m.IntN(len(others))]
}

// lines changes a file of lines, such as a signed note.
func (m *mutator) lines(file []byte) []byte {
	lines := bytes.SplitAfter(file, []byte("\n"))
	i, j := m.IntN(len(lines)), m.IntN(len(lines))
	switch m.IntN(6) {
	case 0:
		lines = slices.Delete(lines, i, i+1)
	case 1:
		lines = slices.Insert(lines, j, lines[i])
	case 2:
		lines[i], lines[j] = lines[j], lines[i]
	case 3:
		lines[i] = bytes.ReplaceAll(lines[i], []byte("\n"), []byte([]string{"\r\n", "", " \n", "\n\n"}[m.IntN(4)]))
	case 4:
		words := bytes.SplitAfter(lines[i], []byte(" "))
		last := string(bytes.TrimSuffix(words[len(words)-1], []byte("\n")))
		var other string
		if json.Unmarshal([]byte(m.otherwise(last)), &other) == nil {
			words[len(words)-1] = []byte(other + "\n")
		}
		lines[i] = bytes.Join(words, nil)
	default:
		return m.bytes(file)
	}
	return bytes.Join(lines, nil)
}

// der changes DER: the values in it, or how they are written.
func (m *mutator) der(der []byte) []byte {
	root, err := parseDER(der)
	if err != nil || m.IntN(5) == 0 {
		return m.bytes(der)
	}
	if m.IntN(3) > 0 {
		choice := make([]byte, 12)
		for n := range choice {
			choice[n] = byte(m.Uint32())
		}
		root.Mutate(choice)
		return root.Bytes()
	}
	var all []*derNode
	var walk func(n *derNode)
	walk = func(n *derNode) {
		if len(n.Members) > 0 {
			all = append(all, n)
		}
		for _, child := range n.Members {
			walk(child)
		}
	}
	if walk(root); len(all) == 0 {
		return nil
	}
	n := all[m.IntN(len(all))]
	if m.IntN(2) == 0 { // in another order
		m.Shuffle(len(n.Members), func(i, j int) { n.Members[i], n.Members[j] = n.Members[j], n.Members[i] })
		return root.Bytes()
	}
	// one member by BER: a length in more bytes than it takes, or none
	at, content := m.IntN(len(n.Members)), []byte(nil)
	for i, child := range n.Members {
		doc := child.Bytes()
		if i == at && doc[1] < 0x80 {
			tail := doc[2:]
			if doc = append([]byte{doc[0], 0x81, doc[1]}, tail...); m.IntN(2) == 0 {
				doc = append(append([]byte{doc[0], 0x80}, tail...), 0, 0)
			}
		}
		content = append(content, doc...)
	}
	n.Members, n.Content = nil, content
	return root.Bytes()
}

// odd are values that no honest file has in most places.
var odd = []string{`null`, `true`, `""`, `"x"`, `[]`, `{}`, `[[]]`, `{"":{}}`, `0`, `-1`, `1.5`, `1e400`, `-0`, `9007199254740993`, `1e-400`, `"\u0000"`, `"\ud800"`, `"\ud83d\ude00"`, `"0001-01-01T00:00:00Z"`,
	`"9999-12-31T23:59:59Z"`, `"sha256:` + strings.Repeat("0", 64) + `"`, strings.Repeat("9", 5000), strings.Repeat("[", 200) + strings.Repeat("]", 200), `"` + strings.Repeat("é", 3000) + `"`}

// node changes one value of the file.
func (m *mutator) node(root map[string]any) []byte {
	type place struct {
		value any
		set   func(any)
	}
	var all []place
	m.walk(root, func(value any, set func(any)) { all = append(all, place{value, set}) })
	if len(all) == 0 {
		return nil
	}
	at, other := all[m.IntN(len(all))], all[m.IntN(len(all))]
	doc, err := json.Marshal(other.value)
	if err != nil {
		return nil // it has a change that JSON cannot say
	}
	switch value := at.value.(type) {
	case []any:
		if changed := slices.Clone(value); len(value) > 0 && m.IntN(2) == 0 {
			i, j := m.IntN(len(value)), m.IntN(len(value))
			switch m.IntN(4) {
			case 0:
				changed = slices.Delete(changed, i, i+1)
			case 1:
				changed = append(changed, value[i])
			case 2:
				changed = append(changed, json.RawMessage(doc))
			default:
				changed[i], changed[j] = changed[j], changed[i]
			}
			at.set(changed)
			return m.written(root)
		}
	case map[string]any:
		if names := slices.Sorted(maps.Keys(value)); len(names) > 0 && m.IntN(2) == 0 {
			at.set(m.member(value, names[m.IntN(len(names))], doc))
			return m.written(root)
		}
	case json.Number:
		n := string(value)
		others := []string{n + ".0", n + "e0", n + "E+00", "-" + n, n + "0", "1" + n, n + ".00000000000000000001", `"` + n + `"`}
		at.set(json.RawMessage(others[m.IntN(len(others))]))
		return m.written(root)
	}
	if m.IntN(3) == 0 {
		at.set(json.RawMessage(doc))
	} else {
		at.set(json.RawMessage(odd[m.IntN(len(odd))]))
	}
	return m.written(root)
}

// member changes a member of an object: it is left out, there twice, or has another name.
func (m *mutator) member(object map[string]any, name string, other json.RawMessage) any {
	object = maps.Clone(object)
	value := object[name]
	switch m.IntN(5) {
	case 0:
		delete(object, name)
		return object
	case 1:
		delete(object, name)
		object[strings.ToUpper(name)] = value
		return object
	case 2:
		object["more"] = other
		return object
	}
	if m.IntN(2) == 0 {
		value = other
	}
	whole, err := json.Marshal(object)
	if err != nil {
		return object
	}
	again, err := json.Marshal(map[string]any{name: value})
	if err != nil {
		return object
	}
	return json.RawMessage(slices.Concat(whole[:len(whole)-1], []byte(","), again[1:]))
}

// walk calls found with each value, in the order of the file's members, and with what replaces it.
func (m *mutator) walk(node any, found func(value any, set func(any))) {
	switch node := node.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(node)) {
			found(node[name], func(value any) { node[name] = value })
			m.walk(node[name], found)
		}
	case []any:
		for i := range node {
			found(node[i], func(value any) { node[i] = value })
			m.walk(node[i], found)
		}
	}
}

// written is the file again; nil: JSON cannot say it.
func (m *mutator) written(root map[string]any) []byte {
	var doc bytes.Buffer
	e := json.NewEncoder(&doc)
	e.SetEscapeHTML(false)
	if e.Encode(root) != nil {
		return nil
	}
	return doc.Bytes()
}
