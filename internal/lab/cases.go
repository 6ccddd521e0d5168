package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"jurat/evidence"
	"jurat/internal/subject"
)

// A Case is a labelled case.
type Case struct {
	Name string
	On   *subject.Case
	Label
}

// LoadCases reads a folder of cases with their labels. Folders without a label are returned by name: they are not tried, because nothing could be
// measured on them. The error joins all problems: a label without a case, a case that cannot be read, two cases with the same evidence.
func LoadCases(folder string, labels Labels) (cases []Case, unlabelled []string, err error) {
	var problems []error
	seen := map[evidence.Digest]string{}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		on, err := loadCase(filepath.Join(folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("it has a label, and there is no such folder in %s", folder)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("case %s: %w", name, err))
			continue
		}
		if twin, twice := seen[on.Digest()]; twice {
			problems = append(problems, fmt.Errorf("case %s: it holds the same evidence as %s: a case counts once, so remove one of them", name, twin))
			continue
		}
		seen[on.Digest()] = name
		cases = append(cases, Case{Name: name, On: on, Label: labels[name]})
	}
	if len(problems) > maxProblems {
		problems = append(problems[:maxProblems], fmt.Errorf("and %d more problems of this kind", len(problems)-maxProblems))
	}
	if unlabelled, err = others(folder, labels); err != nil {
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, nil, err
	}
	return cases, unlabelled, nil
}

// others lists the folders that look like cases and have no label.
func others(folder string, labels Labels) (names []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("reading cases: %w", err)
	}
	for _, entry := range entries {
		if _, labelled := labels[entry.Name()]; labelled || !entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		for _, file := range []string{subject.ConversationFile, materialFile} {
			if _, err := os.Stat(filepath.Join(folder, entry.Name(), file)); err == nil {
				names = append(names, entry.Name())
				break
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// materialFile holds the evidence of a case that was exported from a log, exactly as its trial had it.
const materialFile = "material.json"

// loadCase reads a case's folder: card and conversation, or the evidence of a trial.
func loadCase(dir string) (*subject.Case, error) {
	info, err := os.Lstat(filepath.Join(dir, materialFile))
	if err != nil {
		return subject.Load(dir)
	}
	if !info.Mode().IsRegular() || info.Size() > 2*subject.MaxFile+64 {
		return nil, fmt.Errorf("%s: want a regular file of at most %d MiB (links are not followed)", materialFile, 2*subject.MaxFile>>20)
	}
	doc, err := os.ReadFile(filepath.Join(dir, materialFile))
	if err != nil {
		return nil, fmt.Errorf("reading case: %w", err)
	}
	canonical, err := evidence.Canonical(doc)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", materialFile, err)
	}
	on, err := subject.Parse(canonical)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", materialFile, err)
	}
	return on, nil
}
