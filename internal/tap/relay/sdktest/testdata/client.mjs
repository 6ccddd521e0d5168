// A client on the official SDK for TypeScript. It does what clients do, with the server that its arguments start or, if there is one that begins with http:, reach, and prints
// all that it learns.
const sdk = (path) => import(`${process.env.JURAT_TEST_MCP}/node_modules/@modelcontextprotocol/sdk/dist/esm/${path}.js`);
const { Client } = await sdk("client/index");
const { StdioClientTransport } = await sdk("client/stdio");
const { StreamableHTTPClientTransport } = await sdk("client/streamableHttp");
const types = await sdk("types");

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "client", version: "1" }, { capabilities: { elicitation: {}, sampling: {} } });
client.setRequestHandler(types.ElicitRequestSchema, async () => ({ action: "accept", content: { ok: true } }));
client.setRequestHandler(types.CreateMessageRequestSchema, async () => ({ role: "assistant", model: "m-1", content: { type: "text", text: "Yes." } }));
const note = async (what, promise) => {
	const text = await promise.then(JSON.stringify, (error) => `${error.code} ${error.message}`);
	console.log(`${what}: ${text.slice(0, 2000)} ${text.length}`);
};
const transport = command.startsWith("http:") ? new StreamableHTTPClientTransport(new URL(command)) : new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
await client.connect(transport);
console.log(JSON.stringify([client.getServerVersion(), client.getServerCapabilities()]));
await note("tools", client.listTools());
await note("add", client.callTool({ name: "add", arguments: { A: 40, B: 2 } }));
await note("fail", client.callTool({ name: "fail", arguments: {} }));
let progress = 0;
await note("ask", client.callTool({ name: "ask", arguments: {} }, undefined, { onprogress: () => progress++ }));
console.log("progress", progress);
await note("none", client.callTool({ name: "none", arguments: {} }));
await note("resource", client.readResource({ uri: "file:///a" }));
await note("prompt", client.getPrompt({ name: "p" }));
await note("ping", client.ping());
await note("at once", Promise.all(Array.from({ length: 20 }, (_, i) => client.callTool({ name: "add", arguments: { A: i, B: i } }))));
await client.close();
