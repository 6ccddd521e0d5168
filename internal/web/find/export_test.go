package find

// FollowOnce is the step that Follow takes again and again.
var FollowOnce = (*Index).follow
