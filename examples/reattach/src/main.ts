// A second process shows the answer that the first one is writing.
// node src/main.ts ask QUESTION  answers, piece by piece
// node src/main.ts watch         prints the text so far of the answer that is being written, and then the rest
import process from "node:process";
import { anthropic } from "@throughline/models/anthropic";
import { createSessions } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";

const [command, ...words] = process.argv.slice(2);
const { ANTHROPIC_API_KEY: apiKey = "", ANTHROPIC_BASE_URL: baseUrl, SESSIONS = "sessions.db" } = process.env;
const store = createSqliteStore({ path: SESSIONS });
const model = anthropic("claude-sonnet-5", { apiKey, baseUrl });
const sessions = createSessions({ store, model });

async function ask(): Promise<void> {
  const session = await sessions.open("home");
  for await (const event of session.streamTurn(words.join(" ")))
    if (event.name === "text.delta") process.stdout.write(event.text);
  console.log();
}

async function watch(): Promise<void> {
  const turn = await sessions.attach("home");
  if (turn === null) {
    console.error("Nothing is being answered.");
    process.exitCode = 3;
    return;
  }
  let printed = "";
  for await (const event of turn) {
    if (event.name === "text.delta") {
      process.stdout.write(event.text);
      printed += event.text;
    } else if (event.name === "text.snapshot") {
      // It replaces what was printed. A model that is asked again begins with other words.
      process.stdout.write(event.text.startsWith(printed) ? event.text.slice(printed.length) : `\n${event.text}`);
      printed = event.text;
    } else if (event.name === "turn.interrupted") {
      console.error("\nThe process that answered is gone. The next `ask` continues the conversation.");
      process.exitCode = 4;
    }
  }
  console.log();
}

try {
  if (command === "watch") await watch();
  else if (command === "ask" && words.length > 0 && apiKey !== "") await ask();
  else {
    console.error("ANTHROPIC_API_KEY=… node src/main.ts ask QUESTION, or node src/main.ts watch");
    process.exitCode = 2;
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await sessions.close();
  await store.close();
}
