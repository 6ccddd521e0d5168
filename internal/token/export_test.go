package token

import "time"

// SetTimeout bounds each call from now on.
func (c *Client) SetTimeout(d time.Duration) { c.timeout = d }

const (
	MaxRequest = maxRequest
	MaxAnswer  = maxAnswer
)

// CheckMessage says what is wrong with a request or an answer.
func CheckMessage(frame []byte) error {
	var r request
	if decode(frame, &r) == nil {
		return r.check()
	}
	var a answer
	return decode(frame, &a)
}
