package witness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
)

// A Drawing is what asking the witnesses for draws came to (package reputation/draw).
type Drawing struct {
	Blocks  int64   // whole blocks that the log has
	Answers []Drawn // one for each witness
}

// Drawn is what one witness has drawn.
type Drawn struct {
	Address
	Blocks int64 // for how many blocks its draw is in the log
	New    int64 // how many of them were added now
	Err    error // why it drew no more of them
}

// Whole reports whether every witness has drawn every block.
func (d *Drawing) Whole() bool { return d.Missing() == 0 }

// Missing returns how many draws the log does not have, one for each witness and block. Of nil, it is 0.
func (d *Drawing) Missing() (n int64) {
	if d == nil {
		return 0
	}
	for _, a := range d.Answers {
		n += d.Blocks - a.Blocks
	}
	return n
}

// askedAtOnce is how many blocks' draws one act holds if there is one witness. What was asked for and not sealed is lost when a command is broken off.
const askedAtOnce = 100

// sealedDraws are the draws that the log has, as far as it was read.
type sealedDraws struct {
	next int64                         // index in the log of the next act to look at
	of   map[string]map[int64]struct{} // by the witness's key: ends of blocks
}

// Draw asks the witnesses for the draws of the log's blocks that it does not have yet, and seals them as acts of the operator. A witness draws only
// what it has cosigned: see Cosign. One that does not answer is not an error: see Drawing.Answers. If no witnesses are configured, Draw returns
// nil. progress, if it is not nil, is told how many blocks of how many were asked for. Its errors are those of the settings and of the ledger.
//
// Of two machines that ask at the same time, both may seal a draw. It is the same to the byte, and counts once.
func (a *Asker) Draw(ctx context.Context, progress func(done, total int64)) (*Drawing, error) {
	d, err := a.draw(ctx, progress)
	if err != nil {
		return nil, fmt.Errorf("asking witnesses to draw: %w", err)
	}
	return d, nil
}

