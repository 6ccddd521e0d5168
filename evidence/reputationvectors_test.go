package evidence

import (
	"strings"
	"testing"
)

const (
	crossedBody = `{"agent":"Orders desk","bounds":{"lower":7512,"upper":9120},"class":"models","event":"crossed","from":"above","panel":"` + aDigest + `","size":4711,` +
		`"threshold":8000,"to":"across","trust":"` + bDigest + `"}`
	goneBody    = `{"agent":"Orders desk","class":"people","event":"crossed","from":"below","size":1,"threshold":10000,"to":"none","trust":"` + bDigest + `"}`
	worstBody   = `{"agent":"Orders desk","bounds":{"lower":0,"upper":0},"class":"rules","event":"crossed","from":"none","size":1,"threshold":1,"to":"below","trust":"` + bDigest + `"}`
	bestBody    = `{"agent":"Orders desk","bounds":{"lower":10000,"upper":10000},"class":"models","event":"crossed","from":"none","size":1,"threshold":10000,"to":"above","trust":"` + bDigest + `"}`
	toldBody    = `{"attempts":1,"crossing":"` + aDigest + `","event":"told","webhook":"pager"}`
	arrivedBody = `{"arrival":"` + aDigest + `","attempts":1,"event":"told","webhook":"pager"}`
	untoldBody  = `{"attempts":10,"crossing":"` + aDigest + `","event":"untold","reason":"it answers 500","webhook":"pager"}`
)

func reputationVectors(t *testing.T) []actVector {
	t.Helper()
	zeros := "sha256:" + strings.Repeat("0", 64)
	return makeActs(t, "reputation", ReputationEvent, OperatorPrefix+"reputation", [][2]string{{"crossed", crossedBody}, {"no bounds any more", goneBody},
		{"the worst", worstBody}, {"the best", bestBody}, {"told", toldBody}, {"untold", untoldBody}, {"told of an arrival", arrivedBody}}, []badAct{
		{"an event that is none", toldBody, `"told"`, `"heard"`},
		{"without an event", toldBody, `"event":"told",`, ``},
		{"crossed by nobody", crossedBody, `"Orders desk"`, `""`},
		{"without an agent", crossedBody, `"agent":"Orders desk",`, ``},
		{"a class that is none", crossedBody, `"models"`, `"dogs"`},
		{"without a class", goneBody, `"class":"people",`, ``},
		{"a panel of people", crossedBody, `"models"`, `"people"`},
		{"a panel of zeros", crossedBody, aDigest, zeros},
		{"bounds the wrong way", crossedBody, `"lower":7512,"upper":9120`, `"lower":9120,"upper":7512`},
		{"more than all", crossedBody, `9120`, `10001`},
		{"less than nothing", crossedBody, `7512`, `-1`},
		{"parts of parts", crossedBody, `7512`, `7512.5`},
		{"a bound missing", crossedBody, `"lower":7512,`, ``},
		{"bounds and more", crossedBody, `"lower":7512,`, `"lower":7512,"middle":8000,`},
		{"bounds that are null", crossedBody, `{"lower":7512,"upper":9120}`, `null`},
		{"no threshold", crossedBody, `"threshold":8000,`, ``},
		{"a threshold of 0", crossedBody, `"threshold":8000`, `"threshold":0`},
		{"a threshold beyond all", crossedBody, `"threshold":8000`, `"threshold":10001`},
		{"from nowhere", crossedBody, `"from":"above",`, ``},
		{"from a side that is none", crossedBody, `"from":"above"`, `"from":"beside"`},
		{"nothing crossed", crossedBody, `"from":"above"`, `"from":"across"`},
		{"to where the bounds are not", crossedBody, `"to":"across"`, `"to":"below"`},
		{"to no bounds, with bounds", crossedBody, `"to":"across"`, `"to":"none"`},
		{"above without bounds", goneBody, `"to":"none"`, `"to":"above"`},
		{"of no log", crossedBody, `"size":4711`, `"size":0`},
		{"without a size", crossedBody, `"size":4711,`, ``},
		{"without trust", crossedBody, `,"trust":"` + bDigest + `"`, ``},
		{"trust of zeros", crossedBody, bDigest, zeros},
		{"crossed and told", crossedBody, `"bounds"`, `"attempts":1,"bounds"`},
		{"crossed for a webhook", goneBody, `"}`, `","webhook":"pager"}`},
		{"told never", toldBody, `"attempts":1`, `"attempts":0`},
		{"told a half time", toldBody, `"attempts":1`, `"attempts":0.5`},
		{"told of nothing", toldBody, aDigest, zeros},
		{"told nobody", toldBody, `"pager"`, `""`},
		{"told without a webhook", toldBody, `,"webhook":"pager"`, ``},
		{"told for a reason", toldBody, `"webhook"`, `"reason":"x","webhook"`},
		{"told of an agent", toldBody, `"attempts"`, `"agent":"x","attempts"`},
		{"told with bounds", toldBody, `"crossing"`, `"bounds":{"lower":1,"upper":2},"crossing"`},
		{"told of an arrival and of zeros", arrivedBody, `"attempts":1`, `"attempts":1,"crossing":"` + zeros + `"`},
		{"told of both", toldBody, `"attempts":1,"crossing"`, `"arrival":"` + bDigest + `","attempts":1,"crossing"`},
		{"told of an arrival of zeros", toldBody, `"attempts":1,"crossing":"` + aDigest + `"`, `"arrival":"` + zeros + `","attempts":1`},
		{"crossed on arrival", crossedBody, `"bounds"`, `"arrival":"` + bDigest + `","bounds"`},
		{"untold for no reason", untoldBody, `,"reason":"it answers 500"`, ``},
		{"untold for an empty reason", untoldBody, `it answers 500`, ``},
	})
}
