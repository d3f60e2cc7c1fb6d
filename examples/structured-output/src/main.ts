// Reads a letter from standard input, and prints what it asks for as one line of JSON.
// ANTHROPIC_API_KEY=… npm start < letter.txt
import process from "node:process";
import { text } from "node:stream/consumers";
import { anthropic } from "@throughline/models/anthropic";
import { createSessions } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";
import { readLetter } from "./read-letter.ts";

const store = createSqliteStore({ path: process.env["DATABASE"] ?? "letters.db" });
const sessions = createSessions({ store, model: anthropic(process.env["MODEL"] ?? "claude-sonnet-5") });
try {
  const session = await sessions.open("letters");
  const letter = await readLetter(session, await text(process.stdin));
  if (letter === null) {
    process.stderr.write("The letter could not be read.\n");
    process.exitCode = 1;
  } else {
    process.stdout.write(`${JSON.stringify(letter)}\n`);
  }
} finally {
  await sessions.close();
  await store.close();
}
