package witness

// After has a function told of each step that a witness takes.
func (w *Witness) After(told func(step string)) { w.after = told }
