package erasure

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sort"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/fault"
	"jurat/internal/filestore"
	"jurat/jury"
	"jurat/property"
)

// Disclose returns a copy of a record with the disclosures of its members that are sealed apart. Members that are no longer kept, and those
// at the withheld pointers, stay closed. It returns an error if a value is damaged.
func (k *Keeper) Disclose(ctx context.Context, r *evidence.Record, withheld []string) (*evidence.Record, error) {
	disclosed := new(*r)
	disclosed.Disclosures = nil
	for _, pointer := range r.Payload.SealedApart {
		if slices.Contains(withheld, pointer) {
			continue
		}
		d, err := k.Open(ctx, r.Digest, pointer)
		if errors.Is(err, ErrNone) || errors.Is(err, ErrElsewhere) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("disclosing %s of record %s: %w", pointer, r.Payload.RecordID, err)
		}
		disclosed.Disclosures = append(disclosed.Disclosures, d)
	}
	if err := disclosed.CheckDisclosures(); err != nil {
		return nil, fmt.Errorf("disclosing record %s: %w", r.Payload.RecordID, err)
	}
	return disclosed, nil
}

// A Keeper decides what is sealed apart, and keeps the values. All its fields are required. It is safe for concurrent use.
type Keeper struct {
	*Store
	Files     filestore.Store                                                  // holds the settings
	CheckName func(ctx context.Context, role evidence.Role, name string) error // refuses a name under which no actor may act
}

// Apart lists the members of a draft to seal apart, and with their kinds those to make provable: those that the draft names, which it must
// have, and those that its actor's setting names and the draft has. Members that the actor sealed apart itself stay as they are. A verdict is
// never sealed apart: naming it returns an *evidence.FieldError. So does a member that the actor sealed apart itself without the commitment
// that the setting wants, since only the actor can add that.
func (k *Keeper) Apart(ctx context.Context, draft *evidence.Draft) ([]string, map[string]property.Kind, error) {
	pointers, kinds := draft.Apart(), draft.Provable()
	if role := draft.Role(); role != evidence.RoleAgent && role != evidence.RoleReviewer {
		return pointers, kinds, nil // acts of a jury or of the operator are open to every reader
	}
	setting, err := k.SettingOf(ctx, draft.Actor())
	if err != nil {
		return nil, nil, err
	}
	verdict := len(draft.ModifiedResponse) > 0 && jury.IsModifiedVerdict(draft.ModifiedResponse)
	if verdict && slices.Contains(pointers, "/modified_response") {
		return nil, nil, &evidence.FieldError{Field: "modified_response", Reason: "is a verdict, which is not sealed apart: the reason, in changes, can be"}
	}
	apart := pointers
	for _, pointer := range setting.Pointers {
		switch {
		case verdict && pointer == "/modified_response": // a verdict is never withheld
		case !draft.Has(pointer):
		case slices.Contains(draft.SealedApart, pointer):
			if err := setting.madeProvable(draft, pointer); err != nil {
				return nil, nil, err
			}
		default:
			apart = append(apart, pointer)
			setting.add(kinds, pointer)
		}
	}
	slices.Sort(apart)
	return slices.Compact(apart), kinds, nil
}

// A Setting names the members of an actor's payloads that are always sealed apart.
type Setting struct {
	Actor    string                   `json:"actor"`              // agent_id or reviewer_id
	Pointers []string                 `json:"pointers"`           // at least one, sorted
	Provable map[string]property.Kind `json:"provable,omitempty"` // those of Pointers that are made provable, and their kinds
}

// add adds the kind of a member that the setting makes provable. What the draft itself asks for counts.
func (s *Setting) add(kinds map[string]property.Kind, pointer string) {
	kind, provable := s.Provable[pointer]
	if _, asked := kinds[pointer]; provable && !asked {
		kinds[pointer] = kind
	}
}

// madeProvable returns an error unless a member that the actor sealed apart itself is provable as the setting wants.
func (s *Setting) madeProvable(draft *evidence.Draft, pointer string) error {
	kind, wanted := s.Provable[pointer]
	is := func(p evidence.Provable) bool { return p.Pointer == pointer && p.Kind == kind }
	if !wanted || slices.ContainsFunc(draft.Payload.Provable, is) {
		return nil
	}
	return &evidence.FieldError{Field: pointer, Reason: fmt.Sprintf(
		"is always to be provable as %s for %q, and was sealed apart without that: its owner must add the commitment to \"provable\" before signing", kind, draft.Actor())}
}

