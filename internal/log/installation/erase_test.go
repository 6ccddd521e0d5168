package installation_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/evidence/property"
	"jurat/internal/log/erasure"
	"jurat/internal/log/installation"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/fsck"
	"jurat/internal/log/ledger/sqlite"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
	"jurat/verify"
)

const secret = "Hoang has a fracture of the left wrist"

// note returns a record in which an agent says something about a person.
func note() evidence.Payload {
	return evidence.Payload{AgentID: "nurse", RequestID: "r-1", Timestamp: "2026-01-31T16:15:00Z", Model: "m", ModelVersion: "1",
		Prompt: jsontext.Value(`"` + secret + `"`), Response: jsontext.Value(`"Call the ward."`), Parameters: jsontext.Value(`{}`),
		Metadata: jsontext.Value(`{"user":"u-1"}`)}
}

func sealApart(t *testing.T, i *installation.Installation, p evidence.Payload, apart ...string) *evidence.Record {
	t.Helper()
	d := get(evidence.NewDraft(p))
	signers := get(i.Keys.Signers(t.Context(), d.Role(), d.Actor()))
	return get(i.Ledger.Seal(t.Context(), d.SealingApart(nil, apart...), signers))
}

var withRecord struct {
	pattern
	record *evidence.Record
}

// sealed returns an installation with a record whose prompt and metadata are sealed apart.
func sealed(t *testing.T) (installation.Config, *installation.Installation, *evidence.Record) {
	t.Helper()
	c := withRecord.copied(t, func(t *testing.T, c installation.Config) {
		i, _, err := installation.OpenOrCreate(t.Context(), c)
		must.Do(t, err)
		withRecord.record = sealApart(t, i, note(), "/prompt", "/metadata/user")
		must.Do(t, i.Close())
	})
	return c, open(t, c), withRecord.record
}

func order(r *evidence.Record, pointers ...string) erasure.Order {
	return erasure.Order{RecordID: r.Payload.RecordID, Pointers: pointers, Reason: "request", By: "Hana"}
}

// disclosed lists the members of a record that are still disclosed.
func disclosed(t *testing.T, i *installation.Installation, r *evidence.Record) []string {
	t.Helper()
	with := get(i.Apart.Disclose(t.Context(), r, nil))
	pointers := []string{}
	for _, d := range with.Disclosures {
		pointers = append(pointers, d.Pointer)
	}
	return pointers
}

func wantDisclosed(t *testing.T, i *installation.Installation, r *evidence.Record, want ...string) {
	t.Helper()
	must.Equal(t, cmp.Diff(append([]string{}, want...), disclosed(t, i, r)), "", "disclosed (-want +got):\n")
}

// acts lists the acts of erasure in the log.
func acts(t *testing.T, i *installation.Installation) []*operator.ErasureBody {
	t.Helper()
	var list []*operator.ErasureBody
	for r, err := range i.Ledger.Records(t.Context(), 0) {
		must.Do(t, err)
		if r.Payload.ActionType != evidence.Erasure {
			continue
		}
		body, err := operator.ReadErasure(&r.Payload)
		if err != nil || r.Payload.Actor() != "operator" {
			t.Errorf("act of %q: %v", r.Payload.Actor(), err)
		}
		list = append(list, body)
	}
	return list
}

func wantActs(t *testing.T, i *installation.Installation, want ...*operator.ErasureBody) {
	t.Helper()
	must.Equal(t, cmp.Diff(want, acts(t, i)), "", "acts (-want +got):\n")
}

func body(r *evidence.Record, pointers ...string) *operator.ErasureBody {
	return &operator.ErasureBody{By: "Hana", Pointers: pointers, Reason: "request", Record: r.Digest}
}

