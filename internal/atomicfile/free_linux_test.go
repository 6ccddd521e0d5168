package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"jurat/internal/must"
)

// TestFreeWithoutRoom: a file system that cannot give room back, or has none for it, is no error: what is erased is erased. Others are.
func TestFreeWithoutRoom(t *testing.T) {
	file := must.Get(os.Create(filepath.Join(t.TempDir(), "zeros")))(t)
	defer file.Close() //nolint:errcheck // nothing is in it
	var answers []error
	fallocate = func(int, uint32, int64, int64) error {
		answer := answers[0]
		answers = answers[1:]
		return answer
	}
	defer func() { fallocate = unix.Fallocate }()
	for _, test := range []struct {
		answers []error
		want    error
	}{
		{[]error{nil}, nil}, {[]error{unix.EINTR, nil}, nil}, {[]error{unix.EOPNOTSUPP}, nil}, {[]error{unix.ENOSYS}, nil}, {[]error{unix.ENOSPC}, nil}, {[]error{unix.EDQUOT}, nil}, {[]error{unix.EIO}, unix.EIO},
	} {
		answers = test.answers
		if err := Free(file, 0, 4096); !errors.Is(err, test.want) || len(answers) > 0 {
			t.Errorf("%v: %v", test.answers, err)
		}
	}
}
