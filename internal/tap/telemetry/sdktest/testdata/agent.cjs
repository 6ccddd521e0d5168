// An agent with the openai library, instrumented by one of two libraries: node agent.cjs LIBRARY EXPORTER MODEL RECEIVER.
const [library, exporter, model, receiver] = process.argv.slice(2)
const load = require('node:module').createRequire(process.env.JURAT_TEST_OTEL + '/')

const { NodeTracerProvider, BatchSpanProcessor } = load('@opentelemetry/sdk-trace-node')
const { LoggerProvider, BatchLogRecordProcessor } = load('@opentelemetry/sdk-logs')
const { registerInstrumentations } = load('@opentelemetry/instrumentation')
const { OTLPTraceExporter } = load('@opentelemetry/exporter-trace-otlp-' + exporter)
const { OTLPLogExporter } = load('@opentelemetry/exporter-logs-otlp-' + exporter)

const spans = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: receiver + '/v1/traces' }))] })
// The events of a span leave in one delivery, also on a slow machine.
const logs = new LoggerProvider({ processors: [new BatchLogRecordProcessor({ exporter: new OTLPLogExporter({ url: receiver + '/v1/logs' }), scheduledDelayMillis: 100000 })] })
spans.register()
const { OpenAIInstrumentation } = load(library)
const instrumentation = new OpenAIInstrumentation({ captureMessageContent: true })
if (!instrumentation.manuallyInstrument) {
  registerInstrumentations({ instrumentations: [instrumentation], tracerProvider: spans, loggerProvider: logs })
}
const { OpenAI } = load('openai')
if (instrumentation.manuallyInstrument) {
  instrumentation.manuallyInstrument(OpenAI)
  registerInstrumentations({ instrumentations: [instrumentation], tracerProvider: spans, loggerProvider: logs })
}

async function main () {
  const client = new OpenAI({ baseURL: model + '/v1', apiKey: 'unused' })
  const messages = [{ role: 'system', content: 'You find parcels.' }, { role: 'user', content: 'Where is parcel 17?' }]
  const tools = [{ type: 'function', function: { name: 'find_parcel', parameters: { type: 'object', properties: { number: { type: 'number' } } } } }]
  const first = await client.chat.completions.create({ model: 'gpt-5', temperature: 0.5, messages, tools })
  messages.push(first.choices[0].message, { role: 'tool', tool_call_id: 'call_1', content: 'Kassel' })
  await client.chat.completions.create({ model: 'gpt-5', messages, tools })
  await spans.forceFlush()
  await logs.forceFlush()
  await Promise.all([spans.shutdown(), logs.shutdown()])
}
main().catch(err => { console.error(err); process.exit(1) })
