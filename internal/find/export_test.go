package find

import "context"

// Settle writes the newest records to the file, as if they filled a stretch.
func (x *Index) Settle(ctx context.Context) error {
	done, _ := x.Progress()
	return x.settle(ctx, done)
}
