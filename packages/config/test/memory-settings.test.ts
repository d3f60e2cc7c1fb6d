import { describe, expect, it } from "vitest";
import type { Config } from "../src/resolve-config.ts";
import { resolveConfig } from "../src/resolve-config.ts";

function resolve({
  file = {},
  environment = {},
}: {
  readonly file?: object;
  readonly environment?: Record<string, string>;
}): Promise<Config> {
  const text = JSON.stringify(file);
  return resolveConfig({
    userHome: "/home/x",
    environment,
    flags: {},
    readFile: () => ({ path: "config.json", text }),
  });
}

describe("the settings of search by meaning", () => {
  it("reads OpenClaw's memorySearch as an embedder where it names one, and says where texts are sent", async () => {
    const read = async (memorySearch: unknown): Promise<readonly [unknown, string]> => {
      const { settings, notes } = await resolve({ file: { agents: { defaults: { memorySearch } } } });
      return [settings.find(({ key }) => key === "memory.search.embedder")?.value, notes[0]?.message ?? ""];
    };
    const local = { provider: "ollama", model: "nomic-embed-text", remote: { baseUrl: "http://box:11434" } };
    expect(await read(local)).toEqual([
      { provider: "ollama", model: "nomic-embed-text", url: "http://box:11434" },
      expect.stringMatching(
        /^agents\.defaults\.memorySearch is read as memory\.search\.embedder: the text of sessions is sent/,
      ),
    ]);
    const [openai] = await read({ provider: "openai", query: { maxResults: 5 } });
    expect(openai).toEqual({
      provider: "openai-compatible",
      model: "text-embedding-3-small",
      url: "https://api.openai.com/v1",
      keyVariable: "OPENAI_API_KEY",
    });
    expect((await read({ provider: "openai", remote: { apiKey: "${MY_KEY}" } }))[0]).toMatchObject({
      keyVariable: "MY_KEY",
    });
    for (const [none, why] of [
      [{ enabled: true }, /names no provider/],
      [{ provider: "auto" }, /names no provider/],
      [{ provider: "voyage" }, /no provider "voyage"/],
      [{ provider: "openai", enabled: false }, /off there/],
      [{ provider: "openai", remote: { apiKey: "sk-geheim" } }, /holds a key itself/],
      [{ provider: "ollama" }, /names no model/],
    ] as const)
      expect(await read(none)).toEqual([null, expect.stringMatching(why)]);
    expect((await read({ provider: "openai", remote: { apiKey: "sk-geheim" } }))[1]).not.toContain("geheim");
  });

  it("prefers its own embedder, which an environment with keys never names", async () => {
    const embedder = { provider: "ollama", model: "bge-m3" };
    const file = { memory: { search: { embedder } }, agents: { defaults: { memorySearch: { provider: "openai" } } } };
    const { settings, notes } = await resolve({ file });
    expect(settings.find(({ key }) => key === "memory.search.embedder")?.value).toEqual(embedder);
    expect(notes.map(({ kind }) => kind)).toEqual(["ignored"]);
    const keys = { OPENAI_API_KEY: "sk-1", VOYAGE_API_KEY: "v-1", GEMINI_API_KEY: "g-1" };
    const none = await resolve({ environment: keys });
    expect(none.settings.find(({ key }) => key === "memory.search.embedder")?.value).toBeNull();
  });
});
