import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";

// A key service in a process of its own, which speaks the part of Vault's transit API that a keyring needs. Its key never
// leaves it. It prints its address, and each request.
const key = randomBytes(32);

function encrypted(plain: Buffer): string {
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  const bytes = [nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()];
  return `vault:v1:${Buffer.concat(bytes).toString("base64")}`;
}

function decrypted(text: string): Buffer {
  const bytes = Buffer.from(text.replace("vault:v1:", ""), "base64");
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, 12));
  decipher.setAuthTag(bytes.subarray(-16));
  return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]);
}

async function answerTo(request: IncomingMessage): Promise<Readonly<Record<string, string>> | null> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const asked = JSON.parse(Buffer.concat(parts).toString()) as { plaintext?: string; ciphertext?: string };
  if (request.headers["x-vault-token"] !== "test-token") return null;
  if (request.url === "/v1/transit/encrypt/sessions")
    return { ciphertext: encrypted(Buffer.from(asked.plaintext ?? "", "base64")) };
  return { plaintext: decrypted(asked.ciphertext ?? "").toString("base64") };
}

const server = createServer((request, response) => {
  process.stdout.write(`${request.url}\n`);
  answerTo(request).then(
    (data) => response.writeHead(data === null ? 403 : 200).end(JSON.stringify({ data })),
    () => response.writeHead(400).end("{}"),
  );
});
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});