func wantKinds(t *testing.T, c installation.Config, want ...fsck.Kind) []fsck.Damage {
	t.Helper()
	damages, _, err := installation.Fsck(t.Context(), c, nil)
	must.Do(t, err)
	var got []fsck.Kind
	for _, d := range damages {
		got = append(got, d.Kind)
		must.Hold(t, d.Kind.Meaning() != "", "%s means nothing", d.Kind)
	}
	slices.Sort(got)
	slices.Sort(want)
	diff := cmp.Diff(want, got)
	must.Hold(t, diff == "", "damages (-want +got):\n%s\n%v", diff, damages)
	return damages
}

// wantProved verifies a record and a case file of its log, as it is disclosed now.
func wantProved(t *testing.T, i *installation.Installation, r *evidence.Record) {
	t.Helper()
	trust := get(i.Trust(t.Context()))
	with := get(i.Apart.Disclose(t.Context(), r, nil))
	one := get(i.Ledger.ProveOne(t.Context(), with))
	if report := verify.Record(one, verify.Options{Trust: trust}); report.Outcome != verify.Proved {
		t.Errorf("record %s: %+v", report.Outcome, report.Details)
	}
	all := []*evidence.Record{with}
	for other, err := range i.Ledger.Records(t.Context(), 1) {
		must.Do(t, err)
		all = append(all, other.Record)
	}
	bundle := get(i.Ledger.Prove(t.Context(), all...))
	doc := get(bundle.Marshal())
	report, err := verify.File(doc, verify.Options{Trust: trust})
	must.Hold(t, err == nil && report.Outcome == verify.Proved, "bundle: %v, %+v", err, report)
}

func TestErase(t *testing.T) {
	c, i, r := sealed(t)
	wantDisclosed(t, i, r, "/metadata/user", "/prompt")
	wantProved(t, i, r)
	done := get(i.Apart.Erase(t.Context(), order(r, "/prompt")))
	act, err := i.Ledger.Record(t.Context(), done.Act)
	must.Hold(t, err == nil && act.Payload.ActionType == evidence.Erasure && slices.Equal(done.Now, []string{"/prompt"}), "%+v, %v", done, err)
	wantDisclosed(t, i, r, "/metadata/user")
	wantProved(t, i, r)
	wantActs(t, i, body(r, "/prompt"))
	wantKinds(t, c)
	for range 2 { // with the same field, another field, and the same again
		get(i.Apart.Erase(t.Context(), order(r, "/prompt", "/metadata/user")))
	}
	wantDisclosed(t, i, r)
	wantProved(t, i, r)
	wantActs(t, i, body(r, "/prompt"), body(r, "/metadata/user"))
	wantKinds(t, c)
	left, err := os.ReadDir(filepath.Join(c.Dir, "apart", "erasing"))
	must.Hold(t, err == nil && len(left) == 0, "%v are left, %v", left, err)
	values, keys := inTable(t, c)
	must.Hold(t, len(values) == 0 && strings.Trim(string(keys), "\x00") == "", "%v is left, and keys %x", values, keys)
}

// inTable returns the values that an installation has in its table, with their keys, and the whole file of keys.
func inTable(t *testing.T, c installation.Config) (values []storage.Value, keys []byte) {
	t.Helper()
	table := sqlite.NewValues(c.Dir)
	must.Do(t, table.Each(t.Context(), func(name string) error {
		value, err := table.Read(t.Context(), name)
		values = append(values, value)
		return err
	}))
	must.Do(t, table.Close())
	return values, get(os.ReadFile(keysFile(t, c)))
}

func keysFile(t *testing.T, c installation.Config) string {
	t.Helper()
	files := get(filepath.Glob(filepath.Join(c.Dir, sqlite.KeysFolder, "*")))
	must.Need(t, len(files) == 1, "%v", files)
	return files[0]
}

// changeKey changes the key of a value where it is.
func changeKey(t *testing.T, c installation.Config, name string, change func(key []byte)) {
	t.Helper()
	values, keys := inTable(t, c)
	at := slices.IndexFunc(values, func(v storage.Value) bool { return v.Name == name })
	change(keys[bytes.Index(keys, values[at].Key):][:32])
	must.Do(t, os.WriteFile(keysFile(t, c), keys, 0o600))
}

