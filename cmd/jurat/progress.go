package main

import (
	"fmt"
	"time"
)

// progress tells how far something is that takes longer than a second, how fast it is, and when it will be done if it goes on so.
func progress(io stdio, what string) func(done, total int64) {
	begin := time.Now()
	last := begin
	return func(done, total int64) {
		if time.Since(last) >= time.Second {
			last = time.Now()
			fmt.Fprintf(io.err, "jurat: %s\n", howFar(what, done, total, last.Sub(begin)))
		}
	}
}

// howFar says how far something has come in a time.
func howFar(what string, done, total int64, in time.Duration) string {
	text := fmt.Sprintf("%s: %d of %d", what, done, total)
	if done <= 0 || in <= 0 {
		return text
	}
	rate := float64(done) / in.Seconds()
	if rate < 100 {
		text += fmt.Sprintf(", %.2g a second", rate)
	} else {
		text += fmt.Sprintf(", %.0f a second", rate)
	}
	if done >= total {
		return text
	}
	rest := time.Duration(float64(total-done) / rate * float64(time.Second))
	return text + ", about " + max(rest, time.Second).Round(time.Second).String() + " more"
}
