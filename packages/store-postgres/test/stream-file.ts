// Puts a file of the given size and reads it again, piece by piece, and prints the most memory that it took beyond its start.
import process from "node:process";
import { createPostgresStore } from "@throughline/store-postgres";

const [url = "", schema = "", bytesText = "0"] = process.argv.slice(2);
const length = Number(bytesText);
const scope = { namespace: "", agentId: "main" };
await using store = createPostgresStore({ url, schema, notify: false });
await store.list();
const before = process.memoryUsage.rss();
let most = 0;
const measure = (): void => void (most = Math.max(most, process.memoryUsage.rss() - before));

async function* content(): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < length; at += 65_536) {
    measure();
    yield new Uint8Array(Math.min(65_536, length - at)).fill(at % 251);
  }
}

const { id, bytes } = await store.files.put(scope, content());
let read = 0;
for await (const piece of store.files.get(scope, id)) {
  read += piece.byteLength;
  measure();
}
process.stdout.write(JSON.stringify({ bytes, read, mostMb: Math.round(most / 1_000_000) }));
