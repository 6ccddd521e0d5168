package witness

// After sets a function that is called after each step of a witness.
func (w *Witness) After(told func(step string)) { w.after = told }
