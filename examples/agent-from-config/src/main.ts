// An agent from a configuration file. The block in agent.json is the one of the page on session management.
// ANTHROPIC_API_KEY=… npm start -- "What did we decide?" [agent.json]
import process from "node:process";
import { openAgent } from "@throughline/agent";

const [question = "Hello.", configFile = "agent.json"] = process.argv.slice(2);
const agent = await openAgent({
  configFile,
  onNote: (message) => process.stderr.write(`${message}\n`),
  onEvent: ({ name }) => {
    if (/^(checkpoint|compaction|retry)\./.test(name)) process.stderr.write(`[${name}]\n`);
  },
});
const session = await agent.sessions.open(agent.defaultKey);
if (session.interruptedTurn !== null) await session.resume(); // what a killed process left
const turn = await session.runTurn(question);
process.stdout.write(`${turn.text}\n`);
await agent.close({ waitMs: 60_000 }); // a checkpoint that is due is written before the process ends