func (a *Asker) draw(ctx context.Context, progress func(done, total int64)) (*Drawing, error) {
	settings, err := a.Settings(ctx)
	if err != nil || len(settings.List) == 0 {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	size, err := a.Ledger.Size(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.readDraws(ctx); err != nil {
		return nil, err
	}
	asking, err := a.toAsk(settings, size/operator.DrawBlock)
	if err != nil {
		return nil, err
	}
	for asking.more() {
		if err := a.drawSome(ctx, asking); err != nil {
			return nil, err
		}
		if progress != nil {
			progress(asking.done, asking.total)
		}
	}
	return asking.drawing(), nil
}

// An asking is what is asked of witnesses, in the order of the log.
type asking struct {
	blocks      int64
	of          []*askedFor
	done, total int64
}

type askedFor struct {
	Drawn
	remote *Remote
	todo   []int64 // ends of blocks
}

// toAsk finds out which draws the log does not have.
func (a *Asker) toAsk(settings *Settings, blocks int64) (*asking, error) {
	remotes, err := settings.remotes()
	if err != nil {
		return nil, err
	}
	made := &asking{blocks: blocks}
	for n, w := range settings.List {
		one := &askedFor{Drawn: Drawn{Address: w}, remote: a.remote(w, remotes[n])}
		for block := range blocks {
			end := (block + 1) * operator.DrawBlock
			if _, has := a.drawn.of[remotes[n].Key.String()][end]; !has {
				one.todo = append(one.todo, end)
			}
		}
		one.Blocks = blocks - int64(len(one.todo))
		made.of, made.total = append(made.of, one), made.total+int64(len(one.todo))
	}
	return made, nil
}

func (k *asking) more() bool {
	return slices.ContainsFunc(k.of, func(one *askedFor) bool { return len(one.todo) > 0 })
}

func (k *asking) drawing() *Drawing {
	d := &Drawing{Blocks: k.blocks}
	for _, one := range k.of {
		d.Answers = append(d.Answers, one.Drawn)
	}
	return d
}

// drawSome asks each witness for some draws, all at the same time, and seals what they answer. A witness that fails is asked for no more.
func (a *Asker) drawSome(ctx context.Context, k *asking) error {
	most := max(1, min(askedAtOnce, operator.MaxDraws/len(k.of)))
	found := make([][]operator.Draw, len(k.of))
	var waiting sync.WaitGroup
	for n, one := range k.of {
		some := one.todo[:min(most, len(one.todo))]
		one.todo = one.todo[len(some):]
		k.done += int64(len(some))
		waiting.Go(func() {
			if found[n], one.Err = a.drawsOf(ctx, one.remote, some); one.Err != nil {
				one.todo = nil
			}
		})
	}
	waiting.Wait()
	// What has been answered is sealed even if the caller has given up since: sealing takes a moment, and asking again much longer.
	if err := a.sealDraws(context.WithoutCancel(ctx), slices.Concat(found...)); err != nil {
		return err
	}
	for n, one := range k.of {
		one.Blocks, one.New = one.Blocks+int64(len(found[n])), one.New+int64(len(found[n]))
	}
	return ctx.Err()
}

// drawsOf asks one witness for draws, one after the other. It returns those that it got, and why there are no more.
func (a *Asker) drawsOf(ctx context.Context, remote *Remote, ends []int64) (draws []operator.Draw, err error) {
	for _, end := range ends {
		root, err := a.Ledger.Root(ctx, end)
		if err != nil {
			return draws, err
		}
		tree := operator.Checkpoint{Origin: a.Ledger.Origin(), Size: end, Root: root}
		asked, cancel := context.WithTimeout(ctx, askTime)
		draw, err := remote.AskDraw(asked, tree, a.Ledger.ProveConsistency)
		cancel()
		if err != nil {
			return draws, err
		}
		draws = append(draws, draw)
	}
	return draws, nil
}

// sealDraws seals those draws of a list that the log does not have. The caller holds the lock.
func (a *Asker) sealDraws(ctx context.Context, draws []operator.Draw) error {
	if err := a.readDraws(ctx); err != nil { // another machine may have been faster
		return err
	}
	draws = slices.DeleteFunc(draws, func(d operator.Draw) bool { _, has := a.drawn.of[d.Witness][d.Size]; return has })
	slices.SortFunc(draws, operator.CompareDraws)
	for some := range slices.Chunk(draws, operator.MaxDraws) {
		act, err := ledger.OperatorAct(evidence.Payload{ActionType: evidence.Draw, ChainID: operator.DrawsChain}, operator.DrawsBody{Draws: some})
		if err != nil {
			return err
		}
		if err := a.Operator.SealLast(ctx, act); err != nil {
			return err
		}
	}
	return nil
}

// readDraws reads the acts of draws that have been sealed since the last time. The caller holds the lock.
func (a *Asker) readDraws(ctx context.Context) error {
	return EachDraw(ctx, a.Ledger, &a.drawn.next, func(d operator.Draw) {
		if a.drawn.of == nil {
			a.drawn.of = map[string]map[int64]struct{}{}
		}
		if a.drawn.of[d.Witness] == nil {
			a.drawn.of[d.Witness] = map[int64]struct{}{}
		}
		a.drawn.of[d.Witness][d.Size] = struct{}{}
	})
}

// Draws returns all draws that the log has, in its order.
func (a *Asker) Draws(ctx context.Context) (draws []operator.Draw, err error) {
	var next int64
	err = EachDraw(ctx, a.Ledger, &next, func(d operator.Draw) { draws = append(draws, d) })
	if err != nil {
		return nil, fmt.Errorf("reading the log's draws: %w", err)
	}
	return draws, nil
}

// EachDraw calls take with each draw in the acts from an index of the log on, and moves the index behind them. Its errors are those of the
// ledger, and of an act that is no draw.
func EachDraw(ctx context.Context, l *ledger.Ledger, next *int64, take func(operator.Draw)) error {
	for {
		acts, after, err := l.InChain(ctx, operator.DrawsChain, *next)
		if errors.Is(err, ledger.ErrNotFound) || err == nil && len(acts) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		for _, act := range acts {
			body, err := operator.ReadDraws(&act.Payload)
			if err != nil {
				return fmt.Errorf("record %s: %w", act.Payload.RecordID, err)
			}
			for _, d := range body.Draws {
				take(d)
			}
		}
		*next = after
	}
}
