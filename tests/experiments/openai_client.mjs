// OpenAI's client for Node against `consensus serve`: node openai_client.mjs URL NODE_MODULES
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const [url, modules] = process.argv.slice(2);
const { default: OpenAI } = createRequire(`${modules}/`)("openai");
const client = new OpenAI({ baseURL: url, apiKey: "none", maxRetries: 0 });
const messages = [{ role: "user", content: "How much is 2+2?" }];

const said = await client.chat.completions.create({ model: "consensus/solver_checker", messages });
assert.equal(said.choices[0].message.content, "4");
assert.equal(said.consensus.outcome, "agreed");

let text = "";
let end;
let usage;
const asked = { model: "consensus/vote_number", messages, stream: true, stream_options: { include_usage: true } };
for await (const chunk of await client.chat.completions.create(asked)) {
  text += chunk.choices[0]?.delta?.content ?? "";
  end = chunk.choices[0]?.finish_reason ?? end;
  usage = chunk.usage ?? usage;
}
assert.deepEqual([text, end], ["4", "stop"]);
assert(usage.total_tokens > 0);

await assert.rejects(client.chat.completions.create({ model: "gpt-5", messages }), OpenAI.NotFoundError);
const keyed = { headers: { "Idempotency-Key": "node" } };
const again = async () => (await client.chat.completions.create({ model: "consensus/solver_checker", messages }, keyed)).id;
assert.equal(await again(), await again());

const response = await client.responses.create({ model: "consensus/solver_checker", input: "How much is 2+2?" });
assert.equal(response.output_text, "4");
let spoken = "";
for await (const event of await client.responses.create({ model: "consensus/vote_number", input: messages, stream: true })) {
  if (event.type === "response.output_text.delta") spoken += event.delta;
}
assert.equal(spoken, "4");