func TestEraseRefuses(t *testing.T) {
	c, i, r := sealed(t)
	by := sealApart(t, i, evidence.Payload{AgentID: "own", RequestID: "r-2", Timestamp: "2026-01-31T16:15:00Z", Model: "m", ModelVersion: "1",
		Prompt:   jsontext.Value(`"hmac-sha256:` + strings.Repeat("0", 64) + `"`),
		Response: jsontext.Value(`"x"`), Parameters: jsontext.Value(`{}`), SealedApart: []string{"/prompt"}})
	tests := map[string]struct {
		order erasure.Order
		want  error
		says  string
	}{
		"a field that is not sealed apart": {order(r, "/response"), evidence.ErrNotApart, "field /response"},
		"one of two":                       {order(r, "/prompt", "/response"), evidence.ErrNotApart, "field /response"},
		"a field that is not there":        {order(r, "/context"), nil, "there is no such member"},
		"no field":                         {order(r), nil, "no field"},
		"a value that is kept elsewhere":   {order(by, "/prompt"), erasure.ErrElsewhere, "field /prompt"},
		"no such record":                   {erasure.Order{RecordID: "../../etc", Pointers: []string{"/prompt"}, Reason: "r", By: "b"}, ledger.ErrNotFound, "../../etc"},
		"no reason":                        {erasure.Order{RecordID: r.Payload.RecordID, Pointers: []string{"/prompt"}, Reason: " ", By: "b"}, nil, "a reason"},
		"the text as the reason": {erasure.Order{RecordID: r.Payload.RecordID, Pointers: []string{"/prompt"}, Reason: "as " + secret + ".", By: "b"},
			nil, "the reason contains the text"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := i.Apart.Erase(t.Context(), tt.order)
			must.Hold(t, err != nil && strings.Contains(err.Error(), tt.says) && (tt.want == nil || errors.Is(err, tt.want)),
				"%v, want %v that says %q", err, tt.want, tt.says)
		})
	}
	wantDisclosed(t, i, r, "/metadata/user", "/prompt")
	wantActs(t, i)
	wantKinds(t, c)
}

// TestEraseNamesQuotes: if the text also stands elsewhere, those places are named, and nothing is erased without confirmation.
func TestEraseNamesQuotes(t *testing.T) {
	c, i, r := sealed(t)
	say := func(change func(*evidence.Payload), apart ...string) *evidence.Record {
		p := note()
		p.Prompt, p.Metadata = jsontext.Value(`"What now?"`), nil
		change(&p)
		return sealApart(t, i, p, apart...)
	}
	plain := say(func(p *evidence.Payload) { p.Response = jsontext.Value(`{"parts":["so: ` + secret + `!"]}`) })
	escaped := say(func(p *evidence.Payload) {
		p.Context = jsontext.Value(`"` + strings.Replace(secret, "H", `\u0048`, 1) + `"`)
	})
	kept := say(func(p *evidence.Payload) { p.Prompt = jsontext.Value(`["` + secret + `"]`) }, "/prompt")
	part := say(func(p *evidence.Payload) { p.Response = jsontext.Value(`{"quote":"fracture of the left"}`) })
	name := say(func(p *evidence.Payload) { p.Metadata = jsontext.Value(`{"` + secret + `":1}`) })
	say(func(p *evidence.Payload) { p.Response = jsontext.Value(`"the left"`) }) // too short for a quotation
	say(func(p *evidence.Payload) { p.Response = jsontext.Value(`"HOANG HAS A FRACTURE"`) })

	done, err := i.Apart.Erase(t.Context(), order(r, "/prompt"))
	var quoted *erasure.QuotedError
	must.Need(t, errors.As(err, &quoted), "%v, want a QuotedError", err)
	want := []string{plain.Payload.RecordID + " /response", escaped.Payload.RecordID + " /context", kept.Payload.RecordID + " /prompt",
		part.Payload.RecordID + " /response part", name.Payload.RecordID + " /metadata"}
	var got []string
	for _, q := range quoted.Quotes {
		text := q.RecordID + " " + q.Member
		if q.Part {
			text += " part"
		}
		got = append(got, text)
		must.Hold(t, q.Actor == "nurse" && q.Role == evidence.RoleAgent && q.Reason == "", "%+v", q)
	}
	must.Equal(t, cmp.Diff(want, got), "", "quotes (-want +got):\n")
	must.Hold(t, slices.Equal(done.Quotes, quoted.Quotes), "%+v", done)
	wantDisclosed(t, i, r, "/metadata/user", "/prompt")
	wantActs(t, i)

	o := order(r, "/prompt")
	o.DespiteQuotes = true
	done, err = i.Apart.Erase(t.Context(), o)
	must.Need(t, err == nil && len(done.Quotes) == len(want) && done.Act != "", "%+v, %v", done, err)
	wantDisclosed(t, i, r, "/metadata/user")
	wantDisclosed(t, i, kept, "/prompt")
	wantKinds(t, c)
}

