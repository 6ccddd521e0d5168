// A client on the official SDK for TypeScript that signs in by OAuth, as the SDK has it, at the server that its argument names. It prints what a tool answers, and how often it signed in.
const sdk = (path) => import(`${process.env.JURAT_TEST_MCP}/node_modules/@modelcontextprotocol/sdk/dist/esm/${path}.js`);
const { Client } = await sdk("client/index");
const { UnauthorizedError } = await sdk("client/auth");
const { StreamableHTTPClientTransport } = await sdk("client/streamableHttp");

const address = new URL(process.argv[2]);
const kept = {};
let code, signedIn = 0;
const provider = {
	redirectUrl: "http://127.0.0.1:1/callback",
	clientMetadata: { client_name: "client", redirect_uris: ["http://127.0.0.1:1/callback"], grant_types: ["authorization_code"], response_types: ["code"], token_endpoint_auth_method: "none" },
	clientInformation: () => kept.client,
	saveClientInformation: (client) => { kept.client = client; },
	tokens: () => kept.tokens,
	saveTokens: (tokens) => { kept.tokens = tokens; },
	saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
	codeVerifier: () => kept.verifier,
	redirectToAuthorization: async (at) => { // as a browser would follow it
		signedIn++;
		const answer = await fetch(at, { redirect: "manual" });
		code = new URL(answer.headers.get("location")).searchParams.get("code");
	},
};
const connect = async () => {
	const client = new Client({ name: "client", version: "1" });
	const transport = new StreamableHTTPClientTransport(address, { authProvider: provider });
	try {
		await client.connect(transport);
	} catch (error) {
		if (!(error instanceof UnauthorizedError) || !code) throw error;
		await transport.finishAuth(code);
		return connect();
	}
	return client;
};
try {
	const client = await connect();
	const said = await client.callTool({ name: "add", arguments: { A: 40, B: 2 } });
	console.log(JSON.stringify(said.structuredContent), "signed in", signedIn);
	await client.close();
} catch (error) {
	console.log("failed:", error.message);
}
process.exit(0);
