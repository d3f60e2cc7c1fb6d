// Asks about a file: node src/main.ts FILE QUESTION. The file is stored once, and each later question may name it again.
import { createReadStream } from "node:fs";
import { basename, extname } from "node:path";
import process from "node:process";
import { anthropic } from "@throughline/models/anthropic";
import { createSessions } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";

const [path, ...words] = process.argv.slice(2);
const { ANTHROPIC_API_KEY: apiKey = "", ANTHROPIC_BASE_URL: baseUrl, SESSIONS = "sessions.db" } = process.env;
if (path === undefined || apiKey === "") {
  console.error("ANTHROPIC_API_KEY=… node src/main.ts FILE QUESTION");
  process.exit(2);
}
const mediaTypes: Readonly<Record<string, string>> = {
  ".pdf": "application/pdf",
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".csv": "text/csv",
  ".txt": "text/plain",
};
const store = createSqliteStore({ path: SESSIONS });
const model = anthropic("claude-sonnet-5", { apiKey, baseUrl });
const sessions = createSessions({ store, model });
try {
  const name = basename(path);
  const mediaType = mediaTypes[extname(name).toLowerCase()];
  // The stream is read no faster than the store keeps it, so a file of 100 MB needs no memory of 100 MB.
  const file = await sessions.files.put(createReadStream(path), { name, mediaType });
  const session = await sessions.open("files");
  const text = words.join(" ") || "What is in the file?";
  const turn = await session.runTurn([{ type: "text", text }, file.block]);
  console.log(turn.text);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await sessions.close();
  await store.close();
}