func TestEraseSaysWhatIsTooShort(t *testing.T) {
	_, i, r := sealed(t)
	done, err := i.Apart.Erase(t.Context(), order(r, "/prompt", "/metadata/user"))
	must.Hold(t, err == nil && slices.Equal(done.TooShort, []string{"/metadata/user"}), "%+v, %v", done, err)
}

// TestEraseWhatIsDamaged: an unreadable value cannot be searched for in other texts, but it can be erased.
func TestEraseWhatIsDamaged(t *testing.T) {
	c, i, r := sealed(t)
	changeKey(t, c, erasure.Name(r.Digest, "/prompt"), func(key []byte) { key[0] ^= 1 })
	wantError(t, "error", erasure.ErrDamaged, errorOf(i.Apart.Disclose(t.Context(), r, nil)))
	with, err := i.Apart.Disclose(t.Context(), r, []string{"/prompt"})
	must.Hold(t, err == nil && len(with.Disclosures) == 1, "%v: a damaged value that is withheld must not be an error", err)
	wantKinds(t, c, fsck.DamageApartChanged)
	var quoted *erasure.QuotedError
	_, err = i.Apart.Erase(t.Context(), order(r, "/prompt"))
	must.Hold(t, errors.As(err, &quoted) && quoted.Quotes[0].Reason != "", "%v, want an error that the value cannot be searched for", err)
	o := order(r, "/prompt")
	o.DespiteQuotes = true
	must.Fail(t, nil)(i.Apart.Erase(t.Context(), o))
	wantKinds(t, c)
}

// crash runs an operation that should crash after a step, and reports whether it did.
func crash(i *installation.Installation, n int, do func()) (crashed bool) {
	i.After(func(string) {
		if n--; n == 0 {
			panic("crash")
		}
	})
	defer func() { crashed = recover() != nil }()
	do()
	return
}

// TestEraseCrashes crashes after each step in turn. Before the act nothing is erased. After it, the next process that opens the
// installation finishes. The act is there once.
func TestEraseCrashes(t *testing.T) {
	for _, next := range []string{"open", "erase", "erase at once"} {
		for n := 1; ; n++ {
			c, i, r := sealed(t)
			crashed := crash(i, n, func() { i.Apart.Erase(t.Context(), order(r, "/metadata/user", "/prompt")) })
			i.After(func(string) {})
			t.Run(fmt.Sprintf("%s after step %d", next, n), func(t *testing.T) {
				sealed := len(acts(t, i)) > 0
				if !sealed {
					wantDisclosed(t, i, r, "/metadata/user", "/prompt")
				}
				if next != "erase at once" {
					i = open(t, c)
				}
				if next == "open" && !sealed {
					wantDisclosed(t, i, r, "/metadata/user", "/prompt")
					wantKinds(t, c, fsck.DamageErasing)
				}
				if next != "open" || !sealed {
					get(i.Apart.Erase(t.Context(), order(r, "/metadata/user", "/prompt")))
				}
				wantDisclosed(t, i, r)
				wantActs(t, i, body(r, "/metadata/user", "/prompt"))
				wantProved(t, i, r)
				wantKinds(t, c)
				left, err := os.ReadDir(filepath.Join(c.Dir, "apart", "erasing"))
				must.Hold(t, err == nil && len(left) == 0, "%v are left, %v", left, err)
			})
			if !crashed {
				must.Hold(t, n >= 9, "there were only %d steps to crash after", n-1)
				break
			}
		}
	}
}

