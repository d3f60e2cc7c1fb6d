import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import process from "node:process";
import { createKeyring, type MainKey, openEncryption } from "@throughline/encryption";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import { keyringPath, mainKey, opened } from "./temporary-keyring.ts";

/** The adapter for Vault's transit API that the guide shows. */
function vaultService(url: string, token: string): MainKey {
  const call = async (operation: string, body: object): Promise<Record<string, string>> => {
    const answer = await fetch(`${url}/v1/transit/${operation}/sessions`, {
      method: "POST",
      headers: { "x-vault-token": token },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(10_000),
    });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return ((await answer.json()) as { data: Record<string, string> }).data;
  };
  return {
    service: {
      wrap: async (key) => {
        const { ciphertext = "" } = await call("encrypt", { plaintext: Buffer.from(key).toString("base64") });
        return Buffer.from(ciphertext);
      },
      unwrap: async (wrapped) => {
        const { plaintext = "" } = await call("decrypt", { ciphertext: Buffer.from(wrapped).toString() });
        return Buffer.from(plaintext, "base64");
      },
    },
  };
}

const script = bundledWorker(new URL("./key-service.ts", import.meta.url));
let service: ChildProcess;
let said = "";
let url = "";

beforeAll(async () => {
  service = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"] });
  service.stdout?.on("data", (bytes: Buffer) => void (said += bytes.toString()));
  await vi.waitFor(() => expect(said).toContain("http://"), { timeout: 30_000 });
  url = said.trim();
});
afterAll(async () => {
  if (service.exitCode !== null || service.signalCode !== null) return;
  service.kill("SIGKILL");
  await once(service, "exit");
});

const place = { namespace: "", agentId: "main", sessionId: "s", id: "r1", part: "record" } as const;

describe("a keyring whose main key is in a key service", () => {
  it("opens through the service or with the recovery key, and with nothing else", { tags: ["slow"] }, async () => {
    const keyring = keyringPath();
    const by = vaultService(url, "test-token");
    const { recoveryKey } = await createKeyring({ keyring, mainKey: by });
    const coded = (await opened(keyring, by)).encode(Buffer.from("text"), place);
    expect(said.match(/encrypt/g)?.length).toBe(1);
    for (const each of [by, { recoveryKey }])
      expect(Buffer.from((await opened(keyring, each)).decode(coded, place)).toString()).toBe("text");
    await expect(opened(keyring, mainKey)).rejects.toMatchObject({ code: "MAIN_KEY_WRONG" });
    await expect(opened(keyring, vaultService(url, "other"))).rejects.toMatchObject({
      code: "KEYRING_IO",
      message: expect.stringContaining("status 403"),
    });
    // The service may give back another key, or something else than one.
    for (const [given, code] of [
      [Buffer.alloc(32), "MAIN_KEY_WRONG"],
      [Buffer.alloc(31), "MAIN_KEY_WRONG"],
      ["text", "KEYRING_IO"],
    ] as const) {
      const lying = { service: { wrap: async () => Buffer.alloc(64), unwrap: async () => given as Uint8Array } };
      await expect(openEncryption({ keyring, mainKey: lying })).rejects.toMatchObject({ code });
    }
    // From a key to the service and back.
    const codec = await opened(keyring, by);
    await codec.rotateMainKey(mainKey);
    await expect(opened(keyring, by)).rejects.toMatchObject({ code: "MAIN_KEY_WRONG" });
    await codec.rotateMainKey(by);
    expect(Buffer.from((await opened(keyring, by)).decode(coded, place)).toString()).toBe("text");

    service.kill("SIGKILL");
    await once(service, "exit");
    // What is open stays open. Nothing is created or opened without the service.
    expect(Buffer.from(codec.decode(codec.encode(Buffer.from("more"), place), place)).toString()).toBe("more");
    const before = readFileSync(keyring);
    const other = keyringPath();
    for (const refused of [
      opened(keyring, by),
      createKeyring({ keyring: other, mainKey: by }),
      codec.rotateMainKey(by),
    ])
      await expect(refused).rejects.toMatchObject({ code: "KEYRING_IO", outcome: "not-applied" });
    expect(readFileSync(keyring).equals(before)).toBe(true);
    expect(() => readFileSync(other)).toThrow("ENOENT");
  });
});
