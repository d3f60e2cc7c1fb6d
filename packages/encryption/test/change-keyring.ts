import process from "node:process";
import { createKeyring, openEncryption } from "@throughline/encryption";

/** Makes each change of a keyring once, and prints what was acknowledged. */
const [keyring = ""] = process.argv.slice(2);
const say = (...words: readonly string[]): void => void process.stdout.write(`${words.join(" ")}\n`);
const [first, second] = [{ key: Buffer.alloc(32, 7) }, { key: Buffer.alloc(32, 8) }];
await createKeyring({ keyring, mainKey: first });
say("created");
const codec = await openEncryption({ keyring, mainKey: first });
const write = (sessionId: string): void => {
  const context = { namespace: "", agentId: "main", sessionId, id: "r1", part: "record" } as const;
  say("written", sessionId, Buffer.from(codec.encode(Buffer.from(`text of ${sessionId}`), context)).toString("base64"));
};
for (const sessionId of ["a", "b", "c"]) write(sessionId);
say("destroying");
await codec.destroyKeys({ namespace: "", agentId: "main", sessionId: "b" }, "asked for");
say("destroyed");
await codec.rotateMainKey(second);
say("rotated");
write("d");