// TestEraseConcurrently: concurrent erasures of the same values seal one act.
func TestEraseConcurrently(t *testing.T) {
	c, i, r := sealed(t)
	others := []*installation.Installation{i, i, open(t, c), open(t, c)}
	var wg sync.WaitGroup
	for _, other := range others {
		wg.Go(func() {
			for range 20 { // a later caller may be asked to try again
				if _, err := other.Apart.Erase(t.Context(), order(r, "/prompt")); err == nil {
					return
				} else if !strings.Contains(err.Error(), "try again") {
					t.Error(err)
					return
				}
			}
			t.Error("still asked to try again after many attempts")
		})
	}
	wg.Wait()
	wantDisclosed(t, i, r, "/metadata/user")
	wantActs(t, i, body(r, "/prompt"))
	wantKinds(t, c)
}

// TestErasedOnce: if another erasure has erased the same values first, an erasure does not become an act.
func TestErasedOnce(t *testing.T) {
	c, i, r := sealed(t)
	get(i.Apart.Erase(t.Context(), order(r, "/prompt")))
	id := get(evidence.NewRecordID(time.Now(), nil))
	must.Do(t, i.BeginErasure(t.Context(), r, id, "/prompt"))
	done, err := open(t, c).Apart.Erase(t.Context(), order(r, "/prompt"))
	must.Hold(t, err == nil && done.Act == "" && done.Before["/prompt"] != "", "%+v, %v", done, err)
	wantActs(t, i, body(r, "/prompt"))
	wantKinds(t, c)
}

