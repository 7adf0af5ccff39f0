// The npm package `@modelcontextprotocol/sdk`.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [kind, place, ...args] = process.argv.slice(2);
const transport =
  kind === "http" ? new StreamableHTTPClientTransport(new URL(place)) : new StdioClientTransport({ command: place, args });
const client = new Client({ name: "test", version: "1" });
await client.connect(transport);
await client.ping();
const { tools } = await client.listTools();
const said = await client.callTool({ name: "echo", arguments: { a: 1 } });
let progress = 0;
const hasProgress = tools.some((tool) => tool.name === "test_tool_with_progress");
if (hasProgress) {
  await client.callTool({ name: "test_tool_with_progress", arguments: {} }, undefined, { onprogress: () => (progress += 1) });
}
const refused = await client.callTool({ name: "strict", arguments: { seats: "two" } });
console.log(JSON.stringify({
  revision: transport.protocolVersion ?? null,
  tools: tools.map((tool) => tool.name).sort(),
  echo: said.structuredContent,
  progress: hasProgress ? progress : null,
  refused: refused.isError,
}));
await client.close();
