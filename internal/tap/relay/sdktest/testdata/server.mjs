// A server on the official SDK for TypeScript: on its standard streams, or over HTTP with the argument "http", on a port that it prints.
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";

const sdk = (path) => import(`${process.env.JURAT_TEST_MCP}/node_modules/@modelcontextprotocol/sdk/dist/esm/${path}.js`);
const { z } = await import(`${process.env.JURAT_TEST_MCP}/node_modules/zod/index.js`);
const { McpServer } = await sdk("server/mcp");

function tools() {
	const server = new McpServer({ name: "tools", version: "1" }, { capabilities: { logging: {} } });
	server.registerTool("add", { description: "adds", inputSchema: { A: z.number(), B: z.number() }, outputSchema: { Sum: z.number() } }, async ({ A, B }) => ({
		content: [{ type: "text", text: String(A + B) }],
		structuredContent: { Sum: A + B },
	}));
	server.registerTool("fail", {}, async () => {
		throw new Error("it failed");
	});
	server.registerTool("ask", {}, async (extra) => {
		const token = extra._meta?.progressToken;
		if (token !== undefined) await extra.sendNotification({ method: "notifications/progress", params: { progressToken: token, progress: 1, total: 2 } });
		const answer = await server.server.elicitInput({ message: "Sure?", requestedSchema: { type: "object", properties: { ok: { type: "boolean" } } } }, { relatedRequestId: extra.requestId });
		const said = await server.server.createMessage({ messages: [{ role: "user", content: { type: "text", text: "Say yes." } }], maxTokens: 5 }, { relatedRequestId: extra.requestId });
		return { content: [{ type: "text", text: `${answer.action} ${JSON.stringify(answer.content)} ${said.model}` }] };
	});
	server.registerResource("a", "file:///a", { mimeType: "text/plain" }, async () => ({ contents: [{ uri: "file:///a", text: "long ".repeat(100_000) }] }));
	server.registerPrompt("p", {}, async () => ({ messages: [{ role: "user", content: { type: "text", text: "Hello." } }] }));
	return server;
}

if (process.argv[2] !== "http") {
	const { StdioServerTransport } = await sdk("server/stdio");
	await tools().connect(new StdioServerTransport());
} else {
	const { StreamableHTTPServerTransport } = await sdk("server/streamableHttp");
	const sessions = new Map();
	const http = createServer(async (req, res) => {
		const known = sessions.get(req.headers["mcp-session-id"]);
		if (known) return known.handleRequest(req, res);
		const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: (id) => sessions.set(id, transport) });
		await tools().connect(transport);
		await transport.handleRequest(req, res);
	});
	http.listen(0, "127.0.0.1", () => console.log(http.address().port));
	process.stdin.resume();
	process.stdin.on("end", () => process.exit(0)); // with its test
}