func TestFsckOfWhatIsApart(t *testing.T) {
	remove := func(t *testing.T, i *installation.Installation, r *evidence.Record) {
		must.Do(t, i.Apart.Destroy(t.Context(), r.Digest, "/prompt"))
	}
	tests := map[string]struct {
		damage func(t *testing.T, c installation.Config, i *installation.Installation, r *evidence.Record)
		want   []fsck.Kind
	}{
		"a lost key": {func(t *testing.T, c installation.Config, _ *installation.Installation, r *evidence.Record) {
			changeKey(t, c, erasure.Name(r.Digest, "/prompt"), func(key []byte) { clear(key) })
		}, []fsck.Kind{fsck.DamageApartLost}},
		"a lost value": {func(t *testing.T, _ installation.Config, i *installation.Installation, r *evidence.Record) {
			remove(t, i, r)
		}, []fsck.Kind{fsck.DamageApartLost}},
		"all values lost": {func(t *testing.T, c installation.Config, i *installation.Installation, _ *evidence.Record) {
			must.Do(t, i.Close())
			must.Do(t, os.Remove(filepath.Join(c.Dir, sqlite.ValuesFile)))
		}, []fsck.Kind{fsck.DamageApartLost, fsck.DamageApartLost}},
		"all keys lost": {func(t *testing.T, c installation.Config, _ *installation.Installation, _ *evidence.Record) {
			must.Do(t, os.RemoveAll(filepath.Join(c.Dir, "apart-keys")))
		}, []fsck.Kind{fsck.DamageApartLost, fsck.DamageApartLost}},
		"another value, well encrypted": {func(t *testing.T, c installation.Config, i *installation.Installation, r *evidence.Record) {
			remove(t, i, r)
			other := new(*r)
			other.Payload.SealedApart = []string{"/prompt"}
			other.Disclosures = []evidence.Disclosure{{Pointer: "/prompt", Salt: r.Disclosures[0].Salt, Value: jsontext.Value(`"all is well"`)}}
			must.Do(t, i.Keep(t.Context(), other))
			wantError(t, "disclosed", evidence.ErrDisclosure, errorOf(i.Apart.Disclose(t.Context(), r, nil)))
		}, []fsck.Kind{fsck.DamageApartChanged}},
		"a backup that brings back what was erased": {func(t *testing.T, c installation.Config, i *installation.Installation, r *evidence.Record) {
			values, _ := inTable(t, c)
			get(i.Apart.Erase(t.Context(), order(r, "/prompt")))
			table := sqlite.NewValues(c.Dir)
			must.Do(t, table.Add(t.Context(), slices.DeleteFunc(values, func(v storage.Value) bool { return v.Name != erasure.Name(r.Digest, "/prompt") })))
			must.Do(t, table.Close())
		}, []fsck.Kind{fsck.DamageNotErased}},
		"a damaged page": {func(t *testing.T, c installation.Config, i *installation.Installation, r *evidence.Record) {
			pointer := r.Payload.SealedApart[0]
			damageTable(t, c, i)
			other := open(t, c)
			o := order(r, pointer)
			o.DespiteQuotes = true
			wantError(t, "a key is destroyed that cannot be found", storage.ErrDamaged, errorOf(other.Apart.Erase(t.Context(), o)))
			wantActs(t, other)
			_, err := other.Apart.Disclose(t.Context(), r, nil)
			must.Hold(t, errors.Is(err, erasure.ErrDamaged) && strings.Contains(err.Error(), pointer), "the damaged text: %v", err)
		}, []fsck.Kind{fsck.DamageApart, fsck.DamageApartChanged, fsck.DamageApartChanged}},
		"what a crash left": {func(t *testing.T, c installation.Config, i *installation.Installation, r *evidence.Record) {
			other := new(*r)
			other.Digest = evidence.DigestOf(nil)
			must.Do(t, i.Keep(t.Context(), other))
		}, []fsck.Kind{fsck.DamageOrphan, fsck.DamageOrphan}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, i, r := sealed(t)
			wantKinds(t, c)
			tt.damage(t, c, i, r)
			for _, d := range wantKinds(t, c, tt.want...) {
				must.Hold(t, d.Kind.Harmless() == (d.Kind == fsck.DamageOrphan), "%s harmless: %v", d.Kind, d.Kind.Harmless())
			}
		})
	}
}

// damageTable destroys the page of the table that has the rows, which are few.
func damageTable(t *testing.T, c installation.Config, i *installation.Installation) {
	t.Helper()
	table := filepath.Join(c.Dir, sqlite.ValuesFile)
	must.Do(t, i.Close())
	content := get(os.ReadFile(table))
	for page := range slices.Chunk(content[8192:], 8192) {
		if page[0] == 13 { // a leaf of a table: see SQLite's file format
			clear(page)
		}
	}
	must.Do(t, os.WriteFile(table, content, 0o600))
}

// TestErasedAgain: a value that a backup brought back is destroyed again, without a second act.
func TestErasedAgain(t *testing.T) {
	c, i, r := sealed(t)
	get(i.Apart.Erase(t.Context(), order(r, "/prompt")))
	back := new(*r)
	back.Payload.SealedApart = []string{"/prompt"}
	must.Do(t, i.Keep(t.Context(), back))
	done, err := i.Apart.Erase(t.Context(), order(r, "/prompt"))
	must.Hold(t, err == nil && done.Act == "" && done.Before["/prompt"] != "", "%+v, %v", done, err)
	wantDisclosed(t, i, r, "/metadata/user")
	wantActs(t, i, body(r, "/prompt"))
	wantKinds(t, c)
}

