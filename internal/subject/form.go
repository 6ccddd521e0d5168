package subject

// readers are the readers of the forms that the evidence names in its member format. Chat and A2A are not named, so
// that the evidence of earlier trials and that of new ones is the same.
var readers = map[Form]func(*Case, *node) error{
	AnthropicForm: (*Case).readAnthropic, ResponsesForm: (*Case).readResponses, GeminiForm: (*Case).readGemini,
	InspectForm: (*Case).readInspect, PromptfooForm: (*Case).readPromptfoo,
}