// SettingsFolder is the folder of settings in the file store.
const SettingsFolder = "apart/settings"

func (s *Setting) check() error {
	if err := evidence.CheckName(s.Actor); err != nil {
		return fmt.Errorf("actor: %w", err)
	}
	if len(s.Pointers) == 0 {
		return errors.New("pointers: want at least one")
	}
	for n, pointer := range s.Pointers {
		if !slices.Contains(evidence.ApartMembers(), pointer) && !evidence.InMetadata(pointer) {
			return fmt.Errorf("pointers: %q cannot be sealed apart, want one of %v or /metadata/NAME", pointer, evidence.ApartMembers())
		}
		if n > 0 && s.Pointers[n-1] >= pointer {
			return errors.New("pointers: not sorted, or one is there twice")
		}
	}
	for pointer, kind := range s.Provable {
		if !slices.Contains(s.Pointers, pointer) {
			return fmt.Errorf("provable: %q is not among the pointers", pointer)
		}
		if err := kind.Check(); err != nil {
			return fmt.Errorf("provable: %s: %w", pointer, err)
		}
	}
	return nil
}

// apartSettingFile names an actor's file by a digest, because actors choose their names. Each actor has a file of its own, so that two
// settings that are made at once do not overwrite each other.
func apartSettingFile(actor string) string {
	sum := sha256.Sum256([]byte(actor))
	return SettingsFolder + "/" + hex.EncodeToString(sum[:16]) + ".json"
}

// Set replaces an actor's setting. What is to be provable is sealed apart, too. The setting holds for records that are sealed from then on. It
// returns an error if the setting is not valid, or if the name is refused.
func (k *Keeper) Set(ctx context.Context, s Setting) (err error) {
	defer fault.While(&err, "setting what is sealed apart")
	s.Pointers = slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(slices.Clone(s.Pointers), maps.Keys(s.Provable)))))
	if err := s.check(); err != nil {
		return err
	}
	if err := k.checkActor(ctx, s.Actor); err != nil {
		return fmt.Errorf("actor: %w", err)
	}
	text, err := json.Marshal(s, jsontext.WithIndent("  "), json.Deterministic(true))
	if err != nil {
		return err
	}
	return k.Files.Replace(ctx, apartSettingFile(s.Actor), append(text, '\n'))
}

// checkActor returns an error if the name is refused to an agent and to a reviewer: such an actor seals nothing.
func (k *Keeper) checkActor(ctx context.Context, name string) error {
	if k.CheckName(ctx, evidence.RoleReviewer, name) == nil {
		return nil
	}
	return k.CheckName(ctx, evidence.RoleAgent, name)
}

// Unset removes an actor's setting. Members that were sealed apart by it stay so. It returns an error if there is no setting.
func (k *Keeper) Unset(ctx context.Context, actor string) error {
	err := k.Files.Remove(ctx, apartSettingFile(actor))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%q has no setting", actor)
	}
	return err
}

// SettingOf returns an actor's setting, or one without pointers if there is none. If the setting is unreadable, it returns an error:
// sealing must not go on with the member open to every reader.
func (k *Keeper) SettingOf(ctx context.Context, actor string) (Setting, error) {
	file := apartSettingFile(actor)
	s, err := readSetting(ctx, k.Files, file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Setting{Actor: actor}, nil
	case err == nil && s.Actor != actor:
		err = fmt.Errorf("reading %s: it is the setting of %q, not of %q", k.Files.Where(file), s.Actor, actor)
	}
	return s, err
}

func readSetting(ctx context.Context, files filestore.Store, file string) (s Setting, err error) {
	text, err := files.Read(ctx, file)
	if err != nil {
		return s, err
	}
	if err = json.Unmarshal(text, &s, json.RejectUnknownMembers(true)); err == nil {
		err = s.check()
	}
	if err != nil {
		return Setting{}, fmt.Errorf("reading %s: %w", files.Where(file), err)
	}
	return s, nil
}

// Settings returns every setting, sorted by actor. It refuses a file that is not a setting. Its other errors are
// those of the file store.
func (k *Keeper) Settings(ctx context.Context) ([]Setting, error) {
	var list []Setting
	err := filestore.EachJSON(ctx, k.Files, SettingsFolder, func(file string) error {
		s, err := readSetting(ctx, k.Files, file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another process has just removed it
		}
		list = append(list, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Actor < list[j].Actor })
	return list, nil
}