func TestApartSettings(t *testing.T) {
	c, i, _ := sealed(t)
	must.Do(t, i.Apart.Set(t.Context(), erasure.Setting{Actor: "../nurse", Pointers: []string{"/prompt", "/context", "/prompt"}}))
	p := note()
	p.AgentID = "../nurse"
	d := get(evidence.NewDraft(p))
	got := get(i.Apart.Apart(t.Context(), d.SealingApart(nil, "/response"))).Apart()
	must.Hold(t, slices.Equal(got, []string{"/prompt", "/response"}), "%v", got)
	got = get(i.Apart.Apart(t.Context(), draft(t))).Apart()
	must.Hold(t, len(got) == 0, "of another actor: %v", got)
	for _, bad := range []erasure.Setting{{Actor: "", Pointers: []string{"/prompt"}}, {Actor: "a"}, {Actor: "a", Pointers: []string{"/model"}},
		{Actor: "a", Pointers: []string{"/metadata"}}, {Actor: "a", Pointers: []string{"/metadata/"}}, {Actor: "a", Pointers: []string{"prompt"}}} {
		must.Say(t, i.Apart.Set(t.Context(), bad), "", bad)
	}
	files, err := filepath.Glob(filepath.Join(c.Dir, "apart", "settings", "*"))
	must.Need(t, err == nil && len(files) == 1, "%v %v", files, err)
	for _, text := range []string{"", "{}", `{"actor":"../nurse","pointers":[]}`, `{"actor":"../nurse","pointers":["/prompt","/prompt"]}`,
		`{"actor":"../nurse","pointers":["/prompt"],"x":1}`, `{"actor":"other","pointers":["/prompt"]}`} {
		must.Do(t, os.WriteFile(files[0], []byte(text), 0o600))
		// If a setting cannot be read, a value that it may want sealed apart must not be sealed openly.
		must.Refuse(t, files[0], text)(i.Apart.Apart(t.Context(), d))
	}
}

// TestProvableSettings: what a setting makes provable is sealed apart with its kind, a setting of an older version is read as it was, and an
// actor that seals apart itself must make the member provable as the setting says.
func TestProvableSettings(t *testing.T) {
	c, i, _ := sealed(t)
	said := get(evidence.NewDraft(note()))
	kinds := map[string]property.Kind{"/metadata/user": property.Text}
	must.Do(t, i.Apart.Set(t.Context(), erasure.Setting{Actor: "nurse", Pointers: []string{"/prompt"}, Provable: kinds}))
	if d := get(i.Apart.Apart(t.Context(), said)); !slices.Equal(d.Apart(), []string{"/metadata/user", "/prompt"}) || !maps.Equal(d.Provable(), kinds) {
		t.Errorf("%v, %v", d.Apart(), d.Provable())
	}
	d := get(i.Apart.Apart(t.Context(), said.SealingApart(map[string]property.Kind{"/metadata/user": property.Date})))
	must.Equal(t, d.Provable()["/metadata/user"], property.Date, "what the draft asks for")

	own := get(said.SealingApart(nil, "/metadata/user").Seal(signing(t)))
	var field *evidence.FieldError
	if _, err := i.Apart.Apart(t.Context(), get(evidence.NewDraft(own.Payload))); !errors.As(err, &field) || field.Field != "/metadata/user" {
		t.Errorf("sealed apart by the actor, and not provable: %v", err)
	}
	own = get(said.SealingApart(map[string]property.Kind{"/metadata/user": property.Text}).Seal(signing(t)))
	d = get(i.Apart.Apart(t.Context(), get(evidence.NewDraft(own.Payload))))
	must.Hold(t, slices.Equal(d.Apart(), []string{"/prompt"}) && len(d.Provable()) == 0, "made provable by the actor: %v, %v", d.Apart(), d.Provable())

	wantError(t, "unknown kind", property.ErrKind, i.Apart.Set(t.Context(), erasure.Setting{Actor: "a", Provable: map[string]property.Kind{"/metadata/b": "money"}}))
	files, err := filepath.Glob(filepath.Join(c.Dir, "apart", "settings", "*"))
	must.Need(t, err == nil && len(files) == 1, "%v %v", files, err)
	for text, ok := range map[string]bool{`{"actor":"nurse","pointers":["/prompt"]}`: true,
		`{"actor":"nurse","pointers":["/prompt"],"provable":{"/metadata/user":"text"}}`: false,
		`{"actor":"nurse","pointers":["/prompt"],"provable":{"/prompt":"money"}}`:       false} {
		must.Do(t, os.WriteFile(files[0], []byte(text), 0o600))
		s, err := i.Apart.SettingOf(t.Context(), "nurse")
		must.Hold(t, (err == nil) == ok && (!ok || len(s.Pointers) == 1 && len(s.Provable) == 0), "%s: %+v, %v", text, s, err)
	}
}

