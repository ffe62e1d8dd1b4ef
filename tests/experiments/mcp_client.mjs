// The Model Context Protocol's clients for Node, of both lines, and its inspector against `consensus mcp` and `consensus serve`.
//
//     mcp_client.mjs BIN URL NODE_MODULES FOLDER
//
// BIN starts a server on standard input, in FOLDER, and URL is that of a running one. NODE_MODULES has the packages. Exit status 1: an
// answer is another one.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [bin, base, modules, folder] = process.argv.slice(2);
const url = base.replace(/\/v1$/, "/mcp");
const find = createRequire(pathToFileURL(join(modules, "from-here.cjs")));
const load = (name) => import(pathToFileURL(find.resolve(name)));
const mock = (name) => ["mcp", "--quiet", "--mock", "--answer", "4", "-o", join(folder, name)];
const question = { task: "How much is 2+2?", canonical: "number" };

async function asked(name, client, transport) {
  await client.connect(transport);
  const { tools } = await client.listTools();
  assert.equal(tools.length, 8, name);
  const notices = [];
  const progress = { onprogress: (notice) => notices.push(notice.progress) };
  // The two lines of the client have the options of a call in different places.
  const call = { name: "run", arguments: question };
  const ran = await (name.startsWith("1") ? client.callTool(call, undefined, progress) : client.callTool(call, progress));
  assert.deepEqual([ran.structuredContent.outcome, ran.structuredContent.text], ["agreed", "4"], name);
  assert.ok(notices.length > 0 && notices.every((notice, at) => at === 0 || notice > notices[at - 1]), `${name}: ${notices}`);
  const read = await client.readResource({ uri: `consensus://runs/${ran.structuredContent.run}/transcript` });
  assert.match(read.contents[0].text, /How much is 2\+2/, name);
  const prompt = await client.getPrompt({ name: "vote_number", arguments: { task: "6*7" } });
  assert.match(prompt.messages[0].content.text, /vote_number/, name);
  await client.close();
  console.log(`client ${name}: ${tools.length} tools, a run with ${notices.length} notices, a resource, a prompt`);
}

const about = { name: "test", version: "1" };
const one = await load("@modelcontextprotocol/sdk/client/index.js");
const oneStdio = await load("@modelcontextprotocol/sdk/client/stdio.js");
const oneHttp = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
await asked("1, stdio", new one.Client(about), new oneStdio.StdioClientTransport({ command: bin, args: mock("one") }));
await asked("1, http", new one.Client(about), new oneHttp.StreamableHTTPClientTransport(new URL(url)));
const two = await load("@modelcontextprotocol/client");
const twoStdio = await load("@modelcontextprotocol/client/stdio");
await asked("2, stdio", new two.Client(about), new twoStdio.StdioClientTransport({ command: bin, args: mock("two") }));
await asked("2, http", new two.Client(about), new two.StreamableHTTPClientTransport(new URL(url)));

const inspector = join(modules, "@modelcontextprotocol/inspector/clients/launcher/build/index.js");
const inspect = (...words) => JSON.parse(execFileSync(process.execPath, [inspector, "--cli", ...words], { encoding: "utf8" }));
const said = inspect(bin, ...mock("three"), "--method", "tools/call", "--tool-name", "run", "--tool-arg", "task=How much is 2+2?");
assert.equal(said.structuredContent.text, "4");
assert.equal(inspect(url, "--transport", "http", "--method", "tools/list", "--strict").tools.length, 8);
console.log("inspector: a run on standard input, and over HTTP tools whose schemas every client can read");
