// What encryption costs the processor per append and per read record of a SQLite store, beside the plain store and beside a
// control that only runs the same cipher under one key. The three take turns, and the ratios are medians of pairs.
// node --conditions=@throughline/source lab/benchmarks/encryption.ts [--rounds 41] [--keys 3000]
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import type { PayloadCodec } from "../../packages/core/src/index.ts";
import { createKeyring, openEncryption } from "../../packages/encryption/src/index.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";
import { median } from "../../benchmarks/measure.ts";

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "41" }, keys: { type: "string", default: "3000" } },
});
const [rounds, keys] = [Number(values.rounds), Number(values.keys)];
const [appends, reads] = [50, 10];

/** The same cipher under one key, bound to nothing. */
function rawControl(): PayloadCodec {
  const key = randomBytes(32);
  return {
    name: "raw-control",
    encode: (plain) => {
      const nonce = randomBytes(12);
      const cipher = createCipheriv("aes-256-gcm", key, nonce, { authTagLength: 16 });
      return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
    },
    decode: (coded) => {
      const decipher = createDecipheriv("aes-256-gcm", key, coded.subarray(0, 12), { authTagLength: 16 });
      decipher.setAuthTag(coded.subarray(-16));
      return Buffer.concat([decipher.update(coded.subarray(12, -16)), decipher.final()]);
    },
  };
}

/** The processor time of the work in microseconds. */
async function processorTime(work: () => void | Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

const folder = mkdtempSync(join(tmpdir(), "throughline-encryption-"));
const options = { keyring: join(folder, "keys.db"), mainKey: { key: randomBytes(32) } };
await createKeyring(options);
const encryption = await openEncryption(options);
const message = { type: "message", message: { role: "user", content: "word ".repeat(200) } };

const measured = [undefined, rawControl(), encryption].map((codec, index) => ({
  name: ["plain", "raw cipher", "encryption"][index] ?? "",
  append: [] as number[],
  read: [] as number[],
  store: createSqliteStore({
    path: join(folder, `${index}.db`),
    searchFill: "on-demand",
    ...(codec === undefined ? {} : { codec }),
  }),
}));

for (let round = 0; round < rounds; round++)
  for (const { store, append, read } of measured) {
    const ref = { namespace: "", agentId: "main", key: `agent:main:s${round}` };
    await store.save(ref, { sessionId: `s${round}` }, { ifRevision: null });
    const appended = await processorTime(async () => {
      for (let count = 0; count < appends; count++) await store.append(ref, [message], { durability: "process" });
    });
    const wasRead = await processorTime(async () => {
      for (let count = 0; count < reads; count++) await Array.fromAsync(store.read(ref));
    });
    append.push(appended / appends);
    read.push(wasRead / (reads * appends));
  }

for (const { name, append, read } of measured)
  process.stdout.write(
    `${name}: append ${median(append).toFixed(0)} µs, read ${median(read).toFixed(1)} µs a record\n`,
  );
const [plain, raw, own] = measured;
for (const what of ["append", "read"] as const) {
  const ratio = (a: readonly number[], b: readonly number[]): string =>
    median(a.map((time, round) => time / (b[round] ?? time))).toFixed(2);
  if (plain === undefined || raw === undefined || own === undefined) continue;
  process.stdout.write(
    `${what}: encryption ${ratio(own[what], plain[what])} x plain, raw cipher ${ratio(raw[what], plain[what])} x plain, ` +
      `encryption ${ratio(own[what], raw[what])} x raw cipher\n`,
  );
}

const place = (session: number) =>
  ({ namespace: "", agentId: "main", sessionId: `k${session}`, id: "r", part: "record" }) as const;
const coded: Uint8Array[] = [];
const made = await processorTime(() => {
  for (let session = 0; session < keys; session++) coded.push(encryption.encode(Buffer.from("x"), place(session)));
});
for (const { store } of measured) await store.close();
encryption.close();
const reopened = await openEncryption(options);
const found = await processorTime(() => {
  for (const [session, each] of coded.entries()) reopened.decode(each, place(session));
});
process.stdout.write(
  `a new key ${(made / keys).toFixed(0)} µs, the first decode of a session ${(found / keys).toFixed(0)} µs among ${keys} keys\n`,
);
reopened.close();
rmSync(folder, { recursive: true });