// signing is what an actor needs that seals by itself.
func signing(t *testing.T) evidence.Sealing {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	must.Do(t, err)
	now := time.Now()
	return evidence.Sealing{Signers: []evidence.Signer{get(evidence.NewSigner(key, nil))}, Time: now, RecordID: get(evidence.NewRecordID(now, nil))}
}

func TestModesOfWhatIsApart(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes there")
	}
	c, i, r := sealed(t)
	must.Do(t, i.Apart.Set(t.Context(), erasure.Setting{Actor: "nurse", Pointers: []string{"/prompt"}}))
	crash(i, 1, func() { i.Apart.Erase(t.Context(), order(r, "/prompt")) })
	seen := 0
	for name := range rig.Tree(t, c.Dir) {
		info := get(os.Stat(filepath.Join(c.Dir, name)))
		if !strings.HasPrefix(name, "apart") {
			continue
		}
		seen++
		want := fs.FileMode(0o600)
		if info.IsDir() {
			want = 0o700
		}
		must.Equal(t, info.Mode().Perm(), want, name)
	}
	must.Hold(t, seen >= 10, "only %d files and folders", seen)
}

// TestEraseFinishedByAnother: a process that finishes an erasure late does not disturb a new erasure by another process.
func TestEraseFinishedByAnother(t *testing.T) {
	c, i, r := sealed(t)
	i.After(func(step string) {
		if step != "values destroyed" {
			return
		}
		other := open(t, c) // which finishes the erasure
		must.Hold(t, crash(other, 2, func() { other.Apart.Erase(t.Context(), order(r, "/metadata/user")) }), "it did not crash after sealing its act")
	})
	get(i.Apart.Erase(t.Context(), order(r, "/prompt")))
	wantDisclosed(t, open(t, c), r)
	wantActs(t, i, body(r, "/prompt"), body(r, "/metadata/user"))
	wantKinds(t, c)
}

// TestEraseCallerLeaves ends the caller's context after every step in turn. Without an act nothing has changed. With an
// act the values are destroyed.
func TestEraseCallerLeaves(t *testing.T) {
	for n, left := 1, true; left; n++ {
		c, i, r := sealed(t)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		left = false
		steps := n
		i.After(func(string) {
			if steps--; steps == 0 {
				left = true
				leave()
			}
		})
		_, err := i.Apart.Erase(ctx, order(r, "/metadata/user", "/prompt"))
		switch done := len(acts(t, i)) > 0; {
		case done && err == nil:
			wantDisclosed(t, i, r)
		case !done && errors.Is(err, context.Canceled):
			wantDisclosed(t, i, r, "/metadata/user", "/prompt")
		default:
			t.Errorf("after step %d: act sealed: %t, %v", n, done, err)
		}
		wantKinds(t, c)
	}
}
